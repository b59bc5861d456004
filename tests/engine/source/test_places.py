"""Findings point at what is to blame: the literal, the construction, the statement of a program."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from source_records import at, literal, program, record, setting

from convlint.engine.source.places import of_layer, of_program, of_width
from convlint.facts.source_layers import Width
from convlint.model.source import Stated

INSIDE = Stated(at=at(100, column=30), value=1)


def line_of(K: int, *literals: Stated) -> int | None:
    return of_width(Width(record=record(K=K, K_of=literals), side="K")).line


@pytest.mark.parametrize(
    ("K", "literals", "line"),
    [
        (62, (literal(62, 7),), 7),
        # as it is divisible by 8, the other is not to blame
        (36, (literal(24, 4), literal(12, 5)), 5),
        (62, (literal(31, 4), literal(62, 9)), 9),
        # what widths are multiplied with
        (44, (literal(32, 4), literal(1.4, 5)), 5),
        (44, (literal(32, 4), literal(1.4, 5), literal(3, 6)), 5),
        # of a factor and a fraction, the fraction; powers of two leave widths as they are
        (132, (literal(16, 4), literal(1.4, 5), literal(6, 6)), 5),
        (18, (literal(36, 4), literal(0.5, 5)), 4),
        (36, (literal(24, 4), literal(0.25, 5), literal(6, 6)), 5),
        (6, (literal(6, 4), literal(24, 5)), 4),
        # a part of what is aligned, or not: what the caller says
        (182, (literal(728, 4), literal(4, 5)), 4),
        (58, (literal(116, 4), literal(2, 5)), 4),
        (45, (literal(728, 4), literal(16, 5)), 4),
        # what is added to widths that are aligned
        (65, (literal(64, 4), literal(1, 5)), 5),
        (131, (literal(64, 4), literal(2, 5), literal(3, 6)), 6),
        (196, (literal(64, 4), literal(3, 5), literal(4, 6)), 6),
        (60, (literal(20, 4), literal(6, 5)), 4),
        (65, (literal(64, 4), INSIDE), 100),
        # of equals that of the caller, then the first
        (62, (replace(INSIDE, value=62), literal(62, 7)), 7),
        (62, (literal(62, 7), literal(62, 5)), 5),
        # nothing that a number can come from
        (62, (), 100),
        (62, (literal("M", 4), literal(True, 5), literal(None, 6), literal(0, 7), literal(2.0, 8)), 100),
        (62, (literal(62, 4, quiet=True),), 100),
        (62, (literal(62, 4, quiet=True), literal(124, 5)), 5),
    ],
)
def test_the_literal_that_is_to_blame(K: int, literals: tuple[Stated, ...], line: int) -> None:
    assert line_of(K, *literals) == line_of(K, *reversed(literals)) == line


def test_a_width_without_literals_stands_where_the_layer_is_constructed() -> None:
    found = of_width(Width(record=record(K=62), side="K"))
    assert (found.line, found.column) == (100, 9)


def test_what_a_construction_says_for_a_field() -> None:
    one = record()
    spans = {"layer": (100, 9, 100, 60), "bias": (100, 40, 100, 49)}
    assert of_layer(("bias",), replace(one, layer=replace(one.layer, spans=spans))).column == 40
    assert of_layer(("bias",), one).column == 9


EARLIER, LATER = setting("cudnn.benchmark", True, 5), setting("cudnn.benchmark", False, 9)
CONFLICT = (setting("cudnn.deterministic", True, 30), setting("cudnn.benchmark", True, 20))


@pytest.mark.parametrize(
    ("places", "given", "lines"),
    [
        (("runtime.cudnn_benchmark",), {"settings": (EARLIER, LATER)}, [9]),
        (("runtime.cudnn_benchmark",), {"settings": (EARLIER, LATER), "cudnn_benchmark": True}, [5]),
        (("runtime.cudnn_benchmark",), {"settings": (setting("cudnn.benchmark", None, 3),)}, [3]),
        (("runtime.tf32",), {"settings": (setting("cudnn.conv.fp32_precision", "ieee", 3),), "tf32": False}, [3]),
        (("runtime.tf32",), {"settings": (setting("cuda.matmul.allow_tf32", False, 3),), "tf32": False}, [1]),
        (("program.conflict",), {"conflict": CONFLICT, "settings": CONFLICT[::-1]}, [30]),
        (("program.conflict",), {"conflict": CONFLICT, "settings": CONFLICT}, [20]),
        (("program.conflict",), {"conflict": CONFLICT}, [20]),
        (("program.evidence",), {"evidence": (("CIFAR10", at(8)), ("crop", at(9)))}, [8]),
        (("runtime.tf32", "program.evidence"), {"evidence": (("CIFAR10", at(8)),)}, [8]),
        (("program.autotune_disabled",), {"autotune_disabled": (setting("XLA_FLAGS", "x", 4),)}, [4]),
        (("program.backward_in_autocast",), {"backward_in_autocast": (at(4), at(6))}, [4, 6]),
        (("program.autocast_around_loss",), {"autocast_around_loss": (at(4),)}, [4]),
        (("program",), {}, [1]),
        ((), {}, [1]),
    ],
)
def test_the_statements_of_a_program(places: tuple[str, ...], given: dict[str, Any], lines: list[int]) -> None:
    assert [each.line for each in of_program(places, program(**given))] == lines
