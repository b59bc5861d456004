"""The outcome of one input: checked, and mended where that is asked for."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from msgspec.structs import replace

from convlint.files.located_yaml import MAX_BYTES, may_share, text_of
from convlint.mend.applicability import Written, with_applicability, with_edits
from convlint.mend.checking import Fixed, InputResult, Job, check_input, content_of, last_resort
from convlint.model.errors import InputFault
from convlint.model.report import InputError
from convlint.readers import MODULE, SPEC
from convlint.readers.inputs import Input
from convlint.readers.reading import Reading, format_of_input
from convlint.rulebook.book import Rulebook

if TYPE_CHECKING:
    from convlint.mend.attempt import Draft


def outcome_of(source: Input, rulebook: Rulebook, job: Job, reading: Reading) -> InputResult:
    """The outcome of one input, with what its file is to become where something in it is to be mended.

    Nothing is written here. Raises RuleError and UsageError only.
    """
    if source.kind == "source":
        from convlint.mend.source_fixing import outcome_of_part, outcome_of_parts

        return outcome_of_parts((source, rulebook, job), [outcome_of_part(source, job)])
    fixing = job.fixing
    readable = source.kind == "file" or source.raw is not None
    if fixing is not None and readable and format_of_input(source) is SPEC:
        if fixing.mends:
            from convlint.mend.mending import mended

            return mended(source, rulebook, job, fixing, reading)
        if source.text is None:  # else it was read to tell a spec from other files
            source, wrong = with_text(source)
            if wrong and source.raw is not None:  # else its reader says it; standard input can be read once
                return InputResult(None, [*wrong])
    checked = check_input(source, rulebook, job, reading)
    if source.kind == "module":
        from convlint.mend.attempt import with_code_edits

        with last_resort(checked.errors, source.name):
            checked.result = with_code_edits(checked, job)
            if fixing is not None:
                checked.result = with_applicability(checked, rulebook, job, fixing, "code")
        return InputResult(checked.result, checked.errors)
    if fixing is None:
        return InputResult(checked.result, checked.errors)
    is_spec = format_of_input(source) is SPEC

    def draft() -> Draft:
        from convlint.mend.attempt import SpecDraft  # which most checks do without

        return SpecDraft(source, job, reading, checked.read)

    with last_resort(checked.errors, source.name):
        edits_of = None
        if is_spec and may_share(source.text or ""):
            from convlint.mend.attempt import edits_where_shared

            edits_of = edits_where_shared(source, job, reading, checked.read)
        of: Written = "spec" if is_spec else "nothing"
        checked.result = with_applicability(checked, rulebook, job, fixing, of, edits_of, draft if is_spec else None)
    if is_spec:
        return InputResult(with_edits(source, rulebook, job, fixing, reading, checked), checked.errors)
    note = f"{source.name} is not edited: only specs in YAML and JSON, and the code of PyTorch models, are"
    return InputResult(checked.result, checked.errors, Fixed(notes=(note,)) if fixing.mends else None)


def with_text(source: Input) -> tuple[Input, tuple[InputError, ...]]:
    """The input with the text of its file, or of what standard input held; unchanged where there is none, and why."""
    try:
        content = content_of(source.copy or source.name) if source.raw is None else source.raw
        return replace(source, text=text_of(content)), ()
    except InputFault as fault:
        return source, (InputError(path="<stdin>", message=fault.message, line=fault.line, column=fault.column),)


def is_mended_together(source: Input, job: Job) -> bool:
    """Whether an input is a live model whose code is to be mended."""
    return job.fixing is not None and job.fixing.mends and format_of_input(source) is MODULE


def with_content(source: Input) -> Input:
    """Standard input with what it holds, since it can be read once; up to one byte more than a spec may have."""
    if source.kind != "stdin":
        return source
    try:
        return replace(source, raw=sys.stdin.buffer.read(MAX_BYTES + 1))
    except (OSError, ValueError):  # its reader says what is wrong
        return source
