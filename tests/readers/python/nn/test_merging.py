"""Whether a norm stands behind a convolution, where Sequentials are made on conditions or lost from sight."""

from pathlib import Path

import pytest

from convlint.readers.python.imports import ProjectImports
from convlint.readers.python.nn.merging import in_words
from convlint.readers.python.nn.reading import read_layers
from convlint.readers.python.project import Project

HEAD = "from torch import nn\nfrom elsewhere import wrapped, known\n"


def follows(tmp_path: Path, text: str) -> list[bool | None]:
    path = tmp_path / "net.py"
    path.write_text(HEAD + text)
    layers = read_layers(ProjectImports(Project(str(tmp_path), [str(path)])), [str(path)]).layers
    return [each.layer.norm_follows for each in layers]


def function(*lines: str, parameters: str = "n") -> str:
    return f"def make({parameters}):\n" + "".join(f"    {line}\n" for line in lines)


BLOCK = "net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ((BLOCK, "if n:", "    net = wrapped(net)", "return net"), [True]),
        ((BLOCK, "return wrapped(net)"), [True]),
        ((f"if n:\n        {BLOCK}", f"else:\n        {BLOCK}", "return net"), [True, True]),
        (("net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU())", "return wrapped(net)"), [False]),
        (("net = nn.Sequential(nn.Conv2d(3, 8, 3), wrapped(8))", "return wrapped(net)"), [None]),
        # changed after it was made
        ((BLOCK, "net[1] = nn.Identity()", "return wrapped(net)"), [None]),
        ((BLOCK, "net.insert(1, nn.ReLU())", "return wrapped(net)"), [None]),
        ((BLOCK, "net._modules['1'] = nn.Identity()", "return wrapped(net)"), [None]),
        ((BLOCK, "if n:", "    del net[1]", "return wrapped(net)"), [None]),
        ((BLOCK, "if n:", "    net = nn.Sequential(*[each for each in net if not isinstance(each, nn.BatchNorm2d)])",
          "return wrapped(net)"), [None]),
        ((BLOCK, "net.append(nn.ReLU())", "return wrapped(net)"), [True]),
        # the convolution is read elsewhere too, or may be
        (("conv = nn.Conv2d(3, 8, 3)", "net = nn.Sequential(conv, nn.BatchNorm2d(8))", "known.conv = conv",
          "return wrapped(net)"), [None]),
        (("conv = nn.Conv2d(3, 8, 3)", "net = conv", "if n:", "    net = nn.Sequential(conv, nn.BatchNorm2d(8))",
          "return wrapped(net)"), [None]),
        (("conv = nn.Conv2d(3, 8, 3)", "if n:", "    net = nn.Sequential(conv, nn.BatchNorm2d(8))",
          "    return wrapped(net)", "return wrapped(2)"), [None]),
        (("conv = nn.Conv2d(3, 8, 3)", "if n:", "    return wrapped(nn.Sequential(conv, nn.BatchNorm2d(8)))",
          "return wrapped(nn.Sequential(conv, nn.ReLU()))"), [None]),
        ((BLOCK, "known.first = net[0]", "return wrapped(net)"), [None]),
    ],
)  # fmt: skip
def test_a_sequential_that_goes_where_nobody_looks(
    tmp_path: Path, lines: tuple[str, ...], expected: list[bool | None]
) -> None:
    assert follows(tmp_path, function(*lines)) == expected


