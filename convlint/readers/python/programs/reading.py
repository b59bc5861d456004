"""Read the training programs of a project: their settings in order of execution, and the sizes of their input."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache, cached_property, partial
from typing import NamedTuple

from msgspec.structs import replace

from convlint.files.repository import is_quiet
from convlint.model.source import TrainingProgram
from convlint.readers.python.imports import BY_CALL, Closure, ProjectImports
from convlint.readers.python.programs.autocast import around_loss, backward_inside, is_decorated, trains_inside
from convlint.readers.python.programs.entries import (
    beginning,
    candidates,
    convolves,
    framework_of,
    has_gpu,
    has_loop,
    insertion,
    installed,
    trainer_of,
    unknown,
    uses_class_of_convolutions,
)
from convlint.readers.python.programs.input_size import input_size
from convlint.readers.python.programs.running import SPAWNED, Relevant, Runs, UnreachedSettings, holds_setting, stated
from convlint.readers.python.programs.segments import Reach, Reached, Segment, led_to, run_surely
from convlint.readers.python.programs.settings import ANY, Event, Events, may_set
from convlint.readers.python.programs.unit import SourceUnit, Units

_TRAINING = (
    b"backward", b".fit", b"apply_gradients", b"minimize(", b"train_on_batch", b"Trainer", b"Runner", b"scaler(",
    b"build_runner", b"train_model", b"train_detector", b"train_segmentor",
)  # fmt: skip
# What a trainer or FSDP is told, which then computes in 16 bits by itself
_IN_16_BITS = re.compile(
    rb"\b(?:mixed_)?precision\s*=\s*(?:[\"'](?:amp_)?(?:bf|fp)?16|16\b)|\b(?:bf|fp)16\s*=\s*True\b|"
    rb"\bparam_dtype\s*=\s*torch\.(?:bfloat16|float16|half)\b|"
    rb"[\"'](?:bf|fp)16[\"']\s*:\s*\{[^{}]*?[\"']enabled[\"']\s*:\s*True\b"
)
# A model that is cast as a whole, by the names that models that train have; or all that is made
_CAST = re.compile(
    rb"\bset_default_dtype\(\s*torch\.(?:bfloat16|float16|half|float64|double)\b|"
    rb"\b(?:model|net|network|unet)(?:\s*=[^\n]*)?\.(?:half\(\)|bfloat16\(\)|to\([^()\n]*torch\.(?:b?float16|half)\b)"
)
_RUNS_TEXT = re.compile(rb"(?<![\w.])(?:exec|execfile)\s*\(")


def read_programs(
    imports: ProjectImports, paths: Sequence[str], entries: Sequence[str] = ()
) -> tuple[TrainingProgram, ...]:
    """Return the programs that concern `paths`; `entries`, if given, are the only ones."""
    project, reader = imports.project, _Reader(imports)
    own = set(paths)
    begun: list[_Begun] = []
    read: list[TrainingProgram] = []
    # A program that nests deeper than anybody writes is left out.
    for path in candidates(imports, own, entries):
        with suppress(RecursionError):
            begun += reader.begun(path, named=bool(entries))
    # An installed command that a script imports is a part of that.
    run = {path for program in begun if not program.is_installed for path in program.closure.files}
    begun = [program for program in begun if not program.is_installed or program.unit.path not in run]
    # All programs first, as the search for what leads to a setting is shared.
    reader.prepare(begun)
    for program in begun:
        with suppress(RecursionError):
            read += reader.program(program)
    read = [program for program in read if program.path in own or any(item.at.path in own for item in program.settings)]
    return tuple(_with_autocast(read, reader, [path for path in project.paths if path in own]))


def _with_autocast(programs: list[TrainingProgram], reader: _Reader, paths: Iterable[str]) -> list[TrainingProgram]:
    """Add the uses of autocast in the files of `paths` to the programs; a file with a misuse becomes a program itself.

    Such a misuse is local to a function, whatever calls it: it belongs to the program of its own file.
    """
    by_path = {program.path: program for program in programs}
    training = set[str]()  # files that train in it
    for path in paths:
        content = reader.project.content(path) or b""
        if not is_quiet(path) and (_IN_16_BITS.search(content) or (b"backward" in content and _CAST.search(content))):
            training.add(path)
        if is_quiet(path) or b"autocast" not in content:
            continue
        unit = reader.units.get(path)
        with suppress(RecursionError):
            if unit is None:
                continue
            if trains_inside(unit) or is_decorated(unit):
                training.add(path)
            backward, loss = backward_inside(unit), around_loss(unit)
            if backward or loss:
                bare = TrainingProgram(path=path, at=(*backward, *loss)[0], incomplete_for="is no program that trains")
                own = by_path.get(path, bare)
                by_path[path] = replace(own, backward_in_autocast=backward, autocast_around_loss=loss)
    return [
        program if training.isdisjoint((program.path, *program.closure)) else replace(program, in_autocast=True)
        for program in by_path.values()
    ]


def _may_train(content: bytes) -> bool:
    return any(word in content for word in _TRAINING)


class _Begun(NamedTuple):
    """A program before its settings are read: where it begins, and the segments that it reaches."""

    unit: SourceUnit
    start: ast.stmt
    closure: Closure
    reached: Reached
    framework: str
    trainer: str
    named: bool  # whether the configuration names it
    is_installed: bool  # whether it begins with a command that the package installs


class _Reader:
    def __init__(self, imports: ProjectImports) -> None:
        self.imports, self.project = imports, imports.project
        self._relevant = Relevant(imports)
        self._runs = Runs(imports, self._relevant)
        self.units = Units(imports, self._runs.machine)
        self._reach = self._relevant.reach = Reach(self.units)
        # Closures overlap: each file is searched once for each test.
        self._holds = cache(lambda says, path: bool(says(self.project.content(path) or b"")))
        self._uses_class = cache(self._uses_class_of_convolutions)
        self._gpu = cache(lambda path: has_gpu(self.project.content(path) or b"", partial(self.units.get, path)))

    def prepare(self, programs: Iterable[_Begun]) -> None:
        """Search the files of all programs with settings together, as programs share files."""
        closures = [program.closure for program in programs if self._anywhere(may_set, program.closure)]
        self._relevant.search(path for closure in closures for path in closure.files)

    def begun(self, path: str, named: bool) -> Iterator[_Begun]:
        """Yield the program that begins in a file, unless it trains nothing."""
        closure = self.imports.closure(path)
        framework = framework_of(closure.foreign)
        if not framework or not self._anywhere(_may_train, closure):
            return
        unit = self.units.get(path)

        def segments() -> Iterator[Segment]:
            return (part for file in closure.files for part in self._reach.segments(file))

        start = beginning(unit, segments) if unit is not None else None
        is_script = start is not None
        if unit is not None and start is None:
            registered = (part.name for part in self._reach.segments(path) if part.is_command)
            start = installed(unit, {*self.project.commands.get(path, ()), *registered})
        if unit is None or (start is None and not named):
            return
        start = start or (unit.file.tree.body[0] if unit.file.tree.body else None)
        trainer = trainer_of(closure.foreign)
        reached = self._reach.of(closure.files, closure.by_name)
        if start is not None and (named or has_loop(reached, bool(trainer) or framework != "pytorch")):
            yield _Begun(unit, start, closure, reached, framework, trainer, named, not is_script and not named)

    def program(self, begun: _Begun) -> Iterator[TrainingProgram]:
        """Yield a program with its settings and input size; nothing for one that runs on the CPU."""
        anyway = begun.trainer or begun.framework != "pytorch" or begun.named
        if anyway or any(map(self._gpu, begun.closure.files)):
            yield self._facts(begun)

    def _uses_class_of_convolutions(self, path: str) -> bool:
        file = self.project.file(path) if b"Conv" in (self.project.content(path) or b"") else None
        return file is not None and uses_class_of_convolutions(file.tree)

    @cached_property
    def _has_networks(self) -> bool:
        """Whether some file of the repository has convolutions, which a program may import by name."""
        return any(not is_quiet(path) for path in self.project.where(convolves))

    def _anywhere(self, says: Callable[[bytes], object], closure: Closure) -> str:
        """Return the first file of a closure whose text satisfies `says`; '' if there is none."""
        return next((path for path in closure.files if self._holds(says, path)), "")

    def _facts(self, begun: _Begun) -> TrainingProgram:
        unit, start, closure, reached, framework, trainer, *_ = begun
        sets = self._anywhere(may_set, closure)
        # Without the text of a setting in any file, nothing needs to be evaluated.
        followed, whole = self._runs.events(unit.path, closure.files, owned=bool(trainer)) if sets else ((), True)
        followed = tuple(self._as_trained(event, reached) for event in followed)
        besides = self._besides(unit.path, reached, followed) if sets else ()
        lacking = self._lacking(begun, (*followed, *besides), whole=whole)
        events = Events(followed, besides, complete=not lacking)
        torch = framework == "pytorch"
        has_convolutions = (
            bool(self._anywhere(convolves, closure))
            or any(map(self._uses_class, closure.files))
            or (bool(closure.dynamic) and self._has_networks)
        )
        sizes = input_size(reached, lambda: self._trained(reached, trainer)) if torch else (None, ())
        at, name = insertion(unit, start)
        return TrainingProgram(
            path=unit.path,
            at=unit.file.locate(start),
            framework=framework,
            closure=closure.files,
            complete=not lacking,
            incomplete_for=lacking,
            trainer=trainer,
            settings=events.settings(),
            cudnn_benchmark=events.flag("cudnn.benchmark") if torch else None,
            deterministic=events.deterministic() if torch else None,
            cudnn_enabled=events.enabled() if torch else None,
            tf32=events.tf32() if torch else None,
            fixed_input_size=sizes[0],
            evidence=sizes[1],
            conflict=events.conflict() if torch and has_convolutions else None,
            autotune_disabled=events.autotune_disabled(),
            has_convolutions=has_convolutions,
            insert_at=at,
            torch_name=name,
        )

    def _as_trained(self, event: Event, reached: Reached) -> Event:
        """Return a setting whose conditions by `mp.spawn` are soft if the functions that it runs train."""
        spawned = [test for test in event.conditions if test.key.startswith(SPAWNED)]
        if not spawned or not all(self._trains(test.key.removeprefix(SPAWNED), reached) for test in spawned):
            return event
        return replace(
            event, conditions=tuple(replace(test, soft=True) if test in spawned else test for test in event.conditions)
        )

    def _trains(self, place: str, reached: Reached) -> bool:
        """Whether the function at a place, as path:line, leads to a training loop by its words."""
        first = next((segment for segment in reached if f"{segment.path}:{segment.line}" == place), None)
        return first is not None and has_loop(led_to(first, reached), trainer=False)

    def _trained(self, reached: Reached, trainer: str) -> Reached:
        """Return the segments that a program surely runs; none if they do not train."""
        followed = Reached(run_surely(reached))
        return followed if has_loop(followed, bool(trainer)) else Reached(())

    def _besides(self, entry: str, reached: Reached, followed: Iterable[Event]) -> tuple[Event, ...]:
        """Return the settings in code that the program may reach, but that the evaluation did not run."""
        seen = {(event.at.path, event.at.line, event.at.column) for event in followed}
        skipped = UnreachedSettings(reached, self._runs.machine, self.imports, entry)
        return tuple(
            Event(name, None, at)
            for segment in reached.having(holds_setting)
            for name, at in segment.once(stated)
            if (at.path, at.line, at.column) not in seen and not skipped.never(segment, at)
        )

    def _lacking(self, begun: _Begun, events: Iterable[Event], *, whole: bool) -> str:
        """Return why the settings may be incomplete; '' if they are complete."""
        closure = begun.closure
        if begun.trainer:
            return f"{begun.trainer} sets it"
        if closure.missing:
            return f"no file for the import of {closure.missing}"
        calls = begun.reached.having(BY_CALL) if closure.dynamic else ()
        by_name = next((part.path for part in calls if self.imports.imports_any(part.path)), "")
        if by_name:
            return f"imports by name in {by_name}"
        if closure.cut or not whole:
            return "larger than is followed"
        if any(event.name == ANY for event in events):
            return "sets cudnn's flags by name"
        lost = next((path for path in closure.files if self.units.get(path) is None), "")
        if lost:
            return f"{lost} cannot be read"
        text = next(iter(begun.reached.having(_RUNS_TEXT)), None)
        if text is not None:
            return f"runs text in {text.path}"
        library = unknown(closure.foreign)
        return f"{library} may set it" if library else ""
