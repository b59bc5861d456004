"""What the kernels of a convolution's call are for: the product, transposes of layouts, a bias, and for which pass."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from statistics import quantiles

from convlint.model.layer import MeasuredPass, Pass
from convlint.readers.trace.recording import KernelRun

# cuDNN's transposes, and PyTorch's copies between layouts.
_TRANSPOSE = re.compile(
    r"nchwToNhwc|nhwcToNchw|nchwAddPadding|tensorTransform|transpose_readWrite|nchw2nhwc|direct_copy_kernel|"
    r"batched_transpose|permute",
    re.IGNORECASE,
)
# CUTLASS names what its kernels do not permute.
_PRODUCT = re.compile(r"cutlass|implicit_?gemm|nvjet", re.IGNORECASE)
# Products that cuDNN 9 runs in the place of its own, one for each gradient.
_IN_ORDER = re.compile(r"nvjet|cutlass")
# What adds up the parts of a product, after it; and what prepares one: its workspace, its padded channels.
_SUM = re.compile(r"splitK_?reduce|ReduceSplitK|split_k_kernel|reduce_wgrad", re.IGNORECASE)
_BEFORE = re.compile(r"AddPadding|init_device_workspace", re.IGNORECASE)
_TO_NCHW = re.compile(r"nhwcToNchw", re.IGNORECASE)
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
    r"tensorop|nvjet|warpgroup|tensor\d+x\d+x\d+|[hsdi](884|1688|16816|16832)|gmma|hmma|imma|utcmma",
    re.IGNORECASE,
)
_CUDA_CORES = re.compile(
    r"sgemm|simt|scudnn|implicit_convolve|ffma|fft|winograd_3x3Kernel|conv_depthwise|DepthwiseConv", re.IGNORECASE
)

Parts = dict[str, float]


def uses_tensor_cores(names: Sequence[str]) -> bool | None:
    """Whether Tensor Cores multiply in a call, as the names of its kernels say; None where they do not say."""
    if any(map(_TENSOR.search, names)):
        return True
    return False if any(map(_CUDA_CORES.search, names)) else None


def forward_parts(kernels: Iterable[KernelRun]) -> Parts:
    """Times of one forward call in us, by part."""
    parts: Parts = {}
    for kernel in kernels:
        name = _part(kernel.name, _BIAS)
        parts[name] = parts.get(name, 0.0) + kernel.us
    return parts


def backward_parts(kernels: Sequence[KernelRun], passes: Sequence[Pass]) -> dict[Pass, Parts]:
    """Times of one backward call in us, by pass and part; `passes` are those that it computes, dgrad first.

    A transpose into NHWC belongs to the product after it, one back into NCHW and the sum of a split to the product
    before it. Products whose names state no pass are of the passes that no name states, dgrad first, as in PyTorch
    (cudnn_convolution_backward in ATen/native/cudnn/ConvShared.cpp), and `other` but for cuBLAS's and CUTLASS's where
    each pass has one.
    """
    by_pass: dict[Pass, Parts] = {which: {} for which in passes}
    if not passes:
        return by_pass
    parts = [_part(kernel.name, _BIAS_GRADIENT) for kernel in kernels]
    owners, is_certain = _owners(kernels, parts, passes)
    at = next((which for which in owners if which is not None), passes[0])
    following: list[Pass] = []
    for which in reversed(owners):
        at = which or at
        following.append(at)
    following.reverse()
    last: Pass | None = None
    for kernel, part, owner, after in zip(kernels, parts, owners, following, strict=True):
        if owner is not None:
            last = owner
        is_back = _SUM.search(kernel.name) is not None
        is_back = is_back or (part == "transpose" and _TO_NCHW.search(kernel.name) is not None)
        which = "wgrad" if part == "bias" and "wgrad" in by_pass else last if is_back and last is not None else after
        if part == "convolution" and not is_certain and len(passes) > 1 and _pass_in_name(kernel.name) is None:
            part = "other"
        by_pass[which][part] = by_pass[which].get(part, 0.0) + kernel.us
    return by_pass


def _owners(
    kernels: Sequence[KernelRun], parts: Sequence[str], passes: Sequence[Pass]
) -> tuple[list[Pass | None], bool]:
    """The pass of each product, None for other kernels; and whether names and their order make them certain."""
    owners: list[Pass | None] = [None] * len(kernels)
    unnamed = []
    for number, (kernel, part) in enumerate(zip(kernels, parts, strict=True)):
        named_pass = _pass_in_name(kernel.name)
        if _SUM.search(kernel.name) or _BEFORE.search(kernel.name):
            continue
        if named_pass in passes:
            owners[number] = named_pass
        elif part == "convolution":
            unnamed.append(number)
    lacking = [which for which in passes if which not in owners]
    is_certain = len(unnamed) == len(lacking) and all(_IN_ORDER.search(kernels[number].name) for number in unnamed)
    lacking = lacking or list(passes)
    for place, number in enumerate(unnamed):
        owners[number] = lacking[place * len(lacking) // len(unnamed)]
    return owners, is_certain


def _pass_in_name(name: str) -> Pass | None:
    """The pass that a kernel's name states; None where it states none."""
    return "wgrad" if _WGRAD.search(name) else "dgrad" if _DGRAD.search(name) else None


def _part(name: str, bias: re.Pattern[str]) -> str:
    if _PRODUCT.search(name):
        return "convolution"
    if _TRANSPOSE.search(name):
        return "transpose"
    if _DEPTHWISE.search(name):
        return "convolution"
    if _OF_PYTORCH.search(name):
        return "bias" if bias.search(name) else "other"
    return "convolution"


def combined(calls: Sequence[Mapping[str, float]], times: float) -> MeasuredPass:
    """Several calls of one pass, as the median one has them; `times` is how often it runs for each forward call."""
    ordered = sorted(calls, key=lambda call: sum(call.values()))
    totals = [sum(call.values()) for call in ordered]
    middle = ordered[(len(ordered) - 1) // 2]
    us = sum(middle.values())
    low, _, high = quantiles(totals, n=4, method="inclusive") if len(totals) > 1 else (us, us, us)
    return MeasuredPass(
        us=us, convolution=middle.get("convolution", 0.0), transpose=middle.get("transpose", 0.0),
        bias=middle.get("bias", 0.0), other=middle.get("other", 0.0), spread=(high - low) / us if us else 0.0,
        calls=len(totals), times=times,
    )  # fmt: skip
