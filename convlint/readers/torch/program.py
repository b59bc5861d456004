"""The reader of torch.export programs (.pt2), whose graph is JSON in a zip archive, with every shape.

`torch.export.load` would unpickle sample inputs and load the weights. Here only the graph is read, so that no code runs
and torch need not be installed. Symbolic sizes, and expressions over them, get the values that the user gives.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
from math import prod
from operator import floordiv, mod, mul, sub
from typing import Any

from convlint.model.errors import InputFault
from convlint.model.layer import Dtype
from convlint.model.network import Network
from convlint.model.report import InputError
from convlint.model.runtime import Runtime
from convlint.readers import Outcome, Reader, ReadOptions
from convlint.readers.bounded_json import (
    MOST_AXES,
    MOST_BYTES,
    MOST_READS,
    MOST_SIZE,
    Node,
    capped,
    parse,
    refuse_layers,
)
from convlint.readers.bounded_zip import open_zip, read_member
from convlint.readers.inputs import by_name, how_to_set, parse_shape
from convlint.readers.operations import ConvFlow, ConvOutput, ValueOrigin, elements
from convlint.readers.torch.kinds import CONVOLUTIONS, DETACHES, MAY_COPY, NORM, VIEWS, is_frozen, role, writes_in_place
from convlint.readers.torch.layers import ConvCall, TracedOperations, network_of, unbatched

# Limits on expressions over symbolic sizes, such as `2*s0 + 1`.
LONGEST = 2000  # characters
LARGEST = 2**62  # of any value on the way, so that no number grows without bound
MOST_TEXT = 500_000  # characters of all different expressions of one program

# All that an expression may have; of some other texts Python's parser warns.
_EXPRESSION = re.compile(r"(?:[0-9]{1,18}(?!\w)|[A-Za-z_][\w.]*|'[^'\\]*'|[-+*/%(),=\s])*")
_PAIRS_OF_MINUS = re.compile(r"(?:-\s*-\s*)+(?=-)")
# By the names of sympy's functions and of Python's operators.
_OF_ALL: Mapping[str, Callable[[list[int]], int]] = {"Add": sum, "Mul": prod, "Mult": prod, "Max": max, "Min": min}
_OF_TWO: Mapping[str, Callable[[int, int], int]] = {
    "Sub": sub, **dict.fromkeys(("FloorDiv", "CleanDiv", "PythonFloorDiv"), floordiv),
    **dict.fromkeys(("Mod", "PythonMod"), mod),
}  # fmt: skip


class Sizes:
    """The values of symbols, and of expressions over them, each of which is evaluated once."""

    def __init__(self) -> None:
        self._symbols: dict[str, int] = {}
        self._known: dict[str, int | None] = {}
        self._read = 0

    def set(self, symbol: str, value: int) -> None:
        """Gives a symbol its value."""
        self._symbols[symbol] = value
        self._known.clear()

    def of(self, text: str) -> int | None:
        """The value of an expression, or None where it is not known."""
        if text not in self._known:
            self._read += min(len(text), LONGEST)
            self._known[text] = evaluate(text, self._symbols) if self._read <= MOST_TEXT else None
        return self._known[text]


def evaluate(text: str, symbols: Mapping[str, int]) -> int | None:
    """The value of an expression, as Python or sympy's `srepr` writes it.

    None where a symbol or a function in it is not known, and where a value is too large.
    """
    if len(text) > LONGEST or _EXPRESSION.fullmatch(text) is None:
        return None
    try:
        # Each minus before another would take a level of the recursion.
        return _value(ast.parse(_PAIRS_OF_MINUS.sub("", text).strip(), mode="eval").body, symbols)
    except (SyntaxError, ValueError, KeyError, ZeroDivisionError, RecursionError, MemoryError):
        return None


def _value(node: ast.expr, symbols: Mapping[str, int]) -> int:
    """The value of a part of an expression. Raises ValueError, KeyError and ZeroDivisionError where it has none."""
    match node:
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            return number
        case ast.Name(id=name):
            return symbols[name]
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_value(inner, symbols)
        case ast.BinOp(left=left, op=kind, right=right):
            return _computed(type(kind).__name__, [_value(left, symbols), _value(right, symbols)])
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=arguments):
            match name, arguments:
                case "Symbol", [ast.Constant(value=str(symbol))]:  # with assumptions, such as `positive=True`
                    return symbols[symbol]
                case "Integer", [inner]:
                    return _value(inner, symbols)
            return _computed(name, [_value(argument, symbols) for argument in arguments])
    raise ValueError("an unknown form")


def _computed(name: str, values: list[int]) -> int:
    """The value of a function or an operator. Raises ValueError and ZeroDivisionError where it has none."""
    if name in _OF_TWO and len(values) == 2:
        result = _OF_TWO[name](*values)
    elif values and name in _OF_ALL:
        result = _OF_ALL[name](values)
    else:
        raise ValueError(name)
    if abs(result) >= LARGEST:
        raise ValueError("a value that is too large")
    return result


MOST_OPERATIONS = 50_000  # of one program, with those of its branches
LONGEST_STACK = 20_000  # characters
LONGEST_EXPRESSION = 10_000
LARGEST_NUMBER = 2**63 - 1
_TARGET = re.compile(r"(?:torch\.ops\.)?(\w+)\.(\w+)(?:\.\w+)?")
_NUMBER = re.compile(r"@\d+$")
_PLAIN = ("as_int", "as_ints", "as_bool")
_FRAME = re.compile(r'File "([^"\x00-\x1f\ud800-\udfff]{1,300})", line (\d{1,9})')
_INSTALLED = re.compile(r"[/\\](site-packages|dist-packages)[/\\]")
_SEPARATOR = re.compile(r"[/\\]")
_STACK_READ = 4000  # characters at the end of a stack trace, where the innermost frames are


def operator(node: Node) -> str:
    """The schema name of a node's operator, such as `aten::conv2d`."""
    target = node.at("target").text()
    match = _TARGET.fullmatch(target)
    return f"{match[1]}::{match[2]}" if match else target


