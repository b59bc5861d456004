"""From wishes to one consistent set of changes of a spec."""

from typing import Any

import pytest
from mended_specs import changes, network_of, planned, refusals, wish
from msgspec.structs import replace

from convlint.engine.check import Target, check_network
from convlint.fixes.plan import (
    UNUSED,
    Company,
    EditPlanner,
    Layouts,
    StatedChanges,
    ValueChange,
    agreed,
    applicability,
    group_of,
    is_its_own,
    obstacle,
    unused,
    wishes,
)
from convlint.gpus.gpu import load_gpu
from convlint.model.channels import THE_INPUT, ChannelGroup, channels_of
from convlint.model.location import Location
from convlint.model.report import Finding, Fix, RuleInfo, Source, Suppressed
from convlint.readers.spec.reader import read_spec
from convlint.rulebook.book import Rulebook


def test_equal_changes_are_one() -> None:
    one = ValueChange(layer=1, field="K", value=64)
    wishes = {
        one: "CL102",
        ValueChange(layer=1, field="K", value=64): "CL201",
        ValueChange(layer=None, field="K", value=64): "-",
    }
    assert wishes == {one: "CL201", ValueChange(layer=None, field="K", value=64): "-"}


RULE = RuleInfo(
    code="XY001", name="rule", title="", severity="warning", rationale="", source=Source(document="house", section="1")
)


def finding(sets: dict[str, Any] | None, **parts: Any) -> Finding:
    fix = None
    if sets is not None:
        own = {"describe": "", "safety": "safe"} | {name: parts.pop(name) for name in FIX_PARTS if name in parts}
        fix = Fix(set=sets, **own)
    given: dict[str, Any] = {"severity": "warning", "layer": "a"} | parts
    return Finding(rule=RULE, message="m", location=Location(path="x"), fix=fix, **given)


FIX_PARTS = ("safety", "by_layer", "time_change_us", "advised")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (finding(None), None),
        (finding({}), None),
        (finding({"layout": "NHWC"}), "safe"),
        (finding({"runtime.cudnn_benchmark": True}, layer=None), "safe"),
        (finding({"layout": "NHWC"}, safety="unsafe"), "unsafe"),
        (finding({"C": 4}), "unsafe"),  # zeros keep the results, but weights are others
        (finding({"layout": "NHWC", "dtype": "fp16"}), "unsafe"),
        (finding({"copies_input": False}), None),
        (finding({"K": 64}, lost_us=5.0, advised=True), "unsafe"),
        (finding({"K": 64}, lost_us=0.0, advised=False), None),
        (finding({"K": 64}, advised=False), "unsafe"),  # without a price: it mends what is wrong
        (finding({"K": 64}, advised=False, time_change_us=1.0), None),
        (finding({"N": 64}), "unsafe"),
        (finding({"N": 64}, severity="info", advised=False), None),
        (finding({"N": 64}, severity="info", advised=True), "unsafe"),  # a batch that somebody allowed
    ],
)
def test_applicability(found: Finding, expected: str | None) -> None:
    assert applicability(found) == expected


def test_a_wish_for_each_layer_in_their_order() -> None:
    joined = finding({}, layer=None, layers=("a", "b", "c"), by_layer=({"K": 64}, {}, {"C": 64}))
    assert [(wish.layer, dict(wish.sets)) for wish in wishes([joined])] == [("a", {"K": 64}), ("c", {"C": 64})]
    alike = finding({"layout": "NHWC"}, layer=None, layers=("a", "b"))
    assert [wish.layer for wish in wishes([alike])] == ["a", "b"]
    assert [wish.layer for wish in wishes([finding({"runtime.tf32": True}, layer=None), finding(None)])] == [None]


def test_a_wish_goes_by_what_it_sets() -> None:
    one, other, third = wishes([finding({"K": 64, "C": 32}), finding({"C": 32, "K": 64}), finding({"C": 8, "K": 64})])
    assert one.key == other.key != third.key


CHAIN = network_of(
    "  - { name: image, op: input, N: 8, C: 3, H: 32, W: 32 }\n  - { name: a, K: 60 }\n  - { name: b, C: 60, K: 16 }\n",
    defaults="kernel_size: 3, padding: 1",
)


def test_values_are_written_where_their_layer_stands() -> None:
    stated = StatedChanges(CHAIN)
    stated.claims({(None, "runtime.tf32"): (True, (0,)), (1, "dtype"): ("fp16", (1,)), (1, "PadH"): (2.0, (2,))})
    assert stated.changes == {
        ValueChange(layer=None, field="runtime.tf32", value=True): (0,),
        ValueChange(layer=2, field="dtype", value="fp16"): (1,),
        ValueChange(layer=2, field="PadH", value=2): (2,),
    }


