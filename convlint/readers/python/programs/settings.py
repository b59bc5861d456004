"""The settings of a program: the code that makes them, the tests around it, and their value in the end."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations
from typing import Final, Literal, TypeGuard

from msgspec import Struct
from msgspec.structs import replace

from convlint.files.repository import is_quiet
from convlint.model.location import Location
from convlint.model.source import ProgramSetting
from convlint.readers.python.evaluator.values import Const, Table, Unknown, Value, any_true
from convlint.readers.python.source_file import unparsed

LiteralValue = bool | int | float | str | None

Kind = Literal["if", "doubt", "doomed", "elsewhere"]


class Condition(Struct, frozen=True):
    """A test around a setting, with its `truth`. Tests with the same `key` have the same outcome in one run.

    Kinds: `elsewhere` is a function given to other code, which may call it later or in another process; `doubt` is a
    loop, a `try`, or a place that earlier code may have left; `doomed` is a path that raises. `soft` conditions hold in
    every run that trains on a GPU, such as that of a training function which `mp.spawn` runs, and are kept only for
    what they exclude.
    """

    kind: Kind
    key: str
    truth: bool = True
    text: str = ""
    soft: bool = False
    place: tuple[str, int, int] | None = None  # of the `if` statement: path, line and column


Conditions = tuple[Condition, ...]


@cache
def holding(text: str) -> Conditions:
    """Parse a condition of the evaluator, `test` or `not (test)`, into separate conditions."""
    try:
        return _holding(ast.parse(text, mode="eval").body, truth=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # a handler, or a long one, which is cut
        return (Condition("if", text, text=text),)


def _holding(test: ast.expr, *, truth: bool) -> Conditions:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _holding(test.operand, truth=not truth)
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And if truth else ast.Or):
        return tuple(condition for value in test.values for condition in _holding(value, truth=truth))
    text = unparsed(test)
    for opposite, plain in ((" is not None", " is None"), (" != ", " == "), (" not in ", " in ")):
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and opposite in text:
            written = text if truth else text.replace(opposite, plain)
            return (_condition(text.replace(opposite, plain), not truth, written),)
    return (_condition(text, truth, text if truth else f"not ({text})"),)


# A test that holds in every run on a GPU
ON_GPU = re.compile(r"(?:torch\.)?cuda\.is_available\(\)|(?:\w+\.)*(?:device\.type|device_type) == 'cuda'")


def _condition(normal: str, truth: bool, text: str) -> Condition:
    return Condition("if", normal, truth, text, soft=ON_GPU.fullmatch(normal) is not None)


def certain(conditions: Conditions) -> bool:
    """Whether every run that trains on a GPU meets the conditions."""
    return all(condition.soft and (condition.truth or condition.text == "") for condition in conditions)


def exclude(first: Conditions, second: Conditions) -> bool:
    """Whether no run can meet both, as far as the tests show."""
    if any(condition.kind == "doomed" for condition in (*first, *second)):
        return True
    truths = {condition.key: condition.truth for condition in first}
    return any(truths.get(condition.key, condition.truth) is not condition.truth for condition in second)


def implied(first: Conditions, second: Conditions) -> bool:
    """Whether a run that meets `second` meets `first`: each test of `first` is among those of `second`."""
    tests = {(condition.key, condition.truth) for condition in second}
    return all(condition.soft or (condition.key, condition.truth) in tests for condition in first)


def _apart(conditions: Conditions) -> set[str]:
    """Return the keys of the functions that other code calls."""
    return {condition.key for condition in conditions if condition.kind == "elsewhere"}


def together(first: Conditions, second: Conditions) -> bool:
    """Whether a run that meets one of them meets the other too, in the same process."""
    return (
        _apart(first) == _apart(second)
        and not exclude(first, second)
        and (implied(first, second) or implied(second, first))
    )


def guard(conditions: Conditions) -> str:
    """Return the tests as written, for a message."""
    return " and ".join(dict.fromkeys(condition.text for condition in conditions if condition.text))


class Event(Struct, frozen=True):
    """An assignment of a setting. `value` is a tuple of the value, as that may be None; or None if unknown."""

    name: str
    value: tuple[LiteralValue] | None
    at: Location
    conditions: Conditions = ()
    imported: bool = False  # by the import of a file, which takes place once


def once(events: Iterable[Event]) -> tuple[Event, ...]:
    """Drop repeated events of imports, which run once."""
    seen: set[tuple[str, Location]] = set()
    result = []
    for event in events:
        if not event.imported or (event.name, event.at) not in seen:
            result.append(event)
        seen.add((event.name, event.at))
    return tuple(result)


_MOST_JOINED = 100  # settings of a program; if there are more, none are joined


def cases_joined(events: Sequence[Event], *, of_processes: bool) -> tuple[Event, ...]:
    """Join the same assignment on both sides of an `if` statement, as every run takes one: `worker(0)` in either.

    It then takes place where the later of them stood, unless the setting changes between them. With `of_processes`,
    one side may be what `mp.spawn` runs.
    """
    result = list(events)
    place = len(result) - 1 if len(result) <= _MOST_JOINED else 0
    while place > 0:
        later = result[place]
        earlier, test = _other_case(result[:place], later, of_processes)
        place -= 1
        if test:
            both = set(result[earlier].conditions)
            rest = [item for item in later.conditions if item.key != test and (not item.soft or item in both)]
            result[place + 1] = replace(later, conditions=tuple(rest))
            del result[earlier]
            place = len(result) - 1  # what is joined may be the other side of another test
    return tuple(result)


def _other_case(events: Sequence[Event], later: Event, of_processes: bool) -> tuple[int, str]:
    """Return the place of the same assignment on the other side of an `if`, and the key of that test; or 0 and ''."""
    for place in range(len(events) - 1, -1, -1):
        event = events[place]
        same = (event.name, event.value, event.at) == (later.name, later.value, later.at)
        test = _test_between(event.conditions, later.conditions, of_processes) if same else ""
        if test:
            return place, test
        if event.name in (later.name, ANY) and not same:
            break
    return 0, ""


def _test_between(conditions: Conditions, other: Conditions, of_processes: bool) -> str:
    """Return the key of the `if` on whose two sides these conditions are, if they are equal besides; '' otherwise."""
    ours, theirs = (
        {(test.kind, test.key, test.truth): test for test in both if not (test.soft and of_processes)}
        for both in (conditions, other)
    )
    left, right = ours.keys() - theirs.keys(), theirs.keys() - ours.keys()
    if len(left) != 1 or len(right) != 1:
        return ""
    first, second = ours[left.pop()], theirs[right.pop()]
    sides = first.kind == "if" and first.key == second.key and first.place is not None
    return first.key if sides and first.place == second.place else ""


BENCHMARK, DETERMINISTIC, ENABLED = "cudnn.benchmark", "cudnn.deterministic", "cudnn.enabled"
ALGORITHMS = "use_deterministic_algorithms"
CUDNN_TF32, MATMUL_PRECISION = "cudnn.allow_tf32", "float32_matmul_precision"
PRECISIONS = ("cudnn.conv.fp32_precision", "cudnn.fp32_precision", "fp32_precision")  # the first that is set decides
OVERRIDE = "NVIDIA_TF32_OVERRIDE"
ANY = "cudnn.*"  # an unknown flag of cuDNN
_FLAGS = {BENCHMARK, DETERMINISTIC, ENABLED, CUDNN_TF32, *PRECISIONS, "cuda.matmul.allow_tf32"}
_FLAGS |= {"cuda.matmul.fp32_precision"}
_ARGUMENTS = {"enabled": ENABLED, "benchmark": BENCHMARK, "deterministic": DETERMINISTIC, "allow_tf32": CUDNN_TF32}
_CALLS = {
    "torch.use_deterministic_algorithms": ALGORITHMS,
    "torch.set_deterministic": ALGORITHMS,
    "torch.set_float32_matmul_precision": MATMUL_PRECISION,
}
# Functions of libraries that set flags of cuDNN to values which are not read here
_HELPERS = {
    "transformers.enable_full_determinism",
    "transformers.trainer_utils.enable_full_determinism",
    "diffusers.utils.testing_utils.enable_full_determinism",
    "diffusers.utils.torch_utils.enable_full_determinism",
    "mmengine.runner.set_random_seed",
    "mmcv.runner.set_random_seed",
    "ignite.utils.manual_seed",
    "detectron2.utils.env.seed_all_rng",
    "catalyst.utils.prepare_cudnn",
    "catalyst.utils.set_global_seed",
}
_DETERMINISM = {"monai.utils.set_determinism", "monai.utils.misc.set_determinism"}  # for a seed that is not None
_TRAINER = re.compile(r"(?:lightning(?:\.pytorch)?|pytorch_lightning)(?:\.trainer)*\.Trainer")
_ARGUMENTS_OF_TRAINER = re.compile(r"transformers(?:\.training_args\w*)?\.(?:Seq2Seq)?TrainingArguments")
_SEEDS = {"accelerate.utils.set_seed", "accelerate.utils.random.set_seed"}  # set flags only if `deterministic`
Set = tuple[str, Value]  # a setting, and what it is set to
NOBODY_KNOWS: Final = Unknown("call")
VARIABLES = {
    "MXNET_CUDNN_AUTOTUNE_DEFAULT",
    "TF_CUDNN_USE_AUTOTUNE",
    "XLA_FLAGS",
    "TF_XLA_FLAGS",
    OVERRIDE,
}
# Text of code that makes a setting, but not of code that only reads one
SETS = re.compile(
    rb"(?:cudnn|backends|matmul|conv|rnn)\.(?:benchmark|deterministic|enabled|allow_tf32|fp32_precision)\s*"
    rb"(?:=(?!=)|:\s*bool|[|&^]=|[,)\]][^\n=]*=(?!=))|\bsetattr\(\s*[\w.]*(?:cudnn|backend)|"
    rb"\w\.(?:benchmark|deterministic|allow_tf32)\s*=(?!=)|"  # by whatever name the module goes
    rb"cudnn\.(?:set_)?flags\(|AUTOTUNE|XLA_FLAGS|TF32_OVERRIDE|"
    rb"\bTrainer\([^\0]{0,2000}?\b(?:benchmark|deterministic)\s*=(?!=)|"
    rb"TrainingArguments\([^\0]{0,2000}?\b(?:tf32|full_determinism)\s*=(?!=)|\bset_seed\([^)]*deterministic|"
    rb"\b(?:use_deterministic_algorithms|set_deterministic(?:_debug_mode)?|set_float32_matmul_precision|set_determinism|"
    rb"(?:enable_)?full_determinism|set_random_seed|seed_all_rng|prepare_cudnn|set_global_seed)\(|ignite\b.*manual_seed"
)
# Words of which any text that SETS finds has one
_TRACES = (
    b"cudnn", b"backend", b".benchmark", b"_tf32", b"_precision", b"determinis", b"set_seed(", b"random_seed(",
    b"global_seed(", b"seed_all_", b"AUTOTUNE", b"XLA_FLAGS", b"TF32_OVERRIDE", b"ignite", b"Trainer(",
    b"TrainingArguments(",
)  # fmt: skip


def may_set(content: bytes) -> bool:
    """Whether SETS finds anything in the text, after a faster search for words."""
    return any(trace in content for trace in _TRACES) and SETS.search(content) is not None


def flag(name: str) -> str:
    """Return the setting of a full attribute name; '' if it is none."""
    short = name.removeprefix("torch.backends.")
    return short if short != name and short in _FLAGS else ""


def set_by_name(name: str, key: Value, value: Value) -> Iterator[Set]:
    """Yield the settings of `name.key = value`, `name[key] = value` or `setattr(name, key, value)`."""
    text = key.value if isinstance(key, Const) else None
    if name == "os.environ":
        yield from _variable(text, value)
    elif name.startswith("torch.backends"):
        if text is None:
            yield ANY, NOBODY_KNOWS
        elif flag_name := flag(f"{name}.{text!s}"):
            yield flag_name, value


def set_by_call(name: str, args: Sequence[Value], keywords: Mapping[str, Value]) -> Iterator[Set]:
    """Yield the settings of a call of something outside the source."""
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
        arguments = {keyword.lstrip("_"): value for keyword, value in keywords.items()}
        yield from ((_ARGUMENTS[keyword], value) for keyword, value in arguments.items() if keyword in _ARGUMENTS)
    elif name == "torch.backends.cudnn.flags":
        yield ANY, NOBODY_KNOWS
    elif name in _DETERMINISM:
        seed = args[0] if args else keywords.get("seed")
        sure = isinstance(seed, Const) and seed.value is not None and len(args) < 2 and keywords.keys() <= {"seed"}
        yield BENCHMARK, Const(False) if sure else NOBODY_KNOWS
        yield DETERMINISTIC, Const(True) if sure else NOBODY_KNOWS
    elif _TRAINER.fullmatch(name):
        yield from _by_trainer(keywords.get("benchmark"), keywords.get("deterministic"))
    elif _ARGUMENTS_OF_TRAINER.fullmatch(name):
        yield from _by_arguments(keywords.get("tf32"), keywords.get("full_determinism"))
    elif name in _HELPERS:
        yield from ((BENCHMARK, NOBODY_KNOWS), (DETERMINISTIC, NOBODY_KNOWS))
    elif name in ("os.putenv", "os.environ.setdefault") and len(args) == 2:
        yield from _variable(args[0].value if isinstance(args[0], Const) else None, args[1])
    elif name == "os.environ.update" and args and isinstance(args[0], Table):
        for key, value in args[0].items.items():
            yield from _variable(key, value)


def _by_trainer(benchmark: Value | None, deterministic: Value | None) -> Iterator[Set]:
    """Yield what Lightning's Trainer sets: the search is off in deterministic runs unless it is asked for."""
    if _is_given(deterministic):
        on = bool(deterministic.value) if isinstance(deterministic, Const) else None  # "warn" is on, too
        yield ALGORITHMS, NOBODY_KNOWS if on is None else Const(on)
        if on is not False and not _is_given(benchmark):
            benchmark = Const(False) if on else NOBODY_KNOWS
    if _is_given(benchmark):
        yield BENCHMARK, benchmark


