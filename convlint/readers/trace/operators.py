"""What an operator of PyTorch does, by its name and its recorded arguments: its part of a step, bytes and products."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import inf, prod
from typing import Any, NamedTuple

from msgspec.structs import replace

from convlint.model.estimates import Part
from convlint.model.layer import Dtype
from convlint.model.network import RecordedWork
from convlint.readers.trace.events import listed, text_at

# The first that fits an operator counts, all others are pointwise.
_PARTS: tuple[tuple[re.Pattern[str], Part], ...] = (
    (re.compile(r"conv(olution|_|[123]d|$)"), "convolution"),
    (re.compile(r"attention"), "attention"),
    (re.compile(r"upsample|interpolate|grid_sampler"), "pool"),
    (re.compile(r"linear|matmul|(^|_)(b|v|badd|add)?(mm|mv)(_|$)|einsum|bilinear$"), "linear"),
    (re.compile(r"(batch|layer|group|instance|rms)_norm"), "normalisation"),
    (re.compile(r"pool|^(sum|mean|prod|norm|linalg_vector_norm|std|var|a?m(ax|in)|arg(max|min))($|[._])"), "pool"),
    (re.compile(r"^_?(amp_)?foreach|^_fused_(adam|sgd|adagrad)"), "optimizer"),
    (re.compile(r"copy|^(to|clone|contiguous|cat|stack|.*pad.*|index.*|embedding.*|gather|repeat.*|im2col)$"), "copy"),
)
# A kernel of Inductor's is named after what is fused in it: triton_poi_fused_convolution_relu_3 adds a bias to what a
# convolution of a library gave; a template (triton_tem_) is a product itself (torch/_inductor/codegen/triton.py).
INDUCTOR = re.compile(r"triton_(?P<kind>poi|per|red|tem|for|spl|mm)_")
# Networks of their own, whose kernels inside have sizes of other operators.
_COMPOSITE = re.compile(r"transformer_encoder|lstm|(^|_)gru|(^|_)rnn|einsum")
_SIZED_BY_RESULT = ("index", "embedding", "gather", "take", "slice", "select", "narrow")
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
_FACTOR = re.compile(r"\d{1,4}\.\d{0,9}")  # of a size that is multiplied


# As they are recorded: "Input Dims", "Input type" and "Concrete Inputs".
Arguments = tuple[Sequence[Any], Sequence[Any], Sequence[Any]]


# Operators inside of others whose kernels are booked on them: products, of which autocast has cast the operands, and
# copies, which its casts are.
_INNER = frozenset(("addmm", "mm", "bmm", "baddbmm", "_scaled_mm", "_int_mm", "copy_"))
_MOST_CHARACTERS = 20_000_000  # characters of all arguments
_MOST_SIGNATURES = 40_000
_UNKNOWN = 0  # the signature of operators that are not known, or not told apart
_IN_CONVOLUTION = -1
_OVER_LINK = re.compile(r"Memcpy (HtoD|DtoH)")  # beside the kernels, by engines of their own
TOO_LONG = 3.0  # times the median of steps, or of a layer's calls: algorithms were tried


class Spans:
    """Spans of many events as columns, since a trace has millions: when each begins and ends, and a number."""

    def __init__(self) -> None:
        self.begin, self.end, self.what = array("d"), array("d"), array("q")

    def add(self, begin: float, end: float, what: int) -> None:
        """Appends a span."""
        self.begin.append(begin)
        self.end.append(end)
        self.what.append(what)

    def is_outer(self, begin: float, end: float) -> bool:
        """Whether the last span does not enclose it."""
        return not self.begin or begin < self.begin[-1] or self.end[-1] < end

    def add_outer(self, begin: float, end: float, what: int) -> None:
        """Appends a span unless the last one encloses it; removes those that it encloses."""
        if not self.is_outer(begin, end):
            return
        while self.begin and begin <= self.begin[-1] and self.end[-1] <= end:
            for column in (self.begin, self.end, self.what):
                column.pop()
        self.add(begin, end, what)

    def ordered(self) -> list[int]:
        """Their indices by time, enclosing spans first."""
        return sorted(range(len(self.begin)), key=lambda index: (self.begin[index], -self.end[index]))


class Enclosing:
    """Finds the span that encloses a given one. Spans of one thread are nested or disjoint."""

    def __init__(self, spans: Spans) -> None:
        self.spans = spans
        self._order = spans.ordered()
        self._begins = [spans.begin[index] for index in self._order]

    def of(self, begin: float, end: float) -> int | None:
        """The index of the latest span that begins before it and ends after it."""
        place = bisect_right(self._begins, begin) - 1
        for back in range(place, max(-1, place - 3), -1):
            index = self._order[back]
            if self.spans.end[index] >= end:
                return index
        return None


class Kernels(NamedTuple):
    """All kernels as columns: the correlation of each, its time in us and the place of its name in `names`."""

    correlation: Sequence[int]
    us: Sequence[float]
    name: Sequence[int]
    names: Sequence[str]


class KernelWorks(NamedTuple):
    """The work of all kernels; `steps` is the number of steps that they belong to, None where none is marked."""

    works: Sequence[RecordedWork]
    operations: int  # that launch kernels, forward
    steps: int | None


class OperatorLog:
    """The operators of a trace: the outermost ones, and those inside of them that are in `_INNER`."""

    def __init__(self) -> None:
        self.outer: dict[str, Spans] = {}  # by thread; `what` is a place in `signatures`
        self.inner: dict[str, Spans] = {}
        self.gradients: dict[str, Spans] = {}
        self.signatures: list[tuple[str, Arguments]] = [("", ((), (), ()))]
        self._numbers: dict[str, int] = {}
        self._characters = 0

    def take(self, operator: str, begin: float, end: float, thread: str, values: Mapping[str, Any]) -> None:
        """Keeps a call of an operator, which is named without its `aten::`."""
        spans = self.outer.setdefault(thread, Spans())
        is_inner = operator in _INNER
        if not is_inner and not spans.is_outer(begin, end):
            return
        signature = self._signature(operator, values)
        spans.add_outer(begin, end, signature)
        if is_inner:
            self.inner.setdefault(thread, Spans()).add(begin, end, signature)

    def take_gradient(self, begin: float, end: float, thread: str) -> None:
        """Keeps an evaluation of a gradient."""
        self.gradients.setdefault(thread, Spans()).add_outer(begin, end, 0)

    def _signature(self, operator: str, values: Mapping[str, Any]) -> int:
        """The number of an operator with its arguments, which calls of every step share."""
        sizes, dtypes = listed(values, "Input Dims", "Input dims"), listed(values, "Input type")
        arguments: Arguments = sizes, dtypes, listed(values, "Concrete Inputs")
        key = repr((operator, arguments))
        if key not in self._numbers and self._characters + len(key) > _MOST_CHARACTERS:
            key, arguments = operator, ((), (), ())  # its name is enough to measure it
        if key not in self._numbers:
            if len(self.signatures) >= _MOST_SIGNATURES:
                return _UNKNOWN
            self._numbers[key] = len(self.signatures)
            self._characters += len(key)
            self.signatures.append((operator, arguments))
        return self._numbers[key]

    def works(
        self, launches: Mapping[str, Spans], kernels: Kernels, in_calls: Mapping[int, object],
        steps: Sequence[tuple[float, float]], warm: Sequence[tuple[float, float]], usual: int,
    ) -> KernelWorks:  # fmt: skip
        """What the kernels are for: a convolution, if launched in its call, else the operator around the launch.

        Of marked steps the steady ones count. What is launched in warm-ups counts where nothing else is.
        """
        signature_of: dict[int, tuple[int, int]] = {}  # and the step, of each correlation
        calls: Counter[tuple[int, int]] = Counter()
        forward: Counter[int] = Counter()
        for thread, spans in launches.items():
            outer, inner = Enclosing(self.outer.get(thread, Spans())), Enclosing(self.inner.get(thread, Spans()))
            gradients = Enclosing(self.gradients.get(thread, Spans()))
            launching, started = set[tuple[int, int, bool]](), set[tuple[int, int]]()
            ran = set[int]()  # calls of convolutions
            for number, begin in enumerate(spans.begin):
                step = place_of(steps, begin) if steps else 0
                if step is None or (place_of(warm, begin) is not None and not steps):
                    continue
                correlation = spans.what[number]
                within, around = inner.of(begin, begin), outer.of(begin, begin)
                at, of = (around, outer) if within is None else (within, inner)
                call = in_calls.get(correlation)
                if call is not None:
                    signature_of[correlation] = _IN_CONVOLUTION, step
                    calls[_IN_CONVOLUTION, step] += id(call) not in ran
                    ran.add(id(call))
                elif at is None:
                    signature_of[correlation] = _UNKNOWN, step
                else:
                    what = of.spans.what[at]
                    signature_of[correlation] = what, step
                    calls[what, step] += (at, step, of is inner) not in launching
                    launching.add((at, step, of is inner))
                if around is not None and (around, step) not in started:
                    started.add((around, step))
                    operator, _ = self.signatures[outer.spans.what[around]]
                    forward[step] += gradients.of(begin, begin) is None and part_of(operator) != "optimizer"
        return self._added_up(kernels, signature_of, calls, forward, len(steps), usual)

    def _added_up(
        self, kernels: Kernels, signature_of: Mapping[int, tuple[int, int]], calls: Mapping[tuple[int, int], int],
        forward: Mapping[int, int], marked: int, usual: int,
    ) -> KernelWorks:  # fmt: skip
        us: dict[tuple[int, int], float] = {}
        count: Counter[tuple[int, int]] = Counter()
        beside = {number for number, name in enumerate(kernels.names) if _OVER_LINK.match(name)}
        for correlation, time_us, name in zip(kernels.correlation, kernels.us, kernels.name, strict=True):
            key = signature_of.get(correlation)
            if key is not None and name not in beside:
                us[key] = us.get(key, 0.0) + time_us
                count[key] += 1
        step_us: dict[int, float] = {}
        for (_, step), time_us in us.items():
            step_us[step] = step_us.get(step, 0.0) + time_us
        ordered = sorted(step_us.values())
        longest = TOO_LONG * ordered[(len(ordered) - 1) // 2] if ordered else 0.0
        steady = {step for step, time_us in step_us.items() if time_us <= longest}
        works: dict[int, RecordedWork] = {}
        for (signature, step), time_us in us.items():
            if step in steady:
                work = works.get(signature) or self._work(signature, usual)
                works[signature] = replace(
                    work, us=work.us + time_us, kernels=work.kernels + count[signature, step],
                    calls=work.calls + calls.get((signature, step), 0),
                )  # fmt: skip
        timed_works = [work if work.calls else replace(work, calls=1.0) for work in works.values() if work.us]
        operations = sum(forward.get(step, 0) for step in steady)
        return KernelWorks(timed_works, operations, len(steady) if marked else None)

    def _work(self, signature: int, usual: int) -> RecordedWork:
        if signature == _IN_CONVOLUTION:
            return RecordedWork(part="convolution", op="convolution")
        operator, arguments = self.signatures[signature]
        if signature == _UNKNOWN:
            return RecordedWork(part="other", op="others")
        work = work_of(operator, arguments, usual)
        # What a convolution's operator does outside of its call is no part of a layer.
        return replace(work, part="other") if work.part == "convolution" else work


def place_of(spans: Sequence[tuple[float, float]], at: float) -> int | None:
    """The index of the span that contains this time; the spans are in order and do not overlap."""
    place = bisect_right(spans, (at, inf)) - 1
    return place if place >= 0 and at < spans[place][1] else None


class _Tensor(NamedTuple):
    sizes: tuple[int, ...]
    elements: int
    bytes: int
    dtype: Dtype | None


def part_of(operator: str) -> Part:
    """The part of a step that an operator, named without its `aten::`, belongs to."""
    fused = INDUCTOR.match(operator)
    if fused is not None:
        if fused["kind"] in ("tem", "mm"):
            return "convolution" if "convolution" in operator else "linear"
        return "normalisation" if _NORM.search(operator) else "pointwise" if fused["kind"] == "poi" else "pool"
    return next((part for pattern, part in _PARTS if pattern.search(operator)), "pointwise")


def work_of(operator: str, arguments: Arguments, usual: int) -> RecordedWork:
    """The work of one call; `moved` is 0 where the sizes of its arguments are not enough to compute it.

    `usual`: bytes of an element in a list of tensors, whose dtype is not recorded.
    """
    part = part_of(operator)
    dims, types, values = arguments
    if part == "convolution":
        return RecordedWork(part=part, op=operator)
    tensors = list(_tensors(dims, types, usual if part != "optimizer" else 4))
    if _COMPOSITE.search(operator) or not tensors or any(tensor.elements > _MOST for tensor in tensors):
        return RecordedWork(part=part, op=operator)
    read = sum(tensor.elements * tensor.bytes for tensor in tensors)
    widest = max(tensors, key=lambda tensor: tensor.elements)
    widest_bytes = widest.elements * widest.bytes
    if part in ("linear", "attention"):
        product = (_attention if part == "attention" else _product)(operator, tensors)
        if product is None:
            return RecordedWork(part=part, op=operator)
        batch, M, N, K, flops, written = product
        dtype = next((tensor.dtype for tensor in tensors if tensor.dtype is not None), None)
        gemm = (M, N, K) if batch == 1 and part == "linear" else ()
        if part == "attention" and text_at(values, 5 if operator.startswith("scaled") else 4) == "True":
            flops //= 2  # causal
        moved = read + written * tensors[0].bytes
        return RecordedWork(part=part, op=operator, moved=moved, flops=flops, gemm=gemm, dtype=dtype)
    if INDUCTOR.match(operator):
        # Outputs stand among its arguments; what is worked on in place does once.
        in_place = sum(tensor.elements == widest.elements for tensor in tensors) == 1
        return RecordedWork(part=part, op=operator, moved=read + (widest_bytes if in_place else 0))
    written, strided, dtype, elements = widest_bytes, False, None, 0
    if part == "normalisation":
        trains = operator.startswith(("batch_norm", "cudnn_batch", "native_batch")) and text_at(values, 5) == "True"
        # Statistics take a pass of their own, backward sums of both operands.
        twice = operator.startswith(("group_norm", "native_group_norm", "instance_norm"))
        again = operator.endswith("backward") or trains or twice
        written += read if again else 0
        if trains or operator.startswith("native_batch_norm_backward"):
            dtype = widest.dtype
    elif part == "pool":
        written = _pooled(operator, tensors, values)
        elements = widest.elements if "max_pool" in operator else 0
    elif part == "optimizer":
        first = sum(tensor.elements * tensor.bytes for tensor in _tensors(dims[:1], types[:1], 4))
        written = first * (3 if operator.startswith("_fused_adam") else 2 if operator.startswith("_fused_sgd") else 1)
    elif part == "copy":
        written, strided = _copied(operator, tensors, values, read), True
        read = min(read, written) if operator.startswith(_SIZED_BY_RESULT) else read
        if operator.startswith("copy_"):
            written = 0  # the target is the first of what is "read"
    elif operator in ("zero_", "fill_"):
        read = 0
    elif operator in ("slice_backward", "select_backward"):
        written = prod(_numbers(text_at(values, 1), 1)) * widest.bytes  # the whole, which is filled with zeros
    moved = read + written
    return RecordedWork(part=part, op=operator, moved=moved, strided=strided, dtype=dtype, elements=elements)


def _tensors(dims: Sequence[Any], types: Sequence[Any], usual: int) -> Iterator[_Tensor]:
    """The tensors among the arguments, also those in lists."""
    for sizes, kind in zip(dims, types, strict=False):
        if kind == "TensorList" and isinstance(sizes, list):
            yield from (_Tensor(shape, prod(shape), usual, None) for item in sizes if (shape := _sizes(item)))
        elif isinstance(kind, str) and kind in _BYTES and (sizes == [] or _sizes(sizes)):
            own = _sizes(sizes)
            yield _Tensor(own, prod(own), _BYTES[kind], _DTYPES.get(kind))


def _sizes(value: Any) -> tuple[int, ...]:
    is_list = isinstance(value, list) and len(value) <= 8
    return tuple(value) if is_list and all(type(size) is int and 0 < size < _MOST for size in value) else ()


def _product(operator: str, tensors: Sequence[_Tensor]) -> tuple[int, int, int, int, int, int] | None:
    """(batch, M, N, K, FLOPs, elements written) of a matrix product; None for unknown operands."""
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
    """The same for attention, whose operands are (batch, heads, positions, width)."""
    is_backward = "backward" in operator
    operands = [tensor.sizes for tensor in tensors if len(tensor.sizes) == 4][is_backward:]
    if len(operands) < 2:
        return None
    query, key = operands[0], operands[1]
    if operator.startswith(("_flash_attention", "_efficient_attention")):  # (batch, positions, heads, width)
        query, key = ((shape[0], shape[2], shape[1], shape[3]) for shape in (query, key))
    batch, M, K, N = query[0] * query[1], query[2], query[3], key[2]
    flops = 4 * batch * M * N * K
    written = prod(query) * (3 if is_backward else 1)
    return batch, M, N, K, round(flops * _ATTENTION_BACKWARD) if is_backward else flops, written


def _pooled(operator: str, tensors: Sequence[_Tensor], values: Sequence[Any]) -> int:
    """The bytes that a pool, a sum or a resize writes."""
    first = max(tensors, key=lambda tensor: len(tensor.sizes))
    if "backward" in operator:
        return max(tensor.elements for tensor in tensors) * first.bytes
    maps, numbers = first.sizes[2:], _numbers(text_at(values, 1), len(first.sizes) - 2)
    channels = prod(first.sizes[:2])
    if "upsample" in operator and not numbers:
        factors = [float(factor) for place in range(1, 5) for factor in _FACTOR.findall(text_at(values, place))]
        return round(first.elements * prod(factors)) * first.bytes if len(factors) == len(maps) else 0
    if not maps or len(numbers) != len(maps) or not all(numbers):
        return 0
    if "adaptive" in operator or "upsample" in operator:
        return channels * prod(numbers) * first.bytes
    if "max_pool" in operator or "avg_pool" in operator:
        steps = _numbers(text_at(values, 2), len(maps)) or numbers
        if len(steps) != len(maps) or not all(steps):
            return 0
        count = channels * prod(max(1, size // by) for size, by in zip(maps, steps, strict=True))
        return count * (first.bytes + (_INDEX_BYTES if "max" in operator else 0))
    return 0


def _numbers(text: str, dims: int) -> tuple[int, ...]:
    """`[2, 2]` or `2`: a whole number for each dimension."""
    numbers = tuple(map(int, _WHOLE.findall(text))) if "." not in text else ()
    return numbers * dims if len(numbers) == 1 else numbers


def _copied(operator: str, tensors: Sequence[_Tensor], values: Sequence[Any], read: int) -> int:
    """The bytes that a copy writes; a cast names its dtype by a number."""
    first = tensors[0]
    if operator in ("to", "_to_copy"):
        into = _OF_SCALAR_TYPE.get(text_at(values, 1)) or _OF_SCALAR_TYPE.get(text_at(values, 2))
        return first.elements * (into or first.bytes)
    if operator.startswith("embedding") and len(tensors) > 1 and len(first.sizes) == 2:
        return tensors[1].elements * first.sizes[1] * first.bytes
    if operator.startswith("gather") and len(tensors) > 1:
        return tensors[-1].elements * first.bytes
    if operator.startswith("index") and "put" not in operator and len(tensors) > 1:
        return tensors[-1].elements * (first.elements // first.sizes[0]) * first.bytes  # whole rows
    return read
