"""What an operator of PyTorch does, by its name and its recorded arguments: its part of a step, bytes and products."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

from convlint.model.estimates import Part
from convlint.model.layer import Dtype
from convlint.model.network import RecordedWork

# The first that fits an operator counts, all others are pointwise.
_PARTS: tuple[tuple[re.Pattern[str], Part], ...] = (
    (re.compile(r"conv(olution|_|[123]d|$)"), "convolution"),
    (re.compile(r"attention"), "attention"),
    (re.compile(r"linear|matmul|(^|_)(b|v|badd|add)?(mm|mv)(_|$)|einsum|bilinear$"), "linear"),
    (re.compile(r"(batch|layer|group|instance|rms)_norm"), "normalisation"),
    (re.compile(r"pool|upsample|interpolate|grid_sampler|^(sum|mean|amax|argmax|max|var)"), "pool"),
    (re.compile(r"^_?foreach|^_fused_(adam|sgd|adagrad)"), "optimizer"),
    (re.compile(r"copy|^(to|clone|contiguous|cat|stack|.*pad.*|index.*|embedding.*|gather|repeat.*|im2col)$"), "copy"),
)
# A kernel of Inductor's is named after what is fused in it: triton_poi_fused_convolution_relu_3 adds a bias to what a
# convolution of a library gave; a template (triton_tem_) is a product itself (torch/_inductor/codegen/triton.py).
INDUCTOR = re.compile(r"triton_(?P<kind>poi|per|red|tem|for|spl|mm)_")
_NORM = re.compile(r"(batch|layer|group|rms)_norm|norm_legit")
_DTYPES: Mapping[str, Dtype] = {
    "double": Dtype.fp64, "float": Dtype.fp32, "c10::Half": Dtype.fp16, "c10::BFloat16": Dtype.bf16,
}  # fmt: skip
_BYTES: Mapping[str, int] = {
    "double": 8, "long int": 8, "long": 8, "float": 4, "int": 4, "c10::Half": 2, "c10::BFloat16": 2, "short": 2,
    "bool": 1, "unsigned char": 1, "signed char": 1, "c10::Float8_e4m3fn": 1, "c10::Float8_e5m2": 1,
    "c10::complex<float>": 8,
}  # fmt: skip
# Half, float, double and bfloat16 in c10/core/ScalarType.h.
_OF_SCALAR_TYPE: Mapping[str, int] = {"5": 2, "6": 4, "7": 8, "15": 2}
_INDEX_BYTES = 8
_ATTENTION_BACKWARD = 2.5  # times the products of a forward pass (arXiv 2307.08691)
_MOST = 2**46  # elements of what fits no GPU
_WHOLE = re.compile(r"\d{1,9}")


# As they are recorded: "Input Dims", "Input type" and "Concrete Inputs".
Arguments = tuple[Sequence[Any], Sequence[Any], Sequence[Any]]


class _Tensor(NamedTuple):
    sizes: tuple[int, ...]
    elements: int
    bytes: int
    dtype: Dtype | None


def part_of(operator: str) -> Part:
    """The part of a step that an operator is, without its `aten::`."""
    fused = INDUCTOR.match(operator)
    if fused is not None:
        if fused["kind"] in ("tem", "mm"):
            return "convolution" if "convolution" in operator else "linear"
        return "normalisation" if _NORM.search(operator) else "pointwise" if fused["kind"] == "poi" else "pool"
    return next((part for pattern, part in _PARTS if pattern.search(operator)), "pointwise")


def work_of(operator: str, arguments: Arguments, usual: int) -> RecordedWork:
    """What one call does; without `moved` where the sizes of its arguments do not tell.

    `usual`: bytes of an element in a list of tensors, whose dtype is not recorded.
    """
    part = part_of(operator)
    dims, types, values = arguments
    if part == "convolution":
        return RecordedWork(part=part, op=operator)
    tensors = list(_tensors(dims, types, usual if part != "optimizer" else 4))
    if not tensors or any(tensor.elements > _MOST for tensor in tensors):
        return RecordedWork(part=part, op=operator)
    read = sum(tensor.elements * tensor.bytes for tensor in tensors)
    widest = max(tensors, key=lambda tensor: tensor.elements)
    whole = widest.elements * widest.bytes
    if part in ("linear", "attention"):
        product = (_attention if part == "attention" else _product)(operator, tensors)
        if product is None:
            return RecordedWork(part=part, op=operator)
        batch, M, N, K, flops, written = product
        dtype = next((tensor.dtype for tensor in tensors if tensor.dtype is not None), None)
        gemm = (M, N, K) if batch == 1 and part == "linear" else ()
        return RecordedWork(
            part=part, op=operator, moved=read + written * tensors[-1].bytes, flops=flops, gemm=gemm, dtype=dtype
        )
    if INDUCTOR.match(operator):
        return RecordedWork(part=part, op=operator, moved=read)  # outputs stand among its arguments
    written, strided = whole, False
    if part == "normalisation":
        trains = operator.startswith(("batch_norm", "cudnn_batch", "native_batch")) and _text(values, 5) == "True"
        # Statistics take a pass of their own, backward sums of both operands.
        again = operator.endswith("backward") or trains or operator.startswith(("group_norm", "native_group_norm"))
        written += read if again else 0
    elif part == "pool":
        written = _pooled(operator, tensors, values)
    elif part == "optimizer":
        first = sum(tensor.elements * tensor.bytes for tensor in _tensors(dims[:1], types[:1], 4))
        written = first * (3 if operator.startswith("_fused_adam") else 1)
    elif part == "copy":
        written, strided = _copied(operator, tensors, values, read), True
        read = min(read, written) if operator.startswith(("index", "embedding", "gather")) else read
        if operator.startswith("copy_"):
            written = 0  # the target is the first of what is "read"
    elif operator in ("zero_", "fill_"):
        read = 0
    return RecordedWork(part=part, op=operator, moved=read + written, strided=strided)


def _tensors(dims: Sequence[Any], types: Sequence[Any], usual: int) -> Iterator[_Tensor]:
    """The tensors among the arguments, those of lists one by one."""
    for sizes, kind in zip(dims, types, strict=False):
        if kind == "TensorList" and isinstance(sizes, list):
            yield from (_Tensor(one, prod(one), usual, None) for each in sizes if (one := _sizes(each)))
        elif isinstance(kind, str) and kind in _BYTES and (own := _sizes(sizes)):
            yield _Tensor(own, prod(own), _BYTES[kind], _DTYPES.get(kind))


def _sizes(value: Any) -> tuple[int, ...]:
    is_list = isinstance(value, list) and len(value) <= 8
    return tuple(value) if is_list and all(type(size) is int and 0 < size < _MOST for size in value) else ()


def _text(values: Sequence[Any], place: int) -> str:
    value = values[place] if place < len(values) else ""
    return value[:200] if isinstance(value, str) else ""


def _product(operator: str, tensors: Sequence[_Tensor]) -> tuple[int, int, int, int, int, int] | None:
    """(batch, M, N, K, FLOPs, elements written) of a matrix product; None where its operands are not told."""
    operands = [tensor.sizes for tensor in tensors if len(tensor.sizes) > 1]
    if operator.startswith(("addmm", "baddbmm", "_addmm", "addbmm")) and len(operands) > 2:
        operands = operands[1:]  # behind what is added
    if len(operands) < 2:
        return None
    left, right = operands[0], operands[1]
    if operator.startswith("linear"):
        right = right[::-1]
    if left[-1] != right[-2]:
        return None
    batch = 1 if len(right) == 2 else max(prod(left[:-2]), prod(right[:-2]))
    M = prod(left[:-1]) if len(right) == 2 else left[-2]
    N, K = right[-1], left[-1]
    return batch, M, N, K, 2 * batch * M * N * K, batch * M * N


def _attention(operator: str, tensors: Sequence[_Tensor]) -> tuple[int, int, int, int, int, int] | None:
    """The same of attention, whose operands are (batch, heads, positions, width)."""
    is_backward = "backward" in operator
    operands = [tensor.sizes for tensor in tensors if len(tensor.sizes) == 4][is_backward:]
    if len(operands) < 2:
        return None
    query, key = operands[0], operands[1]
    batch, M, K, N = query[0] * query[1], query[2], query[3], key[2]
    flops = 4 * batch * M * N * K
    written = prod(query) * (3 if is_backward else 1)
    return batch, M, N, K, round(flops * _ATTENTION_BACKWARD) if is_backward else flops, written


def _pooled(operator: str, tensors: Sequence[_Tensor], values: Sequence[Any]) -> int:
    """The bytes that a pool, a sum or a resize writes."""
    first = max(tensors, key=lambda tensor: len(tensor.sizes))
    maps, numbers = first.sizes[2:], tuple(map(int, _WHOLE.findall(_text(values, 1))))
    if "backward" in operator:
        return max(tensor.elements for tensor in tensors) * first.bytes
    if len(numbers) == 1:
        numbers *= len(maps)
    if not maps or len(numbers) != len(maps) or not all(numbers):
        return 0
    channels = prod(first.sizes[:2])
    if "adaptive" in operator or "upsample" in operator:
        return channels * prod(numbers) * first.bytes
    if "max_pool" in operator or "avg_pool" in operator:
        steps = tuple(map(int, _WHOLE.findall(_text(values, 2)))) or numbers
        steps = steps * len(maps) if len(steps) == 1 else steps
        if len(steps) != len(maps) or not all(steps):
            return 0
        count = channels * prod(max(1, size // by) for size, by in zip(maps, steps, strict=True))
        return count * (first.bytes + (_INDEX_BYTES if "max" in operator else 0))
    return 0


def _copied(operator: str, tensors: Sequence[_Tensor], values: Sequence[Any], read: int) -> int:
    """The bytes that a copy writes; a cast names its dtype by a number."""
    first = tensors[0]
    if operator in ("to", "_to_copy"):
        into = _OF_SCALAR_TYPE.get(_text(values, 1)) or _OF_SCALAR_TYPE.get(_text(values, 2))
        return first.elements * (into or first.bytes)
    if operator.startswith("embedding") and len(tensors) > 1 and len(first.sizes) == 2:
        return tensors[1].elements * first.sizes[1] * first.bytes
    return read
