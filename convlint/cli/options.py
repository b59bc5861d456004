"""Options that several commands share, declared once, and how a shell completes them."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from convlint.cli.arguments import Flags, Option, argument, option
from convlint.files.languages import LANGUAGES
from convlint.model.errors import UsageError, shown
from convlint.model.layer import ALLOWANCES, MODES, TRACES, Allowance, Mode
from convlint.model.report import FAIL_ON
from convlint.reporters import REPORTERS

if TYPE_CHECKING:
    from convlint.cli.streams.outputs import ColorWhen, Presentation
    from convlint.mend.checking import Running
    from convlint.model.report import FailOn
    from convlint.readers import ReadOptions
    from convlint.readers.inputs import Input
    from convlint.run.plan import Options


def rule_keys(incomplete: str) -> list[tuple[str, str]]:
    """Codes with their names, and names with their titles."""
    from convlint.rulebook.book import load_rulebook

    before, comma, start = incomplete.rpartition(",")  # of `CL101,CL1` only the last is being typed
    infos = [rule.info for rule in load_rulebook().rules]
    pairs = [(info.code, info.name) for info in infos] + [(info.name, info.title) for info in infos]
    lower = start.lower()
    return [(before + comma + key, help_) for key, help_ in pairs if key.lower().startswith(lower)]


def gpus_and_aliases(incomplete: str) -> list[str]:
    """Ids of GPUs, and the other names that people use."""
    from convlint.gpus.gpu import aliases, gpu_names

    return _starting(incomplete, (LOCAL, *gpu_names(), *sorted(aliases())))


def formats(incomplete: str) -> list[str]:
    """Output formats; what follows `=` is a file, which the shell knows better."""
    return _starting(incomplete, REPORTERS)


def _starting(incomplete: str, names: Iterable[str]) -> list[str]:
    lower = incomplete.lower()
    return [name for name in names if name.lower().startswith(lower)]


_T = TypeVar("_T", bound=str)
LOCAL = "local"  # among GPUs: those of this machine
COLORS: "tuple[ColorWhen, ...]" = ("auto", "always", "never")


def listed(names: Iterable[str]) -> str:
    """`a, b or c`."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def jobs_of(value: str) -> int:
    """How many processes; 0 for auto: as many as are worth it. Raises UsageError."""
    if value == "auto":
        return 0
    if not value.isascii() or not value.isdigit() or int(value) < 1:
        raise UsageError(f"--jobs {shown(value)}: neither auto nor a number of processes, from 1 on")
    return int(value)


Jobs = Annotated[
    str,
    option(
        "--jobs",
        "-j",
        metavar="N",
        help_="Processes, 1 or more; the result is the same. auto: one a core where there is much to do.",
    ),
]


def gpu_option(help_: str, complete: Callable[[str], list[Any]] | None = None) -> Option:
    """`--gpu`, of which commands have different defaults."""
    return option("--gpu", "-g", help_=help_, complete=complete)


def output_option(help_: str, complete: Callable[[str], list[Any]] | None = None) -> Option:
    """`--output`, of which commands have different formats."""
    return option("--output", "-o", metavar="FORMAT[=FILE]", help_=help_, complete=complete)


def size_option(letter: str, help_: str, *names: str, metavar: str = "INT") -> Option:
    """The option of one size of a layer: `-K`."""
    return option(f"-{letter}", *names, metavar=metavar, help_=help_)


ModeOption = Annotated[str | None, option("--mode", help_="training or inference.")]
Output = Annotated[list[str] | None, output_option(f"{listed(REPORTERS)}; repeatable.", formats)]
Allow = Annotated[
    list[str] | None,
    option(
        "--allow",
        metavar="CHANGE",
        help_=f"Advise what takes something away, too: {', '.join(ALLOWANCES)}; repeatable.",
    ),
]
Rules = Annotated[
    list[str] | None,
    option("--rules", metavar="DIR", help_="A folder of rules of your own, beside the built-in ones."),
]
Select = Annotated[
    list[str] | None,
    option("--select", help_="Only these rules: codes, names, prefixes such as CL1, or ALL.", complete=rule_keys),
]
Ignore = Annotated[list[str] | None, option("--ignore", help_="Not these rules.", complete=rule_keys)]
ExtendSelect = Annotated[
    list[str] | None, option("--extend-select", help_="These rules beside the default ones.", complete=rule_keys)
]
Lang = Annotated[
    str | None,
    option(
        "--lang",
        metavar="LANGUAGE",
        help_=f"Of the text and HTML reports: {listed(LANGUAGES)}. Default: CONVLINT_LANG, else the config's, else en.",
    ),
]
Isolated = Annotated[bool, option("--isolated", "--no-config", help_="No config at all.")]
Quiet = Annotated[bool, option("--quiet", "-q", help_="Only what is needed to act.")]
Verbose = Annotated[
    bool, option("--verbose", "-v", help_="Every finding of the text report, with its reason and its source line.")
]
Color = Annotated[str, option("--color", help_="auto, always or never.")]
FilesOnly = Annotated[
    bool,
    option("--files-only", help_="Never take a word for package.module:name: no code of the project runs."),
]
Batch = Annotated[int | None, option("--batch", help_="Batch size of the whole network.", min_=1)]
Runtime = Annotated[
    list[str] | None,
    option("--runtime", metavar="KEY=VALUE", help_="A runtime setting of the spec, such as cudnn=8.9.2; repeatable."),
]
DtypeOption = Annotated[
    str | None, option("--dtype", help_="What layers are computed in: fp64 fp32 tf32 fp16 bf16 fp8 int8.")
]
Layout = Annotated[str | None, option("--layout", help_="NCHW, NHWC or auto.")]
Pad = Annotated[
    str | None, option("--pad", "--padding", help_="PadH or PadH,PadW; top,bottom,left,right; same; valid.")
]
OneInput = Annotated[str | None, argument("[PATH]", "A spec, a model, package.module:name, or - for standard input.")]
OneModel = Annotated[str | None, option("--model", metavar="NAME", help_="A model of the config, rather than PATH.")]


