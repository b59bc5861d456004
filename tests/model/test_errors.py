"""Exceptions and the words of their messages."""

import pytest

import convlint
from convlint.model.errors import AskedWrong, InputFault, RuleError, UsageError, defect, shown, suggestion


def test_callers_catch_wrong_usage_by_one_name() -> None:
    assert convlint.UsageError is UsageError
    assert issubclass(RuleError, UsageError)
    assert not issubclass(InputFault, UsageError)  # an input that cannot be read ends with 3, not with 2


@pytest.mark.parametrize(
    ("line", "column", "place"), [(None, None, "a.yaml"), (3, None, "a.yaml:3"), (3, 7, "a.yaml:3:7")]
)
def test_a_rule_error_begins_with_its_place(line: int | None, column: int | None, place: str) -> None:
    assert str(RuleError("is wrong", path="a.yaml", line=line, column=column)) == f"{place}: is wrong"


def test_faults_keep_their_place_and_what_they_are_about() -> None:
    fault = AskedWrong("no such input", about="inputs")
    assert (fault.message, fault.line, fault.column, fault.about) == ("no such input", None, None, "inputs")


@pytest.mark.parametrize(
    ("word", "expected"),
    [("a10", "; did you mean 'a100'?"), ("A100", "; did you mean 'a100'?"), ("zzz", ""), ("a" * 101, "")],
)
def test_a_word_like_a_known_one_is_suggested(word: str, expected: str) -> None:
    assert suggestion(word, ["a100", "h100-sxm", "t4"]) == expected


def test_a_defect_says_where_it_arose() -> None:
    try:
        raise ZeroDivisionError("by nothing")
    except ZeroDivisionError as error:
        message = defect(error)
    assert message.startswith("internal error: ZeroDivisionError: by nothing (test_a_defect_says_where_it_arose, line ")


def test_long_values_are_cut() -> None:
    assert shown("x" * 40) == "x" * 40
    assert shown("x" * 41) == "x" * 20 + "… (41 characters)"
