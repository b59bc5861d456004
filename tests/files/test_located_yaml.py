"""Values know where they stand, and hostile YAML is refused at its place."""

import io
import json
import os
import re
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from convlint.files import located_yaml
from convlint.files.located_yaml import Value, flow, parse, read_text
from convlint.model.errors import InputFault


def parsed(text: str) -> Value:
    value = parse(text)
    assert value is not None
    return value


def plain(value: Value) -> Any:
    if isinstance(value.data, dict):
        return {key: plain(item) for key, item in value.data.items()}
    if isinstance(value.data, list):
        return [plain(item) for item in value.data]
    return value.data


@pytest.mark.parametrize(
    ("text", "path", "span"),
    [
        ("a: 64\nbc: [3,  5]\n", ["a"], (1, 4, 1, 6)),
        ("a: 64\nbc: [3,  5]\n", ["bc"], (2, 5, 2, 12)),
        ("a: 64\nbc: [3,  5]\n", ["bc", 1], (2, 10, 2, 11)),
        ("- {n: x, k: 'y z'}\n", [0], (1, 3, 1, 19)),
        ("- {n: x, k: 'y z'}\n", [0, "k"], (1, 13, 1, 18)),
        ("- n: x\n  k: y\n- z\n", [0, "k"], (2, 6, 2, 7)),
        ("中文: é64\n", ["中文"], (1, 5, 1, 8)),
        ("🙂: [🙂, 64]\n", ["🙂", 1], (1, 8, 1, 10)),
        ("a: 1\r\nb: 22\r\n", ["b"], (2, 4, 2, 6)),
        ("a: 1\rb: 22\r", ["b"], (2, 4, 2, 6)),
        ("\ufeffa: 1\n", ["a"], (1, 4, 1, 5)),
        ("a: &x {b: 1}\nc: *x\n", ["c"], (2, 4, 2, 6)),
        ("a: &x {b: 1}\nc: *x\n", ["c", "b"], (1, 11, 1, 12)),
        ("a: |\n  x\n  y\nb: 2", ["b"], (4, 4, 4, 5)),
    ],
)
def test_every_value_knows_its_place(text: str, path: list[str | int], span: tuple[int, int, int, int]) -> None:
    value = parsed(text)
    for step in path:
        value = value.data[step]
    assert value.span == span


def test_keys_know_their_place() -> None:
    assert parsed("a: 1\n  \nbc: 2").data["bc"].key_span == (3, 1, 3, 3)


def test_scalars_stay_text() -> None:
    data = parsed("a: no\nb: 017\nc: 1:30\nd: 1e3\ne: '5'\nf:\ng: ~").data
    assert {key: value.data for key, value in data.items()} == {
        "a": "no", "b": "017", "c": "1:30", "d": "1e3", "e": "5", "f": "", "g": "~",
    }  # fmt: skip
    assert [data[key].plain for key in "de"] == [True, False]
    assert [data[key].is_null for key in "efg"] == [False, True, True]


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n", "---\n", "~", "null"])
def test_nothing_there(text: str) -> None:
    assert parse(text) is None


printable = st.characters(min_codepoint=32, max_codepoint=0xD7FF, blacklist_characters="\x7f")
keys = st.text("abcXYZ_-09", min_size=1, max_size=8)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(printable),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)


@given(value=st.dictionaries(keys, json_values, max_size=4))
def test_json_is_read_as_it_is(value: dict[str, Any]) -> None:
    def as_text(item: Any) -> Any:
        if isinstance(item, dict):
            return {key: as_text(entry) for key, entry in item.items()}
        if isinstance(item, list):
            return [as_text(entry) for entry in item]
        return item if isinstance(item, str) else json.dumps(item)

    assert plain(parsed(json.dumps(value))) == as_text(value)
    assert plain(parsed(json.dumps(value, indent=2, ensure_ascii=True))) == as_text(value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("base: &b {C: 1, K: 2}\nx: {<<: *b, K: 3}", {"C": "1", "K": "3"}),
        ("base: &b {C: 1, K: 2}\nx: {K: 3, <<: *b}", {"C": "1", "K": "3"}),
        ("base: &b {C: 1}\no: &o {C: 9, K: 2}\nx: {<<: [*b, *o]}", {"C": "1", "K": "2"}),
        ("base: &b {C: 1}\nm: &m {<<: *b, K: 2}\nx: {<<: *m}", {"C": "1", "K": "2"}),
        ("x: {'<<': y}", {"<<": "y"}),
    ],
)
def test_merge_keys(text: str, expected: dict[str, str]) -> None:
    assert plain(parsed(text).data["x"]) == expected


