"""Attacks by hostile model files: ONNX, .pt2, .keras, .safetensors and specs."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from . import archive_models, onnx_models, spec_models
from .contract import Attack

READ_OR_REFUSED = frozenset({1, 3})
REFUSED = frozenset({3})
# shape inference by itself needs much of what is allowed for these
_HEAVY = ("concat_", "functions_fan_out", "functions_deep")

# what no reader may take for sound
_REFUSED = (
    "offsets_", "length_", "cut_", "bomb", "sparse_", "empty_file", "not_json", "deep", "not_utf8", "shard_parent",
    "shard_absolute", "strides_zero", "first_stride_zero", "strange_method", "no_zip", "no_members",
)  # fmt: skip


def attacks() -> Iterator[Attack]:
    """Every model file that is made by hand."""
    for name, build in onnx_models.cases():
        yield of_file("onnx", f"onnx_{name}", f"{name}.onnx", build, alone=any(word in name for word in _HEAVY))
    for kind, name, suffix, build, heavy in archive_models.cases():
        exits = REFUSED if name.startswith(_REFUSED) else READ_OR_REFUSED
        yield of_file(kind, f"{kind}_{name}", f"{name}{suffix}", build, alone=heavy, exits=exits)
    for name, build, heavy in spec_models.cases():
        yield of_file("spec", f"spec_{name}", f"m_{name}.yaml", build, alone=heavy)


def of_file(
    kind: str,
    name: str,
    path: str,
    build: Callable[[], Any],
    *,
    alone: bool = False,
    exits: frozenset[int] = READ_OR_REFUSED,
) -> Attack:
    """An attack by one file; what `build` makes is its bytes, text, a protobuf message, or what writes it."""
    return Attack(name=name, make=partial(_write, path, build), inputs=(path,), exits=exits, bare=kind, alone=alone)


def _write(path: str, build: Callable[[], Any], folder: Path) -> None:
    made = build()
    if callable(made):
        made(folder / path)
    elif isinstance(made, str):
        (folder / path).write_text(made, encoding="utf-8", errors="surrogateescape")
    else:
        (folder / path).write_bytes(made if isinstance(made, bytes) else made.SerializeToString())
