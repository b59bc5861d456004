"""What an exported program says of its nodes and tensors: names, numbers, owners; checked where they are read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from convlint.errors import InputFault
from convlint.readers.torch.operators import role
from convlint.readers.untrusted.json_tree import Node
from convlint.readers.untrusted.limits import MOST_AXES, MOST_READS

MOST_OPERATIONS = 50_000  # of one program, those of its branches too
LONGEST_STACK = 20_000  # characters
LONGEST_EXPRESSION = 10_000
LARGEST_NUMBER = 2**63 - 1
_TARGET = re.compile(r"(?:torch\.ops\.)?(\w+)\.(\w+)(?:\.\w+)?")
_NUMBER = re.compile(r"@\d+$")
_PLAIN = ("as_int", "as_ints", "as_bool")
_FRAME = re.compile(r'File "([^"\x00-\x1f\ud800-\udfff]{1,300})", line (\d{1,9})')
_INSTALLED = re.compile(r"[/\\](site-packages|dist-packages)[/\\]")
_SEPARATOR = re.compile(r"[/\\]")
_STACK_READ = 4000  # characters: the innermost frames stand last


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
    """The tensors that operations read and write, counted: few bytes can name very many."""

    def __init__(self) -> None:
        self._count = 0

    def of(self, argument: Node) -> list[str]:
        """The names of the tensors of one serialized argument."""
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
    """One number for each of `count` axes; `default` where nothing is given."""
    if argument is None or (argument.is_object and "as_none" in argument.value):
        return (default,) * count
    for form in ("as_int", "as_ints"):
        given = argument.get(form)
        if given is not None:
            if given.is_list and len(given.value) == 1:
                return tuple(given.elements()[0].integers(count, low))
            return tuple(given.integers(count, low))
    raise argument.fault("gives no fixed numbers")


def word(argument: Node | None) -> str | None:
    """The text that an argument is, or None where it is something else."""
    given = argument.get("as_string") if argument is not None and argument.is_object else None
    return None if given is None else given.text()


def plain_value(argument: Node | None) -> Any:
    """What an argument is where it is numbers or a flag; None where nothing is given; else the argument itself."""
    if argument is None or (argument.is_object and "as_none" in argument.value):
        return None
    forms = _PLAIN if argument.is_object else ()
    return next((argument.value[form] for form in forms if form in argument.value), argument)


def flag(argument: Node | None) -> bool:
    """The boolean that an argument is; False where nothing is given."""
    given = argument.get("as_bool") if argument is not None else None
    return given is not None and given.boolean()


def owner(node: Node) -> tuple[str | None, bool]:
    """The qualified name of the module that a node belongs to, and whether that is a convolution itself."""
    given = node.get("metadata", "nn_module_stack")
    stack = "" if given is None else given.text(LONGEST_STACK)
    if not stack:
        return None, False
    parts = stack.rsplit(";", 1)[-1].split(",")
    name = _NUMBER.sub("", parts[1]) if len(parts) > 1 else ""
    return name.removeprefix("L['self'].").removeprefix("L__self__."), "Conv" in parts[-1]


def line(node: Node) -> str:
    """The user's line that a node stands for, such as `net.py:12`; empty where the program does not say."""
    metadata = node.value.get("metadata") if node.is_object else None
    stack = metadata.get("stack_trace") if isinstance(metadata, dict) else None
    frames = _FRAME.findall(stack[-_STACK_READ:]) if isinstance(stack, str) else []
    own = [frame for frame in frames if not _INSTALLED.search(frame[0])] or frames
    return f"{_SEPARATOR.split(own[-1][0])[-1]}:{own[-1][1]}" if own else ""


class Branches:
    """The graphs inside nodes, such as those of `torch.cond`: looked through for convolutions, not read."""

    def __init__(self) -> None:
        self._count = 0

    def hide_convolutions(self, node: Node) -> bool:
        """Whether a convolution stands in a graph that is an argument of `node`."""
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
    """What a symbolic size is written as, or None where it is fixed."""
    text = size.get("as_expr", "expr_str")
    return None if text is None else text.text(LONGEST_EXPRESSION)


def channels_last(tensor: Node) -> bool:
    """Whether the strides of a 4- or 5-dimensional tensor run over the channels fastest."""
    given = tensor.get("strides")
    strides = [_fixed(stride) for stride in given.elements(MOST_AXES)] if given is not None else []
    sizes = [_fixed(size) for size in tensor.at("sizes").elements(MOST_AXES)]
    if len(strides) not in (4, 5) or len(sizes) != len(strides) or strides[1] != 1:
        return False
    return strides[-1] == sizes[1] != 1 and any(size != 1 for size in sizes[2:])


def _fixed(size: Node) -> int | None:
    number = size.get("as_int")
    return None if number is None else number.integer(0, LARGEST_NUMBER)
