"""Constructions are judged by place, channel counts by literal; what is only sometimes so is said last."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from source_records import checked, literal, only, record, said

from convlint.model.source import SourceLayer

WIDE, TALL = literal(1.4, 7, "width"), literal(32, 20)


def biased(name: str = "Net.conv", **given: Any) -> SourceLayer:
    return record(name, **{"bias": True, "norm_follows": True} | given)


def reading(count: int) -> SourceLayer:
    """A layer that shows a count to be an inner one; of itself nothing is said, as its map may be of 1x1."""
    return record(f"Net.reads{count}", 200 + count, C=count, R=1, S=1)


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ((), 1),
        ((biased("Other.conv"),), 1),
        ((biased("Other.conv", norm_follows=False),), 0),
        ((biased("Other.conv", norm_follows=None),), 0),
        ((biased("Other.conv", bias=None),), 0),
        ((biased("Other.conv", line=101, norm_follows=False),), 1),
        ((biased("Other.conv", path="other.py", norm_follows=False),), 1),
    ],
)
def test_all_that_one_place_constructs_has_to_break_the_rule(others: tuple[SourceLayer, ...], expected: int) -> None:
    assert len(checked(biased(), *others).findings) == expected


def test_a_place_names_its_layers() -> None:
    assert only(checked(biased())).layer == "Net.conv"
    finding = only(checked(biased("B.conv"), biased("A.conv"), biased("A.conv", C=32)))
    assert (finding.layer, finding.layers) == (None, ("A.conv", "B.conv"))
    assert len(finding.fingerprints) == 2


def test_one_literal_is_one_finding_of_all_layers_that_get_a_number_by_it() -> None:
    found = checked(
        record("Net.a", 100, K=44, K_of=(WIDE, TALL)),
        record("Net.b", 101, C=44, K=134, C_of=(WIDE, TALL), K_of=(WIDE, literal(96, 21))),
        record("Net.c", 102, C=62, C_of=(literal(62, 30),)),
        record("Net.d", 103, K=62, R=1, S=1),
    )
    assert said(found) == [
        ("CL102", 7, "K=44 of Net.a, C=44 and K=134 of Net.b: no multiple of 8 (fp16, bf16)"),
        ("CL102", 30, "C=62 of Net.c: no multiple of 8 (fp16, bf16)"),
    ]
    assert found.findings[0].layers == ("Net.a", "Net.b")


def test_many_layers_are_not_all_named_in_the_message() -> None:
    several = [record(f"Net.{n}", 100 + n, K=62, K_of=(literal(62, 7),)) for n in range(6)]
    finding = only(checked(*several, reading(62)))
    assert finding.message == (
        "K=62 of Net.0, K=62 of Net.1, K=62 of Net.2, K=62 of Net.3 and 2 more: no multiple of 8 (fp16, bf16)"
    )
    assert len(finding.layers) == 6


def test_without_a_literal_the_construction_is_pointed_at() -> None:
    found = checked(record("Net.a", 100, K=62), record("Net.b", 101, K=62))
    assert [line for _, line, _ in said(found)] == [100, 101]


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([{}, {"condition": "self.deep"}], "K=62 of Net.0: no multiple of 8 (fp16, bf16)"),
        ([{"condition": "a"}, {"condition": "b"}], "K=62 of Net.0: no multiple of 8 (fp16, bf16), only if a"),
        (
            [{"certainty": "with defaults"}, {"condition": "b"}],
            "K=62 of Net.1: no multiple of 8 (fp16, bf16), only if b",
        ),
        (
            [{"certainty": "with defaults"}, {"certainty": "with defaults"}],
            "K=62 of Net.0, K=62 of Net.1: no multiple of 8 (fp16, bf16), with its defaults",
        ),
        (
            [{"certainty": "with defaults", "condition": "a"}],
            "K=62 of Net.0: no multiple of 8 (fp16, bf16), with its defaults, only if a",
        ),
    ],
)
def test_what_is_surest_is_said(records: list[dict[str, Any]], message: str) -> None:
    given = [record(f"Net.{n}", 100 + n, K=62, K_of=(literal(62, 7),), **each) for n, each in enumerate(records)]
    assert said(checked(*given, reading(62))) == [("CL102", 7, message)]


def test_the_default_that_all_of_them_have_is_named() -> None:
    """The two numbers come from one literal, and from other defaults each."""
    half, one = (
        replace(literal(value, line, name), default=True)
        for line, value, name in ((7, 0.3, "scale"), (8, 124, "width"))
    )
    given = [
        record("Net.0", 100, K=62, K_of=(half, one), certainty="with defaults", root="net.py:Net"),
        record("Net.1", 101, K=126, K_of=(half,), certainty="with defaults", root="net.py:Net"),
    ]
    ((_, _, message),) = said(checked(*given, reading(62), reading(126)))
    assert message.endswith(", with scale=0.3, the default at net.py:7 and width=124, the default at net.py:8")


def test_the_map_is_named_where_it_is_the_same_for_all() -> None:
    of = {"K_of": (literal(62, 7),), "K": 62}
    small = {"H": 14, "W": 28}
    ((_, _, message),) = said(checked(record("Net.0", 100, **of, **small), reading(62)))
    assert message.startswith("K=62 of Net.0 at 14x28: ")
    ((_, _, message),) = said(
        checked(record("Net.0", 100, **of, **small), record("Net.1", 101, **of, **small), reading(62))
    )
    assert message.startswith("K=62 of Net.0, K=62 of Net.1, at 14x28: ")
    ((_, _, message),) = said(checked(record("Net.0", 100, **of, **small), record("Net.1", 101, **of), reading(62)))
    assert message.startswith("K=62 of Net.0, K=62 of Net.1: ")
    ((_, _, message),) = said(checked(biased(**small)))
    assert message.endswith("reads this layer, at 14x28")
    ((_, _, message),) = said(checked(biased(**small), biased(H=7, W=7)))
    assert message.endswith("reads this layer")


@pytest.mark.parametrize(
    ("K", "advice"),
    [(62, "the good widths next to 62 are 56 and 64"), (1154, "are 1152 and 1160"), (6, "next to 6 is 8;")],
)
def test_the_next_good_widths(K: int, advice: str) -> None:
    fix = only(checked(record(K=K, K_of=(literal(K, 7),)), reading(K))).fix
    assert fix is not None
    assert advice in fix.describe
    assert (dict(fix.set), fix.edits, fix.safety) == ({}, (), "unsafe")


def test_the_worst_number_speaks_for_all() -> None:
    growth = literal(10, 5, "growth_rate")
    first = record("Net.a", 100, K=44, K_of=(literal(24, 4), growth))
    finding = only(checked(first, record("Net.b", 101, K=34, K_of=(literal(24, 4), growth)), reading(34)))
    assert "tf32" not in finding.message
    assert finding.fix is not None
    assert "32 and 40" in finding.fix.describe


@pytest.mark.parametrize(
    ("number", "computed", "advice"),
    [(30, 61, "next to 30 are 24 and 32"), (116, 58, "next to 58 are 56 and 64"), (60, 62, "next to 60 are 56 and 64")],
    ids=["2 * 30 + 1", "116 // 2", "60 + 2"],
)
def test_the_advice_is_for_the_literal_where_the_worst_number_is_no_part_of_it(
    number: int, computed: int, advice: str
) -> None:
    """What is said is true of all of them: of the worst."""
    width = literal(number, 3, "WIDTH")
    made = record("Net.b", 101, C=number, C_of=(width,), K=computed, K_of=(width, literal(1, 10)))
    finding = only(checked(record("Net.a", 100, K=number, K_of=(width,)), made, reading(computed)))
    assert finding.location.line == 3
    assert "tf32" not in finding.message
    assert finding.fix is not None
    assert advice in finding.fix.describe


@pytest.mark.parametrize(
    "given",
    [
        {"K": 255, "head": True},
        {"C": 62, "first": True},
        {"C": 3},
        {"C": 4, "K": 1},
        {"K": 62, "groups": 2},
        {"K": 62, "R": 1, "S": 1},
        {"K": 62, "R": 1, "S": 1, "pointwise_map": True},
        {"K": 62, "R": None, "S": None},
        {"K": None},
        {"K": 21, "K_of": (literal(21, 3, "NUM_CLASS"),)},
        {"K": 9, "K_of": (literal(8, 3, "width"), literal(9, 4, "num_anchors"))},
        {"K": 21, "K_of": (literal(21, 3, "out_channels"),)},
        {"C": 6, "C_of": (literal(6, 3, "in_chans"),)},
        {"K": 12, "K_of": (literal(12, 3, quiet=True),)},
        {"K": 12, "name": "Block.se.fc1"},
        {"K": 12, "root": "net.py:SqueezeExcite"},
    ],
)
def test_what_stays_as_it_is(given: dict[str, Any]) -> None:
    assert said(checked(record(**given))) == []


def test_a_construction_s_own_names_say_nothing() -> None:
    inside = literal(62, 100, "out_channels")
    inside = type(inside)(at=type(inside.at)(path="net.py", line=100, column=20), value=62, name="out_channels")
    assert len(checked(record(K=62, K_of=(inside,))).findings) == 1


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ({"C": 62, "R": 1, "S": 1}, 1),
        ({"K": 62, "R": 1, "S": 1}, 0),
        ({"C": 62, "K": 62, "groups": 62}, 0),
        ({"C": 62, "K": 62, "groups": 2}, 1),
        ({"C": 62, "R": 1, "S": 1, "path": "other.py"}, 0),
    ],
)
def test_a_count_from_elsewhere_that_no_layer_reads_is_what_the_network_gives(
    other: dict[str, Any], expected: int
) -> None:
    found = checked(record(K=62, K_of=(literal(62, 3, "structures"),)), record("Net.other", 101, **other))
    assert len(found.findings) == expected


def test_an_output_that_another_convolution_reads_is_no_task_s() -> None:
    shared = (literal(62, 3, "out_channels"),)
    assert len(checked(record(K=62, K_of=shared), record("Net.d", 101, C=62, C_of=shared)).findings) == 1
