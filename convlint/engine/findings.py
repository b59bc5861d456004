"""From hits to what users read: hits of one cause joined, networks graded, results put together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import asdict

from convlint import __version__
from convlint.engine.hits import COUNT, LAYERS, Hit, Price, added
from convlint.estimate.host import Hosted
from convlint.estimate.memory import parameters
from convlint.facts.network import MemoryFacts, shortened
from convlint.facts.target import layout_picks
from convlint.gpus.gpu import Gpu, merged
from convlint.gpus.support import lack_of
from convlint.model.estimates import Basis, LayerEstimate
from convlint.model.layer import MODES, ConvLayer, Mode, flops
from convlint.model.location import Location
from convlint.model.network import Network
from convlint.model.report import (
    SEVERITIES,
    CalibrationUse,
    Finding,
    Fix,
    Identity,
    InputError,
    LayerReport,
    LayerTimes,
    NetworkReport,
    NetworkTotal,
    Report,
    Scalar,
    SkippedRule,
    Suppressed,
)
from convlint.model.runtime import STATED, VERSIONS, Runtime, framework_of
from convlint.model.source import SourceReport
from convlint.model.text import filled
from convlint.rulebook.book import Rulebook

Silences = Callable[[Finding], bool]  # whether the user silenced this finding; it has no price yet


class Target(Struct, frozen=True, kw_only=True):
    """A GPU under the name that the user gave it."""

    label: str
    gpu: Gpu


class NetworkResult(Struct, frozen=True, kw_only=True):
    """What the check of one network found."""

    path: str
    labels: tuple[str, ...]
    mode: Mode
    layers: tuple[LayerReport, ...]
    findings: tuple[Finding, ...]
    skipped: tuple[SkippedRule, ...]
    later: tuple[Finding, ...] = ()  # which come up once a baseline holds the others; known where one is written
    suppressed: tuple[Suppressed, ...] = ()
    until: date | None = None  # the last day on which no comment that silences something has expired
    networks: tuple[NetworkReport, ...] = ()  # this one, on each target
    calibrations: tuple[CalibrationUse, ...] = ()
    fixable: int = 0  # findings that --fix would mend, and
    fixable_unsafe: int = 0  # how many more with --unsafe-fixes
    weights_only: bool = False  # as `Network` has it
    source_lines: tuple[str, ...] | None = None
    code_lines: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # of the user's modules, by path
    source: SourceReport | None = None  # of Python that was read and not run; nothing of it has a time, or a target

    @property
    def silenced(self) -> frozenset[tuple[str, str | None]]:
        """The rules, by code, that the user silenced, each with the layer."""
        return frozenset((entry.finding.rule.code, entry.finding.layer) for entry in self.suppressed)


def assemble(results: Sequence[NetworkResult], errors: Iterable[InputError], rulebook: Rulebook, files: int) -> Report:
    """One report on all inputs; the result does not depend on the order in which they were checked."""
    timed = [result for result in results if result.source is None]
    mode: Mode = next((result.mode for result in timed or results), "training")
    findings = [finding for result in results for finding in result.findings]
    targets = tuple(dict.fromkeys(label for result in results for label in result.labels))
    return Report(
        version=__version__,
        targets=targets,
        mode=mode,
        files=files,
        layers=tuple(layer for result in results for layer in result.layers),
        findings=tuple(sorted(findings, key=_rank)),
        skipped=tuple(skip for result in results for skip in result.skipped),
        errors=tuple(errors),
        rules=tuple(rule.info for rule in rulebook.rules),
        sources={
            **{path: lines for result in results for path, lines in result.code_lines.items()},
            **{result.path: result.source_lines for result in results if result.source_lines},
        },
        networks=tuple(network for result in results for network in result.networks),
        calibrations=merged(use for result in results for use in result.calibrations),
        fixable=sum(result.fixable for result in results),
        fixable_unsafe=sum(result.fixable_unsafe for result in results),
        source=_source([result.source for result in results if result.source is not None]),
        total=_total(mode, [(result, result.labels[0]) for result in timed if result.mode == mode and result.labels]),
        totals=tuple(
            total
            for label in targets
            for mode in MODES
            if (total := _total(mode, [(r, label) for r in timed if label in r.labels and r.mode == mode])) is not None
        ),
    )


def _source(parts: Sequence[SourceReport]) -> SourceReport | None:
    """The sums of what was read of Python; None where nothing was."""
    if not parts:
        return None
    return SourceReport(
        files=tuple(path for part in parts for path in part.files),
        layers=tuple(layer for part in parts for layer in part.layers),
        given=sum(part.given for part in parts),
        quiet=sum(part.quiet for part in parts),
        constructions=sum(part.constructions for part in parts),
        known=sum(part.known for part in parts),
        programs=sum(part.programs for part in parts),
        unread=tuple(place for part in parts for place in part.unread),
        unread_files={path: why for part in parts for path, why in part.unread_files.items()},
        unread_cells=tuple(cell for part in parts for cell in part.unread_cells),
    )


def _total(mode: Mode, results: Sequence[tuple[NetworkResult, str]]) -> NetworkTotal | None:
    """The total of these inputs, each on the target with that label; None where there are none."""
    if not results:
        return None
    total = sum_of([entry.times.get(label) for result, label in results for entry in result.layers])
    networks = tuple(network for result, label in results for network in result.networks if network.gpu == label)
    return NetworkTotal(gpu=results[0][1], mode=mode, times=total, networks=networks)


def sum_of(times: Sequence[LayerTimes | None]) -> LayerTimes | None:
    """The times of several layers together; None where one is not known, or there is none."""
    known = [part for part in times if part is not None]
    if not known or len(known) < len(times):
        return None
    fixed = [part.after_fix_us for part in known if part.after_fix_us is not None]
    return LayerTimes(
        time_us=sum(part.time_us for part in known),
        after_us=sum(part.after_us for part in known),
        ideal_us=sum(part.ideal_us for part in known),
        after_fix_us=sum(fixed) if len(fixed) == len(known) else None,
    )


def _rank(finding: Finding) -> tuple[int, float, str, int, int]:
    """The gravest first; of equals what loses most, then by place."""
    at = finding.location
    return SEVERITIES.index(finding.severity), -(finding.lost_us or 0.0), at.path, at.line or 0, at.column or 0


def lacking(layer: ConvLayer, runtime: Runtime, mode: Mode, gpus: Mapping[str, Gpu]) -> dict[str, str]:
    """What the framework lacks to run the layer, by the labels of those `gpus` on which it cannot."""
    lacks = {label: lack_of(runtime, layer.dtype, mode, gpu) for label, gpu in gpus.items()}
    return {label: lack.says for label, lack in lacks.items() if lack is not None}


def flops_of(layers: Sequence[ConvLayer]) -> int | None:
    """FLOPs of one forward pass through the layers; None where a size is unknown."""
    work = [None if (own := flops(layer)) is None else own * layer.calls for layer in layers]
    return None if None in work else sum(count or 0 for count in work)


def network_report(
    network: Network, label: str, gpu: Gpu, mode: Mode, memory: MemoryFacts, on_host: Hosted,
    times: LayerTimes | None = None, step_after_us: float | None = None, *, details: bool = True,
) -> NetworkReport:  # fmt: skip
    """The network on `gpu`, called `label`, its memory there and its time; the largest batch only with `details`."""
    batches = {layer.N for layer in network.layers}
    needs = memory.needs or memory.needs_state
    return NetworkReport(
        path=network.path,
        gpu=label,
        mode=mode,
        layers=len(network.layers),
        times=times,
        batch=batches.pop() if len(batches) == 1 else None,
        parameters=parameters(network.layers),
        flops=flops_of(network.layers),
        memory={} if needs else asdict(memory.memory),
        memory_needs=needs,
        capacity_bytes=gpu.memory_bytes,
        largest_batch=memory.largest_batch if details and not needs else None,
        unbatched=network.unbatched,
        layout_assumed=_assumes_layout(network, on_host, mode),
        host_us=on_host.whole_host_us,
        gpu_us=on_host.whole_gpu_us,
        following_us=on_host.following_us,
        step=on_host.step,
        step_after_us=None if times is None else step_after_us,
        operations=network.operations if on_host.step is not None else (),
        versions={
            name: (str(version), network.origins.get(name, STATED))
            for name in VERSIONS
            if (version := getattr(network.runtime, name)) is not None
        },
        notes=(*network.notes, *_without_step(network, on_host)),
        recorded=network.recorded,
    )


_MOST_OPERATORS = 4  # that a note names


def _without_step(network: Network, on_host: Hosted) -> tuple[str, ...]:
    """A note that too much of the step has no price for it to be told."""
    if on_host.step is not None or not network.whole or None in on_host.estimates:
        return ()
    if any(layer.dtype is None for layer in network.layers):
        return ()
    works = [operation.work for operation in network.operations if operation.work is not None]
    operators = shortened(list(dict.fromkeys(work.op for work in works if work.kind == "unknown")), _MOST_OPERATORS)
    return (f"step unknown: too much of what it moves has no price ({operators})",)


def _assumes_layout(network: Network, on_host: Hosted, mode: Mode) -> bool:
    """Whether a layer on Tensor Cores is priced in NHWC although neither the user nor the framework set its layout."""
    runtime = network.runtime
    picks = layout_picks(runtime, network.layers, mode)
    if framework_of(runtime) == "onnxruntime" and runtime.tensorrt is not None:
        return False
    return any(
        layer.layout == "auto" and not layer.depthwise and not layer.pointwise_map and not picks[layer.dims != 2]
        and any(of_pass.tensor_cores for of_pass in estimate.passes.values())
        for layer, estimate in zip(network.layers, on_host.estimates, strict=True) if estimate is not None
    )  # fmt: skip


def layer_reports(
    network: Network,
    mode: Mode,
    gpus: Mapping[str, Gpu],
    estimates: Mapping[str, Sequence[LayerEstimate | None]],
    times: Mapping[str, Sequence[LayerTimes | None]],
) -> tuple[LayerReport, ...]:
    """Each layer with its estimate and its times on every target, by the target's label."""
    return tuple(
        LayerReport(
            layer=layer,
            estimates={label: estimates[label][index] for label in gpus},
            times={label: times[label][index] for label in gpus},
            mode=mode,
            lacking=lacking(layer, network.runtime, mode, gpus),
        )
        for index, layer in enumerate(network.layers)
    )


