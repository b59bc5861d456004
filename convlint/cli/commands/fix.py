"""What `convlint check` does with files that are to be mended: writes them, or prints how they would differ."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress

from convlint.cli.streams.clashes import refuse_way_out
from convlint.cli.streams.files import replace_file
from convlint.cli.streams.gate import bare, silence
from convlint.cli.streams.output import style_of, write
from convlint.errors import InputFault, UsageError
from convlint.files.bounded_file import open_regular
from convlint.files.located_yaml import MAX_BYTES
from convlint.files.safe import clean, clean_path
from convlint.linting.fixed import Edited, Outcome
from convlint.report import InputError
from convlint.reporters.ink import painter
from convlint.reporters.words import plural

_STDIN = "-"
_MOST_NOTES = 50
_INKS = {"---": "strong", "+++": "strong", "@@ ": "label"}


class Mender:
    """Takes what inputs are to become, one after the other: `diff` prints how they differ, else files are written."""

    def __init__(self, *, diff: bool) -> None:
        self._diff = diff
        self._edits: list[Edited] = []  # of which a diff is to be shown
        self._stdin: Edited | None = None
        self._notes: list[str] = []
        self._findings = self._files = 0

    @property
    def answers_stdin(self) -> bool:
        """Whether standard output holds what standard input has become, so that reports go elsewhere."""
        return self._stdin is not None

    @property
    def differs(self) -> bool:
        """Whether any input would change."""
        return self._files > 0

    def settled(self, outcome: Outcome) -> Outcome:
        """Writes what an input became. Where that cannot be done, it is an error, and what was found before stands."""
        fixed = outcome.fixed
        if fixed is None:
            return outcome
        self._notes += fixed.notes
        changed = [edited for edited in fixed.files if edited.after != edited.before]
        if not self._diff:
            self._stdin = next((edited for edited in fixed.files if edited.path == _STDIN), self._stdin)
            for edited in changed:
                try:
                    _rewrite(edited)
                except InputFault as fault:
                    error = InputError(path=edited.path, message=fault.message)
                    return outcome._replace(result=fixed.unmended, errors=[*outcome.errors, error])
        else:
            self._edits += changed
        self._files += len(changed)
        self._findings += fixed.count
        return outcome

    def show_diff(self, color: str) -> None:
        """The diff of all inputs, to standard output."""
        from convlint.fixes.diff import unified

        style = style_of(sys.stdout, color)
        paint = painter(style.color)
        for edited in self._edits:
            before, after = (raw.decode("utf-8-sig") for raw in (edited.before, edited.after))
            lines = []
            for line in unified(before, after, clean_path(edited.path)):
                ink = _INKS.get(line[:3]) or {"+": "added", "-": "removed"}.get(line[:1], "")
                text, ending = (line[:-2], "\r\n") if line.endswith("\r\n") else (line[:-1], "\n")
                lines.append((paint(ink, text) if ink and text else text) + ending)
            write(sys.stdout, "".join(lines), style, returns=True)

    def answer_stdin(self) -> None:
        """What standard input has become, byte for byte, to standard output."""
        if self._stdin is None:
            return
        stream = bare(sys.stdout)
        try:
            stream.flush()
            stream.buffer.write(self._stdin.after)
            if len(self._stdin.before) > MAX_BYTES:  # it was too long to be read whole
                shutil.copyfileobj(sys.stdin.buffer, stream.buffer)
            stream.buffer.flush()
        except BrokenPipeError:
            silence(stream)

    def said(self, *, quiet: bool) -> Iterator[str]:
        """What is to be said of it all, on standard error: `quiet`, of what is not fixed alone."""
        yield from map(clean, self._notes[:_MOST_NOTES])
        if len(self._notes) > _MOST_NOTES:
            yield f"and {len(self._notes) - _MOST_NOTES} more notes on what is not fixed"
        if quiet:
            return
        done = "would fix" if self._diff else "fixed"
        if self._files:
            yield f"{done} {plural(self._findings, 'finding')} in {plural(self._files, 'file')}"
        elif self._diff:
            yield "nothing would be fixed"


def _rewrite(edited: Edited) -> None:
    """Puts the new content in the file's place, unless it is another one than was read. Raises InputFault."""
    path = edited.path
    if path == _STDIN:
        return
    try:
        with suppress(OSError):
            if not os.stat(path).st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH):
                raise InputFault("is not fixed: it is read-only")
        with open_regular(path) as file:
            if file.read(MAX_BYTES + 1) != edited.before:
                raise InputFault("is not fixed: it changed while it was checked")
        refuse_way_out(path)
        replace_file(path, edited.after)
    except UsageError as error:
        raise InputFault(f"is not fixed: {error}") from None
