"""Edits of source that is only read: one keyword of one call, or one line; else the line and the reason."""

import ast

import pytest
from msgspec.structs import replace
from source_records import at, checked, only, program, record

from convlint.fixes.edits import Edit
from convlint.fixes.python import source as python_source
from convlint.fixes.python.source import applied_to_bytes, parsed
from convlint.fixes.source_edits import with_source_edits
from convlint.model.location import Location
from convlint.model.report import Fix
from convlint.model.source import BiasUse, SourceReading

TORCH, PADDLE = "from torch import nn\n", "import paddle.nn as nn\n"


def span_of(raw: bytes) -> tuple[int, int, int, int]:
    """The call of a convolution, in lines and columns of the text."""
    call = next(
        node
        for node in ast.walk(ast.parse(raw))
        if isinstance(node, ast.Call)
        and not isinstance(node.func, ast.Call)
        and "conv" in ast.unparse(node.func).lower()
    )
    text = raw.decode("utf-8-sig").replace("\r\n", "\n").split("\n")

    def column(line: int, offset: int) -> int:
        return len(text[line - 1].encode()[:offset].decode()) + 1

    assert call.end_lineno is not None
    assert call.end_col_offset is not None
    return (
        call.lineno, column(call.lineno, call.col_offset),
        call.end_lineno, column(call.end_lineno, call.end_col_offset),
    )  # fmt: skip


def fix_of(raw: bytes) -> Fix:
    one = record(bias=True, norm_follows=True)
    one = replace(one, layer=replace(one.layer, spans={"layer": span_of(raw)}))
    (finding,) = with_source_edits(checked(one).findings, SourceReading(layers=(one,)), lambda _: raw)
    assert finding.fix is not None
    return finding.fix


def after(raw: bytes, fix: Fix) -> bytes:
    return applied_to_bytes(raw, [Edit(edit.start, edit.end, edit.new) for edit in fix.code_edits])


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("c = nn.Conv2d(3, 8, 3)", "c = nn.Conv2d(3, 8, 3, bias=False)"),
        ("c = nn.Conv2d(3, 8, 3,)", "c = nn.Conv2d(3, 8, 3, bias=False,)"),
        ("c = nn.Conv2d(3, 8, 3)  # a, b)", "c = nn.Conv2d(3, 8, 3, bias=False)  # a, b)"),
        ("c = nn.Conv2d(3, 8, 3, bias=True)", "c = nn.Conv2d(3, 8, 3, bias=False)"),
        ("c = nn.Conv2d(3, 8, 3, 1, 0, 1, 1, True)", "c = nn.Conv2d(3, 8, 3, 1, 0, 1, 1, False)"),
        ("s = 'äß'; c = nn.Conv2d(3, 8, (3))", "s = 'äß'; c = nn.Conv2d(3, 8, (3), bias=False)"),
        ("c = nn.Conv2d(3, 8, max(k for k in (1, 3)))", "c = nn.Conv2d(3, 8, max(k for k in (1, 3)), bias=False)"),
        ("c = nn.Conv2d(\n    3,\n    8,\n    3,\n)", "c = nn.Conv2d(\n    3,\n    8,\n    3,\n    bias=False,\n)"),
        ("c = nn.Conv2d(3, 8,\n    3  # taps, )\n)", "c = nn.Conv2d(3, 8,\n    3, bias=False  # taps, )\n)"),
        ("c = nn.Sequential(nn.Conv2d(3, 8, 3), n)", "c = nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), n)"),
    ],
)
@pytest.mark.parametrize("line_break", ["\n", "\r\n"])
def test_a_convolution_without_a_bias(before: str, expected: str, line_break: str) -> None:
    raw, wanted = ((TORCH + text + "\n").replace("\n", line_break).encode() for text in (before, expected))
    fix = fix_of(raw)
    assert after(raw, fix) == wanted
    assert (fix.no_edit, fix.edits_safety, len(fix.edits)) == ("", "unsafe", 1)


