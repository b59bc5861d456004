"""What rules advise to set for a whole network: its dtype, its layout, and settings of its runtime."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from convlint.engine.evaluate import Evaluator
from convlint.engine.hits import Flaw
from convlint.estimate import LayerEstimate
from convlint.facts.layer import LayerFacts
from convlint.facts.target import TargetFacts
from convlint.model.layer import ConvLayer
from convlint.model.network import Network
from convlint.report import Scalar
from convlint.rulebook.rule import Rule

_OF_LAYERS = ("dtype", "layout", "copies_input")


class Advice(NamedTuple):
    """One field of a layer, or one `runtime.` setting, and the value that a rule would give it."""

    name: str
    value: Scalar
    layer: int | None  # None: the network's
    describe: str
    safety: Literal["safe", "unsafe"]


class Adviser:
    """The rules of a rulebook that set nothing but what holds for a whole network."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        rules = list(rules)
        setting = [rule for rule in rules if any(map(_sets_only_settings, _fixes(rule)))]
        silencing = {code for rule in setting for code in rule.yields_to}
        heard = [rule for rule in rules if rule in setting or rule.info.code in silencing]
        self._of_layers = Evaluator([rule for rule in heard if rule.scope != "network"])
        self._of_networks = Evaluator([rule for rule in heard if rule.scope == "network"])

    def advice(
        self, network: Network, estimates: Sequence[LayerEstimate | None], facts: TargetFacts
    ) -> Iterator[Advice]:
        """What the rules say of the network as it stands, layer by layer. `facts` know the network."""
        edges = {edge.consumer: edge for edge in network.edges}
        for index, layer in enumerate(network.layers):
            edge = edges.get(index)
            producers = tuple(network.layers[one] for one in edge.producers) if edge else ()
            values = LayerFacts(facts, layer, edge, producers, estimates[index])
            for flaw in self._of_layers.evaluate(values, connected=edge is not None, exists=False).flaws:
                yield from _said(flaw, index)
        values = LayerFacts(facts, ConvLayer(name=""), None, (), None)
        for flaw in self._of_networks.evaluate(values, connected=False, exists=False).flaws:
            yield from _said(flaw, None)


def _fixes(rule: Rule) -> Iterator[set[str]]:
    return ({name for name, _ in case.fix.set} for case in rule.cases if case.fix is not None)


def _sets_only_settings(names: Iterable[str]) -> bool:
    names = list(names)
    return bool(names) and all(name in _OF_LAYERS or name.startswith("runtime.") for name in names)


def _said(flaw: Flaw, index: int | None) -> Iterator[Advice]:
    fix = flaw.case.fix
    if fix is None:
        return
    for changes, describe in ((flaw.set, flaw.describe), (flaw.other, "")):
        if _sets_only_settings(changes):
            for name, value in changes.items():
                yield Advice(name, value, index, describe or _in_words({name: value}), fix.safety)


def _in_words(changes: Mapping[str, Scalar]) -> str:
    return ", ".join(f"{name.removeprefix('runtime.')}={value}" for name, value in changes.items())
