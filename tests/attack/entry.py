"""Reads one input of each kind within this process; the one module here that knows convlint's functions."""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from convlint.model.errors import ConvlintError
from convlint.readers import ReadOptions

CONTAINED = frozenset({"onnx"})  # parsers in C, which may die or swell: `check` runs them in a process of their own
_READERS = {
    "spec": "spec.reader", "onnx": "onnx.reader", "pt2": "torch.program", "keras": "keras.reader",
    "safetensors": "safetensors", "index": "safetensors",
}  # fmt: skip


def outcome(kind: str, path: Path, *, checked: bool = False) -> str:
    """The result of one input: "read", "incomplete" or "refused". Raises any undocumented exception.

    With `checked`, a network that was read is checked against all rules, as `check` does.
    """
    try:
        if kind in _READERS:
            return _model(kind, path, checked)
        return "read" if _text(kind, path) is not False else "incomplete"
    except ConvlintError:
        return "refused"


def _model(kind: str, path: Path, checked: bool) -> str:
    options = ReadOptions(batch=4) if kind in ("onnx", "pt2", "keras") else ReadOptions()
    if checked:
        done = _check(path, options)
        internal = [error.message for error in done.errors if error.internal]
        assert not internal, internal
        return "checked" if not done.errors else "incomplete" if done.result is not None else "refused"
    reader = import_module(f"convlint.readers.{_READERS[kind]}")
    network, errors = reader.read(str(path), options)
    assert network is not None or errors, "neither a network nor an error"
    return "read" if not errors else "incomplete" if network is not None else "refused"


def _check(path: Path, options: ReadOptions) -> Any:
    from convlint.mend.checking import Job, check_input
    from convlint.readers.inputs import file_input

    return check_input(file_input(str(path)), _rulebook(), Job(reading=options), _reading())


@cache
def _reading() -> Any:
    """One for all inputs, as in a run of many; its children end with this process."""
    import atexit

    from convlint.readers.reading import Reading

    reading = Reading()
    atexit.register(reading.__exit__, None, None, None)
    return reading


@cache
def _rulebook() -> Any:
    from convlint.rulebook.book import load_rulebook

    return load_rulebook(())


def _expression(path: Path) -> None:
    from convlint.rulebook.file import VOCABULARY
    from convlint.rulebook.grammar import compile_expr

    compile_expr(path.read_bytes().decode("utf-8", "replace"), VOCABULARY)


def _comments(path: Path) -> bool:
    from convlint.verdict.suppress import find_comments

    return bool(find_comments(path.read_bytes().decode("utf-8", "replace")))


# a file of text -> the function that reads it: where it is imported from, or itself
_TEXTS: dict[str, str | Callable[[Path], object]] = {
    "expression": _expression, "comments": _comments, "rule": "convlint.rulebook.file:read_rule",
    "config": "convlint.config.find:load_config", "baseline": "convlint.verdict.baseline:read_baseline",
}  # fmt: skip


def _text(kind: str, path: Path) -> object:
    reader = _TEXTS[kind]
    if callable(reader):
        return reader(path)
    module, _, name = reader.partition(":")
    return getattr(import_module(module), name)(str(path))
