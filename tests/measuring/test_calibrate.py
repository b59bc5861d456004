"""Rows of a device become the calibration of its GPU, which the config then reads."""

from __future__ import annotations

from pathlib import Path

import pytest
from calibrated import LARGE, SMALL, WIDE, calibration
from convolutions import conv
from measured import DEVICE, row_of
from msgspec.structs import replace

from convlint import __version__
from convlint.config.calibration import read_calibration
from convlint.errors import ConvlintError
from convlint.estimate.passes import pass_time_us
from convlint.gpus.gpu import load_gpu
from convlint.measuring.calibrate import calibration_file
from convlint.measuring.rows import Row, header, line, rows_of
from convlint.measuring.workload import layer_of, runtime_of, workloads
from convlint.model.layer import PASSES
from convlint.model.runtime import Runtime

A100 = load_gpu("a100")
SLOWER = replace(A100, calibration=calibration(A100, tensor_clock=0.8, launch_us=6.0))


def rows() -> list[Row]:
    """What an A100 of a lower clock would give, as the file of timings keeps it."""
    works = [
        work
        for size in (*LARGE, *WIDE, *SMALL)
        for which in PASSES
        for work in workloads(conv(**size), which, A100, Runtime())
    ]
    times = [pass_time_us(layer_of(work), work.which, SLOWER, runtime_of(work)) for work in works]
    kept = [row_of(work, time) for work, time in zip(works, times, strict=True) if time is not None]
    return list(rows_of(header() + "".join(map(line, kept))))


def test_what_a_device_timed_is_read_back_as_its_calibration(tmp_path: Path) -> None:
    path = tmp_path / "gpu.toml"
    path.write_text(calibration_file(rows(), DEVICE, "2026-01-31")[0])
    file = read_calibration(str(path), "gpu.toml")
    origin, there = file.origin, file.calibration
    assert (origin.device, str(origin.cudnn), str(origin.cuda)) == ("NVIDIA A100-SXM4-40GB", "9.10.2", "12.8")
    assert (origin.framework, str(origin.framework_version), origin.date) == ("pytorch", "2.11.0", "2026-01-31")
    assert (str(origin.convlint), there.gpu, there.rows) == (__version__, A100.id, len(rows()))
    assert there.tensor_clock is not None
    assert there.launch_us is not None
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
