"""Times of a network at settings of its levers: what the check of the changed network says."""

from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace
from wirings import Wiring, resnext50

from convlint.engine import timing
from convlint.engine.hits import UNPRICED, Flaw, Hit, Price
from convlint.engine.timing import (
    NetworkTiming,
    Pricer,
    Stake,
    arriving,
    as_laid_out,
    compiled_step,
    key_of,
    shares,
    weighed,
)
from convlint.estimate import estimate_layer, time_us
from convlint.estimate.board import Board
from convlint.gpus.gpu import load_gpu
from convlint.model.layer import MODES, Dtype, Layout, Mode
from convlint.model.location import Location
from convlint.model.network import Network, Operation, Work
from convlint.model.report import Scalar
from convlint.model.runtime import Runtime
from convlint.rulebook.book import load_rulebook

A100 = load_gpu("a100")


def pair(one: Layout = "NHWC", other: Layout = "NHWC", *, dtypes: str = "fp16 fp16", **edge: Any) -> Network:
    net = Wiring(C=64, N=32, size=28)
    network = net.network(net.conv(net.conv(net.image, 64, 3), 64, 3))
    layers = tuple(
        replace(layer, layout=layout, dtype=Dtype(dtype))
        for layer, layout, dtype in zip(network.layers, (one, other), dtypes.split(), strict=True)
    )
    return replace(network, layers=layers, edges=tuple(replace(each, **edge) for each in network.edges))


@pytest.mark.parametrize(
    ("network", "copied"),
    [
        (pair(), False),
        (pair("NCHW", "NHWC"), True),
        (pair("NHWC", "NCHW"), True),
        (pair("NHWC", "auto"), False),
        (pair("NHWC", "NCHW", copied=False), False),  # the reader knows that it is not
        (pair(dtypes="fp32 fp16"), True),
        (pair(dtypes="fp32 tf32"), False),  # stored alike
    ],
)
def test_what_arrives_otherwise_is_copied(network: Network, copied: bool) -> None:
    assert [layer.copies_input for layer in as_laid_out(network, "training")] == [False, copied]
    timing = NetworkTiming(network, A100, "training")
    alone = time_us(network.layers[1], A100, network.runtime, "training")
    assert ((timing.times(timing.now)[1] or 0.0) > alone) is copied


def test_a_compiled_step_has_the_copies_between_layers_that_stand_in_place_of_others() -> None:
    """Groups keep Inductor from choosing the layout: it is the user's, copies included."""
    stated = pair(copied=False)
    operations = (
        Operation(kind="input"),
        Operation(kind="conv", inputs=(0,), layer=0),
        Operation(kind="conv", inputs=(1,), layer=1),
    )
    grouped = tuple(replace(layer, groups=2) for layer in stated.layers)
    runtime = Runtime(framework="pytorch", mixed_precision=False)
    network = replace(stated, layers=grouped, operations=operations, whole=True, runtime=runtime)
    turned = (grouped[0], replace(grouped[1], layout="NCHW"))
    copying = tuple(replace(layer, copies_input=number == 1) for number, layer in enumerate(turned))
    times = [time_us(layer, A100, replace(runtime, compile=True), "training") for layer in copying]
    step = compiled_step(network, turned, A100, "training")
    assert step is not None
    assert step.parts["convolution"] == pytest.approx(sum(time or 0.0 for time in times))


def test_a_framework_that_chooses_the_layout_makes_no_copies() -> None:
    network = replace(pair("NCHW", "NHWC"), runtime=Runtime(framework="tensorflow"))
    assert {(layer.layout, layer.copies_input) for layer in as_laid_out(network, "training")} == {("auto", False)}


def test_what_a_reader_saw_copied_is_copied_in_nhwc_alone() -> None:
    network = pair()
    seen = (network.layers[0], replace(network.layers[1], copies_input=True))
    assert as_laid_out(replace(network, layers=seen), "training")[1].copies_input
    turned = tuple(replace(layer, layout="NCHW") for layer in seen)
    assert not as_laid_out(replace(network, layers=turned), "training")[1].copies_input


