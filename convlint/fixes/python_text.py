"""Edits of Python source that change a live model's layers: literals and keywords where it constructs them.

A width changes everywhere that states it, or nowhere: in all layers that share it, and in the norms between them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, cached_property, partial
from math import prod
from pathlib import PurePath
from typing import NamedTuple

from msgspec import Struct

from convlint.fixes.edits import Edit
from convlint.fixes.plan import group_of
from convlint.fixes.python.constructors import CONVOLUTIONS, DEFAULTS, LINEAR, NORMS, Read, argument, opened, origin
from convlint.fixes.python.source import PythonSource, Rewrites, rewritten
from convlint.model.channels import Channels, channels_of
from convlint.model.errors import InputFault
from convlint.model.grouping import grouped
from convlint.model.layer import ConvLayer
from convlint.model.location import Span
from convlint.model.network import Network, Operation
from convlint.model.report import Scalar
from convlint.readers.python.source_file import unparsed

_NOTHING = Rewrites({}, {})
Asked = tuple[int, str]  # a layer by its index, and one of its fields
OF_A_NORM = "channels"
_OF_A_VIEW, _OF_A_SPLIT = "view", "split"
_AXES = ("D", "H", "W")
_FIELDS: Mapping[str, tuple[str, ...]] = {  # parameter -> the fields that it states, one for each of D, H, W
    "in_channels": ("C",), "out_channels": ("K",), "groups": ("groups",), "bias": ("bias",),
    "kernel_size": ("T", "R", "S"), "stride": ("StrideD", "U", "V"), "padding": ("PadD", "PadH", "PadW"),
    "dilation": ("DilD", "DilH", "DilW"),
}  # fmt: skip
_PARAMETER = {field: name for name, fields in _FIELDS.items() for field in fields}
_PARAMETER |= {f"Pad{axis}_end": "padding" for axis in _AXES}
_COUNTING = {**CONVOLUTIONS, **LINEAR}


class ConstructorCall(NamedTuple):
    """A place in the user's code that constructs something."""

    path: str
    span: Span


class Statement(Struct, frozen=True, kw_only=True):
    """What one constructor call must state for `parameter`: one number for each axis, or a single one.

    It is for a layer or an operation, by index. `asked` are the changes that depend on it: they are made together, or
    none of them is. `of_each`: how many features a channel makes, for the flattened map that a linear layer reads.
    """

    site: ConstructorCall | None
    parameter: str
    old: tuple[int | bool, ...]
    new: tuple[int | bool, ...]
    asked: frozenset[Asked]
    layer: int | None = None
    operation: int | None = None
    of_each: int = 1


class Built(NamedTuple):
    """All layers, and all operations with sizes of their own, that one place constructs."""

    layers: list[int]
    operations: list[int]


