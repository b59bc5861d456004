"""Values by what they have in common."""

from convlint.model.grouping import grouped


def test_each_key_has_its_values_in_order() -> None:
    pairs = [("b", 2), ("a", 1), ("b", 1), ("b", 2)]
    assert list(grouped(iter(pairs)).items()) == [("b", [2, 1, 2]), ("a", [1])]


def test_nothing_has_no_groups() -> None:
    assert grouped([]) == {}
