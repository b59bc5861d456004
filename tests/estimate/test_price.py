"""The least of all ways to run a pass: which units and kernels stand beside each other."""

import pytest
from convolutions import A100, FIRST, RUNTIME, conv, fprop
from msgspec.structs import replace

from convlint.estimate import estimate_layer, estimate_pass, time_us, workspace_bytes
from convlint.gpus.gpu import load_gpu
from convlint.model.layer import PASSES, Dtype
from convlint.model.runtime import Runtime, Version


def test_fact_10_first_layers_run_best_with_4_or_multiples_of_8():
    """Fig. 8: between them, more channels cost the next good size's time or more."""
    times = {c: fprop(conv(C=c, H=224, W=224, K=64, R=7, S=7, U=2, V=2, first=True)).time_us for c in range(1, 17)}
    rates = {c: c / time for c, time in times.items()}
    for c in range(1, 17):
        better = next(good for good in (4, 8, 16) if good >= c)
        assert times[c] >= times[better]
        if c != better:
            assert rates[c] < rates[better]
    assert times[4] < 0.8 * times[8]


@pytest.mark.parametrize("gpu", ["v100", "t4", "a100", "rtx-3090", "h100", "b200"])
@pytest.mark.parametrize("which", ["fprop", "wgrad"])
def test_four_channels_beat_three_and_eight_wherever_there_are_tensor_cores(gpu, which):
    """First-layer kernels exist since Volta; three channels are copied into four."""
    three, four, eight = (estimate_pass(conv(C=c, **FIRST), which, load_gpu(gpu), RUNTIME) for c in (3, 4, 8))
    assert four.time_us < eight.time_us
    assert three.time_us > four.time_us
    assert three.padding_us > 0 == four.padding_us


@pytest.mark.parametrize("gpu", ["v100", "t4", "a100", "h100", "l4"])
@pytest.mark.parametrize("which", ["fprop", "wgrad"])
def test_tensor_cores_are_not_used_where_cuda_cores_are_faster(gpu, which):
    """The stem of an image network and layers of odd widths; dtype alone must not make them slower."""
    for layer in (conv(C=3, **FIRST), conv(C=32, K=32, R=5, S=10, N=16, U=2, V=2), conv(C=24, K=24, N=1, H=14, W=14)):
        fp16 = estimate_pass(layer, which, load_gpu(gpu), RUNTIME)
        fp32 = estimate_pass(replace(layer, dtype=Dtype.fp32), which, load_gpu(gpu), Runtime(tf32=False))
        assert fp16.time_us <= fp32.time_us


@pytest.mark.parametrize("which", PASSES)
@pytest.mark.parametrize("gpu", ["v100", "t4", "rtx-2080-ti"])
def test_tf32_on_a_gpu_without_it_takes_the_time_of_fp32(gpu, which):
    """Also of layers that fp16 pads, below whose time fp32 is not taken to be."""
    for layer in (conv(C=3, K=3, N=32), conv(C=3, K=62, N=2), conv(C=8, K=3, R=1, S=1, N=2)):
        fp32, tf32 = (replace(layer, dtype=dtype) for dtype in (Dtype.fp32, Dtype.tf32))
        expected = estimate_pass(fp32, which, load_gpu(gpu), RUNTIME).time_us
        assert estimate_pass(tf32, which, load_gpu(gpu), RUNTIME).time_us == expected


@pytest.mark.parametrize("which", PASSES)
def test_a_library_that_pads_is_never_slower_than_one_that_refuses(which):
    for c, n in ((3, 64), (3, 1), (5, 32), (62, 64), (100, 8)):
        layer = conv(N=n, C=c, H=112, W=112, R=7, S=7, U=2, V=2)
        for gpu in (load_gpu("v100"), load_gpu("t4"), A100):
            old = estimate_pass(layer, which, gpu, Runtime(cudnn=Version("7.5.0")))
            assert not old.tensor_cores
            assert old.tflops * 1e12 < gpu.peak_flops["fp32"]
            assert old.time_us >= estimate_pass(layer, which, gpu, Runtime(cudnn=Version("8.9.0"))).time_us


def test_old_libraries_run_depthwise_layers_and_tf32_without_tensor_cores():
    old = Runtime(cudnn=Version("7.5.0"))
    depthwise = conv(C=96, K=96, groups=96)
    assert fprop(depthwise, runtime=old).time_us == fprop(depthwise).time_us
    odd = conv(C=62, K=127, dtype=Dtype.fp32)
    assert not fprop(odd, runtime=old).tensor_cores
    assert fprop(odd, runtime=old).time_us > fprop(odd).time_us