def normed(one: Layout = "NHWC", other: Layout = "NHWC", dtypes: str = "fp16 fp16", **runtime: Any) -> Network:
    """Two convolutions with a group norm between them."""
    plain = pair(one, other, dtypes=dtypes)
    work = Work(kind="group norm", op="group_norm", reads=(64 * 32 * 28 * 28,), writes=64 * 32 * 28 * 28)
    first, last = (operation for operation in plain.operations if operation.layer is not None)
    operations = (
        plain.operations[0],
        replace(first, inputs=(0,)),
        Operation(kind="identity", inputs=(1,), work=work),
        Operation(kind="relu", inputs=(2,)),
        replace(last, inputs=(3,)),
    )
    return replace(plain, operations=operations, runtime=Runtime(**runtime), whole=True)


@pytest.mark.parametrize(
    ("network", "by_norm", "by_layer"),
    [
        (normed(framework="pytorch"), 1, True),
        (normed("NCHW", framework="pytorch"), 0, True),  # the norm has nothing to copy, the convolution has
        (normed("NHWC", "NCHW", framework="pytorch"), 1, False),
        (normed("NCHW", "NCHW", framework="pytorch"), 0, False),
        (normed(framework="pytorch", compile=True), 0, False),  # Inductor has no group norm
        (normed(framework="tensorflow"), 0, False),
        (normed("NCHW", "NCHW", dtypes="fp32 fp16", framework="pytorch"), 0, True),  # a cast is a copy all the same
    ],
)
def test_pytorchs_group_norm_leaves_nhwc(network: Network, by_norm: int, by_layer: bool) -> None:
    before, behind = as_laid_out(network, "training")
    assert (before.norm_copies, before.copies_input) == (by_norm, False)
    assert (behind.norm_copies, behind.copies_input) == (0, by_layer)
    timing = NetworkTiming(network, A100, "training")
    assert timing.now.running == (before, behind)
    assert timing.setting(network.layers, network.runtime).running == (before, behind)


def concatenated(*order: int) -> Network:
    """Two convolutions, the second's output normed, then both handed to a third in one tensor, in this order."""
    net = Wiring(C=64, N=32, size=28)
    one = net.conv(net.image, 64, 3)
    other = net.conv(one, 64, 3)
    network = net.network(net.conv(net.concat(one, other), 64, 3))
    numbers = [n for n, operation in enumerate(network.operations) if operation.layer is not None]
    norm = Operation(kind="identity", inputs=(numbers[1],), work=Work(kind="group norm", op="group_norm"))
    ops = list(network.operations)
    concat, last = ops[numbers[1] + 1], ops[numbers[2]]
    parts = (numbers[0], numbers[1] + 1)
    ops[numbers[1] + 1 :] = [
        norm, replace(concat, inputs=tuple(parts[each] for each in order)), replace(last, inputs=(numbers[1] + 2,)),
    ]  # fmt: skip
    return replace(network, operations=tuple(ops), runtime=Runtime(framework="pytorch"), whole=True)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_what_is_concatenated_with_a_norms_result_is_nchw(order: tuple[int, int]) -> None:
    running = as_laid_out(concatenated(*order), "training")
    assert [layer.norm_copies for layer in running] == [0, 1, 0]
    assert [layer.copies_input for layer in running] == [False, False, True]


def test_torch_compile_leaves_none_of_a_group_norms_copies() -> None:
    network = normed(framework="pytorch")
    layers = as_laid_out(network, "training")
    assert layers[0].norm_copies
    compiled = compiled_step(network, layers, A100, "inference")
    other = compiled_step(network, network.layers, A100, "inference")
    assert compiled is not None
    assert compiled == other


