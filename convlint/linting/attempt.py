"""One attempt to grant several wishes: a plan, what the input is edited to, and what that reads as."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple, Protocol, TypeVar

from msgspec.structs import replace

from convlint.fixes.edits import Edit, applied
from convlint.fixes.plan import Change, Plan, Planner, Wish
from convlint.fixes.spec_text import Edits, Refusal, spec_edits
from convlint.fixes.verify import unexpected
from convlint.linting.one_input import Job, as_asked, read_input
from convlint.model.network import Network
from convlint.readers.inputs import Input
from convlint.readers.reading import Reading
from convlint.report import InputError

MOST_PLANS = 5  # to leave out what cannot be edited
_NOT_STATED = "the file does not state what it would change"
_T = TypeVar("_T")


class Draft(Protocol):
    """An input as it has been edited so far, of which nothing is written yet. `job` is how it is read and checked.

    `cost` is how many times longer than a spec it takes to read.
    """

    @property
    def job(self) -> Job:
        """What it is read and checked for."""
        ...

    @property
    def cost(self) -> int:
        """Of one reading."""
        ...

    def attempt(self, asked: Sequence[Wish], planner: Planner) -> Attempt | None:
        """The wishes as edits of it; those that cannot be are `refused`. None where it holds no network."""
        ...


class Attempt(NamedTuple):
    """What several wishes come to.

    `read` is the network as the edited `draft` has it, `network` as it runs. `wrong` says of layers, by index, and of
    the whole (None) how it is not what was meant; then nothing of it may be used.
    """

    plan: Plan
    refused: list[tuple[Wish, str]]
    draft: Draft | None = None
    read: Network | None = None
    network: Network | None = None
    wrong: Mapping[int | None, str] = {}


class SpecDraft:
    """A spec, whose text is that of `source`; `read` is the network in it."""

    cost = 1

    def __init__(self, source: Input, job: Job, reading: Reading, read: Network | None) -> None:
        self.source, self.job, self._reading, self._read = source, job, reading, read

    @property
    def text(self) -> str:
        """As it has been edited so far."""
        return self.source.text or ""

    def attempt(self, asked: Sequence[Wish], planner: Planner) -> Attempt | None:
        """See `Draft`."""
        read = self._read
        if self.job.reading.batch is not None:  # edits are of what the file states
            read, _ = self._reading.read(self.source, replace(self.job.reading, batch=None))
        if read is None:
            return None
        network = read
        plan, refused, edits = edited(asked, planner, lambda changes: spec_edits(self.text, network, changes))
        if not plan.granted:
            return Attempt(plan, refused)
        return self.after(edits, plan, planner.network)._replace(refused=refused)

    def after(self, edits: Iterable[Edit], plan: Plan, before: Network) -> Attempt:
        """With what the edited text reads as, and what is wrong with that; `before` is the network as it ran.

        Raises ValueError where edits overlap.
        """
        source = replace(self.source, text=applied(self.text, edits))
        read, errors = read_input(source, self.job, self._reading)
        made = Attempt(plan, [], SpecDraft(source, self.job, self._reading, read))
        if read is None or errors:
            return made._replace(wrong=_placed(errors, read))
        network = as_asked(read, self.job)
        return made._replace(read=read, network=network, wrong=unexpected(before, network, plan))


def edited(
    asked: Sequence[Wish], planner: Planner, edits_of: Callable[[Sequence[Change]], Edits]
) -> tuple[Plan, list[tuple[Wish, str]], tuple[Edit, ...]]:
    """(the plan for those of the wishes that can be granted and written into a spec, the others, the edits)."""

    def write(plan: Plan) -> tuple[tuple[Edit, ...], Mapping[int, str]]:
        edits = edits_of(list(plan.changes))
        return edits.edits, _unedited(plan, edits.refused)

    plan, refused, edits = written(asked, planner, write)
    return plan, refused, edits or ()


def written(
    asked: Sequence[Wish], planner: Planner, write: Callable[[Plan], tuple[_T, Mapping[int, str]]]
) -> tuple[Plan, list[tuple[Wish, str]], _T | None]:
    """(the plan for those of the wishes that can be granted and written, the others, what is written).

    `write` says what a plan comes to, and of granted wishes, by position, why they cannot be written.
    """
    refused: list[tuple[Wish, str]] = []
    for _ in range(MOST_PLANS):
        plan = planner.plan(asked)
        refused += plan.refused
        if not plan.granted:
            return plan, refused, None
        found, failing = write(plan)
        if not failing:
            return plan, refused, found
        refused += [(plan.granted[number], reason) for number, reason in failing.items()]
        asked = [wish for number, wish in enumerate(plan.granted) if number not in failing]
    return Plan(), refused + [(wish, "it does not go together with other fixes") for wish in asked], None


def _unedited(plan: Plan, refusals: Iterable[Refusal]) -> dict[int, str]:
    """The granted wishes of which something cannot be written, by position."""
    distinct = {id(numbers): numbers for numbers in plan.changes.values()}  # many changes share the same wishes
    written = set(chain(*distinct.values()))
    failing = {number: _NOT_STATED for number in range(len(plan.granted)) if number not in written}
    reasons = {id(numbers := plan.changes[refusal.change]): (numbers, refusal.reason) for refusal in refusals}
    for numbers, reason in reasons.values():
        failing.update(dict.fromkeys(numbers, reason))
    return failing


def _placed(errors: Sequence[InputError], read: Network | None) -> dict[int | None, str]:
    """What could not be read any more, by the layers on whose lines it stands."""
    found: dict[int | None, str] = {}
    lines: dict[int, int] = {}
    for index, layer in enumerate(read.layers if read is not None else ()):
        first, _, last, _ = layer.spans["layer"]
        lines.update(dict.fromkeys(range(first, last + 1), index))
    for error in errors:
        found.setdefault(lines.get(error.line or 0), f"the file could not be read any more: {error.message}")
    return found or {None: "the file would hold no network any more"}