Versions = Annotated[
    str | None,
    option(
        "--versions",
        metavar="auto|none|FILE",
        help_="Where versions that nobody states come from: the nearest lock file (auto), none, or this file.",
    ),
]


class ModelFlags(Flags, frozen=True, kw_only=True):
    """Which models of the config are read."""

    models: Annotated[bool, option("--models", help_="All models of the config; runs the project's code.")] = False
    model: Annotated[
        list[str] | None, option("--model", metavar="NAME", help_="A model of the config; repeatable.")
    ] = None

    def names(self) -> tuple[str, ...] | None:
        """Which models: () for all of them, None for none."""
        return () if self.models else tuple(dict.fromkeys(self.model)) if self.model else None


class JudgeFlags(Flags, frozen=True, kw_only=True):
    """For which GPUs and by which rules an input is judged."""

    gpu: Annotated[
        list[str] | None,
        gpu_option(
            "Target GPU, or local; repeat for several. Default: the spec's, else the config's, else a100.",
            gpus_and_aliases,
        ),
    ] = None
    mode: ModeOption = None
    select: Select = None
    ignore: Ignore = None
    extend_select: ExtendSelect = None
    fail_on: Annotated[
        str | None,
        option("--fail-on", help_="Least severity that fails: error, warning, info or never. Default: warning."),
    ] = None
    min_loss: Annotated[
        float | None,
        option(
            "--min-loss",
            metavar="PERCENT",
            help_="Findings that lose less of the convolutions, or of the whole step, do not fail. Default: 0.",
            min_=0.0,
            max_=100.0,
        ),
    ] = None

    def fails_on(self) -> "FailOn | None":
        """The least severity that fails. Raises UsageError."""
        return one_of("--fail-on", self.fail_on, FAIL_ON)

    def options(self, rules: list[str] | None, project: "ProjectFlags") -> "Options":
        """A run by these rules. Raises UsageError."""
        from convlint.run.plan import Options

        return Options(
            gpus=gpu_names(self.gpu),
            mode=mode_of(self.mode),
            select=split(self.select),
            ignore=split(self.ignore),
            extend_select=split(self.extend_select),
            fail_on=self.fails_on(),
            min_loss=self.min_loss,
            rules=tuple(rules or ()),
            config=project.config,
            isolated=project.isolated,
        )


class AdviceFlags(Flags, frozen=True, kw_only=True):
    """Which advice is given, and what makes a check incomplete."""

    allow: Allow = None
    strict: Annotated[
        bool,
        option(
            "--strict",
            help_="Layers without sizes, unknown widths and rules that could not be checked fail: exit code 3.",
        ),
    ] = False


class BuildFlags(Flags, frozen=True, kw_only=True):
    """How a module of Python is built and traced."""

    inputs: Annotated[
        list[str] | None,
        option("--input", metavar="[NAME=]SHAPE", help_="Shape of a model's input, such as Nx3x224x224; repeatable."),
    ] = None
    channels_last: Annotated[
        bool,
        option("--channels-last", help_="Put modules into channels_last, as model.to(memory_format=...) does."),
    ] = False
    module_timeout: Annotated[
        float | None,
        option(
            "--module-timeout",
            metavar="SECONDS",
            help_="For building and tracing one module. Default: 120.",
            min_=0.1,
        ),
    ] = None

    def read_options(self, batch: int | None = None, trace: str | None = None) -> "ReadOptions":
        """How inputs are read. Raises UsageError."""
        from convlint.readers import MODULE_TIMEOUT_S, ReadOptions
        from convlint.readers.inputs import named_inputs

        followed = one_of("--trace", trace, TRACES)
        return ReadOptions(
            batch=batch,
            inputs=named_inputs(self.inputs),
            module_timeout_s=MODULE_TIMEOUT_S if self.module_timeout is None else self.module_timeout,
            trains=None if followed is None else followed == "train",
            channels_last=self.channels_last,
        )


