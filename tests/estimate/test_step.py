"""The whole step: what operations cost, eager and compiled, under autocast, and on a slow host."""

from typing import Any

import pytest
from msgspec.structs import replace

from convlint.estimate import time_us
from convlint.estimate.host import is_autocast
from convlint.estimate.step import Steps, step_of
from convlint.gpus.gpu import load_gpu
from convlint.model.estimates import OperationEstimate, StepEstimate
from convlint.model.layer import ConvLayer, Dtype, Layout, Mode, with_output
from convlint.model.network import BATCH_NORMS, SPLITS, Edge, Network, Operation, Work, WorkKind
from convlint.model.runtime import Runtime, Version

N, C, SIZE = 64, 64, 56
ELEMENTS = N * C * SIZE * SIZE
EAGER = Runtime(framework="pytorch", mixed_precision=False)
A100 = load_gpu("a100")
BANDWIDTH = A100.dram_bytes_per_s * 1e-6  # bytes in a us


def conv(dtype: Dtype = Dtype.fp16) -> ConvLayer:
    return with_output(
        ConvLayer(name="c", N=N, C=C, H=SIZE, W=SIZE, K=C, R=3, S=3, PadH=1, PadW=1, PadH_end=1, PadW_end=1,
                  dtype=dtype, layout="NHWC")
    )  # fmt: skip


def work(kind: WorkKind, *reads: int, **fields: Any) -> Work:
    return Work(kind=kind, op=kind, reads=reads or (ELEMENTS,), **{"writes": ELEMENTS} | fields)


def network(*works: Work | tuple[Work, tuple[int, ...]], dtype: Dtype = Dtype.fp16) -> Network:
    """A convolution, and operations one after the other; or with the numbers of those that they read."""
    operations = [Operation(kind="input"), Operation(kind="conv", inputs=(0,), layer=0)]
    for each in works:
        own, inputs = each if isinstance(each, tuple) else (each, (len(operations) - 1,))
        operations.append(Operation(kind="identity", name=own.kind, inputs=inputs, work=own))
    return Network(path="n", layers=(conv(dtype),), operations=tuple(operations), whole=True)


def step(one: Network, runtime: Runtime = EAGER, mode: Mode = "inference", gpu: str = "a100") -> StepEstimate:
    chosen = load_gpu(gpu)
    us = sum(time_us(layer, chosen, runtime, mode) or 0.0 for layer in one.layers)
    found = step_of(Steps(one, one.layers, us, runtime, mode), chosen)
    assert found is not None
    return found


def kernels(one: StepEstimate) -> list[OperationEstimate]:
    """Those that are made; what is fused into another has none of its own."""
    return [each for each in one.operations if each is not None and each.kernels]


def of(one: Network, number: int, **how: Any) -> Any:
    found = step(one, **how).operations[number]
    assert found is not None
    return found


def test_a_kernel_takes_the_time_of_its_bytes() -> None:
    found = of(network(work("activation")), 2)
    assert found.bytes == 2 * 2 * ELEMENTS
    memory = found.bytes - 2 / 3 * 0.6 * (A100.l2_bytes or 0)  # much of what it reads is in L2, 3 times as fast
    assert found.time_us == pytest.approx(memory / (0.95 * BANDWIDTH) + 3, rel=0.01)  # and its start
    assert (found.part, found.kernels, found.flops) == ("pointwise", 1, 0)


