"""What flaws cost on one target: each layer's game, what its quantization wastes, and what any fix changes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial

from msgspec import Struct

from convlint.engine.changes import with_fix, with_settings
from convlint.engine.evaluate import Evaluator
from convlint.engine.game import Check, Outcome, settle
from convlint.engine.hits import Flaw
from convlint.engine.players import Changes, Player, key_of
from convlint.engine.severity import MOST_WIDENING, stated
from convlint.estimate import LayerEstimate, estimate_layer, time_us, unquantized_us
from convlint.estimate.host import Hosted
from convlint.facts.layer import LayerFacts
from convlint.facts.target import TargetFacts
from convlint.model.gemm import flops
from convlint.model.layer import ConvLayer, layer_identity
from convlint.model.runtime import Runtime
from convlint.report import LayerTimes, Scalar
from convlint.rulebook.rule import Rule

InForce = Callable[[Flaw], bool]
Split = Callable[[int, Flaw, Callable[[], LayerFacts]], Sequence[Flaw]]  # by sides, of the layer of that number

MOST_TAKEN = 1 / 8  # of the channels
CUT_GAIN = 2.0  # times the work that a fix takes away: what it must save to be more than a smaller network
_CHANNELS = frozenset(("C", "K"))
_MOST_KEPT = 1024  # times of one layer after changes; memory must not grow with the network


class Priced(Struct, frozen=True, kw_only=True):
    """A layer's times now, with the best of its fixes, and in the ideal; and the game that says so."""

    times: LayerTimes
    outcome: Outcome | None  # None where nobody plays