@pytest.mark.parametrize(
    ("add", "then", "expected"),
    [
        ("net.append(nn.BatchNorm2d(8))", "nn.ReLU()", None),
        ("net.add_module('bn', nn.BatchNorm2d(8))", "nn.ReLU()", None),
        ("net.add_module('0?', nn.BatchNorm2d(8))", "nn.ReLU()", None),
        ("net.append(nn.ReLU())", "nn.BatchNorm2d(8)", None),
        ("pass", "nn.BatchNorm2d(8)", True),
    ],
)
def test_a_part_that_only_one_path_adds_may_stand_between(
    tmp_path: Path, add: str, then: str, expected: bool | None
) -> None:
    lines = ("net = nn.Sequential(nn.Conv2d(3, 8, 3))", "if n:", f"    {add}", f"net.append({then})", "return net")
    network = """
class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.net = make(n)

    def forward(self, x):
        return self.net(x)
"""
    assert follows(tmp_path, function(*lines) + network) == [expected]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("nn.BatchNorm2d(8)", "nn.SyncBatchNorm(8)", True),
        ("nn.BatchNorm2d(8)", "nn.InstanceNorm2d(8)", True),
        ("nn.BatchNorm2d(8)", "nn.GroupNorm(2, 8)", None),
        ("nn.BatchNorm2d(8)", "nn.Identity()", None),
        ("nn.ReLU()", "nn.LeakyReLU(0.1)", False),
    ],
)
def test_one_of_two_layers(tmp_path: Path, first: str, second: str, expected: bool | None) -> None:
    body = (f"if n:\n        after = {first}", f"else:\n        after = {second}")
    assert follows(tmp_path, function(*body, "return nn.Sequential(nn.Conv2d(3, 8, 3), after)")) == [expected]


@pytest.mark.parametrize(
    ("layers", "use", "expected"),
    [
        ("nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU()", "nn.Sequential(*make(1), nn.Flatten())", True),
        ("nn.Conv2d(3, 8, 3), nn.ReLU(), nn.BatchNorm2d(8)", "nn.Sequential(*make(1))", False),
        ("nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)", "nn.Sequential(make(1)[0], nn.ReLU())", False),
        ("nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)", "nn.Sequential(*make(1)[::-1])", False),
        ("nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)", "make(1)", None),
        ("nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)", "wrapped(make(1))", None),
    ],
)
def test_layers_that_a_function_returns_in_a_list(tmp_path: Path, layers: str, use: str, expected: bool | None) -> None:
    """What the callers make of them is what they are."""
    assert follows(tmp_path, function(f"return [{layers}]") + f"net = {use}\n") == [expected]


CALLED_BY_OTHERS = """
class Net(nn.Module):
    def __init__(self, n):
        super().__init__()

        def subnet(a, b):
            return nn.Sequential(nn.Conv2d(a, b, 3), nn.BatchNorm2d(b))

        {keeps}
"""


@pytest.mark.parametrize(
    ("keeps", "expected"),
    [
        ("self.make = subnet", [True]),
        ("self.net = wrapped(n, subnet)", [True]),
        ("self.net = wrapped(lambda n: subnet(n, n))", [True]),
        ("self.net = subnet(3, 8)", [True]),
        ("self.net = subnet(3, 8)[:1]", [None]),
    ],
)
def test_a_function_that_others_call(tmp_path: Path, keeps: str, expected: list[bool | None]) -> None:
    assert follows(tmp_path, CALLED_BY_OTHERS.format(keeps=keeps)) == expected


CONFIGURED = """
cfg = {{'A': [64, 'M', 128], 'B': [64, 64, 'M', {last}]}}

class VGG(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.features = self._make_layers(cfg[name])

    def _make_layers(self, cfg):
        layers, last = [], 3
        for x in cfg:
            if x == 'M':
                layers += [nn.MaxPool2d(2, 2)]
            elif x == 'bare':
                layers += [nn.Conv2d(last, 32, 3), nn.ReLU()]
            else:
                layers += [nn.Conv2d(last, x, 3), nn.BatchNorm2d(x), nn.ReLU(inplace=True)]
                last = x
        return nn.Sequential(*layers)
"""


@pytest.mark.parametrize(("last", "expected"), [("256", {True}), ("'bare'", {True, False}), ("*known", {None})])
def test_a_sequential_by_one_of_several_lists(tmp_path: Path, last: str, expected: set[bool | None]) -> None:
    assert set(follows(tmp_path, CONFIGURED.format(last=last))) == expected


