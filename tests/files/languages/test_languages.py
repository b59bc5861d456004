"""Which language a run speaks: the flag, then the variable, then the config; never the locale."""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable

import pytest
import yaml
from cases import for_each
from checkout import ROOT
from said import sentences, untranslated_rules

from convlint.files.languages import (
    ENGLISH,
    LANGUAGES,
    is_english,
    language_asked,
    language_chosen,
    rule_text,
    say,
    sentence,
    speaking,
    spoken,
    tidied,
)
from convlint.files.languages.catalogue import Translation, catalogue, entries_of
from convlint.model.errors import UsageError
from convlint.rulebook.book import load_rulebook
from convlint.rulebook.file import texts_of


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


OTHERS = [language for language in LANGUAGES if language != ENGLISH]
ENTRIES = [(language, each) for language in OTHERS for each in entries_of(language)]
# What is left in English, and why; nothing else may be. It comes from inputs, libraries and the machine's own errors.
LEFT_IN_ENGLISH = {
    "errors of inputs, options, configs and calibrations": "InputError.message, UsageError, CalibrationUse.reason",
    "why an edit is not made": "Fix.no_edit",
    "what is wrong with a suppression": "suppression.problem",
    "sections of documents, and their titles": "Source.section",
    "notes on standard error": "what --fix has done, progress, baselines",
    "other commands than check, layer and rule": "estimate, plan, sweep, measure, gpus, config, export",
    "--help": "typer's",
}
_FIELD = re.compile(r"\{[^{}]*\}")
_TAG = re.compile(r"</?\w+[^>]*>")
_HAN = re.compile(r"[\u4e00-\u9fff]")


def of_table(language: str) -> set[str]:
    """What the table of frameworks says."""
    rows = yaml.safe_load((ROOT / "convlint/gpus/frameworks.yaml").read_text(encoding="utf-8"))["lacks"]
    return {row[key] for row in rows for key in ("says", "fix")}


def is_released() -> bool:
    """Whether the version at hand has its day in the changelog."""
    head = re.search(r"^## .*$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    return "not yet released" not in head[0]


def values_of(text: str) -> Counter[str]:
    return Counter(_FIELD.findall(text)) + Counter(_TAG.findall(text))


@pytest.mark.parametrize("language", OTHERS)
def test_a_rule_is_translated_as_a_whole_or_not_yet(
    language: str, record_property: Callable[[str, object], None]
) -> None:
    """A new rule is shown in English until somebody translates it; the end of the run names it."""
    waiting = set(untranslated_rules(language))
    for code in sorted(waiting):
        record_property(f"rules not yet in {language}:", code)
    known = catalogue(language)
    missing = [
        (rule.info.code, text)
        for rule in load_rulebook().rules
        for text in texts_of(rule)
        if rule.info.code not in waiting and known.of_rule(rule.info.code, text) is None
    ]
    assert missing == []


@pytest.mark.parametrize("language", OTHERS)
def test_a_release_has_every_rule_in_every_language(language: str) -> None:
    if is_released():
        assert untranslated_rules(language) == []


def test_what_is_not_yet_translated_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were CL102 new, it alone would be; and that is no state to be released in."""
    entries = [each for each in entries_of("zh") if each.section != "CL102"]
    before = untranslated_rules("zh")
    monkeypatch.setattr("said.entries_of", lambda language: entries)
    assert untranslated_rules("zh") == sorted([*before, "CL102"])
    monkeypatch.setitem(globals(), "is_released", lambda: True)
    with pytest.raises(AssertionError, match="CL102"):
        test_a_release_has_every_rule_in_every_language("zh")


@pytest.mark.parametrize("language", OTHERS)
def test_every_sentence_has_its_translation(language: str) -> None:
    known = {each.english for each in entries_of(language) if not each.of_rule}
    assert sorted(sentences().keys() - known) == []
    table = of_table(language) - known
    assert {text for text in table if not re.fullmatch(r"\w+", text)} == set()  # fp16 is fp16


@pytest.mark.parametrize("language", OTHERS)
def test_no_translation_is_of_a_text_that_is_no_more(language: str) -> None:
    texts = {(rule.info.code, text) for rule in load_rulebook().rules for text in texts_of(rule)}
    said = sentences().keys() | of_table(language)
    stale = [
        (each.file, each.english)
        for each in entries_of(language)
        if ((each.section, each.english) not in texts if each.of_rule else each.english not in said)
    ]
    assert stale == []


@pytest.mark.parametrize("language", OTHERS)
def test_each_text_stands_there_once(language: str) -> None:
    keys = Counter((each.section if each.of_rule else "", each.english) for each in entries_of(language))
    assert [key for key, count in keys.items() if count > 1] == []


@for_each("language, entry", ENTRIES)
def test_values_and_tags_are_those_of_the_english_text(language: str, entry: Translation) -> None:
    assert values_of(entry.other) == values_of(entry.english)
    if entry.of_rule:
        assert "{" not in _FIELD.sub("", entry.other)


@for_each("entry", [each for language, each in ENTRIES if language == "zh"])
def test_chinese_is_chinese(entry: Translation) -> None:
    """But for names, and for what is punctuation; punctuation within it is full-width."""
    words = re.sub(_FIELD, "", entry.english)
    names = ("NHWC", "NCHW", "NCW", "fp16", "fp32", "fprop", "wgrad")
    if re.search(r"[a-z]{3}", words) and entry.english not in names and entry.english != "on {gpu}":
        without = entry.english in (
            " on {targets}",
            " of {path}",
            " ({effect})",
            "{basis} for {layers}",
            ", TensorRT",
            "Tensor Cores",
        )
        assert without or _HAN.search(entry.other)
    assert re.search(r"[\u4e00-\u9fff][,;:!?]|[,;:!?][\u4e00-\u9fff]", entry.other) is None


def test_a_text_that_is_not_known_stays_english() -> None:
    known = catalogue("zh")
    assert known.of_rule("XY100", "Something of the user's own") is None
    assert known.of_rule("CL102", "error") is None  # a sentence is no text of a rule
    assert known.sentence("Nobody says this.") == "Nobody says this."
    assert known.sentence("error") == "错误"


def test_what_is_left_in_english_is_said_openly() -> None:
    text = (ROOT / "docs" / "glossary.zh.md").read_text(encoding="utf-8")
    assert [what for what in LEFT_IN_ENGLISH if what not in text] == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [("修正 （可选） 或 K", "修正（可选）或 K"), ("a, b (c)", "a, b (c)"), ("K=64 （时间）", "K=64（时间）"), ("", "")],
)
def test_no_space_stands_beside_full_width_punctuation(text: str, shown: str) -> None:
    assert tidied(text) == shown


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
