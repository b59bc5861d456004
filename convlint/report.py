"""What the engine says and the reporters print: findings, fixes, what was skipped, suppressed or unreadable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from msgspec import Struct, field

from convlint.model.layer import ConvLayer, Mode
from convlint.model.location import Location

if TYPE_CHECKING:  # names only: estimates are carried, never computed, here
    from convlint.estimate import LayerEstimate

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")  # gravest first
Scalar = int | float | str | bool


class Source(Struct, frozen=True, kw_only=True):
    """The document and section that a rule encodes."""

    document: str
    section: str


class Fix(Struct, frozen=True, kw_only=True):
    """What to change. `safe` keeps the network's results, `unsafe` changes the network.

    `set` maps a field of the layer (or `runtime.<setting>`) to its new value, as far as all layers of the finding
    share it; `by_layer` has what each of them gets, in their order. `time_change_us` is the plain difference that it
    makes per step (negative: faster), None where time cannot be predicted.
    """

    describe: str
    safety: Literal["safe", "unsafe"]
    set: Mapping[str, Scalar]
    by_layer: tuple[Mapping[str, Scalar], ...] = ()
    time_change_us: float | None = None
    states_effect: bool = False  # `describe` itself says what each alternative changes


class RuleInfo(Struct, frozen=True, kw_only=True):
    """A rule as reporters show it; the text is already safe to print."""

    code: str
    name: str
    title: str
    severity: Severity
    rationale: str
    source: Source


class Finding(Struct, frozen=True, kw_only=True):
    """One flaw at one place, with its evidence. `lost_us` and `lost_percent` (of the network) are None if unknown."""

    rule: RuleInfo
    severity: Severity
    message: str
    location: Location
    layer: str | None = None  # None: the network, the runtime or the target
    layers: tuple[str, ...] = ()  # the layers that a finding of the whole network joins
    gpu: str | None = None
    lost_us: float | None = None
    lost_percent: float | None = None
    fix: Fix | None = None
    fingerprint: str = ""


class Skipped(Struct, frozen=True, kw_only=True):
    """A rule that could not be checked, and the values that it needs."""

    code: str
    layer: str | None
    path: str
    needs: tuple[str, ...]


class Suppressed(Struct, frozen=True, kw_only=True):
    """A finding that the user silenced, with the reason given; `by` says where (comment, config or baseline)."""

    finding: Finding
    reason: str
    by: Literal["comment", "config", "baseline"]


class InputError(Struct, frozen=True, kw_only=True):
    """Something that could not be read or resolved."""

    path: str
    message: str
    line: int | None = None
    column: int | None = None
    internal: bool = False  # a defect of convlint itself: exit code 4


class LayerReport(Struct, frozen=True, kw_only=True):
    """One layer and its estimate on each target (None where time cannot be predicted)."""

    layer: ConvLayer
    estimates: Mapping[str, LayerEstimate | None] = field(default_factory=dict)


class Total(Struct, frozen=True, kw_only=True):
    """What all layers come to on one target; None where the time of one of them cannot be predicted.

    `lost_us` counts each layer once, with the largest loss of those of its errors and warnings that are shown.
    """

    gpu: str
    grade: str | None = None
    time_us: float | None = None
    lost_us: float | None = None


class Report(Struct, frozen=True, kw_only=True):
    """Everything one run found. `time_us`, `lost_us` and `grade` are those of each input on its first target.

    `mode` is that of the first input; a spec of another mode is estimated in its own.
    """

    version: str
    targets: tuple[str, ...]
    mode: Mode
    files: int
    layers: tuple[LayerReport, ...] = ()
    findings: tuple[Finding, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    suppressed: tuple[Suppressed, ...] = ()
    errors: tuple[InputError, ...] = ()
    rules: tuple[RuleInfo, ...] = ()  # every rule that was loaded, whether it fired or not
    sources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # path -> lines, for showing the place
    grade: str | None = None
    time_us: float | None = None
    lost_us: float | None = None
    totals: tuple[Total, ...] = ()  # one for each target

    @property
    def complete(self) -> bool:
        """Whether everything could be read and resolved."""
        return not self.errors

    def count(self, severity: Severity) -> int:
        """How many findings have this severity."""
        return sum(finding.severity == severity for finding in self.findings)