class Constructed:
    """A network, and what each place in the code constructs of it."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.built: dict[ConstructorCall, Built] = {}
        for index, layer in enumerate(network.layers):
            if (site := site_of(layer)) is not None:
                self.built.setdefault(site, Built([], [])).layers.append(index)
        for number, operation in enumerate(network.operations):
            if (site := _site_of_operation(operation)) is not None:
                self.built.setdefault(site, Built([], [])).operations.append(number)

    @cached_property
    def channels(self) -> Channels:
        """Its groups of channels; worked out where widths change."""
        return channels_of(self.network)


class Statements:
    """What code must state so that layers are as `sets` says, by index; its widths include all layers that follow.

    `found` are the statements, `tied` sets of changes that depend on each other, `refused` what cannot be changed.
    """

    def __init__(self, constructed: Constructed, sets: Mapping[int, Mapping[str, Scalar]]) -> None:
        self.constructed, self.network, self.sets = constructed, constructed.network, sets
        self.refused: dict[Asked, str] = {}
        self.tied: list[frozenset[Asked]] = []
        self.statements = [statement for index in sorted(sets) for statement in self._of_layer(index)]
        if any(field in ("C", "K", "groups") for fields in sets.values() for field in fields):
            self._of_widths(constructed.channels)

    def _of_layer(self, index: int) -> Iterator[Statement]:
        layer, fields = self.network.layers[index], self.sets[index]
        for field in [field for field in fields if field not in _PARAMETER]:
            self.refused[index, field] = f"{field} is nothing that the code states where it constructs the layer"
        by_parameter = grouped((_PARAMETER[field], (index, field)) for field in fields if field in _PARAMETER)
        for parameter, asked in by_parameter.items():
            names = _FIELDS[parameter]
            names = names[3 - layer.dims :] if len(names) == 3 else names
            old = [getattr(layer, name) for name in names]
            new = [fields.get(name, before) for name, before in zip(names, old, strict=True)]
            ends = [f"{name}_end" for name in names] if parameter == "padding" else []
            # PyTorch pads both sides alike, and only whole numbers and booleans are written as literals.
            uneven = any(fields.get(end, value) != value for end, value in zip(ends, new, strict=False))
            if uneven or None in old or any(type(value) not in (int, bool) for value in new):
                self.refused.update(dict.fromkeys(asked, f"{parameter} does not state such sizes"))
                continue
            yield Statement(
                site=site_of(layer), parameter=parameter, old=tuple(old), new=tuple(new),
                asked=frozenset(asked), layer=index,
            )  # fmt: skip

    def _of_widths(self, channels: Channels) -> None:
        """Ties what changes with the same channels, refuses what is incomplete, adds what others state."""
        network, widths, asked_of = self.network, dict[int, int](), dict[int, set[Asked]]()
        for index, fields in self.sets.items():
            for field in fields.keys() & {"C", "K"}:
                if (of := group_of(channels, network.layers[index], index, field, int(fields[field]))) is not None:
                    widths[of[0]] = of[1]
        follow = channels.changes(network.layers, widths)
        for index, fields in self.sets.items():
            for field in fields.keys() & {"C", "K", "groups"}:
                if follow.get(index, {}).get(field) != fields[field]:
                    self.refused[index, field] = "it is not known which other layers have to change with it"
                for number in _groups_of(channels, network.layers[index], index, field):
                    asked_of.setdefault(number, set()).add((index, field))
        for number, width in widths.items():
            group, asked = channels.groups[number], asked_of.get(number, set())
            reason = group.fixed[0] if group.fixed else ""
            if width % group.multiple_of:
                reason = f"their number has to be a multiple of {group.multiple_of}"
            elif any(not follow[index].items() <= self.sets.get(index, {}).items() for index in group.layers):
                reason = reason or "other layers would have to change with them"
            if reason:
                self.refused.update(dict.fromkeys(asked, f"{group.width} channels stay: {reason}"))
        self.tied += map(frozenset, asked_of.values())
        self.statements += self._of_operations(channels, widths, asked_of)

    def _of_operations(
        self, channels: Channels, widths: Mapping[int, int], asked_of: Mapping[int, set[Asked]]
    ) -> Iterator[Statement]:
        wider = channels.widened(self.network, widths).operations
        for number, operation in enumerate(self.network.operations):
            site = _site_of_operation(operation)
            if operation.kind == "linear" and operation.sized:
                stated = {"in_features": operation.inputs[0], "out_features": number}
            elif operation.sized:
                together = site is not None and bool(self.constructed.built[site].layers)
                stated = {"out_channels" if together else OF_A_NORM: number}  # by one call: its out_channels are both's
            else:
                stated = {} if site is None else {_OF_A_SPLIT if operation.kind == "split" else _OF_A_VIEW: number}
            for parameter, owner in stated.items():
                old, new = self.network.operations[owner].C, wider[owner].C
                if old == new or old is None or new is None:
                    continue
                axis = channels.axes[owner] or ()
                asked = set().union(*(asked_of.get(group, set()) for group, _ in axis if group in widths))
                flattened = len(axis) == 1 and axis[0][1].denominator == 1  # behind a pixel shuffle it is a fraction
                yield Statement(
                    site=site, parameter=parameter, old=(old,), new=(new,), asked=frozenset(asked),
                    operation=number, of_each=int(axis[0][1]) if flattened else 1,
                )  # fmt: skip


def _site_of_operation(operation: Operation) -> ConstructorCall | None:
    """Where the user's code constructs an operation with sizes of its own; of views and splits, their line."""
    if operation.sized:
        return None if operation.span is None else ConstructorCall(operation.path, operation.span)
    path, _, line = operation.where.rpartition(" at ")[2].rpartition(":")
    is_view = operation.kind in ("view", "resize", "split") and (
        operation.work is None or operation.work.kind == "copy"
    )
    if not is_view or not path or not line.isdecimal():
        return None
    return ConstructorCall(path, (int(line), 0, int(line), 0))


