"""B: one choice of settings, and the sizes that pay within it."""

from collections.abc import Callable
from functools import partial

import pytest
from msgspec.structs import replace
from promised import followed, promised
from random_networks import chain, tangle
from read_specs import network as read
from read_specs import spec
from wirings import Wiring, mobilenet_v2, resnet50, resnext50, unet

from convlint.engine.levers import Limits
from convlint.engine.optimum import LEAST_GAIN, Search
from convlint.model.channels import Channels
from convlint.model.layer import Layout
from convlint.model.network import Network
from convlint.model.runtime import Runtime

BAD = (60, 124, 250, 500)
STEM = "C: 64, H: 28, W: 28, K: 60, kernel_size: 3"
STATED = {"defaults": "{ N: 32, dtype: fp16, layout: NHWC }"}


def unconnected() -> Network:
    """The same layers in a list that nothing connects."""
    return replace(resnext50(6, layout="NCHW"), edges=(), operations=())


NETWORKS: dict[str, Callable[[], Network]] = {
    "resnet": partial(resnet50, BAD, dtype="fp32", layout="NCHW"),
    "mobilenet": partial(mobilenet_v2, 1.4),
    "unet": partial(unet, (*BAD, 1000)),
    "resnext": partial(resnext50, 6, dtype="fp32", layout="NCHW"),
    "list": unconnected,
    "chain": partial(chain, 4),
    "tangle": partial(tangle, 5),
}


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("gpu", ["v100", "a100"])
def test_it_is_slower_without_each_of_its_members(name: str, gpu: str) -> None:
    _, promise = promised(NETWORKS[name](), gpu)
    best, search = promise.optimum, promise.search
    least_us = search.total_us(best.choices, best.levers)
    for kind in best.choices:
        fewer = {one: choice for one, choice in best.choices.items() if one != kind}
        assert search.total_us(fewer, best.levers) > least_us
    for key in best.levers:
        assert search.total_us(best.choices, {one: on for one, on in best.levers.items() if one != key}) > least_us


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("gpu", ["v100", "a100", "h100"])
def test_nothing_is_left_in_the_network_that_has_it(name: str, gpu: str) -> None:
    network = NETWORKS[name]()
    result, promise = promised(network, gpu)
    again, after = promised(followed(network, promise), gpu)
    (whole,), (then,) = result.networks, again.networks
    assert then.times.time_us == pytest.approx(whole.times.after_us, rel=1e-9)
    assert then.times.grade == whole.times.grade_after
    assert then.times.after_us >= then.times.time_us * (1 - LEAST_GAIN)
    assert after.optimum.choices == {}


def test_odd_groups_stay_in_nchw_where_that_is_faster() -> None:
    """The best of all NCHW, all NHWC, and NHWC with those groups in NCHW that are faster so, copies included."""
    _, promise = promised(resnext50(6, layout="NCHW"), "a100")
    best, search, timing = promise.optimum, promise.search, promise.search.timing
    layers = timing.network.layers
    least_us = timing.gpu_us(best.setting, {})
    for layout in ("NHWC", "NCHW"):
        every = timing.setting(tuple(replace(layer, layout=layout) for layer in layers), timing.network.runtime)
        assert least_us <= timing.gpu_us(every, {}) * (1 + LEAST_GAIN)
    formats = {layer.layout for layer in best.setting.layers if layer.groups == 1}
    assert len(formats) == 1
    assert search.total_us(best.choices, {}) == pytest.approx(least_us)


@pytest.mark.parametrize("gpu", ["a100", "h100", "t4"])
def test_odd_groups_in_nchw_hear_where_nhwc_is_faster(gpu: str) -> None:
    """Between neighbours in NHWC, whose copies count."""
    network = resnext50(6, layout="NHWC")
    layers = [replace(layer, layout="NCHW") if layer.groups > 1 else layer for layer in network.layers]
    _, promise = promised(replace(network, layers=tuple(layers)), gpu)
    search, timing = promise.search, promise.search.timing
    every = timing.setting(network.layers, network.runtime)
    assert search.total_us(promise.optimum.choices, {}) <= timing.gpu_us(every, {}) * (1 + LEAST_GAIN)


def test_a_setting_is_of_all_layers_that_the_framework_would_change() -> None:
    """Depthwise layers too, of which no rule on dtypes speaks."""
    network = mobilenet_v2(1.0, dtype="fp32", layout="NCHW")
    _, promise = promised(network, "a100", "inference")
    choice = promise.optimum.choices["dtype"]
    assert set(choice.layers) == set(range(len(network.layers)))
    assert {str(value) for value in choice.layers.values()} == {"fp16"}
    assert any(layer.depthwise for layer in network.layers)


def test_a_head_and_what_takes_work_away_never_change() -> None:
    net = Wiring(C=64, N=32, size=56)
    network = net.network(net.conv(net.conv(net.image, 72, 3), 19, 1, head=True))
    _, promise = promised(network)
    layers = followed(network, promise).layers
    assert layers[1].K == 19
    assert all((after.K or 0) >= (before.K or 0) for before, after in zip(network.layers, layers, strict=True))


@pytest.mark.parametrize(
    ("limits", "kinds", "has_sizes"),
    [
        (Limits(), {"dtype", "layout"}, True),
        (Limits(fields=frozenset({"dtype"})), {"layout"}, True),
        (Limits(fields=frozenset({"layout"})), {"dtype"}, True),
        (Limits(fields=frozenset({"channels"})), {"dtype", "layout"}, False),
        (Limits(results=True), {"layout"}, False),
    ],
)
def test_what_is_kept_is_not_searched(limits: Limits, kinds: set[str], has_sizes: bool) -> None:
    _, promise = promised(resnet50(BAD, dtype="fp32", layout="NCHW"), limits=limits)
    assert set(promise.optimum.choices) == kinds
    assert bool(promise.optimum.levers) is has_sizes


