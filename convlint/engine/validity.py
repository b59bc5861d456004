"""Whether the rules in force let a layer have new values: what findings name as good, and what a network may get.

A value is valid where a layer can have it and no rule objects. A rule objects to a change where it is broken after it
at a place at which it was not broken before. The rule that asks for the change also objects where it is still broken at
what was changed. Rules about capacity do not object to what mends a flaw that has a price: what fits a vector may still
leave a part of a tile empty, and they have their own say on that. Nor does anybody object for the sake of the batch,
which is the network's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from convlint.engine.changes import with_fix, with_settings
from convlint.engine.evaluate import Evaluator
from convlint.engine.new_values import impossible
from convlint.engine.timing import Changes
from convlint.estimate import LayerEstimate, estimate_layer
from convlint.facts.layer import LayerFacts
from convlint.facts.target import TargetFacts
from convlint.model.layer import ConvLayer
from convlint.model.runtime import Runtime
from convlint.rulebook.rule import Rule

_LAYER = "layer"  # where a rule points that names no field
Broken = frozenset[tuple[str, str]]  # the code of a rule, and a place that it points at


class Validity:
    """The rules in force on one network and target. `running` are the layers as the framework lays them out."""

    def __init__(
        self,
        layers: Sequence[ConvLayer],
        running: Sequence[ConvLayer],
        estimates: Sequence[LayerEstimate | None],
        facts: TargetFacts,
        rules: Iterable[Rule],
        codes: Collection[str] | None = None,
    ) -> None:
        """`codes` are the rules in force, None: all of them."""
        self._layers, self._running, self._estimates, self._facts = layers, running, estimates, facts
        in_force = [rule for rule in rules if codes is None or rule.info.code in codes]
        judging = [rule for rule in in_force if rule.scope == "layer" and rule.loss != "wave"]
        self._all = Evaluator(judging)
        self._grave = Evaluator([rule for rule in judging if rule.loss != "tile"])
        self._targets: dict[Runtime, TargetFacts] = {}
        self._before: dict[tuple[int, bool, bool], Broken] = {}

    def objections(
        self, index: int, changes: Changes, rule: Rule, *, mends: bool = True, predicted: bool = True
    ) -> frozenset[str]:
        """The codes of the rules that object to `changes` in a layer, for which `rule` asks.

        Where it `mends` the layer by them, `rule` must hold for what they set; else others have asked for them. Rules
        on what is predicted of the layer are asked only if it is to be `predicted`, which takes longer.
        """
        layer = self._layers[index]
        if impossible(changes, layer) is not None:
            return frozenset((rule.info.code,))
        about_capacity = rule.loss in ("tile", "wave")
        after = self._after(index, changes, about_capacity, predicted)
        new = {code for code, _ in after - self._broken_now(index, about_capacity, predicted)}
        if mends and any((rule.info.code, place) in after for place in (*changes, _LAYER)):
            new.add(rule.info.code)
        return frozenset(new)

    def _broken_now(self, index: int, about_capacity: bool, predicted: bool) -> Broken:
        key = index, about_capacity, predicted
        if key not in self._before:
            estimate = self._estimates[index] if predicted else None
            values = LayerFacts(self._facts, self._layers[index], None, (), estimate)
            self._before = {key: self._broken(values, about_capacity)}  # layers come one after the other
        return self._before[key]

    def _after(self, index: int, changes: Changes, about_capacity: bool, predicted: bool) -> Broken:
        facts = self._target_after(changes)
        layer, running = self._layers[index], self._running[index]
        same = layer is running
        layer = with_fix(layer, changes)
        running = layer if same else with_fix(running, changes)
        estimate = None
        if predicted and self._estimates[index] is not None:
            estimate = estimate_layer(running, facts.gpu, facts.runtime, facts.mode)
        return self._broken(LayerFacts(facts, layer, None, (), estimate), about_capacity)

    def _broken(self, values: LayerFacts, about_capacity: bool) -> Broken:
        judging = self._all if about_capacity else self._grave
        return frozenset(
            (rule.info.code, place)
            for rule, case, places in judging.broken(values)
            if about_capacity or case.severity != "info"
            for place in places or (_LAYER,)
            if place != "N"
        )

    def _target_after(self, changes: Changes) -> TargetFacts:
        runtime = with_settings(self._facts.runtime, changes)
        if runtime is self._facts.runtime:
            return self._facts
        if runtime not in self._targets:
            self._targets[runtime] = self._facts.with_runtime(runtime)
        return self._targets[runtime]
