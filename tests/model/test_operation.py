"""Steps of a network."""

from __future__ import annotations

from typing import get_args

from convlint.model.operation import Operation, OperationKind
from convlint.readers.spec.layer import conv_op
from convlint.readers.spec.shapes import CARRIERS, normalised


def test_every_kind_is_a_word_of_the_spec() -> None:
    for kind in get_args(OperationKind):
        assert conv_op(kind) is not None or normalised(kind)[0] in CARRIERS, kind


def test_an_operation_knows_no_sizes_unless_told() -> None:
    assert Operation(kind="identity", inputs=(0,)).C is None
