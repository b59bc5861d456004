"""The code of notebooks: what of it is Python, and where each line stands."""

import json
from time import process_time
from typing import Any

import pytest

from convlint.model.errors import InputFault
from convlint.readers.python.notebook import Notebook, notebook


def _cell(*lines: str, kind: str = "code") -> dict[str, Any]:
    return {"cell_type": kind, "metadata": {}, "source": [line + "\n" for line in lines[:-1]] + [lines[-1]]}


def _text(*cells: dict[str, Any], indent: int | None = 1, **more: Any) -> bytes:
    return json.dumps(
        {"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 5} | more, indent=indent
    ).encode()


def _read(*cells: dict[str, Any], **more: Any) -> Notebook:
    return notebook(_text(*cells, **more))


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        (["a = 1", "b = 2"], ["a = 1", "b = 2"]),
        (["%matplotlib inline", "a = 1"], ["pass", "a = 1"]),
        (["if a:", "    !pip install x"], ["if a:", "    pass"]),
        (["%timeit f()"], ["pass"]),
        (["files = !ls", "t = %time 1"], ["files = None", "t = None"]),
        (["torch.nn.Conv2d?"], ["pass"]),
        (["%%bash", "ls -l", "rm x"], ["", "", ""]),
        (["%%time", "a = 1"], ["", "a = 1"]),
        (["a = (7", "     % b)"], ["a = (7", "     % b)"]),  # no magic: the remainder
        (["!ls", "a = (7", "     % b)"], ["pass", "a = (7", "     % b)"]),
        (['"""', "%no magic", '"""'], ['"""', "%no magic", '"""']),
        (["await f()"], ["await f()"]),
        (["!pip install \\", "    torch", "a = 1"], ["pass", "", "a = 1"]),
        (["pip install -q torch", "a = 1"], ["pass", "a = 1"]),
        (["cd ../src", "matplotlib inline"], ["pass", "pass"]),
        (["ls = 3", "cat (1)"], ["ls = 3", "cat (1)"]),
    ],
)
def test_what_ipython_adds_is_blanked(lines: list[str], code: list[str]) -> None:
    assert _read(_cell(*lines)).code.decode().split("\n") == code


def test_lines_know_their_cell_and_the_line_of_the_file() -> None:
    cells = [_cell("# Title", "text", kind="markdown"), _cell('a = "\\n"', "b = 2"), _cell("%%html", "<b>"), _cell("c")]
    cells.append({"cell_type": "code", "source": "d = '\\\\n'\ne = 1"})
    found, file = _read(*cells), _text(*cells).decode().split("\n")
    code = found.code.decode().split("\n")
    assert [(place.cell, place.line) for place in found.places] == [
        (2, 1),
        (2, 2),
        (3, 1),
        (3, 2),
        (4, 1),
        (5, 1),
        (5, 2),
    ]
    assert len(code) == len(found.places)
    for line, place in zip(code, found.places, strict=True):
        assert json.dumps(line)[1:-1] in file[place.file_line - 1]


def test_a_notebook_on_one_line() -> None:
    found = notebook(_text(_cell("a", "b"), indent=None))
    assert [place.file_line for place in found.places] == [1, 1]


def test_a_cell_that_is_no_python_leaves_the_others() -> None:
    cells = [_cell("a = 1"), _cell("x = 1", "def f(:"), _cell("%ls", "print 1"), _cell("b = 2"), _cell("%%R", "f(:")]
    found = _read(*cells)
    assert found.code == b"a = 1\n\n\n\n\nb = 2\n\n"
    assert [(each.at.cell, each.at.line, each.column) for each in found.broken] == [(2, 2, 7), (3, 2, 1)]
    assert found.broken[0].why == "syntax error: invalid syntax"
    text = _text(*cells).decode().split("\n")
    assert [text[each.at.file_line - 1].strip() for each in found.broken] == ['"def f(:"', '"print 1"']


def test_a_byte_order_mark() -> None:
    assert notebook(b"\xef\xbb\xbf" + _text(_cell("a"))).code == b"a"


@pytest.mark.parametrize("language", ["R", "julia"])
def test_other_languages_hold_no_python(language: str) -> None:
    assert _read(_cell("x <- 1"), metadata={"kernelspec": {"language": language}}).code == b""
    assert _read(_cell("x <- 1"), metadata={"language_info": {"name": language}}).code == b""


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no valid JSON: Expecting value; save it again with Jupyter"),
        (b"[]", "JSON, but no notebook: it has no nbformat; save it again with Jupyter"),
        (b"{}", "JSON, but no notebook: it has no nbformat; save it again with Jupyter"),
        (b'{"nbformat": 3, "worksheets": []}', "a notebook of format 3, which is not read: `jupyter nbconvert"),
        (b'{"nbformat": 5}', "a notebook of format 5, which is newer than convlint"),
        (b'{"nbformat": 4}', "has no cells"),
        (b'{"nbformat": 4, "cells": {}}', "must be a list"),
        (b'{"nbformat": 4, "cells": [1]}', "must be an object"),
        (b'{"nbformat": 4, "cells": [{"cell_type": "code", "source": 3}]}', "must be text"),
        (b'{"nbformat": 4, "cells": [{"cell_type": "code", "source": [[]]}]}', "must be text"),
        (
            b'{"nbformat": 4, "cells": [{"cell_type": "code", "source": "def f(:"}]}',
            "no code cell of the notebook is Python 3: cell 1, line 1: syntax error: invalid syntax",
        ),
        (b"[" * 100_000, "nests too deep"),
        (b"\xff\xfe", "not UTF-8"),
    ],
)
def test_what_is_no_notebook_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(InputFault, match=message):
        notebook(content)


def test_metadata_of_any_kind() -> None:
    for metadata in (3, [], {"kernelspec": 3}, {"kernelspec": None, "language_info": {"name": []}}):
        assert _read(_cell("a"), metadata=metadata).code == b"a"


def test_a_line_of_spaces_takes_no_time() -> None:
    begin = process_time()
    with pytest.raises(InputFault):
        _read(_cell("for x in range(3:"), _cell(" " * 200_000 + "!!x =", "def ("))
    assert process_time() - begin < 10  # a quadratic search takes a minute
