"""Standard output and error behind a gate: what no log or terminal obeys, and streams that are closed, broken or slow.

Reporters clean what they put in; the gate holds whatever they, a library or a message let through.
"""

from __future__ import annotations

import codecs
import errno
import io
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, TextIO, cast

from convlint.files.patterns import pattern
from convlint.files.safe import break_up_commands, printable

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from convlint.reporters import Style


# What a runner skips before it looks for a command: white space, and to be safe the colours too.
_BEFORE = r"(?:[^\S\n]|\x1b\[[0-9;]*m)*"
_COMMAND = pattern(rf"^({_BEFORE}:):", re.MULTILINE)
# The annotations that the github format writes, and nothing else that a runner obeys: no stop-commands, no set-output.
_NO_ANNOTATION = r"(?!::(?:error|warning|notice) (?:file|title)=[^:\n]*::)"
_OTHER_COMMAND = pattern(rf"^{_NO_ANNOTATION}({_BEFORE}:):", re.MULTILINE)


class _Dress(NamedTuple):
    """What reports write beside text: colours, links to pages of rules, and either."""

    inks: tuple[str, ...]
    links: re.Pattern[str]
    either: re.Pattern[str]


@cache
def _dress() -> _Dress:
    """Loaded where a text has colours, which needs the reporters."""
    from convlint.reporters.ink import INK_CODES, LINK_CLOSES, LINK_ENDS, LINK_OPENS
    from convlint.reporters.words import DOCS, rule_page

    inks = tuple(f"\x1b[{code}m" for code in sorted(INK_CODES))
    # Links to pages of rules, and to nothing else: whoever writes one between ours can lead nobody astray.
    page = re.escape(DOCS + rule_page("CODE")).replace("CODE", "[A-Z]{2,8}[0-9]{3,4}")
    link = f"{re.escape(LINK_OPENS)}{page}{re.escape(LINK_ENDS)}|{re.escape(LINK_CLOSES)}"
    return _Dress(inks, re.compile(link), re.compile(f"({'|'.join(map(re.escape, inks))}|{link})"))


def harmless(
    text: str, *, inks: bool = False, annotations: bool = False, returns: bool = False, starts_line: bool = True
) -> str:
    """The text with nothing in it that a log or a terminal would obey; what is harmless already stays as it is.

    `inks` lets the colours of `ink` and links to pages of rules through, `annotations` the workflow commands of the
    github format, whose payload it has escaped, `returns` carriage returns before line feeds.
    `starts_line` says whether the text begins a line or goes on with one.
    """
    if returns and "\r\n" in text:
        parts = text.split("\r\n")
        first = harmless(parts[0], inks=inks, annotations=annotations, starts_line=starts_line)
        return "\r\n".join([first, *(harmless(part, inks=inks, annotations=annotations) for part in parts[1:])])
    if not _steers_nothing(text, inks):
        text = "\n".join(line if line.isprintable() else _printable_line(line, inks) for line in text.split("\n"))
    if "##" in text:
        text = break_up_commands(text)
    if "::" not in text:
        return text
    head = ""
    if not starts_line:
        head, newline, text = text.partition("\n")
        head += newline
    return head + (_OTHER_COMMAND if annotations else _COMMAND).sub(r"\1_", text)


def _steers_nothing(text: str, inks: bool) -> bool:
    """Whether all of it is printable; told without looking at each line, since it nearly always is."""
    text = text.replace("\n", " ").replace("\t", " ")
    if inks and "\x1b" in text:
        for ink in _dress().inks:
            text = text.replace(ink, "-")  # not by nothing, or what is left could become one
        if "\x1b" in text:
            text = _dress().links.sub("-", text)
    return text.isprintable()


def _printable_line(line: str, inks: bool) -> str:
    if not inks:
        return printable(line)
    parts = _dress().either.split(line)  # every second one is a colour
    parts[::2] = map(printable, parts[::2])
    return "".join(parts)


