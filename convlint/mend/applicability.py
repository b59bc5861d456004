"""Which fixes of an input `--fix` would write, and the time once they are written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from convlint.engine.findings import NetworkResult, sum_of
from convlint.engine.hits import edge_after, with_fix, with_settings
from convlint.engine.joint import Promise
from convlint.engine.timing import SAME, as_laid_out, estimated, on_gpu, times_of
from convlint.fixes.plan import Applicability, EditPlan, EditPlanner, Wish, applicability, wishes
from convlint.mend.checking import Checked, Fixing, Job, check_read, is_advice, last_resort
from convlint.model.network import Network
from convlint.model.report import Finding, Scalar
from convlint.model.text import Text
from convlint.readers.inputs import Input
from convlint.readers.reading import Reading
from convlint.rulebook.book import Rulebook

if TYPE_CHECKING:
    from convlint.mend.attempt import EditsOf

_ROUNDS = 4  # in which fixes that others undo are left out; what is left then is not looked at again
_MANY = 500  # layers, from which on one round has to do: each checks the whole network again
_NEARLY_FULL = 0.9  # of a GPU's memory, from which on more channels may be too many for it
_LAST = Text("the batch is written once all else is, as the one that then fits")
Written = Literal["spec", "code", "nothing"]  # what an input is, for those who edit it
_One = tuple[int, str | None]  # a wish: the id of its finding, and its layer


def with_applicability(
    checked: Checked, rulebook: Rulebook, job: Job, fixing: Fixing, of: Written,
    edits_of: EditsOf | None = None,
) -> NetworkResult | None:  # fmt: skip
    """The result, whose fixes say whether `--fix --unsafe-fixes` writes them, how many that are, and the time then.

    `of`: what the input is edited as. Without `edits_of`, all that fixes set in a spec counts as written.
    """
    result, network = checked.result, checked.network
    if result is None or network is None:
        return result
    if checked.errors or of == "nothing" or (of == "code" and not network.operations):
        return _promised(_applicable(result, set(), {}), network, EditPlan(), {})
    advice = {id(finding) for finding in result.findings if is_advice(finding)}
    candidates = [
        (finding, kind) for finding in fixing.counting(result.findings) if (kind := applicability(finding)) is not None
    ]
    if not candidates:
        return _applicable(result, set(), {})
    plan, reasons = _planned(network, job, result, candidates, of, edits_of)
    last: list[Wish] = []
    if _sets_batch(plan) and len({id(wish.finding) for wish in plan.granted}) > 1:
        last = _batches_once_written(network, rulebook, job, fixing, plan)
        still = {wish.sets["N"] for wish in last}
        early = {id(finding): _LAST for finding, _ in candidates if not still.issuperset(_batches(finding))}
        candidates = [pair for pair in candidates if id(pair[0]) not in early]
        plan, reasons = _planned(network, job, result, candidates, of, edits_of)
        reasons |= early
        last = [] if _sets_batch(plan) else last
    dropped: dict[_One, str] = {}
    rounds = _ROUNDS if len(network.layers) <= _MANY else 1
    for _ in range(rounds if _is_tried(plan, result) else 0):
        undone = _undone(result, network, plan, rulebook, job, fixing)
        if not undone:
            break
        dropped |= undone
        plan, reasons = _planned(network, job, result, candidates, of, edits_of, dropped)
    reasons |= {finding: reason for (finding, _), reason in dropped.items()}
    if longer := _lengthening(result, network, plan, checked.promises):
        candidates = [pair for pair in candidates if id(pair[0]) not in longer]
        plan, _ = _planned(network, job, result, candidates, of, edits_of, dropped)
        reasons |= longer
    left_out = advice.difference(id(wish.finding) for wish in plan.granted)  # some of it nobody can write in a spec
    if (reasons or left_out) and not last and _is_slower(_promised(result, network, plan, checked.promises), plan):
        parts = {id(finding) for finding, _ in candidates if is_advice(finding) and id(finding) not in reasons}
        candidates = [pair for pair in candidates if not is_advice(pair[0])]
        plan, others = _planned(network, job, result, candidates, of, edits_of)
        reasons |= dict.fromkeys(parts, Text("it takes longer without the advice that cannot be written")) | others
    counts = Counter(id(wish.finding) for wish in wishes(finding for finding, _ in candidates))
    granted = Counter(id(wish.finding) for wish in plan.granted)
    complete = {id(finding) for finding, _ in candidates if granted[id(finding)] == counts[id(finding)] > 0}
    some = [kind for finding, kind in candidates if granted[id(finding)]]
    now = len(some) if fixing.unsafe else some.count("safe")
    outcome = replace(_applicable(result, complete, reasons), fixable=now, fixable_unsafe=len(some) - now)
    if len(result.labels) == 1 and not last and granted.keys() == complete == advice:
        return outcome  # all advice is written: the times after it are those of the check already
    return _promised(outcome, network, plan, checked.promises, last)


def _lengthening(
    result: NetworkResult, network: Network, plan: EditPlan, promises: Mapping[str, Promise]
) -> dict[int, str]:
    """Why findings on dtypes or widths are not mended, by their id: the whole step would take longer."""
    before = {report.gpu: report.step.time_us for report in result.networks if report.step is not None}
    after = {report.gpu: report.step_after_us for report in result.networks if report.step is not None}
    changes_dtypes = any("dtype" in wish.sets for wish in plan.granted)
    if not before or not (changes_dtypes or any((us or 0.0) > before[gpu] for gpu, us in after.items())):
        return {}
    from convlint.fixes.verify import lengthening

    if changes_dtypes:  # of the advice, what takes the host away is not written
        changed = _changed(network, plan)
        for label, promise in promises.items():
            gpu = promise.search.timing.gpu
            network = on_gpu(changed, gpu)
            step = estimated(network, as_laid_out(network, result.mode), gpu, result.mode).step
            after[label] = None if step is None else step.time_us
    longer = lengthening(plan, before, after)
    return {id(plan.granted[number].finding): reason for number, reason in longer.items()}


def _is_slower(then: NetworkResult, plan: EditPlan) -> bool:
    """Whether the network takes longer on a target once the plan, part of the advice, is written."""
    from convlint.fixes.verify import saved_beside  # which a check that leaves nothing out does without

    beside_us = saved_beside(plan)
    return any(
        report.times is not None and (report.times.after_fix_us or 0.0) + beside_us > report.times.time_us * (1 + SAME)
        for report in then.networks
    )


def _sets_batch(plan: EditPlan) -> bool:
    return any("N" in wish.sets for wish in plan.granted)


def _is_tried(plan: EditPlan, result: NetworkResult) -> bool:
    """Whether layers may take longer or rules speak up once a plan is written, although it is made of advice."""
    if _sets_batch(plan) or _divides(plan, result.labels):
        return True
    # Where a time is unknown, `--fix` wants no layer to take longer: what others save may not pay for it.
    if any(times is None for entry in result.layers for times in entry.times.values()):
        return True
    # Winograd and FFT run in NCHW, and their workspace may be larger than the GPU.
    if any(wish.sets.get("layout") == "NCHW" for wish in plan.granted):
        return True
    return any(
        report.capacity_bytes is not None and sum(report.memory.values()) > _NEARLY_FULL * report.capacity_bytes
        for report in result.networks
    )


def _batches(finding: Finding) -> set[Scalar]:
    return {wish.sets["N"] for wish in wishes([finding]) if "N" in wish.sets}


def _one(wish: Wish) -> _One:
    return id(wish.finding), wish.layer


def _divides(plan: EditPlan, targets: Sequence[str]) -> bool:
    """Whether some of a plan is asked for on some targets alone: others may want it back, or take longer with it."""
    asking: dict[tuple[str | None, str, Scalar], set[str | None]] = {}
    for wish in plan.granted:
        for field, value in wish.sets.items():
            asking.setdefault((wish.layer, field, value), set()).add(wish.finding.gpu)
    return len(targets) > 1 and any(None not in gpus and len(gpus) < len(targets) for gpus in asking.values())


def _undone(
    result: NetworkResult, network: Network, plan: EditPlan, rulebook: Rulebook, job: Job, fixing: Fixing
) -> dict[_One, str]:
    """Why some wishes of a plan are not kept: a rule wants another value then, or their layers take longer."""
    from convlint.fixes.verify import slower, takes_longer, unkept
    from convlint.mend.attempt import whole_settings

    after = check_read(_changed(network, plan), rulebook, job, []) if plan.granted else None
    if after is None:
        return {}
    findings = [finding for finding in fixing.counting(after.findings) if applicability(finding) is not None]
    reasons = unkept(plan, network, result, after, findings)
    if not reasons:  # what is left out may be why layers take longer
        reasons = {number: takes_longer(*why) for number, why in slower(plan, result, after).items()}
    return {_one(plan.granted[number]): reason for number, reason in whole_settings(plan, reasons).items()}


def _batches_once_written(
    network: Network, rulebook: Rulebook, job: Job, fixing: Fixing, plan: EditPlan
) -> list[Wish]:  # fmt: skip
    """The batches that are asked for once all else is written: a batch is written last."""
    others = [wish for wish in plan.granted if "N" not in wish.sets]
    changed = _changed(network, EditPlanner(network, job.overridden()).plan(others))
    after = check_read(changed, rulebook, job, [])
    findings = () if after is None else fixing.counting(after.findings)
    return [wish for wish in wishes(findings) if "N" in wish.sets]


def _planned(
    network: Network, job: Job, result: NetworkResult, candidates: Iterable[tuple[Finding, Applicability]], of: Written,
    edits_of: EditsOf | None, without: Container[_One] = (),
) -> tuple[EditPlan, dict[int, str]]:  # fmt: skip
    """(the plan of the fixes that can be written, why others cannot, by the id of a finding)."""
    planner = EditPlanner(network, job.overridden(), result.silenced)
    wish_list = [wish for wish in wishes(finding for finding, _ in candidates) if _one(wish) not in without]
    if of != "code" and edits_of is None:
        plan = planner.plan(wish_list)
        return plan, {id(wish.finding): reason for wish, reason in plan.refused}
    from convlint.mend.attempt import code_writer, contents, edited, written  # which most checks do without

    if of == "code":
        plan, left_out, _ = written(wish_list, planner, code_writer(planner, contents(job)))
    elif edits_of is not None:
        plan, left_out, _ = edited(wish_list, planner, edits_of)
    return plan, {id(wish.finding): reason for wish, reason in left_out}


def _applicable(
    result: NetworkResult, written: Container[int], reasons: Mapping[int, str]
) -> NetworkResult:  # fmt: skip
    """The result, each of whose fixes says whether it is written, and where it is not, why."""
    findings = []
    for finding in result.findings:
        if finding.fix is not None:
            no_edit = finding.fix.no_edit or reasons.get(id(finding), "")
            finding = replace(finding, fix=replace(finding.fix, applicable=id(finding) in written, no_edit=no_edit))
        findings.append(finding)
    return replace(result, findings=tuple(findings))


def _promised(
    result: NetworkResult, network: Network, plan: EditPlan, promises: Mapping[str, Promise], last: Sequence[Wish] = ()
) -> NetworkResult:
    """The result with its times once the plan, then the batches of `last` are written; without `promises`, as now."""
    changed = _changed(network, plan)
    if last:
        changed = _changed(changed, EditPlanner(changed, {}).plan(last))
    times = {label: times_of(changed, promise.search.timing.gpu, result.mode) for label, promise in promises.items()}
    layers = tuple(
        replace(
            entry,
            times={
                label: now and replace(now, after_fix_us=times[label][index] if times else now.time_us)
                for label, now in entry.times.items()
            },
        )
        for index, entry in enumerate(result.layers)
    )
    networks = tuple(
        replace(report, times=sum_of([entry.times.get(report.gpu) for entry in layers])) for report in result.networks
    )
    return replace(result, layers=layers, networks=networks)


def _changed(network: Network, plan: EditPlan) -> Network:
    """The network with the plan written."""
    layers = tuple(with_fix(layer, plan.sets.get(index, {})) for index, layer in enumerate(network.layers))
    edges = tuple(edge_after(edge, network.layers, layers) for edge in network.edges)
    return replace(network, layers=layers, edges=edges, runtime=with_settings(network.runtime, plan.runtime))


def with_edits(
    source: Input, rulebook: Rulebook, job: Job, fixing: Fixing, reading: Reading, checked: Checked
) -> NetworkResult | None:
    """The result, with the edits of its findings where these are asked for."""
    result = checked.result
    if fixing.proposes and source.text is not None:
        from convlint.mend.proposing import Proposing

        with last_resort(checked.errors, source.name):
            result = Proposing(source, rulebook, job, fixing, reading, checked).result()
    return result
