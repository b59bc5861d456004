"""The report as JSON, version 3."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from convlint.files.safe import clean, clean_path, fields, number, plain
from convlint.model.estimates import PARTS
from convlint.model.layer import PASSES, ConvLayer, Measured, Mode, Pass
from convlint.model.location import Location
from convlint.model.network import PART_OF
from convlint.model.report import (
    Finding,
    Fix,
    InputError,
    LayerReport,
    LayerTimes,
    NetworkReport,
    NetworkTotal,
    Report,
    Suppressed,
)
from convlint.model.source import PlacedLayer, SourceReport
from convlint.reporters import Reporter, Style

if TYPE_CHECKING:
    from convlint.model.estimates import LayerEstimate, PassEstimate
    from convlint.model.network import RecordedStep
    from convlint.model.report import CalibrationUse


def source_object(source: SourceReport) -> dict[str, Any]:
    """What was read, what was not, and why."""
    return {
        "files": len(source.files),
        **fields(source, "programs", "constructions", "known"),
        "layers": [_source_layer(placed) for placed in source.layers],
        "unread": [{**place_object(place.at), "why": clean(place.why)} for place in source.unread],
        "unread_files": [
            {"path": clean_path(path), **fields(file, "line", "column", "why")}
            for path, file in source.unread_files.items()
        ],
        "unread_cells": [{**place_object(cell.at), "why": clean(cell.why)} for cell in source.unread_cells],
    }


def _source_layer(placed: PlacedLayer) -> dict[str, Any]:
    """A convolution where it is constructed; sizes that nobody knows are null."""
    record, layer = placed.record, placed.record.layer
    sizes = ("D", "H", "W", "T", "R", "S", "StrideD", "U", "V") if layer.dims == 3 else ("H", "W", "R", "S", "U", "V")
    known = {name: None if name in record.unknown else getattr(layer, name) for name in (*sizes, "groups", "bias")}
    return {
        "name": clean(layer.name),
        **place_object(placed.at),
        "framework": record.framework,
        **fields(layer, "op", "C", "K"),
        **known,
        "certainty": record.certainty,
        "condition": clean(record.only_if) or None,
    }


def place_object(at: Location) -> dict[str, Any]:
    """A place, with its cell in a notebook."""
    return {**fields(at, "path", "line", "column"), **cell_object(at)}


def cell_object(at: Location) -> dict[str, Any]:
    """Where in a notebook; nothing of other files."""
    if at.cell is None:
        return {}
    cell, line, column = at.cell
    return {"cell": cell, "cell_line": line, "cell_column": column}


_SIZES = ("N", "C", "H", "W", "K", "P", "Q", "R", "S", "U", "V", "PadH", "PadW", "DilH", "DilW", "groups")
_SIZES_3D = ("D", "T", "Z", "StrideD", "PadD", "DilD")


def render(report: Report, style: Style) -> str:
    """The report as one JSON object on one line."""
    document = {
        "schema_version": 3,
        "convlint": report.version,
        "complete": report.complete,
        "targets": [clean(target) for target in report.targets],
        "mode": report.mode,
        "summary": {
            "files": report.files,
            "layers": len(report.layers),
            "errors": report.count("error"),
            "warnings": report.count("warning"),
            "infos": report.count("info"),
            "skipped": len(report.skipped),
            **_total(None if report.total is None else report.total.times),
            **_steps(report.total),
        },
        "totals": [
            {"gpu": clean(total.gpu), "mode": total.mode, **_total(total.times), **_steps(total)}
            for total in report.totals
        ],
        "runtime": _versions(report.networks),
        "networks": [_network(network) for network in report.networks],
        **({} if report.source is None else {"source": source_object(report.source)}),
        "calibrations": [calibration_object(use) for use in report.calibrations],
        "layers": [_layer(entry) for entry in report.layers],
        "findings": [finding_object(finding) for finding in report.findings],
        "operations": [*_operations(report)],
        "skipped": [fields(skip, "code", "layer", "path", "needs") for skip in report.skipped],
        "suppressed": [_suppressed(entry) for entry in report.suppressed],
        "errors": [error_object(error) for error in report.errors],
    }
    return json.dumps(document, ensure_ascii=not style.unicode, allow_nan=False) + "\n"


def error_object(error: InputError) -> dict[str, Any]:
    """What is wrong with an input, and where."""
    return fields(error, "path", "line", "column", "message")


def calibration_object(use: CalibrationUse) -> dict[str, Any]:
    """Whether a calibration is in force on a GPU, and why not."""
    origin = fields(use, "path", "gpu", "device", "cudnn")
    return {**origin, "passes": use.rows, "used": not use.reason, "reason": clean(use.reason) or None}


def _total(times: LayerTimes | None) -> dict[str, Any]:
    if times is None:
        return dict.fromkeys(("grade", "time_us", "lost_us", "time_after_us", "grade_after", "time_after_fix_us"))
    return {
        "grade": times.grade,
        "time_us": number(times.time_us),
        "lost_us": number(times.time_us - times.after_us),
        "time_after_us": number(times.after_us),
        "grade_after": times.grade_after,
        "time_after_fix_us": number(times.after_fix_us),
    }


def _steps(total: NetworkTotal | None) -> dict[str, Any]:
    """The times of the whole step; null where not all operations are known."""
    if total is None or not total.steps:
        return dict.fromkeys(("step_us", "step_after_us", "host_us", "step_parts", "unpriced_operations"))
    return {
        **fields(total, "step_us", "step_after_us", "host_us"),
        "step_parts": {part: number(us) for part, us in total.step_parts.items()},
        "unpriced_operations": total.unpriced_operations,
    }


def _recorded_operations(path: str, recorded: RecordedStep) -> Iterator[dict[str, Any]]:
    """The operators of a trace's step: their measured times on the GPU that it ran on, and the predicted ones."""
    for work in recorded.works:
        yield {
            "name": clean(work.op),
            "op": clean(work.op),
            "path": clean_path(path),
            "line": None,
            "calls": number(work.calls),
            "product": list(work.gemm) or None,
            "estimates": [
                {
                    "gpu": recorded.gpu,
                    "time_us": number(work.us),
                    "predicted_us": number(work.predicted_us),
                    "bytes": round(work.moved * work.calls) or None,
                    "flops": round(work.flops * work.calls) or None,
                    "part": work.part,
                }
            ],
        }


