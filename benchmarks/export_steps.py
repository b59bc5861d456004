"""Writes the networks of `data/network_steps.csv` as tables: `python benchmarks/export_steps.py`.

Needs PyTorch and timm as `export_networks.py` does. Each network is followed on the meta device with an input in NCHW
and one in NHWC, for the layout of each convolution. Networks that this timm does not have are named and left out.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from export_networks import TIMM, Torchvision
from network_tables import DATA, Placed, how_of, write_networks

from convlint.readers import ReadOptions
from convlint.readers.torch.module import READER


def placed_layers(model: str, image: int) -> Iterator[Placed]:
    """The convolutions of one timm model in both layouts. Raises RuntimeError where it cannot be followed."""
    networks = []
    for channels_last, suffix in ((False, ""), (True, ":channels_last")):
        options = ReadOptions(inputs={"": f"1x3x{image}x{image}:fp16{suffix}"}, channels_last=channels_last)
        network, errors = READER.read(f"timm.models:{model}", options)
        if network is None or errors:
            raise RuntimeError("; ".join(error.message for error in errors))
        networks.append(network.layers)
    for plain, last in zip(*networks, strict=True):
        if plain.dims > 2 or plain.op != "conv" or plain.calls != last.calls:
            raise RuntimeError(f"{plain.name} does not fit into the tables")
        yield Placed(layer=plain, in_nchw=how_of(plain), in_nhwc=how_of(last))


def main() -> int:
    """Runs the script; 0, or 2 without the timm that it is made for."""
    if find_spec("torchvision") is None:
        sys.meta_path.append(Torchvision())
    try:
        import timm  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        print(f"export_steps.py: {error}", file=sys.stderr)
        return 2
    if timm.__version__ != TIMM:
        print(f"export_steps.py: needs timm {TIMM}, not {timm.__version__}", file=sys.stderr)
        return 2
    with (DATA / "network_steps.csv").open(newline="", encoding="utf-8") as file:
        wanted = sorted({(record["model"], int(record["img_size"])) for record in csv.DictReader(file)})
    layers: dict[tuple[str, int], list[Placed]] = {}
    for model, image in wanted:
        try:
            layers[model, image] = list(placed_layers(model, image))
        except Exception as error:
            layers.pop((model, image), None)
            print(f"{model} at {image}: {error!r}"[:300], file=sys.stderr)
    distinct = write_networks(layers)
    print(f"{len(layers)} networks of {len(wanted)}, {distinct} distinct layers")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
