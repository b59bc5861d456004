"""`convlint check --fix` and `--diff` on live models, as they are typed: the code that constructs layers is edited."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from cases import sampled
from command_line import Ran, convlint

from convlint.cli.commands import fix

pytestmark = pytest.mark.slow

IMPORT = "from torch import nn\n\n\n"
PLAIN = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(64, 60, 3, padding=1, bias=False)  # 60
        self.norm = nn.BatchNorm2d(60)
        self.b = nn.Conv2d(60, 124, 3, padding=1)
        self.c = nn.Conv2d(124, 256, 1)
        self.fc = nn.Linear(256, 10)

    def forward(self, x):
        x = self.c(self.b(self.norm(self.a(x)).relu()).relu())
        return self.fc(x.mean((2, 3)))
"""
MENDED = (
    PLAIN.replace("64, 60,", "64, 64,").replace("(60)", "(64)").replace("(60, 124", "(64, 128").replace("(124", "(128")
)
INPUT = ("--input", "64x64x56x56:fp16:channels_last")
UNSAFE = ("--fix", "--unsafe-fixes")
NET = IMPORT + PLAIN


@pytest.fixture(autouse=True)
def _here(here: Path) -> None:
    write(NET)


def write(text: str | bytes, name: str = "net.py") -> None:
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())


def content(name: str = "net.py") -> str:
    return Path(name).read_bytes().decode()


def check(*options: str, model: str = "net:Net") -> Ran:
    return convlint("check", model, *INPUT, "--ignore", "CL510", *options)  # which no file of a model can follow


def entry(name: str, model: str, inputs: str = INPUT[1], more: str = "") -> str:
    return f'[[tool.convlint.models]]\nname = "{name}"\nmodel = "{model}"\ninputs = "{inputs}"\n{more}\n'


@pytest.mark.contract
def test_widths_become_aligned_where_they_are_written_and_a_second_run_changes_nothing() -> None:
    ran = check(*UNSAFE, "-o", "concise")
    assert content() == IMPORT + MENDED
    assert ran.code == 0
    assert "2 findings in 1 file" in ran.err
    assert "3 layers in 1 file on a100: 0 errors, 0 warnings" in ran.out
    ran = check(*UNSAFE, "-o", "concise")
    assert (ran.code, ran.err, content()) == (0, "", IMPORT + MENDED)


GATED = """\
class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.squeeze = nn.Linear(60, 15)
        self.excite = nn.Linear(15, out_features=60)

    def forward(self, x):
        y = self.squeeze(x.mean((2, 3))).relu()
        return x * self.excite(y).sigmoid().view(y.size(0), -1, 1, 1).expand_as(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(64, 60, 3, padding=1)
        self.gate = Gate()
        self.b = nn.Conv2d(60, 124, 3, padding=1, stride=8)
        self.fc = nn.Sequential(nn.Flatten(), nn.Linear(6076, 10))

    def forward(self, x):
        return self.fc(self.b(self.gate(self.a(x))).relu())
"""


@pytest.mark.contract
def test_linear_layers_that_read_or_write_a_width_change_with_it() -> None:
    write(IMPORT + GATED)
    ran = check(*UNSAFE, "-o", "concise")
    mended = GATED.replace("Linear(60,", "Linear(64,").replace("features=60", "features=64")
    mended = mended.replace("(64, 60,", "(64, 64,").replace("(60, 124", "(64, 128").replace("6076", "6272")
    assert content() == IMPORT + mended
    assert "2 findings in 1 file" in ran.err


def test_of_a_product_of_numbers_the_channels_change() -> None:
    write(IMPORT + GATED.replace("6076", "124 * 7 * 7"))
    ran = check(*UNSAFE, "-o", "concise")
    assert "nn.Linear(128 * 7 * 7, 10)" in content()
    assert "2 findings in 1 file" in ran.err


FLAT = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(64, 60, 3, stride=4), nn.Conv2d(60, 20, 3, stride=4)
        self.fc = nn.Linear(20 * 3 * 3, 10)

    def forward(self, x):
        y = self.b(self.a(x).relu()).relu()
        return self.fc(y.reshape(-1, 20 * 3 * 3))
