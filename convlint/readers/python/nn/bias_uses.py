"""Find code that fails for a convolution without a bias: `conv.bias.data.zero_()`.

A use in doubt counts as one. Code behind a test (`if m.bias is not None:`), or that only other layers reach
(`isinstance(m, nn.Linear)`), cannot fail, until a name in the test is bound again.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from convlint.model.source import BiasUse
from convlint.readers.python.evaluator.names_of import Body, parameters
from convlint.readers.python.imports import ProjectImports
from convlint.readers.python.nn.modules import PUBLISHED
from convlint.readers.python.project import FRAMEWORKS
from convlint.readers.python.source_file import SourceFile, dotted, last_name, unparsed
from convlint.readers.python.walking import every

# Text of any file that uses a bias; a keyword `bias=False` is no use. Three patterns, as one that begins with fixed
# text is searched for much faster than an alternation.
_USES = tuple(map(re.compile, (rb"\.bias\b", rb"\.[\s\\]+bias\b", rb"bias['\"{]")))
_LOADS = "load_from_checkpoint"  # of Lightning, which makes the network, too
_USE_IN_LINE = re.compile(
    rb"^[\s\\]*bias\b(?!\s*=[^=])|\.[\s\\]*bias\b|bias['\"{]|\.parameters\(\)|\b" + _LOADS.encode()
)
# Calls to which the name of a missing bias can be given, some only with a default as their last argument
_ASK = re.compile(
    r"hasattr|delattr|endswith|startswith|find|get|setdefault|setattr|getattr3|pop2|"
    r"register_parameter|register_buffer|add_parameter"
)
# Methods by which a layer gets a parameter of that name
_DECLARE = re.compile(r"self\.(param|add_weight|add_variable)")
# A class whose methods get a context first, which holds what they keep for the backward pass: no layer
_AUTOGRAD = re.compile(r"(torch\.)?(autograd\.)?(function\.)?Function")
_TAKE_NONE = re.compile(r"(_?conv(_transpose)?[123]d(_transpose)?|_conv_forward|linear|isinstance|bool)\d+")
_OTHER_KIND = re.compile(r"(?!.*conv).*(norm|linear|dense|embedding|lstm|gru|rnn)", re.IGNORECASE)
# The name of one class, in contrast to variables: BatchNorm2d, and neither LINEAR_LAYERS nor norm_layer
_CLASS = re.compile(r"_?([A-Z][a-z]*)*(Norm|Linear|Dense|Embedding|LSTM|GRU|RNN)([1-3][dD]|Base|Bag|Cell)?")
# Variables that hold the class of a norm, by the names that PyTorch's own networks give them
_NORM_KIND = re.compile(r"_?norm_(?:layer|class|cls|type)", re.IGNORECASE)
_OTHER_NAME = re.compile(r"(^|[._])(bn|(batch|layer|group)?norm|linear)[0-9]*d?$", re.IGNORECASE)
_CLASS_IN_MODULE = re.compile(r"(\w+)\.(?:\w+\.)*[A-Z]\w*")
_SEVERAL = re.compile(r"List|Dict")  # in the names of containers of unknown parts

# Construction of a layer, perhaps moved to a device or type
_CONSTRUCTS = re.compile(
    r"(\w+)\.(?:\w+\.)*[A-Z]\w*\(.*\)(?:\.(?:to|cuda|cpu|eval|train|half|float|double|requires_grad_)\(.*\))*",
    re.DOTALL,
)

# The key of a state, whose path has a name, in contrast to that of a Sequential's own
_KEY = re.compile(r"(?:\d+\.)*[^\W\d]\w*(?:\.\w+)*\.bias")

_Layers = frozenset[str]  # source text of layers whose bias cannot fail
_NONE: _Layers = frozenset()


def first_uses(imports: ProjectImports) -> tuple[BiasUse, ...]:
    """Return the first use of each attribute's bias in each file; files to report on come first.

    A use of an unknown layer's bias concerns every layer of the programs that have it: after the first such in unknown
    programs, only files to report on are searched.
    """
    project = imports.project
    uses: dict[tuple[str, str], BiasUse] = {}
    given = frozenset(project.given)
    for path in project.where(may_use):
        # One such use already keeps every bias from being removed.
        if path not in given and any(not use.attribute and use.within is None for use in uses.values()):
            break
        file = project.file(path)
        if file is not None:
            for node, name in named_uses(file):
                if (path, name) not in uses:
                    within = None if name else imports.programs_with(path)
                    use = BiasUse(at=file.locate(node), attribute=name, within=within, loads=_loads_published(node))
                    uses[path, name] = use
    return tuple(uses.values())


def may_use(content: bytes) -> bool:
    """Whether a file with this content may use a bias, by a search of its text."""
    return any(word in content for word in (b".parameters()", _LOADS.encode())) or (
        b"bias" in content and any(pattern.search(content) for pattern in _USES)
    )


def named_uses(file: SourceFile) -> list[tuple[ast.expr, str]]:
    """Return the expressions that fail if the bias is None, in source order.

    Each comes with the attribute that has the bias (`conv` of `self.conv.bias`) if the file constructs every value of
    that attribute, with the key if that of a state (`net.conv.bias`), and with '' otherwise.
    """
    uses = _Uses(file)
    try:
        uses.block(file.tree.body, _NONE)
    # Too deeply nested for a visit by recursion: every use counts.
    except RecursionError:
        nodes = (node for node in every(file.tree) if isinstance(node, ast.expr))
        return [(node, "") for node in nodes if _holder(node) is not None or _is_word(node)]
    expressions = sorted(set(uses.nodes), key=lambda node: (node.lineno, node.col_offset))
    return [(node, uses.attribute(node)) for node in expressions]


class _Uses:
    """Collects uses of biases, keeping track of the layers whose bias exists or is no convolution's."""

    def __init__(self, file: SourceFile) -> None:
        self.nodes: list[ast.expr] = []
        self._lines = [at for at, line in enumerate(file.content_lines, 1) if _USE_IN_LINE.search(line)]
        self._tree = file.tree
        self._own, self._in_class = False, False  # whether `self` is the object whose method this is
        self._autograd = False  # whether the innermost class is a function of autograd
        self._function: ast.FunctionDef | ast.AsyncFunctionDef | None = None  # the innermost around what is visited

    @cached_property
    def _bound(self) -> dict[str, list[str]]:
        """The source text bound to each variable and to each attribute (`.name`) of any object; '' for loops.

        A parameter has the key `(name`.
        """
        values: dict[str, list[str]] = {}
        assigned: set[int] = set()
        for node in every(self._tree):
            if isinstance(node, (ast.Assign, ast.AnnAssign)):
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    assigned.add(id(target))
                    values.setdefault(_key(target), []).append(unparsed(node.value) if node.value else "")
            elif id(node) not in assigned and _binds(node):
                key = f"({node.arg}" if isinstance(node, ast.arg) else _key(node)
                values.setdefault(key, []).append("")
        return values

    def attribute(self, use: ast.expr) -> str:
        """Return the variable or attribute of `self` that has the bias, if the file constructs all its values.

        For the key of a state it is that.
        """
        if isinstance(use, ast.Constant):
            return use.value if isinstance(use.value, str) and _KEY.fullmatch(use.value) else ""
        holder = _holder(use)
        name = dotted(holder).removeprefix("self.") if holder is not None else ""
        values = self._bound.get(_key(holder), ()) if holder is not None else ()
        matches = [_CONSTRUCTS.fullmatch(self._with_class(value)) for value in values]
        ours = matches and "." not in name and f"({name}" not in self._bound  # no parameter
        return name if ours and all(match and match[1] in self._frameworks for match in matches) else ""

    def _classes(self, callee: str) -> list[str]:
        """Return the framework's classes that a callee may be: itself, or what a variable holds; none if unknown."""
        names = self._bound.get(callee) or [callee]
        return names if f"({callee}" not in self._bound and all(map(self._is_frameworks, names)) else []

    def _with_class(self, value: str) -> str:
        """Return the source text of a construction with a class for the variable that holds it."""
        callee, opening, rest = value.partition("(")
        return "".join((*self._classes(callee)[:1], opening, rest)) if callee.isidentifier() else value

    def _is_other_part(self, holder: ast.expr) -> bool:
        """Whether this is a part of the object's own Sequential that is no convolution: `self.block[1]`."""
        match holder:
            case ast.Subscript(
                value=ast.Attribute(value=ast.Name(id="self"), attr=name), slice=ast.Constant(value=int(at))
            ) if self._own:
                parts = [self._part(value, at) for value in self._bound.get(f".{name}", ())]
                return any(parts) and all(part is not None for part in parts)
        return False

    def _part(self, value: str, at: int) -> bool | None:
        """Whether a construction is a Sequential with a part there that is no convolution; None if it may be one.

        False for a layer, which has no parts.
        """
        call = ast.parse(value, mode="eval").body if value else None
        names = self._classes(dotted(call.func)) if isinstance(call, ast.Call) else []
        if not isinstance(call, ast.Call) or not names or any(map(_SEVERAL.search, names)):
            return None
        if not all(name.endswith(".Sequential") for name in names):
            return False
        parts = call.args[: at + 1]
        if len(parts) <= at or any(isinstance(part, ast.Starred) for part in parts):
            return None
        return _is_other_layer(self._with_class(unparsed(parts[at]))) or None

    @cached_property
    def _frameworks(self) -> frozenset[str]:
        """The names of imported modules of frameworks: `nn` of `from torch import nn`."""
        imports = [node for node in every(self._tree) if isinstance(node, ast.Import | ast.ImportFrom)]
        modules = [(name, getattr(node, "module", name.name) or "") for node in imports for name in node.names]
        return frozenset(
            (name.asname or name.name).split(".")[0]
            for name, module in modules if module.split(".")[0] in FRAMEWORKS and name.name.islower()
        )  # fmt: skip

    def _is_frameworks(self, name: str) -> bool:
        """Whether this is a class in a framework's module: `nn.Linear`."""
        match = _CLASS_IN_MODULE.fullmatch(name)
        return match is not None and match[1] in self._frameworks

    def block(self, statements: Sequence[ast.stmt], safe: _Layers) -> None:
        """Visit statements in order; one that leaves the block if a bias is None makes it safe for the rest."""
        safe = _still_safe(safe, statements)
        for at, statement in enumerate(statements, 1):
            start = min([statement.lineno, *(node.lineno for node in getattr(statement, "decorator_list", ()))])
            first = bisect_left(self._lines, start)
            # Statements without the word are skipped: most of a file.
            if first < len(self._lines) and self._lines[first] <= (statement.end_lineno or statement.lineno):
                self._visit(statement, safe)
            match statement:
                case ast.If(test=test, body=[*_, ast.Return() | ast.Continue() | ast.Break() | ast.Raise()]):
                    safe |= _still_safe(self._safe(test, False), statements[at:])
                case ast.Assert(test=test):
                    safe |= _still_safe(self._safe(test, True), statements[at:])

    def _visit(self, node: ast.AST, safe: _Layers, *, asked: bool = False) -> None:
        """Visit a node; if `asked`, it is a test, in which None does no harm."""
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                self._definition(node, safe)
            case ast.Assert() | ast.If(body=[*_, ast.Raise()]):
                tested = (inner for inner in every(node.test) if isinstance(inner, ast.expr))
                self.nodes += [use for use in tested if _holder(use) is not None and self._may_fail(use, safe)]
                self._children(node, safe)
            case (
                ast.Assign(targets=[ast.Name(id="__constants__")]) | ast.AnnAssign(target=ast.Name(id="__constants__"))
            ):
                pass  # for a compiler
            case ast.Assign(targets=[target], value=value) if _names_undecayed(_key(target), value):
                pass
            case ast.Assign(targets=[ast.Tuple() | ast.List()], value=value) if _gives_parameters(value):
                self.nodes.append(value)
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
                self._visit(test, safe, asked=True)
                for part, truth in ((node.body, True), (node.orelse, False)):
                    there = safe | self._safe(test, truth)
                    if isinstance(part, list):
                        self.block(part, there)
                    else:
                        self._visit(part, _still_safe(there, [part]), asked=asked)
            case ast.BoolOp(op=op, values=values):
                for value in values:
                    self._visit(value, safe, asked=asked or value is not values[-1])
                    safe |= self._safe(value, isinstance(op, ast.And))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self._visit(operand, safe, asked=True)
            case ast.Compare(left=left, ops=ops, comparators=others):
                texts = all(isinstance(op, (ast.Eq, ast.NotEq, ast.In, ast.NotIn)) for op in ops)
                for expression in (left, *others):
                    if not (texts and _is_text(expression)):  # `name == "bias"`, `"bias" in state`
                        self._visit(expression, safe, asked=unparsed(others[-1]) == "None")
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                tests = [test for loop in node.generators for test in loop.ifs]
                safe = _still_safe(safe, [node]).union(*(self._safe(test, True) for test in tests))
                made = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
                for expression in (*(loop.iter for loop in node.generators), *made):
                    self._visit(expression, safe)
                for expression in tests:
                    self._visit(expression, safe, asked=True)
            case _ if (holder := _holder(node)) is not None:
                if not asked and self._may_fail(node, safe):
                    self.nodes.append(node)  # type: ignore[arg-type]
                self._visit(holder, safe)
            case ast.Call():
                self._call(node, safe)
            case ast.Dict(keys=keys, values=values):
                # `{"bias": cfg.bias}` is an argument for a constructor; the key of a state has a path in front.
                arguments = [key for key in keys if isinstance(key, ast.Constant) and key.value == "bias"]
                for entry in (*keys, *values):
                    if entry is not None and entry not in arguments:
                        self._visit(entry, safe)
            case ast.Constant() if _is_word(node):
                self.nodes.append(node)
            case _:
                self._children(node, _still_safe(safe, [node]))

    def _definition(self, node: ast.ClassDef | Body, safe: _Layers) -> None:
        """Visit what may run later, when the tests around it no longer hold."""
        before = self._own, self._in_class, self._function, self._autograd
        if isinstance(node, ast.ClassDef):
            there = _NONE
            self._own = self._in_class = True
            self._autograd = any(_AUTOGRAD.fullmatch(dotted(base)) for base in node.bases)
        else:
            is_method, self._in_class = self._in_class, False
            self._own = self._own and (is_method or all(parameter.arg != "self" for parameter in parameters(node)))
            if isinstance(node, ast.Lambda):
                there = _still_safe(safe, [node])
            else:
                self._function = node
                there = self._annotated(node)
            if self._autograd and is_method and isinstance(node, ast.FunctionDef):
                there |= _still_safe(frozenset(parameter.arg for parameter in node.args.args[:1]), node.body)
        self._children(node, there)
        self._own, self._in_class, self._function, self._autograd = before

    def _call(self, node: ast.Call, safe: _Layers) -> None:
        if _loads_published(node):
            self.nodes.append(node)
        name = last_name(node.func)
        counted = f"{name}{len(node.args)}"
        takes_name = bool(_ASK.fullmatch(name) or _ASK.fullmatch(counted) or _DECLARE.fullmatch(dotted(node.func)))
        takes_none = bool(_TAKE_NONE.fullmatch(counted))
        self._visit(node.func, safe)
        # To a framework's layer None says that it has no bias, as False does.
        biases = [option.value for option in node.keywords
                  if option.arg == "bias" and self._is_frameworks(dotted(node.func))]  # fmt: skip
        options = [option.value for option in node.keywords if not _names_undecayed(option.arg, option.value)]
        for expression in (*node.args, *options):
            if not (takes_name and _is_word(expression)):
                self._visit(expression, safe, asked=takes_none or expression in biases)

    def _annotated(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> _Layers:
        """Return the parameters whose annotation is a layer that is no convolution."""
        typed = (parameter.arg for parameter in parameters(node)
                 if parameter.annotation is not None and self._is_other_kind(parameter.annotation))  # fmt: skip
        return _still_safe(frozenset(typed), node.body)

    def _children(self, node: ast.AST, safe: _Layers) -> None:
        for _, value in ast.iter_fields(node):
            children = value if isinstance(value, list) else [value]
            if children and isinstance(children[0], ast.stmt):
                self.block(children, safe)
            else:
                for child in children:
                    if isinstance(child, ast.AST):
                        self._visit(child, safe)

    def _may_fail(self, use: ast.AST, safe: _Layers) -> bool:
        holder = _holder(use)
        assert holder is not None
        text, key = unparsed(holder), _key(holder)
        values = self._bound.get(key, ())
        if self._own and (text == "self" or (text == f"self{key}" and values and all(map(_is_other_layer, values)))):
            return False
        if not key or not _OTHER_NAME.search(key):
            return text not in safe and not self._is_other_part(holder)
        # The name says that it is no convolution: a use only if something bound to it says otherwise.
        return any("conv" in value.lower() or not (key[0] == "." or re.search("norm|bn|linear", value.lower()))
                   for value in values)  # fmt: skip

    def _safe(self, test: ast.expr, truth: bool) -> _Layers:
        """Return the layers whose bias cannot fail if the test has that truth."""
        holder: ast.expr | None = None
        match test:
            case ast.BoolOp(op=op, values=values):
                parts = [self._safe(value, truth) for value in values]
                return _NONE.union(*parts) if isinstance(op, ast.And) is truth else parts[0].intersection(*parts[1:])
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self._safe(operand, not truth)
            case ast.Compare(left=left, ops=[op], comparators=[ast.Constant(value=None)]):
                holder = _tested_holder(left) if isinstance(op, (ast.IsNot, ast.NotEq)) is truth else None
            case _ if not truth:
                return _NONE
            case (
                ast.Compare(
                    left=ast.Call(func=ast.Attribute(value=text, attr="find"), args=[ast.Constant(value=str(name))]),
                    ops=[ast.NotEq() | ast.Gt() | ast.GtE()],
                )
                | ast.Compare(left=ast.Constant(value=str(name)), ops=[ast.In()], comparators=[text])
            ):
                return frozenset(self._of_class_name(text)) if _OTHER_KIND.match(name) else _NONE
            case (
                ast.Compare(
                    left=ast.Call(func=ast.Name(id="type"), args=[layer]),
                    ops=[ast.Is() | ast.Eq() | ast.In()],
                    comparators=[kinds],
                )
                | ast.Call(func=ast.Name(id="isinstance"), args=[layer, kinds])
            ):
                holder = layer if self._is_other_kind(kinds) else None
            case _:
                holder = _tested_holder(test)
        return _NONE if holder is None else frozenset((unparsed(holder),))

    def _is_other_kind(self, kinds: ast.expr) -> bool:
        """Whether each of the classes has the name of a layer that is no convolution."""
        match kinds:
            case ast.Tuple(elts=classes) | ast.List(elts=classes) | ast.Set(elts=classes):
                return bool(classes) and all(map(self._is_other_kind, classes))
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                return self._is_other_kind(left) and self._is_other_kind(right)
        head, _, name = dotted(kinds).rpartition(".")
        if _NORM_KIND.fullmatch(name):
            return True
        is_bound = name in self._bound or f".{name}" in self._bound
        variable = head in ("self", "cls") or (is_bound and head.partition(".")[0] not in self._frameworks)
        return not variable and bool(_OTHER_KIND.match(name) and _CLASS.fullmatch(name))

    def _of_class_name(self, text: ast.expr) -> Iterator[str]:
        """Yield the layer of whose class `text` is the name, directly or by a variable that is bound once."""
        values = self._bound.get(text.id, []) if isinstance(text, ast.Name) else [unparsed(text)]
        layers = [re.search(r"([\w.]+)\.__class__|\btype\(([\w.]+)\)\.__(?:qual)?name__", value) for value in values]
        names = {match[1] or match[2] if match else "" for match in layers}
        if len(names) == 1 and not any(map(self._is_bound_again, names)):
            yield from names

    def _is_bound_again(self, name: str) -> bool:
        """Whether something else than the parameter may have this name where it is read."""
        function = self._function
        if function is None or all(parameter.arg != name for parameter in parameters(function)):
            return bool(self._bound.get(name))
        stores = (node for node in every(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
        return any(node.id == name for node in stores)


def _holder(node: ast.AST) -> ast.expr | None:
    """Return `m` of `m.bias` and `getattr(m, "bias")`; None for anything else."""
    match node:
        case ast.Attribute(value=holder, attr="bias", ctx=ast.Load()):
            return holder
        case ast.Call(func=ast.Name(id="getattr"), args=[holder, ast.Constant(value="bias")]):
            return holder
    return None


def _loads_published(node: ast.AST) -> bool:
    """Whether it makes a network with weights that others have published."""
    match node:
        case ast.Call(func=ast.Attribute(attr=name)) if name == _LOADS:
            return any(PUBLISHED.search(unparsed(value)) for value in (*node.args, *node.keywords))
    return False


def _tested_holder(node: ast.expr) -> ast.expr | None:
    """Return what `_holder` returns, and `m` for `getattr(m, "bias", None)` too."""
    match node:
        case ast.Call(func=ast.Name(id="getattr"), args=[holder, ast.Constant(value="bias"), _]):
            return holder
    return _holder(node)


def _is_word(node: ast.AST) -> bool:
    """Whether this is the name of a bias in a state dict."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and f".{node.value}".endswith(".bias")


def _is_text(node: ast.expr) -> bool:
    of_texts = isinstance(node, (ast.Tuple, ast.List, ast.Set)) and all(map(_is_text, node.elts))
    return of_texts or isinstance(node, ast.Constant)


def _names_undecayed(name: str | None, value: ast.expr) -> bool:
    """Whether it is the list of words by which parameters are left without decay: `no_decay = ["bias", "norm"]`."""
    return "decay" in (name or "").lower() and not isinstance(value, ast.Constant) and _is_text(value)


def _gives_parameters(value: ast.expr) -> bool:
    """Whether it is `conv.parameters()`, unpacked to two names, which fails without a bias."""
    inner = value.args[:1] if isinstance(value, ast.Call) else []
    calls = [call.func for call in (value, *inner) if isinstance(call, ast.Call)]
    return any(isinstance(function, ast.Attribute) and function.attr == "parameters" for function in calls)


def _is_other_layer(value: str) -> bool:
    """Whether the source text constructs a layer that is no convolution."""
    return "(" in value and _OTHER_KIND.match(value.partition("(")[0].rpartition(".")[2]) is not None


def _key(node: ast.AST) -> str:
    """Return the name that a node binds; for an attribute of any object, with a dot in front."""
    match node:
        case ast.Attribute(attr=name):
            return f".{name}"
        case ast.Name(id=name) | ast.arg(arg=name):
            return name
    return ""


def _binds(node: ast.AST) -> bool:
    """Whether the node is a parameter, or sets or deletes a variable or an attribute."""
    return isinstance(node, ast.arg) or isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del))


def _still_safe(safe: _Layers, nodes: Iterable[ast.AST]) -> _Layers:
    """Return the layers whose text has no name or attribute that the nodes bind."""
    if not safe:
        return safe
    bound = {_key(inner).removeprefix(".") for node in nodes for inner in every(node) if _binds(inner)}
    return frozenset(layer for layer in safe if bound.isdisjoint(re.findall(r"\w+", layer)))
