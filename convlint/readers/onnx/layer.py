"""One ONNX convolution node, with the shapes around it, as a layer in the guide's letters."""

from __future__ import annotations

from typing import Any

from convlint.model.layer import ConvLayer, Dtype, output_size, same_padding, transposed_output_size
from convlint.readers.onnx.channels import NORMS, WEIGHT_INPUT, GraphScope, Shape
from convlint.readers.onnx.file import text
from convlint.readers.onnx.graph import GraphConv

# onnx.TensorProto.DataType
_DTYPES = {
    1: Dtype.fp32, 10: Dtype.fp16, 16: Dtype.bf16, 11: Dtype.fp64, 2: Dtype.int8, 3: Dtype.int8,
    17: Dtype.fp8, 18: Dtype.fp8, 19: Dtype.fp8, 20: Dtype.fp8,
}  # fmt: skip
_QUANTIZED = frozenset({2, 3, 17, 18, 19, 20})
_INTEGER = frozenset({"ConvInteger", "QLinearConv"})
_BIAS_INPUT = {"Conv": 2, "ConvTranspose": 2, "QLinearConv": 8}
# the fields of each axis: size, output, taps, stride, padding before and after, dilation, output padding
_AXES = (
    ("D", "Z", "T", "StrideD", "PadD", "PadD_end", "DilD", "OutPadD"),
    ("H", "P", "R", "U", "PadH", "PadH_end", "DilH", "OutPadH"),
    ("W", "Q", "S", "V", "PadW", "PadW_end", "DilW", "OutPadW"),
)


def build_layer(
    site: GraphConv, *, name: str, path: str, first: bool, dequantized: dict[str, str], trusted: bool
) -> tuple[ConvLayer, str | None]:
    """The layer, and what is wrong with it, if anything. Sizes that are not `trusted` are left unknown."""
    node, scope = site.node, site.scope
    if not node.input or not node.output:
        return _bare(site, name, path), f"{node.op_type} {name!r} reads or writes nothing"
    op, inputs = node.op_type, list(node.input)
    attributes = {attribute.name: attribute for attribute in node.attribute}
    at = WEIGHT_INPUT[op]
    weight_name = inputs[at] if at < len(inputs) else ""
    weight = scope.shape(weight_name) if weight_name else None
    data: Shape | None = scope.shape(inputs[0]) if trusted else None
    rank = len(weight or data or ()) - 2
    if not 1 <= rank <= 3:
        if not trusted and weight is None:
            rank = 2
        else:
            return _bare(site, name, path), f"{op} {name!r}: only 1-D, 2-D and 3-D convolutions are known"
    if weight is not None and data is not None and len(weight) != len(data):
        return _bare(site, name, path), f"{op} {name!r}: its input has {len(data)} axes, its weights {len(weight)}"
    groups = attributes["group"].i if "group" in attributes else 1
    if groups < 1:
        return _bare(site, name, path), f"{op} {name!r}: group is {groups}"
    transposed = op == "ConvTranspose"
    channels, filters = (weight[0], weight[1]) if weight else (None, None)
    if transposed:
        C, K = channels, _times(filters, groups)
    else:
        C, K = _times(filters, groups), channels
    fault = None
    if data is not None:
        if C is not None and data[1] is not None and data[1] != C:
            fault = f"{op} {name!r}: its input has {data[1]} channels, its weights and {groups} groups want {C}"
        C = C or data[1]
    axes = _axes(attributes, rank, weight, data, scope.shape(node.output[0]) if trusted else None, transposed)
    if isinstance(axes, str):
        return _bare(site, name, path), f"{op} {name!r}: {axes}"
    sizes, wrong = axes
    bias_at = _BIAS_INPUT.get(op)
    readers = site.readers.readers
    layer = ConvLayer(
        name=name, path=path, op="conv_transpose" if transposed else "conv", dims=rank, N=data[0] if data else None,
        C=C, K=K, groups=groups, dtype=_dtype(op, inputs, weight_name, scope, dequantized),
        node=text(node.name) or None, bias=None if bias_at is None else len(inputs) > bias_at and inputs[bias_at] != "",
        norm_follows=len(readers) == 1 and readers[0] in NORMS, first=first, head=site.readers.head, calls=site.calls,
        operator=op if op in _INTEGER else "",
        **sizes,
    )  # fmt: skip
    return layer, fault or (wrong and f"{op} {name!r}: {wrong}")


