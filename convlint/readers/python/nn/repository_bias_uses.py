"""Which code of a repository uses a bias, and what of it may be a layer that another file constructs."""

from __future__ import annotations

import ast

from convlint.model.source import BiasUse
from convlint.readers.python.nn.attributes_made import Made, attributes_made
from convlint.readers.python.nn.bias_uses import bias_uses, is_self
from convlint.readers.python.nn.bias_words import may_use
from convlint.readers.python.project import Project


def first_uses(project: Project) -> tuple[BiasUse, ...]:
    """Those of the repository, the first of each attribute in each file; of the files to report on first.

    A use of a bias of nobody knows what is one of every layer's: behind the first such, nobody asks for those in other
    files than the layer's own.
    """
    found: dict[tuple[str, str], BiasUse] = {}
    given = frozenset(project.given)
    of_any = False
    for path in project.where(may_use):
        if of_any and path not in given:
            break  # as those to report on come first
        file = project.file(path)
        uses = () if file is None else bias_uses(file)
        if file is None or not uses:
            continue
        made = attributes_made(file.tree)
        for node in uses:
            name = _made_here(node, made)
            found.setdefault((path, name), BiasUse(at=file.locate(node), attribute=name))
            of_any = of_any or not name
    return tuple(found.values())


def _made_here(use: ast.expr, made: Made) -> str:
    """The name of what has the bias, where the file itself constructs whatever that is; else empty."""
    match use:
        case ast.Attribute(value=ast.Attribute(value=holder, attr=name)) if is_self(holder) and name in made.here:
            return name
        case ast.Attribute(value=ast.Name(id=name)) if name in made.variables:
            return name
        case _:
            return ""
