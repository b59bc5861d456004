"""Which fixes of an input `--fix` would write, and the edits of each fix alone, for formats that carry edits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from convlint.engine.findings import NetworkResult
from convlint.files.safe import is_exact
from convlint.fixes.edits import Edit, Places
from convlint.fixes.plan import EditPlan, EditPlanner, ValueChange, Wish, applicability, unused, wishes
from convlint.fixes.spec_text import Edits, SpecText
from convlint.fixes.verify import at_cost_of_others, lengthening, slower, steps_of, unkept, unwilling
from convlint.mend.attempt import Attempt, SpecDraft, as_stated, edited
from convlint.mend.checking import Checked, Fixing, Job, check_read
from convlint.model.report import Finding, InputError, Scalar
from convlint.readers.inputs import Input
from convlint.readers.reading import Reading
from convlint.rulebook.book import Rulebook

# How often the text of one file is checked with edits, and how many layers are looked at to find them: of a small file
# often enough to tell all findings apart, of a large one so that nobody waits much longer than for its check.
MOST_CHECKS, MOST_LAYERS_CHECKED = 20, 20_000
LOOKS_PER_LAYER, MOST_LOOKS_ANYWAY = 10, 20_000
_ANYWAY = 2  # checks of a file however large


class Proposal(Struct, frozen=True, kw_only=True):
    """The plan and the edits for one finding alone; `number` is its position among the findings."""

    number: int
    plan: EditPlan
    edits: tuple[Edit, ...]


class Proposing:
    """The proposals on one spec, whose text is that of `source`."""

    def __init__(
        self, source: Input, rulebook: Rulebook, job: Job, fixing: Fixing, reading: Reading, checked: Checked
    ) -> None:
        self._source, self._rulebook, self._job, self._reading, self._checked = source, rulebook, job, reading, checked
        self._fixing = replace(fixing, unsafe=True)
        self._text = source.text or ""
        self._known: dict[frozenset[ValueChange], Edits] = {}  # findings on one group of channels often want the same
        self._staying: set[int] = set()  # layers that do not follow others into another layout
        self._on_comments = {rule.info.code for rule in rulebook.rules if rule.scope == "suppression"}
        layers = 1 if checked.read is None else max(1, len(checked.read.layers))
        self._looks = max(MOST_LOOKS_ANYWAY, LOOKS_PER_LAYER * layers)
        self._checks = min(MOST_CHECKS, max(_ANYWAY, MOST_LAYERS_CHECKED // layers))

    def result(self) -> NetworkResult | None:
        """The result, whose findings carry the edits of their fixes, where these are found to be good."""
        result, places = self._checked.result, Places(self._text)
        if result is None or self._checked.errors or not places.are_plain:
            return result
        findings = list(result.findings)
        for proposal in self._good(self._proposals(result, findings)):
            finding = findings[proposal.number]
            assert finding.fix is not None  # it is what the proposal is about
            edits = tuple(places.text_edit(edit, result.path) for edit in proposal.edits)
            fix = replace(finding.fix, edits=edits, edits_safety=applicability(finding))
            findings[proposal.number] = replace(finding, fix=fix)
        return replace(result, findings=tuple(findings))

    def _proposals(self, result: NetworkResult, findings: Sequence[Finding]) -> list[Proposal]:
        numbers = [number for number, finding in enumerate(findings) if self._fixing.mendable([finding])]
        numbers.sort(key=lambda number: -(findings[number].lost_us or 0.0))
        network = self._checked.network
        read = as_stated(self._source, self._job, self._reading, self._checked.read)
        if not numbers or network is None or read is None:
            return []
        self._planner = EditPlanner(network, self._job.overridden(), result.silenced, self._staying)
        self._spec = SpecText(self._text, read)
        proposals = (self._proposal(number, list(wishes([findings[number]]))) for number in numbers)
        return [proposal for proposal in proposals if proposal is not None]

    def _proposal(self, number: int, candidates: Sequence[Wish]) -> Proposal | None:
        """The proposal that grants these wishes of one finding; None where nothing of it can be written."""
        if self._looks <= 0:
            return None
        plan, _, edits = edited(candidates, self._planner, self._edits)
        if not edits or not all(is_exact(edit.new) for edit in edits):
            return None
        return Proposal(number=number, plan=plan, edits=edits)

    def _edits(self, changes: Sequence[ValueChange]) -> Edits:
        key = frozenset(changes)
        self._looks -= len(changes)
        if key not in self._known:
            self._looks -= self._spec.cost(changes)
            self._known[key] = self._spec.edits(changes)
        return self._known[key]

    def _good(self, proposals: Sequence[Proposal]) -> Iterator[Proposal]:
        """The proposals that keep their promise, as far as the limits allow to check them."""
        again: list[Proposal] = []
        for together in _apart(proposals, by_field=True):
            yield from self._sound(together, again)
        for together in _apart(again, by_field=False):
            yield from self._sound(together, [])

    def _sound(self, together: Sequence[Proposal], again: list[Proposal]) -> Iterator[Proposal]:
        """The proposals that keep their promise together; those that may keep it alone, or in part, go to `again`."""
        if not together or self._checks <= 0:
            return
        self._checks -= 1
        plan, owners = _joined(together)
        attempt = self._attempt(together, plan)
        failing = set(range(len(owners))) if attempt is None else self._failing(attempt)
        if failing is None:  # once more without the layers that would rather stay
            less = (self._proposal(proposal.number, proposal.plan.granted) for proposal in together)
            yield from self._sound([proposal for proposal in less if proposal is not None], again)
            return
        if len(failing) == len(owners) and len(together) > 1:  # nobody knows which of them it is
            half = len(together) // 2
            yield from self._sound(together[:half], again)
            yield from self._sound(together[half:], again)
            return
        remaining: list[list[Wish]] = [[] for _ in together]
        for number, wish in enumerate(plan.granted):
            if number not in failing:
                remaining[owners[number]].append(wish)
        crowd = Counter(index for proposal in together for index in proposal.plan.sets)
        good = []
        for proposal, granted in zip(together, remaining, strict=True):
            if len(granted) == len(proposal.plan.granted):
                good.append(proposal)
            elif granted:
                part = self._proposal(proposal.number, granted)
                if part is not None:
                    same = part.edits == proposal.edits and part.plan.loose == proposal.plan.loose
                    (good if same else again).append(part)
            elif any(crowd[index] > 1 for index in proposal.plan.sets):
                again.append(proposal)
        if attempt is not None and attempt.wrong:  # nothing is known of the others yet
            yield from self._sound(good, again)
        else:
            yield from good

    def _attempt(self, together: Sequence[Proposal], plan: EditPlan) -> Attempt | None:
        """The text with the edits of several proposals, and what it reads as; None where they overlap."""
        network = self._checked.network
        assert network is not None  # else there were no proposals
        draft = SpecDraft(self._source, self._job, self._reading, self._checked.read)
        try:
            return draft.after({edit for proposal in together for edit in proposal.edits}, plan, network)
        except ValueError:
            return None

    def _failing(self, attempt: Attempt) -> set[int] | None:
        """The wishes that do not keep their promise, by their position in the plan; None where others are to stay."""
        before, plan = self._checked, attempt.plan
        assert before.network is not None  # else there were no proposals
        assert before.result is not None
        everything = set(range(len(plan.granted)))
        if attempt.wrong:
            return {number for number in everything if plan.touched[number] & attempt.wrong.keys()} or everything
        errors: list[InputError] = []
        result = None if attempt.network is None else check_read(attempt.network, self._rulebook, self._job, errors)
        if result is None or errors:
            return everything
        findings = self._fixing.counting(result.findings)
        unwanted = unwilling(plan, before.network, before.result, result, findings)
        if not self._staying.issuperset(unwanted):
            self._staying |= unwanted
            return None
        alone = {number for number in everything if not plan.granted[number].finding.pays_with}
        return {
            *unkept(plan, before.network, before.result, result, findings),
            *at_cost_of_others(plan, before.network, before.gpus, result.mode),
            *unused(plan, before.result, result, self._on_comments),
            *(alone & slower(plan, before.result, result).keys()),
            *(alone & lengthening(plan, steps_of(before.result), steps_of(result)).keys()),
        }


def _joined(together: Sequence[Proposal]) -> tuple[EditPlan, list[int]]:
    """(one plan of all, for each wish in it the position of the proposal that it is of)."""
    plans = [proposal.plan for proposal in together]
    sets: dict[int, dict[str, Scalar]] = {}
    for single in plans:
        for index, own in single.sets.items():
            sets.setdefault(index, {}).update(own)
    plan = EditPlan(
        granted=tuple(wish for single in plans for wish in single.granted),
        touched=tuple(touched for single in plans for touched in single.touched),
        sets=sets,
        runtime={name: value for single in plans for name, value in single.runtime.items()},
        loose=tuple(layers for single in plans for layers in single.loose),
    )
    return plan, [position for position, single in enumerate(plans) for _ in single.granted]


def _apart(proposals: Sequence[Proposal], *, by_field: bool) -> list[list[Proposal]]:
    """Groups of proposals, of which no two change one place in the text, one setting or one layer, unless alike.

    `by_field`: two may change one layer, where they change other fields of it.
    """
    groups: list[list[Proposal]] = []
    placed: dict[tuple[Edit, ...], int] = {}
    next_of: dict[object, int] = {}  # the first group in which a layer, a setting or a place is free
    for proposal in proposals:
        number = placed.get(proposal.edits)
        if number is None:
            plan = proposal.plan
            claims: list[object] = [*plan.runtime, *(("at", edit.start) for edit in proposal.edits)]
            claims += ((index, field) for index, sets in plan.sets.items() for field in (sets if by_field else ("",)))
            number = placed[proposal.edits] = max(next_of.get(claim, 0) for claim in claims)
            next_of.update(dict.fromkeys(claims, number + 1))
        groups += [[] for _ in range(number + 1 - len(groups))]
        groups[number].append(proposal)
    return groups
