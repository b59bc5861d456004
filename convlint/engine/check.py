"""One network checked: facts -> flaws -> price -> severity -> join -> findings, for each target.

Every layer is estimated, every rule evaluated on its facts, and the specific silences the general. What the user
silenced leaves here. The flaws of each layer are then priced together, each gets its severity in the light of all of
them, and what may be said of many layers at once is joined.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial

from msgspec.structs import replace

from convlint.engine.batches import Batches
from convlint.engine.coupling import Coupling, Spokesmen
from convlint.engine.evaluate import Evaluation, Evaluator
from convlint.engine.findings import Identities, finding_of, home_of, is_of_batch, location_of
from convlint.engine.fixes import fix_of, is_refuted
from convlint.engine.hits import Flaw, Hit
from convlint.engine.join import joined
from convlint.engine.joint import settled_jointly
from convlint.engine.networks import as_laid_out, estimated, layer_reports, network_report
from convlint.engine.play import played, promised
from convlint.engine.pricing import Pricer
from convlint.engine.results import NetworkResult
from convlint.engine.severity import stated
from convlint.engine.target import Silences as Silences
from convlint.engine.target import Target as Target
from convlint.engine.weigh import weighed
from convlint.estimate import LayerEstimate
from convlint.facts.layer import LayerFacts
from convlint.facts.target import TargetFacts
from convlint.model.layer import ConvLayer, Mode, layer_identity
from convlint.model.network import Network
from convlint.report import Finding, Fix, Identity, LayerTimes, NetworkReport, Skipped
from convlint.rulebook.book import Rulebook
from convlint.rulebook.rule import Rule


def check_network(
    network: Network,
    rulebook: Rulebook,
    targets: Sequence[Target],
    mode: Mode,
    *,
    codes: Collection[str] | None = None,
    silences: Silences | None = None,
    known: Silences | None = None,
) -> NetworkResult:
    """All rules on all layers for each target. Raises RuleError where a rule divides by zero.

    Of what they find, rules not among `codes` and findings that `silences` takes are not in force: neither said, nor
    part of what the advice saves. What is `known` is priced and weighed with the others, so that new findings are no
    less grave beside it; but it is not said, and what it saves is no longer promised.
    """
    check = _NetworkCheck(network, rulebook, mode, codes, silences, known, several=len(targets) > 1)
    for number, target in enumerate(targets):
        check.run(target, first=number == 0)
    skipped = {(skip.code, skip.layer): skip for skip in check.skipped}.values()
    return NetworkResult(
        path=network.path,
        labels=tuple(target.label for target in targets),
        mode=mode,
        layers=layer_reports(
            network, mode, {target.label: target.gpu for target in targets}, check.estimates, check.times
        ),
        findings=tuple(check.findings),
        skipped=tuple(skip for skip in skipped if codes is None or skip.code in codes),
        networks=tuple(check.networks),
        source_lines=network.source_lines,
    )


class _NetworkCheck:
    def __init__(
        self, network: Network, rulebook: Rulebook, mode: Mode, codes: Collection[str] | None,
        silences: Silences | None, known: Silences | None, *, several: bool,
    ) -> None:  # fmt: skip
        self.network, self.rulebook, self.mode, self.several = network, rulebook, mode, several
        self.codes, self.silences, self.known = codes, silences, known
        self.findings: list[Finding] = []
        self.skipped: list[Skipped] = []
        self.estimates: dict[str, tuple[LayerEstimate | None, ...]] = {}
        self.times: dict[str, list[LayerTimes | None]] = {}
        self.networks: list[NetworkReport] = []
        self.edges = {edge.consumer: edge for edge in network.edges}
        self.identities = Identities()
        self.own: dict[tuple[int, tuple[str, str]], Identity] = {}  # by layer, rule and side, on the target at hand
        self.coupling = Coupling(network)
        self.spokesmen = Spokesmen()  # on the target at hand
        self.running = as_laid_out(network)

    def run(self, target: Target, *, first: bool) -> None:
        """Checks the network on one target; rules that no GPU changes are checked on the first alone."""
        network = self.network
        facts = TargetFacts(target.label, target.gpu, network.runtime, self.mode, mode_stated=bool(network.mode))
        on_host = estimated(network, self.running, target.gpu, self.mode)
        estimates = on_host.estimates
        held = facts.add_network(network.layers, network.edges, estimates, self.running, on_host)
        rules = [rule for rule in self.rulebook.of_networks if first or rule.needs_gpu]
        found, applicable = self._of_layers([rule for rule in rules if rule.scope != "network"], facts, estimates)
        found += self._of_network([rule for rule in rules if rule.scope == "network"], facts)
        hits = []
        self.own = {(hit.indices[0], hit.key): hit.identities[0] for hit in found if hit.indices}
        self.spokesmen = Spokesmen()
        for hit in found:
            if self._in_force(hit, facts):
                hits.append(hit)
            elif hit.indices:  # what all layers share, all that are left share
                applicable[hit.rule.info.code] -= 1
        of_networks, apart = self.rulebook.of_networks, (self.coupling.split, self.coupling.alike)
        pricer = Pricer(network.layers, self.running, estimates, facts, of_networks, self.codes, on_host, *apart)
        later, light = partial(self._later, facts=facts), partial(self._came_to_light, facts=facts)
        played_alone = played(hits, len(network.layers), pricer, later, light)
        hits, stakes, priced = settled_jointly(played_alone, self.coupling, pricer)
        batches = Batches(self.running, estimates, pricer.at_batch, held.fits, waits=on_host.is_bound)
        hits = new = self._new(batches.settled(weighed(hits, stakes, priced, pricer)), applicable, facts)
        hits = batches.one_warning(joined(hits, applicable))
        for hit in hits:
            fix = fix_of(hit, pricer, batches)
            if not is_refuted(hit, fix):
                self.findings.append(self._finding(hit, fix, facts))
        self.networks.append(network_report(network, target.label, target.gpu, self.mode, held, on_host))
        self.estimates[target.label] = estimates
        self.times[target.label] = promised(priced, new)

    def _of_network(self, rules: Sequence[Rule], facts: TargetFacts) -> list[Hit]:
        """What the rules on whole networks find."""
        if not self.network.layers:
            return []
        found = Evaluator(rules).evaluate(LayerFacts(facts, ConvLayer(name=""), None, (), None), connected=False)
        self._skip(found, None)
        return [self._hit(flaw, None, facts) for flaw in found.flaws]

    def _of_layers(
        self, rules: Sequence[Rule], facts: TargetFacts, estimates: Sequence[LayerEstimate | None]
    ) -> tuple[list[Hit], dict[str, int]]:
        """(what the rules on layers find, how many layers each applies to); equal layers are evaluated once."""
        evaluator = Evaluator(rules)
        hits: list[Hit] = []
        applicable: dict[str, int] = {}
        known: dict[object, Evaluation] = {}
        for index, layer in enumerate(self.network.layers):
            edge = self.edges.get(index)
            key = None if edge is not None or evaluator.reads_names else layer_identity(layer)
            found = known.get(key) if key is not None else None
            if found is None:
                found = evaluator.evaluate(self._facts(index, facts, estimates[index]), connected=edge is not None)
                if key is not None:
                    known[key] = found
            self._skip(found, layer.name)
            for code in found.applicable:
                applicable[code] = applicable.get(code, 0) + 1
            values = partial(self._facts, index, facts, estimates[index])
            sides = (side for flaw in found.flaws for side in self.coupling.split(index, flaw, values))
            hits += [self._hit(flaw, index, facts) for flaw in sides]
        return hits, applicable

    def _facts(self, index: int, facts: TargetFacts, estimate: LayerEstimate | None) -> LayerFacts:
        """What rules can ask of one layer."""
        layers, edge = self.network.layers, self.edges.get(index)
        producers = tuple(layers[i] for i in edge.producers) if edge else ()
        return LayerFacts(facts, layers[index], edge, producers, estimate)

    def _new(self, hits: list[Hit], applicable: dict[str, int], facts: TargetFacts) -> list[Hit]:
        """Those that are not known; what all layers share, all that are left share."""
        known = self.known
        if known is None:
            return hits
        new = []
        for hit in hits:
            if not known(finding_of(hit, _gpu(hit.rule, facts), hit.identities[0])):
                new.append(hit)
            elif hit.indices and not hit.came_to_light:
                applicable[hit.rule.info.code] -= 1
        return new

    def _came_to_light(self, flaw: Flaw, index: int, idle: Sequence[Hit], facts: TargetFacts) -> Hit:
        """The hit of a flaw that stands once others are mended; it goes by the name of one that gives way to it."""
        hit = self._hit(self.coupling.at_home(flaw, index), index, facts, keep=not idle)
        return hit._replace(identities=idle[0].identities if idle else hit.identities, came_to_light=True)

    def _later(self, index: int, facts: TargetFacts) -> Callable[[Flaw], bool] | None:
        """Whether a flaw that comes to light in this layer is not silenced; None where nothing is."""
        if self.silences is None:
            return None

        def wanted(flaw: Flaw) -> bool:
            hit = self._hit(flaw, index, facts, keep=False)
            own = self.own.get((index, flaw.key))  # what its rule finds now: silenced with it
            return self._in_force(hit if own is None else hit._replace(identities=(own,)), facts)

        return wanted

    def _in_force(self, hit: Hit, facts: TargetFacts) -> bool:
        """Whether the user wants to hear of it."""
        if self.codes is not None and hit.rule.info.code not in self.codes:
            return False
        silences = self.silences
        if silences is None:
            return True
        return self.spokesmen.in_force(
            hit, lambda: not silences(finding_of(hit, _gpu(hit.rule, facts), hit.identities[0]))
        )

    def _skip(self, found: Evaluation, layer: str | None) -> None:
        path = self.network.path
        self.skipped += [Skipped(code=code, layer=layer, path=path, needs=needs) for code, needs in found.skipped]

    def _hit(self, flaw: Flaw, index: int | None, facts: TargetFacts, *, keep: bool = True) -> Hit:
        layer = None if index is None else self.network.layers[index]
        name = None if layer is None else layer.name
        location = location_of(flaw.places, layer, self.network)
        gpu = _gpu(flaw.rule, facts)
        return Hit(
            flaw=flaw,
            indices=() if index is None else (index,),
            names=() if name is None else (name,),
            location=location,
            message=flaw.message,
            sets=(flaw.set,),
            other=flaw.other,
            severity=stated(flaw, layer),
            identities=(self.identities.next(flaw.rule.info.code, home_of(location), name, gpu, keep=keep),),
        )

    def _finding(self, hit: Hit, fix: Fix | None, facts: TargetFacts) -> Finding:
        gpu = _gpu(hit.rule, facts)
        if gpu is None and fix is not None and self.several:  # what it changes here is not what it changes elsewhere
            fix = replace(fix, time_change_us=None)
        identity = hit.identities[0]
        if (len(hit.identities) > 1 and not hit.follows) or is_of_batch(hit):
            identity = self.identities.next(hit.rule.info.code, home_of(hit.location), None, gpu)
        return finding_of(hit, gpu, identity, fix, facts.network_us, said=True)


def _gpu(rule: Rule, facts: TargetFacts) -> str | None:
    return facts.label if rule.needs_gpu else None
