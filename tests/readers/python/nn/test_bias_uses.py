"""Which code fails for a convolution without a bias: what uses it, and does not ask first."""

from pathlib import Path

import pytest

from convlint.readers.python.imports import ProjectImports
from convlint.readers.python.nn.bias_uses import first_uses, may_use, named_uses
from convlint.readers.python.project import Project
from convlint.readers.python.source_file import parsed


def lines(code: str) -> list[int]:
    return [node.lineno for node, _ in named_uses(parsed("net.py", code.encode()))]


PARTS = "from torch import nn\nclass A(nn.Module):\n def f(self):\n  self.w = {}\n  b = {}"


@pytest.mark.parametrize(
    "code",
    [
        "self.c.bias.data.fill_(0.01)",
        "nn.init.constant_(net.c.bias, 0)",
        "for m in net.modules():\n if isinstance(m, nn.Conv2d): m.bias.data.zero_()",
        "def weights_init(m):\n if isinstance(m, nn.Conv2d): nn.init.zeros_(m.bias)",
        "SGD([{'params': [a.c.bias]}])",
        "b = c.bias",
        "x = {'kernel_size': k, 'name': 'bias'}",
        "for name in ['weight', 'bias']: new[name] = old[name]",
        "no_decay = [conv.bias]",
        "if hasattr(m, 'bias'): m.bias.data.zero_()",
        "if isinstance(m, (nn.Linear, nn.Conv2d)): m.bias.data.zero_()",
        "if isinstance(m, nn.Linear) or a: m.bias.data.zero_()",
        "if isinstance(m, nn.Linear): n.bias.data.zero_()",
        "if m.bias is None: m.bias.data.zero_()",
        "if m.bias is not None: n.bias.data.zero_()",
        "if m.bias is not None: pass\nelse: m.bias.data.zero_()",
        "if m.bias is not None or a: m.bias.data.zero_()",
        "if m.bias is not None: pass\nm.bias.data.zero_()",
        "x = m.bias.data if m.weight is not None else 0",
        "assert m.bias is not None",
        "if m.bias is None: raise ValueError",
        "if name.find('Conv') != -1: m.bias.data.fill_(0)",
        "if name.find('BatchNorm') != -1: pass\nelse: m.bias.data.fill_(0)",
        "x = [m.bias.data for m in ms]",
        "f = lambda m: m.bias.data.zero_()",
        "m.bias.requires_grad = False",
        "if m.bias is not None:\n def f(m): m.bias.data.zero_()",
        "class A:\n def f(self): self.c.bias.data.zero_()",
        "class A:\n def f(self): self.n.bias.x\n def g(self): self.n = nn.Linear(1, 1); self.n = nn.Conv2d(1, 1, 1)",
        "class A:\n def f(self, o): self.n = nn.Linear(1, 1); o.n.bias.x",
        "def f(self): self.bias.data.zero_()",
        "m.bias += 1\nx = m.bias + 1",
        "LINEAR = (nn.Linear, nn.Conv2d)\nif isinstance(m, LINEAR): m.bias.data.zero_()",
        "if isinstance(m, linear_layers): m.bias.data.zero_()",
        "if isinstance(m, self.Norm): m.bias.data.zero_()",
        "Norm = nn.Conv2d\nif isinstance(m, Norm): m.bias.data.zero_()",
        "if 'BatchNorm' in norm: nn.init.zeros_(self.conv.bias)",
        "if 'norm' in name: m.bias.data.zero_()",
        "name = type(m).__name__\nif 'Norm' in name: n.bias.data.zero_()",
        "name = type(m).__name__\nm = c\nif 'Norm' in name: m.bias.data.zero_()",
        "for m in ms:\n if m.bias is None: continue\n m = self.conv\n m.bias.data.zero_()",
        "if m.bias is not None:\n for n in ns:\n  m.bias.data.zero_()\n  m = n",
        "if self.c.bias is not None:\n self.c = d\n self.c.bias.data.zero_()",
        "if m.bias is not None: x = [m.bias.data for m in ms]",
        "linear = nn.Conv2d(8, 8, 1)\nlinear.bias.x",
        PARTS.format("nn.Sequential(nn.BatchNorm2d(8), nn.Conv2d(8, 8, 1))", "self.w[1].bias"),
        PARTS.format("nn.Sequential(*parts, nn.BatchNorm2d(8))", "self.w[1].bias"),
        PARTS.format("nn.Sequential(a, nn.BatchNorm2d(8))\n  self.w = make()", "self.w[1].bias"),
        PARTS.format("nn.Sequential(a, nn.BatchNorm2d(8))\n  self.w = nn.ModuleList(parts)", "self.w[1].bias"),
        PARTS.format("nn.Sequential(a, nn.BatchNorm2d(8))", "other.w[1].bias"),
        "if m.bias is not None: f = lambda m: m.bias.data",
        "for layer_norm in (self.conv, self.bn): layer_norm.bias.data.zero_()",
        "self.norm = self.conv\nself.norm.bias.data.zero_()",
        "class A:\n def f(self):\n  def init(self): self.bias.data.zero_()\n  init(self.conv)",
        "class A:\n def f(self):\n  init = lambda self: self.bias.data.zero_()\n  init(self.conv)",
        "class A:\n def f(self):\n  def g(self, x=lambda m: 1): self.bias.x",
        "class A:\n def f(self):\n  def g(x=lambda self: self.bias.x): self.bias.y",
        "for p in ('weight', 'bias'): zero(getattr(self.conv, p))",
        "def fuse(branch: nn.Module): return branch.bias",
        "def fuse(branch: nn.BatchNorm2d):\n branch = branch.conv\n return branch.bias",
        "assert isinstance(branch, nn.BatchNorm2d)\nbranch = other\nb = branch.bias",
        "w, b = self.conv.parameters()",
        "getattr(self.conv, 'bias').data.zero_()",
        "self.conv._parameters['bias'].data.zero_()",
        "self.state_dict()['conv.bias'].zero_()",
        "state[f'{name}.bias'].zero_()",
        "del state['conv.bias']",
        "class A(Function):\n def f(ctx, m): m.bias.x",
        "class A(Function):\n def f(ctx, m):\n  ctx = m\n  ctx.bias.x",
        "class A(nn.Module):\n def f(ctx): ctx.bias.x",
        "class A(Function):\n def f(ctx):\n  def g(m): m.bias.x",
        "class A(Function):\n class B:\n  def f(ctx): ctx.bias.x",
        "from torch import nn\nl = nn.Linear(8, 8, m.bias)",
        "from torch import nn\nl = nn.init.zeros_(bias=m.bias)",
        "from own import nn\nl = nn.Linear(8, 8, bias=m.bias)",
        "m.param('bias', 1)",
    ],
)
def test_what_fails_without_a_bias(code: str) -> None:
    assert len(lines(code)) == 1
    assert may_use(code.encode())  # else nobody would look


