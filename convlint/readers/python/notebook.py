"""The code of a notebook as one module, and where each of its lines stands: in a cell, and in the file.

Cells are read in order, as they are run from top to bottom. What IPython adds to Python is blanked, so that lines stay.
"""

from __future__ import annotations

import ast
import re
import warnings

from msgspec import Struct

from convlint.errors import InputFault, shown
from convlint.files.bounded_file import open_regular
from convlint.readers.python.json_lines import source_lines
from convlint.readers.untrusted.bounded_json import MOST_BYTES, NoJson, parse
from convlint.readers.untrusted.json_tree import Node

SUFFIX = ".ipynb"
_FORMAT = 4
_INSTEAD = "save it again with Jupyter, or leave it out by `exclude` in the config"
MOST_CELLS = 10_000
_BOM = b"\xef\xbb\xbf"
_PYTHON_MAGICS = ("time", "timeit", "capture", "prun")  # the rest of their cell is Python
_MAGIC = re.compile(r"^([ \t]*)(?:%{1,2}[A-Za-z_].*|[!?].*|\w[\w.]*\?\??[ \t]*)$")
_ASSIGNED = re.compile(r"^([ \t]*[\w, \t]+=[ \t]*)[%!].*$")


class Place(Struct, frozen=True):
    """Where a line of code stands: the cell, counted as the notebook has them, its line there, and that of the file."""

    cell: int
    line: int
    file_line: int


class Notebook(Struct, frozen=True):
    """The code of a notebook, and the place of each of its lines."""

    code: bytes
    places: tuple[Place, ...]


def read_notebook(path: str) -> Notebook:
    """The notebook at `path`. Raises InputFault."""
    with open_regular(path) as stream:
        content = stream.read(MOST_BYTES + 1)
    return notebook(content)


def notebook(content: bytes) -> Notebook:
    """The notebook that the file holds. Raises InputFault."""
    content = content.removeprefix(_BOM)
    tree = _tree(content)
    if not _is_python(tree):
        return Notebook(b"", ())
    cells = [cell for cell in enumerate(tree.at("cells").elements(MOST_CELLS), 1) if _is_code(cell[1])]
    file_lines = source_lines(content)
    lines: list[str] = []
    places: list[Place] = []
    broken = 0
    for number, cell in cells:
        written = _lines(cell.at("source"))
        code = _as_python(written)
        broken += code is None
        lines += code if code is not None else [""] * len(written)
        own = file_lines.get(number - 1, [])
        for line in range(1, len(written) + 1):
            places.append(Place(number, line, own[min(line, len(own)) - 1] if own else 1))
    if broken and broken == len(cells):
        raise InputFault("no code cell of the notebook is Python 3")
    return Notebook("\n".join(lines).encode("utf-8", "replace"), tuple(places))


def _tree(content: bytes) -> Node:
    """What the file holds. Raises InputFault, with what to do, where that is no notebook of format 4."""
    try:
        tree = parse(content, "the notebook")
    except NoJson as fault:
        error = fault.error
        raise InputFault(f"no valid JSON: {error.msg}; {_INSTEAD}", line=error.lineno, column=error.colno) from None
    found = tree.value.get("nbformat") if isinstance(tree.value, dict) else None
    if type(found) is not int:
        raise InputFault(f"JSON, but no notebook: it has no nbformat; {_INSTEAD}")
    if found < _FORMAT:
        older = "`jupyter nbconvert --to notebook --inplace` makes one of format 4 of it"
        raise InputFault(f"a notebook of format {shown(str(found))}, which is not read: {older}")
    if found > _FORMAT:
        raise InputFault(f"a notebook of format {shown(str(found))}, which is newer than convlint: it reads format 4")
    return tree


def _is_python(tree: Node) -> bool:
    for keys in (("metadata", "language_info", "name"), ("metadata", "kernelspec", "language")):
        try:
            named = tree.get(*keys)
        except InputFault:
            continue
        if named is not None and isinstance(named.value, str):
            return named.value.lower() in ("python", "ipython", "python3")
    return True


def _is_code(cell: Node) -> bool:
    kind = cell.get("cell_type")
    return kind is not None and kind.value == "code"


def _lines(source: Node) -> list[str]:
    """A cell's lines; its source is text, or a list of the lines with their ends."""
    text = "".join(part.text(MOST_BYTES) for part in source.elements()) if source.is_list else source.text(MOST_BYTES)
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _as_python(lines: list[str]) -> list[str] | None:
    """The lines without what is not Python; None where that cannot be told apart."""
    first = next((line for line in lines if line.strip()), "")
    if first.startswith("%%"):
        if first[2:].split(" ")[0] not in _PYTHON_MAGICS:
            return [""] * len(lines)
        lines = ["" if line is first else line for line in lines]
    if _parses(lines):
        return lines
    lines = [_ASSIGNED.sub(r"\1None", _MAGIC.sub(r"\1pass", line)) for line in lines]
    return lines if _parses(lines) else None


def _parses(lines: list[str]) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse("\n".join(lines).encode("utf-8", "replace"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
