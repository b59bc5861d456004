"""What is said, in which language, and for how long."""

from __future__ import annotations

import subprocess
import sys

from convlint.files.languages.pairs import english_of, other_of
from convlint.files.languages.saying import is_english, rule_text, say, sentence, speaking, spoken

TITLE = "Channels are not a multiple of the Tensor Core vector width"


def test_english_is_said_unless_another_language_is_spoken() -> None:
    assert say("{count} layer", count=3) == "3 layer"
    with speaking("zh"):
        assert say("{count} layer", count=3) == "3 层"
        assert not is_english()
        assert spoken() == "zh"
        with speaking("en"):
            assert say("{count} layer", count=3) == "3 layer"
        assert say("error") == "错误"
    assert is_english()
    assert spoken() == "en"


def test_an_end_by_an_exception_ends_it_too() -> None:
    try:
        with speaking("zh"):
            raise KeyError
    except KeyError:
        pass
    assert is_english()


def test_both_are_said_while_the_format_is_not_known() -> None:
    with speaking("zh", both=True):
        text = say("use {side}={width}", side="K", width=64)
    assert (english_of(text), other_of(text)) == ("use K=64", "使用 K=64")


def test_what_has_no_translation_is_said_in_english() -> None:
    with speaking("zh"):
        assert say("Nobody says {what}.", what="this") == "Nobody says this."
        assert rule_text("XY100", "A rule of my own") == "A rule of my own"
        assert rule_text("CL102", TITLE) == "通道数不是 Tensor Core 向量宽度的倍数"
    assert rule_text("CL102", TITLE) == TITLE


def test_values_with_braces_are_values() -> None:
    with speaking("zh"):
        assert say("network {model}", model="{0} {x}") == "网络 {0} {x}"


def test_a_sentence_of_a_table_is_itself() -> None:
    assert sentence("error") == "error"


def test_english_loads_no_catalogue() -> None:
    loaded = "'convlint.files.languages.catalogue' in sys.modules"
    code = f"import sys, convlint.cli.check, convlint.reporters.text; print({loaded})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "False\n"
