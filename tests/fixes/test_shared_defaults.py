"""What all convolutions want and none says is one line in the defaults, or the batch of the inputs."""

from __future__ import annotations

import pytest
from fixed_specs import Asked, fixed

A, B = "{C: 8, H: 9, W: 9, K: 8, kernel_size: 3}", "{K: 8, kernel_size: 1}"
POOL = "{op: pool, kernel_size: 3}"
NHWC: list[Asked] = [(0, "layout", "NHWC"), (2, "layout", "NHWC")]


def spec(head: str, *layers: str) -> str:
    return f"version: 1\n{head}layers:\n" + "".join(f"  - {layer}\n" for layer in layers)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "defaults: {layout: NHWC}\n"),
        ("defaults: {N: 8}\n", "defaults: {N: 8, layout: NHWC}\n"),
        ("defaults:\n  N: 8 # c\n", "defaults:\n  N: 8 # c\n  layout: NHWC\n"),
        ("defaults:\n", "defaults: {layout: NHWC}\n"),
        ("defaults: &d {N: 8}\n", "defaults: &d {N: 8, layout: NHWC}\n"),
        ("x-d: &d {N: 8}\ndefaults: *d\n", "x-d: &d {N: 8, layout: NHWC}\ndefaults: *d\n"),
        ("runtime:\n  tf32: true\n", "defaults: {layout: NHWC}\nruntime:\n  tf32: true\n"),
    ],
)  # fmt: skip
def test_one_line_for_all(before: str, after: str) -> None:
    assert fixed(spec(before, A, POOL, B), *NHWC) == spec(after, A, POOL, B)


def test_several_at_once_and_a_runtime_before_them() -> None:
    asked: list[Asked] = [*NHWC, (0, "dtype", "fp16"), (2, "dtype", "fp16"), (None, "runtime.tf32", False)]
    head = "runtime: {tf32: false}\ndefaults: {dtype: fp16, layout: NHWC}\n"
    assert fixed(spec("", A, POOL, B), *asked) == spec(head, A, POOL, B)


@pytest.mark.parametrize("asked", [NHWC[:1], [NHWC[0], (2, "layout", "NCHW")]])
def test_what_not_all_want_stands_at_the_layers(asked: list[Asked]) -> None:
    after = [text[:-1] + f", layout: {value}}}" for text, (_, _, value) in zip((A, B), asked, strict=False)]
    expected = spec("", after[0], POOL, after[1] if len(after) > 1 else B)
    assert fixed(spec("", A, POOL, B), *asked) == expected


def test_what_one_states_already_stands_at_the_layers() -> None:
    stated = B[:-1] + ", layout: NCHW}"
    assert fixed(spec("", A, POOL, stated), *NHWC) == spec(
        "", A[:-1] + ", layout: NHWC}", POOL, stated.replace("NCHW", "NHWC")
    )


def test_empty_defaults_that_an_alias_refers_to_stay() -> None:
    head = "defaults: &d\nruntime: *d\n"
    after = [text[:-1] + ", layout: NHWC}" for text in (A, B)]
    assert fixed(spec(head, A, POOL, B), *NHWC) == spec(head, after[0], POOL, after[1])


INPUT = "{op: input, N: 8, C: 8, H: 9, W: 9}"
CONV = "{K: 8, kernel_size: 3}"


def test_a_batch_that_the_inputs_bring_changes_there() -> None:
    asked = [(1, "N", 64), (2, "N", 64)]
    assert fixed(spec("", INPUT, CONV, CONV), *asked) == spec("", INPUT.replace("N: 8", "N: 64"), CONV, CONV)


def test_and_in_the_defaults_for_those_that_no_input_reaches() -> None:
    asked = [(1, "N", 64), (2, "N", 64)]
    after = spec("defaults: {N: 64}\n", INPUT.replace("N: 8", "N: 64"), CONV, A)
    assert fixed(spec("", INPUT, CONV, A), *asked) == after


def test_a_batch_of_some_stands_at_them() -> None:
    after = spec("", INPUT, CONV, CONV[:-1] + ", N: 64}")
    assert fixed(spec("", INPUT, CONV, CONV), (2, "N", 64)) == after


def test_an_input_that_takes_its_batch_from_the_defaults_does_not_hold_them() -> None:
    bare = INPUT.replace("N: 8, ", "")
    before, after = (spec(f"defaults: {{N: {N}}}\n", bare, CONV) for N in (8, 64))
    assert fixed(before, (1, "N", 64)) == after
