"""`--fix` on Python source that is not run: the edits it refuses because code would break, and its reasons."""

import json
from pathlib import Path

import pytest
from command_line import Ran, convlint

pytestmark = pytest.mark.usefixtures("here")
NET = """\
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Conv2d(64, 128, 3, padding=1)
        self.n = nn.BatchNorm2d(128)
        {line}

    def forward(self, x):
        return self.n(self.c(x))
"""
EDITED = NET.replace("padding=1)", "padding=1, bias=False)")
INIT = "def weights_init(m):\n    if isinstance(m, nn.Conv2d):\n        m.bias.data.zero_()\n"


def written(**texts: str) -> None:
    for name, text in texts.items():
        Path(f"{name}.py").write_text(text)


def fixed(*given: str) -> Ran:
    return convlint("check", *(given or (".",)), "--select", "CL506", "--fix", "--unsafe-fixes", "--verbose")


def checked() -> Ran:
    return convlint("check", ".", "--select", "CL506", "--verbose")


@pytest.mark.parametrize(
    "line",
    [
        "self.c.bias.data.fill_(0.01)",
        "for m in self.modules():\n            if isinstance(m, nn.Conv2d): m.bias.data.zero_()",
        "getattr(self.c, 'bias').data.zero_()",
    ],
)
def test_a_bias_that_the_code_uses_stays(line: str) -> None:
    written(net=NET.format(line=line))
    ran = fixed()
    assert Path("net.py").read_text() == NET.format(line=line)
    at = 9 + line.count("\n")
    why = f"net.py:{at}: this uses a bias that would be None"
    assert "use bias=False" in ran.out
    assert why in ran.out
    assert ran.err.splitlines()[0].endswith(f"net.py: CL506 is not fixed: {why}")


def test_advice_names_the_bias_as_the_framework_does() -> None:
    written(
        net="""
from keras import layers

def block(x):
    x = layers.Conv2D(64, 3)(x)
    return layers.BatchNormalization()(x)
"""
    )
    assert "pass use_bias=False: the normalisation" in " ".join(checked().out.split())


@pytest.mark.parametrize(
    "other",
    [
        f"from torch import nn\nfrom net import Net\n{INIT}\na = Net()\na.apply(weights_init)\n",
        "from torch.optim import SGD\nfrom net import Net\na = Net()\nSGD([{'params': [a.c.bias]}])\n",
    ],
)
@pytest.mark.parametrize("given", [(".",), ("net.py",)])
def test_a_bias_that_another_file_uses_stays(other: str, given: tuple[str, ...]) -> None:
    written(net=NET.format(line="pass"), train=other)
    Path("pyproject.toml").touch()
    ran = fixed(*given)
    assert Path("net.py").read_text() == NET.format(line="pass")
    assert "net.py: CL506 is not fixed: train.py:" in ran.err


@pytest.mark.parametrize(
    "line",
    ["pass", "nn.init.zeros_(self.n.bias)", "for m in self.modules():\n            if isinstance(m, nn.Conv2d) and "
     "m.bias is not None: m.bias.data.zero_()"],
)  # fmt: skip
def test_a_bias_that_nothing_needs_goes(line: str) -> None:
    written(net=NET.format(line=line))
    ran = fixed()
    assert Path("net.py").read_text() == EDITED.format(line=line)
    assert "is not fixed" not in ran.err


def test_a_bias_of_another_layer_of_the_file_is_its_own_affair() -> None:
    """Layers of the same name are not told apart."""
    net = NET.replace("self.n(self.c(x))", "self.h(self.n(self.c(x)))")
    net = net.format(line="self.h = nn.Conv2d(128, 64, 1)\n        self.h.bias.data.zero_()")
    written(net=net)
    fixed()
    assert Path("net.py").read_text() == net.replace("padding=1)", "padding=1, bias=False)")
    both = net + NET.split("\n\n\n")[1].replace("Net", "B").replace("self.c", "self.h").format(line="pass")
    written(net=both)
    assert "is not fixed" in fixed().err


