"""Options become typed values, or are refused with what is allowed."""

from __future__ import annotations

import pytest

from convlint.cli.options import color_of, one_of, presentation, read_options, split
from convlint.errors import UsageError
from convlint.model.layer import MODES


def test_one_of_those_allowed() -> None:
    assert one_of("--mode", None, MODES) is None
    assert one_of("--mode", "inference", MODES) == "inference"
    with pytest.raises(UsageError, match="--mode: 'train' is not one of training, inference"):
        one_of("--mode", "train", MODES)
    with pytest.raises(UsageError, match="--color: 'on' is not one of auto, always, never"):
        color_of("on")


def test_the_first_of_several_wrong_options_is_told() -> None:
    with pytest.raises(UsageError, match="--color"):
        presentation(["jsn"], "on", quiet=False)


def test_lists_of_words() -> None:
    assert split(["CL1,CL2", "CL3 CL4"]) == ("CL1", "CL2", "CL3", "CL4")
    assert split(None) == ()
    assert read_options(None, ["x=1x3", "4x3", "5"], None).inputs == {"x": "1x3", "": "4x3,\n5"}
