"""The items of a spec as operations of a network: one for each, in order, also for what could not be read."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from convlint.model.operation import Operation, OperationKind
from convlint.readers.spec.shapes import Shape, normalised

_KINDS: Mapping[str, OperationKind] = {  # by what `carrier_of` says
    "conv": "conv", "input": "input", "identity": "identity", "batchnorm": "batchnorm", "elementwise": "add",
    "concat": "concat", "pool": "resize", "resize_to": "resize", "upsample": "resize", "downsample": "resize",
    "pad": "resize", "pixel_shuffle": "pixel_shuffle", "pixel_unshuffle": "pixel_unshuffle", "declared": "reshape",
}  # fmt: skip
_GROUP_NORM = "groupnorm"


class Operations:
    """Grows with the items; what reads one names it."""

    def __init__(self) -> None:
        self.noted: list[Operation] = []
        self._number_of: dict[str, int] = {}

    def note(
        self, carrier: str, op: str, shape: Shape, inputs: Sequence[Shape], values: Mapping[str, Any], factor: int = 1,
        weights: int | None = None,
    ) -> None:  # fmt: skip
        """One item that hands on `shape`; `values` are its own, `op` is its text."""
        kind, groups, where = _KINDS[carrier], 1, ""
        if carrier == "identity" and normalised(op)[0] == _GROUP_NORM:
            kind, groups = ("identity", values["groups"]) if "groups" in values else ("reshape", 1)
        if kind == "reshape":
            where = f"{op} {shape.source}"
        self._add(
            shape.source,
            Operation(
                kind=kind, name=shape.source, inputs=tuple([self._number_of[source.source] for source in inputs]),
                layer=shape.producers[0] if kind == "conv" else None, weights=weights, C=shape.C,
                D=shape.D, H=shape.H, W=shape.W, dims=shape.dims or 2, factor=factor, groups=groups, where=where,
            ),
        )  # fmt: skip

    def unread(self, name: str) -> None:
        """An item of which nothing is known."""
        self._add(name, Operation(kind="reshape", name=name, where=f"what {name} is"))

    def _add(self, name: str, operation: Operation) -> None:
        self._number_of.setdefault(name, len(self.noted))
        self.noted.append(operation)

    def finished(self, read: Collection[str]) -> tuple[Operation, ...]:
        """All of them: what no other reads leaves the network, but for convolutions that nothing is wired to."""
        return tuple(
            replace(operation, output=True)
            if operation.name not in read and (operation.inputs or operation.kind != "conv")
            else operation
            for operation in self.noted
        )