"""


def test_a_view_states_the_new_channels_too() -> None:
    write(IMPORT + FLAT)
    ran = check(*UNSAFE, "-o", "concise")
    assert content() == IMPORT + FLAT.replace("60", "64").replace("20 *", "24 *").replace("20, 3", "24, 3")
    assert "2 findings in 1 file" in ran.err


def test_a_pool_on_the_line_of_a_view_states_nothing() -> None:
    pooled = FLAT.replace("y = self.b(self.a(x).relu()).relu()", "y = self.b(self.a(x).relu())")
    pooled = pooled.replace("y.reshape(", "nn.functional.max_pool2d(y, 3, 1, 1).reshape(")
    write(IMPORT + pooled)
    check(*UNSAFE, "-o", "concise")
    assert content() == IMPORT + pooled.replace("60", "64").replace("20 *", "24 *").replace("20, 3", "24, 3")


HALVED = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(64, 252, 3), nn.Conv2d(126, 64, 3)

    def forward(self, x):
        one, other = self.a(x).split(126, dim=1)
        return self.b(one * other)
"""


@pytest.mark.parametrize(
    "call",
    ["self.a(x).split(126, dim=1)", "self.a(x).split((126, 126), 1)", "torch.split(self.a(x), [126, 126], dim=1)"],
)
def test_what_a_split_states_changes_with_the_width(call: str) -> None:
    text = "import torch\n" + IMPORT + HALVED.replace("self.a(x).split(126, dim=1)", call)
    write(text)
    ran = check(*UNSAFE, "-o", "concise")
    assert content() == text.replace("252", "256").replace("126", "128")
    assert "1 finding in 1 file" in ran.err


def test_two_splits_on_one_line_stay() -> None:
    text = IMPORT + HALVED.replace("one, other = self.a(x).split(126, dim=1)", "y = self.a(x)").replace(
        "one * other", "y.split(126, 1)[0] * y.split(126, 1)[1]"
    )
    write(text)
    ran = check(*UNSAFE, "-o", "concise")
    assert "it has the number more than once" in ran.err
    assert content() == text


SHUFFLED = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(64, 60, 3), nn.Conv2d(15, 64, 3)
        self.shuffle, self.norm = nn.PixelShuffle(2), nn.BatchNorm2d(3 * 5)

    def forward(self, x):
        return self.b(self.norm(self.shuffle(self.a(x))).relu())
"""


def test_a_norm_behind_a_shuffle_that_computes_its_width_keeps_it() -> None:
    write(IMPORT + SHUFFLED)
    ran = check(*UNSAFE, "-o", "concise")
    assert ran.code in (0, 1)
    assert "num_features comes from the expression `3 * 5`" in ran.err
    assert content() == IMPORT + SHUFFLED


@pytest.mark.parametrize(
    ("view", "why"),
    [
        ("y.reshape(-1, 10 * 18)", "the view states `10 * 18`"),
        ("y.reshape(-1, 180).reshape(-1, 180)", "it has the number more than once"),
    ],
)
def test_what_a_view_states_in_another_way_stays(view: str, why: str) -> None:
    write(IMPORT + FLAT.replace("y.reshape(-1, 20 * 3 * 3)", view))
    ran = check(*UNSAFE, "-o", "concise")
    assert f"net.py:12: {why}" in ran.err
    assert "nn.Conv2d(60, 20," not in content()
    assert " 20, 3, stride=4)" in content()


def test_a_line_that_views_the_maps_of_several_networks_changes_for_all() -> None:
    two = """

class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = Net(), Net()

    def forward(self, x):
        return self.a(x) + self.b(x)