def test_the_widths_of_one_of_several_lists_carry_its_name(tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    path.write_text(HEAD + CONFIGURED.format(last=256))
    layers = read_layers(ProjectImports(Project(str(tmp_path), [str(path)])), [str(path)]).layers
    found = {(each.layer.C, each.layer.K, each.condition) for each in layers if each.layer.K is not None}
    assert {(3, 64), (64, 64), (64, 128), (64, 256)} == {pair[:2] for pair in found}
    assert (64, 128, "name == 'A'") in found
    assert all(each[2] for each in found)


MODES = [
    ("x = self.conv(x)\n        if self.training:\n            x = self.norm(x)\n        return x", None),
    ("x = self.conv(x)\n        return self.norm(x) if self.training else x", None),
    ("x = self.conv(x)\n        if not self.training:\n            return x\n        return self.norm(x)", None),
    ("if not self.training:\n            return self.fused(x)\n        return self.norm(self.conv(x))", True),
    ("if self.training:\n            x = self.other(x)\n        return self.norm(self.conv(x))", True),
]


@pytest.mark.parametrize(("forward", "expected"), MODES)
def test_a_norm_that_runs_in_training_alone(tmp_path: Path, forward: str, expected: bool | None) -> None:
    text = (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.conv = nn.Conv2d(3, 8, 3)\n        self.norm = nn.BatchNorm2d(8)\n"
        f"    def forward(self, x):\n        {forward}\n"
    )
    assert follows(tmp_path, text) == [expected]


CHOSEN = """
class Net(nn.Module):
    def __init__(self, norm_layer=nn.BatchNorm2d):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(16, 32, 1), norm_layer(32), nn.ReLU())

    def forward(self, x):
        return self.body(x)

"""


@pytest.mark.parametrize(
    ("callers", "expected"),
    [
        ("", None),  # nobody is seen to leave the default in place
        ("net = Net()", True),
        ("def make():\n    return Net()", True),
        ("def make():\n    return Net(nn.InstanceNorm2d)", True),
        ("def make():\n    return Net(nn.Identity)", False),
        ("net = Net()\ndef make():\n    return Net(nn.Identity)", False),
        ("net = Net()\ndef make():\n    return Net(wrapped)", None),
        ("net = Net()\ndef make(norm):\n    return Net(norm)", True),
    ],
)
def test_a_norm_that_a_parameter_brings_is_what_its_callers_make_it(
    tmp_path: Path, callers: str, expected: bool | None
) -> None:
    assert set(follows(tmp_path, CHOSEN + callers)) == {expected}


TESTS = [
    ((), ""),
    (("a", "b", "a"), "a and b"),
    (("a or b", "c"), "(a or b) and c"),
    (("a or b",), "a or b"),
    (("not (m == 'a')", "not (m == 'b')", "m == 'c'"), "m == 'c'"),
    (("o.k == 1", "not (o.m == 1)", "o.m == 2"), "o.k == 1 and o.m == 2"),
    (("not (m == 'a')", "not (m == 'b')"), "not (m == 'a') and not (m == 'b')"),
    # what does not follow from the others
    (("not (m == 'c')", "m == 'c'"), "not (m == 'c') and m == 'c'"),
    (("not (m > 1)", "m == 2"), "not (m > 1) and m == 2"),
    (("not (m == x)", "m == 'c'"), "not (m == x) and m == 'c'"),
    (("not (n == 'a')", "m == 'c'"), "not (n == 'a') and m == 'c'"),
    (("not (a...", "not (m == 'c')"), "not (a... and not (m == 'c')"),
    # longer than a line
    (("outer", f"not ({'n' * 60})", "inner", "b" * 20), f"outer and inner and {'b' * 20}"),
    (("o" * 50, "p" * 50, "last"), f"{'p' * 50} and last"),
    (tuple(map("not (m == {})".format, range(9))), " and ".join(map("not (m == {})".format, range(4, 9)))),
]


@pytest.mark.parametrize(("tests", "words"), TESTS)
def test_a_condition_leaves_out_what_follows_from_it_and_fits_a_line(tests: tuple[str, ...], words: str) -> None:
    assert in_words(tests) == words


CHAIN = """
A, B = 62, 64

def block(width):
    return nn.Conv2d(width, 60, 1)

def make(depth):
"""
BRANCHES = [
    (("if depth == 1", "A"), ("elif depth == 2", "A"), ("else", "A")),
    (("if depth == 1", "A"), ("elif depth == 2", "A"), ("elif depth > 2", "A")),
    (("if depth == 1", "A"), ("else", "A")),
]
SOME = [
    ((("if depth == 1", "A"),), {"depth == 1"}),
    ((("if depth == 1", "A"), ("elif depth == 2", "A"), ("else", "B")),
     {"depth == 1\ndepth == 2", "not (depth == 1) and not (depth == 2)"}),
    ((("if depth == 1", "A"), ("elif depth == 2", "B")), {"depth == 1", "depth == 2"}),
    ((("if depth == 1", None), ("elif depth == 2", "A")), {"depth == 2"}),
    ((("if depth == 1", "A"), ("elif depth == 2", "A"), ("else", None)), {"depth == 1\ndepth == 2"}),
]  # fmt: skip


def conditions(tmp_path: Path, branches: tuple[tuple[str, str | None], ...]) -> set[str]:
    lines = [f"    {test}:\n        net = {f'nn.Sequential(block({width}))' if width else None}\n"
             for test, width in branches]  # fmt: skip
    path = tmp_path / "net.py"
    path.write_text(HEAD + CHAIN + "".join(lines) + "    return net\n")
    layers = read_layers(ProjectImports(Project(str(tmp_path), [str(path)])), [str(path)]).layers
    return {each.condition for each in layers if each.layer.C is not None}


@pytest.mark.parametrize("branches", BRANCHES)
def test_what_all_branches_construct_has_no_condition(
    tmp_path: Path, branches: tuple[tuple[str, str | None], ...]
) -> None:
    assert conditions(tmp_path, branches) == {""}


@pytest.mark.parametrize(("branches", "expected"), SOME)
def test_what_some_branches_construct_has_a_condition(
    tmp_path: Path, branches: tuple[tuple[str, str | None], ...], expected: set[str]
) -> None:
    assert conditions(tmp_path, branches) == expected


def test_a_layer_that_a_norm_and_a_parameter_read_in_turn_is_not_known_to_be_normalised(tmp_path: Path) -> None:
    text = CHOSEN.replace(
        "return self.body(x)", "y = self.body[0](x)\n        return nn.BatchNorm2d(32)(self.body[0](y))"
    )
    assert set(follows(tmp_path, text.replace("norm_layer=nn.BatchNorm2d", "norm_layer"))) == {False}
    text = CHOSEN.replace("return self.body(x)", "return self.body(x) + nn.BatchNorm2d(32)(self.body[0](x))")
    assert set(follows(tmp_path, text.replace("norm_layer=nn.BatchNorm2d", "norm_layer"))) == {None}


BIASED = """
class Block(nn.Module):
    def __init__(self, cin, cout, **kwargs):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, 3, **kwargs)
        self.norm = nn.BatchNorm2d(cout)
    def forward(self, x):
        return self.norm(self.conv(x))
"""


@pytest.mark.parametrize(
    ("caller", "expected"),
    [
        ("", True),
        ("def make():\n    return Block(3, 8)\n", True),
        ("def make():\n    return Block(3, 8, padding=1)\n", True),
        ("def make(cfg):\n    return Block(3, 8, **cfg.block)\n", None),
        ("def make(cfg):\n    return Block(3, 8, bias=cfg.bias)\n", None),
    ],
)
def test_a_bias_that_a_caller_may_leave_out(tmp_path: Path, caller: str, expected: bool | None) -> None:
    assert set(follows(tmp_path, BIASED + caller)) == {expected}
