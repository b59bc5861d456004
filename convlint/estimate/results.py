"""The records of a prediction: the problem that is estimated, the basis of its times, the estimates."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from convlint.gpus.gpu import Kind
from convlint.model.estimates import Basis
from convlint.model.layer import ConvLayer, Dtype, Layout, Pass
from convlint.model.runtime import Version


class Problem(Struct, frozen=True, gc=False):
    """A convolution without names. A transposed one is turned around: it is the dgrad of this problem."""

    N: int
    C: int
    D: int
    H: int
    W: int
    K: int
    Z: int
    P: int
    Q: int
    T: int
    R: int
    S: int
    StrideD: int
    U: int
    V: int
    groups: int
    padded: bool
    layout: Layout
    residual_inputs: int
    dtype: Dtype
    # What follows from those and is asked for at every pass and way to run it.
    taps: int  # filter points
    pixels_in: int
    pixels_out: int
    flops: int  # of any pass: 2 x useful multiply-accumulates
    element_bytes: int
    nchw: bool  # the tensors are known to be NCHW
    strided: bool  # any stride is greater than 1
    dilated: bool  # a dense or depthwise layer; others take as long as without
    norm_copies: int  # of the layer's output
    copies_input: bool  # of the layer, which fprop and wgrad read: it arrives in another layout
    transposed: bool  # the layer is, and its groups are one channel wide: others take as long as those turned around


def problem_of(layer: ConvLayer) -> Problem | None:
    """The problem of a layer; None where a size or the dtype is unknown, or a size is not positive."""
    N, C, D, H, W, K = layer.N, layer.C, layer.D, layer.H, layer.W, layer.K
    Z, P, Q, T, R, S, dtype = layer.Z, layer.P, layer.Q, layer.T, layer.R, layer.S, layer.dtype
    if N is None or C is None or D is None or H is None or W is None or K is None or dtype is None:
        return None
    if Z is None or P is None or Q is None or T is None or R is None or S is None:
        return None
    groups = layer.groups
    if min(N, C, D, H, W, K, Z, P, Q, T, R, S, layer.StrideD, layer.U, layer.V, groups) < 1 or C % groups or K % groups:
        return None
    padded = bool(layer.PadH or layer.PadW or layer.PadD or layer.PadH_end or layer.PadW_end or layer.PadD_end)
    if layer.op == "conv_transpose":
        C, D, H, W, K, Z, P, Q = K, Z, P, Q, C, D, H, W
    StrideD, U, V, taps, pixels_out = layer.StrideD, layer.U, layer.V, T * R * S, N * Z * P * Q
    return Problem(
        N, C, D, H, W, K, Z, P, Q, T, R, S, StrideD, U, V, groups, padded, layer.layout, layer.residual_inputs, dtype,
        taps, N * D * H * W, pixels_out, 2 * pixels_out * K * (C // groups) * taps, dtype.bytes,
        layer.layout == "NCHW" and not layer.pointwise_map, StrideD > 1 or U > 1 or V > 1,
        groups in (1, C) and (layer.DilH > 1 or layer.DilW > 1), layer.norm_copies, layer.copies_input,
        layer.op == "conv_transpose" and groups == C > 1,
    )  # fmt: skip


def is_depthwise(problem: Problem) -> bool:
    """One input channel per group, in one or two dimensions: 3-D layers have other kernels."""
    return problem.groups > 1 and problem.groups == problem.C and problem.T == 1 and problem.D == 1


def is_volume(problem: Problem) -> bool:
    """Whether the layer has three dimensions."""
    return problem.D > 1 or problem.T > 1


def is_patch_embedding(problem: Problem) -> bool:
    """Whether the filter steps by its own size, so that no two of its positions share an input."""
    steps_by_filter = problem.StrideD == problem.T and problem.R == problem.U and problem.S == problem.V
    return steps_by_filter and problem.taps > 1 and problem.groups == 1 and not problem.padded


def with_batch(problem: Problem, N: int) -> Problem:
    """The problem at another batch."""
    before = problem.N
    return replace(
        problem, N=N, pixels_in=problem.pixels_in // before * N, pixels_out=problem.pixels_out // before * N,
        flops=problem.flops // before * N,
    )  # fmt: skip


TURNED: dict[Pass, Pass] = {"fprop": "dgrad", "dgrad": "fprop", "wgrad": "wgrad"}


# What runs it: PyTorch's own kernels take NCHW, and GPUs of a timed generation may lack its Tensor Cores.
Runs = Literal["tensorrt", "nchw", "other", "without tensor cores"]

_FPROP: tuple[Pass, ...] = ("fprop",)
_INPUTS: tuple[Pass, ...] = ("fprop", "dgrad")  # dgrad from transposed layers
_ALL: tuple[Pass, ...] = ("fprop", "dgrad", "wgrad")
# Kind and compute dtype: the compute capabilities that were timed, and their passes.
_TIMED: Mapping[tuple[Kind, Dtype], Mapping[str, tuple[Pass, ...]]] = {
    ("dense", Dtype.fp32): {"6.1": _ALL, "7.0": _ALL, "7.5": _ALL, "9.0": _ALL},
    ("dense", Dtype.fp16): {"7.0": _ALL, "7.5": _ALL, "8.0": _FPROP, "8.6": _ALL, "8.9": _FPROP, "9.0": _ALL},
    ("dense", Dtype.bf16): {"9.0": _ALL},
    ("dense", Dtype.int8): {"7.0": _FPROP, "7.5": _FPROP},
    ("dense", Dtype.tf32): {"8.0": _INPUTS, "8.6": _INPUTS, "9.0": _ALL},
    ("depthwise", Dtype.fp32): {"7.0": _FPROP, "7.5": _FPROP, "9.0": _ALL},
    ("depthwise", Dtype.fp16): {"7.0": _FPROP, "9.0": _ALL},
    ("depthwise", Dtype.bf16): {"9.0": _ALL},
    ("depthwise", Dtype.int8): {"7.0": _FPROP},
    ("depthwise", Dtype.tf32): {"8.0": _FPROP, "8.6": _FPROP, "9.0": _ALL},
    ("grouped", Dtype.fp32): {"7.5": ("dgrad",)},
    ("grouped", Dtype.tf32): {"8.0": ("dgrad",), "8.6": ("dgrad",), "9.0": _ALL},
    ("grouped", Dtype.fp16): {"8.6": _ALL, "8.9": _FPROP, "9.0": _ALL},
    ("grouped", Dtype.bf16): {"9.0": _ALL},
    ("volume", Dtype.fp16): {"7.0": _ALL, "7.5": _ALL, "9.0": _ALL},
    ("volume", Dtype.bf16): {"9.0": _ALL},
    ("volume", Dtype.fp32): {"7.5": _INPUTS},
    ("volume", Dtype.tf32): {"8.0": _INPUTS, "8.6": _INPUTS, "9.0": _ALL},
}
# Gradients that were timed within whole steps only, and against each other: EfficientNet-B0's on A100 in TF32 and on
# V100 in fp32 (DeepLearningExamples), and PyTorch's kernels against cuDNN's on A100 and A6000 (pytorch/pytorch#91735),
# dgrad and wgrad as one: how they share that rests on what the kernels do.
_WITHIN_STEPS: Mapping[Kind, tuple[Dtype, ...]] = {"depthwise": (Dtype.fp32, Dtype.tf32, Dtype.fp16, Dtype.bf16)}
_LIKE = {Dtype.bf16: Dtype.fp16, Dtype.tf32: Dtype.fp16}  # other rates, the same kernels: at best extrapolated
# What depthwise layers were timed in: V100's in TensorRT, H100's in PyTorch and either layout, others' in NCHW alone.
_DEPTHWISE_RUNS: Mapping[str, tuple[Runs, ...]] = {"7.0": ("tensorrt",), "9.0": ("nchw", "other")}


def kind_of(problem: Problem) -> Kind:
    """The kind of layer, as far as other kernels run it; depthwise volumes have those of groups."""
    if problem.groups > 1:
        return "depthwise" if is_depthwise(problem) else "grouped"
    return "volume" if is_volume(problem) else "dense"


@cache
def basis(kind: Kind, which: Pass, compute: Dtype, compute_capability: Version, runs: Runs = "other") -> Basis:
    """What the time of a pass rests on; `which` is the pass of the convolution, also of a transposed one."""
    timed = _TIMED.get((kind, compute), {})
    capability = str(compute_capability)
    if kind == "depthwise":
        same = runs in _DEPTHWISE_RUNS.get(capability, ("nchw",))
    else:
        same = capability != "9.0" or runs != "tensorrt"  # H100 ran no engines
    if same and runs != "without tensor cores" and which in timed.get(capability, ()):
        return "measured"
    if compute in _WITHIN_STEPS.get(kind, ()):
        return "extrapolated"
    like = _TIMED.get((kind, _LIKE.get(compute, compute)), {})
    return "extrapolated" if any(which in passes for passes in (*timed.values(), *like.values())) else "assumed"
