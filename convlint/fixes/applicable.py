"""Which fixes of findings may be applied, and which of them keep the network's results and weights as they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from msgspec import Struct

from convlint.report import Finding, Fix, Scalar

Applicability = Literal["safe", "unsafe"]
WishKey = tuple[str, str | None, str | None, tuple[tuple[str, Scalar], ...]]  # rule, layer, GPU, what it sets

_SAFE = frozenset(("layout",))  # and all settings of the runtime; anything else is another network, or other weights
_NOT_WRITTEN = frozenset(("copies_input",))  # facts of a layer that no file states


class Wish(Struct, frozen=True, kw_only=True):
    """What the fix of one finding sets in one layer, by name; in the network's runtime, where there is no layer."""

    finding: Finding
    layer: str | None
    sets: Mapping[str, Scalar]

    @property
    def key(self) -> WishKey:
        """What stays the same from one round to the next."""
        return self.finding.rule.code, self.layer, self.finding.gpu, tuple(sorted(self.sets.items()))


def applicability(finding: Finding) -> Applicability | None:
    """How safely its fix can be applied; None where there is nothing to apply, or where that is not advised.

    A fix that has a price is applied where it is among those that make the network fastest. One without a price mends
    what is wrong whatever it costs; advice on the batch is one only where that is allowed, or more than an info.
    """
    fix = finding.fix
    if fix is None:
        return None
    fields = {name for sets in (fix.set, *fix.by_layer) for name in sets}
    if not fields or fields & _NOT_WRITTEN:
        return None
    if not fix.advised and (finding.lost_us is not None or (fix.time_change_us or 0.0) > 0):
        return None
    if "N" in fields and finding.severity == "info" and not is_asked_batch(fix):
        return None
    return "safe" if fix.safety == "safe" and all(map(_keeps_weights, fields)) else "unsafe"


def is_asked_batch(fix: Fix) -> bool:
    """Whether it is another batch, which somebody has allowed."""
    return "N" in fix.set and fix.advised


def _keeps_weights(field: str) -> bool:
    return field in _SAFE or field.startswith("runtime.")


def wishes(findings: Iterable[Finding]) -> Iterator[Wish]:
    """What their fixes set, layer by layer."""
    for finding in findings:
        if finding.fix is not None:
            yield from _wishes(finding, finding.fix)


def _wishes(finding: Finding, fix: Fix) -> Iterator[Wish]:
    names = finding.layers or (() if finding.layer is None else (finding.layer,))
    if not names:
        yield Wish(finding=finding, layer=None, sets=fix.set)
        return
    if finding.layer is not None and fix.set.keys() == {"K"}:  # all that shares these channels follows from there
        yield Wish(finding=finding, layer=finding.layer, sets=fix.set)
        return
    for name, sets in zip(names, fix.by_layer or (fix.set,) * len(names), strict=True):
        if sets:
            yield Wish(finding=finding, layer=name, sets=sets)
