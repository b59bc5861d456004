"""Read a Jupyter notebook as one Python module, and map each of its lines to a cell and to a line of the file.

Cells are joined in their order, as "Run All" executes them. A cell that does not parse is reported and left blank, so
that the others can still be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress

from msgspec import Struct

from convlint.files.bounded_file import open_regular
from convlint.model.errors import InputFault, shown
from convlint.readers.bounded_json import MOST_BYTES, Node, NoJson, parse
from convlint.readers.python.source_file import syntax_tree

SUFFIX = ".ipynb"
_FORMAT = 4  # nbformat 3 kept cells in worksheets; 4 has been written since 2015
_INSTEAD = "save it again with Jupyter, or leave it out by `exclude` in the config"
MOST_CELLS = 10_000  # the largest notebooks that people publish have some hundred
_BOM = b"\xef\xbb\xbf"


class CellLine(Struct, frozen=True):
    """Position of a line of code: its cell, counted from 1 over all cells, its line there, and its line in the file."""

    cell: int
    line: int
    file_line: int


class Broken(Struct, frozen=True):
    """A code cell that does not parse: the reason, and where the parser stopped."""

    why: str
    at: CellLine
    column: int | None = None


class Notebook(Struct, frozen=True):
    """The code of a notebook, the position of each of its lines, and the cells that do not parse."""

    code: bytes
    places: tuple[CellLine, ...]
    broken: tuple[Broken, ...] = ()


def read_notebook(path: str) -> Notebook:
    """Read the notebook at `path`. Raises InputFault."""
    with open_regular(path) as stream:
        content = stream.read(MOST_BYTES + 1)
    return notebook(content)


def notebook(content: bytes) -> Notebook:
    """Parse the content of a notebook. Raises InputFault if it is no notebook, or if no code cell parses."""
    content = content.removeprefix(_BOM)
    tree = _tree(content)
    # A notebook in R or Julia is sound input with nothing in it to check.
    if not _is_python(tree):
        return Notebook(b"", ())
    cells = [cell for cell in enumerate(tree.at("cells").elements(MOST_CELLS), 1) if _is_code(cell[1])]
    file_lines = source_lines(content)
    lines: list[str] = []
    places: list[CellLine] = []
    broken: list[Broken] = []
    for number, cell in cells:
        written = _lines(cell.at("source"))
        own = file_lines.get(number - 1, [])
        here = [
            CellLine(number, line, own[min(line, len(own)) - 1] if own else 1) for line in range(1, len(written) + 1)
        ]
        places += here
        try:
            lines += as_python(written)
        except InputFault as fault:
            # Blank lines keep the positions of all cells below.
            lines += [""] * len(written)
            broken.append(Broken(fault.message, here[(fault.line or 1) - 1], fault.column))
    # Most likely Python 2: an error for the file says more than one for each cell.
    if broken and len(broken) == len(cells):
        first = broken[0]
        where = f"cell {first.at.cell}, line {first.at.line}: {first.why}"
        raise InputFault(f"no code cell of the notebook is Python 3: {where}", line=first.at.file_line)
    return Notebook("\n".join(lines).encode("utf-8", "replace"), tuple(places), tuple(broken))


def _tree(content: bytes) -> Node:
    """Parse the JSON. Raises InputFault, with what to do about it, if this is no notebook of format 4."""
    try:
        tree = parse(content, "the notebook")
    except NoJson as fault:
        error = fault.error
        raise InputFault(f"no valid JSON: {error.msg}; {_INSTEAD}", line=error.lineno, column=error.colno) from None
    version = tree.value.get("nbformat") if isinstance(tree.value, dict) else None
    if type(version) is not int:
        raise InputFault(f"JSON, but no notebook: it has no nbformat; {_INSTEAD}")
    if version < _FORMAT:
        older = "`jupyter nbconvert --to notebook --inplace` makes one of format 4 of it"
        raise InputFault(f"a notebook of format {shown(str(version))}, which is not read: {older}")
    if version > _FORMAT:
        raise InputFault(f"a notebook of format {shown(str(version))}, which is newer than convlint: it reads format 4")
    return tree


def _is_python(tree: Node) -> bool:
    for keys in (("metadata", "language_info", "name"), ("metadata", "kernelspec", "language")):
        with suppress(InputFault):
            language = tree.get(*keys)
            if language is not None and isinstance(language.value, str):
                return language.value.lower() in ("python", "ipython", "python3")
    return True


def _is_code(cell: Node) -> bool:
    kind = cell.get("cell_type")
    return kind is not None and kind.value == "code"


def _lines(source: Node) -> list[str]:
    """Return the lines of a cell, whose source is one string or a list of lines with their line ends."""
    text = "".join(part.text(MOST_BYTES) for part in source.elements()) if source.is_list else source.text(MOST_BYTES)
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


# Where the source of each cell is written in the file

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"|[{}\[\]:,]', re.DOTALL)
_ESCAPE = re.compile(rb"\\r\\n|\\.", re.DOTALL)
_BREAKS = (rb"\r\n", rb"\r", rb"\n")  # ends of lines, as text in JSON has them


def source_lines(content: bytes) -> dict[int, list[int]]:
    """Return, by the index of each cell, the line in the file of each line of its source.

    The content was parsed before, so that it is sound JSON.
    """
    by_cell: dict[int, list[int]] = {}
    for cell, offset_line, text in _strings(content):
        lines = by_cell.setdefault(cell, [])
        if lines:
            lines.pop()  # what follows the last end of a line goes on in the next string
        lines += [offset_line] * (sum(escape in _BREAKS for escape in _ESCAPE.findall(text)) + 1)
    return by_cell


def _strings(content: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield each string of a cell's source: the cell's index, the line in the file, and the string with its escapes."""
    # json.loads gives no positions, so that the tokens are scanned here a second time.
    path: list[bytes | int] = []  # keys and positions that lead to where we are
    key: bytes | None = None
    line, counted = 1, 0
    before: bytes = b""
    for match in _TOKEN.finditer(content):
        token = match.group()
        if token in b"{[":
            path.append(b"" if token == b"{" else 0)
        elif token in b"}]":
            if path:
                path.pop()
        elif token == b",":
            if path and isinstance(path[-1], int):
                path[-1] += 1
        elif token == b":":
            if path and key is not None:
                path[-1] = key
        else:
            key = token[1:-1]
            match path:  # as of `cells[i].source` and `cells[i].source[j]`
                case [b"cells", int(cell), b"source"] | [b"cells", int(cell), b"source", int()] if (
                    before == b":" or isinstance(path[-1], int)
                ):
                    line += content.count(b"\n", counted, match.start())
                    counted = match.start()
                    yield cell, line, token
        before = token


