"""convlint in Chinese, as people run it: reports, rules, formats for machines, terminals of any width, bad input."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from beside_each_other import in_both
from checkout import ROOT
from command_line import convlint
from said import untranslated_rules

from convlint.reporters import REPORTERS
from convlint.reporters.ink import columns

HAN = re.compile(r"[\u4e00-\u9fff]")
BAD = str(ROOT / "sample_configs" / "bad.yaml")
MACHINES = sorted(REPORTERS.keys() - {"text", "html"})
OWN_RULE = """\
code: XY100
name: never-three
title: C is three
severity: warning
check: C != 3
message: "C={C} is three"
fix: { describe: "take four", safety: unsafe }
rationale: Four is better.
source: { document: mine, section: "1" }
examples: { pass: [ { C: 4 } ], fail: [ { given: { C: 3 }, message: "C=3 is three" } ] }
"""
SPEC = """\
version: 1
target: [a100]
runtime: { framework: pytorch, cudnn_benchmark: false, fixed_input_size: true, deterministic: false }
defaults: { N: 64, dtype: fp16, layout: NHWC }
layers:
  - { name: stem, C: 3, H: 224, W: 224, K: 62, R: 7, S: 7, stride: 2, padding: 3 }
  - { name: 第二层, K: 60, kernel_size: 3, padding: 1 }
  - { name: conv3, K: 256, kernel_size: 3, padding: 1 }
"""
LAYER = ("-N", "8", "-C", "62", "-K", "128", "-H", "56", "-W", "56", "-R", "3", "-S", "3", "--dtype", "fp16")
NET = """\
import torch.nn as nn
class Net(nn.Module):
    def __init__(self, width=60):
        super().__init__()
        self.a = nn.Conv2d(3, width, 3, bias=True)
        self.norm = nn.BatchNorm2d(width)
        self.b = nn.Conv2d(width, 64, 3)
    def forward(self, x):
        return self.b(self.norm(self.a(x)))
