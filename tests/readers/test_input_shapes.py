"""What `--input` and `--batch` say of a model's inputs."""

from __future__ import annotations

import pytest

from convlint.cli.options import named_inputs
from convlint.errors import InputFault
from convlint.readers.input_shapes import by_name, parse_shape, parse_shapes, states_fp32


def test_unnamed_inputs_are_kept_in_order():
    given = named_inputs(["8x3x64x64", "mask=8x1x64x64", "8x4"])
    assert given == {"": "8x3x64x64,8x4", "mask": "8x1x64x64"}


def test_unnamed_inputs_go_to_the_inputs_in_order():
    assert by_name({"": "1x2,3x4"}, ["a", "b", "c"]) == {"a": "1x2", "b": "3x4"}
    with pytest.raises(InputFault, match="2 input shapes are given"):
        by_name({"": "1x2,3x4"}, ["a"])


@pytest.mark.parametrize(
    ("text", "sizes", "dtype", "channels_last"),
    [
        ("8x3x64x64", (8, 3, 64, 64), None, False),
        ("8x3x64x64:fp16", (8, 3, 64, 64), "float16", False),
        ("8x3x64x64:channels_last:bf16", (8, 3, 64, 64), "bfloat16", True),
        ("Nx3x8x8", (5, 3, 8, 8), None, False),
        ("5x3x8x8", (5, 3, 8, 8), None, False),
    ],
)
def test_shapes(text, sizes, dtype, channels_last):
    shape = parse_shape(text, 5 if sizes[0] == 5 else None)
    assert (shape.sizes, shape.dtype, shape.channels_last) == (sizes, dtype, channels_last)


@pytest.mark.parametrize("text", ["8x3:fp16:fp32", "8x3:nosuch", "8xM", "0x3", "", "99999999999x3"])
def test_what_is_no_shape_is_refused(text):
    with pytest.raises(InputFault):
        parse_shape(text)


def test_a_batch_that_contradicts_the_shape_is_refused():
    with pytest.raises(InputFault, match="write N"):
        parse_shapes("8x3x64x64", 64)


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("8x3x64x64", False), ("8x3x64x64:fp32", True), ("8x3x64x64:torch.float32", True), ("Nx3x8x8: Float ", True),
        ("8x3x64x64:channels_last:fp32", True), ("8x3x64x64:fp16", False), ("8x4:int64,8x3x64x64:fp32", True),
        ("8x3x64x64:fp64", False), ("", False),
        ("net.inputs:fp32", False), ("N.x:float", False),  # functions that make inputs, whatever their names
    ],
)  # fmt: skip
def test_whether_an_input_is_said_to_be_fp32(text, stated):
    assert states_fp32(text) is stated
