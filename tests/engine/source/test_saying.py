"""Drafts become findings: once for all targets, in the order of places, under names that last."""

from __future__ import annotations

from msgspec.structs import replace
from source_records import RULEBOOK, at

from convlint.engine.hits import Flaw
from convlint.engine.source.draft import Draft, Member
from convlint.engine.source.saying import Findings, on_targets
from convlint.facts.source_layers import GETTING
from convlint.report import Finding

WIDTH, SITE, SCRIPT = (
    next(rule for rule in RULEBOOK.of_source if rule.info.code == code) for code in ("CL102", "CL506", "CL503")
)


def draft(rule: object = WIDTH, line: int = 1, *names: str, message: str = f"{GETTING}!", **given: bool) -> Draft:
    assert isinstance(rule, type(WIDTH))
    flaw = Flaw(rule=rule, case=rule.cases[-1], places=(), message=message, describe=f"use {GETTING}")
    members = tuple(Member(name, "net.py", "K", 1) for name in names or ("a",))
    return Draft(flaw=flaw, at=at(line), members=members, **given)


def findings(*drafts: Draft, silenced: tuple[str, ...] = (), given: tuple[str, ...] = ("net.py",)) -> list[Finding]:
    return Findings(given, lambda finding: finding.layer in silenced).of([(None, each) for each in drafts])


def test_a_target_is_named_where_it_is_said_of_one_alone() -> None:
    assert [label for label, _ in on_targets([("a", draft())], 1)] == [None]
    assert [label for label, _ in on_targets([("a", draft())], 2)] == ["a"]
    assert [label for label, _ in on_targets([("a", draft()), ("b", draft())], 3)] == [None]
    assert [label for label, _ in on_targets([("a", draft(SITE))], 2)] == [None]  # asked for the first alone


def test_the_order_is_that_of_codes_and_places() -> None:
    found = on_targets([("a", draft(SITE, 3)), ("a", draft(WIDTH, 9)), ("a", draft(WIDTH, 2))], 1)
    assert [each.at.line for _, each in found] == [2, 9, 3]


def test_programs_that_reach_one_statement_are_one() -> None:
    one, other = (draft(SCRIPT, 4, name, message="m", is_program=True) for name in ("b.py", "a.py"))
    ((_, found),) = on_targets([("a", one), ("a", other)], 1)
    assert [member.name for member in found.members] == ["a.py", "b.py"]
    (finding,) = findings(found)
    assert (finding.layer, finding.layers) == (None, ())
    assert finding.identity == ("CL503", "net.py", "a.py", "", 1)


def test_texts_name_the_layers_that_are_left() -> None:
    (finding,) = findings(draft(WIDTH, 1, "a", "b", "c"), silenced=("b",))
    assert finding.message == "K=1 of a, K=1 of c!"
    assert finding.fix is not None
    assert finding.fix.describe == "use K=1 of a, K=1 of c"
    assert finding.layers == ("a", "c")
    assert findings(draft(WIDTH, 1, "a"), silenced=("a",)) == []


def test_numbers_of_one_layer_stand_together() -> None:
    members = [Member("a", "net.py", "K", number) for number in (9, 3, 5, 11, 7)]
    (finding,) = findings(replace(draft(), members=(*members, Member("a", "net.py", "C", 3))))
    assert finding.message == "K=3/5/7/9/... and C=3 of a!"
    (finding,) = findings(replace(draft(), members=tuple(members[:2])))
    assert finding.message == "K=3/9 of a!"


def test_ordinals_tell_findings_apart_that_share_the_rest() -> None:
    found = findings(draft(WIDTH, 1), draft(WIDTH, 2), draft(WIDTH, 3, "b"))
    assert [each.identity and each.identity[2:] for each in found] == [("a", "", 1), ("a", "", 2), ("b", "", 1)]


def test_what_stands_in_no_file_that_was_given_is_left_out() -> None:
    assert findings(draft(), given=("other.py",)) == []
    moved = replace(draft(), at=at(1, "other.py"))
    assert len(findings(moved, given=("other.py",))) == 1
    assert len(findings(moved, given=("net.py",))) == 1
