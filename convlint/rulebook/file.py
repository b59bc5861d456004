"""Reads the file of a rule, piece by piece, each checked; lists the texts in it that can be translated."""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from msgspec.structs import replace

from convlint.facts.layer import QUANTITIES
from convlint.facts.quantity import Type
from convlint.facts.sizes import SIZES
from convlint.facts.source_layers import OF_SOURCE as _OF_SOURCE
from convlint.files.located_yaml import Value, parse, read_text
from convlint.model.errors import InputFault, RuleError, shown, suggestion
from convlint.model.layer import PASSES, Loss
from convlint.model.report import SEVERITIES, RuleInfo, Source
from convlint.rulebook.expr import FUNCTIONS, Expr, ExprError
from convlint.rulebook.grammar import compile_decision, compile_expr
from convlint.rulebook.rule import (
    SOURCE_SCOPES,
    Case,
    Decision,
    FixSpec,
    Fragments,
    Join,
    Message,
    Rule,
    Scope,
    Template,
)

MEANINGS: Mapping[str, str] = {name: quantity.meaning for name, quantity in QUANTITIES.items()}
VOCABULARY: Mapping[str, Type] = {name: quantity.type for name, quantity in QUANTITIES.items()}
# names whose value depends on the target
GPU_NAMES = frozenset(name for name, quantity in QUANTITIES.items() if quantity.gpu)

# what rules on source code read beside them; each scope what is its own
OF_SOURCE: Mapping[str, Type] = {name: quantity.type for name, quantity in _OF_SOURCE.items()}
_SUBJECTS: Mapping[str, tuple[str, ...]] = {
    "construction": ("source.",), "width": ("source.", "width."), "program": ("program.",),
}  # fmt: skip

# what a rule of scope `suppression` reads, and nothing else; it judges one rule that a comment or the config silences
SUPPRESSION_MEANINGS: Mapping[str, str] = {
    "suppression.text": "the suppression as it was written, without its reason",
    "suppression.rule": "the code or name in it",
    "suppression.reason": "its reason (empty: none)",
    "suppression.problem": "why it cannot be read or names no rule (empty: nothing is wrong)",
    "suppression.expires": "its last day (empty: none)",
    "suppression.known": "it can be read and names a rule",
    "suppression.used": "it silences a finding, or its rule could not be checked here",
    "suppression.expired": "its last day is over",
}
SUPPRESSION: Mapping[str, Type] = {
    name: "truth" if name.split(".")[1] in ("known", "used", "expired") else "text" for name in SUPPRESSION_MEANINGS
}

_RUNTIME = tuple(name for name in VOCABULARY if name.startswith("runtime."))
_OTHER_PLACES = (
    "dtype",
    "layout",
    "bias",
    "copies_input",
    "unfolded",
    "name",
    "input",
    "layer",
    "target",
    "mode",
    "runtime",
)
PLACES: tuple[str, ...] = (*SIZES, *_OTHER_PLACES, *_RUNTIME)
SETTABLE: Mapping[str, Type] = {
    **dict.fromkeys(SIZES, "number"),
    "dtype": "text",
    "layout": "text",
    "bias": "truth",
    "copies_input": "truth",
    "unfolded": "truth",
    **{name: "text" if VOCABULARY[name] == "version" else VOCABULARY[name] for name in _RUNTIME},
}
# places of a program, beside its settings: the script, and what its rules are about
_OF_PROGRAM = (
    "program", "program.conflict", "program.evidence", "program.autotune_disabled", "program.backward_in_autocast",
    "program.autocast_around_loss",
)  # fmt: skip


def names_of(scope: str) -> Mapping[str, Type]:
    """What a rule of this scope may read."""
    if scope == "suppression":
        return SUPPRESSION
    own = _SUBJECTS.get(scope)
    if own is None:
        return VOCABULARY
    return {**VOCABULARY, **{name: kind for name, kind in OF_SOURCE.items() if name.startswith(own)}}


def places_of(scope: str) -> tuple[str, ...]:
    """Where a rule of this scope may point."""
    if scope == "program":
        return (*_OF_PROGRAM, *_RUNTIME)
    return (*PLACES, "width") if scope == "width" else PLACES


_FIELD = re.compile(r"\{([A-Za-z_][A-Za-z0-9_.]*)(?::([,.0-9]{0,4}[fd%]?))?\}")

MAX_FRAGMENTS = 12


