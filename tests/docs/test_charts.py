"""Bars: lengths, marked parts, words, and what a screen reader is told."""

import xml.etree.ElementTree as ElementTree

from handbook.charts import Bar, bars


def drawn(*rows: Bar) -> ElementTree.Element:
    lines = bars(rows, "What <it> costs")
    (figure, *inner, end, blank) = lines
    assert figure.startswith("<figure")
    assert (end, blank) == ("</figure>", "")
    return ElementTree.fromstring("\n".join(inner))


def rects(svg: ElementTree.Element) -> list[tuple[str, float, float]]:
    return [
        (each.get("class", ""), float(each.get("x", "")), float(each.get("width", ""))) for each in svg.iter("rect")
    ]


def test_all_bars_are_on_one_scale() -> None:
    svg = drawn(Bar(name="old", value=400.0, words="400 us"), Bar(name="new", value=100.0, words="100 us"))
    (_, left, longest), (_, other, shortest) = rects(svg)
    assert left == other
    assert longest == 4 * shortest == float(svg.get("viewBox", "").split()[2]) - left


def test_the_marked_part_ends_the_bar() -> None:
    svg = drawn(Bar(name="a", value=200.0, marked=50.0, words="x", kind="saved"))
    (first, start, width), (second, middle, part) = rects(svg)
    assert (first, second) == ("time", "saved")
    assert middle == start + width
    assert part * 3 == width


def test_what_is_unknown_has_no_bar_and_what_is_tiny_has_one() -> None:
    assert rects(drawn(Bar(name="a", value=0.0, words="no time"))) == []
    svg = drawn(Bar(name="a", value=1e6, words="x"), Bar(name="b", value=1.0, words="y"))
    assert min(width for _, _, width in rects(svg)) >= 1


def test_the_words_are_text_and_the_title_says_all() -> None:
    svg = drawn(Bar(name="A<1>", value=1.0, words="1 us & more"))
    assert [each.text for each in svg.iter("text")] == ["A<1>", "1 us & more"]
    assert svg.get("aria-label") == "What <it> costs: A<1>: 1 us & more"