@pytest.mark.parametrize(("gpu", "compiles"), [("k80", False), ("gtx-1080-ti", False), ("v100", True), ("t4", True)])
def test_triton_begins_with_volta(gpu: str, compiles: bool) -> None:
    network = replace(pair(dtypes="fp32 fp32"), whole=True, runtime=Runtime(framework="pytorch"))
    assert (compiled_step(network, network.layers, load_gpu(gpu), "inference") is not None) is compiles


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("norms", [1, 2])
@pytest.mark.parametrize(("gpu", "clocks"), [("rtx-4090", 0), ("a100", 1.75), ("h200-sxm", 1.75)])
def test_what_a_group_norm_copies_costs_the_layer_before_it(mode: Mode, norms: int, gpu: str, clocks: float) -> None:
    """Forward, and once on the way back: 10.5 bytes of a stream for each element of its output, or its clocks."""
    layer, target = replace(pair().layers[1], K=128), load_gpu(gpu)
    copies, elements = norms * (2 if mode == "training" else 1), 32 * 128 * 28 * 28
    copy_us = 10.5 * elements / target.dram_bytes_per_s * 1e6 / 0.85
    if clocks:
        floor_us = clocks * elements / Board(target).clocks_per_us
        assert floor_us > copy_us
        copy_us = floor_us
    plain, before = (time_us(replace(layer, norm_copies=each), target, Runtime(), mode) or 0.0 for each in (0, norms))
    assert before - plain == pytest.approx(copies * copy_us, abs=copies * 2.5)
    assert before > plain


def test_behind_a_group_norm_eager_pytorch_loses_with_nhwc_what_it_gains_elsewhere() -> None:
    """ResNet-50 with group norms takes 1.56 times as long in NHWC on RTX 3090 (benchmarks/data/network_steps.csv)."""

    def time_of(network: Network) -> float:
        timing = NetworkTiming(network, load_gpu("rtx-3090"), "inference")
        return timing.gpu_us(timing.now, {})

    assert time_of(pair()) < time_of(pair("NCHW", "NCHW"))
    assert time_of(normed(framework="pytorch")) > time_of(normed("NCHW", "NCHW", framework="pytorch"))


def test_a_setting_costs_what_the_network_costs_that_has_it() -> None:
    network = resnext50(6, dtype="fp32", layout="NCHW")
    timing = NetworkTiming(network, A100, "training")
    grouped = [index for index, layer in enumerate(network.layers) if layer.groups > 1]
    layers = tuple(
        replace(layer, dtype=Dtype.fp16, layout="NCHW" if index in grouped else "NHWC")
        for index, layer in enumerate(network.layers)
    )
    setting = timing.setting(layers, network.runtime)
    other = replace(network, layers=layers)
    assert setting.running == as_laid_out(other, "training")
    again = NetworkTiming(other, A100, "training")
    assert timing.times(setting) == again.times(again.now)
    assert sum(layer.copies_input for layer in setting.running) >= len(grouped)


def listed(*layouts: Layout, **more: Any) -> Network:
    """Layers in a list that nothing connects, the middle one of three with groups; `more` is of the last."""
    net = Wiring(C=256, N=32, size=28, dtype="fp16")
    sizes: list[dict[str, Any]] = [{"K": 192}, {"K": 192, "taps": 3, "groups": 8}, {"K": 256, **more}]
    x = net.image
    for layout, size in zip(layouts, sizes, strict=False):
        x = net.conv(x, **{"layout": layout, "first": False, **size})
    return Network(path="net.yaml", layers=tuple(net.layers))


def total(network: Network, mode: Mode = "training") -> float:
    timing = NetworkTiming(network, A100, mode)
    return timing.gpu_us(timing.now, {})