def _by_arguments(tf32: Value | None, full_determinism: Value | None) -> Iterator[Set]:
    """Yield what Transformers' Trainer sets (training_args.py, trainer_utils.enable_full_determinism)."""
    if _is_given(tf32):
        yield CUDNN_TF32, tf32
    if isinstance(full_determinism, Const):
        if full_determinism.value:
            yield from ((ALGORITHMS, Const(True)), (BENCHMARK, Const(False)))
    elif full_determinism is not None:
        yield from ((ALGORITHMS, NOBODY_KNOWS), (BENCHMARK, NOBODY_KNOWS))


def _is_given(value: Value | None) -> TypeGuard[Value]:
    return value is not None and not (isinstance(value, Const) and value.value is None)


def _variable(name: object, value: Value) -> Iterator[Set]:
    if isinstance(name, str) and name in VARIABLES:
        yield name, value


_OFF = {
    "MXNET_CUDNN_AUTOTUNE_DEFAULT": ("0",),
    "TF_CUDNN_USE_AUTOTUNE": ("0", "false", "False"),
}


class Events:
    """All settings of a program: those followed in order, and those that it may make at unknown times."""

    def __init__(self, followed: Sequence[Event], besides: Sequence[Event], complete: bool) -> None:
        """`besides` are settings made at unknown times; `complete` if there are no others."""
        self.followed, self.besides, self.complete = cases_joined(followed, of_processes=True), tuple(besides), complete
        self._in_process = cases_joined(followed, of_processes=False)

    def settled(self, *names: str, start: bool | None = None) -> LiteralValue:
        """Return the value that surely holds in the end, by the last of `names` that is set; None if unknown.

        `start` is the value before any of them is set, if known.
        """
        if any(event.name in (*names, ANY) for event in self.besides):
            return None
        last: LiteralValue = start
        for event in self.followed:
            if event.name in names:
                value = event.value[0] if event.value is not None else None
                if certain(event.conditions):
                    last = value
                # An uncertain assignment of the value that holds already changes nothing.
                elif value != last:
                    last = None
            elif event.name == ANY:
                last = None
        return last

    def touched(self, *names: str) -> bool:
        """Whether any code may set one of `names`."""
        return any(event.name in (*names, ANY) for event in (*self.followed, *self.besides))

    def flag(self, name: str) -> bool | None:
        """Return the value of a flag of cuDNN that is False by default; None if unknown."""
        value = self.settled(name, start=False if self.complete else None)
        return value if isinstance(value, bool) else None

    def deterministic(self) -> bool | None:
        """Whether only deterministic algorithms are allowed, by either of the two settings for it."""
        return any_true((self.flag(DETERMINISTIC), self.flag(ALGORITHMS)))

    def enabled(self) -> bool | None:
        """Whether cuDNN is in use; None if unknown."""
        if self.touched(ENABLED):
            value = self.settled(ENABLED)
            # A vendored file that turns cuDNN off is not the user's decision.
            quiet = any(is_quiet(event.at.path) for event in self.followed if event.name == ENABLED)
            return value if value is True or (value is False and not quiet) else None
        return True if self.complete else None

    def tf32(self) -> bool | None:
        """Whether fp32 convolutions may use TF32; None if unknown, or if the old and new settings are mixed."""
        if self.touched(OVERRIDE):  # which libraries of NVIDIA obey, whatever PyTorch asks for
            return False if self.settled(OVERRIDE) == "0" else None
        name = next(filter(self.touched, PRECISIONS), "")
        if self.touched(CUDNN_TF32):
            value = self.settled(CUDNN_TF32)
            return value if isinstance(value, bool) and not name else None
        return {"ieee": False, "tf32": True}.get(str(self.settled(name)))

    def conflict(self) -> tuple[ProgramSetting, ProgramSetting] | None:
        """Return settings that ask for deterministic algorithms and for a benchmark of all in one run."""
        for first, other in combinations(self._in_process, 2):
            names = {first.name, other.name}
            is_pair = BENCHMARK in names and names & {DETERMINISTIC, ALGORITHMS}
            if is_pair and first.value == other.value == (True,) and self._both(first, other):
                return (setting(first), setting(other)) if first.name != BENCHMARK else (setting(other), setting(first))
        return None

    def _both(self, first: Event, other: Event) -> bool:
        if not together(first.conditions, other.conditions) or is_quiet(first.at.path) or is_quiet(other.at.path):
            return False
        # What asks whether results must repeat knows the other.
        if any("deterministic" in test.key and "torch." in test.key for test in (*first.conditions, *other.conditions)):
            return False
        for event in (first, other):
            later = self._in_process[self._in_process.index(event) + 1 :]
            # A function called later may run in front of or behind any statement, but of another such function.
            apart = _apart(event.conditions)
            for change in (*self.besides, *(self._in_process if apart else later)):
                if apart and _apart(change.conditions) not in (apart, set()):
                    continue
                against = change.name in (event.name, ANY) and change.value != (True,)
                if against and not exclude(change.conditions, (*first.conditions, *other.conditions)):
                    return False
        return True

    def autotune_disabled(self) -> tuple[ProgramSetting, ...]:
        """Return environment variables that turn autotuning off in a framework that does it by default."""
        return tuple(
            setting(event)
            for event in self.followed
            if event.value is not None and not is_quiet(event.at.path) and _turns_off(event.name, event.value[0])
        )

    def settings(self) -> tuple[ProgramSetting, ...]:
        """Return all settings, for the report."""
        settings = [setting(event) for event in self.followed if event.name != ANY]
        settings += [setting(event, sure=False) for event in self.besides if event.name != ANY]
        return tuple(dict.fromkeys(settings))


def setting(event: Event, sure: bool = True) -> ProgramSetting:
    """Convert an event to a setting of the report."""
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