@pytest.mark.parametrize("mode", ["training", "inference"])
def test_int8_has_no_gradients(mode):
    layer = conv(dtype=Dtype.int8)
    estimate = estimate_layer(layer, A100, RUNTIME, mode)
    assert list(estimate.passes) == ["fprop"]
    assert estimate.time_us == time_us(layer, A100, RUNTIME, mode) == fprop(layer).time_us
    assert estimate_pass(layer, "wgrad", A100, RUNTIME) is None


@pytest.mark.parametrize(
    ("gpu", "steps"),
    [
        # C: main-loop steps of a 7x7 filter: 49 where each tap takes one, fewer where channels of several share it
        ("v100", {3: 7, 4: 7, 5: 49, 8: 49, 16: 49}),
        ("t4", {3: 7, 4: 7, 5: 49, 8: 49, 16: 49}),
        ("a100", {3: 7, 4: 7, 5: 13, 8: 13, 9: 25, 16: 25, 24: 49}),
        ("h100", {3: 4, 4: 4, 5: 7, 8: 7, 9: 13, 16: 13, 24: 49}),
    ],
)
def test_up_to_which_channels_taps_share_a_step(gpu, steps):
    assert {c: fprop(conv(C=c, **FIRST), load_gpu(gpu)).main_loop_steps for c in steps} == steps


def test_whatever_stands_beside_a_pass_the_least_is_taken():
    """A unit that is added never makes a pass slower: the same layer on a GPU without its Tensor Cores."""
    for gpu in (load_gpu("a100"), load_gpu("h100")):
        without = replace(gpu, tensor_dtypes=frozenset())
        for layer in (conv(), conv(C=3, **FIRST), conv(N=1, C=24, K=24, H=14, W=14)):
            assert fprop(layer, gpu).time_us <= fprop(layer, without).time_us


POINTWISE, STRIDED = {"R": 1, "S": 1}, {"R": 1, "S": 1, "U": 2, "V": 2}
MANY_TAPS = {"N": 64, "C": 8, "K": 16, "H": 120, "W": 120, "R": 5, "S": 13, "U": 2, "V": 2}


@pytest.mark.parametrize(
    ("which", "sizes", "gpu", "algorithm"),
    [
        # a padded wgrad of one tap falls back before Ampere
        ("wgrad", {**POINTWISE, "pad": (1, 1)}, "v100", "direct"),
        ("wgrad", {**POINTWISE, "pad": (1, 1)}, "t4", "direct"),
        ("wgrad", {**POINTWISE, "pad": (1, 1)}, "a100", "implicit-gemm"),
        ("wgrad", POINTWISE, "v100", "implicit-gemm"),
        ("wgrad", POINTWISE, "t4", "implicit-gemm"),
        # a strided dgrad of one tap falls back on Turing
        ("dgrad", STRIDED, "t4", "direct"),
        ("dgrad", STRIDED, "v100", "implicit-gemm"),
        ("dgrad", STRIDED, "a100", "implicit-gemm"),
        # and into few channels it has a kernel of its own
        ("dgrad", {**STRIDED, "C": 4}, "v100", "direct"),
        ("dgrad", {**STRIDED, "C": 5}, "v100", "implicit-gemm"),
        # wgrad of one vector runs on CUDA cores from 65 taps on, where that is faster
        ("wgrad", MANY_TAPS, "v100", "direct"),
        ("wgrad", {**MANY_TAPS, "R": 13, "S": 5}, "v100", "direct"),
        ("wgrad", {**MANY_TAPS, "R": 8, "S": 8}, "v100", "implicit-gemm"),
        ("wgrad", {**MANY_TAPS, "C": 16}, "v100", "implicit-gemm"),
    ],
)
def test_which_kernel_runs_a_pass_that_may_fall_back(which, sizes, gpu, algorithm):
    assert estimate_pass(conv(**sizes), which, load_gpu(gpu), RUNTIME).algorithm == algorithm


def test_aligned_nhwc_needs_no_workspace_and_nchw_that_of_its_copies() -> None:
    assert fprop(conv()).workspace_bytes == 0
    copied = 256 * 64 * 56 * 56 * 2
    assert fprop(conv(layout="NCHW")).workspace_bytes == pytest.approx(copied, rel=0.01)  # of the input


def test_padded_channels_are_copied_at_their_padded_width() -> None:
    assert fprop(conv(C=60)).workspace_bytes == 0  # Ampere reads narrower vectors
    assert fprop(conv(C=60), load_gpu("v100")).workspace_bytes == pytest.approx(256 * 64 * 56 * 56 * 2, rel=0.01)