def test_a_bias_of_what_another_file_constructs_itself_is_its_own_affair() -> None:
    other = NET.replace("self.n(", "self.n(self.h(x) + ").replace("{line}", "self.h = nn.Conv2d(64, 128, 1)\n{line}")
    other = other.replace("{line}", "        self.h.bias.data.zero_()")
    written(net=NET.format(line="pass"), other=other)
    ran = fixed()
    assert Path("net.py").read_text() == EDITED.format(line="pass")
    assert Path("other.py").read_text() == other
    assert "net.py: " not in ran.err


@pytest.mark.parametrize(
    ("code", "stays"),
    [
        ("def fuse(w):\n    f = nn.Conv2d(64, 64, 1).requires_grad_(False)\n    f.bias.copy_(w)\n", False),
        ("def fuse(w, f=None):\n    f = nn.Conv2d(64, 64, 1)\n    f.bias.copy_(w)\n", True),
        ("def fuse(w, net):\n    f = nn.Conv2d(64, 64, 1)\n    f = net.c\n    f.bias.copy_(w)\n", True),
        ("def fuse(fs):\n    for f in fs:\n        f.bias.zero_()\n", True),
        ("def fuse(c):\n    f = nn.Identity(c)[0]\n    f.bias.zero_()\n", True),
    ],
)
def test_so_is_that_of_a_variable(code: str, stays: bool) -> None:
    written(net=NET.format(line="pass"), fuse=f"from torch import nn\n\n\n{code}")
    assert ("net.py: CL506 is not fixed: fuse.py" in fixed().err) is stays


def test_an_attribute_that_a_subclass_elsewhere_constructs_is_not() -> None:
    sub = NET.replace("nn.Module", "Base").replace("\n\n\n", "\nfrom base import Base\n\n\n").format(line="pass")
    base = NET.replace("class Net", "class Base").format(line="") + "\n    def init(self): self.c.bias.data.zero_()\n"
    written(base=base, net=sub)
    assert "net.py: CL506 is not fixed: base.py:14: this may use a bias that would be None" in fixed().err
    assert Path("net.py").read_text() == sub


def test_a_use_in_a_notebook_is_named_by_its_cell() -> None:
    cells = [{"cell_type": "code", "source": code} for code in ("from net import Net", "n = Net()\nn.c.bias.zero_()")]
    Path("train.ipynb").write_text(json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}))
    written(net=NET.format(line="pass"))
    assert "net.py: CL506 is not fixed: train.ipynb:cell 2:2: this may use a bias that would be None" in fixed().err


def test_what_is_left_is_said_with_its_place_and_why() -> None:
    calls = NET.format(line="pass").replace("padding=1)", "padding=1, **kw)").replace("(self):", "(self, kw={}):")
    written(net=NET.format(line="pass"), other=calls)
    ran = fixed()
    assert "fixed 1 finding in 1 file" in ran.err
    assert "other.py: CL506 is not fixed: other.py:7: bias may come with its **arguments" in ran.err
    assert Path("net.py").read_text() == EDITED.format(line="pass")


def test_findings_that_are_left_for_one_reason_are_counted() -> None:
    two = NET.format(line="pass") + NET.format(line="self.c.bias.data.zero_()").split("\n\n\n")[1].replace("Net", "B")
    written(net=two)
    ran = fixed()
    assert "net.py: CL506 at 2 places is not fixed: net.py:18: this uses a bias that would be None" in ran.err


def test_what_is_not_asked_for_is_not_said_to_be_left() -> None:
    written(net=NET.format(line="self.c.bias.data.zero_()"))
    ran = convlint("check", ".", "--select", "CL506", "--fix")
    assert "is not fixed" not in ran.err


FROZEN = [
    "    def train(self, mode=True):\n        super().train(mode)\n        self.n.eval()\n",
    "    def freeze(self):\n        for m in self.modules():\n            if isinstance(m, nn.BatchNorm2d):\n"
    "                m.eval()\n",
    "    def freeze(self):\n        self.n.eval()\n",
]


