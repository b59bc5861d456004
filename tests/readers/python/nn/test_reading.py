"""What the source says of its convolutions, and what it does not say."""

import re
from pathlib import Path
from typing import Any

import pytest

from convlint.model.source import SourceLayer, SourceReading
from convlint.readers.python.evaluator.machine import Machine
from convlint.readers.python.imports import ProjectImports
from convlint.readers.python.nn.merging import merged_again
from convlint.readers.python.nn.reading import read_layers
from convlint.readers.python.project import Project
from convlint.run.api import lint

HEAD = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n"


def read(tmp_path: Path, text: str, name: str = "net.py", **options: Any) -> SourceReading:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(HEAD + text)
    return read_layers(ProjectImports(Project(str(tmp_path), [str(path)])), [str(path)], **options)


def one(found: SourceReading) -> SourceLayer:
    assert len(found.layers) == 1
    return found.layers[0]


def module(init: str, forward: str = "", parameters: str = "") -> str:
    body = "".join(f"        {line}\n" for line in init.splitlines())
    run = "".join(f"        {line}\n" for line in forward.splitlines())
    method = f"    def forward(self, x):\n{run}" if forward else ""
    head = f"class Net(nn.Module):\n    def __init__(self{parameters}):\n        super().__init__()\n"
    return head + body + method


@pytest.mark.parametrize(
    ("call", "field"),
    [
        ("nn.Conv2d(n, 64, 3)", "C"),
        ("nn.Conv2d(3, n, 3)", "K"),
        ("nn.Conv2d(3, 64, n)", "R"),
        ("nn.Conv2d(3, 64, 3, padding=n)", "PadH"),
        ("nn.Conv2d(3, 64, 3, bias=n)", "bias"),
        ("nn.Conv2d(3, 64, 3, groups=n)", "K"),  # a width without its groups says nothing
        ("nn.Conv2d(3, 64, 3, **n)", "bias"),
        ("nn.Conv2d(*n)", "C"),
        ("nn.Conv2d('3', 64, 3)", "C"),
    ],
)
def test_what_is_not_known_is_not_guessed(tmp_path: Path, call: str, field: str) -> None:
    assert getattr(one(read(tmp_path, f"def make(n):\n    return {call}\n")).layer, field) is None


def test_a_stride_that_nobody_knows_is_said_to_be_unknown(tmp_path: Path) -> None:
    found = one(read(tmp_path, "def make(n):\n    return nn.Conv2d(3, 64, 3, stride=n)\n"))
    assert found.unknown == ("U", "V")


def test_defaults_of_parameters_are_no_statements(tmp_path: Path) -> None:
    found = read(tmp_path, "def make(width=48):\n    return nn.Conv2d(3, width, 3)\n").layers
    assert [(each.layer.K, each.certainty) for each in found] == [(None, "stated"), (48, "with defaults")]


def test_the_literal_stands_where_it_is_written_with_its_name(tmp_path: Path) -> None:
    found = one(
        read(tmp_path, "def conv(a, b):\n    return nn.Conv2d(a, b, 3)\ndef make():\n    return conv(3, b=40)\n")
    )
    (stated,) = found.stated["K"]
    assert (stated.value, stated.name, stated.at.line, found.layer.locate().line) == (40, "b", 7, 5)


def test_the_arguments_of_a_call_have_their_places(tmp_path: Path) -> None:
    layer = one(read(tmp_path, "def make():\n    return nn.Conv2d(3, 64, 3, bias=True)\n")).layer
    assert layer.spans["bias"] == (5, 37, 5, 41)
    assert layer.spans["K"] == (5, 25, 5, 27)
    assert "groups" not in layer.spans


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (module("self.stem = nn.Conv2d(3, 8, 3)"), "Net.stem"),
        (module("self.features = nn.Sequential(nn.ReLU(), nn.Conv2d(3, 8, 3))"), "Net.features[1]"),
        ("def conv3x3():\n    return nn.Conv2d(3, 8, 3)\n", "conv3x3"),
        (module("self.add_module('first', nn.Conv2d(3, 8, 3))"), "Net.first"),
        (module("layers = []\nlayers.append(nn.Conv2d(3, 8, 3))\nself.net = nn.Sequential(*layers)"), "Net.layers"),
        ("import keras\nnet = keras.Sequential()\nnet.add(keras.layers.Conv2D(8, 3))\n", "net#2"),
        (
            "from mxnet.gluon import nn\nnet = nn.Sequential()\nnet.add(nn.Activation('relu'), nn.Conv2D(8, 3))\n",
            "net[1]",
        ),
        ("import tensorflow as tf\ny = tf.add(tf.keras.layers.Conv2D(8, 3)(x), x)\n", "y[0]#2"),
    ],
)
def test_a_layer_has_the_name_of_its_place(tmp_path: Path, text: str, name: str) -> None:
    assert one(read(tmp_path, text)).layer.name == name


CONV, NORM = "self.conv = nn.Conv2d(3, 8, 3)\n", "self.bn = nn.BatchNorm2d(8)\n"


@pytest.mark.parametrize(
    ("init", "forward", "expected"),
    [
        (CONV + NORM, "return self.bn(self.conv(self.conv(x)))", False),  # it reads its own output
        (CONV + NORM, "return self.bn(self.conv(x)) + self.bn(self.conv(-x))", True),  # normalised each time
        (CONV + NORM, "y = self.conv(x)\nif x.sum() > 0:\n    y = self.bn(y)\nreturn y", None),
        (CONV + "self.bn = make_norm(8)", "return self.bn(self.conv(x))", None),
        ("self.c = nn.Sequential(nn.Conv2d(3, 8, 1), nn.Identity(), nn.BatchNorm2d(8))", "return self.c(x)", True),
        ("self.conv = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))", "", True),
        (CONV + NORM, "", None),
    ],
)
def test_a_norm_follows_only_where_nothing_else_reads(
    tmp_path: Path, init: str, forward: str, expected: bool | None
) -> None:
    assert one(read(tmp_path, module(init, forward))).layer.norm_follows is expected


def test_a_norm_has_to_follow_in_every_network_that_has_the_layer(tmp_path: Path) -> None:
    block = (
        "class Block(nn.Module):\n    def __init__(self, norm):\n        super().__init__()\n"
        "        self.conv = nn.Conv2d(3, 8, 3)\n        self.norm = norm(8)\n"
        "    def forward(self, x):\n        return self.norm(self.conv(x))\n"
    )
    used = "def first():\n    return Block(nn.BatchNorm2d)\ndef second():\n    return Block({})\n"
    both = read(tmp_path / "a", block + used.format("nn.Softmax"))
    assert {layer.layer.norm_follows for layer in both.layers} == {False}


def test_the_first_and_the_last_layer_of_a_network(tmp_path: Path) -> None:
    init = "self.a = nn.Conv2d(3, 16, 3)\nself.b = nn.Conv2d(16, 16, 3)\nself.c = nn.Conv2d(16, 21, 1)"
    found = read(tmp_path, module(init, "return self.c(F.relu(self.b(self.a(x))))"))
    assert [(each.layer.first, each.layer.head) for each in found.layers] == [
        (True, False), (False, False), (False, True),
    ]  # fmt: skip


@pytest.mark.parametrize(("channels", "first"), [(3, True), (6, True), (9, True), (10, False), (34, False)])
def test_what_reads_the_input_is_the_first_where_images_may_be_stacked_in_it(
    channels: int, first: bool, tmp_path: Path
) -> None:
    found = one(read(tmp_path, module(f"self.a = nn.Conv2d({channels}, 16, 3)", "return self.a(x)")))
    assert found.layer.first is first


def test_before_a_linear_layer_there_is_no_head(tmp_path: Path) -> None:
    init = "self.a = nn.Conv2d(3, 16, 3)\nself.fc = nn.Linear(16, 10)"
    found = one(read(tmp_path, module(init, "return self.fc(self.a(x).mean([2, 3]))")))
    assert not found.layer.head


