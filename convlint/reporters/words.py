"""Words, numbers, addresses and notes that reporters have in common."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from convlint.files.languages import duration, plural, say, sentence
from convlint.files.safe import clean, clean_path
from convlint.model.errors import DEFECT
from convlint.model.estimates import WEAK, Part, Weakness, weakness
from convlint.model.layer import ConvLayer, Dtype, Mode
from convlint.model.location import Location
from convlint.model.report import (
    SEVERITIES,
    Alternative,
    Finding,
    Fix,
    InputError,
    LayerReport,
    LayerTimes,
    NetworkReport,
    NetworkTotal,
    Report,
    RuleInfo,
    Severity,
)
from convlint.model.runtime import STATED

if TYPE_CHECKING:
    from convlint.model.report import CalibrationUse


HOME = "https://github.com/convlint/convlint"
# All addresses of pages begin with it, those of the site itself too; it ends with a slash.
DOCS = "https://convlint.github.io/convlint/"


def first_steps() -> list[str]:
    """What to type for a first check: commands, and what each is for."""
    rows = (
        ("convlint check mypkg.models:Net --input 64x3x224x224", say("a PyTorch module")),
        ("convlint check model.onnx --gpu h100", say("an ONNX file")),
        ("convlint check .", say("the Python in a folder")),
        ("convlint init", say("entries for your models")),
    )
    width = max(len(command) for command, _ in rows)
    return [f"{command:{width}}  {what}" for command, what in rows]


def rule_page(code: str) -> str:
    """The path of a rule's page, below `DOCS`."""
    return f"rules/{code}.html"


def page_of(rule: RuleInfo) -> str:
    """The address of a rule's page; empty where it is a rule of the user's own, which has none."""
    return DOCS + rule_page(rule.code) if rule.built_in else ""


def shape(layer: ConvLayer, times: str, arrow: str) -> str:
    """What a layer is, in one line: `conv 7×7 stride 2, 3→64 channels, 224×224, fp16 NHWC`; unknown sizes are `?`."""
    taps = times.join(map(_known, (layer.T, layer.R, layer.S)[-layer.dims :]))
    size = times.join(map(_known, (layer.D, layer.H, layer.W)[-layer.dims :]))
    kind = say("transposed conv") if layer.op == "conv_transpose" else say("conv")
    words = f"{kind} {taps}"
    strides = (layer.StrideD, layer.U, layer.V)[-layer.dims :]
    dilations = (layer.DilD, layer.DilH, layer.DilW)[-layer.dims :]
    for word, values in ((say("stride"), strides), (say("dilation"), dilations)):
        if any(value != 1 for value in values):
            words += f" {word} {values[0] if len(set(values)) == 1 else times.join(map(str, values))}"
    parts = [words, say("{numbers} channels", numbers=f"{_known(layer.C)}{arrow}{_known(layer.K)}")]
    if layer.groups > 1:
        parts.append(say("depthwise") if layer.depthwise else say("{count} groups", count=layer.groups))
    parts.append(size)
    stored = [] if layer.dtype is None else [layer.dtype.value]
    if layer.layout != "auto":
        stored.append(_AXES.get(layer.dims, {}).get(layer.layout, layer.layout))
    if stored:
        parts.append(" ".join(stored))
    return say(", ").join(parts)


_AXES = {1: {"NCHW": "NCW", "NHWC": "NWC"}, 3: {"NCHW": "NCDHW", "NHWC": "NDHWC"}}  # layouts by dimensions


def _known(size: int | None) -> str:
    return "?" if size is None else str(size)


DOCUMENTS: Mapping[str, str] = {
    "convolutional-layers-guide": "NVIDIA Optimizing Convolutional Layers",
    "kepler-tuning-guide": "NVIDIA Tuning CUDA Applications for Kepler",
    "cuda-programming-guide": "NVIDIA CUDA C++ Programming Guide",
    "cuda-release-notes": "NVIDIA CUDA Toolkit Release Notes",
    "pytorch-tuning-guide": "PyTorch Performance Tuning Guide",
    "field-report": sentence("Field report"),
    "cost-model": sentence("convlint's cost model"),
    "gpu-table": sentence("convlint's table of GPUs"),
    "framework-table": sentence("convlint's table of frameworks"),
}
DOCUMENT_URLS: Mapping[str, str] = {
    "convolutional-layers-guide": "https://docs.nvidia.com/deeplearning/performance/dl-performance-convolutional/index.html",
    "kepler-tuning-guide": "https://docs.nvidia.com/cuda/archive/11.8.0/kepler-tuning-guide/index.html",
    "cuda-programming-guide": "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html",
    "cuda-release-notes": "https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/index.html",
    "pytorch-tuning-guide": "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
}
CHANGES: Mapping[str, str] = {  # what an unsafe fix does
    "network": sentence("changes the network"),
    "results": sentence("may change results"),
}