# Layers that say the same are joined from here on even where not all of the network's share it.
_MANY = 4


def joined(hits: Sequence[Hit], applicable: Mapping[str, int]) -> list[Hit]:
    """Hits in order; those that the rule's `join` puts together become one. `applicable`: layers, by code."""
    later = Counter(hit.rule.info.code for hit in hits if hit.emerged)
    groups: dict[tuple[str, ...], list[Hit]] = {}
    keys: list[tuple[str, ...] | None] = []
    for hit in hits:
        join = hit.rule.join
        key: tuple[str, ...] | None = None
        is_advice_for_many = bool(hit.follows) and hit.price.advised
        if join is not None and hit.flaw.join and may_join(hit, join.share) and not is_advice_for_many:
            # What one finding says must be true of all its layers: same words, same fix, good or not.
            fix = () if join.share == "all" and not hit.emerged else (hit.flaw.describe,)
            advised = "advised" if hit.price.advised else ""
            key = hit.rule.info.code, hit.severity, advised, hit.flaw.join_message, *fix, *_batch(hit)
            groups.setdefault(key, []).append(hit)
        keys.append(key)
    together = {key for key, group in groups.items() if _is_joined(group, later[key[0]], applicable.get(key[0]))}
    result = []
    for hit, key in zip(hits, keys, strict=True):
        if key is None or key not in together:
            result.append(hit)
        elif hit is groups[key][0]:
            result.append(_join(groups[key]))
    return result


