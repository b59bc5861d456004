"""PyTorch's operators by their role, and the arguments and tensors of exported programs, with symbolic sizes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

from convlint.model.errors import InputFault
from convlint.readers import ReadOptions
from convlint.readers.bounded_json import MOST_AXES, MOST_READS, MOST_SIZE, Node

_ONE_TO_THREE = ("1d", "2d", "3d")
# operator -> positions of stride, padding, dilation, transposed (or its constant value), output padding, groups
CONVOLUTIONS: dict[str, tuple[int, int, int, bool | int, int | None, int]] = {
    "aten::convolution": (3, 4, 5, 6, 7, 8),
    "aten::_convolution": (3, 4, 5, 6, 7, 8),
    "aten::convolution_overrideable": (3, 4, 5, 6, 7, 8),
    "aten::_convolution_mode": (3, 4, 5, False, None, 6),
    **{f"aten::conv{n}": (3, 4, 5, False, None, 6) for n in _ONE_TO_THREE},
    **{f"aten::conv_transpose{n}": (3, 4, 7, True, 5, 6) for n in _ONE_TO_THREE},
}
NORMS = frozenset(
    {
        "aten::batch_norm", "aten::native_batch_norm", "aten::_native_batch_norm_legit", "aten::cudnn_batch_norm",
        "aten::_native_batch_norm_legit_no_training", "aten::_batch_norm_with_update", "aten::instance_norm",
    }
)  # fmt: skip
LEARNED = frozenset(
    {
        "aten::linear", "aten::addmm", "aten::mm", "aten::bmm", "aten::matmul", "aten::embedding", "aten::einsum",
        "aten::bilinear", "aten::lstm", "aten::gru", "aten::rnn_tanh", "aten::rnn_relu", "aten::baddbmm",
        "aten::scaled_dot_product_attention",
    }
)  # fmt: skip
# operators whose result may be a view of their first argument, so that a write to one changes the other
_VIEWS = """
    _reshape_alias adjoint alias as_strided broadcast_to chunk contiguous detach diagonal dsplit expand expand_as
    flatten hsplit lift_fresh moveaxis movedim narrow permute pin_memory positive ravel real reshape reshape_as
    resolve_conj resolve_neg select slice split split_with_sizes squeeze swapaxes swapdims t tensor_split to transpose
    unbind unflatten unfold unsqueeze view view_as view_as_complex view_as_real vsplit
"""
VIEWS = frozenset(f"aten::{name}" for name in _VIEWS.split())
NORM = "norm"


def role(name: str) -> str | None:
    """The role of an operator: convolution, norm, learned, unknown (its name has `conv` in it), or None for others."""
    if name in CONVOLUTIONS:
        return "convolution"
    if name in NORMS:
        return NORM
    if name in LEARNED:
        return "learned"
    return "unknown" if "conv" in name.partition("::")[2] else None


# Limits on expressions over symbolic sizes, such as `2*s0 + 1`.
LONGEST = 2000  # characters
DEEPEST = 60  # brackets inside each other: each level takes several frames of Python's stack
LARGEST = 2**62  # of any value on the way, so that no number grows without bound
MOST_TEXT = 500_000  # characters of all different expressions of one program

_TOKEN = re.compile(
    r"\s*(?:(?P<number>[0-9]{1,18})|(?P<name>[A-Za-z_][\w.]*)|(?P<text>'[^'\\]*')|(?P<sign>//|[-+*%(),=]))"
)


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


class _NoValue(Exception):
    """The expression has an unknown symbol, an unknown form, or a value that is too large."""


def evaluate(text: str, symbols: Mapping[str, int]) -> int | None:
    """The value of an expression; None where a symbol or a function in it is not known."""
    if len(text) > LONGEST:
        return None
    try:
        return _Expression(text, symbols).value()
    except _NoValue:
        return None


class _Expression:
    """A recursive descent over the tokens of an expression, as Python or sympy's `srepr` writes it."""

    def __init__(self, text: str, symbols: Mapping[str, int]) -> None:
        self.symbols = symbols
        self.tokens: list[tuple[str, str]] = []  # kind, text
        self.at = self.depth = 0
        end = len(text.rstrip())
        position = 0
        while position < end:
            match = _TOKEN.match(text, position)
            if match is None or match.lastgroup is None:
                raise _NoValue
            self.tokens.append((match.lastgroup, match[match.lastgroup]))
            position = match.end()
        self.tokens.append(("end", ""))

    def value(self) -> int:
        result = self._sum()
        if self.tokens[self.at][0] != "end":
            raise _NoValue
        return result

    def _accept(self, *signs: str) -> str | None:
        kind, text = self.tokens[self.at]
        if kind == "sign" and text in signs:
            self.at += 1
            return text
        return None

    def _expect(self, sign: str) -> None:
        if self._accept(sign) is None:
            raise _NoValue

    def _sum(self) -> int:
        self.depth += 1
        if self.depth > DEEPEST:
            raise _NoValue
        result = self._product()
        while sign := self._accept("+", "-"):
            result = _compute("Add" if sign == "+" else "Sub", [result, self._product()])
        self.depth -= 1
        return result

    def _product(self) -> int:
        result = self._signed()
        while sign := self._accept("*", "//", "%"):
            result = _compute({"*": "Mul", "//": "FloorDiv", "%": "Mod"}[sign], [result, self._signed()])
        return result

    def _signed(self) -> int:
        negative = False
        while self._accept("-"):
            negative = not negative
        value = self._single()
        return -value if negative else value

    def _single(self) -> int:
        if self._accept("("):
            value = self._sum()
            self._expect(")")
            return value
        kind, text = self.tokens[self.at]
        self.at += 1
        if kind == "number":
            return int(text)
        if kind != "name":
            raise _NoValue
        if not self._accept("("):
            return self._symbol(text)
        return self._call(text.rsplit(".", 1)[-1])

    def _call(self, name: str) -> int:
        if name == "Symbol":
            kind, text = self.tokens[self.at]
            if kind != "text":
                raise _NoValue
            while self.tokens[self.at] != ("sign", ")"):  # skips sympy's assumptions, such as `positive=True`
                if self.tokens[self.at][0] == "end":
                    raise _NoValue
                self.at += 1
            self.at += 1
            return self._symbol(text[1:-1])
        values = [self._sum()]
        while self._accept(","):
            values.append(self._sum())
        self._expect(")")
        return values[0] if name == "Integer" and len(values) == 1 else _compute(name, values)

    def _symbol(self, name: str) -> int:
        if name not in self.symbols:
            raise _NoValue
        return self.symbols[name]