NOTHING_US, _NOTHING_PERCENT = 0.005, 0.005  # would be written as 0
_NUMBERS = "\x00"  # stands for sizes in a pattern
_NOTHING = sentence("nothing")


_SEVERITIES: Mapping[Severity, str] = {
    "error": sentence("error"),
    "warning": sentence("warning"),
    "info": sentence("info"),
}


def severity_word(severity: Severity) -> str:
    """The severity as a report for people names it."""
    return say(_SEVERITIES[severity])


def partly_read(report: Report) -> frozenset[str]:
    """The paths of inputs of which layers or code were read, also where they have errors."""
    reached = (network.path for network in report.networks if network.parameters)
    source = report.source
    code = () if source is None else (*source.files, *(cell.at.path for cell in source.unread_cells))
    return frozenset((*(entry.layer.path for entry in report.layers), *reached, *code))


def step(mode: Mode) -> str:
    """What times of a mode are of: a training step or a forward pass."""
    return say("training step") if mode == "training" else say("forward pass")


def asks_for_nothing(finding: Finding) -> bool:
    """An info that nobody would act on here.

    It says where time goes, its price is known and rounds to nothing, or all other widths take longer.
    """
    if finding.severity != "info":
        return False
    if finding.rule.loss == "tile" and finding.alternatives:
        changes = [alternative.time_change_us for alternative in finding.alternatives]
        if all(change_us is not None and change_us > 0 for change_us in changes):
            return True
    if finding.rule.evidence or finding.lost_us is None:
        return finding.rule.evidence
    if finding.advised and finding.lost_percent is not None and finding.lost_percent < _NOTHING_PERCENT:
        return True
    return not any(map(_is_something, (finding.lost_us, finding.lost_alone_us, finding.lost_capacity_us)))


def _is_something(time_us: float | None) -> bool:
    return time_us is not None and abs(time_us) >= NOTHING_US


def layer_of(finding: Finding) -> str:
    """The layer, and of a model of the config its name: `stem of segnet`; empty where it is about no layer alone."""
    if finding.layer is None:
        return ""
    model = finding.location.model
    layer = clean(finding.layer)
    return say("{layer} of {model}", layer=layer, model=clean(model)) if model else layer


def behind(finding: Finding) -> str:
    """The line of a library that builds the layer, where the finding points at the user's own; else empty."""
    return clean_path(finding.location.library) if finding.layer is not None else ""


def lost(finding: Finding) -> str:
    """`210 us, 2.3 % of the convolutions, only together with CL401`; what capacity costs; empty where neither is known.

    Empty too where the fix alone would save time, but not beside the other advice.
    """
    parts = [] if finding.lost_us is None else [_share(finding, finding.lost_us)]
    if finding.lost_step_us is not None and _is_something(finding.lost_step_us):
        parts.append(_of_step(finding.lost_step_us, finding.lost_step_percent))
    elif finding.lost_step_us is not None and _is_something(finding.lost_us):
        parts.append(say("nothing of the step"))
    if finding.lost_capacity_us is not None and _is_something(finding.lost_capacity_us):
        capacity = say("{time} paid for capacity that it does not use", time=duration(finding.lost_capacity_us))
        nothing = parts == [say(_NOTHING)]
        parts = [say("no time, but {capacity}", capacity=capacity)] if nothing else [*filter(None, parts), capacity]
    return say("; ").join(parts)


def named_in(finding: Finding) -> bool:
    """Whether the message itself names all of the layers, as "K=44 of Net.a" does."""
    names = finding.layers or ((finding.layer,) if finding.layer is not None else ())
    return bool(names) and not finding.location.model and all(_names(finding.message, name) for name in names)


