"""The reference of specs and config names every key of the schemas."""

from typing import Any

import pytest

from convlint.cli.commands.schema import config_schema, spec_schema
from convlint.rulebook.book import load_rulebook
from handbook.schema_pages import config_tables, spec_tables, takes

RULEBOOK = load_rulebook()


def test_every_key_of_a_spec_is_there_with_its_meaning() -> None:
    lines = spec_tables()
    properties = spec_schema()["properties"]
    inner = (properties["layers"]["items"]["properties"], properties["runtime"]["properties"])
    for key in (*properties, *inner[0], *inner[1]):
        assert any(f"`{key}`" in line for line in lines), key
    rows = [line.split(" | ") for line in lines if line.startswith("| `")]
    assert [row for row in rows if len(row) != 3 or not row[1].strip() or not row[2].strip(" |")] == []


def test_every_key_of_the_config_is_there_with_its_meaning() -> None:
    lines = config_tables(RULEBOOK)
    for key in config_schema(RULEBOOK)["properties"]:
        assert any(line.startswith(f"| `{key}`") for line in lines), key
    rows = [line.split(" | ") for line in lines if line.startswith("| `")]
    assert [row for row in rows if len(row) != 3 or not row[1].strip() or not row[2].strip(" |")] == []


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"const": 1}, "`1`"),
        ({"enum": [True, False, 0, 1]}, "true or false"),
        ({"enum": ["NCHW", "NHWC"]}, "`NCHW`, `NHWC`"),
        ({"enum": [f"w{i}" for i in range(20)]}, ", ".join(f"`w{i}`" for i in range(16)) + " and 4 more"),
        ({"type": "integer", "minimum": 1, "maximum": 2**31}, "whole number from 1"),
        ({"type": "number", "minimum": 0, "maximum": 100}, "number from 0 to 100"),
        ({"type": "boolean"}, "true or false"),
        ({"type": ["string", "number"]}, "text or number"),
        ({"anyOf": [{"type": "integer"}, {"type": "string", "pattern": "x"}]}, "whole number"),
        ({"type": "array", "items": {"type": "string"}}, "a list (text)"),
        (
            {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3},
            "a list of 1 to 3 (whole number)",
        ),
        ({"type": "object", "additionalProperties": {"type": "string"}}, "a table (each text)"),
        ({"format": "date"}, "a date"),
    ],
)
def test_what_a_value_may_be(schema: dict[str, Any], words: str) -> None:
    assert takes(schema) == words


def test_gpus_and_rules_are_named_by_their_pages() -> None:
    assert takes(spec_schema()["properties"]["target"]) == "[a GPU](../gpus.md) or a list ([a GPU](../gpus.md))"
    assert "rules/index.md" in takes(config_schema(RULEBOOK)["properties"]["select"])
