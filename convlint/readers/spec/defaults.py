"""The `defaults` block of a spec: what its layers leave out, read as layers of 1, 2 or 3 dimensions read it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from convlint.errors import InputFault
from convlint.files.located_yaml import Value, fault
from convlint.readers.spec.fields import Fields, read_fields
from convlint.readers.spec.layer import dims_of

_OF_ONE_LAYER = ("name", "input", "inputs", "from", "weights", "op", "type", "copied")


class Defaults:
    """Fields by number of dimensions. Each error goes to `report` once, however many layers meet it."""

    def __init__(
        self, values: Mapping[str, Value], report: Callable[[InputFault], None], dims: int | None = None
    ) -> None:
        self.values, self.dims = values, dims
        self._report = report
        self._fields: dict[int, Fields] = {}
        self._said: set[tuple[str, int | None, int | None]] = set()

    @staticmethod
    def read(value: Value | None, report: Callable[[InputFault], None]) -> Defaults:
        """The defaults of a spec; none where there are none."""
        if value is None or value.is_null:
            return Defaults({}, report)
        if not isinstance(value.data, dict):
            report(fault(f"defaults must be a mapping, not {value.kind}", value.span))
            return Defaults({}, report)
        allowed = {}
        for key, item in value.data.items():
            if key in _OF_ONE_LAYER:
                report(fault(f"{key} cannot be a default", item.key_span or item.span))
            else:
                allowed[key] = item
        dims = None
        try:
            dims = dims_of(allowed, "conv")
        except InputFault as error:
            report(error)
        return Defaults(allowed, report, dims)

    def of(self, dims: int) -> Fields:
        """The defaults of a layer of so many dimensions."""
        fields = self._fields.get(dims)
        if fields is None:
            fields = self._fields[dims] = read_fields(self.values, dims, self._say, where="defaults")
        return fields

    def check(self) -> None:
        """Reports the errors of defaults that no layer has met."""
        if not self._fields:
            self.of(self.dims or 2)

    def _say(self, error: InputFault) -> None:
        key = (error.message, error.line, error.column)
        if key not in self._said:
            self._said.add(key)
            self._report(error)
