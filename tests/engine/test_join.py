"""Which layers' findings become one, and what that one says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from small_networks import checked, codes, layer, rulebook

from convlint.engine.hits import COUNT, LAYERS, UNPRICED, Flaw, Hit, Price
from convlint.engine.join import joined
from convlint.model.location import Location
from convlint.report import Scalar, Severity
from convlint.rulebook.book import load_rulebook
from convlint.rulebook.rule import Rule

ALIGNMENT = load_rulebook().by_key["CL102"]  # joins what is not advised,
DTYPE = load_rulebook().by_key["CL106"]  # and this one any


def hit(
    index: int,
    *,
    severity: Severity = "info",
    words: str = "w",
    price: Price = UNPRICED,
    sets: Mapping[str, Scalar] | None = None,
    rule: Rule = ALIGNMENT,
) -> Hit:
    sets = sets or {"C": 64}
    flaw = Flaw(
        rule=rule, case=rule.cases[-1], places=(), message="m", describe=words, set=sets, join=True,
        join_message=f"{COUNT}: {LAYERS}",
    )  # fmt: skip
    return Hit(
        flaw=flaw, indices=(index,), names=(f"l{index}",), location=Location(path="a", line=index), message="m",
        sets=(sets,), other={}, severity=severity, identities=(("CL102", "a", f"l{index}", "a100", 1),), price=price,
    )  # fmt: skip


ADVISED = Price(advised=True, lost_us=1.0)


@pytest.mark.parametrize(
    ("hits", "messages"),
    [
        ([hit(0), hit(1)], ["2: l0, l1"]),
        ([hit(0)], ["m"]),
        ([hit(0), hit(0)], ["m", "m"]),  # one layer, by its C and by its K
        ([hit(0), hit(0), hit(1)], ["2: l0, l1"]),
        ([hit(0), hit(1, price=ADVISED), hit(2)], ["2: l0, l2", "m"]),
        ([hit(0, price=ADVISED), hit(1, price=ADVISED)], ["m", "m"]),
        ([hit(0), hit(1, words="another fix")], ["m", "m"]),
        ([], []),
    ],
)
def test_what_is_not_advised_is_joined_and_advice_keeps_its_lines(hits: list[Hit], messages: list[str]) -> None:
    assert [one.message for one in joined(hits, {})] == messages


def test_what_is_joined_keeps_each_layers_fix_and_identity() -> None:
    (one,) = joined([hit(0), hit(3, sets={"C": 72})], {})
    assert (one.indices, one.names, one.sets) == ((0, 3), ("l0", "l3"), ({"C": 64}, {"C": 72}))
    assert one.identities == (("CL102", "a", "l0", "a100", 1), ("CL102", "a", "l3", "a100", 1))
    assert (one.severity, one.location.line) == ("info", 0)


@pytest.mark.parametrize(
    ("prices", "whole"),
    [
        (
            [Price(lost_us=2.0, alone_us=1.0, capacity_us=8.0, change_us=-1.0), Price(1.5, 0.5, 4.0, 0.25)],
            Price(lost_us=3.5, alone_us=1.5, capacity_us=12.0, change_us=-0.75),
        ),
        ([Price(lost_us=2.0, alone_us=1.0), UNPRICED], UNPRICED),  # of one it is not known
        ([Price(lost_us=2.0, capacity_us=1.0), Price(lost_us=1.0)], Price(lost_us=3.0)),
        ([Price(advised=True), Price(advised=True)], Price(advised=True)),
        ([Price(), Price()], Price()),
        (
            [Price(pays_with=("CL401",)), Price(pays_with=("CL104", "CL401")), Price()],
            Price(pays_with=("CL104", "CL401")),
        ),
    ],
)
def test_what_is_joined_costs_what_its_layers_cost(prices: list[Price], whole: Price) -> None:
    (one,) = joined([hit(index, price=price, rule=DTYPE) for index, price in enumerate(prices)], {})
    assert one.price == whole


def test_what_is_advised_is_not_joined_with_what_is_not() -> None:
    """A fix that one layer gains from may cost another one time."""
    prices = [Price(advised=True, lost_us=2.0), Price(lost_us=0.0, change_us=7.0), Price(advised=True, lost_us=1.0)]
    good, bad = joined([hit(index, price=price, rule=DTYPE) for index, price in enumerate(prices)], {})
    assert (good.indices, good.price.lost_us, good.price.advised) == ((0, 2), 3.0, True)
    assert (bad.indices, bad.price.change_us, bad.price.advised) == ((1,), 7.0, False)


def test_another_batch_is_one_change_for_all_layers() -> None:
    """Where what each layer leaves empty is its own."""
    price = Price(capacity_us=2.0, change_us=-7.0)
    (one,) = joined([hit(index, price=price, sets={"N": 54}) for index in range(3)], {})
    assert one.price == Price(capacity_us=6.0, change_us=-7.0)
    (other,) = joined([hit(index, price=price) for index in range(3)], {})
    assert other.price == Price(capacity_us=6.0, change_us=-21.0)


def test_layers_that_the_batch_does_not_help_keep_their_own_line() -> None:
    """What fills the tiles of one layer need not fill those of another: a multiple of 64 is N times its own map."""
    hits = [hit(0, sets={"N": 64}), hit(1, sets={"N": 64}), hit(2, sets={"N": 72})]
    hits.append(hits[0]._replace(indices=(3,), names=("l3",), sets=({},)))  # its own batch is not that of the plan
    assert [(one.names, one.sets[0]) for one in joined(hits, {})] == [
        (("l0", "l1"), {"N": 64}), (("l2",), {"N": 72}), (("l3",), {}),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("share", "layers", "found"),
    [
        ("all", ["8", "8"], [("XY000", None)]),
        ("all", ["8", "1"], [("XY000", "l0")]),
        ("any", ["8", "1", "8"], [("XY000", None)]),
        ("any", ["8", "1"], [("XY000", "l0")]),
        ("all", ["8"], [("XY000", "l0")]),
    ],
)
def test_joins(share: str, layers: list[str], found: list[tuple[str, str | None]], tmp_path: Path) -> None:
    rules = rulebook(tmp_path, {"join": f'{{ share: {share}, message: "{{count}}: {{layers}}" }}'})
    result = checked(rules, "".join(layer(f"l{i}", C=C) for i, C in enumerate(layers)))
    assert codes(result) == found
    if found[0][1] is None:
        (finding,) = result.findings
        names = tuple(f"l{i}" for i, C in enumerate(layers) if C == "8")
        assert finding.layers == names
        assert finding.message == f"{len(names)}: {', '.join(names)}"


def test_all_means_all_to_which_the_rule_applies(tmp_path: Path) -> None:
    rules = rulebook(tmp_path, {"when": "K == 64", "join": '{ message: "{layers}" }'})
    result = checked(rules, layer("a", C=8) + layer("b", K=8) + layer("c", C=8))
    assert [finding.layers for finding in result.findings] == [("a", "c")]


def test_a_long_list_of_layers_is_cut(tmp_path: Path) -> None:
    rules = rulebook(tmp_path, {"join": '{ message: "{count}: {layers}" }'})
    (finding,) = checked(rules, "".join(layer(f"l{i}") for i in range(9))).findings
    assert finding.message == "9: l0, l1, l2, l3 and 5 more"
    assert len(finding.layers) == 9


def test_errors_are_not_joined_with_warnings() -> None:
    """What is said of several layers is true of each: bf16 and fp8 have no kernel on V100, int8 runs slowly."""
    layers = "".join(
        f"  - {{ name: {dtype}, C: 64, H: 28, W: 28, K: 64, kernel_size: 3, padding: 1, dtype: {dtype} }}\n"
        for dtype in ("int8", "bf16", "fp8")
    )
    head = "defaults: { N: 8 }\n"
    found = {
        f.layer: f.severity
        for f in checked(load_rulebook(), layers, gpus="v100", top=head, mode="inference").findings
        if f.rule.code == "CL107"
    }
    assert found == {"int8": "warning", "bf16": "error", "fp8": "error"}


@pytest.mark.parametrize(("flawed", "found"), [(4, 4), (5, 1)])
def test_from_five_layers_on_what_not_all_share_is_said_once(flawed: int, found: int, tmp_path: Path) -> None:
    rules = rulebook(tmp_path, {"join": '{ share: all, message: "{count}" }'})
    layers = "".join(layer(f"l{i}", C=8) for i in range(flawed)) + layer("sound", C=1)
    assert len(checked(rules, layers).findings) == found


def test_advice_keeps_its_own_line_whatever_it_comes_to(tmp_path: Path) -> None:
    """Where a rule joins infos: how severe advice is follows from all findings of the network."""
    fix = '{ describe: "use C={wide}", set: { C: wide } }'
    rules = rulebook(
        tmp_path,
        {"check": "C % 8 == 0", "loss": "fix", "let": '{ wide: "ceil_to(C, 8)" }', "fix": fix,
         "join": '{ share: info, message: "{layers}" }'},
    )  # fmt: skip
    dear, cheap = layer("dear", C=62, N=256, H=56, W=56), [layer(f"l{i}", C=510, K=2048) for i in range(3)]
    network = dear + layer("sound", C=512, K=512) + "".join(cheap)  # the cheap lose 3 % of their time
    found = [(f.message, f.severity, f.layers) for f in checked(rules, network).findings]
    assert found == [("m", "warning", ()), *[("m", "info", ())] * 3]