@pytest.mark.parametrize(
    ("loss", "head"),
    [
        ("nn.CrossEntropyLoss()(y, t)", True), ("F.mse_loss(torch.sigmoid(y), t)", True),
        ("F.binary_cross_entropy_with_logits(input=y, target=t)", True),
        ("((y - t) ** 2).mean().backward()", True), ("nn.Linear(21, 10)(y)", False), ("F.l1_loss(a(y), t)", False),
    ],
)  # fmt: skip
def test_what_a_loss_reads_is_the_output_of_a_head(tmp_path: Path, loss: str, head: bool) -> None:
    init = "self.a = nn.Conv2d(3, 16, 3)\nself.b = nn.Conv2d(16, 21, 3)\nself.c = nn.Conv2d(21, 21, 3)"
    found = read(tmp_path, module(init, f"a, t = self.c, x\ny = self.b(self.a(x))\nreturn {loss}"))
    assert [each.layer.head for each in found.layers[:2]] == [False, head]


def test_a_width_with_the_name_of_classes_is_a_heads(tmp_path: Path) -> None:
    found = one(read(tmp_path, "NUM_CLASSES = 21\ndef make():\n    return nn.Conv2d(64, NUM_CLASSES, 1)\n"))
    assert found.layer.head


@pytest.mark.parametrize(
    ("init", "forward", "expected"),
    [
        ("self.p = nn.AdaptiveAvgPool2d(1)\nself.c = nn.Conv2d(8, 4, 1)", "return self.c(self.p(x))", True),
        ("self.c = nn.Conv2d(8, 4, 1)", "return self.c(x.mean([2, 3], keepdim=True))", True),
        ("self.c = nn.Conv2d(8, 4, 1)", "return self.c(F.max_pool2d(x, 2))", False),
        ("self.c = nn.Conv2d(8, 4, 1)", "return F.max_pool2d(self.c(x), 2)", False),
        ("self.c = nn.Conv2d(8, 4, 1)", "return self.c(x)", None),
        ("self.c = nn.Conv2d(8, 8, 1)", "return x * torch.sigmoid(self.c(F.adaptive_avg_pool2d(x, 1)))", True),
        ("self.c = nn.Conv2d(8, 8, 3)", "", False),
    ],
)
def test_maps_of_one_point(tmp_path: Path, init: str, forward: str, expected: bool | None) -> None:
    assert one(read(tmp_path, module(init, forward))).pointwise_map is expected


def test_the_sizes_of_the_input_go_through_the_network(tmp_path: Path) -> None:
    init = "self.a = nn.Conv2d(3, 16, 7, 2, 3)\nself.p = nn.MaxPool2d(3, 2, 1)\nself.b = nn.Conv2d(16, 16, 3, 1, 1)"
    found = read(tmp_path, module(init, "return self.b(self.p(self.a(x)))"), input_shape=(3, 224, 224))
    assert [(each.layer.H, each.layer.P) for each in found.layers] == [(224, 112), (56, 56)]


def test_sizes_of_an_input_with_other_channels_are_not_believed(tmp_path: Path) -> None:
    found = one(read(tmp_path, module("self.a = nn.Conv2d(64, 16, 3)", "return self.a(x)"), input_shape=(3, 224, 224)))
    assert (found.layer.H, found.layer.P) == (None, None)


@pytest.mark.parametrize(
    ("init", "replaced"),
    [
        ("self.a = nn.Conv2d(3, 8, 3)\nself.a = nn.Sequential(self.a, nn.Conv2d(8, 16, 3))", [False, False]),
        ("self.a = [nn.Conv2d(3, 8, 3)]\nself.b = nn.Conv2d(8, 16, 3)", [False, False]),
    ],
)
def test_layers_that_are_taken_out_again(tmp_path: Path, init: str, replaced: list[bool]) -> None:
    assert [each.replaced for each in read(tmp_path, module(init)).layers] == replaced


def test_a_network_is_judged_on_a_gpu(tmp_path: Path) -> None:
    on_gpu = "if torch.cuda.is_available():\n    self.a = nn.Conv2d(3, 8, 3)\nelse:\n    self.b = nn.Conv2d(3, 9, 3)"
    found = one(read(tmp_path, module(on_gpu)))
    assert (found.layer.K, found.condition) == (8, "")


@pytest.mark.parametrize(("version", "condition"), [("0", ""), ("0.4", ""), ("1", "torch.__version__.startswith('1')")])
def test_nobody_runs_pytorch_0(tmp_path: Path, version: str, condition: str) -> None:
    asked = f"if torch.__version__.startswith('{version}'):\n    pass\nelse:\n    self.a = nn.Conv2d(3, 8, 3)"
    found = one(read(tmp_path, module(asked)))
    assert (found.layer.K, condition in found.condition, bool(found.condition)) == (8, True, bool(condition))


@pytest.mark.parametrize(
    "text",
    [
        "import functools\nmake = functools.partial(nn.Conv2d, kernel_size=3)\ndef use():\n    return make(3, 40)\n",
        "def use(kind=nn.Conv2d):\n    return kind(3, 40, 3)\n",
        module("for n in [40]:\n    setattr(self, f'c{n}', nn.Conv2d(3, n, 3))"),
        "from collections import OrderedDict\ndef use():\n"
        "    return nn.Sequential(OrderedDict([('a', nn.Conv2d(3, 40, 3))]))\n",
        # a class decorator that asks for a class
        "import inspect\ndef logged(cls):\n    if inspect.isclass(cls):\n        init = cls.__init__\n"
        "        def wrapper(self, *args, **kwargs):\n            init(self, *args, **kwargs)\n"
        "        cls.__init__ = wrapper\n    return cls\n@logged\n" + module("self.conv = nn.Conv2d(3, 40, 3)"),
        # a star import of anything, which leaves builtins as they are
        *(
            f"from {package} import *\n"
            + module("self.convs = nn.ModuleList([nn.Conv2d(3, int(40 * 1.0), 3) for _ in range(2)])")
            for package in ("fastai.basics", "unknown", "spconv.pytorch")
        ),
    ],
)
def test_constructions_in_other_words(tmp_path: Path, text: str) -> None:
    assert (one(read(tmp_path, text)).layer.C, one(read(tmp_path, text)).layer.K) == (3, 40)


def test_a_script_makes_its_network_where_it_stands(tmp_path: Path) -> None:
    found = one(read(tmp_path, "net = nn.Sequential(nn.Conv2d(3, 40, 3), nn.BatchNorm2d(40))\nnet.cuda()\n"))
    assert (found.layer.K, found.layer.norm_follows, found.layer.first) == (40, True, True)


def test_places_are_counted_and_those_without_channels_explained(tmp_path: Path) -> None:
    text = "def a():\n    return nn.Conv2d(3, 8, 3)\ndef b(n):\n    return nn.Conv2d(n, 8, 3)\n"
    found = read(tmp_path, text)
    assert (found.constructions, found.known) == (2, 1)
    assert [(each.at.line, each.why) for each in found.unread] == [(7, "parameter")]


UP = (
    "class Up(nn.Module):\n    def __init__(self, cin, up=True, deep=False):\n        super().__init__()\n"
    "        if up:\n            self.a = nn.Conv2d(64, 64, 3)\n"
    "        elif not up:\n            self.a = nn.Conv2d(cin, 64, 3)\n"
    "        if deep:\n            self.head = nn.Conv2d(cin, self.n, 1)\n"
)


@pytest.mark.parametrize(
    ("calls", "whys"),
    [
        ("", ["untaken", "untaken"]),
        ("net = Up(32)\n", ["untaken", "untaken"]),
        ("net = Up(32, deep=True)\n", ["untaken", "parameter"]),
        ("def make(config):\n    return Up(32, up=config.up, deep=len(config))\n", ["parameter"]),
        ("net = Up(32, False)\n", ["untaken"]),
    ],
)
def test_branches_that_no_call_takes_are_said_to_be_that(tmp_path: Path, calls: str, whys: list[str]) -> None:
    assert [each.why for each in read(tmp_path, UP + calls).unread] == whys


