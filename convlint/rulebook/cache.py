"""The built-in rules in compiled form, kept between runs as Python keeps its own byte code.

Reading and checking some sixty rule files takes longer than checking a network. The key holds every file's name,
size and time, so that a changed rule is seen at once. What the cache holds becomes code, so whatever is odd about it,
or merely in doubt, means that there is none (`private_folder` says what counts), and the files are read instead.
"""

from __future__ import annotations

import marshal
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from typing import Any
from zlib import crc32

from convlint import __version__
from convlint.files.private_folder import cache_folder, opened_private, read_private, write_private
from convlint.rulebook.book import Plain

# what the compiled form depends on beside the rule files
_COMPILERS = ("../files/located_yaml.py", "file.py", "pieces.py", "rule.py", "book.py", "expr.py", "vocabulary.py")
_MOST_BYTES = 8 * 2**20  # the built-in rules take some 300 KiB
_CHECKSUM_BYTES = 32


def cached_plain_rules(paths: Sequence[str]) -> list[Plain]:
    """The plain form of the rules in `paths`. Raises RuleError at the first defect."""
    from convlint.rulebook.file import read_rule

    read = partial(_read_all, read_rule, paths)
    if os.environ.get("CONVLINT_NO_CACHE"):
        return read()
    folder = None
    with suppress(OSError, ValueError):  # ValueError: a NUL in the path
        folder = opened_private(cache_folder())
    if folder is None:
        return read()
    try:
        # One file for each installation: several beside each other must not replace each other's at every run.
        here = crc32(os.fsencode(__file__))
        name = f"rules-{__version__}-{sys.implementation.cache_tag}-{here:08x}.marshal"
        key = _key(paths)
        rules = None
        with suppress(OSError):
            rules = unpacked(read_private(folder, name, _MOST_BYTES), key, paths)
        if rules is None:
            rules = read()
            with suppress(OSError):  # a full disk or a read-only one costs only the cache
                write_private(folder, name, packed(rules, key))
        return rules
    finally:
        os.close(folder)


def packed(rules: Sequence[Plain], key: str) -> bytes:
    """The content of a cache file: a checksum, then the key and the rules."""
    data = marshal.dumps((key, list(rules)))
    return _checksum(data) + data


def unpacked(raw: bytes, key: str, paths: Sequence[str]) -> list[Plain] | None:
    """The rules in a cache file's content; None where it is damaged, of another key, or holds anything else."""
    data = raw[_CHECKSUM_BYTES:]
    if raw[:_CHECKSUM_BYTES] != _checksum(data):  # what is damaged could bring the interpreter down
        return None
    try:
        stored = marshal.loads(data)
    except (ValueError, EOFError, TypeError):  # written by another version of Python
        return None
    match stored:
        case (str() as stored_key, list() as rules) if stored_key == key:
            return rules if len(rules) == len(paths) and all(map(_is_plain, rules, paths)) else None
    return None


_SHAPE: Mapping[str, type | tuple[type, ...]] = {
    "path": str, "lines": dict, "code": str, "name": str, "title": str, "severity": str, "scope": str,
    "opt_in": bool, "yields_to": tuple, "when": (tuple, type(None)), "let": tuple, "check": tuple, "cases": tuple,
    "loss": str, "loss_passes": tuple, "join": (tuple, type(None)), "rationale": str, "source": tuple,
    "needs_gpu": bool,
}  # fmt: skip


def _is_plain(rule: Any, path: str) -> bool:
    """Whether this is the plain form of the rule in the file at `path`, as far as its outline shows."""
    if not isinstance(rule, dict) or rule.keys() != _SHAPE.keys() or rule["path"] != path:
        return False
    return all(isinstance(rule[name], kind) for name, kind in _SHAPE.items())


def _read_all(read_rule: Callable[[str], Plain], paths: Sequence[str]) -> list[Plain]:
    return [read_rule(path) for path in paths]


def _key(paths: Sequence[str]) -> str:
    here = os.path.dirname(__file__)
    code = [os.path.join(here, name) for name in _COMPILERS]
    return repr((__version__, sys.version, [(path, *_stamp(path)) for path in (*code, *paths)]))


def _checksum(data: bytes) -> bytes:
    return blake2b(data, digest_size=_CHECKSUM_BYTES).digest()


def _stamp(path: str) -> tuple[int, int]:
    try:
        status = os.stat(path)
    except OSError:  # Python can run without the sources
        return 0, 0
    return status.st_mtime_ns, status.st_size
