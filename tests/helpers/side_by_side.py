"""Prints every text of findings in English and beside it in another language, for somebody who reads both.

    python -m tests.helpers.side_by_side zh [CODE...]

These are the messages and fixes of every failing example, and those of the sample specs that the samples find.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from msgspec import Struct

from convlint.files.located_yaml import parse, read_text
from convlint.languages.catalogue import catalogue
from convlint.languages.pairs import english_of, other_of, tidied
from convlint.languages.saying import speaking
from convlint.linting.rule_examples import example_findings
from convlint.linting.suppression_examples import suppression_findings
from convlint.report import Finding
from convlint.rulebook.book import load_rulebook
from convlint.rulebook.rule import Rule
from convlint.rulebook.translated import translated


class Beside(Struct, frozen=True, kw_only=True):
    """One text of a finding in both languages."""

    code: str
    english: str
    other: str


def in_both(language: str) -> Iterator[Beside]:
    """The texts of the findings of every failing example, each once."""
    said: set[tuple[str, str]] = set()
    for rule in load_rulebook().rules:
        for finding in findings_in_both(rule, language):
            for text in (finding.message, finding.fix.describe if finding.fix is not None else ""):
                key = rule.info.code, english_of(text)
                if text and key not in said:
                    said.add(key)
                    yield Beside(code=rule.info.code, english=english_of(text), other=tidied(other_of(text)))


def findings_in_both(rule: Rule, language: str) -> Iterator[Finding]:
    """What the rule finds in its failing examples, its texts as pairs."""
    document = parse(read_text(rule.path))
    assert document is not None
    speaker = translated(rule, catalogue(language))
    with speaking(language, both=True):
        for item in document.data["examples"].data["fail"].data:
            given = item.data["given"]
            if rule.scope == "suppression":
                yield from suppression_findings(speaker, given)
            else:
                yield from example_findings(speaker, given)[0]


def main(language: str, *codes: str) -> None:
    """Prints them."""
    for each in in_both(language):
        if not codes or each.code in codes:
            print(f"{each.code}\n  {each.english}\n  {each.other}")


if __name__ == "__main__":
    main(*sys.argv[1:])
