"""What a trace of PyTorch's profiler recorded of convolutions: each call with its arguments, kernels and place."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeGuard

from msgspec import Struct, field

from convlint.model.errors import InputFault
from convlint.readers.trace.events import TraceFile

MOST_CALLS = 200_000
_MOST_NAMES = 500_000  # distinct ones: of kernels and of frames
_MOST_FRAMES = 20_000_000

# Operators whose call is a convolution, and where their arguments stand; one calls another.
_FORWARD: Mapping[str, Mapping[str, int]] = {
    "aten::convolution": {
        "input": 0, "weight": 1, "bias": 2, "stride": 3, "padding": 4, "dilation": 5, "transposed": 6,
        "output_padding": 7, "groups": 8,
    },
    "aten::_convolution": {
        "input": 0, "weight": 1, "bias": 2, "stride": 3, "padding": 4, "dilation": 5, "transposed": 6,
        "output_padding": 7, "groups": 8,
    },
    "aten::cudnn_convolution": {"input": 0, "weight": 1, "padding": 2, "stride": 3, "dilation": 4, "groups": 5},
    "aten::cudnn_convolution_transpose": {
        "input": 0, "weight": 1, "padding": 2, "output_padding": 3, "stride": 4, "dilation": 5, "groups": 6,
    },
}  # fmt: skip
_BACKWARD: Mapping[str, Mapping[str, int]] = {
    "aten::convolution_backward": {
        "input": 1, "weight": 2, "stride": 4, "padding": 5, "dilation": 6, "transposed": 7, "output_padding": 8,
        "groups": 9, "mask": 10,
    },
}  # fmt: skip
_WRAPPERS = re.compile(r"aten::conv(_transpose)?[123]d")  # the bias may be added in them
_OF_AUTOGRAD = "autograd::engine::evaluate_function: ConvolutionBackward"
_AMD = re.compile(r"miopen|\bAMD\b|Radeon|Instinct", re.IGNORECASE)
_STEP = re.compile(r"ProfilerStep#\d+")
_WARM_UP = re.compile(r"warm[-_ ]?up", re.IGNORECASE)
_FRAME = re.compile(r"(?P<path>.+\.py)\((?P<line>\d+)\): ")
_LIBRARY = re.compile(r"(^|/)(torch|site-packages|dist-packages|lib/python[\d.]+|threading\.py|<)")

Kind = Literal["forward", "backward"]


class Kernel(Struct, frozen=True):
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
    arguments: Mapping[str, Argument]
    sequence: int | None = None
    warm_up: bool = False
    kernels: list[Kernel] = field(default_factory=list)
    modules: tuple[str, ...] = ()
    place: tuple[str, int] | None = None


class Argument(Struct, frozen=True):
    """One argument of an operator; what was not recorded is empty."""

    sizes: tuple[int, ...] = ()
    dtype: str = ""
    strides: tuple[int, ...] = ()
    value: str = ""


class Recording(Struct, kw_only=True):
    """All of a trace that convolutions are told from. `steps` are the spans of complete steps, in us."""

    calls: list[Call]
    steps: list[tuple[float, float]]
    device: Mapping[str, Any]
    fault: str
    has_kernels: bool
    tf32: bool


class _Names:
    """Texts by number: millions of events have a few thousand names."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        """That of a text."""
        found = self._numbers.get(text)
        if found is None:
            if len(self.texts) >= _MOST_NAMES:
                raise InputFault(f"a trace with more than {_MOST_NAMES:,} names is not read")
            found = self._numbers[text] = len(self.texts)
            self.texts.append(text)
        return found


class _Spans:
    """Spans of many events as columns: when each begins and ends, and a number."""

    def __init__(self) -> None:
        self.begin, self.end, self.what = array("d"), array("d"), array("q")

    def add(self, begin: float, end: float, what: int) -> None:
        """One more."""
        self.begin.append(begin)
        self.end.append(end)
        self.what.append(what)

    def ordered(self) -> list[int]:
        """Their indices by time, what encloses another before it."""
        return sorted(range(len(self.begin)), key=lambda index: (self.begin[index], -self.end[index]))


def recorded(file: TraceFile) -> Recording:
    """Reads a whole trace. Raises InputFault for what is none, or is too much."""
    reading = _Reading()
    for event in file.events():
        reading.take(event)
    return reading.result(file)


class _Reading:
    def __init__(self) -> None:
        self.calls: dict[str, list[Call]] = {}  # by thread
        self.wrappers: dict[str, _Spans] = {}
        self.autograd: dict[str, _Spans] = {}  # evaluations of a convolution's gradient, with their sequence number
        self.frames: dict[str, _Spans] = {}
        self.names = _Names()
        self.launches: dict[str, _Spans] = {}  # `what` is the correlation
        self.kernel_of, self.kernel_us, self.kernel_name = array("q"), array("d"), array("q")
        self.annotations: list[tuple[float, float, str]] = []
        self.count = 0

    def take(self, event: Mapping[str, Any]) -> None:
        """Keeps what is needed of one event; whatever is not as it should be is passed over."""
        if event.get("ph") != "X":
            return
        category, name = event.get("cat"), event.get("name")
        begin, length = event.get("ts"), event.get("dur")
        if not isinstance(name, str) or not isinstance(begin, int | float) or not isinstance(length, int | float):
            return
        if length < 0 or isinstance(begin, bool):
            return
        arguments = event.get("args")
        values: Mapping[str, Any] = arguments if isinstance(arguments, dict) else {}
        end = begin + length
        if category in ("kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset"):
            correlation = values.get("correlation")
            if _is_count(correlation):
                self.kernel_of.append(correlation)
                self.kernel_us.append(float(length))
                self.kernel_name.append(self.names.number(name[:2000]))
            return
        thread = f"{event.get('pid')} {event.get('tid')}"
        if category in ("cpu_op", "Operator"):
            self._operator(name, begin, end, thread, values)
        elif category in ("cuda_runtime", "cuda_driver", "Runtime"):
            correlation = values.get("correlation")
            if _is_count(correlation):
                self.launches.setdefault(thread, _Spans()).add(begin, end, correlation)
        elif category == "python_function":
            self._frame(name, begin, end, thread)
        elif category == "user_annotation":
            self.annotations.append((begin, end, name))

    def _operator(self, name: str, begin: float, end: float, thread: str, values: Mapping[str, Any]) -> None:
        if "miopen" in name:
            raise InputFault("recorded on an AMD GPU, of which convlint knows nothing")
        kinds: tuple[tuple[Kind, Mapping[str, Mapping[str, int]]], ...] = (
            ("forward", _FORWARD), ("backward", _BACKWARD),
        )  # fmt: skip
        for kind, known in kinds:
            places = known.get(name)
            if places is not None:
                self.count += 1
                if self.count > MOST_CALLS:
                    raise InputFault(f"more than {MOST_CALLS:,} calls of convolutions: record fewer steps")
                call = Call(
                    kind=kind, operator=name, begin=begin, end=end, thread=thread,
                    arguments=_arguments(places, values), sequence=_whole(values.get("Sequence number")),
                )  # fmt: skip
                self.calls.setdefault(thread, []).append(call)
                return
        if _WRAPPERS.fullmatch(name):
            self.wrappers.setdefault(thread, _Spans()).add(begin, end, 0)
        elif name.startswith(_OF_AUTOGRAD):
            sequence = _whole(values.get("Sequence number"))
            self.autograd.setdefault(thread, _Spans()).add(begin, end, -1 if sequence is None else sequence)

    def _frame(self, name: str, begin: float, end: float, thread: str) -> None:
        is_module = name.startswith("nn.Module: ")
        if not is_module and (_LIBRARY.search(name) is not None or _FRAME.match(name) is None):
            return
        spans = self.frames.setdefault(thread, _Spans())
        if len(spans.begin) < _MOST_FRAMES:
            spans.add(begin, end, self.names.number(name[:500]))

    def result(self, file: TraceFile) -> Recording:
        """What the events come to."""
        device = _device(file.top)
        if _AMD.search(str(device.get("name", ""))):
            raise InputFault("recorded on an AMD GPU, of which convlint knows nothing")
        calls = [call for thread, several in self.calls.items() for call in self._outermost(thread, several)]
        calls.sort(key=lambda call: call.begin)
        self._place(calls)
        by_correlation = self._launched(calls)
        tf32 = False
        for number in range(len(self.kernel_of)):
            call = by_correlation.get(self.kernel_of[number])
            if call is not None:
                name = self.names.texts[self.kernel_name[number]]
                tf32 = tf32 or "tf32" in name
                call.kernels.append(Kernel(name, self.kernel_us[number]))
        steps = [(begin, end) for begin, end, name in self.annotations if _STEP.fullmatch(name)]
        warm = [(begin, end) for begin, end, name in self.annotations if _WARM_UP.search(name)]
        for call in calls:
            call.warm_up = any(begin <= call.begin <= end for begin, end in warm)
        return Recording(
            calls=calls, steps=sorted(steps), device=device, fault=file.fault, has_kernels=len(self.kernel_of) > 0,
            tf32=tf32,
        )  # fmt: skip

    def _outermost(self, thread: str, calls: Sequence[Call]) -> Iterator[Call]:
        """The calls that no other is part of, from where the operator that wraps each begins to where it ends."""
        wrappers = self.wrappers.get(thread, _Spans())
        around = _Enclosing(wrappers)
        autograd = _Enclosing(self.autograd.get(thread, _Spans()))
        last: Call | None = None
        for call in sorted(calls, key=lambda call: (call.begin, -call.end)):
            if last is not None and call.begin < last.end and call.kind == last.kind:
                if not any(argument.sizes for argument in last.arguments.values()):
                    last.arguments = call.arguments  # an older profiler tells more of an inner one
                continue
            found = around.of(call.begin, call.end)
            if found is not None:
                call.begin, call.end = wrappers.begin[found], wrappers.end[found]
            if call.kind == "backward":
                evaluated = autograd.of(call.begin, call.end)
                if evaluated is not None and autograd.spans.what[evaluated] >= 0:
                    call.sequence = autograd.spans.what[evaluated]
            last = call
            yield call

    def _launched(self, calls: Iterable[Call]) -> dict[int, Call]:
        """The call in which each kernel of a convolution was launched, by correlation."""
        found: dict[int, Call] = {}
        of_thread: dict[str, list[Call]] = {}
        for call in calls:
            of_thread.setdefault(call.thread, []).append(call)
        for thread, several in of_thread.items():
            begins = [call.begin for call in several]
            launches = self.launches.get(thread, _Spans())
            for index, begin in enumerate(launches.begin):
                place = bisect_right(begins, begin) - 1
                if place >= 0 and begin <= several[place].end:
                    found[launches.what[index]] = several[place]
        return found

    def _place(self, calls: Iterable[Call]) -> None:
        """Sets of each forward call the modules and the user's line around it, where they were recorded."""
        for thread, frames in self.frames.items():
            own = [call for call in calls if call.thread == thread and call.kind == "forward"]
            order = frames.ordered()
            stack: list[int] = []
            at = 0
            for call in own:
                while at < len(order) and frames.begin[order[at]] <= call.begin:
                    index = order[at]
                    stack = [each for each in stack if frames.end[each] >= frames.begin[index]]
                    stack.append(index)
                    at += 1
                stack = [each for each in stack if frames.end[each] >= call.begin]
                names = [self.names.texts[frames.what[each]] for each in stack if frames.end[each] >= call.end]
                call.modules = tuple(name.removeprefix("nn.Module: ") for name in names if name.startswith("nn.Module"))
                lines = [match for name in names if (match := _FRAME.match(name)) is not None]
                if lines:
                    call.place = lines[-1]["path"], int(lines[-1]["line"][:9])


