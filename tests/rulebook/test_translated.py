"""Rules that say both languages: the same values in both, and in English exactly what they said before."""

from __future__ import annotations

from convlint.files.languages.catalogue import Catalogue, Entry
from convlint.files.languages.pairs import english_of, other_of
from convlint.rulebook.book import load_rulebook
from convlint.rulebook.expr import UNKNOWN
from convlint.rulebook.pieces import parts_of
from convlint.rulebook.rule import Fragments, Template
from convlint.rulebook.translated import Twofold, template_text, texts_of, translated

RULES = {rule.info.code: rule for rule in load_rulebook().rules}


def template(text: str) -> Template:
    return Template(tuple(parts_of(text)))


def catalogue(**pairs: str) -> Catalogue:
    found = (Entry(file="", section="CL102", english=english, other=other) for english, other in pairs.items())
    return Catalogue("zh", tuple(found))


def test_a_template_is_read_and_written_as_it_stands_in_a_file() -> None:
    for text in ("C={C} of {width.layers}", "{network.memory_gib:,.2f} GiB", "plain", "{a}{b:.0f}"):
        assert template_text(template(text)) == text


def test_both_are_rendered_with_the_same_values() -> None:
    both = Twofold(
        template("{count} of {runtime.cudnn:.1f}"), template("{runtime.cudnn:.1f} 中 {count}"), lambda _: None
    )
    text = both.render({"count": 3, "runtime.cudnn": 7.55})
    assert (english_of(text), other_of(text)) == ("3 of 7.5", "7.5 中 3")
    assert both.names == {"count", "runtime.cudnn"}
    assert other_of(both.render({"count": UNKNOWN, "runtime.cudnn": 1.0})) == "1.0 中 ?"
    assert other_of(both.render({"count": 3, "runtime.cudnn": 1.0}, {"count": 4})) == "1.0 中 4"


def test_words_that_a_rule_chooses_are_translated_and_names_are_not() -> None:
    words = {"in NHWC, ": "在 NHWC 布局下，"}
    both = Twofold(template("{where}use {name}"), template("{where}使用 {name}"), words.get)
    text = both.render({"where": "in NHWC, ", "name": "conv1"})
    assert (english_of(text), other_of(text)) == ("in NHWC, use conv1", "在 NHWC 布局下，使用 conv1")


def test_marks_in_a_name_do_no_harm() -> None:
    text = Twofold(template("{name} is odd"), template("{name} 是奇数"), lambda _: None).render(
        {"name": "a\x1fb\x02\x03"}
    )
    assert (english_of(text), other_of(text)) == ("ab is odd", "ab 是奇数")


def test_fragments_are_joined_by_the_comma_of_their_language() -> None:
    pieces = tuple((None, template(text)) for text in ("a", "b"))
    other = tuple((None, template(text)) for text in ("甲", "乙"))
    english = Fragments(pieces, template("none"))
    both = Twofold(english, Fragments(other, template("无"), "，"), lambda _: None)
    assert (english_of(both.render({})), other_of(both.render({}))) == ("a, b", "甲，乙")


def test_what_has_no_translation_stays_as_it_is() -> None:
    rule = RULES["CL102"]
    assert translated(rule, catalogue()) == rule
    half = translated(rule, catalogue(**{"use K={wanted_K}": "使用 K={wanted_K}"}))
    described = {type(case.fix.describe) for case in half.cases if case.fix is not None}
    assert described == {Template, Twofold}
    assert all(type(case.message) is Template for case in half.cases)


def test_only_the_texts_differ() -> None:
    for english, both in zip(load_rulebook().rules, load_rulebook(language="zh").rules, strict=True):
        assert both.info == english.info
        assert both.decision == english.decision
        assert both.names_in_messages() == english.names_in_messages()
        assert [case.severity for case in both.cases] == [case.severity for case in english.cases]


def test_texts_are_all_that_a_rule_says() -> None:
    texts = set(texts_of(RULES["CL103"]))
    assert {"in NHWC, ", RULES["CL103"].info.title, RULES["CL103"].info.rationale} <= texts
    assert "NCHW" not in texts  # what an expression compares with
    assert "{width.layers}: no multiple of 8 (fp16, bf16){source.proviso}" in set(texts_of(RULES["CL102"]))