# What IPython adds to Python

_PYTHON_MAGICS = ("time", "timeit", "capture", "prun")  # the rest of their cell is Python
_MAGIC = re.compile(r"^([ \t]*)(?:%{1,2}[A-Za-z_].*|[!?].*|\w[\w.]*\?\??[ \t]*)$")
_ASSIGNED = re.compile(r"^([ \t]*\w[\w, \t]*=[ \t]*)[%!].*$")
# Magics that people write without their sign, as IPython allows.
_BARE = re.compile(
    r"^()(?:pip|conda|mamba|cd|ls|mkdir|rm|cp|mv|cat|env|load_ext|reload_ext|autoreload|matplotlib|pylab|run|timeit)"
    r"[ \t]+[\w./~\"'{$-].*$"
)


def as_python(lines: list[str]) -> list[str]:
    """Blank what IPython adds to Python. Raises InputFault, at its position in the cell, if the rest does not parse."""
    first = next((line for line in lines if line.strip()), "")
    if first.startswith("%%"):
        if first[2:].split(" ")[0] not in _PYTHON_MAGICS:
            return [""] * len(lines)
        lines = ["" if line is first else line for line in lines]
    # Most cells are plain Python, in which a line such as `x?` or `!ls` cannot occur: only cells that
    # do not parse are searched for magics, so that no string that looks like one is changed.
    with suppress(InputFault):
        return _parsing(lines)
    return _parsing(_blanked(lines))


def _blanked(lines: list[str]) -> list[str]:
    result: list[str] = []
    goes_on = False  # a magic that ends with a backslash has the next line too
    for line in lines:
        plain = "" if goes_on else _ASSIGNED.sub(r"\1None", _BARE.sub(r"\1pass", _MAGIC.sub(r"\1pass", line)))
        goes_on = plain != line and line.rstrip().endswith("\\")
        result.append(plain)
    return result


def _parsing(lines: list[str]) -> list[str]:
    """Return the lines if they parse. Raises InputFault, at a line of theirs."""
    try:
        syntax_tree("\n".join(lines).encode("utf-8", "replace"))
    except InputFault as fault:
        line = min(max(fault.line or 1, 1), len(lines))  # the parser may stop behind the last one
        column = fault.column if fault.line == line else None
        raise InputFault(fault.message, line=line, column=column) from None
    return lines