@pytest.mark.parametrize("method", FROZEN)
def test_a_bias_before_a_norm_that_is_frozen_is_not_cancelled(method: str) -> None:
    written(net=NET.format(line="pass") + "\n" + method)
    assert "CL506" not in checked().out


@pytest.mark.parametrize("method", FROZEN[:-1])
def test_nor_is_one_whose_norm_a_base_of_the_repository_freezes(method: str) -> None:
    written(net=NET.format(line="pass").replace("nn.Module", "Base").replace("nn\n", "nn\nfrom base import Base\n", 1))
    written(base=f"from torch import nn\n\n\nclass Base(nn.Module):\n{method}")
    assert "CL506" not in checked().out


def test_a_training_loop_that_evaluates_freezes_nothing() -> None:
    loop = "\n\ndef train(net):\n    net.train()\n    net.eval()\n\n\n"
    loop += "class T:\n    def train(self):\n        self.m.eval()\n"
    written(net=NET.format(line="pass") + loop)
    assert "CL506" in checked().out


WEIGHTS = "this loads weights that were made with the bias"


@pytest.mark.parametrize("load", ["self.load_state_dict(torch.load(path))", "self.load(path)"])
def test_weights_that_a_constructor_loads_keep_their_biases(load: str) -> None:
    net = NET.replace("from torch", "import torch\nfrom torch").replace("(self):", "(self, path):").format(line=load)
    net += "\n    def load(self, path):\n        self.load_state_dict({**self.state_dict(), **torch.load(path)})\n"
    part = NET.format(line="pass").replace("Net", "Part")
    other = part.replace("Part", "Other")
    net = net.replace("self.n = ", "self.part = Part()\n        self.n = ") + part.replace("from torch import nn\n", "")
    written(net=net, other=other)
    ran = fixed()
    at = 11 if "torch.load" in load else 17
    assert f"net.py: CL506 at 2 places is not fixed: net.py:{at}: {WEIGHTS}" in ran.err
    assert Path("net.py").read_text() == net
    assert "padding=1, bias=False)" in Path("other.py").read_text()


# A network that is one of two
EITHER = "def main(a):\n    if a.big:\n        n = Net()\n    else:\n        n = nn.Linear(8, 8)\n"
# A network that settings name
NAMED = (
    "from argparse import ArgumentParser\n\nKINDS = {'a': Net, 'b': nn.Linear}\n\n\ndef main():\n"
    "    a = ArgumentParser().parse_args()\n    n = KINDS[a.kind](8)\n"
)


# A network whose layers are all of a part that settings name
BASE = (
    "from argparse import ArgumentParser\n\nKINDS = {'a': Net, 'b': nn.Linear}\n\n\nclass Base(nn.Module):\n"
    "    def __init__(self, a):\n        super().__init__()\n        self.body = KINDS[a.kind](8)\n"
)
MAKES_BASE = "Base(ArgumentParser().parse_args())"