def test_a_split_reduction_keeps_partial_sums_in_fp32() -> None:
    one = estimate_pass(conv(C=256, K=256, H=7, W=7), "wgrad", A100, RUNTIME)
    assert one.split_k > 1
    assert one.workspace_bytes == 4 * one.split_k * 256 * 256 * 9


def test_transforms_keep_their_transformed_tensors() -> None:
    """fp32 on Pascal, whose Winograd and FFT kernels are separate programs."""
    found = {}
    for which in PASSES:
        one = estimate_pass(conv(dtype=Dtype.fp32, layout="NCHW"), which, load_gpu("p100"), RUNTIME)
        found[one.algorithm] = one.workspace_bytes
    assert found
    assert all(size > 0 for algorithm, size in found.items() if algorithm == "fft")


def test_the_largest_pass_is_what_a_layer_needs() -> None:
    layer = conv(layout="NCHW")
    whole = estimate_layer(layer, A100, RUNTIME, "training")
    most = max(one.workspace_bytes for one in whole.passes.values())
    assert workspace_bytes(layer, A100, RUNTIME, "training") == most > 0
    assert workspace_bytes(conv(C=None), A100, Runtime(), "training") is None


@pytest.mark.parametrize("gpu", ["a100", "h100", "v100", "k80", "gtx-1080-ti"])
@pytest.mark.parametrize(
    "sizes",
    [
        {"K": 72},
        {"C": 3, "R": 7, "S": 7, "U": 2, "V": 2},
        {"U": 3, "V": 2, "H": 31},
        {"C": 256, "K": 256, "groups": 4},
        {"dtype": Dtype.fp32, "layout": "NCHW", "N": 16},
        {"dtype": Dtype.fp32, "layout": "NCHW", "N": 4, "K": 100},
        {"dtype": Dtype.fp32, "layout": "NCHW", "R": 5, "S": 5},
    ],
)
def test_the_grid_makes_the_tiles_and_covers_all_results(sizes, gpu):
    estimate = estimate_layer(conv(**sizes), load_gpu(gpu), RUNTIME, "training")
    for one in estimate.passes.values():
        grid = one.grid
        assert (grid is None) is (one.algorithm == "direct")
        if grid is not None:
            assert grid.batch * grid.rows * grid.columns * one.split_k == one.tiles
            covered = grid.batch * grid.rows * grid.height * grid.columns * grid.width
            assert grid.batch * grid.M * grid.N <= covered
            assert one.tile_efficiency * covered <= grid.batch * grid.M * grid.N * (1 + 1e-9)


def test_the_fused_winograd_kernel_has_tiles_of_its_own():
    one = fprop(conv(dtype=Dtype.fp32, layout="NCHW", N=4, K=100), load_gpu("v100"))
    assert one.algorithm == "winograd"
    assert one.grid.batch == 1  # not a product for each of 36 points
    assert (one.grid.height, one.grid.width, one.grid.columns) == (128, 32, 4)
    assert one.grid.rows == 4 * 7 * 4  # blocks of 8 x 16 positions on 56x56


def test_the_tile_of_a_fused_winograd_kernel_is_what_it_covers_of_the_output() -> None:
    """8 x 16 positions by 32 channels, as its grid counts them; 128 x 128 only prices its steps."""
    layer = conv(N=4, C=64, K=80, H=28, W=28, dtype=Dtype.fp32, layout="NCHW")
    for which in ("fprop", "dgrad"):
        one = estimate_pass(layer, which, load_gpu("v100"), RUNTIME)
        assert (one.algorithm, one.tile) == ("winograd", (128, 32))
        assert one.tile == (one.grid.height, one.grid.width)
        assert one.tiles == one.grid.rows * one.grid.columns


EAGER = Runtime(framework="pytorch")


def bias_us(layer, gpu=A100, runtime=EAGER):
    """What a bias adds to each pass."""
    plain, biased = (
        estimate_layer(replace(layer, bias=bias), gpu, runtime, "training").passes for bias in (False, True)
    )
    return {which: biased[which].time_us - plain[which].time_us for which in plain}


