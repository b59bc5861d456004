"""Find what a file imports, directly and transitively: files of the repository, and modules outside of it.

Imports are found with a regular expression, since parsing every file of a repository would take most of a run. Files
that import by a call are parsed: `import_module(f"archs.{name}")` imports any of the modules in `archs`.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator
from fnmatch import fnmatchcase
from functools import cache, cached_property

from msgspec import Struct

from convlint.model.grouping import grouped
from convlint.readers.python.project import FRAMEWORKS, Project
from convlint.readers.python.source_file import SourceFile, dotted, last_name
from convlint.readers.python.walking import every

IMPORT = re.compile(
    rb"^(?:\xef\xbb\xbf)?[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import[ \t]*(\([^)]*\)|(?:[^\n\\]|\\\r?\n|\\)*)"
    rb"|import[ \t]+([^\n;#]+))",
    re.MULTILINE,
)
_COMMENT = re.compile(rb"#[^\n]*")
BY_CALL = re.compile(rb"\b(?:import_module|__import__)\s*\(")
_NAMES = re.compile(rb"['\"]([A-Za-z_]\w*(?:\.\w+)+)['\"]")
_PERCENT, _BRACES = re.compile(r"%\w"), re.compile(r"\{[^{}]*\}")


# Text of files that are run: a guard, or code of a program at the top level
_SCRIPT = re.compile(rb"^if[ \t(]+__name__\b|^\w.*\bparse_args\(|^(?:for|while)\b", re.MULTILINE)


class Import(Struct, frozen=True):
    """`from module import attr as name`; for `import module as name`, `attr` is empty.

    `level` counts leading dots. `name` is the name bound: `*` for a star import, the first part of `import a.b`.
    """

    module: str
    level: int
    attr: str
    name: str


def imports(content: bytes) -> tuple[Import, ...]:
    """Return all imports, those inside functions included. An import quoted in a docstring counts too: this is rare."""
    result: list[Import] = []
    for match in IMPORT.finditer(content):
        source, names, plain = match.groups()
        if plain is not None:
            result += _plain(plain.decode("utf-8", "replace"))
            continue
        dotted = source.decode("utf-8", "replace")
        module = dotted.lstrip(".")
        text = _COMMENT.sub(b"", names).replace(b"\\", b" ").strip(b"() \t\r\n").decode("utf-8", "replace")
        for part in text.split(";")[0].split(","):
            words = part.split()
            if words and (words[0] == "*" or words[0].isidentifier()):
                name = words[2] if len(words) == 3 and words[1] == "as" else words[0]
                result.append(Import(module, len(dotted) - len(module), words[0], name))
    return tuple(result)


def _plain(text: str) -> list[Import]:
    result = []
    for part in text.split(","):
        words = part.split()
        if not words or not all(piece.isidentifier() for piece in words[0].split(".")):
            continue
        if len(words) == 3 and words[1] == "as":
            result.append(Import(words[0], 0, "", words[2]))
        elif len(words) == 1:
            result.append(Import(words[0], 0, "", words[0].split(".")[0]))
    return result


MOST_FILES = 1_500  # files of one closure; a larger one is cut, and its facts are marked incomplete
# Libraries that folders of repositories are named after; an import that finds no file there means the library.
_LIBRARIES = frozenset({
    "numpy", "scipy", "sklearn", "cv2", "torchvision", "timm", "transformers", "triton", "onnx", "onnxruntime",
    "openvino", "tensorrt", "ncnn", "coremltools", "wandb", "tensorboard", "cupy",
})  # fmt: skip
_MOST_ABOVE = 200  # files that lead to one, whose closures are asked
# Libraries that import modules which a config names
_MAKES_BY_NAME = frozenset({
    "detectron2", "hydra", "imp", "jsonargparse", "mmcv", "mmengine", "pkgutil", "pydoc", "runpy"
})  # fmt: skip
_BUILT = ("version", "_version", "_ext", "_C")  # names of modules that builds make, of versions and of C++
_STANDARD = sys.stdlib_module_names | {"__future__"}


class Closure(Struct, frozen=True, kw_only=True):
    """The files that one imports transitively, itself first, and what it imports from outside the repository."""

    files: tuple[str, ...]
    foreign: frozenset[str]  # full names of modules and of what is imported from them: torch.nn, torchvision.transforms
    missing: str = ""  # an import that must be of the repository, but has no file
    dynamic: str = ""  # a file that imports by a computed name
    by_name: frozenset[str] = frozenset()  # files that may be meant by a name of which only the package is known
    cut: bool = False  # whether it has more than MOST_FILES files


class ProjectImports:
    """The imports of every file of a project, each read once, as closures share most of their files."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.of = cache(lambda path: imports(project.content(path) or b""))  # none of a file that cannot be read
        self.closure, self._edge, self._reached = cache(self._closure), cache(self._edge_from), cache(self._programs_of)
        self._named = cache(lambda path: tuple(self._named_in(path)))
        self._is_script = cache(lambda path: bool(_SCRIPT.search(project.content(path) or b"")))
        self._own: set[str] = set()
        self._folders: set[str] = set()
        for path in project.paths:
            *folders, name = path.replace(os.sep, "/").split("/")
            self._own.update(folders, (name.removesuffix(".py"),))
            self._folders.update("/".join(folders[: count + 1]) for count in range(len(folders)))

    def resolve(self, module: str, importer: str, level: int = 0) -> str | None:
        """Resolve as `Project.resolve` does, but reject names from outside the repository without a look at paths."""
        first = module.split(".")[0]
        if not level and (first in FRAMEWORKS or first in _STANDARD or first not in self._own):
            return None
        return self.project.resolve(module, importer, level)

    def may_be_own(self, name: str) -> bool:
        """Whether any file or folder of the repository has that name."""
        return name in self._own

    def imports_any(self, path: str) -> bool:
        """Whether a call in a file imports a module by a name that is unknown."""
        return bool(self._edge(path).dynamic)

    def near(self, path: str) -> tuple[str, ...]:
        """Return the files that one imports directly."""
        return self._edge(path).files

    @cached_property
    def _importers(self) -> dict[str, list[str]]:
        """The files that import each directly."""
        return grouped((file, importer) for importer in self.project.paths for file in self.near(importer))

    def _above(self, paths: Iterable[str]) -> list[str]:
        """Return files and those that import one, directly or not; once they exceed _MOST_ABOVE, some of them."""
        above = [*paths]
        for file in above:  # which grows meanwhile
            above += [importer for importer in self._importers.get(file, ()) if importer not in above]
            if len(above) > _MOST_ABOVE:
                break
        return above

    def beside(self, path: str) -> frozenset[str]:
        """Return the files that programs with the file at `path` have; none if no script is seen to lead there."""
        files, leads = self._reached(frozenset(self._importers.get(path, ())))
        if not leads and not self._is_script(path):
            return frozenset()
        return files if path in files else files.union(self.closure(path).files)

    def _programs_of(self, paths: frozenset[str]) -> tuple[frozenset[str], bool]:
        """Return the files of all that leads to some files, and whether a script is among it."""
        above, files = self._above(paths), set[str]()
        for file in reversed(above):  # what imports most comes first: it has the files of the others
            if file not in files:
                files.update(self.closure(file).files)
        return frozenset(files), any(map(self._is_script, above))

    def programs_with(self, path: str) -> frozenset[str] | None:
        """Return the files of all programs that have the file at `path`.

        None if a file that nobody imports is no script, as other repositories may, or if some import is unknown.
        """
        above = self._above([path])
        if len(above) > _MOST_ABOVE:
            return None
        tops = [file for file in above if file not in self._importers]
        if not tops or not all(map(self._is_script, tops)):
            return None
        closures = [self.closure(file) for file in above]
        libraries = {name.split(".")[0] for closure in closures for name in closure.foreign}
        if libraries & _MAKES_BY_NAME or any(closure.missing or closure.dynamic or closure.cut for closure in closures):
            return None
        return frozenset(file for closure in closures for file in closure.files)

    def _closure(self, path: str) -> Closure:
        """Return all files of a program that starts with `path`."""
        files, foreign, by_name, missing, dynamic = {path: None}, set[str](), set[str](), "", ""
        waiting = [path]
        while waiting and len(files) < MOST_FILES:
            edge = self._edge(waiting.pop())
            foreign |= edge.foreign
            by_name |= edge.by_name
            missing, dynamic = missing or edge.missing, dynamic or edge.dynamic
            new = [file for file in edge.files if file not in files]
            files.update(dict.fromkeys(new))
            waiting += new
            if dynamic and not waiting:  # what imports by any name is mostly given one as a literal
                waiting = [file for path in files for file in self._named(path) if file not in files]
                by_name.update(waiting)
                files.update(dict.fromkeys(waiting))
        return Closure(
            files=tuple(files), foreign=frozenset(foreign), missing=missing, dynamic=dynamic,
            by_name=frozenset(by_name), cut=bool(waiting),
        )  # fmt: skip

    def _edge_from(self, path: str) -> Closure:
        """Return what the file at `path` imports directly."""
        near: dict[str, None] = {}
        foreign: set[str] = set()
        missing = ""
        for binding in self.of(path):
            level, attr = binding.level, binding.attr if binding.attr != "*" else ""
            # `from package import name` may name a module of the package as well.
            names = [binding.module, f"{binding.module}.{attr}"] if attr else [binding.module]
            if not binding.module:
                names = [attr, ""] if attr else [""]
            files = self._resolved(names, path, level)
            near.update(dict.fromkeys(files))
            if files and not level:  # an import runs the `__init__.py` of each package above the module too
                parts = binding.module.split(".")
                above = [".".join(parts[:count]) for count in range(1, len(parts))]
                near.update(dict.fromkeys(self._resolved(above, path)))
            elif not files and (level or self._is_own(binding.module.split(".")[0], path)):
                if not missing and not _is_built(names[0], path):
                    missing = f"{'.' * level}{binding.module} in {path}"
            elif not files:
                foreign.add(f"{binding.module}.{attr}" if attr else binding.module)
        content = self.project.content(path) or b""
        dynamic, by_name = "", dict[str, None]()
        if (b"import_module" in content or b"__import__" in content) and BY_CALL.search(content) is not None:
            for pattern in self._imported_by_call(path):
                files = self._matching(pattern, path)
                by_name.update(dict.fromkeys(files))
                if not pattern or (not files and self.may_be_own(pattern.split(".")[0])):
                    dynamic = path  # only a run knows the name
                elif not files:
                    foreign.add(pattern)
        return Closure(
            files=(*near, *(file for file in by_name if file not in near)), foreign=frozenset(foreign),
            missing=missing, dynamic=dynamic, by_name=frozenset(by_name),
        )  # fmt: skip

    def _named_in(self, path: str) -> Iterator[str]:
        """Yield the files of modules that literals of a file name: `"training.loss"`, `"training.loss.Loss"`."""
        for full in dict.fromkeys(_NAMES.findall(self.project.content(path) or b"")):
            module, _, name = full.rpartition(b".")
            yield from self._resolved([full.decode()], path)
            definition = re.compile(rb"\b(?:class|def)\s+%s\b" % name)  # a file's name, as "train.py", has none
            files = self._resolved([module.decode()], path)
            yield from (file for file in files if definition.search(self.project.content(file) or b""))

    def _imported_by_call(self, path: str) -> Iterator[str]:
        """Yield the names of modules that calls import, with `*` for what only a run knows; '' for one that is any."""
        file = self.project.file(path)
        if file is None:
            yield ""
            return
        package = {"__package__", "__name__"} if os.path.basename(path) == "__init__.py" else {"__package__"}
        ours = {"__import__"} | {binding.name for binding in self.of(path) if binding.module == "importlib"}
        for node in file.nodes[ast.Call]:
            if last_name(node.func) in ("import_module", "__import__"):
                name, *others = [*node.args, *(keyword.value for keyword in node.keywords)] or [None]
                known = dotted(node.func).partition(".")[0] in ours
                for value in _values_of(name, file) if isinstance(name, ast.Name) else [name]:
                    pattern = _pattern(value, package) if known else ""
                    # A relative name is of the package that another argument gives; a bare one may be any module.
                    here = all(dotted(other) in package for other in others)
                    yield pattern if (here if pattern[:1] == "." else "*" not in pattern.partition(".")[0]) else ""

    def _matching(self, pattern: str, importer: str) -> list[str]:
        """Return the files of all modules whose full name matches a pattern, in the folder nearest to the importer."""
        name = pattern.lstrip(".")
        parts, found = name.split("."), dict[str, list[str]]()
        for path in self.project.paths if name else ():
            names = path.replace(os.sep, "/").removesuffix(".py").removesuffix("/__init__").split("/")
            above, last = names[: -len(parts)], names[-len(parts) :]
            fits = len(last) == len(parts) and all(map(fnmatchcase, last, parts))
            if fits and self.resolve(".".join(last), importer, len(pattern) - len(name)) == path:
                found.setdefault("/".join(above), []).append(path)
        here = importer.replace(os.sep, "/")
        nearest = max(found, key=lambda folder: len(folder) if here.startswith(folder) else -1, default="")
        return found.get(nearest, [])

    def _resolved(self, modules: Iterable[str], importer: str, level: int = 0) -> list[str]:
        paths = (self.resolve(module, importer, level) for module in modules)
        return [path for path in paths if path is not None]

    def _is_own(self, first: str, importer: str) -> bool:
        """Whether an absolute import must be of the repository, although no file was found for it."""
        if first not in self._own or first in FRAMEWORKS or first in _STANDARD or first in _LIBRARIES:
            return False
        if self.resolve(first, importer) is not None:
            return True
        *above, _ = importer.replace(os.sep, "/").split("/")
        starts = ["/".join(above[:count]) for count in range(len(above) + 1)]
        return any(
            "/".join(filter(None, (start, *inner, first))) in self._folders
            for start in starts
            for inner in ((), ("src",))
        )