@pytest.mark.parametrize(
    ("function", "stays"),
    [
        ("def net(pretrained):\n    n = Net()\n    if pretrained:\n        n.load_state_dict(load_url('a'))\n"
         "    return n\n", True),
        ("def load_pretrained(n):\n    n.load_state_dict(torch.load('a'))\n\n\ndef net():\n"
         "    n = Net()\n    load_pretrained(n)\n    return n\n", True),
        ("class Enc(nn.Module):\n    def __init__(self, a):\n        super().__init__()\n        n = Net()\n"
         "        n.load_state_dict(torch.load(a), strict=False)\n        self.n = n\n", True),
        ("def net(name):\n    n = Net()\n    n.load_state_dict(fetch(MODEL_URLS[name]))\n    return n\n", True),
        ("def main(a):\n    n = Net()\n    n.load_state_dict(torch.load(a))\n    return n\n", False),
        ("def main():\n    n = Net()\n    n.load_state_dict(torch.load('saved/net.pth'))\n    n.eval()\n", True),
        ("def main():\n    n = Net()\n    n.load_state_dict(torch.load('saved/net.pth'))\n"
         "    loss.backward()\n", False),
        ("def load(n, a):\n    n.load_state_dict(torch.load(a / 'net.pth'))\n\n\n"
         "def keep(n, a):\n    torch.save(n, a / 'net.pth')\n\n\n"
         "def main(a):\n    n = Net()\n    load(n, a)\n", False),
        ("n = Net()\nn.load_state_dict(torch.load('saved/net.pth'))\n", True),
        ("class Player:\n    def __init__(self):\n        self.n = Net()\n\n    def load(self, a):\n"
         "        self.n.load_state_dict(torch.load(a))\n\n\np = Player()\np.load('pretrained_models/a')\n", True),
        ("def load(n, a):\n    n.load_state_dict(torch.load(a))\n\n\ndef main():\n"
         "    n = Net()\n    load(n, 'pretrained_models/a')\n", True),
        ("def load(n, a):\n    n.load_state_dict(torch.load(a))\n\n\ndef main():\n"
         "    n = Net()\n    load(n, 'models/a')\n", False),
        (f"{EITHER}    n.load_state_dict(torch.load(a.pretrained))\n    return n\n", True),
        (f"{EITHER}    n = nn.DataParallel(n)\n    n.load_state_dict(torch.load(a.pretrained))\n    return n\n", True),
        (f"{EITHER}    n.load_state_dict(torch.load(a.saved))\n    return n\n", False),
        ("class Lit(LightningModule):\n    n = Net()\n\n\nm = Lit.load_from_checkpoint(pretrained_filename)\n", True),
        ("class Lit(LightningModule):\n    n = Net()\n\n\nm = Lit.load_from_checkpoint(path=URLS[0])\n", True),
        ("class Lit(LightningModule):\n    n = Net()\n\n\nm = Lit.load_from_checkpoint(keeper.best_path)\n", False),
        (f"{EITHER}    o = SGD(n)\n    optimizer = o.of(n)\n    optimizer.load_state_dict(a.pretrained)\n", False),
        (f"{NAMED}    n.load_state_dict(torch.load(a.pretrained), strict=False)\n    return n\n", True),
        (f"{NAMED}    n.load_state_dict(torch.load(a.saved))\n    return n\n", False),
        (f"{BASE}        self.load_state_dict(torch.load(a.saved))\n\n\n{MAKES_BASE}", True),
        (f"{BASE}\n    def load(self, a):\n        self.load_state_dict(torch.load(a))\n\n\n"
         f"{MAKES_BASE}.load(1)\n", False),
        (f"{NAMED}    optimizer = n.optimizer\n    optimizer.load_state_dict(a.pretrained)\n", False),
    ],
)  # fmt: skip
def test_so_do_those_that_others_made(function: str, stays: bool) -> None:
    written(net=NET.format(line="pass"), use=f"import torch\nfrom torch import nn\nfrom net import Net\n\n\n{function}")
    ran = fixed()
    assert (WEIGHTS in ran.err) is stays
    assert (Path("net.py").read_text() == NET.format(line="pass")) is stays


@pytest.mark.parametrize(("name", "stays"), [("net", False), ("other", True)])
def test_a_file_that_the_project_writes_is_its_own(name: str, stays: bool) -> None:
    head = "import torch\nfrom net import Net\n\nn = Net()\n"
    written(
        net=NET.format(line="pass"),
        train=f"{head}n(x).backward()\ntorch.save(n.state_dict(), 'runs/{name}.pth')\n",
        use=f"{head}n.load_state_dict(torch.load('runs/net.pth'))\n",
    )
    assert (WEIGHTS in fixed().err) is stays


