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


def test_the_limits_of_python_source_are_those_that_hold():
    from convlint.readers.python import notebook, source_file
    from convlint.readers.python.evaluator import limits
    from convlint.readers.untrusted.bounded_json import MOST_BYTES

    file, steps = (
        line for line in TEXT.splitlines() if line.startswith(("| a Python file |", "| what is followed in "))
    )
    assert f'| {source_file.LARGEST >> 20} MiB (else "larger than {source_file.LARGEST >> 20} MiB, the limit' in file
    assert f"{MOST_BYTES >> 20} MiB of JSON and {notebook.MOST_CELLS:,} cells" in file
    for text in (f"{limits.STEPS_OF_ROOT:,} steps", f"{limits.STEPS_OF_FILE:,} that are really taken",
                 f"down to {limits.STEPS_OF_FILE_OF_MANY:,}", f"{limits.STEPS_SHARED // 10**6} million",
                 f"{limits.STEPS_OF_RUN // 10**6} million a process", f"{limits.ROUNDS} rounds"):  # fmt: skip
        assert text in steps


def test_the_rules_on_python_source_are_those_that_are_named():
    from convlint.rulebook.book import load_rulebook

    named, warnings = re.search(r"\*\*What is judged\*\*: (.*?) alone,.*?Warnings are (.*?);", TEXT, re.DOTALL).groups()
    rules = load_rulebook().of_source
    assert re.findall(r"CL\d+", named) == [rule.info.code for rule in rules]
    assert re.findall(r"CL\d+", warnings) == [rule.info.code for rule in rules if rule.cases[-1].severity != "info"]
