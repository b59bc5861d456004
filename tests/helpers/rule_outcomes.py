"""Findings and outcomes of one built-in rule on a spec, for the tables of the rules' tests."""

from collections.abc import Iterable, Mapping
from typing import Any

from convlint.engine.check import Target, check_network
from convlint.files.located_yaml import parse
from convlint.gpus.gpu import load_gpu
from convlint.model.report import Finding
from convlint.readers.spec.reader import read_fragment
from convlint.rulebook.book import Rulebook, load_rulebook

_RULES = load_rulebook()

SILENT = "silent"


def rows(tables: Mapping[str, Iterable[tuple[Any, ...]]]) -> list[tuple[Any, ...]]:
    """The cases of several rules as one table: each case with the code of its rule in front."""
    return [(code, *case) for code, cases in tables.items() for case in cases]


def findings(code: str, layers: str, *, gpu: str = "a100", runtime: str = "", mode: str = "training") -> list[Finding]:
    """The findings of rule `code` on layers written as "{ C: 3, ... }, { ... }"; nothing may be skipped."""
    found, needs = _checked(code, layers, gpu, runtime, mode)
    assert not needs, needs
    return found


def outcome(
    code: str, layers: str, *, gpu: str = "a100", runtime: str = "", mode: str = "training"
) -> str | tuple[str, ...]:
    """The severity of the one finding, SILENT, or what the rule was skipped for want of."""
    found, needs = _checked(code, layers, gpu, runtime, mode)
    if not found:
        return needs or SILENT
    assert len(found) == 1, found
    return found[0].severity


def _checked(code: str, layers: str, gpu: str, runtime: str, mode: str) -> tuple[list[Finding], tuple[str, ...]]:
    rule = _RULES.find(code)
    assert rule is not None
    document = parse(f"version: 1\nruntime: {{ {runtime} }}\nlayers:\n  [ {layers} ]\n")
    assert document is not None
    network, errors = read_fragment(document, "spec.yaml")
    assert network is not None, errors
    assert not errors, errors
    target = Target(label=gpu, gpu=load_gpu(gpu))
    result = check_network(network, Rulebook([rule]), [target], "training" if mode == "training" else "inference")
    return list(result.findings), tuple(dict.fromkeys(need for skip in result.skipped for need in skip.needs))
