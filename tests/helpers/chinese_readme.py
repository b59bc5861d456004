"""Refreshes the output of the console blocks of README.zh.md, when run as a script."""

import tempfile
from pathlib import Path

from checkout import ROOT
from readme_examples import blocks, run

CHINESE_README = ROOT / "README.zh.md"


def refresh() -> None:
    """Runs every block and puts what it prints into the README."""
    text = CHINESE_README.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        for block in blocks(text):
            text = text.replace(f"```console\n{block.text}```", f"```console\n{run(block, Path(folder))}```")
    CHINESE_README.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    refresh()
