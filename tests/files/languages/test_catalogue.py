"""Each language has every text, each says what its English says with the same values in it, and none is left over."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

import pytest
import yaml
from cases import for_each
from checkout import ROOT
from said import sentences, untranslated_rules

from convlint.files.languages import ENGLISH, LANGUAGES
from convlint.files.languages.catalogue import Entry, catalogue, entries_of
from convlint.rulebook.book import load_rulebook
from convlint.rulebook.pieces import parts_of
from convlint.rulebook.translated import texts_of

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
    assert head is not None
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
def test_values_and_tags_are_those_of_the_english_text(language: str, entry: Entry) -> None:
    assert values_of(entry.other) == values_of(entry.english)
    if entry.of_rule:
        assert "".join(part if isinstance(part, str) else "" for part in parts_of(entry.other)).count("{") == 0


@for_each("entry", [each for language, each in ENTRIES if language == "zh"])
def test_chinese_is_chinese(entry: Entry) -> None:
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
