"""The site's pages show what convlint really prints; the limits and rules that they name are those that hold."""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from readme_examples import PAGES, README, TUTORIAL, blocks, documents, run, workspace

BLOCKS = {path: blocks(path.read_text(encoding="utf-8")) for path in documents() if path not in (README, TUTORIAL)}
CASES = [
    pytest.param(page, number, id=f"{page.stem}: {block.title}")
    for page, found in BLOCKS.items()
    for number, block in enumerate(found)
]


def text_of(page: str) -> str:
    return (PAGES / page).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], list[str]]:
    """What each block of a page prints, typed one after the other: later ones use files of earlier ones."""

    @cache
    def of_page(page: Path) -> list[str]:
        folder: Path = tmp_path_factory.mktemp(page.stem)
        workspace(folder, page)
        return [run(block, folder) for block in BLOCKS[page]]

    return of_page


def test_pages_have_console_blocks() -> None:
    assert {page.stem for page in BLOCKS} >= {
        "checking",
        "ci",
        "costs",
        "fixing",
        "models",
        "own-rules",
        "planning",
        "python",
    }


@pytest.mark.slow
@pytest.mark.parametrize(("page", "number"), CASES)
def test_console_blocks_show_what_is_printed(page: Path, number: int, printed: Callable[[Path], list[str]]) -> None:
    assert printed(page)[number] == "\n".join(line.rstrip() for line in BLOCKS[page][number].text.splitlines()) + "\n"


def test_the_limits_of_python_source_are_those_that_hold() -> None:
    from convlint.readers.bounded_json import MOST_BYTES
    from convlint.readers.python import notebook, source_file
    from convlint.readers.python.evaluator import limits

    file, steps = (
        line
        for line in text_of("security.md").splitlines()
        if line.startswith(("| a Python file |", "| what is followed in "))
    )
    assert f'| {source_file.LARGEST >> 20} MiB (else "larger than {source_file.LARGEST >> 20} MiB, the limit' in file
    assert f"{MOST_BYTES >> 20} MiB of JSON and {notebook.MOST_CELLS:,} cells" in file
    for text in (f"{limits.STEPS_OF_ROOT:,} steps", f"{limits.STEPS_OF_FILE:,} that are really taken",
                 f"down to {limits.STEPS_OF_FILE_OF_MANY:,}", f"{limits.STEPS_SHARED // 10**6} million",
                 f"{limits.STEPS_OF_RUN // 10**6} million a process", f"{limits.ROUNDS} rounds"):  # fmt: skip
        assert text in steps


def test_the_rules_on_python_source_are_those_that_are_named() -> None:
    from convlint.rulebook.book import load_rulebook

    named, warnings = re.search(
        r"rules judge source: (.*?)\. .*?silent.*?\. (.*?) give warnings", text_of("guide/python.md"), re.DOTALL
    ).groups()
    rules = load_rulebook().of_source
    assert re.findall(r"CL\d+", named) == [rule.info.code for rule in rules]
    assert re.findall(r"CL\d+", warnings) == [rule.info.code for rule in rules if rule.cases[-1].severity != "info"]


def test_the_limits_of_severities_are_those_of_the_engine() -> None:
    from convlint.engine.hits import SAID_SHARE, SAVING_SHARE, WARNING_SHARE

    text = " ".join(text_of("guide/reports.md").split())
    assert f"those that lose {100 * WARNING_SHARE:g} % of the network's time" in text
    assert SAID_SHARE == 0.5
    assert "less than half of what all advice saves" in text
    assert f"that is {100 * SAVING_SHARE:g} % or more of the time" in text
