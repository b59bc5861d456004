"""Whether a program may run on a GPU, by what its code does rather than by what its comments and texts say."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from convlint.readers.python.programs.unit import Unit, Units
from convlint.readers.python.walking import every

_MENTIONS = re.compile(rb"cuda|cudnn|gpu|accelerator|fabric", re.IGNORECASE)
_DEVICE = re.compile(r"(?:cuda|gpu)(?::.*)?", re.IGNORECASE)
_LIBRARIES = {"Accelerator", "Fabric"}
# Of torch.cuda, what a script on the CPU calls too: it asks for a GPU, or seeds in case there is one.
_IDLE = re.compile(r"torch\.cuda(?:\.(?:is_available|device_count|get_device_name|manual_seed\w*|empty_cache))?")


class Devices:
    """Which files of a project use a GPU, each looked through once."""

    def __init__(self, units: Units) -> None:
        self._units = units
        self._found: dict[str, bool] = {}

    def has_gpu(self, files: Iterable[str]) -> bool:
        """Whether any of the files moves something to a GPU, or lets somebody choose one."""
        return any(map(self._gpu, files))

    def _gpu(self, path: str) -> bool:
        if path not in self._found:
            mentions = _MENTIONS.search(self._units.imports.project.content(path) or b"") is not None
            unit = self._units.get(path) if mentions else None
            self._found[path] = unit is not None and any(_uses(node, unit) for node in every(unit.file.tree))
        return self._found[path]


def _uses(node: ast.AST, unit: Unit) -> bool:
    match node:
        case ast.Constant(value=str(text)):
            return _DEVICE.fullmatch(text) is not None
        case ast.Attribute(attr=name):
            full = unit.full_name(node)
            if full.startswith("torch.backends.cudnn."):
                return name != "enabled"  # which a script on the CPU switches off too; the others are set for a GPU
            return _IDLE.fullmatch(full) is None and (_speaks(name) or full.startswith("torch.cuda."))
        case ast.ImportFrom(module=str(name)):
            return name.startswith("torch.cuda")
        case ast.Name(id=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)):
            return _speaks(name)
    return False


def _speaks(name: str) -> bool:
    return name in _LIBRARIES or any(each in name.lower() for each in ("cuda", "gpu"))