def test_nothing_is_said_of_tests(tmp_path: Path) -> None:
    found = read(tmp_path, "def a():\n    return nn.Conv2d(3, 9, 3)\n", name="tests/test_a.py")
    assert found == SourceReading()


@pytest.mark.parametrize("text", ["def a(:\n", "x = " + "(" * 500 + ")" * 500, "class A(A): pass\n", "\0"])
def test_what_cannot_be_read_is_no_error(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, text).layers == ()


SIZED = module(
    "for n in ([20] if size == 'tiny' else [30]):\n    self.a = nn.Conv2d(3, n, 3)", parameters=", size='base'"
)


@pytest.mark.parametrize("kind", ["keras.Sequential([keras.layers.Dense(8)])", "nn.Linear(8, 8)"])
def test_networks_without_convolutions_leave_the_others_their_turn(tmp_path: Path, kind: str) -> None:
    others = "".join(f"other_{number} = {kind}\n" for number in range(20))
    net = "net = keras.Sequential([keras.layers.Conv1D(32, 4, input_shape=[None, 5])])\n"
    assert one(read(tmp_path, f"import keras\n{others}{net}")).layer.C == 5


def test_arguments_of_slims_repeat_are_not_those_of_the_layer(tmp_path: Path) -> None:
    found = read(tmp_path, "import tf_slim as slim\n\ndef make(x):\n    return slim.repeat(x, 1, slim.conv2d, 26, 3)\n")
    assert one(found).layer.K == 26
    assert one(found).written == {}


@pytest.mark.parametrize(
    ("script", "widths"),
    [
        ("net = Net(size='tiny')\n", {20, 30}),
        ("if __name__ == '__main__':\n    net = Net(size='tiny')\n", {20, 30}),
        ("if '__main__' == __name__:\n    net = Net(size='tiny')\n    net.cuda()\n", {20, 30}),
        ("if __name__ == '__main__':\n    args = parse()\n    net = Net(args.size)\n", {30}),
        ("import net\n", {30}),
    ],
)
def test_a_script_makes_a_network_of_another_file(tmp_path: Path, script: str, widths: set[int]) -> None:
    (tmp_path / "net.py").write_text(HEAD + SIZED)
    (tmp_path / "run.py").write_text("import torch\nfrom net import Net\n" + script)
    paths = [str(tmp_path / "net.py"), str(tmp_path / "run.py")]
    found = read_layers(ProjectImports(Project(str(tmp_path), paths)), paths)
    assert {each.layer.K for each in found.layers if each.layer.K} == widths
    assert found.constructions == found.known == 1


def test_layers_are_the_same_however_the_files_are_divided(tmp_path: Path) -> None:
    texts = {
        "net.py": HEAD + module("self.a = nn.Conv2d(3, n, 3)\nself.b = nn.Conv2d(n, 8, 3)",
                                "return self.b(self.a(x))", parameters=", n=20"),
        "a.py": HEAD + "from net import Net\ndef make(x):\n    if x:\n        return Net(40)\n    return Net(20)\n",
        "b.py": HEAD + "from net import Net\ndef make(n=20):\n    net = Net(n)\n    net(torch.rand(1, 3, 32, 32))\n"
        "def more():\n    Net(40)(torch.rand(1, 3, 16, 16))\n",
    }  # fmt: skip
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    paths = [str(tmp_path / name) for name in texts]

    def read_in(*parts: list[str]) -> list[tuple[Any, ...]]:
        found = [
            each for part in parts for each in read_layers(ProjectImports(Project(str(tmp_path), paths)), part).layers
        ]
        return [(each.layer.name, each.layer.C, each.layer.K, each.layer.H, each.certainty, each.condition)
                for each in merged_again(found)]  # fmt: skip

    whole = read_in(paths)
    assert len({each[3] for each in whole}) > 1
    assert whole == read_in(*([path] for path in paths)) == read_in(paths[1:], paths[:1]) == read_in(paths[::-1])


@pytest.mark.parametrize(
    ("body", "runs"),
    [
        ("self.a = nn.Conv2d(64, 44, 3, 1, 1, 1, 1, False, 'zeros')", 1),
        ("self.a = nn.Sequential(nn.Conv2d(64, 44, 3, 1, 1, 1, 1, False, 'zeros'))", 1),
        ("self.a = nn.Conv2d(64, n, 3)", 2),
    ],
)
def test_a_root_that_states_everything_runs_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, runs: int
) -> None:
    ran = []
    run_root = Machine.run_root
    monkeypatch.setattr(Machine, "run_root", lambda *given: ran.append(given) or run_root(*given))
    read(tmp_path, module(body, parameters=", n=3"))
    assert len(ran) == runs


FUNCTIONAL = [
    ("self.w = nn.Parameter(torch.randn([32, 64, 4, 4]))", "F.conv_transpose2d(x, self.w)", (32, 64, 1, 4, False)),
    ("self.w = nn.Parameter(torch.randn(64, 32, 3))", "F.conv1d(x, self.w.to(x.dtype))", (32, 64, 1, 1, False)),
    ("self.w = nn.Parameter(torch.randn(8, 4, 3, 3))\nself.b = torch.zeros(8)", "F.conv2d(x, self.w, self.b)",
     (4, 8, 1, 3, None)),
    ("self.w = make(64, 32)", "F.conv2d(x, self.w)", (None, None, 1, None, False)),
    ("self.w = nn.Parameter(torch.randn(64, 32, 3, 3))", "F.conv2d(x, self.w, groups=n(x))", (None, None, 1, 3, False)),
]  # fmt: skip


@pytest.mark.parametrize(("init", "run", "expected"), FUNCTIONAL)
def test_a_functional_convolution_is_as_wide_as_its_weight(
    init: str, run: str, expected: tuple[object, ...], tmp_path: Path
) -> None:
    found = read(tmp_path, module(init, f"return {run}"))
    layer = one(found).layer
    assert (layer.C, layer.K, layer.groups, layer.R, layer.bias) == expected
    assert (found.constructions, found.known) == (1, int(expected[0] is not None))
    assert len(found.unread) == (0 if expected[0] else 1)


@pytest.mark.parametrize(
    ("change", "known"),
    [
        ("self.w.transpose_(0, 1)", False),
        ("self.w.resize_(64, 64, 3, 3)", False),
        ("self.w.data.transpose_(0, 1)", False),
        ("self.w.data = torch.empty(64, 64, 3, 3)", False),
        ("with torch.no_grad():\n    self.w.set_(other)", False),
        ("setattr(self.w, 'data', other)", False),
        ("if other:\n    self.w.t_()", False),
        ("nn.init.normal_(self.w)", True),
        ("self.w.data.normal_(0, 0.1).mul_(2)", True),
        ("self.w.data *= 0.5", True),
        ("self.w.data = torch.empty(62, 64, 3, 3)", True),
    ],
)
def test_a_weight_that_may_have_another_shape_by_now_says_nothing(tmp_path: Path, change: str, known: bool) -> None:
    init = f"self.w = nn.Parameter(torch.empty(62, 64, 3, 3))\n{change}"
    layer = one(read(tmp_path, module(init, "return F.conv2d(x, self.w)", ", other"))).layer
    expected = (64, 62) if known else (None, None)
    assert expected == (layer.C, layer.K)


@pytest.mark.parametrize(
    ("change", "known"),
    [
        ("self.conv.weight.data = self.conv.weight.data.transpose(0, 1)", False),
        ("self.conv.weight.data.transpose_(0, 1)", False),
        ("self.conv.weight.data.zero_()", True),
    ],
)
def test_a_layer_s_own_weight_may_have_another_shape_by_now(tmp_path: Path, change: str, known: bool) -> None:
    text = module(f"self.conv = nn.Conv2d(64, 62, 3)\n{change}", "return F.conv2d(x, self.conv.weight)")
    assert [each.layer.K for each in read(tmp_path, text).layers] == ([62, 62] if known else [62, None])


def test_a_weight_without_a_shape_is_the_reason(tmp_path: Path) -> None:
    found = read(tmp_path, "def blur(x, kernel):\n    return F.conv2d(x, kernel)\n")
    assert [(each.why, each.at.line) for each in found.unread] == [("weight", 5)]


