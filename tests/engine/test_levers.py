"""What rules would change of a network, and what of that may play."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from promised import promised
from read_specs import network, spec
from small_networks import checked, layer, rulebook
from wirings import Wiring

from convlint.engine.check import Target, check_network
from convlint.engine.findings import NetworkResult
from convlint.engine.hits import Evaluator, Flaw, with_fix
from convlint.engine.levers import Coupling, Validity, kind_of, may_play, takes_away
from convlint.estimate import estimate_layer
from convlint.facts.layer import LayerFacts
from convlint.facts.target import TargetFacts
from convlint.gpus.gpu import load_gpu
from convlint.model.layer import ConvLayer, Dtype, Mode, flops, with_output
from convlint.model.report import Finding, Scalar
from convlint.model.runtime import Runtime
from convlint.rulebook.book import Rulebook, load_rulebook
from convlint.rulebook.rule import Rule

BOOK = load_rulebook()
LAYER = with_output(
    ConvLayer(name="a", N=8, C=96, H=28, W=28, K=96, R=3, S=3, PadH=1, PadW=1, PadH_end=1, PadW_end=1, dtype=Dtype.fp16)
)


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        (("dtype",), "dtype"),
        (("runtime.tf32",), "dtype"),
        (("layout",), "layout"),
        (("runtime.cudnn_benchmark",), "runtime"),
        (("C",), None),
        (("copies_input",), None),
        (("dtype", "C"), None),
        ((), None),
    ],
)
def test_kinds_of_settings(fields: tuple[str, ...], kind: str | None) -> None:
    assert kind_of(fields) == kind


@pytest.mark.parametrize(
    ("changes", "less"),
    [
        ({"K": 128}, False),
        ({"K": 64}, True),
        ({"C": 64, "K": 256}, True),
        ({"groups": 2}, True),
        ({"U": 2, "V": 2}, True),
        ({"R": 1, "S": 1}, True),
        ({"DilH": 2, "DilW": 2}, True),  # fewer outputs
        ({"dtype": "fp8"}, False),
        ({"layout": "NHWC"}, False),
    ],
)
def test_what_takes_work_away(changes: dict[str, Scalar], less: bool) -> None:
    assert takes_away(changes, LAYER) is less


@pytest.mark.parametrize(
    ("code", "changes", "plays"),
    [
        ("CL102", {"K": 104}, True),
        ("CL102", {"K": 88}, False),  # takes work away
        ("CL201", {"K": 128}, False),  # capacity is evidence
        ("CL102", {"N": 16}, False),  # the batch is apart
        ("CL102", {}, False),
        ("CL107", {"dtype": "fp16"}, False),  # has no price
        ("CL401", {"layout": "NHWC"}, True),
    ],
)
def test_who_plays(code: str, changes: dict[str, Scalar], plays: bool) -> None:
    rule = BOOK.by_key[code]
    case = next(case for case in rule.cases if case.fix is not None and case.severity != "info")
    assert may_play(Flaw(rule=rule, case=case, places=(), message="m", set=changes), LAYER) is plays


def test_parts_of_a_concatenation_are_aligned_one_after_the_other() -> None:
    """Neither makes the whole a multiple of 8: once the first is, the other one shows."""
    net = Wiring(C=64, N=32, size=56)
    x = net.conv(net.image, 64, 3)
    one, two = net.conv(x, 60, 3), net.conv(x, 30, 3)
    _, promise = promised(net.network(net.conv(net.concat(one, two), 64, 1)))
    widths = {lever.width for lever in promise.optimum.levers.values()}
    assert widths == {64, 32}


def test_layers_of_half_the_channels_follow_in_proportion() -> None:
    """A block of YOLO's; what reads the sum of its halves has a width of its own."""
    coupling = Coupling(
        network(
            spec(
                "name: a, C: 3, H: 8, W: 8, K: 60, kernel_size: 1",
                "name: half, op: channel_split",
                "name: b, K: 30, kernel_size: 1",
                "name: sum, op: add, inputs: [half, b]",
                "name: c, K: 40, kernel_size: 1",
                "name: d, K: 8, kernel_size: 1",
            )
        )
    )
    number, own = coupling.channels.written[0], coupling.channels.written[2]
    assert coupling.follows(number, 0, "K", widens=True) == "K of b and C of b, c in proportion"
    assert coupling.sets((0, 1, 2), {number: 64}, number) == ({"K": 64}, {"C": 32, "K": 32}, {"C": 32})
    assert coupling.follows(own, 2, "K", widens=True) == "C of d with it"


