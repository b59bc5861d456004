"""How many findings of one input could be mended."""

from __future__ import annotations

from msgspec.structs import replace

from convlint.engine.results import NetworkResult
from convlint.fixes.applicable import WishKey, applicability, wishes
from convlint.linting.fixed import Fixing
from convlint.linting.one_input import Checked, Job


def counted(
    checked: Checked, job: Job, fixing: Fixing, refused: frozenset[WishKey] = frozenset(), *, code: bool = False
) -> NetworkResult | None:
    """The result, with how many of its findings could be mended; what was `refused` could not.

    `code`: they would be in the code that constructs the layers.
    """
    result, network = checked.result, checked.network
    if result is None or network is None or checked.errors or (code and not network.operations):
        return result
    asked = [(each, kind) for each in fixing.counting(result.findings) if (kind := applicability(each)) is not None]
    if not asked:
        return result
    from convlint.fixes.plan import Planner
    from convlint.linting.attempt import written
    from convlint.linting.code_draft import code_writer, contents

    planner = Planner(network, job.overridden(), result.silenced)
    several = wishes(finding for finding, _ in asked)
    open_wishes = [wish for wish in several if not refused or wish.key not in refused]
    if code:
        plan, _, _ = written(open_wishes, planner, code_writer(planner, contents(job)))
    else:
        plan = planner.plan(open_wishes)
    granted = {id(wish.finding) for wish in plan.granted}
    found = [kind for finding, kind in asked if id(finding) in granted]
    now = len(found) if fixing.unsafe else found.count("safe")
    return replace(result, fixable=now, fixable_unsafe=len(found) - now)
