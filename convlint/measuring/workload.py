"""What is timed: one pass of a layer as a workload, and the device. Imports no PyTorch: the command line reads it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from convlint.estimate import compute_dtype
from convlint.gpus.gpu import Gpu, gpu_names, load_gpu
from convlint.model.errors import UsageError, shown
from convlint.model.layer import ConvLayer, Dtype, Mode, Op, Pass, with_output
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


def passes(layer: ConvLayer, mode: Mode) -> tuple[Pass, ...]:
    """Those that a step of this mode runs: no dgrad of a first layer."""
    if mode == "inference":
        return ("fprop",)
    return ("fprop", "wgrad") if layer.first else ("fprop", "dgrad", "wgrad")


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


Kind = Literal["cuda", "cpu"]
_SMI_TIMEOUT_S = 20  # a driver that is not resident takes seconds to load
_MEMORY_KEPT = 0.12
_FORMS = {"sxm", "pcie", "nvl"}
_SAYS_NOTHING = re.compile(r"nvidia|geforce|tesla|ac|hbm\d?e?|\d+g[bi]*b?|generation")


class Device(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What times, and the libraries that it runs; sizes in bytes, empty or 0 where it says nothing of them."""

    kind: Kind
    name: str
    framework_version: str
    cudnn: str = ""
    cuda: str = ""
    compute_capability: str = ""
    sms: int = 0
    memory_bytes: int = 0


def gpu_of(device: Device) -> Gpu | None:
    """The GPU that a device is: of the same generation and size, by its name and memory; None where none of them is.

    Names are those of the driver, such as `NVIDIA A100-SXM4-40GB`.
    """
    if device.kind != "cuda":
        return None
    alike = [
        gpu
        for gpu in map(load_gpu, gpu_names())
        if str(gpu.compute_capability) == device.compute_capability
        and gpu.sms == device.sms
        and _is_named(gpu, device.name)
    ]
    # Of two with the same memory, the one whose id says more of the name: a Max-Q is no Workstation Edition.
    return min(
        alike,
        key=lambda gpu: (abs((gpu.memory_bytes or 0) - device.memory_bytes), -len(_words(gpu.id))),
        default=None,
    )


def gpus_here() -> tuple[Gpu, ...]:
    """The GPUs of this machine, each kind once, as the driver's nvidia-smi names them. Raises UsageError."""
    import subprocess

    query = ["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits"]
    try:
        ran = subprocess.run(query, capture_output=True, timeout=_SMI_TIMEOUT_S, check=True, text=True)
    except FileNotFoundError:
        raise UsageError("--gpu local: there is no nvidia-smi here; --gpu NAME names the GPU to rent") from None
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise UsageError(f"--gpu local: nvidia-smi names no GPU: {error}") from None
    lines = [line for line in ran.stdout.splitlines() if line.strip()]
    found = [gpu for gpu in (_named(*line.rpartition(",")[::2]) for line in lines) if gpu is not None]
    if not lines:
        raise UsageError("--gpu local: nvidia-smi lists no GPU")
    if not found:  # beside a known one, another may drive a display
        name = lines[0].rpartition(",")[0] or lines[0]
        raise UsageError(f"--gpu local: convlint does not know the GPU {shown(name)!r}; --gpu NAME names one like it")
    return tuple(dict.fromkeys(found))


def _named(name: str, memory_mib: str) -> Gpu | None:
    """The GPU that the driver calls so: no word of its name may be another model's, as in `RTX 4080 SUPER`."""
    theirs = set(_words(name))
    memory_bytes = int(memory_mib) << 20 if memory_mib.strip().isdecimal() else None
    alike = [
        gpu
        for gpu in map(load_gpu, gpu_names())
        if set(_words(gpu.id)) - _FORMS <= theirs and theirs - _FORMS <= {*_words(gpu.id), *_words(gpu.name)}
        if _is_named(gpu, name) and _has_about(gpu, memory_bytes)
    ]
    # "H100 80GB HBM3", which names no form, is an SXM module; the others say so.
    return min(alike, key=lambda gpu: "sxm" not in _words(gpu.id), default=None)


def _has_about(gpu: Gpu, memory_bytes: int | None) -> bool:
    """Whether the driver may call its memory so; it keeps some of it to itself."""
    return not memory_bytes or not gpu.memory_bytes or abs(memory_bytes / gpu.memory_bytes - 1) < _MEMORY_KEPT


def _is_named(gpu: Gpu, name: str) -> bool:
    """Whether the driver's name is this GPU's, as far as it goes: not all of them tell the form or the memory."""
    ours, theirs = _words(f"{gpu.id} {gpu.name}"), _words(name)
    models = set(_words(gpu.id)) - _FORMS, set(theirs) - _FORMS
    same_model = models[0] <= models[1] or models[1] <= models[0]
    forms = set(theirs) & _FORMS, set(ours) & _FORMS
    return same_model and (not forms[0] or not forms[1] or bool(forms[0] & forms[1]))


def _words(name: str) -> list[str]:
    """Those that tell GPUs apart: `a100`, `sxm` of `NVIDIA A100-SXM4-40GB`."""
    words = map(_form, re.split(r"[^a-z0-9]+", name.casefold()))
    return [word for word in words if word and not _SAYS_NOTHING.fullmatch(word)]


def _form(word: str) -> str:
    return re.sub(r"^(sxm)\d$|^(k\d+)[cmst]$", r"\1\2", word)  # the driver calls a K40 K40m