def test_of_two_tensors_that_are_added_l2_has_the_latest() -> None:
    small = network(work("activation"), (work("add", ELEMENTS // 2, ELEMENTS // 2, writes=ELEMENTS // 2), (1, 2)))
    saved = ELEMENTS * 2 / 3  # half the elements, two bytes each
    assert of(small, 3).time_us == pytest.approx((3 * ELEMENTS - saved) / (0.95 * BANDWIDTH) + 3, rel=0.01)
    before_ampere = load_gpu("v100")
    found = step(small, gpu="v100").operations[3]
    assert found.time_us == pytest.approx(3 * ELEMENTS / (0.95 * 1e-6 * before_ampere.dram_bytes_per_s) + 3, rel=0.03)


@pytest.mark.parametrize(
    ("kind", "forward", "both"),
    [("activation", 2, 5), ("batch norm", 2, 8), ("layer norm", 2, 7), ("group norm", 3, 8), ("add", 2, 2),
     ("concat", 2, 4), ("softmax", 2, 5)],
)  # fmt: skip
def test_training_reads_and_writes_again_on_the_way_back(kind: WorkKind, forward: int, both: int) -> None:
    """Counted in tensors of one size; a batch norm in training reads its input once more for the statistics."""
    one = network(work(kind))
    assert of(one, 2).bytes == forward * 2 * ELEMENTS
    assert of(one, 2, mode="training").bytes == both * 2 * ELEMENTS


def test_a_max_pool_writes_where_the_maxima_were() -> None:
    quarter = ELEMENTS // 4
    pool = network(work("max pool", writes=quarter))
    assert of(pool, 2).bytes == 2 * (ELEMENTS + quarter) + 8 * quarter
    assert of(pool, 2, runtime=Runtime(framework="tensorflow")).bytes == 2 * (ELEMENTS + quarter)


def test_autocast_runs_its_list_in_32_bits_between_casts() -> None:
    norm, act = work("layer norm", in_32_bits=True), work("activation")
    plain, cast = (of(network(norm, act), 2, runtime=replace(EAGER, mixed_precision=on)) for on in (False, True))
    assert plain.bytes == 2 * 2 * ELEMENTS
    assert cast.bytes == 2 * 4 * ELEMENTS + 6 * ELEMENTS
    after = of(network(norm, act), 3, runtime=replace(EAGER, mixed_precision=True))
    assert after.bytes == 2 * 4 * ELEMENTS  # what follows keeps the 32 bits


def test_a_parameter_of_fp32_makes_what_follows_fp32() -> None:
    """ConvNeXt's layer scale: what arrives in 16 bits is read by the same kernel, whose gradient is cast back."""
    scale, add, act = work("multiply", in_32_bits=True), work("add", ELEMENTS), work("activation")
    on = replace(EAGER, mixed_precision=True)
    assert of(network(scale, add), 2, runtime=on).kernels == 1
    assert of(network(scale, add, act), 4, runtime=on).bytes == 2 * 4 * ELEMENTS
    assert of(network(scale, add, act), 4).bytes == 2 * 2 * ELEMENTS
    trained = of(network(scale), 2, runtime=on, mode="training")
    assert trained.kernels == of(network(work("multiply")), 2, runtime=on, mode="training").kernels + 1
    fused = [
        step(network(scale, work("softmax", ELEMENTS)), replace(COMPILED, mixed_precision=each))
        for each in (True, False)
    ]
    assert [kernels(each)[0].bytes for each in fused] == [2 * ELEMENTS + 2 * ELEMENTS, 2 * 2 * ELEMENTS]
    # What a compiled network hands on in fp32 a library's kernel reads so, until it is cast.
    linear = work("linear", product=(1, N * SIZE * SIZE, C, C))
    handed_on = network(scale, work("concat", writes=ELEMENTS), (work("softmax"), (3,)), (linear, (3,)))
    widths = [of(handed_on, 4, runtime=replace(COMPILED, mixed_precision=each)).bytes for each in (True, False)]
    assert widths[0] > widths[1]


def test_a_compiler_casts_in_the_kernel_before() -> None:
    """HGNetV2's affine blocks, whose parameters of fp32 promote what the next convolution reads in 16 bits."""
    on, layers = Runtime(framework="pytorch", compile=True), (conv(), replace(conv(), name="d"))
    scale = Operation(kind="identity", name="scale", inputs=(1,), work=work("multiply", in_32_bits=True))
    act = Operation(kind="identity", name="act", inputs=(2,), work=work("activation"))
    sums = Operation(kind="identity", name="sums", inputs=(2,), work=work("reduce", writes=N * C))
    head = (Operation(kind="input"), Operation(kind="conv", inputs=(0,), layer=0), scale)

    def found(*rest: Operation, runtime: Runtime = on) -> StepEstimate:
        one = Network(path="n", layers=layers, operations=(*head, *rest), whole=True)
        return step(one, replace(runtime, mixed_precision=True))

    fused = found(act, Operation(kind="conv", inputs=(3,), layer=1))
    assert kernels(fused)[0].bytes == (2 + 2) * ELEMENTS
    weights = 2 * (C * C * 9 * 6 / (0.95 * BANDWIDTH) + 3)
    assert fused.parts["copy"] == pytest.approx(weights)
    assert found(act, Operation(kind="conv", inputs=(3,), layer=1), runtime=EAGER).parts["copy"] > 2 * weights
    # What Inductor reads itself, and what is given out, stays in 32 bits beside that.
    both = found(sums, Operation(kind="conv", inputs=(2,), layer=1), replace(sums, inputs=(2,)))
    assert kernels(both)[0].bytes == 2 * ELEMENTS + 2 * N * C + (4 + 2) * ELEMENTS
    given = found(replace(act, output=True), Operation(kind="conv", inputs=(3,), layer=1))
    assert kernels(given)[0].bytes == (2 + 4 + 2) * ELEMENTS


def test_a_layer_norm_takes_its_rows_on_hopper_however_fast_memory_is() -> None:
    """96 channels: 401,408 rows took 0.66 ms forward on H200, whose memory would need 0.07; RTX 4090 shows no rows."""
    rows, on = N * SIZE * SIZE, replace(EAGER, mixed_precision=True)
    narrow, wide = (
        of(network(work("layer norm", weights=2 * width, in_32_bits=True)), 2, runtime=on, gpu="h200")
        for width in (C, 4096)
    )
    assert narrow.time_us > rows * 380 / (132 * 1980) > 2 * wide.time_us
    old = replace(on, framework_version=Version("2.7"))
    trained = [
        of(network(work("layer norm", weights=2 * C, in_32_bits=True)), 2, runtime=each, mode="training", gpu="h200")
        for each in (on, old)
    ]
    assert trained[1].time_us > 2 * trained[0].time_us > 3 * narrow.time_us
    half = network(work("layer norm", weights=2 * C))
    assert of(half, 2, gpu="h200").time_us > rows * 380 / (132 * 1980)
    assert of(half, 2, gpu="rtx-4090").time_us < rows * 380 / (128 * 2520) / 2


@pytest.mark.parametrize("runtime", [EAGER, replace(EAGER, compile=True)])
@pytest.mark.parametrize("kind", ["layer norm", "group norm", "batch norm"])
def test_a_norm_behind_wider_layers_is_that_of_the_wider_network(kind: WorkKind, runtime: Runtime) -> None:
    """It has as many rows and groups as before, with more elements in each."""

    def normed(channels: int) -> Network:
        plain = network(work(kind, ELEMENTS * channels // C, writes=ELEMENTS * channels // C, weights=2 * channels))
        norm = replace(plain.operations[2], C=channels, H=SIZE, W=SIZE, groups=4 if kind == "group norm" else 1)
        layers = (replace(plain.layers[0], K=channels),)
        return replace(plain, layers=layers, operations=(*plain.operations[:2], norm))

    narrow, wide = normed(8), normed(64)
    for mode in ("inference", "training"):
        changed, made = (
            step_of(Steps(each, wide.layers, 100.0, runtime, mode), load_gpu("h200")) for each in (narrow, wide)
        )
        assert changed is not None
        assert made is not None
        assert changed.parts["normalisation"] == pytest.approx(made.parts["normalisation"], rel=1e-3)


def test_cudnns_batch_norm_in_nchw_gives_a_channel_to_one_block() -> None:
    """16 channels of 802,816 elements took as long as 64 on H100, forward and backward: 1.6 ms in fp32."""
    elements = 802_816

    def norm(channels: int, layout: Layout, dtype: Dtype = Dtype.fp32, mode: Mode = "training") -> float:
        one = network(work("batch norm", channels * elements, writes=channels * elements, weights=2 * channels))
        one = replace(one, layers=(replace(one.layers[0], layout=layout, dtype=dtype),))
        return of(one, 2, mode=mode, gpu="h100-sxm").time_us

    assert norm(16, "NCHW") == pytest.approx(norm(64, "NCHW"), rel=0.01)
    assert norm(16, "NCHW") == pytest.approx(1600, rel=0.1)
    assert norm(16, "NHWC") < norm(64, "NHWC") / 3 < norm(64, "NCHW") / 3
    held = network(work("batch norm", 64 * 12_544, writes=64 * 12_544, weights=128))  # on chip: nothing of the kind
    assert of(held, 2, mode="training", gpu="h100-sxm").time_us < 30
    wider = network(work("batch norm", 64 * elements, writes=64 * elements, weights=128))
    wider = replace(wider, layers=(with_output(replace(wider.layers[0], K=4 * C, layout="NCHW", dtype=Dtype.fp32)),))
    fourfold = of(wider, 2, mode="training", gpu="h100-sxm").time_us  # 256 channels, for which memory is the bound
    assert fourfold < 2.5 * norm(64, "NCHW")


@pytest.mark.parametrize(
    ("gpu", "dtype", "as_if"),
    [("a100", Dtype.fp16, "NHWC"), ("a100", Dtype.fp32, "NHWC"), ("v100", Dtype.fp32, "NCHW"),
     ("gtx-1080-ti", Dtype.fp32, "NCHW")],
)  # fmt: skip
def test_a_norm_behind_layers_of_no_stated_layout_has_the_layout_that_they_are_priced_in(
    gpu: str, dtype: Dtype, as_if: Layout
) -> None:
    elements = 802_816
    one = network(work("batch norm", 16 * elements, writes=16 * elements, weights=32))
    auto, stated = (
        of(replace(one, layers=(replace(conv(dtype), layout=layout),)), 2, mode="training", gpu=gpu).time_us
        for layout in ("auto", as_if)
    )
    assert auto == stated


@pytest.mark.parametrize("dtype", list(Dtype))
@pytest.mark.parametrize("mode", ["inference", "training"])
@pytest.mark.parametrize("weights", [2 * C, 0])
def test_batch_norms_of_every_dtype_have_a_time(dtype: Dtype, mode: Mode, weights: int) -> None:
    one = network(work("batch norm", weights=weights))
    one = replace(one, layers=(replace(one.layers[0], layout="NCHW", dtype=dtype),))
    found = step_of(Steps(one, one.layers, 1.0, replace(EAGER, mixed_precision=None), mode), load_gpu("h100-sxm"))
    assert found is not None
    assert found.parts["normalisation"] > 0


@pytest.mark.parametrize(("gpu", "faster"), [("h100-sxm", False), ("a100", False), ("rtx-3090", True), ("v100", True)])
def test_where_cudnns_batch_norm_in_nchw_is_faster_in_16_bits(gpu: str, faster: bool) -> None:
    """Autocast's ResNet-50 stood at 0.76 to 0.89 of five published steps of A100 and H100."""
    elements = 802_816
    one = network(work("batch norm", 16 * elements, writes=16 * elements, weights=32))
    autocast = replace(EAGER, mixed_precision=True)
    full, half = (
        of(replace(one, layers=(replace(conv(dtype), layout="NCHW"),)), 2, runtime=autocast, mode="training", gpu=gpu)
        for dtype in (Dtype.fp32, Dtype.fp16)
    )
    assert (half.time_us < 0.9 * full.time_us) is faster


@pytest.mark.parametrize(
    ("images", "size", "dims", "dtype", "forward", "back"),
    [(2, 128, 3, Dtype.fp16, 1430, 3200), (2, 128, 3, Dtype.bf16, 2630, 3900), (64, 175, 2, Dtype.fp16, 320, 370)],
)
def test_an_instance_norm_gives_each_channel_of_an_image_to_a_block(
    images: int, size: int, dims: int, dtype: Dtype, forward: int, back: int
) -> None:
    """Timed in U-Nets on H200, PyTorch 2.11, in us: 64 blocks of a volume leave half of the SMs idle."""
    elements = images * 32 * size**dims
    one = network(work("group norm", elements, writes=elements, weights=64))
    norm = replace(one.operations[2], C=32, D=size if dims == 3 else 1, H=size, W=size)
    norm = replace(norm, work=replace(norm.work, op="instance_norm"))
    layers = (with_output(replace(one.layers[0], N=images, dtype=dtype, layout="NCHW")),)
    one = replace(one, layers=layers, operations=(*one.operations[:2], norm))
    how: dict[str, Any] = {"runtime": replace(EAGER, mixed_precision=True), "gpu": "h200-sxm"}
    way, both = (of(one, 2, mode=mode, **how).time_us for mode in ("inference", "training"))
    assert 0.75 < way / forward < 1.3
    assert 0.75 < (both - way) / back < 1.3
    elsewhere = Runtime(framework="tensorflow", mixed_precision=True)  # whose kernels take the time of their bytes
    assert of(one, 2, mode="training", **how | {"runtime": elsewhere}).time_us < both / 2
    plain = replace(one, operations=(*one.operations[:2], replace(norm, work=replace(norm.work, weights=0))))
    # Without weights the kernels are PyTorch's, as they are in bf16.
    in_bf16 = replace(one, layers=(replace(layers[0], dtype=Dtype.bf16),))
    own, as_own = (of(each, 2, mode="training", **how).time_us for each in (plain, in_bf16))
    assert own == pytest.approx(as_own, rel=0.01)
    assert (own == both) == (dtype == Dtype.bf16)


def test_a_model_of_16_bits_has_pytorchs_own_batch_norms() -> None:
    """cuDNN wants weights in fp32 (_select_batch_norm_backend), which autocast leaves them: ResNet-50's on H100."""
    norm = network(work("batch norm", weights=2 * C))
    half, cast = (
        of(norm, 2, runtime=replace(EAGER, mixed_precision=on), mode="training", gpu="h100-sxm") for on in (False, True)
    )
    assert half.time_us > 1.2 * cast.time_us


def test_cublas_splits_the_sum_of_a_small_product_on_cuda_cores() -> None:
    """A classifier of one image reads its weights once (4.5 us on H100); ConvNeXt-T's last stage took 36 us a layer."""

    def product(M: int, columns: int, depth: int, mode: Mode = "inference") -> float:
        one = network(work("linear", weights=columns * depth, product=(1, M, columns, depth)))
        one = replace(one, layers=(replace(one.layers[0], N=1, dtype=Dtype.fp32),))
        return of(one, 2, mode=mode, gpu="h100-sxm").time_us

    assert product(1, 1000, 2048) < 10
    assert 15 < product(49, 768, 3072) < 40
    assert product(49, 768, 3072, "training") < 200
    large = 2 * 50_176 * 768 * 192 / product(50_176, 768, 192) / 1e6
    assert 35 < large < 50  # TFLOP/s
    few, more = product(16_000, 10, 512), product(17_000, 10, 512)  # of the second, tiles fill the SMs
    memory = 1e6 * 4 * 512 * 16_000 / load_gpu("h100-sxm").dram_bytes_per_s
    assert memory < few < 1.5 * more
    assert memory < more


def test_gradients_of_a_bias_are_summed_up() -> None:
    """2 elements per clock and SM; a product without a bias has none."""
    rows = N * SIZE * SIZE
    plain = work("linear", weights=C * C, product=(1, rows, C, C))
    found = [of(network(one), 2, mode=mode, gpu="h200") for mode in ("training", "inference")
             for one in (plain, replace(plain, weights=C * C + C))]  # fmt: skip
    assert found[1].time_us - found[0].time_us > ELEMENTS / 2 / (132 * 1980)
    assert found[3].time_us == pytest.approx(found[2].time_us, rel=0.01)


def test_autocast_casts_weights_in_every_step() -> None:
    plain, cast = (step(network(), replace(EAGER, mixed_precision=on)) for on in (False, True))
    assert plain.parts.get("copy", 0.0) == 0
    assert cast.parts["copy"] > 0


@pytest.mark.parametrize(
    ("dtype", "stated", "mode", "autocast"),
    [(Dtype.fp16, None, "training", True), (Dtype.fp16, None, "inference", False),
     (Dtype.fp16, True, "inference", True), (Dtype.bf16, False, "training", False),
     (Dtype.fp32, True, "training", False)],
)  # fmt: skip
def test_who_casts(dtype: Dtype, stated: bool | None, mode: Mode, autocast: bool) -> None:
    assert is_autocast([conv(dtype)], Runtime(framework="pytorch", mixed_precision=stated), mode) is autocast
    assert not is_autocast([conv(dtype)], Runtime(framework="tensorrt", mixed_precision=stated), mode)


def test_a_linear_takes_what_a_pointwise_convolution_takes() -> None:
    rows = N * SIZE * SIZE
    linear = work("linear", weights=4 * C * C, writes=4 * ELEMENTS, product=(1, rows, 4 * C, C))
    same = with_output(replace(conv(), N=rows, H=1, W=1, K=4 * C, R=1, S=1, PadH=0, PadW=0, PadH_end=0, PadW_end=0))
    for mode in ("inference", "training"):
        found = of(network(linear), 2, mode=mode)
        assert found.time_us == pytest.approx(time_us(same, A100, EAGER, mode), rel=0.01)  # type: ignore[arg-type]
        assert found.flops == (1 if mode == "inference" else 3) * 2 * rows * 4 * C * C


def test_products_in_32_bits_use_tf32_where_the_framework_lets_them() -> None:
    """PyTorch allows it to convolutions alone; the default of JAX takes it for both."""
    rows = N * SIZE * SIZE
    one = network(work("linear", weights=4 * C * C, writes=4 * ELEMENTS, product=(1, rows, 4 * C, C)), dtype=Dtype.fp32)
    pytorch, jax = (of(one, 2, runtime=Runtime(framework=each)).time_us for each in ("pytorch", "jax"))
    assert pytorch > 2 * jax


@pytest.mark.parametrize("gpu", ["t4", "a100", "h100"])
def test_products_in_8_bits_take_no_longer_than_in_16(gpu: str) -> None:
    rows = N * SIZE * SIZE
    linear = work("linear", weights=4 * C * C, writes=4 * ELEMENTS, product=(1, rows, 4 * C, C))
    runtime = Runtime(framework="tensorrt")
    eight, sixteen = (
        of(network(linear, dtype=dtype), 2, gpu=gpu, runtime=runtime) for dtype in (Dtype.int8, Dtype.fp16)
    )
    assert eight.time_us < sixteen.time_us


@pytest.mark.parametrize(("op", "kind", "passes"), [("addcmul", "add", 7), ("linalg_vector_norm", "reduce", 6)])
def test_what_autograd_does_in_several_kernels_moves_the_bytes_of_all(op: str, kind: WorkKind, passes: int) -> None:
    """The global response norm of ConvNeXtV2."""
    one = network(work(kind))
    named = replace(one.operations[2], work=replace(one.operations[2].work, op=op))
    one = replace(one, operations=(*one.operations[:2], named))
    way, both = (of(one, 2, mode=mode).bytes for mode in ("inference", "training"))
    assert both - way >= passes * 2 * ELEMENTS


def test_a_group_norm_takes_its_elements_however_fast_memory_is() -> None:
    one = network(work("group norm", weights=2 * C, in_32_bits=True))
    on = replace(EAGER, mixed_precision=True)
    here, elsewhere = (
        of(one, 2, runtime=runtime, mode="training", gpu="h200-sxm")
        for runtime in (on, replace(on, framework="tensorflow"))
    )
    assert here.time_us > ELEMENTS * (1.6 + 3.7) / (132 * 1980)
    assert elsewhere.time_us < here.time_us / 1.8
    operations = (*one.operations[:2], replace(one.operations[2], C=C, H=SIZE, W=SIZE, groups=2))
    few = of(replace(one, operations=operations), 2, runtime=on, gpu="h200-sxm")  # 128 blocks for 132 SMs
    assert few.time_us > 1.3 * of(one, 2, runtime=on, gpu="h200-sxm").time_us
    compiled = of(one, 2, runtime=replace(on, compile=True), gpu="h200-sxm")
    assert compiled.time_us > ELEMENTS * 1.9 / (132 * 1980)


def test_attention_takes_the_time_of_its_products() -> None:
    heads, length, width = N * 8, 1024, 64
    found = of(network(work("attention", 3 * ELEMENTS, product=(heads, length, length, width))), 2)
    assert found.flops == 4 * heads * length * length * width
    assert 0.4 < found.flops / found.time_us * 1e-6 / 312 < 0.75  # of A100's TFLOP/s, as FlashAttention-2 reaches
    assert found.part == "attention"


@pytest.mark.parametrize("kind", ["attention", "product"])
def test_products_of_activations_have_gradients_whatever_learns(kind: WorkKind) -> None:
    """Readers call what has no weights frozen, too."""
    one = network(work(kind, 3 * ELEMENTS, product=(N * 8, 1024, 1024, 64)))
    *others, last = one.operations
    frozen = replace(one, operations=(*others, replace(last, frozen=True)))
    assert step(frozen, mode="training") == step(one, mode="training")
    assert of(frozen, 2, mode="training").time_us > 2.9 * of(frozen, 2).time_us


@pytest.mark.parametrize("runtime", [EAGER, replace(EAGER, compile=True)])
def test_behind_a_frozen_layer_there_is_no_way_back(runtime: Runtime) -> None:
    one = network(work("batch norm", weights=2 * C), work("activation"), work("add", ELEMENTS, ELEMENTS))
    operations = tuple(replace(operation, frozen=True) for operation in one.operations)
    frozen = replace(one, operations=operations, layers=(replace(one.layers[0], frozen=True, first=True),))
    trained, forward, inference = (
        step(which, runtime, mode) for which, mode in ((one, "training"), (frozen, "training"), (one, "inference"))
    )
    assert forward.host_us == inference.host_us
    # It still takes the statistics of the batch.
    assert inference.beside_us < forward.beside_us < 0.6 * trained.beside_us
    assert forward.parts["convolution"] == inference.parts["convolution"]
    with_adam = step(frozen, replace(runtime, optimizer="adam"), "training")
    assert "optimizer" not in with_adam.parts


def test_a_frozen_product_hands_its_gradient_on() -> None:
    product = Work(kind="linear", op="linear", reads=(4096 * 512,), writes=4096 * 512, weights=512 * 512,
                   product=(1, 4096, 512, 512))  # fmt: skip
    one = network(product)
    frozen = replace(one, operations=(*one.operations[:-1], replace(one.operations[-1], frozen=True)))
    forward, learns, hands_on = (
        step(which, EAGER, mode).parts["linear"]
        for which, mode in ((one, "inference"), (one, "training"), (frozen, "training"))
    )
    assert forward < hands_on < learns
    assert hands_on / forward == pytest.approx(2, rel=0.2)


def test_gradients_of_what_several_read_are_added() -> None:
    once = network(work("activation"), work("activation"))
    twice = network(work("activation"), work("activation"), (work("add", ELEMENTS, ELEMENTS), (2, 3)))
    extra = step(twice, mode="training").gpu_us - step(once, mode="training").gpu_us
    alone = of(twice, 4, mode="training").time_us
    assert extra == pytest.approx(alone + 3 * 2 * ELEMENTS / (0.95 * BANDWIDTH), rel=0.05)


@pytest.mark.parametrize("source", [1, 2])
def test_gradients_of_what_several_read_of_a_view_are_added(source: int) -> None:
    """Of a convolution, or of an activation."""
    one = network(work("activation"))
    view = Operation(kind="reshape", name="view", inputs=(source,))
    acts = [Operation(kind="identity", inputs=(inputs,), work=work("activation")) for inputs in (3, 3)]
    few, twice = (
        step(replace(one, operations=(*one.operations, view, *chosen)), mode="training").parts["pointwise"]
        for chosen in (acts[:1], acts)
    )
    alone = step(network(work("activation")), mode="training").parts["pointwise"]
    added = 3 * 2 * ELEMENTS / (0.95 * BANDWIDTH) + 3
    assert twice - few == pytest.approx(alone + added, rel=0.05)


def parted(op: str, count: int) -> Network:
    """A convolution whose tensor views take apart, each of which an activation reads."""
    part = Work(kind="copy", op=op, reads=(ELEMENTS,), writes=ELEMENTS // count)
    one = network()
    operations = list(one.operations)
    views = [Operation(kind="reshape", name=f"{op}_{number}", inputs=(1,), part=part) for number in range(count)]
    acts = [Operation(kind="identity", inputs=(2 + number,), work=work("activation", part.writes, writes=part.writes))
            for number in range(count)]  # fmt: skip
    return replace(one, operations=(*operations, *views, *acts))


def test_the_gradient_of_a_slice_is_copied_into_zeros() -> None:
    """Of each half: zeros as large as the whole, a copy of the half; and the sum of both."""
    sliced, split = (step(parted(op, 2), mode="training").parts for op in ("slice", "split"))
    tensor_us = 2 * ELEMENTS / BANDWIDTH
    assert sliced["copy"] - 4 * 3 == pytest.approx((2 / 0.95 + 2 / 0.65) * tensor_us, rel=0.01)
    assert sliced["pointwise"] - split["pointwise"] - 3 == pytest.approx(3 / 0.95 * tensor_us, rel=0.01)


@pytest.mark.parametrize("op", sorted(SPLITS))
@pytest.mark.parametrize("count", [2, 4])
def test_the_gradients_of_a_split_are_joined_in_one_kernel(op: str, count: int) -> None:
    found = step(parted(op, count), mode="training")
    assert found.parts["copy"] - 3 == pytest.approx(2 / 0.65 * 2 * ELEMENTS / BANDWIDTH, rel=0.01)
    sums = step(parted("slice", count), mode="training").parts["pointwise"] - found.parts["pointwise"]
    assert sums == pytest.approx((count - 1) * (3 * 2 * ELEMENTS / (0.95 * BANDWIDTH) + 3), rel=0.01)


def test_the_parts_of_tensor_split_are_slices_to_autograd() -> None:
    sliced, split = (step(parted(op, 2), mode="training") for op in ("slice", "tensor_split"))
    assert split.parts == sliced.parts


@pytest.mark.parametrize(
    ("runtime", "mode"),
    [(EAGER, "inference"), (Runtime(framework="tensorflow"), "training"),
     (replace(EAGER, compile=True), "training")],
)  # fmt: skip
def test_a_part_is_no_kernel_elsewhere(runtime: Runtime, mode: Mode) -> None:
    assert step(parted("slice", 2), mode=mode, runtime=runtime).parts.get("copy", 0.0) == 0.0


@pytest.mark.parametrize(
    ("sizes", "layout", "mode", "dtype", "copies"),
    [
        ((32, 56, 56), "NHWC", "inference", Dtype.fp16, 1),
        ((32, 56, 56), "NHWC", "training", Dtype.fp16, 2),  # once more for the gradient of the weights
        ((32, 56, 56), "NCHW", "training", Dtype.fp16, 2),
        ((64, 28, 56), "NHWC", "inference", Dtype.fp16, 1),
        ((64, 56, 56), "NHWC", "inference", Dtype.fp16, 0),  # some of the images
        ((32, 56, 56), "NHWC", "inference", Dtype.fp32, 0),  # cast from what arrives, into a dense tensor
    ],
)
def test_a_convolution_reads_a_copy_of_a_part_of_each_image(
    sizes: tuple[int, int, int], layout: Layout, mode: Mode, dtype: Dtype, copies: int
) -> None:
    part = Work(kind="copy", op="slice", reads=(ELEMENTS,), writes=ELEMENTS // 2)
    channels, height, width = sizes
    inner = replace(with_output(replace(conv(), C=32, H=height, W=width)), layout=layout)
    one = network(dtype=dtype)
    whole = replace(one.operations[1], C=C, H=SIZE, W=SIZE)
    view = Operation(kind="reshape", name="slice", inputs=(1,), C=channels, H=height, W=width, part=part)
    layers = replace(one.layers[0], layout=layout), inner
    runtime = replace(EAGER, mixed_precision=dtype == Dtype.fp32)
    of_part, of_input = (
        step(replace(one, layers=layers, operations=(one.operations[0], whole, view, last)), runtime, mode)
        for last in (Operation(kind="conv", inputs=(source,), layer=1) for source in (2, 0))
    )
    copied = of_part.parts.get("copy", 0.0) - of_input.parts.get("copy", 0.0)
    moved_us = 2 * 2 * N * 32 * height * width / BANDWIDTH / (0.65 if layout == "NHWC" else 0.95)
    assert copied == pytest.approx(copies * (moved_us + 3), rel=0.01)


@pytest.mark.parametrize(
    ("sizes", "images", "layout", "copies"),
    [
        ([(32, 56, 56)], 1, "NCHW", 0),  # the first channels of one image lie together
        ([(32, 56, 56)], 1, "NHWC", 1),
        ([(64, 28, 56)], 1, "NCHW", 1),
        ([(64, 28, 56)], 1, "NHWC", 0),  # so do its first rows
        ([(64, 56, 28)], 1, "NHWC", 1),
        ([(64, 28, 56)], 2, "NHWC", 1),
        ([(32, 56, 56), (32, 56, 56)], N // 2, "NCHW", 1),  # some images of that
        ([(32, 56, 56), (64, 28, 56)], N, "NCHW", 1),
    ],
)
def test_a_part_lies_together_where_nothing_is_outside_of_it(
    sizes: list[tuple[int, int, int]], images: int, layout: Layout, copies: int
) -> None:
    assert copies_of(sizes, images, layout, seen_as_parts=True) == copies


def test_a_view_of_a_part_has_its_gaps() -> None:
    assert copies_of([(32, 56, 56), (64, 28, 56)], N, "NCHW", seen_as_parts=False) == 1


def test_a_copy_into_another_layout_makes_a_part_dense() -> None:
    assert copies_of([(32, 56, 56)], N, "NHWC", seen_as_parts=True, copies_input=True) == 0


def copies_of(
    sizes: list[tuple[int, int, int]], images: int, layout: Layout, *, seen_as_parts: bool, **of_layer: Any
) -> float:
    """How many copies a convolution makes in inference of what it reads, behind views of those channels and sizes.

    The first is of a part, the others are too if they are `seen_as_parts`.
    """
    one = network()
    operations = [one.operations[0], replace(one.operations[1], C=C, H=SIZE, W=SIZE)]
    for number, (channels, height, width) in enumerate(sizes):
        part = Work(kind="copy", op="slice", reads=(ELEMENTS,), writes=ELEMENTS // 2)
        operations.append(
            Operation(kind="reshape", name="view", inputs=(1 + number,), C=channels, H=height, W=width,
                      part=part if seen_as_parts or not number else None)
        )  # fmt: skip
    channels, height, width = sizes[-1]
    inner = replace(with_output(replace(conv(), N=images, C=channels, H=height, W=width)), layout=layout, **of_layer)
    behind = (*operations, Operation(kind="conv", inputs=(len(operations) - 1,), layer=1))
    layers = replace(one.layers[0], layout=layout), inner
    found = step(replace(one, layers=layers, operations=behind)).parts.get("copy", 0.0)
    moved_us = 2 * 2 * images * channels * height * width / BANDWIDTH / (0.65 if layout == "NHWC" else 0.95)
    return round(found / (moved_us + 3), 2)


def test_the_optimizer_moves_its_states() -> None:
    parts = {
        name: step(network(), replace(EAGER, optimizer=name), "training").parts.get("optimizer", 0.0)
        for name in (None, "none", "sgd", "momentum", "adamw")
    }
    assert parts[None] == parts["none"] == 0
    assert 0 < parts["sgd"] < parts["momentum"] < parts["adamw"]
    assert "optimizer" not in step(network(), replace(EAGER, optimizer="sgd")).parts  # inference has none


# --- compiled

COMPILED = replace(EAGER, compile=True)


def test_a_chain_of_pointwise_operations_is_one_kernel() -> None:
    chain = network(work("batch norm"), work("activation"), work("multiply"))
    found = step(chain, COMPILED)
    members = [each for each in found.operations if each is not None]
    assert [(each.bytes, each.kernels) for each in members] == [(2 * 2 * ELEMENTS, 1), (0, 0), (0, 0)]
    assert members[0].part == "normalisation"
    assert found.gpu_us < step(chain).gpu_us


def test_what_a_kernel_of_a_library_reads_is_written() -> None:
    layers = (conv(), replace(conv(), name="d"))
    operations = (
        Operation(kind="input"),
        Operation(kind="conv", inputs=(0,), layer=0),
        Operation(kind="identity", inputs=(1,), work=work("activation")),
        Operation(kind="conv", inputs=(2,), layer=1),
        Operation(kind="add", inputs=(3, 2), work=work("add", ELEMENTS, ELEMENTS)),
    )
    one = Network(path="n", layers=layers, operations=operations, whole=True)
    found = kernels(step(one, COMPILED))
    assert [each.bytes for each in found] == [2 * 2 * ELEMENTS, 3 * 2 * ELEMENTS]  # two kernels, a convolution between


def test_a_reduction_ends_its_kernel_and_casts_vanish() -> None:
    few = N * C
    gate = network(work("activation"), work("reduce", writes=few), (work("multiply", ELEMENTS, few), (2, 3)))
    found = kernels(step(gate, replace(COMPILED, mixed_precision=True)))
    assert [each.bytes for each in found] == [2 * (2 * ELEMENTS + few), 2 * (2 * ELEMENTS + few)]
    norm = network(work("layer norm", in_32_bits=True), work("activation"))
    (kernel,) = kernels(step(norm, replace(COMPILED, mixed_precision=True)))
    assert kernel.bytes == 2 * 2 * ELEMENTS


@pytest.mark.parametrize("framework", ["tensorrt", "jax"])
def test_only_inductor_moves_more_for_a_silu(framework: str) -> None:
    few = N * C
    first = [
        kernels(
            step(network(replace(work("activation"), op=op), work("reduce", writes=few)), Runtime(framework=framework))
        )
        for op in ("silu", "relu")
    ]
    assert first[0] == first[1]


@pytest.mark.parametrize(("op", "more"), [("silu", 8), ("swish", 8), ("relu", 0)])
def test_a_silu_whose_sum_is_taken_moves_as_much_as_in_32_bits(op: str, more: int) -> None:
    few, act = N * C, replace(work("activation"), op=op)
    alone = kernels(step(network(act), COMPILED))
    assert [each.bytes for each in alone] == [2 * 2 * ELEMENTS]
    summed = network(act, work("reduce", writes=few), (work("multiply", ELEMENTS, few), (2, 3)))
    first = kernels(step(summed, COMPILED))[0]
    assert first.bytes == 2 * (2 * ELEMENTS + few) + more * ELEMENTS


def frozen_norm(*, learns: bool) -> Network:
    one = network(work("frozen norm", weights=2 * C))
    return replace(one, operations=(*one.operations[:2], replace(one.operations[2], frozen=not learns)))


def test_a_norm_of_stored_statistics_reads_what_its_gradients_need() -> None:
    """In tensors of one size: once each way; if its weights learn, sums read two more (batch_norm_backward)."""
    for learns, both in (False, 2 + 2), (True, 2 + 4):
        found = of(frozen_norm(learns=learns), 2, mode="training")
        assert (found.bytes, found.part) == (both * 2 * ELEMENTS, "normalisation")
    ours, plain = (
        replace(one, layers=(replace(conv(), layout="NCHW"),))
        for one in (frozen_norm(learns=False), network(work("batch norm")))
    )
    times = [of(one, 2, mode="training").time_us for one in (ours, plain)]
    assert times[0] < times[1] / 2
    compiled = [
        kernels(step(one, COMPILED, "training"))[0] for one in (frozen_norm(learns=False), network(work("add")))
    ]
    assert compiled[0] == replace(compiled[1], part="normalisation")


@pytest.mark.parametrize(
    ("layout", "learns", "us"), [("NCHW", False, 39), ("NCHW", True, 374), ("NHWC", False, 149), ("NHWC", True, 177)]
)
def test_the_way_back_of_a_norm_of_stored_statistics(layout: Layout, us: float, *, learns: bool) -> None:
    """Timed on H200, PyTorch 2.11: 64 images of 64 channels of 56x56 under fp16 autocast.

    In NHWC ResNet-50's, with the copies of their gradients, which come out in NCHW.
    """
    one = replace(frozen_norm(learns=learns), layers=(replace(conv(), layout=layout),))
    how: dict[str, Any] = {"runtime": replace(EAGER, mixed_precision=True), "gpu": "h200-sxm"}
    back = of(one, 2, mode="training", **how).time_us - of(one, 2, **how).time_us
    assert 0.4 < back / us < 1.3  # sums of few channels leave SMs idle


@pytest.mark.parametrize("gpu", ["a100", "h100-sxm"])
@pytest.mark.parametrize("runtime", [EAGER, COMPILED, Runtime(framework="tensorrt")])
def test_in_inference_all_batch_norms_have_stored_statistics(gpu: str, runtime: Runtime) -> None:
    frozen, plain = (step(network(work(kind, weights=2 * C)), runtime, gpu=gpu) for kind in BATCH_NORMS)
    assert frozen == plain


def test_a_batch_norm_in_training_reads_its_input_first_for_the_statistics() -> None:
    chain = network(work("batch norm"), work("activation"))
    (kernel,) = kernels(step(chain, COMPILED, "training"))
    assert kernel.bytes == (3 + 5) * 2 * ELEMENTS


def test_compiled_statistics_are_read_slowly_where_memory_is_fast() -> None:
    """At most 9 bytes per clock and SM, half of what an H200 streams; on a GPU of slow memory that is no bound."""
    chain = network(work("batch norm"), work("activation"))
    for gpu, slower in ("h200", True), ("rtx-4090", False):
        (kernel,) = kernels(step(chain, COMPILED, "training", gpu))
        streamed_us = kernel.bytes / load_gpu(gpu).dram_bytes_per_s * 1e6 / 0.95
        assert (kernel.time_us > 1.15 * streamed_us) is slower


@pytest.mark.parametrize(("framework", "more"), [("pytorch", 2), ("jax", 0)])
def test_compiled_gradients_of_what_several_read_are_added_in_a_tensor_of_their_own(framework: str, more: int) -> None:
    """One is read beside the other, and their sum is written; two products count as two that read it."""
    linear = work("linear", product=(1, N * SIZE * SIZE, C, C))
    runtime = Runtime(framework=framework, compile=framework == "pytorch", mixed_precision=False)
    once, twice = (
        kernels(step(network(work("softmax"), *readers), runtime, "training"))[0].bytes
        for readers in ([(linear, (2,))], [(linear, (2,)), (linear, (2,))])
    )
    assert twice - once == more * 2 * ELEMENTS


def test_compiled_norms_of_rows_and_gelu_take_their_clocks_however_fast_memory_is() -> None:
    clocks_us = 132 * 1980
    norm = work("layer norm", weights=2 * C)
    (found,) = kernels(step(network(norm), COMPILED, "inference", "h200"))
    assert found.time_us > N * SIZE * SIZE * 140 / clocks_us > 1.5 * 2 * 2 * ELEMENTS / 4.8e6
    gelu = replace(work("activation"), op="gelu")
    for runtime, least in (EAGER, 0.31), (COMPILED, 0.40):
        (plain,) = kernels(step(network(work("activation")), runtime, "inference", "h200"))
        (slow,) = kernels(step(network(gelu), runtime, "inference", "h200"))
        assert slow.time_us > max(plain.time_us * 1.2, ELEMENTS * least / clocks_us)


@pytest.mark.parametrize("compile_", [False, True])
def test_a_norm_by_mean_squares_has_as_many_rows(compile_: bool) -> None:
    plain, squares = work("layer norm", weights=2 * C, in_32_bits=True), work("layer norm", weights=C, in_32_bits=True)
    on = replace(EAGER, mixed_precision=True, compile=compile_)
    times = [of(network(each), 2, runtime=on, gpu="h200").time_us for each in (plain, replace(squares, op="rms_norm"))]
    assert times[0] == times[1]


def test_statistics_are_read_in_the_type_that_arrives() -> None:
    """A batch norm behind an fp32 layer scale reads fp32 twice, whatever it hands on."""
    scale, norm = work("multiply", in_32_bits=True), work("batch norm")
    (first, second) = kernels(step(network(scale, norm), replace(COMPILED, mixed_precision=True), "training"))
    assert second.bytes == (1 + 2 + 1 + 2) * 4 * ELEMENTS + (1 + 1) * 2 * ELEMENTS
    assert first.bytes < second.bytes


def test_engines_fold_what_works_element_by_element_into_the_convolution_before_it() -> None:
    for kind, free in ("batch norm", True), ("activation", True), ("softmax", False), ("layer norm", False):
        assert (of(network(work(kind)), 2, runtime=Runtime(framework="tensorrt")).kernels == 0) is free
    kept = of(network(work("activation")), 2, runtime=Runtime(framework="jax"), mode="training")
    assert kept.kernels > 0


@pytest.mark.parametrize("framework", ["tensorrt", "jax"])
def test_a_residual_that_an_engine_adds_is_read_by_the_kernel_of_the_convolution(framework: str) -> None:
    """What is left of batch norm, addition and activation is the read of what is added: no norm, and no kernel."""
    chain = network(work("batch norm"), (work("add", ELEMENTS, ELEMENTS), (2, 0)), work("activation"))
    found = step(chain, Runtime(framework=framework))
    assert not kernels(found)
    assert set(found.parts) == {"convolution", "pointwise"}
    added = found.operations[3]
    assert added is not None
    assert (added.part, added.bytes) == ("pointwise", 2 * ELEMENTS)
    assert added.time_us == pytest.approx(2 / 3 * 2 * ELEMENTS / (0.95 * BANDWIDTH), rel=0.5)


@pytest.mark.parametrize(
    ("copied", "itself", "size", "priced"),
    [
        (True, False, ELEMENTS, 0),
        (False, False, ELEMENTS, 1),
        (True, True, ELEMENTS, 1),
        (True, False, 4 * ELEMENTS, 1),
    ],
)
def test_a_copy_that_a_convolution_has_in_its_time_is_not_priced_again(
    copied: bool, itself: bool, size: int, priced: int
) -> None:
    """`itself`: the layer copies what arrives, whatever was copied before; another `size` is not what it reads."""
    one = network(work("copy", size, writes=size), work("activation"))
    reading = replace(conv(), layout="NCHW", copies_input=itself)
    one = replace(
        one,
        layers=(*one.layers, reading),
        operations=(*one.operations, Operation(kind="conv", inputs=(3,), layer=1)),
        edges=(Edge(consumer=1, producers=(0,), source="c", C=C, H=SIZE, W=SIZE, copied=copied),),
    )
    running = (one.layers[0], replace(reading, copies_input=True))
    found = step_of(Steps(one, running, 0.0, EAGER, "training"), A100)
    assert found is not None
    assert ("copy" in found.parts, found.operations[2] is not None) == (bool(priced), bool(priced))


# --- the host, what is unknown, other sizes


def test_the_slower_of_host_and_gpu_sets_the_pace() -> None:
    many = network(*[work("activation", 8, writes=8) for _ in range(200)])
    slow = step(many)
    assert slow.time_us == slow.host_us > slow.gpu_us
    assert slow.idle_us == pytest.approx(slow.time_us - slow.gpu_us)
    assert step(many, replace(EAGER, cuda_graphs=True)).host_us is None
    assert (step(many, COMPILED).host_us or 0.0) == pytest.approx(0.6 * slow.host_us)
    trained, compiled = (step(many, each, "training").host_us or 0.0 for each in (EAGER, COMPILED))
    assert trained - slow.host_us == pytest.approx(compiled - 0.6 * slow.host_us)  # the way back is no faster
    assert step(many, Runtime()).host_us is None


def test_what_is_unknown_is_counted_with_its_share_of_bytes() -> None:
    found = step(network(*[work("activation")] * 3, work("unknown")))
    assert found.unpriced == (5,)
    assert found.unpriced_share == pytest.approx(0.25)
    assert found.operations[5] is None


def test_with_much_unknown_there_is_no_step() -> None:
    one = network(*[work("activation")] * 2, work("unknown"))
    assert step_of(Steps(one, one.layers, 1.0, EAGER, "inference"), A100) is None


def test_wider_layers_widen_what_follows_and_a_batch_scales_all() -> None:
    one = network(work("activation"), work("linear", weights=C * 10, writes=N * 10, product=(1, N, 10, C)))
    now = step(one)
    for change, ratio in ({"K": 2 * C}, 2.0), ({"N": 2 * N}, 2.0):
        layers = tuple(with_output(replace(layer, **change)) for layer in one.layers)
        then = step_of(Steps(one, layers, 0.0, EAGER, "inference"), A100)
        before, after = now.operations[2], then.operations[2]
        assert after.bytes == ratio * before.bytes


def test_a_network_of_which_not_all_is_told_has_no_step() -> None:
    one = network(work("activation"))
    for other in (replace(one, whole=False), replace(one, layers=(replace(conv(), dtype=None),))):
        assert step_of(Steps(other, other.layers, 1.0, EAGER, "inference"), A100) is None