def test_what_is_computed_from_a_weight_without_a_shape_is_unknown(tmp_path: Path) -> None:
    text = (
        "from math import sqrt\ndef scaled(x, kernel):\n    x = F.conv2d(x, kernel)\n    n = x.shape[1]\n"
        "    return nn.Conv2d(8, 62, 3)(x * sqrt(n) / -n) + f'{n}{not n}' + x[:n] + [n] * n\n"
    )
    found = read(tmp_path, text)
    assert [(each.layer.C, each.layer.K) for each in found.layers] == [(None, None), (8, 62)]
    assert [each.why for each in found.unread] == ["weight"]


def test_a_home_made_function_is_followed_to_the_framework_s(tmp_path: Path) -> None:
    text = "def conv(x, w, up=1):\n    if up > 1:\n        w = w.flip([2, 3])\n    return F.conv2d(input=x, weight=w)\n"
    init = "self.w = nn.Parameter(torch.randn(64, 32, 3, 3))"
    found = read(tmp_path, text + module(init, "return conv(x=x, w=self.w)"))
    assert [(each.layer.C, each.layer.K) for each in found.layers] == [(32, 64)]
    assert (found.constructions, found.known) == (1, 1)


def test_what_a_kind_of_convolution_computes_is_no_second_one(tmp_path: Path) -> None:
    text = (
        "class Own(nn.Conv2d):\n    def forward(self, x):\n        return F.conv2d(x, self.weight * 2, self.bias)\n"
        "net = Own(3, 8, 3)\n"
    )
    found = read(tmp_path, text)
    assert (found.constructions, found.known) == (1, 1)


@pytest.mark.parametrize(
    "text",
    [
        "import tensorflow as tf\ndef f(x, w):\n    return tf.nn.conv2d(x, w, 1, 'SAME')\n",
        "import jax\ndef f(x, w):\n    return jax.lax.conv(x, w, (1, 1), 'SAME')\n",
        "from jax import lax\ndef f(x, w):\n    return lax.conv_general_dilated(x, w, (1, 1), 'SAME')\n",
        "import paddle.nn.functional as P\ndef f(x, w):\n    return P.conv2d(x, w)\n",
    ],
)
def test_functional_convolutions_of_other_frameworks_are_counted(text: str, tmp_path: Path) -> None:
    found = read(tmp_path, text)
    assert (found.constructions, found.known, [each.why for each in found.unread]) == (1, 0, ["weight"])


ANNOTATED = sorted((Path(__file__).parents[1] / "read").glob("*.py"))
NAMED = {"norm": "norm_follows", "points": "pointwise_map", "made": "made_by"}


def expected(path: Path) -> dict[int, set[str]]:
    """By line of a construction, what the `# ?` above it says: `C=3 K=62 if slim`, several divided by semicolons."""
    said = {
        number: re.fullmatch(r"\s*# ?\? (.*)", line) for number, line in enumerate(path.read_text().splitlines(), 1)
    }
    return {number + 1: {each.strip() for each in found[1].split(";")} for number, found in said.items() if found}


def told(layer: SourceLayer, like: str) -> str:
    """A layer in the words of such a line: the fields that it asks for, and the condition."""
    words = []
    for name in re.findall(r"(\w+)=", like.partition(" if ")[0]):
        field = NAMED.get(name, name)
        value = getattr(layer if hasattr(layer, field) else layer.layer, field)
        words.append(f"{name}={'?' if value is None else value}")
    return " ".join(words) + (f" if {layer.condition}" if layer.condition else "")


@pytest.mark.parametrize("path", ANNOTATED, ids=lambda path: path.stem)
def test_annotated_source(path: Path) -> None:
    said = expected(path)
    found: dict[int, set[str]] = {}
    here = "/annotated/net.py"  # the text of a test says nothing by itself
    read = read_layers(ProjectImports(Project("/annotated", [here], {here: path.read_bytes()})), [here])
    for each in read.layers:
        line = each.layer.locate().line or 0
        found.setdefault(line, set()).add(told(each, min(said.get(line, {"C= K="}))))
    assert found == said


DEFAULT = """
class Net(nn.Module):
    def __init__(self, width=12, depth=1):
        super().__init__()
        self.conv = nn.Conv2d(64, width, 3)
        if depth > 1:
            self.more = Net(depth=depth - 1)

"""


@pytest.mark.parametrize(
    ("callers", "holds"),
    [
        ("", True),
        ("def make(n):\n    return Net(TABLE[n])", False),
        ("def make(n, **kwargs):\n    return Net(width=n, **kwargs)", False),
        ("def make(n, **kwargs):\n    return Net(**kwargs)", True),
        ("def make(n):\n    return Net(depth=n)", True),
        ("def make(n):\n    return Net(n)\ndef other():\n    return Net()", True),
        ("class Sub(Net):\n    def __init__(self, n):\n        super().__init__(n)", False),
    ],
)
def test_a_default_that_every_caller_overrides_is_told_from_others(tmp_path: Path, callers: str, holds: bool) -> None:
    found = read(tmp_path, DEFAULT + callers)
    (at,) = {
        each.at for layer in found.layers for each in layer.stated.get("K", ()) if each.name == "width"
    }  # fmt: skip
    assert (at not in found.overridden - found.kept) is holds


@pytest.mark.parametrize(
    ("callers", "holds"),
    [
        ("", True),
        ("net = Net(width=64).make()", False),
        ("net = Net(3, 64).make()", False),
        ("net = Net(3).make()", True),
        ("net = Net(width=64).make(), Net().make()", True),
        ("class Sub(Net):\n    more: int = 3\nnet = Sub(width=64, more=4)", True),
    ],
)
def test_a_default_of_a_record_that_every_caller_overrides(tmp_path: Path, callers: str, holds: bool) -> None:
    record = "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass Net:\n    depth: int = 2\n"
    found = read(
        tmp_path,
        f"{record}    width: int = 60\n    def make(self):\n        return nn.Conv2d(64, self.width, 3)\n{callers}\n",
    )
    (made,) = [each for each in found.layers if each.layer.K == 60]
    assert made.rests_on(found.overridden - found.kept, "K") is not holds


@pytest.mark.parametrize("asked", ["kw.get('width', 60)", "kw.pop('width', 60)"])
@pytest.mark.parametrize(
    ("caller", "holds"),
    [("", True), ("net = make(width=64)", False), ("net = make(depth=64)", True), ("net = make(**TABLE[N])", True)],
)
def test_what_callers_give_by_name_overrides_what_is_asked_of_it(
    tmp_path: Path, asked: str, caller: str, holds: bool
) -> None:
    found = read(tmp_path, f"def make(**kw):\n    return nn.Conv2d(64, {asked}, 3)\n{caller}\n")
    (made,) = [each for each in found.layers if each.certainty == "with defaults"]
    assert (made.layer.K, made.rests_on(found.overridden - found.kept, "K")) == (60, not holds)


@pytest.mark.parametrize(
    "imports",
    [
        "from torch.nn import *",
        "from torch import *\nfrom torch.nn import *\nfrom torch.optim import *",
        "from unknown import *\nfrom torch.nn import *\nfrom numpy import *\nfrom math import *",
        "from own import *\nfrom torch.nn import *",
        "from torch.nn.modules import *",
        "import torch\nfrom layers import *",
    ],
)
def test_names_come_from_star_imports_of_frameworks(tmp_path: Path, imports: str) -> None:
    (tmp_path / "layers.py").write_text("from torch.nn import *\nSequential = None\n")
    (tmp_path / "own.py").write_text("class Conv2d:\n    pass\n")
    (tmp_path / "net.py").write_text(f"{imports}\ndef net():\n    return [Conv2d(64, 60, 3), Conv3d(60, 8, 3)]\n")
    path = str(tmp_path / "net.py")
    read = read_layers(ProjectImports(Project(str(tmp_path), [path])), [path])
    assert [(each.layer.C, each.layer.K) for each in read.layers] == [(64, 60), (60, 8)]
    assert (read.constructions, read.known) == (2, 2)


