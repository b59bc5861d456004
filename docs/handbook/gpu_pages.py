"""One page of all GPUs: the table, then each with the source of every figure."""

from __future__ import annotations

from convlint.cli.commands.gpus import COLUMNS, cells_of, details
from convlint.gpus.gpu import ARCHITECTURES, Gpu, aliases, gpu_names, load_gpu
from handbook.markup import code, table, text

_INTRODUCTION = """# GPUs

convlint knows {count} GPUs, of {generations} generations. Each is a file of figures, and no figure is without its
source: what none confirms is left out, and the GPU's notes say so. A board with two dies is one of its dies, which is
what CUDA sees as a device.

Peaks are dense, in TFLOPS (int8: TOPS): fp32 on CUDA cores; tf32, fp16 and int8 on Tensor Cores, fp16 accumulated in
fp32. `convlint gpus NAME` shows the same in a terminal.
"""


def page() -> str:
    """The whole page."""
    gpus = [load_gpu(name) for name in gpu_names()]
    known = [each for each in ARCHITECTURES if any(gpu.architecture == each for gpu in gpus)]
    out = [_INTRODUCTION.format(count=len(gpus), generations=len(known))]
    names: dict[str, list[str]] = {}
    for alias, gpu_id in aliases().items():
        names.setdefault(gpu_id, []).append(alias)
    rows = []
    for gpu in gpus:
        name, *figures, others = cells_of(gpu, names.get(gpu.id, []))
        rows.append((f"[{name}](#{anchor(gpu)})", *map(text, figures), text(others)))
    out += table(COLUMNS, rows, right=range(2, len(COLUMNS) - 1))
    for generation in known:
        out += [f"## {generation.capitalize()}", ""]
        for gpu in gpus:
            if gpu.architecture == generation:
                out += _section(gpu)
    return "\n".join(out)


def anchor(gpu: Gpu) -> str:
    """The id of its heading."""
    return f"gpu-{gpu.id}"


def _section(gpu: Gpu) -> list[str]:
    rows = [(code(name), text(shown), text(source) if source else "-") for name, shown, source in details(gpu)]
    notes = [line for note in gpu.notes for line in (f"Note: {text(note)}", "")]
    heading = f"### {text(gpu.name)} {{#{anchor(gpu)}}}"
    return [heading, "", code(gpu.id), "", *notes, *table(("", "value", "source"), rows)]
