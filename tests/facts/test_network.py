"""What only all layers of a network together show."""

from typing import Any

import pytest
from convolutions import conv
from layer_facts import facts
from msgspec.structs import replace

from convlint.estimate import estimate_layer
from convlint.facts.network import MemoryFacts, shortened
from convlint.facts.quantity import UNKNOWN
from convlint.gpus.gpu import Gpu, load_gpu
from convlint.model.layer import ConvLayer
from convlint.model.network import Edge
from convlint.model.runtime import Runtime


def held(*layers: ConvLayer, gpu: Gpu | None = None, edges: tuple[Edge, ...] = (), **settings: Any) -> MemoryFacts:
    board, runtime = gpu or load_gpu("a100"), Runtime(framework="pytorch", **settings)
    estimates = [estimate_layer(layer, board, runtime, "training") for layer in layers]
    return MemoryFacts(layers, edges, estimates, board, runtime, "training")


def test_the_largest_batch_fits_and_the_next_one_does_not() -> None:
    found = held(conv(), conv())
    assert found.needs == ()
    assert (found.batch, found.fits(256, 256)) == (256, True)
    largest = found.largest_batch
    assert 256 < largest < 100_000
    assert found.fits(256, largest)
    assert not found.fits(256, largest + 1)


def test_workspace_at_another_batch_is_that_of_the_layer_there() -> None:
    copied, plain = held(conv(layout="NCHW")).largest_batch, held(conv()).largest_batch
    assert copied < 0.6 * plain  # NCHW keeps a transposed copy of two tensors beside the one that is kept


def test_of_several_networks_the_fullest_counts() -> None:
    small, large = [conv(N=8), conv(N=8)], [conv(N=64), conv(N=64)]
    both, alone = held(*small, *large), held(*large)
    assert both.batch == 64
    assert both.memory == alone.memory
    assert both.largest_batch == alone.largest_batch


def test_other_batches_are_asked_of_the_network_that_has_this_one() -> None:
    both = held(conv(N=8), conv(N=8), conv(N=64), conv(N=64))
    most = held(conv(N=8), conv(N=8)).largest_batch
    assert both.fits(8, most)
    assert not both.fits(8, most + 1)
    assert not both.fits(64, 10**7)
    assert both.fits(13, 10**9)  # nothing has this batch


@pytest.mark.parametrize("change", [{"N": None}, {"H": None}, {"dtype": None}])
def test_what_is_unknown_is_named_and_hinders_no_batch(change: dict[str, Any]) -> None:
    found = held(replace(conv(), **change))
    assert found.needs == tuple(change)
    assert found.fits(256, 10**9)
    with pytest.raises(LookupError):
        _ = found.memory


def test_an_unknown_optimizer_is_named_and_what_is_kept_besides_is_known() -> None:
    found = held(conv(), optimizer="shampoo")
    assert found.needs == ()
    assert found.needs_state[0].startswith("the state of optimizer shampoo")
    assert found.memory == held(conv()).memory
    assert not found.is_too_much
    assert held(conv(N=10**6), optimizer="shampoo").is_too_much


def test_layers_of_several_batches_have_no_batch() -> None:
    edge = Edge(consumer=1, producers=(0,), source="a", C=64, H=56, W=56)
    mixed = held(conv(N=8), conv(N=64), edges=(edge,))
    assert (mixed.batch, mixed.largest_batch) == (None, None)
    assert mixed.memory.activations > held(conv(N=8)).memory.activations


def test_a_gpu_without_a_memory_figure_has_no_largest_batch() -> None:
    found = held(conv(), gpu=replace(load_gpu("a100"), memory_bytes=None))
    assert found.needs == ()
    assert found.largest_batch is None
    assert found.fits(256, 10**9)


def test_no_layers_need_layers() -> None:
    assert held().needs == ("layers",)


LAYER = "N: 64, H: 56, W: 56, K: 64, kernel_size: 3, padding: 1, layout: NHWC, dtype: fp16"


def test_times_add_up_and_shares_are_percent() -> None:
    found = facts(f"name: a, C: 64, {LAYER}, calls: 3", f"name: b, C: 64, {LAYER}")
    whole = found["network"]
    assert whole.layers == 2
    assert found["layer_percent"] == pytest.approx(25.0)
    assert whole.time_us == pytest.approx(4 * found.estimate.time_us if found.estimate else 0)
    assert 0 < whole.launch_percent < 100
    assert 0 <= whole.memory_bound_percent <= 100


