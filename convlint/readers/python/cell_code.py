"""The Python of a notebook's cell: what IPython adds to it is blanked, so that its lines stay where they are."""

from __future__ import annotations

import ast
import re
import warnings

from convlint.errors import InputFault

_PYTHON_MAGICS = ("time", "timeit", "capture", "prun")  # the rest of their cell is Python
_MAGIC = re.compile(r"^([ \t]*)(?:%{1,2}[A-Za-z_].*|[!?].*|\w[\w.]*\?\??[ \t]*)$")
_ASSIGNED = re.compile(r"^([ \t]*\w[\w, \t]*=[ \t]*)[%!].*$")
# Magics that people write without their sign, as IPython allows.
_BARE = re.compile(
    r"^()(?:pip|conda|mamba|cd|ls|mkdir|rm|cp|mv|cat|env|load_ext|reload_ext|autoreload|matplotlib|pylab|run|timeit)"
    r"[ \t]+[\w./~\"'{$-].*$"
)


def as_python(lines: list[str]) -> list[str]:
    """The lines without what is not Python. Raises InputFault, with its place in the cell, where they do not parse."""
    first = next((line for line in lines if line.strip()), "")
    if first.startswith("%%"):
        if first[2:].split(" ")[0] not in _PYTHON_MAGICS:
            return [""] * len(lines)
        lines = ["" if line is first else line for line in lines]
    if _fault(lines) is None:
        return lines
    lines = _blanked(lines)
    fault = _fault(lines)
    if fault is not None:
        raise fault
    return lines


def _blanked(lines: list[str]) -> list[str]:
    found: list[str] = []
    goes_on = False  # a magic that ends with a backslash has the next line too
    for line in lines:
        plain = "" if goes_on else _ASSIGNED.sub(r"\1None", _BARE.sub(r"\1pass", _MAGIC.sub(r"\1pass", line)))
        goes_on = plain != line and line.rstrip().endswith("\\")
        found.append(plain)
    return found


def _fault(lines: list[str]) -> InputFault | None:
    """Why the lines are no Python, and where; None where they are."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse("\n".join(lines).encode("utf-8", "replace"))
    except SyntaxError as error:
        line = min(max(error.lineno or 1, 1), len(lines))
        column = error.offset if error.lineno == line and error.offset and error.offset > 0 else None
        return InputFault(f"syntax error: {error.msg}", line=line, column=column)
    except ValueError as error:  # a null byte
        return InputFault(f"syntax error: {error}", line=1)
    except (RecursionError, MemoryError):
        return InputFault("nests deeper than Python itself would read", line=1)
    return None
