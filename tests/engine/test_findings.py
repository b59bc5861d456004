"""From hits to findings: where they point, what tells them apart, what they say."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from small_networks import checked, codes, layer, rulebook
from wirings import Wiring, told

from convlint.engine.check import Target, check_network
from convlint.engine.findings import (
    Identities,
    NetworkResult,
    assemble,
    finding_of,
    is_of_batch,
    joined,
    location_of,
    may_join,
)
from convlint.engine.hits import COUNT, LAYERS, UNPRICED, Flaw, Hit, Price
from convlint.gpus.gpu import load_gpu
from convlint.model.layer import ConvLayer, Dtype
from convlint.model.location import Location
from convlint.model.network import Network
from convlint.model.report import (
    Finding,
    Fix,
    LayerReport,
    LayerTimes,
    NetworkReport,
    Report,
    Scalar,
    Severity,
    fingerprint,
)
from convlint.model.runtime import Runtime
from convlint.model.text import Text
from convlint.rulebook.book import load_rulebook
from convlint.rulebook.rule import Rule


@pytest.mark.parametrize("module", ["convlint.engine.check", "convlint.engine.timing", "convlint.engine.levers"])
def test_source_is_checked_without_what_prices_networks(module: str) -> None:
    code = f"import sys, convlint.mend.source_fixing; print({module!r} in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "False"


BUILTIN = load_rulebook()


def report(*results: NetworkResult) -> Report:
    return assemble(results, (), BUILTIN, files=len(results))


def named(
    name: str, severity: Severity, lost_us: float | None = None, path: str = "a", line: int | None = 1
) -> Finding:
    return Finding(
        rule=BUILTIN.rules[0].info, severity=severity, message="m", location=Location(path=path, line=line), layer=name,
        lost_us=lost_us,
    )  # fmt: skip


@pytest.mark.parametrize("order", [1, -1])
def test_the_gravest_come_first_then_what_loses_most(order: int) -> None:
    findings = [
        named("a", "error", 5.0), named("b", "error"), named("c", "error", line=2), named("d", "warning", 9.0),
        named("e", "warning", 8.0), named("f", "warning", 0.0, line=None), named("g", "warning"),
        named("h", "warning", path="b"), named("i", "info", 99.0),
    ]  # fmt: skip
    whole = report(result(findings=tuple(findings[::order])))
    assert "".join(finding.layer or "" for finding in whole.findings) == "abcdefghi"


def test_a_report_sums_its_networks_up() -> None:
    one, two = checked(BUILTIN, layer("a")), checked(BUILTIN, layer("b", C=62), path="b.yaml")
    whole = report(one, two)
    times = [entry.times["a100"] for each in (one, two) for entry in each.layers]
    assert whole.total.times is not None
    assert None not in times
    for name in ("time_us", "after_us", "ideal_us"):
        assert getattr(whole.total.times, name) == pytest.approx(sum(getattr(each, name) for each in times))
    assert (whole.files, len(whole.layers), whole.total.gpu, whole.total.mode) == (2, 2, "a100", "training")
    assert whole.totals == (whole.total,)
    assert whole.total.time_us == whole.total.times.time_us
    assert whole.total.time_after_us == whole.total.times.after_us
    assert whole.total.lost_us == whole.total.times.time_us - whole.total.times.after_us
    assert whole.total.lost_us > 0
    unknown = report(one, checked(BUILTIN, layer("c", H=None))).total
    assert (unknown.times, unknown.time_us, unknown.time_after_us, unknown.lost_us, unknown.grade) == (None,) * 5


def of_layer(**times: tuple[float, float, float] | None) -> LayerReport:
    """A layer and its times on each GPU: now, after all advice, and in the ideal."""
    return LayerReport(
        layer=ConvLayer(name="a"),
        times={
            gpu: None if own is None else LayerTimes(time_us=own[0], after_us=own[1], ideal_us=own[2])
            for gpu, own in times.items()
        },
    )


def result(*layers: LayerReport, **parts: Any) -> NetworkResult:
    values: dict[str, Any] = {
        "path": "net.yaml", "labels": ("a100",), "mode": "training", "layers": layers, "findings": (), "skipped": (),
    }  # fmt: skip
    return NetworkResult(**values | parts)


@pytest.mark.parametrize(
    ("times", "sums", "letter"),
    [
        ([(100.0, 95.0, 90.0)], (100.0, 95.0), "A"),
        ([(100.0, 95.0, 89.0)], (100.0, 95.0), "B"),
        ([(100.0, 95.0, 90.0), (100.0, 70.0, 60.0)], (200.0, 165.0), "B"),  # of the sums
        ([(100.0, 95.0, 90.0), (900.0, 90.0, 9.0)], (1000.0, 185.0), "F"),
        ([(100.0, 95.0, 90.0), None], None, None),  # what is not known is not left out
        ([None], None, None),
        ([], None, None),
    ],
)
def test_the_grade_is_that_of_all_networks(
    times: list[Any], sums: tuple[float, float] | None, letter: str | None
) -> None:
    together = report(result(*(of_layer(a100=own) for own in times))).total
    apart = report(*(result(of_layer(a100=own)) for own in times)).total
    assert together is not None
    assert (apart is None) == (not times)
    for total in (together, apart):
        if total is not None:
            assert (total.time_us, total.time_after_us) == (sums or (None, None))
            assert total.grade == letter
            assert total.lost_us == (None if sums is None else sums[0] - sums[1])


@pytest.mark.parametrize(
    ("ratio", "letter"),
    [
        (1.0, "A"), (0.9, "A"), (0.8999, "B"), (0.75, "B"), (0.7499, "C"), (0.6, "C"), (0.5999, "D"), (0.4, "D"),
        (0.3999, "F"), (0.0, "F"),
    ],
)  # fmt: skip
def test_letters(ratio: float, letter: str) -> None:
    assert LayerTimes(time_us=1000.0, after_us=1.0, ideal_us=1000.0 * ratio).grade == letter


def test_what_takes_no_time_could_not_be_better() -> None:
    assert LayerTimes(time_us=0.0, after_us=0.0, ideal_us=0.0).grade == "A"


def test_totals_are_those_of_each_target_and_mode_in_order() -> None:
    """A spec of its own mode is added up in its own; the first total is that of the first input's."""
    whole = report(
        result(of_layer(t4=(9.0, 8.0, 7.0), a100=(5.0, 4.0, 3.0)), labels=("t4", "a100")),
        result(of_layer(t4=(1.0, 1.0, 1.0)), labels=("t4",), mode="inference"),
        result(of_layer(v100=(4.0, 4.0, 4.0), t4=(2.0, 2.0, 2.0)), labels=("v100", "t4")),
        result(of_layer(v100=(8.0, 8.0, 8.0)), labels=("v100",), mode="inference"),
    )
    assert whole.targets == ("t4", "a100", "v100")
    assert whole.mode == "training"
    assert [(total.gpu, total.mode, total.time_us) for total in whole.totals] == [
        ("t4", "training", 11.0), ("t4", "inference", 1.0), ("a100", "training", 5.0), ("v100", "training", 4.0),
        ("v100", "inference", 8.0),
    ]  # fmt: skip
    assert (whole.total.gpu, whole.total.mode, whole.total.time_us) == ("t4", "training", 13.0)  # each on its first


