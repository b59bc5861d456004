"""The models of a project: `[[tool.convlint.models]]`, as they are written; what runs them reads on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from convlint.config.toml_source import Spot
from convlint.config.values import Word, choice_of, kind_of, table_of, text_of, texts_of, unknown_key
from convlint.errors import shown
from convlint.model.layer import MODES, TRACES, Following, Mode

# keys of one entry, with their meaning; the first two are required
MODEL_KEYS: Mapping[str, str] = {
    "name": "Its name in reports, and for --model.",
    "model": "package.module:name of a module, a class or a function, with literal arguments where it takes any.",
    "inputs": "Shapes of its inputs, in order or by name, such as 16x3x640x640:fp16:channels_last.",
    "channels_last": "Whether the model is put into channels_last, as model.to(memory_format=...) does.",
    "autocast": "fp16 or bf16: what torch.autocast runs its convolutions in.",
    "mode": "training or inference.",
    "trace": "train or eval: the mode in which it is followed. Default: train where its mode is training.",
    "runtime": "Settings of the runtime, as in a spec.",
    "target": "GPUs to check it for.",
}
AUTOCAST = ("fp16", "bf16")
_ALSO_AUTOCAST = {"float16": "fp16", "half": "fp16", "bfloat16": "bf16"}


class ModelEntry(NamedTuple):
    """One model, and where each of its values stands."""

    name: str
    model: str
    inputs: Mapping[str, str]  # under "" those in order, with commas between
    channels_last: bool
    autocast: str | None
    mode: Mode | None
    trace: Following | None
    runtime: Mapping[str, tuple[Any, Spot]]
    target: tuple[Word, ...]
    at: Spot
    folder: str


def models_of(value: Any, at: Spot, folder: str) -> tuple[ModelEntry, ...]:
    """Tables, one for each model; `folder` is the config's. Raises UsageError with the place of what is wrong."""
    if not isinstance(value, list):
        at.fail(f"must be tables, each under [[…{at.key[-1]}]], not {kind_of(value)}")
    entries: dict[str, ModelEntry] = {}
    for i, item in enumerate(value):
        entry = _model(table_of(item, at.below(i)), at.below(i), folder)
        if entry.name in entries:
            entry.at.below("name").fail(f"there are two models {shown(entry.name)!r}")
        entries[entry.name] = entry
    return tuple(entries.values())


def _model(table: Mapping[str, Any], at: Spot, folder: str) -> ModelEntry:
    for key in table:
        unknown_key(key, MODEL_KEYS, at.below(key))
    for key in list(MODEL_KEYS)[:2]:
        if key not in table:
            at.fail(f"{key} is missing")
    return ModelEntry(
        name=text_of(table["name"], at.below("name")).strip(),
        model=text_of(table["model"], at.below("model")).strip(),
        inputs=_inputs(table.get("inputs", []), at.below("inputs")),
        channels_last=_flag(table.get("channels_last", False), at.below("channels_last")),
        autocast=_autocast(table["autocast"], at.below("autocast")) if "autocast" in table else None,
        mode=choice_of(table["mode"], at.below("mode"), MODES) if "mode" in table else None,
        trace=choice_of(table["trace"], at.below("trace"), TRACES) if "trace" in table else None,
        runtime=settings_of(table.get("runtime", {}), at.below("runtime")),
        target=texts_of(table.get("target", []), at.below("target")),
        at=at,
        folder=folder,
    )


def _inputs(value: Any, at: Spot) -> dict[str, str]:
    if isinstance(value, dict):
        return {key: text_of(item, at.below(key)).strip() for key, item in value.items()}
    words = texts_of(value, at)
    return {"": ",\n".join(word.text for word in words)} if words else {}


def _flag(value: Any, at: Spot) -> bool:
    if not isinstance(value, bool):
        at.fail(f"must be true or false, not {kind_of(value)}")
    return value


def _autocast(value: Any, at: Spot) -> str:
    text = text_of(value, at).strip().lower().removeprefix("torch.")
    return choice_of(_ALSO_AUTOCAST.get(text, text), at, AUTOCAST)


def settings_of(value: Any, at: Spot, _folder: str = "") -> dict[str, tuple[Any, Spot]]:
    """Settings of the runtime, each with its place."""
    table = table_of(value, at)
    for key, item in table.items():
        if not isinstance(item, str | bool | int | float):
            at.below(key).fail(f"must be text, a boolean or a number, not {kind_of(item)}")
    return {key: (item, at.below(key)) for key, item in table.items()}
