"""The bars of the page: to one scale, and what is not known is said."""

import re
from types import SimpleNamespace
from typing import Any

import pytest
from convolutions import conv
from msgspec.structs import replace
from reports import estimate, full_report, layer_times, passes

from convlint.estimate import estimate_layer
from convlint.gpus.gpu import load_gpu
from convlint.model.layer import Dtype
from convlint.model.report import LayerReport, Report
from convlint.model.runtime import Runtime
from convlint.reporters.page.findings import by_layer, items
from convlint.reporters.page.layers import BAR, chart, costs, rows


def estimate_of(**times: float) -> Any:
    ran = {which: SimpleNamespace(**{**vars(passes()["fprop"]), "time_us": us}) for which, us in times.items()}
    return SimpleNamespace(time_us=sum(times.values()), unquantized_us=1.0, basis="measured", passes=ran)


def test_bars_are_as_long_as_their_passes() -> None:
    report = full_report()
    drawn = [cell for row in rows(report, {}) for cell in row.cells if cell.bars]
    assert len(drawn) == len(report.layers)
    for cell in drawn:
        longest = max(each.time_us for each in (one.cells[0] for one in rows(report, {})))
        assert sum(bar.width for bar in cell.bars) == pytest.approx(BAR * cell.time_us / longest, rel=0.01)
        ends = [bar.x + bar.width for bar in cell.bars]
        assert all(end < bar.x + 3 for end, bar in zip(ends, cell.bars[1:], strict=False))


def test_each_part_of_a_bar_says_which_pass_it_is() -> None:
    """A first layer has no dgrad: by its place alone, wgrad would look like one."""
    bars = [bar for row in rows(full_report(), {}) for bar in row.cells[0].bars]
    assert {(bar.which, bar.letter) for bar in bars} == {("fprop", "f"), ("wgrad", "w")}
    assert all(bar.says.startswith(f"{bar.which} 406 us, bound by memory, implicit-gemm, ") for bar in bars)


def test_where_a_part_has_no_room_letters_stand_beside_the_bar() -> None:
    report = full_report()
    first, second, *others = report.layers
    short = replace(first, estimates={"a100": estimate_of(fprop=900.0, wgrad=5.0)})
    tiny = replace(second, estimates={"a100": estimate_of(fprop=4.0, wgrad=5.0)})
    found = rows(full_report(layers=(short, tiny, *others)), {})
    (one,), (other,) = found[0].cells, found[1].cells
    assert (one.beside, other.beside) == ("f w", "f w")
    assert [row.cells[0].beside for row in found[2:]] == ["", ""]
    for cell in (one, other):
        end = float(re.findall(r'<text x="([\d.]+)%"', cell.drawn)[0])
        assert end == pytest.approx(cell.bars[-1].x + cell.bars[-1].width, abs=0.02)
        assert cell.drawn.count("<text") == 1
    whole = found[2].cells[0]
    assert re.findall(r"<text[^>]*>(\w)</text>", whole.drawn) == [bar.letter for bar in whole.bars]


def test_the_longest_bar_leaves_room_for_letters() -> None:
    ends = [bar.x + bar.width for row in rows(full_report(), {}) for bar in row.cells[0].bars]
    assert max(ends) < 97


def test_each_part_of_a_bar_is_drawn_as_it_is_counted() -> None:
    for row in rows(full_report(), {}):
        (cell,) = row.cells
        parts = re.findall(
            r'<rect class="(\w+)" x="([\d.]+)%" width="([\d.]+)%" height="16"><title>(.*?)</title>', cell.drawn
        )
        assert parts == [(bar.bound, str(bar.x), str(bar.width), bar.says) for bar in cell.bars]


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
    ranks = [(order.index(item.severity), -(item.finding.lost_us or 0.0)) for item in items(full_report())]
    assert ranks == sorted(ranks)


def test_the_roofline_has_every_pass_and_the_ceilings_of_the_data_sheet() -> None:
    report = full_report()
    (target,) = chart(report)["targets"]
    assert len(target["points"]) == sum(len(entry.estimates["a100"].passes) for entry in report.layers
                                        if entry.estimates.get("a100"))  # type: ignore[union-attr]  # fmt: skip
    assert target["ceilings"] == [["fp16 Tensor Cores", 312.0, 250.0]]
    assert target["bandwidth"] == pytest.approx(1555, abs=1)
    assert target["reached"] == pytest.approx(1322, abs=1)
    assert all(point[-2:] == ["memory", "implicit-gemm"] for point in target["points"])


@pytest.mark.parametrize(
    ("gpu", "runtime", "sizes", "ceiling"),
    [
        ("a100", Runtime(), {"groups": 64}, ("fp32 CUDA cores", 19.5)),  # as depthwise ones run
        ("a100", Runtime(tf32=True), {"dtype": Dtype.fp32}, ("tf32 Tensor Cores", 156.0)),
        ("p100", Runtime(), {}, ("fp32 CUDA cores", 10.6)),  # libraries sum fp16 in fp32
        ("v100", Runtime(), {"dtype": Dtype.fp32}, ("fp32 CUDA cores", 15.7)),
        ("rtx-3090", Runtime(), {}, ("fp16 Tensor Cores", 71.0)),
        ("rtx-3090", Runtime(framework="tensorrt"), {}, ("fp16 Tensor Cores, fp16 sums", 142.0)),
    ],
)
def test_the_ceiling_is_that_of_the_unit_that_ran(
    gpu: str, runtime: Runtime, sizes: dict[str, Any], ceiling: tuple[str, float]
) -> None:
    layer = conv(**sizes)
    estimate = estimate_layer(layer, load_gpu(gpu), runtime, "inference")
    report = full_report(layers=(LayerReport(layer=layer, estimates={gpu: estimate}),), targets=(gpu,))
    ((text, peak, reached),) = chart(report)["targets"][0]["ceilings"]
    assert (text, peak) == (ceiling[0], pytest.approx(ceiling[1], rel=0.02))
    assert reached == pytest.approx(estimate.passes["fprop"].roof.reached * 1e-12, abs=0.001)
    assert 0 < reached < peak


def test_shares_are_of_the_layers_of_one_mode() -> None:
    first, *others = full_report().layers
    mixed = rows(full_report(layers=(replace(first, mode="inference"), *others)), {})
    shares = [float(row.cells[0].share.split()[0]) for row in mixed if row.cells[0].share]
    assert shares[0] == 100
    assert sum(shares[1:]) == pytest.approx(100, abs=0.3)


def test_a_gpu_that_is_not_known_has_no_ceilings() -> None:
    (target,) = chart(full_report(targets=("made up",)))["targets"]
    assert (target["bandwidth"], target["ceilings"]) == (None, [])


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
    assert list(found.dearest) == [(1, "50 %"), (3, "30 %"), (0, "10 %")]
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
    assert [number for number, _ in costs(report, "a100", "inference").dearest] == [0]
    assert [number for number, _ in costs(report, "a100", "training").dearest] == [3, 2, 1]
