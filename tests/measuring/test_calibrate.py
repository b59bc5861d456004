"""Rows of a device become the calibration of its GPU, which the config then reads."""

import random
from pathlib import Path

import pytest
from calibrated import LARGE, PYTORCH, SMALL, WIDE, calibration, timings
from convolutions import conv
from hypothesis import given
from hypothesis import strategies as st
from measured import DEVICE, row_of
from msgspec.structs import replace

from convlint import __version__
from convlint.config.calibration import read_calibration
from convlint.estimate.passes import pass_time_us
from convlint.gpus.gpu import Factors, load_gpu
from convlint.measuring.calibrate import (
    FOLDS,
    LEAST_ROWS,
    LEAST_SHAPES,
    TimedPass,
    calibration_file,
    fit,
    folds,
    gain,
    robust_step,
    scale_of,
    shape_of,
    solved,
)
from convlint.measuring.rows import TimingRow, header, rows_of
from convlint.measuring.rows import line as calibrated_line
from convlint.measuring.workload import layer_of, runtime_of, workloads
from convlint.model.errors import ConvlintError
from convlint.model.layer import PASSES, Dtype
from convlint.model.runtime import Runtime

COLUMNS = [[1.0, 0.0], [1.0, 1.0], [1.0, 2.0], [1.0, 3.0], [1.0, 5.0], [1.0, 8.0], [1.0, 9.0]]
UNBOUNDED = [100.0, 100.0]


def line(a: float, b: float) -> list[float]:
    return [a * row[0] + b * row[1] for row in COLUMNS]


@given(st.floats(-3, 3), st.floats(-3, 3))
def test_a_line_without_noise_is_found(a: float, b: float) -> None:
    assert robust_step(COLUMNS, line(a, b), [0.0, 0.0], UNBOUNDED) == pytest.approx([a, b], abs=1e-6)


def test_an_outlier_has_no_say() -> None:
    rests = line(0.5, -0.25)
    rests[2] += 40
    assert robust_step(COLUMNS, rests, [0.0, 0.0], UNBOUNDED) == pytest.approx([0.5, -0.25], abs=1e-3)


def test_scattered_rows_are_drawn_to_what_is_expected() -> None:
    rests = [1.0, -0.4, 0.9, 0.1]
    free, drawn = (robust_step([[1.0]] * 4, rests, [0.0], [expected])[0] for expected in (100.0, 0.1))
    assert 0 < drawn < free / 2


def test_what_no_row_follows_goes_back_to_zero() -> None:
    assert robust_step([[0.0]] * 4, [0.5, 0.2, 0.1, 0.4], [0.3], [0.5]) == pytest.approx([-0.3])


def test_nothing_to_find() -> None:
    assert robust_step([[], []], [1.0, 2.0], [], []) == []


def test_a_system_that_needs_its_rows_swapped() -> None:
    assert solved([[1e-30, 1.0], [1.0, 1.0]], [2.0, 3.0]) == pytest.approx([1.0, 2.0])


def test_the_scale_of_normal_errors_is_their_deviation() -> None:
    assert scale_of([-0.6745, 0.1, 0.6745, -2.0, 0.6745]) == pytest.approx(1.0, rel=1e-4)
    assert scale_of([0.0, 0.0, 5.0]) > 0


def test_the_batch_and_the_dtype_are_no_part_of_a_shape() -> None:
    assert shape_of(conv()) == shape_of(conv(N=1, dtype=Dtype.fp32, layout="NCHW"))
    assert len({shape_of(conv(**one)) for one in ({}, {"C": 32}, {"H": 28}, {"R": 1, "S": 1}, {"U": 2})}) == 5


def test_every_row_is_held_out_once_with_all_of_its_shape() -> None:
    shapes = [shape_of(conv(C=8 * (1 + number % 7))) for number in range(21)]
    parts = folds(shapes)
    assert len(parts) == FOLDS
    assert sorted(index for held, _ in parts for index in held) == list(range(21))
    for held, others in parts:
        assert sorted(held + others) == list(range(21))
        assert not {shapes[index] for index in held} & {shapes[index] for index in others}


def test_few_shapes_make_few_parts() -> None:
    assert [held for held, _ in folds([("a",), ("b",), ("a",)])] == [[0, 2], [1]]


def test_one_standard_error_is_taken_off() -> None:
    shapes = [("a",), ("b",), ("c",), ("c",)]
    assert gain([1.0] * 4, [0.5] * 4, shapes) == 0.5
    assert gain([1.0] * 4, [0.0, 1.0, 0.5, 0.5], shapes) < 0.5 - 0.2
    assert gain([1.0] * 4, [0.9, 1.1, 1.0, 1.0], shapes) < 0


def test_rows_of_one_shape_count_once() -> None:
    many = [("a",)] * 50 + [("b",), ("c",)]
    assert gain([1.0] * 52, [0.5] * 50 + [1.0, 1.0], many) < 0.01


def test_one_shape_proves_nothing() -> None:
    assert gain([1.0, 1.0], [0.0, 0.0], [("a",), ("a",)]) == 0.0


