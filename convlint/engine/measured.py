"""A network from a trace: its times are the measured ones, with notes on predictions that differ."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

from msgspec.structs import replace

from convlint.engine.timing import as_laid_out
from convlint.estimate import estimate_layer
from convlint.estimate.passes import held_to_measurement
from convlint.estimate.step import Steps, predicted_step
from convlint.facts.network import shortened
from convlint.files.languages import duration, plural
from convlint.gpus.gpu import load_gpu
from convlint.model.estimates import Part
from convlint.model.network import Network, RecordedStep
from convlint.model.runtime import default_mode

FAR_OFF = 1.5  # predicted over measured, or the other way round
_NAMES, _LONGEST = 3, 50  # names in one note, and characters in a name


def held_to_trace(network: Network, gpus: Sequence[str]) -> Network:
    """The network as it was recorded, with its times scaled to what was measured, and notes on other predictions.

    `gpus` are those that the user asks for; a single one stands in where the trace names no known one.
    """
    layers, like = [], gpus[0] if len(gpus) == 1 else ""
    for layer in network.layers:
        measured = layer.measured
        if measured is not None and (gpu := measured.gpu or like):
            layer = replace(layer, measured=replace(measured, gpu=gpu))
            layer = held_to_measurement(layer, load_gpu(gpu), network.runtime)
        layers.append(layer)
    recorded = network.recorded
    if recorded is not None:
        ran_on = next((layer.measured.gpu for layer in layers if layer.measured is not None), "")
        recorded = replace(recorded, gpu=ran_on)
    network = replace(network, layers=tuple(layers), recorded=recorded)
    recorded_on = {layer.measured.gpu for layer in layers if layer.measured is not None}
    if gpus and not recorded_on & set(gpus):
        names = " and ".join(sorted(recorded_on))
        notes = [f"measured on {names}, which --gpu does not name: all times are predicted"] if names else []
    else:
        network, notes = _compared(network)
    return replace(network, notes=(*network.notes, *notes))


def far_off(ratios: Sequence[tuple[str, float]]) -> str:
    """Which predictions are off by more than FAR_OFF, the most of all first; empty where none is.

    `ratios` are predicted over measured times with what each is of.
    """
    far = sorted(((abs(log(ratio)), f"{_short(name)} ({ratio:.2f})") for name, ratio in ratios), reverse=True)
    names = [name for distance, name in far if distance > log(FAR_OFF)]
    if not names:
        return ""
    predictions, shown = plural(len(ratios), "prediction"), shortened(names, _NAMES)
    return f"predicted over measured, {len(names)} of {predictions} off by more than a factor of {FAR_OFF:g}: {shown}"


def _short(name: str) -> str:
    """A name for a note; TensorRT joins those of all operations that it fuses."""
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


def _compared(network: Network) -> tuple[Network, list[str]]:
    """The network with what is predicted of its recorded step, and where predictions differ from measurements."""
    mode = network.mode or default_mode(network.runtime)
    us = turned_us = predicted_us = 0.0
    ratios: list[tuple[str, float]] = []
    without: dict[str, None] = {}
    running = as_laid_out(network, mode)
    for layer in running:
        measured = layer.measured
        if measured is None or not measured.gpu:
            continue
        estimate = estimate_layer(layer, load_gpu(measured.gpu), network.runtime, mode)
        for which, timed in measured.passes:
            predicted = None if estimate is None else estimate.predicted.get(which)
            if estimate is None or predicted is None:
                continue
            times = layer.calls * timed.times
            us, turned_us = us + timed.us * times, turned_us + timed.transpose * times
            predicted_us += predicted * times
            ratios.append((f"{layer.name} {which}", predicted / timed.us))
            if timed.tensor_cores is False and estimate.passes[which].tensor_cores:
                without[_short(layer.name)] = None
    recorded, notes = network.recorded, list[str]()
    if recorded is not None and recorded.mode != mode:
        notes = [f"recorded in {recorded.mode}, which does not tell the time of a whole step in {mode}"]
        recorded = None
    if recorded is not None and ratios:
        steps = Steps(network, running, us, network.runtime, mode)
        recorded = predicted_step(steps, recorded, load_gpu(recorded.gpu))
        works = [
            replace(work, predicted_us=predicted_us) if work.part == "convolution" else work for work in recorded.works
        ]
        recorded = replace(recorded, works=tuple(works))
        network = replace(network, recorded=recorded)
    notes += [] if recorded is None or len(recorded.parts) < 2 else _of_step(recorded)
    if not ratios:
        return network, notes
    turned = f", of which {duration(turned_us)} in transposes" if turned_us else ""
    notes.append(f"convolutions measured: {duration(us)} a step{turned}; predicted: {duration(predicted_us)}")
    notes.append(far_off(ratios))
    if without:
        notes.append(f"ran without Tensor Cores, where convlint predicts them: {shortened(list(without), _NAMES)}")
    return network, list(filter(None, notes))


def _of_step(recorded: RecordedStep) -> list[str]:
    """What all kernels took, by part, with what is predicted of them, and how long the step took while recorded."""
    parts, predicted = recorded.parts, recorded.predicted

    def in_words(part: Part, us: float) -> str:
        return f"{part} {duration(us)}" + (f" (predicted {duration(predicted[part])})" if part in predicted else "")

    shown = ", ".join(in_words(part, us) for part, us in sorted(parts.items(), key=lambda item: -item[1]))
    prediction = f", predicted {duration(sum(predicted.values()))}" if predicted.keys() == parts.keys() else ""
    notes = [f"kernels of a step: measured {duration(sum(parts.values()))}{prediction}: {shown}"]
    far = far_off([(part, predicted[part] / us) for part, us in parts.items() if part in predicted and us])
    if far and any(part != "convolution" for part in predicted):
        notes.append(f"parts of the step: {far}")
    if recorded.span_us:
        notes.append(f"a step took {duration(recorded.span_us)} on the host while it was recorded, which slows it down")
    return notes