def _operations(report: Report) -> Iterator[dict[str, Any]]:
    """The operations between convolutions of each network, with their times on each target."""
    networks: dict[tuple[str, Mode], list[NetworkReport]] = {}
    for network in report.networks:
        if network.recorded is not None:
            yield from _recorded_operations(network.path, network.recorded)
        elif network.step is not None:
            networks.setdefault((network.path, network.mode), []).append(network)
    for (path, _), on_targets in networks.items():
        for index, operation in enumerate(on_targets[0].operations):
            work = operation.work
            if work is None:
                continue
            estimates = []
            for network in on_targets:
                estimate = None if network.step is None else network.step.operations[index]
                own: dict[str, Any] = {"time_us": None, "bytes": None, "flops": None, "part": PART_OF[work.kind]}
                if estimate is not None:
                    own = fields(estimate, "time_us", "bytes", "flops", "part")
                estimates.append({"gpu": clean(network.gpu), **own})
            yield {
                "name": clean(operation.name),
                "op": clean(work.op),
                "path": clean_path(operation.path or path),
                "line": None if operation.span is None else operation.span[0],
                "calls": 1,
                "estimates": estimates,
            }


def _network(network: NetworkReport) -> dict[str, Any]:
    step = network.step
    return {
        **fields(network, "path", "gpu", "mode", "layers"),
        **_total(network.times),
        "batch": network.batch,
        "batch_assumed": bool(network.unbatched),
        **fields(network, "layout_assumed"),
        **fields(network, "parameters", "flops"),
        "memory_bytes": None if network.memory_needs else {**network.memory, "total": sum(network.memory.values())},
        **fields(network, "memory_needs", "capacity_bytes", "largest_batch", "host_us", "gpu_us"),
        "step_us": None if step is None else number(step.time_us),
        "step_after_us": number(network.step_after_us),
        "step_parts": None if step is None else {part: number(step.parts.get(part, 0.0)) for part in PARTS},
        "unpriced_operations": None if step is None else len(step.unpriced),
        **_recorded(network),
        "runtime": _versions([network]),
        "notes": [clean(note) for note in network.notes],
    }


def _recorded(network: NetworkReport) -> dict[str, Any]:
    """The measured time of all kernels of a trace's step beside the predicted one; nothing without a trace."""
    if network.recorded is None:
        return {}
    result: dict[str, Any] = {}
    for kind, parts in (("measured", network.recorded.parts), ("predicted", network.recorded.predicted)):
        result[f"{kind}_step_us"] = number(sum(parts.values())) if parts else None
        result[f"{kind}_step_parts"] = {part: number(parts.get(part, 0.0)) for part in PARTS} if parts else None
    return result


def _versions(networks: Sequence[NetworkReport]) -> dict[str, Any]:
    """The versions that all networks have in common, each with its origin."""
    shared: dict[str, tuple[str, str]] = dict(networks[0].versions) if networks else {}
    for network in networks:
        shared = {name: own for name, own in shared.items() if network.versions.get(name) == own}
    return {name: {"value": clean(value), "origin": clean_path(origin)} for name, (value, origin) in shared.items()}


def _layer(entry: LayerReport) -> dict[str, Any]:
    layer = entry.layer
    at = layer.locate()
    return {
        **fields(layer, "name", "path"),
        **fields(at, "line", "column"),
        "library": clean_path(at.library) or None,
        "model": clean(at.model) or None,
        "op": layer.op,
        **{size: getattr(layer, size) for size in _sizes(layer)},
        "dtype": None if layer.dtype is None else layer.dtype.value,
        **fields(layer, "layout", "bias", "calls"),
        **({"unfolded": True} if layer.unfolded else {}),
        **({"frozen": True} if layer.frozen else {}),
        "estimates": [
            _estimate(gpu, estimate, entry.times.get(gpu), _measured_on(layer, gpu))
            for gpu, estimate in entry.estimates.items()
        ],
    }


