"""All rules together: how folders of rule files become a rulebook, and how a rule is found in it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from convlint.errors import RuleError, suggestion
from convlint.report import RuleInfo, Source
from convlint.rulebook.expr import Expr
from convlint.rulebook.folders import builtin_folder, rule_files
from convlint.rulebook.rule import Case, FixSpec, Join, Rule, Template

Plain = dict[str, Any]


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
    from convlint.rulebook.cache import cached_plain_rules

    folders = tuple(folders)
    plain = list(cached_plain_rules(rule_files(builtin_folder())))
    for folder in folders:
        from convlint.rulebook.file import read_rule

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
