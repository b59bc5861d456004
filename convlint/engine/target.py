"""What a check is for, and what it leaves out: shared by the checks of networks and of source."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from convlint.gpus.gpu import Gpu
from convlint.report import Finding

Silences = Callable[[Finding], bool]  # whether the user silenced this finding; it has no price yet


class Target(Struct, frozen=True, kw_only=True):
    """A GPU under the name that the user gave it."""

    label: str
    gpu: Gpu
