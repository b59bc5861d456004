"""The network as convlint sees it: convolution layers in the guide's letters, their edges and the runtime.

Sizes are `int | None`; None means unknown, never zero. Units: elements, unless the name says otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import total_ordering
from typing import Literal

Pass = Literal["fprop", "dgrad", "wgrad"]
PASSES: tuple[Pass, ...] = ("fprop", "dgrad", "wgrad")

Op = Literal["conv", "conv_transpose"]
Layout = Literal["NCHW", "NHWC", "auto"]
Mode = Literal["training", "inference"]

# Where a value was written: line, column, end line, end column; all from 1, the end column exclusive.
Span = tuple[int, int, int, int]
NO_SPANS: Mapping[str, Span] = {}


class Dtype(StrEnum):
    """Element type. `tf32` is stored as fp32 (4 bytes) and multiplied with 10 mantissa bits."""

    fp64 = "fp64"
    fp32 = "fp32"
    tf32 = "tf32"
    fp16 = "fp16"
    bf16 = "bf16"
    fp8 = "fp8"
    int8 = "int8"

    @property
    def bytes(self) -> int:
        """Bytes per stored element."""
        return _BYTES[self.value]


_BYTES = {"fp64": 8, "fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2, "fp8": 1, "int8": 1}


_VERSION = re.compile(r"\d{1,9}(\.\d{1,9})*")


@total_ordering
class Version:
    """A dotted version, compared number by number; also against text, so that rules can write `< "7.6.3"`."""

    __slots__ = ("numbers", "text")

    def __init__(self, text: str) -> None:
        """Reads the leading numbers ("2.1.0+cu118" is 2.1.0). Raises ValueError where there are none."""
        match = _VERSION.match(text.strip())
        if match is None:
            raise ValueError(f"not a version: {text!r}")
        numbers = [int(part) for part in match.group().split(".")]
        while len(numbers) > 1 and numbers[-1] == 0:
            numbers.pop()
        self.text, self.numbers = text, tuple(numbers)

    def __eq__(self, other: object) -> bool:
        that = Version(other) if isinstance(other, str) else other
        return isinstance(that, Version) and self.numbers == that.numbers

    def __lt__(self, other: object) -> bool:
        that = Version(other) if isinstance(other, str) else other
        return self.numbers < that.numbers if isinstance(that, Version) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.numbers)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Version({self.text!r})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """A place in an input. Lines and columns count from 1; None where the format has none (an ONNX graph)."""

    path: str
    line: int | None = None
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gemm:
    """A batched matrix multiply `batch x (M x N x K)`; never to be mixed with the convolution's N and K."""

    M: int
    N: int
    K: int
    batch: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvLayer:
    """One convolution, in the letters of the guide's section 2.

    A 1-D convolution has H = R = P = 1 and `dims` 1. A 3-D one adds D (input depth), T (filter depth),
    Z (output depth), StrideD, PadD and DilD; for fewer dimensions those are 1, 1, 1, 1, 0 and 1.
    `PadH` pads above, `PadH_end` below (equal unless the padding is asymmetric); W and D likewise.
    For `conv_transpose`, C H W are the layer's input and K P Q its output, as the framework's user sees them.
    """

    name: str
    path: str = ""
    op: Op = "conv"
    dims: int = 2
    N: int | None = None
    C: int | None = None
    D: int | None = 1
    H: int | None = None
    W: int | None = None
    K: int | None = None
    Z: int | None = 1
    P: int | None = None
    Q: int | None = None
    T: int | None = 1
    R: int | None = None
    S: int | None = None
    StrideD: int = 1
    U: int = 1
    V: int = 1
    PadD: int | None = 0
    PadH: int | None = 0
    PadW: int | None = 0
    PadD_end: int | None = 0
    PadH_end: int | None = 0
    PadW_end: int | None = 0
    DilD: int = 1
    DilH: int = 1
    DilW: int = 1
    groups: int = 1
    OutPadD: int = 0
    OutPadH: int = 0
    OutPadW: int = 0
    dtype: Dtype | None = None
    layout: Layout = "auto"
    bias: bool | None = None
    norm_follows: bool | None = None  # batch normalisation reads this layer's output and nothing else does
    first: bool = False  # its input is the network's: no dgrad
    head: bool = False  # no convolution after it: the task fixes K
    calls: int = 1  # how often one step runs it (shared modules)
    residual_inputs: int = 0  # tensors of the output's shape fused into the epilogue
    declared_P: int | None = None
    declared_Q: int | None = None
    declared_Z: int | None = None
    spans: Mapping[str, Span] = field(default_factory=dict, compare=False, hash=False)
    node: str | None = None  # the format's own name for the place (an ONNX node, a module path)

    def locate(self, *names: str) -> Location:
        """Where the first of `names` that was written down stands; else the layer itself."""
        for name in (*names, "layer"):
            span = self.spans.get(name)
            if span is not None:
                return Location(path=self.path, line=span[0], column=span[1], end_line=span[2], end_column=span[3])
        return Location(path=self.path)

    @property
    def depthwise(self) -> bool:
        """groups = C, also with a channel multiplier (K = m·C)."""
        return self.groups > 1 and self.groups == self.C

    @property
    def pointwise_map(self) -> bool:
        """Works on 1x1 maps (squeeze-and-excite): sizes are not worth a finding."""
        return self.H == self.W == self.P == self.Q == 1 and self.D == self.Z == 1


