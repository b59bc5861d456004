"""The config that holds for an input: the closest convlint.toml or pyproject.toml upward, and what it extends."""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from convlint.files.bounded_file import MOST_CONFIG_BYTES, is_there, read_settings
from convlint.files.patterns import pattern
from convlint.model.errors import UsageError, suggestion

if TYPE_CHECKING:
    from convlint.config.keys import FileIgnore, LayerIgnore, ModelEntry, PathPattern, SourceConfig
    from convlint.config.toml_source import Spot, TomlSource, Word
    from convlint.model.layer import Allowance, Mode
    from convlint.model.report import FailOn, Severity

_MOST_NEAR = 500  # files beside a missing one that may be what was meant
OWN_FILE, SHARED_FILE = "convlint.toml", "pyproject.toml"
_MAX_EXTENDS = 20  # each of them is read: a longer chain is a mistake
_PATTERNS = ("include", "exclude", "per-file-ignores", "per-layer-ignores")  # each is tried on every file or layer
_JOINED = ("extend-select", "severity", "per-file-ignores", "per-layer-ignores")  # a child's entries join its parent's
MOST_PATTERNS, MOST_WORDS = 200, 1_000  # entries of a key, those it inherits included
# TOML lets every ASCII character of a key be written as an escape.
_ESCAPED = pattern(rb"\\(?:u00|U000000|x)([0-7][0-9a-fA-F])")


class Config(Struct, frozen=True, kw_only=True):
    """The settings of one config, those that it extends included; what it does not set is empty or None."""

    path: str | None = None  # as shown to the user; None: no config at all
    files: tuple[str, ...] = ()  # those that were read: the config and what it extends
    target: tuple[Word, ...] = ()
    mode: Mode | None = None
    runtime: Mapping[str, tuple[Any, Spot]] = field(default_factory=dict)  # as written, and where
    dtype: Word | None = None
    layout: Word | None = None
    versions: Word | None = None
    models: tuple[ModelEntry, ...] = ()
    source: SourceConfig | None = None
    select: tuple[Word, ...] | None = None
    ignore: tuple[Word, ...] = ()
    extend_select: tuple[Word, ...] = ()
    severity: tuple[tuple[Word, Severity], ...] = ()
    fail_on: FailOn | None = None
    allow: tuple[Allowance, ...] = ()
    min_loss: float | None = None
    strict: bool | None = None
    rules: tuple[str, ...] = ()
    calibration: tuple[Word, ...] = ()  # paths
    lang: str | None = None
    include: tuple[PathPattern, ...] = ()
    exclude: tuple[PathPattern, ...] = ()
    per_file_ignores: tuple[FileIgnore, ...] = ()
    per_layer_ignores: tuple[LayerIgnore, ...] = ()
    spots: Mapping[str, Spot] = field(default_factory=dict)  # key -> where it was set last


NO_CONFIG = Config()


class Configs:
    """Finds and keeps the configs of one run; each file is read once."""

    def __init__(self, path: str | None = None, *, isolated: bool = False) -> None:
        """`path` is the one config for all inputs; `isolated` reads none. Raises UsageError."""
        if path is not None and isolated:
            raise UsageError("--config and --isolated contradict each other")
        self._fixed = NO_CONFIG if isolated else None if path is None else load_config(path)
        self._by_folder: dict[str, Config] = {}

    def of(self, path: str) -> Config:
        """The config for the file or folder at `path`."""
        absolute = os.path.abspath(path)
        return self._fixed or self.of_folder(absolute if os.path.isdir(absolute) else os.path.dirname(absolute))

    def of_folder(self, folder: str) -> Config:
        """The closest config from `folder` upward. Raises UsageError where it is wrong."""
        if self._fixed is not None:
            return self._fixed
        passed = []  # folders without a config of their own: each is looked into once in a run
        config = NO_CONFIG
        while folder not in self._by_folder:
            passed.append(folder)
            here = config_in(folder)
            parent = os.path.dirname(folder)
            if here is not None or parent == folder:
                config = NO_CONFIG if here is None else _from_source(here, folder, ())
                break
            folder = parent
        else:
            config = self._by_folder[folder]
        self._by_folder.update(dict.fromkeys(passed, config))
        return config

    def files(self) -> tuple[str, ...]:
        """Every config file that was read so far, those that others extend included."""
        configs = (NO_CONFIG if self._fixed is None else self._fixed, *self._by_folder.values())
        return tuple(dict.fromkeys(file for config in configs for file in config.files))