def test_a_merged_value_stands_where_it_was_written() -> None:
    merged = parsed("base: &b {C: 1}\nx: {<<: *b}").data["x"].data["C"]
    assert merged.span == (1, 14, 1, 15)
    assert merged.key_span is None


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("a: 1\nb: 2\na: 3", 3, 1, "duplicate key 'a'; first given on line 1"),
        ("{x: 1, y: {z: 1, z: 2}}", 1, 18, "duplicate key 'z'; first given on line 1"),
        ("a: &a [*a]", 1, 8, "alias *a refers to itself"),
        ("a: &a {b: *a}", 1, 11, "alias *a refers to itself"),
        ("a: &a\n  <<: *a", 2, 7, "alias *a refers to itself"),
        ("a: *b", 1, 4, "alias *b has no anchor"),
        (
            "a: !!python/object/apply:os.system [x]",
            1,
            4,
            "tags such as tag:yaml.org,2002:python/object/apply:os.system",
        ),
        ("a: !!int 3", 1, 4, "tags such as tag:yaml.org,2002:int are not allowed"),
        ("a: !x {}", 1, 4, "tags such as !x are not allowed"),
        ("? [a]\n: b", 1, 3, "a key must be a plain word"),
        ("? {a: b}\n: b", 1, 3, "a key must be a plain word"),
        ("x: &l [1]\n*l : 3", 2, 1, "a key must be a plain word"),
        ("<<: 3", 1, 5, "<< must name a mapping"),
        ("a: 1\n---\nb: 2", 2, 1, "one YAML document"),
        ("a: [1, 2", 2, 1, "not valid YAML"),
        ("a: b: c", 1, 5, "not valid YAML"),
        ("a: 'x", 1, 6, "not valid YAML"),
        ("a:\n\t- b", 2, 1, "not valid YAML"),
        ("a: \x00", 1, 4, "character U+0000 is not allowed"),
        ("é: x\nüü: \x1b[31m", 2, 5, "character U+001B is not allowed"),
        ("a: 1\rb: \x07", 2, 4, "character U+0007 is not allowed"),
        ("a: \ufffe", 1, 4, "character U+FFFE is not allowed"),
        ("[" * 100_000, 1, 33, "nested deeper than 32 levels"),
        ("{a: " * 100_000, 1, 129, "nested deeper than 32 levels"),
        ("- " * 100_000, 1, 65, "nested deeper than 32 levels"),
        ("x" * 50 + ": 1\n" + "x" * 50 + ": 1", 2, 1, "duplicate key '" + "x" * 37 + "...'"),
    ],
)
def test_what_is_refused(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(InputFault) as caught:
        parse(text)
    assert message in caught.value.message
    assert (caught.value.line, caught.value.column) == (line, column)


def test_merges_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(located_yaml, "MAX_MERGED_VALUES", 100)
    base = "{" + ", ".join(f"k{i}: 0" for i in range(30)) + "}"
    assert parse(f"b: &b {base}\nx: [" + "{<<: *b}, " * 3 + "]") is not None
    with pytest.raises(InputFault, match="merges more than 100 values in all"):
        parse(f"b: &b {base}\nx: [" + "{<<: *b}, " * 4 + "]")
    monkeypatch.undo()
    wide = "{" + ", ".join(f"k{i}: 0" for i in range(201)) + "}"
    with pytest.raises(InputFault, match="merges more than 200 keys"):
        parse(f"b: &b {wide}\nx: {{<<: *b}}")


def test_merges_that_add_nothing_are_counted_too() -> None:
    base = "{" + ", ".join(f"k{i}: 0" for i in range(199)) + "}"
    text = f"b: &b {base}\nl: &l [" + "*b, " * 20_000 + "]\n" + "".join(f"x{i}: {{<<: *l}}\n" for i in range(500))
    before = time.process_time()
    with pytest.raises(InputFault, match="values in all"):
        parse(text)
    assert time.process_time() - before < 5


def test_values_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(located_yaml, "MAX_VALUES", 10)
    assert parse("[1, 2, 3, 4, 5, 6, 7, 8, 9]") is not None
    with pytest.raises(InputFault, match="more than 10 values"):
        parse("[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]")


@given(text=st.text(st.characters(blacklist_categories=["Cs"])) | st.text("{}[]:,-&*<! \n'\"?|>#%@ab1", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    fault = value = None
    try:
        value = parse(text)
    except InputFault as error:
        fault = error
    if fault is not None:
        assert fault.column is not None
        assert 1 <= fault.line <= len(located_yaml.LINE_BREAK.split(text)) + 1
    assert value is None or value.span[0] >= 1


@pytest.mark.parametrize(
    ("raw", "line", "column", "message"),
    [
        (b"a: \xff", 1, 4, "is not UTF-8: byte 0xff"),
        ("é: ü\nö: ".encode() + b"\xe9\n", 2, 4, "is not UTF-8: byte 0xe9"),
        (b"a: 1\rb: \x80", 2, 4, "is not UTF-8: byte 0x80"),
        ("a: 1".encode("utf-16"), 1, 1, "is UTF-16"),
        (b"\xfe\xff\x00a", 1, 1, "is UTF-16"),
    ],
)
def test_bytes_that_are_no_text(raw: bytes, line: int, column: int, message: str, tmp_path: Path) -> None:
    path = tmp_path / "net.yaml"
    path.write_bytes(raw)
    with pytest.raises(InputFault) as caught:
        read_text(str(path))
    assert message in caught.value.message
    assert (caught.value.line, caught.value.column) == (line, column)


def test_a_byte_order_mark_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "net.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1")
    assert read_text(str(path)) == "a: 1"


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a: 1")))
    assert read_text("-") == "a: 1"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
def test_a_file_that_turns_into_a_pipe_between_two_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, pipe = tmp_path / "net.yaml", tmp_path / "pipe"
    file.write_text("a: 1")
    os.mkfifo(pipe)
    was_a_file = file.stat()
    writer = threading.Thread(target=_write_once_read, args=(pipe,), daemon=True)  # whoever waits on it would go on
    writer.start()
    with monkeypatch.context() as before:
        before.setattr(Path, "stat", lambda _: was_a_file)
        with pytest.raises(InputFault, match="not a regular file"):
            read_text(str(pipe))
    with open(pipe, "rb", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK)):
        writer.join(10)


def _write_once_read(pipe: Path) -> None:
    with suppress(BrokenPipeError):
        pipe.write_text("a: 2")


def test_a_file_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(located_yaml, "MAX_BYTES", 2**20)
    path = tmp_path / "net.yaml"
    path.write_bytes(b"#" * 2**20)
    assert parse(read_text(str(path))) is None
    path.write_bytes(b"#" * (2**20 + 1))
    with pytest.raises(InputFault, match="larger than 1 MiB"):
        read_text(str(path))


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ({"name": "conv1", "N": 32, "bias": False}, "{name: conv1, N: 32, bias: false}"),
        ({"pad": [1, 2]}, "{pad: [1, 2]}"),
        ("layer1.0.conv-a", "layer1.0.conv-a"),
        ("/layer1/Conv_0", "/layer1/Conv_0"),
        ("input of unknown size", "input of unknown size"),
        ("0", "'0'"),
        ("no", "'no'"),
        ("a: b", "'a: b'"),
        ("::error::pwn", '"::error::pwn"'),
        ("##vso[x]", r'"\x23\x23vso[x]"'),
        ("###[x]", r'"\x23\x23#[x]"'),
        ("a\nb\tc\x1b\x85\u2028\u202e", r'"a\nb\tc\x1B\x85\u2028\u202E"'),
        ("größe 🙂", r'"gr\xF6\xDFe \U0001F642"'),
        ('\x00"\\', r'"\x00\"\\"'),
        ("\ud800", r'"\uFFFD"'),
    ],
)
def test_how_it_is_written(value: object, written: str) -> None:
    assert flow(value) == written


odd = st.sampled_from(
    ["::", "##", "#", "[", "\n", "\r\n", "\x1b", "\x85", "\u2028", "\ufeff", ": ", " #", '"', "'", "\\", "no", "1", " "]
)
characters = st.characters(exclude_categories=["Cs"])


@given(st.lists(odd | st.text(characters, max_size=3), max_size=8).map("".join))
@example("y")
@example("")
@example("1e5")
@example("=")
def test_text_reads_back(text: str) -> None:
    written = flow({"name": text, "more": [text, 1]})
    assert written.isascii()
    assert written.isprintable()
    assert not re.search(r"##\w*\[", written)
    for loader in (yaml.SafeLoader, yaml.CSafeLoader):
        assert yaml.load(f"- {written}\n", loader) == [{"name": text, "more": [text, 1]}]
