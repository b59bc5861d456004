"""The rows of an audit's tables: their columns, and how they come from the report on one model."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any, Literal

import msgspec
from msgspec import Struct

from convlint.files.safe import clean, fields, number, plain
from convlint.gpus.gpu import load_gpu
from convlint.model.layer import PASSES, ConvLayer
from convlint.model.report import Finding, InputError, LayerReport, NetworkReport, NetworkTotal, Report


def structure_of(layers: Iterable[ConvLayer]) -> str:
    """A hash of 16 digits that is equal for a network with other images, on another GPU or in another dtype."""
    sizes = [
        (layer.op, layer.C, layer.K, layer.T, layer.R, layer.S, layer.U, layer.V, layer.DilH, layer.DilW, layer.groups)
        for layer in layers
    ]
    return blake2b(repr(sizes).encode(), digest_size=8).hexdigest()


Table = Literal["findings", "layers", "models", "errors"]
_LARGEST = 2**63 - 1
TABLES: tuple[Table, ...] = ("findings", "layers", "models", "errors")  # the first is the output itself


class FindingRow(Struct, array_like=True, kw_only=True):
    """A finding; `layers` are those that it joins. `fix_set` is JSON."""

    model: str
    path: str
    line: int | None
    column: int | None
    layer: str | None
    layers: list[str]
    gpu: str | None
    code: str
    name: str
    severity: str
    message: str
    advised: bool
    lost_us: float | None
    lost_alone_us: float | None
    lost_capacity_us: float | None
    lost_percent: float | None
    pays_with: list[str]
    fix: str | None
    fix_safety: str | None
    fix_set: str | None
    time_change_us: float | None
    section: str
    fingerprint: str


class LayerRow(Struct, array_like=True, kw_only=True):
    """A layer on one GPU; the sizes are those of the whole layer, the times those of all its calls in one step.

    `dtype_source` is "stated", "module", or "storage", where weights are kept in it and run as the engine is told.
    """

    model: str
    path: str
    line: int | None
    layer: str
    op: str
    gpu: str
    N: int | None
    C: int | None
    D: int | None
    H: int | None
    W: int | None
    K: int | None
    Z: int | None
    P: int | None
    Q: int | None
    T: int | None
    R: int | None
    S: int | None
    U: int | None
    V: int | None
    DilH: int | None
    DilW: int | None
    groups: int | None
    dtype: str | None
    dtype_source: str | None
    layout: str | None
    grade: str | None
    time_us: float | None
    time_after_us: float | None
    ideal_us: float | None
    fprop_us: float | None
    dgrad_us: float | None
    wgrad_us: float | None
    fprop_bound_by: str | None
    basis: str | None


class ModelRow(Struct, array_like=True, kw_only=True):
    """A model on one GPU. `structure` is equal where all convolutions have equal channels, filters and strides."""

    model: str
    path: str
    architecture: str | None
    structure: str
    gpu: str
    mode: str
    batch: int | None
    layers: int
    errors: int
    warnings: int
    infos: int
    skipped: int
    suppressed: int
    grade: str | None
    time_us: float | None
    time_after_us: float | None
    lost_us: float | None
    lost_percent: float | None
    parameters: int | None
    flops: int | None
    memory_bytes: int | None
    largest_batch: int | None
    host_us: float | None
    gpu_us: float | None
    complete: bool


class ErrorRow(Struct, array_like=True, kw_only=True):
    """What could not be read or resolved; `model` is None where an entry names none."""

    model: str | None
    path: str
    line: int | None
    column: int | None
    message: str
    internal: bool


Row = FindingRow | LayerRow | ModelRow | ErrorRow
ROWS: dict[Table, type[Row]] = {"findings": FindingRow, "layers": LayerRow, "models": ModelRow, "errors": ErrorRow}


class Rows(Struct, array_like=True, kw_only=True):
    """All rows of one model."""

    findings: list[FindingRow] = []
    layers: list[LayerRow] = []
    models: list[ModelRow] = []
    errors: list[ErrorRow] = []

    def of(self, table: Table) -> list[Row]:
        """The rows of one table."""
        rows: list[Row] = getattr(self, table)
        return rows


def rows_of(model: str, architecture: str, report: Report) -> Rows:
    """The rows of the report on one model."""
    name = clean(model)
    # What the user calls the GPUs: of several names for one, only the first, so that nothing counts twice.
    gpus = set({load_gpu(label).id: label for label in reversed(report.targets)}.values())
    return Rows(
        findings=[_finding(name, finding) for finding in report.findings if finding.gpu is None or finding.gpu in gpus],
        layers=[_layer(name, entry, gpu) for entry in report.layers for gpu in entry.estimates if gpu in gpus],
        models=[_model(name, architecture, report, network) for network in report.networks if network.gpu in gpus],
        errors=[error_row(name, error) for error in report.errors],
    )


def error_row(model: str | None, error: InputError) -> ErrorRow:
    """What is wrong with a model, or with an entry that names none."""
    cells = fields(error, "path", "line", "column", "message", "internal")
    return ErrorRow(model=None if model is None else clean(model), **cells)


def _finding(model: str, finding: Finding) -> FindingRow:
    at, fix = finding.location, finding.fix
    sets = [] if fix is None else plain(fix.by_layer or (fix.set,))
    return FindingRow(
        model=model, **fields(at, "path", "line", "column"), **fields(finding.rule, "code", "name"),
        **fields(
            finding, "layer", "layers", "gpu", "severity", "message", "advised", "lost_us", "lost_alone_us",
            "lost_capacity_us", "lost_percent", "pays_with", "fingerprint",
        ),
        fix=None if fix is None else clean(fix.describe), fix_safety=None if fix is None else fix.safety,
        fix_set=_json(sets[0] if sets.count(sets[0]) == len(sets) else sets) if sets else None,
        time_change_us=None if fix is None else number(fix.time_change_us), section=clean(finding.rule.source.section),
    )  # fmt: skip


def _json(value: object) -> str:
    return msgspec.json.encode(value, order="sorted").decode()


def _layer(model: str, entry: LayerReport, gpu: str) -> LayerRow:
    layer, estimate, times = entry.layer, entry.estimates[gpu], entry.times.get(gpu)
    passes = {} if estimate is None else estimate.passes
    deep: dict[str, Any] = {size: getattr(layer, size) if layer.dims == 3 else None for size in ("D", "Z", "T")}
    spent: dict[str, Any] = {
        f"{which}_us": number(passes[which].time_us * layer.calls) if which in passes else None for which in PASSES
    }
    return LayerRow(
        model=model, line=layer.locate().line, layer=clean(layer.name), gpu=clean(gpu),
        **fields(layer, "path", "op", "N", "C", "H", "W", "K", "P", "Q", "R", "S", "U", "V", "DilH", "DilW", "groups"),
        **deep,
        dtype=None if layer.dtype is None else layer.dtype.value,
        dtype_source=None if layer.dtype is None else layer.dtype_source, layout=layer.layout,
        grade=None if times is None else times.grade, time_us=None if times is None else number(times.time_us),
        time_after_us=None if times is None else number(times.after_us),
        ideal_us=None if times is None else number(times.ideal_us), **spent,
        fprop_bound_by=passes["fprop"].bound_by if "fprop" in passes else None,
        basis=None if estimate is None else estimate.basis,
    )  # fmt: skip


def _model(model: str, architecture: str, report: Report, network: NetworkReport) -> ModelRow:
    total = next(
        (total for total in report.totals if total.gpu == network.gpu), NetworkTotal(gpu=network.gpu, mode=network.mode)
    )
    own = [finding for finding in report.findings if finding.gpu in (network.gpu, None)]
    silenced = [entry for entry in report.suppressed if entry.finding.gpu in (network.gpu, None)]
    time, lost = total.time_us, total.lost_us
    return ModelRow(
        model=model, **fields(network, "path", "gpu", "mode", "batch", "host_us", "gpu_us"),
        architecture=clean(architecture) or None, structure=structure_of(entry.layer for entry in report.layers),
        layers=len(report.layers), errors=sum(finding.severity == "error" for finding in own),
        warnings=sum(finding.severity == "warning" for finding in own),
        infos=sum(finding.severity == "info" for finding in own), skipped=len(report.skipped),
        suppressed=len(silenced), grade=total.grade, time_us=number(time),
        time_after_us=number(total.time_after_us), lost_us=number(lost),
        lost_percent=number(100 * lost / time) if time and lost is not None else None,
        parameters=_stored(network.parameters), flops=_stored(network.flops),
        memory_bytes=None if network.memory_needs else _stored(sum(network.memory.values())),
        largest_batch=_stored(network.largest_batch), complete=report.complete,
    )  # fmt: skip


def _stored(value: int | None) -> int | None:
    """The number, or None where it takes more than the 64 bits of a table's cell."""
    return None if value is None or value > _LARGEST else value