@pytest.mark.parametrize("mode", MODES)
def test_a_grouped_layer_in_nchw_pays_copies_at_both_of_its_borders(mode: Mode) -> None:
    network = listed("NHWC", "NCHW", "NHWC")
    alone = sum(time_us(layer, A100, network.runtime, mode) or 0.0 for layer in network.layers)
    assert total(network, mode) > alone + 15
    assert [layer.copies_input for layer in as_laid_out(network, "training")] == [False, True, True]
    wired = replace(network, edges=tuple(arriving(network).values()))
    assert total(wired, mode) == total(network, mode)
    uniform = listed("NHWC", "NHWC", "NHWC")
    alone = sum(time_us(layer, A100, network.runtime, mode) or 0.0 for layer in uniform.layers)
    assert total(uniform, mode) == pytest.approx(alone)


@pytest.mark.parametrize(
    ("network", "read"),
    [
        (listed("NHWC", "NCHW", "NHWC"), {1: 0, 2: 1}),
        (listed("NHWC", "NCHW", "NHWC", first=True), {1: 0}),
        (listed("NHWC", "NCHW", "NHWC", C=999), {1: 0}),  # nothing writes as many channels
        (listed("NHWC", "NCHW", "NHWC", N=8), {1: 0}),  # another batch is another network
        (listed("NHWC"), {}),
    ],
)
def test_in_a_list_the_last_output_that_fits_is_read(network: Network, read: dict[int, int]) -> None:
    assert {index: edge.producers[0] for index, edge in arriving(network).items()} == read


def test_a_list_that_compares_one_layer_hands_nothing_on() -> None:
    net = Wiring(C=64, N=32, size=28)
    for layout in ("NCHW", "NHWC", "NHWC"):
        net.conv(net.image, 64, 3, layout=layout, first=False)
    assert arriving(Network(path="net.yaml", layers=tuple(net.layers))) == {}


def test_what_is_connected_reads_what_its_edges_say() -> None:
    network = resnext50(6)
    assert arriving(network) == {edge.consumer: edge for edge in network.edges}


def test_a_map_of_1x1_is_the_same_in_both_layouts() -> None:
    """Of a squeeze and excitation in the other layout, nothing is copied."""
    net = Wiring(C=64, N=32, size=28)
    x = net.conv(net.image, 64, 3)
    scale = net.conv(net.resize(x, 1), 64, layout="NCHW")
    network = net.network(net.conv(net.add(x, scale), 64))
    assert not any(layer.copies_input for layer in as_laid_out(network, "training"))
    alone = tuple(replace(layer, first=False) for layer in network.layers)
    read = {index: edge.producers for index, edge in arriving(Network(path="net.yaml", layers=alone)).items()}
    assert read == {1: (0,), 2: (0,)}


def test_sizes_change_their_layers_alone() -> None:
    network = pair()
    timing = NetworkTiming(network, A100, "training")
    plain = timing.gpu_us(timing.now, {})
    changed = timing.gpu_us(timing.now, {1: {"K": 128}})
    one, two = (timing.time_us(timing.now, 1, changes) or 0.0 for changes in ({}, {"K": 128}))
    assert changed - plain == pytest.approx(two - one)


def test_the_ideal_is_no_longer_than_the_time() -> None:
    timing = NetworkTiming(pair(), A100, "training")
    ideal, now = timing.ideal_us(timing.now, 1), timing.time_us(timing.now, 1)
    assert now is not None
    assert 0 < ideal <= now


def test_int8_has_no_time_where_training_is_asked_for() -> None:
    network = replace(pair(dtypes="int8 int8"), mode="training")
    timing = NetworkTiming(network, A100, "training")
    assert timing.times(timing.now) == [None, None]
    assert timing.ideal_us(timing.now, 0) is timing.estimate(timing.now, 0) is None
    assert timing.gpu_us(timing.now, {}) == 0.0


def test_equal_changes_have_one_key() -> None:
    assert key_of({"C": 1, "K": 2}) == key_of({"K": 2, "C": 1}) != key_of({"K": 2})
    assert key_of({}) == ()


BOOK = load_rulebook()


