"""The command line of `convlint check` and `convlint layer`, and the options that describe one layer."""

from typing import Annotated

from msgspec.structs import asdict, replace

from convlint.cli import options as shared
from convlint.cli.arguments import Flags, argument, option
from convlint.files.languages import language_asked
from convlint.model.errors import UsageError


class CoverFlags(Flags, frozen=True, kw_only=True):
    """Which of the paths' files are checked, and by how many processes."""

    jobs: shared.Jobs = "auto"
    allow_empty: Annotated[bool, option("--allow-empty", help_="Nothing to check is no error.")] = False
    specs_only: Annotated[
        bool,
        option(
            "--specs-only",
            help_="Pass over Python, YAML and JSON files that are no specs, and what the config excludes, also where "
            "named.",
        ),
    ] = False
    skip_foreign: Annotated[
        bool,
        option(
            "--skip-foreign",
            help_="Pass over YAML and JSON files that are no specs, and what the config excludes, also where named.",
        ),
    ] = False
    files_only: shared.FilesOnly = False


class FixFlags(Flags, frozen=True, kw_only=True):
    """Which fixes are applied, and whether to files."""

    fix: Annotated[
        bool, option("--fix", help_="Mend what can be mended without changing the network, in its file.")
    ] = False
    unsafe_fixes: Annotated[
        bool,
        option("--unsafe-fixes", help_="Fixes that change the network, its weights or results too."),
    ] = False
    diff: Annotated[
        bool,
        option("--diff", help_="Print what --fix would change and write nothing; exit code 1 if it would."),
    ] = False


class BaselineFlags(Flags, frozen=True, kw_only=True):
    """The baseline to hold findings against, and the one to write."""

    baseline: Annotated[
        str | None, option("--baseline", metavar="FILE", help_="Only findings that this file does not hold count.")
    ] = None
    write_baseline: Annotated[
        str | None, option("--write-baseline", metavar="FILE", help_="Write all of today's findings to this file.")
    ] = None
    prune_baseline: Annotated[
        bool, option("--prune-baseline", help_="Take what no longer occurs out of the baseline.")
    ] = False


def check(
    *,
    paths: Annotated[
        list[str] | None,
        argument(
            "PATH…",
            "Specs, models, Python files, folders, package.module:name, or - for standard input. "
            "Default: the current folder.",
        ),
    ] = None,
    models: shared.ModelFlags,
    judging: shared.JudgeFlags,
    advice: shared.AdviceFlags,
    output: shared.Output = None,
    rules: shared.Rules = None,
    reading: shared.ReadFlags,
    running: shared.RunFlags,
    covered: CoverFlags,
    fixes: FixFlags,
    baselines: BaselineFlags,
    project: shared.ProjectFlags,
    lang: shared.Lang = None,
    shown: shared.ShowFlags,
    verbose: shared.Verbose = False,
) -> int:
    """Check specs, models and Python.

    Exit code 1 where a finding is at or above --fail-on, 3 where the check is incomplete.
    """
    from convlint.cli.commands import check as command

    options = replace(
        judging.options(rules, project),
        allow=shared.allowances(advice.allow),
        strict=advice.strict,
        reading=reading.options(),
        running=running.running(),
        language=language_asked(lang),
        jobs=shared.jobs_of(covered.jobs),
        allow_empty=covered.allow_empty,
        specs_only=covered.specs_only,
        skip_foreign=covered.skip_foreign,
        models=models.names(),
        mends=fixes.fix or fixes.diff,
        unsafe_fixes=fixes.unsafe_fixes,
        modules=not covered.files_only,
    )
    writing = {
        "--output": output,
        "--write-baseline": baselines.write_baseline,
        "--prune-baseline": baselines.prune_baseline,
    }
    for name, value in writing.items():
        if value == "-":
            raise UsageError(f"{name}: needs the name of a file")
        if fixes.diff and value:
            raise UsageError(f"--diff shows what --fix would change and writes nothing; leave out {name}")
    outputs = shared.presentation(output, shown, verbose=verbose)
    return command.check(paths or [], options, outputs, baselines, diff=fixes.diff)


class SizeFlags(Flags, frozen=True, kw_only=True):
    """The sizes of one layer, under the names of a spec."""

    N: Annotated[str | None, shared.size_option("N", "Batch size.", "--batch")] = None
    C: Annotated[str | None, shared.size_option("C", "Input channels.")] = None
    H: Annotated[str | None, shared.size_option("H", "Input height.")] = None
    W: Annotated[str | None, shared.size_option("W", "Input width.")] = None
    K: Annotated[str | None, shared.size_option("K", "Output channels.")] = None
    R: Annotated[str | None, shared.size_option("R", "Filter height.")] = None
    S: Annotated[str | None, shared.size_option("S", "Filter width.")] = None
    D: Annotated[str | None, shared.size_option("D", "Input depth (3-D).")] = None
    T: Annotated[str | None, shared.size_option("T", "Filter depth (3-D).")] = None
    P: Annotated[str | None, shared.size_option("P", "Output height, to be checked.")] = None
    Q: Annotated[str | None, shared.size_option("Q", "Output width, to be checked.")] = None
    stride: Annotated[str | None, option("--stride", help_="U or U,V.")] = None
    pad: shared.Pad = None
    dilation: Annotated[str | None, option("--dilation", help_="DilH or DilH,DilW.")] = None
    groups: Annotated[str | None, option("--groups", help_="Groups.")] = None


def layer(
    *,
    sizes: SizeFlags,
    settings: shared.LayerSettingFlags,
    judging: shared.JudgeFlags,
    advice: shared.AdviceFlags,
    output: shared.Output = None,
    rules: shared.Rules = None,
    project: shared.ProjectFlags,
    lang: shared.Lang = None,
    shown: shared.ShowFlags,
) -> int:
    """Check one layer given by flags."""
    from convlint.cli.commands import check as command

    options = replace(
        judging.options(rules, project),
        allow=shared.allowances(advice.allow),
        strict=advice.strict,
        language=language_asked(lang),
    )
    outputs = shared.presentation(output, shown, verbose=True)
    return command.layer(given(sizes, settings), options, outputs)


def given(sizes: Flags, settings: shared.LayerSettingFlags) -> dict[str, str]:
    """The flags that describe the layer, as texts; settings of the runtime as `runtime.KEY`. Raises UsageError."""
    from convlint.mend.checking import pairs_of

    texts = asdict(sizes) | asdict(settings)
    runtime = texts.pop("runtime") or ()
    flags: dict[str, str] = {name: text for name, text in texts.items() if text is not None}
    if "D" in flags or "T" in flags:
        flags["dims"] = "3"
    return flags | {f"runtime.{key}": text for key, text in pairs_of(runtime).items()}
