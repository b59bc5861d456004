"""Which fixes of an input `--fix` would write, and the time once they are written."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from convlint.engine.findings import NetworkResult, sum_of
from convlint.engine.joint import Promise
from convlint.engine.timing import hosted_on, normed, times_of
from convlint.fixes.plan import KEEPING_SIZES, EditPlan, EditPlanner, Wish, WishKey, applicability, wishes
from convlint.mend.checking import Checked, Fixing, Job, is_advice, last_resort
from convlint.model.network import Network
from convlint.model.report import LayerReport, Scalar
from convlint.model.text import Text
from convlint.readers.inputs import Input
from convlint.readers.reading import Reading
from convlint.rulebook.book import Rulebook

if TYPE_CHECKING:
    from convlint.mend.attempt import Draft, EditsOf, Planned

_NEARLY_FULL = 0.9  # of a GPU's memory, from which on more channels may be too many for it
_LAST = Text("the batch is written once all else is, as the one that then fits")
Written = Literal["spec", "code", "nothing"]  # what an input is, for those who edit it
_MOST_READ = 500  # layers up to which a spec's own text is edited and read again to find out what its fixes come to


def with_applicability(
    checked: Checked, rulebook: Rulebook, job: Job, fixing: Fixing, of: Written,
    edits_of: EditsOf | None = None, draft: Callable[[], Draft] | None = None,
) -> NetworkResult | None:  # fmt: skip
    """The result, whose fixes say whether `--fix --unsafe-fixes` writes them, how many that are, and the time then.

    `of`: what the input is edited as. Without `edits_of`, all that fixes set in a spec counts as written. Where that
    may not be all there is to it, the rounds of `--fix` are run: on the spec that `draft` makes, or on the network.
    """
    result, network = checked.result, checked.network
    if result is None or network is None:
        return result
    if checked.errors or of == "nothing" or (of == "code" and not network.operations):
        return _with_times(_applicable(result, set(), {}), [_us_of(entry) for entry in result.layers])
    advice = {id(finding) for finding in result.findings if is_advice(finding)}
    candidates = [
        (finding, kind) for finding in fixing.counting(result.findings) if (kind := applicability(finding)) is not None
    ]
    if not candidates:
        return _applicable(result, set(), {})
    wanted = list(wishes(finding for finding, _ in candidates))
    planned = _planner_of(job, of, edits_of)
    planner = EditPlanner(network, job.overridden(), result.silenced)
    plan, _ = planned(wanted, planner)
    written, reasons = {wish.key for wish in plan.granted}, dict[WishKey, str]()
    outcome: NetworkResult | None = None
    granted = {id(wish.finding) for wish in plan.granted}
    all_of_it = advice <= granted and len(plan.granted) == len(wanted)
    tried = not all_of_it or _is_tried(plan, result, network, planner)
    if tried or _lengthens(result, planner, plan, checked.promises):
        from convlint.mend.attempt import NetworkDraft  # which a check that nobody doubts does without
        from convlint.mend.rounds import Mending

        spec = draft() if draft is not None and len(network.layers) <= _MOST_READ else None
        mending = Mending(spec or NetworkDraft(job, planned), rulebook, replace(fixing, unsafe=True), checked)
        mending.run()
        written, reasons = mending.written, {key: reason for key, (_, reason) in mending.refused.items()}
        outcome = mending.checked.result
    complete, some = set[int](), []
    for finding, kind in candidates:
        keys = {wish.key for wish in wishes([finding])}
        if keys and keys <= written:
            complete.add(id(finding))
        if keys & written:
            some.append(kind)
    late = {} if outcome is None else {id(wish.finding): _LAST for wish in wanted if "N" in wish.sets}
    refused = {id(wish.finding): reasons[wish.key] for wish in wanted if wish.key in reasons}
    result = _applicable(result, complete, {**late, **refused})
    now = len(some) if fixing.unsafe else some.count("safe")
    result = replace(result, fixable=now, fixable_unsafe=len(some) - now)
    if outcome is not None:
        return _with_times(result, [_us_of(entry) for entry in outcome.layers])
    if len(result.labels) == 1 and granted == advice:
        return result  # the times after all advice are those of the check already
    return _promised(result, planner.after(plan), checked.promises)


def _lengthens(result: NetworkResult, planner: EditPlanner, plan: EditPlan, promises: Mapping[str, Promise]) -> bool:
    """Whether the whole step takes longer on a target once the plan is written: for its dtypes, widths or layouts."""
    if not any(report.step is not None for report in result.networks) or not any(
        wish.sets.keys() & {"dtype", "C", "K", "layout"} for wish in plan.granted
    ):
        return False
    from convlint.fixes.verify import lengthening, steps_of  # which a check that nobody doubts does without

    changed, after = planner.after(plan), dict[str, float | None]()
    for label, promise in promises.items():  # of the advice, torch.compile and CUDA graphs are not written
        step = hosted_on(changed, promise.search.timing.gpu, result.mode).step
        after[label] = None if step is None else step.time_us
    return bool(lengthening(plan, steps_of(result), after))


def _is_tried(plan: EditPlan, result: NetworkResult, network: Network, planner: EditPlanner) -> bool:
    """Whether layers may take longer or rules speak up once a plan is written, although all advice is in it."""
    if any(wish.finding.severity == "error" for wish in plan.granted):
        return True
    # A dtype in place of one that the GPU lacks has no price, and other rules speak up once it is there.
    if any("dtype" in wish.sets and not wish.finding.advised for wish in plan.granted):
        return True
    if network.edges and any(field not in KEEPING_SIZES for sets in plan.sets.values() for field in sets):
        return True
    if any("N" in wish.sets for wish in plan.granted) or _divides(plan, result.labels):
        return True
    # Where a time is unknown, `--fix` wants no layer to take longer: what others save may not pay for it.
    if any(times is None for entry in result.layers for times in entry.times.values()):
        return True
    # An old cuDNN takes widths as they are that it keeps off the Tensor Cores in another dtype.
    cudnn = network.runtime.cudnn
    if cudnn is not None and cudnn < "8" and any("dtype" in wish.sets for wish in plan.granted):
        return True
    # One dtype for all may be worth it only once some widths are written, and it wants others of them.
    if len({layer.dtype for layer in network.layers}) > 1:
        return True
    # Winograd and FFT run in NCHW, and their workspace may be larger than the GPU. Norms that copy what is NHWC may
    # want NCHW for all, which was no choice while only some layers were NHWC.
    layouts = {wish.sets["layout"] for wish in plan.granted if "layout" in wish.sets}
    if "NCHW" in layouts or (layouts and normed(network, planner.after(plan).layers).copied):
        return True
    return any(
        report.capacity_bytes is not None and sum(report.memory.values()) > _NEARLY_FULL * report.capacity_bytes
        for report in result.networks
    )


def _divides(plan: EditPlan, targets: Sequence[str]) -> bool:
    """Whether some of a plan is asked for on some targets alone: others may want it back, or take longer with it."""
    asking: dict[tuple[str | None, str, Scalar], set[str | None]] = {}
    for wish in plan.granted:
        for field, value in wish.sets.items():
            asking.setdefault((wish.layer, field, value), set()).add(wish.finding.gpu)
    return len(targets) > 1 and any(None not in gpus and len(gpus) < len(targets) for gpus in asking.values())


def _planner_of(job: Job, of: Written, edits_of: EditsOf | None) -> Planned:
    """What plans the fixes of an input that can be written."""
    if of != "code" and edits_of is None:
        return _all_written
    from convlint.mend.attempt import code_writer, contents, edited, written  # which most checks do without

    if edits_of is None or of == "code":
        content = contents(job)
        return lambda asked, planner: written(asked, planner, code_writer(planner, content))[:2]
    return lambda asked, planner: edited(asked, planner, edits_of)[:2]


def _all_written(asked: Sequence[Wish], planner: EditPlanner) -> tuple[EditPlan, list[tuple[Wish, str]]]:
    plan = planner.plan(asked)
    return plan, list(plan.refused)


def _applicable(result: NetworkResult, written: Container[int], reasons: Mapping[int, str]) -> NetworkResult:
    """The result, each of whose fixes says whether it is written, and where it is not, why."""
    findings = []
    for finding in result.findings:
        if finding.fix is not None:
            is_written = id(finding) in written
            no_edit = finding.fix.no_edit or ("" if is_written else reasons.get(id(finding), ""))
            finding = replace(finding, fix=replace(finding.fix, applicable=is_written, no_edit=no_edit))
        findings.append(finding)
    return replace(result, findings=tuple(findings))


def _promised(result: NetworkResult, changed: Network, promises: Mapping[str, Promise]) -> NetworkResult:
    """The result with the times of the changed network."""
    times = {label: times_of(changed, promise.search.timing.gpu, result.mode) for label, promise in promises.items()}
    fixed_us = [{label: own[index] for label, own in times.items()} for index in range(len(result.layers))]
    return _with_times(result, fixed_us)


def _us_of(entry: LayerReport) -> dict[str, float | None]:
    """The times of a layer as it is, by target."""
    return {label: None if now is None else now.time_us for label, now in entry.times.items()}


def _with_times(result: NetworkResult, fixed_us: Sequence[Mapping[str, float | None]]) -> NetworkResult:
    """The result with the times that its layers, by target, have once it is fixed."""
    layers = tuple(
        replace(
            entry,
            times={
                label: now and replace(now, after_fix_us=fixed_us[index][label]) for label, now in entry.times.items()
            },
        )
        for index, entry in enumerate(result.layers)
    )
    networks = tuple(
        replace(report, times=sum_of([entry.times.get(report.gpu) for entry in layers])) for report in result.networks
    )
    return replace(result, layers=layers, networks=networks)


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
