"""Values on one line of YAML read back as they were, with every parser, and hold nothing odd."""

from __future__ import annotations

import re

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from convlint.files.flow_yaml import flow


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
