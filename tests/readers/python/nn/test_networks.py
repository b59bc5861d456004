"""Which networks a repository has, what they need, and which input their code suggests."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from cases import for_each

from convlint.readers.python.nn.networks import FoundNetwork, find_networks

pytestmark = pytest.mark.usefixtures("here")

HEAD = "import torch\nfrom torch import nn\n\n\n"


def module(name: str, parameters: str = "", body: str = "self.stem = nn.Conv2d(3, 8, 3)", inputs: str = "x") -> str:
    comma = ", " if parameters else ""
    return (
        f"class {name}(nn.Module):\n    def __init__(self{comma}{parameters}):\n        super().__init__()\n"
        f"        {body}\n    def forward(self, {inputs}):\n        return self.stem(x)\n\n\n"
    )


STEM = "self.stem = nn.Conv2d(3, 8, 3)"
BLOCK = module("Block", "n, k", "self.stem = nn.Conv2d(n, k, 3)")


ENCODER = module("Encoder", "k=8", "self.stem = nn.Conv2d(3, k, 3)")
EITHER = module("Net", "args", "self.stem = Encoder(8) if args.small else Encoder(16)")
DEPTHS = "def net(depth):\n    if depth == 18: return Net(k)\n    if depth == 34: return Net(j)\n"


def found(files: str | Mapping[str, str]) -> tuple[FoundNetwork, ...]:
    given = {"nets.py": files} if isinstance(files, str) else files
    for name, text in given.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(HEAD + text, encoding="utf-8", errors="surrogateescape")
    return find_networks(tuple(given), ".").networks


@for_each(
    "code, names",
    [
        (module("Net"), ["Net"]),
        (module("A") + module("B"), ["A", "B"]),
        (BLOCK + module("Net", body="self.stem = Block(3, 8)"), ["Net"]),
        # a part that reading does not see constructed is named by the module around it
        (BLOCK + "B = {'block': Block}\n\n" + module("Net", "c", f"{STEM}; self.b = B[c.kind](3, 8)"), ["Net"]),
        (BLOCK + "def made(n): return Block(n, n)\n\n" + module("Net", "n", "self.stem = made(n)"), ["Net"]),
        (BLOCK + module("Net", "block, n") + "def net18(): return Net(Block, 18)\n", ["net18"]),
        (BLOCK + module("Net") + "def fits(each): return isinstance(each, Block)\n", ["Block", "Net"]),
        (BLOCK + "register_network(Block)\n", ["Block"]),
        # which parts it has is up to a parameter
        (ENCODER + EITHER, ["Net"]),
        (ENCODER.replace("k=8", "k") + EITHER + "def encoder(): return Encoder(16)\n", ["Net", "encoder"]),
        (module("Net", "n") + "make = partial(Net, n=2)\nRunner(Net, 3)\n", ["Net"]),
        (module("Net", "n") + DEPTHS, ["net"]),
        (module("Base", "n") + "class Net(Base):\n    def __init__(self):\n        super().__init__(3)\n", ["Net"]),
        (module("Net", "n") + "def small(): return Net(1)\ndef large(): return Net(2)\n", ["small"]),
        (module("Net") + "def build(): return Net()\n", ["Net"]),
        (module("Net", "n") + "def get_net(): return Net(1)\ndef net(): return Net(2)\n", ["net"]),
        (module("Net", "n") + "def train(): return Net(1)\ndef main(): return Net(2)\n", ["Net"]),
        ("def conv3(n=3): return nn.Conv2d(n, 8, 3)\n", []),
        ("def line(n): return nn.Sequential(nn.Conv2d(n, 8, 3))\n", []),
        ("def line(): return nn.Sequential(nn.Conv2d(3, 8, 3))\n", ["line"]),
        (module("_Net"), []),
        (module("Net", body="self.stem = nn.Linear(3, 8)"), []),
        ("class Net:\n    def __init__(self):\n        self.stem = nn.Conv2d(3, 8, 3)\n", []),
        ("if True:\n    net = nn.Conv2d(3, 8, 3)\n", []),
    ],
)
def test_networks_are_what_no_other_module_constructs(code: str, names: list[str]) -> None:
    assert [each.name for each in found(code)] == names


def test_other_frameworks_and_tests_have_none() -> None:
    keras = "import keras\nclass Net(keras.Model):\n    def __init__(self):\n        super().__init__()\n"
    keras += "        self.stem = keras.layers.Conv2D(8, 3)\n"
    assert found({"nets.py": keras, "tests/test_nets.py": module("Net")}) == ()


def test_functions_of_one_class_are_one_network() -> None:
    code = module("Net", "n") + "def small(): return Net(1)\ndef large(): return Net(2)\ndef free(n): return Net(n)\n"
    (network,) = found(code)
    assert network.others == ("large",)
    assert {name for _, name in network.makers} == {"Net", "small", "large", "free"}


@for_each(
    "code, needs, arguments",
    [
        (module("Net"), (), ""),
        (module("Net", "width, *, classes, depth=3"), ("width", "classes"), ""),
        (module("Net", "width") + "net = Net(60)\n", (), "60"),
        (module("Net", "width, kind") + "def main():\n    net = Net(-6, kind='\"a\"')\n", (), "-6, kind='\"a\"'"),
        (module("Net", "width, kind") + "net = Net(60)\n", ("width", "kind"), ""),
        (module("Net", "width") + "def main(n):\n    return Net(n)\n", ("width",), ""),
        (module("Net", "width") + f"net = Net('{'x' * 300}')\n", ("width",), ""),
        (module("Net", "width") + "net = Net('\\x1b[2J')\n", (), "'\\x1b[2J'"),
        (module("Net") + f"net = {'a.' * 900}Net(3)\n", (), ""),
        (module("Net", "n") + DEPTHS, (), "18"),
        (DEPTHS + module("Net", "n") + "net = Net(7)\n", (), "7"),
        (module("Net", "n") + DEPTHS.replace("depth)", "depth, weights)") + "    weights == 'a'\n", ("n",), ""),
        (module("Net", "n") + "def net(n):\n    if n == '': raise E\n    if n == 's': return Net(k)\n", (), "'s'"),
        (module("Net", "n") + "def net(flag):\n    if flag == True: return Net(k)\n    return 3\n", ("n",), ""),
        (module("Net", "n") + f"def net(n):\n    if n == '{'x' * 300}': return Net(k)\n    return 3\n", ("n",), ""),
        (module("Net", "n") + f"{DEPTHS}def small(): return Net(1)\n", (), ""),
        (module("Net", "n") + "def net(kind):\n    assert kind in ('a', 'b')\n    if kind: return Net(k)\n", (), "'a'"),
        (module("Net", "n") + "def net(kind, n):\n    if kind == 'a': return Net(n)\n    return n\n", ("n",), ""),
        (module("Net", "n") + "def net(pretrained=True): return Net(1)\n", (), "pretrained=False"),
    ],
)
def test_arguments_are_those_that_the_code_gives(code: str, needs: tuple[str, ...], arguments: str) -> None:
    assert [(each.needs, each.arguments) for each in found(code)] == [(needs, arguments)]


@for_each(
    "code, channels, sizes, source",
    [
        (module("Net"), 3, (), ""),
        (module("Net", "c=4", "self.stem = nn.Conv2d(c, 8, 3)"), 4, (), ""),
        (module("Net", "c", "self.stem = nn.Conv2d(c, 8, 3)"), None, (), ""),
        # the convolution that reads the input, not the first to be constructed
        (module("Net", body="self.head = nn.Conv2d(8, 2, 1); self.stem = nn.Conv2d(1, 8, 3)"), 1, (), ""),
        (module("Net", "image_size=256"), 3, (256, 256), "the default of image_size"),
        (module("Net", "in_size=(96, 128)"), 3, (96, 128), "the default of in_size"),
        (module("Net", "input_shape=(3, 96, 128)"), 3, (96, 128), "the default of input_shape"),
        (module("Net", "input_shape=(96, 128, 3)"), 3, (96, 128), "the default of input_shape"),
        (module("Net", "patch_size=16, image_size=1"), 3, (), ""),
        (module("Net") + "x = torch.randn(1, 3, 64, 80)\n", 3, (64, 80), "the tensor in line 13"),
        (module("Net") + "x = torch.zeros((1, 3, 64, 80))\n", 3, (64, 80), "the tensor in line 13"),
        (module("Net") + "x = torch.randn(1, 4, 64, 80)\n", 3, (), ""),
    ],
)
def test_the_input_is_what_the_code_suggests(
    code: str, channels: int | None, sizes: tuple[int, ...], source: str
) -> None:
    (network,) = found(code)
    assert (network.channels, network.sizes, network.sized_by) == (channels, sizes, source)


def test_inputs_are_what_its_forward_method_needs() -> None:
    code = module("Net", inputs="x, mask, *, scale=1, bias") + module("Volume", body="self.stem = nn.Conv3d(1, 8, 3)")
    assert [(each.inputs, each.dims) for each in found(code)] == [(("x", "mask", "bias"), 2), (("x",), 3)]


def test_what_cannot_be_read_is_named() -> None:
    Path("bad.py").write_text("import torch\ndef (\n")
    Path("net.py").write_text(HEAD + module("Net"))
    read = find_networks(("bad.py", "net.py"), ".")
    assert [each.name for each in read.networks] == ["Net"]
    assert read.unread["bad.py"].line == 2


def test_a_call_is_of_what_its_own_file_means() -> None:
    """Of two classes of one name, each gets the arguments of its own calls."""
    other = "class Net:\n    def __init__(self, dims): pass\nnet = Net([784, 500])\n"
    files = {"a/model.py": module("Net", "n"), "b/main.py": other}
    assert [(each.path, each.needs) for each in found(files)] == [("a/model.py", ("n",))]
    files["a/train.py"] = "from a.model import Net\nnet = Net(7)\n"
    assert [(each.path, each.arguments) for each in found(files)] == [("a/model.py", "7")]


def test_a_convolution_that_may_not_be_the_first_says_nothing_of_the_input() -> None:
    """What an unknown encoder hands on is no image, unless it looks like one."""
    body = "self.encoder = unknown(); self.stem = nn.Conv2d({}, 8, 3)"
    text = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        {}\n"
    text += "    def forward(self, x):\n        return self.stem(self.encoder(x))\n"
    for channels, further_in in ((512, True), (3, False)):
        (net,) = found(text.format(body.format(channels)))
        assert (net.channels, net.further_in) == (channels, further_in)
    (net,) = found(text.replace("self):", "self, C=512):").format(body.format("C")))
    assert (net.channels, net.further_in) == (512, False)  # whoever constructs it says what it gets
