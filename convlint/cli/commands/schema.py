"""`convlint schema`: the JSON Schema of specs and of the config."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from convlint.cli.streams.gate import write
from convlint.config.keys import KEYS, LAYER_IGNORE_KEYS, MODEL_KEYS, SOURCE_KEYS, Kind
from convlint.estimate.memory import OPTIMIZER_STATES
from convlint.files.languages import LANGUAGES
from convlint.gpus.gpu import aliases, gpu_names
from convlint.model.errors import UsageError, suggestion
from convlint.model.layer import ALLOWANCES, AUTOCAST, MODES, TRACES, Dtype
from convlint.model.report import FAIL_ON, SEVERITIES
from convlint.model.runtime import VERSIONS
from convlint.readers.spec.fields import (
    ALIASES,
    BOOLEANS,
    CANONICAL,
    COMPOSITES,
    DTYPES,
    LAYOUTS,
    MAX_SIZE,
    PADS,
    SIZES,
    UNKNOWN,
)
from convlint.readers.spec.reader import ALIASES as RUNTIME_ALIASES
from convlint.readers.spec.reader import CHOICES, SETTINGS, TOP_ALIASES, TOP_KEYS
from convlint.readers.spec.reader import MODES as SPEC_MODES
from convlint.readers.spec.reader import NUMBERS as RUNTIME_NUMBERS
from convlint.readers.spec.reader import WORDS as RUNTIME_WORDS
from convlint.readers.spec.shapes import CARRIERS, CONVS
from convlint.rulebook.book import Rulebook, load_rulebook
from convlint.rulebook.file import MEANINGS

Schema = dict[str, Any]
DIALECT = "https://json-schema.org/draft/2020-12/schema"
_NOT_IN_DEFAULTS = ("name", "input", "inputs", "weights", "op", "copied")
_OTHER_CASE = {"type": "string", "pattern": r"[A-Z]|^(torch|tf|np|jnp)\.|_|-|[123]d$| "}  # as frameworks spell it
_MEANINGS = {
    **MEANINGS,
    "kernel_size": "filter size: one number, or one per axis",
    "stride": "stride: one number, or one per axis",
    "padding": 'padding: one number, one per axis, all sides, "same" or "valid"',
    "dilation": "dilation: one number, or one per axis",
    "output_padding": "of a transposed convolution",
    "op": "convolution, or an operation that only carries shapes on; default: conv",
    "input": "the layer that this one reads; default: the one before",
    "inputs": "the layers that this one reads",
    "weights": "the convolution before it that has the same weights; op: again runs it once more",
    "copied": "what it reads is written once more in its layout; default: where the layouts differ",
    "transposed": "a transposed convolution",
    "frozen": "nothing learns its weights: training runs no wgrad, nor dgrad where all before it is frozen too",
    "unfolded": "patches that do not overlap are laid side by side and multiplied, as Linear does",
    "residual_inputs": "tensors that are added to the output",
    "scale": "of an upsampling",
    "size": "of an upsampling or adaptive pooling: one number, or one per axis; unknown where it is",
    "bias": "has a bias",
    "heads": "of attention, or of a matmul: they divide C between them; default: 1",
}


def spec_schema() -> Schema:
    """The schema of a spec file."""
    properties: Schema = {
        "version": {"const": 1, "description": "version of this format"},
        "target": {**_one_or_many(_gpu()), "description": "GPUs to check for; default: a100"},
        "mode": _choice(SPEC_MODES, "training checks all three passes, inference only fprop"),
        "runtime": _runtime(),
        "whole_step": {
            "type": "boolean",
            "description": "false where operations of a step are left out, true where all are there",
        },
        "defaults": {**_layer(_NOT_IN_DEFAULTS), "description": "what layers have that do not say otherwise"},
        "layers": {
            "type": "array",
            "items": _layer(()),
            "description": "convolutions, and what carries shapes between them",
        },
        "name": {"type": "string", "description": "what the network is called"},
        "description": {"type": "string", "description": "what there is to say of it"},
    }
    properties = {key: properties[key] for key in TOP_KEYS}  # a new key without a schema is an error here
    properties |= {alias: properties[key] for alias, key in TOP_ALIASES.items()}
    return {
        "$schema": DIALECT,
        "title": "convlint spec",
        "type": "object",
        "required": ["version", "layers"],
        "properties": properties,
        "patternProperties": {"^x-": True},
        "additionalProperties": False,
    }


def _layer(left_out: Iterable[str]) -> Schema:
    properties = {
        key: {**_field(name), "description": _meaning(name, key)}
        for key, name in CANONICAL.items()
        if name not in left_out
    }
    return _object(properties)


def _meaning(name: str, key: str) -> str:
    text = _MEANINGS.get(name, name)
    others = [other for other in (name, *ALIASES.get(name, ())) if other != key]
    return f"{text} (also: {', '.join(others)})" if others else text


def _field(name: str) -> Schema:
    """The schema of one canonical field of a layer."""
    if name in SIZES or name in ("groups", "calls", "heads"):
        return _integer(1)
    if name in PADS or name == "residual_inputs":
        return _integer(0)
    if name == "size":
        unknown: Schema = {"const": UNKNOWN}
        axis = {"anyOf": [_integer(1), unknown]}
        return {"anyOf": [*_axes(1)["anyOf"], unknown, {"type": "array", "items": axis, "minItems": 1, "maxItems": 3}]}
    if name in COMPOSITES or name == "scale":
        return _axes(0 if name == "output_padding" else 1)
    if name == "padding":
        sides = {side: _integer(0) for side in ("front", "back", "top", "bottom", "left", "right")}
        listed = {"type": "array", "items": _axes(0), "maxItems": 6}
        return {"anyOf": [_integer(0), {"enum": ["same", "valid"]}, listed, _object(sides), _OTHER_CASE]}
    if name == "dtype":
        return {"anyOf": [{"enum": [*(dtype.value for dtype in Dtype), *DTYPES]}, _OTHER_CASE]}
    if name == "layout":
        return _choice(LAYOUTS)
    if name in BOOLEANS:
        return {"type": "boolean"}
    if name == "dims":
        return {"type": "integer", "minimum": 1, "maximum": 3}
    if name == "op":
        return {"anyOf": [{"enum": ["conv", "conv_transpose", "depthwise", *CONVS, *CARRIERS]}, _OTHER_CASE]}
    if name in ("input", "inputs"):
        return _one_or_many(_text())
    return _text()  # name, weights


def _runtime() -> Schema:
    properties: Schema = {}
    for name in SETTINGS:
        if name in CHOICES:
            properties[name] = _choice(CHOICES[name])
        elif name in VERSIONS:
            properties[name] = {"type": ["string", "number"]}
        elif name in RUNTIME_NUMBERS:
            properties[name] = _integer(0)
        elif name in RUNTIME_WORDS:
            properties[name] = {**_text(), "examples": list(OPTIMIZER_STATES)}
        else:
            properties[name] = {"enum": [True, False, 0, 1]}
        properties[name]["description"] = MEANINGS.get(f"runtime.{name}", name)
    properties |= {alias: properties[name] for alias, name in RUNTIME_ALIASES.items()}
    return {
        "type": "object",
        "properties": properties,
        "patternProperties": {"[A-Z]": True},  # any case is read
        "additionalProperties": False,
        "description": "framework, library versions and settings; what is not given is unknown",
    }


def config_schema(rulebook: Rulebook) -> Schema:
    """The schema of convlint.toml, which is that of [tool.convlint]; `rulebook` supplies what rules can be named."""
    kinds = _kinds({"anyOf": [{"enum": list(rulebook.by_key)}, _text()]})
    schemas = {key: kinds[info.kind] for key, info in KEYS.items()} | {"target": _one_or_many(_gpu())}
    return {
        "$schema": DIALECT,
        "title": "convlint config",
        **_object(_described(schemas, {key: info.meaning for key, info in KEYS.items()})),
    }


def _kinds(rule: Schema) -> dict[Kind, Schema]:
    """What each kind of key holds."""
    texts = {name: {**_text(), "description": meaning} for name, meaning in LAYER_IGNORE_KEYS.items()}
    texts["rules"] = {**_one_or_many(rule), "description": LAYER_IGNORE_KEYS["rules"]}
    texts["expires"] = {"format": "date", "description": LAYER_IGNORE_KEYS["expires"]}
    return {
        "text": _text(),
        "word": _text(),
        "versions": _text(),
        "texts": _one_or_many(rule),
        "folders": _one_or_many(_text()),
        "files": _one_or_many(_text()),
        "patterns": _one_or_many(_text()),
        "allow": _one_or_many({"enum": list(ALLOWANCES)}),
        "severities": {"type": "object", "additionalProperties": {"enum": list(SEVERITIES)}},
        "file-ignores": {"type": "object", "additionalProperties": _one_or_many(rule)},
        "layer-ignores": {"type": "array", "items": _object(texts, required=list(LAYER_IGNORE_KEYS)[:-1])},
        "truth": {"type": "boolean"},
        "percent": {"type": "number", "minimum": 0, "maximum": 100},
        "runtime": _runtime(),
        "models": {"type": "array", "items": _model()},
        "source": _object(_described({"input": _text(), "entry": _one_or_many(_text())}, SOURCE_KEYS)),
        "language": {"enum": list(LANGUAGES)},
        "mode": {"enum": list(MODES)},
        "fail-on": {"enum": list(FAIL_ON)},
    }


def _object(properties: Schema, **more: Any) -> Schema:
    return {"type": "object", "properties": properties, **more, "additionalProperties": False}


def _described(schemas: Mapping[str, Schema], meanings: Mapping[str, str]) -> Schema:
    return {key: {**schemas[key], "description": meaning} for key, meaning in meanings.items()}


def _model() -> Schema:
    shape = _text()
    kinds: dict[str, Schema] = {
        "name": _text(),
        "model": _text(),
        "inputs": {"anyOf": [_one_or_many(shape), {"type": "object", "additionalProperties": shape}]},
        "channels_last": {"type": "boolean"},
        "autocast": {"enum": list(AUTOCAST)},
        "mode": {"enum": list(MODES)},
        "optimizer": {**_text(), "examples": list(OPTIMIZER_STATES)},
        "trace": {"enum": list(TRACES)},
        "runtime": _runtime(),
        "target": _one_or_many(_gpu()),
    }
    return _object(_described(kinds, MODEL_KEYS), required=list(MODEL_KEYS)[:2])


def _text() -> Schema:
    return {"type": "string", "minLength": 1, "maxLength": 500}


def _integer(minimum: int) -> Schema:
    return {"type": "integer", "minimum": minimum, "maximum": MAX_SIZE}


def _axes(minimum: int) -> Schema:
    return {"anyOf": [_integer(minimum), {"type": "array", "items": _integer(minimum), "minItems": 1, "maxItems": 3}]}


def _choice(spellings: Mapping[str, str], description: str | None = None) -> Schema:
    words = list(dict.fromkeys((*spellings.values(), *spellings)))
    schema: Schema = {"anyOf": [{"enum": words}, _OTHER_CASE]}
    return schema if description is None else {**schema, "description": description}


def _gpu() -> Schema:
    return {"anyOf": [{"enum": [*gpu_names(), *sorted(aliases())]}, _text()]}


def _one_or_many(item: Schema) -> Schema:
    return {"anyOf": [item, {"type": "array", "items": item}]}


def run(what: str) -> int:
    """Prints the schema. Raises UsageError for another word than spec and config."""
    known = ("spec", "config")
    if what not in known:
        raise UsageError(f"unknown schema {what[:60]!r}{suggestion(what, known)}; known are {', '.join(known)}")
    schema = spec_schema() if what == "spec" else config_schema(load_rulebook())
    write(sys.stdout, json.dumps(schema, indent=1))
    return 0