def _names(message: str, layer: str) -> bool:
    if layer not in message:  # quicker than a pattern for each layer
        return False
    stated = say("{numbers} of {name}", numbers=_NUMBERS, name=layer)
    return (
        re.search(rf"(?<![A-Za-z0-9_]){re.escape(stated).replace(_NUMBERS, '[CK]=[0-9/.]+')}(?![A-Za-z0-9_.])", message)
        is not None
    )


def what_is_wrong(finding: Finding, several_targets: bool) -> str:
    """The message, with its layer where it names none, and with the GPU where there are several."""
    layer = f"{layer_of(finding)}: " if finding.layer is not None and not named_in(finding) else ""
    gpu = f" on {clean(finding.gpu)}" if several_targets and finding.gpu is not None else ""
    return f"{layer}{clean(finding.message)}{gpu}"


def finding_text(finding: Finding, several_targets: bool) -> str:
    """What is wrong, the library's line behind it, what it costs and what to change, one line each."""
    lines = [what_is_wrong(finding, several_targets)]
    if library := behind(finding):
        lines.append(f"Library: {library}")
    if price := lost(finding):
        lines.append(f"Lost: {price}")
    if finding.fix is not None:
        lines.append(f"Fix: {advice(finding.fix)}")
    if others := alternatives(finding):
        lines.append(f"Or: {others}")
    return "\n".join(lines)


def _share(finding: Finding, lost_us: float) -> str:
    if not _is_something(lost_us):
        return "" if _is_something(finding.lost_alone_us) else say(_NOTHING)
    text = price(lost_us, finding.lost_percent)
    if finding.lost_step_percent is not None and finding.lost_step_us is None and _is_something(lost_us):
        text += say(", {share} % of the step", share=two_digits(finding.lost_step_percent))
    if finding.pays_with:
        codes = say(" and ").join(company(finding.rule.code, finding.pays_with))
        text += say(_how_much(lost_us, finding.lost_alone_us), codes=codes)
    return text


def company(own: str, codes: Iterable[str]) -> list[str]:
    """The rules together with which a finding of the rule `own` pays; `own` among them is another finding of it."""
    return [say("another {code}", code=clean(code)) if code == own else clean(code) for code in codes]


def two_digits(percent: float) -> str:
    """`0.12`, `4.3`, `99`, `100`: the number with at most two significant digits."""
    return f"{float(f'{percent:.2g}'):g}"


def _of_step(lost_us: float, percent: float | None) -> str:
    """The time that a flaw of the whole step costs, and its share where the step is known."""
    if percent is None:
        return say("{time} of the step", time=duration(lost_us))
    return say("{time}, {share} % of the step", time=duration(lost_us), share=two_digits(percent))


def _how_much(lost_us: float, alone_us: float | None) -> str:
    """The words for how much of a price needs other fixes too: of joined layers, some may pay alone."""
    if alone_us is None or not _is_something(alone_us):
        return sentence(", only together with {codes}")
    if alone_us < lost_us / 2:
        return sentence(", most of it only together with {codes}")
    return sentence(", part of it only together with {codes}")


def price(lost_us: float, percent: float | None) -> str:
    """`210 us, 2.3 % of the convolutions`, as far as it is known."""
    if percent is None:
        return duration(lost_us)
    digits = 0 if percent >= 9.95 else 1 if percent >= 0.095 else 2
    return say("{time}, {share} % of the convolutions", time=duration(lost_us), share=f"{percent:.{digits}f}")


def change(fix: Fix) -> str:
    """What the fix does to the time: `210 us faster`, `alone 3 us slower`; empty where that is unknown."""
    if fix.time_change_us is None or fix.states_effect:
        return ""
    effect = (say("alone ") if fix.alone else "") + _difference(fix.time_change_us)
    is_apart = fix.time_change_us <= -NOTHING_US and not fix.advised
    return effect + say(", not in the total") if is_apart else effect


def _difference(change_us: float) -> str:
    if abs(change_us) < NOTHING_US:
        return say("no change in time")
    if change_us > 0:
        return say("{time} slower", time=duration(change_us))
    return say("{time} faster", time=duration(-change_us))


