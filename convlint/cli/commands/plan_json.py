"""A plan as JSON: keys are stable, and a change of meaning is a new version."""

from __future__ import annotations

import json
from typing import Any

from convlint import __version__
from convlint.cli.commands.plan_words import Planned
from convlint.engine.steps import Plan, Step
from convlint.files.safe import clean, clean_path, number, settings_object
from convlint.reporters.json_v3 import calibration_object, error_object


def render(planned: Planned) -> str:
    """The plan as one JSON object on one line; times in us, `null` for what is not known."""
    plan = planned.plan
    document = {
        "schema_version": 3,
        "convlint": __version__,
        "complete": not planned.errors,
        "path": clean_path(planned.path),
        **(_nothing() if plan is None else _plan(plan)),
        "calibrations": [calibration_object(use) for use in planned.calibrations],
        "notes": [clean(note) for note in (*planned.notes, *(plan.notes if plan else ()))],
        "errors": [error_object(error) for error in planned.errors],
    }
    return json.dumps(document, ensure_ascii=False, allow_nan=False)


def _nothing() -> dict[str, Any]:
    return {"gpu": None, "mode": None, "steps": [], "time_us": None, "time_after_us": None}


def _plan(plan: Plan) -> dict[str, Any]:
    now, after = plan.now, plan.after
    return {
        "gpu": clean(plan.gpu),
        "mode": plan.mode,
        "batch": plan.batch,
        "target_time_us": number(plan.target_us),
        "target_reached": plan.is_reached,
        "time_us": number(now.time_us),
        "time_after_us": number(after.time_us),
        "grade": now.grade,
        "grade_after": after.grade,
        "parameters": now.parameters,
        "parameters_after": after.parameters,
        "flops": now.flops,
        "flops_after": after.flops,
        "steps": [_step(step) for step in plan.steps],
        "unpriced": [
            {
                "code": finding.rule.code,
                "name": finding.rule.name,
                "severity": finding.severity,
                "message": clean(finding.message),
                "describe": clean(finding.fix.describe),
                "safety": finding.fix.safety,
                "set": settings_object(finding.fix.set),
            }
            for finding in plan.unpriced
            if finding.fix is not None
        ],
        "without_time": [plan.network.layers[index].name for index in plan.without_time],
    }


def _step(step: Step) -> dict[str, Any]:
    before, after = step.before, step.after
    return {
        "describe": clean(step.describe),
        "kinds": list(step.kinds),
        "safety": step.safety,
        "layers": [clean(name) for name in step.layers],
        "set": settings_object(step.set),
        "by_layer": [settings_object(own) for own in step.by_layer],
        "time_before_us": number(before.time_us),
        "time_after_us": number(after.time_us),
        "grade_after": after.grade,
        "parameters_added": _added(before.parameters, after.parameters),
        "flops_added": _added(before.flops, after.flops),
    }


def _added(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else after - before