@pytest.mark.parametrize(
    ("name", "test", "stays"), [("test_image", "", True), ("test_net", "def test_it(): ...", False)]
)
def test_a_script_that_is_called_like_a_test_loads_what_others_made(name: str, test: str, stays: bool) -> None:
    other = NET.format(line="pass").replace("Net", "Other").removeprefix("from torch import nn\n")
    load = "n = Net()\nn.load_state_dict(torch.load('epochs/net.pth'))\n"
    written(**{"net": NET.format(line="pass") + other, name: f"import torch\nfrom net import Net\n\n{load}{test}"})
    assert (f"{name}.py:5: {WEIGHTS}" in fixed().err) is stays
    assert Path("net.py").read_text().count("bias=False") == (1 if stays else 2)


KERAS = """\
import keras
from keras.layers import BatchNormalization, Conv2D
from keras.utils import get_file


def net(weights):
    image = keras.Input((32, 32, 3))
    x = Conv2D(64, 3)(image)
    x = BatchNormalization()(x)
    network = keras.Model(image, x)
    {line}
    return network
"""


@pytest.mark.parametrize(
    ("line", "stays"), [("network.load_weights(get_file('a', URL))", True), ("network.summary()", False)]
)
def test_so_do_those_of_keras(line: str, stays: bool) -> None:
    written(net=KERAS.format(line=line))
    assert (WEIGHTS in fixed().err) is stays
    assert ("use_bias=False" in Path("net.py").read_text()) is not stays


@pytest.mark.parametrize(
    ("init", "key", "stays"),
    [
        ("", "head.bias", False),
        ("", "module.fc.0.bias", False),
        ("", "c.bias", True),
        ("", "backbone.c.bias", True),
        ("", "0.bias", True),
        ("", "bias", True),
        ("self.d = self.c", "d.bias", True),
        ("self.c = nn.Sequential(nn.Conv2d(8, 8, 1), nn.BatchNorm2d(8))", "c.0.bias", True),
        ("d = nn.Conv2d(8, 8, 1)\n        self.m = nn.Sequential(d, nn.BatchNorm2d(8))", "head.bias", True),
        ("self.add_module('d', nn.Sequential(nn.Conv2d(8, 8, 1), nn.BatchNorm2d(8)))", "d.0.bias", True),
        ("self.add_module('d', nn.Sequential(nn.Conv2d(8, 8, 1), nn.BatchNorm2d(8)))", "head.bias", False),
    ],
)
@pytest.mark.parametrize("apart", [True, False])
def test_the_key_of_a_state_keeps_the_biases_of_its_own_path(init: str, key: str, stays: bool, apart: bool) -> None:
    net = NET.format(line=init or "pass")
    use = f"def load(state):\n    del state['{key}']\n"
    written(net=net) if apart else written(net=f"{net}\n\n{use}")
    if apart:
        written(load=use)
    ran = fixed()
    assert ("is not fixed" in ran.err) is stays
    assert ("padding=1, bias=False)" in Path("net.py").read_text()) is not stays


MAIN = "\n\nif __name__ == '__main__':\n    main()\n"


@pytest.mark.parametrize(
    ("fuse", "train", "stays"),
    [
        (MAIN, "import net" + MAIN, False),
        ("\nimport net\n" + MAIN, "", True),
        (MAIN, "import net\nimport fuse" + MAIN, True),
        ("", "import part\nimport fuse" + MAIN, False),
        ("", "import part\nimport fuse\n", True),  # of which nobody knows who uses it
        ("", "import net" + MAIN, True),
        ("\nimport part\n" + MAIN, "", False),
        ("\nimport train\n", "import fuse\n", True),
        ("\nimport importlib\nm = importlib.import_module(name)\n" + MAIN, "import net", True),
        ("\nimport hydra\n" + MAIN, "import net", True),
        ("\nfrom . import gone\n" + MAIN, "import net", True),
    ],
)
def test_a_use_in_another_program_takes_no_bias_of_this_one(fuse: str, train: str, stays: bool) -> None:
    written(net=NET.format(line="pass"), fuse=f"def fuse(m):\n    return m.bias.data\n{fuse}", train=train, part="")
    assert ("net.py: CL506 is not fixed: fuse.py" in fixed().err) is stays
