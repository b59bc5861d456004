"""`benchmarks/measure.py`: what it times, and that it goes on where it stopped; the accuracy page reads its rows."""

from pathlib import Path
from types import ModuleType

import pytest
from benchmark_scripts import importable, modules_fixture
from measured import DEVICE, Pretender, predicted_us

from convlint.gpus.gpu import load_gpu
from convlint.measuring.rows import rows_of
from convlint.measuring.workload import Workload

A100 = load_gpu("a100")


script = modules_fixture("measure")


def run(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, several: list[Workload], *arguments: str
) -> list[Workload]:
    """Runs it on these alone, on an A100 that is as fast as is predicted; what was timed."""
    timer = Pretender(predicted_us)
    monkeypatch.setattr(script, "Bench", timer)
    monkeypatch.setattr(script, "wanted", lambda *_: several)
    assert script.main(list(arguments)) == 0
    return timer.asked


def test_networks_are_timed_in_all_forms(script: ModuleType) -> None:
    found = script.wanted(["networks"], A100, ["fp16", "bf16", "tf32"])
    forms = {(work.precision, work.layout, work.benchmark, work.which) for work in found}
    assert len(forms) == 3 * 2 * 2 * 3
    assert {work.dims for work in found} == {2, 3}
    assert any(1 < work.groups < work.C for work in found)
    assert any(work.groups == work.C for work in found)
    assert any(work.op == "conv_transpose" for work in found)


def test_the_grid_has_both_sides_of_every_multiple(script: ModuleType) -> None:
    found = script.wanted(["grid"], A100)
    assert {work.K % 8 == 0 for work in found} == {work.C % 8 == 0 for work in found} == {True, False}
    assert len({(work.N, work.C, work.K) for work in found if (work.H, work.R) == (14, 3)}) > 50
    assert len(found) == len(set(found))


def test_the_guides_charts_are_timed(script: ModuleType) -> None:
    found = script.wanted(["figures"], A100)
    assert {work.R for work in found} >= {1, 3, 5, 7}
    assert all(work.benchmark for work in found)


def test_it_goes_on_where_it_stopped_and_the_accuracy_page_reads_it(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    several = [work for work in script.wanted(["networks"], A100) if work.layout == "NHWC"][:40]
    volumes = [work for work in script.wanted(["networks"], A100) if work.dims == 3][:12]
    csv = tmp_path / "rows.csv"
    assert run(script, monkeypatch, several, str(csv)) == several
    text = csv.read_text(encoding="utf-8")
    csv.write_text(text + text.splitlines()[-1][:50], encoding="utf-8")
    assert run(script, monkeypatch, [*several, *volumes], str(csv)) == volumes
    rows = list(rows_of(csv.read_text(encoding="utf-8")))
    assert [row.workload for row in rows] == [*several, *volumes]
    assert all(row.is_of(DEVICE) for row in rows)
    with importable():
        import accuracy
        import timings

        read = timings.read_rows(csv)
        for row, published in zip(rows, read, strict=True):
            found = accuracy.convlint_us(published, A100)
            assert found == pytest.approx(row.timing.us, rel=1e-5)
