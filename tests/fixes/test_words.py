"""A new value keeps the family of spelling of the old one, and reads back as what it should be."""

from __future__ import annotations

import pytest

from convlint.files.located_yaml import Value
from convlint.fixes.forms import boolean_word, dtype_word, layout_word, setting_word
from convlint.model.layer import Dtype
from convlint.readers.spec.fields import DTYPES, LAYOUTS, dtype_of, layout_of


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
