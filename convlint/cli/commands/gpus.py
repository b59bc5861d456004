"""`convlint gpus`: the table of GPUs, or one GPU with the source of every number."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from convlint.cli.streams.gate import style_of, write
from convlint.gpus.gpu import Gpu, aliases, gpu_names, load_gpu
from convlint.model.grouping import grouped
from convlint.reporters.ink import column_sizes, row, wrap

COLUMNS = ("name", "generation", "cc", "SMs", "GB/s", "fp32", "tf32", "fp16", "int8", "also called")
_SIDES = "llrrrrrrr"  # of all but the last column


def run(name: str | None, color: str) -> int:
    """Prints and returns 0. Raises UsageError for an unknown GPU."""
    style = style_of(sys.stdout, color)
    if name is not None:
        write(sys.stdout, _details(load_gpu(name), style.width))
    else:
        measured = sys.stdout.isatty() or os.environ.get("COLUMNS")
        write(sys.stdout, _table(style.width if measured else None))
    return 0


def _table(width: int | None) -> str:
    """One line per GPU; where there is a width, the other names that do not fit go on below."""
    names = grouped((gpu_id, alias) for alias, gpu_id in aliases().items())
    rows = [COLUMNS, *(cells_of(load_gpu(gpu_id), names.get(gpu_id, [])) for gpu_id in gpu_names())]
    sizes = column_sizes([cells[:-1] for cells in rows])
    longest = max(len(name) for cells in rows for name in cells[-1].split(", "))
    lines = []
    for cells in rows:
        lines += _flowing(f"{row(cells[:-1], sizes, _SIDES)}  ", cells[-1].split(", "), width, longest + 1)
    note = (
        "Peaks are dense TFLOPS (int8: TOPS): fp32 on CUDA cores; tf32, fp16 and int8 on Tensor Cores,"
        " fp16 accumulated in fp32."
    )
    return "\n".join([*lines, "", *([note] if width is None else wrap(note, width))])


def _flowing(line: str, names: Sequence[str], width: int | None, room: int) -> list[str]:
    """The line with the names after it, set in as far as leaves `room` columns where they need further lines."""
    lines = []
    indent = len(line) if width is None else max(2, min(len(line), width - room))
    for number, name in enumerate(names):
        text = name if number == len(names) - 1 else f"{name}, "
        if width is not None and len(line) + len(text.rstrip()) > width and line.strip():
            lines.append(line.rstrip())
            line = " " * indent
        line += text
    return [*lines, line.rstrip()]


def cells_of(gpu: Gpu, names: list[str]) -> tuple[str, ...]:
    """The cells of a GPU's line in the table."""
    peaks = [gpu.peak_flops.get(key) for key in ("fp32", "tf32_tensor", "fp16_tensor_fp32acc", "int8_tensor")]
    shown = ["-" if peak is None else f"{peak / 1e12:.4g}" for peak in peaks]
    return (
        gpu.id, gpu.architecture, str(gpu.compute_capability), str(gpu.sms), f"{gpu.dram_bytes_per_s / 1e9:.4g}",
        *shown, ", ".join(sorted(name for name in names if name != gpu.id)),
    )  # fmt: skip


def _details(gpu: Gpu, width: int) -> str:
    lines = [f"{gpu.id}: {gpu.name}", ""]
    for key, shown, source in details(gpu):
        lines.append(f"{key:<26}{shown}")
        if source:
            lines += _wrapped(f"source: {source}", width, "    ")
    for note in gpu.notes:
        lines += ["", *_wrapped(f"note: {note}", width, "")]
    return "\n".join(lines)


def details(gpu: Gpu) -> list[tuple[str, str, str]]:
    """Each figure of a GPU as (name, value, source); what is unknown has no source."""
    peaks = {f"peaks_tflops.{key}": f"{value / 1e12:g} T" for key, value in sorted(gpu.peak_flops.items())}
    facts: dict[str, object] = {
        "architecture": gpu.architecture,
        "chip": gpu.chip,
        "compute_capability": gpu.compute_capability,
        "dies_per_board": gpu.dies_per_board,
        "sms": gpu.sms,
        "boost_clock_mhz": None if gpu.boost_clock_hz is None else f"{gpu.boost_clock_hz / 1e6:g} MHz",
        **peaks,
        "tensor_dtypes": ", ".join(sorted(gpu.tensor_dtypes)) or "none",
        "dram_gb_per_s": f"{gpu.dram_bytes_per_s / 1e9:g} GB/s",
        "memory_gib": "unknown" if gpu.memory_bytes is None else f"{gpu.memory_bytes / 2**30:g} GiB",
        "l2_mib": None if gpu.l2_bytes is None else f"{gpu.l2_bytes / 2**20:g} MiB",
        "registers_per_sm": gpu.registers_per_sm,
        "shared_kib_per_sm": f"{gpu.shared_bytes_per_sm / 1024:g} KiB",
        "max_warps_per_sm": gpu.max_warps_per_sm,
        "max_blocks_per_sm": gpu.max_blocks_per_sm,
        "max_registers_per_thread": gpu.max_registers_per_thread,
        "concurrent_kernels": gpu.concurrent_kernels,
        "pcie_gen": gpu.pcie_gen,
    }
    rows = []
    for key, value in facts.items():
        source = None if value is None else gpu.sources.get(key) or gpu.sources.get(key.split(".")[0])
        shown = "unknown" if value is None else str(value)
        rows.append((key.removeprefix("peaks_tflops."), shown, source or ""))
    return rows


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    import textwrap

    return textwrap.wrap(
        text,
        width,
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