def site_of(layer: ConvLayer) -> ConstructorCall | None:
    """Where the user's code constructs a layer."""
    span = layer.spans.get("layer")
    return None if span is None else ConstructorCall(layer.path, span)


def _groups_of(channels: Channels, layer: ConvLayer, index: int, field: str) -> list[int]:
    """The groups that a field of a layer depends on."""
    if field == "K" and (index in channels.written or not layer.depthwise):
        return [channels.written[index]] if index in channels.written else []
    return [number for number, _ in channels.read.get(index, ())]


class PythonEdits(Struct, frozen=True):
    """What to change in the bytes of which file, by its path; and what cannot be changed, with the reason.

    `in_code` is a reason that names a line which would have to change; empty where there is none.
    """

    edits: Mapping[str, tuple[Edit, ...]]
    refused: Mapping[Asked, str]
    in_code: str = ""


class _ParameterEdit(Struct, frozen=True):
    """What changes at one place for one parameter, and all that depends on it."""

    path: str
    rewrites: Rewrites
    asked: frozenset[Asked]


class PythonEditor:
    """The code of one network; `read` gives a file by the path that layers have, None where it cannot be read."""

    def __init__(self, network: Network, read: Read) -> None:
        self._constructed = Constructed(network)
        self._opened = cache(partial(opened, read))

    def edits(self, sets: Mapping[int, Mapping[str, Scalar]]) -> PythonEdits:
        """The edits after which the layers, by index, are what `sets` says: its widths complete."""
        statements = Statements(self._constructed, sets)
        refused, tied = dict(statements.refused), list(statements.tied)
        by_place = grouped(((statement.site, statement.parameter), statement) for statement in statements.statements)
        places, in_code = list[_ParameterEdit](), ""
        for (site, parameter), stated in by_place.items():
            asked: frozenset[Asked] = frozenset().union(*(statement.asked for statement in stated))
            tied.append(asked)
            if site is None:
                reason = _nowhere(statements.network, stated[0])
            else:
                rewrites = self._rewrites(site, stated[0])
                if parameter in (_OF_A_VIEW, _OF_A_SPLIT) and rewrites == _NOTHING:
                    continue
                if isinstance(rewrites, str):
                    reason = f"{site.path}:{site.span[0]}: {rewrites}"
                elif not (reason := _unlike(statements, site, stated)):
                    places.append(_ParameterEdit(site.path, rewrites, asked))
                    continue
                in_code = in_code or reason
            refused |= {change: reason for change in asked if change not in refused}
        # A file that cannot be edited refuses its places, and with them whatever is tied to them in other files.
        while True:
            _spread(refused, tied)
            edits, failing = self._by_file([place for place in places if not place.asked & refused.keys()])
            if not failing:
                return PythonEdits(edits, refused, in_code)
            refused |= failing

    def _rewrites(self, site: ConstructorCall, statement: Statement) -> Rewrites | str:
        """The rewrites after which a call states the new values, or why there are none."""
        if PurePath(site.path).is_absolute() or not site.path.endswith(".py"):  # paths of own code are relative
            return "it is no code of the project"
        source = self._opened(site.path)
        if isinstance(source, str):
            return source
        if statement.parameter in (_OF_A_VIEW, _OF_A_SPLIT):
            return _on_line(source[0], site.span[0], statement)
        call = source[0].call_at(site.span)
        if call is None:
            return "there is no call, or more than one"
        of_norm = statement.parameter == OF_A_NORM
        parameters = (NORMS if of_norm else _COUNTING).get(source[1].torch_class(call) or "")
        name = parameters[-1] if of_norm and parameters else statement.parameter
        if parameters is not None and name not in parameters:
            return _NOTHING  # a lazy module takes it from its input
        given = argument(call, name, parameters or ())
        if given.unclear:
            return f"{name} {given.unclear}"
        if given.value is not None:
            literals = _literals(given.value, statement)
            if literals is None:
                return f"{name} comes from {origin(source[0], given.value, site.path)}"
            return Rewrites(literals, {})
        if parameters is not None and all(size == DEFAULTS.get(name) for size in statement.old):
            new = statement.new[0] if len(set(statement.new)) == 1 else statement.new
            return Rewrites({}, {call: {name: new}})
        called = unparsed(call.func)[:60]
        return f"{name} is not given" if parameters else f"which sizes `{called}` takes is not known"

    def _by_file(self, places: Iterable[_ParameterEdit]) -> tuple[dict[str, tuple[Edit, ...]], dict[Asked, str]]:
        """The edits of all places by file; where a file cannot be edited, what depends on it is refused."""
        edits: dict[str, tuple[Edit, ...]] = {}
        failing: dict[Asked, str] = {}
        for path, own in grouped((place.path, place) for place in places).items():
            source = self._opened(path)
            assert not isinstance(source, str)  # it has places
            try:
                file_edits = rewritten(source[0], _merged(place.rewrites for place in own))
            except InputFault as fault:
                failing |= {change: f"{path}: {fault.message}" for place in own for change in place.asked}
                continue
            if file_edits:
                edits[path] = file_edits
        return edits, failing


