"""Findings in another language."""

from typing import Any

import pytest

from convlint.files.languages.catalogue import Catalogue, Translation
from convlint.model.text import COMMA, Text, joined
from convlint.reporters import translated
from convlint.reporters.translated import Translator
from convlint.rulebook.expr import UNKNOWN
from convlint.rulebook.rule import Fragments, Template

RULE = {
    "{count} of {runtime.cudnn:.1f}": "{runtime.cudnn:.1f} 中 {count}", "{where}use {name}": "{where}使用 {name}",
    "in NHWC, ": "在 NHWC 布局下，", "{gpu.name} is odd": "{gpu.name} 是奇数", "a": "甲",
}  # fmt: skip
SENTENCES = {
    COMMA: "，", " and ": "和", "{fix}; then {then}": "{fix}；然后 {then}", "stop": "停下",
    " (time {time:.0f} %)": " （时间 {time:.0f} %）",
}  # fmt: skip
TEMPLATES: dict[str, tuple[Any, ...]] = {
    "of": (("count", ""), " of ", ("runtime.cudnn", ".1f")),
    "use": (("where", ""), "use ", ("name", "")),
    "odd": (("gpu.name", ""), " is odd"),
}


@pytest.fixture
def translator(monkeypatch: pytest.MonkeyPatch) -> Translator:
    pairs = [("CL102", RULE), ("sentences", SENTENCES)]
    entries = tuple(
        Translation(file="", section=section, english=english, other=other)
        for section, texts in pairs
        for english, other in texts.items()
    )
    monkeypatch.setattr(translated, "catalogue", lambda language: Catalogue(language, entries))
    return Translator("zh")


def rendered(template: str, /, code: str = "CL102", over: dict[str, Any] | None = None, **values: Any) -> Text:
    dotted = {key.replace("__", "."): value for key, value in values.items()}
    return Template(TEMPLATES[template]).render(dotted, over or {}, code=code)


@pytest.mark.parametrize(
    ("text", "english", "other"),
    [
        ("plain", "plain", "plain"),
        ("stop", "stop", "stop"),  # a string that nobody made a text of
        (Text("stop"), "stop", "停下"),
        (Text("nobody knows {it}", it=Text("stop")), "nobody knows stop", "nobody knows 停下"),
        (Text("{fix}; then {then}", fix="stop", then=Text("stop")), "stop; then stop", "stop；然后 停下"),
        (joined(Text(" and "), ["a", "b", "c"]), "a and b and c", "a和b和c"),
        (joined(", ", ["a", "b"]), "a, b", "a, b"),
        ("a" + Text(" (time {time:.0f} %)", time=2.9), "a (time 3 %)", "a（时间 3 %）"),
        (rendered("of", count=3, runtime__cudnn=7.55), "3 of 7.5", "7.5 中 3"),
        (rendered("of", count=UNKNOWN, runtime__cudnn=1.0), "? of 1.0", "1.0 中 ?"),
        (rendered("of", over={"count": 4}, count=3, runtime__cudnn=1.0), "4 of 1.0", "1.0 中 4"),
        (rendered("use", where="in NHWC, ", name="conv1"), "in NHWC, use conv1", "在 NHWC 布局下，使用 conv1"),
        (rendered("use", where="", name=Text("stop")), "use stop", "使用 停下"),
        (rendered("odd", gpu__name="stop"), "stop is odd", "stop 是奇数"),  # a name is no word of the rule's
        (rendered("use", code="XY100", where="in NHWC, ", name="x"), "in NHWC, use x", "in NHWC, use x"),
    ],
)
def test_a_text_in_both_languages(text: str, english: str, other: str, translator: Translator) -> None:
    assert text == english
    assert translator.text(text) == other


@pytest.mark.parametrize(("code", "other"), [("CL102", "甲，b"), ("XY100", "a, b")])
def test_fragments_are_joined_by_the_comma_of_their_language(code: str, other: str, translator: Translator) -> None:
    """A rule that is not translated keeps the English one."""
    fragments = Fragments(((None, Template(("a",))), (None, Template(("b",)))), Template(("none",)))
    text = fragments.render({}, code=code)
    assert (text, translator.text(text)) == ("a, b", other)
