"""What rules can ask of a program that trains: what it sets, what it shows of its input, and what it leaves alone."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from operator import attrgetter
from typing import Any

from convlint.facts.quantity import Quantity, Table, known, number, text, truth
from convlint.facts.target import RUNTIME
from convlint.files.languages.saying import say
from convlint.model.location import Location
from convlint.model.runtime import Runtime
from convlint.model.source import Program, Setting

_BACKENDS = "torch.backends."


def setting_of(name: str) -> str:
    """The setting of the runtime that a statement such as torch.backends.cudnn.benchmark = ... is about; or ''."""
    name = name.lower()
    if name.endswith("benchmark"):
        return "cudnn_benchmark"
    if name.endswith("cudnn.enabled"):
        return "cudnn_enabled"
    if "deterministic" in name:
        return "deterministic"
    if ("tf32" in name or name.endswith("fp32_precision")) and "matmul" not in name:
        return "tf32"
    return ""


def settings_of(program: Program, setting: str) -> Iterator[Setting]:
    """Its statements about one setting of the runtime, in order."""
    return (each for each in program.settings if setting_of(each.name) == setting)


def in_order(program: Program) -> tuple[Setting, Setting] | None:
    """The two statements that contradict each other: the earlier, and the later."""
    if program.conflict is None:
        return None
    one, other = program.conflict
    places = {each.at: place for place, each in enumerate(program.settings)}
    return (other, one) if places.get(one.at, -1) > places.get(other.at, -1) >= 0 else (one, other)


def _said(setting: Setting) -> str:
    shown = f"{setting.name.removeprefix(_BACKENDS)}={setting.value}"
    return say("{what} at {place}", what=shown, place=place(setting.at))


def place(at: Location) -> str:
    """Such as train.py:12."""
    return at.path if at.line is None else f"{at.path}:{at.line}"


def _conflict(program: Program) -> str:
    """Both statements, each with the test around it."""
    pair = in_order(program)
    if pair is None:
        return ""
    earlier, later = (
        _said(each) + (say(" (if {condition})", condition=each.guard) if each.guard else "") for each in pair
    )
    return say("{later} follows {earlier}", later=later, earlier=earlier)


def _evidence(program: Program) -> str:
    return ", ".join(say("{what} at {place}", what=words, place=place(at)) for words, at in program.evidence)


def _plain(quantity: Quantity, program: Program) -> Any:
    """A setting that programs are not read for: what its framework has by default."""
    return quantity.of(Runtime(framework=program.framework))


PROGRAM: Table = {
    "path": text("the script that trains", attrgetter("path")),
    "trains_convolutions": truth("there are convolutions in what it imports", attrgetter("has_convolutions")),
    "complete": truth("all of it was read, and nothing else sets anything", attrgetter("complete")),
    "incomplete_for": text("what stands in the way of that (empty: nothing)", attrgetter("incomplete_for")),
    "trainer": text("what owns the settings, such as Lightning's Trainer (empty: nothing)", attrgetter("trainer")),
    "conflict": text(
        "the statements that ask for determinism and for tuning on one path (empty: there are none)", _conflict
    ),
    "evidence": text("what shows whether all inputs have one size, and where (empty: nothing)", _evidence),
    "sets_benchmark": truth(
        "a statement sets cudnn.benchmark, to whatever",
        lambda program: next(settings_of(program, "cudnn_benchmark"), None) is not None,
    ),
    "without_cudnn": truth("cuDNN is off for its whole run", lambda program: program.cudnn_enabled is False),
    "surely_tunes": truth(
        "every run passes a statement that switches cudnn.benchmark on",
        lambda program: (
            program.cudnn_benchmark is True
            and any(each.certain and each.value is True for each in settings_of(program, "cudnn_benchmark"))
        ),
    ),
    "autotune_disabled": text(
        "the variables that switch tuning off, such as MXNET_CUDNN_AUTOTUNE_DEFAULT=0 (empty: none)",
        lambda program: ", ".join(f"{each.name}={_shown(each)}" for each in program.autotune_disabled),
    ),
    "backward_in_autocast": number(
        "calls of .backward() inside of an autocast block", lambda program: len(program.backward_in_autocast)
    ),
    "autocast_around_loss": number(
        "autocast blocks that hold the criterion alone, the model's call being just before",
        lambda program: len(program.autocast_around_loss),
    ),
}


def _shown(setting: Setting) -> object:
    """As an environment variable has it."""
    return int(setting.value) if isinstance(setting.value, bool) else setting.value


def _read(setting: str, program: Program) -> Any:
    """What the program says, or leaves as PyTorch has it where nothing else can set it: that the reader knows."""
    return known(getattr(program, setting))


_READ = ("cudnn_benchmark", "cudnn_enabled", "deterministic", "tf32", "fixed_input_size")
RUNTIME_OF_PROGRAM: Table = {
    name: row._replace(of=partial(_read, name) if name in _READ else partial(_plain, row))
    for name, row in RUNTIME.items()
}
