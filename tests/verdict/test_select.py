"""What counts: selected rules, the severities that the user wants, what the config silences, and the exit code."""

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import convlint
from configured import prepared
from small_networks import rulebook
from specs import GOOD, HEAD

import convlint as api
from convlint.model.errors import UsageError
from convlint.model.location import Location
from convlint.model.report import Finding, InputError, Report, RuleInfo, Severity, Source
from convlint.rulebook.book import Rulebook
from convlint.verdict.select import (
    Exemption,
    Policy,
    Selection,
    counts,
    incomplete,
    matching,
    selected,
    severity_overrides,
    verdict,
)

ALL = {"AB100", "AB101", "AB200", "XY100"}


@pytest.fixture
def rules(tmp_path: Path) -> Rulebook:
    """Four rules, of which AB200 counts only where it is asked for."""
    return rulebook(
        tmp_path,
        {"code": "AB100", "name": "one"}, {"code": "AB101", "name": "two"},
        {"code": "AB200", "name": "three", "opt_in": "true"}, {"code": "XY100", "name": "four"},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("key", "codes"),
    [
        ("AB100", {"AB100"}), ("ab100", {"AB100"}), ("one", {"AB100"}), ("ONE", {"AB100"}), (" one ", {"AB100"}),
        ("AB1", {"AB100", "AB101"}), ("ab", {"AB100", "AB101", "AB200"}), ("XY", {"XY100"}), ("all", ALL),
    ],
)  # fmt: skip
def test_what_a_key_names(key: str, codes: set[str], rules: Rulebook) -> None:
    assert matching(key, rules) == codes


@pytest.mark.parametrize("key", ["A", "X", "", "AB3", "AB1000", "fiv"])
def test_what_names_no_rule(key: str, rules: Rulebook) -> None:
    with pytest.raises(UsageError, match=f"unknown rule '{key}'"):
        matching(key, rules)


@pytest.mark.parametrize(
    ("policy", "codes"),
    [
        ({}, ALL - {"AB200"}),
        ({"select": ("AB",)}, {"AB100", "AB101", "AB200"}),
        ({"select": ("AB",), "ignore": ("AB1",)}, {"AB200"}),
        ({"extend_select": ("three",)}, ALL),
        ({"extend_select": ("three",), "ignore": ("three",)}, ALL - {"AB200"}),
        ({"base": frozenset({"XY100"})}, {"XY100"}),
        ({"base": frozenset({"XY100"}), "extend_select": ("one",)}, {"XY100", "AB100"}),
        ({"base": frozenset({"XY100"}), "select": ("one",)}, {"AB100"}),  # the command line beats the config
        ({"base": frozenset()}, set()),
    ],
)
def test_which_rules_count(policy: dict[str, Any], codes: set[str], rules: Rulebook) -> None:
    assert selected(Policy(**policy), rules) == codes


def test_severities_are_those_of_all_rules_that_a_key_names(rules: Rulebook) -> None:
    policy = Policy(severities={"AB1": "info", "two": "error", "XY100": "warning"})
    assert severity_overrides(policy, rules) == {"AB100": "info", "AB101": "error", "XY100": "warning"}


def finding(code: str = "AB100", severity: Severity = "warning", **parts: Any) -> Finding:
    source = Source(document="house", section="1")
    info = RuleInfo(code=code, name="one", title="t", severity="warning", rationale="r", source=source)
    values: dict[str, Any] = {"message": "m", "location": Location(path="net.yaml")} | parts
    return Finding(rule=info, severity=severity, **values)


