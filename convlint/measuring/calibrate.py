"""From rows of timings on one device to the text of its calibration file."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from convlint import __version__
from convlint.config.calibration import calibration_text
from convlint.errors import ConvlintError
from convlint.gpus.calibration import Calibration, Origin
from convlint.measuring.device import Device, gpu_of
from convlint.measuring.fit import Timed, fit
from convlint.measuring.rows import Row
from convlint.measuring.workload import layer_of, runtime_of
from convlint.model.version import Version


def calibration_file(rows: Iterable[Row], device: Device, date: str) -> tuple[str, Calibration]:
    """What the rows of this device and its libraries say of its estimates: the file, and what it holds.

    `date` as 2026-01-31. Raises ConvlintError where the device is no GPU that convlint knows, or too little is timed.
    """
    gpu = gpu_of(device)
    if gpu is None:
        raise ConvlintError(f"{device.name} cannot be calibrated: convlint knows no such GPU")
    mine = {row.workload: row.timing for row in rows if row.is_of(device)}  # the last of each
    cudnn = Version(device.cudnn) if device.cudnn else None
    timed = [
        Timed(layer_of(work), work.which, replace(runtime_of(work), cudnn=cudnn), timing.us)
        for work, timing in mine.items()
    ]
    origin = Origin(
        device=device.name, compute_capability=gpu.compute_capability, convlint=Version(__version__),
        cudnn=cudnn, cuda=Version(device.cuda) if device.cuda else None,
        framework="pytorch", framework_version=Version(device.framework_version), date=date,
    )  # fmt: skip
    found = fit(timed, gpu)
    return calibration_text(origin, found), found
