"""A plan: the network's times and sizes, and the steps from what it is to what it could be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

from convlint.model.layer import Mode
from convlint.model.network import Network
from convlint.report import Finding, Scalar

Kind = Literal["runtime", "dtype", "layout", "channels"]  # of a change


class State(Struct, frozen=True, kw_only=True):
    """A network at some point of a plan: the time of one step at today's batch in us, and its sizes.

    `parameters` and `flops`, those of one forward pass at today's batch, are None where a size is unknown; `grade` is
    None where a layer's time is, and the same ideal over another time in all states of one plan.
    """

    time_us: float
    grade: str | None
    parameters: int | None
    flops: int | None


class Step(Struct, frozen=True, kw_only=True):
    """One step: what it changes, and the network before and after it.

    `kinds` are those of the changes that make it up, which only pay together where there are several. `by_layer` has
    what every layer gets; `set` what all of them share, and settings of the runtime. It is safe where it changes
    neither the network nor its weights; where it `fills_up` an input with zeros, no result changes.
    """

    describe: str
    kinds: tuple[Kind, ...]
    safety: Literal["safe", "unsafe"]
    fills_up: bool
    layers: tuple[str, ...]
    set: Mapping[str, Scalar]
    by_layer: tuple[Mapping[str, Scalar], ...]
    before: State
    after: State


class Plan(Struct, frozen=True, kw_only=True):
    """What to change in one network on one GPU, step by step.

    `network` is the network with all of it, and with the settings of `unpriced`. `without_time` are the layers that no
    time is known of, by their place, `unpriced` are findings whose fix has no price, `notes` what else has to be said.
    `is_reached`: whether the time asked for is, None where none was.
    """

    path: str
    gpu: str
    mode: Mode
    batch: int | None
    now: State
    after: State
    steps: tuple[Step, ...]
    network: Network
    is_reached: bool | None = None
    target_us: float | None = None
    without_time: tuple[int, ...] = ()
    unpriced: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = field(default_factory=tuple)
