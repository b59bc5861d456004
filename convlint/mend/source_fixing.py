"""Python source checked and mended: read, which runs none of it, judged without what the user silenced, and edited.

Fixes are applied, read again, and kept only if the findings go and no others come.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from convlint.engine.findings import NetworkResult
from convlint.engine.source_check import check_source
from convlint.files.bounded_file import python_encoding
from convlint.files.languages import plural
from convlint.files.repository import is_quiet
from convlint.fixes.edits import Edit
from convlint.fixes.plan import Applicability, applicability
from convlint.fixes.python.source import applied_to_bytes, parsed
from convlint.fixes.source_edits import with_source_edits
from convlint.mend.checking import (
    Edited,
    Fixed,
    Fixing,
    InputResult,
    Job,
    Task,
    last_resort,
    resolve_targets,
    versioned,
)
from convlint.model.errors import InputFault
from convlint.model.grouping import grouped
from convlint.model.location import CodeEdit, Location
from convlint.model.report import Finding, InputError
from convlint.model.runtime import VERSIONS, Runtime
from convlint.model.source import PlacedLayer, SourceReading, SourceReport, TrainingProgram
from convlint.model.text import mapped
from convlint.readers.inputs import Input
from convlint.readers.python.reader import joined, read_source
from convlint.readers.python.source_file import read_bytes
from convlint.rulebook.book import Rulebook
from convlint.verdict.suppress import Silencer

_SIZE = "fixed_input_size"
Cells = Mapping[str, tuple[tuple[int, int, int], ...]]


def reading_of(source: Input, job: Job, contents: Mapping[str, bytes] | None = None) -> SourceReading:
    """The reading of the files of an input, or of a part of them; `contents` replaces files, by path."""
    return read_source(
        source.members,
        entries=job.entries,
        input_shape=job.image,
        contents=contents,
        root=source.root,
        part=source.part or None,
    )


def judged_source(
    reading: SourceReading, rulebook: Rulebook, job: Job, contents: Mapping[str, bytes] | None = None
) -> NetworkResult:
    """What was read, judged for the targets; places are those of the code as it was read, also in notebooks."""
    targets = resolve_targets(job.gpus or job.default_gpus)
    reading = replace(reading, programs=tuple(_as_told(program, job) for program in reading.programs))
    silencer = None if job.silencing is None else Silencer(reading, rulebook, job.silencing)
    result = check_source(
        reading,
        rulebook,
        targets,
        job.mode or job.default_mode,
        given=frozenset(reading.files),
        dtype=job.asked.dtype or job.usual.dtype,
        codes=None if job.silencing is None else job.silencing.codes,
        silences=None if silencer is None or silencer.is_idle else silencer.silences,
        known=None if silencer is None or silencer.knows_nothing else silencer.is_known,
        versioned=partial(_versioned, job=job),
    )
    findings = result.findings
    if silencer is not None:
        findings = (*findings, *silencer.of_comments(result.skipped))
    findings = with_source_edits(findings, reading, partial(_content, contents or {}))
    return NetworkResult(
        path=reading.files[0] if reading.files else "",
        labels=tuple(target.label for target in targets),
        mode=result.mode,
        layers=(),
        findings=findings,
        skipped=result.skipped,
        suppressed=() if silencer is None else silencer.suppressed,
        source=SourceReport(
            files=reading.files,
            layers=tuple(_reported(reading)),
            given=len(reading.files) + len(reading.unread_files),
            quiet=sum(map(is_quiet, reading.files)),
            constructions=reading.constructions,
            known=reading.known,
            programs=len({entry.path for entry in reading.programs if entry.closure and entry.path in reading.files}),
            unread=reading.unread,
            unread_files=reading.unread_files,
            unread_cells=reading.unread_cells,
        ),
        code_lines=reading.lines,
    )


def _versioned(runtime: Runtime, folder: str, *, job: Job) -> Runtime:
    """The runtime with the versions that the user states, or that are pinned near the source."""
    stated = {**job.usual.settings, **job.asked.settings}
    if stated.get("framework", runtime.framework) == runtime.framework:
        runtime = replace(runtime, **{name: stated[name] for name in VERSIONS if name in stated})
    return versioned(runtime, folder or os.curdir, job)[0]


def _as_told(program: TrainingProgram, job: Job) -> TrainingProgram:
    """The program with what no source can say for sure: whether its inputs have one size, where the user says so."""
    for running, told_by in ((job.asked, "--runtime"), (job.usual, "[tool.convlint.runtime]")):
        fixed = running.settings.get(_SIZE)
        if fixed is not None and (told_by == "--runtime" or program.fixed_input_size is None):
            statement = f"{_SIZE}={str(fixed).lower()}", Location(path=told_by)
            return replace(program, fixed_input_size=fixed, evidence=(statement,))
    return program


def _reported(reading: SourceReading) -> Iterator[PlacedLayer]:
    """The layers of the files that were given, where those are no tests and their like."""
    paths = {path for path in reading.files if not is_quiet(path)}
    for record in reading.layers:
        known = record.layer.C is not None and record.layer.K is not None and not record.rests_on(reading.unheld)
        if known and not record.replaced and record.layer.path in paths:
            yield PlacedLayer(at=record.layer.locate(), record=record)


def errors_of(source: Input, reading: SourceReading) -> list[InputError]:
    """What is wrong with files that were named, and with cells in them; with others, the report's summary says it."""
    errors = [
        InputError(path=path, message=unread.why, line=unread.line, column=unread.column)
        for path, unread in reading.unread_files.items()
        if path in source.named
    ]
    for cell in reading.unread_cells:
        if cell.at.path in source.named and cell.at.cell is not None:
            message = f"{cell.message}; the other cells were read"
            errors.append(InputError(path=cell.at.path, message=message, line=cell.at.line))
    return errors


