"""Each form in which a spec gives a value keeps its form, as far as it can say the new one."""

from typing import Any

import pytest
from fixed_specs import fixed_layer, one_layer, refused

from convlint.files.located_yaml import Value
from convlint.fixes.forms import (
    CHANGEABLE,
    KEYS_OF,
    No,
    Sides,
    boolean_word,
    dtype_word,
    layout_word,
    letters_of,
    restated,
    setting_word,
    together,
)
from convlint.model.layer import ConvLayer, Dtype
from convlint.readers.spec.fields import DTYPES, LAYOUTS, dtype_of, layout_of

SIZED = "C: 8, K: 8, H: 9, W: 9, kernel_size: 3, "


@pytest.mark.parametrize(
    ("before", "changes", "after"),
    [
        ("kernel_size: 3", [("R", 5), ("S", 5)], "kernel_size: 5"),
        ("kernel_size: 3", [("R", 5)], "kernel_size: [5, 3]"),
        ("kernel_size: 3", [("R", 3)], "kernel_size: 3"),
        ("kernel: [3]", [("R", 5), ("S", 5)], "kernel: [5]"),
        ("kernel: [ 3 ]", [("S", 5)], "kernel: [3, 5]"),
        ("kernel_size: [3,  7]", [("R", 5)], "kernel_size: [5,  7]"),
        ("kernel_size: [3, 7]", [("R", 7)], "kernel_size: [7, 7]"),
        ("kernel_size: 3, R: 3", [("R", 5)], "kernel_size: [5, 3], R: 5"),
        ("kernel_size: 3, R: 3, S: 3", [("R", 5), ("S", 5)], "kernel_size: 5, R: 5, S: 5"),
        ("R: 3, S: 3", [("S", 5)], "R: 3, S: 5"),
        ("kernel_size: 3, strides: 1", [("V", 2)], "kernel_size: 3, strides: [1, 2]"),
        ("kernel_size: 3, dilation_rate: [2, 2]", [("DilH", 1), ("DilW", 1)], "kernel_size: 3, dilation_rate: [1, 1]"),
    ],
)
def test_a_number_for_several_axes(before: str, changes: list[tuple[str, Any]], after: str) -> None:
    rest = "C: 8, K: 8, H: 9, W: 9, "
    assert fixed_layer(rest + before, *changes) == rest + after


@pytest.mark.parametrize(
    ("before", "changes", "after"),
    [
        ("padding: 1", [("PadH", 2), ("PadW", 2)], "padding: 2"),
        ("padding: 1", [("PadH", 2)], "padding: [2, 1]"),
        ("padding: 1", [("PadH", 2), ("PadH_end", 2)], "padding: [2, 1]"),
        ("padding: 1", [("PadH_end", 2)], "padding: [1, 2, 1, 1]"),
        ("padding: [1]", [("PadW", 2)], "padding: [1, 2]"),
        ("pad: [1, 1]", [("PadW", 0)], "pad: [1, 0]"),
        ("pad: [1, 1]", [("PadW_end", 0)], "pad: [1, 1, 1, 0]"),
        ("padding: [1, 2, 3, 4]", [("PadH_end", 0), ("PadW", 5)], "padding: [1, 0, 5, 4]"),
        ("padding: [[1, 2], [3, 4]]", [("PadH_end", 0), ("PadW", 5)], "padding: [[1, 0], [5, 4]]"),
        ("padding: {top: 1, bottom: 1}", [("PadH", 2)], "padding: {top: 2, bottom: 2}"),
        ("padding: {top: 1}", [("PadH_end", 2)], "padding: {top: 1, bottom: 2}"),
        ("padding: {}", [("PadW", 2)], "padding: {left: 2, right: 2}"),
        ("padding: {top: 1}", [("PadH_end", 0)], "padding: {top: 1}"),
        ('padding: "valid"', [("PadH", 1), ("PadW", 1)], "padding: 1"),
        ("padding: valid", [("PadH", 1)], "padding: [1, 0]"),
        ("padding: valid", [("PadH", 0)], "padding: valid"),
        ("PadH: 1, PadW: 1", [("PadW", 2)], "PadH: 1, PadW: 2"),
        ("PadH: 1", [("PadH", 2), ("PadH_end", 2)], "PadH: 2"),
        ("padding: same", [("PadH", 1), ("PadW", 1)], "padding: same"),
    ],
)
def test_padding(before: str, changes: list[tuple[str, Any]], after: str) -> None:
    assert fixed_layer(SIZED + before, *changes) == SIZED + after


