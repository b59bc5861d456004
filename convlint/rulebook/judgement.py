"""What of a rule's file decides and speaks: its names, its cases with messages and fixes, its price, how it joins."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping
from typing import Any

from convlint.errors import shown, suggestion
from convlint.facts.quantity import Type
from convlint.files.located_yaml import Value
from convlint.model.layer import Loss
from convlint.rulebook.expr import Expr
from convlint.rulebook.functions import FUNCTIONS
from convlint.rulebook.pieces import Pieces
from convlint.rulebook.rule import Case, FixSpec, Join
from convlint.rulebook.vocabulary import OF_SOURCE, SETTABLE, SUPPRESSION, VOCABULARY

MOST_PARTS = 200  # names of `let`, variants
SEVERITIES = ("error", "warning", "info")
LOSSES = ("fix", "tile", "wave", "none")
PASSES = ("fprop", "dgrad", "wgrad")
_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,30}")
# what the names of the vocabulary stand on; `let` must not hide it
_RESERVED = frozenset(
    {name.split(".")[0] for name in (*VOCABULARY, *OF_SOURCE, *SUPPRESSION)}
    | {*FUNCTIONS, "true", "false", "count", "layers"}
)


def let_of(rule: Pieces) -> tuple[tuple[str, Expr], ...]:
    """What it names, each in terms of those before it."""
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


def cases_of(rule: Pieces) -> tuple[Case, ...]:
    """The variants, and last the rule's own case."""
    default = _case(rule, rule.top, None)
    variants = rule.items("variants")
    if len(variants) > MOST_PARTS:
        rule.fail(f"variants: more than {MOST_PARTS}", rule.top["variants"])
    return (*(_variant(rule, item, default) for item in variants), default)


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
        if name not in rule.places:
            rule.fail(f"at: unknown place {shown(name)!r}{suggestion(name, rule.places)}", item)
    return tuple((name, expr) for name, expr, _ in entries)


def _fix(rule: Pieces, value: Value) -> FixSpec | None:
    if value.is_null:
        return None
    if not isinstance(value.data, dict):
        rule.fail("fix is a mapping", value)
    settable = () if "suppression.text" in rule.names else ("set", "or")
    rule.keys(value.data, ("describe", "safety", "priced", "changes", *settable), "fix")
    if "describe" not in value.data:
        rule.fail("fix needs describe", value)
    new = _set(rule, value.data.get("set"))
    other = _set(rule, value.data.get("or"))
    names = {**rule.names, **{name: expr.type for name, expr in new}}
    describe = rule.template(value.data["describe"], names, "describe")
    safety = rule.choice("safety", ("safe", "unsafe"), "unsafe", mapping=value.data)
    priced = rule.choice("priced", ("true", "false"), "true", mapping=value.data) == "true"
    changes = rule.choice("changes", ("network", "results"), "network", mapping=value.data)
    return FixSpec(
        describe=describe, safety=safety, set=new, other=other, priced=priced, changes=changes,  # type: ignore[arg-type]
    )  # fmt: skip


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


def loss_of(rule: Pieces) -> tuple[Loss, tuple[str, ...]]:
    """What it costs, and in which passes."""
    value = rule.top.get("loss")
    if value is None:
        return "none", ()
    kind: Any
    if isinstance(value.data, str):
        kind = rule.choice("loss", LOSSES)
        return kind, PASSES
    mapping = rule.mapping("loss", ("kind", "passes"))
    passes = mapping["passes"]
    items = passes.data if isinstance(passes.data, list) else [passes]
    names = tuple(rule.text_of(item, "loss: passes") for item in items)
    if not names or not set(names) <= set(PASSES):
        rule.fail(f"loss: passes are {', '.join(PASSES)}", passes)
    kind = rule.choice("kind", LOSSES, mapping=mapping)
    return kind, names


def join_of(rule: Pieces) -> Join | None:
    """When findings of many layers become one."""
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