def _content(contents: Mapping[str, bytes], path: str) -> bytes | None:
    if path in contents:
        return contents[path]
    with suppress(InputFault):
        return read_bytes(path)
    return None


class _Cells(Struct, frozen=True):
    """Where the lines of notebooks stand."""

    of: Cells

    def placed(self, at: Location) -> Location:
        """A place in the code of a notebook as one in its file."""
        cells = self.of.get(at.path)
        if cells is None or at.line is None or not 1 <= at.line <= len(cells):
            return at
        cell, line, file_line = cells[at.line - 1]
        return Location(path=at.path, line=file_line, cell=(cell, line, at.column))

    def by_cells(self, message: str) -> str:
        """A message that names places in notebooks by their cells."""
        for path, cells in self.of.items():
            if f"{path}:" in message:
                message = re.sub(rf"{re.escape(path)}:(\d+)", partial(_cell, path, cells), message)
        return message

    def lines(self, path: str, lines: tuple[str, ...]) -> tuple[str, ...]:
        """The lines of code by those of the file that hold them."""
        places = zip(lines, self.of[path], strict=False)
        by_line = grouped((file_line, line) for line, (_, _, file_line) in places)
        alone = {number: texts[0] for number, texts in by_line.items() if len(texts) == 1}
        return tuple(alone.get(number, "") for number in range(1, max(alone, default=0) + 1))


def _cell(path: str, cells: Sequence[tuple[int, int, int]], match: re.Match[str]) -> str:
    line = int(match[1][:9])
    if not 1 <= line <= len(cells):
        return match[0]
    return f"{path}:cell {cells[line - 1][0]}:{cells[line - 1][1]}"


def placed(result: NetworkResult, cells: Cells) -> NetworkResult:
    """The result with places in notebooks as people and forges know them."""
    if not cells or result.source is None:
        return result
    notebooks = _Cells(cells)

    def moved(finding: Finding) -> Finding:
        fix = finding.fix and replace(finding.fix, no_edit=mapped(finding.fix.no_edit, notebooks.by_cells))
        return replace(
            finding,
            location=notebooks.placed(finding.location),
            message=mapped(finding.message, notebooks.by_cells),
            fix=fix,
        )

    unread = tuple(replace(place, at=notebooks.placed(place.at)) for place in result.source.unread)
    layers = tuple(replace(layer, at=notebooks.placed(layer.at)) for layer in result.source.layers)
    return replace(
        result,
        findings=tuple(map(moved, result.findings)),
        suppressed=tuple(replace(entry, finding=moved(entry.finding)) for entry in result.suppressed),
        source=replace(result.source, unread=unread, layers=layers),
        code_lines={
            path: notebooks.lines(path, lines) if path in cells else lines for path, lines in result.code_lines.items()
        },
    )


Contents = Mapping[str, bytes]
_MOST_NOTES = 40
_MOST_ALONE = 50  # files that are mended one by one where they cannot be mended together


