"""A call is taken for torch's own class only where its name can mean nothing else."""

import ast
import inspect

import pytest

from convlint.fixes.python.constructors import CONVOLUTIONS, DEFAULTS, NORMS, ImportedNames, argument, opened, origin
from convlint.fixes.python.source import PythonSource
from convlint.readers.python.walking import by_kind, every


def call_in(text: str) -> tuple[ast.Module, ast.Call]:
    tree = ast.parse(text)
    return tree, [node for node in ast.walk(tree) if isinstance(node, ast.Call)][-1]


@pytest.mark.parametrize(
    ("imports", "function", "found"),
    [
        ("from torch import nn", "nn.Conv2d", "Conv2d"),
        ("import torch.nn as nn", "nn.ConvTranspose3d", "ConvTranspose3d"),
        ("import torch", "torch.nn.BatchNorm2d", "BatchNorm2d"),
        ("import torch.nn", "torch.nn.LazyConv1d", "LazyConv1d"),
        ("import torch\nimport torch.nn", "torch.nn.GroupNorm", "GroupNorm"),
        ("import torch as t", "t.nn.modules.conv.Conv2d", "Conv2d"),
        ("from torch.nn import Conv2d as C", "C", "Conv2d"),
        ("from torch.nn.modules import batchnorm as b", "b.BatchNorm1d", "BatchNorm1d"),
        ("def f():\n  from torch import nn\nfrom torch import nn", "nn.PReLU", "PReLU"),
        ("from os import *\nfrom torch import nn", "nn.Conv2d", "Conv2d"),
        ("", "nn.Conv2d", None),
        ("from torch import nn", "Conv2d", None),
        ("from torch.nn import *", "Conv2d", None),
        ("from torch.nn import Conv2d\nfrom os import *", "Conv2d", None),
        ("from torch.nn import Conv2d\nclass Conv2d(Conv2d): pass", "Conv2d", None),
        ("from torch.nn import Conv2d\ntry:\n  import x as Conv2d\nexcept E: pass", "Conv2d", None),
        ("from torch import nn\ndef f(nn): pass", "nn.Conv2d", None),
        ("from torch import nn\nnn = 1", "nn.Conv2d", None),
        ("from torch import nn\nfor nn in x: pass", "nn.Conv2d", None),
        ("from torch import nn\ntry: pass\nexcept E as nn: pass", "nn.Conv2d", None),
        ("from torch import nn\nmatch x:\n  case [*nn]: pass", "nn.Conv2d", None),
        ("from torch import nn\nmatch x:\n  case {**nn}: pass", "nn.Conv2d", None),
        ("from torch import nn\nmatch x:\n  case nn: pass", "nn.Conv2d", None),
        ("from .torch import nn", "nn.Conv2d", None),
        ("from torch.ao import nn", "nn.quantized.Conv2d", None),
        ("from torch import nn", "nn.qat.Conv2d", None),
        ("from torch import nn", "nn.Linear", "Linear"),
        ("from torch import nn", "nn.functional.conv2d", None),
        ("from torch import nn", "(nn or x).Conv2d", None),
        ("from torch import nn", "self.nn.Conv2d", None),
    ],
)
def test_torch_classes_are_known_by_their_imports(imports: str, function: str, found: str | None) -> None:
    tree, call = call_in(f"{imports}\n{function}(1)")
    assert ImportedNames(by_kind(every(tree))).torch_class(call) == found


@pytest.mark.parametrize(
    ("call", "name", "found"),
    [
        ("f(3, 60, 3)", "out_channels", "60"),
        ("f(3, 60, 3)", "in_channels", "3"),
        ("f(3, kernel_size=3, out_channels=60)", "out_channels", "60"),
        ("f(3, 60, 3, 1, 1, 1, 2, False)", "bias", "False"),
        ("f(3, 60, *rest)", "out_channels", "60"),
        ("f(3, 60, **more)", "out_channels", "60"),
        ("f(bias=True, **more)", "bias", "True"),
        ("f(3, 60, 3)", "bias", None),
        ("f(3, *rest)", "out_channels", "may come with its *arguments"),
        ("f(*rest, out_channels=60)", "out_channels", "60"),
        ("f(3, 60, *rest)", "bias", "may come with its *arguments"),
        ("f(3, 60, 3, **more)", "bias", "may come with its **arguments"),
    ],
)
def test_arguments_are_found_by_position_and_name(call: str, name: str, found: str | None) -> None:
    _, tree = call_in(call)
    given = argument(tree, name, CONVOLUTIONS["Conv2d"])
    assert (given.unclear or (None if given.value is None else ast.unparse(given.value))) == found


