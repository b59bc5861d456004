"""What is timed: one pass of a layer as a workload, and the device. Imports no PyTorch: the command line reads it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from convlint.estimate import compute_dtype
from convlint.gpus.gpu import Gpu
from convlint.model.layer import ConvLayer, Dtype, Op, Pass, with_output
from convlint.model.runtime import Runtime

Order = Literal["NCHW", "NHWC"]
Size = Annotated[int, Meta(ge=1)]
Count = Annotated[int, Meta(ge=0)]
ORDERS: tuple[Order, ...] = ("NCHW", "NHWC")
# What PyTorch has convolutions of: neither int8 nor fp8 on CUDA (aten/src/ATen/native/Convolution.cpp).
TIMED = (Dtype.fp64, Dtype.fp32, Dtype.tf32, Dtype.fp16, Dtype.bf16)
_SIZES = ("N", "C", "D", "H", "W", "K", "T", "R", "S")


class Workload(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One pass of one convolution, as it is timed; triples are depth, height and width.

    `precision` is what multiplies (tf32: fp32 tensors). Where `arrives` is not `layout`, the input is turned around
    first. The letters are those of the guide; a convolution of one dimension has H = R = 1.
    """

    op: Op
    which: Pass
    dims: Annotated[int, Meta(ge=1, le=3)]
    N: Size
    C: Size
    D: Size
    H: Size
    W: Size
    K: Size
    T: Size
    R: Size
    S: Size
    stride: tuple[Size, Size, Size]
    pad: tuple[Count, Count, Count]
    dilation: tuple[Size, Size, Size]
    output_padding: tuple[Count, Count, Count]
    groups: Size
    precision: Dtype
    layout: Order
    arrives: Order
    benchmark: bool
    deterministic: bool


def why_not(layer: ConvLayer) -> str:
    """Why a layer cannot be timed, in words; empty where it can."""
    unknown = [name for name in _SIZES if getattr(layer, name) is None]
    pads = [getattr(layer, f"Pad{axis}{end}") for axis in "DHW" for end in ("", "_end")]
    if unknown:
        return f"{' and '.join(unknown)} {'is' if len(unknown) == 1 else 'are'} not known"
    if None in pads:
        return "its padding is not known"
    if layer.dtype is None:
        return "its dtype is not known; --dtype says it"
    if layer.dtype not in TIMED:
        return f"PyTorch, which times it, has no {layer.dtype} convolutions"
    return ""


def workloads(layer: ConvLayer, which: Pass, gpu: Gpu, runtime: Runtime) -> Iterator[Workload]:
    """One pass of a layer that can be timed (`why_not`): in its layout, or in both where that is left open."""
    assert layer.dtype is not None
    orders: tuple[Order, ...] = ORDERS if layer.layout == "auto" else (layer.layout,)
    for order in orders:
        yield _workload(layer, which, order, compute_dtype(layer.dtype, gpu, runtime), runtime)


def _workload(layer: ConvLayer, which: Pass, order: Order, precision: Dtype, runtime: Runtime) -> Workload:
    begins = (layer.PadD or 0, layer.PadH or 0, layer.PadW or 0)
    ends = (layer.PadD_end or 0, layer.PadH_end or 0, layer.PadW_end or 0)
    # Uneven padding is an operation of its own in PyTorch: what is timed is the convolution of what that has padded.
    wider = [0 if layer.op == "conv_transpose" else abs(end - begin) for begin, end in zip(begins, ends, strict=True)]
    return Workload(
        op=layer.op, which=which, dims=layer.dims, N=layer.N or 0, C=layer.C or 0, K=layer.K or 0,
        D=(layer.D or 0) + wider[0], H=(layer.H or 0) + wider[1], W=(layer.W or 0) + wider[2],
        T=layer.T or 0, R=layer.R or 0, S=layer.S or 0,
        stride=(layer.StrideD, layer.U, layer.V),
        pad=(min(begins[0], ends[0]), min(begins[1], ends[1]), min(begins[2], ends[2])),
        dilation=(layer.DilD, layer.DilH, layer.DilW),
        output_padding=(layer.OutPadD, layer.OutPadH, layer.OutPadW),
        groups=layer.groups, precision=precision, layout=order,
        arrives="NCHW" if layer.copies_input and which != "dgrad" else order,
        benchmark=bool(runtime.cudnn_benchmark), deterministic=bool(runtime.deterministic),
    )  # fmt: skip


def layer_of(workload: Workload) -> ConvLayer:
    """The layer whose pass this is, without what its time does not depend on."""
    depth, height, width = workload.pad
    return with_output(
        ConvLayer(
            name="", op=workload.op, dims=workload.dims, N=workload.N, C=workload.C, D=workload.D, H=workload.H,
            W=workload.W, K=workload.K, T=workload.T, R=workload.R, S=workload.S, StrideD=workload.stride[0],
            U=workload.stride[1], V=workload.stride[2], PadD=depth, PadH=height, PadW=width, PadD_end=depth,
            PadH_end=height, PadW_end=width, DilD=workload.dilation[0], DilH=workload.dilation[1],
            DilW=workload.dilation[2], OutPadD=workload.output_padding[0], OutPadH=workload.output_padding[1],
            OutPadW=workload.output_padding[2], groups=workload.groups, dtype=workload.precision,
            layout=workload.layout, copies_input=workload.arrives != workload.layout,
        )
    )  # fmt: skip


def runtime_of(workload: Workload) -> Runtime:
    """The runtime that it is timed in."""
    return replace(
        Runtime(framework="pytorch", tf32=workload.precision == Dtype.tf32),
        cudnn_benchmark=workload.benchmark, deterministic=workload.deterministic,
    )  # fmt: skip