class _Enclosing:
    """Which of many spans encloses a given one; those of one thread are inside each other or apart."""

    def __init__(self, spans: _Spans) -> None:
        self.spans = spans
        self._order = spans.ordered()
        self._begins = [spans.begin[index] for index in self._order]

    def of(self, begin: float, end: float) -> int | None:
        """The index of one that begins last before it and ends after it."""
        place = bisect_right(self._begins, begin) - 1
        for back in range(place, max(-1, place - 3), -1):
            index = self._order[back]
            if self.spans.end[index] >= end:
                return index
        return None


def _arguments(places: Mapping[str, int], values: Mapping[str, Any]) -> dict[str, Argument]:
    sizes, dtypes = _listed(values, "Input Dims", "Input dims"), _listed(values, "Input type")
    strides, concrete = _listed(values, "Input Strides"), _listed(values, "Concrete Inputs")
    return {
        name: Argument(
            sizes=_numbers(_at(sizes, place)), dtype=_text(_at(dtypes, place)),
            strides=_numbers(_at(strides, place)), value=_text(_at(concrete, place)),
        )
        for name, place in places.items()
    }  # fmt: skip


def _listed(values: Mapping[str, Any], *names: str) -> Sequence[Any]:
    found = next((values[name] for name in names if name in values), ())
    return found if isinstance(found, list) else ()


def _at(values: Sequence[Any], place: int) -> Any:
    return values[place] if place < len(values) else None


def _numbers(value: Any) -> tuple[int, ...]:
    is_list = isinstance(value, list) and len(value) <= 8 and all(map(_is_count, value))
    return tuple(value) if is_list else ()


def _is_count(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**62


def _text(value: Any) -> str:
    return value[:200] if isinstance(value, str) else ""


def _whole(value: Any) -> int | None:
    return value if _is_count(value) else None


def _device(top: Mapping[str, Any]) -> Mapping[str, Any]:
    devices = top.get("deviceProperties")
    first = devices[0] if isinstance(devices, list) and devices else None
    return first if isinstance(first, dict) else {}
