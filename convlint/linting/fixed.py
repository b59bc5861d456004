"""What of an input is to be mended, and what became of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from convlint.engine.findings import NetworkResult
from convlint.fixes.plan import applicability, is_asked_batch
from convlint.model.source import SourceReading
from convlint.report import Finding, InputError, Severity
from convlint.verdict.select import Policy, chosen, counts


class Fixing(Struct, frozen=True, kw_only=True):
    """Which findings are to be mended: those that count or are advised, and whose fix can be applied.

    Where nothing counts, warnings do. What is advised is mended all together, since it pays together. `mends` false:
    only how many there are is to be said. `proposes`: findings are to carry the edits of their own fix.
    """

    policy: Policy
    codes: frozenset[str]
    severities: Mapping[str, Severity]
    unsafe: bool = False
    mends: bool = False
    proposes: bool = False

    def counting(self, findings: Iterable[Finding]) -> list[Finding]:
        """Those that count, the gravest first."""
        policy = replace(self.policy, fail_on="warning") if self.policy.fail_on == "never" else self.policy
        judged = chosen(findings, set(self.codes), self.severities)
        found = [
            each
            for each in judged
            if each.fix is not None and (counts(each, policy) or is_advice(each) or _is_for_all(each))
        ]
        return sorted(found, key=lambda finding: (finding.severity != "error", -(finding.lost_us or 0.0)))

    def wanted(self, findings: Iterable[Finding]) -> list[Finding]:
        """Those that count and may be mended."""
        allowed = ("safe", "unsafe") if self.unsafe else ("safe",)
        return [finding for finding in self.counting(findings) if applicability(finding) in allowed]


def is_advice(finding: Finding) -> bool:
    """Whether its fix is one of those that make the network fastest."""
    return finding.advised and (finding.lost_us or 0.0) > 0


def _is_for_all(finding: Finding) -> bool:
    """Whether it is mended whatever its severity: a bias that a norm cancels, as in Python source; a batch."""
    return finding.fix is not None and (finding.fix.set.keys() == {"bias"} or is_asked_batch(finding.fix))


class Edited(Struct, frozen=True, kw_only=True):
    """A file, or standard input ("-"), as it was read and as it is to become; `encoding` is that of its text."""

    path: str
    before: bytes
    after: bytes
    encoding: str = "utf-8-sig"


class Fixed(Struct, frozen=True, kw_only=True):
    """What mending an input came to: what its files become, how many findings went, and what is to be said of others.

    `unmended` is the result where the files stay as they are.
    """

    files: tuple[Edited, ...] = ()
    count: int = 0
    notes: tuple[str, ...] = ()
    unmended: NetworkResult | None = None


class Outcome(NamedTuple):
    """What became of one input; the result is that of the mended files, where there are any."""

    result: NetworkResult | None
    errors: list[InputError]
    fixed: Fixed | None = None
    reading: SourceReading | None = None  # of a part of an input, which is judged where all parts are
