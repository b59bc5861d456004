"""Drafts are one where they say the same at the same place: of layers by their names, of programs whatever they are."""

from __future__ import annotations

from source_records import RULEBOOK, at

from convlint.engine.hits import Flaw
from convlint.engine.source.draft import Draft, Member

RULE = RULEBOOK.of_source[0]


def draft(message: str = "m", line: int = 1, name: str = "a", *, is_program: bool = False) -> Draft:
    flaw = Flaw(rule=RULE, case=RULE.cases[-1], places=(), message=message)
    return Draft(flaw=flaw, at=at(line), members=(Member(name, "net.py"),), is_program=is_program)


def test_what_makes_two_drafts_one() -> None:
    assert draft().says == draft().says
    assert draft().says != draft("n").says
    assert draft().says != draft(line=2).says
    assert draft().says != draft(name="b").says
    assert draft(is_program=True).says == draft(name="b", is_program=True).says
