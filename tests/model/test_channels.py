"""What changes with the width of a group."""

from fractions import Fraction
from time import perf_counter
from typing import Any

import pytest
from msgspec.structs import replace

from convlint.model import channels
from convlint.model.channels import THE_INPUT, ChannelGroup, Channels, GroupReader, channels_of
from convlint.model.layer import ConvLayer
from convlint.model.network import Edge, Network, Operation, OperationKind, Work


def test_a_group_names_all_its_layers_in_order() -> None:
    group = ChannelGroup(width=8, writers=(3, 1), readers=(GroupReader(2, Fraction(1)), GroupReader(1, Fraction(1))))
    assert group.layers == (1, 2, 3)
    assert not group.only_input


def test_edges_bring_what_the_layer_then_reads() -> None:
    network = Network(
        path="x",
        layers=(ConvLayer(name="a", C=3, K=60), ConvLayer(name="b", C=60, K=8), ConvLayer(name="c", C=8, K=8)),
        edges=(
            Edge(consumer=1, producers=(0,), source="a", C=60, H=None, W=None),
            Edge(consumer=2, producers=(1,), source="b", C=None, H=None, W=None),
        ),
        operations=(
            Operation(kind="input", C=3),
            Operation(kind="conv", layer=0, inputs=(0,), C=60),
            Operation(kind="conv", layer=1, inputs=(1,), C=8),
            Operation(kind="conv", layer=2, inputs=(2,), C=8),
        ),
    )
    channels = channels_of(network)
    wide = channels.widened(network, {channels.written[0]: 64, channels.written[1]: 16})
    assert [edge.C for edge in wide.edges] == [64, None]
    assert [(layer.C, layer.K) for layer in wide.layers] == [(3, 64), (64, 16), (16, 8)]


def test_what_follows_a_wider_layer_works_on_more_elements() -> None:
    norm = Work(kind="batch norm", op="batch_norm", reads=(600,), writes=600, weights=120)
    after = Work(kind="pool", op="max_pool2d", reads=(80,), writes=20)
    network = Network(
        path="x",
        layers=(ConvLayer(name="a", C=3, K=60), ConvLayer(name="b", C=60, K=8)),
        operations=(
            Operation(kind="input", C=3),
            Operation(kind="conv", layer=0, inputs=(0,), C=60),
            Operation(kind="batchnorm", inputs=(1,), C=60, work=norm),
            Operation(kind="conv", layer=1, inputs=(2,), C=8),
            Operation(kind="identity", inputs=(3,), C=8, work=after),
        ),
    )
    channels = channels_of(network)
    works = [operation.work for operation in channels.widened(network, {channels.written[0]: 90}).operations]
    assert works == [None, None, replace(norm, reads=(900,), writes=900, weights=180), None, after]


class Builder:
    """A network written down step by step; every method returns the number of its operation."""

    def __init__(self) -> None:
        self.layers: list[ConvLayer] = []
        self.operations: list[Operation] = []

    def step(self, kind: OperationKind, *inputs: int, C: int | None = None, **more: Any) -> int:
        self.operations.append(Operation(kind=kind, name=f"op{len(self.operations)}", inputs=inputs, C=C, **more))
        return len(self.operations) - 1

    def conv(self, name: str, source: int | None, C: int | None, K: int | None, **more: Any) -> int:
        self.layers.append(ConvLayer(name=name, C=C, K=K, **more))
        inputs = () if source is None else (source,)
        return self.step("conv", *inputs, C=K, layer=len(self.layers) - 1)

    def again(self, layer: int, source: int) -> int:
        return self.step("conv", source, C=self.layers[layer].K, layer=layer)

    @property
    def network(self) -> Network:
        return Network(path="x", layers=tuple(self.layers), operations=tuple(self.operations))

    @property
    def channels(self) -> Channels:
        return channels_of(self.network)


def begun(*widths: int) -> Any:
    """A network whose input is read by layers a, b, ... of these widths, and the numbers of their operations."""
    net = Builder()
    image = net.step("input", C=3)
    return net, *(net.conv(name, image, 3, width) for name, width in zip("abc", widths, strict=False))


def of(channels: Channels, layer: int) -> ChannelGroup:
    return channels.groups[channels.written[layer]]


def read_by(group: ChannelGroup) -> dict[int, int | Fraction]:
    return {reader.layer: reader.times for reader in group.readers}


