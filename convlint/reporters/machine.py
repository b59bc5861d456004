"""What the machine makes of a network: what its times rest on, whether its host keeps up, what fits into memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from convlint.files.languages.saying import duration, plural, say, sentence
from convlint.files.safe import clean, clean_path
from convlint.model.layer import Dtype, Mode
from convlint.model.report import LayerReport, NetworkReport, Report

if TYPE_CHECKING:
    from convlint.gpus.gpu import CalibrationUse

_BASES = {
    "extrapolated": sentence("extrapolated from other GPUs"),
    "assumed": sentence("assumed, without any timings"),
}
_MEASURED = {"measured": sentence("held against timings of this generation")}


def basis_notes(report: Report) -> list[str]:
    """For each target on which some times do not rest on timings of its generation: what they rest on, and how many."""
    notes = []
    for gpu in report.targets:
        if text := _bases(report.layers, gpu, _BASES):
            where = say(" on {targets}", targets=gpu) if len(report.targets) > 1 else ""
            notes.append(say("times{where}: {what}", where=where, what=text))
    return notes


def basis_of(report: Report, gpu: str, mode: Mode) -> str:
    """What the times of one target and mode rest on, whatever that is; empty where none is known."""
    entries = [entry for entry in report.layers if entry.mode == mode]
    bases = _bases(entries, gpu, _MEASURED | _BASES)
    used = [use for use in report.calibrations if use.gpu == gpu and not use.reason]
    calibrated = [_calibrated(use) for use in used]
    return say("; ").join([*calibrated, bases]) if bases else ""


def _bases(entries: Iterable[LayerReport], gpu: str, words: Mapping[str, str]) -> str:
    bases = [estimate.basis for entry in entries if (estimate := entry.estimates.get(gpu)) is not None]
    return say(", ").join(
        say("{basis} for {layers}", basis=say(text), layers=plural(sum(one == basis for one in bases), "layer"))
        for basis, text in words.items()
        if basis in bases
    )


def calibration_notes(uses: Iterable[CalibrationUse], *, several: bool) -> list[str]:
    """For each calibration: that times follow it, named where there are `several` targets; or why they do not."""
    notes = []
    for use in uses:
        where = say(" on {targets}", targets=use.gpu) if several else ""
        what = _calibrated(use)
        if use.reason:
            what = say("not calibrated by {file}: {reason}", file=clean_path(use.path), reason=clean(use.reason))
        notes.append(say("times{where}: {what}", where=where, what=what))
    return notes


def _calibrated(use: CalibrationUse) -> str:
    passes = say("1 pass") if use.rows == 1 else say("{count:,} passes", count=use.rows)
    return say("calibrated on {device}, {passes}", device=clean(use.device), passes=passes)


def host_notes(report: Report) -> list[str]:
    """For each input and target where the GPU waits for its host: how long either needs."""
    return [
        say(
            "times{where}: at the pace of the host, which needs about {host}; the GPU needs {gpu}, and what fixes save "
            "shows on a host that keeps up",
            where=_where(report, network),
            host=duration(network.host_us or 0),
            gpu=duration(network.gpu_us or 0),
        )
        for network in report.networks
        if network.waits
    ]


def dtype_notes(report: Report) -> list[str]:
    """How many times rest on a dtype that is only that of stored weights: an engine is told which one it runs."""
    stored = [
        entry
        for entry in report.layers
        if entry.layer.dtype == Dtype.fp32 and entry.layer.dtype_source == "storage" and any(entry.times.values())
    ]
    if not stored:
        return []
    layers = plural(len(stored), "layer")
    return [
        say(
            "dtype: the weights of {layers} are stored in fp32, and may run in another one: --dtype says in which",
            layers=layers,
        )
    ]


def batch_notes(report: Report) -> list[str]:
    """Which networks get images without a batch, so that their times are those of one image."""
    unbatched = {network.path: network.unbatched for network in report.networks if network.unbatched}
    return [batch_note(sizes, clean_path(path) if _several(report) else "") for path, sizes in unbatched.items()]


def batch_note(sizes: str, path: str = "") -> str:
    """That an input states no N, with what to write instead; `path` names it among several."""
    where = say(" of {path}", path=path) if path else ""
    return say(
        "batch{where}: an input of {sizes} states no N, and is priced as N = 1; write 64x{sizes}, say, for another",
        where=where,
        sizes=clean(sizes),
    )


def network_notes(report: Report) -> Iterator[str]:
    """Of each input: its parameters and FLOPs; of each target: what a step keeps in memory, and what fits."""
    said: set[tuple[str, str]] = set()
    for network in report.networks:
        own = network.path, network.mode
        if own not in said:
            said.add(own)
            name = f"{clean_path(network.path)}: " if _several(report) else ""
            yield name + _size(network)
        yield f"memory{_where(report, network)}: {_memory(network)}"


def _several(report: Report) -> bool:
    return len({network.path for network in report.networks}) > 1


def _where(report: Report, network: NetworkReport) -> str:
    path = say(" of {path}", path=clean_path(network.path)) if _several(report) else ""
    return path + (say(" on {targets}", targets=clean(network.gpu)) if len(report.targets) > 1 else "")


def _size(network: NetworkReport) -> str:
    parameters = (
        "unknown parameters"
        if network.parameters is None
        else f"{count(network.parameters)} parameters in convolutions"
    )
    if network.flops is None:
        return f"{parameters}, unknown FLOPs"
    each = network.flops / (network.batch or 1)
    work = f"{count(each)}FLOPs ({count(each / 2)} multiply-adds) forward"
    if network.batch:
        work += f" per image, {count(network.flops)}FLOPs with N={network.batch}" if network.batch > 1 else " per image"
    return f"{parameters}, {work}"


def _memory(network: NetworkReport) -> str:
    if network.memory_needs:
        return f"unknown for want of {clean(', '.join(network.memory_needs))}"
    parts = sorted(((size, name) for name, size in network.memory.items() if size), reverse=True)
    words = f"{binary(sum(network.memory.values()))}"
    if network.capacity_bytes is not None:
        words += f" of {binary(network.capacity_bytes)}"
    words += f" ({', '.join(f'{name} {binary(size)}' for size, name in parts)})" if parts else ""
    if network.capacity_bytes is None:
        return f"{words}; the GPU's own is unknown"
    if network.largest_batch is None:  # its layers have several batches
        return words
    if not network.largest_batch:
        return f"{words}; not even one image fits"
    return f"{words}; room for N={network.largest_batch:,} at most, less what other layers keep"


def count(value: float) -> str:
    """Three significant digits and a decimal unit: `23.5 M`, `8.17 G`, `512 `."""
    return scaled(value, ("", "k", "M", "G", "T", "P", "E"), 1000, whole=1)


def binary(size: int) -> str:
    """Three significant digits and a binary unit: `14.2 GiB`, `512 B`."""
    return scaled(size, ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"), 1024, whole=1)


def scaled(value: float, units: Sequence[str], step: int, *, whole: int = 0) -> str:
    """Three significant digits and one of the `units`, each `step` times the one before.

    What is counted in the first `whole` units has no decimals.
    """
    power = 0
    while value >= 999.5 and power + 1 < len(units):
        value, power = value / step, power + 1
    digits = 0 if value >= 99.95 or power < whole else 1 if value >= 9.995 else 2
    return f"{value:.{digits}f} {units[power]}"