@pytest.mark.parametrize(
    "code",
    ["x = (m.\n bias.data)", "x = m \\\n .bias.data", "x = m. \\\n  bias.data", "x = (m\n .bias)",
     "f(\n bias=m.bias)", "x = f'{m.bias=}'", "x = state[f'{name}.bias']", "f(m,\n bias\n =m.bias)"],
)  # fmt: skip
def test_uses_that_go_over_lines(code: str) -> None:
    assert may_use(code.encode())
    assert len(lines(code)) == 1


def test_a_keyword_is_no_use() -> None:
    assert not may_use(b"conv = nn.Conv2d(3, 8, 3,\n    bias=False)\nother = nn.Linear(8, 8, bias = use_bias)\n")


@pytest.mark.parametrize(
    "code",
    [
        "no_decay = ['bias', 'LayerNorm.weight']\nx = any(part in name for part in no_decay)",
        "self.no_decay = ('bias', 'bn')",
        "x = Lars(exclude_from_weight_decay=['batch_normalization', 'bias'])",
        "if m.bias is not None: m.bias.data.zero_()",
        "if m.bias != None: m.bias.data.zero_()",
        "if isinstance(m, nn.Conv2d) and m.bias is not None: m.bias.data.zero_()",
        "if isinstance(m, nn.Conv2d):\n if m.bias is not None:\n  nn.init.zeros_(m.bias)",
        "m.bias is not None and m.bias.data.zero_()",
        "m.bias is None or m.bias.data.zero_()",
        "b = m.bias if m.bias is not None else zeros",
        "b = zeros if m.bias is None else m.bias",
        "if m.bias: m.bias.data.zero_()",
        "if not m.bias: pass\nelse: m.bias.data.zero_()",
        "def f(m):\n if m.bias is None: return\n m.bias.data.zero_()",
        "for m in ms:\n if not isinstance(m, C) or m.bias is None: continue\n m.bias.data.zero_()",
        "x = [m.bias.data for m in ms if m.bias is not None]",
        "c = Conv(3, 8, bias=m.bias is not None)",
        "if hasattr(m, 'bias') and m.bias is not None: m.bias.data.zero_()",
        "if getattr(m, 'bias', None) is not None: m.bias.data.zero_()",
        "hasattr(m, 'bias')",
        "if isinstance(m, nn.BatchNorm2d): m.bias.data.zero_()",
        "if isinstance(m, C): pass\nelif isinstance(m, (nn.BatchNorm2d, nn.GroupNorm)): nn.init.zeros_(m.bias)",
        "if isinstance(m, nn.Linear) or isinstance(m, nn.LayerNorm): m.bias.data.zero_()",
        "if type(m) == nn.Linear: m.bias.data.zero_()",
        "name = m.__class__.__name__\nif name.find('BatchNorm2d') != -1: nn.init.constant_(m.bias.data, 0)",
        "name = type(m).__name__\nif 'Norm' in name: m.bias.data.zero_()",
        "def f(m):\n if 'Norm' in type(m).__name__: m.bias.data.zero_()\ndef g(self):\n for m in self: pass",
        "if 'Norm' in type(m).__name__: m.bias.data.zero_()",
        "from own import LayerNorm2d\nif isinstance(m, LayerNorm2d): m.bias.data.zero_()",
        "if getattr(m, 'bias') is not None: getattr(m, 'bias').data.zero_()",
        "b = getattr(m, 'bias', None)",
        "setattr(m, 'bias', None)",
        "self.register_parameter('bias', None)",
        "self.register_buffer('bias', b)",
        "kwargs.setdefault('bias', False)",
        "if 'bias' in name or name == 'bias' or name.endswith('.bias'): decay = 0",
        "b = config.get('bias', True)",
        "__constants__ = ['stride', 'bias']",
        "def fuse(conv, bn): return bn.bias - bn.running_mean",
        "def fuse(branch: nn.BatchNorm2d, *, other: LayerNorm): return branch.bias - other.bias",
        "def fuse(branch):\n assert isinstance(branch, nn.BatchNorm2d)\n b = branch.bias\n return b",
        "bn = branch.bn\nx = bn.bias.data",
        "w = next(m.parameters())",
        "y = F.conv2d(x, m.weight, m.bias)",
        "isinstance(m.bias, Tensor)",
        "class A(nn.Module):\n def f(self): self.bias.data.zero_()",
        "class A:\n def f(self):\n  def g(x=lambda self: 1): self.bias.x",
        "class A:\n def f(self):\n  def g(*, x=lambda *self: 1): self.bias.x",
        "class A:\n def f(self):\n  g = lambda x, y=lambda self: 1: self.bias.x",
        "class A:\n f = lambda self: self.bias.x",
        "class A:\n def f(self): self.n = nn.BatchNorm2d(8); self.n.bias.data.zero_()",
        "beta = branch.bn.bias",
        "beta = layer_norm1.bias",
        "m.bias = None",
        "m.bias_attr",
        "del m.bias",
        "x = {'kernel_size': k, 'bias': b}",
        "if isinstance(m, norm_layer): m.bias.data.zero_()",
        "x = layer.linear1.bias",
        "self.add_parameter('bias', self.create_parameter([1]))",
        "from torch import nn\nBatchNorm2d = nn.BatchNorm2d\nif isinstance(m, nn.BatchNorm2d): m.bias.data.zero_()",
        PARTS.format("nn.Sequential(nn.Conv2d(8, 8, 1), nn.BatchNorm2d(8))", "self.w[1].bias"),
        "bn = nn.BatchNorm3d\nbn = nn.BatchNorm1d\nconv = nn.Conv3d\n"
        + PARTS.format("nn.Sequential(conv(8), bn(8))\n  self.w = conv(8, 8, 1)", "self.w[1].bias"),
        "if isinstance(m, self.norm_class): m.bias.data.zero_()",
        "if m.bias is not None: delattr(m, 'bias')",
        "class A(torch.autograd.Function):\n @staticmethod\n def backward(ctx, g): return g * ctx.bias",
        "class A(Function):\n def backward(c, g): return g * c.bias",
        "from torch import nn\nl = nn.Linear(8, 8, bias=config.bias)",
        "import torch\nl = torch.nn.LayerNorm(8, bias=self.config.bias)",
        "b = self.param('bias', init, (8,))",
        "self.b = self.add_weight(name='bias', shape=(8,))",
    ],
)
def test_what_does_not(code: str) -> None:
    assert lines(code) == []


