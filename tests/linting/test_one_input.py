"""One input, read and checked: what is silenced, what is taken for granted, and what is wrong with it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from command_line import convlint
from specs import HEAD, ODD

LAYER = (
    "layers:\n  - { name: a, N: 64, C: 64, H: 28, W: 28, K: 64, R: 3, S: 3, padding: 1, dtype: fp16, layout: NHWC }\n"
)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def tuning(runtime: str) -> list[tuple[str, str]]:
    """(code, message) of the findings on how algorithms are chosen."""
    spec = f"version: 1\nruntime: {{ {runtime} }}\n{LAYER}"
    out = convlint("check", "-", "--isolated", "-o", "concise", "--select", "CL501,CL502,CL503,CL504", stdin=spec).out
    return re.findall(r": (?:warning|info) (\w+) [\w-]+: (.*)", out)


OFF = "every input has the same size, but cuDNN's algorithms are chosen by heuristics: cudnn_benchmark is off"


@pytest.mark.parametrize(
    ("runtime", "found"),
    [
        (
            "cudnn_benchmark: false, fixed_input_size: true",
            [("CL501", f"{OFF} (cudnn_benchmark is a setting of pytorch; "
              "deterministic is not given: pytorch's default is off)")],
        ),
        (
            "framework: pytorch, cudnn_benchmark: false, fixed_input_size: true",
            [("CL501", f"{OFF} (deterministic is not given: pytorch's default is off)")],
        ),
        ("framework: pytorch, cudnn_benchmark: false, fixed_input_size: true, deterministic: false", [("CL501", OFF)]),
        ("cudnn_benchmark: false", []),  # programs that do not say whether sizes vary are left alone
        ("fixed_input_size: true", []),
        ("framework: pytorch, fixed_input_size: true", []),
        ("cudnn_benchmark: true, fixed_input_size: true", []),
        ("cudnn_benchmark: false, fixed_input_size: true, deterministic: true", []),
        ("framework: tensorflow, fixed_input_size: true", []),
    ],
)  # fmt: skip
def test_what_is_left_out_has_the_frameworks_default_and_the_finding_says_so(
    runtime: str, found: list[tuple[str, str]]
) -> None:
    assert tuning(runtime) == found


def test_one_layer_from_flags_is_judged_as_an_input_is() -> None:
    flags = ["-N", "256", "-C", "62", "-H", "56", "-W", "56", "-K", "128", "-R", "3", "-S", "3", "--pad", "3"]
    flags += ["--dtype", "fp16", "--layout", "NHWC", "--isolated", "-o", "concise"]
    assert re.findall(r" (CL102|CL006) ", convlint("layer", *flags).out) == ["CL102", "CL006"]
    assert re.findall(r" (CL102|CL006) ", convlint("layer", *flags, "--ignore", "CL102").out) == ["CL006"]
    Path("convlint.toml").write_text('[[per-layer-ignores]]\nlayers = "*"\nrules = ["CL1"]\nreason = "x"\n')
    flags.remove("--isolated")
    assert re.findall(r" (CL102|CL006) ", convlint("layer", *flags).out) == ["CL006"]


def test_what_is_silenced_is_so_with_many_processes() -> None:
    for name in "abc":
        Path(f"{name}.yaml").write_text(HEAD + f"  - {{ name: odd, {ODD} }} # convlint: ignore[CL102] -- so\n")
    Path("d.yaml").write_text(HEAD + f"  - {{ name: odd, {ODD} }}\n")
    convlint("check", "d.yaml", "--isolated", "--write-baseline", "base.json")
    options = ["--isolated", "--baseline", "base.json", "-o", "json"]
    alone, many = (convlint("check", ".", *options, "--jobs", jobs) for jobs in ("1", "3"))
    assert alone == many
    assert alone.out.count('"reason": "so"') == 3
