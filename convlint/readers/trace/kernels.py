"""What the kernels of a convolution's call are for: the product, transposes of layouts, a bias, and for which pass."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from statistics import median, quantiles

from convlint.model.layer import MeasuredPass, Pass
from convlint.readers.trace.recording import Kernel

# cuDNN's transposes, and PyTorch's copies between layouts.
_TRANSPOSE = re.compile(
    r"nchwToNhwc|nhwcToNchw|nchwAddPadding|tensorTransform|transpose_readWrite|nchw2nhwc|direct_copy_kernel|"
    r"batched_transpose|permute",
    re.IGNORECASE,
)
_OF_PYTORCH = re.compile(r"\bat::native::|\bat_cuda_detail::")
_BIAS = re.compile(r"CUDAFunctor_add|CUDAFunctorOnSelf_add|AddFunctor|add_kernel", re.IGNORECASE)
_BIAS_GRADIENT = re.compile(r"reduce_kernel|sum_functor|bias_grad", re.IGNORECASE)
_DEPTHWISE = re.compile(r"conv_depthwise|DepthwiseConv|depthwise", re.IGNORECASE)
_WGRAD = re.compile(
    r"wgrad|bwd_filter|backward_filter|backward_weight|grad_weight|weight_grad|grad_filter", re.IGNORECASE
)
_DGRAD = re.compile(r"dgrad|bwd_data|backward_data|backward_input|grad_input|depthwise\w*backward", re.IGNORECASE)

# How libraries name kernels by what multiplies: shapes of the instructions of Volta to Blackwell, and CUTLASS's words.
_TENSOR = re.compile(
    r"tensorop|tensor\d+x\d+x\d+|[hsdi](884|1688|16816|16832)|gmma|hmma|imma|utcmma",
    re.IGNORECASE,
)
_CUDA_CORES = re.compile(
    r"sgemm|simt|scudnn|implicit_convolve|ffma|fft|winograd_3x3Kernel|conv_depthwise|DepthwiseConv", re.IGNORECASE
)

Parts = dict[str, float]


def uses_tensor_cores(kernels: Iterable[Kernel]) -> bool | None:
    """Whether Tensor Cores multiply in a call, as the names of its kernels say; None where they do not say."""
    names = [kernel.name for kernel in kernels]
    if any(map(_TENSOR.search, names)):
        return True
    return False if any(map(_CUDA_CORES.search, names)) else None


def forward_parts(kernels: Iterable[Kernel]) -> Parts:
    """Times of one forward call in us, by part."""
    parts: Parts = {}
    for kernel in kernels:
        name = _part(kernel.name, _BIAS)
        parts[name] = parts.get(name, 0.0) + kernel.us
    return parts


def backward_parts(kernels: Sequence[Kernel], passes: Sequence[Pass]) -> dict[Pass, Parts]:
    """Times of one backward call in us, by pass and part; `passes` are those that it computes, dgrad first.

    What stands before a kernel that names its pass belongs to that, what comes last to the last one. A kernel that says
    nothing of itself counts as `other`.
    """
    found: dict[Pass, Parts] = {which: {} for which in passes}
    if not passes:
        return found
    waiting: list[tuple[str, float]] = []
    at: Pass = passes[0]

    def settle(which: Pass) -> None:
        for part, us in waiting:
            found[which][part] = found[which].get(part, 0.0) + us
        waiting.clear()

    for kernel in kernels:
        part = _part(kernel.name, _BIAS_GRADIENT)
        named: Pass | None = "wgrad" if _WGRAD.search(kernel.name) else "dgrad" if _DGRAD.search(kernel.name) else None
        if part == "bias" and "wgrad" in found:
            found["wgrad"]["bias"] = found["wgrad"].get("bias", 0.0) + kernel.us
        elif named in found and named is not None:
            at = named
            waiting.append(("convolution", kernel.us))
            settle(at)
        elif len(passes) == 1:
            waiting.append((part, kernel.us))
            settle(at)
        else:
            waiting.append(("other" if part == "convolution" else part, kernel.us))
    settle(at)
    return found


def _part(name: str, bias: re.Pattern[str]) -> str:
    if _TRANSPOSE.search(name):
        return "transpose"
    if _DEPTHWISE.search(name):
        return "convolution"
    if _OF_PYTORCH.search(name):
        return "bias" if bias.search(name) else "other"
    return "convolution"


def combined(calls: Sequence[Mapping[str, float]]) -> MeasuredPass:
    """Several calls of one pass: the median of all, in parts as the call nearest to it has them."""
    totals = sorted(sum(call.values()) for call in calls)
    us = median(totals)
    middle = min(calls, key=lambda call: abs(sum(call.values()) - us))
    low, _, high = quantiles(totals, n=4, method="inclusive") if len(totals) > 1 else (us, us, us)
    return MeasuredPass(
        us=us, convolution=middle.get("convolution", 0.0), transpose=middle.get("transpose", 0.0),
        bias=middle.get("bias", 0.0), other=middle.get("other", 0.0), spread=(high - low) / us if us else 0.0,
        calls=len(totals),
    )  # fmt: skip
