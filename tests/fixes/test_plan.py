"""From wishes to one consistent set of changes of a spec."""

from __future__ import annotations

from mended_specs import changes, network_of, planned, refusals, wish

from convlint.fixes.plan import Planner

CHAIN = """\
  - { name: image, op: input, C: 3, H: 32, W: 32 }
  - { name: a, K: 60 }
  - { name: b, C: 60, K: 124 }
  - { name: c, K: 16 }
"""
CHAINED = network_of(CHAIN, defaults="N: 8, kernel_size: 3, padding: 1")
ALONE_IN_NCHW = network_of(
    "  - { name: a, C: 64, K: 64 }\n  - { name: b, C: 64, K: 64 }\n",
    defaults="N: 8, H: 32, W: 32, kernel_size: 3, padding: 1, layout: NCHW",
)
ALONE = "  - { name: a, C: 60, K: 124 }\n  - { name: b, C: 60, K: 62, layout: NCHW }\n"


def test_a_layer_that_stands_alone_changes_alone() -> None:
    plan = planned(network_of(ALONE), wish("a", C=64, K=128), wish("b", layout="NHWC", dtype="fp16"))
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


def test_what_cannot_change_is_refused_with_its_reason() -> None:
    network = CHAINED
    plan = planned(network, wish("c", K=24), wish("a", K=64))
    assert refusals(plan) == {"c": "16 channels stay: c is a head: the task fixes it"}
    assert changes(plan) == {(1, "K", 64), (2, "C", 64)}


def test_a_wish_of_which_a_part_is_refused_is_refused() -> None:
    network = CHAINED
    plan = planned(network, wish("c", C=128, K=24))
    assert refusals(plan) == {"c": "16 channels stay: c is a head: the task fixes it"}
    assert changes(plan) == set()


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
    plan = planned(network_of(ALONE), wish("a", layout="NHWC"), wish("a", "XY002", layout="NCHW", K=128))
    assert refusals(plan) == {"a": "XY001 wants layout=NHWC instead of NCHW"}
    assert changes(plan) == {(0, "layout", "NHWC")}


def test_what_the_command_line_overrides_is_refused() -> None:
    plan = planned(network_of(ALONE), wish("a", layout="NHWC"), wish("b", K=64), layout="--layout is given")
    assert refusals(plan) == {"a": "--layout is given"}
    assert changes(plan) == {(1, "K", 64)}


def test_a_layer_in_which_the_rule_is_silenced_does_not_change() -> None:
    several = (wish("a", K=64), wish("b", "XY002", K=128))
    plan = Planner(CHAINED, silenced=[("XY001", "b"), ("XY002", "a"), ("XY002", None)]).plan(several)
    assert refusals(plan) == {"a": "it is silenced in b"}
    assert plan.sets == {1: {"K": 128}, 2: {"C": 128}}


def test_connected_layers_change_their_layout_together() -> None:
    network = network_of(CHAIN, defaults="N: 8, kernel_size: 3, padding: 1, layout: NCHW")
    plan = planned(network, wish("a", layout="NHWC"))
    assert {index for index, sets in plan.sets.items() if sets == {"layout": "NHWC"}} == {0, 1, 2}
    assert plan.touched == ({0, 1, 2},)
    silenced = Planner(network, silenced=[("XY001", "c")]).plan([wish("a", layout="NHWC")])
    assert refusals(silenced) == {"a": "it is silenced in c"}
    assert planned(ALONE_IN_NCHW, wish("a", layout="NHWC")).loose == (frozenset({1}),)
    alone = Planner(ALONE_IN_NCHW, silenced=[("XY001", "b")]).plan([wish("a", layout="NHWC")])
    assert (alone.loose, alone.sets) == ((), {0: {"layout": "NHWC"}})


def test_all_wishes_for_one_batch_are_behind_it() -> None:
    plan = planned(network_of(ALONE), wish("a", N=16), wish("b", N=16), wish("b", "XY002", N=32))
    assert set(plan.changes.values()) == {(0, 1)}
    assert [each.finding.rule.code for each, _ in plan.refused] == ["XY002"]
