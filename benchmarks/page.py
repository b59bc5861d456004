"""How soon the report page of ResNet-50 is there, and how smoothly that of 2,000 layers reacts.

The second is the longest task of its main thread while somebody works in it: over 200 ms is felt as a page
that hangs. Run as a script, in an environment that `make test-browser` made.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "helpers"))

from browsers import arguments, executable, missing
from report_pages import RESNET50, TWO, make_page, many_layers

if TYPE_CHECKING:
    from playwright.sync_api import Page

LAYERS = 2000
TRIES = 3
# Runs before the page's own scripts.
OBSERVE = """
window.seen = { tasks: [], drawn_ms: null };
new PerformanceObserver((list) => window.seen.tasks.push(...list.getEntries().map((entry) => entry.duration)))
  .observe({ type: "longtask", buffered: true });
const drawn = () => {
  if (document.querySelector("#roofline-chart svg")) { window.seen.drawn_ms = performance.now(); }
  else if (performance.now() < 20000) { requestAnimationFrame(drawn); }
};
requestAnimationFrame(drawn);
"""


def loaded_ms(page: Page) -> float:
    """From opening to the load event and the drawn roofline."""
    page.wait_for_function("window.seen.drawn_ms !== null")
    return float(
        page.evaluate('Math.max(window.seen.drawn_ms, performance.getEntriesByType("navigation")[0].loadEventEnd)')
    )


def longest_task_ms(page: Page) -> float:
    """The longest task of the main thread since the last call; what takes under 50 ms is not counted."""
    page.wait_for_timeout(300)  # entries come after the task
    tasks = page.evaluate("window.seen.tasks.splice(0)")
    return max(map(float, tasks), default=0.0)


def scrolled(page: Page) -> None:
    """Through all of it by the wheel, to its end and back."""
    page.mouse.move(640, 450)
    for _ in range(30):
        page.mouse.wheel(0, 2500)
        page.wait_for_timeout(20)
    page.keyboard.press("End")
    page.wait_for_timeout(200)
    page.keyboard.press("Home")


def filtered(page: Page) -> None:
    """By keys, as a person would, so that what is asked of the page from outside is no part of it."""
    page.focus("#filters input[name=layer]")
    page.keyboard.type("stage7", delay=60)
    for _ in range(6):
        page.keyboard.press("Backspace")
        page.wait_for_timeout(60)
    page.focus("#filters input[value=warning]")
    for _ in range(2):
        page.keyboard.press("Space")
        page.wait_for_timeout(150)
    page.focus("#filters select[name=code]")
    for key in ("ArrowDown", "ArrowUp"):
        page.keyboard.press(key)
        page.wait_for_timeout(150)


def sorted_and_switched(page: Page) -> None:
    """The table in other orders, and every number for another GPU."""
    for name in ("#sort-largest", "#sort-network", "#sort-largest"):
        page.focus(name)
        page.keyboard.press("Space")
        page.wait_for_timeout(250)
    page.focus("select#target")
    for key in ("ArrowDown", "ArrowUp"):
        page.keyboard.press(key)
        page.wait_for_timeout(400)


WORK: dict[str, tuple[tuple[str, ...], Callable[[Page], None]]] = {
    "scroll to the end": ((), scrolled),
    "filter by name, severity and rule": ((), filtered),
    "sort, and switch between two GPUs": (TWO, sorted_and_switched),
}


def main() -> None:
    """Prints a line for each: the median of some tries, with the least and the most, in ms."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable(), args=arguments())

        def opened(file: Path) -> Page:
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.add_init_script(OBSERVE)
            page.goto(file.resolve().as_uri())
            return page

        def shown(name: str, times: list[float]) -> None:
            print(f"{name}: {statistics.median(times):.0f} ms ({min(times):.0f} to {max(times):.0f})")

        resnet = made(Path(folder) / "resnet50", RESNET50, ())
        shown("ResNet-50, until its roofline is drawn", [loaded_ms(opened(resnet)) for _ in range(TRIES)])
        for name, (options, done) in WORK.items():
            page = opened(made(Path(folder) / name, many_layers(LAYERS), options))
            page.wait_for_timeout(1000)
            longest_task_ms(page)  # loading is not scrolling
            longest = []
            for _ in range(TRIES):
                done(page)
                longest.append(longest_task_ms(page))
            shown(f"{LAYERS:,} layers, {name}", longest)
            page.close()
        browser.close()


def made(folder: Path, spec: str | Path, options: tuple[str, ...]) -> Path:
    """The page of a network, in a folder of its own."""
    folder.mkdir()
    return make_page(folder, spec, *options).page


if __name__ == "__main__":
    if wanted := missing():
        sys.exit(wanted)
    main()