def test_without_inputs_there_is_nothing_to_sum_up() -> None:
    empty = report()
    assert (empty.total, empty.totals, empty.targets) == (None, (), ())
    nothing = report(result(labels=()))
    assert (nothing.total, nothing.totals) == (None, ())
    without_layers = report(result(labels=("t4", "a100")))
    assert [(total.gpu, total.times) for total in without_layers.totals] == [("t4", None), ("a100", None)]


CHAIN = "".join(layer(f"c{number}", N=1, input=f"c{number - 1}" if number else None) for number in range(10))
EAGER = "runtime: { framework: pytorch }\n"


def one(tmp_path, layers: str, **options) -> NetworkReport:
    (network,) = checked(rulebook(tmp_path), layers, **options).networks
    return network


def test_parameters_flops_and_memory(tmp_path):
    found = one(tmp_path, layer("a") + layer("b"))
    assert (found.path, found.gpu, found.mode, found.batch) == ("net.yaml", "a100", "training", 32)
    assert found.parameters == 2 * 64 * 64 * 9
    assert found.flops == 2 * 2 * 32 * 28 * 28 * 64 * 64 * 9
    assert found.memory["activations"] == 2 * 32 * 28 * 28 * 64 * 2
    assert found.memory_needs == ()
    assert found.capacity_bytes == 40 * 2**30
    assert (found.host_us, found.waits) == (None, False)


