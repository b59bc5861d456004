"""What the engine says and the reporters print: findings, fixes, what was skipped, suppressed or unreadable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

from convlint.model.estimates import PARTS, Basis, LayerEstimate, Part, StepEstimate
from convlint.model.layer import ConvLayer, Loss, Mode
from convlint.model.location import CodeEdit, Location, TextEdit, WireRecord
from convlint.model.network import Operation, RecordedStep
from convlint.model.source import SourceReport

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")  # gravest first
FailOn = Literal["error", "warning", "info", "never"]  # the least severity that fails a run
FAIL_ON: tuple[FailOn, ...] = (*SEVERITIES, "never")
Scalar = int | float | str | bool
Identity = tuple[str, str, str, str, int]  # rule, path, layer, GPU, and the ordinal among those that share the rest


def fingerprint(identity: Identity) -> str:
    """The identity as 16 hexadecimal digits."""
    from hashlib import blake2b  # which loads OpenSSL, and many runs ask for no fingerprint

    return blake2b("\0".join(map(str, identity)).encode("utf-8", "replace"), digest_size=8).hexdigest()


class CalibrationUse(Struct, frozen=True, kw_only=True):
    """Whether a calibration is in force on a GPU; `reason` says why not, and is empty where it is."""

    path: str  # as shown to the user
    gpu: str  # id
    device: str
    rows: int
    cudnn: str | None
    reason: str = ""
    of_no_target: bool = False


class Source(Struct, frozen=True, kw_only=True):
    """The document and section that a rule encodes."""

    document: str
    section: str


class Fix(Struct, frozen=True, kw_only=True):
    """What to change. `safe` keeps results, `unsafe` changes the network, or by `changes` its results alone.

    `set` maps a field of the layer (or `runtime.<setting>`) to its new value where all layers of the finding share it,
    `by_layer` has that of each. `time_change_us` is the plain difference per step (negative: faster), None where time
    cannot be predicted. `edits` make it alone, where somebody asked for them: "unsafe" ones are no safe change.
    """

    describe: str
    safety: Literal["safe", "unsafe"]
    set: Mapping[str, Scalar]
    changes: Literal["network", "results"] = "network"
    by_layer: tuple[Mapping[str, Scalar], ...] = ()
    time_change_us: float | None = None
    states_effect: bool = False  # `describe` itself says what each alternative changes
    alone: bool = False  # `time_change_us` is another difference than the share that it has beside other advice
    advised: bool = True  # False: what it saves is no part of what all advice saves
    applicable: bool | None = None  # whether `--fix --unsafe-fixes` writes it; None: nobody asked
    edits: tuple[TextEdit, ...] = ()
    edits_safety: Literal["safe", "unsafe"] | None = None
    code_edits: tuple[CodeEdit, ...] = ()  # of the user's code, to be made together
    no_edit: str = ""  # the line of the code that would have to change, and why it is not edited


class Alternative(Struct, frozen=True, kw_only=True):
    """A change that nobody is advised to make, with its effect on the layers that it changes.

    `work_change` is that on their FLOPs, as a fraction: 0.33 is a third more.
    """

    describe: str
    set: Mapping[str, Scalar]
    time_change_us: float | None = None
    work_change: float | None = None


class RuleInfo(Struct, frozen=True, kw_only=True):
    """A rule as reporters show it. `loss` is what its price counts: what a fix saves, or what tiles or waves waste."""

    code: str
    name: str
    title: str
    severity: Severity
    rationale: str
    source: Source
    loss: Loss = "none"
    loss_passes: tuple[str, ...] = ()
    evidence: bool = False  # its infos say where time goes, and ask for nothing
    built_in: bool = False  # ships with convlint, whose documentation has a page for it


class Finding(Struct, frozen=True, kw_only=True):
    """One flaw at one place, with its evidence; times in us, None where there is no price.

    `lost_us` is its share of what all advice on its layers saves, `lost_percent` that of the time of the network's
    convolutions, `lost_alone_us` what it saves alone. Where that is under half the share, `pays_with` names the rules
    with whose fixes it earns it. `lost_capacity_us` is what the layers pay for tiles or waves that they do not fill:
    never part of a sum of times. `lost_step_us` is what a flaw of the whole step costs that; of a setting of the
    network, its share with what it saves of other operations. `basis` says what most of `lost_us` rests on.
    """

    rule: RuleInfo
    severity: Severity
    message: str
    location: Location
    layer: str | None = None  # None: the network, the runtime or the target
    layers: tuple[str, ...] = ()  # the layers that a finding of the whole network joins
    gpu: str | None = None
    advised: bool = False  # its fix is one of those that make its layers fastest
    lost_us: float | None = None
    lost_alone_us: float | None = None
    lost_capacity_us: float | None = None
    lost_percent: float | None = None
    lost_step_us: float | None = None
    lost_step_percent: float | None = None  # of the whole step, where that is known
    pays_with: tuple[str, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    basis: Basis | None = None
    fix: Fix | None = None
    identity: Identity | None = None
    identities: tuple[Identity, ...] = ()  # of what it joins, one for each layer

    @property
    def price_us(self) -> float | None:
        """What its fix saves: of the step where that is known, else of the convolutions."""
        return self.lost_us if self.lost_step_us is None else self.lost_step_us

    @property
    def fingerprint(self) -> str:
        """What stays the same when lines move; empty where there is none."""
        return "" if self.identity is None else fingerprint(self.identity)

    @property
    def fingerprints(self) -> tuple[str, ...]:
        """The fingerprints of the findings that it joins."""
        return tuple(map(fingerprint, self.identities))


class SkippedRule(Struct, frozen=True, kw_only=True):
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


class InputError(WireRecord, frozen=True, kw_only=True):
    """Something that could not be read or resolved."""

    path: str
    message: str
    line: int | None = None
    column: int | None = None
    internal: bool = False  # a defect of convlint itself: exit code 4
    asked_wrong: str = ""  # "model" or "inputs": what of an entry in the config cannot be right (exit code 2)


GRADES: tuple[tuple[float, str], ...] = ((0.90, "A"), (0.75, "B"), (0.60, "C"), (0.40, "D"))  # least ideal / time


class LayerTimes(Struct, frozen=True, kw_only=True):
    """Times in us of one layer, or of several, with all passes and calls."""

    time_us: float
    after_us: float  # with all advice taken
    ideal_us: float  # the same if no tile and no wave were wasted in it
    after_fix_us: float | None = None  # with what `--fix --unsafe-fixes` writes of the advice; None: not known

    @property
    def grade(self) -> str:
        """The letter: how close the time is to the best form that the advice in force can reach."""
        return self._letter(self.time_us)

    @property
    def grade_after(self) -> str:
        """The letter once all advice is taken."""
        return self._letter(self.after_us)

    def _letter(self, time_us: float) -> str:
        ratio = self.ideal_us / time_us if time_us > 0 else 1.0
        return next((letter for least, letter in GRADES if ratio >= least), "F")


class LayerReport(Struct, frozen=True, kw_only=True):
    """One layer in its mode, its estimate and its times on each target (None where time cannot be predicted)."""

    layer: ConvLayer
    estimates: Mapping[str, LayerEstimate | None] = field(default_factory=dict)
    times: Mapping[str, LayerTimes | None] = field(default_factory=dict)
    mode: Mode = "training"
    lacking: Mapping[str, str] = field(default_factory=dict)  # target -> what the framework lacks to run it there


class NetworkTotal(Struct, frozen=True, kw_only=True):
    """The total of the layers of one mode on one target; `times` is None where one of theirs is not predictable.

    `networks` are those that are added up. Where the step of each is known, there are `step_us` and the times of its
    parts.
    """

    gpu: str
    mode: Mode
    times: LayerTimes | None = None
    networks: tuple[NetworkReport, ...] = ()

    @property
    def steps(self) -> tuple[StepEstimate, ...]:
        """The steps of all networks; none where one of them is unknown."""
        known = tuple(network.step for network in self.networks if network.step is not None)
        return known if len(known) == len(self.networks) else ()

    @property
    def step_us(self) -> float | None:
        """The steps of all networks."""
        return sum(step.time_us for step in self.steps) if self.steps else None

    @property
    def step_after_us(self) -> float | None:
        """The same with all advice taken."""
        if not self.steps or any(network.step_after_us is None for network in self.networks):
            return None
        return sum(network.step_after_us or 0.0 for network in self.networks)

    @property
    def host_us(self) -> float | None:
        """The host's time for the steps; None where one is unknown."""
        known = [step.host_us for step in self.steps if step.host_us is not None]
        return sum(known) if known and len(known) == len(self.steps) else None

    @property
    def waits(self) -> bool:
        """Whether the times of the convolutions, with no step beside them, are what the host needs to start them."""
        return bool(self.networks) and all(network.step is None and network.waits for network in self.networks)

    @property
    def gpu_us(self) -> float:
        """The GPU's time for the convolutions, for which it waits for the host."""
        return sum((network.gpu_us or 0.0) - network.following_us for network in self.networks)

    @property
    def step_parts(self) -> Mapping[Part, float]:
        """The GPU's time for each part; empty where the step is unknown."""
        if not self.steps:
            return {}
        return {part: sum(step.parts.get(part, 0.0) for step in self.steps) for part in PARTS}

    @property
    def unpriced_operations(self) -> int:
        """How many operations have no price."""
        return sum(len(step.unpriced) for step in self.steps)

    @property
    def grade(self) -> str | None:
        """The letter of all layers."""
        return None if self.times is None else self.times.grade

    @property
    def time_us(self) -> float | None:
        """The time now."""
        return None if self.times is None else self.times.time_us

    @property
    def time_after_us(self) -> float | None:
        """The time with all advice taken."""
        return None if self.times is None else self.times.after_us

    @property
    def time_after_fix_us(self) -> float | None:
        """The time with what `--fix --unsafe-fixes` writes."""
        return None if self.times is None else self.times.after_fix_us

    @property
    def lost_us(self) -> float | None:
        """What all advice saves."""
        return None if self.times is None else self.times.time_us - self.times.after_us


