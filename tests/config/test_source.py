"""How Python source is read, as the config says it."""

from __future__ import annotations

from typing import Any

import pytest

from convlint.config.source import SOURCE_KEYS, source_of
from convlint.config.toml_source import Spot, TomlSource
from convlint.errors import UsageError

TEXT = '[source]\ninput = "3x224x224"\nentry = ["train.py", "tools/run.py"]\n'
SOURCE = TomlSource("convlint.toml", TEXT)
AT = Spot(SOURCE, ("source",))


def test_the_table_is_read_with_its_places() -> None:
    found = source_of(SOURCE.values["source"], AT, "/project")
    assert found.input == (3, 224, 224)
    assert [word.text for word in found.entry] == ["/project/train.py", "/project/tools/run.py"]
    assert [word.at.place().line for word in found.entry] == [3, 3]
    assert [(name, raw) for name, raw, _ in found.written] == list(SOURCE.values["source"].items())


@pytest.mark.parametrize(
    ("text", "shape"), [("16x3x224x224", (16, 3, 224, 224)), (" 1 × 64*65 ", (1, 64, 65)), ("3x8x8", (3, 8, 8))]
)
def test_shapes_with_and_without_a_batch(text: str, shape: tuple[int, ...]) -> None:
    assert source_of({"input": text}, AT, "").input == shape


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"inputs": "3x8x8"}, "convlint.toml:1:1: unknown key 'inputs'; did you mean 'input'?"),
        ({"entries": []}, "did you mean 'entry'?"),
        ({"input": "224"}, "convlint.toml:2:1: '224' is no shape of images"),
        ({"input": "1x2x3x4x5"}, "is no shape of images"),
        ({"input": "3x224xfoo"}, "is no shape of images"),
        ({"input": "0x8x8"}, "sizes are from 1 to 2,147,483,647"),
        ({"input": f"3x8x{'9' * 400}"}, "sizes are from 1"),
        ({"input": [3, 8, 8]}, "must be text, not a list"),
        ({"entry": 3}, "must be a list of texts"),
        ({"entry": ["train.sh"]}, "'train.sh' is no Python script"),
        ([], "must be a table, not a list"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(table: Any, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        source_of(table, AT, "/project")
    assert message in str(raised.value)


def test_every_key_is_explained() -> None:
    assert all(SOURCE_KEYS.values())
