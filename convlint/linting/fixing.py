"""One input checked, and mended where that is asked for; else how many of its findings could be."""

from __future__ import annotations

import sys
from contextlib import suppress

from msgspec.structs import replace

from convlint.engine.findings import NetworkResult
from convlint.errors import InputFault
from convlint.files.bounded_file import open_regular
from convlint.files.located_yaml import MAX_BYTES, text_of
from convlint.linting.code_edits import with_code_edits
from convlint.linting.fixed import Edited, Fixed, Fixing, Outcome
from convlint.linting.one_input import Checked, Job, check_input, last_resort
from convlint.readers import MODULE, SPEC
from convlint.readers.inputs import Input
from convlint.readers.reading import Reading, format_of_input
from convlint.report import InputError
from convlint.rulebook.book import Rulebook

_BOM = b"\xef\xbb\xbf"


def outcome_of(source: Input, rulebook: Rulebook, job: Job, reading: Reading) -> Outcome:
    """The outcome of one input, with what its file is to become where something in it is to be mended.

    Nothing is written here. Raises RuleError and UsageError only.
    """
    if source.kind == "source":
        from convlint.linting.source_parts import source_outcome

        return source_outcome(source, rulebook, job)
    fixing = job.fixing
    readable = source.kind == "file" or source.raw is not None
    if fixing is not None and (fixing.mends or fixing.proposes) and readable and format_of_input(source) is SPEC:
        if fixing.mends:
            return _mended(source, rulebook, job, fixing, reading)
        with suppress(InputFault):  # its reader says what is wrong
            source = replace(source, text=text_of(_content(source.name) if source.raw is None else source.raw))
    checked = check_input(source, rulebook, job, reading)
    if fixing is not None:
        from convlint.linting.counting import with_applicability
    if source.kind == "module":
        with last_resort(checked.errors, source.name):
            checked.result = with_code_edits(checked, job)
            if fixing is not None:
                checked.result = with_applicability(checked, rulebook, job, fixing, "code")
        return Outcome(checked.result, checked.errors)
    outcome = Outcome(checked.result, checked.errors)
    if fixing is None:
        return outcome
    is_spec = format_of_input(source) is SPEC
    with last_resort(checked.errors, source.name):
        checked.result = with_applicability(checked, rulebook, job, fixing, "spec" if is_spec else "nothing")
    outcome = outcome._replace(result=checked.result)
    if is_spec:
        return outcome._replace(result=_with_edits(source, rulebook, job, fixing, reading, checked))
    note = f"{source.name} is not edited: only specs in YAML and JSON, and the code of PyTorch models, are"
    return outcome._replace(fixed=Fixed(notes=(note,))) if fixing.mends else outcome


def is_mended_together(source: Input, job: Job) -> bool:
    """Whether an input is a live model whose code is to be mended."""
    return job.fixing is not None and job.fixing.mends and format_of_input(source) is MODULE


def _mended(source: Input, rulebook: Rulebook, job: Job, fixing: Fixing, reading: Reading) -> Outcome:
    from convlint.linting.attempt import SpecDraft
    from convlint.linting.counting import with_applicability
    from convlint.linting.mending import Mending

    path, raw = source.name, source.raw
    shown = "<stdin>" if source.kind == "stdin" else path
    try:
        if raw is None:
            raw = _content(path)
        text = text_of(raw)
    except InputFault as fault:
        error = InputError(path=shown, message=fault.message, line=fault.line, column=fault.column)
        unread = () if raw is None else (Edited(path=path, before=raw, after=raw),)
        return Outcome(None, [error], Fixed(files=unread))
    source = replace(source, text=text)
    checked = check_input(source, rulebook, job, reading)
    mending = Mending(SpecDraft(source, job, reading, checked.read), rulebook, fixing, checked)
    with last_resort(checked.errors, source.name):
        mending.run()
    if checked.errors:  # it could not be read in full, or mending it failed
        same = Edited(path=path, before=raw, after=raw)
        return Outcome(checked.result, checked.errors, Fixed(files=(same,)))
    after = (_BOM if raw.startswith(_BOM) else b"") + mending.draft.text.encode()
    fixed = Fixed(
        files=(Edited(path=path, before=raw, after=after),),
        count=mending.count,
        notes=tuple(mending.notes(shown)),
        unmended=checked.result if mending.count else None,
    )
    checked, source = mending.checked, mending.draft.source
    checked.result = with_applicability(checked, rulebook, job, fixing, "spec")
    return Outcome(_with_edits(source, rulebook, job, fixing, reading, checked), checked.errors, fixed)


def _with_edits(
    source: Input, rulebook: Rulebook, job: Job, fixing: Fixing, reading: Reading, checked: Checked
) -> NetworkResult | None:
    """The result, with the edits of its findings where these are asked for."""
    result = checked.result
    if fixing.proposes and source.text is not None:
        from convlint.linting.proposing import Proposing

        with last_resort(checked.errors, source.name):
            result = Proposing(source, rulebook, job, fixing, reading, checked).result()
    return result


def with_content(source: Input) -> Input:
    """Standard input with what it holds, since it can be read once; up to one byte more than a spec may have."""
    if source.kind != "stdin":
        return source
    try:
        return replace(source, raw=sys.stdin.buffer.read(MAX_BYTES + 1))
    except (OSError, ValueError):  # its reader says what is wrong
        return source


def _content(path: str) -> bytes:
    """A file's first bytes, one more than a spec may have. Raises InputFault."""
    with open_regular(path) as file:
        return file.read(MAX_BYTES + 1)