def test_what_is_not_selected_is_gone_and_the_rest_as_severe_as_wanted() -> None:
    found = [
        finding("AB100"), finding("AB101", "error"), finding("AB102", "error"), finding("XY100", "info"),
        finding("AB100", "info"),
    ]  # fmt: skip
    severities: dict[str, Severity] = {"AB100": "error", "AB102": "info", "XY100": "error"}
    selection = Selection(policy=Policy(), codes=frozenset(("AB100", "AB101", "AB102")), severities=severities)
    left = selection.of(found)
    assert [(one.rule.code, one.severity) for one in left] == [
        ("AB100", "error"), ("AB101", "error"), ("AB102", "info"), ("AB100", "error")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("layers", "parts", "covered"),
    [
        (None, {}, True),
        (None, {"code": "AB101"}, False),
        ("stem", {"layer": "stem"}, True),
        ("stem", {"layer": "stem2"}, False),
        ("stem*", {"layer": "stem2"}, True),
        ("stem*", {}, False),  # of the network, not of a layer
        ("*", {"code": "AB101", "layer": "stem"}, False),
    ],
)
def test_what_an_exemption_covers(layers: str | None, parts: dict[str, Any], covered: bool) -> None:
    exemption = Exemption(codes=frozenset({"AB100"}), reason="r", layers=layers)
    assert exemption.covers(finding(**parts)) is covered


@pytest.mark.parametrize(
    ("fail_on", "severities"),
    [("error", ["error"]), ("warning", ["error", "warning"]), ("info", ["error", "warning", "info"]), ("never", [])],
)
def test_the_least_severity_that_fails(fail_on: Any, severities: list[str]) -> None:
    policy = Policy(fail_on=fail_on)
    every: tuple[Severity, ...] = ("error", "warning", "info")
    assert [one for one in every if counts(finding(severity=one), policy)] == severities


@pytest.mark.parametrize(
    ("severity", "lost_percent", "counted"),
    [("warning", 2.0, True), ("warning", 1.99, False), ("warning", None, True), ("error", 0.0, True)],
)
def test_what_loses_too_little_does_not_fail(severity: Severity, lost_percent: float | None, counted: bool) -> None:
    assert counts(finding(severity=severity, lost_percent=lost_percent), Policy(min_loss=2.0)) is counted
    of_step = finding(severity=severity, lost_percent=None, lost_step_percent=lost_percent)
    assert counts(of_step, Policy(min_loss=2.0)) is counted


UNREAD, DEFECT = InputError(path="a", message="m"), InputError(path="a", message="m", internal=True)


@pytest.mark.parametrize(
    ("errors", "failing", "code"),
    [
        ((), False, 0), ((), True, 1), ((UNREAD,), False, 3), ((UNREAD,), True, 3), ((DEFECT,), False, 4),
        ((DEFECT, UNREAD), True, 4),
    ],
)  # fmt: skip
def test_the_worse_wins(errors: tuple[InputError, ...], failing: bool, code: int) -> None:
    report = Report(version="1", targets=(), mode="training", files=1, layers=(), findings=(), errors=errors)
    assert verdict(report, failing=failing) == code
    assert incomplete(errors) == (code if errors else 0)


SIZED = "H: 28, W: 28, "
SETTINGS = (
    "runtime: { framework: pytorch, framework_version: '2.8', cuda: '12.8', cudnn: '9.10', cudnn_benchmark: true, "
    "fixed_input_size: true, deterministic: false, pinned_memory: true, mixed_precision: true, compile: false }\n"
)


def spec(*layers: str, top: str = "") -> str:
    body = "".join(
        f"  - {{ name: l{n}, N: 256, dtype: fp16, layout: NHWC, {each} }}\n" for n, each in enumerate(layers)
    )
    return f"version: 1\ntarget: [a100]\n{top}layers:\n{body}"


UNSIZED = "C: 64, K: 64, R: 3, S: 3, padding: 1"
NOTHING = "nothing could be priced: no layer has the sizes that a time needs"
FLAGS = ["layer", "-N", "256", "-C", "64", "-K", "64"]


