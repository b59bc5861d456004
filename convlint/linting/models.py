"""The models that a config names, as inputs: references read, settings checked, each with its place in the config."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from convlint.config.find import Config, Configs
from convlint.errors import InputFault, UsageError, shown, suggestion
from convlint.linting.one_input import resolve_targets
from convlint.linting.running import settings_in_config
from convlint.model.location import Span
from convlint.readers.inputs import Input, Model, parse_reference

if TYPE_CHECKING:
    from convlint.config.keys import ModelEntry
    from convlint.config.toml_source import Spot


def chosen_models(config: Config, names: Sequence[str]) -> tuple[Input, ...]:
    """The models called `names`, or all of them where there is none. Raises UsageError."""
    entries = {entry.name: entry for entry in config.models}
    if not entries:
        where = f"{config.path} has" if config.path is not None else "there is no config, and so"
        raise UsageError(f"{where} no models; each is a table [[tool.convlint.models]] with name, model and inputs")
    for name in names:
        if name not in entries:
            near = suggestion(name, entries) or f"; there are {', '.join(list(entries)[:8])}"
            raise UsageError(f"--model: {config.path} has no model {shown(name)!r}{near}")
    return tuple(_input(entries[name]) for name in names or entries)


def models_here(names: Sequence[str] | None) -> tuple[Input, ...]:
    """The same by the config of the current folder; none where `names` is None."""
    return () if names is None else chosen_models(Configs().of_folder(os.getcwd()), names)


def refuse_wrong_references(inputs: Iterable[Input]) -> None:
    """Raises UsageError for a module on the command line that is not called with literals."""
    for source in inputs:
        if source.kind == "module" and source.model is None:
            try:
                parse_reference(source.name)
            except InputFault as fault:
                raise UsageError(f"{shown(source.name)}: {fault.message}") from None


def _input(entry: ModelEntry) -> Input:
    try:
        parse_reference(entry.model)
    except InputFault as fault:
        entry.at.below("model").fail(fault.message)
    settings: dict[str, Any] = {}
    spans: dict[str, Span] = {}
    for name, (raw, at) in entry.runtime.items():
        found = settings_in_config({name: (raw, at)})  # under the name that a spec has for it
        settings |= found
        spans |= dict.fromkeys(found, _span(at, len(name)))
    for word in entry.target:
        try:
            resolve_targets([word.text])
        except UsageError as error:
            word.at.fail(str(error))
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
