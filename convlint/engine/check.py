"""One network checked: facts -> flaws -> price -> severity -> join -> findings, for each target.

Every layer is estimated and every rule evaluated on its facts; specific rules silence general ones. Hits that the user
silenced are left out. The others are priced together, get their severities, and are joined where many layers share a
flaw.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import count

from msgspec.structs import replace

from convlint.engine.findings import (
    Identities,
    NetworkResult,
    finding_of,
    home_of,
    is_of_batch,
    joined,
    layer_reports,
    location_of,
    network_report,
    sum_of,
)
from convlint.engine.findings import Silences as Silences
from convlint.engine.findings import Target as Target
from convlint.engine.fixes import Batches, alternatives_of, fix_of, is_refuted, with_valid_fixes
from convlint.engine.hits import (
    STEP_SHARE,
    Evaluation,
    Evaluator,
    Flaw,
    Hit,
    graded,
    priced_by_step,
    saving_at_most,
    stated,
)
from convlint.engine.joint import FoundSteps, Joint, Promise
from convlint.engine.levers import (
    KINDS,
    NO_LIMITS,
    Advice,
    Coupling,
    Kind,
    Limits,
    Spokesmen,
    Validity,
    kind_of,
    may_play,
    narrowing,
)
from convlint.engine.optimum import Search
from convlint.engine.timing import NetworkTiming, Pricer, as_laid_out, at_batch, estimated, hosted_on, weighed
from convlint.estimate.host import Hosted
from convlint.facts.layer import LayerFacts
from convlint.facts.network import MemoryFacts
from convlint.facts.target import TargetFacts
from convlint.files.languages import duration
from convlint.gpus.gpu import Gpu
from convlint.model.estimates import LayerEstimate
from convlint.model.layer import OF_STEPS, Allowance, ConvLayer, Loss, Mode, layer_identity
from convlint.model.network import Network
from convlint.model.report import Finding, Fix, Identity, LayerTimes, NetworkReport, Severity, SkippedRule
from convlint.model.runtime import INSTALLED, VERSIONS
from convlint.model.text import Text
from convlint.rulebook.book import Rulebook
from convlint.rulebook.rule import Rule

OnPromise = Callable[[str, Promise], None]


def check_network(
    network: Network,
    rulebook: Rulebook,
    targets: Sequence[Target],
    mode: Mode,
    *,
    codes: Collection[str] | None = None,
    silences: Silences | None = None,
    known: Silences | None = None,
    limits: Limits = NO_LIMITS,
    allow: Collection[Allowance] = (),
    on_promise: OnPromise | None = None,
    details: bool = True,
) -> NetworkResult:
    """Checks all layers with all rules, for each target. Raises RuleError where a rule divides by zero.

    Rules not among `codes`, findings that `silences` accepts, and those that are `known` are left out, of the report
    and of what the advice saves. `limits` say what advice must not change; `allow` names more changes that it may make.
    `on_promise` receives the `Promise` of each target. Without `details`, infos on the batch name no other batches, and
    the largest batch is not computed.
    """
    check = _NetworkCheck(
        network, rulebook, mode, codes, silences, known, limits, allow, on_promise, several_targets=len(targets) > 1,
        details=details,
    )  # fmt: skip
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
        weights_only=network.weights_only,
        source_lines=network.source_lines,
    )


_LEAST_TURNED = 0.01  # of what was measured: transposes that take less are not named


class _NetworkCheck:
    def __init__(
        self, network: Network, rulebook: Rulebook, mode: Mode, codes: Collection[str] | None,
        silences: Silences | None, known: Silences | None, limits: Limits, allow: Collection[Allowance],
        on_promise: OnPromise | None, *, several_targets: bool, details: bool,
    ) -> None:  # fmt: skip
        self.network, self.rulebook, self.mode, self.several_targets = network, rulebook, mode, several_targets
        self.codes, self.silences, self.known, self.limits, self.allow = codes, silences, known, limits, allow
        self.on_promise, self.details = on_promise, details
        self.findings: list[Finding] = []
        self.skipped: list[SkippedRule] = []
        self.estimates: dict[str, tuple[LayerEstimate | None, ...]] = {}
        self.times: dict[str, list[LayerTimes | None]] = {}
        self.networks: list[NetworkReport] = []
        self.edges = {edge.consumer: edge for edge in network.edges}
        self.connected = {index for edge in network.edges for index in (edge.consumer, *edge.producers)}
        self.identities = Identities()
        self.numbers = count()  # of hits
        # By layer (None: the network), rule and side, on the target at hand.
        self.own: dict[tuple[int | None, tuple[str, str]], Identity] = {}
        self.coupling = Coupling(network)
        self.spokesmen = Spokesmen()  # on the target at hand
        self.stated = network
        self.running = as_laid_out(network, mode)

    def run(self, target: Target, *, first: bool) -> None:
        """Checks the network on one target; rules that no GPU changes are checked on the first alone."""
        facts = TargetFacts(
            target.label, target.gpu, self.stated.runtime, self.mode, mode_stated=bool(self.stated.mode),
            allow=self.allow,
        )  # fmt: skip
        if facts.runtime is not self.network.runtime:
            self.network = replace(self.stated, runtime=facts.runtime)
            self.running = as_laid_out(self.network, self.mode)
        network = self.network
        on_host, memory = self._add_network(facts, network, self.running)
        estimates = on_host.estimates
        rules = [rule for rule in self.rulebook.of_networks if first or rule.needs_gpu]
        all_hits, applicable = self._of_layers([rule for rule in rules if rule.scope != "network"], facts, estimates)
        all_hits += self._of_network([rule for rule in rules if rule.scope == "network"], facts)
        self.own = {(next(iter(hit.indices), None), hit.key): hit.identities[0] for hit in all_hits}
        self.spokesmen = Spokesmen()
        exclusions = _Exclusions()
        in_force = self._in_force_of(all_hits, exclusions, facts)
        hits = self._not_known(in_force, exclusions, facts)
        # "All layers" in a joined message means all that the user still wants to hear of.
        for hit in all_hits:
            if hit.indices and hit.number not in exclusions.in_force:
                applicable[hit.rule.info.code] -= 1

        timing = NetworkTiming(network, target.gpu, self.mode, on_host, self.running)
        if len(hits) < len(in_force):
            self._meet_again(in_force, exclusions, timing, facts, on_host)
        promise = self._promise(hits, exclusions, timing, facts, estimates, on_host)
        if self.on_promise is not None:
            self.on_promise(target.label, promise)
        priced = promise.settled
        pricer = Pricer(timing, estimates)
        batches = Batches(
            self.running,
            estimates,
            lambda index, N: pricer.time_after(index, {"N": N}),
            memory.fits,
            waits=on_host.is_bound,
            pace=on_host.pace,
            step_at=lambda N: self._step_at(N, target.gpu),
            details=self.details,
        )
        hits = batches.settled(weighed(priced.hits, priced.stakes, priced.bases, pricer))
        validity = Validity(network.layers, self.running, estimates, facts, self.rulebook.of_networks, self.codes)
        hits = self._worth_saying(with_valid_fixes(hits, pricer, validity), applicable)
        hits = graded(batches.said_once(joined(hits, applicable)), priced.deal.time_us)
        beside_us = _by_number(promise.beside_us(), promise.wider_us(), hits)
        hits = priced_by_step(hits, on_host.lost_step_us, on_host.step_us, beside_us, on_host.most_us)
        # As an info, one of these says that the step loses less to it now.
        hits = [hit for hit in hits if hit.key not in {later.key for later in promise.later}] + promise.later
        best, advised = promise.optimum, {hit.rule.loss for hit in hits if hit.severity == "warning"}
        step_us = promise.shortest_us(best.choices, best.levers, advised.__contains__)
        if on_host.step_us is not None and step_us is not None:
            hits = saving_at_most(hits, on_host.step_us - step_us)
        for hit in hits:
            fix = fix_of(hit, pricer, batches, priced.deal.time_us, self.allow)
            if not is_refuted(hit, fix):
                alternatives = alternatives_of(hit, pricer, batches)
                self.findings.append(replace(self._finding(hit, fix, facts), alternatives=alternatives))
        self.estimates[target.label] = estimates
        self.times[target.label] = times = promise.times(on_host)
        total = sum_of(times)
        report = network_report(
            network, target.label, target.gpu, self.mode, memory, on_host, total, step_us, details=self.details
        )
        self.networks.append(replace(report, after_waits=promise.leaves_waiting(advised.__contains__)))

    def _add_network(
        self, facts: TargetFacts, network: Network, running: Sequence[ConvLayer]
    ) -> tuple[Hosted, MemoryFacts]:
        """Estimates a network, `running` as the framework lays it out, and adds it to the facts of its target."""
        on_host = estimated(network, running, facts.gpu, self.mode)
        memory = facts.add_network(network.layers, network.edges, on_host.estimates, running, on_host,
                                   network.operations, network.training_keeps)  # fmt: skip
        return on_host, memory

    def _step_at(self, N: int, gpu: Gpu) -> float | None:
        """The whole step with batches of `N`, in us; None where it is not known."""
        changed = at_batch(self.network, N)
        return None if changed is None else hosted_on(changed, gpu, self.mode).step_us

    def _meet_again(
        self, hits: list[Hit], exclusions: _Exclusions, timing: NetworkTiming, facts: TargetFacts, on_host: Hosted
    ) -> None:
        """Passes the baseline the hits that show once its own are mended, so that it does not count them as gone."""
        known, self.known = self.known, None
        assert known is not None  # it has taken hits out
        identities, self.identities = self.identities, self.identities.copied()
        again = self._promise(hits, exclusions, timing, facts, (), on_host, anew=True)
        self.known, self.identities = known, identities
        for hit in again.settled.hits:
            if hit.emerged:
                for index, identity in zip(hit.indices, hit.identities, strict=True):
                    layer_hit = replace(hit, indices=(index,), names=(self.network.layers[index].name,), follows="")
                    known(finding_of(layer_hit, _gpu(hit.rule, facts), identity))
        for hit in again.later:
            known(finding_of(hit, _gpu(hit.rule, facts), hit.identities[0]))

    def _promise(
        self, hits: list[Hit], exclusions: _Exclusions, timing: NetworkTiming, facts: TargetFacts,
        estimates: Sequence[LayerEstimate | None], on_host: Hosted, *, anew: bool = False,
    ) -> Promise:  # fmt: skip
        """Finds B, the fastest network by advice, and what each hit earns in it; `anew` ignores the baseline."""
        layers = self.network.layers
        plays = (may_play, narrowing) if "narrower" in self.allow else (may_play,)
        playing = {
            hit.number for hit in hits if hit.indices and any(test(hit.flaw, layers[hit.indices[0]]) for test in plays)
        }
        is_wanted = None if self.silences is None and self.known is None else partial(self._is_wanted, facts=facts)
        rules = [rule for rule in self.rulebook.of_networks if self.codes is None or rule.info.code in self.codes]
        advice = Advice(timing, facts, rules, self.coupling, is_wanted, self.limits, self.allow, codes=self.codes)
        advice.out_of_play |= exclusions.silenced if anew else exclusions.groups
        clashes = any(
            hit.number in playing and hit.rule.scope == "edge" and kind_of(hit.flaw.set) == "layout" for hit in hits
        )
        silenced = {
            kind: frozenset(exclusions.kinds.get(kind, set()) | (set() if anew else exclusions.known.get(kind, set())))
            for kind in KINDS
        }
        flaws = [(hit.indices[0], hit.flaw) for hit in hits if hit.number in playing]
        new_hit = partial(self._came_to_light, facts=facts)
        least_us = STEP_SHARE * (on_host.step_us or 0.0)
        shorten = {hit.rule.loss for hit in hits if on_host.lost_step_us.get(hit.rule.loss, 0.0) >= least_us > 0}
        search = Search(timing, advice, silenced, self.limits, clashing_layouts=clashes)
        best = search.best(flaws)
        found = FoundSteps(best, search, advice)
        later = self._later(found, shorten, facts)
        remedies = shorten.union(hit.rule.loss for hit in later)
        if found.dtypes_lengthen(remedies.__contains__):
            silenced["dtype"] = frozenset(range(len(layers)))
            search = Search(timing, advice, silenced, self.limits, clashing_layouts=clashes)
            best = search.best(flaws)
            found = FoundSteps(best, search, advice)
            later = self._later(found, shorten, facts)
        joint = Joint(hits, best, search, advice, self.coupling, playing, new_hit).result()
        return Promise(best, search, advice, found.steps, settled=joint, estimates=estimates, later=later)

    def _later(self, found: FoundSteps, shorten: Collection[Loss], facts: TargetFacts) -> list[Hit]:
        """The hits of rules on the whole step that warn only once the advice found is followed, with their prices.

        `shorten` has what warns now. A host is too slow for a GPU that has less to do, for example.
        """
        best, wanted = found.optimum, set(shorten)
        later: list[Hit] = []
        for loss in reversed(OF_STEPS) if best.choices or best.levers else ():
            before_us, after_us = (
                found.shortest_us(best.choices, best.levers, losses.__contains__)
                for losses in (wanted, {*wanted, loss})
            )
            if before_us is None or after_us is None or before_us - after_us < STEP_SHARE * before_us:
                continue
            hit = self._once_done(loss, found, facts, compiled="compile" in wanted)
            if hit is not None:
                own = self.own.get((None, hit.key), hit.identities[0])
                price = replace(hit.price, lost_step_us=before_us - after_us)
                hit = replace(hit, identities=(own,), severity="warning", emerged=True, price=price)
                known = self.known is not None and self.known(finding_of(hit, _gpu(hit.rule, facts), own))
                if not known and self._in_force(hit, facts):
                    wanted.add(loss)
                    later.append(hit)
        return later

    def _once_done(self, loss: Loss, found: FoundSteps, facts: TargetFacts, *, compiled: bool) -> Hit | None:
        """What a rule with this loss says of the network with the advice found, `compiled` or not."""
        from convlint.engine.steps import Members, changed  # of few networks

        network = changed(self.network, found, Members(found.optimum.choices, found.optimum.levers))
        if compiled:
            network = replace(network, runtime=replace(network.runtime, compile=True))
        then = TargetFacts(
            facts.label, facts.gpu, network.runtime, self.mode, mode_stated=facts.mode_stated, allow=self.allow
        )
        self._add_network(then, network, as_laid_out(network, self.mode))
        for flaw in _evaluated([rule for rule in self.rulebook.of_networks if rule.loss == loss], then).flaws:
            message = Text("with the rest done, {what}", what=flaw.message)
            return self._hit(replace(flaw, message=message, join_message=message), None, then, keep=False)
        return None

    def _in_force_of(self, all_hits: Iterable[Hit], exclusions: _Exclusions, facts: TargetFacts) -> list[Hit]:
        """The hits that are not silenced; the settings and groups of the silenced ones are added to `exclusions`."""
        hits = []
        for hit in all_hits:
            if self._in_force(hit, facts):
                hits.append(hit)
            elif self.codes is None or hit.rule.info.code in self.codes:
                exclusions.silence(hit)  # rules that are not selected do not limit the advice of others
        return hits

    def _not_known(self, hits: list[Hit], exclusions: _Exclusions, facts: TargetFacts) -> list[Hit]:
        """The hits that the baseline does not hold, without those of groups whose width it holds."""
        known = self.known
        if known is not None:
            known_hits = [hit for hit in hits if known(finding_of(hit, _gpu(hit.rule, facts), hit.identities[0]))]
            exclusions.silenced = frozenset(exclusions.groups)
            exclusions.groups |= _held_groups(hits, known_hits)
            # One finding may speak for several flaws of a rule in a layer, and for all on the batch.
            places = {(hit.rule.info.code, index) for hit in known_hits for index in hit.indices}
            batch = any(hit.sets_batch for hit in known_hits)
            held_kinds = {kind_of(hit.flaw.set) for hit in known_hits if hit.flaw.set} - {None}
            gone = {hit.number for hit in known_hits}
            hits = [
                hit
                for hit in hits
                if hit.number not in gone
                and not (hit.sets_batch and batch)
                and (hit.rule.info.code, hit.flaw.group) not in exclusions.groups
                and (hit.rule.info.code, *hit.indices) not in places
            ]
            for kind in KINDS:  # a setting is new of the layers alone at which it is found anew
                if kind in held_kinds:
                    new = {index for hit in hits if kind_of(hit.flaw.set) == kind for index in hit.indices}
                    exclusions.known[kind] = set(range(len(self.network.layers))) - new
        exclusions.in_force = {hit.number for hit in hits}
        return hits

    def _of_network(self, rules: Sequence[Rule], facts: TargetFacts) -> list[Hit]:
        """The hits of the rules on whole networks."""
        if not self.network.layers:
            return []
        verdict = _evaluated(rules, facts)
        self._skip(verdict, None)
        return [self._hit(flaw, None, facts) for flaw in verdict.flaws]

    def _of_layers(
        self, rules: Sequence[Rule], facts: TargetFacts, estimates: Sequence[LayerEstimate | None]
    ) -> tuple[list[Hit], dict[str, int]]:
        """(hits of the rules on layers, how many layers each applies to); equal layers alone are evaluated once."""
        evaluator = Evaluator(rules, batches=self.details)
        hits: list[Hit] = []
        applying = Counter[tuple[str, ...]]()  # most layers have the same
        known: dict[object, Evaluation] = {}
        for index, layer in enumerate(self.network.layers):
            edge = self.edges.get(index)
            # Rules may ask about the neighbours of a connected layer, so that it shares no evaluation.
            key = None if index in self.connected or evaluator.tells_apart else layer_identity(layer)
            verdict = known.get(key) if key is not None else None
            if verdict is None:
                verdict = evaluator.evaluate(self._facts(index, facts, estimates[index]), connected=edge is not None)
                if key is not None:
                    known[key] = verdict
            self._skip(verdict, layer.name)
            applying[verdict.applicable] += 1
            values = partial(self._facts, index, facts, estimates[index])
            sides = (side for flaw in verdict.flaws for side in self.coupling.split(index, flaw, values))
            hits += [self._hit(flaw, index, facts) for flaw in sides]
        applicable = Counter[str]()
        for codes, layers in applying.items():
            applicable.update(dict.fromkeys(codes, layers))
        return hits, applicable

    def _facts(self, index: int, facts: TargetFacts, estimate: LayerEstimate | None) -> LayerFacts:
        """The facts of one layer, with the copies for norms that it runs with."""
        layers, edge = self.network.layers, self.edges.get(index)
        producers = tuple(layers[i] for i in edge.producers) if edge else ()
        layer, copies = layers[index], self.running[index].norm_copies
        layer = replace(layer, norm_copies=copies) if copies else layer
        return LayerFacts(facts, layer, edge, producers, estimate)

    def _worth_saying(self, hits: Iterable[tuple[Hit, bool]], applicable: dict[str, int]) -> list[Hit]:
        """The hits whose flag is set; each of the others lowers the count of layers that its rule applies to."""
        result = []
        for hit, is_said in hits:
            if is_said:
                result.append(hit)
            elif hit.indices and not hit.emerged:
                applicable[hit.rule.info.code] -= 1
        return result

    def _came_to_light(self, flaw: Flaw, index: int, facts: TargetFacts) -> Hit:
        """The hit of a flaw that stands once others are mended; it has the identity of its rule's hit now, if any."""
        own = self.own.get((index, flaw.key))
        hit = self._hit(self.coupling.at_home(flaw, index), index, facts, keep=own is None)
        # What is wrong only after other advice is no error of the network as it is.
        severity: Severity = "warning" if hit.severity == "error" else hit.severity
        return replace(hit, identities=hit.identities if own is None else (own,), emerged=True, severity=severity)

    def _is_wanted(self, index: int, flaw: Flaw, facts: TargetFacts) -> bool:
        """Whether a flaw that comes to light in this layer is neither silenced nor known."""
        hit = self._hit(flaw, index, facts, keep=False)
        own = self.own.get((index, flaw.key))  # what its rule finds now: silenced with it
        hit = hit if own is None else replace(hit, identities=(own,))
        if not self._in_force(hit, facts):
            return False
        return self.known is None or not self.known(finding_of(hit, _gpu(hit.rule, facts), hit.identities[0]))

    def _in_force(self, hit: Hit, facts: TargetFacts) -> bool:
        """Whether its rule is selected and the user has not silenced the hit."""
        if self.codes is not None and hit.rule.info.code not in self.codes:
            return False
        silences = self.silences
        if silences is None:
            return True
        return self.spokesmen.in_force(
            hit, lambda: not silences(finding_of(hit, _gpu(hit.rule, facts), hit.identities[0]))
        )

    def _skip(self, verdict: Evaluation, layer: str | None) -> None:
        path = self.network.path
        self.skipped += [SkippedRule(code=code, layer=layer, path=path, needs=needs) for code, needs in verdict.skipped]

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
            number=next(self.numbers),
            identities=(self.identities.next(flaw.rule.info.code, home_of(location), name, gpu, keep=keep),),
        )

    def _finding(self, hit: Hit, fix: Fix | None, facts: TargetFacts) -> Finding:
        gpu = _gpu(hit.rule, facts)
        if gpu is None and fix is not None and self.several_targets:  # its changes here are not those elsewhere
            fix = replace(fix, time_change_us=None)
        identity = hit.identities[0]
        if (len(hit.identities) > 1 and not hit.follows) or is_of_batch(hit):
            identity = self.identities.next(hit.rule.info.code, home_of(hit.location), None, gpu)
        measured = _measured_words([self.network.layers[index] for index in hit.indices], facts.gpu.id, self.mode)
        if measured and hit.rule.loss not in ("none", "tile", "wave"):  # which speak of sizes
            hit = replace(hit, message=Text("{message}; {taken}", message=hit.message, taken=measured))
        result = finding_of(hit, gpu, identity, fix, facts.network_us, facts.step_us, in_report=True)
        return replace(result, severity="info") if result.severity == "error" and self._only_installed(hit) else result

    def _only_installed(self, hit: Hit) -> bool:
        """Whether the versions at fault are those of this machine, which may not be the one with the GPU."""
        at_fault = [name for name in VERSIONS if f"runtime.{name}" in hit.flaw.places]
        return bool(at_fault) and all(INSTALLED in self.network.origins.get(name, "") for name in at_fault)


