"""Reading torch.export programs (.pt2): the graph is JSON inside a zip archive, with every shape in it.

`torch.export.load` would unpickle sample inputs and load the weights; the graph alone is read here, so no code runs
and torch need not be installed.
"""

from __future__ import annotations

import re

from convlint.errors import InputFault
from convlint.model.layer import Dtype
from convlint.model.network import Network
from convlint.model.runtime import Runtime
from convlint.readers import Reader, ReadOptions
from convlint.readers.dataflow import Flow, Origin, Written
from convlint.readers.torch.arguments import (
    LARGEST_NUMBER,
    MOST_OPERATIONS,
    Branches,
    Reads,
    arguments,
    channels_last,
    expression,
    flag,
    numbers,
    operator,
    owner,
    word,
)
from convlint.readers.torch.layers import Call, network_of
from convlint.readers.torch.operators import CONVOLUTIONS, role
from convlint.readers.torch.symbolic_size import Sizes
from convlint.readers.untrusted.bounded_json import MOST_BYTES, parse
from convlint.readers.untrusted.bounded_zip import open_zip, read_member
from convlint.readers.untrusted.json_tree import Node
from convlint.readers.untrusted.limits import MOST_AXES, MOST_SIZE, capped, refuse_layers
from convlint.report import InputError

# torch._export.serde.schema.ScalarType
_DTYPES = {
    1: Dtype.int8, 2: Dtype.int8, 6: Dtype.fp16, 7: Dtype.fp32, 8: Dtype.fp64, 13: Dtype.bf16,
    29: Dtype.fp8, 30: Dtype.fp8, 31: Dtype.fp8, 32: Dtype.fp8,
}  # fmt: skip
_GRAPH = re.compile(r"([^/]+/)?(models/[^/]+\.json|serialized_exported_program\.json)")
_SYMBOL = re.compile(r"Symbol\('(\w+)'|(\w+)$")


def read(path: str, options: ReadOptions) -> tuple[Network | None, tuple[InputError, ...]]:
    """The convolutions of an exported program, in graph order."""
    try:
        with open_zip(path, "torch.export") as archive:
            names = [name for name in archive.namelist() if _GRAPH.fullmatch(name)]
            if not names:
                raise InputFault("the archive holds no exported graph (compiled packages and checkpoints have none)")
            if len(names) > 1:
                raise InputFault(f"the archive holds {len(names)} models; export each to a file of its own")
            program = parse(read_member(archive, names[0], MOST_BYTES), names[0].rsplit("/", 1)[-1][-100:])
        network, messages = _Program(program, path).read(options)
    except InputFault as fault:
        return None, (InputError(path=path, message=fault.message),)
    return network, tuple(InputError(path=path, message=message) for message in capped(messages))


