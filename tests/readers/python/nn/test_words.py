"""Files cut into what their names stand for, without being parsed."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from checkout import ROOT

from convlint.readers.python.nn.words import statements_by_name

FILES = sorted((ROOT / "convlint").rglob("*.py"))


def words(text: str) -> dict[str, set[str]]:
    return {
        name.decode(): {word.decode() for each in found for word in each.words}
        for name, found in statements_by_name(text.encode()).items()
    }


def test_functions_and_classes_with_their_words() -> None:
    found = words("import torch\n\ndef make(width):\n    return Conv2d(width)\n\nclass Net(Base):\n    size = 3\n")
    assert found == {
        "make": {"def", "make", "width", "return", "Conv2d"},
        "Net": {"class", "Net", "Base", "size"},
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
        ('x = "unclosed\ndef make():\n    return Conv2d\n', "make", "Conv2d"),
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
    assert defined <= {name.decode() for name in statements_by_name(path.read_bytes())}


def test_a_list_that_begins_its_lines_at_the_margin_takes_linear_time() -> None:
    found = statements_by_name(b"LAYERS = [\n" + b"Conv2d,\n" * 200_000 + b"]\nlast = 3\n")
    assert set(found) == {b"LAYERS", b"last"}
