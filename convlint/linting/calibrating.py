"""Which of the user's calibrations hold for an input: those of its GPUs, libraries and this convlint, and no others."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from msgspec.structs import replace

from convlint import __version__
from convlint.config.find import Config, Configs, shown_path
from convlint.engine.findings import Target
from convlint.estimate.constants import UNCHANGED_SINCE
from convlint.gpus.gpu import Calibration, CalibrationFile, CalibrationUse, Gpu
from convlint.model.runtime import Runtime, Version, framework_of
from convlint.readers.inputs import Input

_NUMBERS = re.compile(r"\d+(?:\.\d+)*")
Files = tuple[CalibrationFile, ...]


def calibrations_of(config: Config) -> Files:
    """The calibrations that a config names. Raises UsageError with the place for one that cannot be used."""
    if not config.calibration:
        return ()
    from convlint.config.calibration import read_calibration

    files: dict[str, CalibrationFile] = {}
    for word in config.calibration:
        found = read_calibration(word.text, shown_path(word.text))
        known = files.setdefault(found.calibration.gpu, found)
        if known is not found:
            word.at.fail(f"{found.path} and {known.path} are both for {found.calibration.gpu}; name one of them")
    return tuple(files.values())


class Nearby:
    """The calibrations of the config that is closest to an input, where no options say which config holds."""

    def __init__(self, *, isolated: bool = False) -> None:
        """`isolated` reads no config."""
        self._configs = Configs(isolated=isolated)
        self._found: dict[int, Files] = {}

    def of(self, source: Input | None) -> Files:
        """Those for this input; of what is no file, as of None, by the current folder. Raises UsageError."""
        is_file = source is not None and source.kind == "file"
        config = self._configs.of(source.name) if is_file and source else self._configs.of_folder(os.getcwd())
        if id(config) not in self._found:
            self._found[id(config)] = calibrations_of(config)
        return self._found[id(config)]


def calibrated(
    targets: Iterable[Target], runtime: Runtime, files: Files
) -> tuple[list[Target], tuple[CalibrationUse, ...]]:
    """The targets with what was measured on them, and of each file whether it is in force."""
    given = list(targets)
    uses, held = [], {}
    ids = {target.gpu.id for target in given}
    for file in files:
        gpu = file.calibration.gpu
        reason = _reason(file, runtime) if gpu in ids else f"it is for {gpu}, which is no target"
        if not reason:
            held[gpu] = file.calibration
        cudnn = None if file.origin.cudnn is None else str(file.origin.cudnn)
        uses.append(
            CalibrationUse(
                path=file.path, gpu=gpu, device=file.origin.device, rows=file.calibration.rows, cudnn=cudnn,
                reason=reason, of_no_target=gpu not in ids,
            )
        )  # fmt: skip
    found = [
        replace(target, gpu=_with(target.gpu, held[target.gpu.id])) if target.gpu.id in held else target
        for target in given
    ]
    return found, tuple(uses)


@lru_cache(maxsize=64)
def _with(gpu: Gpu, calibration: Calibration) -> Gpu:
    """One and the same for all inputs, so that they share estimates."""
    return replace(gpu, calibration=calibration)


def _reason(file: CalibrationFile, runtime: Runtime) -> str:
    """Why a calibration of a target does not hold; empty where it does."""
    origin, found = file.origin, file.calibration
    if found.error_after > found.error_before:
        return "it makes predictions worse: its error_after is above its error_before"
    if not UNCHANGED_SINCE <= tuple(_numbers(origin.convlint)[:2]) <= tuple(_numbers(Version(__version__))[:2]):
        return f"its errors are those of convlint {origin.convlint}, and estimates have changed: measure again"
    if origin.cudnn is not None and runtime.cudnn is not None and _differ(origin.cudnn, runtime.cudnn):
        return f"it was measured with cuDNN {origin.cudnn}, and the runtime has {runtime.cudnn}"
    measured, running = origin.framework, framework_of(runtime) or "pytorch"
    if measured is not None and (measured == "tensorrt") != (running == "tensorrt"):
        return f"it was measured in {measured}, and {running} has other kernels"
    return ""


def _differ(one: Version, other: Version) -> bool:
    """Whether two versions differ as far as both are given: 9.1 is 9.1.0, and 9 is either."""
    return any(a != b for a, b in zip(_numbers(one), _numbers(other), strict=False))


def _numbers(version: Version) -> Sequence[int]:
    found = _NUMBERS.match(version.text.strip())
    return [int(number) for number in found[0].split(".")] if found else []