def test_a_chain_has_one_group_between_each_pair() -> None:
    net = Builder()
    image = net.step("input", C=3)
    a = net.conv("a", image, 3, 60)
    b = net.conv("b", net.step("identity", net.step("batchnorm", a, C=60), C=60), 60, 124)
    net.step("resize", b, C=124, output=True)
    channels = net.channels
    first = of(channels, 0)
    assert (first.width, first.writers, read_by(first), first.fixed) == (60, (0,), {1: 1}, ())
    assert first.layers == (0, 1)
    assert of(channels, 1).fixed == ("the network hands it out",)
    (begun,) = [group for group in channels.groups if group.inputs]
    assert begun.fixed == (THE_INPUT,)
    assert begun.only_input
    assert read_by(begun) == {0: 1}


def test_sums_make_channels_one_number() -> None:
    net = Builder()
    stem = net.conv("stem", net.step("input", C=3), 3, 60)
    block = net.conv("inner", stem, 60, 60)
    net.conv("next", net.step("add", block, stem, C=60), 60, 20)
    group = of(net.channels, 0)
    assert group.writers == (0, 1)
    assert read_by(group) == {1: 1, 2: 1}
    assert group.fixed == ()


def test_concatenations_are_composed_of_what_they_read() -> None:
    net, a, b = begun(60, 20)
    net.conv("c", net.step("concat", a, b, a, C=140), 140, 8)
    channels = net.channels
    assert read_by(of(channels, 0)) == {2: 2}
    assert read_by(of(channels, 1)) == {2: 1}
    assert channels.changes(net.layers, {channels.written[0]: 64}) == {0: {"K": 64}, 2: {"C": 148}}


def test_sums_of_equal_concatenations_unite_their_parts() -> None:
    net = Builder()
    image = net.step("input", C=3)
    parts = [net.conv(name, image, 3, width) for name, width in (("a", 60), ("b", 20), ("c", 60), ("d", 20))]
    one, other = net.step("concat", *parts[:2], C=80), net.step("concat", *parts[2:], C=80)
    net.conv("e", net.step("add", one, other, C=80), 80, 8)
    assert of(net.channels, 0).writers == (0, 2)
    assert of(net.channels, 1).writers == (1, 3)


def test_sums_of_channels_that_are_composed_differently_stay_as_they_are() -> None:
    net = Builder()
    image = net.step("input", C=3)
    a, b, c = net.conv("a", image, 3, 60), net.conv("b", image, 3, 20), net.conv("c", image, 3, 80)
    net.step("add", net.step("concat", a, b, C=80), c, C=80)
    channels = net.channels
    assert all("composed in another way" in of(channels, layer).fixed[0] for layer in range(3))


def test_a_depthwise_convolution_writes_what_it_reads() -> None:
    net, a = begun(44)
    net.conv("c", net.conv("dw", a, 44, 44, groups=44), 44, 16)
    channels = net.channels
    group = of(channels, 0)
    assert group.layers == (0, 1, 2)
    assert group.depthwise == (1,)
    assert channels.changes(net.layers, {channels.written[0]: 48}) == {
        0: {"K": 48}, 1: {"C": 48, "K": 48, "groups": 48}, 2: {"C": 48},
    }  # fmt: skip


def test_a_channel_multiplier_scales() -> None:
    net, a = begun(44)
    net.conv("c", net.conv("dw", a, 44, 88, groups=44), 88, 16)
    channels = net.channels
    assert channels.changes(net.layers, {channels.written[0]: 48}) == {
        0: {"K": 48}, 1: {"C": 48, "K": 96, "groups": 48}, 2: {"C": 96},
    }  # fmt: skip


def test_groups_divide_what_they_read_and_write() -> None:
    net, a = begun(60)
    b = net.conv("b", a, 60, 96, groups=6)
    net.conv("c", b, 96, 8, groups=4)
    assert of(net.channels, 0).multiple_of == 6
    assert of(net.channels, 1).multiple_of == 12


def test_parts_that_groups_cut_through_stay_as_they_are() -> None:
    net, a, b = begun(30, 34)
    net.conv("c", net.step("concat", a, b, C=64), 64, 64, groups=32)
    assert of(net.channels, 0).fixed == of(net.channels, 1).fixed == ("c has 32 groups across it",)


def test_a_group_norm_divides_its_channels() -> None:
    net, a = begun(96)
    net.conv("b", net.step("identity", a, C=96, groups=32), 96, 8)
    assert of(net.channels, 0).multiple_of == 32
    assert of(net.channels, 0).fixed == ()


