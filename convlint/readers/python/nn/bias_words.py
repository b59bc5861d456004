"""Biases that code asks for by a string, `state["conv.bias"]`, or by their place among the parameters of a layer."""

from __future__ import annotations

import ast
import re

# In any file that uses a bias; a keyword `bias=False` is no use. Each by itself, as what begins with a fixed text is
# looked for in a fraction of the time that any of several takes.
_USES = tuple(map(re.compile, (rb"\.bias\b", rb"\.[\s\\]+bias\b", rb"bias['\"{]")))
_USE_IN_LINE = re.compile(rb"^[\s\\]*bias\b(?!\s*=[^=])|\.[\s\\]*bias\b|bias['\"{]|\.parameters\(\)")
_ASK = frozenset((
    "hasattr", "endswith", "startswith", "find", "get", "setdefault", "setattr", "register_parameter",
    "register_buffer",
))  # fmt: skip
_WITH_DEFAULT = {"getattr": 3, "pop": 2}  # how many arguments there are where one of them is the default


def may_use(content: bytes) -> bool:
    """Whether a file with this content may use a bias."""
    return b".parameters()" in content or (b"bias" in content and any(each.search(content) for each in _USES))


def may_use_in(line: bytes) -> bool:
    """Whether a line may, of statements that may go over several."""
    return (b"bias" in line or b".parameters()" in line) and _USE_IN_LINE.search(line) is not None


def is_word(node: ast.AST) -> bool:
    """Whether this is the name of a bias as state has it."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and _is_name(node.value)


def takes_word(call: ast.Call) -> bool:
    """Whether a call that is given the name of a bias does as well where there is none."""
    function = call.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in _ASK or len(call.args) == _WITH_DEFAULT.get(name)


def asks_for_word(test: ast.Compare) -> bool:
    """Whether a comparison is of names alone: `name == "bias"`, `"bias" in state`, `name in ("weight", "bias")`."""
    return all(isinstance(op, (ast.Eq, ast.NotEq, ast.In, ast.NotIn)) for op in test.ops)


def without_words(test: ast.Compare) -> list[ast.expr]:
    """The sides of such a comparison that are more than strings."""
    return [each for each in (test.left, *test.comparators) if not _only_text(each)]


def unpacks_parameters(statement: ast.stmt) -> ast.expr | None:
    """Of `weight, bias = conv.parameters()` the value, whose number is another without a bias."""
    match statement:
        case ast.Assign(targets=[ast.Tuple() | ast.List()], value=value):
            inner = value.args[0] if isinstance(value, ast.Call) and len(value.args) == 1 else value
            for each in (value, inner):
                if (
                    isinstance(each, ast.Call)
                    and isinstance(each.func, ast.Attribute)
                    and each.func.attr == "parameters"
                ):
                    return value
    return None


def names_constants(statement: ast.stmt) -> bool:
    """Whether this is the list of a class's constants, which is there for a compiler."""
    match statement:
        case ast.Assign(targets=[ast.Name(id="__constants__")]) | ast.AnnAssign(target=ast.Name(id="__constants__")):
            return True
        case _:
            return False


def _is_name(text: str) -> bool:
    return text == "bias" or text.endswith(".bias")


def _only_text(node: ast.expr) -> bool:
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return all(map(_only_text, node.elts))
    return isinstance(node, ast.Constant)