def arguments(node: Node) -> Iterator[tuple[str, Node]]:
    """The named arguments of a node."""
    for value in node.at("inputs").elements():
        yield value.at("name").text(), value.at("arg")


class Reads:
    """Reads the names of tensors in arguments, up to MOST_READS in all: a few bytes can name very many tensors."""

    def __init__(self) -> None:
        self._count = 0

    def of(self, argument: Node) -> list[str]:
        """The names of the tensors in one argument. Raises InputFault."""
        if not argument.is_object:
            return []
        single = argument.get("as_tensor") or argument.get("as_optional_tensor", "as_tensor")
        if single is not None:
            self._counted(argument, 1)
            return [single.at("name").text()]
        nested = argument.get("as_nested_tensors")
        if nested is not None:
            return [name for inner in nested.elements(MOST_READS) for name in self._names_in(argument, inner)]
        tensor_list = argument.get("as_tensors") or argument.get("as_optional_tensors")
        return [] if tensor_list is None else self._names_in(argument, tensor_list)

    def _names_in(self, argument: Node, tensor_list: Node) -> list[str]:
        elements = tensor_list.elements(MOST_READS)
        self._counted(argument, len(elements))
        tensors = [element.get("as_tensor") or element for element in elements if not _absent(element)]
        return [tensor.at("name").text() for tensor in tensors]

    def _counted(self, argument: Node, count: int) -> None:
        self._count += count
        if self._count > MOST_READS:
            raise argument.fault(f"makes it more than {MOST_READS:,} tensors that operations read, the limit")


def _absent(element: Node) -> bool:
    return element.is_object and "as_none" in element.value


def numbers(argument: Node | None, default: int, count: int, low: int) -> tuple[int, ...]:
    """A number for each of `count` axes; `default` where the argument is absent. Raises InputFault."""
    if argument is None or _absent(argument):
        return (default,) * count
    given = argument.get("as_int") or argument.get("as_ints")
    if given is None:
        raise argument.fault("gives no fixed numbers")
    if given.is_list and len(given.value) == 1:
        given = given.elements()[0]
    return tuple(given.integers(count, low))


def word(argument: Node | None) -> str | None:
    """The text of an argument; None where it is not text."""
    given = argument.get("as_string") if argument is not None and argument.is_object else None
    return None if given is None else given.text()


def plain_value(argument: Node | None) -> Any:
    """The numbers or the boolean of an argument; None where it is absent; the argument itself in any other case."""
    if argument is None or _absent(argument):
        return None
    forms = _PLAIN if argument.is_object else ()
    return next((argument.value[form] for form in forms if form in argument.value), argument)


def flag(argument: Node | None) -> bool:
    """The boolean of an argument; False where it is absent."""
    given = argument.get("as_bool") if argument is not None else None
    return given is not None and given.boolean()


