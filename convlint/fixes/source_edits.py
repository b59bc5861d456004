"""What findings on Python source advise, as edits of it; where none is safe to make, the line and why. Writes nothing.

Two things can be had by an edit alone: a convolution without a bias, and a setting for the whole run. Every edit is
parsed again, and is refused where the file would differ in anything else.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from convlint.errors import InputFault
from convlint.fixes.edits import Edit
from convlint.fixes.python.columns import by_columns
from convlint.fixes.python.constructors import Imports, argument
from convlint.fixes.python.inserting import inserted
from convlint.fixes.python.opened import Opened, Sources
from convlint.fixes.python.origins import origin
from convlint.fixes.python.rewriting import Rewrites, rewritten_each
from convlint.fixes.python.source import PythonSource
from convlint.fixes.python.syntax import Nodes
from convlint.model.location import CodeEdit, Location, Span
from convlint.model.source import Program, SourceReading
from convlint.report import Finding, Fix

Read = Callable[[str], bytes | None]
_SET = re.compile(r"\.(\w+) *[:=,)]")  # an attribute that may be set there
_BIAS, _BENCHMARK = {"bias": False}, {"runtime.cudnn_benchmark": True}


def with_source_edits(findings: Sequence[Finding], reading: SourceReading, read: Read) -> tuple[Finding, ...]:
    """The findings, with the edits that make what their fixes advise, or with the reason why there are none.

    `read` gives a file by the path that findings have, None where it cannot be read.
    """
    asked = [each.location for each in findings if each.fix is not None and each.fix.set == _BIAS]
    editor = _Editor(reading, read, asked)
    return tuple(_edited(finding, editor) for finding in findings)


def _edited(finding: Finding, editor: _Editor) -> Finding:
    fix = finding.fix
    if fix is None or not finding.location.path.endswith(".py"):
        return finding
    if fix.set == _BIAS:
        return replace(finding, fix=editor.without_bias(fix, finding.location))
    if fix.set == _BENCHMARK:
        return replace(finding, fix=editor.with_benchmark(fix, finding.location))
    return finding


class _Editor:
    """The files that findings point into, each parsed once. `asked` is where the convolutions with a bias stand."""

    def __init__(self, reading: SourceReading, read: Read, asked: Iterable[Location]) -> None:
        self._sources = Sources(read)
        self._sites: dict[Location, Span] = {}
        for record in reading.layers:
            span = record.layer.spans.get("layer")
            if span is not None:
                self._sites[record.layer.locate()] = self._sites[record.layer.locate("bias")] = span
        self._bias_uses = reading.bias_uses
        self._asked: dict[str, dict[Span, None]] = {}
        for at in asked:
            if at in self._sites:
                self._asked.setdefault(at.path, {})[self._sites[at]] = None
        self._made: dict[str, dict[ast.Call, tuple[Edit, ...] | str]] = {}
        self._uses: dict[str, Location | None] = {}
        self._programs: dict[Location, Program] = {program.at: program for program in reading.programs}

    def without_bias(self, fix: Fix, at: Location) -> Fix:
        """With the edit of the call that constructs the layer."""
        span = self._sites.get(at)
        source = self._sources.of(at.path)
        if span is None or isinstance(source, str):
            return _refused(fix, at, source if isinstance(source, str) else "the construction was not found")
        call = source[0].call_at(span)
        made = "there is no call, or more than one" if call is None else self._all_made(at.path, source)[call]
        if isinstance(made, str):
            return _refused(fix, at, made)
        use = self._bias_use(at.path, source[0].text)
        if use is not None:
            return _refused(fix, use, "this uses a bias that would be None")
        return _with(fix, at.path, made, source[0].raw)

    def _all_made(self, path: str, source: Opened) -> dict[ast.Call, tuple[Edit, ...] | str]:
        """The edits of all the calls of a file that were asked for, or why there are none."""
        if path not in self._made:
            calls = [call for call in map(source[0].call_at, self._asked[path]) if call is not None]
            handed_on = _handed_on(source[0].nodes)
            wanted = {call: _without_bias(*source, call, path, handed_on) for call in calls}
            able = {call: each for call, each in wanted.items() if isinstance(each, Rewrites)}
            made = dict(zip(able, rewritten_each(source[0], [*able.values()]), strict=True))
            self._made[path] = {
                call: made[call] if isinstance(each, Rewrites) else each for call, each in wanted.items()
            }
        return self._made[path]

    def _bias_use(self, path: str, text: str) -> Location | None:
        """What uses a bias that a file may construct, in that file first; `text` is what the file says."""
        if path not in self._uses:
            names = {"", *_SET.findall(text)} if self._bias_uses else set()
            places = [use.at for use in self._bias_uses if use.at.path == path or use.attribute in names]
            self._uses[path] = next((at for at in places if at.path == path), places[0] if places else None)
        return self._uses[path]

    def with_benchmark(self, fix: Fix, at: Location) -> Fix:
        """With the line that switches the tuning on, where the program shows a place for it."""
        program = self._programs.get(at)
        if program is None:
            return _refused(fix, at, "the program was not found")
        where = program.insert_at
        if where is None or where.line is None or where.column is None:
            return _refused(fix, at, "no place was found that every run passes first")
        if not program.torch_name:
            return _refused(fix, where, "nothing there imports torch")
        source = self._sources.of(where.path)
        if isinstance(source, str):
            return _refused(fix, where, source)
        statement = f"{program.torch_name}.backends.cudnn.benchmark = True"
        try:
            made = inserted(source[0], (where.line, where.column), statement)
        except InputFault as fault:
            return _refused(fix, where, fault.message)
        return _with(fix, where.path, made, source[0].raw)


def _without_bias(
    source: PythonSource, imports: Imports, call: ast.Call, path: str, handed_on: frozenset[ast.AST]
) -> Rewrites | str:  # fmt: skip
    """That after which the call constructs no bias, or why there is nothing."""
    parameter = imports.bias_of(call)
    if parameter is None:
        return f"which arguments `{ast.unparse(call.func)[:60]}` takes is not known"
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
    """The layers themselves that functions give to their callers, of whom others may be elsewhere."""
    given = [node.body for node in nodes.get(ast.Lambda, ())]
    returned = [node.value for node in nodes.get(ast.Return, ()) if node.value is not None]
    return frozenset((*given, *returned))


def _with(fix: Fix, path: str, made: Iterable[Edit], raw: bytes) -> Fix:
    """The fix with its edits, by bytes and by columns; both kinds change what a run computes."""
    edits = tuple(CodeEdit(path=path, start=edit.start, end=edit.end, new=edit.new) for edit in made)
    return replace(
        fix, code_edits=edits, edits=tuple(by_columns(each, raw) for each in edits), edits_safety="unsafe"
    )  # fmt: skip


def _refused(fix: Fix, at: Location, why: str) -> Fix:
    return replace(fix, no_edit=f"{at.path}:{at.line}: {why}" if at.line is not None else f"{at.path}: {why}")