@pytest.mark.parametrize(
    ("gpu", "layer", "measured_us"),
    [
        # Traces: AlexNet on A100, a ViT on H100; PyTorch's add in fp32 on V100.
        ("a100", conv(N=128, C=3, H=224, W=224, K=64, R=11, S=11, U=4, V=4, pad=(2, 2), dtype=Dtype.fp32), 187),
        ("a100", conv(N=128, C=64, H=27, W=27, K=192, R=5, S=5, dtype=Dtype.fp32), 136),
        ("h100", conv(N=4, C=3, H=224, W=224, K=768, R=16, S=16, U=16, V=16, pad=(0, 0), dtype=Dtype.bf16), 3.97),
        ("v100", conv(N=128, C=3, H=224, W=224, K=64, U=3, V=3, pad=(0, 0), dtype=Dtype.fp32), 456.7),
        # Differences of the halves of pairs on H200.
        ("h200", conv(N=1, C=256, H=112, W=112, K=512), 20.0),
        ("h200", conv(N=1, C=128, H=28, W=28, K=128, U=2, V=2, dtype=Dtype.bf16), 3.0),
    ],
)
def test_a_bias_in_eager_pytorch_is_a_kernel_that_reads_and_writes_y(gpu, layer, measured_us):
    for layout in ("NCHW", "NHWC"):
        added = bias_us(replace(layer, layout=layout), load_gpu(gpu))
        assert measured_us / 1.15 < added["fprop"] < measured_us * 1.15
        assert added["dgrad"] == 0
        assert added["wgrad"] < added["fprop"]  # a sum that reads y's gradient


def test_the_gradient_of_a_bias_is_a_sum_at_the_rate_of_a_stream():
    """A sum of as many numbers took 220 us on V100."""
    layer = conv(N=128, C=64, H=74, W=74, K=64, dtype=Dtype.fp32)
    assert 200 < bias_us(layer, load_gpu("v100"))["wgrad"] < 250


@pytest.mark.parametrize(
    ("runtime", "is_apart"),
    [
        (Runtime(), False), (EAGER, True), (Runtime(cudnn_benchmark=True), True),
        (replace(EAGER, cuda_graphs=True), True), (replace(EAGER, compile=True), False),
        (Runtime(framework="tensorflow"), False), (Runtime(framework="jax"), False),
        (Runtime(framework="onnxruntime"), False),
    ],
)  # fmt: skip
def test_only_eager_pytorch_is_known_to_add_it_apart(runtime, is_apart):
    added = bias_us(conv(), runtime=runtime)
    assert {which: us > 0 for which, us in added.items()} == {"fprop": is_apart, "dgrad": False, "wgrad": is_apart}


def test_tensorrt_and_eight_bits_have_it_in_their_kernels():
    for layer, runtime in ((conv(), Runtime(framework="tensorrt")), (conv(dtype=Dtype.int8), RUNTIME)):
        assert time_us(replace(layer, bias=True), A100, runtime, "inference") == time_us(
            replace(layer, bias=False), A100, runtime, "inference"
        )


def test_a_bias_that_nobody_states_has_no_price():
    layer = conv()
    assert layer.bias is None
    assert time_us(layer, A100, EAGER, "training") == time_us(replace(layer, bias=False), A100, EAGER, "training")


def test_pytorchs_own_depthwise_kernels_have_it_in_them_and_sum_its_gradient():
    own = conv(C=96, K=96, groups=96, layout="NCHW", dtype=Dtype.bf16)
    volume = replace(own, dims=3, D=8, Z=8, T=1)
    for layer in (own, volume):
        added = bias_us(layer)
        assert added["fprop"] == 0
        assert added["wgrad"] > 0
    cudnns = [replace(own, layout="NHWC"), replace(own, op="conv_transpose")]
    assert all(bias_us(layer)["fprop"] > 0 for layer in cudnns)


def test_of_a_transposed_layer_it_is_as_large_as_what_the_layer_writes():
    sizes = {"N": 32, "C": 256, "H": 14, "W": 14, "K": 64, "R": 2, "S": 2, "U": 2, "V": 2, "pad": (0, 0)}
    layer = conv(op="conv_transpose", **sizes)
    assert (layer.P, layer.Q) == (28, 28)
    same = conv(N=32, C=64, H=28, W=28, K=64)
    assert bias_us(layer)["fprop"] == pytest.approx(bias_us(same)["fprop"])


@pytest.mark.parametrize("sizes", [{"R": 7, "S": 7, "P": 50, "Q": 50}, {"groups": 64}])
def test_tensorrt_runs_in_16_bits_what_it_has_no_fp8_kernel_for(sizes):
    layers = [conv(dtype=Dtype(dtype), **sizes) for dtype in ("fp8", "fp16")]
    fp8, fp16 = (time_us(each, load_gpu("h100"), Runtime(framework="tensorrt"), "inference") for each in layers)
    assert fp8 == fp16
    described = [estimate_pass(each, "fprop", load_gpu("h100"), Runtime(framework="tensorrt")) for each in layers]
    assert described[0].arithmetic_intensity == described[1].arithmetic_intensity
    assert time_us(layers[0], A100, Runtime(framework="tensorrt"), "inference") is None


