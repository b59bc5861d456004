"""The README is short and shows what convlint really prints; its commands, links, pictures and figures exist."""

import re

import pytest
from checkout import ROOT
from readme_examples import PAGES, README, blocks, run, workspace, yaml_examples

TEXT = README.read_text(encoding="utf-8")
BLOCKS = blocks(TEXT)


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """What each block prints, typed one after the other as a reader would: later ones use files of earlier ones."""
    folder = tmp_path_factory.mktemp("readme")
    workspace(folder)
    return [run(block, folder) for block in BLOCKS]


@pytest.mark.contract
@pytest.mark.slow
@pytest.mark.parametrize("number", [pytest.param(i, id=block.title) for i, block in enumerate(BLOCKS)])
def test_console_blocks_show_what_is_printed(number: int, printed):
    assert printed[number] == "\n".join(line.rstrip() for line in BLOCKS[number].text.splitlines()) + "\n"


def test_every_command_is_shown():
    from convlint.cli.arguments import COMMANDS

    names = set(COMMANDS)
    assert {name for name in names if re.search(rf"convlint {name}\b", TEXT)} == names


def test_a_newcomer_reads_it_in_five_minutes():
    assert len(TEXT.encode()) < 16_000


def test_what_it_leads_to_exists():
    """Files of the repository, and their headings."""
    targets = re.findall(r"\]\((?!https?://)([^)#]+)(?:#([^)]+))?\)", TEXT)
    assert len(targets) > 20
    for name, anchor in targets:
        assert (ROOT / name).is_file(), name
        if anchor:
            headings = re.findall(r"^##+ (.+)$", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


def test_it_leads_to_every_page_that_is_written():
    pages = {path.relative_to(ROOT).as_posix() for path in PAGES.rglob("*.md")}
    # the site's own start, and a table for those who write rules
    without = {f"docs/pages/{name}" for name in ("index.md", "reference/quantities.md")}
    assert {name for name in pages if f"]({name}" in TEXT} == pages - without


def test_hook_and_action_are_those_of_the_page_on_ci():
    examples = yaml_examples(README)
    assert len(examples) == 2
    assert set(examples) < set(yaml_examples(PAGES / "guide" / "ci.md"))


def _rows(text: str, heading: str) -> list[list[str]]:
    """The cells of the table that begins with that cell."""
    lines = text[text.index(f"| {heading} |") :].partition("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.mark.parametrize(
    ("heading", "source"),
    [("model", ROOT / "benchmarks" / "README.md"), ("comparison", PAGES / "speed.md")],
    ids=["accuracy", "speed"],
)
def test_figures_are_those_of_the_full_tables(heading, source):
    names, _, *rows = _rows(TEXT, heading)
    full = _rows(source.read_text(encoding="utf-8"), heading)
    columns = [full[0].index(name) for name in names]
    assert len(rows) >= 3
    for row in rows:
        assert row in [[line[column] for column in columns] for line in full]
