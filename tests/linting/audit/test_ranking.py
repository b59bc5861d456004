"""What is added up over models, and in which order it is told."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest

from convlint.linting.audit.ranking import Ledger, lost_hours
from convlint.linting.audit.rows import FindingRow, ModelRow
from convlint.linting.audit.weights import Weight


def model(name: str = "m", **given: Any) -> ModelRow:
    """A model of 1,000 us of which advice saves 250."""
    usual = {
        "model": name, "path": name, "architecture": None, "structure": "s", "gpu": "a100", "mode": "training",
        "batch": 1, "layers": 1, "errors": 0, "warnings": 0, "infos": 0, "skipped": 0, "suppressed": 0, "grade": "C",
        "time_us": 1000.0, "time_after_us": 750.0, "lost_us": 250.0, "lost_percent": 25.0, "parameters": None,
        "flops": None, "memory_bytes": None, "largest_batch": None, "host_us": None, "gpu_us": None, "complete": True,
    }  # fmt: skip
    return ModelRow(**(usual | given))


def finding(code: str = "CL401", lost_us: float | None = 250.0, **given: Any) -> FindingRow:
    usual = {
        "model": "m", "path": "m", "line": None, "column": None, "layer": None, "layers": [], "gpu": "a100",
        "code": code, "name": "n", "severity": "warning", "message": "", "advised": True, "lost_us": lost_us,
        "lost_alone_us": lost_us, "lost_capacity_us": None, "lost_percent": None, "pays_with": [], "fix": "use NHWC",
        "fix_safety": "safe", "fix_set": None, "time_change_us": None, "section": "", "fingerprint": "",
    }  # fmt: skip
    return FindingRow(**(usual | given))


def ledger(*, weighed: bool = True) -> Ledger:
    return Ledger(sqlite3.connect(":memory:", isolation_level=None), weighed=weighed)


@pytest.mark.parametrize(
    ("describe", "change"),
    [
        ("use NHWC", "use NHWC"),
        ("use K=32; C of conv22 with it", "use K=32"),
        ("use K=256 (multiples of 64)", "use K=256"),
        ("NHWC (PyTorch: channels_last for model and input; MXNet: layout='NHWC')", "NHWC"),
        ("sizes that fill the tiles: K=128 (time +11 %, work +64 %) or K=64 (time -65 %)", "sizes that fill the tiles"),
        ("mixed precision with fp16; then multiples of 8", "mixed precision with fp16"),
    ],
)
def test_one_change_of_many_layers_is_one(describe: str, change: str) -> None:
    own = ledger()
    own.add(model("a"), [finding(fix=describe), finding(fix=change, lost_us=50.0)], Weight(hours=8))
    own.add(model("b"), [finding(fix=describe)], Weight(hours=4))
    (found,) = own.ranking(10).changes
    assert (found.describe, found.models, found.lost) == (change, 2, pytest.approx(2 + 0.4 + 1))


def test_hours_are_those_that_count() -> None:
    own = ledger()
    own.add(model("a"), [finding()], Weight(hours=8, share=0.5))
    own.add(model("b"), [finding()], None)
    own.add(model("c", time_us=None, lost_us=None), [], Weight(hours=100))
    found = own.ranking(10)
    assert (found.models, found.counted, found.hours, found.lost, found.shared) == (3, 1, 8, 1, True)
    assert [(each.model, each.share) for each in found.worst] == [("a", 0.125)]


def test_what_is_not_advised_loses_nothing() -> None:
    own = ledger()
    own.add(
        model(),
        [finding("CL1", advised=False), finding("CL2", gpu="t4"), finding("CL3", lost_us=None)],
        Weight(hours=1),
    )
    assert own.ranking(10).changes == own.ranking(10).rules == ()


def test_architectures_are_those_of_the_list_or_of_one_structure() -> None:
    own = ledger(weighed=False)
    own.add(model("b", structure="1"), [], None)
    own.add(model("a", structure="1"), [], None)
    own.add(model("c", structure="2", architecture="net"), [], None)
    own.add(model("d", structure="3", architecture="net", lost_us=0.0), [], None)
    assert [(each.what, each.models, each.lost) for each in own.ranking(10).architectures] == [
        ("a", 2, 0.5),
        ("net", 2, 0.25),
    ]


def test_rankings_are_cut_and_ties_are_settled_by_name() -> None:
    own = ledger()
    for name in "cab":
        own.add(model(name), [finding()], Weight(hours=4))
    assert [each.model for each in own.ranking(2).worst] == ["a", "b"]


def test_lost_hours_are_none_where_time_is_unknown() -> None:
    assert lost_hours(5.0, model(time_us=None), Weight(hours=1)) is None
    assert lost_hours(None, model(), Weight(hours=1)) is None
    assert lost_hours(5.0, model(), None) is None
