"""The page at three widths in both themes, and on paper; `build/browser/` has the pictures, for people to look at."""

from collections.abc import Callable
from pathlib import Path

import pytest
from checkout import ROOT
from report_pages import Made, make_page
from watched_pages import Watch, overflow_px

Makes = Callable[[str], Made]
PICTURES = ROOT / "build" / "browser"
BRIGHTNESS = """name => { const [r, g, b] = getComputedStyle(document.body)[name].match(/[\\d.]+/g).map(Number);
    return (0.2126 * r + 0.7152 * g + 0.0722 * b) / 255; }"""


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 800, 1280])
@pytest.mark.parametrize("name", ["resnet50", "two targets", "hostile", "unread"])
def test_nothing_is_wider_than_the_window(watch: Watch, made: Makes, name: str, width: int, theme: str) -> None:
    page = watch.open(made(name).page, width=width, theme=theme)
    page.wait_for_timeout(200)
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=PICTURES / f"{name.replace(' ', '-')}-{width}-{theme}.png", full_page=True)
    assert overflow_px(page) == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_both_themes_are_what_they_are_called(watch: Watch, made: Makes, theme: str) -> None:
    page = watch.open(made("mixed").page, theme=theme)
    paper, ink = (page.evaluate(BRIGHTNESS, name) for name in ("backgroundColor", "color"))
    assert (ink < 0.3 and paper > 0.8) if theme == "light" else (ink > 0.7 and paper < 0.2)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_prints_dark_on_light_with_all_findings(watch: Watch, made: Makes, theme: str) -> None:
    file, report = made("resnet50")
    page = watch.open(file, theme=theme)
    page.locator("#roofline-chart svg").first.wait_for()
    page.emulate_media(media="print")
    assert page.evaluate(BRIGHTNESS, "color") < 0.3  # browsers print no backgrounds
    assert page.locator("article.finding").first.is_visible()
    assert page.locator("tr.layer").last.is_visible()
    PICTURES.mkdir(parents=True, exist_ok=True)
    pdf = page.pdf(path=PICTURES / f"resnet50-{theme}.pdf")
    assert pdf.startswith(b"%PDF-")
    assert 1 <= pdf.count(b"/Type /Page\n") <= 4 + len(report["findings"]) // 2 + len(report["layers"]) // 10


@pytest.mark.parametrize(
    ("layer", "options"),
    [
        ("C: 512, H: 28, W: 28, K: 512, kernel_size: 3, padding: 1, dtype: fp16, layout: NHWC", ("--gpu", "a100")),
        ("C: 256, H: 28, W: 28, K: 256, kernel_size: 3, padding: 1, dtype: fp32, layout: NCHW", ("--gpu", "v100")),
        ("C: 32, H: 14, W: 14, K: 32, groups: 32, kernel_size: 3, dtype: fp16, layout: NHWC", ("--gpu", "a100")),
    ],
    ids=["right of the ridge", "above the ceiling", "small"],
)
def test_all_of_the_roofline_is_inside_its_frame(
    watch: Watch, tmp_path: Path, layer: str, options: tuple[str, ...]
) -> None:
    made = make_page(tmp_path, f"version: 1\ndefaults: {{ N: 32 }}\nlayers:\n  - {{ name: one, {layer} }}\n", *options)
    page = watch.open(made.page)
    page.locator("#roofline-chart[data-drawn]").wait_for()
    outside = page.evaluate(
        """() => {
            const frame = document.querySelector("#roofline-chart svg").getBoundingClientRect();
            const marks = [...document.querySelectorAll("#roofline-chart svg :is(path, circle, text)")];
            return marks.map((mark) => mark.getBoundingClientRect()).filter((box) => box.width + box.height > 0
                && (box.left < frame.left - 2 || box.right > frame.right + 2 || box.top < frame.top - 2
                    || box.bottom > frame.bottom + 2)).length;
        }"""
    )
    assert outside == 0
    ticks = page.locator("#roofline-chart svg [aria-label$='tick label'] text").all_text_contents()
    assert ticks
    assert not [tick for tick in ticks if tick.endswith("m")]  # thousandths of TFLOPS are no unit
