"""The rules' closed expression language: a typed subset of Python's syntax, checked and compiled once.

Arithmetic (no powers), comparisons, and/or/not, `in`, conditional expressions, the names of a vocabulary and a few
functions; everything else, and every mix of types, is refused when the rule is loaded. Rules that are in the cache do
without it.
"""

from __future__ import annotations

import ast
import marshal
import warnings
from collections.abc import Iterable, Mapping, Sequence
from types import CodeType

from convlint.facts.quantity import Type
from convlint.model.errors import suggestion
from convlint.model.runtime import Version
from convlint.rulebook.expr import FUNCTIONS, Expr, ExprError
from convlint.rulebook.rule import Decision

MAX_LENGTH = 500
MAX_DEPTH = 20
MAX_NUMBER = 10**12

# YAML spells truth in lower case, and rules are YAML
_TRUTHS = ("true", "false")
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod)
_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_FACTS = "facts"
_UNKNOWN, _BOUNDED = "UNKNOWN", "bounded"  # names that the functions' globals define beside the language's functions
_KINDS = (
    ast.Constant, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.IfExp, ast.Compare, ast.Call, ast.Tuple, ast.List,
    ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context,
)  # fmt: skip


def compile_expr(text: str, vocabulary: Mapping[str, Type]) -> Expr:
    """Checks and compiles `text`. Raises ExprError where it is not in the language."""
    if len(text) > MAX_LENGTH:
        raise ExprError(f"longer than {MAX_LENGTH} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # what Python finds odd, such as `1if C else 2`, is refused, not printed
            tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        offset = (error.offset or 1) - 1 if isinstance(error, SyntaxError) else 0
        raise ExprError(f"not an expression: {text!r}", offset) from error
    checker = _Checker(vocabulary)
    kind = checker.type_of(tree.body, 0)
    if checker.given:
        tree = ast.fix_missing_locations(GivenInFull(checker.given).visit(tree))
    in_full = ast.unparse(tree) if checker.given else text
    code = marshal.dumps(expression_code(tree.body))
    return Expr(text=text, names=frozenset(checker.names), type=kind, code=code, in_full=in_full)


def _dotted(node: ast.expr) -> str:
    """`gpu.name` as it is written. Raises ExprError for an attribute of anything but a name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        raise ExprError(f"{type(node).__name__} is not part of the language here", node.col_offset)
    return ".".join((node.id, *reversed(parts)))


def compile_decision(when: Expr | None, let: Sequence[tuple[str, Expr]], check: Expr) -> Decision:
    """One function of expressions that were checked and compiled each for itself."""
    trees = [(name, _tree(expr), expr.type == "number") for name, expr in let]
    code = decision_code(None if when is None else _tree(when), trees, _tree(check))
    return Decision(when=when, let=tuple(let), check=check, code=code)


def _tree(expr: Expr) -> ast.expr:
    return ast.parse((expr.in_full or expr.text).strip(), mode="eval").body


class _Checker:
    def __init__(self, vocabulary: Mapping[str, Type]) -> None:
        self.vocabulary = vocabulary
        self.names: set[str] = set()
        self.given: dict[ast.Call, tuple[Type, set[str]]] = {}  # the calls of given(): type and names of what is asked

    def type_of(self, node: ast.expr, depth: int) -> Type:
        if depth > MAX_DEPTH:
            raise ExprError(f"nested deeper than {MAX_DEPTH} levels", node.col_offset)
        deeper = depth + 1
        if isinstance(node, ast.Constant):
            return self._constant(node)
        if isinstance(node, ast.Name | ast.Attribute):
            return self._name(node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, _ARITHMETIC):
            self._expect("number", node.left, deeper)
            self._expect("number", node.right, deeper)
            return "number"
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return self._expect("number", node.operand, deeper)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self._expect("truth", node.operand, deeper)
        if isinstance(node, ast.BoolOp):
            for value in node.values:
                self._expect("truth", value, deeper)
            return "truth"
        if isinstance(node, ast.IfExp):
            self._expect("truth", node.test, deeper)
            kind = self.type_of(node.body, deeper)
            return self._expect(kind, node.orelse, deeper)
        if isinstance(node, ast.Compare):
            return self._compare(node, deeper)
        if isinstance(node, ast.Call):
            return self._call(node, deeper)
        raise ExprError(f"{type(node).__name__} is not part of the language", node.col_offset)

    def _expect(self, wanted: Type, node: ast.expr, depth: int) -> Type:
        kind = self.type_of(node, depth)
        if kind != wanted:
            raise ExprError(f"{ast.unparse(node)} is a {kind}, a {wanted} belongs here", node.col_offset)
        return kind

    def _constant(self, node: ast.Constant) -> Type:
        value = node.value
        if isinstance(value, bool):
            return "truth"
        if isinstance(value, int | float):
            if not abs(value) <= MAX_NUMBER:
                raise ExprError(f"numbers go up to {MAX_NUMBER}", node.col_offset)
            return "number"
        if isinstance(value, str):
            return "text"
        raise ExprError(f"{value!r} is not part of the language", node.col_offset)

    def _name(self, node: ast.Name | ast.Attribute) -> Type:
        name = _dotted(node)
        if name in _TRUTHS:
            return "truth"
        kind = self._look_up(node)
        self.names.add(name)
        return kind

    def _look_up(self, node: ast.Name | ast.Attribute) -> Type:
        name = _dotted(node)
        if name not in self.vocabulary:
            raise ExprError(f"unknown name {name!r}{suggestion(name, self.vocabulary)}", node.col_offset)
        return self.vocabulary[name]

    def _compare(self, node: ast.Compare, depth: int) -> Type:
        kind = self.type_of(node.left, depth)
        for op, right in zip(node.ops, node.comparators, strict=True):
            if isinstance(op, ast.In | ast.NotIn):
                if len(node.ops) > 1:
                    raise ExprError("`in` cannot stand in a chain of comparisons", right.col_offset)
                if not isinstance(right, ast.Tuple | ast.List) or not right.elts:
                    raise ExprError("what follows `in` must be a list of constants", right.col_offset)
                for item in right.elts:
                    if not isinstance(item, ast.Constant):
                        raise ExprError("what follows `in` must be a list of constants", item.col_offset)
                    self._expect(kind, item, depth)
            elif isinstance(op, (ast.Eq, ast.NotEq, *_ORDER)):
                kind = self._pair(kind, op, right, depth)
            else:
                raise ExprError(f"{type(op).__name__} is not part of the language", right.col_offset)
        return "truth"

    def _pair(self, kind: Type, op: ast.cmpop, right: ast.expr, depth: int) -> Type:
        """Checks one comparison of a chain with what is on its left; the type of its right side."""
        other = self.type_of(right, depth)
        if not (kind == other or (kind, other) == ("version", "text")):
            raise ExprError(f"compares a {kind} with a {other}", right.col_offset)
        if kind == "version" and other == "text":
            self._version(right)
        if isinstance(op, _ORDER) and kind not in ("number", "version"):
            raise ExprError(f"a {kind} has no order", right.col_offset)
        return other

    @staticmethod
    def _version(node: ast.expr) -> None:
        try:
            Version(str(node.value) if isinstance(node, ast.Constant) else "")
        except ValueError:
            raise ExprError("a version is compared with text such as '8.9'", node.col_offset) from None

    def _call(self, node: ast.Call, depth: int) -> Type:
        name = _dotted(node.func)
        if name not in FUNCTIONS:
            raise ExprError(f"unknown function {name!r}{suggestion(name, FUNCTIONS)}", node.col_offset)
        _, count, kind = FUNCTIONS[name]
        if node.keywords or (len(node.args) < 2 if count is None else len(node.args) != count):
            raise ExprError(f"{name} takes {'two or more' if count is None else count} arguments", node.col_offset)
        for argument in node.args:
            if name == "given":
                self._given(node, argument, depth)
            elif name == "known":
                if not isinstance(argument, ast.Name | ast.Attribute):
                    raise ExprError("known() takes a name", argument.col_offset)
                self._look_up(argument)  # asked about, not needed
            else:
                self._expect("number", argument, depth)
        return kind

    def _given(self, node: ast.Call, argument: ast.expr, depth: int) -> None:
        inner = _Checker(self.vocabulary)
        kind = inner.type_of(argument, depth)
        if not inner.names:
            raise ExprError("given() asks about a name", argument.col_offset)
        self.given.update({**inner.given, node: (kind, inner.names)})
        self.names |= inner.names


class GivenInFull(ast.NodeTransformer):
    """Writes `given(x)` as `known(a) and known(b) and x`, a and b being the names in x.

    A number must not be 0 and a text not be empty for it to hold; a version must only be known.
    """

    # what a value of each type is compared with; a truth stands for itself
    _NOTHING: Mapping[str, int | str] = {"number": 0, "text": ""}

    def __init__(self, calls: Mapping[ast.Call, tuple[str, Iterable[str]]]) -> None:
        self.calls = calls  # each given(...): the type of its argument, and the names in it

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """The call, or for given(x) the tests that it stands for."""
        entry = self.calls.get(node)
        self.generic_visit(node)
        if entry is None:
            return node
        kind, names = entry
        (value,) = node.args
        terms: list[ast.expr] = [
            ast.Call(ast.Name("known", ast.Load()), [ast.parse(name, mode="eval").body], []) for name in sorted(names)
        ]
        if kind in self._NOTHING:
            value = ast.Compare(value, [ast.NotEq()], [ast.Constant(self._NOTHING[kind])])
        if kind != "version":
            terms.append(value)
        return terms[0] if len(terms) == 1 else ast.BoolOp(ast.And(), terms)


def expression_code(tree: ast.expr) -> CodeType:
    """The code of the function whose value is the expression's."""
    return _code([ast.Return(_Translated(frozenset()).visit(tree))])


def decision_code(when: ast.expr | None, let: Sequence[tuple[str, ast.expr, bool]], check: ast.expr) -> CodeType:
    """The code of the function of one rule: None where `when` does not hold, else the value of `check`.

    `let`: name, expression, whether its value is a number. What it names is put into the facts, for the messages;
    what cannot be worked out raises as the arithmetic does.
    """
    body: list[ast.stmt] = []
    local: set[str] = set()
    if when is not None:
        refused = ast.UnaryOp(ast.Not(), _Translated(frozenset()).visit(when))
        body.append(ast.If(refused, [ast.Return(ast.Constant(None))], []))
    for name, tree, number in let:
        value = _Translated(frozenset(local)).visit(tree)
        if number:
            value = ast.Call(ast.Name(_BOUNDED, ast.Load()), [value], [])
        body.append(ast.Assign([ast.Name(_local(name), ast.Store()), _fact(name, ast.Store())], value))
        local.add(name)
    body.append(ast.Return(_Translated(frozenset(local)).visit(check)))
    return _code(body)


def _code(body: list[ast.stmt]) -> CodeType:
    arguments = ast.arguments(posonlyargs=[], args=[ast.arg(_FACTS)], kwonlyargs=[], kw_defaults=[], defaults=[])
    definition = ast.FunctionDef("rule", arguments, body, [])
    module = ast.fix_missing_locations(ast.Module([definition], []))
    return next(code for code in compile(module, "<rule>", "exec").co_consts if isinstance(code, CodeType))


def _local(name: str) -> str:
    return f"let_{name}"


def _fact(name: str, context: ast.expr_context) -> ast.Subscript:
    return ast.Subscript(ast.Name(_FACTS, ast.Load()), ast.Constant(name), context)


class _Translated(ast.NodeTransformer):
    """A checked tree with its names looked up in the facts; those in `local` were worked out before."""

    def __init__(self, local: frozenset[str]) -> None:
        self.local = local

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if not isinstance(node, _KINDS):
            raise TypeError(f"{type(node).__name__} was not checked")
        return super().generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in ("true", "false"):  # YAML's spelling
            return ast.Constant(node.id == "true")
        return ast.Name(_local(node.id), ast.Load()) if node.id in self.local else _fact(node.id, ast.Load())

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        return ast.Attribute(self.visit(node.value), node.attr, ast.Load())

    def visit_Call(self, node: ast.Call) -> ast.expr:
        arguments = [self.visit(argument) for argument in node.args]
        if not isinstance(node.func, ast.Name) or node.keywords:
            raise TypeError("this call was not checked")
        if node.func.id == "known":
            return ast.Compare(arguments[0], [ast.IsNot()], [ast.Name(_UNKNOWN, ast.Load())])
        return ast.Call(node.func, arguments, [])