def _values_of(name: ast.Name, file: SourceFile) -> list[ast.expr | None]:
    """Return what a file assigns to a name; None, as something unknown, if the name is bound in another way too."""
    values: list[ast.expr | None] = [
        node.value for node in file.nodes[ast.Assign] if [last_name(target) for target in node.targets] == [name.id]
    ]
    loops = [node for node in file.nodes[ast.For] if last_name(node.target) == name.id]
    written = [node.iter.elts for node in loops if isinstance(node.iter, ast.List | ast.Tuple)]
    nodes = every(file.tree)
    bound = sum(isinstance(node, ast.Name) and node.id == name.id and isinstance(node.ctx, ast.Store) for node in nodes)
    given = any(isinstance(node, ast.arg) and node.arg == name.id for node in nodes)
    known = 0 < len(values) + len(written) == bound and not given
    return [*values, *(value for items in written for value in items)] if known else [None]


def _pattern(node: ast.expr | None, package: Collection[str]) -> str:
    """Return a string that code computes, with `*` for unknown parts; names of the `package` leave a leading dot."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(_pattern(value, package) for value in values)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _pattern(left, package) + _pattern(right, package)
        case ast.BinOp(left=ast.Constant(value=str(text)), op=ast.Mod()):
            return _PERCENT.sub("*", text)
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text)), attr="format")):
            return _BRACES.sub("*", text)
        case ast.Name(id=name) | ast.FormattedValue(value=ast.Name(id=name)) if name in package:
            return ""
    return "*"


def _is_built(module: str, importer: str) -> bool:
    """Whether a build makes the module, which has no layers: by its name, or by source in Cython.

    Such source is in the module's place or beside the importer.
    """
    *_, last = parts = module.split(".")
    if last in _BUILT:
        return True
    here = folder = os.path.dirname(importer)
    while not os.path.exists(os.path.join(folder, *parts) + ".pyx"):
        if folder in ("", "/") or folder.endswith(".."):
            return os.path.exists(os.path.join(here, last) + ".pyx")
        folder = os.path.dirname(folder)
    return True