def network() -> Network:
    net = Wiring(C=64, N=33, size=28)
    return net.network(net.conv(net.conv(net.image, 72, 3), 64, 3, H=None, W=None))


def pricer() -> Pricer:
    net = network()
    estimates = [estimate_layer(layer, A100, net.runtime, "training") for layer in net.layers]
    return Pricer(NetworkTiming(net, A100, "training"), estimates)


def test_times_are_those_of_the_estimate() -> None:
    prices = pricer()
    assert prices.now_us(0) == pytest.approx(prices.estimates[0].time_us)
    after, now = prices.time_after(0, {"K": 128}), prices.now_us(0)
    assert prices.change_us(0, {"K": 128}) == after - now
    assert prices.layers[0] is prices.running[0]


def test_a_setting_of_the_runtime_is_no_change_of_a_layer() -> None:
    prices = pricer()
    assert prices.time_after(0, {"runtime.tf32": False}) == prices.now_us(0)


def test_what_is_not_predictable_has_no_price() -> None:
    prices = pricer()
    assert prices.now_us(1) is prices.change_us(1, {"K": 128}) is None
    assert prices.change_us(0, {}) is None
    assert prices.capacity_us(1, BOOK.by_key["CL201"]) is None


@pytest.mark.parametrize(("code", "field"), [("CL203", "lost_to_tiles_us"), ("CL204", "lost_to_waves_us")])
def test_capacity_is_that_of_the_passes_that_the_rule_names(code: str, field: str) -> None:
    prices, rule = pricer(), BOOK.by_key[code]
    passes = prices.estimates[0].passes
    lost = sum(getattr(one, field) for which, one in passes.items() if which in rule.loss_passes)
    assert prices.capacity_us(0, rule) == pytest.approx(lost)
    assert prices.capacity_us(0, BOOK.by_key["CL102"]) is None


@pytest.mark.parametrize(
    ("times", "earned"),
    [
        ([70.0], [30.0]),
        ([90.0, 80.0, 70.0], [10.0, 20.0]),
        ([100.0, 100.0, 60.0], [20.0, 20.0]),
        ([130.0, 100.0, 60.0], [20.0, 20.0]),  # alone it costs: then it is left
        ([120.0, 80.0, 90.0], [0.0, 20.0]),  # and so it is beside another
    ],
)
def test_what_each_adds_on_average(times: list[float], earned: list[float]) -> None:
    """`times` of the sets {A}, {B}, {A, B}; 100 us with none."""
    found = shares(len(earned), 100.0, lambda members: times[members - 1])
    assert [share for share, _ in found] == pytest.approx(earned)


def test_alone_a_fix_earns_what_it_saves_and_never_less_than_nothing() -> None:
    assert [Stake(change).alone_us for change in (-3.0, 0.0, 3.0, None)] == [3.0, 0.0, 0.0, 0.0]


def test_it_pays_with_the_fewest_that_earn_its_share() -> None:
    """C and B do nothing alone; each pays once A is there."""
    times = {1: 100.0, 2: 100.0, 4: 100.0, 3: 40.0, 5: 40.0, 6: 100.0, 7: 34.0}
    found = shares(3, 100.0, times.__getitem__)
    assert [others for _, others in found] == [{1}, {0}, {0}]
    assert sum(share for share, _ in found) == pytest.approx(66.0)


def test_nobody_plays() -> None:
    assert shares(0, 100.0, lambda _: 0.0) == []


def hit(code: str = "CL102", indices: tuple[int, ...] = (0,), **sets: Scalar) -> Hit:
    rule, changes = BOOK.by_key[code], sets or {"C": 64}
    flaw = Flaw(rule=rule, case=rule.cases[-1], places=(), message="m", set=changes)
    names = tuple(f"l{index}" for index in indices)
    return Hit(flaw, indices, names, Location(path="a"), "m", (changes,) * len(indices), {}, "warning", number=0)


