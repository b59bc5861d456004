"""Which fixes may be applied, and which of them are safe."""

from __future__ import annotations

from typing import Any

import pytest

from convlint.fixes.applicable import applicability, wishes
from convlint.model.location import Location
from convlint.report import Finding, Fix, RuleInfo, Source

RULE = RuleInfo(
    code="XY001", name="rule", title="", severity="warning", rationale="", source=Source(document="house", section="1")
)


def finding(sets: dict[str, Any] | None, **parts: Any) -> Finding:
    fix = None
    if sets is not None:
        own = {"describe": "", "safety": "safe"} | {name: parts.pop(name) for name in FIX_PARTS if name in parts}
        fix = Fix(set=sets, **own)
    given: dict[str, Any] = {"severity": "warning", "layer": "a"} | parts
    return Finding(rule=RULE, message="m", location=Location(path="x"), fix=fix, **given)


FIX_PARTS = ("safety", "by_layer", "time_change_us", "advised")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (finding(None), None),
        (finding({}), None),
        (finding({"layout": "NHWC"}), "safe"),
        (finding({"runtime.cudnn_benchmark": True}, layer=None), "safe"),
        (finding({"layout": "NHWC"}, safety="unsafe"), "unsafe"),
        (finding({"C": 4}), "unsafe"),  # zeros keep the results, but weights are others
        (finding({"layout": "NHWC", "dtype": "fp16"}), "unsafe"),
        (finding({"copies_input": False}), None),
        (finding({"K": 64}, lost_us=5.0, advised=True), "unsafe"),
        (finding({"K": 64}, lost_us=0.0, advised=False), None),
        (finding({"K": 64}, advised=False), "unsafe"),  # without a price: it mends what is wrong
        (finding({"K": 64}, advised=False, time_change_us=1.0), None),
        (finding({"N": 64}), "unsafe"),
        (finding({"N": 64}, severity="info", advised=False), None),
        (finding({"N": 64}, severity="info", advised=True), "unsafe"),  # a batch that somebody allowed
    ],
)
def test_applicability(found: Finding, expected: str | None) -> None:
    assert applicability(found) == expected


def test_a_wish_for_each_layer_in_their_order() -> None:
    joined = finding({}, layer=None, layers=("a", "b", "c"), by_layer=({"K": 64}, {}, {"C": 64}))
    assert [(wish.layer, dict(wish.sets)) for wish in wishes([joined])] == [("a", {"K": 64}), ("c", {"C": 64})]
    alike = finding({"layout": "NHWC"}, layer=None, layers=("a", "b"))
    assert [wish.layer for wish in wishes([alike])] == ["a", "b"]
    assert [wish.layer for wish in wishes([finding({"runtime.tf32": True}, layer=None), finding(None)])] == [None]


def test_a_wish_goes_by_what_it_sets() -> None:
    one, other, third = wishes([finding({"K": 64, "C": 32}), finding({"C": 32, "K": 64}), finding({"C": 8, "K": 64})])
    assert one.key == other.key != third.key