def owner(node: Node) -> tuple[str | None, bool]:
    """The qualified name of the module that a node belongs to, and whether its class is a convolution."""
    given = node.get("metadata", "nn_module_stack")
    stack = "" if given is None else given.text(LONGEST_STACK)
    if not stack:
        return None, False
    parts = stack.rsplit(";", 1)[-1].split(",")
    name = _NUMBER.sub("", parts[1]) if len(parts) > 1 else ""
    return name.removeprefix("L['self'].").removeprefix("L__self__."), "Conv" in parts[-1]


def line(node: Node) -> str:
    """The user's line that a node comes from, such as `net.py:12`; empty where the program has no stack trace."""
    metadata = node.value.get("metadata") if node.is_object else None
    stack = metadata.get("stack_trace") if isinstance(metadata, dict) else None
    frames = _FRAME.findall(stack[-_STACK_READ:]) if isinstance(stack, str) else []
    own = [frame for frame in frames if not _INSTALLED.search(frame[0])] or frames
    return f"{_SEPARATOR.split(own[-1][0])[-1]}:{own[-1][1]}" if own else ""


def expression(size: Node) -> str | None:
    """The expression of a symbolic size; None for a fixed size."""
    text = size.get("as_expr", "expr_str")
    return None if text is None else text.text(LONGEST_EXPRESSION)


def channels_last(tensor: Node) -> bool:
    """Whether a tensor of 4 or 5 dimensions is in channels_last, by its strides."""
    given = tensor.get("strides")
    strides = [_fixed(stride) for stride in given.elements(MOST_AXES)] if given is not None else []
    sizes = [_fixed(size) for size in tensor.at("sizes").elements(MOST_AXES)]
    if len(strides) not in (4, 5) or len(sizes) != len(strides) or strides[1] != 1:
        return False
    return strides[-1] == sizes[1] != 1 and any(size != 1 for size in sizes[2:])


def _fixed(size: Node) -> int | None:
    number = size.get("as_int")
    return None if number is None else number.integer(0, LARGEST_NUMBER)


_SYMBOL = re.compile(r"Symbol\('(\w+)'|(\w+)$")


class ProgramTensors:
    """The tensors of a program, by name; `inputs` are those that a caller passes."""

    def __init__(self, values: Node, inputs: list[str]) -> None:
        if not values.is_object:
            raise values.must_be("an object")
        self._values, self.inputs = values, inputs
        self._symbols = Sizes()

    def at(self, name: str) -> Node:
        """The description of a tensor. Raises InputFault where there is none."""
        return self._values.at(name)

    def learns(self, name: str) -> bool:
        """Whether a gradient of a parameter is computed."""
        given = self._values.get(name, "requires_grad")
        return given is None or given.value is not False

    def shape(self, name: str) -> tuple[int | None, ...]:
        """The sizes of a tensor that a convolution reads or writes, None where unknown. Raises InputFault."""
        sizes = self._sizes(name)
        for node, size in sizes:
            if size is not None and not 1 <= size <= MOST_SIZE:
                raise node.fault(f"must be a size of 1 to 2^31 - 1, not {size}")
        return tuple(size for _, size in sizes)

    def any_shape(self, name: str) -> tuple[int | None, ...]:
        """The sizes of any tensor; no axes where the program does not describe it."""
        given = self._values.get(name, "sizes")
        return () if given is None else tuple([self._size(size) for size in given.elements(MOST_AXES)])

    def are_in_other_orders(self, one: str, other: str) -> bool:
        """Whether the elements of one of two tensors lie row after row in memory, and those of the other do not."""
        return {self._is_contiguous(one), self._is_contiguous(other)} == {True, False}

    def _is_contiguous(self, name: str) -> bool | None:
        given = self._values.get(name, "strides")
        shape = self.any_shape(name)
        sizes = [size for size in reversed(shape) if size is not None]
        strides = [] if given is None else [self._size(stride) for stride in reversed(given.elements(MOST_AXES))]
        if not len(strides) == len(sizes) == len(shape) or None in strides:
            return None
        rows = accumulate(sizes, mul, initial=1)
        return all(size == 1 or stride == row for size, stride, row in zip(sizes, strides, rows, strict=False))

    def set_sizes(self, options: ReadOptions) -> None:
        """Sets symbolic sizes to those of `--batch` and `--input`. Raises InputFault where a fixed size differs."""
        texts = by_name(options.inputs, self.inputs, "the program")
        for name, text in texts.items():
            self._match(name, parse_shape(text, options.batch).sizes)
        if options.batch is not None:
            firsts = {name: sizes[0][1] for name in self.inputs if name not in texts and (sizes := self._sizes(name))}
            # If the first axis of an image is open, a fixed one, as of a mean to subtract, is no batch.
            is_open = any(size is None and len(self._sizes(name)) > 2 for name, size in firsts.items())
            for name, size in firsts.items():
                if size is None or (not is_open and len(self._sizes(name)) > 1):  # a vector of sizes has no batch
                    self._match(name, (options.batch,))

    def unresolved(self) -> str:
        """The message for sizes that are not known: what the user can do."""
        for name in self.inputs:
            sizes = [size for _, size in self._sizes(name)]
            if None in sizes:
                shape = "x".join("?" if size is None else str(size) for size in sizes)
                return f"input {name!r} is {shape}; {how_to_set(name, sizes)}"
        return "some sizes depend on values that are known only when the program runs"

    def _sizes(self, name: str) -> list[tuple[Node, int | None]]:
        """The sizes of a tensor as the program has them, each with its value, or None where that is unknown."""
        sizes = self._values.at(name).at("sizes").elements(MOST_AXES)
        return [(size, self._size(size)) for size in sizes]

    def _size(self, size: Node) -> int | None:
        fixed = size.get("as_int")
        if fixed is not None:
            return fixed.integer(0, LARGEST_NUMBER)
        text = expression(size)
        return None if text is None else self._symbols.of(text)

    def _match(self, name: str, input_sizes: tuple[int, ...]) -> None:
        sizes = self._values.at(name).at("sizes").elements(MOST_AXES)
        if len(input_sizes) not in (1, len(sizes)):
            raise InputFault(f"input {name!r} has {len(sizes)} axes, --input gives it {len(input_sizes)}")
        for axis, (size, input_size) in enumerate(zip(sizes, input_sizes, strict=False)):
            symbol = _SYMBOL.match(expression(size) or "")
            known = self._size(size)
            if known is None and symbol:
                self._symbols.set(symbol[1] or symbol[2], input_size)
            elif known is not None and known != input_size:
                raise InputFault(
                    f"the program was exported with axis {axis} of input {name!r} fixed at {known}, not {input_size}; "
                    "export it again with dynamic_shapes"
                )


