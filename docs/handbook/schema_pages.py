"""The reference of specs and of the config, from the JSON Schemas that editors use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from convlint.cli.commands.schema import config_schema, spec_schema
from convlint.gpus.gpu import gpu_names
from convlint.rulebook.book import Rulebook
from handbook.markup import code, table, text

Schema = Mapping[str, Any]
_MOST_WORDS = 16  # that are listed; more are counted
_LARGE = 10**6  # a bound from here on is no part of what a key means


def spec_tables() -> list[str]:
    """The keys of a spec: at its top, of a layer, of the runtime."""
    schema = spec_schema()
    top = schema["properties"]
    out = ["### At the top", "", *_table(top, schema["required"])]
    out += ["### A layer, and `defaults`", "", *_table(top["layers"]["items"]["properties"], ())]
    return [*out, "### The runtime", "", *_table(top["runtime"]["properties"], ())]


def config_tables(rulebook: Rulebook) -> list[str]:
    """The keys of `[tool.convlint]`, and of the tables in it."""
    properties = config_schema(rulebook)["properties"]
    out = ["### Keys", "", *_table(properties, ())]
    for key in ("models", "per-layer-ignores"):
        item = properties[key]["items"]
        out += [f"### An entry of `{key}`", "", *_table(item["properties"], item["required"])]
    return [*out, "### The table `source`", "", *_table(properties["source"]["properties"], ())]


def _table(properties: Mapping[str, Schema], required: Iterable[str]) -> list[str]:
    """A row for each key; aliases, which have the schema of another key, stand in that one's row."""
    named: dict[int, list[str]] = {}
    for key, schema in properties.items():
        named.setdefault(id(schema), []).append(key)
    required = set(required)
    rows = []
    for keys in named.values():
        schema = properties[keys[0]]
        needed = " (required)" if keys[0] in required else ""
        also = f"; also {', '.join(map(code, keys[1:]))}" if len(keys) > 1 else ""
        rows.append((code(keys[0]) + needed, takes(schema), text(schema.get("description", "")) + also))
    return table(("key", "takes", "what it is"), rows)


def takes(schema: Schema) -> str:
    """What a value may be, in words."""
    if "anyOf" in schema:
        ways = [words for each in schema["anyOf"] if (words := takes(each))]
        if any(way.startswith("[a ") for way in ways):
            ways = [way for way in ways if way != "text"]  # names that are known; others are read in any spelling
        return " or ".join(dict.fromkeys(ways))
    if "const" in schema:
        return code(_plain(schema["const"]))
    if "enum" in schema:
        return _words(schema["enum"])
    kind = schema.get("type")
    if kind == "array":
        least, most = schema.get("minItems"), schema.get("maxItems")
        count = f" of {least or 0} to {most}" if most is not None else ""
        tables = "properties" in schema["items"]
        return "a list of tables" if tables else f"a list{count} ({takes(schema['items'])})"
    if kind == "object":
        inner = schema.get("additionalProperties")
        return f"a table (each {takes(inner)})" if isinstance(inner, Mapping) else "a table"
    if kind in ("integer", "number"):
        bounds = f" from {schema['minimum']}" if "minimum" in schema else ""
        if schema.get("maximum", _LARGE) < _LARGE:
            bounds += f" to {schema['maximum']}"
        return f"{'whole number' if kind == 'integer' else 'number'}{bounds}"
    if isinstance(kind, list):
        return " or ".join("text" if each == "string" else each for each in kind)
    if schema.get("format") == "date":
        return "a date"
    if "pattern" in schema:
        return ""  # spellings of other frameworks, which the page names
    return {"boolean": "true or false", "string": "text"}.get(str(kind), "anything")


def _words(words: Iterable[Any]) -> str:
    plain = [_plain(word) for word in words]
    if plain[: len(gpu_names())] == list(gpu_names()):
        return "[a GPU](../gpus.md)"
    if plain[:2] == ["true", "false"]:
        return "true or false"
    if "CL102" in plain:
        return "[a rule](../rules/index.md)'s code or name"
    shown = ", ".join(map(code, plain[:_MOST_WORDS]))
    return shown + (f" and {len(plain) - _MOST_WORDS} more" if len(plain) > _MOST_WORDS else "")


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
