"""A rule's own examples as tests: on layers, on source, on suppressions."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Mapping
from contextlib import suppress
from datetime import date
from typing import Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import asdict, replace

from convlint.engine.check import check_network
from convlint.engine.findings import Target
from convlint.engine.hits import with_fix, with_settings
from convlint.engine.source_check import check_source
from convlint.files.located_yaml import Value, parse, read_text
from convlint.gpus.gpu import load_gpu
from convlint.model.errors import InputFault, RuleError, UsageError, shown, suggestion
from convlint.model.layer import ALLOWANCES, Allowance, ConvLayer, Dtype, Mode
from convlint.model.location import Location
from convlint.model.network import Network
from convlint.model.report import Finding, Scalar
from convlint.model.runtime import default_mode
from convlint.model.source import Certainty, ProgramSetting, SourceLayer, SourceReading, StatedLiteral, TrainingProgram
from convlint.readers.spec.reader import read_fragment
from convlint.rulebook.book import Rulebook
from convlint.rulebook.rule import Rule
from convlint.verdict.suppress import Mention, judge_mentions

_TEXTS = ("text", "rule", "reason", "problem")
_TRUTHS = ("used", "expired")


def _mention(rule: Rule, given: Value) -> Mention:
    if not isinstance(given.data, dict):
        raise _error(rule, given, "an example is a mapping")
    values: dict[str, Any] = {"text": ""}
    for key, value in given.data.items():
        text = value.data
        if not isinstance(text, str):
            raise _error(rule, value, f"{key}: must be one value, not {value.kind}")
        if key in _TEXTS:
            values[key] = text
        elif key in _TRUTHS and text in ("true", "false"):
            values[key] = text == "true"
        elif key == "expires":
            try:
                values[key] = date.fromisoformat(text)
            except ValueError:
                raise _error(rule, value, f"expires: {shown(text)!r} is no date such as 2026-12-31") from None
        elif key in _TRUTHS:
            raise _error(rule, value, f"{key}: must be true or false")
        else:
            known = (*_TEXTS, *_TRUTHS, "expires")
            raise _error(rule, value, f"unknown key {shown(key)!r} in an example{suggestion(key, known)}")
    return Mention(location=Location(path=rule.path), **values)


def _error(rule: Rule, value: Value, message: str) -> RuleError:
    return RuleError(message, path=rule.path, line=value.span[0], column=value.span[1])


_NET, _SCRIPT = "net.py", "train.py"


class _Literal(Struct, forbid_unknown_fields=True):
    value: int | float | str | bool | None
    name: str = ""
    line: int = 1
    quiet: bool = False

    def stated(self) -> StatedLiteral:
        return StatedLiteral(at=_at(_NET, self.line), value=self.value, name=self.name, quiet=self.quiet)


class _Construction(Struct, forbid_unknown_fields=True):
    name: str = "Net.conv"
    line: int = 100
    framework: str = "pytorch"
    C: int | None = 64
    K: int | None = 64
    R: int | None = 3
    S: int | None = 3
    groups: int = 1
    bias: bool | None = None
    norm_follows: bool | None = None
    first: bool = False
    head: bool = False
    stated: dict[str, list[_Literal]] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)
    certainty: Certainty = "stated"
    condition: str = ""
    root: str = ""
    pointwise_map: bool | None = None

    def record(self) -> SourceLayer:
        layer = ConvLayer(
            name=self.name, path=_NET, C=self.C, K=self.K, R=self.R, S=self.S, groups=self.groups, bias=self.bias,
            norm_follows=self.norm_follows, first=self.first, head=self.head,
            spans={"layer": (self.line, 1, self.line, 80)},
        )  # fmt: skip
        return SourceLayer(
            layer=layer, framework=self.framework, certainty=self.certainty, condition=self.condition, root=self.root,
            written=self.written, pointwise_map=self.pointwise_map,
            stated={name: tuple(literal.stated() for literal in literals) for name, literals in self.stated.items()},
        )  # fmt: skip


class _Statement(Struct, forbid_unknown_fields=True):
    name: str
    value: bool | int | str | None = None
    line: int = 1
    guard: str = ""
    certain: bool = False

    def setting(self) -> ProgramSetting:
        at = _at(_SCRIPT, self.line)
        return ProgramSetting(name=self.name, value=self.value, at=at, guard=self.guard, certain=self.certain)


class _ExampleProgram(Struct, forbid_unknown_fields=True):
    framework: str = "pytorch"
    complete: bool = False
    trainer: str = ""
    settings: list[_Statement] = field(default_factory=list)
    cudnn_benchmark: bool | None = None
    deterministic: bool | None = None
    cudnn_enabled: bool | None = None
    tf32: bool | None = None
    in_autocast: bool = False
    fixed_input_size: bool | None = None
    evidence: list[str] = field(default_factory=list)
    conflict: tuple[_Statement, _Statement] | None = None
    backward_in_autocast: list[int] = field(default_factory=list)
    autocast_around_loss: list[int] = field(default_factory=list)
    autotune_disabled: list[_Statement] = field(default_factory=list)
    has_convolutions: bool = False

    def program(self) -> TrainingProgram:
        statements = tuple(statement.setting() for statement in (*self.settings, *(self.conflict or ())))
        placed: dict[str, Any] = {
            "settings": statements,
            "evidence": tuple((words, _at(_SCRIPT, 1)) for words in self.evidence),
            "conflict": None if self.conflict is None else (self.conflict[0].setting(), self.conflict[1].setting()),
            "backward_in_autocast": tuple(_at(_SCRIPT, line) for line in self.backward_in_autocast),
            "autocast_around_loss": tuple(_at(_SCRIPT, line) for line in self.autocast_around_loss),
            "autotune_disabled": tuple(statement.setting() for statement in self.autotune_disabled),
        }
        return TrainingProgram(path=_SCRIPT, at=_at(_SCRIPT, 1), closure=(_SCRIPT,), **asdict(self) | placed)


class _Example(Struct, forbid_unknown_fields=True):
    construction: _Construction | None = None
    constructions: list[_Construction] = field(default_factory=list)
    program: _ExampleProgram | None = None
    gpu: str = "a100"
    mode: Mode | None = None
    dtype: Dtype | None = None


def is_of_source(given: Value) -> bool:
    """Whether an example is one of source."""
    return not {"construction", "constructions", "program"}.isdisjoint(given.data)


def _source_findings(rule: Rule, given: Value) -> tuple[tuple[Finding, ...], list[str]]:
    try:
        example = msgspec.convert(_unwrapped(given), _Example)
        target = Target(label=example.gpu, gpu=load_gpu(example.gpu))
    except (msgspec.ValidationError, UsageError) as error:
        raise _error(rule, given, f"examples: {error}") from error
    constructions = [*([example.construction] if example.construction else []), *example.constructions]
    reading = SourceReading(
        layers=tuple(construction.record() for construction in constructions),
        programs=() if example.program is None else (example.program.program(),),
    )
    result = check_source(reading, Rulebook([rule]), [target], example.mode, given=(_NET, _SCRIPT), dtype=example.dtype)
    return result.findings, [need for skip in result.skipped for need in skip.needs]


def _unwrapped(value: Value) -> Any:
    """Mappings, lists and scalars without the places where they stand."""
    if isinstance(value.data, dict):
        return {key: _unwrapped(item) for key, item in value.data.items()}
    if isinstance(value.data, list):
        return [_unwrapped(item) for item in value.data]
    return None if value.is_null else _plain(value)


def _at(path: str, line: int) -> Location:
    return Location(path=path, line=line, column=1)


_CONTEXT = ("gpu", "mode", "runtime", "layers", "defaults")


class ExampleResult(Struct, frozen=True, kw_only=True):
    """One example: where it stands and, where it does not hold, why."""

    code: str
    path: str
    line: int
    problem: str | None


def run_examples(rule: Rule) -> Iterator[ExampleResult]:
    """Runs every example of `rule`. Raises RuleError where an example itself cannot be read."""
    document = parse(read_text(rule.path))
    assert document is not None
    examples = document.data["examples"].data
    problems = []
    for item in examples["pass"].data:
        findings, _ = example_findings(rule, item)
        problems.append((item, f"should pass, but: {findings[0].message}" if findings else None))
    problems += [(item, _failing(rule, item)) for item in examples["fail"].data]
    for item, problem in problems:
        yield ExampleResult(code=rule.info.code, path=rule.path, line=item.span[0], problem=problem)


def _failing(rule: Rule, item: Value) -> str | None:
    """Why an example that should fail does not hold; None where it does."""
    given = item.data["given"]
    findings, skipped = example_findings(rule, given)
    if not findings:
        return "should fail, but " + (f"was skipped for want of {', '.join(skipped)}" if skipped else "passes")
    finding = findings[0]
    for key, actual in (("message", finding.message), ("severity", finding.severity)):
        if key in item.data and _plain(item.data[key]) != actual:
            return f"{key} is {actual!r}, not {_plain(item.data[key])!r}"
    if rule.scope == "suppression":
        return None
    if "line" in item.data and _plain(item.data["line"]) != finding.location.line:
        return f"line is {finding.location.line}, not {_plain(item.data['line'])}"
    if "fixed" not in item.data:
        return None
    if finding.fix is None:
        return "has no fix"
    expected = {key: _plain(value) for key, value in item.data["fixed"].data.items()}
    if is_of_source(given):
        return None if finding.fix.set == expected else f"fixed is {dict(finding.fix.set)}, not {expected}"
    network = example_network(rule, given)
    hit = finding.layer or next(iter(finding.layers), network.layers[0].name)
    mended = _mended(network, finding.fix.set, {finding.layer, *finding.layers})
    for key, value in expected.items():
        setting = key.removeprefix("runtime.")
        owner = mended.runtime if setting != key else next(layer for layer in mended.layers if layer.name == hit)
        if getattr(owner, setting) != value:
            return f"fixed has {key} = {getattr(owner, setting)}, not {value}"
    again, _ = _findings(rule, mended, given)
    return f"still fails once fixed: {again[0].message}" if again else None


def _mended(network: Network, changes: Mapping[str, Scalar], hit: Container[str | None]) -> Network:
    """The network with these changes in the layers called so, and in its runtime."""
    layers = tuple(with_fix(layer, changes) if layer.name in hit else layer for layer in network.layers)
    return replace(network, layers=layers, runtime=with_settings(network.runtime, changes))


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
    """What the rule finds in an example, and what it lacks. Raises RuleError where the example cannot be read."""
    if rule.scope == "suppression":
        return tuple(judge_mentions([_mention(rule, given)], Rulebook([rule]))), []
    if is_of_source(given):
        return _source_findings(rule, given)
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
        raise _error(rule, given, str(error)) from error
    result = check_network(network, Rulebook([rule]), targets, mode, allow=allowed(given))
    return result.findings, [need for skip in result.skipped for need in skip.needs]


def _plain(value: Value) -> Any:
    """A scalar of an example as Python reads it."""
    text = value.data
    if value.plain:
        if text in ("true", "false"):
            return text == "true"
        for kind in (int, float):
            with suppress(ValueError):
                return kind(text)
    return text
