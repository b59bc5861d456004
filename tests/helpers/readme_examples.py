"""Console blocks of README and of the site's pages: read, run and compared; `make snapshots` refreshes their output.

A block is one shell session: lines after `$ ` (and `> `) are typed, the rest is what they print at 80 columns.
"""

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
from benchmark_scripts import importable
from checkout import ROOT
from sql_examples import refreshed

README = ROOT / "README.md"
PAGES = ROOT / "docs" / "pages"
TUTORIAL = PAGES / "tutorial.md"
AUDITING = PAGES / "guide" / "auditing.md"
AUDIT_TABLES = PAGES / "guide" / "audit-tables.md"
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MARK = "\x1e"
ZOO = 60  # models of the page on audits


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
    """All console blocks of a document."""
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


def documents() -> list[Path]:
    """README, and all pages that hold console blocks."""
    return [path for path in (README, *sorted(PAGES.rglob("*.md"))) if _BLOCK.search(path.read_text(encoding="utf-8"))]


def yaml_examples(document: Path) -> list[str]:
    """The YAML blocks of a document."""
    return re.findall(r"^```yaml\n(.*?)^```$", document.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def documented_yaml(title: str, words: str) -> Any:
    """The YAML example of the page on CI that begins with that line and holds those words."""
    texts = yaml_examples(PAGES / "guide" / "ci.md")
    (text,) = [text for text in texts if text.startswith(title) and words in text]
    return yaml.safe_load(text)


def workspace(folder: Path, document: Path = README) -> None:
    """What the document's commands find in the folder where they are typed; README's begin in an empty one."""
    if document == README:
        return
    source = ROOT / "docs" / "tutorial" if document == TUTORIAL else ROOT / "sample_configs"
    shutil.copytree(source, folder / source.relative_to(ROOT))
    if document == AUDITING:
        with importable():
            import zoo
        zoo.write(folder / "zoo", ZOO)


def audit_of(folder: Path) -> None:
    """The tables that the first block of the page on audits writes, which its questions are asked of."""
    first, *_ = blocks(AUDITING.read_text(encoding="utf-8"))
    run(first, folder)


def refresh(document: Path) -> None:
    """Runs every block and puts what it prints into the document."""
    text = document.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        workspace(folder, document)
        text = _BLOCK.sub(lambda match: "```console\n" + run(blocks(match.group(0))[0], folder) + "```", text)
    if document == AUDIT_TABLES:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            workspace(folder, AUDITING)
            audit_of(folder)
            text = refreshed(text, folder)
    document.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    chosen = [Path(name).resolve() for name in sys.argv[1:]]
    for each in chosen or (*documents(), AUDIT_TABLES):
        refresh(each)