class ReadFlags(Flags, frozen=True, kw_only=True):
    """How inputs are read."""

    batch: Batch = None
    build: BuildFlags
    trace: Annotated[
        str | None,
        option("--trace", help_="How modules are followed: eval or train. Default: by --mode or the config."),
    ] = None

    def options(self) -> "ReadOptions":
        """The same for readers. Raises UsageError."""
        return self.build.read_options(self.batch, self.trace)


class RunFlags(Flags, frozen=True, kw_only=True):
    """How every input runs."""

    runtime: Runtime = None
    dtype: DtypeOption = None
    layout: Layout = None
    versions: Versions = None

    def running(self) -> "Running":
        """The same as settings. Raises UsageError."""
        from convlint.mend.checking import from_options

        return from_options(self.runtime or (), self.dtype, self.layout, self.versions)


class ProjectFlags(Flags, frozen=True, kw_only=True):
    """Which config is read."""

    config: Annotated[
        str | None,
        option("--config", metavar="FILE", help_="This config for every input, rather than the closest one upward."),
    ] = None
    isolated: Isolated = False


class ShowFlags(Flags, frozen=True, kw_only=True):
    """How much is shown, and in colour or not."""

    quiet: Quiet = False
    color: Color = "auto"


class LayerSettingFlags(Flags, frozen=True, kw_only=True):
    """What a layer has beside sizes."""

    op: Annotated[str | None, option("--op", help_="conv or conv_transpose.")] = None
    output_padding: Annotated[str | None, option("--output-padding", help_="Of a transposed convolution.")] = None
    dtype: DtypeOption = None
    layout: Layout = None
    runtime: Runtime = None


def one_input(path: str | None, model: str | None) -> "Input":
    """The only input of a command. Raises UsageError where there is none or another one."""
    from convlint.readers.inputs import decide
    from convlint.run.plan import models_here

    if (path is None) == (model is None):
        raise UsageError("give one input: a PATH, or a model of the config with --model NAME")
    return decide(path) if path is not None else models_here([model or ""])[0]


def presentation(
    output: list[str] | None, shown: ShowFlags, *, known: Sequence[str] = tuple(REPORTERS),
    files_only: Sequence[str] = (), verbose: bool = False,
) -> "Presentation":  # fmt: skip
    """How results are to be shown, in formats that are `known`. Raises UsageError for a value that is none of those."""
    from convlint.cli.streams.outputs import Presentation, parse_outputs

    color = color_of(shown.color)
    outputs = parse_outputs(output or (), known, files_only=files_only)
    return Presentation(outputs=outputs, color=color, quiet=shown.quiet, verbose=verbose)


def color_of(value: str) -> "ColorWhen":
    """When to colour. Raises UsageError."""
    return one_of("--color", value, COLORS) or "auto"


def mode_of(value: str | None) -> Mode | None:
    """`--mode`. Raises UsageError."""
    return one_of("--mode", value, MODES)


def allowances(values: list[str] | None) -> tuple[Allowance, ...]:
    """`--allow narrower,batch`. Raises UsageError."""
    known = (one_of("--allow", word, ALLOWANCES) for word in split(values))
    return tuple(dict.fromkeys(word for word in known if word is not None))


def split(values: list[str] | None) -> tuple[str, ...]:
    """`--select CL1,CL2 --select CL3` -> all three."""
    return tuple(part for value in values or () for part in value.replace(",", " ").split())


def gpu_names(values: list[str] | None) -> tuple[str, ...]:
    """`--gpu a100,h100 --gpu t4` -> all three; `local` is what this machine has. Raises UsageError."""
    names = [name for value in values or () for part in value.split(",") if (name := part.strip())]
    if LOCAL in names:
        from convlint.gpus.devices import gpus_here

        here = [gpu.id for gpu in gpus_here()]
        names = [gpu for name in names for gpu in (here if name == LOCAL else [name])]
    return tuple(names)


def one_of(name: str, value: str | None, known: Sequence[_T]) -> _T | None:
    """The value of the option `name`, where it is given. Raises UsageError, with a suggestion, for an unknown one."""
    if value is None:
        return None
    for word in known:
        if word == value:
            return word
    from convlint.model.errors import suggestion

    raise UsageError(f"{name}: {value!r} is not one of {', '.join(known)}{suggestion(value, known)}")