def advice(fix: Fix) -> str:
    """The whole fix in one line: `use C=64 (changes the network), 210 us faster`."""
    effect = change(fix)
    return say("{fix}, {effect}", fix=edit(fix), effect=effect) if effect else edit(fix)


def alternatives(finding: Finding) -> str:
    """`K=512 (42 us faster, work -2 %) or K=576 (3 us slower, work +11 %)`; empty where the fix says them, or none."""
    if finding.fix is not None and finding.fix.states_effect:
        return ""
    return say(" or ").join(map(_alternative, finding.alternatives))


def _alternative(alternative: Alternative) -> str:
    effects = [] if alternative.time_change_us is None else [_difference(alternative.time_change_us)]
    if alternative.work_change is not None and round(100 * alternative.work_change):
        effects.append(say("work {change:+.0f} %", change=100 * alternative.work_change))
    return clean(alternative.describe) + (say(" ({effect})", effect=say(", ").join(effects)) if effects else "")


def edit(fix: Fix) -> str:
    """The same without what it does to the time: `use C=64 (changes the network)`."""
    changes = say(" ({effect})", effect=say(CHANGES[fix.changes])) if fix.safety == "unsafe" else ""
    return clean(fix.describe) + changes


def origin(rule: RuleInfo) -> str:
    """`NVIDIA Optimizing Convolutional Layers, 4.4.3 Channels In And Out`."""
    known = DOCUMENTS.get(rule.source.document)
    document = say(known) if known else clean(rule.source.document).replace("-", " ")
    if not rule.source.section:
        return document
    return say("{document}, {section}", document=document, section=clean(rule.source.section))


def headline(finding: Finding, several_targets: bool) -> str:
    """`CL102 channel-alignment: message`, with the GPU where there are several."""
    gpu = f" [{clean(finding.gpu)}]" if several_targets and finding.gpu is not None else ""
    return f"{clean(finding.rule.code)} {clean(finding.rule.name)}: {clean(finding.message)}{gpu}"


def fault(error: InputError) -> str:
    """`path:line:column: message`, of something that could not be read."""
    return f"{place(error.path, error.line, error.column)}: {clean(error.message)}"


def without_kind(error: InputError) -> str:
    """Its message; of a defect of convlint without the words "internal error", beside a title that has them."""
    return clean(error.message).removeprefix(DEFECT if error.internal else "")


def place(path: str, line: int | None, column: int | None) -> str:
    """`path:line:column`, as far as known."""
    text = clean_path(path)
    if line is not None:
        text += f":{line}"
        if column is not None:
            text += f":{column}"
    return text


def place_of(at: Location) -> str:
    """The same of a location; in a notebook `train.ipynb:cell 3:5:9`, as its cells are what people see."""
    if at.cell is None:
        return place(at.path, at.line, at.column)
    cell, line, column = at.cell
    return f"{clean_path(at.path)}:cell {cell}:{line}" + ("" if column is None else f":{column}")


def gravest_first(findings: Iterable[Finding]) -> list[Finding]:
    """The findings by severity, and within one severity in the report's order."""
    return sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))


def totals(report: Report) -> tuple[NetworkTotal, ...]:
    """The totals for each target and mode; where there is one at most, that of the whole run."""
    if len(report.totals) > 1:
        return report.totals
    return () if report.total is None else (report.total,)


def verdicts(report: Report) -> Iterator[tuple[NetworkTotal, str]]:
    """The verdict on each total, in words too where one of several is unknown."""
    every = totals(report)
    batches = asking_for_a_batch(report)
    for total in every:
        but_compiled = is_to_compile(report, total.gpu)
        errors = has_errors(report, total.gpu)
        if text := verdict(total, asks_for_a_batch=total.gpu in batches, has_errors=errors, but_compiled=but_compiled):
            yield total, text
        elif len(every) > 1:
            yield total, say("time per {step} unknown", step=step(total.mode))


def asking_for_a_batch(report: Report) -> frozenset[str | None]:
    """The targets on which a warning asks for another batch."""
    return frozenset(
        finding.gpu
        for finding in report.findings
        if finding.severity == "warning" and finding.fix is not None and "N" in finding.fix.set
    )


