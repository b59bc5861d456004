"""One input: read, its targets and mode resolved, its network checked; whatever is wrong is a value."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from convlint import __version__
from convlint.config.find import Config, Configs, shown_path
from convlint.engine.findings import NetworkResult, Target
from convlint.estimate.constants import unchanged_since
from convlint.files.bounded_file import open_regular, python_bytes, python_text
from convlint.files.located_yaml import MAX_BYTES, Value, read_text
from convlint.files.patterns import pattern
from convlint.fixes.plan import applicability, is_asked_batch
from convlint.gpus.gpu import Calibration, CalibrationFile, Gpu, load_gpu
from convlint.model.errors import ConvlintError, InputFault, UsageError, defect
from convlint.model.layer import Allowance, ConvLayer, Dtype, Layout, Mode
from convlint.model.location import Span
from convlint.model.network import Network
from convlint.model.report import CalibrationUse, Finding, InputError
from convlint.model.runtime import Runtime, Version, default_mode, framework_of
from convlint.model.source import SourceReading
from convlint.readers import ReadOptions
from convlint.readers.inputs import Input, Model
from convlint.readers.reading import Reading
from convlint.rulebook.book import Rulebook
from convlint.verdict.baseline import baseline_of, known_of
from convlint.verdict.select import Selection, counts
from convlint.verdict.suppress import Silencer, Silencing

if TYPE_CHECKING:
    from convlint.config.toml_source import Spot
    from convlint.engine.check import OnPromise
    from convlint.engine.joint import Promise


_NUMBERS = pattern(r"\d+(?:\.\d+)*")
Files = tuple[CalibrationFile, ...]


def calibrations_of(config: Config) -> Files:
    """The calibrations that a config names. Raises UsageError with the place for one that cannot be used."""
    if not config.calibration:
        return ()
    from convlint.config.calibration import read_calibration

    files: dict[str, CalibrationFile] = {}
    for word in config.calibration:
        file = read_calibration(word.text, shown_path(word.text))
        known = files.setdefault(file.calibration.gpu, file)
        if known is not file:
            word.at.fail(f"{file.path} and {known.path} are both for {file.calibration.gpu}; name one of them")
    return tuple(files.values())


def calibrations_near(source: Input | None, *, isolated: bool) -> Files:
    """Those of the config that is closest to an input, where no options say which config holds. Raises UsageError.

    For what is no file, and for None, that of the current folder. `isolated` reads no config.
    """
    configs = Configs(isolated=isolated)
    is_file = source is not None and source.kind == "file"
    return calibrations_of(configs.of(source.name) if is_file and source else configs.of_folder(os.getcwd()))


def calibrated(
    targets: Sequence[Target], runtime: Runtime, files: Files
) -> tuple[list[Target], tuple[CalibrationUse, ...]]:
    """The targets with their calibrations, and of each file whether it is in force."""
    uses, in_force = [], {}
    ids = {target.gpu.id for target in targets}
    for file in files:
        gpu = file.calibration.gpu
        reason = _reason(file, runtime) if gpu in ids else f"it is for {gpu}, which is no target"
        if not reason:
            in_force[gpu] = file.calibration
        cudnn = None if file.origin.cudnn is None else str(file.origin.cudnn)
        uses.append(
            CalibrationUse(
                path=file.path, gpu=gpu, device=file.origin.device, rows=file.calibration.rows, cudnn=cudnn,
                reason=reason, of_no_target=gpu not in ids,
            )
        )  # fmt: skip
    result = [
        replace(target, gpu=_with(target.gpu, in_force[target.gpu.id])) if target.gpu.id in in_force else target
        for target in targets
    ]
    return result, tuple(uses)


@lru_cache(maxsize=64)
def _with(gpu: Gpu, calibration: Calibration) -> Gpu:
    """One and the same for all inputs, so that they share estimates."""
    return replace(gpu, calibration=calibration)


def _reason(file: CalibrationFile, runtime: Runtime) -> str:
    """Why a calibration of a target does not hold; empty where it does."""
    origin, calibration = file.origin, file.calibration
    if calibration.error_after > calibration.error_before:
        return "it makes predictions worse: its error_after is above its error_before"
    since = unchanged_since(origin.compute_capability)
    if not since <= tuple(_numbers(origin.convlint)[:2]) <= tuple(_numbers(Version(__version__))[:2]):
        return f"its errors are those of convlint {origin.convlint}, and estimates have changed: measure again"
    if origin.cudnn is not None and runtime.cudnn is not None and _differ(origin.cudnn, runtime.cudnn):
        return f"it was measured with cuDNN {origin.cudnn}, and the runtime has {runtime.cudnn}"
    measured, running = origin.framework, framework_of(runtime) or "pytorch"
    if measured is not None and (measured == "tensorrt") != (running == "tensorrt"):
        return f"it was measured in {measured}, and {running} has other kernels"
    return ""


def _differ(version: Version, other: Version) -> bool:
    """Whether two versions differ as far as both are given: 9.1 is 9.1.0, and 9 is either."""
    return any(a != b for a, b in zip(_numbers(version), _numbers(other), strict=False))


def _numbers(version: Version) -> Sequence[int]:
    match = _NUMBERS.match(version.text.strip())
    return [int(number) for number in match[0].split(".")] if match else []


class Fixing(Struct, frozen=True, kw_only=True):
    """Which findings are to be mended: those that count or are advised, and whose fix can be applied.

    Where nothing counts, warnings do. What is advised is mended all together, since it pays together. `mends` false:
    only their number is reported. `proposes`: findings carry the edits of their own fix.
    """

    selection: Selection
    unsafe: bool = False
    mends: bool = False
    proposes: bool = False

    def counting(self, findings: Iterable[Finding]) -> list[Finding]:
        """Those that count, the gravest first."""
        policy = self.selection.policy
        policy = replace(policy, fail_on="warning") if policy.fail_on == "never" else policy
        selected = [
            finding
            for finding in self.selection.of(findings)
            if finding.fix is not None and (counts(finding, policy) or is_advice(finding) or _is_for_all(finding))
        ]
        return sorted(selected, key=lambda finding: (finding.severity != "error", -(finding.lost_us or 0.0)))

    def mendable(self, findings: Iterable[Finding]) -> list[Finding]:
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
    """The result of mending an input: its new files, the number of fixed findings, and notes on others.

    `unmended` is the result where the files stay as they are.
    """

    files: tuple[Edited, ...] = ()
    count: int = 0
    notes: tuple[str, ...] = ()
    unmended: NetworkResult | None = None


class InputResult(Struct, frozen=True):
    """The outcome of one input; the result is that of the mended files, where there are any."""

    result: NetworkResult | None
    errors: list[InputError]
    fixed: Fixed | None = None
    reading: SourceReading | None = None  # of a part of an input, which is judged where all parts are


_NOWHERE: Span = (0, 0, 0, 0)


class Running(Struct, frozen=True, kw_only=True):
    """How inputs run, as the user or the config states it; what is not stated is left out of `settings`, or None."""

    settings: Mapping[str, Any] = {}
    dtype: Dtype | None = None
    layout: Layout | None = None
    versions: str | None = None  # auto, none, or the file that pins them
    release: str | None = None  # of whichever framework runs, with what its wheel brings along, whatever else is stated
    pinned: bool = False  # what the file of `versions` pins counts, whatever else is stated


def value_of(raw: object) -> Value:
    """A setting of the command line or of TOML, as YAML would hold it."""
    if isinstance(raw, bool):
        return Value("true" if raw else "false", _NOWHERE, plain=True)
    if isinstance(raw, int | float):
        return Value(str(raw), _NOWHERE, plain=True)
    return Value(raw, _NOWHERE)


def settings_of(given: Mapping[str, Value]) -> dict[str, Any]:
    """Settings of the runtime as a spec has them. Raises InputFault for each that is none."""
    from convlint.readers.spec.reader import runtime_of

    runtime, errors = runtime_of(Value(dict(given), _NOWHERE) if given else None)
    if errors:
        raise InputFault("; ".join(error.message for error in errors))
    return {name: getattr(runtime, name) for name in runtime.spans}


def settings_in_config(entries: Mapping[str, tuple[object, Spot]]) -> dict[str, Any]:
    """Settings of the runtime as a config has them. Raises UsageError with the place of one that is none."""
    settings: dict[str, Any] = {}
    for name, (raw, at) in entries.items():
        try:
            settings |= settings_of({name: value_of(raw)})
        except InputFault as fault:
            at.fail(fault.message)
    return settings


def pairs_of(options: Iterable[str]) -> dict[str, str]:
    """`--runtime KEY=VALUE`, each key once. Raises UsageError."""
    pairs: dict[str, str] = {}
    for option in options:
        key, separator, text = option.partition("=")
        if not separator:
            raise UsageError(f"--runtime: {option!r} is not KEY=VALUE")
        if key in pairs:
            raise UsageError(f"--runtime: {key} is given twice")
        pairs[key] = text
    return pairs


def from_options(runtime: Sequence[str], dtype: str | None, layout: str | None, versions: str | None = None) -> Running:
    """`--runtime KEY=VALUE`, `--dtype`, `--layout` and `--versions`. Raises UsageError that names the option."""
    from convlint.readers.spec.fields import dtype_of, layout_of

    try:
        settings = settings_of({key: Value(text, _NOWHERE, plain=True) for key, text in pairs_of(runtime).items()})
    except InputFault as fault:
        raise UsageError(f"--runtime: {fault.message}") from None
    try:
        return Running(
            settings=settings,
            dtype=None if dtype is None else dtype_of(Value(dtype, _NOWHERE)),
            layout=None if layout is None else layout_of(Value(layout, _NOWHERE)),  # type: ignore[arg-type]
            versions=versions,
        )
    except InputFault as fault:
        raise UsageError(f"--{fault.message}") from None


def with_versions(network: Network, job: Job) -> Network:
    """The network with the versions that nobody states: those that lock files near it pin, where they may be read."""
    is_file = os.path.lexists(network.path)
    is_module = not is_file and (":" in network.path or network.settings_path is not None)
    folder = None if is_module else os.path.dirname(network.path) if is_file else os.curdir
    runtime, origins, notes = versioned(network.runtime, folder, job)
    if runtime is network.runtime and not notes:
        return network
    return replace(network, runtime=runtime, origins=origins, notes=(*network.notes, *notes))


def versioned(runtime: Runtime, folder: str | None, job: Job) -> tuple[Runtime, Mapping[str, str], tuple[str, ...]]:
    """(the runtime with the versions that it leaves open, where each is from, what could not be taken and why).

    They are pinned near `folder`; None: what runs here has what is installed here. Raises UsageError for a file that
    somebody named and that cannot be read.
    """
    from convlint.config.environment import (
        environment_in,
        environment_near,
        environment_of,
        installed_beside,
        refuse_unknown,
        settings_from,
        wheel_in,
    )

    where = job.asked.versions or job.usual.versions or ("none" if job.isolated else "auto")
    stated = runtime
    if job.asked.release is not None or job.asked.pinned:
        runtime = replace(runtime, framework_version=None, cuda=None, cudnn=None, tensorrt=None)
    if job.asked.release is not None:
        refuse_unknown(job.asked.release, runtime)
        environment = environment_of(job.asked.release)
    elif where == "none":
        return runtime, {}, ()
    elif where == "auto":
        pinned = environment_near(folder or os.curdir, job.top)
        environment = pinned if folder is not None else installed_beside(pinned)
    else:
        try:
            environment = environment_in(where)
        except InputFault as fault:
            raise UsageError(f"--versions: {where}: {fault.message}") from None
    settings, origins = settings_from(environment, runtime)
    # What neither a release nor a file speaks of stays as it is stated; but each wheel of PyTorch has its own.
    if runtime is not stated and (job.asked.release is None or framework_of(runtime) != "pytorch"):
        unchanged = {name: getattr(stated, name) for name in ("cuda", "cudnn") if name not in settings}
        runtime = replace(runtime, **unchanged)
    result = replace(runtime, **settings) if settings else runtime
    wheel = wheel_in(environment, result)
    return replace(result, wheel=wheel) if wheel is not None else result, origins, environment.notes


def as_it_runs(network: Network, asked: Running, usual: Running) -> Network:
    """The network as it will run: `asked` replaces what it states, `usual` adds what it does not."""
    layers = tuple(_layer(layer, asked, usual) for layer in network.layers)
    stated = _stated(network.runtime) - ({"framework"} if network.stored else set())  # which the file was written by
    settings = {name: value for name, value in usual.settings.items() if name not in stated} | dict(asked.settings)
    if "tensorrt" in asked.settings and (network.stored or framework_of(network.runtime) is None):
        settings.setdefault("framework", "tensorrt")  # whoever asks about a release of it means to run it
    spans = {name: span for name, span in network.runtime.spans.items() if name not in asked.settings}
    return replace(network, layers=layers, runtime=replace(network.runtime, **settings, spans=spans))


def _stated(runtime: Runtime) -> set[str]:
    """The settings that an input states itself."""
    unsaid = Runtime()
    differing = {name for name in Runtime.__struct_fields__ if getattr(runtime, name) != getattr(unsaid, name)}
    return differing | set(runtime.spans)


def _layer(layer: ConvLayer, asked: Running, usual: Running) -> ConvLayer:
    changes: dict[str, Any] = {}
    dtype = asked.dtype
    if dtype is None and (layer.dtype is None or layer.dtype_source != "stated"):
        dtype = usual.dtype
    if dtype is not None and (layer.dtype != Dtype.int8 or "dtype" in layer.spans):  # a quantized model stays so
        changes |= {"dtype": dtype, "dtype_source": "stated"}
    layout = asked.layout or (usual.layout if layer.layout == "auto" else None)
    if layout is not None:
        changes["layout"] = layout
    return replace(layer, **changes) if changes else layer


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
    top: str | None = None  # the config's folder, above which no versions are looked for
    fixing: Fixing | None = None  # None: nobody asks what could be mended
    image: tuple[int, ...] | None = None  # what models in Python source get
    entries: tuple[str, ...] = ()  # Python scripts that train, by the config
    details: bool = True  # of infos, which the short report only counts

    def overridden(self) -> dict[str, str]:
        """Fields that the command line sets, whatever an input states, with the reason."""
        reasons = {f"runtime.{name}": f"--runtime {name} is given" for name in self.asked.settings}
        for name, value in (("dtype", self.asked.dtype), ("layout", self.asked.layout), ("batch", self.reading.batch)):
            if value is not None:
                reasons["N" if name == "batch" else name] = f"--{name} is given"
        return reasons

    def trains(self, source: Input) -> bool:
        """Whether a module is followed in train mode: as asked for, else where the mode is stated and is training."""
        model = source.model
        for stated in (self.reading.trains, None if model is None else model.trains):
            if stated is not None:
                return stated
        return (self.mode or (model and model.mode) or self.default_mode) == "training"


Task = tuple[Input, Rulebook, Job]


class Checked(Struct, kw_only=True):
    """An input as it was read, as it runs and was checked, what was found in it, and what is wrong."""

    read: Network | None = None
    network: Network | None = None
    result: NetworkResult | None = None
    promises: dict[str, Promise] = field(default_factory=dict)  # by target: what all advice comes to
    errors: list[InputError] = field(default_factory=list)

    @property
    def gpus(self) -> Mapping[str, Gpu]:
        """The GPUs that it was checked for, by target."""
        return {label: promise.search.timing.gpu for label, promise in self.promises.items()}


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
    """GPUs under the names given, the first where several name one.

    Raises UsageError with the nearest names for an unknown one.
    """
    targets: dict[str, Target] = {}
    for name in names:
        gpu = load_gpu(name)
        targets.setdefault(gpu.id, Target(label=name.strip(), gpu=gpu))
    return list(targets.values())


def wrong_target(network: Network, error: UsageError) -> InputError:
    """The error of an unknown target that the input names."""
    line, column, *_ = network.spans.get("target") or (None, None)
    return InputError(path=network.path, message=f"target: {error}", line=line, column=column)


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
    """The error at the place of the wrong config entry, where it is about a model of the config."""
    if not error.asked_wrong or source.model is None:
        return replace(error, asked_wrong="")
    line, column, _, _ = source.model.spans.get(error.asked_wrong) or source.model.spans["model"]
    message = f"{source.name}: {error.message}"
    return replace(error, path=source.model.path, line=line, column=column, message=message)


def check_read(
    network: Network, rulebook: Rulebook, job: Job, errors: list[InputError], on_promise: OnPromise | None = None
) -> NetworkResult | None:
    """The check of a network as it runs, on its targets; what is wrong goes to `errors`. None where that ends it.

    `on_promise` gets each target and what all advice comes to on it.
    """
    names = list(job.gpus)
    for name in () if job.gpus else network.targets or job.default_gpus:
        try:
            resolve_targets([name])
            names.append(name)
        except UsageError as error:
            errors.append(wrong_target(network, error))
    targets = resolve_targets(names)
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
    result = judged(network, rulebook, targets, job.silencing, job.calibrations, allow=job.allow, on_promise=on_promise,
                    details=job.details)  # fmt: skip
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
    """The network in the mode and the runtime that the user, else it itself, else the config states."""
    network = replace(network, mode=job.mode or network.mode or job.default_mode)
    if any(layer.measured is not None for layer in network.layers):
        from convlint.engine.measured import held_to_trace

        network = held_to_trace(network, [target.gpu.id for target in resolve_targets(job.gpus)])
    return with_versions(as_it_runs(network, job.asked, job.usual), job)


def judged(
    network: Network, rulebook: Rulebook, targets: Sequence[Target], silencing: Silencing | None,
    calibrations: Files = (), **asked: Any,
) -> NetworkResult:  # fmt: skip
    """The check of one network on its targets, calibrated; `asked` are further arguments of `check_network`.

    It leaves out what is silenced, and adds findings on the suppressions. Where a baseline is to be written, it looks
    for what comes up once that holds the findings: without the advice in it, other advice may pay.
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
    result = replace(result, findings=findings, suppressed=silencer.suppressed, until=silencer.until, calibrations=uses)
    entries = {**silencing.known.entries, **baseline_of(findings)} if silencing.adopts else silencing.known.entries
    if len(entries) == len(silencing.known.entries):
        return result
    known = replace(silencing, known=known_of(entries))
    again = judged(network, rulebook, targets, known, **{**asked, "on_promise": None})
    return replace(result, later=(*again.findings, *again.later))


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


def say(text: str) -> None:
    """Passes on what the code of a module prints; never to standard output, where a report may go."""
    if sys.stderr is not None:
        sys.stderr.write(text)
        sys.stderr.flush()


def content_of(path: str) -> bytes:
    """A file's first bytes, one more than a spec may have. Raises InputFault."""
    with open_regular(path) as file:
        return file.read(MAX_BYTES + 1)
