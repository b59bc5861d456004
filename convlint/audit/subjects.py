"""The models of an audit: from paths, lists and the config, one after the other as they are asked for."""

from __future__ import annotations

import codecs
import csv
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, BinaryIO

from msgspec import Struct
from msgspec.structs import replace

from convlint.files.bounded_file import open_regular
from convlint.files.located_yaml import Value
from convlint.files.safe import clean
from convlint.mend.checking import Job, Running, resolve_targets, settings_of, value_of
from convlint.model.errors import InputFault, UsageError, shown, suggestion
from convlint.model.layer import AUTOCAST, MODES, TRACES, Mode
from convlint.model.location import Span
from convlint.model.report import InputError
from convlint.model.runtime import Runtime
from convlint.readers.discovery import is_source, streamed
from convlint.readers.inputs import Input, Model, decide
from convlint.readers.references import parse_reference
from convlint.readers.spec.fields import dtype_of, layout_of
from convlint.run.plan import RunPlanner
from convlint.run.run import included, tidy

NOTHING_SAID = Running()


class Subject(Struct, frozen=True, kw_only=True):
    """A model under a name that no other of the audit has; what is left open is the config's and the file's to say."""

    name: str
    source: Input
    architecture: str = ""  # what the list calls it; models of one architecture are ranked together
    gpus: tuple[str, ...] = ()
    mode: Mode | None = None
    batch: int | None = None
    inputs: Mapping[str, str] = {}
    running: Running = NOTHING_SAID

    def job(self, usual: Job) -> Job:
        """How it is checked: as the command line asks, then as its list says, then as the config does."""
        reading = usual.reading
        asked, own = usual.asked, self.running
        return replace(
            usual,
            gpus=usual.gpus or self.gpus,
            mode=usual.mode or self.mode,
            reading=replace(
                reading,
                batch=self.batch if reading.batch is None else reading.batch,
                inputs=reading.inputs or self.inputs,
            ),
            asked=replace(
                asked,
                settings={**own.settings, **asked.settings},
                dtype=asked.dtype or own.dtype,
                layout=asked.layout or own.layout,
            ),
            fixing=None,
        )


# key -> meaning; each setting of the runtime is a key too, bare or as runtime.<setting>
KEYS: Mapping[str, str] = {
    "model": "a file, or package.module:name with literal arguments where it is called",
    "name": "under which it stands in tables and weights; its path where none is given",
    "architecture": "models of one architecture are ranked together",
    "inputs": "shapes of its inputs, in order or by name, such as x=16x3x640x640:fp16",
    "batch": "batch size of the whole network",
    "gpu": "GPUs that it runs on, with commas between",
    "mode": "training or inference",
    "dtype": "what layers are computed in",
    "layout": "NCHW, NHWC or auto",
    "channels_last": "whether a module is put into channels_last",
    "trace": "train or eval: the mode in which a module is followed",
    "autocast": "fp16 or bf16: what torch.autocast runs a module's convolutions in",
    "runtime": "settings of the runtime, as in a spec",
}
ALIASES = {"path": "model", "target": "gpu"}
_PREFIX = "runtime."
_NOWHERE: Span = (0, 0, 0, 0)
_OF_MODULES = ("channels_last", "trace", "autocast")
_MOST_BATCH = 10**9


def known_key(word: str) -> str:
    """The key that a word stands for. Raises InputFault with the nearest one."""
    key = ALIASES.get(word, word)
    settings = Runtime.__struct_fields__
    if key in KEYS or key.removeprefix(_PREFIX) in settings:
        return key
    raise InputFault(f"unknown key {shown(word)!r}{suggestion(word, [*KEYS, *ALIASES, *settings])}")


