"""Checking one input: read it, resolve its targets and mode, check its network; whatever is wrong is a value."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from convlint.engine.findings import NetworkResult, Target
from convlint.errors import ConvlintError, InputFault, UsageError, defect
from convlint.files.bounded_file import python_bytes, python_text
from convlint.files.located_yaml import read_text
from convlint.gpus.gpu import load_gpu
from convlint.linting.calibrating import Files, calibrated
from convlint.linting.fixed import Fixing
from convlint.linting.running import Running, as_it_runs
from convlint.model.layer import Allowance, Mode
from convlint.model.location import Location
from convlint.model.network import Network
from convlint.model.runtime import default_mode
from convlint.readers import ReadOptions
from convlint.readers.inputs import Input, Model
from convlint.readers.reading import Reading
from convlint.report import InputError
from convlint.rulebook.book import Rulebook
from convlint.verdict.suppress import Silencer, Silencing

if TYPE_CHECKING:  # source needs nothing of it
    from convlint.engine.check import OnPromise
    from convlint.engine.joint import Promise

DEFAULT_TARGET = "a100"
MOST_CHECKS = 20_000  # layers times targets that an input may ask for itself


class Job(Struct, frozen=True, kw_only=True):
    """What to check and for what; empty `gpus` and no `mode` leave both to the input, and that to the defaults.

    Where none has a mode, it is training, but for what has inference alone.
    """

    gpus: tuple[str, ...] = ()
    mode: Mode | None = None
    default_gpus: tuple[str, ...] = (DEFAULT_TARGET,)
    default_mode: Mode | None = None
    reading: ReadOptions = field(default_factory=ReadOptions)
    asked: Running = Running()  # of how inputs run, whatever they say themselves
    usual: Running = Running()  # the same where they say nothing
    calibrations: Files = ()  # of GPUs that the user measured
    silencing: Silencing | None = None  # None: every rule counts
    allow: frozenset[Allowance] = frozenset()  # what else may be advised
    isolated: bool = False  # no config is read
    fixing: Fixing | None = None  # None: nobody asks what could be mended
    image: tuple[int, ...] | None = None  # what models in Python source get
    entries: tuple[str, ...] = ()  # Python scripts that train, by the config

    def overridden(self) -> dict[str, str]:
        """Fields that an input may state as it likes, since the command line has the last word on them; why."""
        found = {f"runtime.{name}": f"--runtime {name} is given" for name in self.asked.settings}
        for name, value in (("dtype", self.asked.dtype), ("layout", self.asked.layout), ("batch", self.reading.batch)):
            if value is not None:
                found["N" if name == "batch" else name] = f"--{name} is given"
        return found

    def trains(self, source: Input) -> bool:
        """Whether a module is followed in train mode: as asked for, else where the mode is stated and is training."""
        model = source.model
        for said in (self.reading.trains, None if model is None else model.trains):
            if said is not None:
                return said
        return (self.mode or (model and model.mode) or self.default_mode) == "training"


Task = tuple[Input, Rulebook, Job]


class Checked(Struct, kw_only=True):
    """An input as it was read, as it runs and was checked, what was found in it, and what is wrong."""

    read: Network | None = None
    network: Network | None = None
    result: NetworkResult | None = None
    promises: dict[str, Promise] = field(default_factory=dict)  # by target: what all advice comes to
    errors: list[InputError] = field(default_factory=list)


@contextmanager
def last_resort(errors: list[InputError], path: str) -> Iterator[None]:
    """A defect of convlint itself becomes an error of the input at hand, and the other inputs go on."""
    try:
        yield
    except ConvlintError:
        raise
    except Exception as error:
        errors.append(InputError(path=path, message=defect(error), internal=True))


def resolve_targets(names: Sequence[str]) -> list[Target]:
    """GPUs under the names given. Raises UsageError with the nearest names for an unknown one."""
    return [Target(label=name.strip(), gpu=load_gpu(name)) for name in dict.fromkeys(names)]


def check_input(source: Input, rulebook: Rulebook, job: Job, reading: Reading) -> Checked:
    """Reads and checks one input; everything wrong with it is a value. Raises RuleError and UsageError only."""
    checked = Checked()
    with last_resort(checked.errors, source.name):
        network, read_errors = read_input(source, job, reading)
        checked.errors += read_errors
        if network is not None:
            checked.read, checked.network = network, as_asked(network, job)
            promises = checked.promises
            checked.result = check_read(checked.network, rulebook, job, checked.errors, promises.__setitem__)
    return checked


def read_input(source: Input, job: Job, reading: Reading) -> tuple[Network | None, tuple[InputError, ...]]:
    """The network of an input, as the config has it where that names it, and all that is wrong with it."""
    network, errors = reading.read(source, replace(job.reading, trains=job.trains(source)))
    if network is not None and source.model is not None:
        network = as_configured(network, source.model)
    return network, tuple(_placed(error, source) for error in errors)


def _placed(error: InputError, source: Input) -> InputError:
    """What is wrong with the entry of a model, where it stands; of one on the command line, there is no such place."""
    if not error.asked_wrong or source.model is None:
        return replace(error, asked_wrong="")
    line, column, _, _ = source.model.spans.get(error.asked_wrong) or source.model.spans["model"]
    message = f"{source.name}: {error.message}"
    return replace(error, path=source.model.path, line=line, column=column, message=message)


def check_read(
    network: Network, rulebook: Rulebook, job: Job, errors: list[InputError], on_promise: OnPromise | None = None
) -> NetworkResult | None:  # fmt: skip
    """The check of a network as it runs, on its targets; what is wrong goes to `errors`. None where that ends it.

    `on_promise` gets each target and what all advice comes to on it.
    """
    targets = []
    if job.gpus:
        targets = resolve_targets(job.gpus)
    else:
        for name in network.targets or job.default_gpus:
            try:
                targets += resolve_targets([name])
            except UsageError as error:
                place = _target_place(network)
                errors.append(
                    InputError(path=network.path, message=f"target: {error}", line=place.line, column=place.column)
                )
    if not network.layers and not errors:
        errors.append(InputError(path=network.path, message="nothing to check: no convolution in it"))
    if not job.gpus and len(targets) * len(network.layers) > MOST_CHECKS:
        gpus = "1 GPU" if len(targets) == 1 else f"{len(targets)} GPUs"
        message = f"asks for {len(network.layers):,} layers on {gpus}; --gpu names those that matter"
        errors.append(InputError(path=network.path, message=message))
        return None
    if not targets:
        return None
    network = replace(network, code_lines=_code_lines(network, job.reading.sources))
    result = judged(network, rulebook, targets, job.silencing, job.calibrations, allow=job.allow, on_promise=on_promise)
    return replace(result, code_lines={**network.code_lines, **_config_lines(network)})


def as_configured(network: Network, model: Model) -> Network:
    """The network with what the config says of this model."""
    runtime = replace(network.runtime, **model.settings, spans=model.spans)
    entry = {"layer": model.spans["model"]}
    layers = tuple(
        replace(layer, model=network.path, path=model.path, spans=entry)
        if layer.path == network.path
        else replace(layer, model=network.path)
        for layer in network.layers
    )
    return replace(
        network,
        layers=layers,
        runtime=runtime,
        mode=model.mode,
        targets=model.targets,
        spans=model.spans,
        settings_path=model.path,
    )


def as_asked(network: Network, job: Job) -> Network:
    """The network in the mode, and running, as is asked for: by the user, by itself, by the config."""
    network = replace(network, mode=job.mode or network.mode or job.default_mode)
    return as_it_runs(network, job.asked, job.usual)


def judged(
    network: Network, rulebook: Rulebook, targets: Sequence[Target], silencing: Silencing | None,
    calibrations: Files = (), **asked: Any,
) -> NetworkResult:  # fmt: skip
    """The check of one network on its targets as they are calibrated; what else is `asked` goes to `check_network`.

    Without what is silenced, and with what is wrong with its suppressions.
    """
    from convlint.engine.check import check_network  # source needs nothing of it

    mode = network.mode or default_mode(network.runtime)
    targets, uses = calibrated(targets, network.runtime, calibrations)
    if silencing is None:
        return replace(check_network(network, rulebook, targets, mode, **asked), calibrations=uses)
    silencer = Silencer(network, rulebook, silencing)
    result = check_network(
        network,
        rulebook,
        targets,
        mode,
        codes=silencing.codes,
        silences=None if silencer.is_idle else silencer.silences,
        known=None if silencer.knows_nothing else silencer.is_known,
        **asked,
    )
    findings = (*result.findings, *silencer.of_comments(result.skipped))
    return replace(
        result, findings=findings, suppressed=silencer.suppressed, until=silencer.until, calibrations=uses
    )  # fmt: skip


def _code_lines(network: Network, sources: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """The modules that build the network's layers; one that cannot be read goes without."""
    lines = {}
    for path in {layer.path for layer in network.layers} - {network.path}:
        with suppress(InputFault):
            if path.endswith(".py"):
                lines[path] = tuple(python_text(python_bytes(path, sources)).split("\n"))
    return lines


def _config_lines(network: Network) -> dict[str, tuple[str, ...]]:
    path, lines = network.settings_path, {}
    if path is not None:
        with suppress(InputFault):
            lines[path] = tuple(read_text(path).split("\n"))
    return lines


def _target_place(network: Network) -> Location:
    span = network.spans.get("target")
    return Location(path=network.path, line=span[0] if span else None, column=span[1] if span else None)


def say(text: str) -> None:
    """Passes on what the code of a module prints; never to standard output, where a report may go."""
    if sys.stderr is not None:
        sys.stderr.write(text)
        sys.stderr.flush()
