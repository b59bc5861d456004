"""The reader of torch.export programs (.pt2), whose graph is JSON in a zip archive, with every shape.

`torch.export.load` would unpickle sample inputs and load the weights. Here only the graph is read, so that no code runs
and torch need not be installed.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from convlint.model.errors import InputFault
from convlint.model.layer import Dtype
from convlint.model.network import Network
from convlint.model.report import InputError
from convlint.model.runtime import Runtime
from convlint.readers import Reader, ReadOptions
from convlint.readers.bounded_json import MOST_BYTES, MOST_SIZE, Node, capped, parse, refuse_layers
from convlint.readers.bounded_zip import open_zip, read_member
from convlint.readers.operations import ConvFlow, ConvOutput, ValueOrigin
from convlint.readers.torch.arguments import (
    CONVOLUTIONS,
    LARGEST_NUMBER,
    MOST_OPERATIONS,
    VIEWS,
    Branches,
    ProgramTensors,
    Reads,
    arguments,
    channels_last,
    flag,
    line,
    numbers,
    operator,
    owner,
    plain_value,
    role,
    word,
)
from convlint.readers.torch.kinds import writes_in_place
from convlint.readers.torch.layers import ConvCall, TracedOperations, network_of, unbatched

# torch._export.serde.schema.ScalarType
_DTYPES = {
    1: Dtype.int8, 2: Dtype.int8, 6: Dtype.fp16, 7: Dtype.fp32, 8: Dtype.fp64, 13: Dtype.bf16,
    29: Dtype.fp8, 30: Dtype.fp8, 31: Dtype.fp8, 32: Dtype.fp8,
}  # fmt: skip
_GRAPH = re.compile(r"([^/]+/)?(models/[^/]+\.json|serialized_exported_program\.json)")
_HANDED_OUT = ("user_output", "loss_output", "user_input_mutation")


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
        network, messages = _GraphReader(program, path).read(options)
    except InputFault as fault:
        return None, (InputError(path=path, message=fault.message),)
    return network, tuple(InputError(path=path, message=message) for message in capped(messages))


class _GraphReader:
    """One pass over an exported graph."""

    def __init__(self, program: Node, path: str) -> None:
        self.path = path
        module = program.get("graph_module") if program.is_object else None
        graph = module.get("graph") if module is not None and module.is_object else None
        if module is None or graph is None or not graph.is_object:
            raise InputFault("not a torch.export program that convlint understands: it has no graph")
        self.nodes = graph.at("nodes").elements(MOST_OPERATIONS)
        specs = module.get("signature", "input_specs")
        inputs = [spec.get("user_input", "arg", "as_tensor") for spec in ([] if specs is None else specs.elements())]
        user_inputs = [tensor.at("name").text() for tensor in inputs if tensor is not None]
        self.tensors = ProgramTensors(graph.at("tensor_values"), user_inputs)
        self.reads = Reads()
        self.outputs = self._outputs(module.get("signature", "output_specs"), graph.get("outputs"))

    def read(self, options: ReadOptions) -> tuple[Network, list[str]]:
        """The network, and what could not be resolved. Raises InputFault."""
        self.tensors.set_sizes(options)
        flow = ConvFlow()
        operations = TracedOperations()
        origins: dict[str, ValueOrigin] = {}
        for name in self.tensors.inputs:
            origins[name] = ValueOrigin()
            operations.input((name, self.tensors.any_shape(name)), name)
        bases: dict[str, str] = {}  # a view -> the tensor that it is a view of
        calls: list[ConvCall] = []
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
                operations.convolution(len(calls) - 1, calls[-1], names, outputs[0], partial(line, node))
                origins[outputs[0]] = origin
                continue
            if branches.hide_convolutions(node):
                hidden.append(f"{name} has convolutions in its branches, which convlint does not look into")
            writes = job is None and writes_in_place(name) and bool(names)
            base = bases.get(names[0]) if writes else None
            operations.note(
                name, names, [(output, self.tensors.any_shape(output)) for output in outputs],
                partial(_argument, node), partial(line, node),
                in_place=writes, base=None if base is None else (base, self.tensors.any_shape(base)),
                constants=[self.tensors.any_shape(tensor) for tensor in names if not operations.knows(tensor)],
                view=name in VIEWS,
            )  # fmt: skip
            self._pass_on(flow, origins, names, outputs, job, name)
            if writes and outputs:
                operations.alias(names[0], outputs[0])
            if base is not None and outputs and outputs[0] in origins:  # the base has now also what was written
                before = (origins[base].past,) if base in origins else ()
                origins[base] = flow.merge((origins[outputs[0]], *before))
            if names and (base is not None or name in VIEWS):  # a view of a view is one of the same base
                bases.update(dict.fromkeys(outputs, bases.get(names[0], names[0])))
            if job == "unknown" and any(tensor in origins for tensor in names):  # not of constants alone
                unknown[name] = None
        refuse_layers(len(calls))
        layers, edges, messages = network_of(calls, unknown, self.path)
        messages += hidden
        if any(None in (layer.N, layer.D, layer.H, layer.W, layer.P, layer.Q) for layer in layers):
            messages.append(self.tensors.unresolved())
        operations.outputs(self.outputs or None)
        axes = [len(shape) for name in self.tensors.inputs if (shape := self.tensors.any_shape(name)) is not None]
        found = operations.finished(calls, layers)
        network = Network(
            path=self.path, layers=layers, edges=edges, operations=found, runtime=Runtime(framework="pytorch"),
            unbatched=unbatched(calls, axes), whole=bool(found) and operations.whole and not hidden,
        )  # fmt: skip
        return network, messages

    def _outputs(self, specs: Node | None, outputs: Node | None) -> list[str]:
        """The tensors that the program returns, without the new values of its buffers, which it returns as well."""
        given = [
            argument
            for spec in ([] if specs is None else specs.elements())
            for kind in _HANDED_OUT
            if (argument := spec.get(kind, "arg")) is not None
        ]
        if specs is None and outputs is not None:  # without a signature, all outputs count
            given = outputs.elements()
        alone = [argument.at("name").text() for argument in given if argument.get("name") is not None]
        return alone + [name for argument in given for name in self.reads.of(argument)]

    @staticmethod
    def _pass_on(
        flow: ConvFlow,
        origins: dict[str, ValueOrigin],
        names: list[str],
        outputs: list[str],
        job: str | None,
        operator: str,
    ) -> None:
        """Gives the results of an operation that is no convolution the origins of its inputs."""
        sources = [origins[name] for name in names if name in origins]
        for source in sources:
            if source.direct is not None:
                source.direct.readers.append(job or operator)
        if not sources:
            return
        past = [source.past for source in sources]
        learned = job == "learned"
        if learned:
            for origin in past:
                flow.consume(origin)
        result = past[0] if len(past) == 1 and not learned else flow.merge(past, learned=learned)
        origins.update(dict.fromkeys(outputs, result))

    def _call(
        self, operator: str, node: Node, names: list[str], output: str, source: ValueOrigin | None, written: ConvOutput
    ) -> ConvCall:
        """The call of a convolution node. Raises InputFault where its shapes contradict each other."""
        given = dict(arguments(node))
        transposed = CONVOLUTIONS[operator][3]
        turned = transposed if isinstance(transposed, bool) else flag(given.get("transposed"))
        data, weights = self.tensors.at(names[0]), self.tensors.at(names[1])
        weight = self.tensors.shape(names[1])
        dims = len(weight) - 2
        fixed = tuple(size for size in weight if size is not None)
        if len(fixed) != len(weight) or not 1 <= dims <= 3:
            raise InputFault(f"the weights of convolution {output!r} have no fixed shape")
        arrives, leaves = self.tensors.shape(names[0]), self.tensors.shape(output)
        # torch takes images without a batch as well.
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
        return ConvCall(
            arrives=arrives, weight=fixed, output=leaves, bias="bias" in given and bool(self.reads.of(given["bias"])),
            stride=numbers(given.get("stride"), 1, dims, 1),
            padding=modes or numbers(given.get("padding"), 0, dims, 0),
            dilation=numbers(given.get("dilation"), 1, dims, 1), transposed=turned,
            output_padding=numbers(given.get("output_padding"), 0, dims, 0) if turned else (0,) * dims,
            groups=groups, dtype=_DTYPES.get(dtype), nhwc=channels_last(data) or channels_last(weights),
            owner=module, modular=modular, identity=names[1], place=None, source=source, written=written,
        )  # fmt: skip


def _argument(node: Node, name: str) -> Any:
    return plain_value(next((argument for given, argument in arguments(node) if given == name), None))


READER = Reader(read=read)
