"""One value of a spec that must become another."""

from __future__ import annotations

from msgspec import Struct


class Change(Struct, frozen=True, gc=False):
    """One value of a spec that must become another.

    `layer` counts the items of `layers:`, convolutions or not; None is for a setting of the whole network, whose
    `field` is then such as "runtime.tf32". Otherwise `field` is a letter of the guide, groups, dtype, layout, bias.
    PadH alone changes both sides where they are equal; so do PadD and PadW.
    """

    layer: int | None
    field: str
    value: int | str | bool
