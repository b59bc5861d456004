"""The README shows what convlint really prints, and its commands exist."""

import re

import pytest
from readme_examples import README, blocks, run, workspace

pytestmark = pytest.mark.slow

TEXT = README.read_text(encoding="utf-8")
BLOCKS = blocks(TEXT)


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """What each block prints, typed one after the other as a reader would: later ones use files of earlier ones."""
    folder = tmp_path_factory.mktemp("readme")
    workspace(folder)
    return [run(block, folder) for block in BLOCKS]


@pytest.mark.parametrize("number", [pytest.param(i, id=block.title) for i, block in enumerate(BLOCKS)])
def test_console_blocks_show_what_is_printed(number: int, printed):
    assert printed[number] == "\n".join(line.rstrip() for line in BLOCKS[number].text.splitlines()) + "\n"


def test_every_command_is_shown():
    from convlint.cli.app import COMMANDS

    names = set(COMMANDS)
    assert {name for name in names if re.search(rf"convlint {name}\b", TEXT)} == names
