"""Edits for findings on Python source that is read, not run; without an edit, the line and the reason. Writes nothing.

Two fixes can be edits: a convolution without a bias, and a setting for the whole run. Every edit is
parsed again, and is refused where the file would differ in anything else.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from convlint.fixes.edits import Edit
from convlint.fixes.python.constructors import ImportedNames, Opened, Read, argument, opened, origin
from convlint.fixes.python.source import PythonSource, Rewrites, fix_with_edits, inserted, rewritten_each
from convlint.model.errors import InputFault
from convlint.model.location import Location, Span
from convlint.model.report import Finding, Fix
from convlint.model.source import BiasUse, SourceReading, TrainingProgram
from convlint.readers.python.evaluator import names_of
from convlint.readers.python.source_file import dotted, unparsed
from convlint.readers.python.walking import Nodes, every

_SET = re.compile(r"\.(\w+) *[:=,)]")  # an attribute that may be set there
_MAKES_CONVOLUTION = re.compile(r"\b\w*[Cc]onv\w*\(")
_MAKES_NORM = re.compile(r"\b(?:[A-Z]\w*(?i:norm|bn)\w*|norm_layer|norm|bn)\(")
_LOADS = "this loads weights that were made with the bias"
_BIAS, _BENCHMARK = {"bias": False}, {"runtime.cudnn_benchmark": True}


def with_source_edits(findings: Sequence[Finding], reading: SourceReading, read: Read) -> tuple[Finding, ...]:
    """The findings, with the edits that make what their fixes advise, or with the reason why there are none.

    `read` gives a file by the path that findings have, None where it cannot be read.
    """
    locations = [finding.location for finding in findings if finding.fix is not None and finding.fix.set == _BIAS]
    editor = _Editor(reading, read, locations)
    return tuple(_edited(finding, editor) for finding in findings)


def _edited(finding: Finding, editor: _Editor) -> Finding:
    fix = finding.fix
    if fix is None or fix.set not in (_BIAS, _BENCHMARK):
        return finding
    if not finding.location.path.endswith(".py"):
        return replace(finding, fix=replace(fix, no_edit="the cells of a notebook are not edited"))
    if fix.set == _BIAS:
        return replace(finding, fix=editor.without_bias(fix, finding.location))
    return replace(finding, fix=editor.with_benchmark(fix, finding.location))


def _names_of(source: PythonSource, calls: Iterable[ast.Call | None]) -> Iterator[str]:
    """The variables and attributes that get what the calls make, or something with it."""
    call_ids = set(map(id, calls))
    assigned = ((statement.value, target) for statement in source.nodes[ast.Assign] for target in statement.targets)
    annotated = ((statement.value, statement.target) for statement in source.nodes[ast.AnnAssign])
    for value, target in (*assigned, *annotated):
        if value is not None and any(id(inner) in call_ids for inner in every(value)):
            names = (node for node in every(target) if isinstance(node, ast.Name | ast.Attribute))
            yield from (node.id if isinstance(node, ast.Name) else node.attr for node in names)


_NUMBER = "0"


def _attributes_of(source: PythonSource, calls: Iterable[ast.Call]) -> frozenset[str] | None:
    """The attributes of `self` that get what the calls make, alone or in a Sequential: names in its keys of a state.

    A part of a Sequential that goes elsewhere counts as its number. None where anything else does, or an attribute
    gets another name.
    """
    sequentials = [call for call in source.nodes[ast.Call] if dotted(call.func).endswith("nn.Sequential")]
    names = {id(part): _NUMBER for call in sequentials for part in call.args}
    for statement in source.nodes[ast.Assign]:
        match statement:
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)], value=ast.Call() as value):
                line = value.args if dotted(value.func).endswith("nn.Sequential") else ()
                names.update(dict.fromkeys(map(id, (value, *line)), name))
    attributes = frozenset(names.get(id(call), "") for call in calls)
    again = any(re.search(rf"= *self\.{name}\b(?! *[.(\[])", source.text) for name in attributes)
    return None if "" in attributes or again else attributes


def _may_be_key(path: Sequence[str], attributes: frozenset[str]) -> bool:
    """Whether a key of a state (`stem.0.bias`, split) may be that of a layer in these attributes.

    That of a part of a Sequential ends in its number: it is none of the `head.bias` that training scripts leave out.
    """
    return not attributes.isdisjoint(path) or (_NUMBER in attributes and path[-2].isdecimal())


class _File(NamedTuple):
    """The edits of a file, without its syntax tree, which is large and no longer needed.

    `edits` are those of each construction that was asked for, or why there are none; `use` uses a bias of the file's.
    """

    raw: bytes
    edits: Mapping[Span, tuple[Edit, ...] | str]
    use: BiasUse | None


class _Editor:
    """The files that findings point into, each parsed once. `asked` is where the convolutions with a bias stand."""

    def __init__(self, reading: SourceReading, read: Read, asked: Iterable[Location]) -> None:
        self._read = read
        self._sites: dict[Location, Span] = {}
        self._loads: dict[Location, Location] = {}
        for record in reading.layers:
            span = record.layer.spans.get("layer")
            if span is not None:
                places = record.layer.locate(), record.layer.locate("bias")
                self._sites.update(dict.fromkeys(places, span))
                by = record.loaded_at or reading.loaded.get(record.layer.locate())
                self._loads.update(dict.fromkeys(places, by) if by is not None else {})
        self._bias_uses = reading.bias_uses
        self._asked: dict[str, dict[Span, None]] = {}
        for at in asked:
            if at in self._sites:
                self._asked.setdefault(at.path, {})[self._sites[at]] = None
        self._files: dict[str, _File | str] = {}
        self._programs: dict[Location, TrainingProgram] = {program.at: program for program in reading.programs}

    def without_bias(self, fix: Fix, at: Location) -> Fix:
        """The fix with the edit of the call that constructs the layer, or with the reason why there is none."""
        if at.path not in self._files:
            source = opened(self._read, at.path)
            self._files[at.path] = source if isinstance(source, str) else self._all_edits(source, at.path)
        span, file = self._sites.get(at), self._files[at.path]
        if span is None or isinstance(file, str):
            return _refused(fix, at, file if isinstance(file, str) else "the construction was not found")
        edits = file.edits[span]
        if isinstance(edits, str):
            return _refused(fix, at, edits)
        if file.use is not None:
            sure = file.use.at.path == at.path
            why = f"this {'uses' if sure else 'may use'} a bias that would be None"
            return _refused(fix, file.use.at, _LOADS if file.use.loads else why)
        if at in self._loads:
            return _refused(fix, self._loads[at], _LOADS)
        return fix_with_edits(fix, {at.path: edits}, lambda _: file.raw)

    def _all_edits(self, source: Opened, path: str) -> _File:
        calls = {span: source[0].call_at(span) for span in self._asked.get(path, ())}
        handed_on = _handed_on(source[0].nodes)
        rewrites = {
            span: "there is no call, or more than one"
            if call is None
            else _without_bias(*source, call, path, handed_on)
            for span, call in calls.items()
        }
        able = {span: result for span, result in rewrites.items() if isinstance(result, Rewrites)}
        edits_of = dict(zip(able, rewritten_each(source[0], [*able.values()]), strict=True))
        edits = {span: edits_of[span] if isinstance(result, Rewrites) else result for span, result in rewrites.items()}
        return _File(source[0].raw, edits, self._bias_use(path, source[0], calls.values()))

    def _bias_use(self, path: str, source: PythonSource, calls: Iterable[ast.Call | None]) -> BiasUse | None:
        """What uses a bias that these calls in a file may make, in that file first."""
        if not self._bias_uses:
            return None
        made = [call for call in calls if call is not None]
        own, anywhere, attributes = (
            {"", *_names_of(source, made)}, {"", *_SET.findall(source.text)}, _attributes_of(source, made),
        )  # fmt: skip
        places = [
            use
            for use in self._bias_uses
            if (use.within is None or path in use.within)
            and (
                attributes is None or _may_be_key(use.attribute.split("."), attributes)
                if "." in use.attribute
                else use.attribute in (own if use.at.path == path else anywhere)
            )
        ]
        return next((use for use in places if use.at.path == path), places[0] if places else None)

    def with_benchmark(self, fix: Fix, at: Location) -> Fix:
        """The fix with the line that switches the tuning on, or with the reason why it has no place."""
        program = self._programs.get(at)
        if program is None:
            return _refused(fix, at, "the program was not found")
        where = program.insert_at
        if where is None or where.line is None or where.column is None:
            return _refused(fix, at, "no place was found that every run passes first")
        if not program.torch_name:
            return _refused(fix, where, "no statement at the top level of that file imports torch")
        source = opened(self._read, where.path)
        if isinstance(source, str):
            return _refused(fix, where, source)
        statement = f"{program.torch_name}.backends.cudnn.benchmark = True"
        try:
            edits = inserted(source[0], (where.line, where.column), statement)
        except InputFault as fault:
            return _refused(fix, where, fault.message)
        return fix_with_edits(fix, {where.path: edits}, lambda _: source[0].raw)


def _without_bias(
    source: PythonSource, imports: ImportedNames, call: ast.Call, path: str, handed_on: frozenset[ast.AST]
) -> Rewrites | str:
    """The rewrites after which the call constructs no bias, or why there are none."""
    parameter = imports.bias_of(call)
    if parameter is None:
        return f"which arguments `{unparsed(call.func)[:60]}` takes is not known"
    if call in handed_on:
        return "whoever calls the function gets this layer, with a norm behind it or without"
    given = argument(call, parameter.name, parameter.parameters)
    if given.unclear:
        return f"{parameter.name} {given.unclear}"
    if given.value is None:
        return Rewrites({}, {call: {parameter.name: False}})
    if isinstance(given.value, ast.Constant) and given.value.value in (True, None):
        return Rewrites({given.value: False}, {})
    return f"{parameter.name} comes from {origin(source, given.value, path)}"


def _handed_on(nodes: Nodes) -> frozenset[ast.AST]:
    """The expressions of which callers decide whether a norm is behind them.

    These are what functions return, and all of functions that make a norm only if an argument asks for it.
    """
    bodies = [node.body for node in nodes[ast.Lambda]]
    returned = [node.value for node in nodes[ast.Return] if node.value is not None]
    return frozenset((*bodies, *returned)).union(*map(_without_norm_by_default, nodes[ast.FunctionDef]))


def _without_norm_by_default(function: ast.FunctionDef) -> set[ast.AST]:
    """What a function that leaves a norm out by default, as of `norm=False`, has where there is none."""
    defaults = names_of.defaults(function.args)
    off = {parameter for parameter, default in defaults if isinstance(default, ast.Constant) and not default.value}
    asking = (
        [node for node in every(function) if isinstance(node, ast.If) and _asks_for(node.test) in off] if off else []
    )
    branches = [
        node.body
        for node in asking
        if _begins_with_norm(node.body) and not any(_MAKES_NORM.search(unparsed(other)) for other in node.orelse)
    ]
    within = {inner for branch in branches for part in branch for inner in every(part)}
    return {inner for inner in every(function) if inner not in within} if branches else set()


def _asks_for(test: ast.expr) -> str:
    """The variable of the tests `norm` and `norm is not None`; '' for any other."""
    match test:
        case (
            ast.Name(id=name)
            | ast.Compare(left=ast.Name(id=name), ops=[ast.IsNot()], comparators=[ast.Constant(value=None)])
        ):
            return name
    return ""


def _begins_with_norm(code: Sequence[ast.stmt]) -> bool:
    """Whether it makes a norm before any convolution, so that the norm follows what is made elsewhere."""
    text = "\n".join(map(unparsed, code))
    norm, convolution = _MAKES_NORM.search(text), _MAKES_CONVOLUTION.search(text)
    return norm is not None and (convolution is None or norm.start() < convolution.start())


def _refused(fix: Fix, at: Location, why: str) -> Fix:
    return replace(fix, no_edit=f"{at.path}:{at.line}: {why}" if at.line is not None else f"{at.path}: {why}")
