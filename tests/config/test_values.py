"""Values of a config, checked one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from convlint.config.toml_source import Spot, TomlSource
from convlint.config.values import choice_of, kind_of, pattern_of, table_of, text_of, texts_of, unknown_key
from convlint.errors import UsageError

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
