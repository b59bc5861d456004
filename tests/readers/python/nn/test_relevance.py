"""Which functions and classes are evaluated: those whose words lead to a layer of convolutions."""

import ast
from collections.abc import Mapping
from pathlib import Path
from time import process_time

import pytest
from checkout import ROOT

from convlint.readers.python.evaluator.machine import Machine
from convlint.readers.python.imports import ProjectImports
from convlint.readers.python.nn.frameworks import Frameworks
from convlint.readers.python.nn.kinds import CONVOLUTIONS, FUNCTIONAL
from convlint.readers.python.nn.relevance import Relevance, names_convolution, words_by_name
from convlint.readers.python.project import Project

HEAD = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n"
BLOCKS = f"{HEAD}def block(n):\n    return nn.Conv2d(n, n, 3)\ndef plain(n):\n    return n + 1\n"


def relevance_of(tmp_path: Path, files: Mapping[str, str]) -> tuple[Project, Relevance]:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    project = Project(str(tmp_path), [str(tmp_path / "main.py")])
    return project, Relevance(ProjectImports(project))


def relevant(tmp_path: Path, files: Mapping[str, str]) -> set[str]:
    """The roots of main.py that may construct one."""
    project, relevance = relevance_of(tmp_path, files)
    main = str(tmp_path / "main.py")
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
        ("return F.conv2d(n, n)", True),
        ("return to_convex_hull(Convert(n))", False),
        ("def inner():\n        '''Conv2d'''\n    return inner", False),
        ("def inner(layer: nn.Conv2d, *rest: nn.Conv2d) -> nn.Conv2d: ...\n    return inner", False),
        ("layer: nn.Conv2d = n\n    return layer", False),
        ("layer: object = nn.Conv2d(n, n, 3)\n    return layer", True),
        ("def inner(kind: type = nn.Conv2d): ...\n    return inner", True),
    ],
)
def test_code_leads_there_and_prose_does_not(tmp_path: Path, body: str, leads: bool) -> None:
    found = relevant(tmp_path, {"main.py": f"{HEAD}def make(n):\n    {body}\n"})
    assert found == ({"make"} if leads else set())


@pytest.mark.parametrize("full", sorted({*CONVOLUTIONS, *FUNCTIONAL}))
def test_every_convolution_of_a_framework_leads_there(tmp_path: Path, full: str) -> None:
    module = full.rpartition(".")[0]
    assert names_convolution(f"{full}(x)".encode())
    assert relevant(tmp_path, {"main.py": f"import {module}\ndef make(x):\n    return {full}(x)\n"}) == {"make"}


@pytest.mark.parametrize(
    ("imported", "call", "leads"),
    [
        ("from torch.nn import Conv2d as C", "C", True),
        ("from torch.nn import Linear as C", "C", False),
        ("from tensorflow.keras.layers import Conv2D as C", "C", True),
        ("from jax.lax import conv", "conv", True),
        ("from jax import lax as L", "L.conv_transpose", True),
        ("from again import C", "C", True),
        ("import again", "again.C", True),
    ],
)
def test_what_is_imported_under_another_name(tmp_path: Path, imported: str, call: str, leads: bool) -> None:
    main = f"import torch\n{imported}\ndef make(n):\n    return {call}(n, n, 3)\n"
    again = "from torch.nn import Conv2d as C\n"
    assert relevant(tmp_path, {"main.py": main, "again.py": again}) == ({"make"} if leads else set())


@pytest.mark.parametrize(
    ("text", "leads"),
    [
        ("from blocks import plain\nplain(3)\n", False),
        ("from blocks import block\nblock(3)\n", True),
        ("from blocks import block\n", False),
        ("import blocks\nfor at in [3]:\n    print(blocks.block(at))\n", True),
        ("net = nn.Sequential()\nif True:\n    net.add_module('a', nn.Conv2d(3, 8, 3))\n", True),
        ("import blocks\nclass Net:\n    def add(self):\n        self.add(blocks.block(3))\n", True),
        ("WIDTH = 64\ndef add(a):\n    return a + WIDTH\n", False),
        ("@wrap(nn.Conv2d(3, 60, 3))\ndef add(a):\n    return a\n", True),
        ("import blocks\nblocks.WIDTH = 64\n", True),
        ("from blocks import TABLE\nTABLE['w'] = 64\n", True),
        ("import blocks\nprint(blocks.WIDTH)\n", False),
        ("from again import C\nnet = C(3, 60, 3)\n", True),
        ("from again import other as C\nnet = C(3, 60, 3)\n", False),
        ("from jax import lax as L\nL.conv_with_general_padding(3)\n", True),
    ],
)
def test_a_file_leads_there_by_any_of_its_statements(tmp_path: Path, text: str, leads: bool) -> None:
    again = "from torch.nn import Conv2d as C\nfrom torch import other\n"
    _, relevance = relevance_of(tmp_path, {"main.py": HEAD + text, "blocks.py": BLOCKS, "again.py": again})
    assert relevance.may_construct_in(str(tmp_path / "main.py")) is leads


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
        ("import blocks", "return blocks.plain(n.block)", False),
        ("import blocks", "return blocks.plain(n, 'block')", True),
        ("import blocks", "return blocks.plain(n, 'no:block')", True),
        ("import blocks", "return blocks.plain(n, 'blocks')", False),
        ("import blocks", "return blocks.plain(block=n)", True),
        ("import blocks", "of = blocks\n    return of.block(n)", True),
        ("import blocks", "return (n or blocks).block(n)", True),
        ("import pkg", "return pkg.other.plain(n.again)", False),
        ("import pkg", "of = pkg.blocks\n    return of.block(n)", True),
        ("import pkg.blocks", "return pkg.blocks.block(n)", True),
        ("import pkg.other as other", "return other.plain(n.again)", False),
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


