"""The reference of audits: keys of a list, and columns of tables as the code has them, each with its meaning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args, get_origin, get_type_hints

from convlint.audit.ranking import SHARED, columns
from convlint.audit.rows import ROWS, Table
from convlint.audit.subjects import ALIASES, KEYS
from convlint.cli.streams.tables import files_of
from handbook.markup import code, table, text

_MODEL = "its name, by which tables are joined"
_WHAT: Mapping[Table, str] = {
    "findings": "A row for each finding on each GPU, in the order of the audit.",
    "layers": "A row for each convolution on each GPU. Sizes are of the whole layer.",
    "models": "A row for each model on each GPU.",
    "errors": "A row for what could not be read or resolved.",
}
_OF_HOURS = {
    "gpu_hours": "GPU hours of the model on this GPU, the same in all its rows; none without a row of weights",
    "lost_gpu_hours": "those of them that are lost to this",
}
MEANINGS: Mapping[Table, Mapping[str, str]] = {
    "findings": {
        "model": _MODEL,
        "path": "the file that the finding points at",
        "line": "there, from 1",
        "column": "there, from 1",
        "layer": "its layer; none where it is of the whole model",
        "layers": "those that it joins",
        "gpu": "none where it is the same on all",
        "code": "of the rule",
        "name": "of the rule",
        "severity": "error, warning or info",
        "message": "what is wrong",
        "advised": "whether its fix is among those that together make the model fastest: only these are added up",
        "lost_us": "µs of a step, its share of what all advice saves",
        "lost_alone_us": "µs of a step that its fix alone saves",
        "lost_capacity_us": "µs for tiles and waves that are not filled; part of no sum",
        "lost_percent": "% of the model's convolution time",
        "pays_with": "rules with whose fixes it earns its share",
        "fix": "what to change",
        "fix_safety": "safe, or unsafe where the network changes",
        "fix_set": "JSON: what it sets in the layer, or a list of that for each of `layers`",
        "time_change_us": "µs of a step by which the fix changes the time of its layers",
        "section": "of the document that the rule comes from",
        "fingerprint": "stays the same when lines move, as in baselines",
        **_OF_HOURS,
    },
    "layers": {
        "model": _MODEL,
        "path": "the file in which the layer is written",
        "line": "where the layer stands",
        "layer": "its name",
        "op": "kind of convolution",
        "gpu": "id of the GPU",
        "N": "batch",
        "C": "input channels",
        "D": "input depth, of 3-D layers",
        "H": "input height",
        "W": "input width",
        "K": "output channels",
        "Z": "output depth, of 3-D layers",
        "P": "output height",
        "Q": "output width",
        "T": "filter depth, of 3-D layers",
        "R": "filter height",
        "S": "filter width",
        "U": "vertical stride",
        "V": "horizontal stride",
        "DilH": "vertical dilation",
        "DilW": "horizontal dilation",
        "groups": "of channels",
        "dtype": "what it is computed in",
        "dtype_source": "stated, module, or storage: that of stored weights, which run as the engine is told",
        "layout": "NCHW, NHWC or auto",
        "grade": "ideal over predicted time, A to F",
        "time_us": "µs of a step, all passes and calls",
        "time_after_us": "the same with all advice taken",
        "ideal_us": "the same if no tile and no wave were wasted in it",
        "fprop_us": "µs of the forward pass, of one call",
        "dgrad_us": "the same of the gradient of its input; none in inference",
        "wgrad_us": "the same of the gradient of its weights; none in inference",
        "fprop_bound_by": "what the forward pass waits for: compute, memory or launch",
        "basis": "what the prediction rests on: measured, extrapolated or assumed",
        **_OF_HOURS,
    },
    "models": {
        "model": _MODEL,
        "path": "its file; of a module, its name",
        "architecture": "what the list calls it; none without",
        "structure": "equal where all convolutions have equal channels, filters and strides, whatever images and dtype",
        "gpu": "id of the GPU",
        "mode": "training or inference",
        "batch": "of the whole network; none where unknown",
        "layers": "convolutions",
        "errors": "findings of that severity on this GPU",
        "warnings": "the same",
        "infos": "the same",
        "skipped": "rules that could not be checked, on all its GPUs",
        "suppressed": "findings that the user silenced",
        "grade": "ideal over predicted time, A to F",
        "time_us": "µs of convolutions in a step; none where one has no time",
        "time_after_us": "the same with all advice taken",
        "lost_us": "the difference",
        "lost_percent": "of `time_us`, in %",
        "parameters": "of convolutions",
        "flops": "of a forward pass at this batch, two for a multiply-accumulate",
        "memory_bytes": "bytes at the fullest moment of a step; none where something is unknown",
        "largest_batch": "that fits into the memory of the GPU",
        "host_us": "µs in which the host can start a step's kernels",
        "gpu_us": "µs in which the GPU can run them; where it is less, the GPU waits",
        "complete": "whether all of the model was read",
        **_OF_HOURS,
        "convolution_share": "how much of the hours convolutions take, from 0 to 1: all where weights do not say",
    },
    "errors": {
        "model": "its name; none where an entry names no model",
        "path": "the file, or the list",
        "line": "there",
        "column": "there",
        "message": "what is wrong",
        "internal": "whether it is a defect of convlint",
    },
}
_WORDS = {str: "text", int: "whole number", float: "number", bool: "true or false", list: "list of texts"}


class UnexplainedColumnError(ValueError):
    """A column has no meaning here, or a meaning no column."""


def audit_keys() -> list[str]:
    """The keys of an entry in a list of models."""
    also: dict[str, list[str]] = {}
    for alias, key in ALIASES.items():
        also.setdefault(key, []).append(alias)
    rows = [
        (" or ".join(map(code, (key, *also.get(key, ())))) + " (required)" * (key == "model"), text(meaning))
        for key, meaning in KEYS.items()
    ]
    return table(("key", "what it is"), rows)


def audit_tables() -> list[str]:
    """Each table with its file's name and its columns. Raises UnexplainedColumnError."""
    out = []
    for which, file in files_of("audit.parquet").items():
        out += [f"### The table `{file}`", "", _WHAT[which], "", *_columns(which)]
    return out


def _columns(which: Table) -> list[str]:
    meanings, names = MEANINGS[which], columns(which)
    if set(meanings) != set(names):
        raise UnexplainedColumnError(f"{which}: {', '.join(sorted(set(meanings) ^ set(names)))}")
    hints = get_type_hints(ROWS[which]) | dict.fromkeys(SHARED, float | None)
    rows = [(code(name), _type(hints[name]), _marked(meanings[name])) for name in names]
    return table(("column", "type", "what it is"), rows)


def _marked(meaning: str) -> str:
    """Plain text, but for the names of columns between backticks."""
    return "".join(code(part) if odd % 2 else _kept(part) for odd, part in enumerate(meaning.split("`")))


def _kept(part: str) -> str:
    """The text with the spaces at its ends, which set it apart from code."""
    return f"{' ' * part.startswith(' ')}{text(part)}{' ' * part.endswith(' ')}"


def _type(hint: Any) -> str:
    """`whole number` for `int`, and that it may be unknown for `int | None`."""
    several = get_args(hint) if get_origin(hint) is not list else ()
    plain = [each for each in several or (hint,) if each is not type(None)]
    words = _WORDS[get_origin(plain[0]) or plain[0]]
    return f"{words} or none" if type(None) in several else words
