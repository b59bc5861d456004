"""Draws the terminal of README and the sweep of the site as SVG; `make pictures` runs it."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from checkout import ROOT
from readme_examples import PAGES, README, blocks

TERMINAL = ROOT / "docs" / "pictures" / "terminal.svg"
SWEEP = PAGES / "pictures" / "sweep.svg"
WIDTH = 80
FIGURE = "4"  # the guide's: what waves that are not full cost
MOST_BYTES = 200_000  # of a picture that everybody downloads who looks at the page

# Rich's own template fetches a font from another host. Each piece of text says how long it is, so that any font does.
TEMPLATE = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font: {char_height}px/{line_height}px ui-monospace, Menlo, "DejaVu Sans Mono", monospace }}
.{unique_id}-title {{ font: bold 18px sans-serif }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect width="{terminal_width}" height="{terminal_height}" /></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def report(folder: Path, *, color: str = "always") -> str:
    """What README's spec looks like in a terminal, with its colours or without."""
    (block,) = [block for block in blocks(README.read_text(encoding="utf-8")) if "cat > net.yaml" in block.commands[0]]
    subprocess.run(["bash", "-c", block.commands[0]], cwd=folder, check=True)
    command = [sys.executable, "-P", "-m", "convlint", "check", "net.yaml", "--color", color, "--fail-on", "never"]
    environment = {**os.environ, "COLUMNS": str(WIDTH), "FORCE_HYPERLINK": "0", "PYTHONUTF8": "1"}
    environment.pop("NO_COLOR", None)
    path = os.pathsep.join([str(ROOT), environment.get("PYTHONPATH", "")])
    done = subprocess.run(
        command, cwd=folder, env={**environment, "PYTHONPATH": path}, capture_output=True, text=True, encoding="utf-8",
        check=True,
    )  # fmt: skip
    return done.stdout


def terminal(text: str) -> str:
    """The SVG of a report with colours."""
    from rich.console import Console
    from rich.text import Text

    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=WIDTH, file=nowhere, force_terminal=True, color_system="truecolor")
        console.print(Text.from_ansi(text.rstrip("\n")), soft_wrap=False)
        return console.export_svg(title="$ convlint check net.yaml", code_format=TEMPLATE, unique_id="convlint")


def sweep(picture: Path) -> None:
    """A figure of the guide, as it is predicted."""
    command = [sys.executable, "-P", "-m", "convlint", "sweep", "--figure", FIGURE, "--output", f"svg={picture}"]
    subprocess.run(command, cwd=ROOT, check=True)


def draw(terminal_picture: Path, sweep_picture: Path) -> None:
    """Both pictures, to where they are wanted."""
    for picture in (terminal_picture, sweep_picture):
        picture.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        terminal_picture.write_text(terminal(report(Path(folder))), encoding="utf-8")
    sweep(sweep_picture)


def main() -> int:
    """Exit code 1 where a picture is too large."""
    draw(TERMINAL, SWEEP)
    large = [path for path in (TERMINAL, SWEEP) if path.stat().st_size > MOST_BYTES]
    for path in large:
        print(f"{path} has {path.stat().st_size:,} bytes, more than {MOST_BYTES:,}", file=sys.stderr)
    return 1 if large else 0


if __name__ == "__main__":
    sys.exit(main())
