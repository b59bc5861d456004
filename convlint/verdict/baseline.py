"""The baseline: a file of today's findings, by fingerprint, so that only new ones count."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from convlint.files.bounded_file import read_settings
from convlint.files.safe import clean, clean_path
from convlint.model.errors import UsageError
from convlint.model.report import Finding, Report

VERSION = 2  # 1 had one entry for all layers that a finding joined
# What is written is held to the same bounds as what is read. 36,000 layers with three findings each make 17 MB; at the
# bounds a baseline takes some 350 MB of memory while it is read.
MAX_BYTES = 64 * 2**20
MOST_ENTRIES = 500_000
MOST_VALUES = 10 * MOST_ENTRIES  # six an entry at most; names have commas too
MAX_WIDE_BYTES = 8 * 2**20  # one character beyond Latin-1 makes every byte of a text take four; ours are ASCII
_VERSION_KEY, _ENTRIES_KEY = "convlint_baseline", "findings"
_REQUIRED = frozenset(("fingerprint", "code", "path"))
Kind = tuple[str, str, str | None]  # rule, path and GPU
# Beside the fingerprint: for people, and to tell what no longer occurs.
_TEXTS = ("code", "path", "layer", "gpu", "model")
_KEYS = frozenset(("fingerprint", *_TEXTS))


class BaselineEntry(Struct, frozen=True, kw_only=True, gc=False):
    """One finding that was there when the baseline was written."""

    fingerprint: str
    code: str
    path: str
    layer: str | None = None
    gpu: str | None = None
    model: str | None = None  # of the config, whose layers stand in files that are checked without it too
    joined: bool = False  # of version 1, and names no layer: it may stand for any of them

    @staticmethod
    def of(finding: Finding) -> Iterator[BaselineEntry]:
        """The entries of a finding: one for each of its layers."""
        layers: Iterable[tuple[str, str | None]] = zip(finding.fingerprints, finding.layers, strict=True)
        seen: set[str] = set()  # layers that only change with others have the fingerprint of one of these
        for fingerprint, layer in layers if finding.layers else [(finding.fingerprint, finding.layer)]:
            if fingerprint in seen:
                continue
            seen.add(fingerprint)
            yield BaselineEntry(
                fingerprint=fingerprint,
                code=clean(finding.rule.code),
                path=clean_path(finding.location.path),
                layer=None if layer is None else clean(layer),
                gpu=None if finding.gpu is None else clean(finding.gpu),
                model=clean_path(finding.location.model) or None,
            )

    @property
    def kind(self) -> Kind:
        """What a joined entry has in common with the findings of its layers."""
        return self.code, self.path, self.gpu

    def __str__(self) -> str:
        layer = "" if self.layer is None else f" {clean(self.layer)}"
        return f"{clean(self.code)} {clean_path(self.path)}{layer}" + (f" [{clean(self.gpu)}]" if self.gpu else "")


Baseline = Mapping[str, BaselineEntry]  # by fingerprint


def baseline_of(findings: Iterable[Finding]) -> Baseline:
    """The entries of these findings."""
    return {entry.fingerprint: entry for finding in findings for entry in BaselineEntry.of(finding)}


class Known(Struct, frozen=True, kw_only=True):
    """What a baseline holds, of one input or of all."""

    entries: Baseline = field(default_factory=dict)
    joined: frozenset[Kind] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.entries)

    def holds(self, finding: Finding) -> bool:
        """Whether a finding of one layer, or of the network, is an old one."""
        if finding.fingerprint in self.entries:
            return True
        return finding.layer is not None and any(entry.kind in self.joined for entry in BaselineEntry.of(finding))


NOTHING_KNOWN = Known()


def known_of(baseline: Baseline) -> Known:
    """What `baseline` holds."""
    return Known(entries=baseline, joined=frozenset(entry.kind for entry in baseline.values() if entry.joined))


def known_by_path(baseline: Baseline) -> dict[str, Known]:
    """What `baseline` holds of each file."""
    by_path: defaultdict[str, dict[str, BaselineEntry]] = defaultdict(dict)
    for key, entry in baseline.items():
        by_path[entry.path][key] = entry
    return {path: known_of(entries) for path, entries in by_path.items()}


def renewed(baseline: Baseline, gone: Collection[BaselineEntry], still: Iterable[Finding]) -> Baseline:
    """The baseline without the entries that are gone, and with one for each layer in place of those that were joined.

    `still` are the findings that it silenced.
    """
    left_out = {entry.fingerprint for entry in gone}
    current = {entry.fingerprint: entry for finding in still for entry in BaselineEntry.of(finding)}
    split = {entry.kind for entry in current.values() if entry.layer is not None}
    kept = {
        key: entry
        for key, entry in baseline.items()
        if key not in left_out and not (entry.joined and entry.kind in split and key not in current)
    }
    return kept | current


def render(baseline: Baseline) -> str:
    """The baseline as JSON, sorted and one entry per line, so that version control merges it well.

    As long as one of its entries stands for any layer it is of version 1, which alone has such entries.
    """
    import json

    version = 1 if any(entry.joined for entry in baseline.values()) else VERSION
    entries = sorted(baseline.values(), key=lambda e: (e.path, e.code, e.layer or "", e.gpu or "", e.fingerprint))
    lines = []
    for entry in entries:
        texts = {name: getattr(entry, name) for name in _TEXTS if getattr(entry, name) is not None}
        lines.append("    " + json.dumps({"fingerprint": entry.fingerprint, **texts}))
    body = "\n" + ",\n".join(lines) + "\n  " if lines else ""
    return f'{{\n  "{_VERSION_KEY}": {version},\n  "{_ENTRIES_KEY}": [{body}]\n}}\n'


def rendered_for(path: str, baseline: Baseline) -> str:
    """The same for the file at `path`. Raises UsageError where it is more than convlint would read again."""
    text = render(baseline)
    if _is_too_large(text.encode()):
        raise UsageError(
            f"baseline {path} is not written: {len(baseline):,} findings are more than one baseline holds "
            f"({MOST_ENTRIES - 1:,} findings, {MAX_BYTES >> 20} MiB); write one for each part of the inputs"
        )
    return text


def _is_too_large(raw: bytes) -> bool:
    """Whether the content of a file is more than any baseline."""
    most = MAX_BYTES if raw.isascii() else MAX_WIDE_BYTES
    if len(raw) > most or raw.count(b"{") > MOST_ENTRIES or raw.count(b"[") > MOST_ENTRIES:
        return True
    # An object of millions of keys is none of ours, and takes more memory than as many entries.
    return raw.count(b",") > MOST_VALUES or raw.count(b'":') > 6 * raw.count(b"{") + 1_000


def read_baseline(path: str) -> Baseline:
    """The baseline in the file at `path`. Raises UsageError with file, line and column for whatever is wrong."""
    return parse_baseline(read_settings(path, f"baseline {path}", MAX_BYTES), clean_path(path))


def parse_baseline(raw: bytes, path: str) -> Baseline:
    """The baseline in `raw`, the content of the file at `path`."""
    import json

    from convlint.config.toml_source import decode, position

    if _is_too_large(raw):
        raise UsageError(f"{path}:1:1: is larger than any baseline that convlint writes")
    text = decode(raw, path)
    try:
        document = json.loads(text, object_hook=_Entries().of)
    except json.JSONDecodeError as error:
        raise UsageError(f"{path}:{error.lineno}:{error.colno}: is not valid JSON: {error.msg}") from None
    except (RecursionError, ValueError) as error:  # ValueError: an integer of thousands of digits
        problem = "nests too deep" if isinstance(error, RecursionError) else "holds a number that is too large"
        raise UsageError(f"{path}:1:1: {problem}") from None
    if not isinstance(document, dict) or _VERSION_KEY not in document:
        raise UsageError(f'{path}:1:1: is no baseline: "{_VERSION_KEY}" is missing')
    version = document[_VERSION_KEY]
    if type(version) is not int or version not in (1, VERSION):
        before = text[: text.find(f'"{_VERSION_KEY}"')]
        line, column = position(before, len(before))
        shown = repr(version)[:40]
        raise UsageError(
            f"{path}:{line}:{column}: is a baseline of version {shown}; this convlint reads 1 and {VERSION}"
        )
    entries = document.get(_ENTRIES_KEY)
    if not isinstance(entries, list):
        raise UsageError(f'{path}:1:1: "{_ENTRIES_KEY}" must be a list')
    baseline: dict[str, BaselineEntry] = {}
    for number, entry in enumerate(entries):
        if not isinstance(entry, BaselineEntry):
            line, column = _place_of_item(text, number)
            raise UsageError(
                f'{path}:{line}:{column}: must be an object with "fingerprint", "code" and "path", and perhaps '
                '"layer", "gpu" and "model", all of them text'
            )
        joined = version == 1 and entry.layer is None
        baseline[entry.fingerprint] = replace(entry, joined=True) if joined else entry
    return baseline


class _Entries:
    """Turns JSON objects into entries while they are parsed: a dict for each would take several times the memory."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}  # rules, files and GPUs, which many entries share

    def of(self, item: dict[str, Any]) -> BaselineEntry | dict[str, Any]:
        """The entry that `item` is; `item` itself where it is none."""
        if not _REQUIRED <= item.keys() <= _KEYS or not all(isinstance(value, str) for value in item.values()):
            return item
        for name in ("code", "path", "gpu"):
            if name in item:
                item[name] = self._texts.setdefault(item[name], item[name])
        return BaselineEntry(**item)


