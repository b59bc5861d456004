"""`convlint check --fix` and `--diff`: writes the fixed files, or prints how they would differ."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress

from msgspec.structs import replace

from convlint.cli.streams.gate import bare, harmless, silence, style_of, write
from convlint.cli.streams.outputs import refuse_way_out, replace_file
from convlint.files.bounded_file import open_regular
from convlint.files.languages import plural
from convlint.files.located_yaml import MAX_BYTES
from convlint.files.safe import clean, clean_path
from convlint.mend.checking import Edited, InputResult
from convlint.model.errors import InputFault, UsageError
from convlint.model.report import InputError
from convlint.reporters import Style
from convlint.reporters.ink import painter

_STDIN = "-"
_MOST_NOTES = 50  # what is wrong is seen by then, and a terminal holds no more
_INKS = {"---": "strong", "+++": "strong", "@@ ": "label"}


class Mender:
    """Writes the fixed files of one input after the other; with `diff` it only keeps them, to be shown."""

    def __init__(self, *, diff: bool) -> None:
        self._diff = diff
        self._edits: list[Edited] = []  # of which a diff is to be shown
        self._stdin: Edited | None = None
        self._notes: list[str] = []
        self._faults: dict[str, InputError | None] = {}  # of files of which more than one input is made
        self._findings = self._files = 0

    @property
    def answers_stdin(self) -> bool:
        """Whether standard output gets the fixed standard input, so that reports go elsewhere."""
        return self._stdin is not None

    @property
    def differs(self) -> bool:
        """Whether any input would change."""
        return self._files > 0

    def settled(self, outcome: InputResult) -> InputResult:
        """Writes the fixed files of an input: all of them or none, and a file that several inputs share only once.

        Where that fails, the outcome has an error, and the findings from before the fix.
        """
        fixed = outcome.fixed
        if fixed is None:
            return outcome
        self._notes += fixed.notes
        changed = [edited for edited in fixed.files if edited.after != edited.before]
        new = [edited for edited in changed if edited.path not in self._faults]
        fault = None
        if not self._diff:
            self._stdin = next((edited for edited in fixed.files if edited.path == _STDIN), self._stdin)
            fault = _rewrite(new)
        else:
            self._edits += new
        self._faults.update((edited.path, fault) for edited in new)
        if any(self._faults[edited.path] for edited in changed):
            errors = [*outcome.errors, *([fault] if fault is not None else [])]  # it is said once
            return replace(outcome, result=fixed.unmended, errors=errors)
        self._files += len(new)
        self._findings += fixed.count
        return outcome

    def show_diff(self, color: str) -> None:
        """Prints the diff of all inputs."""
        style = style_of(sys.stdout, color)
        for edited in self._edits:
            if not print_diff(edited, style):
                name = clean_path(edited.path)
                self._notes.append(f"{name}: this diff cannot be applied: its lines hold what is not printed as it is")

    def answer_stdin(self) -> None:
        """Writes the fixed standard input, byte for byte, to standard output."""
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

    def notes(self) -> Iterator[str]:
        """Notes on what is not fixed, for standard error."""
        yield from map(clean, self._notes[:_MOST_NOTES])
        if len(self._notes) > _MOST_NOTES:
            yield f"and {len(self._notes) - _MOST_NOTES} more notes on what is not fixed"

    def done(self) -> Iterator[str]:
        """How many findings and files are fixed, for standard error."""
        done = "would fix" if self._diff else "fixed"
        if self._files:
            yield f"{done} {plural(self._findings, 'finding')} in {plural(self._files, 'file')}"
        elif self._diff:
            yield "nothing would be fixed"


def print_diff(edited: Edited, style: Style) -> bool:
    """Prints how a file would change, and returns whether the diff can be applied as it is printed."""
    from convlint.fixes.edits import unified

    paint = painter(style.color)
    encoding = edited.encoding.removesuffix("-sig")  # the mark before the text is part of its first line
    before, after = (raw.decode(encoding) for raw in (edited.before, edited.after))
    lines, diff = [], unified(before, after, clean_path(edited.path))
    for line in diff:
        ink = _INKS.get(line[:3]) or {"+": "added", "-": "removed"}.get(line[:1], "")
        text, ending = (line[:-2], "\r\n") if line.endswith("\r\n") else (line[:-1], "\n")
        lines.append((paint(ink, text) if ink and text else text) + ending)
    write(sys.stdout, "".join(lines), style, returns=True)
    printed = "".join(diff)
    is_as_in_the_file = printed.isascii() or edited.encoding.startswith("utf-8")
    return is_as_in_the_file and harmless(printed, returns=True) == printed


def _rewrite(files: Sequence[Edited]) -> InputError | None:
    """Writes all of the files, or none, and returns what is wrong with one of them."""
    # Every file is looked at before the first is written: most faults, such as a read-only file, then undo nothing.
    done: list[Edited] = []
    for step in (refuse_change, _replace):
        for edited in files:
            try:
                if step is _replace:
                    done.append(edited)
                if edited.path != _STDIN:
                    step(edited)
            except (InputFault, UsageError) as error:
                _restore(done[:-1] if step is _replace else done)
                return InputError(path=edited.path, message=f"is not fixed: {error}")
            except BaseException:  # an interrupt too leaves all of them, or none
                _restore(done)
                raise
    return None


def _restore(files: Sequence[Edited]) -> None:
    for edited in files:
        if edited.path != _STDIN:
            with suppress(UsageError):  # it was written a moment ago
                replace_file(edited.path, edited.before)


def refuse_change(edited: Edited) -> None:
    """Raises InputFault or UsageError for a file that is not to be written, or is another one than was read."""
    path = edited.path
    with suppress(OSError):
        if not os.stat(path).st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH):
            raise InputFault("it is read-only")
    with open_regular(path) as file:
        if file.read(max(MAX_BYTES, len(edited.before)) + 1) != edited.before:
            raise InputFault("it changed while it was checked")
    refuse_way_out(path)


def _replace(edited: Edited) -> None:
    """Writes it. Raises UsageError."""
    path = edited.path
    before = _second(path)
    replace_file(path, edited.after)
    if path.endswith(".py") and _second(path) == before:  # else the bytecode would be taken for that of the new source
        with suppress(OSError):
            os.utime(path, (before + 1, before + 1))


def _second(path: str) -> int:
    """The second in which the file was last written; 0 where that is not known.

    Python tells whether bytecode is stale by the size and the whole second of its source.
    """
    with suppress(OSError):
        return int(os.stat(path).st_mtime)
    return 0
