"""Defaults of command line options as sizes of layers."""

from pathlib import Path

import pytest

from convlint.model.source import SourceLayer
from convlint.readers.python.imports import ProjectImports
from convlint.readers.python.nn.reading import read_layers
from convlint.readers.python.project import Project
from convlint.run.api import lint

PARSER = "import argparse\nparser = argparse.ArgumentParser()\n"
OPTION = PARSER + "parser.add_argument('-w', '--base-width', type=int, default=36)\nopt = parser.parse_args()\n"
NET = (
    "from torch import nn\n"
    "class Net(nn.Module):\n"
    "    def __init__(self, opt):\n"
    "        super().__init__()\n"
    "        self.conv = nn.Conv2d(3, opt.base_width, 3)\n"
)


def read(tmp_path: Path, **files: str) -> list[SourceLayer]:
    """The layers of modules, each with its text."""
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(text)
    paths = [str(tmp_path / f"{name}.py") for name in files]
    return list(read_layers(ProjectImports(Project(str(tmp_path), paths)), paths).layers)


def widths(layers: list[SourceLayer]) -> list[int | None]:
    return [layer.layer.K for layer in layers]


@pytest.mark.parametrize(
    "script",
    [
        OPTION + "Net(opt)\n",
        PARSER + "parser.add_argument('--w', dest='base_width', default=36)\nopt = parser.parse_args()\nNet(opt)\n",
        "from absl import flags\nflags.DEFINE_integer('base_width', 36, 'of the first layer')\nNet(flags.FLAGS)\n"
        "if __name__ == '__main__':\n    pass\n",
        "from options import parser\nparser.set_defaults(base_width=36)\nNet(parser.parse_args())\n",
        PARSER + "parser.add_argument('base_width', nargs='?', default=36)\nopt = parser.parse_args()\nNet(opt)\n",
        OPTION + "Net(opt)\nprint(\n    opt.base_width, opt.depth, end='')\n",
        # each program has its own, and both are as wide
        OPTION + "parser.add_argument('--base_width', default=36)\nNet(opt)\n",
    ],
)
def test_an_option_is_as_large_as_its_default(tmp_path: Path, script: str) -> None:
    (layer,) = read(tmp_path, net=NET, train="from net import Net\n" + script)
    assert layer.layer.K == 36
    assert layer.certainty == "with defaults"
    (literal, *_) = layer.stated["K"]
    assert (literal.name, literal.default, Path(literal.at.path).name) == ("base_width", True, "train.py")


@pytest.mark.parametrize(
    ("call", "known"),
    [
        ("Net(**vars(opt))", True),
        ("Net(**opt.__dict__)", True),
        ("Net(depth=4, **vars(opt))", True),
        ("make(**vars(opt))", True),
        # another object's, or one that something else may have changed
        ("Net(**vars(other))", False),
        ("opt.base_width = measured()\nNet(**vars(opt))", False),
        ("more = vars(opt)\nmore['base_width'] = measured()\nNet(**more)", False),
    ],
)
def test_all_options_may_be_passed_by_their_names(tmp_path: Path, call: str, known: bool) -> None:
    net = NET.replace("opt):", "base_width=64, depth=2, **others):").replace("opt.base_width", "base_width")
    net += "def make(**options):\n    return Net(**options)\n"
    layers = read(tmp_path, net=net, train="from net import Net, make\n" + OPTION + call + "\n")
    assert (36 in widths(layers)) is known


@pytest.mark.parametrize(
    "script",
    [
        PARSER + "parser.add_argument('--base-width', type=int)\nopt = parser.parse_args()\n",
        PARSER + "parser.add_argument('--base-width', default=WIDTH)\nopt = parser.parse_args()\n",
        PARSER + "parser.add_argument('--base-width', default='36')\nopt = parser.parse_args()\n",
        PARSER + "parser.add_argument('--base-width', default=True)\nopt = parser.parse_args()\n",
        OPTION + "parser.add_argument('--base-width', default=64)\n",
        OPTION + "parser.set_defaults(base_width=64)\n",
        OPTION + "if opt.wide:\n    opt.base_width *= 2\n",
        OPTION + "opt.base_width = 2 * opt.base_width\n",
        OPTION + "opt.base_width, opt.depth = 64, 2\n",
        OPTION + "opt.depth, opt.base_width = 2, 64\n",
        OPTION + "setattr(opt, 'base_width', 64)\n",
        OPTION.replace("type=int", "required=True"),
        OPTION.replace("'-w', '--base-width'", "'base_width'"),
        OPTION.replace("parse_args()", "parse_args(['--base-width', '8'])"),
        OPTION.replace("parse_args()", "parse_args('--base-width 8'.split())"),
    ],
)
def test_what_is_no_single_number_stays_unknown(tmp_path: Path, script: str) -> None:
    assert widths(read(tmp_path, net=NET, train="from net import Net\n" + script + "Net(opt)\n")) == [None]