def has_errors(report: Report, gpu: str) -> bool:
    """Whether layers are wrong on a target, so that its times are of what may not run."""
    return any(finding.severity == "error" and finding.gpu in (None, gpu) for finding in report.findings)


def is_to_compile(report: Report, gpu: str) -> bool:
    """Whether a warning on a target asks for torch.compile, whose effect on convolutions only the step counts."""
    return any(
        finding.severity == "warning" and finding.rule.loss == "compile" and finding.gpu in (None, gpu)
        for finding in report.findings
    )


def verdict(
    total: NetworkTotal, *, asks_for_a_batch: bool = False, has_errors: bool = False, but_compiled: bool = False
) -> str:
    """`45.7 ms of convolutions per training step, grade B; 38.0 ms with all of it`; empty where the time is unknown."""
    times = total.times
    if times is None:
        return ""
    now = say(
        "{time} of convolutions per {step}{pace}, grade {grade}",
        time=duration(times.time_us),
        step=step(total.mode),
        pace=say(" at the pace of the host (GPU: {time})", time=duration(total.gpu_us)) if total.waits else "",
        grade=times.grade,
    )
    after, is_saving = outcome(times)
    if after:
        then = say("{time} less with all of it", time=after) if is_saving else say("{time} with all of it", time=after)
        then += say(" but another batch") if asks_for_a_batch else ""
        then += say(", before torch.compile") if but_compiled else ""
    elif has_errors:
        then = say("its errors come first")
    elif asks_for_a_batch:
        then = say("no fix of theirs is advised but another batch")
    else:
        then = say("no fix of theirs is advised")
    return say("{now}; {then}", now=now, then=then)


_PARTS: Mapping[Part, str] = {
    "convolution": sentence("convolutions {share:.0f} %"), "linear": sentence("linear {share:.0f} %"),
    "attention": sentence("attention {share:.0f} %"), "normalisation": sentence("normalisation {share:.0f} %"),
    "pointwise": sentence("pointwise {share:.0f} %"), "copy": sentence("copies {share:.0f} %"),
    "pool": sentence("pooling and resizing {share:.0f} %"), "optimizer": sentence("optimizer {share:.0f} %"),
    "other": sentence("other {share:.0f} %"),
}  # fmt: skip
MOST_STEPS = 12  # lines on the networks of one run
_LEAST_PART = 0.01  # of a step; smaller ones are not named


def step_line(total: NetworkTotal, *, judged: bool = True) -> str:
    """`step 98 ms (1,306 images/s), 61 ms with all of it: convolutions 62 %, normalisation 21 %, ...`.

    The step is that of the only network; empty where it is unknown. Not `judged`: nothing is advised there.
    """
    time_us, after_us = total.step_us, total.step_after_us
    if time_us is None:
        return ""
    batch = total.networks[0].batch
    rate = say(" ({rate:,.0f} images/s)", rate=batch / time_us * 1e6) if batch else ""
    after = ""
    if judged and after_us is not None and after_us < time_us * (1 - _LEAST_PART):
        waits = any(network.after_waits for network in total.networks)
        pace = say(" at the pace of the host") if waits else ""
        after = say(", {time} with all of it{pace}", time=duration(after_us), pace=pace)
    parts = sorted(total.step_parts.items(), key=lambda part: -part[1])
    texts = [say(_PARTS[part], share=100 * us / time_us) for part, us in parts if us >= _LEAST_PART * time_us]
    idle_us = sum(step.idle_us for step in total.steps)
    if idle_us >= _LEAST_PART * time_us:
        texts.append(say("waiting for the host {share:.0f} %", share=100 * idle_us / time_us))
    return say(
        "step {time}{rate}{after}: {parts}", time=duration(time_us), rate=rate, after=after, parts=say(", ").join(texts)
    )


def step_lines(total: NetworkTotal, *, judged: bool = True) -> list[str]:
    """A line for the step of each network, the longest first; with names where there are several, not added up."""
    rows = [replace(total, networks=(network,)) for network in total.networks]
    rows = sorted((row for row in rows if row.steps), key=lambda row: -(row.step_us or 0.0))
    if len(total.networks) <= 1:
        return [step_line(row, judged=judged) for row in rows]
    lines = [
        say("{where}: {what}", where=clean_path(row.networks[0].path), what=step_line(row, judged=judged))
        for row in rows[:MOST_STEPS]
    ]
    more = len(rows) - len(lines)
    return [*lines, say("and {count} more: --output json", count=more)] if more else lines