"""


@pytest.fixture(autouse=True)
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CONVLINT_LANG", raising=False)
    (tmp_path / "net.yaml").write_text(SPEC, encoding="utf-8")
    return tmp_path


def test_what_a_release_of_pytorch_leaves_unknown_is_named_in_chinese() -> None:
    ran = convlint("check", "net.yaml", "--gpu", "p100", "--runtime", "framework_version=2.9.1", "-v", "--lang", "zh")
    assert "例如 2.9.1+cu126" in " ".join(ran.out.split())
    assert "of its wheel" not in " ".join(ran.out.split())


def test_a_report_is_in_chinese_but_for_codes_names_and_what_inputs_hold() -> None:
    ran = convlint("check", "net.yaml", "--verbose", "--lang", "zh")
    assert "警告 CL102 channel-alignment: K=62 应为 8 的倍数（fp16）" in ran.out
    assert "── 总结 ──" in ran.out
    assert "个文件中的 3 层（a100）：" in ran.out.splitlines()[-1]
    assert ran.code == convlint("check", "net.yaml").code
    own = re.compile(r"CL\d+ [\w-]+:?|NVIDIA|Optimizing Convolutional Layers.*|torch\.\S+( = True| = 0)?|net\.yaml\S*")
    for line in ran.out.splitlines():
        if "│" not in line:
            words = re.findall(r"[A-Za-z]{3,} [A-Za-z]{3,} [A-Za-z]{3,}", own.sub("", line))
            assert not words or "Choosing" in line or "Convolution Algorithm" in line, line


@pytest.mark.parametrize("name", MACHINES)
def test_formats_for_machines_are_what_they_are_in_english(name: str) -> None:
    plain = convlint("check", "net.yaml", BAD, "--output", name)
    chinese = convlint("check", "net.yaml", BAD, "--output", name, "--lang", "zh")
    assert chinese == plain


def test_beside_a_chinese_report_json_is_english(at_home: Path) -> None:
    assert HAN.search(convlint("check", BAD, "--lang", "zh", "--output", "text", "--output", "json=chinese.json").out)
    convlint("check", BAD, "--output", "json=english.json")
    assert json.loads((at_home / "chinese.json").read_text()) == json.loads((at_home / "english.json").read_text())


def test_a_job_summary_is_english(at_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(at_home / "summary.md"))
    convlint("check", BAD, "--lang", "zh", "--output", "github")
    assert not HAN.search((at_home / "summary.md").read_text(encoding="utf-8"))


def test_the_flag_goes_before_the_variable_and_that_before_the_config(
    at_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def summary(*flags: str) -> bool:
        return "── 总结 ──" in convlint("check", "net.yaml", "--verbose", *flags).out

    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    assert not summary()
    (at_home / "convlint.toml").write_text('lang = "zh"\n')
    assert summary()
    assert "lang" in convlint("config").out
    assert convlint("rule", "CL102").out.splitlines()[2] == "通道数不是 Tensor Core 向量宽度的倍数。"
    monkeypatch.setenv("CONVLINT_LANG", "en")
    assert not summary()
    assert re.search(r"lang +en +CONVLINT_LANG", convlint("config").out)
    assert summary("--lang", "zh")
    assert not summary("--isolated")


@pytest.mark.parametrize("command", [("check", "net.yaml"), ("layer", "-C", "3"), ("rule", "CL102"), ("config",)])
def test_an_unknown_language_is_refused_with_those_there_are(command: tuple[str, ...]) -> None:
    ran = convlint(*command, "--lang", "fr")
    assert (ran.code, ran.out) == (2, "")
    assert "--lang: 'fr' is not one of en, zh" in ran.err


def test_unknown_ones_of_the_variable_and_the_config_are_refused_too(
    at_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONVLINT_LANG", "de")
    ran = convlint("check", "net.yaml")
    assert (ran.code, "CONVLINT_LANG: 'de' is not one of en, zh" in ran.err) == (2, True)
    monkeypatch.delenv("CONVLINT_LANG")
    (at_home / "convlint.toml").write_text('lang = "de"\n')
    ran = convlint("check", "net.yaml")
    assert ran.code == 2
    assert "'de' is not one of en, zh" in ran.err


def test_a_rule_of_ones_own_is_shown_in_english(at_home: Path) -> None:
    (at_home / "mine").mkdir()
    (at_home / "mine" / "own.yaml").write_text(OWN_RULE)
    ran = convlint("check", "net.yaml", "--verbose", "--rules", "mine", "--lang", "zh")
    assert "警告 XY100 never-three: C=3 is three" in ran.out
    assert "take four（会改变网络）" in ran.out
    assert "Four is better." in ran.out
    assert "C is three。" in convlint("rule", "XY100", "--rules", "mine", "--lang", "zh").out


def test_several_processes_say_the_same(at_home: Path) -> None:
    (at_home / "other.yaml").write_text(SPEC.replace("62", "58"), encoding="utf-8")
    (at_home / "net.py").write_text(NET)
    one, two = (convlint("check", ".", "--lang", "zh", "--jobs", jobs) for jobs in ("1", "2"))
    assert one == two
    assert HAN.search(one.out)


def test_python_source_is_spoken_of_in_chinese(at_home: Path) -> None:
    (at_home / "net.py").write_text(NET)
    ran = convlint("check", "net.py", "--verbose", "--lang", "zh", "--output", "text")
    assert "偏置会被读取这一层的归一化抵消" in ran.out
    assert "1 个 Python 文件中的 2 个卷积" in ran.out
    assert "，采用：width=60（net.py:3 处的默认值）" in ran.out.replace("\n    ", "")
    assert "各层" not in ran.out  # the message names them


def test_one_layer_is_spoken_of_in_chinese() -> None:
    ran = convlint("layer", *LAYER, "--lang", "zh")
    assert "C=62 应为 8 的倍数（fp16）" in ran.out


def test_quiet_lines_are_in_chinese() -> None:
    ran = convlint("check", BAD, "--lang", "zh", "--quiet")
    assert re.search(r"^\S+bad\.yaml:\d+:\d+: 错误 CL\d+ [\w-]+: .*[\u4e00-\u9fff]", ran.out, re.MULTILINE)


def test_every_rule_documents_itself_in_chinese() -> None:
    rules = convlint("rule", "--lang", "zh").out.splitlines()
    assert len(rules) == len(convlint("rule").out.splitlines())
    rules = [line for line in rules if line.split()[0] not in untranslated_rules("zh")]
    assert all(map(HAN.search, rules))
    for line in rules:
        text = convlint("rule", line.split()[0], "--lang", "zh").out
        assert {"原因", "必须成立", "不通过的例子", "通过的例子", "严重程度"} <= set(text.splitlines())
        said = re.search(r"^  -> (.*)", text, re.MULTILINE)
        assert said is None or HAN.search(said[1]) or line.startswith("CL902"), text  # its problem is a parser's words


def test_every_finding_of_an_example_is_said_in_chinese() -> None:
    names = {"fp16", "fp32", "NCHW", "NHWC"}
    translated = [each for each in in_both("zh") if each.code[:5] not in untranslated_rules("zh")]
    bare = [each for each in translated if not HAN.search(each.other) and each.english not in names]
    assert [each.english for each in bare if not each.code.startswith("CL902")] == []


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_line_is_wider_than_the_terminal(width: int, language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    several = ("--gpu", "a100", "--gpu", "t4")
    for ran in (
        convlint("check", "net.yaml", "--lang", language),
        convlint("check", "net.yaml", "--lang", language, *several),
        convlint("rule", "CL201", "--lang", language),
    ):
        for line in ran.out.splitlines()[:-1]:  # the last one is one line for grep, however narrow the terminal is
            unbroken = max(map(columns, re.split(r"[\s\u4e00-\u9fff，。；：（）]", line)), default=0)
            assert columns(line) <= max(width, unbroken + 14), line


@pytest.mark.parametrize("width", [40, 80, 120])
def test_columns_of_the_table_stand_below_each_other(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = convlint("check", "net.yaml", "--verbose", "--lang", "zh").out.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("── 总结"))
    table = lines[start + 1 : lines.index("", start)]
    rows = [line for line in table if "损失：" not in line]
    ends = {columns(line[: re.match(r".*?(?:发现|CL\d+ .*? \d+)(?= |$)", line).end()]) for line in rows}  # type: ignore[union-attr]
    assert len(ends) == 1
    assert len({columns(line) for line in rows}) == 1


@pytest.mark.parametrize(
    "environment",
    [{"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, {"PYTHONIOENCODING": "ascii"},
     {"PYTHONIOENCODING": "latin-1"}],
)  # fmt: skip
@pytest.mark.parametrize("arguments", [("check", "net.yaml"), ("rule", "CL102"), ("rule",)])
def test_a_stream_without_chinese_gets_escapes_and_no_failure(
    environment: dict[str, str], arguments: tuple[str, ...]
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "convlint", *arguments, "--lang", "zh"], capture_output=True, timeout=60, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80", **environment},
    )  # fmt: skip
    assert done.stderr == b""
    assert done.returncode == (1 if arguments[0] == "check" else 0)
    assert "\\u5e45" in done.stdout.decode("ascii") or arguments[0] == "rule"
    assert "\\u901a\\u9053" in done.stdout.decode("ascii")


def test_a_page_is_in_chinese(at_home: Path) -> None:
    convlint("check", BAD, "--lang", "zh", "--output", "html=zh.html")
    convlint("check", BAD, "--output", "html=en.html")
    chinese, english = ((at_home / name).read_text(encoding="utf-8") for name in ("zh.html", "en.html"))
    assert '<html lang="zh">' in chinese
    assert '<html lang="en">' in english
    assert '"say":{' not in english
    ids = re.compile(r' (?:id|class|href|data-[\w-]+)="[^"]*"')
    parts = [ids.findall(re.sub(r' data-label="[^"]*"', "", text)) for text in (chinese, english)]
    assert parts[0] == parts[1]  # the same page, but for its words
    shown = re.sub(r"<(script|style|pre)\b.*?</\1>", "", chinese, flags=re.DOTALL)
    for text in re.findall(r">([^<>]+)<", shown):
        words = re.findall(r"\b[a-z]{3,} [a-z]{3,} [a-z]{3,}\b", text)
        assert not words or HAN.search(text) or "Guide" in text or "NVIDIA" in text, text