def test_a_width_suits_groups_and_the_dtype_that_b_has() -> None:
    """108 channels in 6 groups: 112 does not divide, and 120 is what both take in 16 bits."""
    net = Wiring(C=464, N=32, size=28, dtype="fp32", layout="NCHW")
    x = net.conv(net.image, 108, 3)
    y = net.conv(x, 108, 3, groups=6)
    _, promise = promised(net.network(net.conv(net.add(x, y), 256, 1)), "v100", "inference")
    assert {lever.width for lever in promise.optimum.levers.values()} <= {120}


def test_what_cannot_change_does_not_play() -> None:
    """The network hands its channels out: somebody else counts on them."""
    net = Wiring(C=64, N=32, size=56)
    first = net.conv(net.image, 60, 3)
    network = net.network(first, net.conv(first, 64, 3))
    result, promise = promised(network)
    assert promise.optimum.levers == {}
    (finding,) = [each for each in result.findings if each.rule.code == "CL102"]
    assert (finding.severity, finding.advised) == ("info", False)


RULES = Rulebook(rule for rule in load_rulebook().rules if not rule.opt_in)
DEFAULT = {rule.info.code: rule for rule in RULES.of_networks}
SHARED = re.compile(r"\b([CK])=(\d+)")


def facts_of(one: ConvLayer, gpu: str) -> LayerFacts:
    context = TargetFacts(gpu, load_gpu(gpu), Runtime(), "training")
    return LayerFacts(context, one, None, (), estimate_layer(one, context.gpu, context.runtime, "training"))


def broken(one: ConvLayer, gpu: str, rules: Iterable[Rule], *, grave: bool = False) -> set[tuple[str, str]]:
    """The rules that do not hold, each with the place; of `grave` ones, no infos and none on capacity."""
    found = Evaluator([rule for rule in rules if rule.scope == "layer" and rule.loss != "wave"])
    return {
        (violation.rule.info.code, place)
        for violation in found.broken(facts_of(one, gpu))
        for place in violation.places
        if place != "N" and not (grave and (violation.rule.loss == "tile" or violation.case.severity == "info"))
    }


def widths_named(finding: Finding) -> Iterator[tuple[str, int]]:
    """The sizes that a finding offers, in its fix's words and in what that sets."""
    if finding.fix is None or finding.severity == "error":
        return
    for name, size in SHARED.findall(finding.fix.describe):
        yield name, int(size)
    for changes in finding.fix.by_layer:
        yield from ((name, int(value)) for name, value in changes.items() if name in "CK")


def time_us(one: ConvLayer, gpu: str) -> float | None:
    estimate = facts_of(one, gpu).estimate
    return None if estimate is None else estimate.time_us