def step_notes(report: Report) -> list[str]:
    """Of each network's step: which operations have no price, and their share of what is moved; what is assumed."""
    notes = []
    for path, network in {network.path: network for network in report.networks}.items():
        step = network.step
        where = say(" of {path}", path=clean_path(path)) if _several(report) else ""
        if step is not None and step.autocast_assumed:
            text = say("step{where}: 16-bit training is taken to run under autocast; if not: {setting}", where=where,
                       setting="--runtime mixed_precision=false")  # fmt: skip
            notes.append(text)
        if step is None or not step.unpriced:
            continue
        recorded = network.recorded
        works = [operation.work for operation in network.operations] if recorded is None else recorded.works
        operators = {work.op for number in step.unpriced if (work := works[number]) is not None}
        priced = say("step{where}: {operations} without a price, {share:.0f} % of what it moves: {names}")
        if recorded is not None:
            priced = "step{where}: {operations} of the trace, {share:.0f} % of its time, follow the bandwidth: {names}"
        notes.append(
            say(
                priced,
                where=where,
                operations=plural(len(step.unpriced), "operation"),
                share=100 * step.unpriced_share,
                names=", ".join(sorted(map(clean, operators))[:_NAMED]),
            )
        )
    return notes


_NAMED = 4  # operators that a note names


def outcome(times: LayerTimes) -> tuple[str, bool]:
    """The time with all advice taken; where that reads as the time now, what is saved, and True; empty without advice.

    All advice is every advised fix of a layer. Another batch is no part of it: its gain is one per image.
    """
    if times.time_us - times.after_us < NOTHING_US:
        return "", False
    after = duration(times.after_us)
    if after == duration(times.time_us):
        return duration(times.time_us - times.after_us), True
    return after, False


LIBRARIES = {"framework_version": "framework", "cuda": "CUDA", "cudnn": "cuDNN", "tensorrt": "TensorRT"}


def version_notes(report: Report) -> list[str]:
    """The versions that nobody stated, and where each is from; and the notes of the networks."""
    versions = dict.fromkeys(
        (LIBRARIES[name], value, origin)
        for network in report.networks
        for name, (value, origin) in network.versions.items()
        if origin != STATED
    )
    texts = [
        say("{library} {version} ({origin})", library=say(library), version=clean(value), origin=clean_path(origin))
        for library, value, origin in versions
    ]
    refused = dict.fromkeys(note for network in report.networks for note in network.notes)
    return [*([say("versions: {each}", each=say(", ").join(texts))] if texts else []), *map(clean, refused)]


_WEAK: Mapping[Weakness, str] = {
    "volumes": sentence("3-D convolutions"),
    "transposed groups": sentence("transposed convolutions with groups"),
}


def weak_notes(report: Report) -> list[str]:
    """Which layers are predicted with more than the usual error, and how far off they may be."""
    kinds = Counter(filter(None, (weakness(entry.layer) for entry in report.layers if any(entry.times.values()))))
    return [
        say("{layers}: mostly predicted at {low} to {high} of measured times", layers=say(text), low=low, high=high)
        for kind, text in _WEAK.items()
        if kind in kinds
        for low, high in (WEAK[kind],)
    ]


BASES = {
    "extrapolated": sentence("extrapolated from other GPUs"),
    "assumed": sentence("assumed, without any timings"),
}
_MEASURED = {"measured": sentence("held against timings of this generation")}


def basis_notes(report: Report) -> list[str]:
    """For each target on which some times do not rest on timings of its generation: what they rest on, and how many."""
    notes = []
    for gpu in report.targets:
        if text := _bases(report.layers, gpu, BASES):
            where = say(" on {targets}", targets=gpu) if len(report.targets) > 1 else ""
            notes.append(say("times{where}: {what}", where=where, what=text))
    return notes