def test_same_padding_stays_where_it_restates_what_is_asked_for() -> None:
    before = "C: 8, K: 8, H: 9, W: 9, padding: same, kernel_size: 3"
    after = "C: 8, K: 8, H: 9, W: 9, padding: same, kernel_size: 5"
    assert fixed_layer(before, ("R", 5), ("S", 5), ("PadH", 2), ("PadW", 2)) == after


@pytest.mark.parametrize(
    ("before", "change", "reason"),
    [
        ("padding: same", ("PadH", 2), "padding: same follows from the sizes"),
        ("PadH: 1", ("PadH_end", 2), "PadH pads both sides alike"),
        ("groups: 1", ("T", 3), "a 2-D convolution has no T"),
        ("groups: 1", ("name", "x"), "name is no value that can be changed"),
    ],
)
def test_what_a_form_cannot_say(before: str, change: tuple[str, Any], reason: str) -> None:
    assert refused(one_layer(SIZED + before), (0, *change)) == [reason]


@pytest.mark.parametrize(
    ("dims", "before", "changes", "after"),
    [
        (1, "C: 8, K: 8, W: 9, kernel_size: [3]", [("S", 5)], "C: 8, K: 8, W: 9, kernel_size: [5]"),
        (1, "C: 8, K: 8, W: 9, S: 3, padding: 1", [("PadW_end", 0)], "C: 8, K: 8, W: 9, S: 3, padding: [1, 0]"),
        (3, "C: 8, K: 8, kernel_size: 3", [("T", 1)], "C: 8, K: 8, kernel_size: [1, 3, 3]"),
        (3, "C: 8, K: 8, kernel_size: [1, 3, 3]", [("T", 3)], "C: 8, K: 8, kernel_size: [3, 3, 3]"),
        (3, "C: 8, K: 8, S: 3, R: 3, padding: 1", [("PadD", 0)], "C: 8, K: 8, S: 3, R: 3, padding: [0, 1, 1]"),
        (
            3, "C: 8, K: 8, S: 3, R: 3, padding: [0, 1, 1]", [("PadD_end", 1)],
            "C: 8, K: 8, S: 3, R: 3, padding: [0, 1, 1, 1, 1, 1]",
        ),
        (
            3, "C: 8, K: 8, S: 3, R: 3, padding: {front: 1, top: 2}", [("PadD_end", 1)],
            "C: 8, K: 8, S: 3, R: 3, padding: {front: 1, top: 2, back: 1}",
        ),
    ],
)  # fmt: skip
def test_one_and_three_dimensions(dims: int, before: str, changes: list[tuple[str, Any]], after: str) -> None:
    assert fixed_layer(before, *changes, dims=dims) == after


def test_letters_that_others_state_may_become_any() -> None:
    assert restated("kernel_size", "3", {"S": 5}, ["S"], 2) == "5"
    assert restated("kernel_size", "3", {"S": 5}, ["R", "S"], 2) == ("3", "5")
    assert restated("padding", ("1",), {"PadW": 2, "PadW_end": 2}, ["PadW", "PadW_end"], 2) == ("2",)


def test_what_is_no_convolution_has_no_form() -> None:
    assert isinstance(restated("kernel_size", "3", {"S": 5}, ["S"], None), No)
    assert restated("C", "3", {"C": 5}, ["C"], None) == "5"


def test_sides_keep_the_order_of_the_reader() -> None:
    new = restated("padding", Sides((("left", "1"),)), {"PadH": 2, "PadH_end": 0}, letters_of("padding", 2), 2)
    assert new == Sides((("top", "2"), ("left", "1")))


@pytest.mark.parametrize(
    ("name", "values", "dims", "new"),
    [
        ("stride", {"U": 2, "V": 2}, 2, "2"),
        ("stride", {"U": 2, "V": 1}, 2, ("2", "1")),
        ("padding", {"PadH": 1, "PadH_end": 1, "PadW": 0, "PadW_end": 0}, 2, ("1", "0")),
        ("padding", {"PadW": 1, "PadW_end": 0}, 1, ("1", "0")),
    ],
)
def test_values_that_nothing_states_yet(name: str, values: dict[str, int], dims: int, new: object) -> None:
    assert together(name, values, dims) == new


def test_every_letter_that_can_change_is_a_field_with_a_key() -> None:
    declared = {"Z", "P", "Q"}
    assert set(ConvLayer.__struct_fields__) >= CHANGEABLE - declared
    assert set(KEYS_OF) >= CHANGEABLE
    assert KEYS_OF["K"] == ("K", "out_channels", "output_channels", "filters")


def written(text: str) -> Value:
    return Value(text, (1, 1, 1, 1), plain=True)


