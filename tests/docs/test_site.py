"""The pages before MkDocs: all are there, written ones are filled in, and settings follow from the sources."""

import json
import re
from pathlib import Path

import pytest
import yaml
from checkout import ROOT

from convlint.model.layer import PASSES, ConvLayer, gemm, with_output
from convlint.model.report import GRADES
from convlint.reporters.words import DOCS, rule_page
from convlint.rulebook.book import load_rulebook
from handbook.site import build, made_pages, navigation

RULEBOOK = load_rulebook()
PAGES = ROOT / "docs" / "pages"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    (folder / "pages").mkdir()
    (folder / "pages" / "old.md").write_text("from an earlier build")
    build(folder)
    return folder


def test_every_code_of_the_rulebook_has_its_page() -> None:
    pages = made_pages(RULEBOOK)
    for rule in RULEBOOK.rules:
        assert rule_page(rule.info.code).replace(".html", ".md") in pages


def test_all_pages_are_written_and_nothing_stays_of_earlier_ones(built: Path) -> None:
    names = {path.relative_to(built / "pages").as_posix() for path in (built / "pages").rglob("*") if path.is_file()}
    written = {path.relative_to(PAGES).as_posix() for path in PAGES.rglob("*") if path.is_file()}
    assert names == {*written, *made_pages(RULEBOOK)}


def test_no_mark_is_left(built: Path) -> None:
    for path in (built / "pages").rglob("*.md"):
        assert "<!-- " not in path.read_text(encoding="utf-8"), path


def test_the_menu_leads_to_pages_and_leaves_out_rules_alone(built: Path) -> None:
    listed = set(re.findall(r"[\w/-]+\.md", repr(navigation())))
    pages = {path.relative_to(built / "pages").as_posix() for path in (built / "pages").rglob("*.md")}
    assert listed <= pages
    assert {name for name in pages - listed if not re.fullmatch(r"rules/CL\d+\.md", name)} == set()


def test_the_settings_name_the_address_and_inherit_the_rest(built: Path) -> None:
    settings = yaml.safe_load((built / "mkdocs.yml").read_text(encoding="utf-8"))
    assert settings["site_url"] == DOCS
    assert (built / settings["INHERIT"]).resolve() == ROOT / "docs" / "mkdocs.yml"


def test_code_states_the_address_in_one_place_and_pages_no_other() -> None:
    holders = [
        path.relative_to(ROOT).as_posix()
        for folder in ("convlint", "docs")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.suffix in (".py", ".yml", ".yaml") and DOCS in path.read_text(encoding="utf-8")
    ]
    assert holders == ["convlint/reporters/words.py"]
    texts = [path.read_text(encoding="utf-8") for path in PAGES.rglob("*.md")]
    named = {address for text in texts for address in re.findall(r"https://[\w.-]*convlint[\w.-]*/\w*/?", text)}
    assert named == {DOCS}


def test_schemas_are_there_to_be_named_by_specs(built: Path) -> None:
    for name in ("spec", "config"):
        schema = json.loads((built / "pages" / "schemas" / f"{name}.schema.json").read_text(encoding="utf-8"))
        assert schema["title"] == f"convlint {name}"


def test_the_passes_of_the_vocabulary_are_those_of_the_model() -> None:
    """Its table is written by hand; each cell is worked out for a layer in which no two sizes are alike."""
    layer = with_output(ConvLayer(name="a", path="a", N=2, C=12, H=17, W=19, K=20, R=3, S=5, groups=4))
    sizes = {name: getattr(layer, name) for name in ("N", "C", "H", "W", "K", "P", "Q", "R", "S", "groups")}
    rows = re.findall(
        r"^\| (\w+) \|[^|]*\|(.*)\|$", (PAGES / "vocabulary.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    table = {name: [each.strip(" `") for each in cells.split("|")] for name, cells in rows if name in PASSES}
    assert list(table) == list(PASSES)
    for which in PASSES:
        expected = gemm(layer, which)
        worked_out = [eval(cell.replace("/", "//"), {}, sizes) for cell in table[which]]
        assert worked_out == [expected.M, expected.N, expected.K, expected.batch]


def test_the_grades_of_the_vocabulary_are_those_that_are_given() -> None:
    text = (PAGES / "vocabulary.md").read_text(encoding="utf-8")
    said = ", ".join(f"{letter} from {100 * least:.0f} %" for least, letter in GRADES)
    assert said in text
