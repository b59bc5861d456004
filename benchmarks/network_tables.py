"""The networks of `data/network_steps.csv` as two tables: distinct layers, and how often each network calls which."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from convlint.model.errors import ConvlintError
from convlint.model.layer import ConvLayer, Dtype, Layout, with_output

DATA = Path(__file__).resolve().parent / "data"
LAYERS, NETWORKS = (DATA / f"{name}.csv" for name in ("timm_layers", "timm_networks"))
SIZES = (
    "dims", "C", "H", "W", "K", "R", "S", "U", "V", "PadH", "PadH_end", "PadW", "PadW_end", "DilH", "DilW", "groups",
    "bias", "first",
)  # fmt: skip
_LAYOUTS: Sequence[Layout] = ("NCHW", "NHWC", "auto")


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """One layer, with the layouts it has where the network's input is in NCHW and where it is in NHWC, or copies."""

    layer: ConvLayer
    in_nchw: str  # a layout, or "copied": NHWC from an input that arrives in NCHW
    in_nhwc: str

    def laid_out(self, batch: int, *, channels_last: bool) -> ConvLayer:
        """The layer as it runs."""
        how = self.in_nhwc if channels_last else self.in_nchw
        layout = next((layout for layout in _LAYOUTS if layout == how), "NHWC")
        return replace(self.layer, N=batch, layout=layout, copies_input=how == "copied")


def placed(layer: ConvLayer) -> Placed:
    """A layer of a spec, whose layout is that of an input in NCHW; in NHWC all layers are that have a choice."""
    how = how_of(layer)
    return Placed(layer=layer, in_nchw=how, in_nhwc="NHWC" if how == "NCHW" else how)


def how_of(layer: ConvLayer) -> str:
    """What `Placed` calls the layout of a layer."""
    return "copied" if layer.copies_input else layer.layout


def read_networks(layers: Path = LAYERS, networks: Path = NETWORKS) -> dict[tuple[str, int], tuple[Placed, ...]]:
    """The layers of each network and image size; raises ConvlintError where a table cannot be read."""
    try:
        with layers.open(newline="", encoding="utf-8") as file:
            known = [_read(record) for record in csv.DictReader(file)]
        with networks.open(newline="", encoding="utf-8") as file:
            return {
                (record["model"], int(record["img"])): tuple(_called(known, record["layers"]))
                for record in csv.DictReader(file)
            }
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise ConvlintError(f"{layers} and {networks}: {error!r}") from error


def _read(record: Mapping[str, str]) -> Placed:
    sizes = {name: int(record[name]) for name in SIZES}
    bias, first = bool(sizes.pop("bias")), bool(sizes.pop("first"))
    layer = ConvLayer(name="row", dtype=Dtype.fp16, bias=bias, first=first, **sizes)  # type: ignore[arg-type]
    return Placed(layer=with_output(layer), in_nchw=record["in_nchw"], in_nhwc=record["in_nhwc"])


def _called(known: Sequence[Placed], text: str) -> Iterable[Placed]:
    """The layers of "3x2 1 -4": the numbers of lines, each relative to the last, and how often each is called."""
    number = 0
    for word in text.split():
        step, _, calls = word.partition("x")
        number += int(step)
        placed = known[number]
        yield Placed(layer=replace(placed.layer, calls=int(calls or 1)), in_nchw=placed.in_nchw, in_nhwc=placed.in_nhwc)


def write_networks(
    found: Mapping[tuple[str, int], Sequence[Placed]], layers: Path = LAYERS, networks: Path = NETWORKS
) -> int:
    """Writes both tables; the number of distinct layers."""
    numbers: dict[tuple[object, ...], int] = {}
    lines: list[tuple[str, int, str]] = []
    for (model, image), layers_of_one in sorted(found.items()):
        calls: Counter[int] = Counter()
        for each in layers_of_one:
            key = (*(int(getattr(each.layer, name) or 0) for name in SIZES), each.in_nchw, each.in_nhwc)
            calls[numbers.setdefault(key, len(numbers))] += each.layer.calls
        words, last = [], 0
        for number, times in sorted(calls.items()):
            words.append(f"{number - last}x{times}" if times > 1 else f"{number - last}")
            last = number
        lines.append((model, image, " ".join(words)))
    with layers.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([(*SIZES, "in_nchw", "in_nhwc"), *numbers])
    with networks.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([("model", "img", "layers"), *lines])
    return len(numbers)