here = pytest.fixture(autouse=True)(prepared)


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        (spec(UNSIZED), 3, f"x.yaml:4:5: error: {NOTHING}; l0 lacks H, W"),
        (spec(UNSIZED, UNSIZED), 3, "nothing could be priced"),
        (spec(SIZED + UNSIZED, UNSIZED), 0, ""),
        (spec(SIZED + UNSIZED).replace("N: 256, ", ""), 3, "l0 lacks N"),
        (spec(SIZED + UNSIZED, SIZED + UNSIZED).replace("N: 256, ", "", 1), 0, ""),
        # sizes alone are asked for: without a dtype, rules on geometry have been checked
        (spec(SIZED + UNSIZED).replace("dtype: fp16, ", ""), 0, ""),
        # an error among the findings says what is wrong
        (spec(UNSIZED.replace("64", "62"), top="runtime: { cudnn: '7.5' }\n").replace("a100", "v100"), 1, "CL101"),
        # the GPU lacks a kernel, of which CL107 speaks
        (spec(SIZED + UNSIZED).replace("fp16", "bf16").replace("a100", "k80"), 1, "CL107"),
        (spec(SIZED + UNSIZED, top="mode: training\n").replace("fp16", "int8"), 1, ""),
    ],
)
def test_a_network_of_which_nothing_could_be_priced_is_incomplete(text: str, code: int, says: str) -> None:
    Path("x.yaml").write_text(text)
    ran = convlint("check", "x.yaml", "-o", "concise")
    assert (ran.code, says in ran.out) == (code, True), ran.out
    assert ("nothing could be priced" in ran.out) == (code == 3)
    assert json.loads(convlint("check", "x.yaml", "-o", "json").out)["complete"] == (code != 3)


def test_a_silenced_error_explains_it_too() -> None:
    text = spec(UNSIZED.replace("64", "62"), top="runtime: { cudnn: '7.5' }\n").replace("a100", "v100")
    Path("x.yaml").write_text(text.removesuffix("\n") + " # convlint: ignore[CL101] -- known\n")
    ran = convlint("check", "x.yaml", "-o", "concise", "--select", "CL101,CL9")
    assert (ran.code, "nothing could be priced" in ran.out) == (0, False)


def test_flags_that_leave_out_the_sizes() -> None:
    ran = convlint(*FLAGS)
    assert ran.code == 3
    assert "nothing could be priced" in ran.out
    sized = [
        *FLAGS,
        "-H",
        "28",
        "-W",
        "28",
        "-R",
        "3",
        "-S",
        "3",
        "--dtype",
        "fp16",
        "--layout",
        "NHWC",
        "--ignore",
        "CL2",
    ]
    assert convlint(*sized).code == 0
    assert convlint(*sized, "--strict").code == 3


def test_other_inputs_are_still_judged() -> None:
    Path("x.yaml").write_text(spec(UNSIZED))
    Path("good.yaml").write_text(GOOD)
    ran = convlint("check", "x.yaml", "good.yaml")
    assert ran.code == 3
    assert "2 files" in ran.out
    assert convlint("check", "good.yaml").code == 0


def test_weights_alone_and_source_are_no_such_case() -> None:
    header = json.dumps(
        {"conv.weight": {"dtype": "F16", "shape": [64, 64, 3, 3], "data_offsets": [0, 73_728]}}
    ).encode()
    Path("w.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(73_728))
    assert convlint("check", "w.safetensors").code == 0
    assert convlint("check", "w.safetensors", "--strict").code == 3
    Path("net.py").write_text("from torch import nn\nmade = nn.Conv2d(64, 64, 3)\n")
    assert convlint("check", "net.py").code == 0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (spec(UNSIZED, SIZED + UNSIZED, top=SETTINGS), "1 of 2 layers not priced for want of H, W: l0"),
        (spec(SIZED + UNSIZED), "rules not checked for want of runtime."),
    ],
)
def test_strict_wants_everything_known(text: str, says: str) -> None:
    Path("x.yaml").write_text(text)
    assert convlint("check", "x.yaml").code == 0
    ran = convlint("check", "x.yaml", "--strict", "-o", "concise")
    assert (ran.code, says in ran.out) == (3, True), ran.out
    Path("convlint.toml").write_text("strict = true\n")
    assert convlint("check", "x.yaml").code == 3
    assert [error.path for error in api.lint("x.yaml", strict=True, isolated=True).errors]
    assert not api.lint("x.yaml", isolated=True).errors