def test_a_batch_that_is_carried_is_written_where_it_comes_in() -> None:
    stated = StatedChanges(CHAIN)
    stated.claims({(0, "N"): (16, (0, 1)), (1, "N"): (16, (0, 1))})
    assert stated.changes == {ValueChange(layer=0, field="N", value=16): (0, 1)}


def test_widths_are_written_wherever_they_are_stated() -> None:
    stated, channels = StatedChanges(CHAIN), channels_of(CHAIN)
    group = channels.written[0]
    by_layer = channels.changes(CHAIN.layers, {group: 64})
    stated.widths(channels, {group: 64}, {group: (4, 2)}, by_layer)
    expected = {ValueChange(layer=1, field="K", value=64): (4, 2), ValueChange(layer=2, field="C", value=64): (4, 2)}
    assert stated.changes == expected
    stated.claims({(0, "K"): (64, (2, 5))})
    assert stated.changes[ValueChange(layer=1, field="K", value=64)] == (4, 2, 5)


@pytest.mark.parametrize(
    ("width", "multiple_of", "wanted", "expected"),
    [
        (60, 1, [64], 64),
        (60, 1, [64, 128], 128),
        (60, 1, [128, 64], 128),
        (60, 4, [64], 64),
        (60, 6, [64], 72),  # a multiple of 8 as well as of 6
        (60, 60, [64], None),  # 120 channels are another network
        (60, 7, [64], 70),
        (130, 1, [128], 128),
        (130, 1, [128, 192], 128),  # the first of those that contradict each other
        (130, 1, [192, 128], 192),
        (130, 5, [128], None),
    ],
)
def test_the_width_that_satisfies_all(width: int, multiple_of: int, wanted: list[int], expected: int | None) -> None:
    group = ChannelGroup(width=width, multiple_of=multiple_of)
    assert agreed(group, dict.fromkeys(wanted)) == expected


def test_what_cannot_change_says_why() -> None:
    assert obstacle(ChannelGroup(width=60), [64]) == ""
    assert obstacle(ChannelGroup(width=60, fixed=("fc depends on it",)), [64]) == "fc depends on it"
    assert obstacle(ChannelGroup(width=3, fixed=(THE_INPUT,)), [4]) == ""  # zeros can be added
    assert obstacle(ChannelGroup(width=3, fixed=(THE_INPUT,)), [4, 2]) == THE_INPUT


NET = """\
version: 1
defaults: { N: 8, kernel_size: 3, padding: 1 }
layers:
  - { name: image, op: input, C: 3, H: 32, W: 32 }
  - { name: a, K: 60 }
  - { name: dw, K: 120, groups: 60 }
  - { name: b, K: 30 }
  - { name: join, op: concat, inputs: [a, b] }
  - { name: c, K: 8 }
"""


def test_the_group_behind_a_field() -> None:
    network, _ = read_spec(NET, "net.yaml")
    assert network is not None
    channels = channels_of(network)
    own = channels.written[0]

    def of(index: int, field: str, value: int) -> tuple[int, int] | None:
        return group_of(channels, network.layers[index], index, field, value)

    assert of(0, "K", 64) == of(1, "C", 64) == of(1, "K", 128) == of(2, "C", 128) == (own, 64)
    assert of(1, "K", 126) == (own, 63)
    assert of(1, "K", 127) is None  # two for each channel
    assert of(3, "C", 96) is None  # of two groups


DEFAULTS = "N: 8, H: 32, W: 32, kernel_size: 3, padding: 1, layout: NCHW"
LAYOUT_CHAIN = """\
  - { name: image, op: input, C: 64, H: 32, W: 32 }
  - { name: a, K: 64 }
  - { name: dw, K: 64, groups: 64 }
  - { name: b, input: a, K: 64, layout: NHWC }
  - { name: side, input: image, K: 64, layout: auto }
  - { name: c, K: 64, layout: NCHW }
"""
CONNECTED = Layouts(network_of(LAYOUT_CHAIN, defaults="N: 8, kernel_size: 3, padding: 1, layout: NCHW"))
ALONE = Layouts(
    network_of(
        "  - { name: a, C: 64, K: 64 }\n  - { name: b, C: 64, K: 64 }\n"
        "  - { name: g, C: 64, K: 64, groups: 4 }\n  - { name: own, C: 64, K: 64, layout: NCHW }\n",
        defaults=DEFAULTS,
    )
)