def test_a_name_of_its_own_is_not_that_of_a_star_import(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(
        "from torch.nn import *\nfrom numpy import *\nclass Conv2d:\n    def __init__(self, *sizes):\n        pass\n"
        "def net():\n    return Conv2d(64, 60, 3), Conv9d(64, 60, 3)\n"
    )
    path = str(tmp_path / "net.py")
    assert not read_layers(ProjectImports(Project(str(tmp_path), [path])), [path]).constructions


@pytest.mark.parametrize("behind", ["own", "unknown", "spconv.pytorch"])
def test_a_later_star_import_may_bind_the_name_to_something_else(tmp_path: Path, behind: str) -> None:
    (tmp_path / "own.py").write_text("class Conv2d:\n    def __init__(self, *sizes):\n        pass\n")
    text = f"from torch.nn import *\nfrom {behind} import *\ndef net():\n    return Conv2d(64, 60, 3)\n"
    assert not read(tmp_path, text).layers


@pytest.mark.parametrize(
    "choice",
    [
        "conv = {2: nn.Conv2d, 3: nn.Conv3d}[which]",
        "conv = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[which - 1]",
        "conv = nn.ConvTranspose2d if which else nn.Conv2d",
        "conv = nn.Conv2d\n        if which:\n            conv = nn.Conv3d",
        "conv = getattr(nn, f'Conv{which}d')",
        "conv = getattr(nn, f'Conv{kind}{which}d')",
        "conv = Same if which else nn.Conv2d",
        "conv = functools.partial(nn.Conv2d, padding=1) if which else nn.Conv2d",
        "conv = {'same': Same, 'plain': nn.Conv2d}.get(which)",
        "conv = self.kind(which)",
        "conv = functools.partial(self.kind(which), kernel_size=3)",
    ],
)
def test_one_of_several_kinds_is_a_convolution_of_each(tmp_path: Path, choice: str) -> None:
    text = (
        "import functools\nfrom torch import nn\nclass Same(nn.Conv2d):\n    pass\nclass Net(nn.Module):\n"
        f"    def __init__(self, which, width):\n        super().__init__()\n        {choice}\n"
        "        self.a = conv(64, 60, kernel_size=3)\n        self.b = conv(width, 60, kernel_size=3)\n"
        "    def kind(self, which):\n        if which == 1:\n            return nn.Conv1d\n"
        "        elif which == 2:\n            return nn.Conv2d\n        return nn.Conv3d\n"
    )
    found = read(tmp_path, text)
    assert {(each.layer.C, each.layer.K, each.condition) for each in found.layers} == {(64, 60, ""), (None, 60, "")}
    assert (found.constructions, found.known) == (2, 1)


def test_the_default_decides_which_kind_it_is(tmp_path: Path) -> None:
    text = (
        "from torch import nn\nclass Net(nn.Module):\n"
        "    def __init__(self, dims=2):\n        super().__init__()\n"
        "        conv = nn.Conv2d if dims == 2 else nn.Conv3d\n"
        "        self.conv, self.bn = conv(64, 60, 3), nn.BatchNorm2d(60)\n"
        "    def forward(self, x):\n        return self.bn(self.conv(x))\n"
    )
    layers = read(tmp_path, text).layers
    assert {(each.layer.dims, each.layer.norm_follows) for each in layers} == {(2, True), (3, True)}


def test_other_classes_of_which_one_is_meant_are_unknown(tmp_path: Path) -> None:
    text = (
        "from torch import nn\nclass Net(nn.Module):\n    def __init__(self, which):\n        super().__init__()\n"
        "        layer = nn.Conv2d if which else nn.Linear\n        self.a = layer(64, 60, 3)\n"
    )
    assert not read(tmp_path, text).layers


def test_a_script_leaves_the_framework_to_what_it_imports(tmp_path: Path) -> None:
    (tmp_path / "blocks.py").write_text(HEAD + "class Block(nn.Module):\n    def __init__(self, width):\n"
                                        "        self.conv = nn.Conv2d(width, 8, 3)\n")  # fmt: skip
    path = tmp_path / "make.py"
    path.write_text("from blocks import Block\ndef make():\n    return Block(60)\n")
    read = read_layers(ProjectImports(Project(str(tmp_path), [str(path), str(tmp_path / "blocks.py")])), [str(path)])
    assert [each.layer.C for each in read.layers] == [60]


BY_DEFAULT = """
def up(c, norm={default}):
    layers = [nn.Conv2d(c, c, 3)]
    if {test}:
        layers.append(nn.BatchNorm2d(c))
    return nn.Sequential(*layers)
"""


@pytest.mark.parametrize(
    ("default", "test", "caller", "is_said"),
    [
        ("True", "norm", "", True),
        ("True", "norm", "up(64, args.norm)", False),
        ("'batch'", "norm == 'batch'", "up(64, args.norm)", False),
        ("True", "norm", "up(64)", True),
        ("True", "norm", "up(64, True)", True),  # which says that it follows
        ("True", "True", "up(64, args.norm)", True),
        ("False", "not norm", "up(64, args.norm)", False),
    ],
)
def test_a_norm_by_a_default_that_callers_override_is_no_norm(
    tmp_path: Path, default: str, test: str, caller: str, is_said: bool
) -> None:
    """Whether the norm is there, only the callers show."""
    body = BY_DEFAULT.format(default=default, test=test) + (f"def make(args):\n    return {caller}\n" if caller else "")
    (tmp_path / "net.py").write_text("from torch import nn\n" + body)
    found = {finding.rule.code for finding in lint(tmp_path, isolated=True).findings}
    assert ("CL506" in found) is is_said


IN_A_LIST = """
from torch import nn
class VGG(nn.Module):
    def __init__(self, widths, norm={default}):
        super().__init__()
        layers = []
        for width in widths:
            if width == "M":
                layers += [nn.MaxPool2d(2)]
            else:
                conv = nn.Conv2d(64, width, 3)
                if norm:
                    layers += [conv, nn.BatchNorm2d(width), nn.ReLU()]
                else:
                    layers += [conv, nn.ReLU()]
        self.body = nn.Sequential(*layers)
    def forward(self, x):
        return self.body(x)
def plain(**options):
    return VGG([64], **options)
def normed(**options):
    return VGG([64], norm=True, **options)
"""


@pytest.mark.parametrize(("default", "is_said"), [("True", True), ("False", False)])
def test_the_default_decides_what_stands_behind_a_layer_in_a_list(tmp_path: Path, default: str, is_said: bool) -> None:
    (tmp_path / "net.py").write_text(IN_A_LIST.format(default=default))
    assert ("CL506" in {finding.rule.code for finding in lint(tmp_path, isolated=True).findings}) is is_said


def test_a_network_without_a_forward_pass_runs_by_its_other_methods(tmp_path: Path) -> None:
    init = "self.body = nn.Sequential(nn.Conv2d(6, 32, 8, stride=4), nn.ReLU())\nself.head = nn.Conv2d(32, 19, 1)"
    methods = "    def value(self, x):\n        return self.body(x / 255)\n"
    methods += "    def act(self, x):\n        return self.head(self.body(x))\n"
    found = read(tmp_path, module(init) + methods)
    assert [(each.layer.first, each.calls) for each in found.layers] == [(True, 1), (False, 1)]


def test_what_runs_it_on_unknown_data_does_not_know_its_input_better(tmp_path: Path) -> None:
    init = "self.body = nn.Sequential(nn.Conv2d(6, 32, 8, stride=4), nn.ReLU())"
    methods = "    def value(self, x):\n        return self.body(x / 255)\n"
    script = (
        "if __name__ == '__main__':\n    agent, data = Net(), torch.Tensor(env.reset())\n    agent.value(data).mean()\n"
    )
    assert one(read(tmp_path, module(init) + methods + script)).layer.first


def test_a_script_that_trains_on_unknown_data_does_not_know_a_networks_input_better(tmp_path: Path) -> None:
    net, script = tmp_path / "net.py", tmp_path / "train.py"
    layers = "self.body, self.tail = nn.Conv2d(5, 32, 3), nn.Conv2d(32, 3, 3)"
    net.write_text(HEAD + module(layers, "return self.tail(self.body(torch.cat([x[:, :3], x[:, 3:]], 1)))"))
    script.write_text(
        "from net import Net\nfrom data import load\n\n\ndef main():\n    net, other = Net(), Net()\n"
        "    for frames, masks in load():\n        net(frames)\n        other(masks)\n"
    )
    files = [str(net), str(script)]
    result = read_layers(ProjectImports(Project(str(tmp_path), files)), files)
    assert [layer.reads_input for layer in result.layers if layer.layer.C == 5] == [True]


BY_PARTS = """
class Parts(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(64, 64, 3), nn.BatchNorm2d(64)
    def body(self, x):
        return self.conv(x)
    def post(self, x):
        return F.relu(self.bn(x))

class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = Parts()
    def forward(self, x):
        return self.parts.post(self.parts.body(x))
"""


def test_what_calls_the_methods_knows_more_than_they_do(tmp_path: Path) -> None:
    layer = one(read(tmp_path, BY_PARTS)).layer
    assert (layer.norm_follows, layer.head) == (True, False)


TWO_WAYS = """
class Single(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.conv = nn.Conv2d(c, 25, 3)

def create(args):
    if args.name == "one":
        return Single(args.c)
    elif args.name == "two":
        return Single(33)
"""


def test_a_number_that_more_ways_have_has_no_condition_of_one(tmp_path: Path) -> None:
    """That the other's input is unknown makes its output no less."""
    (tmp_path / "net.py").write_text("from torch import nn\n" + TWO_WAYS)
    (finding,) = lint(tmp_path, isolated=True).findings
    assert "K=25 of Single.conv" in finding.message
    assert "only if" not in finding.message


CHOSEN = """
class Update(nn.Module):
    def __init__(self, hidden=128):
        super().__init__()
        self.conv = nn.Conv2d(hidden, 256, 3)

class Net(nn.Module):
    def __init__(self, args):
        super().__init__()
        if args.small:
            width = 96
        else:
            width = 128
        self.update = Update(hidden=width)
"""


def test_what_a_caller_decides_by_a_test_is_no_parameter_that_nobody_gives(tmp_path: Path) -> None:
    (place,) = read(tmp_path, CHOSEN).unread or read(tmp_path, CHOSEN).by_defaults
    assert place.otherwise == "branch"


@pytest.mark.parametrize(
    ("forward", "follows"),
    [
        ("y = self.conv(x)\nself.aux = y\nreturn self.bn(y)", False),
        ("y = self.conv(x)\nself.aux = self.bn(y)\nreturn self.aux", True),
        ("self.x = self.conv(x)\nself.x = self.bn(self.x)\nreturn self.x", True),  # which nobody can read any longer
        ("y = self.conv(x)\nself.seen.append(y)\nreturn self.bn(y)", False),
        ("y = self.conv(x)\nself.by_name['y'] = y\nreturn self.bn(y)", False),
        ("y = self.conv(x)\nself.pair = y, x\nreturn self.bn(y)", False),
        ("y = self.conv(x)\nSEEN.append(y)\nreturn self.bn(y)", False),
        ("y = self.conv(x)\nself.seen.append(self.bn(y))\nreturn self.seen", True),
        ("y = self.conv(x)\nheld = [y]\nreturn self.bn(held.pop())", True),
    ],
)
def test_what_an_attribute_keeps_is_read_by_others_too(tmp_path: Path, forward: str, follows: bool) -> None:
    held = "self.conv = nn.Conv2d(8, 19, 3)\nself.bn = nn.BatchNorm2d(19)\nself.seen = []\nself.by_name = {}"
    layer = one(read(tmp_path, "SEEN = []\n" + module(held, forward))).layer
    assert layer.norm_follows is follows


@pytest.mark.parametrize(
    "returned",
    [
        "{'raw': y, 'norm': z}", "dict(raw=y, norm=z)", "[{'raw': y}, z]", "Output(y, z)", "Pair(y, z)",
        "partial(F.relu, y), z", "{name: each for name, each in zip('yz', (y, z))}",
    ],
)  # fmt: skip
def test_what_a_result_holds_is_read_by_callers(tmp_path: Path, returned: str) -> None:
    forward = f"y = self.conv(x)\nz = self.bn(y)\nreturn {returned}"
    before = (
        "from collections import namedtuple\nfrom dataclasses import dataclass\nfrom functools import partial\n"
        "import torch.nn.functional as F\nPair = namedtuple('Pair', 'raw norm')\n"
        "@dataclass\nclass Output:\n    raw: object\n    norm: object\n"
    )
    layers = module("self.conv = nn.Conv2d(8, 19, 3)\nself.bn = nn.BatchNorm2d(19)", forward)
    assert one(read(tmp_path, before + layers)).layer.norm_follows is False


@pytest.mark.parametrize(
    "forward", ["return {'out': self.last(self.conv(x))}", "self.out = self.last(self.conv(x))\nreturn self.out"]
)
def test_a_head_whose_output_a_dict_or_an_attribute_holds_is_one(tmp_path: Path, forward: str) -> None:
    found = read(tmp_path, module("self.conv = nn.Conv2d(8, 16, 3)\nself.last = nn.Conv2d(16, 19, 1)", forward))
    assert [each.layer.head for each in found.layers] == [False, True]


def test_a_hook_reads_the_output_of_its_convolution(tmp_path: Path) -> None:
    held = "self.conv = nn.Conv2d(8, 19, 3)\nself.bn = nn.BatchNorm2d(19)\nself.{}.register_forward_hook(print)"
    forward = "return self.bn(self.conv(x))"
    for layer, follows in (("conv", None), ("bn", True)):
        found = read(tmp_path, module(held.format(layer), forward))
        assert one(found).layer.norm_follows is follows


def test_a_norm_that_a_helper_makes_rests_on_the_default_too(tmp_path: Path) -> None:
    """The call of the helper is remembered from a root in which nobody knows whether it runs."""
    helper = "def norm_of(c):\n    bn = nn.BatchNorm2d(c)\n    nn.init.ones_(bn.weight)\n"
    helper += "    nn.init.zeros_(bn.bias)\n    return bn\n"
    text = helper + BY_DEFAULT.format(default="True", test="norm").replace("nn.BatchNorm2d(c)", "norm_of(c)")
    (tmp_path / "net.py").write_text(f"from torch import nn\n{text}def make(args):\n    return up(64, args.norm)\n")
    assert "CL506" not in {finding.rule.code for finding in lint(tmp_path, isolated=True).findings}


@pytest.mark.parametrize(("size", "H"), [("size=64", None), ("size", None), ("", 32)])
def test_the_map_of_a_default_is_that_of_nobody(tmp_path: Path, size: str, H: int | None) -> None:
    init = f"self.side = {'size' if size else '64'} // 4\nself.conv = nn.Conv2d(60, 60, 3)"
    forward = (
        "x = x.reshape(8, 60, self.side, self.side)\nreturn self.conv(nn.functional.interpolate(x, scale_factor=2))"
    )
    found = read(tmp_path, module(init, forward, f", {size}" if size else ""))
    assert one(found).layer.H == H


@pytest.mark.parametrize(("config", "bias"), [('dict(type="Conv2d", bias=False)', False), ("None", True)])
@pytest.mark.parametrize("width", ["64", "channels"])
def test_configs_of_builders_have_the_bias(tmp_path: Path, config: str, bias: bool, width: str) -> None:
    code = "from torch import nn\nfrom mmcv.cnn import build_conv_layer\nclass Net(nn.Module):\n"
    code += f"    def __init__(self, channels, config={config}):\n        super().__init__()\n"
    code += f"        self.line = nn.Sequential(build_conv_layer(config, {width}, 60, 3), nn.BatchNorm2d(60))\n"
    code += "        self.head = nn.Conv2d(60, 7, 1)\n"
    assert {each.layer.bias for each in read(tmp_path, code).layers if each.layer.K == 60} == {None, bias}


LINEN = """import flax.linen as nn
from functools import partial
from typing import Any
class Block(nn.Module):
    filters: int
    conv: Any
    strides: tuple = (2, 2)
    @nn.compact
    def __call__(self, x):
        x = self.conv(self.filters, (3, 3), self.strides)(x)
        return self.conv(self.filters * 2, (1, 1))(nn.relu(x))
class Net(nn.Module):
    width: int = 62
    def setup(self):
        self.stem = nn.Conv(self.width, (7, 7))
        self.block = Block(self.width, partial(nn.Conv, use_bias=True), name="b")
    def __call__(self, x):
        return self.block(self.stem(x))
"""


def test_modules_of_flax_are_records_whose_fields_their_layers_read(tmp_path: Path) -> None:
    found = {(each.layer.C, each.layer.K, each.layer.R, each.layer.U) for each in read(tmp_path, LINEN).layers}
    assert {(None, 62, 7, 1), (62, 62, 3, 2)} <= found
    assert {K for _, K, _, _ in found} == {62, 124}


RESIDUAL = """import flax.linen as nn, jax, jax.numpy as jnp
class Block(nn.Module):
    filters: int
    strides: tuple = (1, 1)
    @nn.compact
    def __call__(self, x, train: bool = True):
        y = nn.Conv(self.filters, (3, 3), self.strides)(x)
        y = nn.BatchNorm(use_running_average={frozen})(y)
        y = nn.Conv(self.filters * 2, (3, 3))(nn.relu(y))
        y = nn.GroupNorm()(y)
        return jax.nn.relu(nn.Conv(self.filters * 2, (1, 1), self.strides)(x) + y)
class Net(nn.Module):
    @nn.compact
    def __call__(self, x, train: bool = True):
        x = nn.Conv(62, (7, 7), (2, 2))(x)
        x = nn.max_pool(nn.gelu(x), (3, 3), strides=(2, 2), padding="SAME")
        x = Block(62)(x, train)
        x = jnp.concatenate([x, x], axis=-1)
        x = jax.image.resize(x, (8, 32, 32, x.shape[-1]), "nearest")
        x = nn.Sequential([nn.Conv(60, (5, 5)), nn.relu, nn.Conv(70, (1, 1))])(x)
        return nn.Dense(10)(jnp.mean(x, axis=(1, 2)))
"""


@pytest.mark.parametrize(("frozen", "norm"), [("not train", True), ("True", False)])
def test_channels_go_through_functions_of_jax_and_flax(tmp_path: Path, frozen: str, norm: bool) -> None:
    found = {
        (each.layer.C, each.layer.K, each.layer.R): each.layer
        for each in read(tmp_path, RESIDUAL.format(frozen=frozen)).layers
        if each.layer.K
    }
    assert found.keys() == {(None, 62, 7), (62, 62, 3), (62, 124, 3), (62, 124, 1), (248, 60, 5), (60, 70, 1)}
    assert [bool(found[key].norm_follows) for key in ((62, 62, 3), (62, 124, 3), (62, 124, 1))] == [norm, False, False]
    assert found[248, 60, 5].H == 32


@pytest.mark.parametrize(
    ("norm", "follows"),
    [
        ("nn.BatchNorm()(x, use_running_average=not train)", True),
        ("nn.BatchNorm()(x, use_running_average=True)", False),
        ("nn.BatchNorm(use_running_average=not train, axis=-1)(x)", True),
        ("nn.BatchNorm(use_running_average=not train, axis=1)(x)", False),  # over the rows of (N, H, W, C)
        ("hk.BatchNorm(True, True, 0.9)(x, train)", True),
        ("hk.BatchNorm(True, True, 0.9)(x, is_training=True)", True),
        ("hk.BatchNorm(True, True, 0.9)(x, is_training=False)", False),
        ("hk.BatchNorm(True, True, 0.9)(x, False)", False),
    ],
)
def test_a_norm_of_jax_with_running_averages_or_another_axis_cancels_no_bias(
    tmp_path: Path, norm: str, follows: bool
) -> None:
    code = "import flax.linen as nn\nimport haiku as hk\ndef net(x, train):\n"
    code += f"    x = nn.Conv(8, (3, 3))(x)\n    return {norm}\n"
    assert one(read(tmp_path, code)).layer.norm_follows is follows


@pytest.mark.parametrize(
    ("imports", "conv"),
    [("import paddle.nn as nn", "8, 8"), ("from mxnet.gluon import nn", "8")],
    ids=["paddle", "mxnet"],
)
@pytest.mark.parametrize(
    ("frozen", "follows"),
    [("", True), ("use_global_stats=False", True), ("use_global_stats=None", True), ("use_global_stats=True", False),
     ("use_global_stats=frozen", False)],
)  # fmt: skip
def test_a_norm_with_global_statistics_cancels_no_bias(
    tmp_path: Path, imports: str, conv: str, frozen: str, follows: bool
) -> None:
    code = f"{imports}\ndef net(x, frozen):\n    return nn.BatchNorm({frozen})(nn.Conv2D({conv}, 3)(x))\n"
    assert one(read(tmp_path, code)).layer.norm_follows is follows


def test_other_axes_of_jax_are_no_channels(tmp_path: Path) -> None:
    code = RESIDUAL.format(frozen="True").replace("axis=-1", "axis=1")
    assert {each.layer.C for each in read(tmp_path, code).layers if each.layer.K == 60} == {None}


@pytest.mark.parametrize(("order", "C"), [("", 32), (', data_format="NCHW"', None)])
def test_the_last_axis_has_the_channels_unless_a_layer_of_haiku_says_otherwise(
    tmp_path: Path, order: str, C: int | None
) -> None:
    code = "import haiku as hk, jax.numpy as jnp\ndef net(x):\n"
    code += f"    x = hk.Conv2D(16, 3{order})(x)\n    x = jnp.concatenate([x, x], axis=-1)\n"
    code += "    return hk.Conv2D(60, 3)(x)\n"
    assert {each.layer.C for each in read(tmp_path, code).layers if each.layer.K == 60} == {C}


def test_pools_of_keras_move_by_their_window(tmp_path: Path) -> None:
    code = (
        "import keras\nfrom keras import layers\ndef net():\n    x = layers.Conv2D(16, 3)(keras.Input((66, 66, 3)))\n"
    )
    code += "    return layers.Conv2D(60, 3)(keras.ops.max_pool(x, 2))\n"
    assert {each.layer.H for each in read(tmp_path, code).layers if each.layer.K == 60} <= {None, 32}


def test_modules_of_equinox_may_have_an_init_of_their_own(tmp_path: Path) -> None:
    fields = "import equinox as eqx\nclass Net(eqx.Module):\n    width: int\n    conv: eqx.nn.Conv2d = None\n"
    own = f"{fields}    def __init__(self, key):\n        self.conv = eqx.nn.Conv2d(64, 62, 3, key=key)\n"
    assert one(read(tmp_path, own)).layer.K == 62
    call = "    def __call__(self, x):\n        return eqx.nn.Conv2d(64, self.width, 3)(x)\n"
    made = read(tmp_path, f"{fields}{call}def make():\n    return Net(60)\n")
    assert {each.layer.K for each in made.layers if each.layer.K} == {60}


@pytest.mark.parametrize("line", ["", "x = torch.as_tensor(x, dtype=torch.float32)", "x = x.float().div(255)"])
def test_a_layer_that_reads_the_input_is_told_from_others(tmp_path: Path, line: str) -> None:
    text = module("self.a = nn.Conv2d(10, 32, 8)\nself.b = nn.Conv2d(32, 64, 3)", f"{line}\nreturn self.b(self.a(x))")
    found = read(tmp_path, text).layers
    assert [layer.reads_input for layer in found] == [True, False]
    assert [layer.gives_output for layer in found] == [False, True]
    assert [layer.reads_input for layer in merged_again(found)] == [True, False]
    apart = module("self.a = nn.Conv2d(10, 32, 8)", "return self.a(torch.load(x))")
    assert one(read(tmp_path, apart)).reads_input is None


def test_a_width_that_a_module_chooses_to_try_itself_is_nobody_s(tmp_path: Path) -> None:
    net = module("self.a = nn.Conv2d(3, n, 3)\nself.b = nn.Conv2d(n, 2 * n, 3)", "return self.b(self.a(x))", ", n")
    trial = "if __name__ == '__main__':\n    print(Net(10)(torch.rand(1, 3, 8, 8)))\n"
    path = tmp_path / "net.py"
    path.write_text(HEAD + net + trial)
    assert lint(str(path), select=["CL102"], gpu="a100", isolated=True).findings == ()
    path.write_text(HEAD + net + trial + "def make():\n    return Net(12)\n")
    (finding,) = lint(str(path), select=["CL102"], gpu="a100", isolated=True).findings
    assert finding.message.startswith("K=12 of Net.a, C=12")


@pytest.mark.parametrize(
    ("product", "sizes"),
    [("g * x", (8, 8)), ("x * g", (8, 8)), ("g * unknown(x)", (None, None)), ("g + unknown(x)", (None, None)),
     ("g * 0.5", (1, 1)), ("x * unknown(x)", (8, 8))],
)  # fmt: skip
def test_a_gate_is_as_large_as_what_it_weighs(tmp_path: Path, product: str, sizes: tuple[int | None, ...]) -> None:
    net = module("self.a = nn.Conv2d(16, 24, 1)", f"g = F.adaptive_avg_pool2d(x, 1)\nreturn self.a({product})")
    layer = one(read(tmp_path, net, input_shape=(1, 16, 8, 8))).layer
    assert sizes == (layer.H, layer.W)


BRANCH = module(
    "if deep:\n    self.a = nn.Conv2d(64, 60, 3)\n    self.b = nn.Conv2d(60, 64, 3)", parameters=", deep=False"
)
TRAINS = "if __name__ == '__main__':\n    {}.load_state_dict(torch.load('a'))\n"


@pytest.mark.parametrize(
    ("calls", "judged"),
    [
        ("", True),
        ("def make():\n    return Net()\n", False),
        ("def make():\n    return Net(deep=False)\n", False),
        ("def make(deep):\n    return Net(deep)\n", True),
        ("def make(deep=False):\n    return Net(deep)\n", True),
        ("def make(config):\n    return Net(config.deep)\n", True),
        ("def make():\n    return Net(), Net(True)\n", True),
        (TRAINS.format("Net()"), False),
        ("if __name__ == '__main__':\n    print(Net())\n", True),
    ],
)
def test_a_branch_that_every_caller_refuses_has_no_findings(tmp_path: Path, calls: str, judged: bool) -> None:
    path = tmp_path / "net.py"
    path.write_text(HEAD + BRANCH + calls)
    found = lint(str(path), select=["CL102"], gpu="a100", isolated=True).findings
    assert bool(found) is judged


@pytest.mark.parametrize(
    "decorator",
    [
        # sets a constructor that warns first, as Lightning's `under_review` does
        "def decorated(x):\n    if inspect.isclass(x):\n        x.__init__ = decorated(x.__init__)\n        return x\n"
        "    @functools.wraps(x)\n    def inner(*args, **kwargs):\n        warn('new')\n"
        "        return x(*args, **kwargs)\n    return inner\n",
        "def decorated(cls):\n    known = {}\n    def get(*args, **kwargs):\n        if cls not in known:\n"
        "            known[cls] = cls(*args, **kwargs)\n        return known[cls]\n    return get\n",
        "def decorated(cls):\n    NETS[cls.__name__] = cls\n    return cls\nNETS = {}\n",
        "def decorated(cls):\n    NETS.register(cls)\n    return cls\n",
        "from elsewhere import decorated\n",
        "def decorated(cls):\n    return elsewhere(cls)\n",
    ],
)
@pytest.mark.parametrize("apart", [True, False])
def test_a_decorator_does_not_hide_a_class(tmp_path: Path, decorator: str, apart: bool) -> None:
    decorator = f"import functools, inspect\n{decorator}"
    if apart:
        (tmp_path / "decorators.py").write_text(decorator)
        decorator = "from decorators import decorated\n"
    init = "self.c = nn.Conv2d(64, width, 3)\nself.n = nn.BatchNorm2d(width)"
    layers = read(tmp_path, f"{decorator}@decorated\n{module(init, 'return self.n(self.c(x))', ', width=60')}").layers
    assert (64, 60, True) in [(layer.layer.C, layer.layer.K, layer.layer.norm_follows) for layer in layers]


OPTIONAL = """
def block(c, norm):
    if norm:
        return nn.Sequential(nn.Conv2d(c, 60, 3), nn.BatchNorm2d(60))
    return nn.Sequential(nn.Conv2d(c, 64, 3), nn.ReLU())

class Net(nn.Module):
    def __init__(self, norm={default}):
        super().__init__()
        self.a = block(64, norm)
    def forward(self, x):
        return self.a(x)
"""


@pytest.mark.parametrize(
    ("default", "caller", "is_said"),
    [
        ("False", "", False),
        ("False", "def make():\n    return Net()\n", False),
        ("False", "def make():\n    return Net(True)\n", True),
        ("False", "def make(args):\n    return Net(args.norm)\n", True),
        ("False", "def make(norm):\n    return Net(norm)\n", True),
        ("False", "def make(norm=False):\n    return Net(norm)\n", False),
        ("False", "net = Net(norm=True)\n", True),
        ("False", "net = Net()\n", False),
        ("True", "", True),
        ("unknown()", "", True),
    ],
)
@pytest.mark.parametrize("apart", [True, False])
def test_a_branch_of_a_helper_that_defaults_refuse_counts_only_where_a_caller_takes_it(
    tmp_path: Path, default: str, caller: str, is_said: bool, apart: bool
) -> None:
    nets, calls = HEAD + OPTIONAL.format(default=default), caller
    if apart:
        calls = f"from net import Net\n{caller}"
        (tmp_path / "main.py").write_text(calls)
    (tmp_path / "net.py").write_text(nets if apart else nets + calls)
    found = {(finding.rule.code, finding.location.line) for finding in lint(tmp_path, isolated=True).findings}
    assert (("CL506", 7) in found) is is_said


@pytest.mark.parametrize(("files", "known"), [(1, 2), (60, 1)])
def test_scripts_of_large_repositories_end_sooner(files: int, known: int) -> None:
    loop = "    for i in range(200):\n        for j in range(5): k = [i, j]\n" * 2
    text = f"{HEAD}def main():\n    nn.Conv2d(3, 8, 3)\n{loop}    nn.Conv2d(8, 8, 3)\n"
    contents = {f"n{at}.py": text.encode() for at in range(files)}
    project = Project("nowhere", list(contents), contents)
    assert read_layers(ProjectImports(project), ["n0.py"]).known == known


def test_what_a_script_makes_in_one_of_several_branches_is_read(tmp_path: Path) -> None:
    classes = "".join(
        f"class {name}(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
        f"        self.conv = nn.Conv2d(n, {width}, 3)\n"
        for name, width in (("Small", 8), ("Large", 64))
    )
    found = read(tmp_path, classes + "if wide:\n    net = Large(3)\nelse:\n    net = Small(3)\nnet.cuda()\n")
    known = [(layer.layer.K, layer.condition) for layer in found.layers if layer.layer.C is not None]
    assert known == [(8, "not (wide)"), (64, "wide")]


def test_a_keyword_that_may_be_given_hides_no_other(tmp_path: Path) -> None:
    text = (
        "def make(n, **kw):\n    given = {'stride': 2}\n    if n:\n        given['bias'] = False\n"
        "    return nn.Conv2d(3, 64, 3, **given)\n"
    )
    found = one(read(tmp_path, text))
    assert (found.layer.C, found.layer.K, found.layer.groups, found.layer.U) == (3, 64, 1, 2)
    assert found.layer.bias is None
    either = text.replace("'bias'", "'groups' if n > 2 else 'bias'")
    assert one(read(tmp_path, either)).layer.K is None
