"""From hits to findings: where they point, what tells them apart, what they say."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from convlint.engine.findings import Identities, finding_of, is_of_batch, location_of
from convlint.engine.hits import Flaw, Hit, Price
from convlint.model.layer import ConvLayer
from convlint.model.location import Location
from convlint.model.network import Network
from convlint.model.runtime import Runtime
from convlint.report import Fix, fingerprint
from convlint.rulebook.book import load_rulebook

BUILTIN = load_rulebook()
ALIGNMENT, WAVES, TILES = (BUILTIN.by_key[code] for code in ("CL102", "CL301", "CL201"))


def hit(*names: str, rule: Any = ALIGNMENT, sets: dict[str, Any] | None = None, price: Price | None = None) -> Hit:
    sets = {"C": 64} if sets is None else sets
    flaw = Flaw(rule=rule, case=rule.cases[-1], places=(), message="m", set=sets)
    return Hit(
        flaw=flaw, indices=tuple(range(len(names))), names=names, location=Location(path="net.yaml", line=4),
        message="said", sets=(sets,) * len(names), other={}, severity="warning",
        identities=tuple((rule.info.code, "net.yaml", name, "a100", 1) for name in names), price=price or Price(),
    )  # fmt: skip


# --- identities


def test_an_ordinal_tells_those_apart_that_share_the_rest() -> None:
    identities = Identities()
    asked = [
        ("CL102", "a", "t4"), ("CL102", "a", "t4"), ("CL102", "b", "t4"), ("CL102", "a", None), ("CL401", "a", "t4"),
        ("CL102", None, None), ("CL102", None, None), ("CL102", "a", "t4"),
    ]  # fmt: skip
    found = [identities.next(code, "net.yaml", layer, gpu) for code, layer, gpu in asked]
    assert [identity[4] for identity in found] == [1, 2, 1, 1, 1, 1, 2, 3]
    assert len(set(found)) == len(asked)
    assert found[0] == ("CL102", "net.yaml", "a", "t4", 1)
    assert found[5] == ("CL102", "net.yaml", "", "", 1)


def test_what_may_never_come_to_be_takes_no_ordinal() -> None:
    identities = Identities()
    tried = [identities.next("CL102", "net.yaml", "a", None, keep=False)[4] for _ in range(2)]
    kept = [identities.next("CL102", "net.yaml", "a", None)[4] for _ in range(2)]
    assert tried + kept == [1, 1, 1, 2]


def test_fingerprints_are_of_the_whole_identity() -> None:
    one = ("CL102", "net.yaml", "a", "a100", 1)
    others = [
        ("CL401", *one[1:]),
        (one[0], "b.yaml", *one[2:]),
        (*one[:2], "b", *one[3:]),
        (*one[:3], "t4", 1),
        (*one[:4], 2),
    ]
    prints = {fingerprint(identity) for identity in (one, *others)}
    assert len(prints) == 6
    assert all(len(each) == 16 and int(each, 16) for each in prints)
    assert fingerprint(("CL102", "a\udc80", "", "", 1))  # a path need not be text


# --- places

SPANS = {"C": (3, 7, 3, 8), "layer": (2, 5, 6, 1)}
LAYER = ConvLayer(name="a", path="net.yaml", spans=SPANS)
NETWORK = Network(
    path="net.yaml", layers=(LAYER,), runtime=Runtime(cudnn_benchmark=False, spans={"cudnn_benchmark": (9, 20, 9, 25)}),
    spans={"mode": (8, 7, 8, 16), "target": (7, 9, 7, 13)},
)  # fmt: skip


@pytest.mark.parametrize(
    ("places", "layer", "line"),
    [
        (["C"], LAYER, 3),
        (["K", "C"], LAYER, 3),  # the first that was written
        (["K"], LAYER, 2),  # the layer, where it was not
        ([], LAYER, 2),
        (["runtime.cudnn_benchmark"], LAYER, 9),
        (["C", "runtime.cudnn_benchmark"], LAYER, 3),  # what the layer itself says comes first
        (["K", "mode"], LAYER, 8),
        (["runtime.tf32"], LAYER, 2),
        (["runtime.tf32", "target"], None, 7),
        (["runtime.cudnn_benchmark"], None, 9),
        (["mode"], None, 8),
        (["runtime.tf32"], None, None),  # the file
        ([], None, None),
    ],
)
def test_where_a_flaw_was_written(places: list[str], layer: ConvLayer | None, line: int | None) -> None:
    found = location_of(places, layer, NETWORK)
    assert (found.path, found.line) == ("net.yaml", line)
    spans = [*SPANS.values(), *NETWORK.spans.values(), *NETWORK.runtime.spans.values()]
    if line is not None:
        assert (found.line, found.column, found.end_line, found.end_column) in spans


def test_a_layer_of_a_network_without_its_settings_stands_for_itself() -> None:
    bare = replace(NETWORK, runtime=Runtime(), spans={})
    assert location_of(["mode"], LAYER, bare) == LAYER.locate()


# --- what is said


def test_a_finding_has_the_price_of_its_hit() -> None:
    price = Price(lost_us=2.0, alone_us=0.5, capacity_us=4.0, change_us=-0.5, advised=True, pays_with=("CL401",))
    fix = Fix(describe="d", safety="safe", set={"C": 64}, time_change_us=-0.5)
    found = finding_of(hit("a", price=price), "a100", ("CL102", "net.yaml", "a", "a100", 2), fix, 50.0)
    assert (found.lost_us, found.lost_alone_us, found.lost_capacity_us, found.lost_percent) == (2.0, 0.5, 4.0, 4.0)
    assert (found.advised, found.pays_with, found.fix) == (True, ("CL401",), fix)
    assert (found.message, found.severity, found.location.line, found.gpu) == ("said", "warning", 4, "a100")
    assert found.rule == ALIGNMENT.info
    assert found.fingerprint == fingerprint(("CL102", "net.yaml", "a", "a100", 2))


@pytest.mark.parametrize(
    ("lost_us", "network_us", "percent"),
    [(2.0, 50.0, 4.0), (0.0, 50.0, 0.0), (None, 50.0, None), (2.0, None, None), (2.0, 0.0, None)],
)
def test_a_share_of_the_network_needs_its_time(
    lost_us: float | None, network_us: float | None, percent: float | None
) -> None:
    found = finding_of(hit("a", price=Price(lost_us=lost_us)), None, ("CL102", "", "", "", 1), None, network_us)
    assert found.lost_percent == percent


@pytest.mark.parametrize(
    ("made", "layer", "layers"),
    [
        (hit("a"), "a", ()),
        (hit("a", "b"), None, ("a", "b")),
        (hit(), None, ()),  # of the network
        (hit("a", rule=WAVES, sets={"N": 54}), "a", ()),
        (hit("a", "b", rule=WAVES, sets={"N": 54}), None, ("a", "b")),
        (hit("a", rule=TILES, sets={"N": 64}), None, ("a",)),  # that one layer has channels to mend, but N is of all
        (hit("a", rule=TILES, sets={"C": 64}), "a", ()),
        (hit("a", rule=TILES, sets={"C": 64, "N": 64}), "a", ()),
    ],
)
def test_whose_it_is(made: Hit, layer: str | None, layers: tuple[str, ...]) -> None:
    found = finding_of(made, "a100", ("CL102", "net.yaml", "x", "a100", 1), said=True)
    assert (found.layer, found.layers) == (layer, layers)
    if len(made.names) == 1:  # whoever is asked whether it is silenced hears of the layer
        assert finding_of(made, "a100", ("CL102", "net.yaml", "x", "a100", 1)).layer == "a"
    assert found.identities == (made.identities if layers else ())
    assert len(found.fingerprints) == len(layers)
    assert is_of_batch(made) is (layers == ("a",))


def test_without_an_identity_there_is_no_fingerprint() -> None:
    found = finding_of(hit("a"), None, ("CL102", "net.yaml", "a", "", 1))
    assert replace(found, identity=None).fingerprint == ""


def test_ordinals_go_on_apart_from_those_that_they_were_copied_from() -> None:
    own = Identities()
    own.next("CL102", "a", "l", None)
    others = own.copied()
    assert others.next("CL102", "a", "l", None)[-1] == 2
    assert own.next("CL102", "a", "l", None)[-1] == 2
    assert own.next("CL102", "a", "l", None, keep=False)[-1] == own.next("CL102", "a", "l", None)[-1] == 3
