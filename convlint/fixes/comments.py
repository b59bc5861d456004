"""Whether comments that silence rules still do so in a file that was edited."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container

from convlint.engine.findings import NetworkResult
from convlint.fixes.plan import Plan
from convlint.report import Finding

UNUSED = "a comment would silence nothing any more"


def unused(plan: Plan, before: NetworkResult, after: NetworkResult, codes: Container[str]) -> dict[int, str]:
    """The granted wishes, by position, after which comments are of no use any more, or wrong; `codes` tell of that.

    Those of other rules may be innocent, since all that is known is the layers in which nothing is silenced any more.
    """
    known = Counter(map(_comment, (each for each in before.findings if each.rule.code in codes)))
    new = Counter(map(_comment, (each for each in after.findings if each.rule.code in codes))) - known
    if not new:
        return {}
    silenced, left = before.silenced, after.silenced
    gone = {layer for _, layer in silenced - left}
    index_of = {entry.layer.name: index for index, entry in enumerate(before.layers)}
    layers = {index_of[name] for name in gone if name in index_of}
    found = {number: UNUSED for number, touched in enumerate(plan.touched) if touched & layers}
    return found or dict.fromkeys(range(len(plan.granted)), UNUSED)


def _comment(finding: Finding) -> tuple[str, str | None, str]:
    return finding.rule.code, finding.layer, finding.message
