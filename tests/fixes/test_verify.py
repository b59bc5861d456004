"""What an edited network has to be, and what is wrong with it otherwise."""

import pytest
from mended_specs import network_of, planned, wish
from msgspec.structs import replace

from convlint.engine.check import Target, check_network
from convlint.engine.findings import NetworkResult
from convlint.fixes.verify import (
    breaking,
    disturbed,
    longer,
    new_error,
    saved_beside,
    slower,
    staying,
    unexpected,
    unsettled,
    unwilling,
    wanted_back,
)
from convlint.gpus.gpu import load_gpu
from convlint.model.network import Network
from convlint.rulebook.book import Rulebook

LAYERS = "  - { name: image, op: input, C: 3, H: 32, W: 32 }\n  - { name: a, K: 60 }\n  - { name: b, K: 16 }\n"
DEFAULTS = "N: 8, kernel_size: 3, padding: 1, dtype: fp16, layout: NHWC"


def net(layers: str = LAYERS, top: str = "", defaults: str = DEFAULTS) -> Network:
    return network_of(layers, top, defaults)


def result_of(network: Network, *gpus: str) -> NetworkResult:
    targets = [Target(label=name, gpu=load_gpu(name)) for name in gpus or ("a100",)]
    return check_network(network, Rulebook([]), targets, "training")


def test_what_was_meant_is_as_expected() -> None:
    plan = planned(net(), wish("a", K=64))
    assert unexpected(net(), net(LAYERS.replace("60", "64")), plan) == {}
    assert unexpected(net(), net(), planned(net())) == {}


def test_what_is_not_is_said_by_layer() -> None:
    plan = planned(net(), wish("a", K=64))
    assert unexpected(net(), net(), plan) == {
        0: "a would be read with another K", 1: "b would be read with another C",
    }  # fmt: skip
    also = net(LAYERS.replace("60", "64"), defaults=DEFAULTS.replace("fp16", "bf16"))
    assert set(unexpected(net(), also, plan)) == {0, 1}


@pytest.mark.parametrize(("width", "sizes"), [(64, {}), (62, {2: "c would be read with another W"})])
def test_a_layer_along_the_channels_follows_their_width(width: int, sizes: dict[int, str]) -> None:
    along = LAYERS + "  - { name: c, dims: 1, C: 1, W: 60, K: 1, R: 1, S: 3, padding: 1 }\n"
    after = net(along.replace("60", "64").replace("W: 64", f"W: {width}"))
    plan = planned(net(along), wish("a", K=64))
    assert unexpected(net(along), after, plan) == sizes
    assert disturbed(net(along), after, plan) == sizes.get(2, "")


def test_what_is_wrong_with_the_whole() -> None:
    plan = planned(net())
    for other, reason in (
        (net(LAYERS.replace("name: b", "name: z")), "other layers would be read"),
        (net(top="mode: inference\n"), "another mode or target would be read"),
        (net(top="target: t4\n"), "another mode or target would be read"),
        (net(top="runtime: { tf32: false }\n"), "another runtime would be read"),
        (net(LAYERS.replace("name: b,", "name: b, input: a,") + "  - { name: r, op: relu }\n"),
         "another wiring would be read"),
    ):  # fmt: skip
        assert unexpected(net(), other, plan) == {None: reason}


def test_sizes_follow_where_geometry_changes() -> None:
    plan = planned(net(), wish("a", PadH=0, PadW=0))
    after = net(LAYERS.replace("K: 60", "K: 60, padding: 0"))
    assert unexpected(net(), after, plan) == {}
    assert set(unexpected(net(), after, planned(net()))) == {0, 1}


def test_the_wishes_that_stay() -> None:
    plan = planned(net(), wish("a", K=64), wish("b", "XY002", gpu="t4", layout="NCHW"))
    again = [wish("a", K=128).finding, wish("a", "XY003", K=128).finding, wish("b", "XY002", layout="NCHW").finding]
    assert staying(plan, again) == {0}
    assert staying(plan, [wish("a", dtype="bf16").finding]) == set()


