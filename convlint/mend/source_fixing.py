"""Fixes of findings on Python source: applied, read again, and kept only if the findings go and no others come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from msgspec.structs import replace

from convlint.engine.findings import NetworkResult
from convlint.files.bounded_file import open_regular, python_encoding
from convlint.files.languages import plural
from convlint.fixes.edits import Edit
from convlint.fixes.plan import Applicability, applicability
from convlint.fixes.python.rewriting import applied_to_bytes
from convlint.fixes.python.source import parsed
from convlint.mend.checking import Edited, Fixed, Fixing, InputResult, Job, Task, last_resort
from convlint.mend.source_checking import errors_of, judged_source, placed, reading_of
from convlint.model.errors import InputFault
from convlint.model.location import CodeEdit
from convlint.model.report import Finding, InputError
from convlint.model.source import SourceReading
from convlint.readers.inputs import Input
from convlint.readers.python.reader import joined
from convlint.readers.python.source_file import LARGEST
from convlint.rulebook.book import Rulebook

Contents = Mapping[str, bytes]
_MOST_NOTES = 40
_MOST_ALONE = 50  # files that are mended one by one where they cannot be mended together


def counted_source(result: NetworkResult, fixing: Fixing) -> NetworkResult:
    """The result with how many findings could be mended."""
    kinds = [_safety(finding) for finding in result.findings]
    now = kinds.count("safe") + (kinds.count("unsafe") if fixing.unsafe else 0)
    return replace(result, fixable=now, fixable_unsafe=0 if fixing.unsafe else kinds.count("unsafe"))


def mended_source(
    source: Input, rulebook: Rulebook, job: Job, reading: SourceReading, result: NetworkResult
) -> InputResult:
    """The outcome with the new content of the files. Nothing is written here."""
    fixing = job.fixing
    assert fixing is not None  # it is to be mended
    allowed = ("safe", "unsafe") if fixing.unsafe else ("safe",)
    wanted = [each for each in result.findings if _safety(each) in allowed]
    before = _read(edit.path for finding in wanted for edit in _edits(finding))
    wanted = [each for each in wanted if all(edit.path in before for edit in _edits(each))]
    mending = _Mending(source, rulebook, job, before, result)
    kept = mending.kept(wanted)
    if not kept and len(wanted) > 1:
        kept = mending.kept_of_each(_by_file(wanted))
    unmended = placed(counted_source(result, fixing), reading.cells)
    left = [(each, "the code would not read as before") for each in wanted if each not in kept]
    notes = notes_on((*left, *_without_edits(unmended.findings, allowed)))
    if not kept:
        return InputResult(unmended, [], Fixed(notes=notes))
    after = mending.texts(kept)
    files = tuple(
        Edited(path=path, before=before[path], after=text, encoding=python_encoding(text))
        for path, text in sorted(after.items())
    )
    mended = counted_source(mending.judged(after), fixing)
    fixed = Fixed(files=files, count=len(kept), notes=notes, unmended=unmended)
    return InputResult(placed(mended, reading.cells), [], fixed)


def _without_edits(findings: Iterable[Finding], allowed: Sequence[str]) -> Iterator[tuple[Finding, str]]:
    """Findings whose fix could be applied, with the reason why there is no edit."""
    for finding in findings:
        fix = finding.fix
        if fix is not None and not fix.code_edits and fix.no_edit and "unsafe" in allowed:
            yield finding, fix.no_edit


def notes_on(left: Iterable[tuple[Finding, str]]) -> tuple[str, ...]:
    """Notes on findings that are not fixed: one for all findings of a file with the same rule and reason."""
    groups = Counter((finding.location.path, finding.rule.code, why) for finding, why in left)
    said = [
        f"{path}: {code}{f' at {count} places' if count > 1 else ''} is not fixed: {why}"
        for (path, code, why), count in groups.items()
    ]
    if len(said) <= _MOST_NOTES:
        return tuple(said)
    more = sum(list(groups.values())[_MOST_NOTES:])
    return (*said[:_MOST_NOTES], f"{plural(more, 'more finding')} of Python source left as they are")


class _Mending:
    """Checks the code with some of the findings fixed; equal texts are checked once."""

    def __init__(self, source: Input, rulebook: Rulebook, job: Job, before: Contents, result: NetworkResult) -> None:
        self._source, self._rulebook, self._job, self._before, self._result = source, rulebook, job, before, result
        self._results: dict[tuple[tuple[str, bytes], ...], NetworkResult] = {}

    def texts(self, findings: Iterable[Finding]) -> dict[str, bytes]:
        """The files as they are with these findings mended; edits that several of them need are made once."""
        edits: dict[str, set[Edit]] = {}
        for finding in findings:
            for edit in _edits(finding):
                edits.setdefault(edit.path, set()).add(Edit(edit.start, edit.end, edit.new))
        return {path: applied_to_bytes(self._before[path], several) for path, several in edits.items()}

    def judged(self, texts: Contents) -> NetworkResult:
        """The check of the code as it would be."""
        key = tuple(sorted(texts.items()))
        if key not in self._results:
            whole = replace(self._source, part=())
            reading = joined([reading_of(whole, self._job, texts)])
            self._results[key] = judged_source(reading, self._rulebook, self._job, texts)
        return self._results[key]

    def kept(self, findings: Sequence[Finding]) -> list[Finding]:
        """The findings if all of them can be fixed together, otherwise none."""
        if not findings:
            return []
        try:
            texts = self.texts(findings)
            for text in texts.values():
                parsed(text)
        except (ValueError, UnicodeError, InputFault):  # two edits in one place, or no Python any more
            return []
        after = self.judged(texts)
        gone = {finding.fingerprint for finding in findings}
        left = {finding.fingerprint for finding in after.findings}
        old = {(each.rule.code, each.location.path) for each in self._result.findings}
        new = [each for each in after.findings if each.severity != "info"]
        worse = any((each.rule.code, each.location.path) not in old for each in new)
        return list(findings) if not (gone & left or worse or _lost(self._result, after)) else []

    def kept_of_each(self, groups: Sequence[Sequence[Finding]]) -> list[Finding]:
        """The findings of the groups that can be fixed beside those of earlier groups."""
        kept: list[Finding] = []
        for group in groups[:_MOST_ALONE]:
            kept = self.kept([*kept, *group]) or kept
        return kept


def _lost(before: NetworkResult, after: NetworkResult) -> bool:
    """Whether less of the code can be read than before."""
    if before.source is None or after.source is None:
        return False
    return after.source.known < before.source.known or len(after.source.unread_files) > len(before.source.unread_files)


def _safety(finding: Finding) -> Applicability | None:
    """How safely its edits can be made; None where it has none."""
    safety = applicability(finding) if _edits(finding) else None
    return "unsafe" if safety is not None and finding.fix is not None and finding.fix.edits_safety != "safe" else safety


def _edits(finding: Finding) -> tuple[CodeEdit, ...]:
    return () if finding.fix is None else finding.fix.code_edits


def _by_file(findings: Iterable[Finding]) -> list[list[Finding]]:
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(finding.location.path, []).append(finding)
    return list(groups.values())


def _read(paths: Iterable[str]) -> dict[str, bytes]:
    """The files as they are on disk; one that cannot be read any more is left out."""
    found = {}
    for path in dict.fromkeys(paths):
        try:
            with open_regular(path) as stream:
                found[path] = stream.read(LARGEST + 1)
        except InputFault:
            continue
    return found


_LEAST = 8  # files of a part: fewer are read sooner than a process starts


def in_parts(task: Task, jobs: int) -> list[Task]:
    """The task, or the tasks of reading parts of it: neighbours, which import the same files, together."""
    source, rulebook, job = task
    count = min(jobs, len(source.members) // _LEAST)
    if count < 2:
        return [task]
    bounds = [len(source.members) * number // count for number in range(count + 1)]
    parts = [source.members[start:end] for start, end in pairwise(bounds)]
    return [(replace(source, part=part), rulebook, job) for part in parts]


def outcome_of_part(source: Input, job: Job) -> InputResult:
    """What a part says, or a whole input; it is judged with the others."""
    errors: list[InputError] = []
    with last_resort(errors, source.name):
        return InputResult(None, errors, reading=reading_of(source, job))
    return InputResult(None, errors)


def outcome_of_parts(task: Task, parts: Sequence[InputResult]) -> InputResult:
    """The outcome of a whole input whose parts were read, here or elsewhere. Raises RuleError and UsageError only."""
    source, rulebook, job = task
    errors = [error for part in parts for error in part.errors]
    readings = [part.reading for part in parts if part.reading is not None]
    if not readings:
        return InputResult(None, errors)
    with last_resort(errors, source.name):
        reading = joined(readings)
        errors += errors_of(source, reading)
        result = judged_source(reading, rulebook, job)
        if job.fixing is not None:
            if job.fixing.mends and not errors:
                return mended_source(source, rulebook, job, reading, result)
            result = counted_source(result, job.fixing)
        return InputResult(placed(result, reading.cells), errors)
    return InputResult(None, errors)