@pytest.mark.parametrize("gpu", ["rtx-3060", "a40", "t4", "gtx-1080-ti", "rtx-5090", "a100"])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_grouped_layers_in_fp64_stay_below_its_peak(gpu: str, layout: str) -> None:
    board = load_gpu(gpu)
    for which in PASSES:
        one = estimate_pass(conv(dtype=Dtype.fp64, groups=32, layout=layout), which, board, RUNTIME)
        assert one.peak_share <= 1.0


@pytest.mark.parametrize("gpu", ["h100", "b200"])
def test_depthwise_layers_in_fp64_take_no_less_than_in_fp32(gpu: str) -> None:
    for which in PASSES:
        wide, narrow = (
            estimate_pass(
                conv(dtype=dtype, C=256, K=256, groups=256, layout="NHWC"), which, load_gpu(gpu), RUNTIME
            ).time_us
            for dtype in (Dtype.fp64, Dtype.fp32)
        )
        assert wide >= 0.99 * narrow


@pytest.mark.parametrize("dtype", [Dtype.int8, Dtype.fp8])
@pytest.mark.parametrize("gpu", ["h100", "b200"])
def test_rows_of_an_odd_number_of_bytes_are_multiplied_no_faster_than_even_ones(gpu, dtype):
    """A map of 7x7 in NCHW lies in rows of 49 bytes, one of 7x14 in rows of 98: as many positions in all."""
    odd, even = (
        estimate_pass(
            conv(N=n, C=512, H=7, W=w, K=2048, R=1, S=1, dtype=dtype, layout="NCHW"), "fprop", load_gpu(gpu),
            Runtime(framework="tensorrt"),
        )
        for n, w in ((64, 7), (32, 14))
    )  # fmt: skip
    assert odd.time_us >= even.time_us


TF32_SUMS = [(32, 64, 14, 64, 27.0), (32, 128, 14, 128, 30.5), (32, 96, 14, 256, 42.9), (32, 256, 56, 256, 661.9)]


@pytest.mark.parametrize(("N", "C", "H", "K", "measured"), TF32_SUMS)
def test_adding_up_a_split_sum_in_tf32_takes_its_time_on_hopper(N, C, H, K, measured):
    """H100, cuDNN 9.19, NHWC, 3x3; a sum that is not split has no such kernel."""
    layer = conv(N=N, C=C, H=H, W=H, K=K, dtype=Dtype.tf32)
    split = estimate_pass(layer, "wgrad", load_gpu("h100"), Runtime(framework="pytorch", cudnn_benchmark=False))
    assert split.split_k > 1
    assert split.time_us == pytest.approx(measured, rel=0.15)
    whole = estimate_pass(conv(N=1, C=64, H=14, W=14, dtype=Dtype.tf32), "wgrad", load_gpu("h100"), RUNTIME)
    assert (whole.split_k, whole.overhead_us < split.overhead_us - 5) == (1, True)


@pytest.mark.parametrize("gpu", ["h200", "a100", "rtx-4090"])
def test_one_channel_to_one_is_not_padded_to_a_vector(gpu):
    """The layer of efficient channel attention: 8.1 us forward and 9.6 back on H200, in bf16 and NCHW."""
    layer = conv(N=256, C=1, K=1, H=1, W=2048, R=1, S=7, dims=1, dtype=Dtype.bf16, layout="NCHW")
    times = [estimate_pass(layer, which, load_gpu(gpu), Runtime(framework="pytorch")).time_us for which in PASSES[:2]]
    assert max(times) < 25
    if gpu == "h200":
        assert times == pytest.approx([8.1, 9.6], rel=0.25)


@pytest.mark.parametrize("gpu", ["a100", "h100"])
def test_xla_pads_fp16_where_no_tensor_grows_much(gpu):
    """511 channels to 512 at the cost of copies, 10 to 16 not at all, and bf16 never."""

    def both(**sizes):
        layer = conv(N=32, H=56, W=56, R=1, S=1, P=56, Q=56, layout="NHWC", **sizes)
        return [time_us(layer, load_gpu(gpu), Runtime(framework=name), "training") for name in ("jax", "pytorch")]

    padded, narrow = both(C=720, K=511)
    aligned = both(C=720, K=512)
    assert aligned[0] == pytest.approx(aligned[1])
    assert aligned[0] < padded < narrow if gpu == "h100" else aligned[0] < padded
    for sizes in ({"C": 720, "K": 511, "dtype": Dtype.bf16}, {"C": 720, "K": 10}):
        jax, pytorch = both(**sizes)
        assert jax == pytest.approx(pytorch)
