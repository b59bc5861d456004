"""Writes the networks of `data/layout_networks.csv` as specs: `python benchmarks/export_networks.py [FOLDER]`.

Needs PyTorch and timm 1.0.31 (`pip install --no-deps timm==1.0.31 safetensors huggingface_hub`); no weights are
fetched. Each network is followed once on the meta device at its image size. Layers that no estimate tells apart are
written once, with how often one step calls them; what reads them is left out. Layouts are those that an input in NCHW
leads to: ConvNeXt's layer normalisation leaves NHWC behind, and a 1x1 map is in either.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from msgspec.structs import replace

from convlint.model.layer import ConvLayer
from convlint.model.network import Network
from convlint.readers import ReadOptions
from convlint.readers.spec.writing import spec_text
from convlint.readers.torch.module import READER

TIMM = "1.0.31"
DATA = Path(__file__).resolve().parent / "data"
# No estimate depends on these; `name` is that of the first of equal layers.
_ALIKE: Mapping[str, object] = {
    "name": "",
    "path": "",
    "bias": None,
    "norm_follows": None,
    "head": False,
    "spans": {},
    "node": None,
}


class _Name(type):
    """A class whose attributes are their own names, as those of an enumeration."""

    def __getattr__(cls, name: str) -> str:
        if name.startswith("__"):
            raise AttributeError(name)
        return name


class _StandIn(ModuleType):
    """A module that has every name."""

    __version__ = "0.0"

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        made = _Name(name, (), {})
        setattr(self, name, made)
        return made


class Torchvision(MetaPathFinder, Loader):
    """Stands in for torchvision, which timm imports for its data loaders and no network of the CSV needs."""

    def find_spec(self, fullname: str, *_: object) -> ModuleSpec | None:
        """The stand-in for any of torchvision's modules."""
        return ModuleSpec(fullname, self, is_package=True) if fullname.partition(".")[0] == "torchvision" else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """An empty module that has every name."""
        return _StandIn(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to run."""


def merged(layers: Sequence[ConvLayer]) -> tuple[ConvLayer, ...]:
    """Each distinct layer once, by the name of its first, with the calls of all."""
    calls: Counter[ConvLayer] = Counter()
    names: dict[ConvLayer, str] = {}
    for layer in layers:
        alike = replace(layer, **_ALIKE, calls=1)
        calls[alike] += layer.calls
        names.setdefault(alike, layer.name)
    return tuple(replace(alike, name=names[alike], calls=calls[alike]) for alike in calls)


def network_text(model: str, image: int) -> str:
    """The spec of one timm model. Raises RuntimeError where it cannot be followed."""
    network, errors = READER.read(f"timm.models:{model}", ReadOptions(inputs={"": f"1x3x{image}x{image}:fp16"}))
    if network is None or errors:
        raise RuntimeError(f"{model}: " + "; ".join(error.message for error in errors))
    note = f"# {model} of timm {TIMM} at {image}x{image}, made by benchmarks/export_networks.py\n"
    return note + spec_text(Network(path=model, layers=merged(network.layers)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the script; 0, or 2 without the timm that it is made for."""
    parser = argparse.ArgumentParser(description="Writes the networks of the layout benchmark as specs.")
    parser.add_argument("folder", nargs="?", type=Path, default=DATA / "networks")
    options = parser.parse_args(arguments)
    if find_spec("torchvision") is None:
        sys.meta_path.append(Torchvision())
    try:
        import timm  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        print(f"export_networks.py: {error}", file=sys.stderr)
        return 2
    if timm.__version__ != TIMM:
        print(f"export_networks.py: needs timm {TIMM}, not {timm.__version__}", file=sys.stderr)
        return 2
    with (DATA / "layout_networks.csv").open(newline="", encoding="utf-8") as file:
        images = {record["model"]: int(record["img"]) for record in csv.DictReader(file)}
    options.folder.mkdir(parents=True, exist_ok=True)
    for model, image in images.items():
        (options.folder / f"{model}.yaml").write_text(network_text(model, image), encoding="utf-8")
    print(f"{len(images)} networks in {options.folder}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
