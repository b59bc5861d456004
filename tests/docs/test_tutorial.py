"""The tutorial shows what convlint really prints, and the first page says what the tutorial does."""

import re
from pathlib import Path

import pytest
from checkout import ROOT
from readme_examples import TUTORIAL, blocks, run, workspace

TEXT = TUTORIAL.read_text(encoding="utf-8")
BLOCKS = blocks(TEXT)


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What each block prints, typed one after the other: later ones go on with the files of earlier ones."""
    folder: Path = tmp_path_factory.mktemp("tutorial")
    workspace(folder, TUTORIAL)
    return [run(block, folder) for block in BLOCKS]


@pytest.mark.slow
@pytest.mark.parametrize("number", [pytest.param(i, id=block.title) for i, block in enumerate(BLOCKS)])
def test_console_blocks_show_what_is_printed(number: int, printed: list[str]) -> None:
    assert printed[number] == "\n".join(line.rstrip() for line in BLOCKS[number].text.splitlines()) + "\n"


def test_every_step_is_faster_than_the_one_before() -> None:
    parts = re.split(r"^## Step \d+: ", TEXT.partition("## All of it")[0], flags=re.MULTILINE)[1:]
    times = [float(re.findall(r"([\d.]+) ms of convolutions per training step, grade", part)[-1]) for part in parts]
    assert len(times) == 5
    assert times == sorted(times, reverse=True)


def test_the_first_page_names_the_times_of_the_tutorial() -> None:
    index = (ROOT / "docs" / "pages" / "index.md").read_text(encoding="utf-8")
    times = re.findall(r"([\d.]+ ms) of convolutions per training step, grade", TEXT.partition("## All of it")[0])
    assert re.findall(r"[\d.]+ ms", index) == [times[0], times[-1]]