@st.composite
def lonely(draw: st.DrawFn) -> tuple[ConvLayer, str]:
    """A layer that stands alone, and where it runs."""
    groups = draw(st.sampled_from((1, 1, 1, 2, 3, 7, 32, 63)))
    C, K = (groups * draw(st.integers(1, max(1, 1600 // groups))) for _ in range(2))
    size = draw(st.sampled_from((7, 14, 28, 56)))
    taps = draw(st.sampled_from((1, 3, 5)))
    text = layer(
        "a", C=C, K=K, H=size, W=size, N=draw(st.sampled_from((1, 8, 64, 100))), groups=groups, kernel_size=taps,
        padding=taps // 2, dtype=draw(st.sampled_from(("fp16", "bf16", "tf32", "fp32"))),
        layout=draw(st.sampled_from(("NHWC", "NCHW"))), stride=draw(st.sampled_from((1, 2))),
    )  # fmt: skip
    gpu = draw(st.sampled_from(("a100", "v100", "t4", "h100", "p100")))
    (report,) = checked(RULES, text, gpus=gpu).layers
    return report.layer, gpu


def spelled(one: ConvLayer) -> str:
    return layer(
        one.name, C=one.C, K=one.K, H=one.H, W=one.W, N=one.N, groups=one.groups, kernel_size=one.R, padding=one.PadH,
        dtype=one.dtype, layout=one.layout, stride=one.U,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.contract
@settings(max_examples=150, deadline=None)
@given(lonely())
def test_no_rule_objects_to_what_a_finding_names(case: tuple[ConvLayer, str]) -> None:
    one, gpu = case
    result = checked(RULES, spelled(one), gpus=gpu)
    in_force = DEFAULT.values()
    for finding in result.findings:
        rule, fix = DEFAULT[finding.rule.code], finding.fix
        if fix is None or not any(name in "CK" for changes in fix.by_layer for name in changes):
            continue
        ways = [{name: value for name, value in changes.items() if "." not in name} for changes in fix.by_layer]
        offered = fix.describe.partition(": ")[2].split(" or ") if fix.states_effect else []
        ways += [{name: int(size) for name, size in SHARED.findall(part)} for part in offered if SHARED.search(part)]
        for changes in ways:
            after = with_fix(one, changes)
            assert after.C is not None
            assert after.K is not None
            assert after.C % after.groups == after.K % after.groups == 0, finding
            grave = rule.loss != "tile"
            new = broken(after, gpu, in_force, grave=grave) - broken(one, gpu, in_force, grave=grave)
            assert not new, (finding, changes)
            still = {place for _, place in broken(after, gpu, [rule])}
            assert still.isdisjoint(changes), (finding, changes)


@pytest.mark.slow
@pytest.mark.contract
@settings(max_examples=150, deadline=None)
@given(lonely())
def test_what_a_finding_promises_is_what_the_layer_does(case: tuple[ConvLayer, str]) -> None:
    one, gpu = case
    before = time_us(one, gpu)
    for finding in checked(RULES, spelled(one), gpus=gpu).findings:
        fix = finding.fix
        if fix is None or DEFAULT[finding.rule.code].loss in ("none", "wave"):
            continue
        if not any(name in "CK" for changes in fix.by_layer for name in changes):
            continue
        (changes,) = fix.by_layer
        after = time_us(with_fix(one, changes), gpu)
        if before is None or after is None:  # bf16 on V100
            assert fix.time_change_us is None
            continue
        assert fix.time_change_us == pytest.approx(after - before, abs=1e-6 * before)
        if fix.time_change_us > 1e-6 * before and finding.severity != "error":
            more = (flops(with_fix(one, changes)) or 0) / (flops(one) or 1) / (after / before)
            assert (fix.states_effect and more > 1) or finding.pays_with, finding
        for text, percent in re.findall(r"([CK]=\d+(?:, [CK]=\d+)?) \(time ([+-]\d+) %", fix.describe):
            offered = {name: int(size) for name, size in SHARED.findall(text)}
            then = time_us(with_fix(one, offered), gpu)
            assert abs(100 * (then / before - 1) - int(percent)) <= 0.5 + 1e-6, finding


@st.composite
def chains(draw: st.DrawFn) -> str:
    """Layers one after the other, some of them grouped."""
    first = draw(st.integers(8, 200))
    text = layer("l0", C=first, K=draw(st.integers(8, 200)), kernel_size=1)
    channels = int(re.findall(r"K: (\d+)", text)[0])
    for number in range(1, 5):
        groups = draw(st.sampled_from([n for n in (1, 1, 2, 3, 5, 9, 32, 33, 63) if channels % n == 0]))
        K = groups * draw(st.integers(1, max(1, 300 // groups))) if groups == 1 else channels
        text += layer(f"l{number}", C=None, H=None, W=None, K=K, groups=groups)
        channels = K
    return text


@pytest.mark.slow
@pytest.mark.contract
@settings(max_examples=100, deadline=None)
@given(chains(), st.sampled_from(("a100", "v100")))
def test_a_shared_width_suits_all_of_its_layers(text: str, gpu: str) -> None:
    result = checked(RULES, text, gpus=gpu)
    layers = {report.layer.name: report.layer for report in result.layers}
    for finding in result.findings:
        fix, rule = finding.fix, DEFAULT[finding.rule.code]
        names = finding.layers or (finding.layer,)
        if fix is None or rule.loss not in ("fix", "tile") or not any({"C", "K"} & set(each) for each in fix.by_layer):
            continue
        change_us = 0.0
        for name, changes in zip(names, fix.by_layer, strict=True):
            one = layers[str(name)]
            after = with_fix(one, changes)
            assert after.C is not None
            assert after.K is not None
            assert after.C % after.groups == after.K % after.groups == 0, finding
            assert not broken(after, gpu, DEFAULT.values(), grave=True) - broken(one, gpu, DEFAULT.values(), grave=True)
            change_us += (time_us(after, gpu) or 0.0) - (time_us(one, gpu) or 0.0)
        place = {"K", "C"} & set(fix.by_layer[0])
        first = with_fix(layers[str(names[0])], fix.by_layer[0])
        assert {at for _, at in broken(first, gpu, [rule])}.isdisjoint(place), finding
        assert fix.time_change_us == pytest.approx(change_us, abs=1e-3)
        assert fix.time_change_us <= 1e-3 or fix.states_effect or finding.pays_with or finding.severity == "error"


GROUPED = (
    "  - {{ name: a, N: 64, C: 64, H: 56, W: 56, K: {K}, kernel_size: 1, dtype: fp16, layout: NHWC }}\n"
    "  - {{ name: g, K: {K}, kernel_size: 3, padding: 1, groups: {groups}, N: 64, dtype: fp16, layout: NHWC }}\n"
    "  - {{ name: c, K: 256, kernel_size: 1, N: 64, dtype: fp16, layout: NHWC }}\n"
)


def named(result: NetworkResult) -> set[tuple[str, int]]:
    return {width for finding in result.findings for width in widths_named(finding)}


@pytest.mark.parametrize(
    ("K", "groups"), [(1512, 63), (60, 33), (66, 33), (192, 33), (198, 33), (66, 3), (62, 31), (1000, 125), (90, 9)]
)
def test_groups_and_vectors_are_both_served(K: int, groups: int) -> None:
    """1575 is a multiple of 63, and odd: nothing that fits tiles of 64 is near, so that nothing is said of these."""
    K = -(-K // groups) * groups
    result = checked(RULES, GROUPED.format(K=K, groups=groups))
    for name, width in named(result):
        assert width % 8 == 0 or width == K, (name, width)
    for finding in result.findings:
        if finding.rule.code in ("CL201", "CL203"):
            assert finding.fix is not None, finding
            assert all(size % groups == 0 for _, size in widths_named(finding) if size > K), finding


def test_who_objects(tmp_path: Path) -> None:
    rules = rulebook(
        tmp_path,
        {"check": "C % 64 == 0", "at": "[C]", "loss": "tile"},
        {"check": "C % 8 == 0", "at": "[C]", "loss": "fix"},
        {"check": "C % 5 != 0", "at": "[C]", "loss": "tile", "severity": "info"},
        {"check": "N % 7 != 0", "at": "[N]"},
        {"check": "K == 8", "at": "[K]"},
        {"check": "C != 128", "at": "[C]", "loss": "wave"},
        {"check": "C != 192"},
    )
    one = checked(rules, layer("a", C=60, K=64, groups=4)).layers[0].layer
    estimate = estimate_layer(one, load_gpu("a100"), Runtime(), "training")
    facts = TargetFacts("a100", load_gpu("a100"), Runtime(), "training")
    tile, vector, odd, *_ = rules.rules

    def objecting(changes: dict[str, int], rule: Rule, codes: list[str] | None = None, **how: bool) -> set[str]:
        made = Validity([one], [one], [estimate], facts, rules.rules, codes)
        return set(made.objections(0, changes, rule, **how))

    assert objecting({"C": 64}, tile) == set()
    assert objecting({"C": 68}, tile) == {"XY000", "XY001"} - {"XY001"}  # that C is no multiple of 8 is nothing new
    assert objecting({"C": 68}, vector) == {"XY001"}
    assert objecting({"C": 72}, vector) == set()  # what fits a vector need not fill a tile
    assert objecting({"C": 62}, vector) == {"XY001"}  # 4 groups, and no layer at all
    assert objecting({"C": 80}, vector) == set()
    assert objecting({"C": 320}, tile) == set()  # a multiple of 5 before, too
    assert objecting({"C": 64, "N": 7}, tile) == set()  # the batch is the network's
    assert objecting({"C": 128}, tile) == set()
    assert objecting({"C": 192}, tile) == {"XY006"}
    assert objecting({"C": 192}, tile, ["XY000"]) == set()
    assert objecting({"C": 68}, tile, mends=False) == set()
    assert objecting({"C": 68}, odd, predicted=False) == set()


BUILTIN = load_rulebook()
TOP = "defaults: { N: 64, dtype: fp16, layout: NHWC }\n"
IMAGE = "  - { name: image, op: input, C: 4, H: 56, W: 56 }\n"


def conv(name: str, K: int, source: str = "", more: str = "kernel_size: 3, padding: 1") -> str:
    read = f"input: {source}, " if source else ""
    return f"  - {{ name: {name}, {read}K: {K}, {more} }}\n"


def coupling_of(layers: str) -> Coupling:
    return Coupling(network(f"version: 1\n{TOP}layers:\n{layers}"))


def alignment(layers: str, mode: Mode = "training") -> list[Finding]:
    found = checked(BUILTIN, layers, top=TOP, mode=mode).findings
    return [finding for finding in found if finding.rule.code == "CL102"]


def test_layers_that_stand_alone_share_nothing() -> None:
    alone = "  - { name: a, C: 60, H: 8, W: 8, K: 60, kernel_size: 1, first: false }\n"
    coupling = coupling_of(alone)
    assert not coupling.wired
    assert coupling.group_of(0, "K") is None
    (finding,) = alignment(alone)
    assert (finding.layer, finding.layers, finding.message) == (
        "a", (), "C=60 and K=60 should be multiples of 8 for fp16",
    )  # fmt: skip


def test_an_image_and_a_head_are_one_layers_own() -> None:
    coupling = coupling_of(IMAGE + conv("a", 60) + conv("head", 21))
    assert coupling.group_of(0, "C") is None
    assert coupling.group_of(0, "K") == coupling.group_of(1, "C") is not None
    assert coupling.group_of(1, "K") is None


def test_a_flaw_on_both_sides_is_one_on_each() -> None:
    found = alignment(IMAGE + conv("a", 60) + conv("b", 124) + conv("c", 64))
    assert [(finding.layer, finding.message) for finding in found] == [
        ("a", "K=60 should be a multiple of 8 for fp16"), ("b", "K=124 should be a multiple of 8 for fp16"),
    ]  # fmt: skip


def test_where_nothing_fires_at_the_layer_that_writes_it_stands_at_one_that_reads() -> None:
    grouped = "groups: 2, kernel_size: 3, padding: 1"
    (finding,) = alignment(IMAGE + conv("a", 64) + conv("g", 60, more=grouped) + conv("c", 64), "inference")
    assert (finding.layer, finding.layers) == ("c", ("c", "g"))
    assert finding.fix.by_layer == ({"C": 64}, {"K": 64})
    assert finding.fix.describe == "use C=64; K of g with it"


def test_a_sum_of_parts_asks_for_the_part_that_is_not_aligned() -> None:
    grouped = "groups: 2, kernel_size: 3, padding: 1"
    layers = (
        IMAGE + conv("a", 64) + conv("g", 60, more=grouped) + "  - { op: concat, inputs: [a, g] }\n" + conv("c", 64)
    )
    (finding,) = alignment(layers)
    assert (finding.layer, finding.layers) == ("c", ("c", "g"))
    assert finding.fix.by_layer == ({"C": 128}, {"K": 64})
    assert finding.fix.describe == "use 64 channels in place of 60; K of g and part of C of c with it"


def test_a_sum_of_parts_that_are_all_at_fault_elsewhere_is_no_finding_of_its_own() -> None:
    layers = IMAGE + conv("a", 60) + conv("b", 62, "a") + "  - { op: concat, inputs: [a, b] }\n" + conv("c", 64)
    assert [(finding.layer, finding.layers) for finding in alignment(layers)] == [
        ("a", ("a", "b", "c")), ("b", ("b", "c")),
    ]  # fmt: skip


def test_the_words_name_four_layers_and_count_the_rest() -> None:
    readers = "".join(conv(f"r{number}", 64, "a") for number in range(6))
    (finding,) = alignment(IMAGE + conv("a", 60) + readers)
    assert finding.fix.describe == "use K=64; C of r0, r1, r2, r3 and 2 more with it"
    assert len(finding.layers) == 7


def test_a_silenced_reader_leaves_the_finding() -> None:
    def result(silenced: str) -> NetworkResult:
        net = network(f"version: 1\n{TOP}layers:\n{IMAGE}{conv('a', 60)}{conv('b', 64)}")
        return check_network(
            net, BUILTIN, [Target(label="a100", gpu=load_gpu("a100"))], "training",
            silences=lambda finding: finding.layer == silenced,
        )  # fmt: skip

    assert [finding.layer for finding in result("b").findings if finding.rule.code == "CL102"] == ["a"]
    assert [finding.layer for finding in result("a").findings if finding.rule.code == "CL102"] == []


def test_an_error_without_a_price_is_one_finding_as_well() -> None:
    layers = (IMAGE + conv("a", 62) + conv("b", 64)).replace("C: 4", "C: 16")
    result = checked(BUILTIN, layers, top=TOP.replace("fp16", "int8"), mode="inference")
    (finding,) = [each for each in result.findings if each.rule.code == "CL101"]
    assert (finding.severity, finding.layer, finding.layers, finding.lost_us) == ("error", "a", ("a", "b"), None)
    assert finding.fix is not None
    assert replace(finding.fix, describe="").by_layer == ({"K": 64}, {"C": 64})


def test_what_several_layers_read_of_an_image_is_one_number() -> None:
    """Zeros are added to the one input of them all."""
    coupling = coupling_of(IMAGE.replace("C: 4", "C: 3") + conv("a", 64) + conv("b", 64, "image"))
    assert coupling.group_of(0, "C") == coupling.group_of(1, "C") is not None
    found = [each for each in checked(BUILTIN, IMAGE.replace("C: 4", "C: 3") + conv("a", 64) + conv("b", 64, "image"),
                                      top=TOP).findings if each.rule.code == "CL103"]  # fmt: skip
    assert len(found) == 1
    assert found[0].fix.by_layer == ({"C": 4}, {"C": 4})


def test_what_is_free_to_change() -> None:
    coupling = coupling_of(IMAGE + conv("a", 60) + conv("head", 21))
    assert coupling.is_free(0, ["C"])  # an image can be filled up,
    assert coupling.is_free(0, ["K"])
    assert coupling.is_free(1, ["C"])
    assert not coupling.is_free(1, ["C", "K"])  # and a head's classes stay
    alone = coupling_of("  - { name: a, C: 60, H: 8, W: 8, K: 60, kernel_size: 1, first: false }\n")
    assert alone.is_free(0, ["C", "K"])  # nothing is known that would count on them


def test_the_number_of_a_layers_own_channels() -> None:
    coupling = coupling_of(IMAGE + conv("a", 60) + conv("head", 21))
    assert coupling.number_of(1, "K") is not None
    assert coupling.group_of(1, "K") is None  # nobody else has it
    assert coupling.number_of(0, "R") is None


def test_a_message_on_one_side_speaks_of_the_other_as_it_is() -> None:
    """Its own fix is worked out as if the other side were mended."""
    net = Wiring(C=64, N=32, size=56, dtype="fp8", layout="NHWC")
    channels = net.conv(net.conv(net.image, 84, 1), 84, 3, groups=3)  # of which the rule does not speak
    channels = net.conv(net.conv(channels, 84, 1), 64, 1)
    result, _ = promised(replace(net.network(channels), runtime=Runtime(framework="jax")), "h100", "inference")
    messages = [finding.message for finding in result.findings if finding.rule.code == "CL101"]
    assert messages
    assert all("84" in message and "96" not in message for message in messages)
