"""What of a rule's file decides and speaks: names in terms of those before, cases with what variants leave out."""

from __future__ import annotations

import pytest

from convlint.errors import RuleError
from convlint.files.located_yaml import parse
from convlint.rulebook.judgement import MOST_PARTS, cases_of, join_of, let_of, loss_of
from convlint.rulebook.pieces import Pieces


def pieces(text: str) -> Pieces:
    document = parse(text)
    assert document is not None
    return Pieces("rule.yaml", document)


def test_names_are_in_terms_of_those_before_them() -> None:
    rule = pieces("let: { twice: 2 * C, more: twice + 1 }")
    assert [(name, expr.type) for name, expr in let_of(rule)] == [("twice", "number"), ("more", "number")]
    assert rule.names["more"] == "number"
    with pytest.raises(RuleError, match="unknown name 'twice'"):
        let_of(pieces("let: { more: twice + 1, twice: 2 * C }"))
    assert let_of(pieces("title: x")) == ()


@pytest.mark.parametrize("name", ["source", "width", "program", "gpu", "suppression"])
def test_no_name_hides_one_of_the_vocabulary(name: str) -> None:
    with pytest.raises(RuleError, match="cannot be a name here"):
        let_of(pieces(f"let: {{ {name}: C }}"))


def test_what_a_variant_leaves_out_is_the_rule_s() -> None:
    text = (
        "severity: info\nmessage: own\nat: C\nvariants: [ { when: C == 3, message: three }, { when: C == 4, at: K } ]\n"
    )
    three, four, own = cases_of(pieces(text))
    assert [case.severity for case in (three, four, own)] == ["info", "info", "info"]
    assert [case.message.render({}) for case in (three, four, own)] == ["three", "own", "own"]
    assert [case.at[0][0] for case in (three, four, own)] == ["C", "K", "C"]
    assert [case.when is None for case in (three, four, own)] == [False, False, True]


def test_there_are_only_so_many_parts() -> None:
    many = ", ".join(f"n{number}: C" for number in range(MOST_PARTS + 1))
    with pytest.raises(RuleError, match="more than 200 names"):
        let_of(pieces(f"let: {{ {many} }}"))
    variants = ", ".join(["{ when: C == 3 }"] * (MOST_PARTS + 1))
    with pytest.raises(RuleError, match="variants: more than 200"):
        cases_of(pieces(f"severity: info\nmessage: m\nvariants: [ {variants} ]"))


def test_prices_and_joins() -> None:
    assert loss_of(pieces("title: x")) == ("none", ())
    assert loss_of(pieces("loss: tile")) == ("tile", ("fprop", "dgrad", "wgrad"))
    assert loss_of(pieces("loss: { kind: tile, passes: [wgrad] }")) == ("tile", ("wgrad",))
    assert join_of(pieces("title: x")) is None
    join = join_of(pieces("title: x\njoin: { share: any, message: '{count} layers' }"))
    assert join is not None
    assert (join.share, join.when) == ("any", None)


def test_places_are_those_of_the_scope() -> None:
    with pytest.raises(RuleError, match="at: unknown place 'width'"):
        cases_of(pieces("severity: info\nmessage: m\nat: width"))
    rule = pieces("severity: info\nmessage: m\nat: width")
    rule.reads("width")
    assert cases_of(rule)[0].at == (("width", None),)