def test_what_usually_reads_one_tensor_and_reads_several_is_opaque() -> None:
    net, a, b = begun(60, 60)
    net.step("batchnorm", a, b, C=60)
    assert of(net.channels, 0).fixed == of(net.channels, 1).fixed == ("batchnorm op3 depends on it",)


@pytest.mark.parametrize(
    ("kind", "before", "multiple_of", "wider"),
    [
        ("pixel_shuffle", (240, 60), 4, (256, 64)),
        ("pixel_unshuffle", (15, 60), 1, (16, 64)),
        ("split", (254, 127), 2, (256, 128)),
    ],
)
def test_what_makes_more_or_fewer_channels_scales(
    kind: OperationKind, before: tuple[int, int], multiple_of: int, wider: tuple[int, int]
) -> None:
    net, a = begun(before[0])
    net.conv("b", net.step(kind, a, C=before[1], factor=2), before[1], 8)
    channels = net.channels
    assert of(channels, 0).multiple_of == multiple_of
    assert channels.changes(net.layers, {channels.written[0]: wider[0]}) == {0: {"K": wider[0]}, 1: {"C": wider[1]}}


def test_the_parts_that_were_joined_have_one_width_to_be_split_again() -> None:
    net, a, b = begun(60, 60)
    net.conv("c", net.step("split", net.step("concat", a, b, C=120), C=60, factor=2), 60, 8)
    channels = net.channels
    assert of(channels, 0) == of(channels, 1)
    assert channels.changes(net.layers, {channels.written[0]: 64}) == {0: {"K": 64}, 1: {"K": 64}, 2: {"C": 64}}


def test_a_split_across_what_was_joined_has_a_share_of_both() -> None:
    net, a, b = begun(24, 34)
    net.conv("c", net.step("split", net.step("concat", a, b, C=58), C=29, factor=2), 29, 8)
    channels = net.channels
    assert [of(channels, number).multiple_of for number in (0, 1)] == [2, 2]
    assert channels.changes(net.layers, {channels.written[1]: 40}) == {1: {"K": 40}, 2: {"C": 32}}


def test_a_split_of_odd_widths_is_opaque() -> None:
    net, a, b = begun(25, 33)
    net.conv("c", net.step("split", net.step("concat", a, b, C=58), C=29, factor=2), 29, 8)
    assert of(net.channels, 0).fixed == ("split op4 depends on it",)


@pytest.mark.parametrize("first", [0, 1])
def test_what_is_added_to_half_of_the_channels_is_half_as_wide(first: int) -> None:
    """A block of YOLO's: the convolution that writes 46 channels has to follow the one that writes 92."""
    net, a = begun(92)
    half = net.step("split", a, C=46, factor=2)
    b = net.conv("b", half, 46, 46)
    net.conv("c", net.step("add", *((half, b) if first else (b, half)), C=46), 46, 8)
    channels = net.channels
    number = channels.written[0]
    assert number == channels.written[1]
    group = of(channels, 0)
    assert (group.width, group.multiple_of, group.fixed) == ((92, 2, ()) if first else (46, 1, ()))
    width = 96 * group.width // 92
    assert channels.changes(net.layers, {number: width}) == {0: {"K": 96}, 1: {"C": 48, "K": 48}, 2: {"C": 48}}


def test_ratios_add_up_along_a_chain() -> None:
    """A quarter of the first is added to half of the second and to the third, whose groups were apart before."""
    net, a, b, c = begun(120, 60, 30)
    quarter, half = net.step("split", a, C=30, factor=4), net.step("split", b, C=30, factor=2)
    joined = net.step("add", half, c, C=30)
    net.conv("d", net.step("add", joined, quarter, C=30), 30, 8, groups=10)
    channels = net.channels
    group = of(channels, 0)
    assert group == of(channels, 1) == of(channels, 2)
    assert (group.width, group.multiple_of) == (60, 20)
    changed = channels.changes(net.layers, {channels.written[0]: 80})
    assert changed == {0: {"K": 160}, 1: {"K": 80}, 2: {"K": 40}, 3: {"C": 40}}


def test_what_a_shuffle_joins_follows_it() -> None:
    net, a, b = begun(80, 20)
    net.step("add", net.step("pixel_shuffle", a, C=20, factor=2), b, C=20)
    channels = net.channels
    assert channels.changes(net.layers, {channels.written[0]: 96}) == {0: {"K": 96}, 1: {"K": 24}}