def _nowhere(network: Network, statement: Statement) -> str:
    """Why nothing can be written that no line of the project is known to state."""
    if statement.layer is not None:
        return f"it is not known which line constructs {network.layers[statement.layer].name}"
    name = network.operations[statement.operation or 0].name
    return f"{name} has as many weights, and it is not known which line of the project says how many"


_OTHERS: Mapping[str, str] = {  # what else one place may make, by the parameter that states its channels
    OF_A_NORM: "constructs norms", "out_channels": "constructs norms", _OF_A_VIEW: "views maps",
    _OF_A_SPLIT: "splits maps",
    **dict.fromkeys(LINEAR["Linear"], "constructs linear layers"),
}  # fmt: skip


def _unlike(statements: Statements, site: ConstructorCall, stated: list[Statement]) -> str:
    """Why one constructor call cannot state all that is wanted of it; empty if it can."""
    first, built, where = stated[0], statements.constructed.built[site], f"{site.path}:{site.span[0]}"
    if any((statement.old, statement.new) != (first.old, first.new) for statement in stated):
        return f"{where} constructs several layers, which would have to differ in {first.parameter}"
    layers = {statement.layer for statement in stated}
    for index in built.layers:
        if index not in layers:
            name = statements.network.layers[index].name
            return f"{where} constructs {name} too, whose {first.parameter} would stay"
    operations = {statement.operation for statement in stated}
    kinds = statements.network.operations
    others = [at for at in built.operations if (kinds[at].kind == "split") == (first.parameter == _OF_A_SPLIT)]
    if first.parameter in _OTHERS and not operations.issuperset(others):
        return f"{where} {_OTHERS[first.parameter]} too that would stay as they are"
    return ""


def _spread(refused: dict[Asked, str], tied: Iterable[frozenset[Asked]]) -> None:
    """Refuses whatever is tied to something refused, for the same reason."""
    sets_of = grouped((change, together) for together in tied for change in together)
    pending = list(refused)
    while pending:
        reached = pending.pop()
        for together in sets_of.pop(reached, ()):
            new = together - refused.keys()
            refused |= dict.fromkeys(new, refused[reached])
            pending += new