def found(layouts: Layouts, layout: str, asking: dict[int, list[int]], *staying: int) -> list[Company]:
    return list(layouts.companies(layout, asking, staying))


def test_what_is_connected_changes_together() -> None:
    assert found(CONNECTED, "NHWC", {0: [7]}) == [Company((7,), frozenset({0, 1, 4}))]
    assert found(CONNECTED, "NHWC", {0: [7], 4: [8, 9]}) == [Company((7, 8, 9), frozenset({0, 1, 4}))]
    assert found(CONNECTED, "NCHW", {2: [0]}) == [Company((0,), frozenset({2}))]


def test_what_stays_stays_unless_it_asks() -> None:
    assert found(CONNECTED, "NHWC", {0: [7]}, 1) == [Company((7,), frozenset({0, 4}))]
    assert found(CONNECTED, "NHWC", {1: [7]}, 1) == [Company((7,), frozenset({0, 1, 4}))]


def test_nothing_is_copied_where_that_is_said() -> None:
    text = LAYOUT_CHAIN.replace("name: c,", "name: c, copied: false,")
    layouts = Layouts(network_of(text, defaults="N: 8, kernel_size: 3, padding: 1, layout: NCHW"))
    (company,) = found(layouts, "NHWC", {0: [7]})
    assert company.layers == {0, 1}
    assert company.loose == ()


def test_others_that_draw_it_from_the_same_place_may_follow() -> None:
    assert found(ALONE, "NHWC", {0: [0]}) == [Company((0,), frozenset({0}), (frozenset({1}), frozenset({2})))]
    assert found(ALONE, "NHWC", {0: [0]}, 1) == [Company((0,), frozenset({0}), (frozenset({2}),))]
    assert found(ALONE, "NHWC", {3: [0]}) == [Company((0,), frozenset({3}))]
    both = found(ALONE, "NHWC", {0: [0], 1: [1]})
    assert [company.loose for company in both] == [(frozenset({2}),), ()]


def test_groups_may_have_a_layout_of_their_own() -> None:
    text = LAYOUT_CHAIN.replace("groups: 64", "groups: 4").replace("layout: NCHW", "layout: NHWC")
    network = network_of(text, defaults="N: 8, kernel_size: 3, padding: 1, layout: NHWC")
    assert found(Layouts(network), "NCHW", {1: [3]}) == [Company((3,), frozenset({1}))]
    assert is_its_own(network.layers[1], "NCHW")
    assert not is_its_own(network.layers[1], "NHWC")
    assert not is_its_own(network.layers[0], "NCHW")
    assert not is_its_own(CONNECTED.layers[1], "NCHW")  # depthwise


PLANNED_CHAIN = """\
  - { name: image, op: input, C: 3, H: 32, W: 32 }
  - { name: a, K: 60 }
  - { name: b, C: 60, K: 124 }
  - { name: c, K: 16 }
"""
CHAINED = network_of(PLANNED_CHAIN, defaults="N: 8, kernel_size: 3, padding: 1")
ALONE_IN_NCHW = network_of(
    "  - { name: a, C: 64, K: 64 }\n  - { name: b, C: 64, K: 64 }\n",
    defaults="N: 8, H: 32, W: 32, kernel_size: 3, padding: 1, layout: NCHW",
)
PLANNED_ALONE = "  - { name: a, C: 60, K: 124 }\n  - { name: b, C: 60, K: 62, layout: NCHW }\n"


def test_a_layer_that_stands_alone_changes_alone() -> None:
    plan = planned(network_of(PLANNED_ALONE), wish("a", C=64, K=128), wish("b", layout="NHWC", dtype="fp16"))
    assert changes(plan) == {(0, "C", 64), (0, "K", 128), (1, "layout", "NHWC"), (1, "dtype", "fp16")}
    assert plan.sets == {0: {"C": 64, "K": 128}, 1: {"layout": "NHWC", "dtype": "fp16"}}
    assert plan.touched == ({0}, {1})


def test_channels_change_wherever_they_are_stated() -> None:
    plan = planned(CHAINED, wish("a", K=64))
    assert changes(plan) == {(1, "K", 64), (2, "C", 64)}
    assert plan.sets == {0: {"K": 64}, 1: {"C": 64}}
    plan = planned(CHAINED, wish("c", C=128))
    assert changes(plan) == {(2, "K", 128)}  # c does not say its C
    assert plan.sets == {1: {"K": 128}, 2: {"C": 128}}
    assert plan.touched == ({1, 2},)


