"""One rule file to a rule: every key, name and expression in it is checked here."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping
from typing import Any

from convlint.errors import InputFault, RuleError, shown, suggestion
from convlint.facts.quantity import Type
from convlint.files.located_yaml import Value, parse, read_text
from convlint.report import RuleInfo, Source
from convlint.rulebook.decision import compile_decision
from convlint.rulebook.expr import Expr
from convlint.rulebook.functions import FUNCTIONS
from convlint.rulebook.pieces import Pieces
from convlint.rulebook.rule import Case, FixSpec, Join, Rule
from convlint.rulebook.vocabulary import GPU_NAMES, PLACES, SETTABLE, SUPPRESSION, VOCABULARY

REQUIRED = ("code", "name", "title", "severity", "check", "message", "rationale", "source", "examples")
KEYS = (*REQUIRED, "scope", "opt_in", "yields_to", "when", "let", "at", "fix", "variants", "loss", "join")
MOST_PARTS = 200  # names of `let`, variants
SEVERITIES = ("error", "warning", "info")
SCOPES = ("layer", "edge", "network", "suppression")
_OF_LAYERS = ("at", "join", "loss", "yields_to")  # keys that mean nothing for a suppression
LOSSES = ("fix", "tile", "wave", "none")
PASSES = ("fprop", "dgrad", "wgrad")
_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,30}")
# what the names of the vocabulary stand on; `let` must not hide it
_RESERVED = frozenset(
    {name.split(".")[0] for name in (*VOCABULARY, *SUPPRESSION)} | {*FUNCTIONS, "true", "false", "count", "layers"}
)


# keys whose place in the file a defect that shows only later is pointed at
_PLACES = ("code", "name", "yields_to", "check", "fix", "variants")


def read_rule(path: str) -> Rule:
    """The rule in the file at `path`. Raises RuleError at the first defect, with line and column."""
    try:
        document = parse(read_text(path))
    except InputFault as error:
        raise RuleError(error.message, path=path, line=error.line, column=error.column) from error
    if document is None or not isinstance(document.data, dict):
        raise RuleError("a rule is a mapping", path=path, line=1, column=1)
    return _rule(Pieces(path, document))


def _rule(rule: Pieces) -> Rule:
    rule.keys(rule.top, KEYS, "a rule")
    for key in REQUIRED:
        if key not in rule.top:
            rule.fail(f"{key} is missing")
    code = rule.text("code")
    if not re.fullmatch(r"[A-Z]{2,8}[0-9]{3,4}", code):
        rule.fail("code: capital letters and three or four digits, such as CL102", rule.top["code"])
    name = rule.text("name")
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) or name == "all":
        rule.fail("name: lower-case words joined by hyphens", rule.top["name"])
    scope = rule.choice("scope", SCOPES, "layer")
    if scope == "suppression":
        rule.names = dict(SUPPRESSION)
        for key in _OF_LAYERS:
            if key in rule.top:
                rule.fail(f"{key} means nothing in a rule on suppressions", rule.top[key])
    when = rule.optional_expr("when", "truth")
    let = _let(rule)
    check = rule.expr(rule.top["check"], "truth", "check")
    default = _case(rule, rule.top, None)
    variants = rule.items("variants")
    if len(variants) > MOST_PARTS:
        rule.fail(f"variants: more than {MOST_PARTS}", rule.top["variants"])
    cases = [_variant(rule, item, default) for item in variants] + [default]
    loss, loss_passes = _loss(rule)
    join = _join(rule)
    source = rule.mapping("source", ("document", "section"))
    _examples(rule)
    info = RuleInfo(
        code=code,
        name=name,
        title=rule.text("title"),
        severity=rule.choice("severity", SEVERITIES),  # type: ignore[arg-type]
        rationale=rule.text("rationale"),
        source=Source(**{key: rule.text_of(source[key], f"source: {key}") for key in ("document", "section")}),
    )
    return Rule(
        info=info,
        scope=scope,  # type: ignore[arg-type]
        opt_in=rule.choice("opt_in", ("true", "false"), "false") == "true",
        yields_to=frozenset(rule.text_of(item, "yields_to") for item in rule.items("yields_to")),
        decision=compile_decision(when, let, check),
        cases=tuple(cases),
        loss=loss,  # type: ignore[arg-type]
        loss_passes=loss_passes,
        join=join,
        needs_gpu=loss != "none" or not GPU_NAMES.isdisjoint(rule.read),
        path=rule.path,
        lines={key: rule.top[key].span[:2] for key in _PLACES if key in rule.top},
    )


def _let(rule: Pieces) -> tuple[tuple[str, Expr], ...]:
    result = []
    entries = rule.entries("let", "names to expressions")
    if len(entries) > MOST_PARTS:
        rule.fail(f"let: more than {MOST_PARTS} names", rule.top["let"])
    for name, item in entries.items():
        if not _IDENTIFIER.fullmatch(name) or name in _RESERVED or keyword.iskeyword(name):
            rule.fail(f"let: {shown(name)!r} cannot be a name here", item)
        expr = rule.expr(item, None, f"let: {name}")
        rule.names[name] = expr.type
        result.append((name, expr))
    return tuple(result)


def _variant(rule: Pieces, item: Value, default: Case) -> Case:
    if not isinstance(item.data, dict):
        rule.fail("a variant is a mapping", item)
    rule.keys(item.data, ("when", "severity", "message", "at", "fix"), "a variant")
    if "when" not in item.data:
        rule.fail("a variant needs when", item)
    return _case(rule, item.data, default)


def _case(rule: Pieces, mapping: Mapping[str, Value], default: Case | None) -> Case:
    """The rule's own case, or a variant of it; what a variant leaves out is the default's."""
    parts: dict[str, Any] = {"when": None, "at": (), "fix": None}
    if default is not None:
        parts = {name: getattr(default, name) for name in ("severity", "message", "at", "fix")}
        parts["when"] = rule.expr(mapping["when"], "truth", "when")
    if "severity" in mapping:
        parts["severity"] = rule.choice("severity", SEVERITIES, mapping=mapping)
    if "message" in mapping:
        parts["message"] = rule.message(mapping["message"], rule.names, "message")
    if "at" in mapping:
        parts["at"] = _at(rule, mapping["at"])
    if "fix" in mapping:
        parts["fix"] = _fix(rule, mapping["fix"])
    return Case(**parts)


def _at(rule: Pieces, value: Value) -> tuple[tuple[str, Expr | None], ...]:
    entries: list[tuple[str, Expr | None, Value]]
    if isinstance(value.data, dict):
        entries = [(name, rule.expr(item, "truth", "at"), item) for name, item in value.data.items()]
    else:
        items = value.data if isinstance(value.data, list) else [value]
        entries = [(rule.text_of(item, "at"), None, item) for item in items]
    for name, _, item in entries:
        if name not in PLACES:
            rule.fail(f"at: unknown place {shown(name)!r}{suggestion(name, PLACES)}", item)
    return tuple((name, expr) for name, expr, _ in entries)


def _fix(rule: Pieces, value: Value) -> FixSpec | None:
    if value.is_null:
        return None
    if not isinstance(value.data, dict):
        rule.fail("fix is a mapping", value)
    changes = () if "suppression.text" in rule.names else ("set", "or")
    rule.keys(value.data, ("describe", "safety", "priced", *changes), "fix")
    if "describe" not in value.data:
        rule.fail("fix needs describe", value)
    new = _set(rule, value.data.get("set"))
    other = _set(rule, value.data.get("or"))
    names = {**rule.names, **{name: expr.type for name, expr in new}}
    describe = rule.template(value.data["describe"], names, "describe")
    safety = rule.choice("safety", ("safe", "unsafe"), "unsafe", mapping=value.data)
    priced = rule.choice("priced", ("true", "false"), "true", mapping=value.data) == "true"
    return FixSpec(describe=describe, safety=safety, set=new, other=other, priced=priced)  # type: ignore[arg-type]


def _set(rule: Pieces, value: Value | None) -> tuple[tuple[str, Expr], ...]:
    if value is None:
        return ()
    if not isinstance(value.data, dict):
        rule.fail("set must map fields to expressions", value)
    result = []
    for name, item in value.data.items():
        if name not in SETTABLE:
            rule.fail(f"set: unknown field {shown(name)!r}{suggestion(name, SETTABLE)}", item)
        result.append((name, rule.expr(item, SETTABLE[name], f"set: {name}")))
    return tuple(result)


def _loss(rule: Pieces) -> tuple[str, tuple[str, ...]]:
    value = rule.top.get("loss")
    if value is None:
        return "none", ()
    if isinstance(value.data, str):
        return rule.choice("loss", LOSSES), PASSES
    mapping = rule.mapping("loss", ("kind", "passes"))
    passes = mapping["passes"]
    items = passes.data if isinstance(passes.data, list) else [passes]
    names = tuple(rule.text_of(item, "loss: passes") for item in items)
    if not names or not set(names) <= set(PASSES):
        rule.fail(f"loss: passes are {', '.join(PASSES)}", passes)
    return rule.choice("kind", LOSSES, mapping=mapping), names


def _join(rule: Pieces) -> Join | None:
    value = rule.top.get("join")
    if value is None:
        return None
    if not isinstance(value.data, dict):
        rule.fail("join is a mapping", value)
    rule.keys(value.data, ("share", "when", "message"), "join")
    if "message" not in value.data:
        rule.fail("join needs message", value)
    when = value.data.get("when")
    names: dict[str, Type] = {**rule.names, "count": "number", "layers": "text"}
    return Join(
        share=rule.choice("share", ("all", "any", "info"), "all", mapping=value.data),  # type: ignore[arg-type]
        when=None if when is None else rule.expr(when, "truth", "join: when"),
        message=rule.message(value.data["message"], names, "join: message"),
    )


def _examples(rule: Pieces) -> None:
    examples = rule.mapping("examples", ("pass", "fail"))
    for key in ("pass", "fail"):
        items = examples[key].data
        if not isinstance(items, list) or not items:
            rule.fail(f"examples: at least one that should {key}", examples[key])
        for item in items:
            if not isinstance(item.data, dict):
                rule.fail("examples: each is a mapping", item)
    for item in examples["fail"].data:
        rule.keys(item.data, ("given", "message", "severity", "fixed"), "an example")
        if "given" not in item.data or not isinstance(item.data["given"].data, dict):
            rule.fail("examples: one that should fail needs given, a mapping", item)
        if "message" in item.data:
            rule.text_of(item.data["message"], "message")
        if "severity" in item.data:
            rule.choice("severity", SEVERITIES, mapping=item.data)
        fixed = item.data.get("fixed")
        if fixed is not None and not isinstance(fixed.data, dict):
            rule.fail("fixed must map fields to their new values", fixed)
        for name, value in [] if fixed is None else fixed.data.items():
            if name not in SETTABLE:
                rule.fail(f"fixed: unknown field {shown(name)!r}{suggestion(name, SETTABLE)}", value)