@pytest.mark.parametrize(
    ("imports", "before", "expected"),
    [
        (PADDLE, "c = nn.Conv2D(3, 8, 3)", "c = nn.Conv2D(3, 8, 3, bias_attr=False)"),
        (PADDLE, "c = nn.Conv2D(3, 8, 3, bias_attr=None)", "c = nn.Conv2D(3, 8, 3, bias_attr=False)"),
        ("from keras import layers\n", "c = layers.Conv2D(8, 3)(x)", "c = layers.Conv2D(8, 3, use_bias=False)(x)"),
        ("import tensorflow as tf\n", "tf.keras.layers.Conv2D(8, 3)", "tf.keras.layers.Conv2D(8, 3, use_bias=False)"),
        ("from keras.layers import *\n", "c = Conv2D(8, 3)(x)", "c = Conv2D(8, 3, use_bias=False)(x)"),
        (
            "from keras.layers.convolutional import Conv2D\n", "c = Conv2D(8, 3)(x)",
            "c = Conv2D(8, 3, use_bias=False)(x)",
        ),
        (
            "from tensorflow.python.keras.layers import Conv2D\n", "c = Conv2D(8, 3)(x)",
            "c = Conv2D(8, 3, use_bias=False)(x)",
        ),
        (
            "from tensorflow.keras.models import *\nfrom tensorflow.keras.layers import *\n",
            "c = Conv2D(8, 3)(x)", "c = Conv2D(8, 3, use_bias=False)(x)",
        ),
        (
            "from keras.layers import Conv2D\nfrom keras.models import *\n",
            "c = Conv2D(8, 3)(x)", "c = Conv2D(8, 3, use_bias=False)(x)",
        ),
        (
            "from keras.layers import *\nfrom keras.layers import Conv2D\n",
            "c = Conv2D(8, 3)(x)", "c = Conv2D(8, 3, use_bias=False)(x)",
        ),
        ("import flax.linen as nn\n", "c = nn.Conv(8, (3, 3))", "c = nn.Conv(8, (3, 3), use_bias=False)"),
        ("import tensorflow as tf\n", "tf.layers.conv2d(x, 8, 3)", "tf.layers.conv2d(x, 8, 3, use_bias=False)"),
        (
            "import tensorflow.compat.v1 as tf\n",
            "x = tf.layers.conv2d(inputs=x, filters=8)", "x = tf.layers.conv2d(inputs=x, filters=8, use_bias=False)",
        ),
    ],
)  # fmt: skip
def test_other_frameworks_have_other_words_for_it(imports: str, before: str, expected: str) -> None:
    raw = (imports + before).encode()
    assert after(raw, fix_of(raw)) == (imports + expected).encode()


