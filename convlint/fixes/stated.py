"""Which values of a file have to be written anew for what becomes of a network; the rest follows by itself."""

from __future__ import annotations

from collections.abc import Mapping

from convlint.fixes.change import Change
from convlint.model.channels import Channels
from convlint.model.network import Network
from convlint.report import Scalar

_MOST_GUESSED = 4  # channels up to which a layer that stands alone is taken for the first

Claims = Mapping[tuple[int | None, str], tuple[Scalar, tuple[int, ...]]]  # layer, field -> value, wishes


class Stated:
    """The `changes` of one network's file, each with the wishes that need it, by number."""

    def __init__(self, network: Network) -> None:
        self.changes: dict[Change, tuple[int, ...]] = {}
        self._network = network
        numbered = reversed(list(enumerate(network.operations)))
        # layer -> the operation that it is, of several the first
        self._position_of = {each.layer: number for number, each in numbered if each.layer is not None}

    def _note(self, position: int | None, field: str, value: Scalar, numbers: tuple[int, ...]) -> None:
        if isinstance(value, float):
            value = int(value)
        change = Change(layer=position, field=field, value=value)
        known = self.changes.setdefault(change, numbers)
        if known is not numbers:  # thousands of changes may share thousands of wishes
            self.changes[change] = tuple(dict.fromkeys((*known, *numbers)))

    def claims(self, claims: Claims) -> None:
        """What layers get that is no width of others, and the runtime (None)."""
        carried = None
        for (index, field), (value, numbers) in claims.items():
            if index is None:
                self._note(None, field, value, numbers)
            elif field == "N" and "N" not in self._network.layers[index].spans:
                carried = carried or (value, numbers)
            else:
                self._note(self._position_of[index], field, value, numbers)
        for position, operation in enumerate(self._network.operations if carried is not None else ()):
            if operation.kind == "input" and carried is not None:
                self._note(position, "N", *carried)

    def widths(
        self, channels: Channels, widths: Mapping[int, int], wanted: Mapping[int, tuple[int, ...]],
        by_layer: Mapping[int, Mapping[str, int]],
    ) -> None:  # fmt: skip
        """What states the channels of groups that get other `widths`; `by_layer` is what these make of layers."""
        network = self._network
        fed = {index for edge in network.edges for index in edge.producers}  # the layers that others read
        behind: dict[int, tuple[int, ...]] = {}  # layer -> wishes
        for group, width in widths.items():
            for index in channels.groups[group].layers:
                behind[index] = (*behind.get(index, ()), *wanted[group])
            for position in channels.groups[group].inputs:
                self._note(position, "C", width, wanted[group])
        for index, changes in by_layer.items():
            layer, position = network.layers[index], self._position_of[index]
            for field, value in changes.items():
                if field in layer.spans and getattr(layer, field) != value:
                    self._note(position, field, value, behind[index])
            alone = not network.operations[position].inputs and index not in fed
            if layer.first and alone and "first" not in layer.spans and changes.get("C", 0) > _MOST_GUESSED:
                self._note(position, "first", True, behind[index])