def test_what_would_be_wanted_back() -> None:
    before = net(LAYERS.replace("K: 60", "K: 60, layout: NCHW"))
    plan = planned(before, wish("a", layout="NHWC"), wish("a", "XY002", dtype="bf16"))
    assert wanted_back(plan, before, [wish("a", "XY009", layout="NCHW").finding]) == {0: "XY009 would want it back"}
    assert (
        wanted_back(plan, before, [wish("a", "XY009", layout="auto").finding, wish("b", layout="NCHW").finding]) == {}
    )


def test_errors_that_are_new_break_it() -> None:
    plan = planned(net(), wish("a", K=64), wish("b", "XY002", layout="NCHW"))
    error = replace(wish("b", "XY003").finding, severity="error")
    clean, broken = result_of(net()), replace(result_of(net()), findings=(error,))
    assert breaking(plan, clean, clean) == breaking(plan, broken, broken) == {}
    assert breaking(plan, clean, broken) == dict.fromkeys((0, 1), "it would lead to XY003")  # both change b
    elsewhere = replace(clean, findings=(replace(error, layer=None),))
    assert set(breaking(plan, clean, elsewhere)) == {0, 1}


def test_other_networks_of_the_same_code_may_only_change_what_is_to_change() -> None:
    plan = planned(net(), wish("a", K=64))
    assert disturbed(net(), net(), plan) == ""
    assert disturbed(net(), net(LAYERS.replace("60", "64")), plan) == ""
    assert (
        disturbed(net(), net(LAYERS.replace("60", "64, layout: NCHW")), plan) == "a would be read with another layout"
    )
    assert disturbed(net(), net(LAYERS.replace("name: b", "name: c")), plan) == "other layers would be read"
    padded = net(LAYERS.replace("K: 60", "K: 60, padding: 0"))
    assert disturbed(net(), padded, planned(net(), wish("a", PadH=0, PadW=0, PadH_end=0, PadW_end=0))) == ""
    assert disturbed(net(), padded, plan) == "a would be read with another P"


def test_other_networks_of_the_same_code_get_no_errors_and_lose_no_time() -> None:
    error = replace(wish("b", "XY003").finding, severity="error")
    clean, broken = result_of(net()), replace(result_of(net()), findings=(error,))
    assert (new_error(clean, broken), new_error(broken, clean), new_error(broken, broken)) == ("XY003", "", "")
    large = net("  - { name: a, C: 64, H: 56, W: 56, K: 64 }\n")
    larger = net("  - { name: a, C: 64, H: 56, W: 56, K: 512 }\n")
    found = longer(result_of(large, "t4"), result_of(larger, "t4"))
    assert (found[0], found[1] > 0) == ("t4", True)
    assert longer(result_of(larger), result_of(large)) is None


def test_layers_that_take_longer_are_blamed_on_what_changed_them() -> None:
    before = net("  - { name: a, C: 64, H: 56, W: 56, K: 64 }\n  - { name: b, C: 64, H: 56, W: 56, K: 64 }\n")
    after = net("  - { name: a, C: 64, H: 56, W: 56, K: 512 }\n  - { name: b, C: 64, H: 56, W: 56, K: 64 }\n")
    plan = planned(before, wish("a", K=512, lost_us=1.0), wish("b", "XY002", dtype="bf16", lost_us=1.0))
    found = slower(plan, result_of(before), result_of(after))
    assert list(found) == [0]
    assert found[0][0] == "a100"
    assert found[0][1] > 0
    assert slower(plan, result_of(after), result_of(before)) == {}
    unpriced = planned(before, wish("a", K=512))
    assert slower(unpriced, result_of(before), result_of(after)) == {}


def test_what_a_fix_without_a_price_saves_pays_for_no_other() -> None:
    eager = "runtime: { framework: pytorch }\n"
    before = net(
        "  - { name: a, C: 64, H: 56, W: 56, K: 64, bias: true }\n  - { name: b, C: 64, H: 14, W: 14, K: 64 }\n",
        eager,
    )
    after = net(
        "  - { name: a, C: 64, H: 56, W: 56, K: 64, bias: false }\n  - { name: b, C: 64, H: 14, W: 14, K: 66 }\n",
        eager,
    )
    now, then = result_of(before), result_of(after)
    saved = [
        old.times["a100"].time_us - new.times["a100"].time_us for old, new in zip(now.layers, then.layers, strict=True)
    ]
    assert saved[0] > -saved[1] > 0
    bias = wish("a", bias=False)
    promising = replace(bias, finding=replace(bias.finding, fix=replace(bias.finding.fix, time_change_us=-saved[0])))
    for one, blamed in ((bias, []), (promising, [1])):
        plan = planned(before, one, wish("b", "XY002", K=66, lost_us=1.0))
        assert list(slower(plan, now, then)) == blamed
    assert saved_beside(plan) == saved[0]


