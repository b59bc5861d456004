"""`--fix` in rounds: edit, read and check again; fixes that do not keep their promise are left out, with a reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Generic, TypeVar, cast

from convlint.engine.joint import Promise
from convlint.engine.levers import takes_away
from convlint.fixes.plan import UNUSED, EditPlanner, Wish, WishKey, unused, wishes
from convlint.fixes.verify import (
    at_cost_of_others,
    is_unpriced,
    lengthening,
    slower,
    steps_of,
    takes_longer,
    unkept,
    unwilling,
)
from convlint.mend.attempt import (
    Attempt,
    Draft,
    is_of_setting,
    whole_settings,
)
from convlint.mend.checking import (
    Checked,
    Fixing,
    check_read,
)
from convlint.model.grouping import grouped
from convlint.model.layer import ConvLayer
from convlint.model.network import Network
from convlint.model.report import InputError
from convlint.rulebook.book import Rulebook

MOST_ROUNDS = 10
# How often the edited text of one file is checked, and how often it is read, in all rounds: of a small file often
# enough to find the one fix that does not go together with the others, of a large one so that nobody waits for hours.
MOST_CHECKS, MOST_READINGS = 20, 100
MOST_LAYERS_CHECKED, MOST_LAYERS_READ = 40_000, 200_000
_MOST_NAMED = 3  # layers that a note names
_MOST_NOTES = 10
D = TypeVar("D", bound=Draft)


class Mending(Generic[D]):
    """The rounds on one input: `draft` and `checked` are the state after the last round that succeeded.

    `count` is the number of findings that were fixed, `written` the keys of their wishes, `refused` says why others
    were not.
    """

    def __init__(self, draft: D, rulebook: Rulebook, fixing: Fixing, checked: Checked) -> None:
        self._rulebook, self._fixing = rulebook, fixing
        self.draft, self.checked, self.count = draft, checked, 0
        self.refused: dict[WishKey, tuple[Wish, str]] = {}
        self.written: set[WishKey] = set()
        self._vain: set[WishKey] = set()  # what was tried on the text at hand
        self._waiting: set[WishKey] = set()  # of several on one layer that together lost time: each is tried alone
        self._alone: set[WishKey] = set()  # what did wait
        self._staying: set[int] = set()  # layers that do not follow others into another layout
        self._batch_is_set = False
        self._announced: set[tuple[str | None, str, object]] | None = None  # what the first check wants of layers
        self._former: set[tuple[str | None, str, object]] = set()  # values that layers had before
        self._on_comments = {rule.info.code for rule in rulebook.rules if rule.scope == "suppression"}
        layers = 1 if checked.read is None else max(1, len(checked.read.layers))
        self._checks = min(MOST_CHECKS, max(3, MOST_LAYERS_CHECKED // layers))
        self._readings = min(MOST_READINGS // draft.cost, max(5, MOST_LAYERS_READ // layers))

    def run(self) -> None:
        """Runs rounds until one changes nothing."""
        for _ in range(MOST_ROUNDS):
            waiting = len(self._waiting)
            if not self._round() and len(self._waiting) == waiting:
                break

    def notes(self, path: str) -> Iterator[str]:
        """Notes on wanted fixes that were not applied: one for all layers with the same rule and reason."""
        result = self.checked.result
        findings = () if result is None else self._fixing.mendable(result.findings)
        keys = {wish.key for wish in wishes(findings)}
        groups: dict[tuple[str, str], dict[str | None, None]] = {}
        for wish, reason in self.refused.values():
            if wish.key in keys:
                groups.setdefault((wish.finding.rule.code, reason), {})[wish.layer] = None
        for (code, reason), layers in list(groups.items())[:_MOST_NOTES]:
            names = [layer for layer in layers if layer is not None]
            more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
            of = f" of {', '.join(names[:_MOST_NAMED])}{more}" if names else ""
            yield f"{path}: {code}{of} is not fixed: {reason}"
        if len(groups) > _MOST_NOTES:
            yield f"{path}: {len(groups) - _MOST_NOTES} more are not fixed"

    def _round(self) -> bool:
        """One round; returns whether any fix was applied."""
        network, result = self.checked.network, self.checked.result
        if network is None or result is None or self.checked.errors:
            return False
        wanted = list(wishes(self._fixing.mendable(result.findings)))
        self._refuse(
            self._narrowing_later(wanted, network),
            "it shows only once other fixes are written, and takes channels away",
        )
        candidates = self._one_of_those_waiting(filter(self._is_open, wanted))
        planner = EditPlanner(network, self.draft.job.overridden(), result.silenced, self._staying)
        others = [wish for wish in candidates if "N" not in wish.sets]
        # Which batch is best depends on everything else, so that it is set last.
        return self._tried(planner, others) or self._tried(planner, [wish for wish in candidates if "N" in wish.sets])

    def _narrowing_later(self, wanted: Sequence[Wish], network: Network) -> Iterator[Wish]:
        """Yields the wishes for narrower sizes that the first check does not advise: no report has announced them."""
        if self._announced is None:
            self._announced = {(wish.layer, *pair) for wish in wanted for pair in wish.sets.items()}
        layers: dict[str | None, ConvLayer] = {layer.name: layer for layer in network.layers}
        for wish in wanted:
            is_new = any((wish.layer, *pair) not in self._announced for pair in wish.sets.items())
            if is_new and wish.finding.advised and wish.layer in layers and takes_away(wish.sets, layers[wish.layer]):
                yield wish

    def _tried(self, planner: EditPlanner, candidates: Sequence[Wish]) -> bool:
        """Applies as many of the wishes as keep their promise; returns whether there was any."""
        while candidates and self._checks > 0:
            attempt = self._sound(planner, candidates)
            if attempt is None:
                return False
            staying = len(self._staying)
            failing = self._failing(attempt)
            if len(self._staying) > staying:  # once more without them
                continue
            if not failing:
                return True
            by_code = grouped((wish.finding.rule.code, wish) for wish in attempt.plan.granted)
            if len(by_code) > 1 and set(failing.values()) == {UNUSED}:  # nobody knows which of them it is
                return any(self._tried(planner, group) for group in by_code.values())
            for number, reason in failing.items():
                wish = attempt.plan.granted[number]
                self.refused[wish.key] = wish, reason
                if wish.key not in self._waiting:
                    self._vain.add(wish.key)
            candidates = [wish for number, wish in enumerate(attempt.plan.granted) if number not in failing]
        self._refuse(candidates, "too much was tried in vain")
        return False

    def _is_open(self, wish: Wish) -> bool:
        """Whether a wish was not tried in vain, and does not bring back what was there before."""
        if wish.key in self._vain:
            return False
        if any((wish.layer, field, value) in self._former for field, value in wish.sets.items()):
            self._refuse([wish], "it would undo what another fix set")
            return False
        if "N" in wish.sets and self._batch_is_set:
            self._refuse([wish], "another fix has set the batch already")
            return False
        return True

    def _one_of_those_waiting(self, candidates: Iterable[Wish]) -> list[Wish]:
        """The wishes that do not wait, and the first of each layer of those that do, which then waits no more.

        A setting of the network goes first, with all of its layers.
        """
        wished = list(candidates)
        setting = [wish for wish in wished if wish.key in self._waiting and is_of_setting(wish)]
        whole = [wish for wish in setting if wish.finding is setting[0].finding]
        layers = {wish.layer for wish in whole}
        keys = {wish.key for wish in whole}
        chosen = []
        for wish in wished:
            if wish.key in self._waiting:
                if wish.layer in layers and wish.key not in keys:
                    continue
                layers.add(wish.layer)
                self._waiting.discard(wish.key)
                self._alone.add(wish.key)
            chosen.append(wish)
        return chosen

    def _refuse(self, rejected: Iterable[Wish], reason: str) -> None:
        """Refuses wishes until another fix has changed the text."""
        for wish in rejected:
            self.refused[wish.key] = wish, reason
            self._vain.add(wish.key)

    def _sound(self, planner: EditPlanner, candidates: Sequence[Wish]) -> Attempt | None:
        """An attempt with the wishes after which the input reads as intended; None if there is none."""
        attempt = self._attempt(planner, candidates)
        while attempt is not None and attempt.wrong:
            granted, blamed = attempt.plan.granted, _blamed(attempt)
            if len(blamed) == len(granted) == 1 or self._readings <= 0:
                self._refuse(granted, next(iter(attempt.wrong.values())))
                return None
            if len(blamed) == len(granted):  # nobody knows which of them it is
                return self._halves(planner, granted)
            for number, reason in blamed.items():
                self._refuse([granted[number]], reason)
            attempt = self._attempt(planner, [wish for number, wish in enumerate(granted) if number not in blamed])
        return attempt

    def _halves(self, planner: EditPlanner, granted: Sequence[Wish]) -> Attempt | None:
        """Both halves of wishes that cannot be granted together, as far as they can."""
        half = len(granted) // 2
        first, second = self._sound(planner, granted[:half]), self._sound(planner, granted[half:])
        if first is None or second is None:
            return first or second
        both = self._attempt(planner, (*first.plan.granted, *second.plan.granted))
        if both is None or both.wrong:
            self._refuse(second.plan.granted, "it does not go together with other fixes")
            return first
        return both

    def _attempt(self, planner: EditPlanner, candidates: Sequence[Wish]) -> Attempt | None:
        """One attempt; None if nothing of it can be edited."""
        attempt = self.draft.attempt(candidates, planner) if candidates else None
        if attempt is None:
            return None
        self._readings -= 1
        for wish, reason in attempt.refused:
            self.refused[wish.key] = wish, reason
        return attempt if attempt.plan.granted else None

    def _failing(self, attempt: Attempt) -> dict[int, str]:
        """The granted wishes that do not keep their promise, by position; where all do, the attempt is what holds."""
        before, network, plan = self.checked, attempt.network, attempt.plan
        self._checks -= 1
        errors: list[InputError] = []
        draft = attempt.draft or self.draft
        promises: dict[str, Promise] = {}
        result = (
            None if network is None else check_read(network, self._rulebook, draft.job, errors, promises.__setitem__)
        )
        if result is None or errors or before.result is None or before.network is None:
            return dict.fromkeys(range(len(plan.granted)), "the edited file could not be checked")
        findings = self._fixing.mendable(result.findings)
        unwanted = unwilling(plan, before.network, before.result, result, findings)
        if not self._staying.issuperset(unwanted):
            self._staying |= unwanted
            return {}
        failing = unkept(plan, before.network, before.result, result, findings)
        failing |= at_cost_of_others(plan, before.network, before.gpus, result.mode)
        slow = slower(plan, before.result, result)
        mending = (number for number in range(len(plan.granted)) if is_unpriced(plan, number))
        together = {id(plan.touched[number]): plan.touched[number] for number in (*slow, *mending)}
        crowd = Counter(chain(*together.values()))
        waiting = set[int]()  # by finding
        for number, why in slow.items():
            wish, touched = plan.granted[number], plan.touched[number]
            if number not in failing and wish.key not in self._alone and any(crowd[index] > 1 for index in touched):
                self._waiting.add(wish.key)
                waiting.add(id(wish.finding))
            failing.setdefault(number, takes_longer(*why))
        long = lengthening(plan, steps_of(before.result), steps_of(result))
        failing = whole_settings(plan, {**long, **failing})
        for number in failing:
            wish = plan.granted[number]
            if id(wish.finding) in waiting and is_of_setting(wish):
                self._waiting.add(wish.key)
        if not failing and not all(wish.finding.advised for wish in plan.granted):
            failing = unused(plan, before.result, result, self._on_comments)
        if not failing:
            self._accept(attempt, Checked(read=attempt.read, network=network, result=result, promises=promises))
        return failing

    def _accept(self, attempt: Attempt, checked: Checked) -> None:
        network, plan = self.checked.network, attempt.plan
        assert network is not None  # it was edited
        for index, sets in plan.sets.items():
            layer = network.layers[index]
            self._former.update((layer.name, field, getattr(layer, field)) for field in sets)
        for field in plan.runtime:
            self._former.add((None, field, getattr(network.runtime, field.removeprefix("runtime."))))
        for wish in plan.granted:
            self.written.add(wish.key)
            self.refused.pop(wish.key, None)
            self._batch_is_set |= "N" in wish.sets
        self.count += len({id(wish.finding) for wish in plan.granted})
        self.draft, self.checked = cast(D, attempt.draft), checked  # a draft makes drafts of its own kind
        for tried in (self._vain, self._waiting, self._alone):  # what was in vain before may not be so now
            tried.clear()


def _blamed(attempt: Attempt) -> dict[int, str]:
    """The granted wishes, by position, that changed a layer which is not what was meant; all where that is unknown."""
    blamed = {
        number: attempt.wrong[min(wrong)]
        for number, touched in enumerate(attempt.plan.touched)
        if (wrong := touched & attempt.wrong.keys())
    }
    return blamed or dict.fromkeys(range(len(attempt.plan.granted)), next(iter(attempt.wrong.values())))