class Pieces:
    """One rule file being read; every method raises RuleError at the place of the defect.

    `names` is what expressions and messages may use, `read` what of the vocabulary they did use.
    """

    def __init__(self, path: str, document: Value) -> None:
        self.path = path
        self.document = document
        self.top: dict[str, Value] = document.data
        self.reads("layer")

    def reads(self, scope: str) -> None:
        """From here on it reads what rules of this scope may, and points where they may."""
        self.vocabulary, self.places = names_of(scope), places_of(scope)
        self.names: dict[str, Type] = dict(self.vocabulary)
        self.read: set[str] = set()

    def fail(self, message: str, value: Value | None = None) -> NoReturn:
        """Raises RuleError where `value` stands, or at the file's start."""
        span = (value or self.document).span
        raise RuleError(message, path=self.path, line=span[0], column=span[1])

    def keys(self, mapping: Mapping[str, Value], known: tuple[str, ...], where: str) -> None:
        """No key but the known ones."""
        for key, value in mapping.items():
            if key not in known:
                line, column, *_ = value.key_span or value.span
                message = f"unknown key {shown(key)!r} in {where}{suggestion(key, known)}"
                if "given" in known and key in VOCABULARY:
                    message += "; the layer of a failing example stands under given"
                raise RuleError(message, path=self.path, line=line, column=column)

    def mapping(
        self, value: Value, what: str, required: tuple[str, ...] = (), optional: tuple[str, ...] = ()
    ) -> dict[str, Value]:
        """The mapping that `value` is: no key but the required ones, which all are there, and the optional ones."""
        if not isinstance(value.data, dict):
            self.fail(f"{what} is a mapping", value)
        data: dict[str, Value] = value.data
        self.keys(data, (*required, *optional), what)
        for name in required:
            if name not in data:
                self.fail(f"{what} needs {name}", value)
        return data

    def items(self, key: str) -> list[Value]:
        """The list under `key`, or the one thing there; empty where there is none."""
        value = self.top.get(key)
        if value is None:
            return []
        return value.data if isinstance(value.data, list) else [value]

    def text(self, key: str) -> str:
        """The text under `key`."""
        return self.text_of(self.top[key], key)

    def text_of(self, value: Value, what: str) -> str:
        """The text of `value`, which must not be empty."""
        if not isinstance(value.data, str) or value.is_null or not value.data.strip():
            kind = "empty" if isinstance(value.data, str) and not value.is_null else value.kind
            self.fail(f"{what}: must be text, not {kind}", value)
        return value.data.strip()

    def choice(
        self,
        key: str,
        options: tuple[str, ...],
        default: str | None = None,
        *,
        mapping: Mapping[str, Value] | None = None,
    ) -> str:
        """One of `options` under `key`, or the default."""
        value = (self.top if mapping is None else mapping).get(key)
        if value is None and default is not None:
            return default
        if value is None:
            self.fail(f"{key} is missing")
        text = self.text_of(value, key)
        if text not in options:
            self.fail(f"{key}: {shown(text)!r} is not one of {', '.join(options)}{suggestion(text, options)}", value)
        return text

    def expr(self, value: Value, wanted: Type | None, what: str) -> Expr:
        """The compiled expression, which must be of the type `wanted`; its names are those of the vocabulary."""
        text = self.text_of(value, what)
        try:
            compiled = compile_expr(text, self.names)
        except ExprError as error:
            self.fail(f"{what}: {error.message}", value)
        if wanted is not None and compiled.type != wanted:
            self.fail(f"{what}: {shown(text)} is a {compiled.type}, a {wanted} belongs here", value)
        names = frozenset(name for name in compiled.names if name in self.vocabulary)
        self.read.update(names)
        return replace(compiled, names=names)

    def message(self, value: Value, names: Mapping[str, Type], what: str) -> Message:
        """A text, or a list of {when, text} whose texts that hold are joined by commas; without `when` one holds."""
        if not isinstance(value.data, list):
            return self.template(value, names, what)
        if not 1 <= len(value.data) <= MAX_FRAGMENTS:
            self.fail(f"{what}: a list holds 1 to {MAX_FRAGMENTS} fragments, not {len(value.data)}", value)
        pieces = []
        for item in value.data:
            if not isinstance(item.data, dict):
                self.fail(f"{what}: each fragment is a mapping of when and text", item)
            self.keys(item.data, ("when", "text"), f"a fragment of {what}")
            if "text" not in item.data:
                self.fail(f"{what}: a fragment needs text", item)
            when = self.expr(item.data["when"], "truth", f"{what}: when") if "when" in item.data else None
            pieces.append((when, self.template(item.data["text"], names, f"{what}: text")))
        return Fragments(tuple(pieces), Template((self.text("title"),)))

    def template(self, value: Value, names: Mapping[str, Type], what: str) -> Template:
        """A message: its parts are text, or (name, format)."""
        text = self.text_of(value, what)
        parts: list[Any] = []
        end = 0
        for match in _FIELD.finditer(text):
            name, form = match.group(1), match.group(2) or ""
            parts.append(text[end : match.start()])
            if name not in names:
                self.fail(f"{what}: unknown name {name!r} in a message{suggestion(name, names)}", value)
            if form and names[name] != "number":
                self.fail(f"{what}: {name} is no number and takes no format", value)
            if not _formats(form):
                self.fail(f"{what}: {form!r} is no format for a number; write .0f or .1f", value)
            if name in self.vocabulary:
                self.read.add(name)
            parts.append((name, form))
            end = match.end()
        parts.append(text[end:])
        if any("{" in part or "}" in part for part in parts if isinstance(part, str)):
            self.fail(f"{what}: a message holds {{names}} only", value)
        return Template(tuple(part for part in parts if part))


