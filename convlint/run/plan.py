"""From options and configs to plans: which rules hold for an input, on which GPUs, and what counts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct, field

from convlint.config.find import Config, Configs, shown_path
from convlint.files.languages import ENGLISH, language_chosen
from convlint.mend.checking import (
    DEFAULT_TARGET,
    Fixing,
    Job,
    Running,
    calibrations_of,
    resolve_targets,
    settings_in_config,
    value_of,
)
from convlint.model.errors import InputFault, UsageError, shown, suggestion
from convlint.model.layer import Allowance, Mode
from convlint.model.location import Location, Span
from convlint.model.report import FailOn
from convlint.readers import MODULE, MODULE_TIMEOUT_S, ReadOptions
from convlint.readers.inputs import (
    Input,
    Model,
    looks_like_shapes,
    parse_shapes,
    refuse_lists,
    words_of,
)
from convlint.readers.reading import format_of_input
from convlint.rulebook.book import Rulebook, builtin_folder, load_rulebook
from convlint.verdict.select import Exemption, Policy, Selection, matching, selected, severity_overrides
from convlint.verdict.suppress import Mention, Silencing

if TYPE_CHECKING:
    from convlint.config.keys import ModelEntry
    from convlint.config.toml_source import Spot, Word


_T = TypeVar("_T")


def chosen_models(config: Config, names: Sequence[str]) -> tuple[Input, ...]:
    """The models called `names`, or all of them where there is none. Raises UsageError."""
    entries = {entry.name: entry for entry in config.models}
    if not entries:
        where = f"{config.path} has" if config.path is not None else "there is no config, and so"
        how = "each is a table [[tool.convlint.models]] with name, model and inputs"
        live = [name for name in names if ":" in name]
        hint = f"; without --model: convlint check {shown(live[0])}" if live else ""
        raise UsageError(f"{where} no models; {how}{hint}")
    for name in names:
        if name not in entries:
            near = suggestion(name, entries) or f"; there are {', '.join(list(entries)[:8])}"
            raise UsageError(f"--model: {config.path} has no model {shown(name)!r}{near}")
    return tuple(_input(entries[name]) for name in names or entries)


def models_here(names: Sequence[str] | None) -> tuple[Input, ...]:
    """The same from the config of the current folder; none where `names` is None."""
    return () if names is None else chosen_models(Configs().of_folder(os.getcwd()), names)


def _input(entry: ModelEntry) -> Input:
    from convlint.readers.references import parse_reference

    try:
        parse_reference(entry.model)
    except InputFault as fault:
        entry.at.below("model").fail(fault.message)
    settings: dict[str, Any] = {}
    spans: dict[str, Span] = {}
    for name, (raw, at) in entry.runtime.items():
        setting = settings_in_config({name: (raw, at)})  # under the name that a spec has for it
        settings |= setting
        spans |= dict.fromkeys(setting, _span(at, len(name)))
    for word in entry.target:
        _at(word, lambda text: resolve_targets([text]))
    for name in ("model", "inputs", "target", "mode"):
        spans[name] = _span(entry.at.below(name), len(name))
    if entry.autocast is not None:
        settings.setdefault("mixed_precision", True)
    model = Model(
        reference=entry.model, path=entry.at.place().path, inputs=entry.inputs, channels_last=entry.channels_last,
        autocast=entry.autocast, mode=entry.mode,
        trains=None if entry.trace is None else entry.trace == "train",
        targets=tuple(word.text for word in entry.target),
        settings=settings, spans=spans, folder=entry.folder,
    )  # fmt: skip
    return Input(kind="module", name=entry.name, model=model)


def _span(at: Spot, length: int) -> Span:
    place = at.place()
    return place.line, place.column, place.line, place.column + length


class Options(Struct, frozen=True, kw_only=True):
    """What the command line, or a caller of `convlint.lint`, asks for; what it leaves open is the config's to say."""

    gpus: tuple[str, ...] = ()
    mode: Mode | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    fail_on: FailOn | None = None
    min_loss: float | None = None
    allow: tuple[Allowance, ...] = ()
    strict: bool = False
    rules: tuple[str, ...] = ()
    reading: ReadOptions = field(default_factory=ReadOptions)
    running: Running = Running()
    config: str | None = None
    isolated: bool = False
    jobs: int = 1  # 0: as many as are worth it
    allow_empty: bool = False
    specs_only: bool = False
    skip_foreign: bool = False  # pass over YAML and JSON files that are no specs, also where they are named
    models: tuple[str, ...] | None = None  # names of the config's; () is all of them, None none
    mends: bool = False  # whether what is found is to be mended
    proposes: bool = False  # whether findings are to carry the edits of their fix
    details: bool = True  # whether anybody reads infos
    unsafe_fixes: bool = False  # also where that changes the network
    language: str | None = ENGLISH  # of the report; None: what the config of the current folder says
    modules: bool = True  # whether package.module:name may name a module, whose code runs then


