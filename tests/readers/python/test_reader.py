"""Python read together: what counts, what is unread, and that parts join to the whole."""

import ast
import json
from pathlib import Path

import pytest
from readme_examples import ROOT

from convlint.model.source import UnreadFile
from convlint.readers import ReadOptions
from convlint.readers.python.reader import joined, read, read_source
from convlint.readers.python.source_file import is_guard, parsed

pytestmark = pytest.mark.usefixtures("here")

LAYOUTS = ROOT / "tests" / "layouts"


@pytest.mark.parametrize("dealt", ["one by one", "backwards", "by turns"])
@pytest.mark.parametrize("name", ["src_layout", "package_entry", "gan", "config_driven"])
def test_parts_join_to_the_whole(name: str, dealt: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(LAYOUTS / name)
    files = sorted(str(path) for path in Path().rglob("*.py"))
    whole = joined([read_source(files, root=".")])
    ways = {
        "one by one": [[file] for file in files],
        "backwards": [[file] for file in files[::-1]],
        "by turns": [files[1::2], files[-1::-2] if len(files) % 2 else files[-2::-2]],
    }
    assert sorted(file for part in ways[dealt] for file in part) == files
    parts = joined([read_source(files, root=".", part=part) for part in ways[dealt]])
    assert parts.files == whole.files == tuple(files)
    assert (parts.constructions, parts.known) == (whole.constructions, whole.known)
    assert [(each.at, each.why) for each in parts.unread] == [(each.at, each.why) for each in whole.unread]
    values = [
        [
            (each.layer.locate(), each.layer.C, each.layer.K, each.layer.norm_follows, each.certainty)
            for each in of.layers
        ]
        for of in (parts, whole)
    ]
    assert values[0] == values[1]
    assert [program.path for program in parts.programs] == [program.path for program in whole.programs]


def test_a_place_that_the_root_of_another_part_reaches_has_the_reason_of_the_whole() -> None:
    Path("blur.py").write_text(
        "import torch.nn.functional as F\n"
        "class Blur:\n    @staticmethod\n    def apply(x, weight):\n        return F.conv2d(x, weight)\n"
        "def _blurred(x, width):\n    from torch import nn\n    return nn.Conv2d(width, 8, 3)(x)\n"
    )
    Path("net.py").write_text(
        "from torch import nn\nfrom blur import Blur, _blurred\n"
        "class Net(nn.Module):\n"
        "    def __init__(self, width):\n        super().__init__()\n        self.width = width\n"
        "    def forward(self, x, weight):\n        return Blur.apply(_blurred(x, self.width), weight)\n"
    )
    files = ["blur.py", "net.py"]
    whole = joined([read_source(files, root=".")])
    assert [each.why for each in whole.unread] == ["weight", "parameter"]
    for order in (files, files[::-1]):
        parts = joined([read_source(files, root=".", part=[file]) for file in order])
        assert (parts.constructions, parts.known) == (whole.constructions, whole.known)
        assert [(each.at, each.why) for each in parts.unread] == [(each.at, each.why) for each in whole.unread]


@pytest.mark.parametrize("given", ["json.load(open('c.json'))", "{'n': 60}"])
def test_what_a_script_sets_says_nothing_of_files_that_are_read_after_it(given: str) -> None:
    setting = "    hparams.clear()\n    hparams.update(values)\n"
    head = "import json\nfrom torch import nn\nfrom hparams import set_hparams\n"
    Path("hparams.py").write_text(f"hparams = {{}}\ndef set_hparams(values):\n{setting}")
    Path("a.py").write_text(f"{head}set_hparams({given})\nhead = nn.Conv2d(3, 8, 3)\n")
    Path("net.py").write_text(
        "from torch import nn\nfrom hparams import hparams\ndef make():\n    return nn.Conv2d(hparams['n'], 64, 3)\n"
    )
    files = ["a.py", "hparams.py", "net.py"]
    for parts in ([files], [["net.py"], ["a.py", "hparams.py"]]):
        found = joined([read_source(files, root=".", part=part) for part in parts])
        assert [each.layer.C for each in found.layers] == [3, None]
        assert [each.why for each in found.unread] == ["caller"]


def test_what_several_parts_cannot_read_has_the_order_of_the_files() -> None:
    cells = [{"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": "def f(:"}]
    cells.append({**cells[0], "source": "x = 1"})
    text = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    files = ["a.ipynb", "b.py", "c.ipynb", "d.py"]
    for path in files:
        Path(path).write_text(text if path.endswith("ipynb") else "def f(:\n")
    for parts in ([files], [["d.py"], ["c.ipynb", "a.ipynb"], ["b.py"]]):
        found = joined([read_source(files, root=".", part=part) for part in parts])
        assert [cell.at.path for cell in found.unread_cells] == ["a.ipynb", "c.ipynb"]
        assert list(found.unread_files) == ["b.py", "d.py"]


def test_a_bias_that_one_part_cannot_know_is_unknown_to_all() -> None:
    Path("block.py").write_text(
        "from torch import nn\n"
        "class Block(nn.Module):\n"
        "    def __init__(self, n=64, **kwargs):\n        super().__init__()\n"
        "        self.conv = nn.Conv2d(n, 60, 3, **kwargs)\n        self.bn = nn.BatchNorm2d(60)\n"
        "    def forward(self, x):\n        return self.bn(self.conv(x))\n"
    )
    Path("net.py").write_text(
        "from torch import nn\nfrom block import Block\n"
        "class Net(nn.Module):\n"
        "    def __init__(self, config):\n        super().__init__()\n        self.block = Block(**config.block)\n"
        "    def forward(self, x):\n        return self.block(x)\n"
    )
    files = ["block.py", "net.py"]
    for parts in ([files], [["block.py"], ["net.py"]], [["net.py"], ["block.py"]]):
        found = joined([read_source(files, root=".", part=part) for part in parts])
        assert {each.layer.norm_follows for each in found.layers} == {None}
    alone = joined([read_source(files[:1], root=".", part=files[:1])])
    assert True in {each.layer.norm_follows for each in alone.layers}


def test_what_cannot_be_read_has_its_reason() -> None:
    Path("bad.py").write_text("def f(:\n")
    Path("bad.ipynb").write_text("{}")
    Path("good.py").write_text("x = 1\n")
    found = read_source(["bad.py", "bad.ipynb", "good.py"])
    assert found.files == ("good.py",)
    assert list(found.unread_files) == ["bad.py", "bad.ipynb"]
    assert found.unread_files["bad.py"] == UnreadFile(why="syntax error: invalid syntax", line=1, column=7)
    assert found.unread_files["bad.ipynb"].why.startswith("JSON, but no notebook: it has no nbformat; save it again")
    assert not found.whole


def test_whole_is_what_leaves_no_file_out_but_quiet_ones() -> None:
    for name in ("a.py", "b.py", "tests/c.py"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text("x = 1\n")
    assert read_source(["a.py", "b.py"]).whole
    assert not read_source(["a.py"]).whole


def test_contents_stand_in_the_place_of_files() -> None:
    Path("net.py").write_text("x = 1\n")
    text = b"from torch import nn\n\n\ndef make():\n    return nn.Conv2d(64, 64, 3)\n"
    found = joined([read_source(["net.py"], contents={"net.py": text})])
    assert (found.constructions, found.known) == (1, 1)


def test_alone_it_is_no_network() -> None:
    network, (error,) = read("net.py", ReadOptions())
    assert network is None
    assert "`convlint check` alone reads it" in error.message


@pytest.mark.parametrize(
    ("call", "why"), [("block(64, False)", "untaken"), ("block(64, False), block(x, True)", "parameter")]
)
def test_a_branch_is_judged_by_what_all_parts_saw_of_it(call: str, why: str) -> None:
    Path("a.py").write_text(
        "from torch import nn\ndef block(n, flag):\n    if flag:\n        return nn.Conv2d(n, 8, 3)\n"
    )
    Path("b.py").write_text(f"import torch\nfrom a import block\ndef make(x):\n    return {call}\n")
    files = ["a.py", "b.py"]
    for parts in ([read_source(files)], [read_source(files, part=[file]) for file in files]):
        assert [each.why for each in joined(parts).unread] == [why]


@pytest.mark.parametrize(
    ("test", "guard"),
    [
        ('__name__ == "__main__"', True), ('"__main__" == __name__ and ready', True),
        ('__name__ != "__main__"', False), ('not __name__ == "__main__"', False), ('__name__ == "main"', False),
    ],
)  # fmt: skip
def test_the_guard_of_a_script(test: str, guard: bool) -> None:
    assert is_guard(ast.parse(f"if {test}:\n    main()\n").body[0]) is guard


@pytest.mark.parametrize(
    ("callers", "known", "why"),
    [
        ("", 1, []),  # as nobody calls it, its defaults are what one knows
        ("def make(config):\n    return Net(config['width'])\n", 0, ["config"]),
        ("def make(config):\n    return Net(config['width'])\ndef other():\n    return Net()\n", 1, []),
    ],
)
def test_a_default_that_every_caller_overrides_is_no_width(callers: str, known: int, why: list[str]) -> None:
    Path("net.py").write_text(
        "from torch import nn\nclass Net(nn.Module):\n    def __init__(self, width=60):\n"
        f"        super().__init__()\n        self.a = nn.Conv2d(3, width, 3)\n{callers}"
    )
    found = joined([read_source(["net.py"])])
    assert (found.constructions, found.known, [each.why for each in found.unread]) == (1, known, why)


TRIAL = "import torch\nclass Net:\n    def __init__(self, width): self.width = width\n"


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ("if __name__ == '__main__':\n    net = Net(10)\n    net(torch.rand(1, 3, 8, 8))\n", [range(4, 7)]),
        ("def run():\n    print(Net(10))\nif __name__ == '__main__':\n    run()\n", [range(4, 6)]),
        ("def test():\n    net = Net(10)\n    print(net(torch.zeros(1, 3, 8, 8)))\n", [range(4, 7)]),
        ("def make():\n    print(10)\n    return Net(10)\n", []),
        ("if __name__ == '__main__':\n    net = Net(10)\n    serve(net)\n", []),
        ("if __name__ == '__main__':\n    net = Net(10)\n    net(torch.rand(1, 3, 8, 8)).backward()\n", []),
        ("if __name__ == '__main__':\n    net = Net(10)\n    print(net)\n    train_model(net)\n", []),
        ("if __name__ == '__main__':\n    net = Net(10).train()\n    print(net)\n", [range(4, 7)]),
    ],
)
def test_where_a_module_tries_itself(code: str, lines: list[range]) -> None:
    assert list(parsed("net.py", (TRIAL + code).encode()).trials) == lines
    assert not parsed("net.py", code.encode()).trials  # it defines no class


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ("net = make(101)\n    other = make(21)", [range(3, 6)]),
        ("net = make(101)\n    serve(net)", []),
        ("net = serve(101)", []),
        ("net = make(101)\n    net.fit(data)", []),
    ],
)
def test_a_module_tries_functions_where_it_does_nothing_with_what_they_give(code: str, lines: list[range]) -> None:
    made = f"def make(width):\n    return Conv2D(width, 3)\nif __name__ == '__main__':\n    {code}\n"
    assert list(parsed("net.py", made.encode()).trials) == lines
