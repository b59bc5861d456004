"""The words of the code of a file, by the names at its top that they define: of no comment, and of no docstring.

Files are cut at the lines that begin a statement, without parsing them: most are looked at for their words alone.
Where that could be done in two ways, a name stands for more words rather than for fewer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

WORD = re.compile(rb"[A-Za-z_]\w*")
_TEXT = re.compile(
    rb'"""(?:[^"\\]+|\\.|"(?!""))*(?:"""|\Z)'
    rb"|'''(?:[^'\\]+|\\.|'(?!''))*(?:'''|\Z)"
    rb'|"(?:[^"\\\n]+|\\.)*"?'
    rb"|'(?:[^'\\\n]+|\\.)*'?"
    rb"|\#[^\n]*",
    re.DOTALL,
)
_START = re.compile(rb"^(?!(?:else|elif|except|finally)\b)[^\s)\]}]", re.MULTILINE)
_DEFINED = re.compile(rb"(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)")
_BLOCK = re.compile(rb"(?:if|try|with|for|while|async|match)\b")
_BINDS = re.compile(
    rb"(?:(?:^|[;:])[ \t]*(?:(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)"
    rb"|([^=;:#{}\n]+?|[(\[][^=;:#{}()\[\]]+[)\]][ \t]*))|=[ \t]*([\w.][\w., \t]*?))"
    rb"(?(1)|(?::[^=\n]{0,200})?(?:[-+*/|&^%@]|//|\*\*|<<|>>)?(?==(?!=)))",
    re.MULTILINE,
)
_CHAINED = re.compile(rb"=[ \t]*[\w., \t]+=(?!=)")  # another name for what stands further on
_NO_WORD = bytes(byte if byte > 127 or bytes([byte]).isalnum() or byte == ord("_") else ord(" ") for byte in range(256))
_INSIDE = (b"(", b",", b"=", b"[", b"{", b"+", b"\\")  # behind one of these, a text is part of an expression
_NEAR = 400  # bytes in front of a text that are looked at
_LONGEST = 200_000  # bytes of one statement that is searched for what it binds


class Statement:
    """A statement at the top of a file; most are asked for a word or two, and few for all."""

    def __init__(self, text: bytes) -> None:
        """`text` is without comments and docstrings; of other texts it has the words."""
        self.text = text

    @cached_property
    def words(self) -> frozenset[bytes]:
        """All of its words."""
        return frozenset(WORD.findall(self.text))


def statements_by_name(content: bytes) -> dict[bytes, list[Statement]]:
    """What each name at the top of a file stands for; one that is defined twice, for both."""
    found: dict[bytes, list[Statement]] = {}
    if b"\r" in content:
        content = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    for text in _statements(_TEXT.sub(_as_words, content)):
        statement = Statement(text)
        for name in dict.fromkeys(_names(text)):
            found.setdefault(name, []).append(statement)
    return found


def _as_words(match: re.Match[bytes]) -> bytes:
    """The words of a text in one line; nothing of a comment or a docstring."""
    text = match[0]
    if text.startswith(b"#") or (text.startswith((b'"""', b"'''")) and _is_docstring(match)):
        return b""
    return text.translate(_NO_WORD)


def _is_docstring(match: re.Match[bytes]) -> bool:
    """Whether a text is a statement: alone on its lines, and no part of what stands before."""
    content, start = match.string, match.start()
    before = content[max(0, start - _NEAR) : start].rstrip(b" \trRuU")
    if before and not before.endswith(b"\n"):
        return False
    end = content.find(b"\n", match.end())
    behind = content[match.end() : end if end >= 0 else None]
    return not behind.strip() and not before.rstrip().endswith(_INSIDE)


def _statements(code: bytes) -> Iterator[bytes]:
    """The statements at the top of a file; a line within brackets begins none."""
    begin, depth, counted = -1, 0, 0
    for match in _START.finditer(code):
        at = match.start()
        depth += _depth(code[counted:at])
        counted = at
        if depth > 0 or code[max(0, at - 2) : at] == b"\\\n":
            continue
        depth = 0
        if begin >= 0:
            yield code[begin:at]
        begin = at
    if begin >= 0:
        yield code[begin:]


def _depth(code: bytes) -> int:
    """How many more brackets open than close."""
    return (
        code.count(b"(") + code.count(b"[") + code.count(b"{") - code.count(b")") - code.count(b"]") - code.count(b"}")
    )


def _names(statement: bytes) -> list[bytes]:
    """The names that a statement gives a meaning."""
    defined = _DEFINED.match(statement)
    if defined is not None:
        return [defined[1]]
    if statement.startswith((b"import ", b"from ", b"@")):
        return []
    names = [b"__main__"] if statement.startswith(b"if ") and b"__name__" in statement else []
    return [*names, *_bound(statement, is_block=_BLOCK.match(statement) is not None)]


def _bound(statement: bytes, *, is_block: bool) -> Iterator[bytes]:
    """The names that an assignment, or the lines of a block, bind; arguments by name do not."""
    depth = counted = 0
    for match in _BINDS.finditer(statement, 0, _LONGEST):
        depth += _depth(statement[counted : match.start()])
        counted = match.start()
        if depth > 0:
            continue
        yield from WORD.findall(match[1] or match[2] or match[3])
        if not is_block and not _CHAINED.match(statement, match.end()) and b";" not in statement:
            return
