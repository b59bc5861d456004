"""What is known of the values of one ONNX graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import onnx

Shape = tuple[int | None, ...]


class Scope:
    """What is known of the values of one graph: shapes, element types, stored tensors. Looks outward if need be."""

    __slots__ = ("outer", "tensors", "values")

    def __init__(self, graph: onnx.GraphProto, outer: Scope | None = None) -> None:
        self.values: dict[str, Any] = {value.name: value for value in graph.value_info}
        for declared in (graph.input, graph.output):
            self.values.update({value.name: value for value in declared})
        self.tensors: dict[str, Any] = {tensor.name: tensor for tensor in graph.initializer}
        self.outer = outer

    def shape(self, name: str) -> Shape | None:
        """Sizes of a value, None where unknown; None where even the rank is."""
        tensor = self.tensors.get(name)
        if tensor is not None:
            return tuple([size if size > 0 else None for size in tensor.dims])
        value = self.values.get(name)
        if value is None:
            return self.outer.shape(name) if self.outer is not None else None
        kind = value.type.tensor_type
        if not kind.HasField("shape"):
            return None
        # an axis without a value reads as 0, and so does a symbolic one
        return tuple([size if (size := axis.dim_value) > 0 else None for axis in kind.shape.dim])

    def element_type(self, name: str) -> int:
        """onnx.TensorProto.DataType of a value; 0 where unknown."""
        tensor = self.tensors.get(name)
        if tensor is not None:
            return int(tensor.data_type)
        value = self.values.get(name)
        if value is None:
            return self.outer.element_type(name) if self.outer is not None else 0
        return int(value.type.tensor_type.elem_type)

    def tensor(self, name: str) -> Any:
        """The stored tensor of that name, or None."""
        found = self.tensors.get(name)
        return self.outer.tensor(name) if found is None and self.outer is not None else found
