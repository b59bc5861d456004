"""One run from paths to a report: read each input, resolve its targets and mode, check it, put the results together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module

from convlint.engine import Target, check_network
from convlint.errors import ConvlintError, InputFault, UsageError, shown
from convlint.gpu import load_gpu
from convlint.located_yaml import read_text
from convlint.model import Location, Mode, Network
from convlint.readers import MODULE_READER, READERS, SPEC_READER, ReadOptions, find_reader
from convlint.readers.inputs import Input
from convlint.report import InputError, Report
from convlint.results import NetworkResult, assemble
from convlint.rulebook import Rulebook

DEFAULT_TARGET = "a100"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What to check and for what; empty `gpus` and no `mode` leave both to the input, and that to the defaults."""

    gpus: tuple[str, ...] = ()
    mode: Mode | None = None
    default_gpus: tuple[str, ...] = (DEFAULT_TARGET,)
    default_mode: Mode = "training"
    reading: ReadOptions = field(default_factory=ReadOptions)


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
        import traceback

        place = traceback.extract_tb(error.__traceback__)[-1]
        message = (
            f"internal error: {type(error).__name__}: {error} ({place.name}, line {place.lineno}); please report it"
        )
        errors.append(InputError(path=path, message=message, internal=True))


def read_input(source: Input, options: ReadOptions) -> tuple[Network | None, tuple[InputError, ...]]:
    """The network in `source` through the reader that knows it."""
    path = source.name
    name = {"stdin": SPEC_READER, "module": MODULE_READER}.get(source.kind) or find_reader(path)
    if name is None:
        tail = path.rsplit("/", 1)[-1]
        if "." in tail.lstrip("."):
            message = f"no reader knows {shown(tail)}; known are {', '.join(READERS)} and package.module:name"
            return None, (InputError(path=path, message=message),)
        name = SPEC_READER
    reader = import_module(f"convlint.readers.{name}")
    result: tuple[Network | None, tuple[InputError, ...]] = reader.read(path, options)
    return result


def resolve_targets(names: Sequence[str]) -> list[Target]:
    """GPUs under the names given. Raises UsageError with the nearest names for an unknown one."""
    return [Target(label=name.strip(), gpu=load_gpu(name)) for name in dict.fromkeys(names)]


def check_input(source: Input, rulebook: Rulebook, job: Job) -> Outcome:
    """Reads and checks one input; everything wrong with it is a value. Raises RuleError and UsageError only."""
    errors: list[InputError] = []
    result = None
    with last_resort(errors, source.name):
        network, read_errors = read_input(source, job.reading)
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
    mode = job.mode or network.mode or job.default_mode
    if not targets:
        return None
    result = check_network(network, rulebook, targets, mode)
    return replace(result, code_lines=_code_lines(result))


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


def check_inputs(inputs: Sequence[Input], rulebook: Rulebook, job: Job) -> Report:
    """The report on all `inputs` under one rulebook, in their order; equal networks share estimates."""
    if job.gpus:
        resolve_targets(job.gpus)  # an unknown GPU is the caller's mistake, not each input's
    outcomes = check_tasks([(source, rulebook, job) for source in inputs])
    results = [result for result, _ in outcomes if result is not None]
    errors = [error for _, found in outcomes for error in found]
    return assemble(results, errors, rulebook, files=len(inputs))


def check_tasks(
    tasks: Sequence[Task], *, jobs: int = 1, on_done: Callable[[str], None] = lambda _: None
) -> list[Outcome]:
    """The outcome of each task, in their order whatever `jobs` is; `on_done` hears of each input that is done."""
    if jobs <= 1 or len(tasks) < 2:
        return [_told(check_input(*task), task[0].name, on_done) for task in tasks]
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    travelling = [(source, rulebook.folders, job) for source, rulebook, job in tasks]
    with ProcessPoolExecutor(min(jobs, len(tasks)), mp_context=get_context("spawn")) as pool:
        outcomes = pool.map(_check_in_process, travelling)
        return [_told(outcome, task[0].name, on_done) for outcome, task in zip(outcomes, tasks, strict=True)]


def _told(outcome: Outcome, path: str, on_done: Callable[[str], None]) -> Outcome:
    on_done(path)
    return outcome


@cache
def _rulebook(folders: tuple[str, ...]) -> Rulebook:
    """Of a worker process: rules hold code and cannot travel, so each process loads its own."""
    from convlint.rulebook import load_rulebook

    return load_rulebook(folders)


def _check_in_process(task: tuple[Input, tuple[str, ...], Job]) -> Outcome:
    source, folders, job = task
    return check_input(source, _rulebook(folders), job)
