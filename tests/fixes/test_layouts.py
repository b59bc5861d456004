"""Which layers change their layout together."""

from __future__ import annotations

from mended_specs import network_of

from convlint.fixes.layouts import Company, Layouts, is_its_own

DEFAULTS = "N: 8, H: 32, W: 32, kernel_size: 3, padding: 1, layout: NCHW"
CHAIN = """\
  - { name: image, op: input, C: 64, H: 32, W: 32 }
  - { name: a, K: 64 }
  - { name: dw, K: 64, groups: 64 }
  - { name: b, input: a, K: 64, layout: NHWC }
  - { name: side, input: image, K: 64, layout: auto }
  - { name: c, K: 64, layout: NCHW }
"""
CONNECTED = Layouts(network_of(CHAIN, defaults="N: 8, kernel_size: 3, padding: 1, layout: NCHW"))
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
    text = CHAIN.replace("name: c,", "name: c, copied: false,")
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
    text = CHAIN.replace("groups: 64", "groups: 4").replace("layout: NCHW", "layout: NHWC")
    network = network_of(text, defaults="N: 8, kernel_size: 3, padding: 1, layout: NHWC")
    assert found(Layouts(network), "NCHW", {1: [3]}) == [Company((3,), frozenset({1}))]
    assert is_its_own(network.layers[1], "NCHW")
    assert not is_its_own(network.layers[1], "NHWC")
    assert not is_its_own(network.layers[0], "NCHW")
    assert not is_its_own(CONNECTED.layers[1], "NCHW")  # depthwise
