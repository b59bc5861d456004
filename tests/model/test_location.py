"""Where something was written."""

import pytest

from convlint.model.location import Location


def test_a_format_without_lines_has_none() -> None:
    place = Location(path="net.onnx")
    assert (place.line, place.column, place.end_line, place.end_column) == (None, None, None, None)


def test_a_place_is_a_value() -> None:
    place = Location(path="net.yaml", line=3, column=5)
    assert place == Location(path="net.yaml", line=3, column=5) != Location(path="net.yaml", line=3)
    assert len({place, Location(path="net.yaml", line=3, column=5)}) == 1
    with pytest.raises(AttributeError):
        place.line = 4  # type: ignore[misc]