def may_join(hit: Hit, share: Literal["all", "any", "info"]) -> bool:
    """Whether it may be said together with others: of `info`, one that is advised keeps its own line."""
    is_advised = hit.price.advised if hit.rule.loss != "none" else hit.severity != "info"
    return share != "info" or not is_advised


def _is_joined(group: Sequence[Hit], later: int, applicable: int | None) -> bool:
    """Whether the group becomes one hit; `all` requires every layer to which the rule applies, or many layers."""
    join = group[0].rule.join
    if join is None or len({index for hit in group for index in hit.fired or hit.indices}) < 2:
        return False  # one layer, perhaps with a finding on each of its sides
    if join.share != "all" or len(group) > _MANY:
        return True
    return len(group) == (later if all(hit.emerged for hit in group) else applicable)


def _batch(hit: Hit) -> tuple[str, ...]:
    """The batch that it asks for, which must be the same in all hits that join."""
    return (str(hit.sets[0].get("N")),) if hit.sets_batch else ()


def _join(group: list[Hit]) -> Hit:
    first = group[0]
    merged: dict[int, dict[str, Scalar]] = {}  # channels that layers share name them more than once
    own: dict[int, tuple[str, Identity]] = {}
    for hit in group:
        for index, name, changes, identity in zip(hit.indices, hit.names, hit.sets, hit.identities, strict=True):
            if hit.fired and index not in hit.fired:
                continue  # changes with others, and is no layer of which the rule speaks
            merged.setdefault(index, {}).update(changes)
            own.setdefault(index, (name, identity))
    names = tuple(name for name, _ in own.values())
    blanks = {COUNT: str(len(names)), LAYERS: shortened(names, 4)}
    return Hit(
        flaw=first.flaw,
        indices=tuple(merged),
        names=names,
        location=first.location,
        message=filled(first.flaw.join_message, blanks),
        sets=tuple(merged.values()),
        other=first.other if all(hit.other == first.other for hit in group) else {},
        severity=first.severity,
        number=first.number,
        identities=tuple(identity for _, identity in own.values()),
        price=_sum([hit.price for hit in group], one_change=first.sets_batch),
    )


