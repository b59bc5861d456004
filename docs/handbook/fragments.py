"""The made parts of written pages: a line that ends with `<!-- made: NAME -->` is replaced by the part of that name.

What else stands in such a line is for those who read the page where it is written, and says where the part is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping

from convlint.facts.layer import QUANTITIES
from convlint.facts.quantity import Table
from convlint.facts.source_layers import OF_SOURCE
from convlint.reporters.words import DOCS
from convlint.rulebook.book import load_rulebook
from handbook.audit_tables import audit_keys, audit_tables
from handbook.charts import Bar, bars
from handbook.markup import code, table, text
from handbook.schema_pages import config_tables, spec_tables

_MARK = re.compile(r"^.*<!-- made: ([\w-]+) -->$", re.MULTILINE)
_OWN = re.compile(rf"\]\({re.escape(DOCS)}([\w./-]+)")
_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
_STEP = re.compile(r"(Step \d+): (.+)")
_VERDICT = re.compile(r"([\d.]+) (us|ms|s) of convolutions per training step, grade (\w)")
_UNITS = {"us": 1.0, "ms": 1e3, "s": 1e6}


class UnknownFragmentError(ValueError):
    """A page asks for a part that nothing makes."""


def filled(page: str) -> str:
    """The page with all its parts put in. Raises UnknownFragmentError."""
    makers: Mapping[str, Callable[[], list[str]]] = {
        "spec": spec_tables,
        "config": lambda: config_tables(load_rulebook()),
        "quantities": lambda: quantities(QUANTITIES),
        "source-quantities": lambda: quantities(OF_SOURCE),
        "steps": lambda: steps(page),
        "audit": audit_tables,
        "audit-keys": audit_keys,
    }

    def made(match: re.Match[str]) -> str:
        if match[1] not in makers:
            raise UnknownFragmentError(f"nothing makes {match[1]!r}; there are {', '.join(makers)}")
        return "\n".join(makers[match[1]]())

    return _MARK.sub(made, page)


def inside(page: str, path: str) -> str:
    """The page at `path`, with relative links in the place of public addresses of this site.

    Written pages name what the site alone has by its public address, which leads somewhere from a checkout as well.
    """

    def relative(match: re.Match[str]) -> str:
        source = re.sub(r"\.html$", ".md", match[1])
        return f"]({os.path.relpath(source, os.path.dirname(path))}"

    return _OWN.sub(relative, page)


def quantities(rows: Table) -> list[str]:
    """What a rule can ask: name, type, meaning, and whether it depends on the GPU."""
    return table(
        ("name", "type", "what it is", "by GPU"),
        [(code(name), row.type, text(row.meaning), "yes" if row.gpu else "") for name, row in rows.items()],
    )


def steps(page: str) -> list[str]:
    """The predicted time at the end of each section that is a step, as its console blocks show it."""
    rows: list[Bar] = []
    parts = _HEADING.split(page)
    for heading, body in zip(parts[1::2], parts[2::2], strict=True):
        step, found = _STEP.fullmatch(heading), _VERDICT.findall(body)
        if step is not None and found:
            value, unit, grade = found[-1]
            words = f"{step[2]}: {value} {unit}, grade {grade}"
            rows.append(Bar(name=step[1], value=float(value) * _UNITS[unit], words=words))
    return bars(rows, "Predicted time of a training step after each step")
