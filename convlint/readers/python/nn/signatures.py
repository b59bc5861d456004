"""What a framework's convolution is constructed with: its parameters by the names that records have for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field


class Signature(Struct, frozen=True):
    """The parameters of a framework's convolution, in their order, by the names that records have for them.

    `names` has what the framework itself calls those that records call otherwise. Arguments behind the first
    `positional` stand at other places in other versions of it: a call that has any says little.
    """

    framework: str
    op: Literal["conv", "conv_transpose"]
    dims: int
    parameters: tuple[str, ...]
    bias: str  # the name of the parameter that turns it on or off
    names: Mapping[str, str] = field(default_factory=dict)
    positional: int = 99
    foreign: frozenset[str] = frozenset()  # keywords of an older version, in which the others mean something else
    defaults: Mapping[str, str] = field(default_factory=dict)  # that differ from those of most: SAME in flax

    def parameter(self, keyword: str) -> str:
        """What records call the parameter of that name."""
        return self.names.get(keyword, keyword)
