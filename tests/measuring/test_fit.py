"""What timings determine is found, what they do not is left alone."""

from __future__ import annotations

import random

import pytest
from calibrated import LARGE, PYTORCH, SMALL, WIDE, calibration, timings
from convolutions import conv
from msgspec.structs import replace

from convlint.errors import ConvlintError
from convlint.estimate.passes import pass_time_us
from convlint.gpus.calibration import Factors
from convlint.gpus.gpu import load_gpu
from convlint.measuring.fit import LEAST_ROWS, LEAST_SHAPES, Timed, fit
from convlint.model.layer import Dtype

ALL = LARGE + WIDE + SMALL


def found(calibration) -> dict[str, float]:
    constants = {name: getattr(calibration, name) for name in Factors._fields}
    return {name: constant.value for name, constant in constants.items() if constant is not None}


@pytest.mark.parametrize(
    "true",
    [
        {"tensor_clock": 0.7}, {"cuda_clock": 1.4}, {"bandwidth": 0.6}, {"launch_us": 12.0},
        {"tensor_clock": 0.7, "cuda_clock": 1.3, "bandwidth": 0.8, "launch_us": 9.0},
        {"tensor_clock": 2.5, "cuda_clock": 0.4, "bandwidth": 1.6, "launch_us": -3.0},
    ],
)  # fmt: skip
def test_a_gpu_that_differs_in_known_ways_is_recovered(true):
    rows, gpu = timings(ALL, **true)
    there = fit(rows, gpu)
    expected = {"tensor_clock": 1.0, "cuda_clock": 1.0, "bandwidth": 1.0, "launch_us": 0.0} | true
    assert found(there) == pytest.approx({name: expected[name] for name in found(there)}, rel=1e-3, abs=1e-3)
    assert true.keys() <= found(there).keys()
    assert there.error_after < 1e-3 < there.error_before
    assert all(group.factor is None for group in there.groups)


def test_a_gpu_that_is_as_predicted_needs_nothing():
    rows, gpu = timings(ALL)
    there = fit(rows, gpu)
    assert found(there) == {}
    assert (there.gpu, there.rows, there.error_before, there.error_after) == (gpu.id, len(rows), 0.0, 0.0)
    kinds = {(group.kind, group.dtype, group.which): group.rows for group in there.groups}
    assert kinds == {("dense", dtype, which): len(ALL) for dtype in (Dtype.fp16, Dtype.fp32) for which in
                     ("fprop", "dgrad", "wgrad")}  # fmt: skip


def test_memory_bound_rows_do_not_determine_the_clock():
    rows, gpu = timings([{**size, "N": 512} for size in WIDE], dtypes=("fp16",), bandwidth=0.7)
    assert found(fit(rows, gpu)) == pytest.approx({"bandwidth": 0.7}, rel=1e-3)


def test_large_rows_do_not_determine_the_launch():
    rows, gpu = timings([{**size, "N": 1024} for size in LARGE], dtypes=("fp16",), tensor_clock=0.8, launch_us=1.0)
    assert found(fit(rows, gpu)) == pytest.approx({"tensor_clock": 0.8}, rel=5e-3)


@pytest.mark.parametrize("factor", [0.1, 10.0])
def test_outliers_move_nothing(factor):
    rows, gpu = timings(ALL, tensor_clock=0.7, cuda_clock=1.2, bandwidth=0.9, launch_us=5.0)
    rows = [row._replace(us=row.us * factor) if number % 10 == 3 else row for number, row in enumerate(rows)]
    there = found(fit(rows, gpu))
    assert there == pytest.approx(
        {"tensor_clock": 0.7, "cuda_clock": 1.2, "bandwidth": 0.9, "launch_us": 5.0}, rel=0.01, abs=0.05
    )


def test_noise_alone_determines_nothing_far_from_the_model():
    chance = random.Random(5)
    rows, gpu = timings(ALL)
    rows = [row._replace(us=row.us * 1.06 ** chance.gauss(0, 1)) for row in rows]
    there = found(fit(rows, gpu))
    assert all(value == pytest.approx(1.0, abs=0.05) for name, value in there.items() if name != "launch_us")
    assert there.get("launch_us", 0.0) == pytest.approx(0.0, abs=1.0)


def test_a_kind_that_is_off_as_a_whole_gets_a_factor():
    rows, gpu = timings(ALL, dtypes=("fp16",))
    depthwise = [conv(C=C, K=C, groups=C, H=H, W=H) for C in (64, 128, 256) for H in (14, 28, 56, 112)]
    rows += [Timed(one, "fprop", PYTORCH, 3 * pass_time_us(one, "fprop", gpu, PYTORCH)) for one in depthwise]
    groups = {(group.kind, group.which): group for group in fit(rows, gpu).groups}
    assert groups["depthwise", "fprop"].factor == pytest.approx(3.0, rel=0.2)
    assert groups["depthwise", "fprop"].rows == len(depthwise)
    dense = [group.factor for (kind, _), group in groups.items() if kind == "dense"]
    assert all(factor is None or factor == pytest.approx(1.0, rel=0.1) for factor in dense)