class _Program:
    """One exported graph."""

    def __init__(self, program: Node, path: str) -> None:
        self.path = path
        module = program.get("graph_module") if program.is_object else None
        graph = module.get("graph") if module is not None and module.is_object else None
        if module is None or graph is None or not graph.is_object:
            raise InputFault("not a torch.export program that convlint understands: it has no graph")
        self.nodes = graph.at("nodes").elements(MOST_OPERATIONS)
        self.tensors = graph.at("tensor_values")
        if not self.tensors.is_object:
            raise self.tensors.must_be("an object")
        specs = module.get("signature", "input_specs")
        inputs = [spec.get("user_input", "arg", "as_tensor") for spec in ([] if specs is None else specs.elements())]
        self.user_inputs = [tensor.at("name").text() for tensor in inputs if tensor is not None]
        self.symbols = Sizes()
        self.reads = Reads()

    def read(self, options: ReadOptions) -> tuple[Network, list[str]]:
        """The network, and what could not be resolved. Raises InputFault."""
        self._set_sizes(options)
        flow = Flow()
        origins: dict[str, Origin] = {name: Origin() for name in self.user_inputs}
        calls: list[Call] = []
        unknown: dict[str, None] = {}
        hidden: list[str] = []
        branches = Branches()
        for node in self.nodes:
            name = operator(node)
            job = role(name)
            names = [tensor for _, argument in arguments(node) for tensor in self.reads.of(argument)]
            outputs = [tensor for value in node.at("outputs").elements() for tensor in self.reads.of(value)]
            if job == "convolution":
                if len(names) < 2 or not outputs:
                    raise node.fault(f"({name}) does not read an input and weights and write a tensor")
                source = origins.get(names[0])
                if source is not None and source.direct is not None:
                    source.direct.readers.append(job)
                index, origin = flow.convolution(source)
                calls.append(self._call(name, node, names, outputs[0], source, flow.written[index]))
                origins[outputs[0]] = origin
                continue
            if branches.hide_convolutions(node):
                hidden.append(f"{name} has convolutions in its branches, which convlint does not look into")
            self._pass_on(flow, origins, names, outputs, job, name)
            if job == "unknown" and any(tensor in origins for tensor in names):
                unknown[name] = None
        refuse_layers(len(calls))
        layers, edges, messages = network_of(calls, unknown, self.path)
        messages += hidden
        if any(None in (layer.N, layer.D, layer.H, layer.W, layer.P, layer.Q) for layer in layers):
            messages.append(self._unresolved())
        runtime = Runtime(framework="pytorch")
        return Network(path=self.path, layers=layers, edges=edges, runtime=runtime), messages

    @staticmethod
    def _pass_on(
        flow: Flow, origins: dict[str, Origin], names: list[str], outputs: list[str], job: str | None, operator: str
    ) -> None:
        """An operation without a convolution writes what comes from wherever its inputs come from."""
        found: list[Origin] = []
        for name in names:
            read_from = origins.get(name)
            if read_from is None:
                continue
            if read_from.direct is not None:
                read_from.direct.readers.append(job or operator)
            found.append(read_from.past)
        if not found:
            return
        if job == "learned":
            for origin in found:
                flow.consume(origin)
        alone = len(found) == 1 and job != "learned"
        result = found[0] if alone else flow.merge(found, learned=job == "learned")
        origins.update(dict.fromkeys(outputs, result))

    def _call(
        self, operator: str, node: Node, names: list[str], output: str, source: Origin | None, written: Written
    ) -> Call:
        given = dict(arguments(node))
        transposed = CONVOLUTIONS[operator][3]
        turned = transposed if isinstance(transposed, bool) else flag(given.get("transposed"))
        data, weights = self.tensors.at(names[0]), self.tensors.at(names[1])
        weight = self._shape(names[1])
        dims = len(weight) - 2
        fixed = tuple(size for size in weight if size is not None)
        if len(fixed) != len(weight) or not 1 <= dims <= 3:
            raise InputFault(f"the weights of convolution {output!r} have no fixed shape")
        arrives, leaves = self._shape(names[0]), self._shape(output)
        if len(arrives) not in (dims + 1, dims + 2) or len(leaves) != len(arrives):
            raise node.fault(f"reads {len(arrives)} axes and writes {len(leaves)}, its weights have {len(weight)}")
        (groups,) = numbers(given.get("groups"), 1, 1, 1)
        channels = arrives[-dims - 1]
        reads = fixed[0] if turned else fixed[1] * groups
        if channels is not None and channels != reads:
            raise node.fault(f"reads {channels} channels, its weights and {groups} groups take {reads}")
        if fixed[0] % groups or (turned and fixed[1] * groups > MOST_SIZE):
            raise node.fault(f"has weights of {fixed[0]} by {fixed[1]} channels, which {groups} groups cannot share")
        modes = word(given.get("padding"))
        if modes not in (None, "same", "valid"):
            raise given["padding"].at("as_string").must_be("same or valid")
        module, modular = owner(node)
        dtype = data.at("dtype").integer(0, LARGEST_NUMBER)
        return Call(
            arrives=arrives, weight=fixed, output=leaves, bias="bias" in given and bool(self.reads.of(given["bias"])),
            stride=numbers(given.get("stride"), 1, dims, 1),
            padding=modes or numbers(given.get("padding"), 0, dims, 0),
            dilation=numbers(given.get("dilation"), 1, dims, 1), transposed=turned,
            output_padding=numbers(given.get("output_padding"), 0, dims, 0) if turned else (0,) * dims,
            groups=groups, dtype=_DTYPES.get(dtype), nhwc=channels_last(data) or channels_last(weights),
            owner=module, modular=modular, identity=names[1], place=None, source=source, written=written,
        )  # fmt: skip

    def _sizes(self, name: str) -> list[tuple[Node, int | None]]:
        """The sizes of a tensor as they are written, and their values where these are known."""
        sizes = self.tensors.at(name).at("sizes").elements(MOST_AXES)
        return [(size, self._size(size)) for size in sizes]

    def _size(self, size: Node) -> int | None:
        fixed = size.get("as_int")
        if fixed is not None:
            return fixed.integer(0, LARGEST_NUMBER)
        text = expression(size)
        return None if text is None else self.symbols.of(text)

    def _shape(self, name: str) -> tuple[int | None, ...]:
        """The sizes of a tensor that a convolution reads or writes."""
        sizes = self._sizes(name)
        for node, size in sizes:
            if size is not None and not 1 <= size <= MOST_SIZE:
                raise node.fault(f"must be a size of 1 to 2^31 - 1, not {size}")
        return tuple(size for _, size in sizes)

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
                if name not in named and (len(sizes) > 1 or [size for _, size in sizes] == [None]):
                    self._match(name, (options.batch,))  # a vector of sizes has no batch

    def _match(self, name: str, wanted: tuple[int, ...]) -> None:
        sizes = self.tensors.at(name).at("sizes").elements(MOST_AXES)
        if len(wanted) not in (1, len(sizes)):
            raise InputFault(f"input {name!r} has {len(sizes)} axes, --input gives it {len(wanted)}")
        for axis, (size, want) in enumerate(zip(sizes, wanted, strict=False)):
            symbol = _SYMBOL.match(expression(size) or "")
            known = self._size(size)
            if known is None and symbol:
                self.symbols.set(symbol[1] or symbol[2], want)
            elif known is not None and known != want:
                raise InputFault(
                    f"the program was exported with axis {axis} of input {name!r} fixed at {known}, not {want}; "
                    "export it again with dynamic_shapes"
                )

    def _unresolved(self) -> str:
        for name in self.user_inputs:
            sizes = [size for _, size in self._sizes(name)]
            if None in sizes:
                shape = "x".join("?" if size is None else str(size) for size in sizes)
                return f"input {name!r} is {shape}; set it with --batch N or --input {name}=Nx3x224x224"
        return "some sizes depend on values that are known only when the program runs"


READER = Reader(read=read)
