"""The one-line description of a layer."""

from __future__ import annotations

from convlint.model.layer import ConvLayer, Dtype
from convlint.reporters.shape import shape


def test_shapes() -> None:
    layer = ConvLayer(
        name="x", N=1, C=3, H=224, W=200, K=64, R=7, S=5, U=2, V=2, DilH=1, DilW=3, dtype=Dtype.fp16, layout="NHWC"
    )
    assert shape(layer, "x", "->") == "conv 7x5 stride 2 dilation 1x3, 3->64 channels, 224x200, fp16 NHWC"
    unknown = ConvLayer(name="x", op="conv_transpose", C=8, K=8, groups=8, R=3, S=3)
    assert shape(unknown, "×", "→") == "transposed conv 3×3, 8→8 channels, depthwise, ?×?"
    volume = ConvLayer(name="x", dims=3, C=8, K=8, groups=2, T=3, R=3, S=3, D=16, H=8, W=8)
    assert shape(volume, "×", "→") == "conv 3×3×3, 8→8 channels, 2 groups, 16×8×8"
    line = ConvLayer(name="x", dims=1, C=8, K=8, R=1, S=3, H=1, W=100, V=2)
    assert shape(line, "×", "→") == "conv 3 stride 2, 8→8 channels, 100"
