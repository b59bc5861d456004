"""What a trace of PyTorch's profiler recorded of convolutions: each call with its arguments, kernels and place."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from convlint.model.errors import InputFault
from convlint.model.grouping import grouped
from convlint.readers.trace.events import TraceFile, is_count, listed, text_at
from convlint.readers.trace.operators import INDUCTOR, Enclosing, Kernels, KernelWorks, OperatorLog, Spans, place_of

MOST_CALLS = 2_000_000
_MOST_NAMES = 500_000  # distinct ones: of kernels and of frames
_MOST_FRAMES = 20_000_000
_MOST_ANNOTATIONS = 100_000
_MOST_KEPT = 20_000  # distinct arguments
_SIGNATURE = ("Input Dims", "Input dims", "Input type", "Input Strides", "Concrete Inputs")
_OF_TWO_BYTES = ("c10::Half", "c10::BFloat16")
_DEEPEST = 200  # frames that are looked at around a call
_LONGEST_US, _LATEST_US = 1e10, 1e18


# Operators whose call is a convolution, and where their arguments stand; one calls another.
def _places(*names: str) -> Mapping[str, int]:
    """Where each argument stands, counted from 0; `_` stands for those that are not looked at."""
    return {name: place for place, name in enumerate(names) if name != "_"}


_USUAL = ("input", "weight", "bias", "stride", "padding", "dilation")
_DEPTHWISE = _places("input", "weight", "_", "bias", "stride", "padding", "dilation")
_BACKWARD = "aten::convolution_backward"  # all others are forward
_OPERATORS: Mapping[str, Mapping[str, int]] = {
    "aten::convolution": _places(*_USUAL, "transposed", "output_padding", "groups"),
    "aten::_convolution": _places(
        *_USUAL, "transposed", "output_padding", "groups", "benchmark", "deterministic", "_", "allow_tf32"
    ),
    "aten::cudnn_convolution_relu": _places(*_USUAL, "groups"),
    "aten::cudnn_convolution_add_relu": _places(
        "input", "weight", "_", "_", "bias", "stride", "padding", "dilation", "groups"
    ),
    "aten::cudnn_convolution": _places("input", "weight", "padding", "stride", "dilation", "groups"),
    "aten::cudnn_convolution_transpose": _places(
        "input", "weight", "padding", "output_padding", "stride", "dilation", "groups"
    ),
    "aten::_conv_depthwise2d": _DEPTHWISE, "aten::conv_depthwise2d": _DEPTHWISE, "aten::conv_depthwise3d": _DEPTHWISE,
    _BACKWARD: _places(
        "_", "input", "weight", "_", "stride", "padding", "dilation", "transposed", "output_padding", "groups", "mask"
    ),
}  # fmt: skip
# A template of Inductor's, and the arguments of it that are looked at.
_TEMPLATE = "triton_tem_fused_"
_TEMPLATE_PLACES = {str(place): place for place in range(12)}
_EVALUATED, _CONVOLUTION = "autograd::engine::evaluate_function: ", "ConvolutionBackward"
_AMD = re.compile(r"miopen|\bAMD\b|Radeon|Instinct", re.IGNORECASE)
_STEP = re.compile(r"ProfilerStep#\d+")
_WARM_UP = re.compile(r"warm[-_ ]?up", re.IGNORECASE)
_FRAME = re.compile(r"(?P<path>.+\.py)\((?P<line>\d+)\): ")
_LIBRARY = re.compile(r"(^|/)(torch|site-packages|dist-packages|lib/python[\d.]+|threading\.py|<)")

Kind = Literal["forward", "backward"]


class KernelRun(Struct, frozen=True):
    """A kernel that a call launched: its name and its time in us."""

    name: str
    us: float


class Call(Struct, kw_only=True):
    """One call of a convolution. `arguments` are as recorded: dimensions, type, strides, or the value of a scalar."""

    kind: Kind
    operator: str
    begin: float  # in us
    end: float
    thread: str
    arguments: Mapping[str, OperatorArgument]
    sequence: int | None = None
    warm_up: bool = False
    in_step: bool = True  # in a marked step, if there are any
    kernels: Sequence[KernelRun] = ()
    modules: tuple[str, ...] = ()
    place: tuple[str, int] | None = None


class OperatorArgument(Struct, frozen=True):
    """One argument of an operator; what was not recorded is empty."""

    sizes: tuple[int, ...] = ()
    dtype: str = ""
    strides: tuple[int, ...] = ()
    value: str = ""


class TraceRecording(Struct, kw_only=True):
    """What a trace recorded of convolutions, outside of marked steps too.

    `steps` are the spans of the marked steps in which a convolution ran.
    """

    calls: list[Call]
    steps: list[tuple[float, float]]
    device: Mapping[str, Any]
    fault: str
    has_kernels: bool
    has_tf32_kernels: bool
    has_graphs: bool  # captured ones, which start all their kernels at once
    works: KernelWorks
    compiled: bool


def recorded(file: TraceFile) -> TraceRecording:
    """Reads a whole trace. Raises InputFault for a file that is no trace, or has too many calls or names."""
    reading = _Reading()
    for event in file.events():
        reading.take(event)
    return reading.result(file)


class _Reading:
    def __init__(self) -> None:
        self.calls: dict[str, list[Call]] = {}  # by thread
        self.autograd: dict[str, Spans] = {}  # evaluations of a convolution's gradient, with their sequence number
        self.frames: dict[str, Spans] = {}
        self.operators = OperatorLog()
        self.arguments: dict[str, Mapping[str, OperatorArgument]] = {}
        # By the ids of two: an entry holds them, so that no other object gets their ids.
        self.joined: dict[tuple[int, int], tuple[Mapping[str, OperatorArgument], ...]] = {}
        self.names: dict[str, int] = {}  # their numbers: millions of events share a few thousand
        self.threads: dict[tuple[Any, Any], str] = {}
        self.launches: dict[str, Spans] = {}  # `what` is the correlation
        self.kernel_of, self.kernel_begin, self.kernel_us = array("q"), array("d"), array("d")
        self.kernel_name, self.kernel_device = array("q"), array("q")
        self.annotations: list[tuple[float, float, str]] = []
        self.count = self.frame_count = 0
        self.has_graphs = False

    def take(self, event: Mapping[str, Any]) -> None:
        """Keeps what is needed of one event; malformed ones are ignored."""
        if event.get("ph") != "X":
            return
        category, name = event.get("cat"), event.get("name")
        begin, length = event.get("ts"), event.get("dur")
        if not isinstance(name, str) or not isinstance(begin, int | float) or not isinstance(length, int | float):
            return
        if not 0 <= length < _LONGEST_US or not abs(begin) < _LATEST_US:  # NaN is not either
            return
        arguments = event.get("args")
        values: Mapping[str, Any] = arguments if isinstance(arguments, dict) else {}
        end = begin + length
        if category in ("kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset"):
            correlation = values.get("correlation")
            if is_count(correlation):
                device = values.get("device")
                self.kernel_of.append(correlation)
                self.kernel_begin.append(float(begin))
                self.kernel_device.append(device if is_count(device) else 0)
                self.kernel_us.append(float(length))
                self.kernel_name.append(self._number_of_name(name[:2000]))
            return
        thread = self._thread(event.get("pid"), event.get("tid"))
        if category in ("cpu_op", "Operator"):
            self._operator(name, begin, end, thread, values)
        elif category in ("cuda_runtime", "cuda_driver", "Runtime"):
            self.has_graphs = self.has_graphs or name.startswith(("cudaGraphLaunch", "cuGraphLaunch"))
            correlation = values.get("correlation")
            if is_count(correlation):
                self.launches.setdefault(thread, Spans()).add(begin, end, correlation)
        elif category == "python_function":
            self._frame(name, begin, end, thread)
        elif category == "user_annotation" and len(self.annotations) < _MOST_ANNOTATIONS:
            name = name[:200]
            if _STEP.fullmatch(name) is not None or _WARM_UP.search(name) is not None:
                self.annotations.append((begin, end, name))

    def _number_of_name(self, name: str) -> int:
        """The number of a name."""
        if len(self.names) >= _MOST_NAMES and name not in self.names:
            raise InputFault(f"a trace with more than {_MOST_NAMES:,} names is not read")
        return self.names.setdefault(name, len(self.names))

    def _thread(self, process: Any, thread: Any) -> str:
        """The name of a thread, which all its events share."""
        try:
            name = self.threads.get((process, thread))
        except TypeError:  # no id at all
            return ""
        if name is None:
            name = f"{_id(process)} {_id(thread)}"
            if len(self.threads) < _MOST_KEPT:
                self.threads[process, thread] = name
        return name

    def _operator(self, name: str, begin: float, end: float, thread: str, values: Mapping[str, Any]) -> None:
        if name.startswith("aten::miopen_"):
            raise InputFault("recorded on an AMD GPU, of which convlint knows nothing")
        if name.startswith("aten::") or INDUCTOR.match(name) is not None:
            self.operators.take(name.removeprefix("aten::")[:200], begin, end, thread, values)
        if name.startswith(_TEMPLATE) and "convolution" in name and "backward" not in name:
            operands = self._arguments(name, _TEMPLATE_PLACES, values)
            if operands:
                self._keep(Call(kind="forward", operator=name, begin=begin, end=end, thread=thread, arguments=operands))
            return
        places = _OPERATORS.get(name)
        if places is not None:
            self._keep(Call(
                kind="backward" if name == _BACKWARD else "forward", operator=name, begin=begin, end=end, thread=thread,
                arguments=self._arguments(name, places, values), sequence=_whole(values.get("Sequence number")),
            ))  # fmt: skip
        elif name.startswith(_EVALUATED):
            self.operators.take_gradient(begin, end, thread)
            if name.startswith(_CONVOLUTION, len(_EVALUATED)):
                sequence = _whole(values.get("Sequence number"))
                self.autograd.setdefault(thread, Spans()).add(begin, end, -1 if sequence is None else sequence)

    def _keep(self, call: Call) -> None:
        self.count += 1
        if self.count > MOST_CALLS:
            raise InputFault(f"more than {MOST_CALLS:,} calls of convolutions: record fewer steps")
        self.calls.setdefault(call.thread, []).append(call)

    def _arguments(
        self, operator: str, places: Mapping[str, int], values: Mapping[str, Any]
    ) -> Mapping[str, OperatorArgument]:
        """The arguments of a call. Equal ones are shared, since every step runs the same layers."""
        signature = repr((operator, *(values.get(key) for key in _SIGNATURE)))
        arguments = self.arguments.get(signature)
        if arguments is None:
            arguments = _arguments(places, values)
            if places is _TEMPLATE_PLACES:
                arguments = _of_template(arguments)
            if len(self.arguments) < _MOST_KEPT:
                self.arguments[signature] = arguments
        return arguments

    def _frame(self, name: str, begin: float, end: float, thread: str) -> None:
        is_module = name.startswith("nn.Module: ")
        if not is_module and (_LIBRARY.search(name) is not None or _FRAME.match(name) is None):
            return
        self.frame_count += 1
        if self.frame_count <= _MOST_FRAMES:
            self.frames.setdefault(thread, Spans()).add(begin, end, self._number_of_name(name[:500]))

    def result(self, file: TraceFile) -> TraceRecording:
        """The recording of all events."""
        device = self._device(file.top)
        if _AMD.search(str(device.get("name", ""))):
            raise InputFault("recorded on an AMD GPU, of which convlint knows nothing")
        calls = [call for thread, thread_calls in self.calls.items() for call in self._outermost(thread, thread_calls)]
        calls.sort(key=lambda call: call.begin)
        names = list(self.names)
        self._place(calls, names)
        by_correlation = self._launched(calls)
        tf32, launched = False, dict[int, list[KernelRun]]()
        for number in sorted(range(len(self.kernel_of)), key=self.kernel_begin.__getitem__):
            call = by_correlation.get(self.kernel_of[number])
            if call is not None:
                name = names[self.kernel_name[number]]
                tf32 = tf32 or "tf32" in name
                launched.setdefault(id(call), []).append(KernelRun(name, self.kernel_us[number]))
        steps = sorted((begin, end) for begin, end, name in self.annotations if _STEP.fullmatch(name))
        starts = [call.begin for call in calls]
        marked = [(begin, end) for begin, end in steps if bisect_right(starts, end) > bisect_left(starts, begin)]
        warm = _merged((begin, end) for begin, end, name in self.annotations if _WARM_UP.search(name))
        for call in calls:
            call.kernels = launched.get(id(call), ())
            call.warm_up = place_of(warm, call.begin) is not None
            call.in_step = not marked or place_of(marked, call.begin) is not None
        kernels = Kernels(self.kernel_of, self.kernel_us, self.kernel_name, names)
        works = self.operators.works(
            self.launches, kernels, by_correlation, marked, warm if any(not call.warm_up for call in calls) else (),
            2 if any(call.arguments["input"].dtype in _OF_TWO_BYTES for call in calls) else 4,
        )  # fmt: skip
        return TraceRecording(
            calls=calls, steps=marked, device=device, fault=file.fault, has_kernels=len(self.kernel_of) > 0,
            has_tf32_kernels=tf32, has_graphs=self.has_graphs, works=works,
            compiled=any(INDUCTOR.match(name) is not None for name in names),
        )  # fmt: skip

    def _device(self, top: Mapping[str, Any]) -> Mapping[str, Any]:
        """The properties of the device that ran most kernels; empty where none were recorded."""
        listed = top.get("deviceProperties")
        devices = [device for device in listed[:1000] if isinstance(device, dict)] if isinstance(listed, list) else []
        used = Counter(self.kernel_device).most_common(1)
        index = used[0][0] if used else 0
        return next((device for device in devices if device.get("id") == index), devices[0] if devices else {})

    def _outermost(self, thread: str, calls: Sequence[Call]) -> Iterator[Call]:
        """The calls that are not part of another one, completed with the arguments of the calls inside them."""
        autograd = Enclosing(self.autograd.get(thread, Spans()))
        last: Call | None = None
        for call in sorted(calls, key=lambda call: (call.begin, -call.end)):
            if last is not None and call.begin < last.end and call.kind == last.kind:
                last.arguments = self._join(last.arguments, call.arguments)
                continue
            if call.kind == "backward":
                evaluated = autograd.of(call.begin, call.end)
                if evaluated is not None and autograd.spans.what[evaluated] >= 0:
                    call.sequence = autograd.spans.what[evaluated]
            last = call
            yield call

    def _join(
        self, outer: Mapping[str, OperatorArgument], inner: Mapping[str, OperatorArgument]
    ) -> Mapping[str, OperatorArgument]:
        pair = id(outer), id(inner)
        entry = self.joined.get(pair)
        if entry is None:
            entry = outer, inner, _joined(outer, inner)
            if len(self.joined) < _MOST_KEPT:
                self.joined[pair] = entry
        return entry[2]

    def _launched(self, calls: Iterable[Call]) -> dict[int, Call]:
        """The call in which each kernel of a convolution was launched, by correlation."""
        by_correlation: dict[int, Call] = {}
        for thread, thread_calls in grouped((call.thread, call) for call in calls).items():
            begins = [call.begin for call in thread_calls]
            launches = self.launches.get(thread, Spans())
            for index, begin in enumerate(launches.begin):
                place = bisect_right(begins, begin) - 1
                if place >= 0 and begin <= thread_calls[place].end:
                    by_correlation[launches.what[index]] = thread_calls[place]
        return by_correlation

    def _place(self, calls: Iterable[Call], names: Sequence[str]) -> None:
        """Sets the modules and the user's line of each forward call, where they were recorded."""
        of_thread = grouped((call.thread, call) for call in calls if call.kind == "forward")
        for thread, frames in self.frames.items():
            order = frames.ordered()
            stack: list[int] = []
            at = 0
            for call in of_thread.get(thread, ()):
                while at < len(order) and frames.begin[order[at]] <= call.begin:
                    while stack and frames.end[stack[-1]] < frames.begin[order[at]]:
                        stack.pop()
                    stack.append(order[at])
                    at += 1
                around = [index for index in stack[-_DEEPEST:] if frames.end[index] >= call.end]
                running = [names[frames.what[index]] for index in around]
                call.modules = tuple(
                    name.removeprefix("nn.Module: ") for name in running if name.startswith("nn.Module")
                )
                lines = [match for name in running if (match := _FRAME.match(name)) is not None]
                if lines:
                    call.place = lines[-1]["path"], int(lines[-1]["line"][:9])


