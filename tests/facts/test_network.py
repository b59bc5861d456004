"""What only all layers of a network together show."""

from __future__ import annotations

import pytest
from layer_facts import facts

from convlint.facts.network import shortened
from convlint.facts.unknown import UNKNOWN

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
    whole = facts(*NET).context.whole
    assert whole is not None
    (layer,) = (layer for layer in whole.layers if layer.name == name)
    assert whole.beside(layer, most) == beside


def test_a_layer_of_another_network_is_beside_none() -> None:
    whole = facts(*NET).context.whole
    assert whole is not None
    assert whole.beside(facts(NET[0]).layer, 9) == []


@pytest.mark.parametrize(("names", "text"), [(["a"], "a"), (["a", "b"], "a, b"), (["a", "b", "c"], "a, b and 1 more")])
def test_shortened(names: list[str], text: str) -> None:
    assert shortened(names, 2) == text