def _place_of_item(text: str, number: int) -> tuple[int, int]:
    """Line and column of the item of that number in the list of entries; the text is valid JSON."""
    from json import JSONDecoder

    from convlint.config.toml_source import position

    decoder = JSONDecoder()
    start = 0
    try:
        offset = text.index("[", text.index(f'"{_ENTRIES_KEY}"')) + 1
        for _ in range(number + 1):
            while text[offset] in " \t\r\n,":
                offset += 1
            start = offset
            offset = decoder.raw_decode(text, offset)[1]
    except (ValueError, IndexError):  # the key is written with escapes, or twice
        start = 0
    return position(text, start)


def stale(
    baseline: Baseline, seen: Baseline, report: Report, paths: Iterable[str], codes: Collection[str]
) -> tuple[BaselineEntry, ...]:
    """Entries that no longer occur, of those that a run on `paths` could find; `seen` are those that do.

    An entry of an input, model, rule or GPU that was not checked says nothing, unless its file or its rule is gone.
    """
    layers = (entry.layer for entry in report.layers)  # those of a model of the config say nothing of their file
    checked = {clean_path(path) for path in (*paths, *(layer.path for layer in layers if not layer.model))}
    models = {clean_path(network.path) for network in report.networks}  # those that could be built
    unread = {clean_path(error.path) for error in report.errors}
    rules = {rule.code for rule in report.rules}
    kinds = {entry.kind for entry in seen.values()}
    may_exist = cache(_may_exist)  # thousands of entries share a path

    def gone(entry: BaselineEntry) -> bool:
        if entry.fingerprint in seen or (entry.joined and entry.kind in kinds):
            return False
        if entry.code not in rules:
            return True
        if entry.code not in codes or entry.path in unread or (entry.gpu and entry.gpu not in report.targets):
            return False
        is_checked = entry.path in checked if entry.model is None else entry.model in models
        return is_checked or not may_exist(entry.path)

    return tuple(entry for entry in baseline.values() if gone(entry))


def _may_exist(path: str) -> bool:
    """False only for a file that is gone; modules and standard input are no files."""
    return ":" in path or path.startswith("<") or os.path.exists(path)
