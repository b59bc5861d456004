"""Find forward passes in blocks of autocast, and two misuses of autocast within a function."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise

from convlint.model.location import Location
from convlint.readers.python.programs.settings import ON_GPU
from convlint.readers.python.programs.unit import SourceUnit, literal
from convlint.readers.python.source_file import dotted, last_name, unparsed
from convlint.readers.python.walking import bodies, every

# Those that are of one device, whose first argument is `enabled`
_OF_DEVICES = {"torch.cuda.amp.autocast", "torch.cpu.amp.autocast", "torch.cuda.amp.autocast_mode.autocast"}
_AUTOCAST = {"torch.autocast", "torch.amp.autocast", "torch.amp.autocast_mode.autocast", *_OF_DEVICES}
_MANAGERS = {*_AUTOCAST, "contextlib.nullcontext"}
_FP32 = ("torch.float32", "torch.float")  # a dtype with which autocast changes nothing
_DEVICE = re.compile("cpu|cuda")
# Parts of names: a call of a name with one of these computes a loss
_CRITERIA = ("criterion", "loss", "cross_entropy", "mse", "bce", "nll", "l1", "kl_div", "ce")
_MOVES = ("cuda", "to", "long")  # calls that move targets to where the loss is computed
# Ends of names of models
_MODELS = ("model", "net", "network", "unet", "generator", "encoder", "backbone", "resnet", "classifier")


def trains_inside(unit: SourceUnit) -> bool:
    """Whether a function that calls `.backward()` calls its model in a block of autocast that is always on for CUDA."""
    for body in bodies(unit.file.tree):
        if not any(
            isinstance(node, ast.Attribute) and node.attr == "backward" for outer in body for node in every(outer)
        ):
            continue
        for block in (node for node in body if isinstance(node, ast.With) and _is_autocast(node, unit)):
            calls = [node for node in _within(block.body, unit) if isinstance(node, ast.Call)]
            if _is_surely_on(block, unit) and any(_is_model(call.func) for call in calls):
                return True
    return False


def is_decorated(unit: SourceUnit) -> bool:
    """Whether a decorator runs a function in autocast that is always on for CUDA, as the `forward` of a model."""
    functions = (node for kind in (ast.FunctionDef, ast.AsyncFunctionDef) for node in unit.file.nodes[kind])
    made = (call for function in functions for call in function.decorator_list if isinstance(call, ast.Call))
    return any(_always([call], unit) for call in made if unit.full_name(call.func) in _AUTOCAST)


def _is_surely_on(block: ast.With, unit: SourceUnit) -> bool:
    entered = _entered(block, unit)
    beside = [item.context_expr for item in block.items if isinstance(item.context_expr, ast.Call)]
    if any(unit.full_name(call.func) in ("torch.no_grad", "torch.inference_mode") for call in beside):
        return False
    return _always(entered, unit)


def _always(entered: list[ast.Call], unit: SourceUnit) -> bool:
    given = [argument for call in entered for argument in _enabled(call, unit)]
    on = all(literal(argument) == (True,) or ON_GPU.fullmatch(unparsed(argument)) for argument in given)
    exact = any(
        unit.full_name(word.value) in _FP32 for call in entered for word in call.keywords if word.arg == "dtype"
    )
    return (
        on
        and not exact
        and not any(literal(argument) == ("cpu",) for call in entered for argument in _devices(call, unit))
    )


def _devices(call: ast.Call, unit: SourceUnit) -> list[ast.expr]:
    """Return the arguments that may give the device: torch.autocast's first one, and `device_type`."""
    first = [] if unit.full_name(call.func) in _OF_DEVICES else call.args[:1]
    return [*first, *(keyword.value for keyword in call.keywords if keyword.arg == "device_type")]


def backward_inside(unit: SourceUnit) -> tuple[Location, ...]:
    """Return calls of `.backward()` inside an autocast block of the same function."""
    calls = (node for block in _blocks(unit) for node in _while_on(block, unit) if isinstance(node, ast.Call))
    backward = (call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "backward")
    return tuple(dict.fromkeys(map(unit.file.locate, backward)))


def around_loss(unit: SourceUnit) -> tuple[Location, ...]:
    """Return calls of a model directly in front of an autocast block that holds only the criterion."""
    locations = []
    blocks = list(_blocks(unit))
    # An outer autocast block covers the model's call as well.
    inside = {id(node) for block in blocks for statement in block.body for node in every(statement)}
    for body in bodies(unit.file.tree) if blocks else ():
        # Only direct neighbours: with code in between, the split may be intended.
        for before, block in pairwise(body):
            if isinstance(block, ast.With) and _is_autocast(block, unit) and id(block) not in inside:
                output = _model_call(before)
                if output and _only_loss(block.body, output):
                    locations.append(unit.file.locate(before))
    return tuple(locations)


