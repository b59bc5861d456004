"""The costs on a card: the dearest layers, what bounds the time, and how much of it is known."""

from __future__ import annotations

from types import SimpleNamespace

from msgspec.structs import replace
from reports import estimate, full_report, layer_times, passes

from convlint.report import LayerReport, Report
from convlint.reporters.page.costs import costs


def timed(*times: float | None) -> Report:
    entries = [
        replace(entry, times={"a100": None if time is None else layer_times(time, time, time)})
        for entry, time in zip(full_report().layers, times, strict=True)
    ]
    return full_report(layers=tuple(entries))


def bound(entry: LayerReport, by: str, time_us: float) -> LayerReport:
    one = SimpleNamespace(**{**vars(passes()["fprop"]), "bound_by": by, "time_us": time_us})
    return replace(entry, estimates={"a100": SimpleNamespace(**{**vars(estimate()), "passes": {"fprop": one}})})


def test_the_dearest_come_first_with_their_shares() -> None:
    found = costs(timed(10.0, 50.0, 10.0, 30.0), "a100", "training")
    assert [(each.number, each.share) for each in found.dearest] == [(1, "50 %"), (3, "30 %"), (0, "10 %")]
    assert found.known == ""


def test_what_bounds_the_time_has_its_share() -> None:
    first, second, third, fourth = full_report().layers
    report = full_report(layers=(bound(first, "memory", 60.0), bound(second, "compute", 39.5), third, fourth))
    report = replace(report, layers=report.layers[:2])
    assert costs(report, "a100", "training").bounds == (("memory", "60 %"), ("compute", "40 %"))


def test_calls_count() -> None:
    first, second, *_ = full_report().layers
    again = bound(replace(first, layer=replace(first.layer, calls=3)), "launch", 10.0)
    report = full_report(layers=(again, bound(second, "compute", 30.0)))
    assert dict(costs(report, "a100", "training").bounds) == {"launch": "50 %", "compute": "50 %"}


def test_how_many_layers_are_priced_is_said_where_some_are_not() -> None:
    some = costs(timed(600.0, None, 600.0, 34.5), "a100", "training")
    assert (some.known, some.together) == ("3 of 4 layers", "1.23 ms")
    none = costs(timed(None, None, None, None), "a100", "training")
    assert (none.known, none.together, none.dearest, none.bounds) == ("0 of 4 layers", "", (), ())


def test_each_mode_has_its_own() -> None:
    first, *others = timed(1.0, 2.0, 3.0, 4.0).layers
    report = full_report(layers=(replace(first, mode="inference"), *others))
    assert [each.number for each in costs(report, "a100", "inference").dearest] == [0]
    assert [each.number for each in costs(report, "a100", "training").dearest] == [3, 2, 1]