def _evaluated(rules: Sequence[Rule], facts: TargetFacts) -> Evaluation:
    """The rules on whole networks, evaluated."""
    return Evaluator(rules).evaluate(LayerFacts(facts, ConvLayer(name=""), None, (), None), connected=False)


def _held_groups(hits: Sequence[Hit], known_hits: Sequence[Hit]) -> set[tuple[str, int]]:
    """The groups of channels, by rule, whose width a baseline holds at a layer that writes them.

    Where no hit is at such a layer, as for the network's input, a layer that reads them decides.
    """

    def of(hits: Iterable[Hit], sides: str) -> set[tuple[str, int]]:
        return {
            (hit.rule.info.code, hit.flaw.group)
            for hit in hits
            if hit.flaw.group is not None and hit.flaw.side in sides
        }

    return of(known_hits, "K") | (of(known_hits, "C") - of(hits, "K"))


class _Exclusions:
    """What the user silenced, by comment or baseline: layers that keep a setting, groups that keep a width.

    `in_force` are the hits that are in force. `silenced` are the groups of comments alone, without those of a baseline.
    """

    def __init__(self) -> None:
        self.kinds: dict[Kind, set[int]] = {}
        self.known: dict[Kind, set[int]] = {}  # the same, because a baseline holds it elsewhere
        self.groups: set[tuple[str, int]] = set()
        self.silenced: frozenset[tuple[str, int]] = frozenset()
        self.in_force: set[int] = set()  # by number

    def silence(self, hit: Hit) -> None:
        """Adds the layers of the setting, and the group, of a silenced hit."""
        kind = kind_of(hit.flaw.set) if hit.flaw.set else None
        if kind is not None:
            self.kinds.setdefault(kind, set()).update(hit.indices)
        if hit.flaw.group is not None:
            self.groups.add((hit.rule.info.code, hit.flaw.group))


