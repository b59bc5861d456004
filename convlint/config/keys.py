"""The keys of the config: what each may hold, ignored rules, models and paths among them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from convlint.config.toml_source import (
    Spot,
    Word,
    choice_of,
    date_of,
    entries_of,
    kind_of,
    number_of,
    pattern_of,
    table_of,
    text_of,
    texts_of,
    truth_of,
)
from convlint.files.globs import path_expression
from convlint.files.languages import LANGUAGES
from convlint.model.errors import shown
from convlint.model.layer import ALLOWANCES, AUTOCAST, MODES, TRACES, Allowance, Following, Mode
from convlint.model.report import FAIL_ON, SEVERITIES, Severity


class PathPattern(Struct, frozen=True):
    """A pattern and the folder of the config that holds it.

    Without a slash it is matched against every part of a path, else against the path from the folder; what lies in
    a matching folder matches too. `*` and `?` stay within one part, `**` spans any number of them.
    """

    base: str  # absolute
    text: str

    def matches(self, path: str) -> bool:
        """Whether the file or folder at `path` matches."""
        parts = _parts(self.text)
        below = _below(self.base, path, "" if os.path.isabs(path) else os.getcwd())
        return bool(parts) and below is not None and path_expression(parts, below=True).match(below) is not None


@lru_cache(maxsize=1024)
def _parts(text: str) -> tuple[str, ...]:
    text = text.replace(os.sep, "/")
    parts = tuple(part for part in text.split("/") if part not in ("", "."))
    if "/" in text.rstrip("/") or not parts:
        return parts
    return ("**", "*" if parts[0] == "**" else parts[0])


@lru_cache(maxsize=1024)
def _below(base: str, path: str, here: str) -> str | None:
    """The path from `base` as `/a/b`; None where it lies elsewhere. `here` is what a relative path starts from."""
    relative = os.path.relpath(os.path.join(here, path), base).replace(os.sep, "/")
    return None if relative == ".." or relative.startswith("../") else f"/{relative}"


# keys of one entry of per-layer-ignores, with their meaning; all but the last are required
LAYER_IGNORE_KEYS: Mapping[str, str] = {
    "layers": "Pattern for names of layers, such as stem or backbone.*.",
    "rules": "Codes or names of the rules to silence.",
    "reason": "Why; it stays visible in the JSON and SARIF reports.",
    "expires": "Last day on which this holds, as a date: 2026-12-31.",
}


class FileIgnore(NamedTuple):
    """Rules that files matching `pattern` are not held to."""

    pattern: PathPattern
    rules: tuple[Word, ...]


class LayerIgnore(NamedTuple):
    """Rules that layers whose name matches `layers` are not held to, until the end of `expires`."""

    layers: str
    rules: tuple[Word, ...]
    reason: str
    expires: date | None
    at: Spot


def file_ignores(value: Any, at: Spot, folder: str) -> tuple[FileIgnore, ...]:
    """A table from patterns to rules."""
    return tuple(
        FileIgnore(
            pattern=PathPattern(folder, pattern_of(text_of(key, at.below(key)), at.below(key))),
            rules=texts_of(item, at.below(key)),
        )
        for key, item in table_of(value, at).items()
    )


def layer_ignores(value: Any, at: Spot) -> tuple[LayerIgnore, ...]:
    """Tables, one for each entry."""
    if not isinstance(value, list):
        at.fail(f"must be tables, each under [[…{at.key[-1]}]], not {kind_of(value)}")
    return tuple(_layer_ignore(item, at.below(i)) for i, item in enumerate(value))


def _layer_ignore(value: Any, at: Spot) -> LayerIgnore:
    table = entries_of(value, at, LAYER_IGNORE_KEYS, required=list(LAYER_IGNORE_KEYS)[:-1])
    expires = table.get("expires")
    return LayerIgnore(
        layers=pattern_of(text_of(table["layers"], at.below("layers")), at.below("layers")),
        rules=texts_of(table["rules"], at.below("rules")),
        reason=text_of(table["reason"], at.below("reason")).strip(),
        expires=None if expires is None else date_of(expires, at.below("expires"), "2026-12-31"),
        at=at,
    )


# keys of one entry, with their meaning; the first two are required
MODEL_KEYS: Mapping[str, str] = {
    "name": "Its name in reports, and for --model.",
    "model": "package.module:name of a module, a class or a function, with literal arguments where it takes any.",
    "inputs": "Shapes of its inputs, in order or by name, such as 16x3x640x640:fp16:channels_last.",
    "channels_last": "Whether the model is put into channels_last, as model.to(memory_format=...) does.",
    "autocast": "fp16 or bf16: what torch.autocast runs its convolutions in.",
    "mode": "training or inference.",
    "optimizer": "sgd, momentum, adam, adamw or another: what the step's update reads and writes; default: none.",
    "trace": "train or eval: the mode in which it is followed. Default: train where its mode is training.",
    "runtime": "Settings of the runtime, as in a spec.",
    "target": "GPUs to check it for.",
}
_ALSO_AUTOCAST = {"float16": "fp16", "half": "fp16", "bfloat16": "bf16"}


class ModelEntry(NamedTuple):
    """One model, and where each of its values stands."""

    name: str
    model: str
    inputs: Mapping[str, str]  # under "" those in order, with commas between
    channels_last: bool
    autocast: str | None
    mode: Mode | None
    trace: Following | None
    runtime: Mapping[str, tuple[Any, Spot]]
    target: tuple[Word, ...]
    at: Spot
    folder: str


def models_of(value: Any, at: Spot, folder: str) -> tuple[ModelEntry, ...]:
    """Tables, one for each model; `folder` is the config's. Raises UsageError with the place of what is wrong."""
    if not isinstance(value, list):
        at.fail(f"must be tables, each under [[…{at.key[-1]}]], not {kind_of(value)}")
    entries: dict[str, ModelEntry] = {}
    for i, item in enumerate(value):
        entry = _model(item, at.below(i), folder)
        if entry.name in entries:
            entry.at.below("name").fail(f"there are two models {shown(entry.name)!r}")
        entries[entry.name] = entry
    return tuple(entries.values())


