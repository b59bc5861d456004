"""All rules together: how folders of rule files become a rulebook, and how a rule is found in it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from convlint.errors import RuleError, suggestion
from convlint.files.languages import ENGLISH
from convlint.rulebook.folders import builtin_folder, rule_files
from convlint.rulebook.rule import SOURCE_SCOPES, Rule

_OF_NETWORKS = ("layer", "edge", "network")


class Rulebook:
    """All rules, sorted by code, found by code or name."""

    def __init__(self, rules: Iterable[Rule], folders: tuple[str, ...] = (), language: str = ENGLISH) -> None:
        self.folders = folders  # beside the built-in rules
        self.language = language  # what they speak; if that is not English, they speak both
        self.rules = tuple(sorted(rules, key=lambda rule: rule.info.code))
        self.by_key = {key: rule for rule in self.rules for key in (rule.info.code, rule.info.name)}
        self.of_networks = tuple(rule for rule in self.rules if rule.scope in _OF_NETWORKS)
        self.of_source = tuple(
            judging
            for rule in self.rules
            if (judging := rule if rule.scope in SOURCE_SCOPES else rule.in_source) is not None
        )

    def find(self, key: str) -> Rule | None:
        """The rule with this code (any case) or name."""
        return self.by_key.get(key.upper()) or self.by_key.get(key.lower())

    def suggestion(self, key: str) -> str:
        """What to append to a message about `key`, which names no rule."""
        return suggestion(key, self.by_key)


def load_rulebook(folders: Iterable[str] = (), language: str = ENGLISH) -> Rulebook:
    """The built-in rules and those in `folders`. Raises RuleError at the first defect, with file and line.

    In another language than English they say both, as pairs; what has no translation says English alone.
    """
    from convlint.rulebook.cache import cached_rules

    folders = tuple(folders)
    rules = list(cached_rules(rule_files(builtin_folder())))
    for folder in folders:
        from convlint.rulebook.file import read_rule

        if not os.path.isdir(folder):
            raise RuleError("is not a folder of rules", path=folder)
        files = rule_files(folder)
        if not files:
            raise RuleError("holds no rule (*.yaml)", path=folder)
        rules += [read_rule(path) for path in files]
    rules = linked(rules)
    if language != ENGLISH:
        from convlint.files.languages.catalogue import catalogue
        from convlint.rulebook.translated import translated

        rules = [translated(rule, catalogue(language)) for rule in rules]
    return Rulebook(rules, folders, language)


def linked(rules: Iterable[Rule], others: Iterable[Rule] = ()) -> list[Rule]:
    """The rules with every yields_to as a code, of theirs or of `others`. Raises RuleError.

    No two of them share a code or a name.
    """
    rules = list(rules)
    seen: dict[str, Rule] = {}
    for rule in rules:
        for kind, key in (("code", rule.info.code), ("name", rule.info.name)):
            other = seen.setdefault(key, rule)
            if other is not rule:
                line, column = rule.lines[kind]
                raise RuleError(
                    f"{kind} {key} is taken by {other.path}:{other.lines[kind][0]}",
                    path=rule.path, line=line, column=column,
                )  # fmt: skip
    codes = {key: rule.info.code for rule in others for key in (rule.info.code, rule.info.name)}
    codes.update((key, rule.info.code) for key, rule in seen.items())
    return [
        _with_codes(rule, frozenset(_code(name, rule, codes) for name in rule.yields_to)) if rule.yields_to else rule
        for rule in rules
    ]


def _with_codes(rule: Rule, codes: frozenset[str]) -> Rule:
    in_source = None if rule.in_source is None else replace(rule.in_source, yields_to=codes)
    return replace(rule, yields_to=codes, in_source=in_source)


def _code(name: str, rule: Rule, codes: Mapping[str, str]) -> str:
    if name not in codes:
        line, column = rule.lines["yields_to"]
        raise RuleError(f"yields_to: no rule {name}{suggestion(name, codes)}", path=rule.path, line=line, column=column)
    return codes[name]
