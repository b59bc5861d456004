"""A plan as a page: the steps in their order, and how the time falls with each."""

from __future__ import annotations

from convlint.engine.steps import NetworkPlan, State
from convlint.files.languages import duration
from convlint.files.safe import clean, clean_path
from convlint.reporters import Style
from convlint.reporters.page.assembling import BAR, PlanStep, PlanView, plan_page
from convlint.reporters.plans import Planned, change, headline, notes, percent, verdict


def render_html(planned: Planned, style: Style) -> str:
    """The HTML of a plan, of one without steps and of none too."""
    lines = [clean(note) for note in notes(planned)]
    return plan_page(_view(planned), lines, planned.errors, unicode=style.unicode)


def _view(planned: Planned) -> PlanView:
    plan = planned.plan
    title = f"Plan for {clean_path(planned.path)}"
    if plan is None:
        return PlanView(title=title, says="No plan: no layer's time is known.", steps=())
    steps = tuple(_step(plan, clean(change(step)), step.before, step.after) for step in plan.steps)
    whole = _step(plan, f"all {len(steps)} steps", plan.now, plan.after) if len(steps) > 1 else None
    return PlanView(title=title, says=clean(f"{headline(plan)}; {verdict(plan)}"), steps=steps, whole=whole)


def _step(plan: NetworkPlan, says: str, before: State, after: State) -> PlanStep:
    return PlanStep(
        change=says,
        before=duration(before.time_us),
        after=duration(after.time_us),
        saved=percent(before.time_us, after.time_us),
        grade=after.grade or "",
        parameters=percent(before.parameters, after.parameters),
        flops=percent(before.flops, after.flops),
        width=round(BAR * after.time_us / plan.now.time_us, 1) if plan.now.time_us > 0 else 0.0,
    )
