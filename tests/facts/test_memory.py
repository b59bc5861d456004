"""What the networks of one input keep on a GPU, and which batches fit."""

from __future__ import annotations

from typing import Any

import pytest
from convolutions import conv
from msgspec.structs import replace

from convlint.estimate import estimate_layer
from convlint.facts.memory import Held
from convlint.gpus.gpu import Gpu, load_gpu
from convlint.model.layer import ConvLayer
from convlint.model.network import Edge
from convlint.model.runtime import Runtime


def held(*layers: ConvLayer, gpu: Gpu | None = None, edges: tuple[Edge, ...] = (), **settings: Any) -> Held:
    board, runtime = gpu or load_gpu("a100"), Runtime(framework="pytorch", **settings)
    estimates = [estimate_layer(layer, board, runtime, "training") for layer in layers]
    return Held(layers, edges, estimates, board, runtime, "training")


def test_the_largest_batch_fits_and_the_next_one_does_not() -> None:
    found = held(conv(), conv())
    assert found.needs == ()
    assert (found.batch, found.fits(256, 256)) == (256, True)
    largest = found.largest_batch
    assert largest is not None
    assert 256 < largest < 100_000
    assert found.fits(256, largest)
    assert not found.fits(256, largest + 1)


def test_workspace_at_another_batch_is_that_of_the_layer_there() -> None:
    copied, plain = held(conv(layout="NCHW")).largest_batch, held(conv()).largest_batch
    assert copied is not None
    assert plain is not None
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
    assert most is not None
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