class Pricer:
    """Prices flaws of one network on one target. `running` are the layers as the framework lays them out."""

    def __init__(
        self,
        layers: Sequence[ConvLayer],
        running: Sequence[ConvLayer],
        estimates: Sequence[LayerEstimate | None],
        facts: TargetFacts,
        rules: Iterable[Rule] = (),
        codes: Collection[str] | None = None,
        on_host: Hosted | None = None,
        split: Split | None = None,
        alike: Callable[[int], object] | None = None,
    ) -> None:
        """`codes` are the rules whose advice is in force, None: all; `on_host` has the waits in `estimates`.

        `split` takes a flaw of a layer apart, where its C and its K are not the layer's alone; for layers that are
        `alike` it does so in the same way.
        """
        self.layers, self.running, self.estimates, self.facts = layers, running, estimates, facts
        self._codes, self._on_host, self._split, self._alike = codes, on_host, split, alike
        self._evaluator = Evaluator(_playing(rules))
        self._targets: dict[Runtime, TargetFacts] = {}
        self._games: dict[object, Priced] = {}
        self._after: tuple[int, dict[object, float | None]] = (-1, {})

    def priced(self, index: int, flaws: Sequence[Flaw], in_force: InForce | None = None) -> Priced | None:
        """The game of the flaws of one layer that play; None where its time is not predictable.

        `in_force` says of a flaw that comes to light whether it is not silenced there. Equal layers share their game.
        """
        estimate = self.estimates[index]
        if estimate is None:
            return None
        now_us = estimate.time_us
        if not flaws:
            times = LayerTimes(time_us=now_us, after_us=now_us, ideal_us=estimate.unquantized_us)
            return Priced(times=times, outcome=None)

        key = None
        if in_force is None:
            mended = tuple((flaw.key, key_of(flaw.set)) for flaw in flaws)
            key = layer_identity(self.layers[index]), mended, None if self._alike is None else self._alike(index)
            if key in self._games:
                return self._games[key]

        def again(changes: Changes) -> Check:
            found = self._checked_again(index, changes)
            if in_force is None:
                return found
            return found._replace(flaws=[flaw for flaw in found.flaws if in_force(flaw)])

        players = [Player(flaw, flaw.set) for flaw in flaws]
        outcome = settle(players, now_us, partial(self.time_after, index), again=again, cuts=partial(self._cuts, index))
        times = self.times(index, outcome.changes, outcome.after_us)
        game = Priced(times=times, outcome=outcome)
        if key is not None:
            self._games[key] = game
        return game

    def times(self, index: int, changes: Changes, after_us: float) -> LayerTimes:
        """A layer's times, in us, once `changes` are made, which leave it `after_us`. Its time now is known."""
        estimate = self.estimates[index]
        assert estimate is not None
        ideal_us = estimate.unquantized_us
        if changes:
            runtime = with_settings(self.facts.runtime, changes)
            best = with_fix(self.running[index], changes)
            # Channels that were only padded do no more work than before.
            useful = min(1.0, (flops(self.running[index]) or 1) / (flops(best) or 1))
            unquantized = unquantized_us(best, self.facts.gpu, runtime, self.facts.mode, useful)
            ideal_us = self._waiting(index, unquantized) if unquantized else after_us
        return LayerTimes(time_us=estimate.time_us, after_us=after_us, ideal_us=ideal_us)

    def plays(self, index: int, flaw: Flaw) -> bool:
        """Whether the flaw's fix enters its layer's game: stated as no info, it changes the layer, and has a price.

        Fewer channels are always faster, and many more are another network: such fixes do not. Neither does one of a
        number that others add up to.
        """
        fix = flaw.case.fix
        if fix is None or not fix.priced or flaw.rule.loss == "none" or not flaw.set or "N" in flaw.set:
            return False
        if flaw.composed:
            return False
        if self._codes is not None and flaw.rule.info.code not in self._codes:
            return False
        return stated(flaw, self.layers[index]) != "info" and not is_another_network(flaw, self.layers[index])

    def _cuts(self, index: int, less: Changes, more: Changes) -> bool:
        """Whether what `more` changes beside `less` takes channels away and saves time, for the most part, by that."""
        layer = self.layers[index]
        if not any(
            int(more.get(name, 0)) < int(less.get(name, 0) or getattr(layer, name)) for name in more.keys() & _CHANNELS
        ):
            return False
        work_before, work_after = flops(with_fix(layer, less)), flops(with_fix(layer, more))
        before, after = self.time_after(index, less), self.time_after(index, more)
        if not work_before or work_after is None or before is None or after is None:
            return True
        return 1 - after / before < CUT_GAIN * (1 - work_after / work_before)

    def time_after(self, index: int, changes: Mapping[str, Scalar]) -> float | None:
        """The layer's time after `changes`, in us; None where it is not predictable."""
        if self._after[0] != index or len(self._after[1]) > _MOST_KEPT:
            self._after = index, {}
        known, key = self._after[1], key_of(changes)
        if key not in known:
            known[key] = self._time_after(index, changes)
        return known[key]

    def at_batch(self, index: int, N: int) -> float | None:
        """The layer's time at another batch, in us; None where it is not predictable."""
        return self.time_after(index, {"N": N})

    def _time_after(self, index: int, changes: Mapping[str, Scalar]) -> float | None:
        runtime = with_settings(self.facts.runtime, changes)
        after = time_us(with_fix(self.running[index], changes), self.facts.gpu, runtime, self.facts.mode)
        return after if after is None else self._waiting(index, after)

    def _waiting(self, index: int, gpu_us: float) -> float:
        return gpu_us if self._on_host is None else self._on_host.time_us(index, gpu_us)

    def change_us(self, index: int, changes: Mapping[str, Scalar]) -> float | None:
        """Time after `changes` minus time now, in us."""
        before = self.estimates[index]
        after = self.time_after(index, changes) if before is not None and changes else None
        return None if before is None or after is None else after - before.time_us

    def capacity_us(self, index: int, rule: Rule) -> float | None:
        """What the layer pays for tiles or waves that it does not fill, over the passes that the rule names; in us."""
        estimate = self.estimates[index]
        if estimate is None or rule.loss not in ("tile", "wave"):
            return None
        field = "lost_to_tiles_us" if rule.loss == "tile" else "lost_to_waves_us"
        passes = estimate.passes.items()
        lost: float = sum(getattr(entry, field) for which, entry in passes if which in rule.loss_passes)
        return lost * self.layers[index].calls

    def _checked_again(self, index: int, changes: Changes) -> Check:
        """What the layer that `changes` make shows, as it then stands alone; advice on its batch is another matter."""
        facts = self._target_after(changes)
        layer, running = self.layers[index], self.running[index]
        same = layer is running
        layer = with_fix(layer, changes)
        running = layer if same else with_fix(running, changes)
        estimate = estimate_layer(running, facts.gpu, facts.runtime, facts.mode)
        if estimate is None:
            return Check((), frozenset())
        values = LayerFacts(facts, layer, None, (), estimate)
        flaws: Sequence[Flaw] = self._evaluator.evaluate(values, connected=False, exists=False).flaws
        if self._split is not None:
            flaws = [side for flaw in flaws for side in self._split(index, flaw, lambda: values)]
        standing = frozenset(flaw.key for flaw in flaws if set(flaw.set) != {"N"})
        return Check([flaw for flaw in flaws if self.plays(index, flaw)], standing)

    def _target_after(self, changes: Changes) -> TargetFacts:
        runtime = with_settings(self.facts.runtime, changes)
        if runtime is self.facts.runtime:
            return self.facts
        known = self._targets.get(runtime)
        if known is None:
            known = self._targets[runtime] = self.facts.with_runtime(runtime)
        return known


def is_another_network(flaw: Flaw, layer: ConvLayer) -> bool:
    """Whether a fix takes away more channels than a little, or widens them for the tiles' sake by more than half."""
    sizes = [
        (float(flaw.set[name]), now)
        for name in flaw.set.keys() & _CHANNELS
        if (now := getattr(layer, name)) is not None
    ]
    if any(new < (1 - MOST_TAKEN) * now for new, now in sizes):
        return True
    return flaw.rule.loss != "fix" and any(new > (1 + MOST_WIDENING) * now for new, now in sizes)


def _playing(rules: Iterable[Rule]) -> list[Rule]:
    """The rules on single layers whose fixes may play, and those that silence them."""
    own = [rule for rule in rules if rule.scope == "layer"]
    players = [rule for rule in own if rule.loss != "none" and any(_may_play(rule, i) for i in range(len(rule.cases)))]
    silencing = {code for rule in players for code in rule.yields_to}
    return [rule for rule in own if rule in players or rule.info.code in silencing]


def _may_play(rule: Rule, number: int) -> bool:
    case = rule.cases[number]
    return case.severity != "info" and case.fix is not None and any(name != "N" for name, _ in case.fix.set)
