"""A rule's own examples as tests: what should pass passes, what should fail fails, and its fix mends it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from msgspec import Struct

from convlint.engine.check import Target, check_network
from convlint.engine.hits import with_fix, with_settings
from convlint.errors import InputFault, RuleError, UsageError
from convlint.files.languages.saying import speaking
from convlint.files.located_yaml import Value, parse, read_text
from convlint.gpus.gpu import load_gpu
from convlint.linting.source_examples import is_of_source, source_findings
from convlint.linting.suppression_examples import suppression_findings, suppression_problems
from convlint.model.layer import ALLOWANCES, Allowance, Mode
from convlint.model.network import Network
from convlint.model.runtime import default_mode
from convlint.readers.spec.reader import read_fragment
from convlint.report import Finding
from convlint.rulebook.book import Rulebook
from convlint.rulebook.rule import Rule

_CONTEXT = ("gpu", "mode", "runtime", "layers", "defaults")


class Outcome(Struct, frozen=True, kw_only=True):
    """One example: where it stands and, where it does not hold, why."""

    code: str
    path: str
    line: int
    problem: str | None


def run_examples(rule: Rule) -> Iterator[Outcome]:
    """Runs every example of `rule`. Raises RuleError where an example itself cannot be read."""
    document = parse(read_text(rule.path))
    assert document is not None
    examples = document.data["examples"].data
    if rule.scope == "suppression":
        for item, problem in suppression_problems(rule, examples):
            yield _outcome(rule, item, problem)
        return
    for item in examples["pass"].data:
        findings, _ = example_findings(rule, item)
        problem = f"should pass, but: {findings[0].message}" if findings else None
        yield _outcome(rule, item, problem)
    for item in examples["fail"].data:
        yield _outcome(rule, item, _failing(rule, item))


def examined(rule: Rule, given: Value, language: str) -> Sequence[Finding]:
    """What the rule finds in a failing example, its texts in English and in the language, as pairs."""
    from convlint.files.languages.saying import catalogue
    from convlint.rulebook.file import translated

    speaker = translated(rule, catalogue(language))
    with speaking(language, both=True):
        if rule.scope == "suppression":
            return suppression_findings(speaker, given)
        return example_findings(speaker, given)[0]


def _outcome(rule: Rule, item: Value, problem: str | None) -> Outcome:
    return Outcome(code=rule.info.code, path=rule.path, line=item.span[0], problem=problem)


def _failing(rule: Rule, item: Value) -> str | None:
    given = item.data["given"]
    findings, skipped = example_findings(rule, given)
    if not findings:
        return "should fail, but " + (f"was skipped for want of {', '.join(skipped)}" if skipped else "passes")
    finding = findings[0]
    for key, actual in (("message", finding.message), ("severity", finding.severity)):
        if key in item.data and _plain(item.data[key]) != actual:
            return f"{key} is {actual!r}, not {_plain(item.data[key])!r}"
    if "line" in item.data and _plain(item.data["line"]) != finding.location.line:
        return f"line is {finding.location.line}, not {_plain(item.data['line'])}"
    if "fixed" not in item.data:
        return None
    if finding.fix is None:
        return "has no fix"
    wanted = {key: _plain(value) for key, value in item.data["fixed"].data.items()}
    if is_of_source(given):
        return None if finding.fix.set == wanted else f"fixed is {dict(finding.fix.set)}, not {wanted}"
    network = example_network(rule, given)
    hit = finding.layer or next(iter(finding.layers), network.layers[0].name)
    mended = _mended(network, finding)
    for key, value in wanted.items():
        setting = key.removeprefix("runtime.")
        owner = mended.runtime if setting != key else next(layer for layer in mended.layers if layer.name == hit)
        if getattr(owner, setting) != value:
            return f"fixed has {key} = {getattr(owner, setting)}, not {value}"
    again, _ = _findings(rule, mended, given)
    return f"still fails once fixed: {again[0].message}" if again else None


def _mended(network: Network, finding: Finding) -> Network:
    assert finding.fix is not None
    changes = finding.fix.set
    hit = {finding.layer, *finding.layers}
    layers = tuple(with_fix(layer, changes) if layer.name in hit else layer for layer in network.layers)
    return Network(
        path=network.path, layers=layers, edges=network.edges, runtime=with_settings(network.runtime, changes),
        mode=network.mode, targets=network.targets, spans=network.spans,
    )  # fmt: skip


def example_network(rule: Rule, given: Value) -> Network:
    """The network that an example describes. Raises RuleError where it cannot be read."""
    spec: dict[str, Value] = {"version": Value("1", given.span, plain=True)}
    layer: dict[str, Value] = {}
    for key, value in given.data.items():
        if key == "allow":
            continue
        (spec if key in _CONTEXT else layer)[key] = value
    if "layers" not in spec:
        spec["layers"] = Value([Value(layer, given.span)], given.span)
    try:
        network, errors = read_fragment(Value(spec, given.span), rule.path)
    except InputFault as error:
        raise RuleError(error.message, path=rule.path, line=error.line, column=error.column) from error
    if errors or network is None:
        raise RuleError(errors[0].message, path=rule.path, line=errors[0].line, column=errors[0].column)
    return network


def example_findings(rule: Rule, given: Value) -> tuple[tuple[Finding, ...], list[str]]:
    """What the rule finds in an example, and what it lacks."""
    if is_of_source(given):
        return source_findings(rule, given, _plain)
    return _findings(rule, example_network(rule, given), given)


def allowed(given: Value) -> Collection[Allowance]:
    """What an example allows, as `--allow` does."""
    words = given.data["allow"].data.split(",") if "allow" in given.data else ()
    return [allowance for allowance in ALLOWANCES if allowance in words]


def _findings(rule: Rule, network: Network, given: Value) -> tuple[tuple[Finding, ...], list[str]]:
    mode: Mode = network.mode or default_mode(network.runtime)
    try:
        targets = [Target(label=name, gpu=load_gpu(name)) for name in network.targets or ("a100",)]
    except UsageError as error:
        raise RuleError(str(error), path=rule.path, line=given.span[0], column=given.span[1]) from error
    result = check_network(network, Rulebook([rule]), targets, mode, allow=allowed(given))
    return result.findings, [need for skip in result.skipped for need in skip.needs]


def _plain(value: Value) -> Any:
    """A scalar of an example as Python reads it."""
    text = value.data
    if value.plain:
        if text in ("true", "false"):
            return text == "true"
        for kind in (int, float):
            try:
                return kind(text)
            except ValueError:
                continue
    return text
