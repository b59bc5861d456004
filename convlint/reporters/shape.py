"""What a layer is, in a few words."""

from __future__ import annotations

from convlint.files.languages.saying import say
from convlint.model.layer import ConvLayer


def shape(layer: ConvLayer, times: str, arrow: str) -> str:
    """What a layer is, in one line: `conv 7×7 stride 2, 3→64 channels, 224×224, fp16 NHWC`; unknown sizes are `?`."""
    taps = times.join(map(_known, (layer.T, layer.R, layer.S)[-layer.dims :]))
    size = times.join(map(_known, (layer.D, layer.H, layer.W)[-layer.dims :]))
    kind = say("transposed conv") if layer.op == "conv_transpose" else say("conv")
    words = f"{kind} {taps}"
    strides = (layer.StrideD, layer.U, layer.V)[-layer.dims :]
    dilations = (layer.DilD, layer.DilH, layer.DilW)[-layer.dims :]
    for word, values in ((say("stride"), strides), (say("dilation"), dilations)):
        if any(value != 1 for value in values):
            words += f" {word} {values[0] if len(set(values)) == 1 else times.join(map(str, values))}"
    parts = [words, say("{numbers} channels", numbers=f"{_known(layer.C)}{arrow}{_known(layer.K)}")]
    if layer.groups > 1:
        parts.append(say("depthwise") if layer.depthwise else say("{count} groups", count=layer.groups))
    parts.append(size)
    stored = [] if layer.dtype is None else [layer.dtype.value]
    if layer.layout != "auto":
        stored.append(_AXES.get(layer.dims, {}).get(layer.layout, layer.layout))
    if stored:
        parts.append(" ".join(stored))
    return say(", ").join(parts)


_AXES = {1: {"NCHW": "NCW", "NHWC": "NWC"}, 3: {"NCHW": "NCDHW", "NHWC": "NDHWC"}}  # layouts by dimensions


def _known(size: int | None) -> str:
    return "?" if size is None else str(size)
