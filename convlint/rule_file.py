"""One rule file to the rule's plain form: every key, name and expression in it is checked here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NoReturn

from convlint.errors import InputFault, RuleError, shown, suggestion
from convlint.expr import Expr, ExprError, Type, compile_expr
from convlint.located_yaml import Value, parse, read_text
from convlint.rulebook import Plain
from convlint.vocabulary import GPU_NAMES, PLACES, SETTABLE, VOCABULARY

REQUIRED = ("code", "name", "title", "severity", "check", "message", "rationale", "source", "examples")
KEYS = (*REQUIRED, "scope", "opt_in", "yields_to", "when", "let", "at", "fix", "variants", "loss", "join")
SEVERITIES = ("error", "warning", "info")
SCOPES = ("layer", "edge", "network")
LOSSES = ("fix", "tile", "wave", "none")
PASSES = ("fprop", "dgrad", "wgrad")
_FIELD = re.compile(r"\{([A-Za-z_][A-Za-z0-9_.]*)(?::([,.0-9]{0,4}[fd%]?))?\}")
_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,30}")


def read_rule(path: str) -> Plain:
    """The rule in the file at `path`. Raises RuleError at the first defect, with line and column."""
    try:
        document = parse(read_text(path))
    except InputFault as error:
        raise RuleError(error.message, path=path, line=error.line, column=error.column) from error
    if document is None or not isinstance(document.data, dict):
        raise RuleError("a rule is a mapping", path=path, line=1, column=1)
    return _RuleFile(path, document).plain()


class _RuleFile:
    def __init__(self, path: str, document: Value) -> None:
        self.path = path
        self.document = document
        self.top: dict[str, Value] = document.data
        self.names: dict[str, Type] = dict(VOCABULARY)
        self.read: set[str] = set()  # names of the vocabulary that any expression or message uses

    def fail(self, message: str, value: Value | None = None) -> NoReturn:
        span = (value or self.document).span
        raise RuleError(message, path=self.path, line=span[0], column=span[1])

    def plain(self) -> Plain:
        self._keys(self.top, KEYS, "a rule")
        for key in REQUIRED:
            if key not in self.top:
                self.fail(f"{key} is missing")
        code = self._text("code")
        if not re.fullmatch(r"[A-Z]{2,8}[0-9]{3,4}", code):
            self.fail("code: capital letters and three or four digits, such as CL102", self.top["code"])
        name = self._text("name")
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
            self.fail("name: lower-case words joined by hyphens", self.top["name"])
        when = self._optional_expr("when", "truth")
        let = self._let()
        check = self._expr(self.top["check"], "truth")
        default = self._case(self.top, None)
        cases = [self._variant(item, default) for item in self._list("variants")] + [default]
        loss, loss_passes = self._loss()
        join = self._join()
        source = self._mapping("source", ("document", "section"))
        self._examples()
        return {
            "path": self.path,
            "lines": {key: self.top[key].span[:2] for key in ("code", "name", "yields_to") if key in self.top},
            "code": code,
            "name": name,
            "title": self._text("title"),
            "severity": self._choice("severity", SEVERITIES),
            "scope": self._choice("scope", SCOPES, "layer"),
            "opt_in": self._choice("opt_in", ("true", "false"), "false") == "true",
            "yields_to": tuple(self._text_of(item) for item in self._list("yields_to")),
            "when": when,
            "let": let,
            "check": check,
            "cases": tuple(cases),
            "loss": loss,
            "loss_passes": loss_passes,
            "join": join,
            "rationale": self._text("rationale"),
            "source": (self._text_of(source["document"]), self._text_of(source["section"])),
            "needs_gpu": loss != "none" or any(n.startswith("gpu.") or n in GPU_NAMES for n in self.read),
        }

    # --- parts of a rule

    def _let(self) -> tuple[tuple[str, Any], ...]:
        result = []
        value = self.top.get("let")
        if value is None:
            return ()
        if not isinstance(value.data, dict):
            self.fail("let must map names to expressions", value)
        for name, item in value.data.items():
            if not _IDENTIFIER.fullmatch(name) or name in VOCABULARY:
                self.fail(f"let: {shown(name)!r} cannot be a name here", item)
            plain = self._expr(item, None)
            self.names[name] = plain[2]
            result.append((name, plain))
        return tuple(result)

    def _variant(self, item: Value, default: tuple[Any, ...]) -> tuple[Any, ...]:
        if not isinstance(item.data, dict):
            self.fail("a variant is a mapping", item)
        self._keys(item.data, ("when", "severity", "message", "at", "fix"), "a variant")
        if "when" not in item.data:
            self.fail("a variant needs when", item)
        return self._case(item.data, default)

    def _case(self, mapping: Mapping[str, Value], default: tuple[Any, ...] | None) -> tuple[Any, ...]:
        """(when, severity, message, at, fix); what a variant leaves out is the default's."""
        when = None if default is None else self._expr(mapping["when"], "truth")
        severity = message = at = fix = None
        if default is not None:
            _, severity, message, at, fix = default
        if "severity" in mapping:
            severity = self._choice("severity", SEVERITIES, mapping=mapping)
        if "message" in mapping:
            message = self._template(mapping["message"], self.names)
        if "at" in mapping:
            at = self._at(mapping["at"])
        if "fix" in mapping:
            fix = self._fix(mapping["fix"])
        return when, severity, message, at or (), fix

    def _at(self, value: Value) -> tuple[tuple[str, Any], ...]:
        if isinstance(value.data, dict):
            entries = [(name, self._expr(item, "truth"), item) for name, item in value.data.items()]
        else:
            items = value.data if isinstance(value.data, list) else [value]
            entries = [(self._text_of(item), None, item) for item in items]
        for name, _, item in entries:
            if name not in PLACES:
                self.fail(f"at: unknown place {shown(name)!r}{suggestion(name, PLACES)}", item)
        return tuple((name, plain) for name, plain, _ in entries)

    def _fix(self, value: Value) -> Any:
        if value.is_null:
            return None
        if not isinstance(value.data, dict):
            self.fail("fix is a mapping", value)
        self._keys(value.data, ("describe", "safety", "set", "or"), "fix")
        if "describe" not in value.data:
            self.fail("fix needs describe", value)
        new = self._set(value.data.get("set"))
        other = self._set(value.data.get("or"))
        names = {**self.names, **{name: plain[2] for name, plain in new}}
        return (
            self._template(value.data["describe"], names),
            self._choice("safety", ("safe", "unsafe"), "unsafe", mapping=value.data),
            new,
            other,
        )

    def _set(self, value: Value | None) -> tuple[tuple[str, Any], ...]:
        if value is None:
            return ()
        if not isinstance(value.data, dict):
            self.fail("set must map fields to expressions", value)
        result = []
        for name, item in value.data.items():
            if name not in SETTABLE:
                self.fail(f"set: unknown field {shown(name)!r}{suggestion(name, SETTABLE)}", item)
            result.append((name, self._expr(item, SETTABLE[name])))
        return tuple(result)

    def _loss(self) -> tuple[str, tuple[str, ...]]:
        value = self.top.get("loss")
        if value is None:
            return "none", ()
        if isinstance(value.data, str):
            return self._choice("loss", LOSSES), PASSES
        mapping = self._mapping("loss", ("kind", "passes"))
        passes = mapping["passes"].data
        names = tuple(self._text_of(item) for item in (passes if isinstance(passes, list) else [mapping["passes"]]))
        if not set(names) <= set(PASSES):
            self.fail(f"loss: passes are {', '.join(PASSES)}", mapping["passes"])
        return self._choice("kind", LOSSES, mapping=mapping), names

    def _join(self) -> Any:
        value = self.top.get("join")
        if value is None:
            return None
        if not isinstance(value.data, dict):
            self.fail("join is a mapping", value)
        self._keys(value.data, ("share", "when", "message"), "join")
        if "message" not in value.data:
            self.fail("join needs message", value)
        when = value.data.get("when")
        names: dict[str, Type] = {**self.names, "count": "number", "layers": "text"}
        return (
            self._choice("share", ("all", "any", "info"), "all", mapping=value.data),
            None if when is None else self._expr(when, "truth"),
            self._template(value.data["message"], names),
        )

    def _examples(self) -> None:
        examples = self._mapping("examples", ("pass", "fail"))
        for key in ("pass", "fail"):
            if not isinstance(examples[key].data, list) or not examples[key].data:
                self.fail(f"examples: at least one that should {key}", examples[key])
        for item in examples["fail"].data:
            if not isinstance(item.data, dict) or "given" not in item.data:
                self.fail("examples: one that should fail needs given", item)
            self._keys(item.data, ("given", "message", "severity", "fixed"), "an example")

    # --- pieces

    def _keys(self, mapping: Mapping[str, Value], known: tuple[str, ...], where: str) -> None:
        for key, value in mapping.items():
            if key not in known:
                span = value.key_span or value.span
                raise RuleError(
                    f"unknown key {shown(key)!r} in {where}{suggestion(key, known)}",
                    path=self.path, line=span[0], column=span[1],
                )  # fmt: skip

    def _mapping(self, key: str, required: tuple[str, ...]) -> dict[str, Value]:
        value = self.top[key]
        if not isinstance(value.data, dict):
            self.fail(f"{key} is a mapping", value)
        self._keys(value.data, required, key)
        for name in required:
            if name not in value.data:
                self.fail(f"{key} needs {name}", value)
        data: dict[str, Value] = value.data
        return data

    def _list(self, key: str) -> list[Value]:
        value = self.top.get(key)
        if value is None:
            return []
        return value.data if isinstance(value.data, list) else [value]

    def _text(self, key: str) -> str:
        return self._text_of(self.top[key])

    def _text_of(self, value: Value) -> str:
        if not isinstance(value.data, str) or not value.data.strip():
            self.fail(f"must be text, not {value.kind}", value)
        return value.data.strip()

    def _choice(
        self, key: str, options: tuple[str, ...], default: str | None = None, *, mapping: Mapping[str, Value] | None = None
    ) -> str:
        value = (self.top if mapping is None else mapping).get(key)
        if value is None and default is not None:
            return default
        assert value is not None
        text = self._text_of(value)
        if text not in options:
            self.fail(f"{key}: {shown(text)!r} is not one of {', '.join(options)}{suggestion(text, options)}", value)
        return text

    def _optional_expr(self, key: str, wanted: Type) -> Any:
        return self._expr(self.top[key], wanted) if key in self.top else None

    def _expr(self, value: Value, wanted: Type | None) -> tuple[Any, ...]:
        text = self._text_of(value)
        try:
            compiled: Expr = compile_expr(text, self.names)
        except ExprError as error:
            self.fail(error.message, value)
        if wanted is not None and compiled.type != wanted:
            self.fail(f"{text} is a {compiled.type}, a {wanted} belongs here", value)
        self.read |= compiled.names
        names = tuple(sorted(name for name in compiled.names if name in VOCABULARY))
        return compiled.text, names, compiled.type, compiled.code

    def _template(self, value: Value, names: Mapping[str, Type]) -> tuple[Any, ...]:
        text = self._text_of(value)
        parts: list[Any] = []
        end = 0
        for match in _FIELD.finditer(text):
            if match.start() > end:
                parts.append(text[end : match.start()])
            if match.group(1) not in names:
                self.fail(f"unknown name {match.group(1)!r} in a message{suggestion(match.group(1), names)}", value)
            if match.group(2) and names[match.group(1)] != "number":
                self.fail(f"{match.group(1)} is no number and takes no format", value)
            if match.group(1) in VOCABULARY:
                self.read.add(match.group(1))
            parts.append((match.group(1), match.group(2) or ""))
            end = match.end()
        parts.append(text[end:])
        if any("{" in part or "}" in part for part in parts if isinstance(part, str)):
            self.fail("a message holds {names} only", value)
        return tuple(part for part in parts if part)