def basis_in_short(report: Report) -> list[str]:
    """The same in one line for all targets: of how many layers at most."""
    notes = []
    for basis, text in BASES.items():
        counts = [
            sum(
                estimate is not None and estimate.basis == basis
                for estimate in (entry.estimates.get(gpu) for entry in report.layers)
            )
            for gpu in report.targets
        ]
        if most := max(counts, default=0):
            layers = plural(most, "layer")
            some = layers if min(counts) == most else say("up to {layers}", layers=layers)
            notes.append(say("{basis} for {layers}", basis=say(text), layers=some))
    return [say("times{where}: {what}", where="", what=say(", ").join(notes))] if notes else []


def basis_of(report: Report, gpu: str, mode: Mode) -> str:
    """What the times of one target and mode rest on, whatever that is; empty where none is known."""
    entries = [entry for entry in report.layers if entry.mode == mode]
    bases = _bases(entries, gpu, _MEASURED | BASES)
    used = [use for use in report.calibrations if use.gpu == gpu and not use.reason]
    calibrated = [_calibrated(use) for use in used]
    return say("; ").join([*calibrated, bases]) if bases else ""


def _bases(entries: Iterable[LayerReport], gpu: str, words: Mapping[str, str]) -> str:
    bases = [estimate.basis for entry in entries if (estimate := entry.estimates.get(gpu)) is not None]
    return say(", ").join(
        say("{basis} for {layers}", basis=say(text), layers=plural(sum(other == basis for other in bases), "layer"))
        for basis, text in words.items()
        if basis in bases
    )


def calibration_notes(uses: Iterable[CalibrationUse], *, several: bool) -> list[str]:
    """For each calibration: that times follow it, named where there are `several` targets; or why they do not."""
    notes = []
    for use in uses:
        where = say(" on {targets}", targets=use.gpu) if several else ""
        what = _calibrated(use)
        if use.reason:
            what = say("not calibrated by {file}: {reason}", file=clean_path(use.path), reason=clean(use.reason))
        notes.append(say("times{where}: {what}", where=where, what=what))
    return notes


def _calibrated(use: CalibrationUse) -> str:
    passes = say("1 pass") if use.rows == 1 else say("{count:,} passes", count=use.rows)
    return say("calibrated on {device}, {passes}", device=clean(use.device), passes=passes)


def host_notes(report: Report) -> list[str]:
    """For each input and target where the GPU waits for its host: how long either needs."""
    return [
        say(
            "times{where}: at the pace of the host, which needs about {host} for the convolutions and what follows "
            "them; the GPU needs {gpu}, and what fixes save shows on a host that keeps up",
            where=_where(report, network),
            host=duration(network.host_us or 0),
            gpu=duration(network.gpu_us or 0),
        )
        for network in report.networks
        if network.waits and network.step is None
    ]


def dtype_notes(report: Report) -> list[str]:
    """How many times rest on a dtype that is only that of stored weights or of modules as they are built.

    A file does not say what an engine runs it in, nor a module whether autocast is around it.
    """
    of = Counter(
        entry.layer.dtype_source
        for entry in report.layers
        if entry.layer.dtype == Dtype.fp32 and any(entry.times.values())
    )
    notes = []
    if of["storage"]:
        notes.append(
            say(
                "dtype: the weights of {layers} are stored in fp32, and may run in another one: --dtype says in which",
                layers=plural(of["storage"], "layer"),
            )
        )
    # What it would save is not said here: a finding has that of the layers that it judges, and autocast runs them all.
    fixes = [finding.fix for finding in report.findings if finding.fix is not None and not finding.advised]
    if of["module"] and any("dtype" in fix.set and _is_something(-(fix.time_change_us or 0.0)) for fix in fixes):
        notes.append(
            say(
                "dtype: fp32, as modules are built: --dtype fp32 says what autocast would save; if it runs them, say "
                "--dtype fp16 --runtime mixed_precision=true"
            )
        )
    return notes


def batch_notes(report: Report) -> list[str]:
    """Which networks get images without a batch, so that their times are those of one image."""
    unbatched = {network.path: network.unbatched for network in report.networks if network.unbatched}
    return [batch_note(sizes, clean_path(path) if _several(report) else "") for path, sizes in unbatched.items()]