class NetworkReport(Struct, frozen=True, kw_only=True):
    """What all convolutions of one input come to on one target; None is unknown, times in us, memory in bytes.

    `times` are those of all its layers, None where one of theirs is not predictable. `flops` are those of a forward
    pass at N=`batch`, two for a multiply-accumulate. `memory`, by kind, is that of a step at its fullest, empty where
    `memory_needs` names what is unknown. `largest_batch` fits into `capacity_bytes`. `step` is the whole step, where
    the reader tells of all `operations`, and `step_after_us` what all advice makes of it; `host_us` and `gpu_us` are
    then of the step.
    """

    path: str
    gpu: str
    mode: Mode
    batch: int | None = None
    unbatched: str = ""  # see Network
    layout_assumed: bool = False  # nobody says it: priced in NHWC
    layers: int = 0  # how many it has
    times: LayerTimes | None = None
    parameters: int | None = None
    flops: int | None = None
    memory: Mapping[str, int] = field(default_factory=dict)
    memory_needs: tuple[str, ...] = ()
    capacity_bytes: int | None = None
    largest_batch: int | None = None
    host_us: float | None = None
    gpu_us: float | None = None
    following_us: float = 0.0  # of the GPU's, what is taken to follow the convolutions, where no step is known
    step: StepEstimate | None = None
    step_after_us: float | None = None
    after_waits: bool = False  # in that step, the GPU waits for its host, and no advice is against it
    operations: tuple[Operation, ...] = ()
    versions: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # of libraries: the version, and who says so
    notes: tuple[str, ...] = ()  # those of the network
    recorded: RecordedStep | None = None  # what a trace tells of a step

    @property
    def waits(self) -> bool:
        """Whether the GPU waits for its host."""
        return self.host_us is not None and self.gpu_us is not None and self.gpu_us < self.host_us


