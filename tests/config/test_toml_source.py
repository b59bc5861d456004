"""Where the keys of a TOML text stand, and whether it speaks of convlint at all."""

from __future__ import annotations

import time
import tomllib
from pathlib import Path

import pytest
from configured import codes, prepared
from hypothesis import given
from hypothesis import strategies as st
from toml_values import names, quoted, toml, values

from convlint.config.find import may_configure
from convlint.config.toml_source import TomlSource, key_offsets, position


def test_many_places_of_a_long_file_are_found_with_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def counted(text: str) -> dict[tuple[str | int, ...], int]:
        calls.append(text)
        return key_offsets(text)

    monkeypatch.setattr("convlint.config.toml_source.key_offsets", counted)
    text = "\n" * 500_000 + "".join(f"key{number} = 1\n" for number in range(10_000))
    source = TomlSource("x.toml", text)
    start = time.process_time()
    places = [source.place((f"key{number}",)) for number in range(10_000)]
    assert time.process_time() - start < 10
    assert [(place.line, place.column) for place in places] == [(500_001 + number, 1) for number in range(10_000)]
    assert len(calls) == 1


@given(st.text(alphabet="ab=1\n \u00e9", max_size=40), st.integers(0, 45))
def test_places_are_those_of_the_text(text: str, offset: int) -> None:
    before = text[:offset]
    assert position(text, offset) == (before.count("\n") + 1, len(before) - before.rfind("\n"))


def test_places_deep_in_a_file_are_those_of_what_holds_them() -> None:
    deep = "x = " + "[" * 31 + "1" + "]" * 31
    nested = "y = " + "{" + ".".join("a" * 16) + " = {" + ".".join("b" * 16) + " = {c = 1}}}"
    source = TomlSource("x.toml", f"{deep}\n{nested}\n")
    assert str(source.place(("x", *[0] * 31))) == "x.toml:1:36"
    place = source.place(("y", *"a" * 16, *"b" * 16, "c"))
    assert (place.line, place.column) == (2, 41)


here = pytest.fixture(autouse=True)(prepared)


MENTIONS = [
    "[tool.convlint]\nignore = 'CL102'",
    "[ tool\t. convlint ]\nignore = 'CL102'",
    "[\"tool\".'convlint']\nignore = 'CL102'",
    "['tool']\nconvlint.ignore = 'CL102'",
    "tool = { convlint = { ignore = 'CL102' } }",
    "tool = { x = [\n1,\n2], convlint.ignore = 'CL102' }",
    "tool.convlint.ignore = 'CL102'",
    "  'tool' . 'convlint' . 'ignore' = 'CL102'",
    '["\\u0074ool"."con\\u0076lint"]\nignore = "CL102"',
    '["t\\U0000006fol"."\\u0063\\u006f\\u006e\\u0076\\u006C\\u0069\\u006e\\u0074"]\nignore = "CL102"',
    "[tool]\n[tool.x]\na = 1\n[tool.convlint]\nignore = 'CL102'",
    "x = 'a' # [tool.\n[tool.\\\n'convlint']".replace("\\\n", "") + "\nignore = 'CL102'",
    "[project]\r\nname = 'x'\r\n[tool.convlint]\r\nignore = 'CL102'\r\n",
]


@pytest.mark.parametrize("text", MENTIONS)
def test_no_table_of_ours_is_missed(text: str) -> None:
    Path("pyproject.toml").write_text(text, newline="")
    assert tomllib.loads(text)["tool"]["convlint"] == {"ignore": "CL102"}
    assert codes("bad.yaml") == ["CL006"]


@given(st.lists(st.sampled_from(["plain", "u", "U"]), min_size=12, max_size=12), st.sampled_from(["'", '"', ""]))
def test_every_spelling_of_the_names_is_a_mention(ways: list[str], quote: str) -> None:
    names = "toolconvlint"
    letters = [
        letter if quote != '"' or way == "plain" else f"\\u{ord(letter):04x}" if way == "u" else f"\\U{ord(letter):08X}"
        for letter, way in zip(names, ways, strict=True)
    ]
    text = f"[{quote}{''.join(letters[:4])}{quote}.{quote}{''.join(letters[4:])}{quote}]\n"
    assert tomllib.loads(text) == {"tool": {"convlint": {}}}
    assert may_configure(text.encode())


@pytest.mark.parametrize("word", [b"tool ", b"[tool", b"tool\n", b"\\u0074", b"convlin", b"\\", b'"tool"', b"[", b" "])
def test_looking_for_the_table_takes_one_pass(word: bytes) -> None:
    start = time.process_time()
    assert not may_configure(word * (2**20 // len(word)))
    assert time.process_time() - start < 5


def _paths(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [p for key, item in items for p in [(*path, key), *_paths(item, (*path, key))]]


TOML = """
title = "a # b" # c
a.b."c.d" = 1
'quo"ted' = '''
x = 1
[no]
'''
"esc\\u0061ped" = \"\"\"one \\\"\"\" two\"\"\"
date = 1979-05-27 07:32:00
float = 1.5
list = [ 1, [2, "]"], { x = 1, y.z = [3] },
  # ]
  4 ]
[table."x.y"]
k = { a = {}, b = [] }
[[many]]
n = 1
[[many.more]]
[many.sub]
m = 2
[[many]]
n = 2
[[many.more]]
o = [ [], [[]] ]
"""


def test_every_key_of_a_toml_file_is_found() -> None:
    offsets = key_offsets(TOML)
    assert set(_paths(tomllib.loads(TOML))) <= set(offsets)
    assert position(TOML, offsets[("list", 2, "y", "z")])[0] == 11
    assert position(TOML, offsets[("many", 1, "more", 0, "o")]) == (24, 1)
    assert position(TOML, offsets[('quo"ted',)]) == (4, 1)
    assert position(TOML, offsets[("escaped",)]) == (8, 1)


@given(st.dictionaries(names, values, max_size=4))
def test_every_key_has_a_place_where_it_stands(table: dict[str, object]) -> None:
    text = "".join(f"{quoted(key)} = {toml(item)}\n" for key, item in table.items())
    assert tomllib.loads(text) == table
    offsets = key_offsets(text)
    assert set(_paths(table)) <= set(offsets)
    for path, offset in offsets.items():
        if isinstance(path[-1], str):
            assert text[offset:].startswith(quoted(path[-1]))


@given(st.text(max_size=60))
def test_the_place_of_a_key_never_fails(text: str) -> None:
    assert isinstance(key_offsets(text), dict)
