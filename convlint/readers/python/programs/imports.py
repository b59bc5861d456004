"""The imports of a file, found in its text without parsing it, and what each binds."""

from __future__ import annotations

import re

from msgspec import Struct

IMPORT = re.compile(
    rb"^(?:\xef\xbb\xbf)?[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import[ \t]*(\([^)]*\)|(?:[^\n\\]|\\\r?\n|\\)*)"
    rb"|import[ \t]+([^\n;#]+))",
    re.MULTILINE,
)
_COMMENT = re.compile(rb"#[^\n]*")
_DYNAMIC = re.compile(rb"\b(?:import_module|__import__)\s*\(")


class Import(Struct, frozen=True):
    """`from module import attr as name`, or `import module as name`, where `attr` is empty.

    `level` counts the dots in front. `name` is what it binds: `*` for a star, and the first part of a plain import.
    """

    module: str
    level: int
    attr: str
    name: str


def imports(content: bytes) -> tuple[Import, ...]:
    """All imports, those inside functions too. One that stands in a docstring is taken for one: that is rare."""
    found: list[Import] = []
    for match in IMPORT.finditer(content):
        source, names, plain = match.groups()
        if plain is not None:
            found += _plain(plain.decode("utf-8", "replace"))
            continue
        dotted = source.decode("utf-8", "replace")
        module = dotted.lstrip(".")
        text = _COMMENT.sub(b"", names).replace(b"\\", b" ").strip(b"() \t\r\n").decode("utf-8", "replace")
        for part in text.split(";")[0].split(","):
            words = part.split()
            if words and (words[0] == "*" or words[0].isidentifier()):
                name = words[2] if len(words) == 3 and words[1] == "as" else words[0]
                found.append(Import(module, len(dotted) - len(module), words[0], name))
    return tuple(found)


def imports_by_name(content: bytes) -> bool:
    """Whether it imports by a call, what that may be."""
    return (b"import_module" in content or b"__import__" in content) and _DYNAMIC.search(content) is not None


def _plain(text: str) -> list[Import]:
    found = []
    for part in text.split(","):
        words = part.split()
        if not words or not all(piece.isidentifier() for piece in words[0].split(".")):
            continue
        if len(words) == 3 and words[1] == "as":
            found.append(Import(words[0], 0, "", words[2]))
        elif len(words) == 1:
            found.append(Import(words[0], 0, "", words[0].split(".")[0]))
    return found