def _compute(name: str, values: list[int]) -> int:
    result: int | None = None
    if name == "Add":
        result = sum(values)
    elif name in {"Mul", "Mult"}:
        result = prod(values)
    elif name == "Max":
        result = max(values)
    elif name == "Min":
        result = min(values)
    elif len(values) == 2:
        first, second = values
        if name == "Sub":
            result = first - second
        elif name in {"FloorDiv", "CleanDiv", "PythonFloorDiv"} and second:
            result = first // second
        elif name in {"Mod", "PythonMod"} and second:
            result = first % second
    if result is None or abs(result) >= LARGEST:
        raise _NoValue
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
            return [name for inner in nested.elements(MOST_READS) for name in self._named(argument, inner)]
        several = argument.get("as_tensors") or argument.get("as_optional_tensors")
        return [] if several is None else self._named(argument, several)

    def _named(self, argument: Node, several: Node) -> list[str]:
        elements = several.elements(MOST_READS)
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
    for form in ("as_int", "as_ints"):
        given = argument.get(form)
        if given is not None:
            if given.is_list and len(given.value) == 1:
                return tuple(given.elements()[0].integers(count, low))
            return tuple(given.integers(count, low))
    raise argument.fault("gives no fixed numbers")


def word(argument: Node | None) -> str | None:
    """The text of an argument; None where it is not text."""
    given = argument.get("as_string") if argument is not None and argument.is_object else None
    return None if given is None else given.text()


def plain_value(argument: Node | None) -> Any:
    """The numbers or the boolean of an argument; None where it is absent; the argument itself where it is another."""
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


class Branches:
    """Looks for convolutions in graphs inside nodes, such as those of `torch.cond`, which are not read."""

    def __init__(self) -> None:
        self._count = 0

    def hide_convolutions(self, node: Node) -> bool:
        """Whether a convolution is in a graph among the arguments of `node`, at any depth. Raises InputFault."""
        waiting = list(self._inside(node))
        while waiting:
            inner = waiting.pop()
            self._count += 1
            if self._count > MOST_OPERATIONS:
                raise InputFault(f"the program's branches have more than {MOST_OPERATIONS:,} operations")
            if role(operator(inner)) == "convolution":
                return True
            waiting.extend(self._inside(inner))
        return False

    @staticmethod
    def _inside(node: Node) -> Iterator[Node]:
        for _, argument in arguments(node):
            graph = argument.get("as_graph", "graph") if argument.is_object else None
            if graph is not None:
                yield from graph.at("nodes").elements()


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

    def set_sizes(self, options: ReadOptions) -> None:
        """Sets symbolic sizes to those of `--batch` and `--input`. Raises InputFault where a fixed size differs."""
        from convlint.readers.inputs import by_name, parse_shape

        named = by_name(options.inputs, self.inputs, "the program")
        for name, text in named.items():
            self._match(name, parse_shape(text, options.batch).sizes)
        if options.batch is not None:
            for name in self.inputs:
                sizes = self._sizes(name)
                if name not in named and (len(sizes) > 1 or [size for _, size in sizes] == [None]):
                    self._match(name, (options.batch,))  # a vector of sizes has no batch

    def unresolved(self) -> str:
        """The message for sizes that are not known: what the user can do."""
        for name in self.inputs:
            sizes = [size for _, size in self._sizes(name)]
            if None in sizes:
                shape = "x".join("?" if size is None else str(size) for size in sizes)
                return f"input {name!r} is {shape}; set it with --batch N or --input {name}=Nx3x224x224"
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

    def _match(self, name: str, wanted: tuple[int, ...]) -> None:
        sizes = self._values.at(name).at("sizes").elements(MOST_AXES)
        if len(wanted) not in (1, len(sizes)):
            raise InputFault(f"input {name!r} has {len(sizes)} axes, --input gives it {len(wanted)}")
        for axis, (size, want) in enumerate(zip(sizes, wanted, strict=False)):
            symbol = _SYMBOL.match(expression(size) or "")
            known = self._size(size)
            if known is None and symbol:
                self._symbols.set(symbol[1] or symbol[2], want)
            elif known is not None and known != want:
                raise InputFault(
                    f"the program was exported with axis {axis} of input {name!r} fixed at {known}, not {want}; "
                    "export it again with dynamic_shapes"
                )
