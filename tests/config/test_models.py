"""Models in the config, as they are read."""

from __future__ import annotations

from typing import Any

import pytest

from convlint.config.models import MODEL_KEYS, models_of
from convlint.config.toml_source import Spot, TomlSource
from convlint.errors import UsageError

TEXT = """\
[[models]]
name = "net"
model = "pkg:Net(3)"
inputs = ["16x3x64x64", "16:int64"]
runtime = { cudnn_benchmark = true, cuda = 12.4 }

[[models]]
name = "other"
model = "pkg:make"
"""
SOURCE = TomlSource("pyproject.toml", TEXT)
AT = Spot(SOURCE, ("models",))


def test_models_are_read_with_their_places() -> None:
    net, other = models_of(SOURCE.values["models"], AT, "/project")
    assert (net.name, net.model, dict(net.inputs)) == ("net", "pkg:Net(3)", {"": "16x3x64x64,\n16:int64"})
    assert {name: raw for name, (raw, _) in net.runtime.items()} == {"cudnn_benchmark": True, "cuda": 12.4}
    assert net.runtime["cuda"][1].place().line == 5
    assert (net.channels_last, net.autocast, net.mode, net.target) == (False, None, None, ())
    assert (other.inputs, other.folder, other.at.below("model").place().line) == ({}, "/project", 9)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"inputs": "1x3x8x8"}, {"": "1x3x8x8"}),
        ({"inputs": {"x": "1x3x8x8 ", "t": "1:int64"}}, {"x": "1x3x8x8", "t": "1:int64"}),
        ({"inputs": []}, {}),
    ],
)
def test_inputs_come_in_three_forms(given: dict[str, Any], expected: dict[str, str]) -> None:
    (model,) = models_of([{"name": "a", "model": "b:c", **given}], AT, "")
    assert model.inputs == expected


@pytest.mark.parametrize("word", ["bf16", "bfloat16", "torch.bfloat16"])
def test_autocast_has_torchs_spellings_too(word: str) -> None:
    (model,) = models_of([{"name": "a", "model": "b:c", "autocast": word}], AT, "")
    assert model.autocast == "bf16"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"input": "1x3"}, "unknown key 'input'; did you mean 'inputs'?"),
        ({"model": None}, "model is missing"),
        ({"name": 3}, "must be text, not a number"),
        ({"inputs": 3}, "must be a list of texts, not a number"),
        ({"channels_last": "yes"}, "must be true or false, not text"),
        ({"autocast": "fp32"}, "'fp32' is not one of fp16, bf16"),
        ({"mode": "train"}, "'train' is not one of training, inference"),
        ({"runtime": {"a": [1]}}, "must be text, a boolean or a number, not a list"),
        ({"runtime": []}, "must be a table, not a list"),
    ],
)
def test_wrong_entries_are_refused(change: dict[str, Any], message: str) -> None:
    table = {key: value for key, value in {"name": "a", "model": "b:c", **change}.items() if value is not None}
    with pytest.raises(UsageError) as caught:
        models_of([table], AT, "")
    assert message in str(caught.value)


def test_names_are_there_once_and_entries_are_tables() -> None:
    twice = [{"name": "a", "model": "b:c"}] * 2
    for value, message in ((twice, "there are two models 'a'"), ({}, "must be tables"), ([3], "must be a table")):
        with pytest.raises(UsageError, match=message):
            models_of(value, AT, "")


def test_every_key_has_a_meaning() -> None:
    assert all(MODEL_KEYS.values())
