"""What a program's settings come to: what holds for its whole run, and what contradicts what."""

from __future__ import annotations

from collections.abc import Sequence

from convlint.model.source import Setting
from convlint.readers.python.programs.assignments import (
    ALGORITHMS,
    ANY,
    BENCHMARK,
    CUDNN_TF32,
    DETERMINISTIC,
    ENABLED,
    PRECISIONS,
)
from convlint.readers.python.programs.conditions import certain, exclude, guard, together
from convlint.readers.python.programs.events import Event
from convlint.readers.python.source_file import is_quiet

_OFF = {
    "MXNET_CUDNN_AUTOTUNE_DEFAULT": ("0",),
    "TF_CUDNN_USE_AUTOTUNE": ("0", "false", "False"),
}


class Events:
    """All that a program sets: in order as far as it was followed, and what it may set besides."""

    def __init__(self, followed: Sequence[Event], besides: Sequence[Event], complete: bool) -> None:
        """`besides` are settings that are reached nobody knows when; `complete`: there are no more."""
        self.followed, self.besides, self.complete = tuple(followed), tuple(besides), complete

    def settled(self, *names: str, start: bool | None = None) -> bool | int | float | str | None:
        """The value that surely holds for the run, the last of `names` to be set winning; None: unknown.

        `start` is the value before any of them is set, where that is known.
        """
        if any(each.name in (*names, ANY) for each in self.besides):
            return None
        last: bool | int | float | str | None = start
        for each in self.followed:
            if each.name == ANY:
                last = None
            if each.name not in names:
                continue
            value = each.value[0] if each.value is not None else None
            if certain(each.conditions) and each.value is not None:
                last = value
            elif value != last:
                last = None
        return last

    def touched(self, *names: str) -> bool:
        """Whether anything may set one of `names`."""
        return any(each.name in (*names, ANY) for each in (*self.followed, *self.besides))

    def flag(self, name: str) -> bool | None:
        """A flag of cudnn's that is False unless something sets it."""
        value = self.settled(name, start=False if self.complete else None)
        return value if isinstance(value, bool) else None

    def deterministic(self) -> bool | None:
        """Whether only deterministic algorithms are allowed, by either of the two ways to say so."""
        both = self.flag(DETERMINISTIC), self.flag(ALGORITHMS)
        return True if True in both else (False if both == (False, False) else None)

    def enabled(self) -> bool | None:
        """Whether cuDNN is in use: False only where that is sure."""
        if self.touched(ENABLED):
            value = self.settled(ENABLED)
            quiet = any(is_quiet(each.at.path) for each in self.followed if each.name == ENABLED)
            return value if isinstance(value, bool) and not (value is False and quiet) else None
        return True if self.complete else None

    def tf32(self) -> bool | None:
        """Whether fp32 convolutions may run as TF32, where the program says so; the two ways to say it do not mix."""
        old, new = self.touched(CUDNN_TF32), self.touched(*PRECISIONS)
        if old and not new:
            value = self.settled(CUDNN_TF32)
            return value if isinstance(value, bool) else None
        if new and not old:
            values = {self.settled(name) for name in PRECISIONS if self.touched(name)}
            if len(values) == 1:
                return {"ieee": False, "tf32": True}.get(str(values.pop()))
        return None

    def conflict(self) -> tuple[Setting, Setting] | None:
        """Deterministic algorithms and a search for the fastest one, both asked for in one run."""
        for index, one in enumerate(self.followed):
            for other in self.followed[index + 1 :]:
                names = {one.name, other.name}
                if BENCHMARK not in names or not names & {DETERMINISTIC, ALGORITHMS}:
                    continue
                if one.value == other.value == (True,) and self._both(one, other):
                    return (setting(one), setting(other)) if one.name != BENCHMARK else (setting(other), setting(one))
        return None

    def _both(self, one: Event, other: Event) -> bool:
        if not together(one.conditions, other.conditions) or is_quiet(one.at.path) or is_quiet(other.at.path):
            return False
        for event in (one, other):
            later = self.followed[self.followed.index(event) + 1 :]
            apart = any(condition.kind == "elsewhere" for condition in event.conditions)
            for each in (*self.besides, *(self.followed if apart else later)):
                against = each.name in (event.name, ANY) and each.value != (True,)
                if against and not exclude(each.conditions, (*one.conditions, *other.conditions)):
                    return False
        return True

    def autotune_disabled(self) -> tuple[Setting, ...]:
        """Variables of the environment that turn the search off in a framework that searches by default."""
        return tuple(
            setting(each)
            for each in self.followed
            if each.value is not None and not is_quiet(each.at.path) and _turns_off(each.name, each.value[0])
        )

    def settings(self) -> tuple[Setting, ...]:
        """All of them, for the report."""
        found = [setting(each) for each in self.followed if each.name != ANY]
        found += [setting(each, sure=False) for each in self.besides if each.name != ANY]
        return tuple(dict.fromkeys(found))


def setting(event: Event, sure: bool = True) -> Setting:
    """An event as reports have it."""
    value = event.value[0] if event.value is not None else None
    return Setting(
        name=event.name,
        value=int(value) if isinstance(value, float) else value,
        at=event.at,
        guard=guard(event.conditions),
        certain=sure and certain(event.conditions),
    )


def _turns_off(name: str, value: object) -> bool:
    if name in ("XLA_FLAGS", "TF_XLA_FLAGS"):
        return "--xla_gpu_autotune_level=0" in str(value).split()
    return str(value) in _OFF.get(name, ())
