"""The rules as data: what a rule is, and how a folder of rule files becomes a rulebook."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from convlint.errors import RuleError, suggestion
from convlint.expr import UNKNOWN, Expr
from convlint.report import RuleInfo, Severity, Source
from convlint.rule_folders import builtin_folder, rule_files

Plain = dict[str, Any]


class Template:
    """A message with `{name}` or `{name:format}` in it; only names, never expressions."""

    __slots__ = ("names", "parts")

    def __init__(self, parts: tuple[str | tuple[str, str], ...]) -> None:
        self.parts = parts
        self.names = frozenset(part[0] for part in parts if isinstance(part, tuple))

    def render(self, values: Mapping[str, Any]) -> str:
        """The text under `values`; what is unknown shows as "?"."""
        out = []
        for part in self.parts:
            if isinstance(part, str):
                out.append(part)
                continue
            value = _lookup(values, part[0])
            out.append("?" if value is UNKNOWN else format(value, part[1]))
        return "".join(out)


def _lookup(values: Mapping[str, Any], dotted: str) -> Any:
    if dotted in values:
        return values[dotted]
    first, *rest = dotted.split(".")
    value = values[first]
    for attribute in rest:
        if value is UNKNOWN:
            break
        value = getattr(value, attribute)
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class FixSpec:
    """How to mend it: alternatives of (description, field -> expression), the first one preferred."""

    describe: Template
    safety: Literal["safe", "unsafe"]
    set: tuple[tuple[str, Expr], ...]
    other: tuple[tuple[str, Expr], ...]  # a second good value, on the other side
    priced: bool  # whether the model knows what it changes


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What a rule says: its default, or a variant that replaces parts of it where `when` holds."""

    when: Expr | None
    severity: Severity
    message: Template
    at: tuple[tuple[str, Expr | None], ...]
    fix: FixSpec | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """When the findings of many layers become one of the network.

    If all share it (`all`), always (`any`), or those alone that their price makes infos (`info`): a warning keeps its
    own line. Layers join only where the message and the fix say the same of them.
    """

    share: Literal["all", "any", "info"]
    when: Expr | None
    message: Template


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule, compiled. `needs_gpu`: its verdict or price depends on the target."""

    info: RuleInfo
    scope: Literal["layer", "edge", "network", "suppression"]
    opt_in: bool
    yields_to: frozenset[str]
    when: Expr | None
    let: tuple[tuple[str, Expr], ...]
    check: Expr
    cases: tuple[Case, ...]  # variants first, the default last
    loss: Literal["fix", "tile", "wave", "none"]
    loss_passes: tuple[str, ...]
    join: Join | None
    needs_gpu: bool
    path: str

    def names(self) -> frozenset[str]:
        """Every name of the vocabulary that decides whether the rule fires."""
        parts = [self.check, *(expr for _, expr in self.let), *([self.when] if self.when else [])]
        return frozenset(name for expr in parts for name in expr.names)

    def names_in_messages(self) -> frozenset[str]:
        """Every name that its texts print."""
        texts = [case.message for case in self.cases] + ([self.join.message] if self.join else [])
        texts += [case.fix.describe for case in self.cases if case.fix]
        return frozenset(name for text in texts for name in text.names)


class Rulebook:
    """All rules, sorted by code, found by code or name."""

    def __init__(self, rules: Iterable[Rule], folders: tuple[str, ...] = ()) -> None:
        self.folders = folders  # beside the built-in rules
        self.rules = tuple(sorted(rules, key=lambda rule: rule.info.code))
        self.by_key = {key: rule for rule in self.rules for key in (rule.info.code, rule.info.name)}
        self.of_networks = tuple(rule for rule in self.rules if rule.scope != "suppression")

    def find(self, key: str) -> Rule | None:
        """The rule with this code (any case) or name."""
        return self.by_key.get(key.upper()) or self.by_key.get(key.lower())

    def suggestion(self, key: str) -> str:
        """What to append to a message about `key`, which names no rule."""
        return suggestion(key, self.by_key)


def load_rulebook(folders: Iterable[str] = ()) -> Rulebook:
    """The built-in rules and those in `folders`. Raises RuleError at the first defect, with file and line."""
    from convlint.rule_cache import cached_plain_rules

    folders = tuple(folders)
    plain = list(cached_plain_rules(rule_files(builtin_folder())))
    for folder in folders:
        from convlint.rule_file import read_rule

        if not os.path.isdir(folder):
            raise RuleError("is not a folder of rules", path=folder)
        files = rule_files(folder)
        if not files:
            raise RuleError("holds no rule (*.yaml)", path=folder)
        plain += [read_rule(path) for path in files]
    return Rulebook((rule_from_plain(data) for data in linked(plain)), folders)


def linked(plain: Iterable[Plain], others: Iterable[Rule] = ()) -> list[Plain]:
    """The rules with every yields_to as a code, of theirs or of `others`. Raises RuleError.

    No two of them share a code or a name.
    """
    rules = list(plain)
    seen: dict[str, Plain] = {}
    for data in rules:
        for key in ("code", "name"):
            other = seen.setdefault(data[key], data)
            if other is not data:
                line, column = data["lines"][key]
                raise RuleError(
                    f"{key} {data[key]} is taken by {other['path']}:{other['lines'][key][0]}",
                    path=data["path"], line=line, column=column,
                )  # fmt: skip
    codes = {key: rule.info.code for rule in others for key in (rule.info.code, rule.info.name)}
    codes.update((key, data["code"]) for key, data in seen.items())
    return [{**data, "yields_to": tuple(_code(name, data, codes) for name in data["yields_to"])} for data in rules]


def _code(name: str, data: Plain, codes: Mapping[str, str]) -> str:
    if name not in codes:
        line, column = data["lines"]["yields_to"]
        raise RuleError(
            f"yields_to: no rule {name}{suggestion(name, codes)}", path=data["path"], line=line, column=column
        )
    return codes[name]


def rule_from_plain(data: Plain) -> Rule:
    """A Rule from the plain form that `rule_file.read_rule` makes and the cache keeps."""
    info = RuleInfo(
        code=data["code"],
        name=data["name"],
        title=data["title"],
        severity=data["severity"],
        rationale=data["rationale"],
        source=Source(document=data["source"][0], section=data["source"][1]),
    )
    join = data["join"]
    return Rule(
        info=info,
        scope=data["scope"],
        opt_in=data["opt_in"],
        yields_to=frozenset(data["yields_to"]),
        when=_expr(data["when"]),
        let=tuple((name, _sure(plain)) for name, plain in data["let"]),
        check=_sure(data["check"]),
        cases=tuple(_case(case) for case in data["cases"]),
        loss=data["loss"],
        loss_passes=tuple(data["loss_passes"]),
        join=None if join is None else Join(share=join[0], when=_expr(join[1]), message=Template(join[2])),
        needs_gpu=data["needs_gpu"],
        path=data["path"],
    )


def _sure(plain: tuple[Any, ...]) -> Expr:
    return Expr(text=plain[0], names=frozenset(plain[1]), type=plain[2], code=plain[3])


def _expr(plain: tuple[Any, ...] | None) -> Expr | None:
    return None if plain is None else _sure(plain)


def _case(data: tuple[Any, ...]) -> Case:
    when, severity, message, at, fix = data
    return Case(
        when=_expr(when),
        severity=severity,
        message=Template(message),
        at=tuple((name, _expr(plain)) for name, plain in at),
        fix=None
        if fix is None
        else FixSpec(
            describe=Template(fix[0]),
            safety=fix[1],
            set=tuple((name, _sure(plain)) for name, plain in fix[2]),
            other=tuple((name, _sure(plain)) for name, plain in fix[3]),
            priced=fix[4],
        ),
    )
