"""Inputs, as the command line and the config name them: files, standard input, modules and Python source."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from convlint.errors import InputFault, shown
from convlint.model.layer import Mode, equal_without
from convlint.model.location import Span
from convlint.readers import find_format

MOST_TEXT = 2_000  # characters of a reference
_MOST_DEPTH = 50  # opening brackets of one kind; deep nesting exhausts the stack of Python's parser
_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_LOOKS = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*(\(.*\)[\w.]*)?", re.DOTALL)


class Reference(Struct, frozen=True, kw_only=True):
    """A reference to an object of an importable module: `attributes` lead to it, from the module on.

    `called`: it is called with `arguments` and `keywords`, and `then` are attributes of the result.
    """

    module: str
    attributes: tuple[str, ...]
    called: bool = False
    arguments: tuple[Any, ...] = ()
    keywords: dict[str, Any] = {}
    then: tuple[str, ...] = ()


def looks_like_reference(text: str) -> bool:
    """Whether a word on the command line is written like a reference; its arguments may still be wrong."""
    return len(text) <= MOST_TEXT and _LOOKS.fullmatch(text) is not None


def parse_reference(text: str) -> Reference:
    """Reads `package.module:name`, `…:name.inner`, `…:name(1, "a", wide=True)`. Raises InputFault."""
    module, colon, expression = text.strip().partition(":")
    module, expression = module.strip(), expression.strip()
    if len(text) > MOST_TEXT:
        raise InputFault(f"{shown(text)!r} is longer than {MOST_TEXT:,} characters")
    if not colon or not _MODULE.fullmatch(module) or not expression:
        raise InputFault(f"{shown(text)!r} is not package.module:name, with literal arguments where it is called")
    if max(map(expression.count, "([{")) > _MOST_DEPTH:
        raise InputFault(f"{shown(text)!r} has too many brackets")
    try:
        node = ast.parse(expression, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InputFault(f"{shown(expression)!r} is no Python expression") from None
    then, inner = _attributes(node)
    if isinstance(inner, ast.Call):
        before, base = _attributes(inner.func)
        if isinstance(base, ast.Name):
            arguments = tuple(_literal(argument) for argument in inner.args)
            keywords = {_keyword(keyword): _literal(keyword.value) for keyword in inner.keywords}
            return Reference(
                module=module, attributes=(base.id, *before), called=True, arguments=arguments, keywords=keywords,
                then=then,
            )  # fmt: skip
    elif isinstance(inner, ast.Name):
        return Reference(module=module, attributes=(inner.id, *then))
    raise InputFault(f"{shown(expression)!r} is neither a name nor a name that is called once with literals")


def _attributes(node: ast.expr) -> tuple[tuple[str, ...], ast.expr]:
    """The attributes at the end of an expression, in order, and the expression before them."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return tuple(reversed(names)), node


def _literal(node: ast.expr) -> Any:
    if isinstance(node, ast.Starred):
        raise InputFault(f"{ast.unparse(node)[:60]!r}: arguments are written out, not spread")
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        raise InputFault(
            f"{ast.unparse(node)[:60]!r} is no literal: arguments are numbers, texts, True, False, None, lists, dicts"
        ) from None


def _keyword(keyword: ast.keyword) -> str:
    if keyword.arg is None:
        raise InputFault(f"'**{ast.unparse(keyword.value)[:60]}': arguments are written out, not spread")
    return keyword.arg


class Model(Struct, frozen=True, kw_only=True):
    """A model that the config names: how it is built and called, and how it runs.

    `inputs` are texts as `--input` takes them; `settings` are those of the runtime; `path` is the config.
    """

    reference: str
    path: str
    inputs: Mapping[str, str] = {}
    channels_last: bool = False
    autocast: str | None = None
    mode: Mode | None = None
    trains: bool | None = None  # whether it is followed in train mode; None: as `mode` says
    targets: tuple[str, ...] = ()
    settings: Mapping[str, Any] = {}
    spans: Mapping[str, Span] = {}  # in `path`: of the settings, of `model`, `inputs`, `target` and `mode`
    folder: str = "."  # of the config, from which modules are imported


@equal_without("text", "raw", "model")
class Input(Struct, frozen=True, kw_only=True):
    """One thing to read. Only a `module` runs code; nothing that lies on disk ever becomes one, whatever its name."""

    kind: Literal["file", "stdin", "module", "source"]
    name: str  # a path, "-", or package.module:name; for source, its only file or the folder of its repository
    text: str | None = None  # the content of a file that was opened to tell what it is
    copy: str = ""  # the path of a copy of the file, which is read instead
    raw: bytes | None = None  # the content of standard input that is to be edited, as it can be read only once
    model: Model | None = None  # the model of the config, where `name` is its name there
    members: tuple[str, ...] = ()  # the files of source
    named: frozenset[str] = frozenset()  # those of `members` that the user named: their faults are errors
    root: str = ""  # the folder that source imports from
    part: tuple[str, ...] = ()  # those of `members` that this one of several processes reads


def file_input(path: str) -> Input:
    """The file at `path`; `-` is a file of this name."""
    return Input(kind="file", name=os.path.join(".", path) if path == "-" else path)


def source_input(path: str, *, named: bool) -> Input:
    """The Python file or notebook at `path`, alone."""
    return Input(kind="source", name=path, members=(path,), named=frozenset({path} if named else ()))


def decide(word: str, *, modules: bool = True) -> Input:
    """The input that `word`, as the user typed it, names.

    A module only if `modules` allows it, the word is written `package.module:name`, called or not, has no suffix that a
    reader knows, and nothing of that name exists: a file in a downloaded repository must not make code run.
    """
    if word == "-":
        return Input(kind="stdin", name=word)
    if modules and looks_like_reference(word) and find_format(word) is None and not _may_exist(word):
        return Input(kind="module", name=word)
    return file_input(word)


def _may_exist(path: str) -> bool:
    """False only where the file system states that nothing has this name; any other answer must not make code run."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError):
        return True
    return True
