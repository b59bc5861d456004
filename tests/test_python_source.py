"""`convlint check` on Python source that is not run: findings, coverage and unread files, in every format."""

import html
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from checkout import ROOT
from command_line import Ran, convlint
from specs import BAD, GOOD

pytestmark = pytest.mark.usefixtures("here")
LAYOUTS = ROOT / "tests" / "layouts"
QUIET_NET = """\
import torch.nn as nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(64, 128, 3, padding=1, bias=False)

    def forward(self, x):
        return self.conv(x)
"""
CONFLICT = """\
import torch


def main():
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = True
    model = torch.nn.Conv2d(4, 8, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.rand(1, 4, 8, 8)).mean().backward()
    optimizer.step()


if __name__ == "__main__":
    main()
"""
BROKEN = "import torch\ndef f(:\n"


def files(**texts: str) -> None:
    for name, text in texts.items():
        path = Path(name.replace("__", "/").replace("_py", ".py").replace("_yaml", ".yaml"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def last(ran: Ran) -> str:
    return ran.out.splitlines()[-1]


def test_a_file_without_a_flaw_is_silent() -> None:
    files(net_py=QUIET_NET, other_py="x = 1\n")
    for words in ((".",), ("net.py",), ("other.py",), ("*.py",), ()):
        ran = convlint("check", *words)
        assert (ran.code, ran.out.count("\n"), ran.err) == (0, 1, ""), ran.out
    assert last(convlint("check", "other.py")) == "0 convolutions in 1 Python file: 0 errors, 0 warnings"
    assert last(convlint("check", ".")) == "1 convolution in 2 Python files: 0 errors, 0 warnings"


def test_a_finding_with_its_line() -> None:
    files(train_py=CONFLICT)
    ran = convlint("check", "train.py", "--select", "CL503", "--verbose")
    assert ran.code == 1
    assert "── train.py ──" in ran.out
    assert "  warning CL503 deterministic-limits-autotune: cudnn.benchmark=True at\n    train.py:6" in ran.out
    assert "      ┌─ train.py:6:5\n    6 │     torch.backends.cudnn.benchmark = True\n" in ran.out


def test_specs_and_python_in_one_run() -> None:
    files(train_py=CONFLICT, good_yaml=GOOD, other_yaml="a: 1\n")
    ran = convlint("check", ".", "--select", "CL503")
    assert last(ran) == ("1 layer in 1 file on a100, 1 convolution and 1 program in 1 Python file: 0 errors, 1 warning")
    assert convlint("check", ".", "--specs-only", "--select", "CL503").code == 0
    assert "Python" not in convlint("check", ".", "--specs-only").out
    assert convlint("check", "train.py", "--specs-only").code == 0


def test_what_cannot_be_parsed_is_an_error_where_it_is_named() -> None:
    files(broken_py=BROKEN, net_py=QUIET_NET)
    ran = convlint("check", "broken.py", "net.py")
    assert ran.code == 3
    assert "error: syntax error: invalid syntax\n      ┌─ broken.py:2:7\n" in ran.out
    assert last(ran).endswith("; 1 input not read")
    ran = convlint("check", ".")
    assert ran.code == 0
    assert "  not read: 1 of 2 Python files: broken.py:2:7 (syntax error: invalid syntax)\n" in ran.out
    assert last(ran) == "1 convolution in 1 Python file: 0 errors, 0 warnings; 1 Python file not read"


NOTEBOOKS = {
    '{"cells": [': (":1:12", "no valid JSON: Expecting value; save it again with Jupyter, or leave it out"),
    "[1]": ("", "JSON, but no notebook: it has no nbformat; save it again with Jupyter, or leave it out"),
    '{"nbformat": 3}': ("", "a notebook of format 3, which is not read: `jupyter nbconvert --to notebook --inplace`"),
    '{"nbformat": 5}': ("", "a notebook of format 5, which is newer than convlint: it reads format 4"),
}


@pytest.mark.parametrize("content", NOTEBOOKS)
def test_a_notebook_that_cannot_be_read_has_advice(content: str) -> None:
    Path("bad.ipynb").write_text(content)
    files(net_py=QUIET_NET)
    at, why = NOTEBOOKS[content]
    assert convlint("check", "bad.ipynb", "-o", "concise").out.startswith(f"bad.ipynb{at}: error: {why}")
    assert convlint("check", ".", "-o", "concise").out.startswith(
        f"not read: 1 of 2 Python files: bad.ipynb{at} ({why}"
    )


def test_a_cell_that_cannot_be_read_is_named() -> None:
    cells = [QUIET_NET, "%pip install x\nfor x in range(3:\n    pass\n", "%%bash\nls |"]
    document = {"nbformat": 4, "cells": [{"cell_type": "code", "source": each} for each in cells]}
    Path("net.ipynb").write_text(json.dumps(document, indent=1))
    ran = convlint("check", ".")
    assert ran.code == 0
    assert "  not read: 1 cell: net.ipynb:cell 2:2:" in ran.out
    assert last(ran).startswith("1 convolution in 1 Python file: 0 errors, 0 warnings; 1 cell not read")
    assert "; 1 cell not read." in convlint("check", ".", "-o", "markdown").out
    for output in ("concise", "github"):
        assert "not read: 1 cell: net.ipynb:cell 2:2:" in convlint("check", ".", "-o", output).out
    (unread,) = json.loads(convlint("check", ".", "-o", "json").out)["source"]["unread_cells"]
    assert (unread["path"], unread["cell"], unread["cell_line"]) == ("net.ipynb", 2, 2)
    assert unread["why"].startswith("syntax error: ")
    ran = convlint("check", "net.ipynb", "-o", "concise")
    assert ran.code == 3
    assert f"net.ipynb:{unread['line']}: error: cell 2, line 2: syntax error: " in ran.out
    assert last(ran) == "1 convolution in 1 Python file: 0 errors, 0 warnings; 1 input incomplete"


@pytest.mark.parametrize("options", [("-o", "concise"), ("-o", "github"), ("-q",)])
def test_files_that_could_not_be_read_are_named_briefly(options: tuple[str, ...]) -> None:
    files(**{f"broken{n}_py": BROKEN for n in range(5)}, net_py=QUIET_NET)
    each = "(syntax error: invalid syntax)"
    ran = convlint("check", ".", *options)
    assert ran.code == 0
    assert ran.out.splitlines() == [
        f"not read: 5 of 6 Python files: broken0.py:2:7 {each}; broken1.py:2:7 {each}; broken2.py:2:7 {each};"
        " and 2 more",
        "1 convolution in 1 Python file: 0 errors, 0 warnings; 5 Python files not read",
    ]
    ran = convlint("check", ".", "broken0.py", *options)
    assert ran.code == 3
    assert "not read: 4 of 6 Python files: broken1.py:2:7 " in ran.out


def test_code_scanning_is_told_what_could_not_be_read() -> None:
    files(broken_py=BROKEN, net_py=QUIET_NET)
    ran = convlint("check", ".", "-o", "sarif")
    assert ran.code == 0
    (invocation,) = json.loads(ran.out)["runs"][0]["invocations"]
    (told,) = invocation["toolExecutionNotifications"]
    place = told["locations"][0]["physicalLocation"]
    assert invocation["executionSuccessful"] is True
    assert (told["level"], told["message"]["text"]) == ("warning", "syntax error: invalid syntax")
    assert (place["artifactLocation"]["uri"], place["region"]) == ("broken.py", {"startLine": 2, "startColumn": 7})


def test_a_comment_names_files_that_could_not_be_read() -> None:
    files(broken_py=BROKEN, net_py=QUIET_NET)
    page = html.unescape(convlint("check", ".", "-o", "markdown").out).replace("\u2060", "")
    assert "not read: 1 of 2 Python files: broken.py:2:7 (syntax error: invalid syntax)\n" in page


@pytest.mark.parametrize("command", [("estimate",), ("plan",), ("sweep", "-N", "1,8"), ("export",)])
@pytest.mark.parametrize("path", [".", "net.py"])
def test_where_sizes_are_needed_it_says_what_to_name_instead_of_source(command: tuple[str, ...], path: str) -> None:
    files(net_py=QUIET_NET)
    ran = convlint(*command, path)
    assert ran.code == 3
    said = " ".join((ran.out + ran.err).split())
    assert "no sizes (N, H, W)" in said
    assert "package.module:Net --input 64x3x224x224, or by --model one that [[tool.convlint.models]] has" in said


HOSTILE = {
    "null": b"import torch\nx = 1\0\n",
    "two": b"import torch\nprint 'x'\n",
    "deep": b"import torch\nx = " + b"-" * 100_000 + b"1\n",
    "dots": b"import torch\nx = " + b"a." * 50_000 + b"b\n",
    "coding": b"# coding: klingon\nimport torch\n",
    "latin": b"import torch\nx = '\xe9'\n",
    "large": b"import torch\n" + b"x = 1\n" * 9_000_000,
    "indent": b"import torch\nif 1:\n\tx = 1\n        y = 2\n",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_nobody_can_read_ends_nothing(name: str) -> None:
    Path("bad.py").write_bytes(HOSTILE[name])
    files(net_py=QUIET_NET)
    ran = convlint("check", "bad.py", "-o", "concise")
    assert ran.code == 3
    assert re.match(r"bad\.py(:\d+){0,2}: error: ", ran.out)
    assert convlint("check", ".").code == 0


@pytest.mark.parametrize("code", ["+".join(["1"] * 600), "a" + ".b(1)" * 230])
@pytest.mark.parametrize("fixing", [(), ("--fix", "--unsafe-fixes")])
def test_expressions_that_python_reads_and_cannot_write_again(code: str, fixing: tuple[str, ...]) -> None:
    text = f"""\
from torch import nn

class Net(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.a = nn.Conv2d(60, {code}, 3)
        self.b = nn.Conv2d(60, 60, 3)
        self.norm = nn.BatchNorm2d(60)
        if {code}:
            self.norm.eval()

    def forward(self, x):
        return self.norm(self.a(x))
"""
    files(net_py=text)
    ran = convlint("check", "net.py", "-o", "concise", *fixing)
    assert (ran.code, ran.err) == (0, "")
    assert "net.py:7:28: info CL102" in ran.out


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf" + CONFLICT.encode(),
        CONFLICT.replace("\n", "\r\n").encode(),
        b"# -*- coding: latin-1 -*-\nx = '\xe9'\n" + CONFLICT.encode(),
        b"\x0c\n" + CONFLICT.encode(),
    ],
)
def test_what_python_itself_reads_is_read(content: bytes) -> None:
    Path("train.py").write_bytes(content)
    ran = convlint("check", "train.py", "--select", "CL503", "-o", "concise")
    assert (ran.code, ": warning CL503 " in ran.out) == (1, True)


@pytest.mark.parametrize("name", ["torch", "typing", "json", "ast"])
def test_a_file_that_shadows_a_module_is_read_and_not_run(name: str) -> None:
    Path(f"{name}.py").write_text("raise SystemExit(7)\n")
    Path("train.py").write_text(CONFLICT)
    ran = subprocess.run(
        [sys.executable, "-m", "convlint", "check", ".", "--select", "CL503", "-o", "concise"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stderr) == (1, "")
    assert "train.py:6:5: warning CL503" in ran.stdout


def test_names_and_kinds_of_files_that_mean_no_good() -> None:
    for name in ("esc\x1b[31m.py", "line\n::error::x.py"):
        Path(name).write_text(CONFLICT)
    os.mkfifo("fifo.py")
    Path("folder.py").mkdir()
    Path("folder.py/net.py").write_text(QUIET_NET)
    Path("loop.py").symlink_to("loop.py")
    Path("self").symlink_to(".")
    ran = convlint("check", ".", "--select", "CL503", "-o", "github")
    assert ran.code == 1
    assert "\x1b" not in ran.out
    assert [line[:9] for line in ran.out.splitlines() if line.startswith("::")] == ["::warning", "::warning"]
    assert convlint("check", "folder.py").out.startswith("1 convolution in 1 Python file")
    for name in ("fifo.py", "loop.py"):
        assert convlint("check", name).code == 3


def test_imports_that_go_round_in_circles() -> None:
    files(
        a_py="from b import *\nimport torch\n\n\nclass A(B):\n    pass\n",
        b_py="from a import *\n\n\nclass B(A):\n    pass\n",
    )
    assert convlint("check", ".").code == 0


def test_references_and_their_hint_mean_what_they_did() -> None:
    files(model_py=QUIET_NET)
    ran = convlint("check", "model.py:Net")
    assert (ran.code, "a module is named as it is imported: model " in " ".join(ran.out.split())) == (3, True)
    assert convlint("estimate", "model.py").code == 3
    assert "`convlint check` alone reads it" in " ".join(convlint("estimate", "model.py").out.split())


@pytest.mark.parametrize("jobs", [2, 3])
def test_the_report_is_the_same_from_several_processes(jobs: int) -> None:
    for number in range(17):
        files(
            **{
                f"p{number:02}__train_py": CONFLICT.replace("8, 3", f"{4 + number}, 3"),
                f"p{number:02}__net_py": QUIET_NET,
            }
        )
    files(p03__bad_py=BROKEN)
    one, several = (convlint("check", ".", "-o", "json", "-j", str(count)) for count in (1, jobs))
    assert one.out == several.out
    assert json.loads(one.out)["source"]["files"] == 34
    assert one.code == several.code == 1


# suppressing


def test_comments_the_config_and_a_baseline_silence() -> None:
    lines = CONFLICT.splitlines()
    lines[5] += "  # convlint: ignore[CL503] -- measured"
    files(train_py="\n".join(lines))
    ran = convlint("check", "train.py", "--select", "CL503,CL9")
    assert (ran.code, "suppressed: 1 finding (1 by comment)" in ran.out) == (0, True)
    files(train_py=CONFLICT.replace("import torch\n", "import torch  # convlint: ignore[CL503] -- nothing here\n", 1))
    ran = convlint("check", "train.py", "--select", "CL503,CL9", "-o", "concise")
    assert "train.py:1:34: warning CL901 unused-suppression" in ran.out
    files(train_py=CONFLICT)
    Path("convlint.toml").write_text('select = ["CL503"]\n[per-file-ignores]\n"train.py" = ["CL503"]\n')
    assert "suppressed: 1 finding (1 by config)" in convlint("check", ".").out
    Path("convlint.toml").write_text('select = ["CL503"]\n')
    assert convlint("check", ".", "--write-baseline", "known.json").code == 0
    assert convlint("check", ".", "--baseline", "known.json").code == 0
    files(train_py="\n\n" + CONFLICT)
    assert convlint("check", ".", "--baseline", "known.json").code == 0
    files(train_py=CONFLICT.replace("deterministic = True", "deterministic = False"))
    assert "no longer occurs" in convlint("check", ".", "--baseline", "known.json").err


def test_entries_of_the_config() -> None:
    files(tool_py=CONFLICT.replace('if __name__ == "__main__":\n    main()\n', ""))
    assert convlint("check", ".", "--select", "CL503").code == 0
    Path("convlint.toml").write_text('[source]\nentry = ["tool.py"]\n')
    assert last(convlint("check", ".")).startswith("1 convolution and 1 program")
    Path("convlint.toml").write_text('[source]\nentry = ["tols.py"]\n')
    ran = convlint("check", ".")
    assert (ran.code, "convlint.toml:2:10: 'tols.py' is no file" in ran.err) == (2, True)


# formats


def test_every_format_points_at_file_and_line() -> None:
    files(train_py=CONFLICT)
    outputs = {name: convlint("check", ".", "--select", "CL503", "-o", name).out for name in
               ("github", "gitlab", "sarif", "junit", "rdjson", "markdown", "json")}  # fmt: skip
    assert "::warning file=train.py,line=6,endLine=6,col=5," in outputs["github"]
    (issue,) = json.loads(outputs["gitlab"])
    assert issue["location"] == {"path": "train.py", "lines": {"begin": 6}}
    (result,) = json.loads(outputs["sarif"])["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "train.py"
    assert (place["region"]["startLine"], place["region"]["startColumn"]) == (6, 5)
    (suite,) = ElementTree.fromstring(outputs["junit"])
    assert suite.get("name") == "train.py"
    assert "train.py:6:5: warning CL503" in (suite[0][0].text or "")
    (diagnostic,) = json.loads(outputs["rdjson"])["diagnostics"]
    assert diagnostic["location"]["range"]["start"] == {"line": 6, "column": 5}
    assert "<code>train.py&#58;6&#58;5</code>" in outputs["markdown"]
    document = json.loads(outputs["json"])
    (layer,) = document["source"].pop("layers")
    assert layer == {
        "name": "main.model", "path": "train.py", "line": 7, "column": 13, "framework": "pytorch", "op": "conv",
        "C": 4, "K": 8, "H": 8, "W": 8, "R": 3, "S": 3, "U": 1, "V": 1, "groups": 1, "bias": True,
        "certainty": "stated", "condition": None,
    }  # fmt: skip
    assert document["source"] == {
        "files": 1, "programs": 1, "constructions": 1, "known": 1, "unread": [], "unread_files": [], "unread_cells": [],
    }  # fmt: skip
    assert (document["summary"]["files"], document["layers"], document["totals"]) == (1, [], [])


def test_notebooks_say_the_cell_to_people_and_the_line_to_forges() -> None:
    cell = {"cell_type": "code", "metadata": {}, "execution_count": None, "outputs": []}
    first, *rest = CONFLICT.splitlines(keepends=True)
    document = {
        "cells": [{"cell_type": "markdown", "metadata": {}, "source": ["# Title"]},
                  {**cell, "source": ["!nvidia-smi\n", first]}, {**cell, "source": rest}],
        "metadata": {}, "nbformat": 4, "nbformat_minor": 5,
    }  # fmt: skip
    text = json.dumps(document, indent=1)
    Path("train.ipynb").write_text(text)
    ran = convlint("check", "train.ipynb", "--select", "CL503", "--verbose")
    assert ran.code == 1
    assert "      ┌─ train.ipynb:cell 3:5:5\n    5 │     torch.backends.cudnn.benchmark = True\n" in ran.out
    assert "at train.ipynb:cell 3:5 follows" in " ".join(ran.out.split())
    line = 1 + text[: text.index("benchmark = True")].count("\n")
    assert f"file=train.ipynb,line={line},title" in convlint("check", ".", "--select", "CL503", "-o", "github").out
    (finding,) = json.loads(convlint("check", ".", "--select", "CL503", "-o", "json").out)["findings"]
    assert (finding["line"], finding["column"]) == (line, None)
    assert (finding["cell"], finding["cell_line"], finding["cell_column"]) == (3, 5, 5)
    Path("train.ipynb").write_text(json.dumps(document))
    ran = convlint("check", "train.ipynb", "--select", "CL503")
    assert "      ┌─ train.ipynb:cell 3:5:5\n      lost" not in ran.out
    assert "│" not in ran.out


MAPPED = """\
import torch.nn as nn


class Block(nn.Module):
    def __init__(self, channels, width):
        super().__init__()
        self.conv = nn.Conv2d(channels, width, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(width)

    def forward(self, x):
        return self.norm(self.conv(x))


class Net(nn.Module):
    def __init__(self, width=60):
        super().__init__()
        self.stem = Block(3, width)
        self.pool = nn.MaxPool2d(2)
        self.body = nn.Conv2d(width, 62, 3, padding=1)
        self.last = nn.Conv2d(62, 64, 3)

    def forward(self, x):
        return self.last(self.body(self.pool(self.stem(x))))
"""


def test_with_an_input_the_maps_of_a_network_are_known() -> None:
    files(net_py=MAPPED)
    assert not re.search(r" at \d", convlint("check", ".", "-o", "concise").out)
    Path("pyproject.toml").write_text('[tool.convlint.source]\ninput = "3x224x160"\n')
    document = json.loads(convlint("check", ".", "-o", "json").out)
    sizes = [(each["name"], each["C"], each["K"], each["H"], each["W"]) for each in document["source"]["layers"]]
    assert sizes == [
        ("Block.conv", 3, 60, 224, 160), ("Net.body", 60, 62, 56, 40), ("Net.last", 62, 64, 56, 40)
    ]  # fmt: skip
    said = {(each["code"], each["line"]): each["message"] for each in document["findings"]}
    assert said["CL506", 7].endswith("the normalisation that reads this layer, at 224x160")
    assert said["CL102", 20].startswith("C=62 of Net.last at 56x40: no multiple of 8")
    # two maps, so that none is named
    width = "K=60 of Block.conv, C=60 of Net.body: no multiple of 8 (fp16, bf16), but of 4, which is enough for tf32"
    assert said["CL102", 15] == f"{width}, with width=60, the default at net.py:15"


def test_a_training_script_is_not_asked_about_where_networks_are_for_inference() -> None:
    shutil.copytree(LAYOUTS / "package_entry", ".", dirs_exist_ok=True)
    assert "CL501" in convlint("check", ".", "-o", "concise").out
    ran = convlint("check", ".", "-o", "concise", "--mode", "inference")
    assert "CL501" not in ran.out
    assert "CL506" not in ran.out


# mending


def test_a_diff_and_a_fix() -> None:
    shutil.copytree(LAYOUTS / "package_entry", ".", dirs_exist_ok=True)
    before = Path("train.py").read_text()
    ran = convlint("check", ".", "--select", "CL501", "--diff")
    assert (ran.code, ran.out) == (0, "")
    assert "nothing would be fixed" in ran.err
    ran = convlint("check", ".", "--select", "CL501", "--diff", "--unsafe-fixes")
    assert ran.code == 1
    assert "+    torch.backends.cudnn.benchmark = True\n" in ran.out
    assert Path("train.py").read_text() == before
    ran = convlint("check", ".", "--select", "CL501", "--fix", "--unsafe-fixes")
    assert (ran.code, "fixed 1 finding in 1 file" in ran.err) == (0, True)
    assert Path("train.py").read_text().replace("    torch.backends.cudnn.benchmark = True\n", "") == before
    assert convlint("check", ".", "--select", "CL501", "--diff", "--unsafe-fixes").code == 0


def test_bad_specs_are_mended_beside_python() -> None:
    files(bad_yaml=BAD, net_py=QUIET_NET)
    assert convlint("check", ".", "--fix", "--unsafe-fixes").code == 0
    assert Path("net.py").read_text() == QUIET_NET
    assert "C: 64" in Path("bad.yaml").read_text()


def test_what_the_user_says_of_the_input_size_reaches_programs() -> None:
    shutil.copytree(LAYOUTS / "package_entry", ".", dirs_exist_ok=True)
    script = Path("train.py").read_text()
    folder = 'datasets.ImageFolder("data", transform=transforms.ToTensor())'
    changed = re.sub(r"datasets\.CIFAR10\(.*\)", folder, script).replace("batch_size=128", "batch_size=1")
    assert changed != script
    Path("train.py").write_text(changed)
    ran = convlint("check", ".", "--select", "CL501")
    assert (ran.code, "for want of runtime.fixed_input_size" in " ".join(ran.out.split())) == (0, True)
    ran = convlint("check", ".", "--select", "CL501", "--runtime", "fixed_input_size=true", "-o", "concise")
    assert "every input has the same height and width (fixed_input_size=true at --runtime)" in ran.out
    Path("pyproject.toml").write_text("[tool.convlint.runtime]\nfixed_input_size = true\n")
    assert "(fixed_input_size=true at [tool.convlint.runtime])" in convlint("check", ".", "-o", "concise").out
    assert "CL501" not in convlint("check", ".", "--select", "CL501", "--runtime", "fixed_input_size=false").out