_NOBODY_READS = frozenset((errno.EPIPE, errno.EBADF, errno.ECONNRESET, *([errno.EINVAL] if os.name == "nt" else [])))
_BLANK = pattern(r"(?:[^\S\n]|\x1b\[[0-9;]*m)*(:?)")
_HASHES = pattern(r"(?<!#)(?:(#)|##++\w*+)\Z")
_COMPLETES = {"#": pattern(r"#+\w*\["), "##": pattern(r"#*\w*\[")}


class Gate(io.TextIOBase):
    """A stream that writes to another one what `harmless` leaves of a text, also where it comes in pieces.

    A reader that went away has its right to: what is still to come is dropped. Another failure is an OSError of
    standard output, once; standard error, which is `expendable`, never fails.
    """

    def __init__(self, stream: TextIO, *, expendable: bool = False) -> None:
        self.bare = stream  # what is written to it passes no gate
        self._lock = Lock()  # threads pass on what child processes print, and the state below is of one line
        self._expendable = expendable
        self._gone = False
        self._blank = True  # the line at hand holds nothing yet that would keep a command from being one
        self._colon = False  # ... and one colon after that
        self._hashes = ""  # the line at hand ends with "#", or with "##" and perhaps a word

    def write(self, text: str) -> int:
        """Writes what is harmless in `text`; no colours."""
        self.send(text)
        return len(text)

    def send(self, text: str, *, inks: bool = False, annotations: bool = False, returns: bool = False) -> None:
        """The same with what a report may hold beyond plain text; see `harmless`."""
        with self._lock:
            text = harmless(text, inks=inks, annotations=annotations, returns=returns, starts_line=self._blank)
            if not text:
                return
            if (self._colon and text[0] == ":") or (self._hashes and _COMPLETES[self._hashes].match(text)):
                text = " " + text
            self._note(text)
            encoding = self.encoding
            if encoding.lower().replace("-", "") != "utf8":
                text = text.encode(encoding, "replace").decode(encoding)
            self._try(lambda: self.bare.write(text))

    def _note(self, text: str) -> None:
        """Remembers how the line at hand ends."""
        _, newline, line = text.rpartition("\n")
        blank = _BLANK.fullmatch(line) if self._blank or newline else None
        self._colon = blank is not None and blank[1] == ":"
        self._blank = blank is not None and not self._colon
        ending = _HASHES.search(line if newline else self._hashes + line)
        self._hashes = "" if ending is None else ending[1] or "##"

    def flush(self) -> None:
        """Sends on what the stream holds back."""
        self._try(self.bare.flush)

    def _try(self, call: Callable[[], object]) -> None:
        if self._gone:
            return
        try:
            call()
        except (OSError, ValueError) as error:  # ValueError: someone closed the stream
            self._gone = True
            silence(self.bare)
            code = error.errno if isinstance(error, OSError) else errno.EBADF
            if not self._expendable and code not in _NOBODY_READS:
                raise

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The stream's own."""
        return self.bare.encoding or "utf-8"

    @property
    def buffer(self) -> io.RawIOBase:
        """A stream for bytes, which pass the gate as text."""
        return _Bytes(self)

    def isatty(self) -> bool:
        """Whether the stream is a terminal."""
        return not self._gone and self.bare.isatty()

    def fileno(self) -> int:
        """The stream's own."""
        return self.bare.fileno()

    def writable(self) -> bool:
        """Yes."""
        return True


class _Bytes(io.RawIOBase):
    """Bytes as text in the gate's encoding."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._decoder = codecs.getincrementaldecoder(gate.encoding)("replace")

    def writable(self) -> bool:
        return True

    def write(self, data: Buffer) -> int:
        raw = bytes(data)
        self._gate.write(self._decoder.decode(raw))
        return len(raw)


@contextmanager
def gates() -> Iterator[None]:
    """While active, both standard streams are gates; those that are gates already stay."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = gate(sys.stdout), gate(sys.stderr, expendable=True)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def gate(stream: TextIO, *, expendable: bool = False) -> TextIO:
    """A gate to the stream, or the stream itself where it is one."""
    return stream if isinstance(stream, Gate) else cast(TextIO, Gate(stream, expendable=expendable))