def test_a_calibration_predicts_what_it_was_made_of():
    """Also of short passes, which are mostly launches."""
    rows, gpu = timings(ALL, dtypes=("fp16",))
    short = [conv(N=1, C=C, K=C, groups=C, H=H, W=H) for C in (16, 32, 48, 64, 96, 128) for H in (4, 7, 14)]
    rows += [Timed(one, "fprop", PYTORCH, 2 * pass_time_us(one, "fprop", gpu, PYTORCH)) for one in short]
    there = replace(gpu, calibration=fit(rows, gpu))
    for row in rows:
        assert pass_time_us(row.layer, row.which, there, PYTORCH) == pytest.approx(row.us, rel=0.1)


def test_few_scattered_rows_of_a_kind_get_none():
    rows, gpu = timings(ALL, dtypes=("fp16",))
    odd = [conv(C=C, K=C, groups=C, H=28, W=28) for C in (64, 128, 256, 512)]
    off = (0.3, 1.4, 0.8, 2.2)
    rows += [
        Timed(one, "fprop", PYTORCH, by * pass_time_us(one, "fprop", gpu, PYTORCH))
        for one, by in zip(odd, off, strict=True)
    ]
    (group,) = [group for group in fit(rows, gpu).groups if group.kind == "depthwise"]
    assert (group.rows, group.factor) == (4, None)
    assert group.spread > 0.2


def test_order_and_an_older_calibration_do_not_matter():
    rows, gpu = timings(ALL, tensor_clock=0.8, launch_us=4.0)
    there = fit(rows, gpu)
    assert fit(rows[::-1], gpu) == there
    assert fit(rows, replace(gpu, calibration=calibration(gpu, tensor_clock=3.0))) == there


def test_too_few_rows_are_refused_with_what_it_takes():
    rows, gpu = timings(LARGE[:5], dtypes=("fp16",))
    enough = rows[len(rows) - LEAST_ROWS :]
    rows = [rows[0], *enough[1:]]
    assert fit(rows, gpu).rows == LEAST_ROWS
    for few in (rows[: LEAST_ROWS - 1], [], rows[:4] * 10):
        with pytest.raises(ConvlintError, match=f"it takes {LEAST_ROWS} of {LEAST_SHAPES}"):
            fit(few, gpu)


def test_rows_of_few_shapes_are_refused():
    rows, gpu = timings([{"C": 64, "N": N} for N in range(1, 20)])
    with pytest.raises(ConvlintError, match="of 1 shapes"):
        fit(rows, gpu)


def test_what_has_no_time_is_no_row():
    rows, gpu = timings(ALL, tensor_clock=0.8)
    wrong = [rows[0]._replace(us=us) for us in (0.0, -1.0, float("nan"), float("inf"))]
    unknown = [rows[0]._replace(layer=conv(N=None)), rows[0]._replace(layer=conv(dtype=Dtype.int8), which="wgrad")]
    assert fit([*rows, *wrong, *unknown], gpu) == fit(rows, gpu)


def test_on_a_gpu_without_tensor_cores():
    rows, gpu = timings(ALL, dtypes=("fp32",), gpu=load_gpu("p100"), cuda_clock=0.9)
    there = found(fit(rows, gpu))
    assert there.pop("cuda_clock") == pytest.approx(0.9, rel=1e-3)
    assert there == pytest.approx({name: {"bandwidth": 1.0, "launch_us": 0.0}[name] for name in there}, abs=1e-3)


@pytest.mark.slow
def test_three_hundred_rows_take_few_predictions(monkeypatch):
    """The time is that of predictions, which a busy machine cannot change the number of."""
    made = [0]

    def counted(*args, **keywords):
        made[0] += 1
        return pass_time_us(*args, **keywords)

    chance = random.Random(1)
    sizes = [{**size, "N": N} for size in ALL for N in (1, 8, 32)]
    rows, gpu = timings(sizes, tensor_clock=0.8, cuda_clock=1.1, bandwidth=0.9, launch_us=5.0)
    rows = [row._replace(us=row.us * 1.1 ** chance.gauss(0, 1)) for row in rows]
    monkeypatch.setattr("convlint.measuring.fit.pass_time_us", counted)
    assert fit(rows[:300], gpu).rows == 300
    assert 300 < made[0] < 150 * 300