def test_a_silenced_layer_keeps_its_value_and_its_neighbours_pay() -> None:
    network = resnet50(BAD, layout="NCHW")
    silent = network.layers[5].name
    _, promise = promised(network, silences=lambda finding: finding.rule.code == "CL401" and finding.layer == silent)
    choice = promise.optimum.choices["layout"]
    assert set(range(len(network.layers))) - set(choice.layers) == {5}
    assert promise.optimum.setting.running[5].copies_input


def test_a_group_of_which_a_member_is_silenced_keeps_its_width() -> None:
    net = Wiring(C=64, N=32, size=56)
    network = net.network(net.conv(net.conv(net.image, 60, 3), 64, 3))
    assert promised(network)[1].optimum.levers
    for name in ("conv0", "conv1"):

        def silences(finding: object, name: str = name) -> bool:
            return getattr(finding, "layer", None) == name

        assert promised(network, silences=silences)[1].optimum.levers == {}


def test_what_rests_on_no_timing_of_its_kind_is_no_advice() -> None:
    """Eight bits on Hopper were never timed."""
    net = Wiring(C=64, N=32, size=56, dtype="fp16", layout="NHWC")
    x = net.conv(net.image, 256, 3)
    for _ in range(4):
        x = net.conv(x, 256, 3)
    network = replace(net.network(x), mode="inference", runtime=Runtime(framework="tensorrt"))
    assert promised(network, "h100", "inference", allow=("int8",))[1].optimum.choices.keys() == {"dtype"}
    result, promise = promised(network, "h100", "inference", allow=("fp8",))
    assert promise.optimum.choices == {}
    advised = [finding.rule.code for finding in result.findings if finding.advised]
    assert advised == []


def test_layouts_that_clash_are_no_reason_to_advise_where_nothing_may_be() -> None:
    """fp32 that is only read from storage: of what meets it, nothing is advice."""
    net = Wiring(C=64, N=32, size=56, dtype="fp32", layout="NHWC")
    network = net.network(net.conv(net.conv(net.conv(net.image, 64, 3), 64, 3), 64, 3))
    layouts = ("NCHW", "NHWC", "NCHW")
    layers = [
        replace(layer, layout=layout, dtype_source="storage")
        for layer, layout in zip(network.layers, layouts, strict=True)
    ]
    result, promise = promised(replace(network, layers=tuple(layers)))
    assert promise.optimum.choices == {}
    assert "CL402" in {finding.rule.code for finding in result.findings}


def test_what_many_layers_ask_for_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []
    plain = Search._dtype
    monkeypatch.setattr(Search, "_dtype", lambda self, *asked: tried.append(asked[1]) or plain(self, *asked))
    net = Wiring(C=64, N=32, size=56, dtype="fp32", layout="NCHW")
    x = net.image
    for width in range(64, 104):
        x = net.conv(x, width, 3)
    promised(net.network(x))
    assert 0 < len(tried) < 10


@pytest.mark.parametrize(("layout", "widened"), [("NCHW", False), ("NHWC", True)])
def test_no_width_keeps_torch_compile_from_choosing_the_layout(layout: Layout, widened: bool) -> None:
    """A 3x3 of half the channels makes Inductor leave all layers in NCHW (decide_layout_opt)."""
    net = Wiring(C=64, N=64, size=56, layout=layout)
    network = net.network(net.conv(net.conv(net.conv(net.image, 255, 3), 128, 3), 128, 3))
    network = replace(network, runtime=Runtime(framework="pytorch", compile=True))
    result, promise = promised(network)
    assert bool(promise.optimum.levers) is widened
    then, now = (
        sum(each.times["a100"].time_us for each in promised(one)[0].layers)
        for one in (followed(network, promise), network)
    )
    assert sum(each.times["a100"].after_us for each in result.layers) == pytest.approx(then)
    assert then <= now
    said = [each.fix for each in result.findings if each.rule.code == "CL102"]
    assert [fix is not None and bool(fix.set or fix.by_layer) for fix in said] == [widened]


@pytest.mark.parametrize(("classes", "kinds"), [(86, set()), (88, {"dtype"})])
def test_no_setting_leads_to_an_error(classes: int, kinds: set[str]) -> None:
    """CuDNN has int8 convolutions for channels in multiples of 4 alone."""
    net = Wiring(C=64, N=32, size=56, dtype="fp16", layout="NHWC")
    network = net.network(net.conv(net.conv(net.conv(net.image, 128, 3), 128, 3), classes, 1, head=True))
    network = replace(network, mode="inference", runtime=Runtime(framework="jax"))
    result, promise = promised(network, "a100", "inference", allow=("int8",))
    assert promise.optimum.choices.keys() == kinds
    fixes = [finding.fix for finding in result.findings if finding.rule.code == "CL109"]
    assert [fix is not None and fix.advised for fix in fixes] == [bool(kinds)]
    again, _ = promised(followed(network, promise), "a100", "inference", allow=("int8",))
    assert not any(finding.severity == "error" for finding in again.findings)


def test_many_layers_that_read_one_tensor_take_time_by_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a width changes in one of its layers is not asked of all others."""
    asked, changes_of = list[int](), Channels.changes_of
    monkeypatch.setattr(Channels, "changes_of", lambda *given: asked.append(1) or changes_of(*given))
    counts = []
    for heads in (20, 80):
        asked.clear()
        promised(read(spec(f"name: a, {STEM}", *["input: a, K: 62, kernel_size: 1"] * heads, **STATED)), "a100")
        counts.append(len(asked))
    assert 0 < counts[1] < 6 * counts[0]