def test_of_an_unknown_class_only_names_are_sure() -> None:
    _, call = call_in("Block(3, 60, out_channels=60)")
    assert argument(call, "out_channels").value is not None
    assert argument(call, "in_channels").value is None


def test_torch_has_these_parameters_in_this_order() -> None:
    import torch

    for kind, parameters in {**CONVOLUTIONS, **NORMS}.items():
        stated = inspect.signature(getattr(torch.nn, kind)).parameters
        assert tuple(stated)[: len(parameters)] == parameters, kind
        for name in parameters:
            if name in DEFAULTS:
                assert stated[name].default == DEFAULTS[name], (kind, name)


FILES = {"net.py": b"from torch import nn\n", "broken.py": b"def f(:\n"}


def test_what_cannot_be_opened_says_why() -> None:
    found = opened(FILES.get, "net.py")
    assert not isinstance(found, str)
    assert found[0].raw == FILES["net.py"]
    assert opened(FILES.get, "gone.py") == "the file cannot be read"
    assert opened(FILES.get, "broken.py") == "not Python: invalid syntax (<unknown>, line 1)"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("width = 60\nMARK(width)", "`width` at net.py:1"),
        ("width: int = 60\nMARK(width)", "`width` at net.py:1"),
        ("a, width = 3, 60\nMARK(width)", "`width` at net.py:1"),
        ("a, width = read()\nMARK(width)", "`width`, which changes, at net.py:1"),
        ("width = 60\nwidth = 64\nMARK(width)", "`width`, which several lines set, the first of them net.py:1"),
        ("width = 60\nwidth += 4\nMARK(width)", "`width`, which several lines set, the first of them net.py:1"),
        ("for width in (3, 60):\n  MARK(width)", "`width`, which changes, at net.py:1"),
        ("x = [MARK(width) for width in (3, 60)]", "`width`, which changes, at net.py:1"),
        ("with a as width:\n  MARK(width)", "`width`, which changes, at net.py:1"),
        ("if (width := 60): MARK(width)", "`width` at net.py:1"),
        ("def f():\n  width = 60\n  MARK(width)\nwidth = 3", "`width` at net.py:2"),
        ("width = 60\ndef f():\n  def g(): width = 3\n  MARK(width)", "`width` at net.py:1"),
        ("def f(width): MARK(width)", "`width`, a parameter of `f` at net.py:1"),
        ("def f(a,\n  *, width=60): MARK(width)",
         "`width`, a parameter of `f` (`60` where it is not given) at net.py:2"),
        ("f = lambda width: MARK(width)", "`width`, a parameter of a lambda at net.py:1"),
        ("class A:\n  def f(self, a, width=30 * 2):\n    MARK(width)",
         "`width`, a parameter of `A.f` (`30 * 2` where it is not given) at net.py:2"),
        ("def f(**width): MARK(width)", "`width`, a parameter of `f` at net.py:1"),
        ("class A:\n  width = 60\n  def f(self): MARK(width)\nwidth = 3", "`width` at net.py:4"),
        ("class A:\n  width = 60\n  x = MARK(width)", "`width` at net.py:2"),
        ("class A:\n  width = 60\n  def f(self): MARK(self.width)", "`self.width` at net.py:2"),
        ("class A:\n  def g(self): self.width = 60\n  def f(self): MARK(self.width)", "`self.width` at net.py:2"),
        ("class A:\n  width = 1\n  def f(self):\n    self.width = 2; MARK(self.width)", "the attribute `self.width`"),
        ("class A:\n  def f(self): MARK(cfg.width)", "the attribute `cfg.width`"),
        ("MARK(self.width)", "the attribute `self.width`"),
        ("from x import width\nMARK(width)", "`width`, which this file does not set"),
        ("MARK(2 * width)", "the expression `2 * width`"),
        ("MARK(a.b.c)", "the expression `a.b.c`"),
        ("MARK(64)", "`64`"),
        (f"MARK({'x + ' * 1000}x)", "the expression `x + x + x + x + x + x + x + x + x + x + ...`"),
    ],
)  # fmt: skip
def test_the_source_of_a_value(text: str, said: str) -> None:
    source = PythonSource(text.encode())
    call = next(
        node for node in ast.walk(source.tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "MARK"
    )
    assert origin(source, call.args[0], "net.py") == said
