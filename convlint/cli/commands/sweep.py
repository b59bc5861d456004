"""`convlint sweep`: one parameter of a layer varied; as a table, a chart in the terminal, CSV, SVG or PNG."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from functools import partial

from msgspec.structs import replace

from convlint.cli.commands.check import network_from_flags
from convlint.cli.streams.gate import style_of, write
from convlint.cli.streams.outputs import Presentation, deliver, files_of, inputs, refuse_clashes, replace_file
from convlint.engine.timing import as_laid_out, on_gpu
from convlint.estimate.sweep import (
    PARAMETERS,
    Metric,
    Series,
    Sweep,
    geometric,
    parse_values,
    passes_of,
    series,
    varies,
    vary,
)
from convlint.files.safe import clean
from convlint.mend.checking import DEFAULT_TARGET, Job, calibrated, calibrations_near, read_input, resolve_targets, say
from convlint.model.errors import UsageError, suggestion
from convlint.model.layer import ConvLayer
from convlint.model.network import Network
from convlint.model.report import InputError
from convlint.model.runtime import default_mode
from convlint.readers.inputs import Input
from convlint.readers.reading import Reading
from convlint.reporters import Style
from convlint.reporters.ink import shorten
from convlint.reporters.sweeps import X_LABELS, fixed, kind, render_csv, render_plot, render_table
from convlint.reporters.words import calibration_notes, fault
from convlint.run.plan import refuse_idle
from convlint.verdict.select import incomplete

_MOST_LINES = 24  # GPUs times passes: a chart with more lines cannot be read
_LONGEST_NAME = 100  # columns of a title


def run(
    flags: Mapping[str, str], source: Input | None, layer: str | None, figure: int | None, job: Job,
    shown: Presentation, metric: Metric | None, *, plot: bool | None,
) -> int:  # fmt: skip
    """Writes the sweep and returns 0, or 3 where a point has no time or the source has errors. Raises UsageError.

    Where `plot` is None, a terminal gets a chart and a file a table.
    """
    refuse_clashes(files_of(shown.outputs), inputs([source] if source is not None else []))
    errors: list[InputError] = []
    if figure is None:
        job = replace(job, calibrations=calibrations_near(source, isolated=job.isolated))
    sweep = _sweep(flags, source, layer, figure, job, errors)
    if sweep is None:
        return incomplete(errors) or 3
    metric = metric or "tflops"
    for place in shown.outputs:
        name, file = place.format, place.file
        if name in ("svg", "png"):
            from convlint.reporters.image_plot import render_image

            replace_file(str(file), render_image(sweep, metric, name))
        elif name == "csv":
            deliver(file, render_csv(sweep))
        else:
            style = style_of(sys.stdout, shown.color) if file is None else Style()
            charted = plot if plot is not None else file is None and sys.stdout.isatty()
            deliver(file, render_plot(sweep, metric, style) if charted else render_table(sweep, style), style)
    for reason, values in sweep.reasons.items():
        listed = ", ".join(map(str, values[:8])) + (f" and {len(values) - 8} more" if len(values) > 8 else "")
        write(sys.stderr, f"convlint: no time at {sweep.parameter} = {listed}: {clean(reason)}")
    return max(incomplete(errors), 3 if sweep.reasons else 0)


def _sweep(
    flags: Mapping[str, str], source: Input | None, layer: str | None, figure: int | None, job: Job,
    errors: list[InputError],
) -> Sweep | None:  # fmt: skip
    if figure is not None:
        _refuse_with_figure(flags, source, layer, job)
        from convlint.estimate.sweep import figure_sweep

        return figure_sweep(figure)
    parameter, values = _varied(flags)
    if source is None:
        if layer is not None:
            raise UsageError(
                "--layer names a layer of PATH or --model; give that too: convlint sweep PATH --layer NAME"
            )
        return _from_flags(flags, parameter, values, job)
    return _from_source(flags, parameter, values, source, layer, job, errors)


def _refuse_with_figure(flags: Mapping[str, str], source: Input | None, layer: str | None, job: Job) -> None:
    word = "PATH" if source is None or source.model is None else "--model"
    others = {word: source, "--layer": layer, "--gpu": job.gpus, "--mode": job.mode}
    given = [*map(_flag, flags), *(name for name, value in others.items() if value)]
    if given:
        raise UsageError(f"--figure brings its own layer and GPU; leave out {', '.join(given)}")


def _flag(name: str) -> str:
    return f"-{name}" if len(name) == 1 else f"--{name.partition('.')[0].replace('_', '-')}"


def _varied(flags: Mapping[str, str]) -> tuple[str, tuple[int, ...]]:
    """The one parameter with several values. Two values of stride or dilation are a pair where another one varies."""
    varying = [name for name in PARAMETERS if name in flags and varies(flags[name])]
    if len(varying) > 1:
        pairs = {name for name in ("stride", "dilation") if re.fullmatch("[^:,]*,[^:,]*", flags.get(name, ""))}
        varying = [name for name in varying if name not in pairs] or varying
    if len(varying) > 1:
        names = " and ".join(map(_flag, varying))
        raise UsageError(f"exactly one parameter may vary, not {names}; give all but one a single value")
    for name, text in flags.items():
        if ":" in text and name not in PARAMETERS and not name.startswith("runtime."):
            raise UsageError(f"{_flag(name)} cannot vary; {', '.join(map(_flag, PARAMETERS))} can")
    if not varying:
        raise UsageError("nothing varies: give one parameter a range or a list, such as -N 1:256 or -C 64,128,256")
    return varying[0], parse_values(_flag(varying[0]), flags[varying[0]])


def _from_flags(flags: Mapping[str, str], parameter: str, values: tuple[int, ...], job: Job) -> Sweep:
    by_value: dict[int, ConvLayer | UsageError] = {}
    for value in values:
        try:
            by_value[value] = network_from_flags({**flags, parameter: str(value)}).layers[0]
        except UsageError as error:
            by_value[value] = error

    def layer_at(value: int) -> ConvLayer:
        layer = by_value[value]
        if isinstance(layer, UsageError):
            raise layer
        return layer

    # Some values of a range may make no valid layer: the others are shown, and these named with their reason.
    layers = [layer for layer in by_value.values() if isinstance(layer, ConvLayer)]
    if not layers:
        layer_at(values[0])
    network = network_from_flags({name: text for name, text in flags.items() if name.startswith("runtime.")})
    sweep = _of_layers(layers, layer_at, parameter, values, network, job, name="")
    if all(point.estimate is None for line in sweep.series for point in line.points):
        raise UsageError(
            f"no time at any {_flag(parameter)}: {'; '.join(sweep.reasons)}; `convlint sweep --help` lists the flags"
        )
    return sweep


def _from_source(
    flags: Mapping[str, str], parameter: str, values: tuple[int, ...], source: Input, name: str | None, job: Job,
    errors: list[InputError],
) -> Sweep | None:  # fmt: skip
    others = [_flag(other) for other in flags if other != parameter]
    if others:
        raise UsageError(f"the layer's other values come from {source.name}; leave out {', '.join(others)}")
    if job.gpus:
        resolve_targets(job.gpus)
    refuse_idle(job.reading, [source])
    with Reading(on_output=say) as reading:
        network, read_errors = read_input(source, job, reading)
    errors += read_errors
    for error in errors:
        write(sys.stderr, f"convlint: error: {fault(error)}")
    if network is None or not network.layers:
        if not errors:
            write(sys.stderr, f"convlint: error: {clean(source.name)}: no convolution in it")
        return None
    chosen = _named(network, source.name, name)
    layers = [vary(chosen, parameter, value) for value in values]
    return _of_layers(
        layers, lambda value: vary(chosen, parameter, value), parameter, values, network, job, name=chosen.name
    )


def _named(network: Network, path: str, name: str | None) -> ConvLayer:
    names = [layer.name for layer in network.layers]
    matches = [layer for layer in network.layers if name is None or layer.name == name]
    if len(matches) == 1:
        return matches[0]
    some = ", ".join(map(clean, names[:6])) + (", ..." if len(names) > 6 else "")
    if name is None:
        raise UsageError(f"{path} has {len(names)} layers; name one with --layer: {some}")
    if not matches:
        raise UsageError(f"--layer: {path} has no layer {clean(name)!r}{suggestion(name, names)}; it has {some}")
    raise UsageError(f"--layer: {path} has {len(matches)} layers named {clean(name)!r}")


def _of_layers(
    layers: list[ConvLayer],
    layer_at: Callable[[int], ConvLayer],
    parameter: str,
    values: tuple[int, ...],
    network: Network,
    job: Job,
    *,
    name: str,
) -> Sweep:
    resolved = resolve_targets(job.gpus or network.targets or (DEFAULT_TARGET,))
    targets, uses = calibrated(resolved, network.runtime, job.calibrations)
    mode = job.mode or network.mode or job.default_mode or default_mode(network.runtime)
    passes = passes_of(layers, mode)
    varied = next((index for index, layer in enumerate(network.layers) if layer.name == name), 0)

    def running_at(network: Network, value: int) -> ConvLayer:
        """The layer as it runs among the others: in the framework's own layout, with the copies around it."""
        others = list(network.layers)
        others[varied] = layer_at(value)
        return as_laid_out(network, mode, others)[varied]

    if len(targets) * len(passes) > _MOST_LINES:
        raise UsageError(f"{len(targets)} GPUs are too many for one sweep; {_MOST_LINES // len(passes)} at most")
    lines: list[Series] = [
        series(
            f"{which}, {target.label}" if len(targets) > 1 else which, which, values, partial(running_at, running),
            (target.label, target.gpu), running.runtime,
        )
        for target, running in ((target, on_gpu(network, target.gpu)) for target in targets)
        for which in passes
    ]  # fmt: skip
    title = f"{shorten(clean(name), _LONGEST_NAME, '...')}: {parameter} varied" if name else f"{parameter} varied"
    return Sweep(
        title=f"{title}, {kind(layers[0])}",
        setting=f"{fixed(layers[0], parameter)} on {', '.join(target.gpu.name for target in targets)}",
        parameter=parameter,
        x_label=X_LABELS.get(parameter, parameter),
        series=tuple(lines),
        notes=("Predicted, not measured.", *calibration_notes(uses, several=len(targets) > 1)),
        log_x=geometric(values),
    )
