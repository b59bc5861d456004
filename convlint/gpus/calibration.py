"""What timings on one GPU of the user say of it: a few constants, each with the rows behind it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

from msgspec import Struct

from convlint.model.layer import Dtype, Pass
from convlint.model.version import Version

Kind = Literal["dense", "depthwise", "grouped", "volume"]  # of layer, as far as other kernels run it
LEAST_OF_GROUP: Final = 4  # rows of one group: fewer say nothing of it
KINDS: tuple[Kind, ...] = ("dense", "depthwise", "grouped", "volume")


class Constant(Struct, frozen=True):
    """One number that timings determine: how many of them, and their median distance from the prediction with it."""

    value: float
    rows: int
    spread: float  # a share: 0.08 is 8 %


class Group(Struct, frozen=True, kw_only=True):
    """What was timed of one kind of layer in one compute dtype and pass (of the kernels: turned where transposed)."""

    kind: Kind
    dtype: Dtype
    which: Pass
    rows: int
    spread: float  # as of `Constant`
    factor: float | None = None  # on the time; None: not determined


class Calibration(Struct, frozen=True, kw_only=True):
    """What one GPU was measured to do, against what the cost model says of it; None where timings do not tell.

    Clocks and bandwidth are factors on the model's sustained ones; `launch_us` is added to the launch of every pass.
    Errors are medians over all rows, as shares: predicted against measured time.
    """

    gpu: str  # id
    rows: int
    error_before: float
    error_after: float
    tensor_clock: Constant | None = None  # of Tensor Cores
    cuda_clock: Constant | None = None  # of CUDA cores
    bandwidth: Constant | None = None  # of DRAM
    launch_us: Constant | None = None
    groups: tuple[Group, ...] = ()


class Origin(Struct, frozen=True, kw_only=True):
    """The device and the libraries that were measured, and the convlint whose predictions were."""

    device: str
    compute_capability: Version
    convlint: Version
    cudnn: Version | None = None
    cuda: Version | None = None
    framework: str | None = None
    framework_version: Version | None = None
    date: str | None = None  # 2026-01-31


class CalibrationFile(Struct, frozen=True, kw_only=True):
    """A calibration and where it comes from; `path` as shown to the user."""

    path: str
    origin: Origin
    calibration: Calibration


class CalibrationUse(Struct, frozen=True, kw_only=True):
    """Whether a calibration is in force on a GPU; `reason` says why not, and is empty where it is."""

    path: str  # as shown to the user
    gpu: str  # id
    device: str
    rows: int
    cudnn: str | None
    reason: str = ""
    of_no_target: bool = False


def merged(uses: Iterable[CalibrationUse]) -> tuple[CalibrationUse, ...]:
    """Each once; that a GPU is no target is left out where it is one of another input."""
    found = tuple(dict.fromkeys(uses))
    used = {use.path for use in found if not use.of_no_target}
    return tuple(use for use in found if not (use.of_no_target and use.path in used))


class Factors(NamedTuple):
    """The constants of a calibration as the cost model applies them; what is not determined changes nothing."""

    tensor_clock: float = 1.0
    cuda_clock: float = 1.0
    bandwidth: float = 1.0
    launch_us: float = 0.0


UNCALIBRATED: Final = Factors()


def factors_of(calibration: Calibration | None) -> Factors:
    """What a calibration changes; nothing where there is none."""
    if calibration is None:
        return UNCALIBRATED
    found = {name: getattr(calibration, name) for name in Factors._fields}
    return Factors(**{name: constant.value for name, constant in found.items() if constant is not None})