# torch._export.serde.schema.ScalarType
_DTYPES = {
    1: Dtype.int8, 2: Dtype.int8, 6: Dtype.fp16, 7: Dtype.fp32, 8: Dtype.fp64, 13: Dtype.bf16,
    29: Dtype.fp8, 30: Dtype.fp8, 31: Dtype.fp8, 32: Dtype.fp8,
}  # fmt: skip
_GRAPH = re.compile(r"([^/]+/)?(models/[^/]+\.json|serialized_exported_program\.json)")
_HANDED_OUT = ("user_output", "loss_output", "user_input_mutation")


def read(path: str, options: ReadOptions) -> Outcome:
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
        given = [] if specs is None else specs.elements()
        inputs = [spec.get("user_input", "arg", "as_tensor") for spec in given]
        parameters = [spec.get("parameter", "arg", "name") for spec in given]
        user_inputs = [tensor.at("name").text() for tensor in inputs if tensor is not None]
        self.tensors = ProgramTensors(graph.at("tensor_values"), user_inputs)
        named = [name.text() for name in parameters if name is not None]
        self.learned = set(filter(self.tensors.learns, named))  # parameters, and what is computed of them
        self.reads = Reads()
        self.branched = 0  # operations in graphs inside others, which are not read
        self.outputs = self._outputs(module.get("signature", "output_specs"), graph.get("outputs"))

    def read(self, options: ReadOptions) -> tuple[Network, list[str]]:
        """The network, and what could not be resolved. Raises InputFault."""
        self.tensors.set_sizes(options)
        flow = ConvFlow()
        trains = any(_argument(node, "training") is True for node in self.nodes if role(operator(node)) == NORM)
        operations = TracedOperations(trains=trains)
        origins: dict[str, ValueOrigin] = {}
        for name in self.tensors.inputs:
            origins[name] = ValueOrigin()
            operations.input((name, self.tensors.any_shape(name)), name)
        bases: dict[str, str] = {}  # a view -> the tensor that it is a view of
        copies: set[str] = set()  # tensors that an operator may have copied into another layout
        calls: list[ConvCall] = []
        unknown: dict[str, None] = {}
        hidden: list[str] = []
        for node in self.nodes:
            name = operator(node)
            job = role(name)
            names = [tensor for _, argument in arguments(node) for tensor in self.reads.of(argument)]
            outputs = [tensor for value in node.at("outputs").elements() for tensor in self.reads.of(value)]
            if job == "convolution":
                if len(names) < 2 or not outputs:
                    raise node.fault(f"({name}) does not read an input and weights and write a tensor")
                source = origins.get(names[0])
                index, origin = flow.convolution(source, job)
                call = self._call(name, node, names, outputs[0], source, flow.written[index])
                call.frozen = self.learned.isdisjoint(names[1:]) and names[1] not in origins
                if names[0] not in copies and channels_last(self.tensors.at(names[0])) == call.nhwc:
                    call.copied = False
                calls.append(call)
                operations.convolution(len(calls) - 1, calls[-1], names, outputs[0], partial(line, node))
                origins[outputs[0]] = origin
                continue
            if self._hides_convolutions(node):
                hidden.append(f"{name} has convolutions in its branches, which convlint does not look into")
            writes = job is None and writes_in_place(name) and bool(names)
            base = bases.get(names[0]) if writes else None
            operations.note(
                name, names, [(output, self.tensors.any_shape(output)) for output in outputs],
                partial(_argument, node), partial(line, node),
                in_place=writes, base=None if base is None else (base, self.tensors.any_shape(base)),
                constants=[self.tensors.any_shape(tensor) for tensor in names if not operations.knows(tensor)],
                base_of=lambda key: bases.get(key, key), view=name in VIEWS and not self._copies(name, names, outputs),
                detached=name in DETACHES,
                learned=sum(elements(self.tensors.any_shape(tensor)) for tensor in names if tensor in self.learned),
            )  # fmt: skip
            sources = [origins[tensor] for tensor in names if tensor in origins]
            if not (sources or name in DETACHES or self.learned.isdisjoint(names)):
                self.learned.update(outputs)
                if writes:
                    self.learned.update((names[0], bases.get(names[0], names[0])))
            if sources:
                kind = "frozen norm" if trains and is_frozen(name, partial(_argument, node)) else job or name
                origins.update(dict.fromkeys(outputs, flow.operation(sources, kind, learned=job == "learned")))
            if writes and outputs:
                operations.alias(names[0], outputs[0])
            if base is not None and outputs and outputs[0] in origins:  # the base now has what was written, too
                before = (origins[base].past,) if base in origins else ()
                origins[base] = flow.merge((origins[outputs[0]], *before))
            if name in MAY_COPY or not copies.isdisjoint(names):
                copies.update(outputs)
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
        axes = [len(self.tensors.any_shape(name)) for name in self.tensors.inputs]
        finished = operations.finished(calls, layers)
        network = Network(
            path=self.path, layers=layers, edges=edges, operations=finished, runtime=Runtime(framework="pytorch"),
            unbatched=unbatched(calls, axes), whole=bool(finished) and operations.whole and not hidden,
        ).with_used_heads().with_frozen_layers()  # fmt: skip
        return network, messages

    def _copies(self, name: str, names: Sequence[str], outputs: Sequence[str]) -> bool:
        """Whether an operator that hands on a view where it can has to copy, as behind `transpose`."""
        return name in MAY_COPY and bool(names and outputs) and self.tensors.are_in_other_orders(names[0], outputs[0])

    def _hides_convolutions(self, node: Node) -> bool:
        """Whether a graph inside `node`, such as of `torch.cond`, has a convolution at any depth. Raises InputFault."""
        waiting = list(_inside(node))
        while waiting:
            inner = waiting.pop()
            self.branched += 1
            if self.branched > MOST_OPERATIONS:
                raise InputFault(f"the program's branches have more than {MOST_OPERATIONS:,} operations")
            if role(operator(inner)) == "convolution":
                return True
            waiting += _inside(inner)
        return False

    def _outputs(self, specs: Node | None, outputs: Node | None) -> list[str]:
        """The tensors that the program returns, without the new values of its buffers, which it returns as well."""
        returned = [
            argument
            for spec in ([] if specs is None else specs.elements())
            for kind in _HANDED_OUT
            if (argument := spec.get(kind, "arg")) is not None
        ]
        if specs is None and outputs is not None:  # without a signature, all outputs count
            returned = outputs.elements()
        alone = [argument.at("name").text() for argument in returned if argument.get("name") is not None]
        return alone + [name for argument in returned for name in self.reads.of(argument)]

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


def _inside(node: Node) -> Iterator[Node]:
    """The operations of the graphs among the arguments of a node."""
    for _, argument in arguments(node):
        graph = argument.get("as_graph", "graph") if argument.is_object else None
        if graph is not None:
            yield from graph.at("nodes").elements()


def _argument(node: Node, name: str) -> Any:
    return plain_value(next((argument for given, argument in arguments(node) if given == name), None))


READER = Reader(read=read)
