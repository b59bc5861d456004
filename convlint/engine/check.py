"""One network checked: facts -> flaws -> price -> severity -> join -> findings, for each target.

Every layer is estimated, every rule evaluated on its facts, and the specific silences the general; what may be said
of many layers at once is joined, by the severity that each one's price leaves it where the rule joins infos alone;
then one batch is settled for the network, and what is left is weighed, priced, and said.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

from msgspec import Struct
from msgspec.structs import replace

from convlint.engine.evaluate import Evaluation, Evaluator, layer_identity
from convlint.engine.fixes import fix_of, is_refuted
from convlint.engine.hits import Flaw, Hit
from convlint.engine.join import joined
from convlint.engine.pricing import Price, Pricer
from convlint.engine.results import NetworkResult
from convlint.engine.severity import stated
from convlint.estimate import LayerEstimate, estimate_layer
from convlint.facts.layer import LayerFacts
from convlint.facts.target import TargetFacts, framework_picks_layout
from convlint.gpus.gpu import Gpu
from convlint.model.layer import ConvLayer, Mode
from convlint.model.location import Location
from convlint.model.network import Network
from convlint.report import Finding, Fix, LayerReport, Skipped
from convlint.rulebook.book import Rulebook
from convlint.rulebook.rule import Rule


class Target(Struct, frozen=True, kw_only=True):
    """A GPU under the name that the user gave it."""

    label: str
    gpu: Gpu


def check_network(network: Network, rulebook: Rulebook, targets: Sequence[Target], mode: Mode) -> NetworkResult:
    """All rules on all layers for each target. Raises RuleError where a rule divides by zero."""
    check = _NetworkCheck(network, rulebook, mode, several=len(targets) > 1)
    for number, target in enumerate(targets):
        check.run(target, first=number == 0)
    labels = tuple(target.label for target in targets)
    return NetworkResult(
        path=network.path,
        labels=labels,
        mode=mode,
        layers=tuple(check.layer_reports(labels)),
        findings=tuple(check.findings),
        skipped=tuple({(skip.code, skip.layer): skip for skip in check.skipped}.values()),
        time_us=check.time_us,
        attainable_us=check.attainable_us,
        losses=check.losses,
        source_lines=network.source_lines,
    )


class _NetworkCheck:
    def __init__(self, network: Network, rulebook: Rulebook, mode: Mode, *, several: bool) -> None:
        self.network, self.rulebook, self.mode, self.several = network, rulebook, mode, several
        self.findings: list[Finding] = []
        self.skipped: list[Skipped] = []
        self.estimates: dict[str, tuple[LayerEstimate | None, ...]] = {}
        self.time_us: float | None = None
        self.attainable_us: float | None = None
        self.losses: dict[str, tuple[tuple[int, float], ...]] = {}
        self.edges = {edge.consumer: edge for edge in network.edges}
        self.ordinals: dict[tuple[str, str | None, str | None], int] = {}
        picks = framework_picks_layout(network.runtime)
        # What the framework lays out itself is estimated so, whatever layout the user's tensors have.
        self.running = tuple(replace(layer, layout="auto") if picks else layer for layer in network.layers)

    def run(self, target: Target, *, first: bool) -> None:
        """Checks the network on one target; rules that no GPU changes are checked on the first alone."""
        network = self.network
        facts = TargetFacts(target.label, target.gpu, network.runtime, self.mode)
        estimates = tuple(estimate_layer(layer, target.gpu, network.runtime, self.mode) for layer in self.running)
        self.estimates[target.label] = estimates
        facts.add_network(network.layers, estimates)
        pricer = Pricer(self.running, estimates, facts)
        if first and all(estimates) and estimates:
            self.time_us = sum(estimate.time_us for estimate in estimates if estimate)
            self.attainable_us = sum(estimate.attainable_us for estimate in estimates if estimate)
        rules = [rule for rule in self.rulebook.of_networks if first or rule.needs_gpu]
        hits, applicable = self._of_layers([rule for rule in rules if rule.scope != "network"], facts, estimates)
        # Where only infos are joined, each is weighed alone; what all layers share is weighed as one, once joined.
        hits = [pricer.weighed(hit) if hit.rule.join and hit.rule.join.share == "info" else hit for hit in hits]
        hits = joined(hits, applicable) + self._of_network([rule for rule in rules if rule.scope == "network"], facts)
        hits = [pricer.weighed(pricer.batches.settled(hit)) for hit in hits]
        for hit in hits:
            price = pricer.price(hit)
            fix = fix_of(hit, price, pricer)
            if not is_refuted(hit, fix):
                self.findings.append(self._finding(hit, price, fix, target))

    def _of_network(self, rules: Sequence[Rule], facts: TargetFacts) -> list[Hit]:
        """What the rules on whole networks find."""
        if not self.network.layers:
            return []
        found = Evaluator(rules).evaluate(LayerFacts(facts, ConvLayer(name=""), None, (), None), connected=False)
        self._skip(found, None)
        return [self._hit(flaw, None) for flaw in found.flaws]

    def _of_layers(
        self, rules: Sequence[Rule], facts: TargetFacts, estimates: Sequence[LayerEstimate | None]
    ) -> tuple[list[Hit], dict[str, int]]:
        """(what the rules on layers find, how many layers each applies to); equal layers are evaluated once."""
        evaluator = Evaluator(rules)
        layers = self.network.layers
        hits: list[Hit] = []
        applicable: dict[str, int] = {}
        known: dict[object, Evaluation] = {}
        for index, layer in enumerate(layers):
            edge = self.edges.get(index)
            key = None if edge is not None or evaluator.reads_names else layer_identity(layer)
            found = known.get(key) if key is not None else None
            if found is None:
                producers = tuple(layers[i] for i in edge.producers) if edge else ()
                values = LayerFacts(facts, layer, edge, producers, estimates[index])
                found = evaluator.evaluate(values, connected=edge is not None)
                if key is not None:
                    known[key] = found
            self._skip(found, layer.name)
            for code in found.applicable:
                applicable[code] = applicable.get(code, 0) + 1
            hits += [self._hit(flaw, index) for flaw in found.flaws]
        return hits, applicable

    def _skip(self, found: Evaluation, layer: str | None) -> None:
        path = self.network.path
        self.skipped += [Skipped(code=code, layer=layer, path=path, needs=needs) for code, needs in found.skipped]

    def _hit(self, flaw: Flaw, index: int | None) -> Hit:
        layer = None if index is None else self.network.layers[index]
        return Hit(
            flaw=flaw,
            indices=() if index is None else (index,),
            names=() if layer is None else (layer.name,),
            location=self._location(flaw.places, layer),
            message=flaw.message,
            sets=(flaw.set,),
            other=flaw.other,
            severity=stated(flaw.case),
        )

    def _location(self, places: Sequence[str], layer: ConvLayer | None) -> Location:
        """Where the value that breaks the rule was written: in the layer, or among the network's settings."""
        network = self.network
        if layer is not None:
            own = [name for name in places if name in layer.spans]
            if own or not any(name.startswith("runtime") or name in ("target", "mode") for name in places):
                return layer.locate(*own)
        for name in places:
            span = network.runtime.spans.get(name.removeprefix("runtime.")) or network.spans.get(name)
            if span is not None:
                return Location(path=network.path, line=span[0], column=span[1], end_line=span[2], end_column=span[3])
        return Location(path=network.path) if layer is None else layer.locate()

    def _finding(self, hit: Hit, price: Price, fix: Fix | None, target: Target) -> Finding:
        rule = hit.rule
        layer = hit.names[0] if len(hit.names) == 1 else None
        gpu = target.label if rule.needs_gpu else None
        if gpu is None and fix is not None and self.several:  # what it changes here is not what it changes elsewhere
            fix = replace(fix, time_change_us=None)
        key = (rule.info.code, layer, gpu)
        ordinal = self.ordinals[key] = self.ordinals.get(key, 0) + 1
        identity = "\0".join((rule.info.code, hit.location.path, layer or "", gpu or "", str(ordinal)))
        fingerprint = blake2b(identity.encode("utf-8", "replace"), digest_size=8).hexdigest()
        if price.by_layer:
            self.losses[fingerprint] = price.by_layer
        return Finding(
            rule=rule.info,
            severity=hit.severity,
            message=hit.message,
            location=hit.location,
            layer=layer,
            layers=hit.names if len(hit.names) > 1 else (),
            gpu=gpu,
            lost_us=price.lost_us,
            lost_percent=price.lost_percent,
            fix=fix,
            fingerprint=fingerprint,
        )

    def layer_reports(self, labels: Sequence[str]) -> list[LayerReport]:
        """Each layer with its estimate on every target."""
        return [
            LayerReport(layer=layer, estimates={label: self.estimates[label][index] for label in labels})
            for index, layer in enumerate(self.network.layers)
        ]
