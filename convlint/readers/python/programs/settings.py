"""Settings that run a program: which statements set them, under which tests, and what they come to in the end."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Final, Literal

from msgspec import Struct

from convlint.model.location import Location
from convlint.model.source import ProgramSetting
from convlint.readers.python.evaluator.values import Const, Table, Unknown, Value
from convlint.readers.python.source_file import is_quiet

LiteralValue = bool | int | float | str | None

Kind = Literal["if", "doubt", "doomed", "elsewhere"]


class Condition(Struct, frozen=True):
    """A test that holds (`truth`) or does not. `key` is equal for tests that have one outcome in a run.

    `elsewhere`: in a function that something else is given, to call it later or in another process. `doubt`: in a loop
    or a `try`, or behind what may have left. `doomed`: on a path that raises. `soft` conditions hold in every run that
    trains on a GPU: they stand only for what they exclude.
    """

    kind: Kind
    key: str
    truth: bool = True
    text: str = ""
    soft: bool = False


Conditions = tuple[Condition, ...]


@cache
def holding(text: str) -> Conditions:
    """What holds where the evaluator says that a test, or `not (...)` it, does."""
    try:
        return _holding(ast.parse(text, mode="eval").body, truth=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # a handler, or a long one, which is cut
        return (Condition("if", text, text=text),)


def _holding(test: ast.expr, *, truth: bool) -> Conditions:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _holding(test.operand, truth=not truth)
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And if truth else ast.Or):
        return tuple(each for value in test.values for each in _holding(value, truth=truth))
    text = ast.unparse(test)
    for opposite, plain in ((" is not None", " is None"), (" != ", " == "), (" not in ", " in ")):
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and opposite in text:
            written = text if truth else text.replace(opposite, plain)
            return (_condition(text.replace(opposite, plain), not truth, written),)
    return (_condition(text, truth, text if truth else f"not ({text})"),)


def _condition(normal: str, truth: bool, text: str) -> Condition:
    return Condition("if", normal, truth, text, soft=normal in ("torch.cuda.is_available()", "cuda.is_available()"))


def certain(conditions: Conditions) -> bool:
    """Whether every run of the program that trains on a GPU comes by."""
    return all(each.soft and (each.truth or each.text == "") for each in conditions)


def exclude(one: Conditions, other: Conditions) -> bool:
    """Whether no run can pass both, as far as that can be seen."""
    if any(each.kind == "doomed" for each in (*one, *other)):
        return True
    truths = {each.key: each.truth for each in one}
    return any(truths.get(each.key, each.truth) is not each.truth for each in other)


def implied(one: Conditions, other: Conditions) -> bool:
    """Whether a run that passes `other` passes `one`: all that `one` asks for is asked for there."""
    asked = {(each.key, each.truth) for each in other}
    return all(each.soft or (each.key, each.truth) in asked for each in one)


def together(one: Conditions, other: Conditions) -> bool:
    """Whether a run that passes one of them passes the other one too, in the same process."""
    elsewhere = [{each.key for each in both if each.kind == "elsewhere"} for both in (one, other)]
    return elsewhere[0] == elsewhere[1] and not exclude(one, other) and (implied(one, other) or implied(other, one))


def guard(conditions: Conditions) -> str:
    """The tests as written, for people."""
    return " and ".join(dict.fromkeys(each.text for each in conditions if each.text))


class Event(Struct, frozen=True):
    """A setting is set: to `value`, in a tuple as None is one too, or to what nobody knows."""

    name: str
    value: tuple[LiteralValue] | None
    at: Location
    conditions: Conditions = ()
    imported: bool = False  # by the import of a file, which takes place once


def once(events: Iterable[Event]) -> tuple[Event, ...]:
    """The events, those of imports where they come first."""
    seen: set[tuple[str, Location]] = set()
    found = []
    for each in events:
        if not each.imported or (each.name, each.at) not in seen:
            found.append(each)
        seen.add((each.name, each.at))
    return tuple(found)


BENCHMARK, DETERMINISTIC, ENABLED = "cudnn.benchmark", "cudnn.deterministic", "cudnn.enabled"
ALGORITHMS = "use_deterministic_algorithms"
CUDNN_TF32, MATMUL_PRECISION = "cudnn.allow_tf32", "float32_matmul_precision"
PRECISIONS = ("fp32_precision", "cudnn.fp32_precision", "cudnn.conv.fp32_precision")
ANY = "cudnn.*"  # one of them, and nobody knows which
_FLAGS = {BENCHMARK, DETERMINISTIC, ENABLED, CUDNN_TF32, *PRECISIONS, "cuda.matmul.allow_tf32"}
_FLAGS |= {"cuda.matmul.fp32_precision"}
_ARGUMENTS = {"enabled": ENABLED, "benchmark": BENCHMARK, "deterministic": DETERMINISTIC, "allow_tf32": CUDNN_TF32}
_CALLS = {
    "torch.use_deterministic_algorithms": ALGORITHMS,
    "torch.set_deterministic": ALGORITHMS,
    "torch.set_float32_matmul_precision": MATMUL_PRECISION,
}
# Functions of libraries that set what nobody reads here.
_HELPERS = {
    "monai.utils.set_determinism",
    "transformers.enable_full_determinism",
    "transformers.trainer_utils.enable_full_determinism",
    "mmengine.runner.set_random_seed",
    "mmcv.runner.set_random_seed",
    "ignite.utils.manual_seed",
    "detectron2.utils.env.seed_all_rng",
    "catalyst.utils.prepare_cudnn",
    "catalyst.utils.set_global_seed",
}
_SEEDS = {"accelerate.utils.set_seed", "accelerate.utils.random.set_seed"}  # and more, if they are told to
Set = tuple[str, Value]  # a setting, and what it is set to
NOBODY_KNOWS: Final = Unknown("call")
VARIABLES = {
    "MXNET_CUDNN_AUTOTUNE_DEFAULT",
    "TF_CUDNN_USE_AUTOTUNE",
    "XLA_FLAGS",
    "TF_XLA_FLAGS",
}
# What stands where anything of this is set, and not where it is only read.
SETS = re.compile(
    rb"(?:cudnn|backends|matmul|conv|rnn)\.(?:benchmark|deterministic|enabled|allow_tf32|fp32_precision)\s*"
    rb"(?:=(?!=)|:\s*bool|[|&^]=|[,)\]][^\n=]*=(?!=))|\bsetattr\(\s*[\w.]*(?:cudnn|backend)|"
    rb"cudnn\.(?:set_)?flags\(|AUTOTUNE|XLA_FLAGS|\bset_seed\([^)]*deterministic|"
    rb"\b(?:use_deterministic_algorithms|set_deterministic(?:_debug_mode)?|set_float32_matmul_precision|set_determinism|"
    rb"(?:enable_)?full_determinism|set_random_seed|seed_all_rng|prepare_cudnn|set_global_seed)\(|ignite\b.*manual_seed"
)
# One of these has a file in which that is found.
_TRACES = (b"cudnn", b"backends", b"deterministic", b"precision", b"determinism", b"seed", b"AUTOTUNE", b"XLA_FLAGS")


def may_set(content: bytes) -> bool:
    """Whether there is anything in it that SETS finds; sooner answered where there is nothing."""
    return any(trace in content for trace in _TRACES) and SETS.search(content) is not None


def flag(name: str) -> str:
    """The setting that an attribute of that full name is; ''."""
    found = name.removeprefix("torch.backends.")
    return found if found != name and found in _FLAGS else ""


def set_by_name(name: str, key: Value, value: Value) -> Iterator[Set]:
    """What `name.key = value`, `name[key] = value` or `setattr(name, key, value)` sets."""
    text = key.value if isinstance(key, Const) else None
    if name == "os.environ":
        yield from _variable(text, value)
    elif name.startswith("torch.backends"):
        if text is None:
            yield ANY, NOBODY_KNOWS
        elif found := flag(f"{name}.{text!s}"):
            yield found, value


def set_by_call(name: str, args: Sequence[Value], keywords: Mapping[str, Value]) -> Iterator[Set]:
    """What a call of something outside of the source sets."""
    if name in _CALLS:
        given = args[0] if args else keywords.get("mode", keywords.get("d", NOBODY_KNOWS))
        yield _CALLS[name], given
    elif name == "torch.set_deterministic_debug_mode":
        yield ALGORITHMS, NOBODY_KNOWS
    elif name in _SEEDS and "deterministic" in keywords:
        yield ALGORITHMS, keywords["deterministic"]
    elif name == "torch.backends.cudnn.set_flags":
        if args or "" in keywords:
            yield ANY, NOBODY_KNOWS
            return
        named = {each.lstrip("_"): value for each, value in keywords.items()}
        yield from ((_ARGUMENTS[each], value) for each, value in named.items() if each in _ARGUMENTS)
    elif name == "torch.backends.cudnn.flags":
        yield ANY, NOBODY_KNOWS
    elif name in _HELPERS:
        yield from ((BENCHMARK, NOBODY_KNOWS), (DETERMINISTIC, NOBODY_KNOWS))
    elif name in ("os.putenv", "os.environ.setdefault") and len(args) == 2:
        yield from _variable(args[0].value if isinstance(args[0], Const) else None, args[1])
    elif name == "os.environ.update" and args and isinstance(args[0], Table):
        for key, value in args[0].items.items():
            yield from _variable(key, value)


def _variable(name: object, value: Value) -> Iterator[Set]:
    if isinstance(name, str) and name in VARIABLES:
        yield name, value


_OFF = {
    "MXNET_CUDNN_AUTOTUNE_DEFAULT": ("0",),
    "TF_CUDNN_USE_AUTOTUNE": ("0", "false", "False"),
}


class Events:
    """All that a program sets: in order as far as it was followed, and what it may set besides."""

    def __init__(self, followed: Sequence[Event], besides: Sequence[Event], complete: bool) -> None:
        """`besides` are settings that are reached nobody knows when; `complete`: there are no more."""
        self.followed, self.besides, self.complete = tuple(followed), tuple(besides), complete

    def settled(self, *names: str, start: bool | None = None) -> bool | int | float | str | None:
        """The value that surely holds for the run, the last of `names` to be set winning; None: unknown.

        `start` is the value before any of them is set, where that is known.
        """
        if any(each.name in (*names, ANY) for each in self.besides):
            return None
        last: bool | int | float | str | None = start
        for each in self.followed:
            if each.name == ANY:
                last = None
            if each.name not in names:
                continue
            value = each.value[0] if each.value is not None else None
            if certain(each.conditions) and each.value is not None:
                last = value
            elif value != last:
                last = None
        return last

    def touched(self, *names: str) -> bool:
        """Whether anything may set one of `names`."""
        return any(each.name in (*names, ANY) for each in (*self.followed, *self.besides))

    def flag(self, name: str) -> bool | None:
        """A flag of cudnn's that is False unless something sets it."""
        value = self.settled(name, start=False if self.complete else None)
        return value if isinstance(value, bool) else None

    def deterministic(self) -> bool | None:
        """Whether only deterministic algorithms are allowed, by either of the two ways to say so."""
        both = self.flag(DETERMINISTIC), self.flag(ALGORITHMS)
        return True if True in both else (False if both == (False, False) else None)

    def enabled(self) -> bool | None:
        """Whether cuDNN is in use: False only where that is sure."""
        if self.touched(ENABLED):
            value = self.settled(ENABLED)
            quiet = any(is_quiet(each.at.path) for each in self.followed if each.name == ENABLED)
            return value if isinstance(value, bool) and not (value is False and quiet) else None
        return True if self.complete else None

    def tf32(self) -> bool | None:
        """Whether fp32 convolutions may run as TF32, where the program says so; the two ways to say it do not mix."""
        old, new = self.touched(CUDNN_TF32), self.touched(*PRECISIONS)
        if old and not new:
            value = self.settled(CUDNN_TF32)
            return value if isinstance(value, bool) else None
        if new and not old:
            values = {self.settled(name) for name in PRECISIONS if self.touched(name)}
            if len(values) == 1:
                return {"ieee": False, "tf32": True}.get(str(values.pop()))
        return None

    def conflict(self) -> tuple[ProgramSetting, ProgramSetting] | None:
        """Deterministic algorithms and a search for the fastest one, both asked for in one run."""
        for index, one in enumerate(self.followed):
            for other in self.followed[index + 1 :]:
                names = {one.name, other.name}
                if BENCHMARK not in names or not names & {DETERMINISTIC, ALGORITHMS}:
                    continue
                if one.value == other.value == (True,) and self._both(one, other):
                    return (setting(one), setting(other)) if one.name != BENCHMARK else (setting(other), setting(one))
        return None

    def _both(self, one: Event, other: Event) -> bool:
        if not together(one.conditions, other.conditions) or is_quiet(one.at.path) or is_quiet(other.at.path):
            return False
        for event in (one, other):
            later = self.followed[self.followed.index(event) + 1 :]
            apart = any(condition.kind == "elsewhere" for condition in event.conditions)
            for each in (*self.besides, *(self.followed if apart else later)):
                against = each.name in (event.name, ANY) and each.value != (True,)
                if against and not exclude(each.conditions, (*one.conditions, *other.conditions)):
                    return False
        return True

    def autotune_disabled(self) -> tuple[ProgramSetting, ...]:
        """Variables of the environment that turn the search off in a framework that searches by default."""
        return tuple(
            setting(each)
            for each in self.followed
            if each.value is not None and not is_quiet(each.at.path) and _turns_off(each.name, each.value[0])
        )

    def settings(self) -> tuple[ProgramSetting, ...]:
        """All of them, for the report."""
        found = [setting(each) for each in self.followed if each.name != ANY]
        found += [setting(each, sure=False) for each in self.besides if each.name != ANY]
        return tuple(dict.fromkeys(found))


def setting(event: Event, sure: bool = True) -> ProgramSetting:
    """An event as reports have it."""
    value = event.value[0] if event.value is not None else None
    return ProgramSetting(
        name=event.name,
        value=int(value) if isinstance(value, float) else value,
        at=event.at,
        guard=guard(event.conditions),
        certain=sure and certain(event.conditions),
    )


def _turns_off(name: str, value: object) -> bool:
    if name in ("XLA_FLAGS", "TF_XLA_FLAGS"):
        return "--xla_gpu_autotune_level=0" in str(value).split()
    return str(value) in _OFF.get(name, ())
