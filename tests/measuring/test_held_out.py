"""Rows of one shape stay together, and only what helps shapes that had no part in it is a gain."""

from __future__ import annotations

from convolutions import conv

from convlint.measuring.held_out import FOLDS, folds, gain, shape_of
from convlint.model.layer import Dtype


def test_the_batch_and_the_dtype_are_no_part_of_a_shape() -> None:
    assert shape_of(conv()) == shape_of(conv(N=1, dtype=Dtype.fp32, layout="NCHW"))
    assert len({shape_of(conv(**one)) for one in ({}, {"C": 32}, {"H": 28}, {"R": 1, "S": 1}, {"U": 2})}) == 5


def test_every_row_is_held_out_once_with_all_of_its_shape() -> None:
    shapes = [shape_of(conv(C=8 * (1 + number % 7))) for number in range(21)]
    parts = folds(shapes)
    assert len(parts) == FOLDS
    assert sorted(index for held, _ in parts for index in held) == list(range(21))
    for held, others in parts:
        assert sorted(held + others) == list(range(21))
        assert not {shapes[index] for index in held} & {shapes[index] for index in others}


def test_few_shapes_make_few_parts() -> None:
    assert [held for held, _ in folds([("a",), ("b",), ("a",)])] == [[0, 2], [1]]


def test_one_standard_error_is_taken_off() -> None:
    shapes = [("a",), ("b",), ("c",), ("c",)]
    assert gain([1.0] * 4, [0.5] * 4, shapes) == 0.5
    assert gain([1.0] * 4, [0.0, 1.0, 0.5, 0.5], shapes) < 0.5 - 0.2
    assert gain([1.0] * 4, [0.9, 1.1, 1.0, 1.0], shapes) < 0


def test_rows_of_one_shape_count_once() -> None:
    many = [("a",)] * 50 + [("b",), ("c",)]
    assert gain([1.0] * 52, [0.5] * 50 + [1.0, 1.0], many) < 0.01


def test_one_shape_proves_nothing() -> None:
    assert gain([1.0, 1.0], [0.0, 0.0], [("a",), ("a",)]) == 0.0