def _formats(form: str) -> bool:
    """Whether any number, whole or not, can be shown in this format."""
    try:
        return bool(format(1, form) and format(1.5, form))
    except ValueError:
        return False


MOST_PARTS = 200  # names of `let`, variants
LOSSES = ("fix", "tile", "wave", "host", "compile", "none")
_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,30}")
# what the names of the vocabulary stand on; `let` must not hide it
_RESERVED = frozenset(
    {name.split(".")[0] for name in (*VOCABULARY, *OF_SOURCE, *SUPPRESSION)}
    | {*FUNCTIONS, "true", "false", "count", "layers"}
)


def decision_of(rule: Pieces) -> Decision:
    """When it is broken."""
    when = rule.expr(rule.top["when"], "truth", "when") if "when" in rule.top else None
    let = let_of(rule)
    return compile_decision(when, let, rule.expr(rule.top["check"], "truth", "check"))


def let_of(rule: Pieces) -> tuple[tuple[str, Expr], ...]:
    """What it names, each in terms of those before it."""
    result = []
    value = rule.top.get("let")
    if value is None:
        return ()
    if not isinstance(value.data, dict):
        rule.fail("let must map names to expressions", value)
    if len(value.data) > MOST_PARTS:
        rule.fail(f"let: more than {MOST_PARTS} names", value)
    for name, item in value.data.items():
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
    keys = ("severity", "message", "at", "fix")
    return (*(_case(rule, rule.mapping(item, "a variant", ("when",), keys), default) for item in variants), default)


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


_KEEP_NETWORK = frozenset(("dtype", "layout", "unfolded"))  # the same network with the same weights, computed otherwise


def _fix(rule: Pieces, value: Value) -> FixSpec | None:
    if value.is_null:
        return None
    settable = () if "suppression.text" in rule.names else ("set", "or")
    mapping = rule.mapping(value, "fix", ("describe",), ("safety", "priced", "changes", *settable))
    new = _set(rule, mapping.get("set"))
    other = _set(rule, mapping.get("or"))
    names = {**rule.names, **{name: expr.type for name, expr in new}}
    describe = rule.template(mapping["describe"], names, "describe")
    safety = rule.choice("safety", ("safe", "unsafe"), "unsafe", mapping=mapping)
    priced = rule.choice("priced", ("true", "false"), "true", mapping=mapping) == "true"
    keeps_network = all(name in _KEEP_NETWORK or name.startswith("runtime.") for name, _ in new)
    usual = "results" if new and keeps_network else "network"
    changes = rule.choice("changes", ("network", "results"), usual, mapping=mapping)
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
    mapping = rule.mapping(value, "loss", ("kind", "passes"))
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
    mapping = rule.mapping(value, "join", ("message",), ("share", "when"))
    when = mapping.get("when")
    names: dict[str, Type] = {**rule.names, "count": "number", "layers": "text"}
    return Join(
        share=rule.choice("share", ("all", "any", "info"), "all", mapping=mapping),  # type: ignore[arg-type]
        when=None if when is None else rule.expr(when, "truth", "join: when"),
        message=rule.message(mapping["message"], names, "join: message"),
    )


_DECIDING = ("when", "let", "check")
_SAYING = ("severity", "message", "at", "fix", "variants")
_USUAL = {"layer": "construction", "network": "program"}


def in_source(pieces: Pieces, rule: Rule) -> Rule:
    """The rule as its `source_code` has it. Raises RuleError.

    Where that decides anew, it leaves nothing of how the rule decides elsewhere; where it has a message of its own,
    the rule's variants, which speak in other words, are left out too. All else is the rule's.
    """
    own = pieces.mapping(pieces.top["source_code"], "source_code", optional=("scope", *_DECIDING, *_SAYING))
    inner = Pieces(pieces.path, pieces.document)
    left_out = {"variants"} if "message" in own else set()
    if "check" in own:
        left_out.update(_DECIDING)
    inner.top = {key: item for key, item in pieces.top.items() if key not in left_out} | own
    scope: Any = inner.choice("scope", SOURCE_SCOPES, _USUAL.get(rule.scope), mapping=own)
    inner.reads(scope)
    return replace(
        rule,
        info=replace(rule.info, loss="none", loss_passes=()),
        scope=scope,
        decision=decision_of(inner),
        cases=cases_of(inner),
        loss="none",
        loss_passes=(),
        join=None,
        needs_gpu=not GPU_NAMES.isdisjoint(inner.read),
        in_source=None,
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
_JUDGED = {
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
            rule.fail(f"{key} means nothing in a rule on {_JUDGED[scope]}", rule.top[key])
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
    result = Rule(
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
    return replace(result, in_source=in_source(rule, result)) if "source_code" in rule.top else result


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