def _model(value: Any, at: Spot, folder: str) -> ModelEntry:
    table = entries_of(value, at, MODEL_KEYS, required=list(MODEL_KEYS)[:2])
    return ModelEntry(
        name=text_of(table["name"], at.below("name")).strip(),
        model=text_of(table["model"], at.below("model")).strip(),
        inputs=_inputs(table.get("inputs", []), at.below("inputs")),
        channels_last=truth_of(table.get("channels_last", False), at.below("channels_last")),
        autocast=_autocast(table["autocast"], at.below("autocast")) if "autocast" in table else None,
        mode=choice_of(table["mode"], at.below("mode"), MODES) if "mode" in table else None,
        trace=choice_of(table["trace"], at.below("trace"), TRACES) if "trace" in table else None,
        runtime=_runtime(table, at),
        target=texts_of(table.get("target", []), at.below("target")),
        at=at,
        folder=folder,
    )


def _runtime(table: Mapping[str, Any], at: Spot) -> dict[str, tuple[Any, Spot]]:
    """The settings of a model's runtime, of which its optimizer may stand outside."""
    settings, place = settings_of(table.get("runtime", {}), at.below("runtime")), at.below("optimizer")
    if "optimizer" not in table:
        return settings
    if "optimizer" in settings:
        place.fail("says again what runtime says")
    return {**settings, "optimizer": (text_of(table["optimizer"], place), place)}


def _inputs(value: Any, at: Spot) -> dict[str, str]:
    if isinstance(value, dict):
        return {key: text_of(item, at.below(key)).strip() for key, item in value.items()}
    words = texts_of(value, at)
    return {"": ",\n".join(word.text for word in words)} if words else {}


def _autocast(value: Any, at: Spot) -> str:
    text = text_of(value, at).strip().lower().removeprefix("torch.")
    return choice_of(_ALSO_AUTOCAST.get(text, text), at, AUTOCAST)


