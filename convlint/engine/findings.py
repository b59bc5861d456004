"""From hits to findings: where they point, what identifies them, and what a report says of them."""

from __future__ import annotations

from collections.abc import Sequence

from convlint.engine.hits import Hit
from convlint.model.layer import ConvLayer
from convlint.model.location import Location
from convlint.model.network import Network
from convlint.report import Finding, Fix, Identity


class Identities:
    """Rule, path, layer and GPU of each finding, and its ordinal among those that share the others."""

    def __init__(self) -> None:
        self._ordinals: dict[tuple[str, str | None, str | None], int] = {}

    def copied(self) -> Identities:
        """Others that go on from here."""
        others = Identities()
        others._ordinals.update(self._ordinals)
        return others

    def next(self, code: str, path: str, layer: str | None, gpu: str | None, *, keep: bool = True) -> Identity:
        """The next one of these; `keep` is false for one that may never come to be."""
        key = code, layer, gpu
        ordinal = self._ordinals.get(key, 0) + 1
        if keep:
            self._ordinals[key] = ordinal
        return code, path, layer or "", gpu or "", ordinal


def location_of(places: Sequence[str], layer: ConvLayer | None, network: Network) -> Location:
    """Where the value that breaks the rule was written: in the layer, or among the network's settings."""
    if layer is not None:
        own = [name for name in places if name in layer.spans]
        if own or not any(name.startswith("runtime") or name in ("target", "mode") for name in places):
            return layer.locate(*own)
    for name in places:
        if name == "N":  # that of the network stands at its first layer that has one
            first = next((each for each in network.layers if "N" in each.spans), None)
            if first is not None:
                return first.locate("N")
        span = network.runtime.spans.get(name.removeprefix("runtime.")) or network.spans.get(name)
        if span is not None:
            path = network.settings_path or network.path
            model = network.path if network.settings_path is not None else ""
            return Location(
                path=path, line=span[0], column=span[1], end_line=span[2], end_column=span[3], model=model
            )  # fmt: skip
    return Location(path=network.path) if layer is None else layer.locate()


def home_of(location: Location) -> str:
    """What a finding's identity has as its path: the file, and of a model of the config its name too."""
    return f"{location.model}: {location.path}" if location.model else location.path


def is_of_batch(hit: Hit) -> bool:
    """Whether a rule on channels speaks of N here: the batch is the network's, and mending the layer leaves it."""
    return hit.sets_batch and hit.rule.loss != "wave"


def finding_of(
    hit: Hit,
    gpu: str | None,
    identity: Identity,
    fix: Fix | None = None,
    network_us: float | None = None,
    *,
    said: bool = False,
) -> Finding:
    """What the report says of a hit; `network_us` is the time of all layers, where it is known.

    Unless it is `said`, but only asked about, it is of its layer.
    """
    price = hit.price
    lost_us = price.lost_us
    is_one = len(hit.names) == 1 or bool(hit.follows)
    of_layer = is_one and not (said and is_of_batch(hit))
    return Finding(
        rule=hit.rule.info,
        severity=hit.severity,
        message=hit.message,
        location=hit.location,
        layer=hit.names[0] if of_layer else None,
        layers=() if len(hit.names) == 1 and of_layer else hit.names,
        gpu=gpu,
        advised=price.advised,
        lost_us=lost_us,
        lost_alone_us=price.alone_us,
        lost_capacity_us=price.capacity_us,
        lost_percent=100 * lost_us / network_us if lost_us is not None and network_us else None,
        pays_with=price.pays_with,
        basis=price.basis,
        fix=fix,
        identity=identity,
        identities=() if (len(hit.names) == 1 and of_layer) or not hit.names else hit.identities,
    )
