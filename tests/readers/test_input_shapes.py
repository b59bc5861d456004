"""What `--input` and `--batch` say of a model's inputs."""

from __future__ import annotations

import pytest

from convlint.errors import InputFault
from convlint.readers.input_shapes import (
    by_name,
    looks_like_shapes,
    named_inputs,
    parse_shape,
    parse_shapes,
    refuse_lists,
    states_fp32,
)


def test_unnamed_inputs_are_kept_in_order():
    given = named_inputs(["8x3x64x64", "mask=8x1x64x64", "8x4"])
    assert given == {"": "8x3x64x64,\n8x4", "mask": "8x1x64x64"}


def test_sizes_that_are_given_one_by_one_are_inputs_of_one_axis():
    shapes = parse_shapes(named_inputs(["77", "10", "5"])[""])
    assert [shape.sizes for shape in shapes] == [(77,), (10,), (5,)]
    with pytest.raises(InputFault, match="did you mean 77x10x5"):
        parse_shapes(named_inputs(["77,10,5"])[""])


def test_unnamed_inputs_go_to_the_inputs_in_order():
    assert by_name({"": "1x2,\n3x4"}, ["a", "b", "c"]) == {"a": "1x2", "b": "3x4"}
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


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("1,3,224,224", "1x3x224x224"), ("N,3,224,224", "Nx3x224x224"), ("(1, 3, 224, 224)", "1x3x224x224"),
        ("[1,3,224,224]", "1x3x224x224"), ("8,3,32,32:fp16", "8x3x32x32:fp16"),
        ("8,3,32,32:nhwc", "8x3x32x32:channels_last"), ("3,224,224", "3x224x224"), ("(8, 8, 8)", "8x8x8"),
    ],
)  # fmt: skip
def test_commas_between_sizes_are_a_mistake(text, meant):
    with pytest.raises(InputFault, match=f"did you mean {meant}\\?"):
        parse_shapes(text, 4)


@pytest.mark.parametrize("text", ["16,16", "16,16,16", "8x3x32x32,8", "8x3x32x32,8:int64", "8,8:int64", ""])
def test_commas_between_inputs_are_none(text):
    refuse_lists(text)


@pytest.mark.parametrize(
    ("word", "meant"),
    [("nhwc", "channels_last"), ("NHWC", "channels_last"), ("channels-last", "channels_last"), ("fp17", "fp16"),
     ("flaot16", "float16"), ("chanels_last", "channels_last")],
)  # fmt: skip
def test_words_that_are_nearly_known_get_a_suggestion(word, meant):
    with pytest.raises(InputFault, match=f"unknown dtype .*did you mean '{meant}'"):
        parse_shape(f"8x3x32x32:{word}")


def test_a_capital_x_stands_between_sizes_too():
    assert parse_shape("8X3X32X32").sizes == (8, 3, 32, 32)
    assert looks_like_shapes("8X3X32X32:fp16")
