"""Mending the live models of one run together, since they may share code: what is edited for one is read by all."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from msgspec.structs import replace

from convlint.linting.code_draft import CodeDraft, Member, with_sources
from convlint.linting.code_edits import with_code_edits
from convlint.linting.counting import with_applicability
from convlint.linting.fixed import Edited, Fixed, Fixing, Outcome
from convlint.linting.mending import MOST_ROUNDS, Mending
from convlint.linting.one_input import Checked, Task, as_asked, check_input, last_resort, read_input
from convlint.readers.reading import Reading


def mended_models(tasks: Sequence[Task], reading: Reading) -> list[Outcome]:
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
            Member(source=source, rulebook=rulebook, job=job, checked=check_input(source, rulebook, job, reading))
            for source, rulebook, job in tasks
        ]
        self._first = [member.checked for member in self._members]
        self._counts = [0 for _ in tasks]
        self._notes: list[tuple[str, ...]] = [() for _ in tasks]
        self._last: list[Mending[CodeDraft] | None] = [None for _ in tasks]
        self._turned: dict[int, Member | None] = {}
        self._files: dict[str, Edited] = {}

    def mend(self) -> None:
        """One model after the other, until nothing more changes in any of them."""
        for _ in range(MOST_ROUNDS):
            mended = [self._mended(number) for number in range(len(self._members))]
            if sum(mended) == 0 or len(mended) == 1:
                break

    def _mended(self, number: int) -> bool:
        """Whether anything was mended in one of them."""
        member, checked = self._members[number], self._members[number].checked
        fixing, result, network = _fixing(member), checked.result, checked.network
        if result is None or network is None or checked.errors or not fixing.wanted(result.findings):
            return False
        if not network.operations:
            self._notes[number] = (f"{member.source.name} is not edited: it is not known what its layers read",)
            return False
        others = [n for n in range(len(self._members)) if n != number]
        sharing = [n for n in range(len(self._members)) if not self._members[n].paths.isdisjoint(member.paths)]

        @cache  # which takes readings, and not each model can be edited at all
        def bystanders() -> list[Member]:
            turned = [self._in_other_mode(n) for n in sharing]
            return [self._members[n] for n in others] + [each for each in turned if each is not None]

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

    def _in_other_mode(self, number: int) -> Member | None:
        """A model in train mode that is followed in eval mode, or the other way round; None where that does not run."""
        if number not in self._turned:
            member = self._members[number]
            job = with_sources(member.job, self._files)
            job = replace(job, reading=replace(job.reading, trains=not job.trains(member.source)))
            read, errors = read_input(member.source, job, self._reading)
            checked = Checked(read=read, network=None if read is None else as_asked(read, job))
            turned = Member(source=member.source, rulebook=member.rulebook, job=job, checked=checked, judged=False)
            self._turned[number] = None if errors or read is None else turned
        return self._turned[number]

    def outcome(self, number: int) -> Outcome:
        """What becomes of a model, and of the files that it has in common with others."""
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
        return Outcome(checked.result, checked.errors, fixed)

    def _shared(self, member: Member) -> set[str]:
        """The edited files of a model, of those that share any of them, and so on."""
        groups = [each.paths & self._files.keys() for each in self._members]
        found = set(member.paths & self._files.keys())
        for _ in groups:
            found.update(*(group for group in groups if not found.isdisjoint(group)))
        return found


def _fixing(member: Member) -> Fixing:
    assert member.job.fixing is not None  # it is to be mended
    return member.job.fixing


def _wanted(member: Member) -> int:
    """How many of its findings are to be mended."""
    result = member.checked.result
    return 0 if result is None else len(_fixing(member).wanted(result.findings))