def _arguments(places: Mapping[str, int], values: Mapping[str, Any]) -> dict[str, OperatorArgument]:
    sizes, dtypes = listed(values, "Input Dims", "Input dims"), listed(values, "Input type")
    strides, concrete = listed(values, "Input Strides"), listed(values, "Concrete Inputs")
    return {
        name: OperatorArgument(
            sizes=_numbers(_at(sizes, place)), dtype=text_at(dtypes, place),
            strides=_numbers(_at(strides, place)), value=text_at(concrete, place),
        )
        for name, place in places.items()
    }  # fmt: skip


def _at(values: Sequence[Any], place: int) -> Any:
    return values[place] if place < len(values) else None


def _numbers(value: Any) -> tuple[int, ...]:
    is_list = isinstance(value, list) and len(value) <= 8 and all(map(is_count, value))
    return tuple(value) if is_list else ()


def _whole(value: Any) -> int | None:
    return value if is_count(value) else None


def _of_template(arguments: Mapping[str, OperatorArgument]) -> dict[str, OperatorArgument]:
    """The arguments of a convolution that Inductor's template computes, by its input, weight and output (the last).

    Stride and padding stand in the kernel alone: they are the least stride, undilated, that leads to the output's size.
    Empty where there is none. (torch/_inductor/kernel/conv.py.)
    """
    tensors = [argument for argument in arguments.values() if len(argument.sizes) == 4]
    if len(tensors) < 3:
        return {}
    source, weight, output = tensors[0], tensors[1], tensors[-1]
    if source.sizes[0] != output.sizes[0] or weight.sizes[0] != output.sizes[1] or not all(weight.sizes):
        return {}
    steps = [_step(*sizes) for sizes in zip(source.sizes[2:], weight.sizes[2:], output.sizes[2:], strict=True)]
    groups, rest = divmod(source.sizes[1], weight.sizes[1])
    if rest or None in steps:
        return {}
    known = [step for step in steps if step is not None]
    return {
        "input": source, "weight": weight, "bias": OperatorArgument(), "transposed": OperatorArgument(value="False"),
        "stride": OperatorArgument(value=str([stride for stride, _ in known])),
        "padding": OperatorArgument(value=str([padding for _, padding in known])),
        "dilation": OperatorArgument(value="[1, 1]"), "groups": OperatorArgument(value=str(groups)),
    }  # fmt: skip


