"""Traces as PyTorch's profiler writes them, made up: a step of convolutions with the kernels that they launch."""

import gzip
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

A100 = {
    "id": 0, "name": "NVIDIA A100-SXM4-40GB", "totalGlobalMem": 42505273344, "computeMajor": 8, "computeMinor": 0,
    "numSms": 108,
}  # fmt: skip
NCHW_TO_NHWC = "void cudnn::ops::nchwToNhwcKernel<__half, __half, float, false, true, (cudnnKernelDataType_t)2>(...)"
FPROP = "sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nchw_tilesize128x128x32_stage4_g1_tensor16x8x16"
DGRAD = "sm80_xmma_dgrad_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize128x128x32_stage4_g1_tensor16x8x16"
WGRAD = "sm80_xmma_wgrad_implicit_gemm_indexed_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize128x128x32_stage4_g1"
ADD = "void at::native::elementwise_kernel<128, 4, at::native::CUDAFunctor_add<c10::Half> >(...)"
SUM = "void at::native::reduce_kernel<128, 4, at::native::ReduceOp<c10::Half, at::native::sum_functor<...> > >(...)"


class TraceWriter:
    """Events one after the other, with a clock of its own."""

    def __init__(self, device: dict[str, Any] | None = None) -> None:
        self.events: list[dict[str, Any]] = []
        self.device = A100 if device is None else device
        self._now, self._correlation = 1000.0, 1

    def conv(
        self, shape: Sequence[int], weight: Sequence[int], kernels: Iterable[tuple[str, float]], *, stride: int = 1,
        pad: int = 0, dtype: str = "c10::Half", nhwc: bool = False, bias: bool = False, sequence: int = 0,
        module: str = "", line: str = "", **args: Any,
    ) -> None:  # fmt: skip
        """A forward call, as `aten::conv2d` makes it."""
        values = [f"[{stride}, {stride}]", f"[{pad}, {pad}]", "[1, 1]", "False", "[0, 0]", "1"]
        arguments = {
            "Sequence number": sequence, "Fwd thread id": 0,
            "Concrete Inputs": ["", "", "", *values],
            "Input type": [dtype, dtype, dtype if bias else "", *["ScalarList"] * 3, "Scalar", "ScalarList", "Scalar"],
            "Input Strides": [strides(shape, nhwc=nhwc), strides(weight, nhwc=nhwc), [1] if bias else [], *[[]] * 6],
            "Input Dims": [list(shape), list(weight), [weight[0]] if bias else [], *[[]] * 6],
        } | args  # fmt: skip
        begin = self._now
        self._call("aten::convolution", kernels, arguments)
        self._add("cpu_op", "aten::conv2d", begin - 1, self._now - begin + 1, arguments)
        for name in filter(None, (f"nn.Module: {module}" if module else "", line)):
            self._add("python_function", name, begin - 1, self._now - begin + 1, {})
        self._now += 5

    def gradient(
        self, shape: Sequence[int], weight: Sequence[int], kernels: Iterable[tuple[str, float]], *, stride: int = 1,
        pad: int = 0, dtype: str = "c10::Half", nhwc: bool = False, mask: str = "[True, True, False]",
        sequence: int = 0, **args: Any,
    ) -> None:  # fmt: skip
        """A backward call."""
        values = ["[0]", f"[{stride}, {stride}]", f"[{pad}, {pad}]", "[1, 1]", "False", "[0, 0]", "1", mask]
        begin, tensors = self._now, [dtype] * 3
        self._call(
            "aten::convolution_backward", kernels,
            {
                "Concrete Inputs": ["", "", "", *values],
                "Input type": [*tensors, *["ScalarList"] * 4, "Scalar", "ScalarList", "Scalar", "ScalarList"],
                "Input Strides": [[], strides(shape, nhwc=nhwc), strides(weight, nhwc=nhwc), *[[]] * 8],
                "Input Dims": [[], list(shape), list(weight), *[[]] * 8],
            } | args,
        )  # fmt: skip
        evaluated = "autograd::engine::evaluate_function: ConvolutionBackward0"
        self._add("cpu_op", evaluated, begin - 1, self._now - begin + 1, {"Sequence number": sequence})
        self._now += 5

    def operator(
        self, name: str, kernels: Iterable[tuple[str, float]], *tensors: tuple[str, Sequence[int]], **args: Any
    ) -> None:
        """A call of any operator, of which only its kernels and the (dtype, sizes) of its tensors are told."""
        self._call(name, kernels, _told(tensors) | args)
        self._now += 5

    def call(self, name: str, begin: float, *tensors: tuple[str, Sequence[int]]) -> None:
        """A call of an operator around all that came since then."""
        self._add("cpu_op", name, begin - 1, self._now - begin + 1, _told(tensors))
        self._now += 5

    def _call(self, name: str, kernels: Iterable[tuple[str, float]], arguments: dict[str, Any]) -> None:
        begin = self._now
        for kernel, us in kernels:
            self._now += 2
            own = {"correlation": self._correlation}
            self._add("kernel", kernel, self._now + 500, us, own)
            self._add("cuda_runtime", "cudaLaunchKernel", self._now, 1, own)
            self._correlation += 1
        self._now += 2
        self._add("cpu_op", name, begin, self._now - begin, arguments)

    def _add(self, category: str, name: str, begin: float, us: float, args: dict[str, Any]) -> None:
        where = {"ph": "X", "cat": category, "name": name, "pid": 7, "tid": 7}
        self.events.append({**where, "ts": begin, "dur": us, "args": args})

    def step(self, number: int, begin: float) -> None:
        """The annotation of a whole step that began then."""
        self._add("user_annotation", f"ProfilerStep#{number}", begin, self._now - begin, {})

    @property
    def now(self) -> float:
        """What the clock says."""
        return self._now

    def write(self, path: Path) -> Path:
        """Into a file; packed where its name says so."""
        text = json.dumps(
            {"schemaVersion": 1, "deviceProperties": [self.device], "traceEvents": self.events, "traceName": "x"},
            indent=2,
        )
        content = text.encode("utf-8")
        path.write_bytes(gzip.compress(content) if path.name.endswith(".gz") else content)
        return path


def _told(tensors: Sequence[tuple[str, Sequence[int]]]) -> dict[str, Any]:
    """The arguments of an operator on (dtype, sizes) of tensors; nothing where there are none."""
    shapes = [list(shape) for _, shape in tensors]
    arguments = {
        "Input Dims": shapes, "Input type": [dtype for dtype, _ in tensors], "Concrete Inputs": [""] * len(shapes),
        "Input Strides": [strides(shape, nhwc=False) for shape in shapes],
    }  # fmt: skip
    return arguments if tensors else {}


def strides(shape: Sequence[int], *, nhwc: bool) -> list[int]:
    """Those of a tensor that lies close, in elements."""
    order = (0, *range(2, len(shape)), 1) if nhwc else tuple(range(len(shape)))
    found, step = [0] * len(shape), 1
    for axis in reversed(order):
        found[axis], step = step, step * shape[axis]
    return found
