"""What names an object of the user's code."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convlint.errors import InputFault
from convlint.readers.references import Reference, looks_like_reference, parse_reference


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("m:Net", Reference(module="m", attributes=("Net",))),
        ("a.b:zoo.make", Reference(module="a.b", attributes=("zoo", "make"))),
        ("m:Net()", Reference(module="m", attributes=("Net",), called=True)),
        (
            "m:Net(3, 'a', width=-1.5, deep=True, sizes=[1, (2, 3)], none=None, table={'a': 1})",
            Reference(
                module="m", attributes=("Net",), called=True, arguments=(3, "a"),
                keywords={"width": -1.5, "deep": True, "sizes": [1, (2, 3)], "none": None, "table": {"a": 1}},
            ),
        ),
        ("m:zoo.make('x').net.body", Reference(module="m", attributes=("zoo", "make"), called=True, arguments=("x",),
                                               then=("net", "body"))),
        (" m : Net ( 3 ) ", Reference(module="m", attributes=("Net",), called=True, arguments=(3,))),
    ],
)  # fmt: skip
def test_references_are_read(text: str, expected: Reference) -> None:
    assert parse_reference(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("m", "is not package.module:name"),
        ("m:", "is not package.module:name"),
        (":Net", "is not package.module:name"),
        ("a b:Net", "is not package.module:name"),
        ("m:Net(", "is no Python expression"),
        ("m:Net(foo())", "'foo()' is no literal"),
        ("m:Net(width)", "'width' is no literal"),
        ("m:Net(*[1, 2])", "arguments are written out, not spread"),
        ("m:Net(**{'a': 1})", "arguments are written out, not spread"),
        ("m:Net()()", "neither a name nor a name that is called once"),
        ("m:Net[0]", "neither a name nor a name that is called once"),
        ("m:__import__('os').system('x')", "neither a name nor a name that is called once"),
        ("m:lambda: 3", "neither a name nor a name that is called once"),
        ("m:Net(" + "[" * 60 + "]" * 60 + ")", "has too many brackets"),
        ("m:" + "a" * 3000, "longer than 2,000 characters"),
    ],
)
def test_what_is_wrong_is_said(text: str, message: str) -> None:
    with pytest.raises(InputFault) as caught:
        parse_reference(text)
    assert message in caught.value.message


@given(st.text(max_size=60))
def test_no_text_is_too_odd(text: str) -> None:
    for prefix in ("", "m:", "m:Net("):
        with suppress(InputFault):
            parse_reference(prefix + text)


@pytest.mark.parametrize(
    ("text", "looks"),
    [
        ("m:Net", True), ("a.b:c.d", True), ("m:Net(3, 'x y')", True), ("m:make('a:b').body", True),
        ("m:Net(foo())", True), ("C:\\\\net.onnx", False), ("m:", False), ("m:Net)", False), ("a b:c", False),
        ("https://x.y/z", False), ("m:Net(3", False), ("m:" + "a" * 3000, False),
    ],
)  # fmt: skip
def test_words_that_are_written_as_references(text: str, looks: bool) -> None:
    assert looks_like_reference(text) == looks