def test_halves_that_are_shuffled_are_of_one_width_from_then_on() -> None:
    net, a, b = begun(58, 58)
    mixed = net.step("channel_shuffle", net.step("concat", a, b, C=116), C=116, factor=2)
    half, other = (net.step("split", mixed, C=58, factor=2) for _ in range(2))
    net.conv("c", half, 58, 30)
    net.conv("d", net.step("concat", other, net.step("identity", a, C=58), C=116), 116, 8)
    channels = net.channels
    group = of(channels, 0)
    assert group == of(channels, 1)
    assert (group.fixed, group.multiple_of) == ((), 1)
    changed = channels.changes(net.layers, {channels.written[0]: 64})
    assert changed == {0: {"K": 64}, 1: {"K": 64}, 2: {"C": 64}, 3: {"C": 128}}


def test_what_is_shuffled_is_a_multiple_of_the_groups() -> None:
    net, a = begun(60)
    net.conv("b", net.step("channel_shuffle", a, C=60, factor=3), 60, 8)
    assert (of(net.channels, 0).multiple_of, of(net.channels, 0).fixed) == (3, ())


def test_parts_of_several_widths_that_are_shuffled_stay_as_they_are() -> None:
    net, a, b = begun(40, 20)
    mixed = net.step("channel_shuffle", net.step("concat", a, b, C=60), C=60, factor=2, where="view at net.py:7")
    net.conv("c", mixed, 60, 8)
    assert of(net.channels, 0).fixed == of(net.channels, 1).fixed == ("view at net.py:7 depends on it",)


def test_a_pool_of_the_channels_fixes_what_it_makes_alone() -> None:
    net, a = begun(60)
    net.conv("b", net.step("channel_pool", a, C=1, where="mean at net.py:7"), 1, 8)
    channels = net.channels
    assert of(channels, 0).fixed == ()
    assert [group.fixed for group in channels.groups if read_by(group) == {1: 1}] == [("mean at net.py:7 makes it",)]


def test_gradients_of_parts_are_as_wide_as_the_part() -> None:
    net, a = begun(60)
    part = Work(kind="copy", op="slice", reads=(600,), writes=300)
    net.conv("b", net.step("resize", a, C=60, part=part), 60, 8)
    widened = net.channels.widened(net.network, {net.channels.written[0]: 64})
    assert widened.operations[-2].part == replace(part, reads=(640,), writes=320)


def test_what_is_opaque_fixes_what_it_reads_and_writes() -> None:
    net, a = begun(60)
    net.conv("b", net.step("reshape", a, C=60, where="view at net.py:7"), 60, 8)
    channels = net.channels
    assert of(channels, 0).fixed == ("view at net.py:7 depends on it",)
    assert read_by(of(channels, 0)) == {}
    (made,) = [group for group in channels.groups if group.fixed == ("view at net.py:7 makes it",)]
    assert read_by(made) == {1: 1}


def test_a_concatenation_of_another_axis_is_opaque() -> None:
    net, a = begun(60)
    net.conv("b", net.step("concat", a, a, C=60), 60, 8)
    assert "depends on it" in of(net.channels, 0).fixed[0]


def test_what_is_spread_over_channels_stays_one() -> None:
    net = Builder()
    image = net.step("input", C=3)
    a, gate = net.conv("a", image, 3, 60), net.conv("gate", image, 3, 1)
    net.conv("b", net.step("add", a, gate, C=60), 60, 8)
    channels = net.channels
    assert of(channels, 0).fixed == ()
    assert "spreads it" in of(channels, 1).fixed[0]


def test_heads_stay_as_they_are() -> None:
    net = Builder()
    net.conv("a", net.step("input", C=3), 3, 21, head=True)
    assert of(net.channels, 0).fixed == ("a is a head: the task fixes it",)


def test_what_frozen_layers_read_and_write_stays_as_it_is() -> None:
    net = Builder()
    stem = net.conv("stem", net.step("input", C=3), 3, 60, frozen=True, first=True)
    net.conv("c", net.conv("b", net.conv("a", stem, 60, 62), 62, 60, frozen=True), 60, 8)
    stays = ["stem is frozen, with weights of this width", "b is frozen, with weights of this width"]
    assert [of(net.channels, layer).fixed for layer in range(4)] == [(stays[0],), (stays[1],), (stays[1],), ()]
    image = next(group for group in net.channels.groups if group.inputs)
    assert image.only_input  # which zeros may fill up


def test_a_layer_that_runs_twice_has_one_width() -> None:
    net, a, b = begun(60, 60)
    shared = net.conv("shared", a, 60, 30)
    net.again(2, b)
    group = of(net.channels, 0)
    assert group.writers == (0, 1)
    assert read_by(group) == {2: 1}
    assert shared == 3