def bare(stream: TextIO) -> TextIO:
    """What is behind the gate: for what moves the cursor of a terminal, and says nothing that comes from files."""
    return stream.bare if isinstance(stream, Gate) else stream


def silence(stream: TextIO) -> None:
    """Sends what is still to be written nowhere, so that the interpreter does not complain at exit."""
    with suppress(OSError, ValueError), open(os.devnull, "w") as nowhere:  # a stream in memory has no number
        os.dup2(nowhere.fileno(), stream.fileno())


def stand_in_for_closed_streams() -> None:
    """Opens what the caller has closed of the three standard streams, lest the next file opened take the number.

    What is written goes nowhere; reading is an OSError that says what is wrong.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDONLY if number == 0 else os.O_WRONLY), True)
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(_Closed()))
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


class _Closed(io.RawIOBase):
    """A standard input that the caller has closed."""

    def readable(self) -> bool:
        return True

    def readinto(self, _: Buffer) -> int:
        raise OSError(errno.EBADF, "standard input is closed")


_LEAST_VTE = 5000  # GNOME Terminal and its relatives: 0.50
_PROGRAMS = frozenset(("Hyper", "WezTerm", "ghostty", "iTerm.app", "terminology", "vscode", "zed"))
_TERMS = frozenset(("alacritty", "alacritty-direct", "foot", "xterm-ghostty", "xterm-kitty"))
_NAMED = ("DOMTERM", "KONSOLE_VERSION", "WT_SESSION")  # the last is Windows Terminal


def follows_links(environment: Mapping[str, str], *, terminal: bool) -> bool:
    """Whether what is written may hold links: FORCE_HYPERLINK first, then what is known of the terminal."""
    forced = environment.get("FORCE_HYPERLINK", "").strip()
    if forced:
        return forced != "0"
    if not terminal:
        return False
    version = environment.get("VTE_VERSION", "")
    return (
        (version.isdecimal() and int(version[:9]) >= _LEAST_VTE)
        or environment.get("TERM_PROGRAM") in _PROGRAMS
        or environment.get("TERM") in _TERMS
        or environment.get("COLORTERM") == "xfce4-terminal"
        or any(environment.get(name) for name in _NAMED)
    )


_WIDEST = 1000  # columns; no terminal is wider, but COLUMNS may say anything


def write(
    stream: TextIO, text: str, style: Style | None = None, *, annotations: bool = False, returns: bool = False
) -> None:
    """Text to a standard stream, in the colours of `style`; `annotations` for the github format alone.

    `returns` for what may have line breaks of two characters.
    """
    passing = stream if isinstance(stream, Gate) else Gate(stream)
    ending = "" if text.endswith("\n") or not text else "\n"
    passing.send(text + ending, inks=style is not None and style.color, annotations=annotations, returns=returns)
    passing.flush()


def style_of(stream: TextIO, color: str, *, quiet: bool = False) -> Style:
    """How to dress text for `stream`: --color first, then NO_COLOR and FORCE_COLOR, then whether it is a terminal.

    What has no colours has no links either.
    """
    from convlint.reporters import Style

    terminal = stream.isatty()
    if color == "auto":
        colored = terminal and os.environ.get("TERM") != "dumb"
        if os.environ.get("FORCE_COLOR"):
            colored = True
        if os.environ.get("NO_COLOR"):
            colored = False
    else:
        colored = color == "always"
    width = 80
    if terminal or os.environ.get("COLUMNS"):
        import shutil  # brings the compressors along, which is felt at every start

        width = shutil.get_terminal_size((80, 24)).columns
    unicode = (stream.encoding or "").lower().replace("-", "") in ("utf8", "utf16")
    links = colored and follows_links(os.environ, terminal=terminal)
    return Style(color=colored, links=links, width=min(max(40, width), _WIDEST), quiet=quiet, unicode=unicode)
