"""Decide by their words which functions and classes may lead to a convolution; others need not be evaluated."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from functools import cache

from convlint.readers.python.evaluator.values import Class, Function
from convlint.readers.python.imports import ProjectImports
from convlint.readers.python.source_file import is_guard
from convlint.readers.python.walking import every

# In the name of every framework's convolution, and in no word such as Converter or Convex. In lower case, only full
# names of functions count: a name of the source is followed to its definition instead.
# Every branch begins with letters, for which `re` has a fast search: a word's start is looked for behind them.
_CONV = (
    rb"Conv(?!ers|ert|erg|en[it]|ey|ince|olve|ex(?![a-z]))|CONV|"
    rb"conv(?:(?<!\wconv)|(?<=\bdepthwise_conv)|(?<=\bseparable_conv))(?:(?:olution)?(?:_transpose)?[123]d(?:_transpose)?|_general_dilated)\b"
)
_IN_FILE, _IN_WORDS = re.compile(_CONV + rb"|lax\.conv(?<!\wlax\.conv)"), re.compile(_CONV.decode())
_WORD = re.compile(r"[^\W\d]\w*")
# Names by which code may read any name of a module, given as a string
_BY_TEXT = frozenset({"getattr", "__dict__", "vars", "globals", "eval", "exec", "attrgetter", "import_module"})
_LARGEST = 2_000  # parts searched for one root; beyond, the root is evaluated
_MOST_READ = 50  # modules that the words of one part refer to; beyond, all of a module counts

# The attribute that is the name in such a node
_NAMED: dict[type[ast.AST], str] = {
    ast.arg: "arg", ast.keyword: "arg", ast.ClassDef: "name", ast.FunctionDef: "name", ast.AsyncFunctionDef: "name",
}  # fmt: skip
_WITH_WORDS = frozenset((ast.keyword, ast.Constant, ast.Expr, ast.alias))  # beside names

Words = dict[str, frozenset[str]]  # by name; "" has those of statements that bind no name
Part = tuple[str, str]  # path, and a name at the top level of that file; without a name, all of it
_IMPORT = "import "  # in front of a name that a file imports from outside the repository: its words are that import's
_SOME = "."  # in place of the name: the parts of the module to which attributes behind its name lead
_ANY = ".."  # in place of the name: the parts of the module to which any words around its name refer


def names_convolution(content: bytes | None) -> bool:
    """Whether a file names any layer of convolutions."""
    return content is not None and _IN_FILE.search(content) is not None


def words_by_name(tree: ast.Module) -> Words:
    """Return the words in the definition of each name at the top level; if it has several, the words of all."""
    by_name: Words = {}
    for statement in tree.body:
        if not isinstance(statement, (ast.Import, ast.ImportFrom)):
            words = frozenset(_words(statement))
            for name in set(filter(None, _bound(statement))) or {""}:
                by_name[name] = by_name.get(name, frozenset()) | words
    return by_name


def building(cls: Class) -> list[Function]:
    """Return the methods of a class that name a convolution, or another such method: first those that no other names.

    Not those of a network, whose framework runs them.
    """
    methods = {name: value for name, value in cls.namespace.items() if isinstance(value, Function)}
    texts = {
        name: b"\n".join(method.file.content_lines[method.node.lineno - 1 : method.node.end_lineno])
        for name, method in methods.items()
    }
    calls = {name: {other for other in methods if f".{other}(".encode() in text} for name, text in texts.items()}
    chosen = {name for name, text in texts.items() if names_convolution(text)}
    while more := {name for name, called in calls.items() if name not in chosen and called & chosen}:
        chosen |= more
    called = set().union(*(calls[name] - {name} for name in chosen))
    return [methods[name] for name in sorted(chosen, key=called.__contains__)]


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _base(node: ast.AST) -> str:
    """Return `a` of `a.b[c]`; '' where that is no name."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _bound(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement binds, by definitions and assignments, those in blocks included."""
    if isinstance(statement, _DEFINITIONS):
        yield statement.name
        return
    if is_guard(statement):
        yield "__main__"
    for node in every(statement):
        if isinstance(node, _DEFINITIONS):
            yield node.name
        elif isinstance(getattr(node, "ctx", None), ast.Store):
            yield _base(node)


