"""The facts of one layer, as a rule asks for them; the table of all quantities."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from operator import attrgetter
from typing import Any, ClassVar

from msgspec.structs import replace

from convlint.facts.predicted import (
    PASS_TABLES,
    PREDICTED,
    TILE_SIDES,
    full_waves,
    lacking_prediction,
    of_pass,
    worst_tiles,
    worst_waves,
)
from convlint.facts.quantity import UNKNOWN, Quantity, Table, UnknownValue
from convlint.facts.sizes import ARRIVING, DTYPE, FIELDS, LACKING, NAMES, PRINTED, SHAPES, TAPS, arriving, values_of
from convlint.facts.target import TARGET, VIEWS, TargetFacts
from convlint.model.estimates import LayerEstimate
from convlint.model.layer import PASSES, ConvLayer, as_product
from convlint.model.network import Edge
from convlint.model.runtime import framework_of

# read as they stand, of one layer
OF_LAYERS: Table = {**FIELDS, **SHAPES, **TAPS, **PRINTED, **TARGET, **LACKING, **PREDICTED, **TILE_SIDES}


def dotted(first: str, table: Table) -> dict[str, Quantity]:
    """The table with that name and a dot before each of its own."""
    return {f"{first}.{name}": quantity for name, quantity in table.items()}


def _of_pass(which: str, table: Table) -> dict[str, Quantity]:
    """With the pass in every meaning, but for that of the worst one's name."""
    return {
        f"{which}.{name}": replace(
            row,
            meaning=row.meaning if name == "pass_name" else f"{which}: {row.meaning}",
            needs=lacking_prediction,
            gpu=True,
        )
        for name, row in table.items()
    }


QUANTITIES: Table = {
    **OF_LAYERS,
    **dotted("dtype", DTYPE),
    **dotted("arriving", ARRIVING),
    **{name: row for first, table in VIEWS.items() for name, row in dotted(first, table).items()},
    **{name: row for which, table in PASS_TABLES.items() for name, row in _of_pass(which, table).items()},
}
# names whose values tell layers of equal fields apart
OWN_NAMES = frozenset(name for name, quantity in QUANTITIES.items() if quantity.own)


# What stands before a dot in the vocabulary, and what several quantities share.
_OBJECTS: Mapping[str, Callable[[LayerFacts], Any]] = {
    **{which: partial(of_pass, which=which) for which in PASSES},
    "tiles_worst": worst_tiles,
    "waves_worst": worst_waves,
    "full waves": full_waves,  # spelled as no rule can
    "arriving": arriving,
}
_FUNCTIONS = {**{name: quantity.of for name, quantity in OF_LAYERS.items()}, **_OBJECTS}
# what these of a layer's values decide on a target
_kind_of = attrgetter("dtype", "dims", "operator")
_OF_KIND = (*TARGET, *LACKING)


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
        if layer.unfolded:  # rules judge what runs
            layer = as_product(layer)
            edge = None if edge is None else replace(edge, C=layer.C, D=layer.D, H=layer.H, W=layer.W)
        self.context, self.layer, self._estimate = context, layer, estimate
        self.edge, self.producers = edge, producers
        kind = _kind_of(layer)
        if kind not in context.of_kinds:
            context.of_kinds[kind] = {name: self[name] for name in _OF_KIND}
        self.update(context.of_kinds[kind])
        self.update(zip(NAMES, [UNKNOWN if value is None else value for value in values_of(layer)], strict=True))

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
