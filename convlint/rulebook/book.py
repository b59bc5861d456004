"""All rules that hold: those of convlint and of the user's folders, from a cache where nothing has changed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import asdict, replace

from convlint import __version__
from convlint.files.cache import cached, stamp
from convlint.model.errors import RuleError, suggestion
from convlint.model.report import RuleInfo, Source
from convlint.rulebook.expr import Expr
from convlint.rulebook.rule import SOURCE_SCOPES, Case, Decision, FixSpec, Fragments, Join, Message, Rule, Template

MOST_SEEN = 5_000  # files and folders below a folder of rules
MOST_RULES = 200  # in one folder; convlint itself has some fifty
MOST_BYTES = 2**20  # of all of them


def builtin_folder() -> str:
    """Where the rules that ship with convlint lie."""
    import convlint_rules

    return str(next(iter(convlint_rules.__path__)))


def rule_files(folder: str) -> list[str]:
    """All .yaml files under `folder`, sorted; links to folders are not followed. Raises RuleError where it is vast."""
    paths = []
    seen = 0
    for root, folders, files in os.walk(folder):
        seen += len(folders) + len(files)
        if seen > MOST_SEEN:  # a config may name any folder, the whole disk included
            raise RuleError(
                f"holds more than {MOST_SEEN:,} files and folders, too many for a folder of rules", path=folder
            )
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__")))
        paths += [os.path.join(root, name) for name in sorted(files) if name.endswith((".yaml", ".yml"))]
    if len(paths) > MOST_RULES:
        raise RuleError(f"holds more than {MOST_RULES} rules", path=folder)
    if sum(os.path.getsize(path) for path in paths if os.path.isfile(path)) > MOST_BYTES:
        raise RuleError(f"holds rules of more than {MOST_BYTES >> 20} MiB in all", path=folder)
    return paths


# what the compiled form depends on beside the rule files and the table of quantities, every module of facts/
_COMPILERS = (
    "../files/located_yaml.py",
    "file.py",
    "rule.py",
    "book.py",
    "expr.py",
    "grammar.py",
)


def cached_rules(paths: Sequence[str]) -> list[Rule]:
    """The rules in `paths`, not linked yet. Raises RuleError at the first defect."""
    content = cached("rules", _key(paths), lambda: _read_all(paths), lambda value: _are_plain(value, paths))
    return [_rule(rule) for rule in content]


_SHAPE: Mapping[str, type | tuple[type, ...]] = {
    "info": dict, "scope": str, "opt_in": bool, "yields_to": tuple, "decision": dict, "cases": tuple, "loss": str,
    "loss_passes": tuple, "join": (dict, type(None)), "needs_gpu": bool, "path": str, "lines": dict,
    "in_source": (dict, type(None)),
}  # fmt: skip


def _are_plain(content: Any, paths: Sequence[str]) -> bool:
    """Whether these are the plain forms of the rules in the files at `paths`."""
    return isinstance(content, list) and len(content) == len(paths) and all(map(_is_plain, content, paths))


def _is_plain(rule: Any, path: str) -> bool:
    """Whether this is the plain form of the rule in the file at `path`, as far as its outline shows."""
    if not isinstance(rule, dict) or rule.keys() != _SHAPE.keys() or rule["path"] != path:
        return False
    sound = all(isinstance(rule[name], kind) for name, kind in _SHAPE.items())
    return sound and (rule["in_source"] is None or _is_plain(rule["in_source"], path))


def _read_all(paths: Sequence[str]) -> list[dict[str, Any]]:
    from convlint.rulebook.file import read_rule  # which a cached rulebook does without

    return [_plain(read_rule(path, built_in=True)) for path in paths]


def _key(paths: Sequence[str]) -> str:
    return repr((__version__, sys.version, [(path, *stamp(path)) for path in (*_compilers(), *paths)]))


def _compilers() -> list[str]:
    here = os.path.dirname(__file__)
    facts = os.path.join(here, "..", "facts")
    quantities = sorted(name for name in os.listdir(facts) if name.endswith(".py"))
    return [os.path.join(here, name) for name in _COMPILERS] + [os.path.join(facts, name) for name in quantities]


def _plain(rule: Rule) -> dict[str, Any]:
    """The rule in types that marshal knows: it alone keeps compiled code, so records are taken apart."""
    info, join, decision = rule.info, rule.join, rule.decision
    return asdict(rule) | {
        "info": asdict(info) | {"source": asdict(info.source)}, "lines": dict(rule.lines),
        "yields_to": tuple(rule.yields_to), "cases": tuple(_plain_case(case) for case in rule.cases),
        "decision": {
            "when": _plain_expr(decision.when), "let": _plain_pairs(decision.let), "check": _plain_expr(decision.check),
            "code": decision.code,
        },
        "join": None if join is None else asdict(join) | {
            "when": _plain_expr(join.when), "message": _plain_message(join.message),
        },
        "in_source": None if rule.in_source is None else _plain(rule.in_source),
    }  # fmt: skip


def _plain_expr(expr: Expr | None) -> tuple[Any, ...] | None:
    return None if expr is None else (expr.text, expr.names, expr.type, expr.code)


def _plain_pairs(pairs: Iterable[tuple[str, Expr | None]]) -> tuple[Any, ...]:
    return tuple((name, _plain_expr(expr)) for name, expr in pairs)


def _plain_message(message: Message) -> tuple[Any, ...] | dict[str, Any]:
    """The message in types that marshal knows: the parts of a template, or a mapping for fragments."""
    if isinstance(message, Template):
        return message.parts
    pieces = tuple((_plain_expr(when), text.parts) for when, text in message.pieces)
    return {"pieces": pieces, "otherwise": message.otherwise.parts}


def _plain_case(case: Case) -> dict[str, Any]:
    fix = case.fix
    return asdict(case) | {
        "when": _plain_expr(case.when), "message": _plain_message(case.message), "at": _plain_pairs(case.at),
        "fix": None if fix is None else asdict(fix) | {
            "describe": fix.describe.parts, "set": _plain_pairs(fix.set), "other": _plain_pairs(fix.other),
        },
    }  # fmt: skip


def _rule(data: dict[str, Any]) -> Rule:
    info, decision, join = data["info"], data["decision"], data["join"]
    fields: dict[str, Any] = {
        "info": RuleInfo(**info | {"source": Source(**info["source"])}),
        "yields_to": frozenset(data["yields_to"]),
        "decision": Decision(
            when=_expr(decision["when"]), let=_pairs(decision["let"]), check=_sure(decision["check"]),
            code=decision["code"],
        ),
        "cases": tuple(_case(case) for case in data["cases"]),
        "join": None if join is None else Join(
            **join | {"when": _expr(join["when"]), "message": _message(join["message"])}
        ),
        "in_source": None if data["in_source"] is None else _rule(data["in_source"]),
    }  # fmt: skip
    return Rule(**data | fields)


def _sure(plain: tuple[Any, ...]) -> Expr:
    return Expr(text=plain[0], names=plain[1], type=plain[2], code=plain[3])


def _expr(plain: tuple[Any, ...] | None) -> Expr | None:
    return None if plain is None else _sure(plain)


def _pairs(plain: tuple[Any, ...]) -> tuple[tuple[str, Any], ...]:
    return tuple((name, _expr(expr)) for name, expr in plain)


def _message(plain: tuple[Any, ...] | dict[str, Any]) -> Message:
    if isinstance(plain, tuple):
        return Template(plain)
    pieces = tuple((_expr(when), Template(parts)) for when, parts in plain["pieces"])
    return Fragments(pieces, Template(plain["otherwise"]))


def _case(data: dict[str, Any]) -> Case:
    fix = data["fix"]
    fields: dict[str, Any] = {
        "when": _expr(data["when"]), "message": _message(data["message"]), "at": _pairs(data["at"]),
        "fix": None if fix is None else FixSpec(
            **fix | {
                "describe": Template(fix["describe"]), "set": _pairs(fix["set"]), "other": _pairs(fix["other"]),
            },
        ),
    }  # fmt: skip
    return Case(**data | fields)


_OF_NETWORKS = ("layer", "edge", "network")


class Rulebook:
    """All rules, sorted by code, found by code or name."""

    def __init__(self, rules: Iterable[Rule], folders: tuple[str, ...] = ()) -> None:
        self.folders = folders  # beside the built-in rules
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


def load_rulebook(folders: Iterable[str] = ()) -> Rulebook:
    """The built-in rules and those in `folders`. Raises RuleError at the first defect, with file and line."""
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
    return Rulebook(linked(rules), folders)


def linked(rules: Iterable[Rule], others: Iterable[Rule] = ()) -> list[Rule]:
    """The rules with every yields_to as a code, of theirs or of `others`.

    Raises RuleError where it names none of these, or where two rules share a code or a name.
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
    result = []
    for rule in rules:
        if rule.yields_to:
            own = frozenset(_code(name, rule, codes) for name in rule.yields_to)
            in_source = None if rule.in_source is None else replace(rule.in_source, yields_to=own)
            rule = replace(rule, yields_to=own, in_source=in_source)
        result.append(rule)
    return result


def _code(name: str, rule: Rule, codes: Mapping[str, str]) -> str:
    if name not in codes:
        line, column = rule.lines["yields_to"]
        raise RuleError(f"yields_to: no rule {name}{suggestion(name, codes)}", path=rule.path, line=line, column=column)
    return codes[name]
