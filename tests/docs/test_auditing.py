"""The page on audits: its questions have the answers that it shows, and its reference is of the tables there are."""

import re
from pathlib import Path

import pytest
from command_line import convlint
from readme_examples import AUDIT_TABLES, AUDITING, audit_of, workspace
from sql_examples import answered, questions, refreshed

from convlint.audit.ranking import columns
from convlint.audit.rows import TABLES
from convlint.audit.subjects import ALIASES, KEYS
from handbook import audit_tables

QUESTIONS = questions(AUDIT_TABLES.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The zoo of the page and the tables of its first audit."""
    folder = tmp_path_factory.mktemp("audited")
    workspace(folder, AUDITING)
    audit_of(folder)
    return folder


def test_there_are_questions() -> None:
    assert len(QUESTIONS) >= 5
    assert all(shown for _, shown in QUESTIONS)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(QUESTIONS)))
def test_a_question_has_the_answer_that_is_shown(number: int, audited: Path) -> None:
    query, shown = QUESTIONS[number]
    assert answered(query, audited) == shown
    assert shown.count("\n") > 3  # with fewer than two rows there is nothing to compare


def test_an_answer_is_put_below_its_question(tmp_path: Path) -> None:
    text = "# T\n\n```sql\nSELECT 1 AS a, 2.5 AS b, 'c' AS c, NULL AS d, true AS e\n```\n\n| old |\n|---|\n\nMore.\n"
    new = (
        "# T\n\n```sql\nSELECT 1 AS a, 2.5 AS b, 'c' AS c, NULL AS d, true AS e\n```\n\n| a | b | c | d | e |\n"
        "| --: | --: | --- | --- | --: |\n| 1 | 2.5 | c |  | true |\n\nMore.\n"
    )
    assert refreshed(text, tmp_path) == refreshed(new, tmp_path)
    assert refreshed(text, tmp_path).endswith("|\n\nMore.\n")


def test_every_column_is_explained() -> None:
    lines = audit_tables.audit_tables()
    named = [line.split("`")[1] for line in lines if line.startswith("| `")]
    assert named == [name for table in TABLES for name in columns(table)]
    assert [line for line in lines if line.startswith("### ")] == [
        f"### The table `audit{suffix}.parquet`" for suffix in ("", "-layers", "-models", "-errors")
    ]


@pytest.mark.parametrize("change", ["more", "fewer"])
def test_a_column_without_a_meaning_is_an_error(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    meanings = dict(audit_tables.MEANINGS["errors"])
    if change == "more":
        meanings["cause"] = "what no column has"
    else:
        del meanings["message"]
    monkeypatch.setattr(audit_tables, "MEANINGS", {**audit_tables.MEANINGS, "errors": meanings})
    with pytest.raises(audit_tables.UnexplainedColumnError, match=r"errors: (cause|message)"):
        audit_tables.audit_tables()


def test_every_key_of_a_list_is_named() -> None:
    assert [line.split("`")[1] for line in audit_tables.audit_keys() if line.startswith("| `")] == list(KEYS)


def test_every_column_of_weights_is_named(tmp_path: Path) -> None:
    (tmp_path / "hours.csv").write_text("unknown\n")
    said = convlint("audit", str(tmp_path), "--weights", str(tmp_path / "hours.csv")).err
    known = " ".join(said.partition("known are ")[2].split()).split(", ")
    page = AUDITING.read_text(encoding="utf-8").partition("## Hours")[2].partition("## ")[0]
    assert len(known) > 5
    assert set(known) <= set(re.findall(r"`(\w+)`", page))


def test_the_page_itself_names_every_key_of_a_list() -> None:
    """Whoever reads it without the site sees no generated table."""
    text = AUDITING.read_text(encoding="utf-8")
    assert {key for key in (*KEYS, *ALIASES) if f"`{key}`" not in text} == set()
