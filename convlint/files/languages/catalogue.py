"""Reads the translations of one language: pairs of an English text and its own, by rule or by part of a report."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files

from msgspec import Struct

from convlint.model.text import COMMA

_CODE = re.compile(r"[A-Z]{2,8}[0-9]{3,4}")


class Translation(Struct, frozen=True, kw_only=True):
    """One pair as its file has it; `section` is the code of a rule, or what the sentences are part of."""

    file: str
    section: str
    english: str
    other: str

    @property
    def of_rule(self) -> bool:
        """Whether it is a text of one rule, and no sentence of the program."""
        return _CODE.fullmatch(self.section) is not None


class Catalogue:
    """The texts of one language. A text that it lacks stays English, as do rules of the user's own."""

    def __init__(self, language: str, entries: tuple[Translation, ...]) -> None:
        self.language = language
        self._rules = {(entry.section, entry.english): entry.other for entry in entries if entry.of_rule}
        self._sentences: Mapping[str, str] = {entry.english: entry.other for entry in entries if not entry.of_rule}
        # Fragments of a rule are joined as in their own language, so a rule that is not translated keeps its commas.
        self._rules.update({(code, COMMA): self.sentence(COMMA) for code, _ in self._rules})

    def of_rule(self, code: str, english: str) -> str | None:
        """A title, rationale or template of a rule; None where there is none."""
        return self._rules.get((code, english))

    def sentence(self, english: str) -> str:
        """A sentence of the program; the English where there is none."""
        return self._sentences.get(english, english)


def entries_of(language: str) -> Iterator[Translation]:
    """Every pair in the language's files, in order."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    folder = files(__package__).joinpath(language)
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if file.name.endswith(".yaml"):
            for section, pairs in yaml.load(file.read_text("utf-8"), loader).items():
                for pair in pairs:
                    yield Translation(file=file.name, section=section, english=pair["en"], other=pair[language])


@cache
def catalogue(language: str) -> Catalogue:
    """The catalogue of a language that is not English."""
    return Catalogue(language, tuple(entries_of(language)))
