"""A layer gets no key that a layer merging it would get too, and is not to have."""

from __future__ import annotations

import pytest
from fixed_specs import edits_of, fixed, refused

from convlint.fixes.edits import applied

SIZED = "C: 8, K: 8, H: 9, W: 9, kernel_size: 3"
REASON = "a layer that merges this one would get it too"


@pytest.mark.parametrize(
    "others",
    [
        "  - {<<: *a, name: b}\n",
        "  - &b {<<: *a, name: b, dtype: fp32}\n  - {<<: *a, name: c}\n",
        "  - &b {<<: *a, name: b}\n  - {<<: *b, name: c}\n",
        "  - {<<: [{<<: *a}], name: b}\n",
    ],
)
def test_what_others_lack_is_not_added(others: str) -> None:
    assert refused(f"version: 1\nlayers:\n  - &a {{{SIZED}}}\n{others}", (0, "dtype", "fp16")) == [REASON]


def test_what_others_state_or_want_is_added_once() -> None:
    text = f"version: 1\nlayers:\n  - &a {{{SIZED}}}\n  - {{<<: *a, dtype: fp32}}\n  - {{<<: *a, bias: true}}\n"
    after = fixed(text, (0, "dtype", "fp16"), (2, "dtype", "fp16"))
    assert after == text.replace(f"{{{SIZED}}}", f"{{{SIZED}, dtype: fp16}}")


def test_what_others_state_in_another_word_they_state_in_this_one_too() -> None:
    text = f"version: 1\nlayers:\n  - &a {{{SIZED}}}\n  - {{<<: *a, precision: fp32}}\n"
    after = text.replace(f"{{{SIZED}}}", f"{{{SIZED}, dtype: fp16}}").replace("fp32", "fp32, dtype: fp32")
    assert fixed(text, (0, "dtype", "fp16")) == after


def test_so_do_operations_that_are_no_convolutions() -> None:
    text = f"version: 1\nlayers:\n  - {{{SIZED}}}\n  - &a {{op: pool, kernel_size: 1}}\n  - {{<<: *a, batch_size: 4}}\n"
    after = text.replace("kernel_size: 1", "kernel_size: 1, N: 8").replace("batch_size: 4", "batch_size: 4, N: 4")
    assert fixed(text, (1, "N", 8)) == after


def test_the_layer_that_merges_may_change() -> None:
    text = f"version: 1\nlayers:\n  - &a {{{SIZED}}}\n  - {{<<: *a, bias: true}}\n"
    assert fixed(text, (1, "dtype", "fp16")) == text.replace("true", "true, dtype: fp16")


def test_pools_have_no_use_for_a_dtype_but_for_padding() -> None:
    text = f"version: 1\nlayers:\n  - &a {{{SIZED}}}\n  - {{<<: *a, op: pool}}\n  - {{{SIZED}, dtype: fp32}}\n"
    assert fixed(text, (0, "dtype", "fp16")) == text.replace(f"&a {{{SIZED}}}", f"&a {{{SIZED}, dtype: fp16}}")
    assert refused(text, (0, "PadH", 1)) == [REASON]
    drawn = text.replace("layers:", "defaults: {padding: 0}\nlayers:")
    assert refused(drawn, (0, "PadH", 1)) == [REASON]


def test_padding_that_follows_from_the_sizes_takes_no_number() -> None:
    text = f"version: 1\nlayers:\n  - &a {{{SIZED}}}\n  - {{<<: *a, pad: same}}\n"
    assert refused(text, (0, "PadH", 1)) == [REASON]


def test_what_is_refused_in_one_place_is_lacking_in_those_above() -> None:
    text = f"version: 1\nlayers:\n  - &a {{{SIZED}}}\n  - &b {{<<: *a, name: b}}\n  - {{<<: *b, name: c}}\n"
    asked = ((0, "dtype", "fp16"), (1, "dtype", "fp16"), (1, "K", 16))
    found = edits_of(text, *asked)
    assert [refusal.reason for refusal in found.refused] == [REASON, REASON]
    assert applied(text, found.edits) == text.replace("name: b", "name: b, K: 16").replace("name: c", "name: c, K: 8")
