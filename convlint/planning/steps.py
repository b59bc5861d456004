"""In which order the members of B are best taken: what saves most comes first, what only pays together is one step."""

from __future__ import annotations

from typing import NamedTuple

from convlint.engine.levers import Key, Lever, Levers
from convlint.engine.optimum import Choices, Search

LEAST_GAIN = 1e-3  # of the network's time: sizes that save less are one step together


class Members(NamedTuple):
    """Some of B: settings, and sizes."""

    choices: Choices
    levers: Levers

    def plus(self, other: Members) -> Members:
        """Both."""
        return Members({**self.choices, **other.choices}, {**self.levers, **other.levers})

    def __len__(self) -> int:
        return len(self.choices) + len(self.levers)


NONE = Members({}, {})


def ordered(every: Members, search: Search) -> list[Members]:
    """The steps, in order; all members are in one of them. Small sizes that follow each other are one step."""
    least_us = LEAST_GAIN * search.total_us({}, {})
    steps: list[Members] = []
    was_small = False
    for step, saved_us in _Order(every, search).steps():
        is_small = not step.choices and saved_us < least_us
        if is_small and was_small:
            steps[-1] = steps[-1].plus(step)
        else:
            steps.append(step)
        was_small = is_small
    return steps


class _Order:
    def __init__(self, every: Members, search: Search) -> None:
        self.every, self.search = every, search
        self.touching: dict[int, list[Key]] = {}
        for key, lever in every.levers.items():
            for index in lever.layers:
                self.touching.setdefault(index, []).append(key)
        self.taken = NONE
        self.saves: dict[Key, float] = {}  # of sizes that are left, as things stand

    def steps(self) -> list[tuple[Members, float]]:
        """Each with what it saves as it is taken, in us."""
        found = []
        self._look_at(list(self.every.levers))
        while len(self.taken) < len(self.every):
            step, saved_us = self._next()
            self._take(step)
            found.append((step, saved_us))
        return found

    def _next(self) -> tuple[Members, float]:
        now_us = self._us(self.taken)
        choices = {kind: one for kind, one in self.every.choices.items() if kind not in self.taken.choices}
        found = [
            (now_us - self._us(self.taken.plus(step)), step)
            for step in (Members({k: c}, {}) for k, c in choices.items())
        ]
        if self.saves:
            key = max(self.saves, key=self.saves.__getitem__)
            found.append((self.saves[key], Members({}, {key: self.every.levers[key]})))
        saved_us, step = max(found, key=lambda one: one[0])
        if saved_us > 0:
            return step, saved_us
        return self._together(choices, now_us)

    def _together(self, choices: Choices, now_us: float) -> tuple[Members, float]:
        """What saves time though nothing of it does alone: all settings, sizes near each other, or all that is left."""
        left = {key: self.every.levers[key] for key in self.saves}
        tried = [Members(choices, {})] if len(choices) > 1 else []
        tried += [Members({kind: choice}, left) for kind, choice in choices.items()]
        if not choices:
            tried += [Members({}, self._near(key, left)) for key in left]
        for step in tried:
            saved_us = now_us - self._us(self.taken.plus(step))
            if saved_us > 0:
                return step, saved_us
        whole = Members(choices, left)
        return whole, now_us - self._us(self.taken.plus(whole))

    def _near(self, key: Key, left: Levers) -> dict[Key, Lever]:
        keys = {other for index in left[key].layers for other in self.touching[index]}
        return {other: lever for other, lever in left.items() if other in keys}

    def _take(self, step: Members) -> None:
        self.taken = self.taken.plus(step)
        for key in step.levers:
            self.saves.pop(key, None)
        near = {key for lever in step.levers.values() for index in lever.layers for key in self.touching[index]}
        again = list(self.saves) if step.choices else [key for key in self.saves if key in near]
        self._look_at(again)

    def _look_at(self, keys: list[Key]) -> None:
        setting = self.search.setting(self.taken.choices)
        for key in keys:
            lever = self.every.levers[key]
            self.saves[key] = self.search.saving_us(setting, lever, self.taken.levers, self.touching)

    def _us(self, members: Members) -> float:
        search = self.search
        return search.timing.gpu_us(search.setting(members.choices), search.advice.changes(members.levers))