def several(code: str, uses: tuple[BiasUse, ...] = ()) -> list[Fix]:
    """The fixes of all convolutions of a file, each on a line of its own."""
    raw = code.encode()
    layers = []
    for node in ast.walk(ast.parse(raw)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "nn.Conv2d":
            one = record(bias=True, norm_follows=True)
            span = (node.lineno, node.col_offset + 1, node.lineno, (node.end_col_offset or 0) + 1)
            layers.append(replace(one, layer=replace(one.layer, spans={"layer": span, "bias": span})))
    findings = [only(checked(layer)) for layer in layers]
    reading = SourceReading(layers=tuple(layers), bias_uses=uses)
    return [found.fix for found in with_source_edits(findings, reading, lambda _: raw) if found.fix is not None]


def test_a_file_is_parsed_and_compared_once_however_many_edits_it_gets(monkeypatch: pytest.MonkeyPatch) -> None:
    parsings: list[str] = []
    monkeypatch.setattr(python_source, "parsed", lambda text: parsings.append(text) or parsed(text))
    code = TORCH + "".join(f"c{n} = nn.Conv2d(3, 8, 3)  # ä\n" for n in range(20))
    fixes = several(code)
    assert len(fixes) == 20
    for number, fix in enumerate(fixes):
        lines = code.split("\n")
        lines[number + 1] = lines[number + 1].replace("3)", "3, bias=False)")
        assert after(code.encode(), fix).decode() == "\n".join(lines)
    assert len(parsings) == 2  # as it was, and with all edits


def test_where_no_edit_can_be_made_nothing_is_parsed_for_it() -> None:
    assert ["bias comes from `b`" in fix.no_edit for fix in several(f"{TORCH}c = nn.Conv2d(3, 8, 3, bias=b)\n")] == [
        True
    ]


def test_one_edit_that_cannot_be_made_does_not_keep_the_others_from_it() -> None:
    code = f"{TORCH}c = nn.Conv2d(3, 8, 3)\nd = nn.Conv2d(3, 8, 3, bias=b)\ne = nn.Conv2d(k for k in (1, 3))\n"
    first, second, third = several(code)
    assert b"c = nn.Conv2d(3, 8, 3, bias=False)" in after(code.encode(), first)
    assert "bias comes from `b`" in second.no_edit
    assert "not Python" in third.no_edit


@pytest.mark.parametrize(("attribute", "refused"), [("", True), ("c", True), ("d", False), ("cc", False), ("n", False)])
def test_a_use_elsewhere_counts_where_the_file_sets_what_it_names(attribute: str, refused: bool) -> None:
    use = BiasUse(at=at(3, "train.py"), attribute=attribute)
    (fix,) = several(f"{TORCH}self.c = nn.Conv2d(3, 8, 3)\nx = self.n.d.ccc\n", (use,))
    assert fix.no_edit == ("train.py:3: this may use a bias that would be None" if refused else "")


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (f"{TORCH}c = nn.Conv2d(3, 8, 3, bias=b)", "bias comes from `b`, which this file does not set"),
        (
            f"{TORCH}def f(b=True):\n    c = nn.Conv2d(3, 8, 3, bias=b)",
            "`b`, a parameter of `f` (`True` where it is not",
        ),
        (f"{TORCH}c = nn.Conv2d(3, 8, 3, **kw)", "bias may come with its **arguments"),
        (f"{TORCH}c = nn.Conv2d(*sizes)", "bias may come with its *arguments"),
        (f"{TORCH}c = nn.Conv2d(3 for _ in x)", "not Python"),
        (f"{TORCH}def conv3x3(i, o):\n    return nn.Conv2d(i, o, 3)", "whoever calls the function gets this layer"),
        (f"{TORCH}f = lambda i: nn.Conv2d(i, i, 3)", "whoever calls the function gets this layer"),
        ("from own import Conv\nc = Conv(3, 8, 3)", "which arguments `Conv` takes is not known"),
        ("from torch.nn import *\nc = Conv2d(3, 8, 3)", "which arguments `Conv2d` takes is not known"),
        *(
            (f"{stars}\nc = Conv2D(8, 3)(x)", "which arguments `Conv2D` takes is not known")
            for stars in (
                "from keras.layers import *\nfrom own import *", "from keras.layers import *\nfrom .own import *",
                "from keras.layers import *\nfrom own import Conv2D", "from keras.layers import *\nConv2D = own",
                "from keras.layers import *\nfrom tensorflow.keras.layers import *", "from keras.models import *",
            )
        ),
        (f"{PADDLE}c = nn.Conv2D(3, 8, 3, 1, 0, 1)", "which arguments `nn.Conv2D` takes is not known"),
    ],
)  # fmt: skip
def test_where_no_edit_is_sure_the_line_and_the_reason_are_said(code: str, why: str) -> None:
    fix = fix_of(code.encode())
    assert (fix.code_edits, fix.edits) == ((), ())
    assert why in fix.no_edit
    assert fix.no_edit.startswith("net.py:")


def test_files_that_cannot_be_read_are_left_alone() -> None:
    one = record(bias=True, norm_follows=True)
    for raw, why in (
        (None, "cannot be read"),
        (b"c = (", "not Python"),
        (b"\xff", "not text"),
        (b"c = 1\n", "no call"),
    ):
        (finding,) = with_source_edits(checked(one).findings, SourceReading(layers=(one,)), lambda _, raw=raw: raw)
        assert why in finding.fix.no_edit


def test_cells_of_notebooks_are_not_edited() -> None:
    one = record(path="net.ipynb", bias=True, norm_follows=True)
    findings = checked(one, given=("net.ipynb",)).findings
    (finding,) = with_source_edits(findings, SourceReading(layers=(one,)), lambda _: b"{}")
    assert (finding.fix.no_edit, finding.fix.code_edits) == ("the cells of a notebook are not edited", ())