@pytest.mark.parametrize(
    ("value", "old", "new"),
    [
        ("fp16", "fp32", "fp16"), ("bf16", "float16", "bfloat16"), ("fp32", "torch.float16", "torch.float32"),
        ("fp32", "half", "float"), ("fp16", "torch.half", "torch.half"), ("fp16", "double", "half"),
        ("fp64", "single", "double"), ("fp32", "half ", "float"), ("fp16", "FP32", "FP16"), ("fp16", "f32", "f16"),
        ("bf16", "mixed_float16", "mixed_bfloat16"), ("fp32", "mixed_float16", "float32"), ("tf32", "float32", "tf32"),
        ("tf32", "torch.float32", "tf32"), ("fp16", "jnp.bfloat16", "jnp.float16"), ("int8", "np.float32", "np.int8"),
        ("fp16", "torch.uint8", "torch.float16"), ("fp16", "torch.int8", "torch.float16"), ("fp16", "i8", "f16"),
    ],
)  # fmt: skip
def test_dtypes_keep_their_family(value: str, old: str, new: str) -> None:
    assert dtype_word(value, old) == new


@pytest.mark.parametrize("prefix", ["", "torch.", "tf.", "np.", "jnp."])
def test_every_dtype_in_every_spelling_reads_back(prefix: str) -> None:
    for old in (*DTYPES, *(dtype.value for dtype in Dtype)):
        for dtype in Dtype:
            for case in (str, str.upper):
                new = dtype_word(dtype.value, case(prefix + old))
                assert dtype_of(written(new)) is dtype


@pytest.mark.parametrize(
    ("value", "old", "key", "dims", "new"),
    [
        ("NHWC", "NCHW", "layout", 2, "NHWC"), ("NHWC", "nchw", "layout", 2, "nhwc"),
        ("NHWC", "NCDHW", "layout", 3, "NDHWC"), ("NCHW", "NWC", "layout", 1, "NCW"),
        ("NHWC", "ncl", "layout", 1, "nlc"),
        ("NHWC", "channels_first", "data_format", 2, "channels_last"),
        ("NCHW", "channels_last", "data_format", 2, "channels_first"),
        ("NCHW", "channels_last", "memory_format", 2, "contiguous"),
        ("NHWC", "contiguous", "memory_format", 3, "channels_last_3d"),
        ("NCHW", "channels_last_3d", "memory_format", 3, "contiguous"),
        ("NHWC", "torch.contiguous_format", "layout", 2, "torch.channels_last"),
        ("NCHW", "torch.channels_last", "layout", 2, "torch.contiguous_format"),
        ("NHWC", "auto", "layout", 2, "NHWC"), ("auto", "channels_last", "layout", 2, "auto"),
        ("NHWC", "nhwc", "layout", 2, "nhwc"),
    ],
)  # fmt: skip
def test_layouts_keep_their_family(value: str, old: str, key: str, dims: int, new: str) -> None:
    assert layout_word(value, old, key=key, dims=dims) == new


@pytest.mark.parametrize("key", ["layout", "data_format", "memory_format"])
def test_every_layout_in_every_spelling_reads_back(key: str) -> None:
    for old in LAYOUTS:
        for value in ("NCHW", "NHWC", "auto"):
            for dims in (1, 2, 3):
                for case in (str, str.upper):
                    assert layout_of(written(layout_word(value, case(old), key=key, dims=dims))) == value


@pytest.mark.parametrize(
    ("value", "old", "new"),
    [
        (False, "true", "false"), (True, "no", "yes"), (False, "On", "Off"), (True, "FALSE", "TRUE"), (False, "1", "0"),
        (True, "0", "1"), (True, "yes", "yes"), (False, "Off", "Off"),
    ],
)  # fmt: skip
def test_booleans_keep_their_words(value: bool, old: str, new: str) -> None:
    assert boolean_word(value, old) == new


@pytest.mark.parametrize(
    ("name", "value", "old", "new"),
    [
        ("tf32", False, None, "false"), ("tf32", False, "yes", "no"), ("cudnn", "8.9", "8.1", "8.9"),
        ("cudnn_conv_algo_search", "HEURISTIC", "default", "heuristic"),
        ("cudnn_conv_algo_search", "HEURISTIC", "DEFAULT", "HEURISTIC"),
        ("cudnn_conv_algo_search", "HEURISTIC", None, "HEURISTIC"), ("framework", "pytorch", "torch", "torch"),
        ("xla_gpu_autotune_level", 4, "0", "4"), ("optimizer", "adam", "sgd", "adam"),
    ],
)  # fmt: skip
def test_settings_keep_their_words(name: str, value: int | str | bool, old: str | None, new: str) -> None:
    assert setting_word(name, value, old) == new