class Report(Struct, frozen=True, kw_only=True):
    """Everything one run found. `total` is that of each input of this mode on its first target."""

    version: str
    targets: tuple[str, ...]
    mode: Mode  # of the first input; a spec of another mode is estimated, and added up, in its own
    files: int  # those of Python too
    layers: tuple[LayerReport, ...] = ()
    findings: tuple[Finding, ...] = ()
    skipped: tuple[SkippedRule, ...] = ()
    suppressed: tuple[Suppressed, ...] = ()
    errors: tuple[InputError, ...] = ()
    rules: tuple[RuleInfo, ...] = ()  # every rule that was loaded, whether it fired or not
    sources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # path -> lines, for showing the place
    total: NetworkTotal | None = None
    totals: tuple[NetworkTotal, ...] = ()  # one for each target and mode
    networks: tuple[NetworkReport, ...] = ()  # one for each input and target
    calibrations: tuple[CalibrationUse, ...] = ()  # those in force, and those that are not, with the reason
    fixable: int = 0  # findings that --fix would mend, and
    fixable_unsafe: int = 0  # how many more with --unsafe-fixes
    source: SourceReport | None = None  # of Python; None where none was given

    @property
    def complete(self) -> bool:
        """Whether everything could be read and resolved."""
        return not self.errors

    def count(self, severity: Severity) -> int:
        """How many findings have this severity."""
        return sum(finding.severity == severity for finding in self.findings)