FIXED = {
    "complete": True, "cudnn_benchmark": False, "deterministic": False, "fixed_input_size": True,
    "evidence": (("CIFAR100", at(5, "data.py")),),
}  # fmt: skip
SCRIPT = b"import torch\n\ndef main():\n    '''Trains.'''\n    model = 1\n\nif __name__ == '__main__':\n    main()\n"


def benchmark_fix(insert_at: Location | None, torch: str = "torch", raw: bytes = SCRIPT) -> Fix:
    script = program(**FIXED, insert_at=insert_at, torch_name=torch)
    (finding,) = with_source_edits(checked(script).findings, SourceReading(programs=(script,)), lambda _: raw)
    assert finding.fix is not None
    return finding.fix


def test_the_line_that_switches_tuning_on() -> None:
    fix = benchmark_fix(at(5, "train.py", 5), "th")
    assert after(SCRIPT, fix).decode().split("\n")[3:6] == [
        "    '''Trains.'''", "    th.backends.cudnn.benchmark = True", "    model = 1",
    ]  # fmt: skip
    assert (fix.edits[0].line, fix.edits[0].column, fix.edits_safety) == (5, 5, "unsafe")


@pytest.mark.parametrize(
    ("parameters", "branch", "stays"),
    [
        ("norm=False", "if norm: parts.append(nn.BatchNorm2d(8))", True),
        ("*, norm=None", "if norm is not None:\n  parts += [norm(8)]\n else:\n  parts += [nn.ReLU()]", True),
        ("norm=True", "if norm: parts.append(nn.BatchNorm2d(8))", False),  # by default there is one
        ("norm", "if norm: parts.append(nn.BatchNorm2d(8))", False),
        ("zero=False", "if zero: nn.init.normal_(parts[1].weight)", False),
        ("norm=None", "if norm is None: parts.append(nn.BatchNorm2d(8))", False),
        ("sync=False", "if sync: parts.append(nn.SyncBatchNorm(8))\n else: parts.append(nn.BatchNorm2d(8))", False),
        ("deep=False", "if deep: parts += [nn.BatchNorm2d(8), nn.Conv1d(8, 8, 3)]", True),
        # a shortcut with a norm of its own
        ("skip=False", "if skip:\n  self.skip = nn.Conv1d(8, 8, 1)\n  self.bn = nn.BatchNorm1d(8)", False),
        ("skip=False", "if skip: self.skip = ConvBn(8, 8)", False),
    ],
)
def test_a_bias_stays_where_a_default_leaves_the_norm_out(parameters: str, branch: str, stays: bool) -> None:
    code = f"{TORCH}def make({parameters}):\n parts = [nn.Conv2d(8, 8, 3)]\n {branch}\n return nn.Sequential(*parts)\n"
    fix = fix_of(code.encode())
    assert ("whoever calls the function" in fix.no_edit) is stays
    assert bool(fix.code_edits) is not stays


def test_a_convolution_that_comes_with_its_norm_alone_loses_its_bias() -> None:
    code = (
        f"{TORCH}def make(n=0):\n if n:\n  return nn.Sequential(nn.Conv2d(8, n, 3), nn.BatchNorm2d(n))\n return None\n"
    )
    assert fix_of(code.encode()).code_edits


@pytest.mark.parametrize(
    ("insert_at", "torch", "why"),
    [
        (None, "torch", "train.py:1: no place was found"),
        (at(5, "train.py", 5), "", "train.py:5: no statement at the top level of that file imports torch"),
        (at(6, "train.py", 5), "torch", "train.py:6: no statement begins there"),
    ],
)
def test_where_the_line_cannot_go(insert_at: Location | None, torch: str, why: str) -> None:
    fix = benchmark_fix(insert_at, torch)
    assert fix.code_edits == ()
    assert fix.no_edit.startswith(why)


def test_advice_that_is_no_edit_is_left_as_it_is() -> None:
    wide = record(K=62)
    before = only(checked(wide))
    assert with_source_edits([before], SourceReading(layers=(wide,)), lambda _: b"") == (before,)
