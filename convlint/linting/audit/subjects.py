"""From paths, lists and the config's models to the subjects of an audit, one after the other as they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from convlint.errors import InputFault, UsageError, shown
from convlint.files.safe import clean
from convlint.linting.audit.entry import subject_of
from convlint.linting.audit.listed import Entry, entries_of
from convlint.linting.audit.subject import Subject
from convlint.linting.paths import included, tidy
from convlint.linting.plan import Planner
from convlint.readers.discovery import is_source, streamed
from convlint.readers.inputs import Input
from convlint.report import InputError

Found = Subject | InputError
_SOURCE = "Python source states no sizes: name package.module:Net, or read it with `convlint check`"
_STDIN = "standard input is no model of an audit; a list of models may come from there: --models-from -"


def subjects_of(paths: Sequence[str], lists: Sequence[str], planner: Planner) -> Iterator[Found]:
    """Every model of the paths, then of the config where the options ask for it, then of the lists, in their order.

    What stands for no model is an error in its place. Raises UsageError, before anything is yielded, for a list that
    cannot be opened, and when its turn comes for one without a sound header.
    """
    return _all(paths, [(path, entries_of(path)) for path in lists], planner.models(), planner)


def _all(
    paths: Sequence[str], lists: Sequence[tuple[str, Iterator[Entry]]], models: Sequence[Input], planner: Planner
) -> Iterator[Found]:
    modules = planner.options.modules
    for path in paths:
        for found in streamed(path, modules=modules, wanted=lambda path: _wanted(path, planner)):
            yield found if isinstance(found, InputError) else _judged(Subject(name=found.name, source=found))
    for model in models:
        yield Subject(name=clean(model.name), source=model)
    for path, entries in lists:
        for entry in entries:
            yield _listed(path, entry, modules=modules)


def _wanted(path: str, planner: Planner) -> bool:
    """Whether a folder stands for this file. Where its config is wrong it does, and that is told of this model."""
    try:
        return included(path, planner)
    except UsageError:
        return True


def _listed(path: str, entry: Entry, *, modules: bool) -> Found:
    at = "standard input" if path == "-" else path
    try:
        if entry.fault:
            raise InputFault(entry.fault)
        subject = subject_of(entry.values, at, entry.line, modules=modules)
        if not clean(subject.name).strip():
            raise InputFault("no character of its name can be shown")
        return _judged(subject)
    except InputFault as fault:
        names = (entry.values.get(key) for key in ("name", "model"))
        model = next((name for name in names if isinstance(name, str) and clean(name).strip()), None)
        what = f"{shown(model)}: " if isinstance(model, str) else ""
        return InputError(path=at, line=entry.line, message=f"{what}{fault.message}")


def _judged(subject: Subject) -> Found:
    """The subject with its file spelled in one way, and its name as tables have it; or why there is none to audit."""
    source = subject.source
    if source.kind == "stdin":
        return InputError(path="-", message=_STDIN)
    if is_source(source):
        return InputError(path=source.name, message=_SOURCE)
    tidied = tidy(source)
    name = tidied.name if subject.name == source.name else subject.name
    return replace(subject, name=clean(name), source=tidied)
