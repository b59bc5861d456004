"""Modules whose source is to be another than what lies on disk, as the code that imports them sees it.

Their paths, packages and relative imports stay; their bytecode is neither read nor written.
"""

from __future__ import annotations

import io
import linecache
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.machinery import SourceFileLoader
from importlib.util import decode_source
from typing import Any


@contextmanager
def edited_sources(sources: Mapping[str, str]) -> Iterator[None]:
    """While active, imports take `sources` for the files at these real paths: their bytes, each as one character."""
    if not sources:
        yield
        return
    edited = {path: source.encode("latin-1") for path, source in sources.items()}
    get_data, path_stats, updatecache = SourceFileLoader.get_data, SourceFileLoader.path_stats, linecache.updatecache

    def data(self: SourceFileLoader, path: str) -> bytes:
        found = edited.get(os.path.realpath(path))
        return get_data(self, path) if found is None else found

    def stats(self: SourceFileLoader, path: str) -> Mapping[str, Any]:
        if os.path.realpath(path) in edited:
            raise OSError("it is not as it is on disk")  # so that the loader asks for no bytecode
        return path_stats(self, path)

    def lines(filename: str, module_globals: dict[str, Any] | None = None) -> list[str]:
        found = edited.get(os.path.realpath(filename))
        if found is None:
            return updatecache(filename, module_globals)
        read = io.StringIO(decode_source(found)).readlines()
        linecache.cache[filename] = len(found), None, read, filename
        return read

    with (
        patched(SourceFileLoader, "get_data", data),
        patched(SourceFileLoader, "path_stats", stats),
        patched(linecache, "updatecache", lines),
    ):
        yield


@contextmanager
def patched(holder: Any, name: str, value: object) -> Iterator[None]:
    """While active, an attribute is another."""
    before = getattr(holder, name)
    setattr(holder, name, value)
    try:
        yield
    finally:
        setattr(holder, name, before)
