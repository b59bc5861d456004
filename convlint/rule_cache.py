"""The built-in rules in compiled form, kept between runs as Python keeps its own byte code.

Reading and checking some sixty rule files takes longer than checking a network. The key holds every file's name,
size and time, so that a changed rule is seen at once; whatever is wrong with the cache, the files are read instead.
"""

from __future__ import annotations

import marshal
import os
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path
from zlib import crc32

from convlint import __version__
from convlint.rulebook import Plain

# what the compiled form depends on beside the rule files
_COMPILERS = ("located_yaml.py", "rule_file.py", "rule_pieces.py", "rulebook.py", "expr.py", "vocabulary.py")


def cached_plain_rules(paths: Sequence[str]) -> list[Plain]:
    """The plain form of the rules in `paths`. Raises RuleError at the first defect."""
    here = os.path.dirname(__file__)
    code = [os.path.join(here, name) for name in _COMPILERS]
    key = repr((__version__, sys.version, [(path, *_stamp(path)) for path in (*code, *paths)]))
    cache = _cache_path()
    if cache is not None:
        try:
            data = cache.read_bytes()
            if data[:4] == _checksum(data[4:]):  # what is damaged could bring the interpreter down
                stored_key, rules = marshal.loads(data[4:])
                if stored_key == key:
                    return list(rules)
        except (OSError, ValueError, EOFError, TypeError):
            pass  # absent or of another version: the files decide
    from convlint.rule_file import read_rule

    rules = [read_rule(path) for path in paths]
    if cache is not None:
        data = marshal.dumps((key, rules))
        _store(cache, _checksum(data) + data)
    return rules


def _checksum(data: bytes) -> bytes:
    return zlib.crc32(data).to_bytes(4, "little")


def _stamp(path: str) -> tuple[int, int]:
    try:
        status = os.stat(path)
    except OSError:  # Python can run without the sources
        return 0, 0
    return status.st_mtime_ns, status.st_size


def _cache_path() -> Path | None:
    """In the user's cache folder; None where there is none, it is someone else's, or CONVLINT_NO_CACHE is set."""
    if os.environ.get("CONVLINT_NO_CACHE"):
        return None
    base = os.environ.get("XDG_CACHE_HOME", "")
    folder = Path(base if os.path.isabs(base) else os.path.expanduser("~/.cache")) / "convlint"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if hasattr(os, "getuid") and folder.stat().st_uid != os.getuid():
            return None
    except OSError:
        return None
    # One file for each installation: several beside each other must not replace each other's at every run.
    here = crc32(os.fsencode(__file__))
    return folder / f"rules-{__version__}-{sys.implementation.cache_tag}-{here:08x}.marshal"


def _store(cache: Path, data: bytes) -> None:
    """Writes atomically, so that a run beside this one never reads half a file. A full disk costs only the cache."""
    temporary = cache.with_suffix(f".{os.getpid()}")
    try:
        temporary.write_bytes(data)
        temporary.replace(cache)
    except OSError:
        temporary.unlink(missing_ok=True)
