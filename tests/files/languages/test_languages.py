"""Which language a run speaks: the flag, then the variable, then the config; never the locale."""

from __future__ import annotations

import pytest

from convlint.files.languages import language_asked, language_chosen
from convlint.model.errors import UsageError


@pytest.mark.parametrize(
    ("flag", "environ", "asked"),
    [
        (None, {}, None),
        ("zh", {}, "zh"),
        ("en", {"CONVLINT_LANG": "zh"}, "en"),
        (None, {"CONVLINT_LANG": "zh"}, "zh"),
        (None, {"CONVLINT_LANG": ""}, None),
        (None, {"LANG": "zh_CN.UTF-8", "LC_ALL": "zh_CN.UTF-8", "LANGUAGE": "zh"}, None),
    ],
)
def test_the_flag_goes_before_the_variable(flag: str | None, environ: dict[str, str], asked: str | None) -> None:
    assert language_asked(flag, environ) == asked


@pytest.mark.parametrize(("flag", "environ"), [("fr", {}), ("", {}), ("ZH", {}), (None, {"CONVLINT_LANG": "fr"})])
def test_an_unknown_one_is_refused_with_those_there_are(flag: str | None, environ: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=r"is not one of en, zh"):
        language_asked(flag, environ)


def test_the_config_is_asked_only_where_nothing_else_says() -> None:
    assert language_chosen("en", lambda: pytest.fail("the config was read")) == "en"
    assert language_chosen(None, lambda: "zh") == "zh"
    assert language_chosen(None, lambda: None) == "en"
