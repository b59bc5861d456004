"""The code of a notebook as one module, and where each of its lines stands: in a cell, and in the file.

Cells are read in order, as they are run from top to bottom. One that does not parse leaves the others readable.
"""

from __future__ import annotations

from msgspec import Struct

from convlint.errors import InputFault, shown
from convlint.files.bounded_file import open_regular
from convlint.readers.bounded_json import MOST_BYTES, Node, NoJson, parse
from convlint.readers.python.cell_code import as_python
from convlint.readers.python.json_lines import source_lines

SUFFIX = ".ipynb"
_FORMAT = 4
_INSTEAD = "save it again with Jupyter, or leave it out by `exclude` in the config"
MOST_CELLS = 10_000
_BOM = b"\xef\xbb\xbf"


class CellLine(Struct, frozen=True):
    """Where a line of code stands: the cell, counted as the notebook has them, its line there, and that of the file."""

    cell: int
    line: int
    file_line: int


class Broken(Struct, frozen=True):
    """A code cell that is no Python: why, and where that shows."""

    why: str
    at: CellLine
    column: int | None = None


class Notebook(Struct, frozen=True):
    """The code of a notebook, the place of each of its lines, and the cells that are not in it as they do not parse."""

    code: bytes
    places: tuple[CellLine, ...]
    broken: tuple[Broken, ...] = ()


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
            lines += [""] * len(written)
            broken.append(Broken(fault.message, here[(fault.line or 1) - 1], fault.column))
    if broken and len(broken) == len(cells):
        first = broken[0]
        where = f"cell {first.at.cell}, line {first.at.line}: {first.why}"
        raise InputFault(f"no code cell of the notebook is Python 3: {where}", line=first.at.file_line)
    return Notebook("\n".join(lines).encode("utf-8", "replace"), tuple(places), tuple(broken))


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