def output_size(size: int, *, stride: int, pad: int, dilation: int, taps: int) -> int:
    """Output size of a convolution along one axis; `pad` is both sides added up. May be < 1: invalid (CG 5.1)."""
    return (size + pad - dilation * (taps - 1) - 1) // stride + 1


def transposed_output_size(size: int, *, stride: int, pad: int, dilation: int, taps: int, output_padding: int) -> int:
    """Output size of a transposed convolution along one axis; `pad` is both sides added up."""
    return (size - 1) * stride - pad + dilation * (taps - 1) + output_padding + 1


def same_padding(size: int | None, *, stride: int, dilation: int, taps: int) -> tuple[int, int] | None:
    """Begin and end padding of "same": output = ceil(size / stride), the odd element at the end.

    None where the size is unknown and the stride makes the padding depend on it.
    """
    extent = dilation * (taps - 1)
    if stride == 1:
        total = extent
    elif size is None:
        return None
    else:
        total = max((-(-size // stride) - 1) * stride + extent + 1 - size, 0)
    return total // 2, total - total // 2


def with_output(layer: ConvLayer) -> ConvLayer:
    """The layer with Z, P and Q computed from its inputs; an axis with an unknown part keeps its declared size."""
    return replace(
        layer,
        Z=_axis_out(
            layer,
            layer.D,
            layer.T,
            layer.StrideD,
            layer.PadD,
            layer.PadD_end,
            layer.DilD,
            layer.OutPadD,
            layer.declared_Z,
        ),
        P=_axis_out(
            layer, layer.H, layer.R, layer.U, layer.PadH, layer.PadH_end, layer.DilH, layer.OutPadH, layer.declared_P
        ),
        Q=_axis_out(
            layer, layer.W, layer.S, layer.V, layer.PadW, layer.PadW_end, layer.DilW, layer.OutPadW, layer.declared_Q
        ),
    )


def _axis_out(
    layer: ConvLayer,
    size: int | None,
    taps: int | None,
    stride: int,
    begin: int | None,
    end: int | None,
    dilation: int,
    output_padding: int,
    declared: int | None,
) -> int | None:
    if size is None or taps is None or begin is None or end is None:
        return declared
    if layer.op == "conv_transpose":
        return transposed_output_size(
            size, stride=stride, pad=begin + end, dilation=dilation, taps=taps, output_padding=output_padding
        )
    return output_size(size, stride=stride, pad=begin + end, dilation=dilation, taps=taps)


def gemm(layer: ConvLayer, which: Pass) -> Gemm | None:
    """The implicit GEMM of one pass (CG 4.2, Table 2), per group; None where a size is unknown.

    A transposed convolution is the dgrad of the convolution that maps its output to its input, so its
    wgrad reduces over its input positions, N·H·W.
    """
    N, C, H, W, K, P, Q, R, S = layer.N, layer.C, layer.H, layer.W, layer.K, layer.P, layer.Q, layer.R, layer.S
    D, T, Z, groups = layer.D, layer.T, layer.Z, layer.groups
    if N is None or C is None or H is None or W is None or K is None or P is None or Q is None:
        return None
    if R is None or S is None or D is None or T is None or Z is None:
        return None
    taps = T * R * S
    c, k = C // groups, K // groups
    if which == "fprop":
        return Gemm(M=N * Z * P * Q, N=k, K=c * taps, batch=groups)
    if which == "dgrad":
        return Gemm(M=N * D * H * W, N=c, K=k * taps, batch=groups)
    if layer.op == "conv_transpose":
        return Gemm(M=k * taps, N=c, K=N * D * H * W, batch=groups)
    return Gemm(M=c * taps, N=k, K=N * Z * P * Q, batch=groups)


def flops(layer: ConvLayer) -> int | None:
    """Useful FLOPs of one pass, 2 x multiply-accumulates: the same for fprop, dgrad and wgrad; None if unknown."""
    fprop = gemm(layer, "fprop")
    if fprop is None:
        return None
    if layer.op == "conv_transpose":
        dgrad = gemm(layer, "dgrad")
        assert dgrad is not None
        return 2 * dgrad.batch * dgrad.M * dgrad.N * dgrad.K
    return 2 * fprop.batch * fprop.M * fprop.N * fprop.K


def tensor_elements(layer: ConvLayer) -> tuple[int, int, int] | None:
    """Elements of the input, the weights and the output (x, w, y); None if a size is unknown."""
    N, C, H, W, K, P, Q, R, S = layer.N, layer.C, layer.H, layer.W, layer.K, layer.P, layer.Q, layer.R, layer.S
    D, T, Z = layer.D, layer.T, layer.Z
    if N is None or C is None or H is None or W is None or K is None or P is None or Q is None:
        return None
    if R is None or S is None or D is None or T is None or Z is None:
        return None
    return N * C * D * H * W, K * (C // layer.groups) * T * R * S, N * K * Z * P * Q


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """What runs the network. None means not given: rules that need it are skipped, never guessed."""

    framework: str | None = None  # pytorch, tensorflow, jax, tensorrt, onnxruntime, mxnet, cudnn
    framework_version: Version | None = None
    cuda: Version | None = None
    cudnn: Version | None = None
    tensorrt: Version | None = None
    compile: bool | None = None
    cudnn_benchmark: bool | None = None
    fixed_input_size: bool | None = None
    deterministic: bool | None = None
    tf32: bool = True
    cudnn_conv_algo_search: str | None = None
    prefer_nhwc: bool | None = None
    tf_cudnn_use_autotune: bool | None = None
    mxnet_cudnn_autotune_default: int | None = None
    xla_gpu_autotune_level: int | None = None
    gpu_clock: str | None = None
    pinned_memory: bool | None = None
    spans: Mapping[str, Span] = field(default_factory=dict, compare=False, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """What arrives at a convolution: the shape its producers deliver, after any pooling, concatenation and so on.

    `consumer` and `producers` index `Network.layers`; `C`, `D`, `H`, `W` are None where unknown. `source` names
    the layer or operation that the consumer is written to read from.
    """

    consumer: int
    producers: tuple[int, ...]
    source: str
    C: int | None
    H: int | None
    W: int | None
    D: int | None = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Everything that a reader found in one input."""

    path: str
    layers: tuple[ConvLayer, ...]
    edges: tuple[Edge, ...] = ()
    runtime: Runtime = Runtime()
    mode: Mode | None = None
    targets: tuple[str, ...] = ()
    spans: Mapping[str, Span] = field(default_factory=dict, compare=False, hash=False)
    source_lines: tuple[str, ...] | None = None  # the text that locations point into, where there is one