class RunPlan(Struct, frozen=True, kw_only=True):
    """How the inputs that share a config are checked."""

    config: Config
    job: Job
    rulebook: Rulebook
    selection: Selection
    expired: tuple[Mention, ...]  # entries of per-layer-ignores whose last day is over


class RunPlanner:
    """Makes the plan for each input, one per config; whatever is wrong in options or configs is a UsageError."""

    def __init__(self, options: Options, today: date) -> None:
        """Raises UsageError where the config that the options name cannot be used."""
        self.options, self.today = options, today
        self.configs = Configs(options.config, isolated=options.isolated)
        self._plans: dict[int, RunPlan] = {}
        self._rulebooks: dict[tuple[str, ...], Rulebook] = {}
        self.language = language_chosen(options.language, lambda: self.configs.of_folder(os.getcwd()).lang)
        if options.gpus:
            resolve_targets(options.gpus)

    def plan(self, source: Input | None) -> RunPlan:
        """The plan for an input; for what is no file, as for None, by the config of the current folder."""
        if source is None or source.kind not in ("source", "file"):
            config = self.configs.of_folder(os.getcwd())
        else:
            config = self.configs.of(source.members[0] if source.kind == "source" else source.name)
        plan = self._plans.get(id(config))  # `Configs` keeps every config alive, so that no id comes twice
        if plan is None:
            plan = self._plans[id(config)] = self._make(config)
        return plan

    def models(self) -> tuple[Input, ...]:
        """The models of the current folder's config that the options ask for. Raises UsageError with the place."""
        if self.options.models is None:
            return ()
        if not self.options.modules:
            raise UsageError("--files-only runs no code of the project; leave out --models and --model")
        config = self.configs.of_folder(os.getcwd())
        return chosen_models(config, self.options.models)

    def calibrations(self) -> tuple[str, ...]:
        """The calibrations of the plans made so far."""
        return tuple(dict.fromkeys(file.path for plan in self._plans.values() for file in plan.job.calibrations))

    def rule_folders(self) -> tuple[str, ...]:
        """The folders that rules are read from: the built-in ones, and those of the plans made so far."""
        own = (folder for folders in (self.options.rules, *self._rulebooks) for folder in folders)
        return tuple(dict.fromkeys((builtin_folder(), *own)))

    def _make(self, config: Config) -> RunPlan:
        options = self.options
        folders = tuple(dict.fromkeys((*config.rules, *options.rules)))
        if folders not in self._rulebooks:
            self._rulebooks[folders] = load_rulebook(folders)
        rulebook = self._rulebooks[folders]
        for word in config.target:
            _at(word, lambda text: resolve_targets([text]))
        exemptions, expired = self._exemptions(config, rulebook)
        policy = Policy(
            select=options.select,
            ignore=options.ignore,
            extend_select=options.extend_select,
            base=_base(config, rulebook),
            severities={code: severity for word, severity in config.severity for code in _codes([word], rulebook)},
            exemptions=exemptions,
            fail_on=options.fail_on or config.fail_on or "warning",
            min_loss=next(loss for loss in (options.min_loss, config.min_loss, 0.0) if loss is not None),
            strict=options.strict or bool(config.strict),
        )
        codes = frozenset(selected(policy, rulebook))
        if not codes:
            raise UsageError("no rule is selected: the selection leaves none of them")
        severities = severity_overrides(policy, rulebook)
        selection = Selection(policy=policy, codes=codes, severities=severities)
        job = Job(
            gpus=options.gpus,
            mode=options.mode,
            default_gpus=tuple(word.text for word in config.target) or (DEFAULT_TARGET,),
            default_mode=config.mode,
            reading=options.reading,
            asked=options.running,
            usual=_usual(config),
            calibrations=calibrations_of(config),
            allow=frozenset((*config.allow, *options.allow)),
            silencing=Silencing(codes=codes, today=self.today, exemptions=exemptions),
            fixing=Fixing(
                selection=selection,
                unsafe=options.unsafe_fixes,
                mends=options.mends,
                proposes=options.proposes,
            ),
            isolated=options.isolated,
            top=None if config.path is None else os.path.dirname(os.path.abspath(config.path)),
            image=None if config.source is None else config.source.input,
            entries=_entries(config),
            # A severity of the user's own makes a warning of an info; an allowed batch may be written.
            details=options.details or bool(severities) or "batch" in (*config.allow, *options.allow),
        )
        return RunPlan(
            config=config,
            job=job,
            rulebook=rulebook,
            selection=selection,
            expired=expired,
        )

    def _exemptions(self, config: Config, rulebook: Rulebook) -> tuple[tuple[Exemption, ...], tuple[Mention, ...]]:
        """What the config silences today, and what it no longer does."""
        exemptions = []
        expired = []
        for files in config.per_file_ignores:
            reason = f"per-file-ignores: {files.pattern.text}"
            exemptions.append(Exemption(codes=_codes(files.rules, rulebook), files=files.pattern, reason=reason))
        for entry in config.per_layer_ignores:
            codes = _codes(entry.rules, rulebook)
            if entry.expires is None or entry.expires >= self.today:
                exemptions.append(Exemption(codes=codes, layers=entry.layers, reason=entry.reason))
                continue
            place = entry.at.place()
            expired.append(
                Mention(
                    text=f"per-layer-ignores of {entry.layers!r}",
                    location=Location(path=place.path, line=place.line, column=place.column),
                    rule=", ".join(word.text for word in entry.rules),
                    reason=entry.reason,
                    expires=entry.expires,
                    expired=True,
                )
            )
        return tuple(exemptions), tuple(expired)


