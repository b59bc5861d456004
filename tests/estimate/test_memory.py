"""What a network keeps in memory, part by part, and the batch that leaves room for it."""

from typing import Any

import pytest
from convolutions import conv
from msgspec.structs import replace

from convlint.estimate.memory import (
    OPTIMIZER_STATES,
    Footprint,
    alive,
    input_bytes,
    kept_beside,
    lacking,
    lacking_state,
    linear_weights,
    output_bytes,
    parameters,
    parts,
)
from convlint.model.layer import ConvLayer, Dtype
from convlint.model.network import Edge, Operation, Work, WorkKind
from convlint.model.runtime import Runtime

MAP = 256 * 64 * 56 * 56 * 2  # bytes of a layer's input, and of its output


def edge(consumer: int, *producers: int, source: str = "x", C: int = 64) -> Edge:
    return Edge(consumer=consumer, producers=producers, source=source, C=C, H=56, W=56)


def test_a_chain_has_one_input_and_one_output_alive() -> None:
    layers = [conv(), conv(), conv(K=8)]
    edges = [edge(1, 0, source="a"), edge(2, 1, source="b")]
    assert alive(layers, edges, copies=False) == [2 * MAP, 2 * MAP, MAP + MAP // 8]


def test_a_shortcut_lives_until_it_is_added() -> None:
    """0 -> 1 -> 2, whose output is added to that of 0; 3 reads the sum."""
    edges = [edge(1, 0, source="a"), edge(2, 1, source="b"), edge(3, 2, 0, source="sum")]
    sizes = alive([conv()] * 4, edges, copies=False)
    assert sizes == [2 * MAP, 2 * MAP, 3 * MAP, 2 * MAP]


def test_a_norm_writes_a_tensor_of_its_own_where_nothing_folds_it() -> None:
    """Its input and its output, when the layer's own input is no longer needed; else all three."""
    first, second = conv(C=32, norm_follows=True), conv()
    edges = [edge(1, 0, source="a")]
    assert alive([first, second], edges, copies=True)[0] == 2 * MAP
    assert alive([first, second], edges, copies=False)[0] == MAP + MAP // 2
    read_again = [edge(1, 0, source="a"), edge(2, 1, source="b"), edge(3, 2, 0, source="sum")]
    normed = conv(norm_follows=True)
    assert alive([conv(), normed, conv(), conv()], read_again, copies=True)[1] == 3 * MAP


def test_a_concatenation_copies_what_it_joins() -> None:
    edges = [edge(1, 0, source="a"), edge(2, 0, 1, source="cat", C=128)]
    layers = [conv(), conv(), conv(C=128)]
    copied, joined_in_place = (alive(layers, edges, copies=copies)[2] for copies in (True, False))
    assert copied == 4 * MAP  # both parts and the whole
    assert joined_in_place == 3 * MAP  # the whole, and the output


def test_bytes_of_tensors_count_every_axis() -> None:
    volume = conv(D=4, dims=3, Z=4)
    assert input_bytes(volume) == 4 * MAP
    assert output_bytes(conv(K=128)) == 2 * MAP


def between(kind: WorkKind, op: str, *, inputs: tuple[int, ...] = (1,), **more: Any) -> tuple[Operation, ...]:
    """An operation on the outputs of two convolutions (1 and 2), a view of its result, and a convolution that reads it.

    Each tensor has ten elements.
    """
    work = Work(kind=kind, op=op, reads=(10,) * len(inputs), writes=10, **more)
    return (
        Operation(kind="input"), Operation(kind="conv", inputs=(0,), layer=0),
        Operation(kind="conv", inputs=(0,), layer=1), Operation(kind="identity", inputs=inputs, work=work),
        Operation(kind="reshape", inputs=(3,)), Operation(kind="conv", inputs=(4,), layer=2),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("operations", "in_pytorch", "elsewhere"),
    [
        (between("activation", "silu"), 10, 0),
        (between("activation", "relu"), 0, 0),  # what it writes the convolution reads, in another view
        (between("activation", "leaky_relu"), 0, 0),  # in place it keeps what it writes
        (between("activation", "mul"), 0, 0),  # by a number
        (between("layer norm", "layer_norm"), 10, 10),
        (between("batch norm", "batch_norm"), 10, 10),
        (between("multiply", "mul", inputs=(1, 2)), 20, 0),
        (between("multiply", "mul", inputs=(1, 1)), 10, 0),  # one tensor
        (between("multiply", "mul", weights=64), 10, 0),
        (between("multiply", "mul", inputs=(0, 1)), 0, 0),  # a mask needs no gradient; it is kept, as the image is
        (between("multiply", "mul", inputs=(0, 0)), 0, 0),
        (between("add", "add", inputs=(1, 2)), 0, 0),
        (between("max pool", "max_pool2d"), 10 + 40, 0),  # the places of the maxima are int64
        (between("activation", "silu", inputs=(0,)), 0, 0),  # the convolutions keep it
        ((*between("activation", "silu"), Operation(kind="identity", inputs=(3,), output=True,
           work=Work(kind="softmax", op="softmax", reads=(10,), writes=10))), 20, 0),
    ],
)  # fmt: skip
def test_what_operations_keep_beside_the_convolutions(
    operations: tuple[Operation, ...], in_pytorch: int, elsewhere: int
) -> None:
    layers = [conv(), conv(), conv()]
    for framework, elements in (("pytorch", in_pytorch), (None, in_pytorch), ("jax", elsewhere)):
        runtime = Runtime(framework=framework)
        assert kept_beside(operations, layers, runtime, "training") == 2 * elements  # bytes of 16 bits
        assert kept_beside(operations, layers, runtime, "inference") == 0
    assert kept_beside(operations, layers, Runtime(framework="pytorch", compile=True), "training") == 2 * elsewhere


def test_what_stands_before_all_weights_keeps_nothing() -> None:
    work = Work(kind="activation", op="avg_pool2d", reads=(10,), writes=10)
    image = Operation(kind="input"), Operation(kind="resize", inputs=(0,), work=work)
    read = (*image, Operation(kind="conv", inputs=(1,), layer=0), Operation(kind="resize", inputs=(2,), work=work))
    assert kept_beside(read, [conv()], Runtime(framework="pytorch"), "training") == 20  # by the second pool


def test_what_is_made_of_the_input_alone_has_no_gradient_to_keep_anything_for() -> None:
    def made(kind: WorkKind, op: str, *inputs: int, weights: int = 0) -> Operation:
        work = Work(kind=kind, op=op, reads=(10,) * len(inputs), writes=10, weights=weights)
        return Operation(kind="identity", inputs=inputs, work=work)

    source, layer = Operation(kind="input"), conv()
    mask, into = made("activation", "sigmoid", 0), Operation(kind="conv", inputs=(0,), layer=0)
    masked = made("multiply", "mul", 2, 1)  # keeps the mask, as only the convolution's output has a gradient
    assert kept_beside((source, mask, into, masked), [layer], Runtime(framework="pytorch"), "training") == 2 * 10
    normed = (source, made("layer norm", "layer_norm", 0, weights=10), made("activation", "silu", 1))
    assert kept_beside(normed, [layer], Runtime(framework="pytorch"), "training") == 2 * 20  # the norm has weights


def test_weights_of_linear_layers_are_counted_once_where_convolutions_run_several_times() -> None:
    work = Work(kind="linear", op="linear", reads=(10,), writes=10, weights=110, product=(1, 1, 10, 10))
    image, into = Operation(kind="input"), Operation(kind="conv", inputs=(0,), layer=0)
    once, again = Operation(kind="reshape", inputs=(1,), work=work), Operation(kind="reshape", inputs=(2,), work=work)
    assert linear_weights((image, into, once, again)) == 220
    assert linear_weights((image, into, into, once, again)) == 110
    plain, mixed = Runtime(framework="pytorch", optimizer="adam"), Runtime(mixed_precision=True)
    layers = [conv()]
    for runtime, bytes_each in ((plain, 2), (mixed, 4 + 2)):  # autocast works on a copy in 16 bits
        with_linear = Footprint(layers, (), runtime, "training", (image, into, once))
        without = Footprint(layers, (), runtime, "training", (image, into))
        assert with_linear.weights - without.weights == 110 * bytes_each
    assert Footprint(layers, (), plain, "training", (image, into, once)).optimizer == 2 * 2 * (WEIGHTS + 110)


def test_under_autocast_norms_in_32_bits_keep_32_bits() -> None:
    operations, layers = between("group norm", "group_norm", in_32_bits=True), [conv(), conv(), conv()]
    plain, mixed = Runtime(framework="pytorch"), Runtime(framework="pytorch", mixed_precision=True)
    assert [kept_beside(operations, layers, runtime, "training") for runtime in (plain, mixed)] == [20, 40]


def test_what_a_layer_writes_for_its_norm_is_counted_with_the_layer() -> None:
    operations, layers = between("batch norm", "batch_norm"), [conv(norm_follows=True), conv(), conv()]
    assert kept_beside(operations, layers, Runtime(framework="pytorch"), "training") == 0


TRAINED = Runtime(framework="pytorch")
WEIGHTS = 64 * 64 * 9  # elements of one of the layers below


def no_workspace(_index: int, _batch: int) -> int:
    return 0


def footprint(
    *layers: ConvLayer, edges: tuple[Edge, ...] = (), mode: str = "training", **settings: object
) -> Footprint:
    runtime = replace(TRAINED, **settings)
    return Footprint(layers or (conv(),), edges, runtime, "training" if mode == "training" else "inference")


def test_training_keeps_weights_gradients_inputs_and_the_largest_workspace() -> None:
    memory = footprint(conv(), conv()).memory([5, 7])
    assert (memory.weights, memory.gradients, memory.optimizer) == (2 * WEIGHTS * 2, 2 * WEIGHTS * 2, 0)
    assert (memory.activations, memory.workspace) == (2 * MAP, 7)
    assert memory.total == 2 * (2 * WEIGHTS * 2) + 2 * MAP + 7


def test_inference_keeps_no_gradients_and_no_inputs_that_are_done_with() -> None:
    chain = footprint(conv(), conv(), conv(), edges=(edge(1, 0), edge(2, 1)), mode="inference", optimizer="adam")
    memory = chain.memory([0, 0, 0])
    assert (memory.gradients, memory.optimizer) == (0, 0)
    assert memory.activations == 2 * MAP  # one layer's input and output


def test_of_inference_the_fullest_layer_counts_with_its_own_workspace() -> None:
    wide, narrow = conv(), conv(K=8)
    memory = footprint(wide, narrow, edges=(edge(1, 0),), mode="inference").memory([0, 2**40])
    assert memory.workspace == 2**40
    assert memory.activations == MAP + MAP // 8


def test_a_norm_keeps_its_input_and_a_tensor_that_two_layers_read_is_kept_once() -> None:
    norm = footprint(conv(norm_follows=True)).memory([0]).activations
    assert norm == 2 * MAP
    fork = footprint(conv(), conv(), conv(), edges=(edge(1, 0), edge(2, 0))).memory([0] * 3).activations
    assert fork == 2 * MAP
    apart = footprint(conv(), conv(), conv(), edges=(edge(1, 0), edge(2, 0, source="y"))).memory([0] * 3).activations
    assert apart == 3 * MAP


def test_a_layer_that_runs_twice_has_its_weights_once_and_its_input_twice() -> None:
    memory = footprint(conv(calls=2)).memory([0])
    assert memory.weights == WEIGHTS * 2
    assert memory.activations == 2 * MAP


@pytest.mark.parametrize(("optimizer", "states"), OPTIMIZER_STATES.items())
def test_an_optimizer_keeps_its_states(optimizer: str, states: int) -> None:
    assert footprint(optimizer=optimizer).memory([0]).optimizer == states * WEIGHTS * 2
    assert footprint(conv(dtype=Dtype.fp32), optimizer=optimizer).memory([0]).optimizer == states * WEIGHTS * 4


@pytest.mark.parametrize("dtype", [Dtype.fp16, Dtype.bf16])
def test_mixed_precision_has_fp32_masters_beside_the_copies_that_run(dtype: Dtype) -> None:
    memory = footprint(conv(dtype=dtype), mixed_precision=True, optimizer="adam").memory([0])
    assert (memory.weights, memory.gradients, memory.optimizer) == (WEIGHTS * 6, WEIGHTS * 4, WEIGHTS * 8)
    assert footprint(conv(dtype=dtype), mixed_precision=True, mode="inference").memory([0]).weights == WEIGHTS * 2
    same = footprint(conv(dtype=Dtype.fp32), mixed_precision=True).memory([0])
    assert same.weights == same.gradients == WEIGHTS * 4


def test_biases_groups_and_shared_modules_count_as_parameters() -> None:
    assert parameters([conv(bias=True)]) == WEIGHTS + 64
    assert parameters([conv(groups=64)]) == 64 * 9
    assert parameters([conv(node="a"), conv(node="a"), conv(node="b")]) == 2 * WEIGHTS
    assert parameters([conv(), conv()]) == 2 * WEIGHTS
    assert parameters([conv(C=None)]) is None


def test_the_largest_batch_is_the_last_that_fits() -> None:
    for mode in ("training", "inference"):
        for capacity in (0, 10**6, 10**8, 10**9, 2**40):
            one = footprint(mode=mode)
            largest = one.largest_batch(capacity, no_workspace)
            assert (largest == 0) == (capacity < 10**6 or not one.fits(1, capacity, no_workspace))
            assert largest == 0 or one.fits(largest, capacity, no_workspace)
            assert not one.fits(largest + 1, capacity, no_workspace)


def test_workspace_grows_with_the_batch() -> None:
    one = footprint()
    small = one.largest_batch(10**9, no_workspace)
    assert one.largest_batch(10**9, lambda _, N: 2 * N * 64 * 56 * 56) == pytest.approx(small / 2, abs=1)


def test_a_layer_whose_workspace_is_small_today_may_be_the_largest_there() -> None:
    """Every layer is asked at the batch that is named, not only those that are largest now."""
    layers = [conv(K=64 + 8 * n) for n in range(20)]
    grown = footprint(*layers)

    def workspace(index: int, N: int) -> int:
        return 10**9 if index == 13 and N > 20 else 1000 * index

    largest = grown.largest_batch(10**9, workspace)
    assert largest == 20
    assert grown.fits(20, 10**9, workspace)
    assert not grown.fits(21, 10**9, workspace)


def test_sizes_of_two_to_the_forty_do_not_overflow() -> None:
    huge = footprint(conv(N=2**40, C=2**20, K=2**20))
    memory = huge.memory([0])
    assert memory.activations == 2**40 * 2**20 * 56 * 56 * 2
    assert memory.weights == 2**40 * 9 * 2
    assert huge.largest_batch(40 * 2**30, no_workspace) == 0
    assert huge.largest_batch(2**45, no_workspace) < 2**40


@pytest.mark.parametrize("name", ["N", "H", "K", "dtype"])
def test_what_is_unknown_is_named(name: str) -> None:
    assert lacking([conv(), replace(conv(), **{name: None})]) == (name,)
    assert lacking([conv()]) == ()


def test_an_unknown_optimizer_is_named_and_never_guessed() -> None:
    (need,) = lacking_state(replace(TRAINED, optimizer="shampoo"), "training")
    assert need.startswith("the state of optimizer shampoo; known are none, sgd, momentum")
    (near,) = lacking_state(replace(TRAINED, optimizer="adamm"), "training")
    assert near == "the state of optimizer adamm; did you mean 'adam'?"
    assert lacking_state(replace(TRAINED, optimizer="shampoo"), "inference") == ()  # it keeps nothing there
    assert lacking_state(TRAINED, "training") == ()
    assert footprint(optimizer="shampoo").memory([0]) == footprint().memory([0])  # the least that there can be


def test_layers_that_have_nothing_to_do_with_each_other_are_no_network() -> None:
    a, b = conv(), conv(C=128)
    assert parts([a, b, a, b], []) == [[0], [1], [2], [3]]  # no layer reads what the one before writes
    assert parts([a, a, a, b], []) == [[0, 1, 2, 3]]  # most do
    assert parts([a, b], [edge(1, 0)]) == [[0, 1]]
    assert parts([a, replace(a, N=8)], []) == [[0], [1]]
    assert parts([a, a, replace(b, N=8), replace(b, N=8)], [edge(1, 0), edge(3, 2)]) == [
        [0, 1],
        [2, 3],
    ]
