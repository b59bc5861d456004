"""A plan's records hold what they are given and nothing else."""

from __future__ import annotations

import pytest
from wirings import resnet50

from convlint.planning.result import Plan, State


def test_a_plan_says_nothing_of_what_was_not_asked() -> None:
    now = State(time_us=1.0, grade=None, parameters=None, flops=None)
    plan = Plan(path="x", gpu="a100", mode="training", batch=None, now=now, after=now, steps=(), network=resnet50())
    assert (plan.is_reached, plan.target_us) == (None, None)
    assert plan.without_time == plan.unpriced == plan.notes == ()
    with pytest.raises(AttributeError):
        plan.is_exact = False  # type: ignore[misc]