def config_in(folder: str) -> TomlSource | None:
    """The config file in `folder`: convlint.toml, or pyproject.toml if it has [tool.convlint]. Raises UsageError."""
    own = shown_path(os.path.join(folder, OWN_FILE))
    if is_there(own):
        from convlint.config.toml_source import read_toml

        return read_toml(own, own)
    shared = shown_path(os.path.join(folder, SHARED_FILE))
    if not is_there(shared):
        return None
    raw = read_settings(shared, f"{shared}:", MOST_CONFIG_BYTES)
    if not may_configure(raw):
        return None
    from convlint.config.toml_source import TomlSource, decode

    source = TomlSource(shared, decode(raw, shared))
    tool = source.values.get("tool")
    return source if isinstance(tool, dict) and "convlint" in tool else None


def may_configure(raw: bytes) -> bool:
    """Whether a pyproject.toml may hold [tool.convlint]: never no where it does, however its keys are written."""
    if b"\\" in raw:
        raw = _ESCAPED.sub(lambda match: bytes([int(match[1], 16)]), raw)
    return b"convlint" in raw and b"tool" in raw


def load_config(path: str) -> Config:
    """The config in the file at `path`. Raises UsageError with file, line and column for whatever is wrong in it."""
    from convlint.config.toml_source import read_toml

    source = read_toml(path, shown_path(path))
    return _from_source(source, os.path.dirname(os.path.abspath(path)), ())


def shown_path(path: str) -> str:
    """Relative where it lies below the current folder, else absolute."""
    absolute = os.path.abspath(path)
    below = os.getcwd().rstrip(os.sep) + os.sep
    return absolute[len(below) :] if absolute.startswith(below) else absolute


def _from_source(source: TomlSource, folder: str, children: tuple[TomlSource, ...]) -> Config:
    """The settings in `source`, which lies in `folder`; `children` extend it."""
    from convlint.config.keys import KEYS, read_value
    from convlint.config.toml_source import Spot, text_of, unknown_key

    shared = os.path.basename(source.path) == SHARED_FILE
    top = Spot(source, ("tool", "convlint") if shared else ())
    table: Any = source.values
    for name in top.key:
        table = table.get(str(name)) if isinstance(table, dict) else None
    if table is None:
        raise UsageError(f"{source.path}: has no table [tool.convlint]")
    if not isinstance(table, dict):
        top.fail("must be a table: [tool.convlint]")
    for key in table:
        unknown_key(key, KEYS, top.below(key))
    config = Config(path=source.path)
    if "extend" in table:
        at = top.below("extend")
        parent = _parent(text_of(table["extend"], at), at, folder, (*children, source))
        config = replace(parent, path=source.path)
    changes: dict[str, Any] = {}
    for key, value in table.items():
        if key != "extend":
            attribute = key.replace("-", "_")
            read = read_value(KEYS[key].kind, value, top.below(key), folder)
            changes[attribute] = (*getattr(config, attribute), *read) if key in _JOINED else read
            most = MOST_PATTERNS if key in _PATTERNS else MOST_WORDS
            if key != "source" and isinstance(changes[attribute], tuple) and len(changes[attribute]) > most:
                top.below(key).fail(f"must hold at most {most:,} entries, those that it inherits included")
    spots = {**config.spots, **{key: top.below(key) for key in table}}
    return replace(config, **changes, spots=spots, files=(*config.files, source.path))


def _parent(text: str, at: Spot, folder: str, children: tuple[TomlSource, ...]) -> Config:
    """The config that the last of `children` extends."""
    from convlint.config.toml_source import read_toml

    if "\0" in text:
        at.fail(f"extend: {text!r} is no file")
    path = os.path.join(folder, text)
    if os.path.realpath(path) in {os.path.realpath(child.path) for child in children}:
        at.fail(f"extend goes round in a circle: {text!r} extends this file")
    if len(children) > _MAX_EXTENDS:
        at.fail(f"extend goes on for more than {_MAX_EXTENDS} files")
    if not os.path.isfile(path):
        at.fail(f"extend: {text!r} is no file{_near(path)}")
    source = read_toml(path, shown_path(path), children)
    return _from_source(source, os.path.dirname(os.path.abspath(path)), children)


def _near(path: str) -> str:
    folder, name = os.path.split(path)
    try:
        with os.scandir(folder or ".") as entries:
            first = [entry.name for entry in islice(entries, _MOST_NEAR)]
        return suggestion(name, sorted(entry for entry in first if entry.endswith(".toml")))
    except (OSError, ValueError):
        return ""
