"""The values behind the vocabulary for one layer on one target, and what a rule lacks where one is unknown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

from convlint.estimate import LayerEstimate
from convlint.facts.arriving import arriving
from convlint.facts.fields import NAMES, values_of
from convlint.facts.predicted import full_waves, of_pass, worst_tiles, worst_waves
from convlint.facts.quantity import Table
from convlint.facts.table import OF_LAYERS, QUANTITIES
from convlint.facts.target import TargetFacts
from convlint.facts.unknown import UNKNOWN, UnknownValue
from convlint.model.layer import PASSES, ConvLayer
from convlint.model.network import Edge
from convlint.model.runtime import framework_of

# What stands before a dot in the vocabulary, and what several quantities share.
_OBJECTS: Mapping[str, Callable[[LayerFacts], Any]] = {
    **{which: partial(of_pass, which=which) for which in PASSES},
    "tiles_worst": worst_tiles,
    "waves_worst": worst_waves,
    "full waves": full_waves,  # spelled as no rule can
    "arriving": arriving,
}
_FUNCTIONS = {**{name: quantity.of for name, quantity in OF_LAYERS.items()}, **_OBJECTS}


class LayerFacts(dict[str, Any]):
    """The namespace in which the rules' expressions about one layer are evaluated; filled as they ask."""

    __slots__ = ("_estimate", "context", "edge", "layer", "producers")
    quantities: ClassVar[Table] = QUANTITIES

    def __init__(
        self, context: TargetFacts, layer: ConvLayer, edge: Edge | None, producers: tuple[ConvLayer, ...],
        estimate: LayerEstimate | Callable[[], LayerEstimate | None] | None,
    ) -> None:  # fmt: skip
        """`estimate` may be a function that makes it, for rules of which few ask for it."""
        super().__init__(context.shared)
        self.context, self.layer, self._estimate = context, layer, estimate
        self.edge, self.producers = edge, producers
        for name, value in zip(NAMES, values_of(layer), strict=True):
            self[name] = UNKNOWN if value is None else value

    @property
    def estimate(self) -> LayerEstimate | None:
        """The layer's predicted passes."""
        if callable(self._estimate):
            self._estimate = self._estimate()
        return self._estimate

    def __missing__(self, name: str) -> Any:
        of = _FUNCTIONS[name]
        try:
            value = of(self)
        except UnknownValue:
            value = UNKNOWN
        self[name] = value
        return value

    def needs(self, names: frozenset[str]) -> tuple[str, ...]:
        """Which values a rule that reads `names` lacks, in words that a user can act on."""
        lacking: dict[str, None] = {}
        for name in sorted(names):
            needs = self.quantities[name].needs
            if callable(needs):
                lacking.update(dict.fromkeys(needs(self)))
            elif self._is_unknown(name):
                lacking.update(dict.fromkeys(need for need in needs or (name,) if self._is_unknown(need)))
        framework = framework_of(self.context.runtime)
        owners = {name: self.quantities[name].framework for name in lacking if name in self.quantities}
        return tuple(name for name in lacking if owners.get(name) in (None, framework)) or tuple(lacking)

    def _is_unknown(self, name: str) -> bool:
        """Whether nobody gave it; what is no quantity, such as a predicted time, is only named where it is lacking."""
        if name not in self.quantities:
            return True
        first, *rest = name.split(".")
        value = self[first]
        if rest and first == "arriving" and value is UNKNOWN:  # nothing arrives, so that nothing is lacking
            return False
        for attribute in rest:
            value = getattr(value, attribute)
        return value is UNKNOWN
