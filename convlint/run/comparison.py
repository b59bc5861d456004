"""The comparison of two checks: which networks and layers became slower, faster or heavier."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct, field

from convlint.files.bounded_file import file_size, open_regular
from convlint.gpus.gpu import load_gpu
from convlint.model.errors import InputFault, UsageError
from convlint.model.grouping import grouped
from convlint.model.layer import Mode
from convlint.model.report import InputError, Severity

MOST_REPORT_BYTES = 512 << 20
TOLERANCE = 5.0  # percent by which a network may become slower
_VERSION = 3  # of the reports' schema: before, prices and severities meant something else
_SAME = 5e-3  # a layer whose time changes by a smaller share is as it was


_Time = Annotated[float, Meta(ge=0, le=1e15)]
_Count = Annotated[int, Meta(ge=0, le=2**62)]


class _Estimate(Struct):
    gpu: str
    time_us: _Time | None = None


class LayerFigures(Struct, kw_only=True):
    """One layer as a report has it: its sizes, and its times by GPU."""

    name: str
    path: str = ""
    estimates: list[_Estimate] = []
    op: str = "conv"
    N: int | None = None
    C: int | None = None
    D: int | None = None
    H: int | None = None
    W: int | None = None
    K: int | None = None
    T: int | None = None
    R: int | None = None
    S: int | None = None
    StrideD: int | None = None
    U: int | None = None
    V: int | None = None
    PadD: int | None = None
    PadH: int | None = None
    PadW: int | None = None
    DilD: int | None = None
    DilH: int | None = None
    DilW: int | None = None
    groups: int | None = None
    PadD_end: int | None = None
    PadH_end: int | None = None
    PadW_end: int | None = None
    dtype: str | None = None
    layout: str | None = None
    bias: bool | None = None
    unfolded: bool = False
    calls: int = 1

    @property
    def sizes(self) -> tuple[object, ...]:
        """All that its time depends on."""
        return tuple(getattr(self, name) for name in SIZES)

    def time_us(self, gpu: str) -> float | None:
        """The time on one GPU; None where it is not predictable."""
        return next((estimate.time_us for estimate in self.estimates if estimate.gpu == gpu), None)


SIZES = tuple(name for name in LayerFigures.__struct_fields__ if name not in ("name", "path", "estimates"))


class FindingFigures(Struct, kw_only=True):
    """One finding as a report has it."""

    code: str
    severity: Severity
    message: str = ""
    layer: str | None = None
    path: str = ""
    gpu: str | None = None
    lost_us: float | None = None
    lost_step_us: float | None = None

    @property
    def priced(self) -> bool:
        """Whether it is an error, or has a price."""
        return self.severity == "error" or self.lost_us is not None or self.lost_step_us is not None

    @property
    def key(self) -> tuple[str, str | None]:
        """What is equal for findings of one rule on one layer."""
        return self.code, self.layer


class _Sourced(Struct):
    value: str


class NetworkFigures(Struct, kw_only=True):
    """One network on one GPU as a report has it. Its layers are those of the report from `begin` on."""

    path: str
    gpu: str
    mode: Mode
    layers: _Count | None = None  # None: written before there was such a number
    batch: _Count | None = None
    grade: Literal["A", "B", "C", "D", "F"] | None = None
    time_us: _Time | None = None
    step_us: _Time | None = None
    parameters: _Count | None = None
    flops: _Count | None = None
    memory_bytes: Mapping[str, _Count] | None = None
    runtime: Mapping[str, _Sourced] = field(default_factory=dict)
    begin: int = 0

    @property
    def memory(self) -> int | None:
        """The memory of a step at its fullest, in bytes."""
        return None if self.memory_bytes is None else self.memory_bytes.get("total")


class Side(Struct, kw_only=True):
    """A report, as far as it is compared."""

    schema_version: int
    convlint: str
    networks: list[NetworkFigures] = []
    layers: list[LayerFigures] = []
    findings: list[FindingFigures] = []
    errors: tuple[InputError, ...] = ()  # everything that could not be read


def read_side(content: bytes) -> Side:
    """A JSON report. Raises InputFault where it is none that can be compared."""
    try:
        side = msgspec.json.decode(content, type=Side)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputFault(f"no JSON report of convlint's: {error}") from None
    if side.schema_version != _VERSION:
        raise InputFault(f"a report of schema {side.schema_version}; only those of schema {_VERSION} can be compared")
    begin, seen = 0, set[str]()
    if len({network.path for network in side.networks}) == 1:
        for network in side.networks:
            network.layers = len(side.layers) if network.layers is None else network.layers
    for number, network in enumerate(side.networks):
        before = side.networks[number - 1] if number else None
        if before is not None and (network.path != before.path or network.gpu in seen):
            begin, seen = begin + (before.layers or 0), set()
        seen.add(network.gpu)
        network.begin = begin
    return side


def unread(path: str, message: str) -> Side:
    """A side of which nothing could be read."""
    return Side(schema_version=_VERSION, convlint="", errors=(InputError(path=path, message=message),))


def report_in(path: str) -> bytes | None:
    """The content of a file that is a JSON report; None for anything else. Raises InputFault where it is too large."""
    if not path.endswith(".json"):
        return None
    try:
        with open_regular(path) as stream:
            if not looks_like_report(stream.peek(512)):
                return None
            if file_size(stream) > MOST_REPORT_BYTES:
                raise InputFault(f"more than {MOST_REPORT_BYTES >> 20} MiB")
            return stream.read(MOST_REPORT_BYTES)
    except InputFault:
        if os.path.isfile(path):
            raise
        return None  # whoever reads inputs says what is wrong


def looks_like_report(start: bytes) -> bool:
    """Whether a file that begins like this is a JSON report."""
    return start.lstrip()[:1] == b"{" and b'"schema_version"' in start[:512]


class LayerChange(Struct, frozen=True, kw_only=True):
    """A layer on both sides, or on one; times in us. `changed` has what it was and what it is, by size."""

    name: str
    before_us: float | None
    after_us: float | None
    changed: Mapping[str, tuple[object, object]] = {}
    kind: Literal["kept", "added", "removed"] = "kept"

    @property
    def change_us(self) -> float:
        """Positive: slower, or more work."""
        return (self.after_us or 0.0) - (self.before_us or 0.0)


class Pair(Struct, frozen=True, kw_only=True):
    """One network on one GPU on both sides. `tolerance` is the percentage by which it may become slower."""

    old: NetworkFigures
    new: NetworkFigures
    layers: tuple[LayerChange, ...] = ()
    appeared: tuple[FindingFigures, ...] = ()  # errors and warnings
    gone: tuple[FindingFigures, ...] = ()
    tolerance: float = TOLERANCE

    @property
    def measure(self) -> Literal["step_us", "time_us"]:
        """What is compared: the whole step where both sides know it, else the convolutions."""
        return "time_us" if self.old.step_us is None or self.new.step_us is None else "step_us"

    @property
    def per_image(self) -> bool:
        """Whether the batch differs, so that times are compared by image."""
        return bool(self.old.batch and self.new.batch) and self.old.batch != self.new.batch

    @property
    def change(self) -> float | None:
        """The time of the new side over that of the old, less 1; None where one is unknown."""
        before, after = getattr(self.old, self.measure), getattr(self.new, self.measure)
        if before is None or after is None or before <= 0:
            return None
        if self.per_image:
            before, after = before / (self.old.batch or 1), after / (self.new.batch or 1)
        ratio: float = after / before
        return ratio - 1

    @property
    def broken(self) -> tuple[FindingFigures, ...]:
        """The errors that the new side alone has: it does not run, or not as it should."""
        return tuple(finding for finding in self.appeared if finding.severity == "error")

    @property
    def is_slower(self) -> bool:
        """Whether it became slower by more than the tolerance."""
        return self.change is not None and 100 * self.change > self.tolerance

    @property
    def versions(self) -> dict[str, tuple[str | None, str | None]]:
        """The versions of libraries that differ."""
        before = {name: version.value for name, version in self.old.runtime.items()}
        after = {name: version.value for name, version in self.new.runtime.items()}
        return {
            name: (before.get(name), after.get(name))
            for name in (*before, *(name for name in after if name not in before))
            if not _same_version(before.get(name), after.get(name))
        }


def _same_version(version: str | None, other: str | None) -> bool:
    """Whether two versions are one, of which one may be written with more of its parts: 9.10.2 and 9.10.2.21."""
    if version is None or other is None:
        return version is other
    return version == other or f"{version}.".startswith(f"{other}.") or f"{other}.".startswith(f"{version}.")


class Comparison(Struct, frozen=True, kw_only=True):
    """Two sides, called `old` and `new`; networks that only one of them has are named by path."""

    old: str
    new: str
    pairs: tuple[Pair, ...] = ()
    only_old: tuple[str, ...] = ()
    only_new: tuple[str, ...] = ()
    errors: tuple[InputError, ...] = ()
    tolerance: float = TOLERANCE

    @property
    def slower(self) -> tuple[Pair, ...]:
        """The networks that became slower than may be."""
        return tuple(pair for pair in self.pairs if pair.is_slower)

    @property
    def broken(self) -> tuple[Pair, ...]:
        """The networks that have errors which they did not have."""
        return tuple(pair for pair in self.pairs if pair.broken)


def compared(old: Side, new: Side, names: tuple[str, str], tolerance: float = TOLERANCE) -> Comparison:
    """Every network of both sides; what keeps one from being compared is an error of the comparison.

    `names` are what the sides were called; where that is a folder, networks are matched by their path in it.
    """
    before, after = _by_key(old, names[0]), _by_key(new, names[1])
    if len({path for path, _, _ in before}) == len({path for path, _, _ in after}) == 1:  # whatever they are called
        before = {("", *key[1:]): network for key, network in before.items()}
        after = {("", *key[1:]): network for key, network in after.items()}
    errors = list(dict.fromkeys((*old.errors, *new.errors)))
    unread = {error.path for error in errors}
    pairs = [
        _pair(old, new, network, after[key], tolerance)
        for key, network in before.items()
        if key in after and unread.isdisjoint((network.path, after[key].path))
    ]
    errors += [
        InputError(path=pair.new.path, message=f"no time on {pair.new.gpu} that could be compared")
        for pair in pairs
        if pair.change is None
    ]
    # What could not be read may be what the other side has.
    only_old = () if unread else tuple(dict.fromkeys(entry.path for key, entry in before.items() if key not in after))
    only_new = () if unread else tuple(dict.fromkeys(entry.path for key, entry in after.items() if key not in before))
    if not pairs and not errors:
        errors.append(InputError(path=names[1], message=_nothing_shared(before.values(), after.values())))
    return Comparison(
        old=names[0], new=names[1], pairs=tuple(pairs), only_old=only_old, only_new=only_new, errors=tuple(errors),
        tolerance=tolerance,
    )  # fmt: skip


def _nothing_shared(before: Iterable[NetworkFigures], after: Iterable[NetworkFigures]) -> str:
    def networks(side: Iterable[NetworkFigures]) -> str:
        names = list(dict.fromkeys(f"{network.path} on {network.gpu}, {network.mode}" for network in side))
        more = ", ..." if len(names) > 3 else ""
        return ", ".join(names[:3]) + more or "no network"

    return f"nothing to compare: the old side has {networks(before)}, the new one {networks(after)}"


_Key = tuple[str, str, str]


def _by_key(side: Side, name: str) -> dict[_Key, NetworkFigures]:
    """The networks by their path below the folder that is compared, or below what all of a report share; GPU; mode."""
    folder = name if os.path.isdir(name) else _shared_folder([network.path for network in side.networks])
    return {
        (
            network.path if not folder or ":" in network.path else os.path.relpath(network.path, folder),
            _gpu(network),
            network.mode,
        ): network
        for network in side.networks
    }


def _gpu(network: NetworkFigures) -> str:
    """The id of its GPU, which may go by another name on the other side; the name where nobody knows that."""
    try:
        return load_gpu(network.gpu).id
    except UsageError:
        return network.gpu


def _shared_folder(paths: Sequence[str]) -> str:
    folders = {os.path.dirname(path) for path in paths}
    if any(":" in path for path in paths) or len({os.path.isabs(folder) for folder in folders}) != 1:
        return ""
    return os.path.commonpath([folder or os.curdir for folder in folders]) if all(folders) else ""


def _pair(old: Side, new: Side, before: NetworkFigures, after: NetworkFigures, tolerance: float) -> Pair:
    mine, theirs = _findings(old, before), _findings(new, after)
    return Pair(
        old=before,
        new=after,
        layers=tuple(_layers(_layers_of(old, before), _layers_of(new, after), before.gpu, after.gpu)),
        appeared=tuple(_beyond(theirs, mine)),
        gone=tuple(_beyond(mine, theirs)),
        tolerance=tolerance,
    )


def _layers_of(side: Side, network: NetworkFigures) -> list[LayerFigures]:
    return side.layers[network.begin : network.begin + (network.layers or 0)]


def _findings(side: Side, network: NetworkFigures) -> list[FindingFigures]:
    """Errors and warnings on this network: those in its file, or on its layers in the files of a module."""
    layers = {(layer.path, layer.name) for layer in _layers_of(side, network)}
    alone = len({network.path for network in side.networks}) == 1
    return [
        finding
        for finding in side.findings
        if finding.severity != "info"
        and finding.gpu in (None, network.gpu)
        and (alone or finding.path == network.path or (finding.path, finding.layer) in layers)
    ]


def _beyond(findings: Iterable[FindingFigures], others: Iterable[FindingFigures]) -> Iterator[FindingFigures]:
    """The findings that are not among the others."""
    unmatched = Counter(finding.key for finding in others)
    for finding in findings:
        if unmatched[finding.key]:
            unmatched[finding.key] -= 1
        else:
            yield finding


def _layers(
    old: Sequence[LayerFigures], new: Sequence[LayerFigures], old_gpu: str, new_gpu: str
) -> Iterator[LayerChange]:
    """The layers whose time or sizes changed. They are matched by name, then, where renamed, by their sizes."""
    waiting = grouped((layer.name, layer) for layer in old)
    matched: list[tuple[LayerFigures, LayerFigures]] = []
    strangers: list[LayerFigures] = []
    for layer in new:
        if waiting.get(layer.name):
            matched.append((waiting[layer.name].pop(0), layer))
        else:
            strangers.append(layer)
    of_sizes = grouped((layer.sizes, layer) for group in waiting.values() for layer in group)
    for layer in strangers:
        if of_sizes.get(layer.sizes):
            matched.append((of_sizes[layer.sizes].pop(0), layer))
        else:
            yield LayerChange(name=layer.name, before_us=None, after_us=layer.time_us(new_gpu), kind="added")
    for layer in (layer for group in of_sizes.values() for layer in group):
        yield LayerChange(name=layer.name, before_us=layer.time_us(old_gpu), after_us=None, kind="removed")
    for before, after in matched:
        sizes = zip(SIZES, before.sizes, after.sizes, strict=True)
        changed = {name: (was, now) for name, was, now in sizes if was != now}
        before_us, after_us = before.time_us(old_gpu), after.time_us(new_gpu)
        if changed or _differs(before_us, after_us):
            yield LayerChange(name=after.name, before_us=before_us, after_us=after_us, changed=changed)


def _differs(before_us: float | None, after_us: float | None) -> bool:
    if before_us is None or after_us is None:
        return before_us is not after_us
    return abs(after_us - before_us) > _SAME * before_us
