"""What really multiplies: the compute dtype of a layer on a GPU, the unit that runs it, and that unit's peak."""

from __future__ import annotations

from convlint.gpus.gpu import Gpu
from convlint.model.layer import Dtype
from convlint.model.runtime import Runtime, framework_of

# Where a GPU's file lacks a Tensor Core rate, its ratio to fp16 with fp32 accumulation (CUDA guide, all generations).
_RATIO_TO_FP16 = {Dtype.tf32: 0.5, Dtype.bf16: 1.0, Dtype.fp8: 2.0, Dtype.int8: 2.0}


def compute_dtype(layer_dtype: Dtype, gpu: Gpu, runtime: Runtime) -> Dtype:
    """What multiplies where `layer_dtype` is stored: tf32 for fp32 where allowed, fp32 where a GPU lacks the type."""
    if layer_dtype == Dtype.fp32 and runtime.tf32 and "tf32" in gpu.tensor_dtypes:
        return Dtype.tf32
    if layer_dtype == Dtype.tf32 and "tf32" not in gpu.tensor_dtypes:
        return Dtype.fp32
    if layer_dtype == Dtype.fp16 and "fp16" not in gpu.tensor_dtypes and not gpu.fast_fp16:
        return Dtype.fp32
    if layer_dtype == Dtype.bf16 and converts_bf16(gpu, runtime):
        return Dtype.fp32
    return layer_dtype


def converts_bf16(gpu: Gpu, runtime: Runtime) -> bool:
    """Whether bf16, which the GPU lacks, runs all the same: PyTorch multiplies it in fp32 on Volta and Turing.

    Which kernels those are was never timed: plain fp32 that moves half the bytes.
    """
    if "bf16" in gpu.tensor_dtypes or not "7.0" <= gpu.compute_capability < "8.0":
        return False
    return gpu.tensor_cores and framework_of(runtime) == "pytorch"


def tensor_peak(gpu: Gpu, compute: Dtype, *, fp16_accumulate: bool) -> float | None:
    """Dense FLOP/s of the Tensor Cores for a compute dtype; None if they do not multiply it, or the rate is unknown."""
    if compute.value not in gpu.tensor_dtypes or compute == Dtype.fp64:  # cuDNN's fp64 convolutions stay on CUDA cores
        return None
    peak = gpu.peak(compute, tensor=True, fp16_accumulate=fp16_accumulate)
    if peak is None and compute in _RATIO_TO_FP16:
        fp16 = gpu.peak(Dtype.fp16, tensor=True)
        peak = None if fp16 is None else fp16 * _RATIO_TO_FP16[compute]
    return peak


def cuda_core_peak(gpu: Gpu, compute: Dtype) -> float | None:
    """FLOP/s of the CUDA cores; None where no library has a kernel (bf16, fp8; int8 before DP4A, cc 6.1).

    fp16 runs at fp32's rate: without Tensor Cores the libraries accumulate in fp32.
    """
    if compute in (Dtype.bf16, Dtype.fp8):
        return None
    if compute == Dtype.int8:
        fp32 = gpu.peak(Dtype.fp32, tensor=False)
        dp4a = gpu.compute_capability >= "6.1" and gpu.compute_capability != "6.2"
        return gpu.peak_flops.get("int8", None if fp32 is None else 4 * fp32) if dp4a else None
    return gpu.peak(Dtype.fp64 if compute == Dtype.fp64 else Dtype.fp32, tensor=False)