def test_a_dtype_that_shortens_the_step_may_lengthen_its_convolutions() -> None:
    """A patch embedding takes longer in 16 bits; the products behind it take a third."""
    top, layers = (
        "runtime: { framework: pytorch }\n",
        (
            "  - { name: patches, C: 3, H: 224, W: 224, K: 768, kernel_size: 16, stride: 16 }\n"
            "  - { name: norm, op: layernorm }\n  - { name: up, op: linear, C: 3072 }\n"
        ),
    )
    before, after = (net(layers, top, f"N: 64, dtype: {dtype}, layout: NCHW") for dtype in ("tf32", "fp16"))
    now, then = (result_of(network, "a10") for network in (before, after))
    assert now.layers[0].times["a10"].time_us < then.layers[0].times["a10"].time_us
    autocast = wish("patches", dtype="fp16", lost_us=1.0)
    paying = replace(autocast, finding=replace(autocast.finding, lost_step_us=1000.0))
    assert list(slower(planned(before, autocast), now, then)) == [0]
    assert slower(planned(before, paying), now, then) == {}
    assert list(slower(planned(after, paying), now, replace(then, networks=()))) == [0]  # no step is known


def test_other_targets_are_asked_too_and_advice_for_them_is_blamed_first() -> None:
    before = net("  - { name: a, C: 64, H: 56, W: 56, K: 64 }\n")
    after = net("  - { name: a, C: 64, H: 56, W: 56, K: 512, layout: NHWC }\n")
    plan = planned(
        before, wish("a", gpu="a100", K=512, lost_us=1.0), wish("a", "XY002", "t4", layout="NHWC", lost_us=1.0)
    )
    both = slower(plan, result_of(before, "a100", "t4"), result_of(after, "a100", "t4"))
    assert len(both) == 1


def test_of_another_batch_the_time_per_image_counts() -> None:
    before = net("  - { name: a, N: 100, C: 64, H: 56, W: 56, K: 64 }\n")
    after = net("  - { name: a, N: 128, C: 64, H: 56, W: 56, K: 64 }\n")
    times = [result.layers[0].times["a100"] for result in map(result_of, (before, after))]
    assert times[1].time_us > times[0].time_us
    assert times[1].time_us / 128 < times[0].time_us / 100
    assert slower(planned(before, wish("a", N=128)), result_of(before), result_of(after)) == {}


def test_a_batch_after_which_another_is_wanted_is_not_settled() -> None:
    plan = planned(net(), wish("a", N=16), wish("b", layout="NCHW"))
    assert unsettled(plan, [wish("a", "XY002", N=32).finding]) == {0: "XY002 would then want N=32"}
    assert unsettled(plan, [wish("a", "XY002", K=32).finding]) == {}


def test_what_need_not_follow_into_a_layout_may_stay() -> None:
    layers = "  - { name: a, C: 64, H: 56, W: 56, K: 64 }\n  - { name: g, C: 96, H: 56, W: 56, K: 96, groups: 4 }\n"
    before, after = (net(layers, defaults=DEFAULTS.replace("NHWC", layout)) for layout in ("NCHW", "NHWC"))
    plan = planned(before, wish("a", layout="NHWC"))
    assert plan.loose == (frozenset({1}),)
    back = [wish("g", "XY009", layout="NCHW").finding]
    assert unwilling(plan, before, result_of(before), result_of(before), back) == {1}
    assert unwilling(plan, before, result_of(before), result_of(before), []) == set()
    assert unwilling(plan, before, result_of(before), result_of(after), []) == {1}  # it has no fast kernel in NHWC


def test_a_value_in_another_layer_may_be_wanted_back() -> None:
    before = net(LAYERS.replace("K: 60", "K: 60, layout: NCHW").replace("K: 16", "K: 16, layout: NCHW"))
    plan = planned(before, wish("a", layout="NHWC"))
    again = [wish("b", "XY009", layout="NCHW").finding]
    assert wanted_back(plan, before, again) == {0: "XY009 would want it back in b"}
