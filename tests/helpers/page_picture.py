"""Takes README's picture of the report page, with a few layers and a finding; `make pictures` runs it."""

import subprocess
import sys
import tempfile
from pathlib import Path

from browsers import arguments, executable, missing
from checkout import ROOT
from PIL import Image

PICTURE = ROOT / "docs" / "pictures" / "report.png"
SPEC = "sample_configs/unet_thin.yaml"
WIDTH = 880
LAYERS, FINDINGS = 3, 1  # that are shown, of each the first
# What a picture has no room for: words below the cards, the roofline, what stands below the findings, and all but the
# first layers and findings, with the layers of those.
LEFT_OUT = "nav, #verdict > :not(h2, .cards), #roofline, #filters, dl > :nth-child(6), #missing, footer"
LEAVE_OUT = """([others, layers, findings]) => {
    const beyond = (all, most) => [...document.querySelectorAll(all)].slice(most);
    for (const one of [...beyond(others, 0), ...beyond("tr.layer", layers), ...beyond("article.finding", findings)])
        one.hidden = true;
}"""
_COLOURS = 128  # of a picture of letters and bars nobody sees the rest
MOST_BYTES = 200_000  # of a picture that everybody downloads who looks at the README


def take(page: Path, picture: Path) -> None:
    """The page in its light theme, the dearest layers first."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable(), args=arguments())
        tab = browser.new_page(viewport={"width": WIDTH, "height": 600}, color_scheme="light", reduced_motion="reduce")
        tab.goto(page.as_uri())
        tab.wait_for_selector("#roofline-chart svg")
        tab.click("#sort-largest")
        tab.mouse.move(0, 0)
        tab.evaluate(LEAVE_OUT, [LEFT_OUT, LAYERS, FINDINGS])
        picture.parent.mkdir(parents=True, exist_ok=True)
        tab.screenshot(path=picture, full_page=True)
        browser.close()
    with Image.open(picture) as taken:
        small = taken.convert("RGB").quantize(colors=_COLOURS, dither=Image.Dither.NONE)
    small.save(picture, optimize=True)


def main() -> int:
    """Exit code 1, with what to do, where there is no browser or the picture is too large."""
    if lacking := missing():
        print(lacking, file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        options = ("--fail-on", "never", "--output", f"html={page}")
        command = [sys.executable, "-P", "-m", "convlint", "check", SPEC, *options]
        subprocess.run(command, cwd=ROOT, check=True)
        take(page, PICTURE)
    size = PICTURE.stat().st_size
    if size > MOST_BYTES:
        print(f"{PICTURE} has {size:,} bytes, more than {MOST_BYTES:,}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