def _literals(value: ast.expr, statement: Statement) -> dict[ast.Constant, int | bool] | None:
    """The literals to change in an argument; None where it is not the old values as literals."""
    old, new = statement.old, statement.new
    if isinstance(value, ast.Constant) and len(set(old)) == len(set(new)) == 1:
        parts: list[ast.expr] = [value]
        old, new = old[:1], new[:1]
    elif isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(old):
        parts = value.elts
    else:
        return _factor(value, statement) if isinstance(value, ast.BinOp) and len(old) == 1 else None
    literals = {}
    for part, before, after in zip(parts, old, new, strict=True):
        if not isinstance(part, ast.Constant) or type(part.value) is not type(before) or part.value != before:
            return None
        if before != after:
            literals[part] = after
    return literals


def _on_line(source: PythonSource, line: int, statement: Statement) -> Rewrites | str:
    """The rewrites after which the view or split on a line states the new channels; _NOTHING where it has no number."""
    found = list[dict[ast.Constant, int | bool]]()
    splits = statement.parameter == _OF_A_SPLIT
    for call in source.nodes[ast.Call]:
        name = getattr(call.func, "attr", "")
        if not call.lineno <= line <= (call.end_lineno or 0) or name not in (_SPLITS if splits else _RESHAPES):
            continue
        if splits:
            found += _parts_of(call, statement)
            continue
        sizes = [size for each in call.args for size in (each.elts if isinstance(each, ast.Tuple) else [each])]
        for size in sizes:
            if (literals := _literals(size, statement)) is not None:
                found.append(literals)
            elif prod(_factors(size).values()) == statement.old[0]:
                return f"the view states `{ast.unparse(size)[:60]}`"
    return _NOTHING if not found else Rewrites(found[0], {}) if len(found) == 1 else "it has the number more than once"


_RESHAPES, _SPLITS = ("view", "reshape"), ("split", "split_with_sizes")


def _parts_of(call: ast.Call, statement: Statement) -> list[dict[ast.Constant, int | bool]]:
    """The first argument of a split that is the old size of each part, with what its literals become; else nothing."""
    for given in (*call.args, *(keyword.value for keyword in call.keywords)):
        sizes = given.elts if isinstance(given, (ast.Tuple, ast.List)) else [given]
        literals = [_literals(size, statement) for size in sizes]
        if sizes and None not in literals:
            return [{literal: value for each in literals for literal, value in (each or {}).items()}]
    return []


def _factor(value: ast.expr, statement: Statement) -> dict[ast.Constant, int | bool] | None:
    """The channels to change in a product of literals, such as `512 * 7 * 7`; None where they are not one of these."""
    (old, *_), (new, *_), each = statement.old, statement.new, statement.of_each
    factors = _factors(value)
    channels = [literal for literal, number in factors.items() if number == old // each]
    return {channels[0]: new // each} if prod(factors.values()) == old and len(channels) == 1 else None


def _factors(value: ast.expr) -> dict[ast.Constant, int]:
    """The literals of a product of whole numbers; none of another expression."""
    factors: dict[ast.Constant, int] = {}
    waiting = [value]  # a list rather than recursion, which a long product would exhaust
    while waiting:
        part = waiting.pop()
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult):
            waiting += [part.left, part.right]
        elif isinstance(part, ast.Constant) and type(part.value) is int:
            factors[part] = part.value
        else:
            return {}
    return factors


def _merged(parts: Iterable[Rewrites]) -> Rewrites:
    """All of them at once. Raises InputFault where one literal would have to be two numbers."""
    literals: dict[ast.Constant, int | bool | tuple[int, ...]] = {}
    keywords: dict[ast.Call, dict[str, int | bool | tuple[int, ...]]] = {}
    for part in parts:
        for node, value in part.literals.items():
            if literals.setdefault(node, value) != value:
                raise InputFault("one number would have to be two")
        for call, own in part.keywords.items():
            keywords.setdefault(call, {}).update(own)
    return Rewrites(literals, keywords)