ALL = LARGE + WIDE + SMALL


def found(calibration) -> dict[str, float]:
    constants = {name: getattr(calibration, name) for name in Factors.__struct_fields__}
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
    rows += [TimedPass(one, "fprop", PYTORCH, 3 * pass_time_us(one, "fprop", gpu, PYTORCH)) for one in depthwise]
    groups = {(group.kind, group.which): group for group in fit(rows, gpu).groups}
    assert groups["depthwise", "fprop"].factor == pytest.approx(3.0, rel=0.2)
    assert groups["depthwise", "fprop"].rows == len(depthwise)
    dense = [group.factor for (kind, _), group in groups.items() if kind == "dense"]
    assert all(factor is None or factor == pytest.approx(1.0, rel=0.1) for factor in dense)


def test_a_calibration_predicts_what_it_was_made_of():
    """Also of short passes, which are mostly launches."""
    rows, gpu = timings(ALL, dtypes=("fp16",))
    short = [conv(N=1, C=C, K=C, groups=C, H=H, W=H) for C in (16, 32, 48, 64, 96, 128) for H in (4, 7, 14)]
    rows += [TimedPass(one, "fprop", PYTORCH, 2 * pass_time_us(one, "fprop", gpu, PYTORCH)) for one in short]
    there = replace(gpu, calibration=fit(rows, gpu))
    for row in rows:
        assert pass_time_us(row.layer, row.which, there, PYTORCH) == pytest.approx(row.us, rel=0.1)


def test_few_scattered_rows_of_a_kind_get_none():
    rows, gpu = timings(ALL, dtypes=("fp16",))
    odd = [conv(C=C, K=C, groups=C, H=28, W=28) for C in (64, 128, 256, 512)]
    off = (0.3, 1.4, 0.8, 2.2)
    rows += [
        TimedPass(one, "fprop", PYTORCH, by * pass_time_us(one, "fprop", gpu, PYTORCH))
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
    monkeypatch.setattr("convlint.measuring.calibrate.pass_time_us", counted)
    assert fit(rows[:300], gpu).rows == 300
    assert 300 < made[0] < 150 * 300


A100 = load_gpu("a100")
SLOWER = replace(A100, calibration=calibration(A100, tensor_clock=0.8, launch_us=6.0))


def rows() -> list[TimingRow]:
    """What an A100 of a lower clock would give, as the file of timings keeps it."""
    works = [
        work
        for size in (*LARGE, *WIDE, *SMALL)
        for which in PASSES
        for work in workloads(conv(**size), which, A100, Runtime())
    ]
    times = [pass_time_us(layer_of(work), work.which, SLOWER, runtime_of(work)) for work in works]
    kept = [row_of(work, time) for work, time in zip(works, times, strict=True) if time is not None]
    return list(rows_of(header() + "".join(map(calibrated_line, kept))))


def test_what_a_device_timed_is_read_back_as_its_calibration(tmp_path: Path) -> None:
    path = tmp_path / "gpu.toml"
    path.write_text(calibration_file(rows(), DEVICE, "2026-01-31")[0])
    file = read_calibration(str(path), "gpu.toml")
    origin, there = file.origin, file.calibration
    assert (origin.device, str(origin.cudnn), str(origin.cuda)) == ("NVIDIA A100-SXM4-40GB", "9.10.2", "12.8")
    assert (origin.framework, str(origin.framework_version), origin.date) == ("pytorch", "2.11.0", "2026-01-31")
    assert (str(origin.convlint), there.gpu, there.rows) == (__version__, A100.id, len(rows()))
    assert there.tensor_clock.value == pytest.approx(0.8, rel=1e-3)
    assert there.launch_us.value == pytest.approx(6.0, rel=1e-3)
    assert there.error_after < 1e-3 < there.error_before


def test_rows_of_another_device_or_library_are_left_out() -> None:
    mine = rows()
    others = [replace(row, cudnn="8.9.2") for row in mine] + [replace(row, device="Tesla T4") for row in mine]
    assert calibration_file([*others, *mine], DEVICE, "2026-01-31") == calibration_file(mine, DEVICE, "2026-01-31")
    with pytest.raises(ConvlintError, match="too little is timed to calibrate a100-40gb-sxm: 0 different passes"):
        calibration_file(others, DEVICE, "2026-01-31")


@pytest.mark.parametrize("device", [replace(DEVICE, kind="cpu", name="cpu"), replace(DEVICE, sms=7)])
def test_what_is_no_known_gpu_is_not_calibrated(device) -> None:
    with pytest.raises(ConvlintError, match="cannot be calibrated: convlint knows no such GPU"):
        calibration_file(rows(), device, "2026-01-31")


def test_libraries_that_say_nothing_are_left_out(tmp_path: Path) -> None:
    quiet = replace(DEVICE, cudnn="", cuda="")
    path = tmp_path / "gpu.toml"
    path.write_text(calibration_file([replace(row, cudnn="", cuda="") for row in rows()], quiet, "2026-01-31")[0])
    origin = read_calibration(str(path), "gpu.toml").origin
    assert (origin.cudnn, origin.cuda) == (None, None)
