"""One attempt to grant several wishes: a plan, the text that it makes of a spec, and what that reads as."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from msgspec.structs import replace

from convlint.fixes.applicable import Wish
from convlint.fixes.change import Change
from convlint.fixes.edits import Edit, applied
from convlint.fixes.plan import Plan, Planner
from convlint.fixes.spec_text import Edits, Refusal, spec_edits
from convlint.fixes.verify import unexpected
from convlint.linting.one_input import Job, as_asked, read_input
from convlint.model.network import Network
from convlint.readers.inputs import Input
from convlint.readers.reading import Reading
from convlint.report import InputError

MOST_PLANS = 5  # to leave out what cannot be edited
_NOT_STATED = "the file does not state what it would change"


class Attempt(NamedTuple):
    """What several wishes come to.

    `read` is the network as the edited text has it, `network` as it runs. `wrong` says of layers, by index, and of the
    whole (None) how it is not what was meant; then nothing of it may be used.
    """

    plan: Plan
    refused: list[tuple[Wish, str]]
    text: str = ""
    read: Network | None = None
    network: Network | None = None
    wrong: Mapping[int | None, str] = {}


def attempt(
    asked: Sequence[Wish], planner: Planner, text: str, read: Network, source: Input, job: Job, reading: Reading
) -> Attempt:
    """The wishes as edits of `text`, which `read` was made of, without those that cannot be; those are `refused`."""
    plan, refused, edits = edited(asked, planner, lambda changes: spec_edits(text, read, changes))
    if not plan.granted:
        return Attempt(plan, refused)
    made = Attempt(plan, refused, applied(text, edits))
    return read_again(made, planner.network, source, job, reading)


def edited(
    asked: Sequence[Wish], planner: Planner, edits_of: Callable[[Sequence[Change]], Edits]
) -> tuple[Plan, list[tuple[Wish, str]], tuple[Edit, ...]]:
    """(the plan for those of the wishes that can be granted and written, the others, the edits)."""
    refused: list[tuple[Wish, str]] = []
    for _ in range(MOST_PLANS):
        plan = planner.plan(asked)
        refused += plan.refused
        if not plan.granted:
            return plan, refused, ()
        edits = edits_of(list(plan.changes))
        failing = _unedited(plan, edits.refused)
        if not failing:
            return plan, refused, edits.edits
        refused += [(plan.granted[number], reason) for number, reason in failing.items()]
        asked = [wish for number, wish in enumerate(plan.granted) if number not in failing]
    return Plan(), refused + [(wish, "it does not go together with other fixes") for wish in asked], ()


def _unedited(plan: Plan, refusals: Iterable[Refusal]) -> dict[int, str]:
    """The granted wishes of which something cannot be written, by position."""
    distinct = {id(numbers): numbers for numbers in plan.changes.values()}  # many changes share the same wishes
    written = set(chain(*distinct.values()))
    failing = {number: _NOT_STATED for number in range(len(plan.granted)) if number not in written}
    reasons = {id(numbers := plan.changes[refusal.change]): (numbers, refusal.reason) for refusal in refusals}
    for numbers, reason in reasons.values():
        failing.update(dict.fromkeys(numbers, reason))
    return failing


def read_again(made: Attempt, before: Network, source: Input, job: Job, reading: Reading) -> Attempt:
    """With what the edited text reads as, and what is wrong with that; `before` is the network as it ran."""
    read, errors = read_input(replace(source, text=made.text), job.reading, reading)
    if read is None or errors:
        return made._replace(wrong=_placed(errors, read))
    network = as_asked(read, job)
    return made._replace(read=read, network=network, wrong=unexpected(before, network, made.plan))


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
