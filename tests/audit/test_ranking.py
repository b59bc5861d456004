"""What is added up over models, and in which order it is told."""

import sqlite3
from typing import Any

import pytest

from convlint.audit.ranking import Ranking, ranking_of
from convlint.audit.rows import FindingRow, ModelRow
from convlint.audit.store import Ledger, Weight, lost_hours


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


class Book:
    """A ledger and its ranking."""

    def __init__(self, *, weighed: bool = True) -> None:
        self._base = sqlite3.connect(":memory:", isolation_level=None)
        self._ledger, self._weighed = Ledger(self._base, weighed=weighed), weighed

    def add(self, row: ModelRow, findings: list[FindingRow], weight: Weight | None) -> None:
        self._ledger.add(row, [], findings, weight)

    def ranking(self, most: int = 10) -> Ranking:
        return ranking_of(self._base, most, weighed=self._weighed)


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
    own = Book()
    own.add(model("a"), [finding(fix=describe), finding(fix=change, lost_us=50.0)], Weight(hours=8))
    own.add(model("b"), [finding(fix=describe)], Weight(hours=4))
    (found,) = own.ranking().changes
    assert (found.describe, found.models, found.lost) == (change, 2, pytest.approx(2 + 0.4 + 1))


def test_hours_are_those_that_count() -> None:
    own = Book()
    own.add(model("a"), [finding()], Weight(hours=8, share=0.5, shared=True))
    own.add(model("b"), [finding()], None)
    own.add(model("c", time_us=None, lost_us=None), [], Weight(hours=100))
    found = own.ranking()
    assert (found.pairs, found.counted, found.hours, found.lost, found.assumed) == (3, 1, 8, 1, 0)
    assert (found.untimed.pairs, found.untimed.hours, found.untimed.names) == (1, 100, ("c on a100",))
    assert (found.idle.pairs, found.idle.names) == (1, ("b on a100",))
    assert [(each.model, each.share) for each in found.worst] == [("a", 0.125)]


def test_what_is_not_advised_loses_nothing() -> None:
    own = Book()
    own.add(
        model(),
        [finding("CL1", advised=False), finding("CL2", gpu="t4"), finding("CL3", lost_us=None)],
        Weight(hours=1),
    )
    assert own.ranking().changes == own.ranking().rules == ()


def test_architectures_are_those_of_the_list_or_of_one_structure() -> None:
    own = Book(weighed=False)
    own.add(model("b", structure="1"), [], None)
    own.add(model("a", structure="1"), [], None)
    own.add(model("c", structure="2", architecture="net"), [], None)
    own.add(model("d", structure="3", architecture="net", lost_us=0.0), [], None)
    assert [(each.what, each.models, each.lost) for each in own.ranking().architectures] == [
        ("like a", 2, 0.5),
        ("net", 2, 0.25),
    ]


def test_rankings_are_cut_and_ties_are_settled_by_name() -> None:
    own = Book()
    for name in "cab":
        own.add(model(name), [finding()], Weight(hours=4))
    assert [each.model for each in own.ranking(2).worst] == ["a", "b"]


def test_lost_hours_are_none_where_time_is_unknown() -> None:
    assert lost_hours(5.0, model(time_us=None), Weight(hours=1)) is None
    assert lost_hours(None, model(), Weight(hours=1)) is None
    assert lost_hours(5.0, model(), None) is None


def test_hours_that_nobody_says_are_convolutions_are_taken_for_such() -> None:
    own = Book()
    own.add(model("a"), [], Weight(hours=10_000))
    own.add(model("b"), [], Weight(hours=1, share=0.5, shared=True))
    assert (own.ranking().assumed, own.ranking().hours) == (10_000, 10_001)


def test_what_costs_time_alone_says_so_and_what_it_waits_for() -> None:
    own = Book()
    found = finding(lost_us=100.0, lost_alone_us=0.0, time_change_us=500.0, pays_with=["CL106"])
    own.add(model("a"), [found], Weight(hours=10))
    own.add(model("b"), [finding(lost_us=10.0, time_change_us=-10.0)], Weight(hours=10))
    (change,) = own.ranking().changes
    assert (change.lost, change.alone, change.pays_with) == (pytest.approx(1.1), pytest.approx(-4.9), ("CL106",))


def test_one_setting_is_one_change_whatever_frameworks_call_it() -> None:
    own = Book()
    for name, fix in (("a", "NHWC"), ("b", "channels_last"), ("c", "channels_last")):
        own.add(model(name), [finding(fix=fix, fix_set='{"layout":"NHWC"}')], Weight(hours=4 if name == "b" else 1))
    own.add(model("d"), [finding("CL102", fix="use K=64", fix_set='{"K":64}')], Weight(hours=1))
    own.add(model("e"), [finding("CL102", fix="use K=32", fix_set='{"K":32}')], Weight(hours=1))
    assert [(each.describe, each.models) for each in own.ranking().changes] == [
        ("channels_last", 3), ("use K=32", 1), ("use K=64", 1)
    ]  # fmt: skip
    assert own.ranking(1).more_changes == 2


def test_one_model_on_two_gpus_is_like_no_other() -> None:
    own = Book()
    for gpu in ("a100", "t4"):
        own.add(model("a", gpu=gpu), [], Weight(hours=1))
    assert [(each.what, each.models) for each in own.ranking().architectures] == [("a", 1)]