def test_a_network_for_each_target(tmp_path):
    networks = checked(rulebook(tmp_path), layer("a"), gpus="a100 k80").networks
    assert [network.gpu for network in networks] == ["a100", "k80"]
    assert networks[0].largest_batch > networks[1].largest_batch


def test_what_is_unknown_is_left_out(tmp_path):
    found = one(tmp_path, layer("a", N=None) + layer("b"))
    assert (found.batch, found.flops, found.memory, found.memory_needs) == (None, None, {}, ("N",))
    assert found.parameters == 2 * 64 * 64 * 9
    assert one(tmp_path, layer("a", C=None)).parameters is None
    assert one(tmp_path, layer("a", N=8) + layer("b")).batch is None


def test_a_step_that_mostly_has_no_price_is_said_to_be_unknown() -> None:
    net = Wiring(C=64, N=32, size=28)
    network = told(net.network(net.unit(net.unit(net.image, 64, 3), 64, 3)))
    turned = [
        replace(one, work=replace(one.work, kind="unknown", op="fft")) if one.work is not None else one
        for one in network.operations
    ]
    notes = []
    for given in (network, replace(network, operations=tuple(turned))):
        target = Target(label="a100", gpu=load_gpu("a100"))
        (found,) = check_network(given, BUILTIN, [target], "inference").networks
        notes.append((found.step is None, *found.notes))
    assert notes == [(False,), (True, "step unknown: too much of what it moves has no price (fft)")]


def test_a_step_of_a_dtype_that_the_gpu_lacks_is_not_unknown_for_its_operators() -> None:
    net = Wiring(C=64, N=32, size=28)
    network = told(net.network(net.unit(net.image, 64, 3)))
    layers = tuple([replace(layer, dtype=Dtype.bf16) for layer in network.layers])
    target = Target(label="v100", gpu=load_gpu("v100"))
    (found,) = check_network(replace(network, layers=layers), BUILTIN, [target], "inference").networks
    assert found.step is None
    assert found.notes == ()


def test_an_eager_network_waits_for_its_host(tmp_path):
    found = one(tmp_path, CHAIN, top=EAGER, mode="inference")
    assert found.waits
    assert found.host_us > found.gpu_us > 0


def test_a_head_of_another_batch_belongs_to_the_network(tmp_path):
    head = layer("head", N=64, H=7, W=7)
    found = one(tmp_path, CHAIN + head, top=EAGER, mode="inference")
    assert found.waits
    assert found.host_us > one(tmp_path, CHAIN, top=EAGER, mode="inference").host_us


def test_a_part_of_a_network_has_no_host(tmp_path):
    nine = "".join(CHAIN.splitlines(keepends=True)[:9])
    assert one(tmp_path, nine, top=EAGER, mode="inference").host_us is None


def test_int8_has_a_time_where_nobody_asked_for_training(tmp_path):
    for top, known in (("", True), ("mode: training\n", False)):
        (network,) = checked(rulebook(tmp_path), layer("a", dtype="int8"), top=top).networks
        assert (network.gpu_us is not None) == known


def test_layers_that_stand_alone_have_no_host(tmp_path):
    apart = "".join(layer(f"c{number}", N=1, C=8 * number, K=8 * number + 16) for number in range(1, 11))
    assert one(tmp_path, apart, top=EAGER, mode="inference").host_us is None


