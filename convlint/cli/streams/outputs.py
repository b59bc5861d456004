"""Outputs of every command: `--output FORMAT[=FILE]`, files that may be written and how, and the progress bar."""

from __future__ import annotations

import errno
import os
import stat
import sys
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TextIO

from msgspec import Struct
from msgspec.structs import replace

from convlint.cli.streams.gate import bare, harmless, style_of, write
from convlint.files.cache import checkout_of, is_below
from convlint.files.languages import ENGLISH, speaking
from convlint.files.patterns import pattern
from convlint.model.errors import UsageError, shown, suggestion
from convlint.model.report import Report
from convlint.readers import known_suffixes
from convlint.readers.inputs import Input
from convlint.reporters import Style, reporter
from convlint.rulebook.book import rule_files

if TYPE_CHECKING:
    import threading

    from convlint.run.plan import RunPlanner


_STREAM = pattern(r"/dev/(?:(stdin|stdout|stderr)|fd/(\d{1,9}))|/proc/self/fd/(\d{1,9})")
_NUMBERS = {"stdin": 0, "stdout": 1, "stderr": 2}
# Errors of making or replacing a file, where the file itself may still be one to write to.
_FOLDER_IS_CLOSED = (errno.EACCES, errno.EPERM, errno.EBUSY)
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def replace_file(path: str, content: str | bytes) -> None:
    """Writes all of `content` or nothing: what was there stays until all of the new is on the disk.

    A link keeps pointing where it does. A file keeps its mode and owner; one with other names, or with an owner that
    cannot be kept, is written in place. Raises UsageError where that cannot be done.
    """
    data = content if isinstance(content, bytes) else content.encode("utf-8", "replace")
    try:
        _replace(path, data)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise unwritable(path, error) from error


def append(path: str, text: str) -> None:
    """Adds `text` to a file that others write to as well. Raises UsageError where that cannot be done."""
    try:
        _fill(_open(path, os.O_APPEND | os.O_CREAT), text.encode("utf-8", "replace"))
    except (OSError, ValueError) as error:
        raise unwritable(path, error) from error


def unwritable(path: str, error: OSError | ValueError) -> UsageError:
    """What to raise where `path` cannot be written."""
    return UsageError(f"{path} cannot be written: {getattr(error, 'strerror', None) or error}")


def open_stream(path: str) -> int | None:
    """The number of the open file that `path` stands for, as /dev/stdout does; None for other paths."""
    match = _STREAM.fullmatch(path)
    if match is None or os.name != "posix":
        return None
    return _NUMBERS[match[1]] if match[1] else int(match[2] or match[3])


def _replace(path: str, data: bytes) -> None:
    number = open_stream(path)
    real = os.path.realpath(path)
    before = None
    with suppress(FileNotFoundError):
        before = os.stat(real)
    if number is not None:
        _fill(os.dup(number), data)
    elif before is None:
        _swap(real, data, None)
    elif not stat.S_ISREG(before.st_mode):
        _fill(_open(real), data)
    elif before.st_nlink > 1:
        _overwrite(real, data)
    else:
        try:
            _swap(real, data, before)
        except OSError as error:
            if error.errno not in _FOLDER_IS_CLOSED:
                raise
            _overwrite(real, data)


