"""The keys of `[tool.convlint]`: what each takes, what it means, and how its value is checked.

Plain classes and named tuples: every run that has a config loads this.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from convlint.config.ignores import file_ignores, layer_ignores
from convlint.config.models import models_of, settings_of
from convlint.config.source import source_of
from convlint.config.toml_source import Spot
from convlint.config.values import Word, choice_of, kind_of, pattern_of, table_of, text_of, texts_of
from convlint.files.languages import LANGUAGES
from convlint.model.layer import ALLOWANCES, MODES, Allowance, Mode
from convlint.report import SEVERITIES, Severity

if TYPE_CHECKING:
    from convlint.config.path_patterns import PathPattern
    from convlint.verdict.select import FailOn

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
FAIL_ON: tuple[FailOn, ...] = (*SEVERITIES, "never")


class KeyInfo:
    """One key: what it takes and, for `convlint config` and the schema, what it does."""

    __slots__ = ("kind", "meaning")

    def __init__(self, kind: Kind, meaning: str) -> None:
        self.kind, self.meaning = kind, meaning


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
    return _READERS[kind](value, at, folder)


def _word(value: Any, at: Spot, _folder: str) -> Word:
    return Word(text_of(value, at).strip(), at)


def _mode(value: Any, at: Spot, _folder: str) -> Mode:
    return choice_of(value, at, MODES)


def _fail_on(value: Any, at: Spot, _folder: str) -> FailOn:
    return choice_of(value, at, FAIL_ON)


def _allow(value: Any, at: Spot, folder: str) -> tuple[Allowance, ...]:
    return tuple(dict.fromkeys(choice_of(word.text, word.at, ALLOWANCES) for word in texts_of(value, at, folder)))


def _language(value: Any, at: Spot, _folder: str) -> str:
    return choice_of(value, at, LANGUAGES)


def _percent(value: Any, at: Spot, _folder: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        at.fail(f"must be a number, not {kind_of(value)}")
    if not 0 <= value <= 100:
        at.fail("must be from 0 to 100")
    return float(value)


def _truth(value: Any, at: Spot, _folder: str) -> bool:
    if not isinstance(value, bool):
        at.fail(f"must be true or false, not {kind_of(value)}")
    return value


def _folders(value: Any, at: Spot, folder: str) -> tuple[str, ...]:
    return tuple(os.path.normpath(os.path.join(folder, word.text)) for word in texts_of(value, at, folder))


def _files(value: Any, at: Spot, folder: str) -> tuple[Word, ...]:
    return tuple(
        Word(os.path.normpath(os.path.join(folder, word.text)), word.at) for word in texts_of(value, at, folder)
    )


def _patterns(value: Any, at: Spot, folder: str) -> tuple[PathPattern, ...]:
    from convlint.config.path_patterns import PathPattern

    return tuple(PathPattern(folder, pattern_of(word.text, word.at)) for word in texts_of(value, at, folder))


def _severities(value: Any, at: Spot, _folder: str) -> tuple[tuple[Word, Severity], ...]:
    entries = table_of(value, at).items()
    return tuple((Word(key, at.below(key)), choice_of(item, at.below(key), SEVERITIES)) for key, item in entries)


_READERS: Mapping[Kind, Callable[[Any, Spot, str], Any]] = {
    "text": text_of,
    "texts": texts_of,
    "mode": _mode,
    "word": _word,
    "runtime": settings_of,
    "models": models_of,
    "source": source_of,
    "fail-on": _fail_on,
    "allow": _allow,
    "percent": _percent,
    "truth": _truth,
    "language": _language,
    "folders": _folders,
    "files": _files,
    "patterns": _patterns,
    "severities": _severities,
    "file-ignores": file_ignores,
    "layer-ignores": layer_ignores,
}
