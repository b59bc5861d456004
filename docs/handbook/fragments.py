"""The made parts of written pages: where one says `<!-- made: NAME -->`, the part of that name is put in."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from convlint.facts.layer import OF_SOURCE, QUANTITIES
from convlint.facts.quantity import Table
from convlint.gpus.gpu import gpu_names
from convlint.reporters.words import HOME
from convlint.rulebook.book import load_rulebook
from handbook.audit_tables import audit_keys, audit_tables
from handbook.charts import Bar, bars
from handbook.markup import code, table, text
from handbook.schema_pages import config_tables, spec_tables

_MARK = re.compile(r"^<!-- made: ([\w-]+) -->$", re.MULTILINE)
_COUNT = re.compile(r"<!-- count: (\w+) -->")
_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
_STEP = re.compile(r"(Step \d+): (.+)")
_VERDICT = re.compile(r"([\d.]+) (us|ms|s) of convolutions per training step, grade (\w)")
_UNITS = {"us": 1.0, "ms": 1e3, "s": 1e6}


class UnknownFragmentError(ValueError):
    """A page asks for a part that nothing makes."""


def filled(page: str, readme: str) -> str:
    """The page with all its parts put in; `readme` is the text of benchmarks/README.md. Raises UnknownFragmentError."""
    makers: Mapping[str, Callable[[], list[str]]] = {
        "spec": spec_tables,
        "config": lambda: config_tables(load_rulebook()),
        "quantities": lambda: quantities(QUANTITIES),
        "source-quantities": lambda: quantities(OF_SOURCE),
        "accuracy": lambda: accuracy(readme),
        "steps": lambda: steps(page),
        "audit": audit_tables,
        "audit-keys": audit_keys,
    }

    def made(match: re.Match[str]) -> str:
        if match[1] not in makers:
            raise UnknownFragmentError(f"nothing makes {match[1]!r}; there are {', '.join(makers)}")
        return "\n".join(makers[match[1]]())

    counts = {"rules": len(load_rulebook().rules), "gpus": len(gpu_names())}
    return _COUNT.sub(lambda match: str(counts[match[1]]), _MARK.sub(made, page))


def quantities(rows: Table) -> list[str]:
    """What a rule can ask: name, type, meaning, and whether it depends on the GPU."""
    return table(
        ("name", "type", "what it is", "by GPU"),
        [(code(name), row.type, text(row.meaning), "yes" if row.gpu else "") for name, row in rows.items()],
    )


def accuracy(readme: str) -> list[str]:
    """The benchmarks' own page without its title; what it links to lies in the repository."""
    body = readme.partition("\n")[2].lstrip("\n")
    here = f"{HOME}/blob/main/benchmarks/"
    return [re.sub(r"\]\((?!https?://|#)([^)]+)\)", lambda match: f"]({here}{match[1]})", body)]


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
