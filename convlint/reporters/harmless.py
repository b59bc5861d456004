"""The last look at a text before it leaves: no line of it commands a CI system, no character steers a terminal.

Reporters clean what they put in; this holds whatever they, a library or a message let through.
"""

from __future__ import annotations

import re

from convlint.files.safe import break_up_commands, printable
from convlint.reporters.ink import INK_CODES, LINK_CLOSES, LINK_ENDS, LINK_OPENS
from convlint.reporters.words import DOCS, rule_page

# What a runner skips before it looks for a command: white space, and to be safe the colours too.
_BEFORE = r"(?:[^\S\n]|\x1b\[[0-9;]*m)*"
_COMMAND = re.compile(rf"^({_BEFORE}:):", re.MULTILINE)
# The annotations that the github format writes, and nothing else that a runner obeys: no stop-commands, no set-output.
_NO_ANNOTATION = r"(?!::(?:error|warning|notice) (?:file|title)=[^:\n]*::)"
_OTHER_COMMAND = re.compile(rf"^{_NO_ANNOTATION}({_BEFORE}:):", re.MULTILINE)
_INKS = tuple(f"\x1b[{code}m" for code in sorted(INK_CODES))
# links to pages of rules, and to nothing else: whoever writes one between ours can lead nobody astray
_PAGE = re.escape(DOCS + rule_page("CODE")).replace("CODE", "[A-Z]{2,8}[0-9]{3,4}")
_LINK = f"{re.escape(LINK_OPENS)}{_PAGE}{re.escape(LINK_ENDS)}|{re.escape(LINK_CLOSES)}"
_INK = re.compile(f"({'|'.join(map(re.escape, _INKS))}|{_LINK})")
_LINKS = re.compile(_LINK)


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
        text = "\n".join(line if line.isprintable() else _line(line, inks) for line in text.split("\n"))
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
        for ink in _INKS:
            text = text.replace(ink, "-")  # not by nothing, or what is left could become one
        if LINK_OPENS in text:
            text = _LINKS.sub("-", text)
    return text.isprintable()


def _line(line: str, inks: bool) -> str:
    if not inks:
        return printable(line)
    parts = _INK.split(line)  # every second one is a colour
    parts[::2] = map(printable, parts[::2])
    return "".join(parts)
