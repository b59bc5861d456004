"""The words of a TOML text and the limits on them: what costs too much is refused before it is read."""

from __future__ import annotations

import time
import tomllib
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convlint.config.toml_source import TomlSource, key_offsets
from convlint.config.toml_tokens import problem, tokens
from convlint.errors import UsageError

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


@pytest.mark.slow
@pytest.mark.parametrize("text", ACCEPTED.values(), ids=ACCEPTED)
def test_what_is_accepted_is_cheap(text: str) -> None:
    assert len(text) <= SIZE
    start = time.process_time()
    tracemalloc.start()
    try:
        TomlSource("x.toml", text).place(("a",))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100 * 2**20
    assert time.process_time() - start < 30  # the tracing takes most of it


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
