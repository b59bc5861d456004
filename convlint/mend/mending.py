"""What the files of a spec, or of the models of a run, become by the rounds of `--fix`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial

from msgspec.structs import replace

from convlint.files.located_yaml import text_of
from convlint.mend.applicability import with_applicability, with_edits
from convlint.mend.attempt import (
    CodeDraft,
    RunModel,
    SpecDraft,
    edits_where_shared,
    with_code_edits,
    with_sources,
)
from convlint.mend.checking import (
    Checked,
    Edited,
    Fixed,
    Fixing,
    InputResult,
    Job,
    Task,
    as_asked,
    check_input,
    content_of,
    last_resort,
    read_input,
)
from convlint.mend.rounds import MOST_ROUNDS, Mending
from convlint.model.errors import InputFault
from convlint.model.report import InputError
from convlint.readers.inputs import Input
from convlint.readers.reading import Reading
from convlint.rulebook.book import Rulebook


def mended_models(tasks: Sequence[Task], reading: Reading) -> list[InputResult]:
    """The outcome of each model, with what the files that construct its layers are to become.

    Files that any model has in common with another become theirs together, or stay. Nothing is written here. Raises
    RuleError and UsageError only.
    """
    models = _Models(tasks, reading)
    models.mend()
    return [models.outcome(number) for number in range(len(tasks))]


class _Models:
    def __init__(self, tasks: Sequence[Task], reading: Reading) -> None:
        self._reading = reading
        self._members = [
            RunModel(source=source, rulebook=rulebook, job=job, checked=check_input(source, rulebook, job, reading))
            for source, rulebook, job in tasks
        ]
        self._first = [member.checked for member in self._members]
        self._counts = [0 for _ in tasks]
        self._notes: list[tuple[str, ...]] = [() for _ in tasks]
        self._last: list[Mending[CodeDraft] | None] = [None for _ in tasks]
        self._turned: dict[int, RunModel | None] = {}
        self._files: dict[str, Edited] = {}

    def mend(self) -> None:
        """One model after the other, until nothing more changes in any of them."""
        for _ in range(MOST_ROUNDS):
            mended = [self._mended(number) for number in range(len(self._members))]
            if sum(mended) == 0 or len(mended) == 1:
                break

    def _mended(self, number: int) -> bool:
        """Mends one model; returns whether anything was fixed in it."""
        member, checked = self._members[number], self._members[number].checked
        fixing, result, network = _fixing(member), checked.result, checked.network
        if result is None or network is None or checked.errors or not fixing.mendable(result.findings):
            return False
        if not network.operations:
            self._notes[number] = (f"{member.source.name} is not edited: it is not known what its layers read",)
            return False
        others = [n for n in range(len(self._members)) if n != number]
        sharing = [n for n in range(len(self._members)) if not self._members[n].paths.isdisjoint(member.paths)]

        @cache  # which takes readings, and not each model can be edited at all
        def bystanders() -> list[RunModel]:
            turned = [self._in_other_mode(n) for n in sharing]
            return [self._members[n] for n in others] + [model for model in turned if model is not None]

        mending = Mending(CodeDraft(member, bystanders, self._files, self._reading), member.rulebook, fixing, checked)
        with last_resort(checked.errors, member.source.name):
            mending.run()
        if checked.errors:  # mending it failed: all of it is left out
            return False
        self._notes[number], self._last[number] = tuple(mending.notes(member.source.name)), mending
        if not mending.count:
            return False
        self._counts[number] += mending.count
        self._files = dict(mending.draft.files)
        self._members[number] = replace(member, checked=mending.checked)
        after = mending.draft.others()
        for n, other in zip(others, after[: len(others)], strict=True):
            self._counts[n] += max(0, _wanted(self._members[n]) - _wanted(other))
            self._members[n] = other
        running = [n for n in sharing if self._turned[n] is not None]
        self._turned.update(zip(running, after[len(others) :], strict=True))
        return True

    def _in_other_mode(self, number: int) -> RunModel | None:
        """A model in train mode that is followed in eval mode, or the other way round; None where that does not run."""
        if number not in self._turned:
            member = self._members[number]
            job = with_sources(member.job, self._files)
            job = replace(job, reading=replace(job.reading, trains=not job.trains(member.source)))
            read, errors = read_input(member.source, job, self._reading)
            checked = Checked(read=read, network=None if read is None else as_asked(read, job))
            turned = RunModel(source=member.source, rulebook=member.rulebook, job=job, checked=checked, judged=False)
            self._turned[number] = None if errors or read is None else turned
        return self._turned[number]

    def outcome(self, number: int) -> InputResult:
        """The outcome of a model, with the edited files that it shares with others."""
        member = self._members[number]
        job, checked = with_sources(member.job, self._files), member.checked
        with last_resort(checked.errors, member.source.name):
            checked.result = with_code_edits(checked, job)
            checked.result = with_applicability(checked, member.rulebook, job, _fixing(member), "code")
        files = tuple(self._files[path] for path in sorted(self._shared(member)))
        fixed = Fixed(
            files=files,
            count=self._counts[number],
            notes=self._notes[number],
            unmended=self._first[number].result if files else None,
        )
        return InputResult(checked.result, checked.errors, fixed)

    def _shared(self, member: RunModel) -> set[str]:
        """The edited files of a model, of models that share any of these, and so on: all are written, or none."""
        groups = [model.paths & self._files.keys() for model in self._members]
        paths = set(member.paths & self._files.keys())
        for _ in groups:
            paths.update(*(group for group in groups if not paths.isdisjoint(group)))
        return paths


def _fixing(member: RunModel) -> Fixing:
    assert member.job.fixing is not None  # it is to be mended
    return member.job.fixing


def _wanted(member: RunModel) -> int:
    """How many of its findings are to be mended."""
    result = member.checked.result
    return 0 if result is None else len(_fixing(member).mendable(result.findings))


_BOM = b"\xef\xbb\xbf"


def mended(source: Input, rulebook: Rulebook, job: Job, fixing: Fixing, reading: Reading) -> InputResult:
    """The outcome of a spec that is mended, with what its file is to become."""
    path, raw = source.name, source.raw
    shown = "<stdin>" if source.kind == "stdin" else path
    try:
        if raw is None:
            raw = content_of(path)
        text = text_of(raw)
    except InputFault as fault:
        error = InputError(path=shown, message=fault.message, line=fault.line, column=fault.column)
        unread = () if raw is None else (Edited(path=path, before=raw, after=raw),)
        return InputResult(None, [error], Fixed(files=unread))
    source = replace(source, text=text)
    checked = check_input(source, rulebook, job, reading)
    mending = Mending(SpecDraft(source, job, reading, checked.read), rulebook, fixing, checked)
    with last_resort(checked.errors, source.name):
        mending.run()
    if checked.errors:  # it could not be read in full, or mending it failed
        same = Edited(path=path, before=raw, after=raw)
        return InputResult(checked.result, checked.errors, Fixed(files=(same,)))
    after = (_BOM if raw.startswith(_BOM) else b"") + mending.draft.text.encode()
    fixed = Fixed(
        files=(Edited(path=path, before=raw, after=after),),
        count=mending.count,
        notes=tuple(mending.notes(shown)),
        unmended=checked.result if mending.count else None,
    )
    checked, source = mending.checked, mending.draft.source
    edits_of = edits_where_shared(source, job, reading, checked.read)
    draft = partial(SpecDraft, source, job, reading, checked.read)
    checked.result = with_applicability(checked, rulebook, job, fixing, "spec", edits_of, draft)
    return InputResult(with_edits(source, rulebook, job, fixing, reading, checked), checked.errors, fixed)