def _words(statement: ast.stmt) -> set[str]:
    """Return names, attributes and the words of strings, without docstrings, decorators and annotations.

    A name is there once more with all attributes behind it, and a dot: `models.` and `models.resnet.ResNet.` tell all
    that is done with `models`. Words of strings and of keywords are there once more too, with a quote in front.
    """
    prose = {id(node) for decorator in getattr(statement, "decorator_list", ()) for node in every(decorator)}
    result: set[str] = set()
    for node in every(statement, annotations=False):
        kind = node.__class__
        if id(node) in prose:
            continue
        if isinstance(node, ast.Name):  # as below, sooner
            result.update((node.id,) if node.id == "self" else (node.id, f"{node.id}."))
            continue
        if kind is ast.Attribute:
            names = _chain(node, prose)
            result.update(names)
            if names[0] not in ("", "self"):  # which is no module
                result.add(".".join((*names, "")))
            continue
        if kind in _NAMED:
            result.add(getattr(node, _NAMED[kind]))
            if kind is not ast.keyword:
                continue
        if kind not in _WITH_WORDS:  # most, for which the patterns below take longer
            continue
        match node:
            case ast.keyword(arg=name) if name:
                result.add(f"'{name}")
            case ast.Constant(value=str(text)):
                words = _WORD.findall(text)
                result.update(words, [f"'{word}" for word in words])
            case ast.Expr(value=ast.Constant() as text):
                prose.add(id(text))
            case ast.alias(name=name, asname=other):
                result.update((*name.split("."), other or ""))
    return result - {None, ""}  # of `**options`, and of imports under no other name


def _chain(node: ast.AST, within: set[int]) -> list[str]:
    """Return the names in `a.b.c`, the first empty if it is no name; add the inner nodes to `within`, to be skipped."""
    names: list[str] = []
    while node.__class__ is ast.Attribute:
        names.append(node.attr)
        node = node.value
        if isinstance(node, (ast.Attribute, ast.Name)):
            within.add(id(node))
    return [node.id if isinstance(node, ast.Name) else "", *reversed(names)]


