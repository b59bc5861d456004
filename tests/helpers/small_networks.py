"""Short builders of rules and networks, and the engine's findings for them."""

from pathlib import Path

from read_specs import network

from convlint.engine.check import Silences, Target, check_network
from convlint.engine.findings import NetworkResult
from convlint.gpus.gpu import load_gpu
from convlint.model.layer import Mode
from convlint.rulebook.book import Rulebook, linked
from convlint.rulebook.file import read_rule

TEMPLATE = """\
code: {code}
name: {name}
title: A rule for this test
severity: {severity}
check: {check}
message: "{message}"
rationale: None.
source: {{ document: house, section: "1" }}
examples: {{ pass: [ {{ C: 1 }} ], fail: [ {{ given: {{ C: 2 }} }} ] }}
"""


def rulebook(folder: Path, *rules: dict[str, str]) -> Rulebook:
    made = []
    for number, parts in enumerate(rules):
        known = {"code": f"XY{number:03}", "name": f"rule-{number}", "severity": "warning", "message": "m"}
        known |= {"check": "C == 1"} | {key: value for key, value in parts.items() if key in (*known, "check")}
        extra = "".join(f"{key}: {value}\n" for key, value in parts.items() if key not in known)
        path = folder / f"{number}.yaml"
        path.write_text(TEMPLATE.format(**known) + extra)
        made.append(read_rule(str(path)))
    return Rulebook(linked(made))


def checked(
    rules: Rulebook, layers: str, *, gpus: str = "a100", top: str = "", mode: Mode = "training", path: str = "net.yaml",
    silences: Silences | None = None,
) -> NetworkResult:  # fmt: skip
    text = f"version: 1\n{top}layers:\n{layers}"
    return check_network(
        network(text, path), rules, [Target(label=name, gpu=load_gpu(name)) for name in gpus.split()], mode,
        silences=silences,
    )  # fmt: skip


def layer(name: str, **sizes: object) -> str:
    values = {"N": 32, "C": 64, "H": 28, "W": 28, "K": 64, "kernel_size": 3, "padding": 1, "dtype": "fp16",
              "layout": "NHWC", "first": "false"}  # fmt: skip
    values |= sizes
    return f"  - {{ name: {name}, " + ", ".join(f"{k}: {v}" for k, v in values.items() if v is not None) + " }\n"


def codes(result: NetworkResult) -> list[tuple[str, str | None]]:
    return [(finding.rule.code, finding.layer) for finding in result.findings]
