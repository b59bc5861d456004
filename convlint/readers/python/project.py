"""List the Python files of a repository, resolve imports to them, and parse each when it is first needed."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache, cached_property

from convlint.model.errors import InputFault
from convlint.model.grouping import grouped
from convlint.model.source import UnreadFile
from convlint.readers.python.source_file import SourceFile, parsed, read_bytes

# Names that always mean the framework, also inside its own repository, where a resolved name would hide its layers.
FRAMEWORKS = frozenset({"torch", "paddle", "keras", "tf_keras", "tensorflow", "mxnet", "flax", "jax", "haiku"})
MOST_LISTED = 20_000  # files of a repository that imports are looked for in
MOST_FOLDERS = 20_000
MOST_KEPT = 32 << 20  # bytes of files that were only looked through
# Installed or generated code, in which nobody fixes a finding
_SKIPPED = frozenset({"node_modules", "__pycache__", "site-packages", "venv", "env", "build", "dist"})
_ADDS_PATH = b"sys.path."
_SCRIPTS = re.compile(rb"^\[(?:project|tool\.poetry)\.scripts\][ \t]*\n((?:(?!\[).*\n?)*)", re.MULTILINE)
_SCRIPT = re.compile(rb"^[^=#\n]+=[ \t]*[\"']([\w.]+):(\w+)", re.MULTILINE)


class Project:
    """The Python files of one repository, by their path as reports show it."""

    def __init__(self, root: str, given: Iterable[str], contents: Mapping[str, bytes] | None = None) -> None:
        """List the files below `root`, the folder in which imports are resolved; `given` are the files to report on.

        `contents` replaces what is on disk: edited text, or the code cells of a notebook.
        """
        self.root, self.given = root, tuple(given)
        self.unread: dict[str, UnreadFile] = {}  # by path: why it could not be read
        self._contents = dict(contents or {})
        self._room = MOST_KEPT
        self._files: dict[str, SourceFile | None] = {}
        self._by_real: dict[str, str] = {}
        self._by_tail: dict[str, list[str]] = {}
        self._resolved = cache(self._resolve)
        self._real_folder = cache(lambda folder: os.path.abspath(folder).removesuffix(os.sep))  # which `/` alone has
        self._adds_paths = cache(self._adds_to_path)
        self._parts: set[str] = set()  # what an import of a file of the repository can begin with
        for path in dict.fromkeys((*self.given, *_listed(root))):
            real = os.path.abspath(path)  # not realpath, which asks the file system for every part of every path
            # One file under two names would be reported twice.
            if real in self._by_real:
                continue
            self._by_real[real] = path
            self._by_tail.setdefault(_tail(path), []).append(path)
            self._parts.update(real.removesuffix(".py").split(os.sep))

    @property
    def paths(self) -> tuple[str, ...]:
        """All files of the repository, those to report on first."""
        return tuple(self._by_real.values())

    @cached_property
    def commands(self) -> dict[str, list[str]]:
        """By file, the names that the metadata of the package at the root installs as commands."""
        metadata = os.path.join(self.root, "pyproject.toml")
        with suppress(InputFault):
            pairs = [pair for table in _SCRIPTS.findall(read_bytes(metadata)) for pair in _SCRIPT.findall(table)]
            files = [(self.resolve(module.decode(), metadata), name.decode()) for module, name in pairs]
            return grouped((path, name) for path, name in files if path is not None)
        return {}

    def content(self, path: str) -> bytes | None:
        """Return the bytes of a file; None if it cannot be read, for the reason in `unread`."""
        if path in self.unread:
            return None
        if path not in self._contents:
            try:
                self._contents[path] = read_bytes(path)
            except InputFault as fault:
                self.unread[path] = unread_for(fault)
                return None
        return self._contents[path]

    def where(self, says: Callable[[bytes], object]) -> Iterator[str]:
        """Yield the files whose content satisfies `says`; contents read for it are kept up to MOST_KEPT bytes."""
        for path in self.paths:
            content = self._contents.get(path)
            if content is None and path not in self.unread:
                with suppress(InputFault):
                    content = read_bytes(path)
                if content is not None and self._room >= len(content):
                    self._room -= len(content)
                    self._contents[path] = content
            if content is not None and says(content):
                yield path

    def file(self, path: str) -> SourceFile | None:
        """Return the parsed file at `path`; None if it cannot be read or parsed, for the reason in `unread`."""
        if path not in self._files:
            content = self.content(path)
            self._files[path] = None
            if content is not None:
                try:
                    self._files[path] = parsed(path, content)
                except InputFault as fault:
                    self.unread[path] = unread_for(fault)
        return self._files[path]

    def resolve(self, module: str, importer: str, level: int = 0) -> str | None:
        """Return the path of the file that `module` names in `importer`; None for frameworks, libraries and unknowns.

        `level` counts the dots of a relative import. An absolute name is looked up beside the importer, as for a
        script, then in each folder above it up to the root and in their `src`, then as the unique end of a path: of a
        single name, which is common, only where a script beside the importer adds to `sys.path`.
        """
        if level == 0 and ((first := module.split(".")[0]) in FRAMEWORKS or first not in self._parts):
            return None
        folder = os.path.dirname(importer) or "."
        path = self._resolved(module, folder, level)
        # A script with the name of a library that it imports means the library, or the next such file further up.
        return self._resolve(module, folder, level, besides=importer) if path == importer else path

    def _resolve(self, module: str, folder: str, level: int, besides: str = "") -> str | None:
        parts = module.split(".") if module else []
        if level:
            return self._at(os.path.join(folder, *[".."] * (level - 1)), parts)
        top, own = self._real_folder(self.root), folder
        while True:
            for start in (folder, os.path.join(folder, "src")):
                path = self._at(start, parts)
                if path is not None and path != besides:
                    return path
            real = self._real_folder(folder)
            if real == top or not real.startswith(top):
                break
            folder = os.path.join(folder, "..")
        return self._unique(parts) if len(parts) > 1 or self._adds_paths(own) else None

    def _adds_to_path(self, folder: str) -> bool:
        """Whether a file in the folder adds to `sys.path`, as scripts do that lie beside a `core` or `lib`."""
        here = self._real_folder(folder)
        beside = [path for real, path in self._by_real.items() if os.path.dirname(real) == here]
        return any(_ADDS_PATH in (self.content(path) or b"") for path in beside)

    def _at(self, folder: str, parts: list[str]) -> str | None:
        base = os.sep.join((self._real_folder(folder), *parts))
        path = self._by_real.get(f"{base}.py") if parts else None
        return path or self._by_real.get(f"{base}{os.sep}__init__.py")

    def _unique(self, parts: list[str]) -> str | None:
        """Return the only file whose path ends with these parts; None if there are several.

        Of a module and a package the one further up is meant: that in the folder which a script adds to the path.
        """
        found: dict[str, int] = {}  # with how deep the folder lies that holds the module or package
        for tail in ("/".join(parts) + ending for ending in (".py", "/__init__.py")):
            ending = self._by_tail.get(_tail(tail), ()) if "/" in tail else self._by_real.values()
            paths = [path for path in ending if ("/" + path.replace(os.sep, "/")).endswith("/" + tail)]
            if len(paths) == 1:
                found[paths[0]] = paths[0].replace(os.sep, "/").count("/") - tail.count("/")
        return min(found, key=found.__getitem__, default=None)


def unread_for(fault: InputFault) -> UnreadFile:
    """Convert a fault to the value that reports carry."""
    return UnreadFile(why=fault.message, line=fault.line, column=fault.column)


def _listed(root: str) -> list[str]:
    """Return the Python files below `root` in a fixed order, without following links to folders."""
    paths: list[str] = []
    for count, (here, folders, files) in enumerate(os.walk(root, followlinks=False)):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _SKIPPED)
        prefix = "" if here == "." else here.removeprefix("./") + os.sep
        paths += [prefix + name for name in sorted(files) if name.endswith(".py")]
        if len(paths) >= MOST_LISTED or count >= MOST_FOLDERS:
            break
    return paths[:MOST_LISTED]


def _tail(path: str) -> str:
    return "/".join(path.replace(os.sep, "/").split("/")[-2:])