def _blocks(unit: SourceUnit) -> Iterator[ast.With]:
    return (node for node in unit.file.nodes[ast.With] if _is_autocast(node, unit))


def _entered(node: ast.With, unit: SourceUnit) -> list[ast.Call]:
    """Return the constructions of torch's autocast that a `with` enters."""
    calls = [call for item in node.items for call in _made(item.context_expr, unit)]
    return [call for call in calls if unit.full_name(call.func) in _AUTOCAST]


def _made(node: ast.expr, unit: SourceUnit) -> list[ast.Call]:
    """Return the calls that make a context manager: of a variable all, if none makes another kind."""
    if isinstance(node, ast.Call):
        return [_returned(node, unit) or node]
    if not isinstance(node, ast.Name | ast.Attribute):
        return []
    name = unparsed(node)
    values = [each.value for each in unit.file.nodes[ast.Assign] if name in map(unparsed, each.targets)]
    ways = [way for value in values for way in (_sides(value) if isinstance(value, ast.IfExp) else [value])]
    calls = [way for way in ways if isinstance(way, ast.Call) and unit.full_name(way.func) in _MANAGERS]
    return calls if len(calls) == len(ways) else []


def _returned(call: ast.Call, unit: SourceUnit) -> ast.Call | None:
    """Return the call that a function of the same file is nothing but a name for."""
    match unit.functions.get(dotted(call.func)):
        case ast.FunctionDef(body=[*_, ast.Return(value=ast.Call() as made)], decorator_list=[]) as function:
            return made if len(function.body) - bool(ast.get_docstring(function)) == 1 else None
    return None


def _sides(choice: ast.IfExp) -> list[ast.expr]:
    """Return both values of a choice by the device; that itself of any other."""
    return [choice.body, choice.orelse] if _DEVICE.search(unparsed(choice.test)) else [choice]


def _is_autocast(node: ast.With, unit: SourceUnit) -> bool:
    """Whether a `with` enters torch's autocast, and does not disable it."""
    return any((False,) not in map(literal, _enabled(call, unit)) for call in _entered(node, unit))


def _enabled(call: ast.Call, unit: SourceUnit) -> list[ast.expr]:
    """Return the arguments that turn it on: the first, or the third behind a device and a dtype; and `enabled`."""
    place = 0 if unit.full_name(call.func) in _OF_DEVICES else 2
    return [*call.args[place : place + 1], *(keyword.value for keyword in call.keywords if keyword.arg == "enabled")]


def _while_on(block: ast.With, unit: SourceUnit) -> Iterator[ast.AST]:
    """Yield the nodes of an autocast block, without branches that run only if its `enabled` is false."""
    on = {unparsed(argument) for call in _entered(block, unit) for argument in _enabled(call, unit)}
    off = {f"not {text}" for text in on}
    skipped = {
        id(inner)
        for node in _within(block.body, unit) if isinstance(node, ast.If)
        for tests, branch in ((on, node.orelse), (off, node.body)) if unparsed(node.test) in tests
        for statement in branch for inner in every(statement)
    }  # fmt: skip
    return (node for node in _within(block.body, unit) if id(node) not in skipped)


def _within(body: list[ast.stmt], unit: SourceUnit) -> Iterator[ast.AST]:
    """Yield the nodes of a block, without inner functions and without autocast blocks of their own."""
    waiting: list[ast.AST] = list(body)
    for node in waiting:  # which grows meanwhile
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        if isinstance(node, ast.With) and _entered(node, unit):
            continue  # a block of its own, or one that is off
        yield node
        waiting += ast.iter_child_nodes(node)


def _model_call(node: ast.stmt) -> str:
    """Return the name bound in `output = model(images)`; '' for any other statement."""
    match node:
        case ast.Assign(targets=[ast.Name(id=output)], value=ast.Call(func=function, args=[_, *_])):
            return output if _is_model(function) else ""
    return ""


def _is_model(function: ast.expr) -> bool:
    name = last_name(function).lower()
    return any(name == model or name.endswith("_" + model) for model in _MODELS)


def _only_loss(body: list[ast.stmt], output: str) -> bool:
    """Whether a block computes losses of `output` and calls nothing else."""
    used = False
    for node in body:
        if not isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
            return False
        for inner in every(node):
            if not isinstance(inner, ast.Call):
                continue
            name = last_name(inner.func).lower()
            if isinstance(inner.func, ast.Attribute) and name in _MOVES:
                continue
            if not any(part in name for part in _CRITERIA[:3]) and name not in _CRITERIA:
                return False
            given = [*inner.args, *(keyword.value for keyword in inner.keywords)]
            # A loss of something else may be meant to stay in fp32.
            used = used or any(isinstance(leaf, ast.Name) and leaf.id == output for arg in given for leaf in every(arg))
    return used
