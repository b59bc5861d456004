"""What a calibration changes, and which of several uses are worth saying."""

from __future__ import annotations

from calibrated import calibration

from convlint.gpus.calibration import UNCALIBRATED, CalibrationUse, factors_of, merged
from convlint.gpus.gpu import load_gpu


def test_what_is_not_determined_changes_nothing() -> None:
    gpu = load_gpu("a100")
    assert factors_of(None) == factors_of(calibration(gpu)) == UNCALIBRATED == (1.0, 1.0, 1.0, 0.0)
    assert factors_of(calibration(gpu, bandwidth=0.8, launch_us=4.0)) == (1.0, 1.0, 0.8, 4.0)


def use(path: str, reason: str = "", *, of_no_target: bool = False) -> CalibrationUse:
    return CalibrationUse(
        path=path, gpu="a100-40gb-sxm", device="A100", rows=66, cudnn=None, reason=reason, of_no_target=of_no_target
    )


def test_what_several_inputs_say_is_said_once() -> None:
    idle = use("a.toml", "no target", of_no_target=True)
    assert merged([idle, idle]) == (idle,)
    assert merged([idle, use("a.toml"), use("a.toml")]) == (use("a.toml"),)
    assert merged([use("a.toml", "other cuDNN"), idle]) == (use("a.toml", "other cuDNN"),)
    assert merged([use("b.toml"), idle]) == (use("b.toml"), idle)
