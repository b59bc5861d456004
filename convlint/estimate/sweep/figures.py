"""The settings of the figures of NVIDIA's *Optimizing Convolutional Layers* guide, as far as the guide gives them.

The guide prints its charts as images; its text and captions state a few settings, which `given` quotes in our words.
Everything else here was chosen, and `chosen` says what. For all: NHWC unless the figure is about layouts (4.1), H = P
and W = Q by padding, stride and dilation 1 (4.4), A100-SXM4-80GB, CUDA 11.2, cuDNN 8.1 (captions). The dtype is FP16,
which the guide does not repeat per figure: 250 TFLOPS (Figure 13) exceed what the same GPU's TF32 can do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from convlint.model.layer import Layout, Pass
from convlint.model.runtime import Runtime
from convlint.model.version import Version

GUIDE: Final = "NVIDIA Optimizing Convolutional Layers"
GPU: Final = "a100-80gb-sxm"
RUNTIME: Final = Runtime(cuda=Version("11.2"), cudnn=Version("8.1"))

Sizes = Mapping[str, int]
_POWERS: Final = tuple(2**i for i in range(12))  # 1 to 2048


class Line(Struct, frozen=True, kw_only=True):
    """One line of a figure: a pass, and the sizes in which it differs from the figure's others."""

    label: str
    which: Pass
    sizes: Sizes = field(default_factory=dict)
    layout: Layout = "NHWC"
    marks: bool = False


class Figure(Struct, frozen=True, kw_only=True):
    """One figure. `PQ` sets P = Q, from which H and W follow; `RS` sets R = S; vary `NPQ` sets N = NPQ / (P·Q)."""

    number: int
    title: str
    section: str
    given: str  # what the guide states about the setting
    chosen: str  # what we had to choose
    vary: str
    x_label: str
    values: tuple[int, ...]
    sizes: Sizes
    lines: tuple[Line, ...]
    first: bool = False


def _filters(which: Pass) -> tuple[Line, ...]:
    return tuple(Line(label=f"{size}x{size} filter", which=which, sizes={"RS": size}) for size in (7, 5, 3, 1))


def _strides(*passes: Pass) -> tuple[Line, ...]:
    return tuple(
        Line(label=f"{which}, P=Q={size}", which=which, sizes={"PQ": size}) for which in passes for size in (56, 28)
    )


_PASSES: Final = tuple(Line(label=which, which=which) for which in ("fprop", "dgrad", "wgrad"))

