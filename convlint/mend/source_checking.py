"""Python source checked: read, which runs none of it, judged, and without what the user silenced."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from convlint.engine.findings import NetworkResult
from convlint.engine.source_check import check_source
from convlint.files.bounded_file import is_quiet
from convlint.fixes.source_edits import with_source_edits
from convlint.mend.checking import Job, resolve_targets, versioned
from convlint.model.errors import InputFault
from convlint.model.location import Location
from convlint.model.report import Finding, InputError
from convlint.model.runtime import VERSIONS, Runtime
from convlint.model.source import PlacedLayer, SourceReading, SourceReport, TrainingProgram
from convlint.model.text import mapped
from convlint.readers.inputs import Input
from convlint.readers.python.reader import read_source
from convlint.readers.python.source_file import read_bytes
from convlint.rulebook.book import Rulebook
from convlint.verdict.suppress import Silencer

_SIZE = "fixed_input_size"
Cells = Mapping[str, tuple[tuple[int, int, int], ...]]


def reading_of(source: Input, job: Job, contents: Mapping[str, bytes] | None = None) -> SourceReading:
    """What the files of an input say, or a part of them; `contents` stand in the place of files."""
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
            layers=tuple(_said(reading)),
            given=len(reading.files) + len(reading.unread_files),
            constructions=reading.constructions,
            known=reading.known,
            programs=len({each.path for each in reading.programs if each.closure and each.path in reading.files}),
            unread=reading.unread,
            unread_files=reading.unread_files,
            unread_cells=reading.unread_cells,
        ),
        code_lines=reading.lines,
    )


def _versioned(runtime: Runtime, folder: str, *, job: Job) -> Runtime:
    """What a framework runs as: the versions that somebody states, or that are pinned near the source."""
    stated = {**job.usual.settings, **job.asked.settings}
    if stated.get("framework", runtime.framework) == runtime.framework:
        runtime = replace(runtime, **{name: stated[name] for name in VERSIONS if name in stated})
    return versioned(runtime, folder or os.curdir, job)[0]


def _as_told(program: TrainingProgram, job: Job) -> TrainingProgram:
    """The program with what no source can say for sure: whether its inputs have one size, where the user says so."""
    for running, told_by in ((job.asked, "--runtime"), (job.usual, "[tool.convlint.runtime]")):
        fixed = running.settings.get(_SIZE)
        if fixed is not None and (told_by == "--runtime" or program.fixed_input_size is None):
            said = f"{_SIZE}={str(fixed).lower()}", Location(path=told_by)
            return replace(program, fixed_input_size=fixed, evidence=(said,))
    return program


def _said(reading: SourceReading) -> Iterator[PlacedLayer]:
    """The layers of the files that were given, where those are no tests and their like."""
    given = {path for path in reading.files if not is_quiet(path)}
    for each in reading.layers:
        if not each.replaced and each.layer.path in given and each.layer.C is not None and each.layer.K is not None:
            yield PlacedLayer(at=each.layer.locate(), record=each)


def errors_of(source: Input, reading: SourceReading) -> list[InputError]:
    """What is wrong with files that were named, and with cells in them; with others, the report's summary says it."""
    errors = [
        InputError(path=path, message=each.why, line=each.line, column=each.column)
        for path, each in reading.unread_files.items()
        if path in source.named
    ]
    for cell in reading.unread_cells:
        if cell.at.path in source.named and cell.at.cell is not None:
            number, line, _ = cell.at.cell
            message = f"cell {number}, line {line}: {cell.why}; the other cells were read"
            errors.append(InputError(path=cell.at.path, message=message, line=cell.at.line))
    return errors


def _content(contents: Mapping[str, bytes], path: str) -> bytes | None:
    if path in contents:
        return contents[path]
    try:
        return read_bytes(path)
    except InputFault:
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

    def said(self, message: str) -> str:
        """A message with the places that it names."""
        for path, cells in self.of.items():
            if f"{path}:" in message:
                message = re.sub(rf"{re.escape(path)}:(\d+)", partial(_cell, path, cells), message)
        return message

    def lines(self, path: str, lines: tuple[str, ...]) -> tuple[str, ...]:
        """The lines of code by those of the file that hold them."""
        found: dict[int, list[str]] = {}
        for line, (_, _, file_line) in zip(lines, self.of[path], strict=False):
            found.setdefault(file_line, []).append(line)
        alone = {number: several[0] for number, several in found.items() if len(several) == 1}
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
        fix = finding.fix and replace(finding.fix, no_edit=mapped(finding.fix.no_edit, notebooks.said))
        return replace(
            finding,
            location=notebooks.placed(finding.location),
            message=mapped(finding.message, notebooks.said),
            fix=fix,
        )

    unread = tuple(replace(each, at=notebooks.placed(each.at)) for each in result.source.unread)
    layers = tuple(replace(each, at=notebooks.placed(each.at)) for each in result.source.layers)
    return replace(
        result,
        findings=tuple(map(moved, result.findings)),
        suppressed=tuple(replace(each, finding=moved(each.finding)) for each in result.suppressed),
        source=replace(result.source, unread=unread, layers=layers),
        code_lines={
            path: notebooks.lines(path, lines) if path in cells else lines for path, lines in result.code_lines.items()
        },
    )
