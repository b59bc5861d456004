"""What all forms of a plan say in the same words."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from convlint.engine.steps import LEAST_GAIN, Plan, State, Step
from convlint.files.languages.saying import duration, plural
from convlint.gpus.gpu import CalibrationUse
from convlint.model.report import Finding, InputError
from convlint.reporters.words import step

_NO_STEP = f"no step would shorten it by {100 * LEAST_GAIN:g} % or more"


class Planned(Struct, frozen=True, kw_only=True):
    """The plan for one input, None where there is none, and what is wrong with the input.

    `is_whole`: all of the input could be read.
    """

    path: str
    plan: Plan | None
    is_whole: bool = True
    errors: tuple[InputError, ...] = ()
    notes: tuple[str, ...] = ()
    calibrations: tuple[CalibrationUse, ...] = ()


def percent(before: float | None, after: float | None) -> str:
    """`+1.9 %`; `-` where nothing changes, `?` where it is not known."""
    if before is None or after is None:
        return "?"
    if before == after or not before:
        return "-"
    change = 100 * (after / before - 1)
    return f"{change:+.1f} %" if abs(change) >= 0.05 else f"{change:+.1g} %"


def change(one: Step) -> str:
    """What a step changes, in how many layers, and whether the network and its weights stay."""
    counted = plural(len(one.layers), "layer")
    words = one.describe if one.kinds == ("channels",) or not one.layers else f"{one.describe} ({counted})"
    if one.safety == "safe":
        return words
    return f"{words}; changes the weights" if one.fills_up else f"{words}; changes the network"


def headline(plan: Plan) -> str:
    """`13.9 ms of convolutions per training step with N=64 on a100, grade B`."""
    batch = f" with N={plan.batch}" if plan.batch is not None else ""
    return f"{duration(plan.now.time_us)} of convolutions per {step(plan.mode)}{batch} on {plan.gpu}{_graded(plan.now)}"


def _graded(state: State) -> str:
    return "" if state.grade is None else f", grade {state.grade}"


def verdict(plan: Plan) -> str:
    """What all steps come to."""
    now, after = plan.now, plan.after
    if not plan.steps:
        words = _NO_STEP if plan.is_reached is None else "no step is needed"
        return words if plan.is_reached is not False else f"{words}: {_missed(plan)}"
    words = f"{duration(after.time_us)} after {plural(len(plan.steps), 'step')} ({percent(now.time_us, after.time_us)})"
    words += f"{_graded(after)}; parameters {percent(now.parameters, after.parameters)}"
    words += f", FLOPs {percent(now.flops, after.flops)}"
    return f"{words}: {_missed(plan)}" if plan.is_reached is False else words


def _missed(plan: Plan) -> str:
    return f"{duration(plan.target_us or 0.0)} is out of reach"


def notes(planned: Planned) -> Iterator[str]:
    """What else has to be said."""
    yield from planned.notes
    if planned.plan is None:
        return
    yield from planned.plan.notes
    for finding in planned.plan.unpriced:
        yield f"also advised, without a price: {unpriced(finding)}"


def unpriced(finding: Finding) -> str:
    """`CL502: use HEURISTIC`."""
    return f"{finding.rule.code}: {finding.fix.describe if finding.fix else finding.message}"
