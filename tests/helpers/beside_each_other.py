"""Prints every text of findings in English and in another language, for a translator to compare.

    python tests/helpers/beside_each_other.py zh [CODE...]

These are the messages and fixes of every failing example.
"""

import sys
from collections.abc import Iterator

from msgspec import Struct

from convlint.files.located_yaml import parse, read_text
from convlint.mend.examples import example_findings
from convlint.model.report import Finding
from convlint.reporters.translated import Translator
from convlint.rulebook.book import load_rulebook
from convlint.rulebook.rule import Rule


class Beside(Struct, frozen=True, kw_only=True):
    """One text of a finding in both languages."""

    code: str
    english: str
    other: str


def in_both(language: str) -> Iterator[Beside]:
    """The texts of the findings of every failing example, each once."""
    translator = Translator(language)
    said: set[tuple[str, str]] = set()
    for rule in load_rulebook().rules:
        for finding in findings_of_examples(rule):
            for text in (finding.message, finding.fix.describe if finding.fix is not None else ""):
                key = rule.info.code, str(text)
                if text and key not in said:
                    said.add(key)
                    yield Beside(code=rule.info.code, english=text, other=translator.text(text))


def findings_of_examples(rule: Rule) -> Iterator[Finding]:
    """What the rule finds in its failing examples."""
    document = parse(read_text(rule.path))
    for item in document.data["examples"].data["fail"].data:
        yield from example_findings(rule, item.data["given"])[0]


def main(language: str, *codes: str) -> None:
    """Prints them."""
    for each in in_both(language):
        if not codes or each.code in codes:
            print(f"{each.code}\n  {each.english}\n  {each.other}")


if __name__ == "__main__":
    main(*sys.argv[1:])
