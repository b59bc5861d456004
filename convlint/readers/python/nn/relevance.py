"""Which functions and classes may lead to a convolution, by their words alone: the others need not be evaluated.

Words and not names: strings count, so that what is reached through a registry or getattr counts as reached.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from itertools import chain

from convlint.readers.python.evaluator.values import Class, Function
from convlint.readers.python.nn.words import Statement, statements_by_name
from convlint.readers.python.programs.closure import Imports

# In the name of every framework's layer of convolutions, and in no word of prose or geometry. With a small c they are
# functions, which construct none, and names of the source, which are followed to what they stand for.
_CONV = re.compile(rb"Conv(?!ers|ert|erg|en[it]|ey|ince|olve|ex(?![a-z]))|CONV")
# What may take anything from a module, by a text
_BY_TEXT = frozenset({b"getattr", b"__dict__", b"vars", b"globals", b"eval", b"exec", b"attrgetter", b"import_module"})
_LARGEST = 2_000  # parts of a repository that are looked at for one root; beyond, it is run
_MOST_READ = 50  # modules that the words of one part read; beyond, anything of them counts

Part = tuple[str, bytes]  # path, and a name at the top of that file; no name: anything of it
_SOME = b"."  # for the name: what is read of the module is said by the words around it


def names_convolution(content: bytes | None) -> bool:
    """Whether a file names a layer of convolutions at all."""
    return content is not None and _CONV.search(content) is not None


class Relevance:
    """What the words of a repository's functions and classes lead to."""

    def __init__(self, imports: Imports) -> None:
        self._project, self._imports = imports.project, imports
        self._tops: dict[str, dict[bytes, list[Statement]]] = {}  # by path: what names at the top of a file stand for
        self._bound: dict[str, dict[bytes, list[Part]]] = {}  # what the imports of a file bind, by path
        self._says: dict[Part, bool] = {}
        self._following: dict[Part, list[Part]] = {}  # what the words of a part stand for
        self._leads: dict[Part, bool] = {}

    def may_construct(self, root: Function | Class) -> bool:
        """Whether anything that the root names, directly or not, may construct a convolution."""
        first = root.file.path, root.name.encode()
        if first[1] not in self._top(first[0]):
            return True  # defined where nobody looks, as in an `if`
        if first not in self._leads:
            seen = [first]
            known = {first}
            leads = False
            for part in seen:
                leads = self._leads.get(part) or self._names_one(part) or len(seen) > _LARGEST
                if leads:
                    break
                if part not in self._leads:
                    following = [each for each in self._after(part) if each not in known]
                    known.update(following)
                    seen += following
            if leads:
                self._leads[first] = True
            else:
                self._leads.update(dict.fromkeys(seen, False))
        return self._leads[first]

    def _names_one(self, part: Part) -> bool:
        if part not in self._says:
            self._says[part] = any(_CONV.search(each.text) for each in self._statements(part))
        return self._says[part]

    def _statements(self, part: Part) -> Iterable[Statement]:
        path, name = part
        top = self._top(path)
        return top.get(name, ()) if name else dict.fromkeys(chain.from_iterable(top.values()))

    def _after(self, part: Part) -> list[Part]:
        if part not in self._following:
            self._following[part] = list(dict.fromkeys(self._named(part)))
        return self._following[part]

    def _named(self, part: Part) -> Iterator[Part]:
        """What the words of a part stand for in its file."""
        path, name = part
        bound = self._bound_in(path)
        words = frozenset[bytes]().union(*(each.words for each in self._statements(part)))
        read: set[str] = set()
        yield from ((path, word) for word in self._top(path).keys() & words if word != name)
        for word in bound.keys() & words:
            for other in bound[word]:
                yield from self._read_of(other, words, read)

    def _read_of(self, part: Part, words: frozenset[bytes], read: set[str]) -> Iterator[Part]:
        """The part, or of a module what the words around its name may read; `read` are the modules that were."""
        path, name = part
        if name != _SOME:
            yield part
            return
        if path in read:
            return
        read.add(path)
        if not _BY_TEXT.isdisjoint(words) or len(read) > _MOST_READ:
            yield path, b""
            return
        bound = self._bound_in(path)
        yield from ((path, word) for word in self._top(path).keys() & words)
        for word in bound.keys() & words:
            for other in bound[word]:
                yield from self._read_of(other, words, read)
        for text in map(_decoded, words if os.path.basename(path) == "__init__.py" else ()):
            beneath = self._imports.resolve(text, path, 1) if self._imports.may_be_own(text) else None
            if beneath is not None and beneath != path:
                yield from self._read_of((beneath, _SOME), words, read)

    def _top(self, path: str) -> dict[bytes, list[Statement]]:
        if path not in self._tops:
            self._tops[path] = statements_by_name(self._project.content(path) or b"")
        return self._tops[path]

    def _bound_in(self, path: str) -> dict[bytes, list[Part]]:
        if path not in self._bound:
            found: dict[bytes, list[Part]] = {}
            self._bound[path] = found  # first, for those that import each other by stars
            for each in self._imports.of(path):
                module = self._imports.resolve(each.module, path, each.level)
                if each.attr == "*" and module is not None:
                    for word, parts in self._bound_in(module).items():
                        found.setdefault(word, []).extend(parts)
                    for name in self._top(module):
                        found.setdefault(name, []).append((module, name))
                    continue
                parts = found.setdefault(each.name.encode(), [])
                inner = f"{each.module}.{each.attr}" if each.module else each.attr
                beneath = self._imports.resolve(inner, path, each.level) if each.attr else None
                if beneath is not None:
                    parts.append((beneath, _SOME))
                if module is None:
                    continue
                if not each.attr:
                    parts.append((module, _SOME))
                elif (attr := each.attr.encode()) in self._top(module):
                    parts.append((module, attr))
                elif passed := self._bound_in(module).get(attr):
                    parts += passed
                elif beneath is None:
                    parts.append((module, b""))
        return self._bound[path]


def _decoded(word: bytes) -> str:
    return word.decode("utf-8", "replace")
