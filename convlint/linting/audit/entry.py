"""One entry of a list of models, from its words to a subject; whatever is wrong with it is an InputFault."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from convlint.config.keys import AUTOCAST
from convlint.errors import InputFault, UsageError, shown, suggestion
from convlint.files.located_yaml import Value
from convlint.linting.audit.subject import Subject
from convlint.linting.one_input import resolve_targets
from convlint.linting.running import Running, settings_of, value_of
from convlint.model.layer import MODES, TRACES
from convlint.model.location import Span
from convlint.model.runtime import Runtime
from convlint.readers.inputs import Input, Model, decide, parse_reference
from convlint.readers.spec.fields import dtype_of, layout_of

# key -> meaning; each setting of the runtime is a key too, bare or as runtime.<setting>
KEYS: Mapping[str, str] = {
    "model": "a file, or package.module:name with literal arguments where it is called",
    "name": "under which it stands in tables and weights; its path where none is given",
    "architecture": "models of one architecture are ranked together",
    "inputs": "shapes of its inputs, in order or by name, such as x=16x3x640x640:fp16",
    "batch": "batch size of the whole network",
    "gpu": "GPUs that it runs on, with commas between",
    "mode": "training or inference",
    "dtype": "what layers are computed in",
    "layout": "NCHW, NHWC or auto",
    "channels_last": "whether a module is put into channels_last",
    "trace": "train or eval: the mode in which a module is followed",
    "autocast": "fp16 or bf16: what torch.autocast runs a module's convolutions in",
    "runtime": "settings of the runtime, as in a spec",
}
ALIASES = {"path": "model", "target": "gpu"}
_PREFIX = "runtime."
_NOWHERE: Span = (0, 0, 0, 0)
_OF_MODULES = ("channels_last", "trace", "autocast")
_MOST_BATCH = 10**9


def known_key(word: str) -> str:
    """The key that a word stands for. Raises InputFault with the nearest one."""
    key = ALIASES.get(word, word)
    settings = Runtime.__struct_fields__
    if key in KEYS or key.removeprefix(_PREFIX) in settings:
        return key
    raise InputFault(f"unknown key {shown(word)!r}{suggestion(word, [*KEYS, *ALIASES, *settings])}")


def subject_of(given: Mapping[str, Any], path: str, line: int, *, modules: bool) -> Subject:
    """The subject that an entry at `line` of the list `path` names. Raises InputFault."""
    values: dict[str, Any] = {}
    for word, value in given.items():
        key = known_key(word)
        if value is not None and value != "":
            if key in values:
                raise InputFault(f"{key} is given twice")
            values[key] = value
    word = _text(values, "model")
    if not word:
        raise InputFault("names no model")
    if word == "-":
        raise InputFault("standard input is no model of a list")
    named = decide(word, modules=modules)
    gpus = tuple(_words(values.get("gpu", ())))
    try:
        resolve_targets(gpus)
    except UsageError as error:
        raise InputFault(str(error)) from None
    mode = _one_of("mode", _text(values, "mode"), MODES)
    settings = _settings(values)
    name, inputs = _text(values, "name") or named.name, _inputs(values.get("inputs"))
    if named.kind == "module":
        parse_reference(word)
        named = _module(word, name, values, path, line, settings, inputs)
    elif any(key in values for key in _OF_MODULES):
        key = next(key for key in _OF_MODULES if key in values)
        raise InputFault(f"{key} is for package.module:name; what a file runs in is said by layout and dtype")
    return Subject(
        name=name, source=named, architecture=_text(values, "architecture"), gpus=gpus, mode=mode,
        batch=_batch(values.get("batch")), inputs=inputs,
        running=Running(
            settings=settings,
            dtype=dtype_of(Value(_text(values, "dtype"), _NOWHERE)) if "dtype" in values else None,
            layout=layout_of(Value(_text(values, "layout"), _NOWHERE)) if "layout" in values else None,  # type: ignore[arg-type]
        ),
    )  # fmt: skip


def _module(
    word: str, name: str, values: Mapping[str, Any], path: str, line: int, settings: Mapping[str, Any],
    inputs: Mapping[str, str],
) -> Input:  # fmt: skip
    autocast = _one_of("autocast", _text(values, "autocast"), AUTOCAST)
    if autocast is not None:
        settings = {"mixed_precision": True, **settings}
    trace = _one_of("trace", _text(values, "trace"), TRACES)
    at: Span = (line, 1, line, 1)
    model = Model(
        reference=word, path=path, inputs=inputs, channels_last=_flag(values.get("channels_last", False)),
        autocast=autocast, trains=None if trace is None else trace == "train", settings=settings,
        spans=dict.fromkeys(("name", "model", "inputs", "target", "mode", *settings), at),
    )  # fmt: skip
    return Input(kind="module", name=name, model=model)


def _settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the runtime, wherever the entry gives them."""
    table = values.get("runtime", {})
    if not isinstance(table, dict):
        raise InputFault("runtime must be an object of settings; in a line or CSV, each is a key of its own")
    given = dict(table)
    for key, value in values.items():
        setting = key.removeprefix(_PREFIX)
        if key not in KEYS:
            if setting in given:
                raise InputFault(f"{setting} is given twice")
            given[setting] = value
    return settings_of({key: _as_value(value) for key, value in given.items()})


def _as_value(value: Any) -> Value:
    """Text of a line or a table's cell is read as a spec would; what JSON types stays what it is."""
    return Value(value, _NOWHERE, plain=True) if isinstance(value, str) else value_of(value)


def _text(values: Mapping[str, Any], key: str) -> str:
    value = values.get(key, "")
    if not isinstance(value, str):
        raise InputFault(f"{key} must be a text")
    return value.strip()


def _words(value: Any) -> Iterable[str]:
    several = value if isinstance(value, list | tuple) else [value]
    for text in several:
        if not isinstance(text, str):
            raise InputFault("gpu must be a name, or several")
        yield from filter(None, re.split(r"[,\s]+", text))


def _one_of(key: str, word: str, known: tuple[Any, ...]) -> Any:
    if word and word not in known:
        raise InputFault(f"{key}: {shown(word)!r} is not one of {', '.join(known)}{suggestion(word, known)}")
    return word or None


def _flag(value: Any) -> bool:
    words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    found = value if isinstance(value, bool) else words.get(str(value).strip().lower())
    if found is None:
        raise InputFault("channels_last must be true or false")
    return found


def _batch(value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not re.fullmatch(r"[0-9]{1,10}", str(value).strip()):
        raise InputFault("batch must be a whole number")
    batch = int(value)
    if not 1 <= batch <= _MOST_BATCH:
        raise InputFault(f"batch must be from 1 to {_MOST_BATCH:,}")
    return batch


def _inputs(value: Any) -> dict[str, str]:
    """`x=16x3x8x8 4x10` of a line or a cell, or what JSON has: a text, a list or an object."""
    if value is None:
        return {}
    if isinstance(value, dict):
        if not all(isinstance(shape, str) for shape in value.values()):
            raise InputFault("inputs must have a text for each shape, such as 16x3x224x224")
        return dict(value)
    several = value.split() if isinstance(value, str) else value
    if not isinstance(several, list) or not all(isinstance(shape, str) for shape in several):
        raise InputFault("inputs must be shapes, such as 16x3x224x224, or an object of them")
    found: dict[str, str] = {}
    for text in several:
        key, _, shape = text.rpartition("=")
        found[key] = f"{found[key]},{shape}" if key in found else shape
    return found