def prices_that(*, change_us: float | None = -3.0, capacity_us: float | None = None, known: bool = True) -> Any:
    """Of equal layers, of which every fix changes as much and each wastes as much."""
    return SimpleNamespace(
        estimates=[object() if known else None] * 3, capacity_us=lambda *_: capacity_us, change_us=lambda *_: change_us
    )


def one(made: Hit, stake: Stake | None, prices: Any = None) -> Price:
    stakes = {} if stake is None else {made.number: stake}
    (found,) = weighed([made], stakes, {made.number: "measured"}, prices or prices_that())
    return found.price


def test_what_is_advised_has_its_stake() -> None:
    stake = Stake(-2.0, True, 5.0, ("CL106",))
    assert one(hit(), stake) == Price(5.0, 2.0, None, -2.0, True, ("CL106",), "measured")
    assert (
        one(hit(), stake, prices_that(known=False)).lost_us == 5.0
    )  # a setting may hold for layers without a time too


def test_what_is_not_loses_nothing() -> None:
    assert one(hit(), Stake(4.0)) == Price(0.0, 0.0, None, 4.0, basis="measured")
    assert one(hit(), None) == Price(0.0, 3.0, None, -3.0, basis="measured")
    assert one(hit(indices=(0, 1)), None).change_us == -6.0
    assert one(hit(), None, prices_that(change_us=None)) == Price(0.0, None, None, None, basis="measured")


def test_without_a_time_there_is_no_price() -> None:
    assert one(hit(), None, prices_that(known=False)) == replace_basis(UNPRICED)


def replace_basis(price: Price) -> Price:
    return replace(price, basis="measured")


def test_capacity_is_summed_where_the_rule_fired() -> None:
    prices = prices_that(capacity_us=2.0)
    assert one(hit("CL201", (0, 1, 2)), None, prices).capacity_us == 6.0
    assert one(replace(hit("CL201", (0, 1, 2)), fired=(1,)), None, prices).capacity_us == 2.0
    assert one(hit("CL204", N=64), None, prices) == Price(
        capacity_us=2.0, basis="measured"
    )  # the batch is weighed later


def test_a_rule_without_a_price_and_a_finding_on_the_network_stay_as_they_are() -> None:
    unpriced, whole = hit("CL005"), replace_indices(hit())
    assert weighed([unpriced, whole], {}, {}, prices_that()) == [unpriced, whole]


@pytest.mark.parametrize(("change_us", "told_us"), [(-3.0, -6.0), (0.0, None), (None, None)])
def test_an_info_without_a_price_says_what_its_fix_changes(change_us: float | None, told_us: float | None) -> None:
    remark = replace(hit("CL506", (0, 1), bias=False), severity="info")
    assert one(remark, None, prices_that(change_us=change_us)) == replace(UNPRICED, change_us=told_us)
    setting = replace(hit("CL506", runtime__tf32=True), severity="info")
    setting = replace(setting, flaw=replace(setting.flaw, set={"runtime.tf32": True}))
    assert one(setting, None) == UNPRICED


def replace_indices(made: Hit) -> Hit:
    return replace(made, indices=(), names=(), sets=())


def test_what_cannot_be_priced_only_wastes() -> None:
    made = hit("CL201")
    fix = made.flaw.case.fix
    assert fix is not None
    case = replace(made.flaw.case, fix=replace(fix, priced=False))
    made = replace(made, flaw=replace(made.flaw, case=case))
    assert one(made, None, prices_that(capacity_us=2.0)) == Price(capacity_us=2.0, basis="measured")


@pytest.mark.parametrize(("most", "change_us"), [(2, -3.0), (1, None)])
def test_of_very_many_not_all_are_priced(most: int, change_us: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "MOST_PRICED", most)
    found = weighed([hit(), hit(indices=(1,))], {}, {}, prices_that())
    assert [each.price.change_us for each in found] == [change_us, change_us]