def _sum(prices: list[Price], *, one_change: bool) -> Price:
    """What they cost together; None where one has no price. Another batch is one change for all."""
    return Price(
        lost_us=added([price.lost_us for price in prices]),
        alone_us=added([price.alone_us for price in prices]),
        capacity_us=added([price.capacity_us for price in prices]),
        change_us=prices[0].change_us if one_change else added([price.change_us for price in prices]),
        advised=any(price.advised for price in prices),
        pays_with=tuple(sorted({code for price in prices for code in price.pays_with})),
        basis=_basis(prices),
    )


def _basis(prices: Sequence[Price]) -> Basis | None:
    """The basis of most of the time that they lose."""
    lost: dict[Basis, float] = {}
    for price in prices:
        if price.basis is not None:
            lost[price.basis] = lost.get(price.basis, 0.0) + (price.lost_us or 0.0)
    return max(lost, key=lambda basis: lost[basis], default=None)


class Identities:
    """Rule, path, layer and GPU of each finding, and its ordinal among those that share the others."""

    def __init__(self) -> None:
        self._ordinals: dict[tuple[str, str | None, str | None], int] = {}

    def copied(self) -> Identities:
        """A copy that counts on independently."""
        others = Identities()
        others._ordinals.update(self._ordinals)
        return others

    def next(self, code: str, path: str, layer: str | None, gpu: str | None, *, keep: bool = True) -> Identity:
        """The next identity of these; without `keep` it is not counted, as its finding may never be reported."""
        key = code, layer, gpu
        ordinal = self._ordinals.get(key, 0) + 1
        if keep:
            self._ordinals[key] = ordinal
        return code, path, layer or "", gpu or "", ordinal


def location_of(places: Sequence[str], layer: ConvLayer | None, network: Network) -> Location:
    """Where the value that breaks the rule was written: in the layer, or among the network's settings."""
    if layer is not None:
        own = [name for name in places if name in layer.spans]
        if own or not any(name.startswith("runtime") or name in ("target", "mode") for name in places):
            return layer.locate(*own)
    for name in places:
        if name == "N":  # that of the network stands at its first layer that has one
            first = next((candidate for candidate in network.layers if "N" in candidate.spans), None)
            if first is not None:
                return first.locate("N")
        span = network.runtime.spans.get(name.removeprefix("runtime.")) or network.spans.get(name)
        if span is not None:
            path = network.settings_path or network.path
            model = network.path if network.settings_path is not None else ""
            return Location(path=path, line=span[0], column=span[1], end_line=span[2], end_column=span[3], model=model)
    return Location(path=network.path) if layer is None else layer.locate()


def home_of(location: Location) -> str:
    """The path in a finding's identity: the file, for a model of the config with the model's name before it."""
    return f"{location.model}: {location.path}" if location.model else location.path


def is_of_batch(hit: Hit) -> bool:
    """Whether a rule that is not on waves asks for another batch, which is the network's and not the layer's."""
    return hit.sets_batch and hit.rule.loss != "wave"


def finding_of(
    hit: Hit,
    gpu: str | None,
    identity: Identity,
    fix: Fix | None = None,
    network_us: float | None = None,
    step_us: float | None = None,
    *,
    in_report: bool = False,
) -> Finding:
    """The finding of a hit; `network_us` and `step_us` are the time of all layers and of the whole step.

    One that is not `in_report`, only compared with silences, names its layer even where it is on the network's batch.
    """
    price = hit.price
    lost_us = price.lost_us
    is_one = len(hit.names) == 1 or bool(hit.follows)
    of_layer = is_one and not (in_report and is_of_batch(hit))
    return Finding(
        rule=hit.rule.info,
        severity=hit.severity,
        message=hit.message,
        location=hit.location,
        layer=hit.names[0] if of_layer else None,
        layers=() if len(hit.names) == 1 and of_layer else hit.names,
        gpu=gpu,
        advised=price.advised,
        lost_us=lost_us,
        lost_alone_us=price.alone_us,
        lost_capacity_us=price.capacity_us,
        lost_percent=_percent_of(lost_us, network_us),
        lost_step_us=price.lost_step_us,
        lost_step_percent=_percent_of(lost_us if price.lost_step_us is None else price.lost_step_us, step_us),
        pays_with=price.pays_with,
        basis=price.basis,
        fix=fix,
        identity=identity,
        identities=() if (len(hit.names) == 1 and of_layer) or not hit.names else hit.identities,
    )


def _percent_of(part_us: float | None, whole_us: float | None) -> float | None:
    return 100 * part_us / whole_us if part_us is not None and whole_us else None
