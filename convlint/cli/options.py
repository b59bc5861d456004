"""Options that several commands share, and how a shell completes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from convlint.errors import UsageError, shown
from convlint.files.languages import LANGUAGES
from convlint.model.layer import ALLOWANCES, TRACES, Allowance
from convlint.reporters import REPORTERS

if TYPE_CHECKING:
    from convlint.checking.one_input import Running
    from convlint.cli.streams.outputs import ColorWhen, Presentation
    from convlint.readers import ReadOptions
    from convlint.verdict.select import FailOn


def rule_keys(incomplete: str) -> list[tuple[str, str]]:
    """Codes with their names, and names with their titles."""
    from convlint.rulebook.book import load_rulebook

    before, start = _last_of_list(incomplete)
    infos = [rule.info for rule in load_rulebook().rules]
    pairs = [(info.code, info.name) for info in infos] + [(info.name, info.title) for info in infos]
    lower = start.lower()
    return [(before + key, help_) for key, help_ in pairs if key.lower().startswith(lower)]


def gpus_and_aliases(incomplete: str) -> list[str]:
    """Ids of GPUs, and the other names that people use."""
    from convlint.gpus.gpu import aliases, gpu_names

    return _starting(incomplete, (*gpu_names(), *sorted(aliases())))


def formats(incomplete: str) -> list[str]:
    """Output formats; what follows `=` is a file, which the shell knows better."""
    from convlint.reporters import REPORTERS

    return _starting(incomplete, REPORTERS)


def _starting(incomplete: str, names: Iterable[str]) -> list[str]:
    lower = incomplete.lower()
    return [name for name in names if name.lower().startswith(lower)]


def _last_of_list(incomplete: str) -> tuple[str, str]:
    """`CL101,CL1` -> what is settled, and what is being typed."""
    before, comma, start = incomplete.rpartition(",")
    return before + comma, start


_T = TypeVar("_T", bound=str)

FAIL_ON: tuple[FailOn, ...] = ("error", "warning", "info", "never")
COLORS: tuple[ColorWhen, ...] = ("auto", "always", "never")


def listed(names: Iterable[str]) -> str:
    """`a, b or c`."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


Gpu = Annotated[
    list[str] | None,
    typer.Option(
        "--gpu",
        "-g",
        help="Target GPU; repeat for several. Default: the spec's, else the config's, else a100.",
        show_default=False,
        autocompletion=gpus_and_aliases,
    ),
]
ModeOption = Annotated[str | None, typer.Option("--mode", help="training or inference.", show_default=False)]
Select = Annotated[
    list[str] | None,
    typer.Option(
        "--select",
        help="Only these rules: codes, names, prefixes such as CL1, or ALL.",
        show_default=False,
        autocompletion=rule_keys,
    ),
]
Ignore = Annotated[
    list[str] | None, typer.Option("--ignore", help="Not these rules.", show_default=False, autocompletion=rule_keys)
]
ExtendSelect = Annotated[
    list[str] | None,
    typer.Option(
        "--extend-select", help="These rules beside the default ones.", show_default=False, autocompletion=rule_keys
    ),
]
FailOnOption = Annotated[
    str | None,
    typer.Option(
        "--fail-on",
        help="Least severity that fails: error, warning, info or never. Default: warning.",
        show_default=False,
    ),
]
Allow = Annotated[
    list[str] | None,
    typer.Option(
        "--allow",
        metavar="CHANGE",
        help=f"Advise what takes something away, too: {', '.join(ALLOWANCES)}; repeatable.",
        show_default=False,
    ),
]
MinLoss = Annotated[
    float | None,
    typer.Option(
        "--min-loss",
        metavar="PERCENT",
        help="Findings that lose less of the convolutions' time do not fail. Default: 0.",
        min=0.0,
        max=100.0,
        show_default=False,
    ),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict", help="Layers without sizes, unknown widths and rules that could not be checked fail: exit code 3."
    ),
]
Output = Annotated[
    list[str] | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FORMAT[=FILE]",
        help=f"{listed(REPORTERS)}; repeatable.",
        show_default=False,
        autocompletion=formats,
    ),
]
Rules = Annotated[
    list[str] | None,
    typer.Option(
        "--rules", metavar="DIR", help="A folder of rules of your own, beside the built-in ones.", show_default=False
    ),
]
ConfigFile = Annotated[
    str | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="This config for every input, rather than the closest one upward.",
        show_default=False,
    ),
]
Isolated = Annotated[bool, typer.Option("--isolated", "--no-config", help="No config at all.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Only what is needed to act.")]
Color = Annotated[str, typer.Option("--color", help="auto, always or never.")]
Batch = Annotated[
    int | None, typer.Option("--batch", help="Batch size of the whole network.", min=1, show_default=False)
]
Inputs = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        metavar="[NAME=]SHAPE",
        help="Shape of a model's input, such as Nx3x224x224; repeatable.",
        show_default=False,
    ),
]
ModuleTimeout = Annotated[
    float | None,
    typer.Option(
        "--module-timeout",
        metavar="SECONDS",
        help="For building and tracing one module. Default: 120.",
        min=0.1,
        show_default=False,
    ),
]
Models = Annotated[bool, typer.Option("--models", help="All models of the config; runs the project's code.")]
ModelNames = Annotated[
    list[str] | None,
    typer.Option("--model", metavar="NAME", help="A model of the config; repeatable.", show_default=False),
]
TraceOption = Annotated[
    str | None,
    typer.Option(
        "--trace",
        help="How modules are followed: eval or train. Default: by --mode or the config.",
        show_default=False,
    ),
]
ChannelsLast = Annotated[
    bool, typer.Option("--channels-last", help="Put modules into channels_last, as model.to(memory_format=...) does.")
]
# of one layer
Pad = Annotated[
    str | None,
    typer.Option(
        "--pad", "--padding", help="PadH or PadH,PadW; top,bottom,left,right; same; valid.", show_default=False
    ),
]
Op = Annotated[str | None, typer.Option("--op", help="conv or conv_transpose.", show_default=False)]
OneInput = Annotated[
    str | None,
    typer.Argument(
        metavar="[PATH]", help="A spec, a model, package.module:name, or - for standard input.", show_default=False
    ),
]
OneModel = Annotated[
    str | None,
    typer.Option("--model", metavar="NAME", help="A model of the config, rather than PATH.", show_default=False),
]
OutputPadding = Annotated[
    str | None, typer.Option("--output-padding", help="Of a transposed convolution.", show_default=False)
]
DtypeOption = Annotated[
    str | None,
    typer.Option("--dtype", help="What layers are computed in: fp64 fp32 tf32 fp16 bf16 fp8 int8.", show_default=False),
]
Layout = Annotated[str | None, typer.Option("--layout", help="NCHW, NHWC or auto.", show_default=False)]
RuntimeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--runtime",
        metavar="KEY=VALUE",
        help="A runtime setting of the spec, such as cudnn=8.9.2; repeatable.",
        show_default=False,
    ),
]