def test_modules_that_are_one_anothers_attributes_are_asked_once(tmp_path: Path) -> None:
    files = {
        "main.py": f"import p\ndef make(n):\n    return p{'.q.p' * 9}.nothing(n)\n",
        "p/__init__.py": "from . import q\n" * 3,
        "p/q.py": f"import p\nimport p\nimport p\n{BLOCKS}",
    }
    start = process_time()
    assert relevant(tmp_path, files) == set()
    assert process_time() - start < 2


@pytest.mark.parametrize("line", ["x = 1 " + "#" * 200_000 + '"', "x = 1 " + "# " * 100_000 + "'"])
def test_comments_take_no_time(tmp_path: Path, line: str) -> None:
    begin = process_time()
    relevant(tmp_path, {"main.py": f"{HEAD}def one(n):\n    {line}\n    return nn.Conv2d(n, 8, 3)\n"})
    assert process_time() - begin < 10  # a quadratic search takes minutes


FILES = sorted((ROOT / "convlint").rglob("*.py"))


def words(text: str) -> dict[str, set[str]]:
    return {name: set(found) for name, found in words_by_name(ast.parse(text)).items()}


def test_functions_and_classes_with_their_words() -> None:
    found = words("import torch\n\ndef make(width):\n    return Conv2d(width)\n\nclass Net(Base):\n    size = 3\n")
    assert found == {
        "make": {"make", "width", "width.", "Conv2d", "Conv2d."},
        "Net": {"Net", "Base", "Base.", "size", "size."},
    }


@pytest.mark.parametrize(
    ("text", "name", "word"),
    [
        ("make = Conv2d\n", "make", "Conv2d"),
        ("a = b = Conv2d\n", "b", "Conv2d"),
        ("a, b = Conv2d, 3\n", "b", "Conv2d"),
        ("(\n    a,\n    b,\n) = layers(Conv2d)\n", "b", "Conv2d"),
        ("x: int = 3; net: Module = Conv2d()\n", "net", "Conv2d"),
        ("table += [Conv2d]\n", "table", "Conv2d"),
        ("Net.layer = Conv2d\n", "Net", "Conv2d"),
        ("LAYERS = [\nConv2d,\n]\n", "LAYERS", "Conv2d"),
        ("LAYERS = {\n'a': 3,\n# }\n'b': 'Conv2d',\n}\n", "LAYERS", "Conv2d"),
        ("make = \\\nConv2d\n", "make", "Conv2d"),
        ("try:\n    import fast\nexcept ImportError:\n    fast = Conv2d\n", "fast", "Conv2d"),
        ("if new:\n    def make():\n        pass\nelse:\n    def make():\n        return Conv2d\n", "make", "Conv2d"),
        ('if __name__ == "__main__":\n    run(Conv2d)\n', "__main__", "Conv2d"),
        ("async def make():\n    return Conv2d\n", "make", "Conv2d"),
        ("def make():\n    return 'Conv2d'\n", "make", "Conv2d"),
        ("TEXT = '''\ndef no():\n    Conv2d\n'''\n", "TEXT", "Conv2d"),
        ("def make(name='#'):\n    return Conv2d  # plain\n", "make", "Conv2d"),
        ("def make():\r\n    return Conv2d\r\n", "make", "Conv2d"),
        ("def make():\r    return Conv2d\r", "make", "Conv2d"),
        ("def make():\n    pass\n\ndef make():\n    return Conv2d\n", "make", "Conv2d"),
        ('def make():\n    return layer(\n        """Conv2d"""\n    )\n', "make", "Conv2d"),
        ("def make(é):\n    return Conv2d\n", "make", "Conv2d"),
    ],
)
def test_what_a_name_stands_for(text: str, name: str, word: str) -> None:
    assert word in words(text)[name]


@pytest.mark.parametrize(
    "text",
    [
        'def make():\n    """As Conv2d does."""\n    return 3\n',
        "def make():\n    # as Conv2d does\n    return 3\n",
        "def make():\n    return 3  # as Conv2d's does\n",
        "def make():\n    size = '#'  # as Conv2d does\n    return size\n",
        '"""Conv2d"""\n\nmake = 3\n',
        'class make:\n    size = 3\n    """Of a Conv2d."""\n',
        "@register(Conv2d)\ndef make():\n    return 3\n",
        "from torch.nn import Conv2d\nmake = 3\n",
    ],
)
def test_prose_decorators_and_imports_are_no_words_of_a_name(text: str) -> None:
    assert "Conv2d" not in words(text)["make"]


def test_arguments_by_name_bind_nothing() -> None:
    found = words("if new:\n    net = make(\n        width=3,\n    )\nsize = make(depth=3)\n")
    assert set(found) == {"net", "size"}


@pytest.mark.parametrize("path", FILES[::9], ids=lambda path: path.name)
def test_all_that_a_file_defines_at_its_top(path: Path) -> None:
    tree = ast.parse(path.read_bytes())
    defined = {
        node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }
    defined |= {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    assert defined <= set(words_by_name(tree))


def test_a_list_that_begins_its_lines_at_the_margin_takes_linear_time() -> None:
    begin = process_time()
    found = words("LAYERS = [\n" + "Conv2d,\n" * 200_000 + "]\nlast = 3\n")
    assert set(found) == {"LAYERS", "last"}
    assert process_time() - begin < 20