def settings_of(value: Any, at: Spot) -> dict[str, tuple[Any, Spot]]:
    """Settings of the runtime, each with its place."""
    table = table_of(value, at)
    for key, item in table.items():
        if not isinstance(item, str | bool | int | float):
            at.below(key).fail(f"must be text, a boolean or a number, not {kind_of(item)}")
    return {key: (item, at.below(key)) for key, item in table.items()}


SOURCE_KEYS: Mapping[str, str] = {
    "input": "Shape of the images that models get, such as 3x224x224 or, with a batch, 16x3x224x224.",
    "entry": "Scripts that train, where convlint does not tell by itself, relative to this file.",
}
MOST_SIZE = 2**31 - 1
_SHAPE = re.compile(r"[0-9]+(?:\s*[x×*]\s*[0-9]+)*")
_AXES = (3, 4)  # with and without a batch; images alone


class SourceConfig(NamedTuple):
    """What the table says: the shape of an input (None: nothing), and the paths of scripts that train."""

    input: tuple[int, ...] | None = None
    entry: tuple[Word, ...] = ()
    written: tuple[tuple[str, Any, Spot], ...] = ()  # as written, and where


def source_of(value: Any, at: Spot, folder: str) -> SourceConfig:
    """A table; `folder` is the config's. Raises UsageError with the place of what is wrong."""
    table = entries_of(value, at, SOURCE_KEYS)
    return SourceConfig(
        input=_shape(table["input"], at.below("input")) if "input" in table else None,
        entry=tuple(_script(word, folder) for word in texts_of(table.get("entry", []), at.below("entry"))),
        written=tuple((key, item, at.below(key)) for key, item in table.items()),
    )


def _shape(value: Any, at: Spot) -> tuple[int, ...]:
    text = text_of(value, at).strip()
    sizes = tuple(map(int, re.findall("[0-9]+", text))) if _SHAPE.fullmatch(text) else ()
    if len(sizes) not in _AXES:
        at.fail(f"{shown(text)!r} is no shape of images: write it like 3x224x224 or 16x3x224x224")
    if not all(0 < size <= MOST_SIZE for size in sizes):
        at.fail(f"{shown(text)!r}: sizes are from 1 to {MOST_SIZE:,}")
    return sizes


def _script(word: Word, folder: str) -> Word:
    path = os.path.normpath(os.path.join(folder, word.text))
    if not word.text.endswith((".py", ".ipynb")):
        word.at.fail(f"{shown(word.text)!r} is no Python script")
    return Word(path, word.at)


Kind = Literal[
    "text",
    "texts",
    "mode",
    "fail-on",
    "allow",
    "percent",
    "truth",
    "folders",
    "files",
    "versions",
    "patterns",
    "severities",
    "file-ignores",
    "layer-ignores",
    "word",
    "runtime",
    "models",
    "source",
    "language",
]


class KeyInfo(NamedTuple):
    """One key: what it takes and, for `convlint config` and the schema, what it does."""

    kind: Kind
    meaning: str