def test_wishes_for_one_group_are_one_change() -> None:
    plan = planned(CHAINED, wish("a", K=64), wish("b", "XY002", C=64))
    assert changes(plan) == {(1, "K", 64), (2, "C", 64)}
    assert set(plan.changes.values()) == {(0, 1)}
    assert changes(planned(CHAINED, wish("a", K=64), wish("b", "XY002", C=128))) == {(1, "K", 128), (2, "C", 128)}


def test_images_are_filled_up_where_they_come_in() -> None:
    plan = planned(CHAINED, wish("a", C=4))
    assert changes(plan) == {(0, "C", 4)}
    assert plan.sets == {0: {"C": 4}}


def test_a_first_layer_that_stands_alone_stays_first() -> None:
    network = network_of("  - { name: a, C: 3, K: 64 }\n  - { name: b, C: 64, K: 64 }\n")
    assert changes(planned(network, wish("a", C=8))) == {(0, "C", 8), (0, "first", True)}
    assert changes(planned(network, wish("a", C=4))) == {(0, "C", 4)}


def test_depthwise_layers_follow() -> None:
    network = network_of(
        "  - { name: image, op: input, C: 3, H: 32, W: 32 }\n  - { name: a, K: 44 }\n"
        "  - { name: dw, K: 44, groups: 44 }\n  - { name: dw2, op: depthwise }\n  - { name: c, K: 16 }\n",
        defaults="N: 8, kernel_size: 3, padding: 1",
    )
    expected = {(1, "K", 48), (2, "K", 48), (2, "groups", 48)}
    assert changes(planned(network, wish("a", K=48))) == expected
    assert changes(planned(network, wish("dw", C=48, K=48, groups=48))) == expected
    assert changes(planned(network, wish("dw2", K=48))) == expected


@pytest.mark.parametrize(
    ("wishes", "made"),
    [
        ([wish("c", K=24), wish("a", K=64)], {(1, "K", 64), (2, "C", 64)}),
        ([wish("c", C=128, K=24)], set()),  # of which a part is refused
    ],
)
def test_what_cannot_change_is_refused_with_its_reason(wishes: list[Any], made: set[Any]) -> None:
    plan = planned(CHAINED, *wishes)
    assert (refusals(plan), changes(plan)) == ({"c": "16 channels stay: c is a head: the task fixes it"}, made)


def test_groups_divide_the_new_width() -> None:
    network = network_of(
        "  - { name: image, op: input, C: 3, H: 32, W: 32 }\n  - { name: a, K: 60 }\n"
        "  - { name: b, K: 60, groups: 6 }\n  - { name: c, K: 16 }\n",
        defaults="N: 8, kernel_size: 3, padding: 1",
    )
    assert changes(planned(network, wish("a", K=64))) == {(1, "K", 72)}


def test_what_consists_of_several_groups_follows_them_or_is_refused() -> None:
    network = network_of(
        "  - { name: image, op: input, C: 3, H: 32, W: 32 }\n  - { name: a, K: 60 }\n"
        "  - { name: b, input: image, K: 20 }\n  - { name: join, op: concat, inputs: [a, b] }\n"
        "  - { name: c, K: 16 }\n",
        defaults="N: 8, kernel_size: 3, padding: 1",
    )
    assert refusals(planned(network, wish("c", C=96))) == {"c": "C stays: it is made of other layers' channels"}
    both = planned(network, wish("a", K=64), wish("c", C=84))
    assert (changes(both), refusals(both)) == ({(1, "K", 64)}, {})


def test_a_declared_size_that_does_not_fit_is_the_layers_own() -> None:
    network = network_of(
        "  - { name: image, op: input, C: 3, H: 32, W: 32 }\n  - { name: a, K: 60 }\n  - { name: b, C: 64, K: 16 }\n",
        defaults="N: 8, kernel_size: 3, padding: 1",
    )
    assert changes(planned(network, wish("b", C=60))) == {(2, "C", 60)}


def test_the_batch_changes_for_all_that_share_it() -> None:
    network = network_of(
        "  - { name: a, C: 8, K: 8 }\n  - { name: b, C: 8, K: 8 }\n  - { name: c, N: 2, C: 8, K: 8 }\n"
    )
    assert changes(planned(network, wish("a", N=16))) == {(0, "N", 16), (1, "N", 16)}
    assert refusals(planned(network, wish(None, N=16))) == {None: "its layers differ in N"}


def test_a_filter_is_never_enlarged() -> None:
    network = network_of("  - { name: a, C: 8, H: 8, W: 8, K: 8, kernel_size: 2, stride: 4 }\n")
    assert "larger filter" in refusals(planned(network, wish("a", R=4, S=4, PadH=1)))["a"]
    assert planned(network, wish("a", R=1, S=1)).granted


