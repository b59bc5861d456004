"""What the framework in use lacks to run a layer's convolution; the table is that of `gpus/frameworks.yaml`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from convlint.facts.quantity import Quantity, Table, truth
from convlint.facts.unknown import UNKNOWN
from convlint.gpus.frameworks import Lack, is_settled, lack_of
from convlint.model.layer import Dtype

if TYPE_CHECKING:
    from convlint.facts.layer import LayerFacts


def _lack(facts: LayerFacts) -> Lack | None:
    context = facts.context
    return lack_of(context.runtime, facts.layer.dtype, context.mode, context.gpu, facts.layer.operator)


def _is_lacking(facts: LayerFacts) -> Any:
    context, dtype = facts.context, facts.layer.dtype
    if _lack(facts) is not None:
        return True
    return False if dtype is not None and is_settled(context.runtime, dtype, context.mode) else UNKNOWN


def _eight_bits(facts: LayerFacts) -> Any:
    context, operator = facts.context, facts.layer.operator
    for dtype in (Dtype.int8, Dtype.fp8):
        runs = dtype.value in context.allow and dtype.value in context.gpu.tensor_dtypes and context.mode == "inference"
        if runs and lack_of(context.runtime, dtype, context.mode, context.gpu, operator) is None:
            return dtype
    return UNKNOWN


def _nothing(_: LayerFacts) -> tuple[str, ...]:
    return ()


def _of_lack(meaning: str, of: Callable[[Lack], str | None]) -> Quantity:
    def known(facts: LayerFacts) -> Any:
        lack = _lack(facts)
        return UNKNOWN if lack is None else of(lack) or UNKNOWN

    return Quantity("text", meaning, known, _nothing, gpu=True)


LACKING: Table = {
    "lacking": truth(
        "the framework has no convolution of this dtype in this mode",
        _is_lacking,
        ("dtype", "runtime.framework"),
        gpu=True,
    ),
    "lacking_mode": _of_lack("the one mode in which the framework lacks it", lambda lack: lack.mode),
    "lacking_says": _of_lack("what the framework lacks", lambda lack: lack.says),
    "lacking_fix": _of_lack("what to do without it", lambda lack: lack.fix),
    "eight_bits": Quantity(
        "text",
        "the type of eight bits that --allow names and that GPU and framework run in this mode",
        _eight_bits,
        _nothing,
        gpu=True,
    ),
    "lacking_instead": _of_lack("a dtype that the framework has in this mode", lambda lack: lack.instead),
}
