"""The README shows what convlint really prints, and its commands exist."""

import re

import pytest

from readme_examples import README, Block, blocks, run, workspace

TEXT = README.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("readme")
    workspace(folder)
    return folder


@pytest.mark.parametrize("block", [pytest.param(block, id=block.title) for block in blocks(TEXT)])
def test_console_blocks_show_what_is_printed(block: Block, folder):
    assert run(block, folder) == "\n".join(line.rstrip() for line in block.text.splitlines()) + "\n"


def test_every_command_is_shown():
    from convlint.cli import app

    groups = [app, *(group.typer_instance for group in app.registered_groups)]
    names = {command.callback.__name__ for group in groups for command in group.registered_commands}
    assert {name for name in names if re.search(rf"convlint {name}\b", TEXT)} == names
