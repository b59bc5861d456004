"""Which functions and classes are evaluated: those whose words lead to a layer of convolutions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from time import process_time

import pytest

from convlint.readers.python.evaluator.machine import Machine
from convlint.readers.python.nn.frameworks import Frameworks
from convlint.readers.python.nn.relevance import Relevance
from convlint.readers.python.programs.closure import Imports
from convlint.readers.python.project import Project

HEAD = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n"
BLOCKS = f"{HEAD}def block(n):\n    return nn.Conv2d(n, n, 3)\ndef plain(n):\n    return n + 1\n"


def relevant(tmp_path: Path, files: Mapping[str, str]) -> set[str]:
    """The roots of main.py that may construct one."""
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    main = str(tmp_path / "main.py")
    project = Project(str(tmp_path), [main])
    relevance = Relevance(Imports(project))
    return {root.name for root in Machine(project, Frameworks()).roots(main) if relevance.may_construct(root)}


@pytest.mark.parametrize(
    ("body", "leads"),
    [
        ("return nn.Conv2d(n, n, 3)", True),
        ("return getattr(nn, 'Conv2d')(n, n, 3)", True),
        ('"""Not a Conv2d."""\n    return n', False),
        ("return n  # no Conv2d", False),
        ("# no 'Conv2d'\n    return n", False),
        ("text = '#'; return nn.Conv2d(n, n, 3)", True),
        ("return F.conv2d(n, n)", False),
        ("return to_convex_hull(Convert(n))", False),
        ("def inner():\n        '''Conv2d'''\n    return inner", False),
    ],
)
def test_code_leads_there_and_prose_does_not(tmp_path: Path, body: str, leads: bool) -> None:
    found = relevant(tmp_path, {"main.py": f"{HEAD}def make(n):\n    {body}\n"})
    assert found == ({"make"} if leads else set())


@pytest.mark.parametrize(
    ("imported", "body", "leads"),
    [
        ("import blocks", "return blocks.block(n)", True),
        ("import blocks", "return blocks.plain(n)", False),
        ("import blocks as b", "return getattr(b, n)(n)", True),
        ("from blocks import *", "return block(n)", True),
        ("from blocks import plain", "return plain(n)", False),
        ("import pkg", "return pkg.blocks.block(n)", True),
        ("import pkg", "return pkg.blocks.plain(n)", False),
        ("import pkg", "return pkg.again(n)", True),
        ("from pkg import blocks", "return blocks.block(n)", True),
        ("from pkg import again", "return again(n)", True),
        ("from pkg import other", "return other.plain(n)", False),
    ],
)
def test_of_a_module_counts_what_is_read(tmp_path: Path, imported: str, body: str, leads: bool) -> None:
    found = relevant(
        tmp_path,
        {
            "main.py": f"import torch\n{imported}\ndef make(n):\n    {body}\n",
            "blocks.py": BLOCKS,
            "pkg/__init__.py": "from .blocks import block as again\n",
            "pkg/blocks.py": BLOCKS,
            "pkg/other.py": f"{HEAD}def plain(n):\n    return n\n",
        },
    )
    assert found == ({"make"} if leads else set())


def test_modules_that_all_import_one_another_are_read_once(tmp_path: Path) -> None:
    names = [f"m{number}" for number in range(12)]
    text = "".join(f"import {name}\n" for name in names)
    use = "def make(n):\n    return " + " + ".join(f"{name}.value" for name in names) + "\n"
    start = process_time()
    found = relevant(tmp_path, {f"{name}.py": text + use for name in (*names, "main")})
    assert found == set()
    assert process_time() - start < 2


@pytest.mark.parametrize("line", ["x = 1 " + "#" * 200_000 + '"', "x = 1 " + "# " * 100_000 + "'"])
def test_comments_take_no_time(tmp_path: Path, line: str) -> None:
    begin = process_time()
    relevant(tmp_path, {"main.py": f"{HEAD}def one(n):\n    {line}\n    return nn.Conv2d(n, 8, 3)\n"})
    assert process_time() - begin < 10  # a quadratic search takes minutes
