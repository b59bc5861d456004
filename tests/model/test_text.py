"""Texts that keep what they are made of."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convlint.model.text import Blank, Text, filled, joined, mapped, printed

LAYERS = Blank("layers")
USE = Text("use {side}={width}", side="K", width=64)
NAMES = st.text(max_size=20)


@pytest.mark.parametrize(
    ("text", "english", "template", "values"),
    [
        (Text("plain"), "plain", "plain", {}),
        (USE, "use K=64", "use {side}={width}", {"side": "K", "width": "64"}),
        (Text("time {time:+.0f} %", time=-12.7), "time -13 %", "time {time:+.0f} %", {"time:+.0f": "-13"}),
        (Text("{a} of {a}", a="x"), "x of x", "{a} of {a}", {"a": "x"}),
        (USE + " at once", "use K=64 at once", "{0}{1}", {"0": USE, "1": " at once"}),
        ("once, " + USE, "once, use K=64", "{0}{1}", {"0": "once, ", "1": USE}),
    ],
)
def test_a_text_is_its_english_and_keeps_its_parts(
    text: Text, english: str, template: str, values: dict[str, str]
) -> None:
    assert text == english
    assert hash(text) == hash(english)
    assert f"{text}" == english
    assert (text.template, text.values, text.code) == (template, values, "")


def test_a_text_within_another_stays_one() -> None:
    outer = Text("{fix}; then stop", fix=USE)
    assert outer == "use K=64; then stop"
    assert outer.values["fix"] is USE
    assert type(printed(LAYERS)) is Blank
    assert printed(0.5, ".0%") == "50%"


@pytest.mark.parametrize(
    ("parts", "text"), [([], ""), (["a"], "a"), (["a", "b"], "a and b"), (["a", USE, "c"], "a and use K=64 and c")]
)
def test_parts_are_joined(parts: list[str], text: str) -> None:
    whole = joined(Text(" and "), parts)
    assert whole == text
    if len(parts) > 1:
        assert isinstance(whole, Text)
        assert isinstance(whole.values["between"], Text)
    elif parts:
        assert whole is parts[0]


def test_what_is_only_known_later_is_filled_in_wherever_it_stands() -> None:
    text = "once, " + Text.of("{count} of {layers}", {"count": "2", "layers": LAYERS}, "CL102")
    done = filled(text, {LAYERS: USE})
    assert done == "once, 2 of use K=64"
    assert isinstance(done, Text)
    assert done.values["1"].code == "CL102"  # type: ignore[attr-defined]
    assert filled("layers", {LAYERS: "x"}) == "layers"  # a name, and no blank


@given(NAMES, NAMES)
def test_values_are_never_read_as_templates_or_blanks(one: str, other: str) -> None:
    text = Text("{one} and {other} of {layers}", one=one, other=other, layers=LAYERS)
    assert filled(text, {LAYERS: "{one}"}) == f"{one} and {other} of {{one}}"


def test_values_change_and_templates_do_not() -> None:
    text = Text("{what} at a:1", what=Text("{place}", place="a:1"))
    assert mapped(text, lambda part: part.replace("a:1", "cell 2")) == "cell 2 at a:1"
    assert mapped("a:1", str.upper) == "A:1"


def test_texts_travel_between_processes() -> None:
    text = "once, " + Text.of("{name:.0f}", {"name:.0f": USE}, "CL102")
    again = pickle.loads(pickle.dumps(text))
    assert (type(again), again, again.template, again.values) == (Text, text, text.template, text.values)
    assert again.values["1"].code == "CL102"
