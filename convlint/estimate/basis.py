"""What a predicted time rests on: timings of this generation, of another one, or none of its kind.

The timings are those of `benchmarks/data`, used to fit the model or held against it; `benchmarks/README.md` says which.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Literal

from convlint.estimate.problem import Problem, is_depthwise
from convlint.gpus.calibration import Kind
from convlint.model.layer import Dtype, Pass
from convlint.model.version import Version

Basis = Literal["measured", "extrapolated", "assumed"]
BASES: tuple[Basis, ...] = ("measured", "extrapolated", "assumed")  # from the best to the worst
# What runs it: PyTorch's own kernels take NCHW, and GPUs of a timed generation may lack its Tensor Cores.
Runs = Literal["tensorrt", "nchw", "other", "without tensor cores"]

_FPROP: tuple[Pass, ...] = ("fprop",)
_INPUTS: tuple[Pass, ...] = ("fprop", "dgrad")  # dgrad from transposed layers
_ALL: tuple[Pass, ...] = ("fprop", "dgrad", "wgrad")
# Kind and compute dtype: the compute capabilities that were timed, and their passes.
_TIMED: Mapping[tuple[Kind, Dtype], Mapping[str, tuple[Pass, ...]]] = {
    ("dense", Dtype.fp32): {"6.1": _ALL, "7.0": _ALL, "7.5": _ALL},
    ("dense", Dtype.fp16): {"7.0": _ALL, "7.5": _ALL, "8.0": _FPROP, "8.6": _ALL},
    ("dense", Dtype.int8): {"7.0": _FPROP, "7.5": _FPROP},
    ("dense", Dtype.tf32): {"8.0": _INPUTS, "8.6": _INPUTS, "9.0": _INPUTS},
    ("depthwise", Dtype.fp32): {"7.0": _FPROP, "7.5": _FPROP},
    ("depthwise", Dtype.fp16): {"7.0": _FPROP},
    ("depthwise", Dtype.int8): {"7.0": _FPROP},
    ("depthwise", Dtype.tf32): {"8.0": _FPROP, "8.6": _FPROP, "9.0": _FPROP},
    ("grouped", Dtype.fp32): {"7.5": ("dgrad",)},
    ("grouped", Dtype.tf32): {"8.0": ("dgrad",), "8.6": ("dgrad",), "9.0": ("dgrad",)},
    ("grouped", Dtype.fp16): {"8.6": _ALL},
    ("volume", Dtype.fp32): {"7.5": _INPUTS},
    ("volume", Dtype.tf32): {"8.0": _INPUTS, "8.6": _INPUTS, "9.0": _INPUTS},
}
# Gradients that were timed within whole steps only, and against each other: EfficientNet-B0's on A100 in TF32 and on
# V100 in fp32 (DeepLearningExamples), and PyTorch's kernels against cuDNN's on A100 and A6000 (pytorch/pytorch#91735).
# Volumes in 16 bits in both layouts, gradients as one, on V100 with cuDNN 8.0.5: predicted at 1.04 to 1.31 of that.
_WITHIN_STEPS: Mapping[Kind, tuple[Dtype, ...]] = {
    "depthwise": (Dtype.fp32, Dtype.tf32, Dtype.fp16, Dtype.bf16), "volume": (Dtype.fp16, Dtype.bf16),
}  # fmt: skip
_LIKE = {Dtype.bf16: Dtype.fp16, Dtype.tf32: Dtype.fp16}  # other rates, the same kernels: at best extrapolated
_ENGINES = "7.0"  # whose depthwise layers were timed in TensorRT; those of others in PyTorch and NCHW


def kind_of(problem: Problem) -> Kind:
    """The kind of layer, as far as other kernels run it; depthwise volumes have those of groups."""
    if problem.groups > 1:
        return "depthwise" if is_depthwise(problem) else "grouped"
    return "volume" if problem.D > 1 or problem.T > 1 else "dense"


@cache
def basis(kind: Kind, which: Pass, compute: Dtype, compute_capability: Version, runs: Runs = "other") -> Basis:
    """What the time of a pass rests on; `which` is the pass of the convolution, also of a transposed one."""
    timed = _TIMED.get((kind, compute), {})
    capability = str(compute_capability)
    same = kind != "depthwise" or runs == ("tensorrt" if capability == _ENGINES else "nchw")
    if same and runs != "without tensor cores" and which in timed.get(capability, ()):
        return "measured"
    if compute in _WITHIN_STEPS.get(kind, ()):
        return "extrapolated"
    like = _TIMED.get((kind, _LIKE.get(compute, compute)), {})
    return "extrapolated" if any(which in passes for passes in (*timed.values(), *like.values())) else "assumed"
