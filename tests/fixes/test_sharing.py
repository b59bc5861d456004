"""A value that several layers share changes where it stands as long as all agree, and nobody else notices."""

from __future__ import annotations

from typing import Any

import pytest
from fixed_specs import Asked, edits_of, fixed, refused

from convlint.fixes.edits import applied

A = "C: 8, H: 9, W: 9, kernel_size: 3"


def spec(*layers: str, head: str = "") -> str:
    return f"version: 1\n{head}layers:\n" + "".join(f"  - {layer}\n" for layer in layers)


def each(field: str, value: Any, *layers: int) -> list[Asked]:
    return [(layer, field, value) for layer in layers]


WIDTH = "x-width: &w 60\n"
TEMPLATE = "x-t: &t {K: 60, dtype: fp16}\n"
DEFAULTS = "defaults: {K: 60, dtype: float16, kernel_size: 3}\n"


@pytest.mark.parametrize(
    ("head", "layers", "changes", "after_head", "after"),
    [
        pytest.param(
            WIDTH, [f"{{{A}, K: *w}}", "{K: *w, kernel_size: 1}"], each("K", 64, 0, 1),
            "x-width: &w 64\n", [f"{{{A}, K: *w}}", "{K: *w, kernel_size: 1}"], id="alias, all agree",
        ),
        pytest.param(
            WIDTH, [f"{{{A}, K: *w}}", "{K: *w, kernel_size: 1}"], each("K", 64, 1),
            WIDTH, [f"{{{A}, K: *w}}", "{K: 64, kernel_size: 1}"], id="alias, one only",
        ),
        pytest.param(
            "", [f"{{{A}, K: &w 60}}", "{C: *w, K: 8, kernel_size: 1}"], [(0, "K", 64), (1, "C", 64)],
            "", [f"{{{A}, K: &w 64}}", "{C: *w, K: 8, kernel_size: 1}"], id="one number for K and C",
        ),
        pytest.param(
            "", [f"{{{A}, K: &w 60}}", "{K: *w, kernel_size: 1}"], each("K", 64, 0),
            "", [f"{{{A}, K: &w 64}}", "{K: 60, kernel_size: 1}"], id="the layer with the anchor alone",
        ),
        pytest.param(
            "", [f"{{{A}, K: &w 60}}", "{K: *w, kernel_size: 1}"], [(0, "K", 64), (1, "K", 72)],
            "", [f"{{{A}, K: &w 64}}", "{K: 72, kernel_size: 1}"], id="two new values",
        ),
        pytest.param(
            "", ["{C: 8, H: 9, W: 9, K: 8, S: &k 3, R: *k}"], each("S", 5, 0),
            "", ["{C: 8, H: 9, W: 9, K: 8, S: &k 5, R: 3}"], id="within one layer",
        ),
        pytest.param(
            DEFAULTS, ["{C: 8, H: 9, W: 9}", "{bias: true}"], [*each("K", 64, 0, 1), *each("dtype", "bf16", 0, 1)],
            "defaults: {K: 64, dtype: bfloat16, kernel_size: 3}\n", ["{C: 8, H: 9, W: 9}", "{bias: true}"],
            id="defaults, all agree",
        ),
        pytest.param(
            DEFAULTS, ["{C: 8, H: 9, W: 9}", "{bias: true}"], [(1, "K", 64), (1, "dtype", "bf16"), (1, "R", 5)],
            DEFAULTS, ["{C: 8, H: 9, W: 9}", "{bias: true, K: 64, dtype: bfloat16, kernel_size: [5, 3]}"],
            id="defaults, one only",
        ),
        pytest.param(
            DEFAULTS, ["{C: 8, H: 9, W: 9}", "{op: pool, kernel_size: 2}", "{K: 70}"], each("K", 64, 0),
            "defaults: {K: 64, dtype: float16, kernel_size: 3}\n",
            ["{C: 8, H: 9, W: 9}", "{op: pool, kernel_size: 2}", "{K: 70}"], id="defaults that one layer alone reads",
        ),
        pytest.param(
            DEFAULTS, ["{C: 8, H: 9, W: 9, R: 3}", "{K: 70}"], each("S", 5, 0),
            DEFAULTS, ["{C: 8, H: 9, W: 9, R: 3, kernel_size: [3, 5]}", "{K: 70}"], id="half of a default",
        ),
        pytest.param(
            "defaults: {stride: 2}\n", [f"{{{A}, K: 8}}", "{op: conv3d, C: 8, K: 8, kernel_size: 3}"],
            [*each("V", 1, 0, 1)],
            "defaults: {stride: 2}\n",
            [f"{{{A}, K: 8, stride: [2, 1]}}", "{op: conv3d, C: 8, K: 8, kernel_size: 3, stride: [2, 2, 1]}"],
            id="a list in the defaults would have one length",
        ),
        pytest.param(
            "defaults: {stride: 2}\n", [f"{{{A}, K: 8}}", "{op: conv3d, C: 8, K: 8, kernel_size: 3, stride: 1}"],
            each("V", 1, 0),
            "defaults: {stride: 2}\n",
            [f"{{{A}, K: 8, stride: [2, 1]}}", "{op: conv3d, C: 8, K: 8, kernel_size: 3, stride: 1}"],
            id="and is read by those that do not use it",
        ),
        pytest.param(
            "defaults: {K: 60}\n", [f"&a {{{A}, K: 8}}", f"&b {{{A}}}", "{<<: [*a, *b], bias: true}"],
            each("K", 64, 1),
            "defaults: {K: 64}\n", [f"&a {{{A}, K: 8}}", f"&b {{{A}}}", "{<<: [*a, *b], bias: true}"],
            id="of several sources the first counts",
        ),
        pytest.param(
            "defaults: {K: 60}\n", [f"&a {{{A}, K: 8}}", f"&b {{{A}}}", "{<<: [*a, *b], bias: true}", f"{{{A}}}"],
            each("K", 64, 1),
            "defaults: {K: 60}\n",
            [f"&a {{{A}, K: 8}}", f"&b {{{A}, K: 64}}", "{<<: [*a, *b], bias: true}", f"{{{A}}}"],
            id="also of what they get anew",
        ),
        pytest.param(
            TEMPLATE, [f"{{<<: *t, {A}}}", "{<<: *t, kernel_size: 1}"], each("K", 64, 0, 1),
            "x-t: &t {K: 64, dtype: fp16}\n", [f"{{<<: *t, {A}}}", "{<<: *t, kernel_size: 1}"], id="merge, all agree",
        ),
        pytest.param(
            TEMPLATE, [f"{{<<: *t, {A}}}", "{<<: *t, kernel_size: 1}"], each("K", 64, 1),
            TEMPLATE, [f"{{<<: *t, {A}}}", "{<<: *t, kernel_size: 1, K: 64}"], id="merge, one only",
        ),
        pytest.param(
            TEMPLATE, [f"{{<<: *t, {A}}}", "{<<: *t, kernel_size: 1, K: 9}"], each("K", 64, 0),
            "x-t: &t {K: 64, dtype: fp16}\n", [f"{{<<: *t, {A}}}", "{<<: *t, kernel_size: 1, K: 9}"],
            id="merge, the other says its own",
        ),
        pytest.param(
            "", [f"&a {{{A}, K: 60}}", "{<<: *a, bias: true}", "{<<: *a, K: 9}"], each("K", 64, 0),
            "", [f"&a {{{A}, K: 64}}", "{<<: *a, bias: true, K: 60}", "{<<: *a, K: 9}"], id="others merge it",
        ),
        pytest.param(
            "defaults: {K: 60}\n", [f"&a {{{A}}}", "{<<: *a, bias: true}", f"{{{A}}}"], each("K", 64, 0),
            "defaults: {K: 60}\n", [f"&a {{{A}, K: 64}}", "{<<: *a, bias: true, K: 60}", f"{{{A}}}"],
            id="what a merged layer gets is merged too",
        ),
        pytest.param(
            "defaults: {K: 60}\n", [f"&a {{{A}}}", "{<<: *a, bias: true}", f"{{{A}}}"], each("K", 64, 0, 1),
            "defaults: {K: 60}\n", [f"&a {{{A}, K: 64}}", "{<<: *a, bias: true}", f"{{{A}}}"], id="and may be welcome",
        ),
        pytest.param(
            "", [f"&a {{{A}, K: 60}}", "*a"], each("K", 64, 0, 1),
            "", [f"&a {{{A}, K: 64}}", "*a"], id="a layer that is an alias",
        ),
        pytest.param(
            "defaults: &d {K: 60}\n", [f"{{{A}}}", f"{{<<: *d, {A}}}"], each("K", 64, 0),
            "defaults: &d {K: 60}\n", [f"{{{A}, K: 64}}", f"{{<<: *d, {A}}}"], id="defaults that are merged as well",
        ),
        pytest.param(
            "x-k: &k [3, 3]\n", ["{C: 8, H: 9, W: 9, K: 8, kernel_size: *k}", "{K: 8, kernel_size: *k}"],
            each("R", 5, 0, 1),
            "x-k: &k [5, 3]\n", ["{C: 8, H: 9, W: 9, K: 8, kernel_size: *k}", "{K: 8, kernel_size: *k}"], id="a list",
        ),
        pytest.param(
            "x-k: &k [3, 3]\n", ["{C: 8, H: 9, W: 9, K: 8, kernel_size: *k}", "{K: 8, kernel_size: *k}"],
            each("R", 5, 1),
            "x-k: &k [3, 3]\n", ["{C: 8, H: 9, W: 9, K: 8, kernel_size: *k}", "{K: 8, kernel_size: [5, 3]}"],
            id="a list, one only",
        ),
        pytest.param(
            "", [f"{{{A}, K: &k 8}}", "{K: &k 9, kernel_size: 1}", "{K: *k, kernel_size: 1}"], each("K", 16, 1, 2),
            "", [f"{{{A}, K: &k 8}}", "{K: &k 16, kernel_size: 1}", "{K: *k, kernel_size: 1}"], id="anchor given twice",
        ),
        pytest.param(
            "", ["{<<: {K: 60}, " + A + "}"], each("K", 64, 0), "", ["{<<: {K: 64}, " + A + "}"], id="merged in place",
        ),
        pytest.param(
            "x-a: &a {K: 60}\nx-b: &b {K: 70, bias: true}\n", [f"{{<<: [*a, *b], {A}}}", f"{{<<: *b, {A}}}"],
            each("K", 64, 0),
            "x-a: &a {K: 64}\nx-b: &b {K: 70, bias: true}\n", [f"{{<<: [*a, *b], {A}}}", f"{{<<: *b, {A}}}"],
            id="the first of several sources",
        ),
    ],
)  # fmt: skip
def test_shared_values(head: str, layers: list[str], changes: list[Asked], after_head: str, after: list[str]) -> None:
    assert fixed(spec(*layers, head=head), *changes) == spec(*after, head=after_head)


