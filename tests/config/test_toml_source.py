"""Where the keys of a TOML text stand, and whether it speaks of convlint at all."""

import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from configured import codes, prepared
from hypothesis import given, settings
from hypothesis import strategies as st
from toml_values import names, quoted, toml, values

from convlint.config.find import may_configure
from convlint.config.toml_source import (
    Spot,
    TomlSource,
    choice_of,
    key_offsets,
    kind_of,
    pattern_of,
    position,
    problem,
    table_of,
    text_of,
    texts_of,
    tokens,
    unknown_key,
)
from convlint.model.errors import UsageError

SIZE = 2**20
REFUSED = {
    "deep key": ("a." * (SIZE // 2) + "a = 1", "a key has more than 16 parts"),
    "deep quoted key": ('"a" . ' * (SIZE // 6) + "a = 1", "a key has more than 16 parts"),
    "deep header": ("[" + "a." * (SIZE // 2) + "a]", "a key has more than 16 parts"),
    "deep array of tables": ("[[" + "a." * (SIZE // 2) + "a]]", "a key has more than 16 parts"),
    "deep key in an inline table": ("x = {" + "a." * (SIZE // 2) + "a = 1}", "a key has more than 16 parts"),
    "many keys of some depth": ("".join(f"k{n}{'.a' * 14} = []\n" for n in range(25_000)), "more than 50,000 keys"),
    "many tables": ("".join(f"[t{n}]\n" for n in range(100_000)), "more than 50,000 keys"),
    "many tables of an array": ("[[a]]\n" * 100_000, "more than 50,000 keys"),
    "many items": (f"a = [{'1,' * 500_000}]", "more than 50,000 keys"),
    "many inline tables": (f"a = [{'{a=1},' * 100_000}]", "more than 50,000 keys"),
    "nested arrays": ("a = " + "[" * 500_000, "is nested too deep"),
    "nested inline tables": ("a = " + "{a=" * 300_000, "is nested too deep"),
    "long number": ("a = 0x" + "f" * (SIZE - 10), "a word is longer than 10,000 characters"),
    "long fraction": ("a = 0.1" + "_1" * 500_000, "a word is longer than 10,000 characters"),
    "long bare key": ("a" * (SIZE - 10) + " = 1", "a word is longer than 10,000 characters"),
}
ACCEPTED = {
    "comments": "#\n" * (SIZE // 2),
    "empty lines": "\n" * SIZE,
    "spaces": " " * SIZE,
    "comments in an array": "a = [\n" + "#\n" * (SIZE // 2 - 10) + "]",
    "escapes": 'a = "' + "\\n" * (SIZE // 2 - 10) + '"',
    "escapes by number": 'a = "' + "\\u0041" * (SIZE // 6 - 10) + '"',
    "escapes over lines": 'a = """' + "\\\n" * (SIZE // 2 - 10) + '"""',
    "quotes in a string": 'a = """' + '""a' * (SIZE // 3 - 10) + '"""',
    "apostrophes in a string": "a = '''" + "''a" * (SIZE // 3 - 10) + "'''",
    "a long quoted key": '"' + "a" * (SIZE - 10) + '" = 1',
    "dates": "a = [" + "2020-01-01T00:00:00.0+01:00," * 20_000 + "]",
    "deep headers and many keys": "[" + ".".join("a" * 16) + "]\n" + "".join(f"k{n}=1\n" for n in range(40_000)),
    "arrays for keys of some depth": "".join(f"k{n}{'.a' * 14} = []\n" for n in range(3_000)),
}
BROKEN = {
    "quotes": '"' * SIZE,
    "apostrophes": "'" * SIZE,
    "escaped quotes": '"""' + ' \\"""' * (SIZE // 5),
    "escaped quotes after": '"""' + '\\"""a"' * (SIZE // 6),
    "open string": 'a = "' + '\\"' * (SIZE // 2 - 10),
    "open text": "a = '''" + "''a" * (SIZE // 3 - 10),
    "backslashes": ("\\" * 5_000 + "\n") * 200,
    "control characters": "\x00" * 5_000,
    "carriage returns": "\r" * SIZE,
}


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED)
def test_what_would_take_long_is_refused_before_it_is_read(
    text: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def loads(_: str) -> object:
        raise AssertionError("was read")

    monkeypatch.setattr(tomllib, "loads", loads)
    start = time.process_time()
    with pytest.raises(UsageError, match=rf"^x\.toml:\d+:\d+: .*{message}"):
        TomlSource("x.toml", text[:SIZE])
    assert time.process_time() - start < 5


MEASURED = """
import sys, time
from convlint.config.toml_source import TomlSource
def peak():
    return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])
text = sys.stdin.read()
before, start = peak(), time.process_time()
TomlSource("x.toml", text).place(("a",))
print(peak() - before, time.process_time() - start)
"""


@pytest.mark.slow
@pytest.mark.parametrize("text", ACCEPTED.values(), ids=ACCEPTED)
def test_what_is_accepted_is_cheap(text: str) -> None:
    assert len(text) <= SIZE
    command = [sys.executable, "-c", MEASURED]  # a process of its own: to trace each allocation takes ten times as long
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    kibibytes, seconds = map(float, done.stdout.split())
    assert kibibytes < 100 * 2**10
    assert seconds < 5


@pytest.mark.slow
@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_broken_text_is_refused_soon(text: str) -> None:
    start = time.process_time()
    with pytest.raises(UsageError, match=r"^x\.toml:\d+:\d+: "):
        TomlSource("x.toml", text)
    assert isinstance(key_offsets(text), dict)
    assert time.process_time() - start < 5


def test_the_limits_are_what_they_say() -> None:
    dotted = ".".join("a" * 16)
    fits = [
        f"{dotted} = 1\n", f"[{dotted}]\n", f"a = {'[' * 32}{']' * 32}\n",
        f"a = [{'1,' * (50_000 - 2)}]\n", f"{'a' * 10_000} = 1\n",
        f'"{".".join("a" * 99)}" = 1.5\n', "a = 1.5\n" * 3, "a = [1.5, 2.5, 3.5]\n" * 9,
    ]  # fmt: skip
    over = [
        f"{dotted}.a = 1\n", f"[{dotted}.a]\n", f"a = {'[' * (32 + 1)}{']' * (32 + 1)}\n",
        f"a = [{'1,' * (50_000 - 1)}]\n", f"{'a' * (10_000 + 1)} = 1\n", f"'a' . {dotted} = 1\n",
        f"a # .\n={{{dotted}\t. a=1}}",
    ]  # fmt: skip
    assert [problem(text)[1] for text in fits] == [""] * len(fits)
    assert all(problem(text)[1] for text in over)
    assert problem("a = 1")[0] == 1
    assert problem("a = 1", 50_000)[1]


def test_strings_and_comments_count_for_nothing() -> None:
    for text in ('a = "{0}"', "a = '{0}'", 'a = """\n{0}"""', "a = '''\n{0}'''", "a = 1 # {0}", '"{0}" = 1'):
        whole = text.format("a.[{,=" * 50_000)
        assert problem(whole) == (1, "", 0)


@settings(max_examples=300)
@given(st.text(alphabet="a1.=[]{},#\"'\\ \n\r\x00\u00e9", max_size=60))
def test_no_key_of_tomllib_is_deeper_than_what_was_counted(text: str) -> None:
    """Whatever tomllib accepts, the tokens cover it to its end."""
    try:
        tomllib.loads(text)
    except ValueError:
        return
    end = max((match.end() for match in tokens(text.replace("\r\n", "\n"))), default=0)
    rest = text.replace("\r\n", "\n")[end:]
    assert all(not line.strip() or line.lstrip().startswith("#") for line in rest.split("\n"))


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


AT = Spot(TomlSource("c.toml", "key = 1\n"), ("key",))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: text_of(3, AT), "must be text, not a number"),
        (lambda: text_of("  ", AT), "must be 1 to 500 characters long"),
        (lambda: text_of("a" * 501, AT), "must be 1 to 500 characters long"),
        (lambda: texts_of({}, AT), "must be a list of texts, not a table"),
        (lambda: texts_of(["a", 3], AT), "must be text, not a number"),
        (lambda: table_of([], AT), "must be a table, not a list"),
        (lambda: unknown_key("colr", {"color": 1}, AT), "unknown key 'colr'; did you mean 'color'?"),
        (lambda: unknown_key("zzz", {"color": 1, "size": 2}, AT), "unknown key 'zzz'; known are color, size"),
        (lambda: choice_of("red", AT, ("blue", "rod")), "'red' is not one of blue, rod; did you mean 'rod'?"),
        (lambda: pattern_of("*" * 501, AT), "longer than 500 characters"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        call()
    assert str(caught.value).startswith("c.toml:1:1: ")
    assert message in str(caught.value)


def test_what_is_right_is_read() -> None:
    assert text_of(" a ", AT) == " a "
    assert [word.text for word in texts_of([" a", "b "], AT)] == ["a", "b"]
    assert [word.text for word in texts_of("a", AT)] == ["a"]
    assert table_of({"a": 1}, AT) == {"a": 1}
    assert pattern_of("a/**", AT) == "a/**"
    assert choice_of("blue", AT, ("blue", "rod")) == "blue"
    unknown_key("color", {"color": 1}, AT)


@pytest.mark.parametrize(
    ("value", "words"), [("a", "text"), (True, "a boolean"), (1, "a number"), (1.5, "a number"), ([], "a list")]
)
def test_kinds_have_names(value: object, words: str) -> None:
    assert kind_of(value) == words
