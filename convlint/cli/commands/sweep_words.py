"""The words around a sweep: what varies and what stays as it is."""

from __future__ import annotations

from collections.abc import Mapping

from convlint.model.layer import ConvLayer

X_LABELS: Mapping[str, str] = {
    "N": "N, batch size",
    "C": "C, input channels",
    "H": "H, input height",
    "W": "W, input width",
    "D": "D, input depth",
    "K": "K, output channels",
    "R": "R, filter height",
    "S": "S, filter width",
    "T": "T, filter depth",
    "stride": "U = V, stride",
    "dilation": "DilH = DilW, dilation",
    "groups": "groups",
}


def kind(layer: ConvLayer) -> str:
    """`conv fp16 NHWC`: operation, dtype and layout, as far as given."""
    words = ["transposed conv" if layer.op == "conv_transpose" else "conv"]
    if layer.dtype is not None:
        words.append(layer.dtype.value)
    if layer.layout != "auto":
        words.append(layer.layout)
    return " ".join(words)


def fixed(layer: ConvLayer, parameter: str) -> str:
    """`C=4096 H=16 W=16 K=256 R=3 S=3 pad=1`: what the sweep leaves as it is."""
    deep = layer.dims == 3
    letters = ["N", "C", *(["D"] if deep else []), "H", "W", "K", *(["T"] if deep else []), "R", "S"]
    sizes = {letter: getattr(layer, letter) for letter in letters if letter != parameter}
    words = [f"{letter}={'?' if size is None else size}" for letter, size in sizes.items()]
    for name, values, neutral in (
        ("stride", (layer.U, layer.V), 1),
        ("pad", (layer.PadH, layer.PadW), 0),
        ("dilation", (layer.DilH, layer.DilW), 1),
        ("groups", (layer.groups, layer.groups), 1),
    ):
        if name != parameter and values != (neutral, neutral):
            words.append(f"{name}={values[0] if values[0] == values[1] else f'{values[0]},{values[1]}'}")
    return " ".join(words)
