"""Checks of an edited network: only what was meant changed, findings went, no layer takes longer, no error came."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from convlint.engine.findings import NetworkResult
from convlint.engine.hits import with_fix, with_settings
from convlint.engine.timing import SAME, hosted_on
from convlint.files.languages import duration
from convlint.fixes.plan import KEEPING_SIZES, EditPlan, Wish, is_its_own, wishes
from convlint.gpus.gpu import Gpu
from convlint.model.grouping import grouped
from convlint.model.layer import ConvLayer, Mode
from convlint.model.network import Network
from convlint.model.report import Finding
from convlint.model.text import Text

_AXES = ("D", "H", "W", "Z", "P", "Q")  # of a layer's tensors
_CLOSE_US = 1e-6
# A share of the layers' time: on a GPU that waits for its host, a smaller difference is lost in that wait.
_CLOSE = 0.005


def unexpected(before: Network, after: Network, plan: EditPlan) -> dict[int | None, str]:
    """Unwanted changes in a few words, by layer; None stands for the network as a whole."""
    reason = _changed_as_a_whole(before, after, plan)
    if reason:
        return {None: reason}
    # Another stride or filter gives the layers behind it other sizes, which are not compared then.
    carried = any(field not in KEEPING_SIZES for sets in plan.sets.values() for field in sets)
    widths = _new_widths(before, plan)
    reasons: dict[int | None, str] = {}
    for index, (old, new) in enumerate(zip(before.layers, after.layers, strict=True)):
        meant = replace(with_fix(old, plan.sets.get(index, {})), **_along(old, new, widths))
        if meant != new and not (carried and _unsized(meant) == _unsized(new)):
            reasons[index] = f"{old.name} would be read with another {_difference(meant, new)}"
    return reasons


def _changed_as_a_whole(before: Network, after: Network, plan: EditPlan) -> str:
    if [layer.name for layer in before.layers] != [layer.name for layer in after.layers]:
        return "other layers would be read"
    if (before.mode, before.targets) != (after.mode, after.targets):
        return "another mode or target would be read"
    if with_settings(before.runtime, plan.runtime) != after.runtime:
        return "another runtime would be read"
    if list(map(_wiring, before.operations)) != list(map(_wiring, after.operations)):
        return "another wiring would be read"
    return ""


def disturbed(before: Network, after: Network, plan: EditPlan) -> str:
    """What changed, beside the fields that the plan sets, in a network that runs some of the same code; or empty."""
    fields = {field for sets in plan.sets.values() for field in sets}
    ignored = dict.fromkeys(fields | ({"C", "K", "groups"} if fields & {"C", "K", "groups"} else set()))
    reason = _changed_as_a_whole(before, after, EditPlan())
    widths = _new_widths(before, plan)
    for old, new in zip(before.layers, after.layers, strict=True) if not reason else ():
        layer, other = replace(old, **ignored, **_along(old, new, widths)), replace(new, **ignored)
        if layer != other and (fields <= KEEPING_SIZES or _unsized(layer) != _unsized(other)):
            return f"{old.name} would be read with another {_difference(layer, other)}"
    return reason


def _new_widths(before: Network, plan: EditPlan) -> set[tuple[Any, Any]]:
    """The numbers of channels that the plan changes, each with the new one."""
    return {
        (getattr(before.layers[index], field), sets[field])
        for index, sets in plan.sets.items()
        for field in ("C", "K")
        if field in sets
    }


def _along(old: ConvLayer, new: ConvLayer, widths: Container[tuple[Any, Any]]) -> dict[str, int]:
    """The sizes that follow a new width in a layer with channels along an axis of space, as channel attention has."""
    return {axis: getattr(new, axis) for axis in _AXES if (getattr(old, axis), getattr(new, axis)) in widths}


def _wiring(operation: Any) -> tuple[object, ...]:
    return operation.kind, operation.name, operation.inputs, operation.layer, operation.output


def _unsized(layer: ConvLayer) -> ConvLayer:
    """The layer without what follows from the layers before it."""
    return replace(layer, **dict.fromkeys(_AXES))


def _difference(layer: ConvLayer, other: ConvLayer) -> str:
    names = (name for name in layer.__struct_fields__ if name != "spans")
    return next(name for name in names if getattr(layer, name) != getattr(other, name))


def staying(plan: EditPlan, findings: Iterable[Finding]) -> set[int]:
    """The granted wishes, by position, that `findings` of the edited network still express."""
    still: dict[tuple[str, str | None, str | None], set[str]] = {}
    for wish in wishes(findings):
        still.setdefault((wish.finding.rule.code, wish.layer, wish.finding.gpu), set()).update(wish.sets)
    return {
        number
        for number, wish in enumerate(plan.granted)
        if not still.get((wish.finding.rule.code, wish.layer, wish.finding.gpu), set()).isdisjoint(wish.sets)
    }


def unkept(
    plan: EditPlan, network: Network, before: NetworkResult, after: NetworkResult, findings: Sequence[Finding]
) -> dict[int, str]:
    """The granted wishes, by position, that `findings` or errors of the edited network speak against, and why.

    `network` is the one before the edits.
    """
    stays: str = Text("the finding would stay")
    reasons = dict.fromkeys(staying(plan, findings), stays)
    return reasons | unsettled(plan, findings) | wanted_back(plan, network, findings) | breaking(plan, before, after)


def wanted_back(plan: EditPlan, before: Network, findings: Iterable[Finding]) -> dict[int, str]:
    """The granted wishes, by position, that change a value which `findings` of the edited network want as it was."""
    reasons = _back(plan, before, findings)
    layers = grouped((field, index) for index, field in reasons)
    blamed: dict[int, str] = {}
    for number, wish in enumerate(plan.granted) if reasons else ():
        for field in wish.sets:
            wrong = plan.touched[number].intersection(layers.get(field, ()))
            if wrong:
                index = min(wrong)
                name = before.layers[index].name
                blamed[number] = reasons[index, field] + ("" if name == wish.layer else f" in {name}")
    return blamed


def unsettled(plan: EditPlan, findings: Iterable[Finding]) -> dict[int, str]:
    """The granted wishes for a batch, by position, where `findings` of the edited network want yet another one."""
    next_one = next(((wish.finding.rule.code, N) for wish in wishes(findings) if (N := wish.sets.get("N"))), None)
    if next_one is None:
        return {}
    code, N = next_one
    reason: str = Text("{code} would then want N={N}", code=code, N=N)
    return {number: reason for number, wish in enumerate(plan.granted) if "N" in wish.sets}


def _back(plan: EditPlan, before: Network, findings: Iterable[Finding]) -> dict[tuple[int, str], str]:
    """The values, by layer and field, that `findings` want as they were, and why."""
    index_of = {before.layers[index].name: index for index in plan.sets}
    reasons: dict[tuple[int, str], str] = {}
    for wish in wishes(findings):
        index = index_of.get(wish.layer or "")
        for field, value in wish.sets.items() if index is not None else ():
            if index is not None and field in plan.sets[index] and value == getattr(before.layers[index], field):
                reasons[index, field] = Text("{code} would want it back", code=wish.finding.rule.code)
    return reasons


def unwilling(
    plan: EditPlan, network: Network, before: NetworkResult, after: NetworkResult, findings: Iterable[Finding]
) -> set[int]:
    """Layers that need not follow others into another layout, and are better off as they were.

    Those are layers with groups that `findings` of the edited network want as they were, and sets of layers that no
    tensor connects with the others, where findings want one of them as it was, or they take longer on some target.
    """
    back = {index for index, field in _back(plan, network, findings) if field == "layout"}
    # What is advised for the whole network is as well had without them.
    asking = {wish.layer for wish in plan.granted if "layout" in wish.sets and not wish.finding.advised}
    indices = {
        index
        for index in back
        if is_its_own(network.layers[index], network.layers[index].layout) and network.layers[index].name not in asking
    }
    for label in before.labels if plan.loose else ():
        added, share = dict(_added(before, after, label)), _close(before, after, label)
        for layers in plan.loose:
            now = sum(times.time_us for i in layers if (times := before.layers[i].times.get(label)) is not None)
            if back & layers or sum(added.get(i, 0.0) for i in layers) > max(_CLOSE_US, share * now):
                indices |= layers
    return indices


def breaking(plan: EditPlan, before: NetworkResult, after: NetworkResult) -> dict[int, str]:
    """The granted wishes, by position, that change layers in which there are errors now that were not there before."""
    known = set(_errors(before))
    new = {name: code for code, name, gpu in _errors(after) if (code, name, gpu) not in known}
    if not new:
        return {}
    names = [entry.layer.name for entry in before.layers]
    reasons: dict[int, str] = {}
    for number, touched in enumerate(plan.touched):
        code = next((new[names[index]] for index in touched if names[index] in new), "")
        if code:
            reasons[number] = Text("it would lead to {code}", code=code)
    first: str = Text("it would lead to {code}", code=next(iter(new.values())))
    return reasons or dict.fromkeys(range(len(plan.granted)), first)


def _errors(result: NetworkResult) -> Iterator[tuple[str, str | None, str | None]]:
    for finding in result.findings:
        if finding.severity == "error":
            for name in finding.layers or (finding.layer,):
                yield finding.rule.code, name, finding.gpu


def slower(plan: EditPlan, before: NetworkResult, after: NetworkResult) -> dict[int, tuple[str, float]]:
    """The granted wishes, by position, whose layers take longer on some target: which one, and by how many us.

    Where the network as a whole does not, some layers may: what others save pays for it.
    Wishes without a price mend what is wrong whatever it costs: they are never among those, but others that change the
    same layers are, since nobody knows what takes longer. Of layers whose batch changes, the time per image counts.
    Where findings on other targets ask for it, it is their wishes alone. Nor is a setting among those that makes up for
    it in the rest of the step, where products outweigh a convolution that takes longer.
    """
    free = {n for n in range(len(plan.granted)) if is_unpriced(plan, n)} | _paying_in_step(plan, before, after)
    mended = set[int]()
    for touched in {id(plan.touched[n]): plan.touched[n] for n in free}.values():
        mended |= touched
    slow: dict[int, tuple[str, float]] = {}
    for label in before.labels:
        added, share = dict(_added(before, after, label)), _close(before, after, label)
        if is_no_slower(before, after, label, saved_beside(plan)):
            continue
        now = {index: times.time_us for index in added if (times := before.layers[index].times.get(label)) is not None}
        sums: dict[int, tuple[float, float]] = {}  # many wishes share the layers that they touch
        for number, touched in enumerate(plan.touched):
            if number not in free:
                if id(touched) not in sums:
                    sums[id(touched)] = sum(added.get(i, 0.0) for i in touched), sum(now.get(i, 0.0) for i in touched)
                own, now_us = sums[id(touched)]
                close = max(_CLOSE_US, share * now_us)
                if own > max(close, slow.get(number, ("", 0.0))[1]):
                    slow[number] = label, own
        others = added.keys() - mended
        total_us = sum(added[i] for i in others)
        if not slow and total_us > max(_CLOSE_US, share * sum(now[i] for i in others)):
            slow = {n: (label, total_us) for n in range(len(plan.granted)) if n not in free}
    # A setting without a price, such as autotuning, touches every layer and is to blame for none that another changes.
    slow = {n: why for n, why in slow.items() if plan.granted[n].finding.lost_us is not None} or slow
    of_others = {n: why for n, why in slow.items() if plan.granted[n].finding.gpu not in (None, why[0])}
    return of_others or slow


def _paying_in_step(plan: EditPlan, before: NetworkResult, after: NetworkResult) -> set[int]:
    """The granted wishes for a dtype, by position, that save time of the step, where all targets run it faster."""
    now, then = steps_of(before), steps_of(after)
    pairs = [(now.get(label), then.get(label)) for label in before.labels]
    if not all(old is not None and new is not None and new < old for old, new in pairs):
        return set()
    wanted = enumerate(plan.granted)
    return {n for n, wish in wanted if "dtype" in wish.sets and (wish.finding.lost_step_us or 0.0) > 0.0}


Steps = Mapping[str, float | None]  # the time of the whole step, by target
_LONGER = 0.01  # of the step, from which on a width or a layout is not worth it


def steps_of(result: NetworkResult) -> Steps:
    """The times of the whole step, in us, on the targets on which it is known."""
    return {report.gpu: report.step.time_us for report in result.networks if report.step is not None}


def lengthening(plan: EditPlan, before: Steps, after: Steps) -> dict[int, str]:
    """The advised wishes, by position, because of which the whole step takes longer on a target once they are written.

    Autocast has more operations than a busy host can start, and what takes the host away is nothing that is written.
    Where no dtype changes, norms and activations of wider layers may cost more than their convolutions save, and so may
    those that run in another layout.
    """
    for gpu, now in before.items():
        then = after.get(gpu)
        if now is None or then is None:
            continue
        times = {"then": duration(then), "now": duration(now)}
        autocast: str = Text(
            "the step would take {then} for {now}: the host starts all operations of autocast", **times
        )
        wider: str = Text("the step would take {then} for {now}: what is between convolutions gets wider too", **times)
        turned: str = Text(
            "the step would take {then} for {now}: what is between convolutions takes longer in that layout", **times
        )
        for fields, least, why in (
            (("dtype",), SAME, autocast),
            (("C", "K"), _LONGER, wider),
            (("layout",), _LONGER, turned),
        ):
            blamed = {
                number: why
                for number, wish in enumerate(plan.granted)
                if wish.finding.advised and any(field in wish.sets for field in fields)
            }
            if blamed and then > now * (1 + least):
                return blamed
    return {}


def at_cost_of_others(plan: EditPlan, network: Network, gpus: Mapping[str, Gpu], mode: Mode) -> dict[int, str]:
    """The wishes for the runtime, by position, that mend a flaw of one target and make another take longer.

    `network` is the one before the edits. What that target too asks for may cost it time.
    """
    settings = {number: wish for number, wish in enumerate(plan.granted) if _is_correction(wish)}
    reasons: dict[int, str] = {}
    for label, gpu in gpus.items() if settings and len(gpus) > 1 else ():
        own = [wish.sets for wish in settings.values() if wish.finding.gpu in (None, label)]
        for number, wish in settings.items():
            changed = replace(network, runtime=with_settings(network.runtime, wish.sets))
            now, then = (None, None) if wish.sets in own else (_us_of(network, gpu, mode), _us_of(changed, gpu, mode))
            if now is not None and then is not None and then > now * (1 + _LONGER):
                reasons[number] = Text("it would take {time} longer on {gpu}", time=duration(then - now), gpu=label)
    return reasons


def _is_correction(wish: Wish) -> bool:
    """Whether a wish sets something in the runtime whatever it costs."""
    return (
        wish.layer is None and wish.finding.lost_us is None and all(name.startswith("runtime.") for name in wish.sets)
    )


def _us_of(network: Network, gpu: Gpu, mode: Mode) -> float | None:
    """The time of the step, or of the convolutions where no step is known."""
    outcome = hosted_on(network, gpu, mode)
    if outcome.step is not None:
        return outcome.step.time_us
    known = [estimate.time_us for estimate in outcome.estimates if estimate is not None]
    return sum(known) if len(known) == len(outcome.estimates) else None


def takes_longer(target: str, added_us: float) -> str:
    """The reason for which a wish is refused that `slower` names."""
    return Text("its layers would take {time} longer on {gpu}", time=duration(added_us), gpu=target)


def _close(before: NetworkResult, after: NetworkResult, label: str) -> float:
    """The share of its time by which a layer may take longer on a target and yet not be slower."""
    waits = any(network.waits for result in (before, after) for network in result.networks if network.gpu == label)
    return _CLOSE if waits else 0.0


def saved_beside(plan: EditPlan) -> float:
    """What granted fixes without a price save, in us: that is no reason for advice that costs time."""
    fixes = {id(wish.finding): wish.finding.fix for wish in plan.granted if wish.finding.lost_us is None}
    return sum(max(0.0, -(fix.time_change_us or 0.0)) for fix in fixes.values() if fix is not None)


def is_no_slower(before: NetworkResult, after: NetworkResult, label: str, beside_us: float = 0.0) -> bool:
    """Whether all layers together take no longer on a target; false where a time is not known.

    What was saved `beside_us` does not count.
    """
    pairs = [(old.times.get(label), new.times.get(label)) for old, new in zip(before.layers, after.layers, strict=True)]
    if any(old is None or new is None for old, new in pairs):
        return False
    return sum(us for _, us in _added(before, after, label)) + beside_us <= _CLOSE_US


def new_error(before: NetworkResult, after: NetworkResult) -> str:
    """The code of an error that was not there before; empty where there is none."""
    known = set(_errors(before))
    return next((error[0] for error in _errors(after) if error not in known), "")


def longer(before: NetworkResult, after: NetworkResult) -> tuple[str, float] | None:
    """A target on which all layers together take longer, and by how many us."""
    for label in before.labels:
        added = sum(us for _, us in _added(before, after, label))
        now = sum(times.time_us for layer in before.layers if (times := layer.times.get(label)) is not None)
        if added > max(_CLOSE_US, _close(before, after, label) * now):
            return label, added
    return None


def is_unpriced(plan: EditPlan, number: int) -> bool:
    """Whether the granted wish at this position mends what is wrong, whatever it costs."""
    wish = plan.granted[number]
    if wish.finding.severity == "error":
        return True
    return wish.finding.lost_us is None and "N" not in wish.sets and wish.layer is not None


def _added(before: NetworkResult, after: NetworkResult, label: str) -> Iterator[tuple[int, float]]:
    """By how many us each layer takes longer; those whose sizes differ do another work."""
    for index, (old, new) in enumerate(zip(before.layers, after.layers, strict=True)):
        now, then = old.times.get(label), new.times.get(label)
        if now is None or then is None:
            continue
        if (old.layer.P, old.layer.Q, old.layer.Z) != (new.layer.P, new.layer.Q, new.layer.Z):
            continue
        images = (old.layer.N or 1) / (new.layer.N or 1)
        yield index, then.time_us * images - now.time_us