def _sizes(layer: ConvLayer) -> Iterator[str]:
    """The names of its sizes; only some have a third dimension, and padding that differs between the two sides."""
    yield from (*_SIZES, *(_SIZES_3D if layer.dims == 3 else ()))
    for axis in "DHW" if layer.dims == 3 else "HW":
        if getattr(layer, f"Pad{axis}_end") != getattr(layer, f"Pad{axis}"):
            yield f"Pad{axis}_end"


def _measured_on(layer: ConvLayer, gpu: str) -> Measured | None:
    """The measured times of the layer; None where they are those of another GPU."""
    if layer.measured is None:
        return None
    from convlint.gpus.gpu import load_gpu  # reads tables, which most reports need not

    return layer.measured if layer.measured.gpu == load_gpu(gpu).id else None


def _estimate(
    gpu: str, estimate: LayerEstimate | None, times: LayerTimes | None, measured: Measured | None
) -> dict[str, Any]:
    if estimate is None or times is None:
        unknown = dict.fromkeys(("grade", "time_us", "time_after_us", "ideal_us", "basis"))
        passes = {} if measured is None else {which: _measured(measured, which, None) for which, _ in measured.passes}
        return {"gpu": clean(gpu), **unknown, "passes": passes}
    return {
        "gpu": clean(gpu),
        "grade": times.grade,
        "time_us": number(estimate.time_us),
        "time_after_us": number(times.after_us),
        "ideal_us": number(times.ideal_us),
        "basis": estimate.basis,
        "passes": {
            which: {
                **_pass(estimate.passes[which]),
                **({} if measured is None else _measured(measured, which, estimate.predicted.get(which))),
            }
            for which in PASSES
            if which in estimate.passes
        },
    }


def _measured(measured: Measured, which: Pass, predicted_us: float | None) -> dict[str, Any]:
    """The measured time of a call of the pass beside the predicted one; nothing where it was not recorded."""
    timing = measured.of(which)
    if timing is None:
        return {}
    return {
        "measured_us": number(timing.us),
        "measured_parts": fields(timing, "convolution", "transpose", "bias", "other"),
        "measured_calls": timing.calls,
        "measured_spread": number(timing.spread),
        "measured_tensor_cores": timing.tensor_cores,
        "predicted_us": number(predicted_us),
    }


def _pass(estimate: PassEstimate) -> dict[str, Any]:
    return {
        "gemm": fields(estimate.gemm, "M", "N", "K", "batch"),
        **fields(estimate, "flops", "bytes", "arithmetic_intensity", "tile", "split_k", "tiles", "waves"),
        "tile_efficiency": number(estimate.tile_efficiency, 4),
        "wave_efficiency": number(estimate.wave_efficiency, 4),
        "workspace_bytes": estimate.workspace_bytes,
        "copies_us": number(estimate.transposes_us + estimate.padding_us),
        **fields(estimate, "time_us", "tflops", "bound_by"),
    }


def finding_object(finding: Finding) -> dict[str, Any]:
    """One finding by the contract."""
    at, rule = finding.location, finding.rule
    return {
        **fields(rule, "code", "name"),
        **fields(finding, "severity", "message", "layer", "layers"),
        **fields(at, "path", "line", "column", "end_line", "end_column"),
        **cell_object(at),
        "library": clean_path(at.library) or None,
        "model": clean(at.model) or None,
        **fields(finding, "gpu", "advised", "lost_us", "lost_step_us", "lost_alone_us", "lost_capacity_us"),
        **fields(finding, "lost_percent", "pays_with"),
        "alternatives": [
            {**fields(other, "describe", "set", "time_change_us"), "work_change": number(other.work_change, 4)}
            for other in finding.alternatives
        ],
        "basis": finding.basis,
        "fix": None if finding.fix is None else _fix(finding.fix),
        "source": fields(rule.source, "document", "section"),
        **fields(finding, "fingerprint", "fingerprints"),
    }


def _fix(fix: Fix) -> dict[str, Any]:
    return {
        **fields(fix, "describe", "safety", "set"),
        "by_layer": plain(fix.by_layer) if len(fix.by_layer) > 1 else [],
        **fields(fix, "time_change_us", "applicable"),
        "code_edits": [{**fields(edit, "path", "start", "end"), "new": edit.new} for edit in fix.code_edits],
        "no_edit": clean(fix.no_edit) or None,
    }


def _suppressed(entry: Suppressed) -> dict[str, Any]:
    finding = entry.finding
    return {
        **fields(finding.rule, "code"),
        **fields(finding, "layer"),
        **fields(finding.location, "path", "line"),
        "reason": clean(entry.reason),
    }


REPORTER = Reporter(render=render)