def counted_source(result: NetworkResult, fixing: Fixing) -> NetworkResult:
    """The result with the number of findings that could be mended."""
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
    findings = [finding for finding in result.findings if _safety(finding) in allowed]
    read = {path: _content({}, path) for path in {edit.path for finding in findings for edit in _edits(finding)}}
    before = {path: content for path, content in read.items() if content is not None}
    findings = [finding for finding in findings if all(edit.path in before for edit in _edits(finding))]
    mending = _Mending(source, rulebook, job, before, result)
    kept = mending.fixable(findings)
    if not kept and len(findings) > 1:
        by_file = grouped((finding.location.path, finding) for finding in findings)
        kept = mending.fixable_groups(list(by_file.values()))
    unmended = placed(counted_source(result, fixing), reading.cells)
    unfixed = [(finding, "the code would not read as before") for finding in findings if finding not in kept]
    notes = notes_on((*unfixed, *_without_edits(unmended.findings, allowed)))
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
    notes = [
        f"{path}: {code}{f' at {count} places' if count > 1 else ''} is not fixed: {why}"
        for (path, code, why), count in groups.items()
    ]
    if len(notes) <= _MOST_NOTES:
        return tuple(notes)
    more = sum(list(groups.values())[_MOST_NOTES:])
    return (*notes[:_MOST_NOTES], f"{plural(more, 'more finding')} of Python source left as they are")


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
        return {path: applied_to_bytes(self._before[path], file_edits) for path, file_edits in edits.items()}

    def judged(self, texts: Contents) -> NetworkResult:
        """The check of the code with these texts of files."""
        key = tuple(sorted(texts.items()))
        if key not in self._results:
            source = replace(self._source, part=())
            reading = joined([reading_of(source, self._job, texts)])
            self._results[key] = judged_source(reading, self._rulebook, self._job, texts)
        return self._results[key]

    def fixable(self, findings: Sequence[Finding]) -> list[Finding]:
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
        remaining = {finding.fingerprint for finding in after.findings}
        old = {(finding.rule.code, finding.location.path) for finding in self._result.findings}
        new = [finding for finding in after.findings if finding.severity != "info"]
        worse = any((finding.rule.code, finding.location.path) not in old for finding in new)
        return list(findings) if not (gone & remaining or worse or _lost(self._result, after)) else []

    def fixable_groups(self, groups: Sequence[Sequence[Finding]]) -> list[Finding]:
        """The findings of the groups that can be fixed beside those of earlier groups."""
        kept: list[Finding] = []
        for group in groups[:_MOST_ALONE]:
            kept = self.fixable([*kept, *group]) or kept
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


_MOST_LOST = 20  # files that are looked for where convlint fails: each takes some readings
_LEAST = 8  # files of a part: fewer are read sooner than a process starts


def in_parts(task: Task, jobs: int) -> list[Task]:
    """The task, or the tasks of reading parts of it: neighbours, which import the same files, together."""
    source, rulebook, job = task
    members = source.members
    run = [number for number, path in enumerate(members) if not is_quiet(path)]  # the others are looked into at most
    count = min(jobs, len(run) // _LEAST)
    if count < 2:
        return [task]
    bounds = [0, *(run[len(run) * number // count] for number in range(1, count)), len(members)]
    parts = [members[start:end] for start, end in pairwise(bounds)]
    return [(replace(source, part=part), rulebook, job) for part in parts]


def outcome_of_part(source: Input, job: Job) -> InputResult:
    """The reading of a part or of a whole input, judged with the others later; files that cannot be read are errors."""
    errors: list[InputError] = []
    readings = _apart(source, job, source.part or source.members, errors)
    return InputResult(None, errors, reading=joined(readings) if readings else None)


def _apart(source: Input, job: Job, paths: Sequence[str], errors: list[InputError]) -> list[SourceReading]:
    """The files read together; after a defect of convlint in halves, until the file that it costs is an error."""
    crash: list[InputError] = []
    with last_resort(crash, source.name):
        return [reading_of(replace(source, part=tuple(paths)), job)]
    if len(paths) == 1 or len(errors) >= _MOST_LOST:
        errors += [replace(error, path=path) for error in crash for path in paths]
        return []
    half = len(paths) // 2
    return [*_apart(source, job, paths[:half], errors), *_apart(source, job, paths[half:], errors)]


def outcome_of_parts(task: Task, parts: Sequence[InputResult]) -> InputResult:
    """The outcome of a whole input whose parts were read, here or elsewhere. Raises RuleError and UsageError only."""
    source, rulebook, job = task
    errors = [error for part in parts for error in part.errors]
    readings = [part.reading for part in parts if part.reading is not None]
    if not readings:
        return InputResult(None, errors)
    with last_resort(errors, source.name):
        reading, lost = joined(readings), bool(errors)
        if lost:
            reading = replace(reading, whole=False)
        errors += errors_of(source, reading)
        result = judged_source(reading, rulebook, job)
        if lost and result.source is not None:
            result = replace(result, source=replace(result.source, given=len(source.members)))
        if job.fixing is not None:
            if job.fixing.mends and not errors:
                return mended_source(source, rulebook, job, reading, result)
            result = counted_source(result, job.fixing)
        return InputResult(placed(result, reading.cells), errors)
    return InputResult(None, errors)
