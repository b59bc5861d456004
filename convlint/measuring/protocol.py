"""What the parent asks of the child that times, and what it answers: data, checked on both sides."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from convlint.measuring.device import Device, Kind
from convlint.measuring.workload import Workload


class Order(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Time `workload` for about `seconds`; without one, say what the device is."""

    device: Kind
    workload: Workload | None = None
    seconds: float = 0.0


class Timing(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The time of one call in us: the median of `runs` blocks; `spread` is the width of their middle half over it."""

    us: float
    spread: Annotated[float, Meta(ge=0)]
    runs: Annotated[int, Meta(ge=1)]


class Answer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of the three. After a `fatal` error the process is of no use any more.

    `clock` is what the SM clock was after the last block, in MHz, 0 where nothing says it.
    """

    device: Device | None = None
    timing: Timing | None = None
    error: str = ""
    fatal: bool = False
    clock: int = 0


encode = msgspec.json.encode
order_of = msgspec.json.Decoder(Order).decode
answer_of = msgspec.json.Decoder(Answer).decode
