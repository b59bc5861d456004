"""README's picture of the report page: ResNet-50's, as Chromium shows its top; `make pictures` takes it anew."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from browsers import arguments, executable, missing
from checkout import ROOT

PICTURE = ROOT / "docs" / "pictures" / "report.png"
SPEC = "sample_configs/resnet50.yaml"
WIDTH, HEIGHT = 1100, 1000
MOST_BYTES = 200_000  # of a picture that everybody downloads who looks at the README


def take(page: Path, picture: Path) -> None:
    """The top of the page, in its light theme."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable(), args=arguments())
        tab = browser.new_page(
            viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light", reduced_motion="reduce"
        )
        tab.goto(page.as_uri())
        tab.wait_for_selector("#roofline-chart svg")
        picture.parent.mkdir(parents=True, exist_ok=True)
        tab.screenshot(path=picture)
        browser.close()


def main() -> int:
    """Exit code 1, with what to do, where there is no browser or the picture is too large."""
    if lacking := missing():
        print(lacking, file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        command = [
            sys.executable,
            "-P",
            "-m",
            "convlint",
            "check",
            SPEC,
            "--fail-on",
            "never",
            "--output",
            f"html={page}",
        ]
        subprocess.run(command, cwd=ROOT, check=True)
        take(page, PICTURE)
    size = PICTURE.stat().st_size
    if size > MOST_BYTES:
        print(f"{PICTURE} has {size:,} bytes, more than {MOST_BYTES:,}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