def test_what_is_all_known_passes_strictly() -> None:
    Path("x.yaml").write_text(spec(SIZED + UNSIZED + ", bias: false, first: false", top=SETTINGS))
    ran = convlint("check", "x.yaml", "--strict", "--mode", "training", "--select", "CL1,CL2")
    assert ran.code == 0, ran.out


def test_strict_source_wants_every_width() -> None:
    Path("net.py").write_text(
        "import sys\nfrom torch import nn\nmade = nn.Conv2d(64, int(sys.argv[1]), 3)\nother = nn.Conv2d(64, 64, 3)\n"
    )
    ran = convlint("check", "net.py", "--strict", "-o", "concise", "--select", "CL102")
    assert (ran.code, "unknown widths of 1 of 2 convolutions" in ran.out) == (3, True), ran.out


def test_strict_source_names_the_files_that_are_incomplete() -> None:
    Path("net").mkdir()
    head = "import sys\nfrom torch import nn\nknown = nn.Conv2d(64, 64, 3)\n"
    for name, count in (("a", 0), ("b", 1), ("c", 2), ("d", 1)):
        made = (f"made{number} = nn.Conv2d(64, int(sys.argv[1]), 3)\n" for number in range(count))
        Path(f"net/{name}.py").write_text(head + "".join(made))
    Path("net/z.py").write_text(
        "import torch\nfrom b import known\n\nif __name__ == '__main__':\n    step = torch.optim.SGD([])\n"
        "    known.cuda()(torch.rand(1)).backward()\n    step.step()\n"
    )
    ran = convlint("check", "net", "--strict", "-o", "concise", "--select", "CL102,CL501")
    widths, rules, last = ran.out.splitlines()
    assert widths == "net/c.py: error: unknown widths of 4 of 8 convolutions, 2 of them here"
    assert rules.startswith("net/z.py: error: 1 rule not checked for want of ")
    assert (ran.code, last.endswith("; 2 inputs incomplete")) == (3, True), last
    for name in "bdz":
        Path(f"net/{name}.py").unlink()
    ran = convlint("check", "net", "--strict", "-o", "concise", "--select", "CL102,CL501")
    assert ran.out.startswith("net/c.py: error: unknown widths of 2 of 4 convolutions\n"), ran.out


def test_the_config_takes_a_truth() -> None:
    Path("good.yaml").write_text(HEAD + "  - { name: a, C: 64, K: 64, R: 3, S: 3 }\n")
    Path("convlint.toml").write_text("strict = 1\n")
    ran = convlint("check", "good.yaml")
    assert (ran.code, "convlint.toml:1:1: must be true or false, not a number" in ran.err) == (2, True), ran.err
    Path("convlint.toml").write_text("strict = true\n")
    rows = {line.split()[0]: line.split() for line in convlint("config").out.splitlines() if line}
    assert rows["strict"] == ["strict", "true", "convlint.toml:1"]
    Path("convlint.toml").unlink()
    assert "command line" in next(line for line in convlint("config", "--strict").out.splitlines() if "strict" in line)
    schema = json.loads(convlint("schema", "config").out)
    assert schema["properties"]["strict"]["type"] == "boolean"


def test_an_error_about_the_gpu_explains_no_missing_size() -> None:
    Path("x.yaml").write_text(spec(UNSIZED, top="runtime: { cuda: '12.0' }\n").replace("a100", "k80"))
    ran = convlint("check", "x.yaml", "-o", "concise")
    assert (ran.code, "CL707" in ran.out, "nothing could be priced" in ran.out) == (3, True, True)
