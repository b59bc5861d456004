"""Which convolutions a framework does not have, by dtype and mode, from frameworks.yaml."""

from __future__ import annotations

from functools import cache, lru_cache
from pathlib import Path
from typing import Final

from msgspec import Struct

from convlint.gpus.file import read
from convlint.gpus.gpu import Gpu
from convlint.model.layer import Dtype, Mode
from convlint.model.runtime import Runtime, framework_of
from convlint.model.version import Version

_FRAMEWORKS: Final = Path(__file__).with_name("frameworks.yaml")


class Lack(Struct, frozen=True, kw_only=True):
    """Convolutions that do not exist; None stands for all. `instead` is a dtype that the framework has in that mode."""

    framework: str | None
    dtype: Dtype | None
    mode: Mode | None
    below: Version | None
    unless: str | None
    says: str
    fix: str
    instead: Dtype | None
    source: str
    operators: tuple[str, ...] = ()  # ONNX operators of which alone it speaks

    def holds(self, runtime: Runtime, gpu: Gpu, operator: str = "") -> bool:
        """Whether it is so on this GPU, with what is given beside the framework, for this ONNX operator."""
        if self.operators and operator not in self.operators:
            return False
        if self.below is not None and not gpu.compute_capability < self.below:
            return False
        return self.unless is None or getattr(runtime, self.unless) is None


def is_settled(runtime: Runtime, dtype: Dtype, mode: Mode) -> bool:
    """Whether the table answers for this dtype without the framework's name, or has it."""
    if framework_of(runtime) is not None:
        return True
    rows = [lack for lack in lacks() if lack.dtype == dtype and lack.mode in (None, mode)]
    return not rows or any(lack.framework is None for lack in rows)


def lack_of(runtime: Runtime, dtype: Dtype | None, mode: Mode, gpu: Gpu, operator: str = "") -> Lack | None:
    """What the framework in use lacks to run a convolution of this dtype; None: nothing that is known.

    `operator` is the ONNX operator that the file has for it, where another than Conv might do.
    """
    rows = _of_framework(framework_of(runtime), dtype, mode)
    return next((lack for lack in rows if lack.holds(runtime, gpu, operator)), None)


@lru_cache(maxsize=256)
def _of_framework(framework: str | None, dtype: Dtype | None, mode: Mode) -> tuple[Lack, ...]:
    return tuple(
        lack
        for lack in lacks()
        if lack.framework in (None, framework) and lack.mode in (None, mode) and lack.dtype in (None, dtype)
    )


@cache
def lacks() -> tuple[Lack, ...]:
    """All rows of the table."""
    return tuple(
        Lack(
            framework=row.get("framework"),
            dtype=Dtype(row["dtype"]) if "dtype" in row else None,
            mode=row.get("mode"),
            below=Version(row["below"]) if "below" in row else None,
            unless=row.get("unless"),
            says=row["says"],
            fix=row["fix"],
            instead=Dtype(row["instead"]) if row["instead"] is not None else None,
            source=row["source"],
            operators=tuple(row.get("operators", ())),
        )
        for row in read(_FRAMEWORKS)["lacks"]
    )