def test_a_variable_may_hold_the_class() -> None:
    code = "from torch import nn\nconv = {}\nclass A:\n def f(self):\n  self.w = conv(8, 8, 1)\n  b = self.w.bias"
    named = [named_uses(parsed("net.py", code.format(kind).encode()))[0][1] for kind in ("nn.Conv3d", "own.Conv")]
    assert named == ["w", ""]


def test_each_is_named_by_its_line() -> None:
    assert lines("a.bias.x\nif b.bias is not None:\n    b.bias.x\nwith c.bias.x:\n    d.bias.x\n") == [1, 4, 5]


def test_code_that_nests_deeply_is_taken_for_a_use() -> None:
    assert lines("x = " + "-" * 600 + "m.bias") == [1]
    chain = "if m.bias is not None: pass\n" + "".join(f"elif a == {n}: pass\n" for n in range(900)) + "else: m.bias.x\n"
    assert lines(chain) != []


ANY = "def reset(m):\n    m.bias.data.zero_()\n"
OWN = "from torch import nn\nclass Net(nn.Module):\n    def __init__(self):\n        self.conv = nn.Conv2d(3, 8, 3)\n"
OWN += "        self.conv.bias.data.zero_()\n"


def uses(
    files: dict[str, str], given: list[str], monkeypatch: pytest.MonkeyPatch, folder: Path
) -> list[tuple[str, str]]:
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")
    monkeypatch.chdir(folder)
    return [(use.at.path, use.attribute) for use in first_uses(ProjectImports(Project(".", given)))]


def test_those_of_files_to_report_on_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = uses({"a.py": OWN, "b.py": OWN, "c.py": OWN}, ["b.py"], monkeypatch, tmp_path)
    assert found == [("b.py", "conv"), ("a.py", "conv"), ("c.py", "conv")]


def test_behind_one_of_every_layer_only_files_to_report_on_are_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"a.py": OWN, "b.py": ANY, "c.py": OWN, "net.py": ANY, "other.py": OWN}
    assert uses(files, ["net.py", "other.py"], monkeypatch, tmp_path) == [("net.py", ""), ("other.py", "conv")]
    assert uses(files, ["other.py"], monkeypatch, tmp_path) == [("other.py", "conv"), ("a.py", "conv"), ("b.py", "")]