KEYS: Mapping[str, KeyInfo] = {
    "extend": KeyInfo(
        "text", "A config to start from; this file's keys replace or, where they are lists of exceptions, join its own."
    ),
    "target": KeyInfo("texts", "GPUs to check for where an input names none itself."),
    "mode": KeyInfo("mode", "training (all three passes) or inference (only fprop), where an input does not say."),
    "runtime": KeyInfo(
        "runtime", "Settings of the runtime, as in a spec, for every input that does not say otherwise."
    ),
    "dtype": KeyInfo("word", "What layers are computed in, where an input does not say."),
    "layout": KeyInfo("word", "NCHW, NHWC or auto, where an input does not say."),
    "versions": KeyInfo(
        "versions", "Where versions that nobody states come from: auto (the nearest lock file), none, or a file."
    ),
    "models": KeyInfo("models", "Models of the project, which --models and --model check: their code runs then."),
    "source": KeyInfo("source", "How Python files are read, which is done without running any of them."),
    "select": KeyInfo("texts", "Only these rules: codes, names, prefixes such as CL1, or ALL."),
    "ignore": KeyInfo("texts", "Not these rules."),
    "extend-select": KeyInfo("texts", "These rules beside the default ones."),
    "severity": KeyInfo("severities", "Another severity for a rule."),
    "fail-on": KeyInfo("fail-on", "Least severity that fails: exit code 1."),
    "allow": KeyInfo("allow", "Changes that are advised beside those that keep all of a network: what --allow takes."),
    "min-loss": KeyInfo(
        "percent", "Findings that lose less than this share of the network's time, in percent, do not fail."
    ),
    "strict": KeyInfo(
        "truth", "Whether layers without sizes, unknown widths and rules that could not be checked fail: exit code 3."
    ),
    "rules": KeyInfo("folders", "Folders with rules of your own, relative to this file."),
    "calibration": KeyInfo(
        "files", "Files of `convlint measure --calibrate`, one for each GPU that was measured, relative to this file."
    ),
    "lang": KeyInfo("language", "The language of the text and HTML reports: en or zh."),
    "include": KeyInfo("patterns", "Only these files, where a folder is checked."),
    "exclude": KeyInfo("patterns", "Not these files, where a folder is checked."),
    "per-file-ignores": KeyInfo("file-ignores", "Rules to silence in the files that a pattern matches."),
    "per-layer-ignores": KeyInfo(
        "layer-ignores", "Rules to silence in the layers that a pattern matches, with a reason."
    ),
}


def read_value(kind: Kind, value: Any, at: Spot, folder: str) -> Any:
    """The value of a key, checked; paths in it are relative to `folder`. Raises UsageError with the place."""
    if kind in _CHOICES:
        return choice_of(value, at, _CHOICES[kind])
    return _READERS[kind](value, at) if kind in _READERS else _BESIDE_FOLDER[kind](value, at, folder)


def _word(value: Any, at: Spot) -> Word:
    return Word(text_of(value, at).strip(), at)


def _allow(value: Any, at: Spot) -> tuple[Allowance, ...]:
    return tuple(dict.fromkeys(choice_of(word.text, word.at, ALLOWANCES) for word in texts_of(value, at)))


def _files(value: Any, at: Spot, folder: str) -> tuple[Word, ...]:
    return tuple(Word(os.path.normpath(os.path.join(folder, word.text)), word.at) for word in texts_of(value, at))


def _versions(value: Any, at: Spot, folder: str) -> Word:
    text = text_of(value, at)
    return Word(text if text in ("auto", "none") else os.path.normpath(os.path.join(folder, text)), at)


def _patterns(value: Any, at: Spot, folder: str) -> tuple[PathPattern, ...]:
    return tuple(PathPattern(folder, pattern_of(word.text, word.at)) for word in texts_of(value, at))


def _severities(value: Any, at: Spot) -> tuple[tuple[Word, Severity], ...]:
    entries = table_of(value, at).items()
    return tuple((Word(key, at.below(key)), choice_of(item, at.below(key), SEVERITIES)) for key, item in entries)


_CHOICES: Mapping[Kind, Sequence[str]] = {"mode": MODES, "fail-on": FAIL_ON, "language": LANGUAGES}
_READERS: Mapping[Kind, Callable[[Any, Spot], Any]] = {
    "text": text_of,
    "texts": texts_of,
    "word": _word,
    "runtime": settings_of,
    "allow": _allow,
    "percent": lambda value, at: number_of(value, at, 0, 100),
    "truth": truth_of,
    "severities": _severities,
    "layer-ignores": layer_ignores,
}
_BESIDE_FOLDER: Mapping[Kind, Callable[[Any, Spot, str], Any]] = {  # with paths that start in a folder
    "models": models_of,
    "source": source_of,
    "folders": lambda value, at, folder: tuple(word.text for word in _files(value, at, folder)),
    "files": _files,
    "versions": _versions,
    "patterns": _patterns,
    "file-ignores": file_ignores,
}
