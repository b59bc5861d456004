"""The charts can be read: by more than colour, at any width, on paper, and every point leads somewhere each time."""

from collections.abc import Callable

import pytest
from report_pages import Made
from watched_pages import Watch, overflow_px

Makes = Callable[[str], Made]
POINTS = "#roofline-chart svg [aria-label='dot'] > *"
# The size of letters on the screen: of the font, times what the drawing is scaled by.
LEAST_LETTERS = """() => Math.min(...[...document.querySelectorAll(":is(#roofline-chart, #layers, #findings) svg text")]
    .filter((text) => text.textContent && text.getClientRects().length).map((text) => {
        const box = text.ownerSVGElement, view = box.viewBox.baseVal;
        const scale = view && view.width ? box.getBoundingClientRect().width / view.width : 1;
        return parseFloat(getComputedStyle(text).fontSize) * scale; }))"""
SHAPES = """() => Object.fromEntries(["compute", "memory", "launch"].map((bound) => [bound, [...new Set(
    [...document.querySelectorAll("#roofline-chart [aria-label='dot']")].filter((group) => group.outerHTML
        .includes(`var(--${bound})`)).flatMap((group) => [...group.children]).map((mark) => mark.tagName
        + (mark.getAttribute("d") ?? "").replace(/[^a-zA-Z]/g, "")))]]))"""


def test_what_bounds_a_pass_is_said_by_pattern_and_shape_too(watch: Watch, made: Makes) -> None:
    page = watch.open(made("mixed").page)
    page.locator(POINTS).first.wait_for()
    fills = page.evaluate("""() => Object.fromEntries([...document.querySelectorAll("#layers svg.bar rect")].map(
        (rect) => [rect.getAttribute("class"), getComputedStyle(rect).fill]))""")
    assert {"compute", "memory"} <= set(fills)
    assert fills["memory"] == 'url("#hatch-memory")'
    assert fills["compute"].startswith("rgb")
    shapes = page.evaluate(SHAPES)
    used = [tuple(found) for found in shapes.values() if found]
    assert len(used) >= 2
    assert all(len(found) == 1 for found in used)
    assert len(set(used)) == len(used)
    for key in ("#bar-key", "#roofline-key"):
        assert page.locator(key).is_visible()
        assert all(word in page.locator(key).inner_text() for word in ("compute", "memory", "launch", "fprop", "wgrad"))


def test_each_part_of_a_bar_says_its_pass_and_time(watch: Watch, made: Makes) -> None:
    page = watch.open(made("mixed").page)
    stem = page.locator("#layer-0 svg.bar:visible")
    titles = stem.locator("rect title").all_text_contents()
    assert [title.split()[0] for title in titles] == ["fprop", "wgrad"]  # a first layer has no dgrad
    assert all(", bound by " in title and " us, " in title for title in titles)
    assert "".join(stem.locator("text").all_text_contents()).replace(" ", "") == "fw"


def test_the_same_point_leads_to_its_layer_twice(watch: Watch, made: Makes) -> None:
    page = watch.open(made("mixed").page)
    points = page.locator(POINTS)
    points.first.wait_for()
    addresses = set()
    for _ in range(2):
        points.last.scroll_into_view_if_needed()
        page.wait_for_timeout(600)  # smooth scrolling ends
        points.last.click(force=True)
        page.wait_for_function("""() => { const row = document.querySelector("tr.layer:target");
            const box = row && row.getBoundingClientRect();
            return box && box.bottom > 0 && box.top < innerHeight && document.activeElement === row; }""")
        addresses.add(page.url)
        assert page.evaluate("getComputedStyle(document.querySelector('tr.layer:target')).backgroundColor") != (
            page.evaluate("getComputedStyle(document.querySelector('tr.layer:not(:target)')).backgroundColor")
        )
        page.evaluate("document.activeElement.blur()")
    assert len(addresses) == 1


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_letters_in_charts_are_12_px_at_least(watch: Watch, made: Makes, width: int) -> None:
    page = watch.open(made("resnet50").page, width=width)
    watch.unfold(page)
    page.locator(POINTS).first.wait_for()
    assert page.evaluate(LEAST_LETTERS) >= 11.99