def test_an_axis_that_a_default_would_say_again_is_stated_alone() -> None:
    layers = ["{C: 8, W: 9, K: 8, kernel_size: [3], PadH: 1, dilation: 1}", "{op: conv1d, C: 8, W: 9, K: 8, S: 3}"]
    text = spec(*layers, head="defaults: {pad: 0}\n")
    assert fixed(text, (0, "PadW", 3)) == text.replace("dilation: 1", "dilation: 1, PadW: 3")


def test_layers_that_are_one_text_change_together_or_not_at_all() -> None:
    text = spec(f"&a {{{A}, K: 60}}", "*a")
    reason = "other layers are aliases of the same text, and do not change alike"
    assert refused(text, (1, "K", 64)) == [reason]
    assert refused(text, (0, "K", 64), (1, "K", 72)) == [reason, reason]


def test_what_cannot_be_written_at_the_anchor_is_written_where_it_is_used() -> None:
    text = "version: 1\nx-d: &d >-\n  fp16\nlayers:\n" + f"  - {{{A}, K: 8, dtype: *d}}\n"
    assert fixed(text, (0, "dtype", "fp32")) == text.replace("*d", "fp32")
    own = text.replace("x-d: &d >-\n  fp16\n", "").replace(
        f"  - {{{A}, K: 8, dtype: *d}}", "  - C: 8\n    K: 8\n    kernel_size: 3\n    dtype: >-\n      fp16"
    )
    assert refused(own, (0, "dtype", "fp32")) == ["it is written as a block of text"]


def test_one_refusal_keeps_nothing_else_back() -> None:
    found = edits_of(spec(f"{{{A}, K: 60, padding: same}}"), (0, "K", 64), (0, "PadH", 9))
    assert [refusal.change.field for refusal in found.refused] == ["PadH"]
    assert "K: 64" in applied(spec(f"{{{A}, K: 60, padding: same}}"), found.edits)