def test_what_the_framework_lacks_is_said_of_each_layer(tmp_path):
    result = checked(
        rulebook(tmp_path), layer("a", dtype="fp8") + layer("b"), top=EAGER, gpus="h100 b200", mode="inference"
    )
    first, second = result.layers
    assert list(first.lacking) == ["h100"]
    assert first.lacking["h100"].startswith("PyTorch has no fp8")
    assert first.estimates["h100"] is None
    assert first.estimates["b200"] is not None
    assert second.lacking == {}


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
        join_message=Text("{count}: {layers}", count=COUNT, layers=LAYERS),
    )  # fmt: skip
    return Hit(
        flaw=flaw, indices=(index,), names=(f"l{index}",), location=Location(path="a", line=index), message="m",
        sets=(sets,), other={}, severity=severity, number=index,
        identities=(("CL102", "a", f"l{index}", "a100", 1),), price=price,
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


@pytest.mark.parametrize(("share", "advised", "joins"), [
    ("all", True, True), ("any", True, True), ("info", False, True), ("info", True, False),
])  # fmt: skip
def test_what_is_advised_keeps_its_line_among_infos(share: Any, advised: bool, joins: bool) -> None:
    assert may_join(hit(0, price=Price(advised=advised), rule=DTYPE), share) is joins


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
    hits.append(replace(hits[0], indices=(3,), names=("l3",), sets=({},)))  # its own batch is not that of the plan
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


ALIGNMENT_of_findings, WAVES, TILES = (BUILTIN.by_key[code] for code in ("CL102", "CL301", "CL201"))


def hit_of_findings(
    *names: str, rule: Any = ALIGNMENT_of_findings, sets: dict[str, Any] | None = None, price: Price | None = None
) -> Hit:
    sets = {"C": 64} if sets is None else sets
    flaw = Flaw(rule=rule, case=rule.cases[-1], places=(), message="m", set=sets)
    return Hit(
        flaw=flaw, indices=tuple(range(len(names))), names=names, location=Location(path="net.yaml", line=4),
        message="said", sets=(sets,) * len(names), other={}, severity="warning", number=0,
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
    found = finding_of(hit_of_findings("a", price=price), "a100", ("CL102", "net.yaml", "a", "a100", 2), fix, 50.0)
    assert (found.lost_us, found.lost_alone_us, found.lost_capacity_us, found.lost_percent) == (2.0, 0.5, 4.0, 4.0)
    assert (found.advised, found.pays_with, found.fix) == (True, ("CL401",), fix)
    assert (found.message, found.severity, found.location.line, found.gpu) == ("said", "warning", 4, "a100")
    assert found.rule == ALIGNMENT_of_findings.info
    assert found.fingerprint == fingerprint(("CL102", "net.yaml", "a", "a100", 2))


@pytest.mark.parametrize(
    ("lost_us", "network_us", "percent"),
    [(2.0, 50.0, 4.0), (0.0, 50.0, 0.0), (None, 50.0, None), (2.0, None, None), (2.0, 0.0, None)],
)
def test_a_share_of_the_network_needs_its_time(
    lost_us: float | None, network_us: float | None, percent: float | None
) -> None:
    found = finding_of(
        hit_of_findings("a", price=Price(lost_us=lost_us)), None, ("CL102", "", "", "", 1), None, network_us
    )
    assert found.lost_percent == percent


@pytest.mark.parametrize(
    ("made", "layer", "layers"),
    [
        (hit_of_findings("a"), "a", ()),
        (hit_of_findings("a", "b"), None, ("a", "b")),
        (hit_of_findings(), None, ()),  # of the network
        (hit_of_findings("a", rule=WAVES, sets={"N": 54}), "a", ()),
        (hit_of_findings("a", "b", rule=WAVES, sets={"N": 54}), None, ("a", "b")),
        (
            hit_of_findings("a", rule=TILES, sets={"N": 64}),
            None,
            ("a",),
        ),  # that one layer has channels to mend, but N is of all
        (hit_of_findings("a", rule=TILES, sets={"C": 64}), "a", ()),
        (hit_of_findings("a", rule=TILES, sets={"C": 64, "N": 64}), "a", ()),
    ],
)
def test_whose_it_is(made: Hit, layer: str | None, layers: tuple[str, ...]) -> None:
    found = finding_of(made, "a100", ("CL102", "net.yaml", "x", "a100", 1), in_report=True)
    assert (found.layer, found.layers) == (layer, layers)
    if len(made.names) == 1:  # whoever is asked whether it is silenced hears of the layer
        assert finding_of(made, "a100", ("CL102", "net.yaml", "x", "a100", 1)).layer == "a"
    assert found.identities == (made.identities if layers else ())
    assert len(found.fingerprints) == len(layers)
    assert is_of_batch(made) is (layers == ("a",))


def test_without_an_identity_there_is_no_fingerprint() -> None:
    found = finding_of(hit_of_findings("a"), None, ("CL102", "net.yaml", "a", "", 1))
    assert replace(found, identity=None).fingerprint == ""


def test_ordinals_go_on_apart_from_those_that_they_were_copied_from() -> None:
    own = Identities()
    own.next("CL102", "a", "l", None)
    others = own.copied()
    assert others.next("CL102", "a", "l", None)[-1] == 2
    assert own.next("CL102", "a", "l", None)[-1] == 2
    assert own.next("CL102", "a", "l", None, keep=False)[-1] == own.next("CL102", "a", "l", None)[-1] == 3