"""
    write(IMPORT + FLAT + two)
    check(*UNSAFE, "-o", "concise", model="net:Two")
    assert content() == IMPORT + FLAT.replace("60", "64").replace("20 *", "24 *").replace("20, 3", "24, 3") + two


@pytest.mark.parametrize("product", ["124 * int(49)", "62 * 98", "124 * 49 * SIZE"])
def test_a_linear_layer_that_computes_its_width_keeps_it(product: str) -> None:
    write("SIZE = 1\n" + IMPORT + GATED.replace("6076", product))
    ran = check(*UNSAFE, "-o", "concise")
    assert f"in_features comes from the expression `{product}`" in ran.err
    assert "nn.Conv2d(60, 124" not in content()
    assert ", 124, 3, padding=1, stride=8)" in content()


def test_how_many_could_be_fixed_is_said_and_safe_fixes_leave_widths_alone() -> None:
    ran = check("--fix")
    assert "[*] 2 fixable with --fix --unsafe-fixes" in ran.out
    assert (ran.code, content()) == (1, NET)


def test_a_diff_is_what_fix_writes() -> None:
    ran = check("--diff", "--unsafe-fixes")
    assert ran.code == 1
    assert ran.out.startswith("--- net.py\n+++ net.py\n")
    assert ran.err == "convlint: would fix 2 findings in 1 file\n"
    assert content() == NET
    subprocess.run(["patch", "-s", "-p0"], input=ran.out, text=True, check=True)
    assert content() == IMPORT + MENDED
    assert check("--diff", "--unsafe-fixes") == (0, "", "convlint: nothing would be fixed\n")


@pytest.mark.contract
def test_a_bias_before_a_norm_goes() -> None:
    ran = check(*UNSAFE, "--select", "CL506", "--fail-on", "info")
    assert content() == NET.replace(
        "self.a = nn.Conv2d(64, 60, 3, padding=1)", "self.a = nn.Conv2d(64, 60, 3, padding=1, bias=False)"
    )
    assert ran.code == 0


def test_a_width_that_comes_from_elsewhere_stays_and_the_note_says_where_it_is() -> None:
    text = NET.replace("def __init__(self)", "def __init__(self, width=60)").replace(
        "Conv2d(60, 124", "Conv2d(width, 124"
    )
    write(text)
    ran = check(*UNSAFE, "--quiet", "-o", "concise")
    assert ran.code == 1
    assert content() == text.replace("124", "128")
    why = "in_channels comes from `width`, a parameter of `Net.__init__` (`60` where it is not given) at net.py:5"
    assert ran.err == f"convlint: net:Net: CL102 of a is not fixed: net.py:9: {why}\n"  # also where it is to be quiet


@pytest.mark.parametrize(
    ("before", "after"),
    sampled([
        (NET.replace("\n", "\r\n").encode(), (IMPORT + MENDED).replace("\n", "\r\n").encode()),
        (("\ufeff" + NET).encode(), ("\ufeff" + IMPORT + MENDED).encode()),
        (("# coding: latin-1\n" + NET.replace("# 60", "# größer")).encode("latin-1"),
         ("# coding: latin-1\n" + IMPORT + MENDED.replace("# 60", "# größer")).encode("latin-1")),
        (("\f\n" + NET.replace("    ", "\t")).encode(), ("\f\n" + (IMPORT + MENDED).replace("    ", "\t")).encode()),
    ], 4),
    ids=["CRLF", "BOM", "latin-1", "form feed and tabs"],
)  # fmt: skip
def test_all_other_bytes_stay(before: bytes, after: bytes) -> None:
    write(before)
    assert check(*UNSAFE).code == 0
    assert Path("net.py").read_bytes() == after


def test_a_diff_that_cannot_be_applied_says_so() -> None:
    write(("# coding: latin-1\n" + NET.replace("# 60", "# größer")).encode("latin-1"))
    ran = check("--diff", "--unsafe-fixes")
    assert "+        self.a = nn.Conv2d(64, 64, 3, padding=1, bias=False)  # größer\n" in ran.out
    assert "net.py: this diff cannot be applied" in ran.err


PACKAGE = {
    "src/mine/__init__.py": "",
    "src/mine/blocks.py": IMPORT + "def stem():\n    return nn.Conv2d(64, 60, 3, padding=1)\n",
    "src/mine/net.py": "import inspect\n\n" + IMPORT + """\
from . import blocks


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        assert "self.stem = blocks.stem()" in inspect.getsource(type(self))
        self.stem = blocks.stem()
        self.head = nn.Conv2d(60, 256, 3)

    def forward(self, x):
        return self.head(self.stem(x))