def test_options_of_other_programs_do_not_count(tmp_path: Path) -> None:
    train = "from net import Net\nimport yaml\nargs = yaml.safe_load(open('a'))\nfor _ in range(2):\n    Net(args)\n"
    assert widths(read(tmp_path, net=NET, train=train, tool=OPTION)) == [None]
    # The network is looked for by its name: no import tells which program does.
    assert widths(read(tmp_path, net=NET, train="import importlib\n", tool=OPTION)) == [36]
    given = "import importlib\nfrom tool import parser\nopt = parser.parse_args(['--base-width', '8'])\n"
    assert widths(read(tmp_path, net=NET, train=given, tool=OPTION)) == [None]


def test_tests_give_options_of_their_own(tmp_path: Path) -> None:
    test = "from net import Net\nfrom train import parser\nopt = parser.parse_args(['--base-width', '8'])\nNet(opt)\n"
    test += "opt.base_width = 4\nparser.add_argument('--base_width', default=2)\n"
    assert widths(read(tmp_path, net=NET, train="from net import Net\n" + OPTION + "Net(opt)\n", test_net=test)) == [36]


def test_another_object_has_no_options(tmp_path: Path) -> None:
    net = NET.replace("opt", "config")
    assert widths(read(tmp_path, net=net, train="from net import Net\n" + OPTION + "Net(opt)\n")) == [None]
    as_config = OPTION.replace("opt =", "config =") + "Net(config)\n"
    assert widths(read(tmp_path, net=net, train="from net import Net\n" + as_config)) == [36]


@pytest.mark.parametrize(
    ("read_too", "width"), [("config.kernel + config.lr", 36), ("config.kernel + config.other", None)]
)
def test_an_object_of_which_only_options_are_read_has_them(tmp_path: Path, read_too: str, width: int | None) -> None:
    net = NET.replace("opt", "config") + f"        self.other = {read_too}\n"
    options = "parser.add_argument('--lr')\nparser.add_argument('--kernel')\n"
    train = "from net import Net\n" + OPTION + options + "opt.later = 3\nNet(opt)\n"
    assert widths(read(tmp_path, net=net, train=train)) == [width]
    # The options have another name there.
    wider = train.replace("Net(opt)", "opt.base_width = 8\nNet(opt)")
    assert widths(read(tmp_path, net=net, train=wider)) == [None]


@pytest.mark.parametrize(
    ("number", "width"),
    [
        ("opt.base_width * 2", 72),
        ("2 ** 3 + opt.base_width", 44),
        ("-(-opt.base_width // 5)", 8),
        ("int(opt.base_width * 1.5)", 54),
        ("max(opt.base_width, 48)", 48),
        ("opt.base_width // 0", None),
        ("opt.base_width if opt.base_width > 8 else 8", None),
        ("opt.base_width or 8", 36),
        ("opt.base_width - 36 or 8", None),
        ("opt.base_width and 8", None),
        ("'%d' % opt.base_width", None),
        ("[8, 16][opt.base_width > 8]", None),
    ],
)
def test_numbers_are_computed_but_decide_no_test(tmp_path: Path, number: str, width: int | None) -> None:
    net = NET.replace("opt.base_width", number)
    assert widths(read(tmp_path, net=net, train="from net import Net\n" + OPTION + "Net(opt)\n")) == [width]


def test_both_sides_of_a_test_stay_possible(tmp_path: Path) -> None:
    sides = "if opt.base_width > 8:\n    a = nn.Conv2d(3, 8, 3)\nelse:\n    b = nn.Conv2d(3, 4, 3)\n"
    text = OPTION + "from torch import nn\n" + sides
    assert widths(read(tmp_path, train=text + "def f():\n    return a, b\n")) == [8, 4]


LOOP = (
    "from torch import nn\n"
    "def make(opt):\n"
    "    width, layers = 8, []\n"
    "    for at in range({}):\n"
    "        layers.append(nn.Conv2d(width, 2 * width, 3))\n"
    "        width *= 2\n"
    "        if at == opt.depth - 1:\n"
    "            width += 1\n"
    "    return nn.Sequential(*layers, nn.Conv2d(width, 5, 3))\n"
)


def test_a_loop_runs_as_often_as_the_command_line_says_only_with_defaults(tmp_path: Path) -> None:
    train = (
        PARSER
        + "from net import make\nparser.add_argument('--depth', default=3)\nopt = parser.parse_args()\nmake(opt)\n"
    )
    layers = read(tmp_path, net=LOOP.format("opt.depth"), train=train)
    known = [(layer.layer.C, layer.layer.K, layer.certainty) for layer in layers if layer.layer.C is not None]
    assert known == [(8, 16, "with defaults"), (16, 32, "with defaults"), (32, 64, "with defaults"),
                     (65, 5, "with defaults")]  # fmt: skip
    many = read(tmp_path, net=LOOP.format("opt.depth * 20"), train=train)
    assert all(layer.layer.C is None for layer in many)
    training = train.replace("depth", "epochs")
    assert all(layer.layer.C is None for layer in read(tmp_path, net=LOOP.format("opt.epochs"), train=training))


