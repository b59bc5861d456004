"""The public API: `convlint.lint` is `convlint check` without the printing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike, fspath
from os.path import join

from convlint.model.errors import UsageError, suggestion
from convlint.model.layer import ALLOWANCES, MODES, Allowance, Mode
from convlint.model.report import Report
from convlint.readers import ReadOptions
from convlint.run.plan import Options
from convlint.run.run import lint_paths
from convlint.verdict.baseline import read_baseline

Words = str | Iterable[str]


def lint(
    paths: str | PathLike[str] | Iterable[str | PathLike[str]],
    *,
    gpu: Words = (),
    mode: Mode | None = None,
    select: Words = (),
    ignore: Words = (),
    extend_select: Words = (),
    rules: Words = (),
    batch: int | None = None,
    inputs: Mapping[str, str] | None = None,
    config: str | PathLike[str] | None = None,
    isolated: bool = False,
    baseline: str | PathLike[str] | None = None,
    jobs: int = 1,
    allow: Words = (),
    allow_empty: bool = False,
    specs_only: bool = False,
    skip_foreign: bool = False,
    strict: bool = False,
) -> Report:
    """The report that `convlint check` makes on these paths with these options.

    What cannot be read is in `report.errors`. Raises `convlint.UsageError` for options, configs, baselines and rules
    that are wrong.
    """
    if mode is not None and mode not in MODES:
        raise UsageError(f"mode: {mode!r} is not one of {', '.join(MODES)}{suggestion(str(mode), MODES)}")
    options = Options(
        gpus=_words(gpu),
        mode=mode,
        select=_words(select),
        ignore=_words(ignore),
        extend_select=_words(extend_select),
        rules=_words(rules),
        reading=ReadOptions(batch=batch, inputs=inputs or {}),
        config=None if config is None else fspath(config),
        isolated=isolated,
        jobs=jobs,
        allow=_allowed(_words(allow)),
        allow_empty=allow_empty,
        specs_only=specs_only,
        skip_foreign=skip_foreign,
        strict=strict,
    )
    all_paths = [paths] if isinstance(paths, str | PathLike) else paths
    known = None if baseline is None else read_baseline(fspath(baseline))
    words = [path if isinstance(path, str) else join(".", fspath(path)) for path in all_paths]  # a Path is no module
    return lint_paths(words, options, baseline=known).report


def _allowed(words: Iterable[str]) -> tuple[Allowance, ...]:
    for word in words:
        if word not in ALLOWANCES:
            raise UsageError(f"allow: {word!r} is not one of {', '.join(ALLOWANCES)}{suggestion(word, ALLOWANCES)}")
    return tuple(known for known in ALLOWANCES if known in words)


def _words(value: Words) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)
