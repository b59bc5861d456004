"""What runs a network: settings are unknown until they are given, but for the one that frameworks turn on."""

import pytest

from convlint.model.runtime import Runtime, Version


@pytest.mark.parametrize(
    ("smaller", "larger"), [("7.6.2", "7.6.3"), ("8.9", "8.10"), ("2.0.1", "2.1.0+cu118"), ("9", "9.1"), ("8.9.7", "9")]
)
def test_versions_compare_number_by_number(smaller: str, larger: str) -> None:
    assert Version(smaller) < Version(larger)
    assert Version(smaller) < larger
    assert Version(larger) >= smaller
    assert Version(smaller) != Version(larger)


def test_versions_that_are_equal() -> None:
    assert Version("8.0.0") == Version("8") == "8.0"
    assert hash(Version("8.0.0")) == hash(Version("8"))
    assert str(Version("8.10")) == "8.10"


@pytest.mark.parametrize("text", ["", "latest", "v8", ".5", "-1"])
def test_no_version(text: str) -> None:
    with pytest.raises(ValueError, match="not a version"):
        Version(text)


@pytest.mark.parametrize("name", [name for name in Runtime.__struct_fields__ if name not in ("tf32", "spans")])
def test_what_is_not_given_is_unknown(name: str) -> None:
    assert getattr(Runtime(), name) is None


def test_tf32_is_on_unless_it_is_turned_off() -> None:
    assert Runtime().tf32 is True


def test_places_are_no_part_of_it() -> None:
    placed = Runtime(cudnn=Version("8.9"), spans={"cudnn": (3, 1, 3, 6)})
    assert placed == Runtime(cudnn=Version("8.9")) != Runtime(cudnn=Version("8.8"))
    assert hash(placed) == hash(Runtime(cudnn=Version("8.9")))
