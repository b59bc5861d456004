"""Checking one input: read it, resolve its targets and mode, check its network; whatever is wrong is a value."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from msgspec import Struct, field
from msgspec.structs import replace

from convlint.engine.check import Target, check_network
from convlint.engine.results import NetworkResult
from convlint.errors import ConvlintError, InputFault, UsageError, defect
from convlint.files.located_yaml import read_text
from convlint.gpus.gpu import load_gpu
from convlint.model.layer import Mode
from convlint.model.location import Location
from convlint.model.network import Network
from convlint.readers import ReadOptions
from convlint.readers.inputs import Input
from convlint.readers.reading import Reading
from convlint.report import InputError
from convlint.rulebook.book import Rulebook
from convlint.verdict.silence import Silencer, Silencing

DEFAULT_TARGET = "a100"
MOST_CHECKS = 20_000  # layers times targets that an input may ask for itself


class Job(Struct, frozen=True, kw_only=True):
    """What to check and for what; empty `gpus` and no `mode` leave both to the input, and that to the defaults."""

    gpus: tuple[str, ...] = ()
    mode: Mode | None = None
    default_gpus: tuple[str, ...] = (DEFAULT_TARGET,)
    default_mode: Mode = "training"
    reading: ReadOptions = field(default_factory=ReadOptions)
    silencing: Silencing | None = None  # None: every rule counts


Task = tuple[Input, Rulebook, Job]
Outcome = tuple[NetworkResult | None, list[InputError]]


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


def check_input(source: Input, rulebook: Rulebook, job: Job, reading: Reading) -> Outcome:
    """Reads and checks one input; everything wrong with it is a value. Raises RuleError and UsageError only."""
    errors: list[InputError] = []
    result = None
    with last_resort(errors, source.name):
        network, read_errors = reading.read(source, job.reading)
        errors += read_errors
        if network is not None:
            result = _check(network, rulebook, job, errors)
    return result, errors


def _check(network: Network, rulebook: Rulebook, job: Job, errors: list[InputError]) -> NetworkResult | None:
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
        message = f"asks for {len(network.layers):,} layers on {len(targets)} GPUs; --gpu names those that matter"
        errors.append(InputError(path=network.path, message=message))
        return None
    mode = job.mode or network.mode or job.default_mode
    if not targets:
        return None
    result = judged(network, rulebook, targets, mode, job.silencing)
    return replace(result, code_lines=_code_lines(result))


def judged(
    network: Network, rulebook: Rulebook, targets: Sequence[Target], mode: Mode, silencing: Silencing | None
) -> NetworkResult:
    """The check of one network, without what is silenced, and with what is wrong with its suppressions."""
    if silencing is None:
        return check_network(network, rulebook, targets, mode)
    silencer = Silencer(network, rulebook, silencing)
    result = check_network(
        network,
        rulebook,
        targets,
        mode,
        codes=silencing.codes,
        silences=None if silencer.is_idle else silencer.silences,
        known=None if silencer.knows_nothing else silencer.is_known,
    )
    findings = (*result.findings, *silencer.of_comments(result.skipped))
    return replace(result, findings=findings, suppressed=silencer.suppressed)


def _code_lines(result: NetworkResult) -> dict[str, tuple[str, ...]]:
    """The lines of the user's modules that findings point into; one that cannot be read is shown without them."""
    lines = {}
    for path in {finding.location.path for finding in result.findings} - {result.path}:
        if path.endswith(".py"):
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