def _measured_words(layers: Sequence[ConvLayer], gpu: str, mode: Mode) -> Text | None:
    """`measured 451 us a call, of which 137 us in transposes`; of several layers what a step takes."""
    known = [layer for layer in layers if layer.measured is not None and layer.measured.gpu == gpu]
    if not known or len(known) < len(layers):
        return None
    passes = [
        (timed, layer.calls * timed.times)
        for layer in known
        if layer.measured is not None
        for which, timed in layer.measured.passes
        if which == "fprop" or mode == "training"
    ]
    calls = known[0].calls if len(known) == 1 else 1
    us = sum(timed.us * count for timed, count in passes) / calls
    turned = sum(timed.transpose * count for timed, count in passes) / calls
    per = Text("a call") if len(known) == 1 else Text("a step")
    if turned < _LEAST_TURNED * us:
        return Text("measured {time} {per}", time=duration(us), per=per)
    return Text(
        "measured {time} {per}, of which {turned} in transposes", time=duration(us), per=per, turned=duration(turned)
    )


def _by_number(beside_us: Mapping[Kind, float], wider_us: Mapping[int, float], hits: Sequence[Hit]) -> dict[int, float]:
    """Time that settings save beside convolutions (of widths: cost, negative), by the number of the advising hit."""
    saved_us: dict[int, float] = {}
    for hit in hits:
        kind = kind_of(hit.flaw.set) if hit.price.advised else None
        if kind is not None and kind in beside_us:
            saved_us[hit.number] = beside_us[kind]
        elif kind is None and hit.price.advised:
            wider = [index for index, sets in zip(hit.indices, hit.sets, strict=True) if "K" in sets]
            if added_us := sum(wider_us.get(index, 0.0) for index in wider):
                saved_us[hit.number] = -added_us
    return saved_us


def _gpu(rule: Rule, facts: TargetFacts) -> str | None:
    return facts.label if rule.needs_gpu else None