def test_another_width_draws_the_roofline_anew_and_folds_nothing(watch: Watch, made: Makes) -> None:
    page = watch.open(made("mixed").page)
    page.locator(POINTS).first.wait_for()
    page.locator("#roofline details details summary").click()
    for width in (360, 900):
        page.set_viewport_size({"width": width, "height": 800})
        page.wait_for_function("""() => { const figure = document.getElementById("roofline-chart");
            return Math.abs(Number(figure.querySelector("svg").getAttribute("width")) - figure.clientWidth) <= 1; }""")
        assert overflow_px(page) == 0
    for details in page.locator("#roofline details").all():
        assert details.get_attribute("open") is not None


@pytest.mark.parametrize("how", ["print", "no script"])
def test_all_targets_are_shown_by_name_where_nobody_can_choose(watch: Watch, made: Makes, how: str) -> None:
    file, report = made("two targets")
    page = watch.open(file, script=how == "print")
    if how == "print":
        page.emulate_media(media="print")
    gpus = [one["gpu"] for one in report["totals"]]
    for row in page.locator("#layers tr.layer").all():
        for cell in ("td.number:not(.of-target)", "td.wide", "td:has(.letter)", "td.links"):
            spans = row.locator(f"{cell} > span[data-target]").all()
            assert [span.is_visible() for span in spans] == [True, True]
            named = [span.evaluate("one => getComputedStyle(one, '::before').content.replaceAll('\"', '').trim()")
                     for span in spans]  # fmt: skip
            assert named == gpus


def test_on_paper_there_is_a_roofline_of_each_target(watch: Watch, made: Makes) -> None:
    page = watch.open(made("two targets").page)
    page.locator(POINTS).first.wait_for()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("#roofline-chart > svg.plot").count() == 2
    assert [one.inner_text()[:6] for one in page.locator("#roofline-chart .gpu").all()] == ["NVIDIA"] * 2
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("#roofline-chart > svg.plot").count() == 1


def test_lines_say_what_the_data_sheet_has_and_what_is_reached(watch: Watch, made: Makes) -> None:
    page = watch.open(made("mixed").page)
    page.locator(POINTS).first.wait_for()
    words = page.locator("#roofline-chart svg.plot").text_content() or ""
    assert "fp16 Tensor Cores: 312, reached: 2" in words
    assert "DRAM: 1.55 TB/s, reached: 1.32 TB/s" in words
    assert "predicted, useful FLOP/s" in words
    dashed = page.locator("#roofline-chart svg [aria-label='line'][stroke-dasharray]")
    assert dashed.count() == 1


@pytest.mark.parametrize("width", [360, 1280])
def test_what_is_said_of_a_point_fits_the_window(watch: Watch, made: Makes, width: int) -> None:
    page = watch.open(made("mixed").page, width=width)
    watch.unfold(page)
    points = page.locator(POINTS)
    points.first.wait_for()
    for point in points.all():
        point.scroll_into_view_if_needed()
        point.hover(force=True)
        tip = page.locator("#roofline-chart [aria-label='tip'] text")
        tip.wait_for()
        said = tip.text_content() or ""
        assert "bound by" in said
        assert "TFLOPS" in said
        assert "implicit-gemm" in said or "direct" in said
        box = tip.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width


def test_points_above_a_line_are_explained_where_there_are_some(watch: Watch, made: Makes) -> None:
    """ResNet's strided 1x1 downsamples read a quarter of the input that is counted."""
    page = watch.open(made("resnet50").page)
    page.locator(POINTS).first.wait_for()
    note = page.locator("#roofline-note")
    assert "above the slope: the stride skips input that is counted" in note.inner_text()
    page = watch.open(made("mixed").page)
    page.locator(POINTS).first.wait_for()
    assert "above" not in page.locator("#roofline-note").inner_text()


@pytest.mark.parametrize("width", [780, 820, 900, 960])
def test_bars_have_room_at_any_width(watch: Watch, made: Makes, width: int) -> None:
    page = watch.open(made("two targets").page, width=width)
    widths = page.eval_on_selector_all(
        "#layers span:not([hidden]) > svg.bar", "all => all.map(one => one.getBoundingClientRect().width)"
    )
    assert min(widths) >= 100