class Relevance:
    """Follows the words of functions and classes through a repository."""

    def __init__(self, imports: ProjectImports) -> None:
        self._project, self._imports = imports.project, imports
        self._imported: dict[str, dict[str, list[Part]]] = {}  # what the imports of a file bind, by path
        self._leads: dict[Part, bool] = {}
        self._imported_from = cache(self._words_of_imports)
        self._names_one, self.referred, self._top = cache(self._may_name_one), cache(self._uses), cache(self._defined)

    def may_construct(self, root: Function | Class) -> bool:
        """Whether anything that a root refers to, directly or not, may construct a convolution."""
        # A root that is not defined at the top level cannot be searched, so that it counts.
        return root.name not in self._top(root.file.path) or self._may_lead((root.file.path, root.name))

    def may_construct_in(self, path: str) -> bool:
        """Whether a file has to be run: it may lead to a convolution, or sets what it imports from other files.

        All of its text counts, as what a decorator constructs is no word of any name.
        """
        return (
            names_convolution(self._project.content(path)) or self._may_lead((path, "")) or self._changes_others(path)
        )

    def _changes_others(self, path: str) -> bool:
        """Whether a file sets attributes or items of what it imports: `models.WIDTH = 64`."""
        file, bound = self._project.file(path), self._bound_in(path)
        plain = (item for item in file.tree.body if not isinstance(item, _DEFINITIONS)) if file is not None else ()
        stored = (node for item in plain for node in every(item) if isinstance(node, ast.Attribute | ast.Subscript))
        return any(isinstance(node.ctx, ast.Store) and _base(node) in bound for node in stored)

    def defining(self, path: str, name: str) -> frozenset[str]:
        """Return the files that may define a name of a file: itself, or those it is imported from; none if unknown."""
        if name in self._top(path):
            return frozenset((path,))
        return frozenset(other for other, what in self._bound_in(path).get(name, ()) if what == name)

    def _may_lead(self, first: Part) -> bool:
        if first not in self._leads:
            seen, leads = {first: None}, False
            waiting = [first]
            for part in waiting:  # which grows meanwhile
                leads = self._leads.get(part) or self._names_one(part) or len(waiting) > _LARGEST
                if leads:
                    break
                following = [other for other in self.referred(part) if part not in self._leads and other not in seen]
                seen.update(dict.fromkeys(following))
                waiting += dict.fromkeys(following)
            self._leads.update({first: True} if leads else dict.fromkeys(waiting, False))
        return self._leads[first]

    def _may_name_one(self, part: Part) -> bool:
        words, imported = self._words(part), self._imported_from(part[0])
        words = words.union(*(imported[word] for word in imported.keys() & words))
        lax = "lax" in words and any(word.startswith("conv") for word in words)
        return lax or _IN_WORDS.search(" ".join(words)) is not None

    def _words_of_imports(self, path: str) -> Words:
        """Return the words of what a file imports from outside the repository, by the names that it binds."""
        by_name: Words = {}
        for entry in self._imports.of(path):
            if self._imports.resolve(entry.module, path, entry.level) is None:
                words = frozenset((*entry.module.split("."), entry.attr))
                by_name[entry.name] = by_name.get(entry.name, frozenset()) | words
        return by_name

    def _words(self, part: Part) -> frozenset[str]:
        path, name = part
        if name.startswith(_IMPORT):
            return self._imported_from(path)[name.removeprefix(_IMPORT)]
        top = self._top(path)
        return top.get(name, frozenset()) if name else frozenset().union(*top.values())

    def _uses(self, part: Part) -> tuple[Part, ...]:
        """Return the parts to which the words of a part refer."""
        if part[1].startswith(_IMPORT):
            return ()
        return tuple(dict.fromkeys(other for other in self._read(part[0], self._words(part), set()) if other != part))

    def _read(self, path: str, words: frozenset[str], read: set[str]) -> Iterator[Part]:
        """Yield the parts to which words refer in a module; `read` has the modules visited for them."""
        yield from ((path, word) for word in self._top(path).keys() & words)
        bound = self._bound_in(path)
        chained = not read and _BY_TEXT.isdisjoint(words)  # else any word may be an attribute of a module
        quoted = frozenset(word[1:] for word in words if word[0] == "'")
        for other, name in (part for word in bound.keys() & words for part in bound[word]):
            if name not in (_SOME, _ANY):
                yield other, name
            elif chained and name == _SOME:
                yield from self._read_of(other, quoted, set())  # a function there may get a name as text
            elif other not in read:
                yield from self._read_of(other, words, read)
        for chain in [word.split(".")[:-1] for word in words if word[-1] == "."] if chained else ():
            if chain[0] in bound:
                yield from self._follow(path, chain, words, read, set())

    def _follow(
        self, path: str, names: list[str], words: frozenset[str], read: set[str], seen: set[tuple[str, int]]
    ) -> Iterator[Part]:  # fmt: skip
        """Yield the parts to which attributes of a module lead; without `names`, all to which words refer there.

        `seen` are the modules that were asked, each with how many names were left: they may import one another.
        """
        if (path, len(names)) in seen:
            return
        seen.add((path, len(names)))
        if not names:
            yield from self._read_of(path, words, read) if path not in read else ()
            return
        first, *rest = names
        beneath = self._beneath(path, first)
        parts = [(path, first)] if first in self._top(path) else []
        for other, name in (*parts, *self._bound_in(path).get(first, ()), *([(beneath, _SOME)] if beneath else ())):
            if name in (_SOME, _ANY):
                yield from self._follow(other, rest if name == _SOME else [], words, read, seen)
            else:
                yield other, name

    def _read_of(self, path: str, words: frozenset[str], read: set[str]) -> Iterator[Part]:
        """Yield the parts of another module to which the words around its name may refer."""
        read.add(path)
        if not _BY_TEXT.isdisjoint(words) or len(read) > _MOST_READ:
            yield path, ""
            return
        yield from self._read(path, words, read)
        for word in words if os.path.basename(path) == "__init__.py" else ():
            if (beneath := self._beneath(path, word)) and beneath not in read:
                yield from self._read_of(beneath, words, read)

    def _beneath(self, path: str, name: str) -> str | None:
        """Return the module of that name in a package, given its `__init__.py`."""
        if not self._imports.may_be_own(name) or os.path.basename(path) != "__init__.py":
            return None
        module = self._imports.resolve(name, path, 1)
        return None if module == path else module

    def _defined(self, path: str) -> Words:
        file = self._project.file(path)
        return {} if file is None else words_by_name(file.tree)

    def _bound_in(self, path: str) -> dict[str, list[Part]]:
        if path in self._imported:
            return self._imported[path]
        bound: dict[str, list[Part]] = {}
        self._imported[path] = bound  # first, for those that import each other by stars
        for entry in self._imports.of(path):
            module = self._imports.resolve(entry.module, path, entry.level)
            if entry.attr == "*" and module is not None:
                for word, parts in self._bound_in(module).items():
                    bound.setdefault(word, []).extend(parts)
                for name in filter(None, self._top(module)):
                    bound.setdefault(name, []).append((module, name))
                continue
            inner = f"{entry.module}.{entry.attr}" if entry.module else entry.attr
            beneath = self._imports.resolve(inner, path, entry.level) if entry.attr else None
            # `from module import attr` may also mean the submodule `beneath`.
            parts = [(beneath, _SOME)] if beneath is not None else []
            if module is not None and (not entry.attr or entry.attr in self._top(module)):
                # `import a.b` binds the package `a` and not the module.
                parts.append((module, entry.attr or (_ANY if entry.module.startswith(f"{entry.name}.") else _SOME)))
            elif module is not None:
                parts += self._bound_in(module).get(entry.attr) or ([(module, "")] if beneath is None else [])
            elif beneath is None:
                parts.append((path, _IMPORT + entry.name))
            bound.setdefault(entry.name, []).extend(parts)
        return bound
