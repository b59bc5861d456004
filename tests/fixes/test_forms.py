"""Each form in which a spec gives a value keeps its form, as far as it can say the new one."""

from __future__ import annotations

from typing import Any

import pytest
from fixed_specs import fixed_layer, one_layer, refused

from convlint.fixes.forms import CHANGEABLE, KEYS_OF, No, Sides, letters_of, restated, together
from convlint.model.layer import ConvLayer

SIZED = "C: 8, K: 8, H: 9, W: 9, kernel_size: 3, "


@pytest.mark.parametrize(
    ("before", "changes", "after"),
    [
        ("kernel_size: 3", [("R", 5), ("S", 5)], "kernel_size: 5"),
        ("kernel_size: 3", [("R", 5)], "kernel_size: [5, 3]"),
        ("kernel_size: 3", [("R", 3)], "kernel_size: 3"),
        ("kernel: [3]", [("R", 5), ("S", 5)], "kernel: [5]"),
        ("kernel: [ 3 ]", [("S", 5)], "kernel: [3, 5]"),
        ("kernel_size: [3,  7]", [("R", 5)], "kernel_size: [5,  7]"),
        ("kernel_size: [3, 7]", [("R", 7)], "kernel_size: [7, 7]"),
        ("kernel_size: 3, R: 3", [("R", 5)], "kernel_size: [5, 3], R: 5"),
        ("kernel_size: 3, R: 3, S: 3", [("R", 5), ("S", 5)], "kernel_size: 5, R: 5, S: 5"),
        ("R: 3, S: 3", [("S", 5)], "R: 3, S: 5"),
        ("kernel_size: 3, strides: 1", [("V", 2)], "kernel_size: 3, strides: [1, 2]"),
        ("kernel_size: 3, dilation_rate: [2, 2]", [("DilH", 1), ("DilW", 1)], "kernel_size: 3, dilation_rate: [1, 1]"),
    ],
)
def test_a_number_for_several_axes(before: str, changes: list[tuple[str, Any]], after: str) -> None:
    rest = "C: 8, K: 8, H: 9, W: 9, "
    assert fixed_layer(rest + before, *changes) == rest + after


@pytest.mark.parametrize(
    ("before", "changes", "after"),
    [
        ("padding: 1", [("PadH", 2), ("PadW", 2)], "padding: 2"),
        ("padding: 1", [("PadH", 2)], "padding: [2, 1]"),
        ("padding: 1", [("PadH", 2), ("PadH_end", 2)], "padding: [2, 1]"),
        ("padding: 1", [("PadH_end", 2)], "padding: [1, 2, 1, 1]"),
        ("padding: [1]", [("PadW", 2)], "padding: [1, 2]"),
        ("pad: [1, 1]", [("PadW", 0)], "pad: [1, 0]"),
        ("pad: [1, 1]", [("PadW_end", 0)], "pad: [1, 1, 1, 0]"),
        ("padding: [1, 2, 3, 4]", [("PadH_end", 0), ("PadW", 5)], "padding: [1, 0, 5, 4]"),
        ("padding: [[1, 2], [3, 4]]", [("PadH_end", 0), ("PadW", 5)], "padding: [[1, 0], [5, 4]]"),
        ("padding: {top: 1, bottom: 1}", [("PadH", 2)], "padding: {top: 2, bottom: 2}"),
        ("padding: {top: 1}", [("PadH_end", 2)], "padding: {top: 1, bottom: 2}"),
        ("padding: {}", [("PadW", 2)], "padding: {left: 2, right: 2}"),
        ("padding: {top: 1}", [("PadH_end", 0)], "padding: {top: 1}"),
        ('padding: "valid"', [("PadH", 1), ("PadW", 1)], "padding: 1"),
        ("padding: valid", [("PadH", 1)], "padding: [1, 0]"),
        ("padding: valid", [("PadH", 0)], "padding: valid"),
        ("PadH: 1, PadW: 1", [("PadW", 2)], "PadH: 1, PadW: 2"),
        ("PadH: 1", [("PadH", 2), ("PadH_end", 2)], "PadH: 2"),
        ("padding: same", [("PadH", 1), ("PadW", 1)], "padding: same"),
    ],
)
def test_padding(before: str, changes: list[tuple[str, Any]], after: str) -> None:
    assert fixed_layer(SIZED + before, *changes) == SIZED + after