def _bare(site: GraphConv, name: str, path: str) -> ConvLayer:
    return ConvLayer(name=name, path=path, node=text(site.node.name) or None, D=None, Z=None, T=None)


def _times(size: int | None, factor: int) -> int | None:
    return None if size is None else size * factor


def _ints(attributes: dict[str, Any], name: str, default: list[int]) -> list[int]:
    return list(attributes[name].ints) if name in attributes else default


def _axes(
    attributes: dict[str, Any], rank: int, weight: Shape | None, data: Shape | None, out: Shape | None,
    transposed: bool,
) -> tuple[dict[str, Any], str | None] | str:  # fmt: skip
    """The fields that belong to the axes, and where the graph disagrees with them; text where nothing fits."""
    kernel: list[int | None] = list(weight[2:]) if weight else [None] * rank
    declared = _ints(attributes, "kernel_shape", [])
    strides = _ints(attributes, "strides", [1] * rank)
    dilations = _ints(attributes, "dilations", [1] * rank)
    pads = _ints(attributes, "pads", [0] * 2 * rank)
    extra = _ints(attributes, "output_padding", [0] * rank)
    wanted = _ints(attributes, "output_shape", [])[-rank:]
    auto = attributes["auto_pad"].s.decode("ascii", "replace") if "auto_pad" in attributes else "NOTSET"
    if (
        len(declared) not in (0, rank) or len(strides) != rank or len(dilations) != rank or len(pads) != 2 * rank
        or len(extra) != rank or len(wanted) not in (0, rank) or min(*strides, *dilations) < 1
    ):  # fmt: skip
        return "its strides, dilations, pads and kernel_shape do not fit its weights"
    fields: dict[str, Any] = {}
    wrong: str | None = None
    for i in range(rank):
        taps = kernel[i] if kernel[i] is not None or not declared else declared[i]
        if declared and taps != declared[i]:
            wrong = f"kernel_shape is {declared}, but its weights are {'x'.join(map(str, weight or ()))}"
        size = data[2 + i] if data else None
        begin: int | None = pads[i]
        end: int | None = pads[rank + i]
        if auto == "VALID":
            begin = end = 0
        elif auto.startswith("SAME") and not transposed:
            both = same_padding(size, stride=strides[i], dilation=dilations[i], taps=taps) if taps else None
            begin, end = both if both else (None, None)
            if auto == "SAME_LOWER":
                begin, end = end, begin
        elif wanted or auto.startswith("SAME"):
            target = wanted[i] if wanted else _times(size, strides[i])
            begin = end = None
            if target is not None and size is not None and taps is not None:
                total = strides[i] * (size - 1) + extra[i] + dilations[i] * (taps - 1) + 1 - target
                if total < 0:  # the output is larger than the taps reach
                    extra[i], total = extra[i] - total, 0
                begin, end = total // 2, total - total // 2
                if auto != "SAME_UPPER":
                    begin, end = end, begin
        result = out[2 + i] if out is not None and len(out) == rank + 2 else None
        computed: int | None = None
        if size is not None and taps is not None and begin is not None and end is not None:
            if transposed:
                computed = transposed_output_size(
                    size, stride=strides[i], pad=begin + end, dilation=dilations[i], taps=taps, output_padding=extra[i]
                )
            else:
                computed = output_size(size, stride=strides[i], pad=begin + end, dilation=dilations[i], taps=taps)
            if result is not None and computed != result:
                wrong = f"its output is {computed} long by the formula, but {result} by the graph"
        values = (
            size, result if computed is None else computed, taps, strides[i], begin, end, dilations[i], extra[i],
        )  # fmt: skip
        fields.update(zip(_AXES[3 - rank + i], values, strict=True))
    if rank == 1:
        fields.update(H=1, P=1, R=1)
    return fields, wrong


def _dtype(
    op: str, inputs: list[str], weight_name: str, scope: GraphScope, dequantized: dict[str, str]
) -> Dtype | None:
    """What multiplies: the quantized type where both operands come straight out of DequantizeLinear."""
    data_type = scope.element_type(inputs[0])
    if op in ("Conv", "ConvTranspose") and inputs[0] in dequantized and weight_name in dequantized:
        types = scope.element_type(dequantized[inputs[0]]), scope.element_type(dequantized[weight_name])
        if types[0] in _QUANTIZED and types[1] in _QUANTIZED:
            data_type = types[0]
    return _DTYPES.get(data_type)
