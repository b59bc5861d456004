"""The fields of a layer: their names, and what their values mean."""

from __future__ import annotations

import pytest
from read_specs import STEM, network, only, sizes, spec

from convlint.model.layer import ConvLayer
from convlint.readers.spec.fields import ALIASES


@pytest.mark.parametrize(("name", "alias"), [(name, alias) for name, aliases in ALIASES.items() for alias in aliases])
def test_every_alias(name: str, alias: str) -> None:
    values = {
        "N": "8", "C": "6", "D": "4", "H": "20", "W": "30", "K": "12", "kernel_size": "5", "stride": "2",
        "padding": "2", "dilation": "3", "groups": "2", "dtype": "bf16", "layout": "channels_last", "bias": "true",
        "op": "conv_transpose", "calls": "4",
    }  # fmt: skip
    if name == "input":
        text = spec(f"name: a, {STEM}", f"{STEM}", "K: 8, kernel_size: 1, {}: a")
        by_name, by_alias = network(text.replace("{}", name)), network(text.replace("{}", alias))
        assert by_alias.edges == by_name.edges
        assert by_alias.edges[-1].producers == (0,)
        return
    plain = {key: value for key, value in values.items() if key not in ("op", "D") or key == name}

    def written(key: str) -> ConvLayer:
        return only(spec(", ".join(f"{key if k == name else k}: {v}" for k, v in plain.items())))

    assert written(alias) == written(name)
    without = {key: value for key, value in plain.items() if key not in (name, "K", "kernel_size")}
    base = only(spec(", ".join(f"{k}: {v}" for k, v in {"K": "10", "kernel_size": "3", **without}.items())))
    assert written(alias) != base


def test_all_sizes() -> None:
    layer = only(
        spec("N: 2, C: 4, H: 30, W: 40, K: 8, R: 3, S: 5, U: 2, V: 3, PadH: 1, PadW: 2, DilH: 2, DilW: 1, groups: 4")
    )
    assert sizes(layer, "N C H W K R S U V PadH PadW DilH DilW groups P Q") == [
        2, 4, 30, 40, 8, 3, 5, 2, 3, 1, 2, 2, 1, 4, 14, 14,
    ]  # fmt: skip
    assert (layer.dims, layer.op, layer.layout, layer.dtype) == (2, "conv", "auto", None)


@pytest.mark.parametrize(
    ("padding", "sides"),
    [
        ("0", (0, 0, 0, 0)),
        ("2", (2, 2, 2, 2)),
        ("[2]", (2, 2, 2, 2)),
        ("[1, 2]", (1, 1, 2, 2)),
        ("[1, 2, 3, 4]", (1, 2, 3, 4)),
        ("[[1, 2], [3, 4]]", (1, 2, 3, 4)),
        ("{ top: 1, bottom: 2, left: 3 }", (1, 2, 3, 0)),
        ("valid", (0, 0, 0, 0)),
        ("VALID", (0, 0, 0, 0)),
        ("same", (2, 2, 3, 3)),
        ("'same'", (2, 2, 3, 3)),
    ],
)
def test_padding(padding: str, sides: tuple[int, int, int, int]) -> None:
    layer = only(spec(f"C: 4, H: 30, W: 40, K: 8, kernel_size: [5, 7], padding: {padding}"))
    assert (layer.PadH, layer.PadH_end, layer.PadW, layer.PadW_end) == sides


@pytest.mark.parametrize(
    ("layer", "sides", "out"),
    [
        # TensorFlow puts the odd element at the end
        ("H: 224, W: 224, kernel_size: 3, stride: 2", (0, 1, 0, 1), (112, 112)),
        ("H: 225, W: 224, kernel_size: 3, stride: 2", (1, 1, 0, 1), (113, 112)),
        ("H: 20, W: 20, kernel_size: 4", (1, 2, 1, 2), (20, 20)),
        ("H: 20, W: 20, kernel_size: 3, dilation: 4", (4, 4, 4, 4), (20, 20)),
        ("H: 20, W: 20, kernel_size: 1, stride: 4", (0, 0, 0, 0), (5, 5)),
        ("W: 20, kernel_size: 3, stride: 2", (None, None, 0, 1), (None, 10)),
        ("op: conv_transpose, H: 7, W: 7, kernel_size: 4, stride: 2", (1, 1, 1, 1), (14, 14)),
        ("op: conv_transpose, H: 7, W: 7, kernel_size: 2, stride: 3", (0, 0, 0, 0), (21, 21)),
    ],
)
def test_same_padding(layer: str, sides: tuple[int | None, ...], out: tuple[int | None, int]) -> None:
    made = only(spec(f"C: 8, K: 8, padding: same, {layer}"))
    assert (made.PadH, made.PadH_end, made.PadW, made.PadW_end) == sides
    assert out == (made.P, made.Q)


@pytest.mark.parametrize(
    ("spelling", "dtype"),
    [("fp16", "fp16"), ("float16", "fp16"), ("torch.float16", "fp16"), ("half", "fp16"), ("bfloat16", "bf16"),
     ("tf.float32", "fp32"), ("TF32", "tf32"), ("double", "fp64"), ("torch.float8_e4m3fn", "fp8"), ("qint8", "int8")],
)  # fmt: skip
def test_dtypes(spelling: str, dtype: str) -> None:
    assert only(spec(f"{STEM}, dtype: {spelling}")).dtype == dtype


@pytest.mark.parametrize(
    ("spelling", "layout"),
    [("NCHW", "NCHW"), ("nhwc", "NHWC"), ("channels_last", "NHWC"), ("torch.channels_last", "NHWC"),
     ("channels_first", "NCHW"), ("NDHWC", "NHWC"), ("auto", "auto")],
)  # fmt: skip
def test_layouts(spelling: str, layout: str) -> None:
    assert only(spec(f"{STEM}, layout: {spelling}")).layout == layout