def layout_notes(report: Report) -> list[str]:
    """Which networks state no layout, or one that need not run, if not all of them; and what they are priced as."""
    assumed = dict.fromkeys(network.path for network in report.networks if network.layout_assumed)
    count, notes = len({network.path for network in report.networks}), []
    for keras, text in (
        (False, sentence("layout{where}: not stated, and priced as NHWC; "
                         "--layout NCHW says what most frameworks run unasked")),
        (True, sentence("layout{where}: priced as NHWC, as TensorFlow and JAX choose; "
                        "in PyTorch channels_first is --layout NCHW")),
    ):  # fmt: skip
        paths = [clean_path(path) for path in assumed if path.endswith(".keras") is keras]
        where = say(" of {path}", path=paths[0]) if len(paths) in range(1, count) else ""
        if where and len(paths) > 1:
            where = say(" of {path} and {count} more", path=paths[0], count=len(paths) - 1)
        notes += [say(text, where=where)] if paths else []
    return notes


def batch_note(sizes: str, path: str = "") -> str:
    """A note that an input states no N, with what to write instead; `path` names it among several."""
    where = say(" of {path}", path=path) if path else ""
    return say(
        "batch{where}: an input of {sizes} states no N, and is priced as N = 1; write 64x{sizes}, say, for another",
        where=where,
        sizes=clean(sizes),
    )


def network_notes(report: Report) -> Iterator[str]:
    """Of each input: its parameters and FLOPs; of each target: what a step keeps in memory, and what fits."""
    seen: set[tuple[str, str]] = set()
    for network in report.networks:
        own = network.path, network.mode
        if own not in seen:
            seen.add(own)
            name = f"{clean_path(network.path)}: " if _several(report) else ""
            yield name + _size(network)
        yield f"memory{_where(report, network)}: {_memory(network)}"


def _several(report: Report) -> bool:
    return len({network.path for network in report.networks}) > 1


def _where(report: Report, network: NetworkReport) -> str:
    path = say(" of {path}", path=clean_path(network.path)) if _several(report) else ""
    return path + (say(" on {targets}", targets=clean(network.gpu)) if len(report.targets) > 1 else "")


def _size(network: NetworkReport) -> str:
    parameters = (
        "unknown parameters"
        if network.parameters is None
        else f"{count(network.parameters).strip()} parameters in convolutions"
    )
    if network.flops is None:
        return f"{parameters}, unknown FLOPs"
    per_image = network.flops / (network.batch or 1)
    work = f"{count(per_image)}FLOPs ({count(per_image / 2).strip()} multiply-adds) forward"
    if network.batch:
        work += f" per image, {count(network.flops)}FLOPs with N={network.batch}" if network.batch > 1 else " per image"
    return f"{parameters}, {work}"


def _memory(network: NetworkReport) -> str:
    if network.memory_needs:
        return f"unknown for want of {clean(', '.join(network.memory_needs))}"
    parts = sorted(((size, name) for name, size in network.memory.items() if size), reverse=True)
    words = f"{binary(sum(network.memory.values()))}"
    if network.capacity_bytes is not None:
        words += f" of {binary(network.capacity_bytes)}"
    words += f" ({', '.join(f'{name} {binary(size)}' for size, name in parts)})" if parts else ""
    if network.capacity_bytes is None:
        return f"{words}; the GPU's own is unknown"
    if network.largest_batch is None:  # its layers have several batches
        return words
    if not network.largest_batch:
        return f"{words}; not even one image fits"
    return f"{words}; room for N={network.largest_batch:,} at most, less what other layers keep"


def count(value: float) -> str:
    """Three significant digits and a decimal unit: `23.5 M`, `8.17 G`, `512 `."""
    return scaled(value, ("", "k", "M", "G", "T", "P", "E"), 1000, whole=1)


def binary(size: int) -> str:
    """Three significant digits and a binary unit: `14.2 GiB`, `512 B`."""
    return scaled(size, ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"), 1024, whole=1)


def scaled(value: float, units: Sequence[str], step: int, *, whole: int = 0) -> str:
    """Three significant digits and one of the `units`, each `step` times the one before.

    What is counted in the first `whole` units has no decimals.
    """
    power = 0
    while value >= 999.5 and power + 1 < len(units):
        value, power = value / step, power + 1
    digits = 0 if value >= 99.95 or power < whole else 1 if value >= 9.995 else 2
    return f"{value:.{digits}f} {units[power]}"