def size_option(letter: str, help_: str, *names: str, metavar: str = "INT") -> Any:
    """The option of one size of a layer: `-K`."""
    return typer.Option(f"-{letter}", *names, metavar=metavar, help=help_, show_default=False)


def presentation(output: list[str] | None, color: str, *, quiet: bool) -> Presentation:
    """How a report is to be shown. Raises UsageError for a value that is none of those allowed."""
    from convlint.cli.streams.outputs import Presentation, parse_outputs

    chosen = color_of(color)
    return Presentation(outputs=parse_outputs(output or (), REPORTERS), color=chosen, quiet=quiet)


def color_of(value: str) -> ColorWhen:
    """When to colour. Raises UsageError."""
    return one_of("--color", value, COLORS) or "auto"


def allowances(values: list[str] | None) -> tuple[Allowance, ...]:
    """`--allow narrower,batch`. Raises UsageError."""
    found = (one_of("--allow", word, ALLOWANCES) for word in split(values))
    return tuple(dict.fromkeys(word for word in found if word is not None))


def split(values: list[str] | None) -> tuple[str, ...]:
    """`--select CL1,CL2 --select CL3` -> all three."""
    return tuple(part for value in values or () for part in value.replace(",", " ").split())


def jobs_of(value: str) -> int:
    """How many processes; 0 for auto: as many as are worth it. Raises UsageError."""
    if value == "auto":
        return 0
    if not value.isascii() or not value.isdigit() or int(value) < 1:
        raise UsageError(f"--jobs {shown(value)}: neither auto nor a number of processes, from 1 on")
    return int(value)


def one_of(option: str, value: str | None, known: Sequence[_T]) -> _T | None:
    """The value, where it is given. Raises UsageError, with a suggestion, where it is none of those known."""
    if value is None:
        return None
    for word in known:
        if word == value:
            return word
    from convlint.errors import suggestion

    raise UsageError(f"{option}: {value!r} is not one of {', '.join(known)}{suggestion(value, known)}")


def model_names(every: bool, names: list[str] | None) -> tuple[str, ...] | None:
    """Which models of the config: () for all of them, None for none."""
    return () if every else tuple(dict.fromkeys(names)) if names else None


def running(runtime: list[str] | None, dtype: str | None, layout: str | None) -> Running:
    """How every input runs. Raises UsageError."""
    from convlint.checking.one_input import from_options

    return from_options(runtime or (), dtype, layout)


def gpu_names(values: list[str] | None) -> tuple[str, ...]:
    """`--gpu a100,h100 --gpu t4` -> all three."""
    return tuple(name for value in values or () for part in value.split(",") if (name := part.strip()))


def read_options(
    batch: int | None, inputs: list[str] | None, module_timeout: float | None, trace: str | None = None,
    channels_last: bool = False,
) -> ReadOptions:  # fmt: skip
    """What the command line says about reading. Raises UsageError."""
    from convlint.readers import MODULE_TIMEOUT_S, ReadOptions
    from convlint.readers.input_shapes import named_inputs

    seconds = MODULE_TIMEOUT_S if module_timeout is None else module_timeout
    followed = one_of("--trace", trace, TRACES)
    trains = None if followed is None else followed == "train"
    return ReadOptions(
        batch=batch, inputs=named_inputs(inputs), module_timeout_s=seconds, trains=trains, channels_last=channels_last
    )


Lang = Annotated[
    str | None,
    typer.Option(
        "--lang",
        metavar="LANGUAGE",
        help=f"Of the text and HTML reports: {listed(LANGUAGES)}. Default: CONVLINT_LANG, else the config's, else en.",
        show_default=False,
    ),
]