def test_one_layer_without_a_time_leaves_the_network_without_one() -> None:
    whole = facts(f"name: a, C: 64, {LAYER}", "name: b, C: 64")["network"]
    assert whole.time_us is whole.launch_percent is whole.memory_bound_percent is UNKNOWN
    assert whole.memory_bound_layers is UNKNOWN
    assert whole.layers == 2


def test_the_heaviest_memory_bound_layers_come_first() -> None:
    thin = "N: 64, C: 128, K: 128, kernel_size: 1, layout: NHWC, dtype: fp16"
    layers = [f"name: l{size}, H: {size}, W: {size}, {thin}" for size in (64, 256, 128)]
    assert facts(*layers)["network"].memory_bound_layers == "l256, l128, l64"


@pytest.mark.parametrize(
    ("layer", "unaligned"),
    [("C: 62", True), ("C: 64", False), ("C: 62, groups: 2", False), ("C: 62, layout: NCHW", False)],
)
def test_unaligned_layers_in_nhwc(layer: str, unaligned: bool) -> None:
    given = dict(part.split(": ") for part in f"{LAYER}, {layer}".split(", "))
    whole = facts(", ".join(f"{key}: {value}" for key, value in given.items()))["network"]
    assert whole.unaligned_nhwc is unaligned


@pytest.mark.parametrize(
    ("layer", "depthwise"),
    [
        ("groups: 64, kernel_size: 3", True),
        ("groups: 32, kernel_size: 3", False),
        ("groups: 64, kernel_size: 1", False),
        ("groups: 64, kernel_size: [3, 1]", True),
    ],
)
def test_depthwise_layers_with_a_filter(layer: str, depthwise: bool) -> None:
    whole = facts(f"name: a, N: 64, C: 64, H: 56, W: 56, K: 64, dtype: fp16, {layer}")["network"]
    assert whole.depthwise is depthwise


@pytest.mark.parametrize(
    ("layers", "gpu", "on_tensor_cores"),
    [
        (("dtype: fp16",), "a100", True), (("dtype: fp16",), "p100", False),
        (("dtype: fp64", "dtype: bf16"), "a100", True),
        (("dtype: fp64", "C: 8"), "a100", UNKNOWN), (("dtype: fp16", "C: 8"), "a100", True),
    ],
)  # fmt: skip
def test_on_tensor_cores(layers: tuple[str, ...], gpu: str, on_tensor_cores: object) -> None:
    named = [f"name: l{number}, {layer}" for number, layer in enumerate(layers)]
    assert facts(*named, gpu=gpu)["network"].on_tensor_cores is on_tensor_cores


LINE = "kernel_size: 1, K: 8"
NET = (
    f"name: stem, C: 8, H: 4, W: 4, {LINE}", f"name: a1, input: stem, {LINE}", f"name: a2, input: a1, {LINE}",
    f"name: b1, input: stem, {LINE}", "name: cat, op: concat, inputs: [a2, b1]", f"name: last, input: cat, {LINE}",
    f"name: alone, C: 8, H: 4, W: 4, {LINE}",
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "most", "beside"),
    [
        ("stem", 9, []), ("a1", 9, ["b1"]), ("a2", 9, ["b1"]), ("b1", 9, ["a1", "a2"]), ("b1", 1, ["a1"]),
        ("last", 9, []), ("alone", 9, []),
    ],
)  # fmt: skip
def test_what_neither_feeds_a_layer_nor_reads_it(name: str, most: int, beside: list[str]) -> None:
    whole = facts(*NET).context.network
    (layer,) = (layer for layer in whole.layers if layer.name == name)
    assert whole.beside(layer, most) == beside


def test_a_layer_of_another_network_is_beside_none() -> None:
    whole = facts(*NET).context.network
    assert whole.beside(facts(NET[0]).layer, 9) == []


@pytest.mark.parametrize(("names", "text"), [(["a"], "a"), (["a", "b"], "a, b"), (["a", "b", "c"], "a, b and 1 more")])
def test_shortened(names: list[str], text: str) -> None:
    assert shortened(names, 2) == text