FIGURES: Final = {
    figure.number: figure
    for figure in (
        Figure(
            number=2,
            title="NHWC needs no transposes, NCHW does",
            section="4.1 Tensor Layouts In Memory: NCHW vs NHWC",
            given="NHWC against NCHW; transposes weigh more with smaller filters",
            chosen="forward pass, N=256, H=W=28, K=256, the values of C, filters 1x1 and 3x3",
            vary="C",
            x_label="C, input channels",
            values=_POWERS[5:12],
            sizes={"N": 256, "PQ": 28, "K": 256},
            lines=tuple(
                Line(label=f"{layout} {taps}x{taps}", which="fprop", sizes={"RS": taps}, layout=layout)
                for taps in (3, 1)
                for layout in ("NHWC", "NCHW")
            ),
        ),
        Figure(
            number=4,
            title="Wave quantization of a small GEMM",
            section="4.3 Quantization Effects",
            given="3x3 filter, input 16x16, C=4096, K=256; 108 SMs; N=54 makes 216 tiles, N=55 220",
            chosen="forward pass, N from 1 to 540 (ten full waves) in one panel for the guide's (a) and (b)",
            vary="N",
            x_label="N, batch size",
            values=tuple(range(1, 541)),
            sizes={"C": 4096, "PQ": 16, "K": 256, "RS": 3},
            lines=(Line(label="fprop", which="fprop"),),
        ),
        Figure(
            number=5,
            title="Equal N·P·Q, equal performance",
            section="4.4.1 Batch Size, Height, And Width",
            given="performance rises with N·P·Q; equal products perform about equally",
            chosen="forward pass, 3x3 filter, C=K=256, maps of 64, 32, 16 and 8, the range of N·P·Q",
            vary="NPQ",
            x_label="N·P·Q",
            values=tuple(2**i for i in range(12, 22)),
            sizes={"C": 256, "K": 256, "RS": 3},
            lines=tuple(
                Line(label=f"P=Q={size}", which="fprop", sizes={"PQ": size}, marks=size != 64)
                for size in (64, 32, 16, 8)
            ),
        ),
        Figure(
            number=6,
            title="Larger filters and more input channels: forward pass",
            section="4.4.2 Filter Size",
            given="performance against C for several filter sizes, 1x1 among them; C·R·S matters",
            chosen="N=256, H=W=16, K=256, filters 3x3, 5x5 and 7x7 beside 1x1, the values of C",
            vary="C",
            x_label="C, input channels",
            values=_POWERS[4:12],
            sizes={"N": 256, "PQ": 16, "K": 256},
            lines=_filters("fprop"),
        ),
        Figure(
            number=7,
            title="Larger filters and more output channels: activation gradient",
            section="4.4.2 Filter Size",
            given="as Figure 6, for the activation gradient against K; K·R·S matters",
            chosen="N=256, H=W=16, C=256, filters 3x3, 5x5 and 7x7 beside 1x1, the values of K",
            vary="K",
            x_label="K, output channels",
            values=_POWERS[4:12],
            sizes={"N": 256, "PQ": 16, "C": 256},
            lines=_filters("dgrad"),
        ),
        Figure(
            number=8,
            title="First layers: C = 4 or a multiple of 8 runs best",
            section="4.4.3 Channels In And Out",
            given="first layers, stride 2, NHWC, small C; C=4 or a multiple of 8 performs best",
            chosen="N=256, H=W=224, K=64, 7x7 filter, C from 1 to 16, forward pass and weight gradient",
            vary="C",
            x_label="C, input channels",
            values=tuple(range(1, 17)),
            sizes={"N": 256, "PQ": 112, "K": 64, "RS": 7, "UV": 2},
            lines=(Line(label="fprop", which="fprop"), Line(label="wgrad", which="wgrad")),
            first=True,
        ),
        Figure(
            number=9,
            title="More output channels: forward pass and weight gradient",
            section="4.4.3 Channels In And Out",
            given="forward pass and weight gradient against K, with diminishing returns",
            chosen="N=256, H=W=28, C=256, 3x3 filter, the values of K",
            vary="K",
            x_label="K, output channels",
            values=_POWERS[3:12],
            sizes={"N": 256, "PQ": 28, "C": 256, "RS": 3},
            lines=(Line(label="fprop", which="fprop"), Line(label="wgrad", which="wgrad")),
        ),
        Figure(
            number=10,
            title="More input channels: activation gradient",
            section="4.4.3 Channels In And Out",
            given="activation gradient against C, with diminishing returns",
            chosen="N=256, H=W=28, K=256, 3x3 filter, the values of C",
            vary="C",
            x_label="C, input channels",
            values=_POWERS[3:12],
            sizes={"N": 256, "PQ": 28, "K": 256, "RS": 3},
            lines=(Line(label="dgrad", which="dgrad"),),
        ),
        Figure(
            number=11,
            title="Stride at constant P and Q: forward pass and weight gradient",
            section="4.5 Strides",
            given="forward pass and weight gradient, equal P and Q, H, W, U and V varying",
            chosen="N=256, C=K=256, 3x3 filter, P=Q 56 and 28, strides 1 to 4, H = P·U and W = Q·V",
            vary="UV",
            x_label="U = V, stride",
            values=(1, 2, 3, 4),
            sizes={"N": 256, "C": 256, "K": 256, "RS": 3},
            lines=_strides("fprop", "wgrad"),
        ),
        Figure(
            number=12,
            title="Stride at constant P and Q: activation gradient",
            section="4.5 Strides",
            given="activation gradient, equal P and Q, H, W, U and V varying",
            chosen="N=256, C=K=256, 3x3 filter, P=Q 56 and 28, strides 1 to 4, H = P·U and W = Q·V",
            vary="UV",
            x_label="U = V, stride",
            values=(1, 2, 3, 4),
            sizes={"N": 256, "C": 256, "K": 256, "RS": 3},
            lines=_strides("dgrad"),
        ),
        Figure(
            number=13,
            title="A layer near the peak: 64x64 maps, 1024 channels in and out",
            section="4.6 High-Performance Example",
            given="input 64x64, 3x3 filter, C=K=1024, NHWC; all passes near 250 TFLOPS at large N",
            chosen="the values of N",
            vary="N",
            x_label="N, batch size",
            values=_POWERS[:9],
            sizes={"C": 1024, "PQ": 64, "K": 1024, "RS": 3},
            lines=_PASSES,
        ),
        Figure(
            number=15,
            title="Dilation 2 runs as dilation 1",
            section="5.1 Dilated",
            given="all three passes, dilation 1 against 2",
            chosen="H=W=32, C=K=256, 3x3 filter, the values of N",
            vary="N",
            x_label="N, batch size",
            values=_POWERS[:9],
            sizes={"C": 256, "PQ": 32, "K": 256, "RS": 3},
            lines=tuple(
                replace(line, label=f"{line.label}, dilation {dilation}", sizes={"Dil": dilation}, marks=dilation == 2)
                for line in _PASSES
                for dilation in (1, 2)
            ),
        ),
    )
}