""",
}  # fmt: skip


def package() -> None:
    for name, text in PACKAGE.items():
        write(text, name) if Path("src").exists() else (Path("src").mkdir(), write(text, name))
    write(entry("net", "mine.net:Net"), "pyproject.toml")


def test_several_files_change_together() -> None:
    package()
    ran = convlint("check", "--models", "--ignore", "CL510", *UNSAFE)
    assert (ran.code, content("src/mine/net.py")) == (0, PACKAGE["src/mine/net.py"].replace("60", "64"))
    assert content("src/mine/blocks.py") == PACKAGE["src/mine/blocks.py"].replace("60", "64")
    assert "fixed 1 finding in 2 files" in ran.err


def test_of_several_files_all_are_written_or_none() -> None:
    package()
    os.chmod("src/mine/net.py", 0o444)
    ran = convlint("check", "--models", *UNSAFE, "-o", "concise")
    assert ran.code == 3
    assert "src/mine/net.py: error: is not fixed: it is read-only" in ran.out
    assert "CL102" in ran.out  # the report is of the files as they are
    assert {name: content(name) for name in PACKAGE} == PACKAGE
    assert ran.err == ""


TWO = NET + "\n\n" + PLAIN.replace("class Net", "class Other").replace("60", "28").replace("124", "92")


def test_two_models_in_one_file_are_mended_together() -> None:
    write(TWO)
    write(entry("one", "net:Net") + entry("other", "net:Other"), "pyproject.toml")
    diff = convlint("check", "--models", "--diff", "--unsafe-fixes")
    assert diff.out.count("--- net.py") == 1
    ran = convlint("check", "--models", *UNSAFE, "-o", "concise", "-j", "2")
    mended = MENDED.replace("class Net", "class Other")
    assert content() == IMPORT + MENDED + "\n\n" + mended.replace("128", "96").replace(", 64, 3", ", 32, 3").replace(
        "(64)", "(32)"
    ).replace("(64, 96", "(32, 96").replace("# 60", "# 28")
    assert "fixed 4 findings in 1 file" in ran.err
    after, _ = content(), write(TWO)
    subprocess.run(["patch", "-s", "-p0"], input=diff.out, text=True, check=True)
    assert content() == after
    assert convlint("check", "--models", "--diff", "--unsafe-fixes").code == 0


def test_one_network_under_two_names_is_mended_for_both() -> None:
    write(entry("train", "net:Net") + entry("small", "net:Net", "64x64x28x28:fp16:channels_last"), "pyproject.toml")
    ran = convlint("check", "--models", "--ignore", "CL306,CL510", *UNSAFE, "-o", "concise")
    assert content() == IMPORT + MENDED
    assert ran.code == 0
    assert "6 layers in 2 files on a100: 0 errors, 0 warnings" in ran.out


SHARED = (
    IMPORT
    + """\
class Stem(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv2d(64, 60, 3, padding=1))


class Net(nn.Sequential):
    def __init__(self):
        super().__init__(Stem(), nn.Conv2d(60, 256, 3))


class Other(nn.Sequential):
    def __init__(self, width):
        super().__init__(Stem(), nn.Conv2d(width, 256, 3))