def test_layers_that_share_their_weights_have_one_width() -> None:
    net, a, b = begun(60, 60)
    large = net.conv("large", a, 60, 30)
    small = net.conv("small", b, 60, 30)
    net.operations[small] = replace(net.operations[small], weights=2)
    net.conv("c", large, 30, 8)
    channels = net.channels
    assert (of(channels, 0).writers, read_by(of(channels, 0))) == ((0, 1), {2: 1, 3: 1})
    assert (of(channels, 2).writers, read_by(of(channels, 2)), of(channels, 2).fixed) == ((2, 3), {4: 1}, ())


def test_weights_that_read_what_is_not_known_elsewhere_stay_as_they_are() -> None:
    net, a = begun(60)
    net.conv("large", a, 60, 30)
    net.conv("small", net.step("reshape"), 60, 30)
    net.operations[-1] = replace(net.operations[-1], weights=1)
    assert of(net.channels, 0).fixed == ("small has the same weights",)
    assert of(net.channels, 1).writers == (1, 2)


def test_layers_that_stand_alone_are_free_on_both_sides() -> None:
    net = Builder()
    net.conv("a", None, 60, 124)
    net.conv("first", None, 3, 124, first=True)
    channels = net.channels
    assert [group.fixed for group in channels.groups] == [(), (), (THE_INPUT,), ()]
    assert channels.changes(net.layers, {0: 64, 1: 128}) == {0: {"K": 128, "C": 64}}


def test_unknown_channels_belong_to_no_group() -> None:
    net = Builder()
    image = net.step("input")
    a = net.conv("a", image, None, 60)
    b = net.conv("b", image, 3, None)
    net.conv("c", net.step("concat", a, b), 60, 8)
    channels = net.channels
    assert channels.axes[image] is None
    assert "concat" in of(channels, 0).fixed[0]


def test_channels_that_do_not_fit_fix_what_arrives() -> None:
    net, a = begun(60)
    net.conv("b", a, 64, 8)
    assert of(net.channels, 0).fixed == ("b does not fit it",)


def test_a_network_without_operations_has_no_groups() -> None:
    assert channels_of(Network(path="x", layers=(ConvLayer(name="a", C=3, K=60),))).groups == ()


def test_a_group_of_every_width_passes_through_the_whole_network_unharmed() -> None:
    net, a, b = begun(60, 20)
    net.conv("c", net.step("concat", a, b, C=80), 80, 8)
    network, channels = net.network, net.channels
    wide = channels.widened(network, {channels.written[0]: 64})
    assert [(layer.C, layer.K) for layer in wide.layers] == [(3, 64), (3, 20), (84, 8)]
    assert [operation.C for operation in wide.operations] == [3, 64, 20, 84, 8]
    again = channels_of(wide)
    assert [group.width for group in again.groups] == [3, 64, 20, 8]
    assert [group.fixed for group in again.groups] == [group.fixed for group in channels.groups]


def test_axes_that_double_and_double_are_bounded() -> None:
    net = Builder()
    tensor = net.conv("a", net.step("input", C=3), 3, 1)
    for power in range(1, 40):
        tensor = net.step("concat", tensor, tensor, C=2**power)
    started = perf_counter()
    assert "depends on it" in of(net.channels, 0).fixed[0]
    assert perf_counter() - started < 10  # it would never end


def test_what_much_depends_on_has_a_few_reasons() -> None:
    net, a = begun(8)
    for number in range(9):
        net.step("reshape", a, C=8, where=f"view {number}")
    assert of(net.channels, 0).fixed == tuple(f"view {number} depends on it" for number in range(3))


def test_all_axes_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "MOST_PARTS_OF_ALL", 100)
    net = Builder()
    tensor = net.conv("a", net.step("input", C=3), 3, 1)
    for _ in range(101):
        tensor = net.step("identity", tensor, C=1)
    assert of(net.channels, 0).fixed != ()


def test_a_chain_of_a_thousand_concatenations_is_bounded() -> None:
    net = Builder()
    tensor = net.conv("a", net.step("input", C=3), 3, 1)
    for number in range(1000):
        tensor = net.step("concat", tensor, net.conv(f"c{number}", tensor, number + 1, 1), C=number + 2)
    parts = sum(len(axis or ()) for axis in net.channels.axes)
    assert 90_000 < parts < 110_000  # DenseNet-201 has 6,148
