"""The console blocks of README.md: read, run and compared; `make snapshots` refreshes their output.

A block is one shell session: lines after `$ ` (and `> `) are typed, the rest is what they print at 80 columns.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from checkout import ROOT

README = ROOT / "README.md"
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MARK = "\x1e"


@dataclass(frozen=True)
class Block:
    """A console block: the commands that are typed, and its whole text."""

    commands: tuple[str, ...]
    text: str

    @property
    def title(self) -> str:
        """The last command's first line, to tell blocks apart."""
        return self.commands[-1].splitlines()[0]


def blocks(text: str) -> list[Block]:
    """All console blocks of a README."""
    return [Block(commands=_commands(match.group(1)), text=match.group(1)) for match in _BLOCK.finditer(text)]


def _commands(text: str) -> tuple[str, ...]:
    commands: list[str] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            commands.append(line[2:])
        elif line.startswith("> ") or line == ">":
            commands[-1] += "\n" + line[2:]
    return tuple(commands)


def run(block: Block, folder: Path) -> str:
    """The block as a terminal of 80 columns shows it, run in `folder`."""
    script = "".join(f"printf '{_MARK}'\n{command}\n" for command in block.commands)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {
        "PATH": path, "HOME": str(folder), "COLUMNS": "80", "NO_COLOR": "1", "LANG": "C.UTF-8", "PYTHONUTF8": "1",
        "PYTHONWARNINGS": "ignore",
    }  # fmt: skip
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, timeout=300, check=False,
    )  # fmt: skip
    shown = []
    for command, output in zip(block.commands, done.stdout.split(_MARK)[1:], strict=True):
        first, *rest = command.split("\n")
        shown += [f"$ {first}", *(f"> {line}".rstrip() for line in rest)]
        shown += [line.rstrip() for line in output.splitlines()]
    return "\n".join(shown) + "\n"


def readme_yaml(title: str, words: str) -> Any:
    """The YAML example of README that begins with that line and holds those words."""
    texts = re.findall(r"^```yaml\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    (text,) = [text for text in texts if text.startswith(title) and words in text]
    return yaml.safe_load(text)


def workspace(folder: Path) -> None:
    """What the README's commands find in the folder where they are typed."""
    shutil.copytree(ROOT / "sample_configs", folder / "sample_configs")


def refresh() -> None:
    """Runs every block and puts what it prints into the README."""
    text = README.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        workspace(folder)
        text = _BLOCK.sub(lambda match: "```console\n" + run(blocks(match.group(0))[0], folder) + "```", text)
    README.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    refresh()