"""
)


def test_what_another_model_would_break_on_stays() -> None:
    write(SHARED)
    write(entry("net", "net:Net") + entry("other", "net:Other(60)"), "pyproject.toml")
    ran = convlint("check", "--models", *UNSAFE, "-o", "concise")
    assert (ran.code, content()) == (1, SHARED)
    assert "convlint: net: CL102 of 0.0 is not fixed: other would not run any more: " in ran.err


def test_what_runs_no_more_stays() -> None:
    text = NET.replace("x = self.c(", "assert self.a.out_channels == 60\n        x = self.c(")
    write(text)
    ran = check(*UNSAFE, "-o", "concise")
    assert content() == text.replace("124", "128")  # what goes well alone is kept
    assert "CL102 of a is not fixed: net:Net would not run any more: " in ran.err
    assert "raises AssertionError at net.py:14" in ran.err
    assert ran.code == 1


def test_what_runs_in_train_mode_only_has_a_say() -> None:
    text = NET.replace("Linear(256, 10)", "Linear(256, 10)\n        self.aux = nn.Conv2d(124, 16, 1)")
    text = text.replace("x = self.c(", "self.aux(self.b(self.a(x))) if self.training else 0\n        x = self.c(")
    write(text)
    ran = check(*UNSAFE, "-o", "concise")
    assert content() == text.replace("64, 60,", "64, 64,").replace("(60)", "(64)").replace("(60, 124", "(64, 124")
    assert "CL102 of b is not fixed: net:Net would not run any more in train mode: " in ran.err


def test_code_that_is_not_the_projects_stays(tmp_path: Path) -> None:
    library = tmp_path / "lib" / "site-packages"
    library.mkdir(parents=True)
    (library / "theirs.py").write_text(NET)
    write("import sys\nsys.path.insert(0, 'lib/site-packages')\nfrom theirs import Net\n")
    ran = check(*UNSAFE, "-o", "concise")
    assert (library / "theirs.py").read_text() == NET
    assert ran.code == 1
    assert "is not fixed: " in ran.err


@pytest.mark.contract
def test_what_is_silenced_is_not_fixed() -> None:
    text = NET.replace("# 60", "# convlint: ignore[CL102] -- 60")
    write(text)
    assert check(*UNSAFE, "--select", "CL102", "--fail-on", "info").code == 0
    assert content() == text.replace("124", "128")


def test_findings_carry_the_edits_of_what_is_written_then() -> None:
    write(NET.replace("60", "98").replace(", bias=False", ""))
    found = {finding["code"]: finding for finding in json.loads(check("-o", "json").out)["findings"]}
    at = content().index("padding=1)") + len("padding=1")
    assert found["CL506"]["fix"]["code_edits"] == [{"path": "net.py", "start": at, "end": at, "new": ", bias=False"}]
    ran = check(*UNSAFE, "-o", "json")
    after = IMPORT + MENDED.replace("64, 64,", "64, 104,").replace("(64)", "(104)").replace("(64, 128", "(104, 128")
    assert content() == after.replace("# 60", "# 98")
    left = {finding["code"]: finding for finding in json.loads(ran.out)["findings"]}
    assert left.keys().isdisjoint(("CL102", "CL506"))


def test_the_report_shows_the_lines_that_are_written() -> None:
    write('[tool.convlint.severity]\nCL302 = "warning"\n', "pyproject.toml")  # which no fix mends
    ran = check(*UNSAFE, "--verbose")
    assert "10 │         self.c = nn.Conv2d(128, 256, 1)" in ran.out


def test_what_the_code_prints_is_heard_once() -> None:
    write(NET + "\n\nprint('hello')\n")
    ran = check(*UNSAFE)
    assert ran.err == "hello\nconvlint: fixed 2 findings in 1 file\n"


def test_no_edit_is_offered_of_what_is_silenced() -> None:
    write(NET.replace("self.b = nn.Conv2d(60, 124, 3, padding=1)", "self.b = nn.Conv2d(60, 124, 3, padding=1)"
                      "  # convlint: ignore[CL102]"))  # fmt: skip
    before = content()
    found = json.loads(check("--select", "CL102", "--fail-on", "info", "-o", "json").out)["findings"]
    check(*UNSAFE, "--select", "CL102", "--fail-on", "info")
    assert content() == before
    assert all(not finding["fix"]["code_edits"] for finding in found)


def test_an_interrupt_between_two_files_leaves_both_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    package()
    real, written = fix.replace_file, list[str]()

    def interrupted(path: str, data: str | bytes) -> None:
        written.append(path)
        if len(written) == 2:
            raise KeyboardInterrupt
        real(path, data)

    monkeypatch.setattr(fix, "replace_file", interrupted)
    assert convlint("check", "--models", *UNSAFE).code == 130
    assert len(written) >= 3
    assert {name: content(name) for name in PACKAGE} == PACKAGE


def test_what_no_constructor_states_is_said_with_the_line_that_does() -> None:
    """Memory format, autocast and the like are a script's; a bias that a norm cancels is written."""
    write(NET.replace(", bias=False", ""))
    ran = convlint("check", "net:Net", "--input", "64x64x56x56:fp32", "--gpu", "a100", *UNSAFE)
    assert "CL401 of a, b, c is not fixed: the script that runs the model has to say model.to(memory_format=" in ran.err
    assert (
        'CL106 of a, b, c is not fixed: the script that runs the model has to say with torch.autocast("cuda"' in ran.err
    )
    assert "nn.Conv2d(64, 60, 3, padding=1, bias=False)" in content()


def test_the_time_after_the_fix_is_that_of_what_can_be_written() -> None:
    options = ("--input", "64x64x56x56:fp32", "--gpu", "a100", "-o", "json")
    first = json.loads(convlint("check", "net:Net", *options).out)
    by_code = {finding["code"]: finding["fix"] for finding in first["findings"] if finding["advised"]}
    assert not by_code["CL401"]["applicable"]
    assert "torch.channels_last" in by_code["CL401"]["no_edit"]
    after = json.loads(convlint("check", "net:Net", *options, *UNSAFE).out)
    assert after["summary"]["time_us"] == pytest.approx(first["summary"]["time_after_fix_us"], rel=0.01)
