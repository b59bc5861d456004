"""The bars of the page: to one scale, and what is not known is said."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from msgspec.structs import replace
from reports import full_report, passes

from convlint.model.layer import Dtype
from convlint.reporters.page.findings import by_layer, items
from convlint.reporters.page.layers import BAR, rows
from convlint.reporters.page.roofline import chart


def test_bars_are_as_long_as_their_passes() -> None:
    report = full_report()
    drawn = [cell for row in rows(report, {}) for cell in row.cells if cell.bars]
    assert len(drawn) == len(report.layers)
    for cell in drawn:
        longest = max(each.time_us for each in (one.cells[0] for one in rows(report, {})))
        assert sum(bar.width for bar in cell.bars) == pytest.approx(BAR * cell.time_us / longest, rel=0.01)
        ends = [bar.x + bar.width for bar in cell.bars]
        assert all(end < bar.x + 3 for end, bar in zip(ends, cell.bars[1:], strict=False))


def test_shares_add_up_to_all() -> None:
    shares = [float(row.cells[0].share.split()[0]) for row in rows(full_report(), {}) if row.cells[0].share]
    assert sum(shares) == pytest.approx(100, abs=0.3)


def test_findings_and_layers_name_each_other() -> None:
    report = full_report()
    found = items(report)
    of = by_layer(found)
    names = [entry.layer.name for entry in report.layers]
    assert {number for item in found for number in item.layers} == set(of)
    for item in found:
        wanted = item.finding.layers or ((item.finding.layer,) if item.finding.layer else ())
        assert {names[number] for number in item.layers} <= set(wanted)
    for layer, numbers in of.items():
        assert all(layer in found[number].layers for number in numbers)


def test_the_gravest_come_first_and_of_those_the_dearest() -> None:
    order = ["error", "warning", "info"]
    ranks = [(order.index(item.severity), -item.lost_us) for item in items(full_report())]
    assert ranks == sorted(ranks)


def test_the_roofline_has_every_pass_and_the_ceilings_of_the_data_sheet() -> None:
    report = full_report()
    (target,) = chart(report)["targets"]
    assert len(target["points"]) == sum(len(entry.estimates["a100"].passes) for entry in report.layers
                                        if entry.estimates.get("a100"))  # type: ignore[union-attr]  # fmt: skip
    assert target["ceilings"] == [["fp16 Tensor Cores", 312.0]]
    assert target["bandwidth"] == pytest.approx(1555, abs=1)


@pytest.mark.parametrize(
    ("gpu", "dtype", "tensor", "ceiling"),
    [
        ("a100", Dtype.fp16, False, ["fp32 CUDA cores", 19.5]),  # as depthwise ones and narrow first layers run
        ("a100", Dtype.tf32, False, ["fp32 CUDA cores", 19.5]),
        ("a100", Dtype.tf32, True, ["tf32 Tensor Cores", 156.0]),
        ("p100", Dtype.fp16, False, ["fp16 CUDA cores", 21.2]),
        ("v100", Dtype.fp32, False, ["fp32 CUDA cores", 15.7]),
    ],
)
def test_the_ceiling_is_that_of_the_unit_that_ran(gpu: str, dtype: Dtype, tensor: bool, ceiling: list[object]) -> None:
    ran = SimpleNamespace(**{**vars(passes()["fprop"]), "compute_dtype": dtype, "tensor_cores": tensor})
    estimate = SimpleNamespace(time_us=1.0, unquantized_us=1.0, basis="measured", passes={"fprop": ran})
    layers = [replace(entry, estimates={gpu: estimate}) for entry in full_report().layers]
    (target,) = chart(full_report(layers=tuple(layers), targets=(gpu,)))["targets"]
    assert target["ceilings"] == [[ceiling[0], pytest.approx(ceiling[1], rel=0.02)]]


def test_shares_are_of_the_layers_of_one_mode() -> None:
    first, *others = full_report().layers
    mixed = rows(full_report(layers=(replace(first, mode="inference"), *others)), {})
    shares = [float(row.cells[0].share.split()[0]) for row in mixed if row.cells[0].share]
    assert shares[0] == 100
    assert sum(shares[1:]) == pytest.approx(100, abs=0.3)


def test_a_gpu_that_is_not_known_has_no_ceilings() -> None:
    (target,) = chart(full_report(targets=("made up",)))["targets"]
    assert (target["bandwidth"], target["ceilings"]) == (None, [])