def _entries(config: Config) -> tuple[str, ...]:
    """The scripts that train, by the config. Raises UsageError with the place of one that is not there."""
    words = () if config.source is None else config.source.entry
    for word in words:
        _be_file(word)
    return tuple(shown_path(word.text) for word in words)


def _be_file(word: Word) -> None:
    """Raises UsageError with the place of a path of the config that is no file."""
    if "\0" in word.text or not os.path.isfile(word.text):
        word.at.fail(f"{shown(shown_path(word.text))!r} is no file")


def _usual(config: Config) -> Running:
    """How inputs run by the config, where they say nothing themselves."""
    from convlint.readers.spec.fields import dtype_of, layout_of

    values: dict[str, Any] = {}
    for name, word, read in (("dtype", config.dtype, dtype_of), ("layout", config.layout, layout_of)):
        if word is not None:
            try:
                values[name] = read(value_of(word.text))
            except InputFault as fault:
                word.at.fail(fault.message)
    if config.versions is not None and config.versions.text not in ("auto", "none"):
        _be_file(config.versions)
    return Running(
        settings=settings_in_config(config.runtime),
        versions=None if config.versions is None else config.versions.text,
        **values,
    )


def _base(config: Config, rulebook: Rulebook) -> frozenset[str] | None:
    """The codes that the config alone selects; None where it has nothing to say about it."""
    if config.select is None and not config.ignore and not config.extend_select:
        return None
    chosen = _codes(config.select or (), rulebook)
    if config.select is None:
        chosen = frozenset(selected(Policy(), rulebook))
    return (chosen | _codes(config.extend_select, rulebook)) - _codes(config.ignore, rulebook)


def _codes(words: Iterable[Word], rulebook: Rulebook) -> frozenset[str]:
    return frozenset(code for word in words for code in _at(word, lambda text: matching(text, rulebook)))


def _at(word: Word, look_up: Callable[[str], _T]) -> _T:
    """What `look_up` finds for a word of the config; its UsageError gets the word's place."""
    try:
        return look_up(word.text)
    except UsageError as error:
        word.at.fail(str(error))


def refuse_idle(options: ReadOptions, inputs: Iterable[Input]) -> None:
    """Raises UsageError for an option of reading, or a part of one, that none of the `inputs` takes.

    Also for a module that is not called with literals, and for an `--input` that is no shape.
    """
    inputs = list(inputs)
    for source in inputs:
        if source.kind == "module" and source.model is None:
            from convlint.readers.references import parse_reference  # Python's parser, which files do without

            try:
                parse_reference(source.name)
            except InputFault as fault:
                raise UsageError(f"{shown(source.name)}: {fault.message}") from None
    formats = {known for source in inputs if (known := format_of_input(source)) is not None}
    if not formats:
        return
    modules = MODULE in formats
    if options.inputs and not any(known.takes_inputs for known in formats):
        raise UsageError("--input: none of the inputs takes a shape; specs have theirs, and weights alone have none")
    if not modules:
        for text in options.inputs.values():
            for part in words_of(text):
                raise UsageError(
                    f"--input: {shown(part)!r} is for modules alone; --dtype and --layout say how a file runs"
                )
        if options.module_timeout_s != MODULE_TIMEOUT_S:
            raise UsageError("--module-timeout: none of the inputs is a module")
        if options.trains is not None:
            raise UsageError("--trace: none of the inputs is a module")
        if options.channels_last:
            raise UsageError("--channels-last: none of the inputs is a module; --layout says how a file runs")
    for text in options.inputs.values():
        try:
            refuse_lists(text)
            if looks_like_shapes(text):
                parse_shapes(text, options.batch)
        except InputFault as fault:
            raise UsageError(f"--input: {fault.message.removeprefix('input ')}") from None