def subject_of(given: Mapping[str, Any], path: str, line: int, *, modules: bool) -> Subject:
    """The subject that an entry at `line` of the list `path` names. Raises InputFault."""
    values: dict[str, Any] = {}
    for word, value in given.items():
        key = known_key(word)
        if value is not None and value != "":
            if key in values:
                raise InputFault(f"{key} is given twice")
            values[key] = value
    word = _text(values, "model")
    if not word:
        raise InputFault("names no model")
    if word == "-":
        raise InputFault("standard input is no model of a list")
    source = decide(word, modules=modules)
    gpus = tuple(_words(values.get("gpu", ())))
    try:
        resolve_targets(gpus)
    except UsageError as error:
        raise InputFault(str(error)) from None
    mode = _one_of("mode", _text(values, "mode"), MODES)
    settings = _settings(values)
    name, inputs = _text(values, "name") or source.name, _inputs(values.get("inputs"))
    if source.kind == "module":
        parse_reference(word)
        source = _module(word, name, values, path, line, settings, inputs)
    elif any(key in values for key in _OF_MODULES):
        key = next(key for key in _OF_MODULES if key in values)
        raise InputFault(f"{key} is for package.module:name; what a file runs in is said by layout and dtype")
    return Subject(
        name=name, source=source, architecture=_text(values, "architecture"), gpus=gpus, mode=mode,
        batch=_batch(values.get("batch")), inputs=inputs,
        running=Running(
            settings=settings,
            dtype=dtype_of(Value(_text(values, "dtype"), _NOWHERE)) if "dtype" in values else None,
            layout=layout_of(Value(_text(values, "layout"), _NOWHERE)) if "layout" in values else None,  # type: ignore[arg-type]
        ),
    )  # fmt: skip


def _module(
    word: str, name: str, values: Mapping[str, Any], path: str, line: int, settings: Mapping[str, Any],
    inputs: Mapping[str, str],
) -> Input:  # fmt: skip
    autocast = _one_of("autocast", _text(values, "autocast"), AUTOCAST)
    if autocast is not None:
        settings = {"mixed_precision": True, **settings}
    trace = _one_of("trace", _text(values, "trace"), TRACES)
    at: Span = (line, 1, line, 1)
    model = Model(
        reference=word, path=path, inputs=inputs, channels_last=_flag(values.get("channels_last", False)),
        autocast=autocast, trains=None if trace is None else trace == "train", settings=settings,
        spans=dict.fromkeys(("name", "model", "inputs", "target", "mode", *settings), at),
    )  # fmt: skip
    return Input(kind="module", name=name, model=model)


