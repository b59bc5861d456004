"""Reading torch.export programs (.pt2): the graph is JSON inside a zip archive, with every shape in it.

`torch.export.load` would unpickle sample inputs and load the weights; the graph alone is read here, so no code runs
and torch need not be installed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from convlint.errors import InputFault
from convlint.model import Dtype, Network, Runtime
from convlint.readers.bounded_json import MOST_BYTES, entry, parse
from convlint.readers.bounded_zip import open_zip, read_member
from convlint.readers.dataflow import Flow, Origin
from convlint.readers.symbolic_size import evaluate
from convlint.readers.torch_layers import Call, network_of
from convlint.readers.torch_operators import CONVOLUTIONS, role
from convlint.report import InputError

if TYPE_CHECKING:
    from convlint.readers import ReadOptions

# torch._export.serde.schema.ScalarType
_DTYPES = {
    1: Dtype.int8, 2: Dtype.int8, 6: Dtype.fp16, 7: Dtype.fp32, 8: Dtype.fp64, 13: Dtype.bf16,
    29: Dtype.fp8, 30: Dtype.fp8, 31: Dtype.fp8, 32: Dtype.fp8,
}  # fmt: skip
_GRAPH = re.compile(r"([^/]+/)?(models/[^/]+\.json|serialized_exported_program\.json)")
_TARGET = re.compile(r"(?:torch\.ops\.)?(\w+)\.(\w+)(?:\.\w+)?")


def read(path: str, options: ReadOptions) -> tuple[Network | None, tuple[InputError, ...]]:
    """The convolutions of an exported program, in graph order."""
    try:
        with open_zip(path, "torch.export") as archive:
            names = [name for name in archive.namelist() if _GRAPH.fullmatch(name)]
            if not names:
                raise InputFault("the archive holds no exported graph (compiled packages and checkpoints have none)")
            if len(names) > 1:
                raise InputFault(f"the archive holds {len(names)} models; export each to a file of its own")
            program = parse(read_member(archive, names[0], MOST_BYTES), names[0])
        network, messages = _Program(program, path).read(options)
    except InputFault as fault:
        return None, (InputError(path=path, message=fault.message),)
    except (TypeError, KeyError, AttributeError, IndexError, ValueError, RecursionError):
        return None, (InputError(path=path, message="not a torch.export program that convlint understands"),)
    return network, tuple(InputError(path=path, message=message) for message in messages)


class _Program:
    """One exported graph."""

    def __init__(self, program: Any, path: str) -> None:
        self.path = path
        graph = entry(program, "graph_module", "graph")
        signature = entry(program, "graph_module", "signature")
        if not isinstance(graph, dict) or not isinstance(graph.get("tensor_values"), dict):
            raise InputFault("not a torch.export program that convlint understands: it has no graph")
        self.nodes = graph["nodes"]
        self.tensors: dict[str, Any] = graph["tensor_values"]
        specs = entry(signature, "input_specs") or []
        self.user_inputs = [
            name for spec in specs if (name := entry(spec, "user_input", "arg", "as_tensor", "name")) is not None
        ]
        self.symbols: dict[str, int] = {}

    def read(self, options: ReadOptions) -> tuple[Network, list[str]]:
        """The network, and what could not be resolved. Raises InputFault."""
        self._set_sizes(options)
        flow = Flow()
        origins: dict[str, Origin] = {name: Origin() for name in self.user_inputs}
        calls: list[Call] = []
        unknown: dict[str, None] = {}
        hidden: list[str] = []
        for node in self.nodes:
            match = _TARGET.fullmatch(str(node["target"]))
            operator = f"{match[1]}::{match[2]}" if match else str(node["target"])
            job = role(operator)
            names = [name for value in node["inputs"] for name in _tensor_names(value["arg"])]
            outputs = [name for value in node["outputs"] for name in _tensor_names(value)]
            if job == "convolution":
                source = origins.get(names[0])
                if source is not None and source.direct is not None:
                    source.direct.readers.append(job)
                index, origin = flow.convolution(source)
                calls.append(self._call(operator, node, names, outputs[0], source, flow.written[index]))
                origins[outputs[0]] = origin
                continue
            if _hides_convolutions(node):
                hidden.append(f"{operator} has convolutions in its branches, which convlint does not look into")
            found: list[Origin] = []
            for name in names:
                read_from = origins.get(name)
                if read_from is None:
                    continue
                if read_from.direct is not None:
                    read_from.direct.readers.append(job or operator)
                found.append(read_from.past)
            if not found:
                continue
            if job == "unknown":
                unknown[operator] = None
            if job == "learned":
                for origin in found:
                    flow.consume(origin)
            alone = len(found) == 1 and job != "learned"
            result = found[0] if alone else flow.merge(found, learned=job == "learned")
            origins.update(dict.fromkeys(outputs, result))
        layers, edges, messages = network_of(calls, unknown, self.path)
        messages += hidden
        if any(None in (layer.N, layer.D, layer.H, layer.W, layer.P, layer.Q) for layer in layers):
            messages.append(self._unresolved())
        runtime = Runtime(framework="pytorch")
        return Network(path=self.path, layers=layers, edges=edges, runtime=runtime), messages

    def _call(self, operator: str, node: Any, names: list[str], output: str, source: Any, written: Any) -> Call:
        given = {value["name"]: value["arg"] for value in node["inputs"]}
        transposed = CONVOLUTIONS[operator][3]
        data, weight = self.tensors[names[0]], self.tensors[names[1]]
        turned = transposed if isinstance(transposed, bool) else _value(given.get("transposed"), False)
        owner, modular = _owner(node)
        sizes = self._sizes(names[1])
        if None in sizes or not 3 <= len(sizes) <= 5:
            raise InputFault(f"the weights of convolution {output!r} have no fixed shape")
        return Call(
            arrives=self._sizes(names[0]), weight=tuple(size for size in sizes if size is not None),
            output=self._sizes(output), bias="as_tensor" in given.get("bias", {}),
            stride=_value(given.get("stride"), 1), padding=_value(given.get("padding"), 0),
            dilation=_value(given.get("dilation"), 1), transposed=bool(turned),
            output_padding=_value(given.get("output_padding"), 0) if turned else 0,
            groups=_value(given.get("groups"), 1), dtype=_DTYPES.get(data["dtype"]),
            nhwc=_channels_last(data) or _channels_last(weight), owner=owner, modular=modular, identity=names[1],
            place=None, source=source, written=written,
        )  # fmt: skip

    def _sizes(self, name: str) -> tuple[int | None, ...]:
        return tuple(_size(size, self.symbols) for size in self.tensors[name]["sizes"])

    def _set_sizes(self, options: ReadOptions) -> None:
        """Gives symbolic sizes what `--batch` and `--input` say. Raises InputFault where a fixed size differs."""
        from convlint.readers.input_shapes import by_name, parse_shape

        named = by_name(options.inputs, self.user_inputs)
        for name, text in named.items():
            if name not in self.user_inputs:
                raise InputFault(
                    f"the program has no input {name!r}; it has {', '.join(map(repr, self.user_inputs[:8]))}"
                )
            self._match(name, parse_shape(text, options.batch).sizes)
        if options.batch is not None:
            for name in self.user_inputs:
                sizes = self._sizes(name)
                if name not in named and (len(sizes) > 1 or sizes == (None,)):  # a vector of sizes has no batch
                    self._match(name, (options.batch,))

    def _match(self, name: str, wanted: tuple[int, ...]) -> None:
        sizes = self.tensors[name]["sizes"]
        if len(wanted) not in (1, len(sizes)):
            raise InputFault(f"input {name!r} has {len(sizes)} axes, --input gives it {len(wanted)}")
        for axis, (size, want) in enumerate(zip(sizes, wanted, strict=False)):
            symbol = re.match(r"Symbol\('(\w+)'|(\w+)$", str(entry(size, "as_expr", "expr_str") or ""))
            known = _size(size, self.symbols)
            if known is None and symbol:
                self.symbols[symbol[1] or symbol[2]] = want
            elif known is not None and known != want:
                raise InputFault(
                    f"the program was exported with axis {axis} of input {name!r} fixed at {known}, not {want}; "
                    "export it again with dynamic_shapes"
                )

    def _unresolved(self) -> str:
        for name in self.user_inputs:
            sizes = self._sizes(name)
            if None in sizes:
                shape = "x".join("?" if size is None else str(size) for size in sizes)
                return f"input {name!r} is {shape}; set it with --batch N or --input {name}=Nx3x224x224"
        return "some sizes depend on values that are known only when the program runs"


def _size(size: Any, symbols: dict[str, int]) -> int | None:
    fixed = entry(size, "as_int")
    if isinstance(fixed, int):
        return fixed
    expression = entry(size, "as_expr", "expr_str")
    return evaluate(expression, symbols) if isinstance(expression, str) else None


def _tensor_names(argument: Any) -> list[str]:
    """The tensors of one serialized argument."""
    single = entry(argument, "as_tensor", "name")
    if single is not None:
        return [single]
    several = entry(argument, "as_tensors") or entry(argument, "as_optional_tensors") or []
    return [
        name for value in several if (name := entry(value, "name") or entry(value, "as_tensor", "name")) is not None
    ]


def _hides_convolutions(node: Any) -> bool:
    for value in node["inputs"]:
        for inner in entry(value, "arg", "as_graph", "graph", "nodes") or ():
            match = _TARGET.fullmatch(str(inner["target"]))
            if (match and role(f"{match[1]}::{match[2]}") == "convolution") or _hides_convolutions(inner):
                return True
    return False


def _value(argument: Any, default: Any) -> Any:
    """The plain value of a serialized argument: as_int, as_ints, as_bool, as_string."""
    if not isinstance(argument, dict) or "as_none" in argument:
        return default
    return next((argument[key] for key in ("as_int", "as_ints", "as_bool", "as_string") if key in argument), default)


def _owner(node: Any) -> tuple[str | None, bool]:
    """The qualified name of the module that a node belongs to, and whether that is a convolution itself."""
    stack = str(entry(node, "metadata", "nn_module_stack") or "")
    if not stack:
        return None, False
    parts = stack.rsplit(";", 1)[-1].split(",")
    name = re.sub(r"@\d+$", "", parts[1]) if len(parts) > 1 else ""
    return name.removeprefix("L['self'].").removeprefix("L__self__."), ".conv.Conv" in parts[-1] or "Conv" in parts[-1]


def _channels_last(tensor: Any) -> bool:
    """Whether the strides of a 4- or 5-dimensional tensor run over the channels fastest."""
    strides = [entry(stride, "as_int") for stride in tensor.get("strides", [])]
    sizes = [entry(size, "as_int") for size in tensor.get("sizes", [])]
    if len(strides) not in (4, 5) or strides[1] != 1:
        return False
    return strides[-1] == sizes[1] != 1 and any(size != 1 for size in sizes[2:])
