"""Reads the file of a rule, and lists the texts in it that can be translated."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from convlint.files.located_yaml import parse, read_text
from convlint.model.errors import InputFault, RuleError, shown, suggestion
from convlint.model.report import RuleInfo, Source
from convlint.rulebook.judgement import (
    GPU_NAMES,
    SETTABLE,
    SEVERITIES,
    Pieces,
    cases_of,
    decision_of,
    in_source,
    join_of,
    loss_of,
)
from convlint.rulebook.rule import (
    SOURCE_SCOPES,
    Rule,
    Scope,
    Template,
)


def texts_of(rule: Rule) -> Iterator[str]:
    """Every text of a rule in English: title, rationale, templates of messages and fixes, and words that fill them."""
    yield rule.info.title
    yield rule.info.rationale
    for judging in (rule, *([rule.in_source] if rule.in_source is not None else [])):
        messages = [case.message for case in judging.cases]
        messages += [judging.join.message] if judging.join is not None else []
        for message in messages:
            for template in (message,) if isinstance(message, Template) else (text for _, text in message.pieces):
                yield template.text
        yield from (case.fix.describe.text for case in judging.cases if case.fix is not None)
        shown = judging.names_in_messages()
        for name, expr in judging.decision.let:
            if expr.type == "text" and name in shown:
                yield from _chosen(ast.parse(expr.text, mode="eval").body)


def _chosen(tree: ast.expr) -> Iterator[str]:
    """The texts that an expression chooses from; what it compares with is none of them."""
    if isinstance(tree, ast.IfExp):
        yield from _chosen(tree.body)
        yield from _chosen(tree.orelse)
    elif isinstance(tree, ast.Constant) and isinstance(tree.value, str) and tree.value:
        yield tree.value


REQUIRED = ("code", "name", "title", "severity", "check", "message", "rationale", "source", "examples")
_OPTIONAL = (
    "scope", "opt_in", "evidence", "yields_to", "when", "let", "at", "fix", "variants", "loss", "join", "source_code",
)  # fmt: skip
KEYS = (*REQUIRED, *_OPTIONAL)
SCOPES: tuple[Scope, ...] = ("layer", "edge", "network", "suppression", *SOURCE_SCOPES)
# keys that mean nothing for a suppression, and for what stands in source code
_MEANINGLESS: dict[str, tuple[str, ...]] = {
    "suppression": ("at", "join", "loss", "yields_to", "source_code"),
    **dict.fromkeys(SOURCE_SCOPES, ("join", "loss", "source_code")),
}
_SUBJECTS = {
    "suppression": "suppressions", "construction": "constructions", "width": "widths", "program": "programs",
}  # fmt: skip

# keys whose place in the file a defect that shows only later is pointed at
_PLACES = ("code", "name", "yields_to", "check", "fix", "variants")


def read_rule(path: str, *, built_in: bool = False) -> Rule:
    """The rule in the file at `path`. Raises RuleError at the first defect, with line and column."""
    try:
        document = parse(read_text(path))
    except InputFault as error:
        raise RuleError(error.message, path=path, line=error.line, column=error.column) from error
    if document is None or not isinstance(document.data, dict):
        raise RuleError("a rule is a mapping", path=path, line=1, column=1)
    return _rule(Pieces(path, document), built_in)


def _rule(rule: Pieces, built_in: bool) -> Rule:
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
    scope: Any = rule.choice("scope", SCOPES, "layer")
    rule.reads(scope)
    for key in _MEANINGLESS.get(scope, ()):
        if key in rule.top:
            rule.fail(f"{key} means nothing in a rule on {_SUBJECTS[scope]}", rule.top[key])
    decision = decision_of(rule)
    cases = cases_of(rule)
    loss, loss_passes = loss_of(rule)
    join = join_of(rule)
    source = rule.mapping(rule.top["source"], "source", ("document", "section"))
    _examples(rule)
    info = RuleInfo(
        code=code,
        name=name,
        title=rule.text("title"),
        severity=rule.choice("severity", SEVERITIES),  # type: ignore[arg-type]
        rationale=rule.text("rationale"),
        source=Source(**{key: rule.text_of(source[key], f"source: {key}") for key in ("document", "section")}),
        loss=loss,
        loss_passes=loss_passes,
        evidence=rule.choice("evidence", ("true", "false"), "false") == "true",
        built_in=built_in,
    )
    made = Rule(
        info=info,
        scope=scope,
        opt_in=rule.choice("opt_in", ("true", "false"), "false") == "true",
        yields_to=frozenset(rule.text_of(item, "yields_to") for item in rule.items("yields_to")),
        decision=decision,
        cases=cases,
        loss=loss,
        loss_passes=loss_passes,
        join=join,
        needs_gpu=loss != "none" or not GPU_NAMES.isdisjoint(rule.read),
        path=rule.path,
        lines={key: rule.top[key].span[:2] for key in _PLACES if key in rule.top},
    )
    return replace(made, in_source=in_source(rule, made)) if "source_code" in rule.top else made


def _examples(rule: Pieces) -> None:
    examples = rule.mapping(rule.top["examples"], "examples", ("pass", "fail"))
    for key in ("pass", "fail"):
        items = examples[key].data
        if not isinstance(items, list) or not items:
            rule.fail(f"examples: at least one that should {key}", examples[key])
        for item in items:
            if not isinstance(item.data, dict):
                rule.fail("examples: each is a mapping", item)
    for item in examples["fail"].data:
        rule.keys(item.data, ("given", "message", "severity", "fixed", "line"), "an example")
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
