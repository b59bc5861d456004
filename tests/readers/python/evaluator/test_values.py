"""Why values are unknown, and the order of the literals that they come from."""

import ast
from collections.abc import Iterator
from typing import Any

from cases import for_each
from checkout import ROOT
from msgspec.structs import replace

from convlint.model.location import Location
from convlint.model.source import StatedLiteral
from convlint.readers.python.evaluator.values import (
    REASONS,
    Items,
    Unknown,
    Value,
    place_of,
    reason,
    undecided,
    unknown,
)


def written() -> Iterator[str]:
    """Every reason that the reader's code writes down, where it makes an unknown or incomplete value."""
    for path in sorted((ROOT / "convlint" / "readers" / "python").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Call):
                name = node.func.id if isinstance(node.func, ast.Name) else ""
                given = node.args[:1] if name in ("Unknown", "unknown", "OneOf", "Deferred") else []
                given += [each.value for each in node.keywords if each.arg in ("why", "missing", "more")]
                yield from (each.value for each in given if isinstance(each, ast.Constant) and each.value)


WRITTEN = sorted(set(written()) - {"untaken"})  # of a branch, which is no value


def test_all_reasons_are_known_and_used() -> None:
    assert sorted(REASONS) == WRITTEN


@for_each("why", WRITTEN)
def test_what_follows_from_an_unknown_value_is_unknown_for_its_reason(why: str) -> None:
    values: list[Value] = [Unknown(why), Items("tuple", [], complete=False, why=why)]
    assert [undecided(value).why for value in values] == [why, why]
    assert unknown(reason(values[0])) is unknown(why)


@for_each("other", [{"bound": True}, {"default": True}, {"name": "width"}])
def test_a_literal_that_stands_for_two_things_has_one_order(other: dict[str, Any]) -> None:
    """In a set, whose order is that of hashes, which each process has its own of."""
    one = StatedLiteral(at=Location(path="net.py", line=4, column=9), value=2)
    two = replace(one, **other)
    assert sorted([one, two], key=place_of) == sorted([two, one], key=place_of)