def _settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of the runtime, wherever the entry has them."""
    table = values.get("runtime", {})
    if not isinstance(table, dict):
        raise InputFault("runtime must be an object of settings; in a line or CSV, each is a key of its own")
    settings = dict(table)
    for key, value in values.items():
        setting = key.removeprefix(_PREFIX)
        if key not in KEYS:
            if setting in settings:
                raise InputFault(f"{setting} is given twice")
            settings[setting] = value
    # Text of a line or a table's cell is read as a spec would; what JSON types stays what it is.
    return settings_of(
        {key: Value(it, _NOWHERE, plain=True) if isinstance(it, str) else value_of(it) for key, it in settings.items()}
    )


def _text(values: Mapping[str, Any], key: str) -> str:
    value = values.get(key, "")
    if not isinstance(value, str):
        raise InputFault(f"{key} must be a text")
    return value.strip()


def _words(value: Any) -> Iterable[str]:
    names = value if isinstance(value, list | tuple) else [value]
    for text in names:
        if not isinstance(text, str):
            raise InputFault("gpu must be a name, or several")
        yield from filter(None, re.split(r"[,\s]+", text))


def _one_of(key: str, word: str, known: tuple[Any, ...]) -> Any:
    if word and word not in known:
        raise InputFault(f"{key}: {shown(word)!r} is not one of {', '.join(known)}{suggestion(word, known)}")
    return word or None


def _flag(value: Any) -> bool:
    words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    flag = value if isinstance(value, bool) else words.get(str(value).strip().lower())
    if flag is None:
        raise InputFault("channels_last must be true or false")
    return flag


def _batch(value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not re.fullmatch(r"[0-9]{1,10}", str(value).strip()):
        raise InputFault("batch must be a whole number")
    batch = int(value)
    if not 1 <= batch <= _MOST_BATCH:
        raise InputFault(f"batch must be from 1 to {_MOST_BATCH:,}")
    return batch


def _inputs(value: Any) -> dict[str, str]:
    """`x=16x3x8x8 4x10` of a line or a cell, or what JSON has: a text, a list or an object."""
    if value is None:
        return {}
    if isinstance(value, dict):
        if not all(isinstance(shape, str) for shape in value.values()):
            raise InputFault("inputs must have a text for each shape, such as 16x3x224x224")
        return dict(value)
    shapes = value.split() if isinstance(value, str) else value
    if not isinstance(shapes, list) or not all(isinstance(shape, str) for shape in shapes):
        raise InputFault("inputs must be shapes, such as 16x3x224x224, or an object of them")
    inputs: dict[str, str] = {}
    for text in shapes:
        key, _, shape = text.rpartition("=")
        inputs[key] = f"{inputs[key]},{shape}" if key in inputs else shape
    return inputs


MOST_LINE = 1 << 16  # bytes of one entry
_TABLES, _JSON = (".csv", ".tsv"), (".jsonl", ".ndjson")
# The keys after a model, from the right: a value has no brackets, so that no argument of a call is taken for a key.
_TAIL = re.compile(r"""\s+([A-Za-z_][\w.]*)=("[^"]*"|[^\s()"]+)\s*$""")


class ListEntry(Struct, frozen=True, kw_only=True):
    """An entry as it stands in its list, by key; `fault` where it cannot be read."""

    line: int
    values: dict[str, Any] = {}
    fault: str = ""


def entries_of(path: str) -> Iterator[ListEntry]:
    """The entries of the list at `path`, `-` being standard input. Raises UsageError where there is no such list."""
    try:
        return _entries(nullcontext(sys.stdin.buffer) if path == "-" else open_regular(path), path)
    except InputFault as fault:
        raise UsageError(f"{path}: {fault.message}") from None


def _entries(opened: AbstractContextManager[BinaryIO], path: str) -> Iterator[ListEntry]:
    name = path.lower()
    with opened as stream:
        if name.endswith(_TABLES):
            yield from _of_table(stream, path, "\t" if name.endswith(".tsv") else ",")
        else:
            yield from _of_lines(stream, as_json=name.endswith(_JSON))


def lines_of(stream: BinaryIO) -> Iterator[tuple[int, str | None]]:
    """Each line with its number; None where it is too long, or no UTF-8."""
    number = 0
    while line := stream.readline(MOST_LINE + 1):
        number += 1
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
        if len(line) > MOST_LINE:
            while line and not line.endswith(b"\n"):
                line = stream.readline(MOST_LINE)
            yield number, None
            continue
        try:
            yield number, line.decode().rstrip("\r\n")
        except UnicodeDecodeError:
            yield number, None


def _of_lines(stream: BinaryIO, *, as_json: bool) -> Iterator[ListEntry]:
    for number, line in lines_of(stream):
        if line is None:
            yield ListEntry(line=number, fault=f"is no line of UTF-8 with at most {MOST_LINE:,} bytes")
        elif text := line.strip():
            if as_json or text.startswith("{"):
                yield _of_json(number, text)
            elif not text.startswith("#"):
                yield _of_words(number, text)


def _of_json(number: int, text: str) -> ListEntry:
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        return ListEntry(line=number, fault=f"is no JSON: {error}")
    if isinstance(value, str):
        return ListEntry(line=number, values={"model": value})
    if not isinstance(value, dict):
        return ListEntry(line=number, fault='is no JSON object, such as {"model": "net.onnx"}')
    return ListEntry(line=number, values=value)


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def _of_words(number: int, text: str) -> ListEntry:
    """`zoo/net.onnx batch=8 gpu=t4`: what is left of the keys is the model, with whatever spaces it has."""
    values: dict[str, Any] = {}
    while match := _TAIL.search(text):
        try:
            key = known_key(match[1])
        except InputFault as fault:
            return ListEntry(line=number, fault=fault.message)
        if key in values:
            return ListEntry(line=number, fault=f"{key} is given twice")
        values[key] = match[2].strip('"')
        text = text[: match.start()]
    return ListEntry(line=number, values={"model": text, **values})


def _of_table(stream: BinaryIO, path: str, delimiter: str) -> Iterator[ListEntry]:
    # A line that is none holds a NUL instead, which no cell of a sound row has.
    lines = ("\0\n" if line is None else f"{line}\n" for _, line in lines_of(stream))
    rows = csv.reader(lines, delimiter=delimiter, strict=True)
    header: list[str] | None = None
    while True:
        try:
            row = next(rows, None)
        except csv.Error as error:
            if header is None:
                raise UsageError(f"{path}:{rows.line_num}: {error}") from None
            yield ListEntry(line=rows.line_num, fault=f"is no row of CSV: {error}")
            continue
        if row is None:
            break
        if not any(cell.strip() for cell in row):
            continue
        if header is None:
            header = _header(row, path, rows.line_num)
        elif len(row) > len(header):
            yield ListEntry(line=rows.line_num, fault=f"has {len(row)} cells, and the header {len(header)}")
        elif any(not cell.isprintable() for cell in row):
            yield ListEntry(line=rows.line_num, fault="has what is no UTF-8, or a character that steers a terminal")
        else:
            yield ListEntry(line=rows.line_num, values=dict(zip(header, row, strict=False)))


def _header(row: list[str], path: str, line: int) -> list[str]:
    keys = [cell.strip() for cell in row]
    try:
        known = [known_key(key) for key in keys]
    except InputFault as fault:
        raise UsageError(f"{path}:{line}: {fault.message}") from None
    if "model" not in known:
        raise UsageError(f"{path}:{line}: its first row must name columns, and one of them be model")
    doubled = next((key for key in known if known.count(key) > 1), None)
    if doubled is not None:
        raise UsageError(f"{path}:{line}: there are two columns {doubled}")
    return known


SubjectOrError = Subject | InputError
_SOURCE = "Python source states no sizes: name package.module:Net, or read it with `convlint check`"
_STDIN = "standard input is no model of an audit; a list of models may come from there: --models-from -"


def subjects_of(paths: Sequence[str], lists: Sequence[str], planner: RunPlanner) -> Iterator[SubjectOrError]:
    """Every model of the paths, then of the config where the options ask for it, then of the lists, in their order.

    What stands for no model is an error in its place. Raises UsageError, before anything is yielded, for a list that
    cannot be opened, and when its turn comes for one without a sound header.
    """
    return _all(paths, [(path, entries_of(path)) for path in lists], planner.models(), planner)


def _all(
    paths: Sequence[str], lists: Sequence[tuple[str, Iterator[ListEntry]]], models: Sequence[Input], planner: RunPlanner
) -> Iterator[SubjectOrError]:
    modules = planner.options.modules
    for path in paths:
        for source in streamed(path, modules=modules, wanted=lambda path: _wanted(path, planner)):
            yield source if isinstance(source, InputError) else _judged(Subject(name=source.name, source=source))
    for model in models:
        yield Subject(name=clean(model.name), source=model)
    for path, entries in lists:
        for entry in entries:
            yield _listed(path, entry, modules=modules)


def _wanted(path: str, planner: RunPlanner) -> bool:
    """Whether a folder includes this file; it does where its config is wrong, which becomes an error of the model."""
    try:
        return included(path, planner)
    except UsageError:
        return True


def _listed(path: str, entry: ListEntry, *, modules: bool) -> SubjectOrError:
    at = "standard input" if path == "-" else path
    try:
        if entry.fault:
            raise InputFault(entry.fault)
        subject = subject_of(entry.values, at, entry.line, modules=modules)
        if not clean(subject.name).strip():
            raise InputFault("no character of its name can be shown")
        return _judged(subject)
    except InputFault as fault:
        names = (entry.values.get(key) for key in ("name", "model"))
        model = next((name for name in names if isinstance(name, str) and clean(name).strip()), None)
        what = f"{shown(model)}: " if isinstance(model, str) else ""
        return InputError(path=at, line=entry.line, message=f"{what}{fault.message}")


def _judged(subject: Subject) -> SubjectOrError:
    """The subject with its file spelled in one way, and its name as tables have it; or why there is none to audit."""
    source = subject.source
    if source.kind == "stdin":
        return InputError(path="-", message=_STDIN)
    if is_source(source):
        return InputError(path=source.name, message=_SOURCE)
    tidied = tidy(source)
    name = tidied.name if subject.name == source.name else subject.name
    return replace(subject, name=clean(name), source=tidied)