def _swap(real: str, data: bytes, before: os.stat_result | None) -> None:
    """Puts a new file in the place of `real`. Raises OSError; PermissionError where its owner cannot be kept."""
    # The name cannot be foreseen, so that nobody can lay a link in its place.
    temporary = os.path.join(os.path.dirname(real), f".convlint-{os.urandom(8).hex()}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(temporary, flags, 0o666 if before is None else 0o600)
    try:
        _fill(descriptor, data, prepare=None if before is None else partial(_take_over, before=before), lasting=True)
        os.replace(temporary, real)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _take_over(descriptor: int, before: os.stat_result) -> None:
    """Gives an open file the owner and mode of another."""
    if os.name != "posix":
        return
    own = os.fstat(descriptor)
    if (own.st_uid, own.st_gid) != (before.st_uid, before.st_gid):
        os.fchown(descriptor, before.st_uid, before.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(before.st_mode))  # last: a new owner takes the special bits away


def _overwrite(real: str, data: bytes) -> None:
    """Writes a file in place, so that it stays the same one."""
    descriptor = os.open(real, os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
    _fill(descriptor, data, prepare=partial(_make_room, length=len(data)), cut=True)


def _make_room(descriptor: int, length: int) -> None:
    """Reserves the new length before anything of the old content goes. Raises OSError where there is no room."""
    size = os.fstat(descriptor).st_size
    if length > size and hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(descriptor, size, length - size)
        except OSError as error:
            os.ftruncate(descriptor, size)
            if error.errno in _NO_ROOM:  # else this file system knows no such thing
                raise


def _open(path: str, flags: int = 0) -> int:
    """A file, device or pipe, open for writing. A pipe that nobody reads is an OSError, not a wait without end."""
    waiting_not = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, os.O_WRONLY | waiting_not | flags, 0o666)
    if os.name == "posix":
        os.set_blocking(descriptor, True)
    return descriptor


def _fill(
    descriptor: int, data: bytes, *, prepare: Callable[[int], None] | None = None, lasting: bool = False,
    cut: bool = False,
) -> None:  # fmt: skip
    """Calls `prepare`, writes all and closes; `lasting`: once it is on the disk; `cut`: removes the old end."""
    with open(descriptor, "wb", buffering=0) as file:
        if prepare is not None:
            prepare(descriptor)
        rest = memoryview(data)
        while rest:
            rest = rest[file.write(rest) :]
        if cut:
            os.ftruncate(descriptor, len(data))
        if lasting:
            os.fsync(descriptor)


# What no report and no spec is written over, also where this run does not read it.
_OTHER_MODELS = (".onnx.data", ".onnx_data", ".npz", ".npy", ".gguf")
_MODELS = (
    *(suffix for suffix in known_suffixes(source=False) if not suffix.endswith((".yaml", ".yml", ".json"))),
    *_OTHER_MODELS,
)
_SOURCES = (".py", ".ipynb", ".toml")
_INDEX, _SHARD = ".safetensors.index.json", ".safetensors"

Identity = tuple[object, ...]


class FileUse(Struct, frozen=True, kw_only=True):
    """A file and what it is to this run, in the words of a message: "an input", "the baseline"."""

    role: str
    path: str


def inputs(sources: Iterable[Input]) -> list[FileUse]:
    """The files behind the inputs, with the parts of checkpoints that come in several files."""
    uses = []
    for source in sources:
        if source.kind == "module":
            stem = source.name.partition(":")[0].replace(".", os.sep)
            uses += [FileUse(role="an input", path=file) for file in (f"{stem}.py", os.path.join(stem, "__init__.py"))]
        elif source.kind == "source":
            uses += [FileUse(role="an input", path=member) for member in source.members]
        elif source.kind == "file":
            uses.append(FileUse(role="an input", path=source.name))
            if source.name.lower().endswith(_INDEX):
                uses += [FileUse(role="part of an input", path=part) for part in _shards(source.name)]
    return uses


def in_force(planner: RunPlanner) -> Iterator[FileUse]:
    """What decides on the plans made so far: configs with those they extend, calibrations and rules."""
    for path in (*planner.configs.files(), *planner.calibrations()):
        yield FileUse(role="a config in force", path=path)
    for folder in planner.rule_folders():
        for path in rule_files(folder):
            yield FileUse(role="a rule", path=path)


def _shards(index: str) -> list[str]:
    folder = os.path.dirname(index)
    try:
        return [os.path.join(folder, name) for name in os.listdir(folder or ".") if name.lower().endswith(_SHARD)]
    except OSError:
        return []


def refuse_clashes(outputs: Sequence[FileUse], sources: Iterable[FileUse] = ()) -> None:
    """Raises UsageError where an output is one of `sources`, another output, or cannot be written at all.

    Files are told apart by what they are, not by how they are spelled. Devices and pipes may be shared.
    """
    if not outputs:
        return
    for output in outputs:
        _refuse_unwritable(output.path)
    read: dict[Identity, FileUse] = {}
    for source in sources:
        identity = identify(source.path)
        if identity is not None:
            read.setdefault(identity, source)
    written = _standard_output()
    for output in outputs:
        identity = identify(output.path)
        if identity is None:
            continue
        if identity in read:
            raise written_over(output, read[identity])
        if identity in written:
            other = written[identity]
            raise UsageError(
                f"{other.role} and {output.role} write to the same file: {other.path} and {output.path}; "
                "give each a file of its own"
            )
        written[identity] = output


def written_over(output: FileUse, source: FileUse) -> UsageError:
    """What to raise where an output is a file that is read."""
    same = "" if source.path == output.path else f" ({source.path})"
    return UsageError(f"{output.path} is {source.role}{same}; write {output.role} to another file")


def _standard_output() -> dict[Identity, FileUse]:
    """The file that the shell sends standard output to, if it is one."""
    with suppress(OSError):
        status = os.fstat(1)
        if stat.S_ISREG(status.st_mode):
            return {(status.st_dev, status.st_ino): FileUse(role="standard output", path="the shell's > or >>")}
    return {}


def identify(path: str) -> Identity | None:
    """What is equal for two paths of one file, links and spellings aside, also where the file does not exist yet.

    None for what may be shared: devices and pipes, and paths such as /dev/stdout.
    """
    if open_stream(path) is not None or "\0" in path:
        return None
    try:
        real = os.path.realpath(path)
        status = os.stat(real)
    except UnicodeError:  # a lone surrogate names no file
        return None
    except OSError:
        folder, name = os.path.split(real)
        if sys.platform in ("win32", "darwin"):  # file systems that commonly take no notice of case
            name = unicodedata.normalize("NFC", name).casefold()
        try:
            parent = os.stat(folder)
        except OSError:
            return real, name
        return parent.st_dev, parent.st_ino, name
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        return None
    return status.st_dev, status.st_ino


def refuse_way_out(path: str) -> None:
    """Raises UsageError where links lead from the checkout, or the current folder, to a file that is not in it."""
    real, there = os.path.realpath(path), os.path.abspath(path)
    top = checkout_of(os.path.dirname(there)) or (os.getcwd() if is_below(there, os.getcwd()) else None)
    if top is not None and not is_below(real, os.path.realpath(top)):
        raise UsageError(f"{path} leads out of {top}, to {real}; name that file itself")


def _refuse_unwritable(path: str) -> None:
    """Raises UsageError for what is no file to write a report to."""
    if open_stream(path) is not None:
        return
    status = None
    try:
        real = os.path.realpath(path)
        status = os.stat(real)
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        raise unwritable(path, error) from error
    refuse_way_out(path)
    folder = os.path.dirname(real)
    if status is not None and stat.S_ISDIR(status.st_mode):
        raise UsageError(f"{path} is a folder, not a file to write")
    if not os.path.isdir(folder):
        shown = os.path.dirname(path) or folder
        raise UsageError(f"{path} cannot be written: there is no folder {shown}")
    if not os.access(real if status is not None else folder, os.W_OK):
        raise UsageError(f"{path} cannot be written: permission denied")
    if status is not None and stat.S_ISREG(status.st_mode):
        for name in (path.lower(), real.lower()):
            if name.endswith(_MODELS):
                raise UsageError(f"{path} is a model, by its name; write to another file")
            if name.endswith(_SOURCES):
                raise UsageError(f"{path} is source code or a config, by its name; write to another file")


ColorWhen = Literal["auto", "always", "never"]


class Destination(Struct, frozen=True, kw_only=True):
    """A format and the file that it goes to; None is standard output."""

    format: str
    file: str | None = None


class Presentation(Struct, frozen=True, kw_only=True):
    """How a report is to be shown."""

    outputs: tuple[Destination, ...] = (Destination(format="text"),)
    color: ColorWhen = "auto"
    quiet: bool = False
    verbose: bool = False


def parse_outputs(
    values: Sequence[str], known: Collection[str], *, files_only: Sequence[str] = ()
) -> tuple[Destination, ...]:
    """Each `FORMAT[=FILE]`, of which the file `-` is standard output; text where none is given.

    Raises UsageError for an unknown format, one of `files_only` without a file, and two for standard output.
    """
    places: list[Destination] = []
    for value in values or ("text",):
        name, _, path = value.partition("=")
        if name not in known:
            unknown = shown(name or value)
            raise UsageError(f"unknown format {unknown!r}{suggestion(name, known)}; known are {', '.join(known)}")
        path = "" if path == "-" else path  # standard output, as for other tools
        if not path and name in files_only:
            # an image or a table in a binary format is of no use in a terminal
            raise UsageError(f"--output {name} needs a file: --output {name}=FILE.{name}")
        if not path and any(other.file is None for other in places):
            raise UsageError(f"two formats write to standard output; give one of them a file: {name}=FILE")
        places.append(Destination(format=name, file=path or None))
    return tuple(places)


def files_of(places: Sequence[Destination]) -> list[FileUse]:
    """The files among the places."""
    return [FileUse(role=place.format, path=place.file) for place in places if place.file is not None]


def deliver(
    file: str | None,
    text: str,
    style: Style | None = None,
    *,
    annotations: bool = False,
    stream: TextIO | None = None,
) -> None:
    """A text to its file, or to `stream` (default: standard output) in the colours of `style`. Raises UsageError."""
    if file is None:
        write(stream or sys.stdout, text, style, annotations=annotations)
    else:
        replace_file(file, harmless(text, annotations=annotations))


def write_outputs(
    report: Report, shown: Presentation, stream: TextIO | None = None, *, language: str = ENGLISH
) -> None:
    """Renders each format to its place, which is `stream` (default: standard output) where it has no file.

    Formats for people are in `language`. Raises UsageError where a file cannot be written after all.
    """
    for place in shown.outputs:
        chosen = reporter(place.format)
        style = Style() if place.file is not None else style_of(stream or sys.stdout, shown.color)
        style = replace(style, quiet=shown.quiet, verbose=shown.verbose)
        if language == ENGLISH or not chosen.for_people:
            text = chosen(report, style)
        else:
            from convlint.reporters.translated import in_language

            with speaking(language):
                text = chosen(in_language(report, language), style)
        deliver(place.file, text, style, annotations=chosen.annotations, stream=stream)


def append_summary(file: str, report: Report) -> None:
    """Adds the job's summary, which is English, to its file. Raises UsageError where it cannot be written."""
    from convlint.reporters import github

    append(file, harmless(github.summary(report)))


DELAY_S = 1.0  # shorter runs show no bar, and do not load Rich, which takes longer than most of them


class Progress:
    """A progress bar on standard error.

    It shows nothing where nobody watches: where that is no terminal, with --quiet, or in a run that is soon over.
    """

    def __init__(self, stream: TextIO, *, quiet: bool, doing: str = "checking") -> None:
        self._stream, self._doing = stream, doing
        self._watched = not quiet and stream.isatty()
        self._timer: threading.Timer | None = None
        self._lock: Any = None  # made where there is a second thread
        self._bar: Any = None
        self._task: Any = None
        self._total: int | None = 0
        self._finished = 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is None:
            return
        self._timer.cancel()
        with self._lock:
            self._watched = False
            if self._bar is not None:
                with suppress(OSError):  # the terminal is gone
                    self._bar.stop()

    def start(self, total: int | None) -> None:
        """From now on `total` inputs are checked; None where nobody knows how many there are."""
        self._total = total
        if self._watched:
            import threading

            self._lock = threading.Lock()
            self._timer = threading.Timer(DELAY_S, self._show)
            self._timer.daemon = True
            self._timer.start()

    def done(self, path: str) -> None:
        """The input at `path` is checked."""
        self._finished += 1
        if self._lock is None:
            return
        with self._lock:
            if self._bar is not None:
                from convlint.files.safe import clean_path

                self._bar.update(self._task, completed=self._finished, path=clean_path(path))

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as Bar

        with self._lock:
            if not self._watched:
                return
            columns = (
                TextColumn(self._doing),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[path]}", markup=False),
            )
            # It moves the cursor; the one text in it that comes from outside is cleaned.
            console = Console(file=bare(self._stream))
            # Whatever else is printed goes through the gate, not through Rich.
            self._bar = Bar(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False)
            self._task = self._bar.add_task("", total=self._total, completed=self._finished, path="")
            self._bar.start()
