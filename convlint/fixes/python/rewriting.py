"""Rewrites of Python source: literals and keywords of calls, and statements put in front of others.

Each result is parsed again, and refused unless its syntax tree differs from the old one in exactly what was wanted.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator, Mapping, Sequence

from convlint.fixes.edits import Edit, applied
from convlint.fixes.python.source import Lines, ParsedModule, PythonSource, Rewrites, Value, parsed, same
from convlint.model.errors import InputFault

_LONE_RETURN = re.compile(r"\r(?!\n)")  # a line break for the parser, and not for the tokenizer
_SPACE = frozenset((tokenize.NL, tokenize.NEWLINE, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT))


def rewritten(source: PythonSource, rewrites: Rewrites) -> tuple[Edit, ...]:
    """The edits in bytes, in order. Raises InputFault where the edited module would not be the same otherwise."""
    edits = _edits(source, rewrites)
    try:
        text = applied(source.text, edits)
    except ValueError:
        raise InputFault("what would change overlaps") from None
    if not same(ParsedModule(source.tree, source), ParsedModule(parsed(text), Lines(text)), rewrites):
        raise InputFault("the edited module would mean something else")
    return _in_bytes(source, edits, text)


def _in_bytes(source: PythonSource, edits: Sequence[Edit], text: str) -> tuple[Edit, ...]:
    """The edits in bytes. Raises InputFault where these do not make `text`: some encodings carry state along."""
    in_bytes = source.in_bytes(edits)
    if applied_to_bytes(source.raw, in_bytes) != text.encode(source.encoding):
        raise InputFault(f"its {source.encoding} cannot be edited in places")
    return in_bytes


def rewritten_each(source: PythonSource, parts: Sequence[Rewrites]) -> list[tuple[Edit, ...] | str]:
    """The edits of each part by itself, or why there are none; the module is parsed once where all can be made."""
    if not parts:
        return []
    try:
        whole = rewritten(
            source,
            Rewrites(
                {node: value for part in parts for node, value in part.literals.items()},
                {call: given for part in parts for call, given in part.keywords.items()},
            ),
        )
        places = sorted((edit, number) for number, part in enumerate(parts) for edit in _edits(source, part))
    except InputFault as fault:
        # Parsing is what takes time: halves find the parts that fail in a few parses, not one for each.
        half = len(parts) // 2
        if not half:
            return [fault.message]
        return [*rewritten_each(source, parts[:half]), *rewritten_each(source, parts[half:])]
    found: list[tuple[Edit, ...]] = [() for _ in parts]
    for (_, number), edit in zip(places, whole, strict=True):
        found[number] += (edit,)
    return [*found]


def _edits(source: PythonSource, rewrites: Rewrites) -> list[Edit]:
    """In characters."""
    return [
        *(Edit(*source.extent(node), repr(value)) for node, value in rewrites.literals.items()),
        *(_added(source, call, given) for call, given in rewrites.keywords.items()),
    ]


def applied_to_bytes(raw: bytes, edits: Iterable[Edit]) -> bytes:
    """The file after edits of its bytes, which put in nothing but ASCII."""
    return applied(raw.decode("latin-1"), edits).encode("latin-1")


def _added(source: PythonSource, call: ast.Call, given: Mapping[str, Value]) -> Edit:
    """Behind the last argument; on a line of its own where each argument has one, and a comma behind the last."""
    new = [f"{name}={value!r}" for name, value in given.items()]
    start, end = source.extent(call)
    last, comma = _last_two(source.text[start:end])
    at, closing = start + last, end - 1
    arguments = sorted(source.extent(node) for node in (*call.args, *(word.value for word in call.keywords)))
    if not arguments:
        return Edit(at, at, ", ".join(new))
    first_of_line, end_of_line = source.line_around(arguments[-1][0])[0], source.line_around(at)[1]
    indent = source.text[first_of_line : arguments[-1][0]]
    indent = indent[: len(indent) - len(indent.lstrip(" \t"))]
    if comma is None or not start + comma < end_of_line <= closing or not _one_a_line(source, call, arguments):
        return Edit(at, at, "".join(f", {each}" for each in new))
    line_break = source.line_break(at)
    return Edit(end_of_line, end_of_line, "".join(f"{line_break}{indent}{each}," for each in new))


def _one_a_line(source: PythonSource, call: ast.Call, arguments: list[tuple[int, int]]) -> bool:
    """Whether every argument begins on another line than what comes before it ends on."""
    before = source.extent(call.func)[1]
    for start, end in arguments:
        if source.line_around(start)[0] <= before:
            return False
        before = end
    return True


def _last_two(call: str) -> tuple[int, int | None]:
    """Where the last argument of a call ends (its opening bracket, if it has none), and the comma behind it."""
    lines = [0]
    whole = io.StringIO(_LONE_RETURN.sub("\n", f"({call})"), newline="")
    for text in whole:
        lines.append(lines[-1] + len(text))
    whole.seek(0)
    found = [token for token in tokenize.generate_tokens(whole.readline) if token.type not in _SPACE]
    found = [token for token in found if token.type != tokenize.ENDMARKER][:-2]  # both closing brackets
    trails = found[-1].string == ","
    places = [lines[token.end[0] - 1] + token.end[1] - 1 for token in found[-2:]]
    return (places[0], places[1] - 1) if trails else (places[-1], None)


_COMPOUND = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.If, ast.For, ast.AsyncFor, ast.While, ast.With,
    ast.AsyncWith, ast.Try, ast.TryStar, ast.Match,
)  # fmt: skip


def inserted(source: PythonSource, before: tuple[int, int], statement: str) -> tuple[Edit, ...]:
    """The edit in bytes that puts `statement` in front of the one at line and column, both from 1.

    It gets a line of its own with the same indentation; where something stands in front on the line, the same line.
    Raises InputFault where there is no statement, and where the edited module would not be the same otherwise.
    """
    statements = (node for node in ast.walk(source.tree) if isinstance(node, ast.stmt))
    found = next((node for node in statements if _place(source, node) == before), None)
    if found is None:
        raise InputFault("no statement begins there")
    at = _start(source, found)
    line = source.line_around(at)[0]
    indent = source.text[line:at]
    if not indent.strip(" \t\f"):
        new = f"{statement}{source.line_break(at)}{indent}"
    elif isinstance(found, _COMPOUND):
        raise InputFault("something else stands on its line")
    else:
        new = f"{statement}; "
    edit = Edit(at, at, new)
    text = applied(source.text, [edit])
    if not _same(source, found, parsed(text), statement):
        raise InputFault("the edited module would mean something else")
    return _in_bytes(source, [edit], text)


def _place(source: PythonSource, node: ast.stmt) -> tuple[int, int]:
    at = source.offset(node)
    return node.lineno, at - source.line_around(at)[0] + 1


def _start(source: PythonSource, node: ast.stmt) -> int:
    """Where a statement begins, decorators included."""
    decorators = getattr(node, "decorator_list", [])
    return source.text.rindex("@", 0, source.extent(decorators[0])[0]) if decorators else source.offset(node)


def _same(source: PythonSource, before: ast.stmt, new: ast.Module, statement: str) -> bool:
    """Whether the new tree is the old one but for the statement in front of `before`."""
    bodies = zip(_bodies(source.tree), _bodies(new), strict=False)
    for old, edited in bodies:
        if before in old:
            place = old.index(before)
            if len(edited) != len(old) + 1 or ast.unparse(edited[place]) != statement:
                return False
            del edited[place]
            return ast.dump(source.tree) == ast.dump(new)
    return False


def _bodies(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    """All lists of statements, in the same order for trees that differ in the last of them alone."""
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            body = getattr(node, name, None)
            if isinstance(body, list):
                yield body