def test_the_batch_of_a_network_stands_where_it_comes_in() -> None:
    network = network_of(
        "  - { name: image, op: input, N: 8, C: 3, H: 32, W: 32 }\n  - { name: a, K: 60 }\n  - { name: b, K: 64 }\n",
        defaults="kernel_size: 3, padding: 1",
    )
    assert changes(planned(network, wish(None, N=16))) == {(0, "N", 16)}
    assert planned(network, wish(None, N=16)).sets == {0: {"N": 16}, 1: {"N": 16}}


def test_settings_of_the_runtime() -> None:
    plan = planned(CHAINED, wish(None, runtime__tf32=True), wish("a", "XY002", runtime__tf32=True))
    assert changes(plan) == {(None, "runtime.tf32", True)}
    assert plan.runtime == {"runtime.tf32": True}


def test_of_two_that_contradict_each_other_the_first_counts() -> None:
    plan = planned(network_of(PLANNED_ALONE), wish("a", layout="NHWC"), wish("a", "XY002", layout="NCHW", K=128))
    assert refusals(plan) == {"a": "XY001 wants layout=NHWC instead of NCHW"}
    assert changes(plan) == {(0, "layout", "NHWC")}


def test_what_the_command_line_overrides_is_refused() -> None:
    plan = planned(network_of(PLANNED_ALONE), wish("a", layout="NHWC"), wish("b", K=64), layout="--layout is given")
    assert refusals(plan) == {"a": "--layout is given"}
    assert changes(plan) == {(1, "K", 64)}


def test_a_layer_in_which_the_rule_is_silenced_does_not_change() -> None:
    several = (wish("a", K=64), wish("b", "XY002", K=128))
    plan = EditPlanner(CHAINED, silenced=[("XY001", "b"), ("XY002", "a"), ("XY002", None)]).plan(several)
    assert refusals(plan) == {"a": "it is silenced in b"}
    assert plan.sets == {1: {"K": 128}, 2: {"C": 128}}


def test_connected_layers_change_their_layout_together() -> None:
    network = network_of(PLANNED_CHAIN, defaults="N: 8, kernel_size: 3, padding: 1, layout: NCHW")
    plan = planned(network, wish("a", layout="NHWC"))
    assert {index for index, sets in plan.sets.items() if sets == {"layout": "NHWC"}} == {0, 1, 2}
    assert plan.touched == ({0, 1, 2},)
    silenced = EditPlanner(network, silenced=[("XY001", "c")]).plan([wish("a", layout="NHWC")])
    assert refusals(silenced) == {"a": "it is silenced in c"}
    assert planned(ALONE_IN_NCHW, wish("a", layout="NHWC")).loose == (frozenset({1}),)
    alone = EditPlanner(ALONE_IN_NCHW, silenced=[("XY001", "b")]).plan([wish("a", layout="NHWC")])
    assert (alone.loose, alone.sets) == ((), {0: {"layout": "NHWC"}})


def test_all_wishes_for_one_batch_are_behind_it() -> None:
    plan = planned(network_of(PLANNED_ALONE), wish("a", N=16), wish("b", N=16), wish("b", "XY002", N=32))
    assert set(plan.changes.values()) == {(0, 1)}
    assert [each.finding.rule.code for each, _ in plan.refused] == ["XY002"]


COMMENTED_NET = network_of(
    "  - { name: image, op: input, C: 3, H: 32, W: 32 }\n  - { name: a, K: 60 }\n  - { name: b, K: 16 }\n",
    defaults="N: 8, kernel_size: 3, padding: 1, dtype: fp16, layout: NHWC",
)


def test_comments_that_lose_their_use_are_blamed_on_what_changed_their_layers() -> None:
    plan = planned(
        COMMENTED_NET, wish("a", K=64), wish("image", "XY002", gpu="t4", layout="NCHW"), wish("b", dtype="bf16")
    )
    clean, finding = (
        check_network(COMMENTED_NET, Rulebook([]), [Target(label="a100", gpu=load_gpu("a100"))], "training"),
        wish("a", "XY003").finding,
    )
    before = replace(clean, suppressed=(Suppressed(finding=finding, reason="", by="comment"),))
    after = replace(clean, findings=(wish("a", "XY901").finding,))
    assert unused(plan, before, after, {"XY901"}) == {0: UNUSED}
    assert unused(plan, before, after, {"XY902"}) == unused(plan, after, after, {"XY901"}) == {}
    assert unused(plan, clean, after, {"XY901"}) == dict.fromkeys((0, 1), UNUSED)