def test_a_call_is_remembered_for_loops_with_defaults_by_itself(tmp_path: Path) -> None:
    net = (
        LOOP.format("opt.depth")
        .replace("make(opt)", "make(opt, width)")
        .replace("width, layers = 8, []", "layers = []")
    )
    script = PARSER + "from net import make\nparser.add_argument('--depth', default=3)\nopt = parser.parse_args()\n"
    mains = "".join(f"def main{number}():\n    return make(opt, WIDTH)\n" for number in range(2))
    layers = read(tmp_path, net=net, train=script + "WIDTH = 8\n" + mains + "if __name__ == '__main__':\n    main0()\n")
    known = [layer.layer.K for layer in layers if layer.layer.C is not None]
    assert known == [16, 32, 64, 5]


def test_only_numbers_that_rest_on_an_option_are_said_with_its_default(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(
        "from torch import nn\n"
        "class Net(nn.Module):\n"
        "    def __init__(self, opt):\n"
        "        super().__init__()\n"
        "        self.first = nn.Conv2d(64, 60, 3)\n"
        "        self.conv = nn.Conv2d(60, opt.base_width + 2, 3)\n"
        "        self.last = nn.Conv2d(opt.base_width + 2, 64, 3)\n"
        "    def forward(self, x):\n"
        "        return self.last(self.conv(self.first(x)))\n"
    )
    (tmp_path / "train.py").write_text("from net import Net\n" + OPTION + "Net(opt)\n")
    messages = [finding.message for finding in lint(tmp_path, isolated=True).findings]
    with_option = [", with base_width=36, the default at" in message for message in messages]
    assert with_option == ["=60 of" not in message for message in messages]
    assert len(messages) > 2


def test_files_that_the_same_programs_have_are_looked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else reading takes as long as the square of their number."""
    asked = []
    above, where = ProjectImports._above, Project.where
    monkeypatch.setattr(ProjectImports, "_above", lambda self, paths: asked.append(0) or above(self, paths))
    monkeypatch.setattr(Project, "where", lambda self, says: asked.append(0) or where(self, says))
    nets = {f"net{number}": NET for number in range(9)}
    assert widths(read(tmp_path, options=OPTION, **nets)) == [36] * 9
    without_imports, asked[:] = len(asked), []
    script = "".join(f"from {name} import Net\n" for name in nets) + OPTION
    assert widths(read(tmp_path, options="", train=script, **nets)) == [36] * 9
    assert max(without_imports, len(asked)) < 9


@pytest.mark.parametrize(("parser", "width"), [("parser.parse_args()\n", None), ("", 36)])
def test_of_networks_found_by_name_the_nearest_folder_with_a_parser_counts(
    tmp_path: Path, parser: str, width: int | None
) -> None:
    """Other folders may be other projects; options may be beside the networks, too."""
    for folder in ("one/models", "other"):
        (tmp_path / folder).mkdir(parents=True)
    files = {
        "one/models/net": NET,
        "one/train": PARSER + "parser.add_argument('--config')\n" + parser,
        "other/run": OPTION,
    }
    layers = read(tmp_path, **files)
    assert widths(layers) == [width]


def test_a_long_word_takes_no_time_of_its_square(tmp_path: Path) -> None:
    """Hours, where each part of it is tried as the name of what holds the options."""
    blob = f"BLOB = '''\n{'a' * 500_000}\n'''\n"
    assert widths(read(tmp_path, options=OPTION + blob, net=NET)) == [36]


@pytest.mark.parametrize(
    "made",
    [
        "import gin\n@gin.configurable\ndef make(width=36):\n    return nn.Conv2d(3, width, 3)\nmake()\n",
        "import gin\n@gin.configurable('net')\nclass Net(nn.Module):\n"
        "    def __init__(self, n=nn.BatchNorm2d, *, width=36):\n        super().__init__()\n"
        "        self.conv = nn.Conv2d(3, width, 3)\n        self.norm = n(width)\nNet()\n",
        "from pydantic_settings import BaseSettings\nclass Settings(BaseSettings):\n    width: int = 36\n"
        "net = nn.Conv2d(3, Settings().width, 3)\n",
    ],
)
def test_a_default_that_a_file_or_the_environment_may_change(tmp_path: Path, made: str) -> None:
    layers = read(tmp_path, net="from torch import nn\n" + made)
    assert {(layer.layer.K, layer.certainty) for layer in layers if layer.layer.K} == {(36, "with defaults")}


def test_what_a_file_may_change_decides_no_test(tmp_path: Path) -> None:
    net = (
        "import gin\nfrom torch import nn\n@gin.configurable\ndef make(deep=True):\n    if deep:\n"
        "        return nn.Conv2d(3, 36, 3)\n    return nn.Conv2d(3, 40, 3)\nnet = make()\n"
    )
    assert {(layer.layer.K, layer.condition) for layer in read(tmp_path, net=net)} == {(36, "deep"), (40, "not (deep)")}