def test_same_padding_stays_where_it_restates_what_is_asked_for() -> None:
    before = "C: 8, K: 8, H: 9, W: 9, padding: same, kernel_size: 3"
    after = "C: 8, K: 8, H: 9, W: 9, padding: same, kernel_size: 5"
    assert fixed_layer(before, ("R", 5), ("S", 5), ("PadH", 2), ("PadW", 2)) == after


@pytest.mark.parametrize(
    ("before", "change", "reason"),
    [
        ("padding: same", ("PadH", 2), "padding: same follows from the sizes"),
        ("PadH: 1", ("PadH_end", 2), "PadH pads both sides alike"),
        ("groups: 1", ("T", 3), "a 2-D convolution has no T"),
        ("groups: 1", ("name", "x"), "name is no value that can be changed"),
    ],
)
def test_what_a_form_cannot_say(before: str, change: tuple[str, Any], reason: str) -> None:
    assert refused(one_layer(SIZED + before), (0, *change)) == [reason]


@pytest.mark.parametrize(
    ("dims", "before", "changes", "after"),
    [
        (1, "C: 8, K: 8, W: 9, kernel_size: [3]", [("S", 5)], "C: 8, K: 8, W: 9, kernel_size: [5]"),
        (1, "C: 8, K: 8, W: 9, S: 3, padding: 1", [("PadW_end", 0)], "C: 8, K: 8, W: 9, S: 3, padding: [1, 0]"),
        (3, "C: 8, K: 8, kernel_size: 3", [("T", 1)], "C: 8, K: 8, kernel_size: [1, 3, 3]"),
        (3, "C: 8, K: 8, kernel_size: [1, 3, 3]", [("T", 3)], "C: 8, K: 8, kernel_size: [3, 3, 3]"),
        (3, "C: 8, K: 8, S: 3, R: 3, padding: 1", [("PadD", 0)], "C: 8, K: 8, S: 3, R: 3, padding: [0, 1, 1]"),
        (
            3, "C: 8, K: 8, S: 3, R: 3, padding: [0, 1, 1]", [("PadD_end", 1)],
            "C: 8, K: 8, S: 3, R: 3, padding: [0, 1, 1, 1, 1, 1]",
        ),
        (
            3, "C: 8, K: 8, S: 3, R: 3, padding: {front: 1, top: 2}", [("PadD_end", 1)],
            "C: 8, K: 8, S: 3, R: 3, padding: {front: 1, top: 2, back: 1}",
        ),
    ],
)  # fmt: skip
def test_one_and_three_dimensions(dims: int, before: str, changes: list[tuple[str, Any]], after: str) -> None:
    assert fixed_layer(before, *changes, dims=dims) == after


def test_letters_that_others_state_may_become_any() -> None:
    assert restated("kernel_size", "3", {"S": 5}, ["S"], 2) == "5"
    assert restated("kernel_size", "3", {"S": 5}, ["R", "S"], 2) == ("3", "5")
    assert restated("padding", ("1",), {"PadW": 2, "PadW_end": 2}, ["PadW", "PadW_end"], 2) == ("2",)


def test_what_is_no_convolution_has_no_form() -> None:
    assert isinstance(restated("kernel_size", "3", {"S": 5}, ["S"], None), No)
    assert restated("C", "3", {"C": 5}, ["C"], None) == "5"


def test_sides_keep_the_order_of_the_reader() -> None:
    new = restated("padding", Sides((("left", "1"),)), {"PadH": 2, "PadH_end": 0}, letters_of("padding", 2), 2)
    assert new == Sides((("top", "2"), ("left", "1")))


@pytest.mark.parametrize(
    ("name", "values", "dims", "new"),
    [
        ("stride", {"U": 2, "V": 2}, 2, "2"),
        ("stride", {"U": 2, "V": 1}, 2, ("2", "1")),
        ("padding", {"PadH": 1, "PadH_end": 1, "PadW": 0, "PadW_end": 0}, 2, ("1", "0")),
        ("padding", {"PadW": 1, "PadW_end": 0}, 1, ("1", "0")),
    ],
)
def test_values_that_nothing_states_yet(name: str, values: dict[str, int], dims: int, new: object) -> None:
    assert together(name, values, dims) == new


def test_every_letter_that_can_change_is_a_field_with_a_key() -> None:
    declared = {"Z", "P", "Q"}
    assert set(ConvLayer.__struct_fields__) >= CHANGEABLE - declared
    assert set(KEYS_OF) >= CHANGEABLE
    assert KEYS_OF["K"] == ("K", "out_channels", "output_channels", "filters")
