"""What a node says anew stands where it stood, in its quotes; what cannot be written there is told beforehand."""

from __future__ import annotations

from typing import Any

import pytest
from fixed_specs import fixed, fixed_layer, one_layer, refused

from convlint.fixes.forms import Data, Sides, data_of
from convlint.fixes.writing import missing_sides, rendered, unwritable
from convlint.fixes.yaml_nodes import Mapping, Node, nodes_of

SIZED = "C: 8, K: 8, H: 9, W: 9, kernel_size: 3, "


def value(text: str) -> Node:
    tree = nodes_of(text)
    assert tree is not None
    return tree.root.own["a"].value


@pytest.mark.parametrize(
    ("before", "change", "after"),
    [
        ('dtype: "fp16"', ("dtype", "fp32"), 'dtype: "fp32"'),
        ("dtype: 'fp16' ", ("dtype", "fp32"), "dtype: 'fp32' "),
        ("dtype: &d fp16", ("dtype", "fp32"), "dtype: &d fp32"),
        ("dtype: ! fp16", ("dtype", "fp32"), "dtype: ! fp32"),
        ("dtype: &d   # c\n   fp16", ("dtype", "fp32"), "dtype: &d   # c\n   fp32"),
        ("layout: 'channels_last'", ("layout", "NCHW"), "layout: 'channels_first'"),
        ("bias: Yes", ("bias", False), "bias: No"),
        ("groups: 1 # c", ("groups", 2), "groups: 2 # c"),
        ("? groups : 1", ("groups", 2), "? groups : 2"),
        ("'groups': 1", ("groups", 2), "'groups': 2"),
        ("padding: [ 1 , # top\n   2]", ("PadW", 5), "padding: [ 1 , # top\n   5]"),
    ],
)
def test_only_the_characters_of_the_value_change(before: str, change: tuple[str, Any], after: str) -> None:
    if "#" in before:
        before, after = (text + "\n  " for text in (before, after))
    assert fixed_layer(SIZED + before, change) == SIZED + after


@pytest.mark.parametrize(
    ("old", "new", "writable"),
    [
        ("a: 3", ("5", "3"), True),
        ("a: >-\n  fp16", "fp32", False),
        ("a: [3]", ("5", "3"), True),
        ("a: [3, # c\n 3]", ("5", "3"), True),
        ("a: [3, # c\n 3]", ("5", "3", "1", "1"), False),
        ("a:\n- 3\n- 3", ("5", "3"), True),
        ("a:\n- 3", ("5", "3"), False),
        ("a: [&x 3, 3]", ("5", "3"), True),
        ("a: [&x 3, 3]\nb: *x", ("5", "3"), False),
        ("a: [&x 3, 3]\nb: *x", ("3", "5"), True),
        ("a: [&x 3]\nb: *x", ("3", "5"), False),
        ("a: [[1, &x 2], [3, 4]]\nb: *x", (("1", "5"), ("3", "4")), False),
        ("a: {top: &x 1}\nb: *x", Sides((("top", "2"),)), False),
        ("a: {top: &x 1}\nb: *x", Sides((("top", "1"), ("left", "2"))), True),
    ],
)
def test_what_can_be_written(old: str, new: Data, writable: bool) -> None:
    assert (unwritable(old, value(old), data_of(value(old)), new) is None) is writable


def test_lists_in_block_style_keep_it() -> None:
    before = "version: 1\nlayers:\n  - K: 8\n    C: 8\n    kernel_size: # taps\n    - 3  # high\n    - 3  # wide\n"
    assert fixed(before, (0, "S", 5)) == before.replace("3  # wide", "5  # wide")
    short = before.replace("    - 3  # wide\n", "").replace("C: 8\n", "C: 8\n    op: conv2d\n")
    assert refused(short, (0, "S", 5)) == ["its list has another length, and is not written on one line"]


def test_sides_are_added_in_the_style_of_their_mapping() -> None:
    before = "version: 1\nlayers:\n  - K: 8\n    C: 8\n    kernel_size: 3\n    padding: # all\n      top: 1 # c\n"
    assert fixed(before, (0, "PadW", 2)) == before + "      left: 2\n      right: 2\n"


def test_sides_that_are_merged_are_stated() -> None:
    head = "version: 1\nx-p: &p {top: 1, left: 1}\nlayers:\n  - {K: 8, C: 8, kernel_size: 3, padding: "
    assert fixed(head + "{<<: *p, bottom: 1}}\n", (0, "PadH", 2)) == head + "{<<: *p, bottom: 2, top: 2}}\n"
    node = value("a: {<<: {top: 1}, left: 2}")
    assert isinstance(node, Mapping)
    assert missing_sides(node, Sides((("top", "1"), ("bottom", "4"), ("left", "3")))) == {"bottom": "4"}


def test_an_element_that_is_an_alias_becomes_a_number() -> None:
    text = "version: 1\nx-p: &p 1\nlayers:\n  - {K: 8, C: 8, kernel_size: 3, padding: [*p, *p]}\n"
    assert fixed(text, (0, "PadW", 2)) == text.replace("[*p, *p]", "[*p, 2]")


def test_a_list_of_another_length_takes_its_aliases_along() -> None:
    text = "version: 1\nlayers:\n  - {K: &k 1, C: 8, kernel_size: 3, op: conv2d, padding: [*k]}\n"
    assert fixed(text, (0, "K", 2), (0, "PadW", 2)) == text.replace("&k 1", "&k 2").replace("[*k]", "[1, 2]")


@pytest.mark.parametrize(
    ("data", "as_json", "text"),
    [
        (("5", "3"), False, "[5, 3]"),
        ((("1", "2"), ("3", "4")), False, "[[1, 2], [3, 4]]"),
        (Sides((("top", "1"),)), False, "{top: 1}"),
        (Sides((("top", "1"),)), True, '{"top": 1}'),
        ("NHWC", False, "NHWC"), ("NHWC", True, '"NHWC"'), ("true", True, "true"), ("64", True, "64"),
        ("8.9", False, '"8.9"'), ("8.9", True, '"8.9"'), ("a: b", False, '"a: b"'), ("é: #", False, '"\\xE9: #"'),
    ],
)  # fmt: skip
def test_values_in_flow_style(data: Data, as_json: bool, text: str) -> None:
    assert rendered(data, as_json=as_json) == text


def test_a_block_of_text_is_left_alone() -> None:
    text = one_layer("C: 8, K: 8, kernel_size: 3").replace("  - {", "  - &a {") + "  - K: 8\n    C: 8\n"
    text += "    kernel_size: 3\n    dtype: |\n      fp16\n"
    assert refused(text, (1, "dtype", "fp32")) == ["it is written as a block of text"]