def _step(size: int, filters: int, output: int) -> tuple[int, int] | None:
    """(stride, padding) of an axis: the least stride whose padding is less than the filter."""
    # Without padding the stride is at least (size - filters) / output; with the most of it, `filters` more.
    least = max(1, (size - filters) // output)
    for stride in range(least, least + 2 * filters // output + 2):
        padding = max(0, -(-((output - 1) * stride + filters - size) // 2))
        if padding < filters and (size + 2 * padding - filters) // stride + 1 == output:
            return stride, padding
    return None


def _id(value: Any) -> str:
    """The id of a process or a thread as text."""
    return str(value)[:50] if isinstance(value, int | str) else ""


def _merged(spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """The spans in order of time, with overlapping ones merged."""
    merged: list[tuple[float, float]] = []
    for begin, end in sorted(spans):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((begin, end))
    return merged


def _joined(
    outer: Mapping[str, OperatorArgument], inner: Mapping[str, OperatorArgument]
) -> Mapping[str, OperatorArgument]:
    """The arguments of a call, completed by those of a call inside it; by all of them if the outer one has no sizes.

    The dtype is that of the inner call, since autocast may stand between them.
    """
    if not any(argument.sizes for argument in outer.values()):
        return {**outer, **inner}
    joined = {**inner, **outer}
    for name in ("input", "weight"):
        mine, other = outer.get(name), inner.get(name)
        if mine is not None and other is not None and other.dtype:
            joined[name] = replace(mine, dtype=other.dtype)
    return joined
