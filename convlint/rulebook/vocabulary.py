"""Every name that a rule may read, with its type and meaning; and where a rule may point and what its fix may set."""

from __future__ import annotations

from collections.abc import Mapping

from convlint.rulebook import named_sizes
from convlint.rulebook.functions import Type

_NUMBER: Mapping[str, str] = {
    "N": "batch size",
    "C": "input channels",
    "D": "input depth (3-D; else 1)",
    "H": "input height",
    "W": "input width",
    "K": "output channels",
    "Z": "output depth (3-D; else 1)",
    "P": "output height",
    "Q": "output width",
    "T": "filter depth (3-D; else 1)",
    "R": "filter height",
    "S": "filter width",
    "StrideD": "stride in depth",
    "U": "vertical stride",
    "V": "horizontal stride",
    "PadD": "padding in front",
    "PadH": "padding above",
    "PadW": "padding on the left",
    "PadD_end": "padding behind",
    "PadH_end": "padding below",
    "PadW_end": "padding on the right",
    "OutPadD": "output padding in depth (transposed; else 0)",
    "OutPadH": "output padding below (transposed; else 0)",
    "OutPadW": "output padding on the right (transposed; else 0)",
    "DilD": "dilation in depth",
    "DilH": "vertical dilation",
    "DilW": "horizontal dilation",
    "groups": "groups",
    "dims": "1, 2 or 3 dimensions",
    "calls": "how often one step runs the layer",
    "declared_P": "output height as the spec states it",
    "declared_Q": "output width as the spec states it",
    "declared_Z": "output depth as the spec states it",
    "C_group": "input channels of one group",
    "K_group": "output channels of one group",
    "extent_T": "effective filter depth, DilD·(T-1)+1",
    "extent_R": "effective filter height, DilH·(R-1)+1",
    "extent_S": "effective filter width, DilW·(S-1)+1",
    "dead_taps": "filter taps that read only padding for every output",
    "live_R": "filter rows that read input for some output",
    "live_S": "filter columns that read input for some output",
    "NPQ": "N·Z·P·Q, the rows of fprop's GEMM",
    "alignment": "multiple that the compute dtype's Tensor Core vectors want (1: none)",
    "dtype.bytes": "bytes per stored element",
    "arriving.C": "channels that the connected layers deliver",
    "arriving.D": "depth that the connected layers deliver",
    "arriving.H": "height that the connected layers deliver",
    "arriving.W": "width that the connected layers deliver",
    "gpu.fp64_ratio": "fp64 rate over fp32 rate",
    "gpu.dies_per_board": "CUDA devices on one board",
    "gpu.sms": "streaming multiprocessors",
    "gpu.pcie_gen": "PCIe generation",
    "gpu.concurrent_kernels": "kernels that can run at once",
    "runtime.mxnet_cudnn_autotune_default": "MXNET_CUDNN_AUTOTUNE_DEFAULT",
    "runtime.xla_gpu_autotune_level": "xla_gpu_autotune_level",
    "batch_below": "nearest smaller N whose waves are full (0: none)",
    "batch_above": "nearest larger N whose waves are full (0: none)",
    "batch_to_fill": "smallest N whose fprop tiles fill one wave (0: none)",
    "layer_percent": "the layer's share of the network's time, in percent",
    "network.layers": "convolutions in the network",
    "network.time_us": "predicted time of one step",
    "network.memory_bound_percent": "share of the time in passes below the GPU's ridge, in percent",
    "network.launch_percent": "share of the time that is launch overhead, in percent",
    **named_sizes.NUMBER,
}
_TEXT: Mapping[str, str] = {
    "name": "the layer's name",
    "op": "conv or conv_transpose",
    "dtype": "what is stored",
    "compute_dtype": "what multiplies on this GPU with this runtime",
    "layout": "NCHW, NHWC or auto",
    "mode": "training or inference",
    "arriving.source": "the layer or operation that this one reads",
    "arriving.layout": "layout of the connected layer that differs, or this layer's own",
    "arriving.layout_of": "the connected layer whose layout differs",
    "gpu.id": "the target, as the user named it",
    "gpu.name": "the GPU's full name",
    "gpu.architecture": "kepler, maxwell, pascal, volta, turing, ampere, ada, hopper or blackwell",
    "gpu.chip": "the chip, such as GK110",
    "runtime.framework": "pytorch, tensorflow, jax, tensorrt, onnxruntime, mxnet, ...",
    "runtime.cudnn_conv_algo_search": "ONNX Runtime's EXHAUSTIVE, HEURISTIC or DEFAULT",
    "runtime.gpu_clock": "base or boost",
    "tile": "tile of tiles_worst, such as 128x128",
    "network.memory_bound_layers": "layers with most time in memory-bound passes",
    **named_sizes.TEXT,
    **{
        f"support.{library}_{what}": text.format(library)
        for library in ("cuda", "cudnn", "tensorrt", "framework")
        for what, text in (("first", "the first {} that knows the GPU"), ("last", "the last {} for the GPU"))
    },
}
_TENSOR_DTYPES = ("fp16", "bf16", "tf32", "int8", "fp8", "fp64")
_TRUTH: Mapping[str, str] = {
    "bias": "has a bias",
    "norm_follows": "batch normalisation alone reads the output",
    "first": "its input is the network's",
    "head": "no convolution after it, so that the task fixes K",
    "depthwise": "groups = C",
    "pointwise_map": "works on 1x1 maps (squeeze-and-excite)",
    "transposed": "a transposed convolution",
    "training": "mode is training",
    "connected": "reads another layer or operation",
    "has_dgrad": "dgrad is run and its time predicted",
    "has_wgrad": "wgrad is run and its time predicted",
    "wgrad_per_tap": "wgrad is tiled once for each filter tap, or not predicted",
    "on_tensor_cores": "compute_dtype multiplies on this GPU's Tensor Cores",
    "framework_picks_layout": "the framework chooses the layout itself",
    "arriving.grouped": "the connected layer whose layout differs has 1 < groups < C",
    "network.unaligned_nhwc": "some NHWC layer on Tensor Cores has C or K that is no multiple of alignment",
    "network.on_tensor_cores": "compute_dtype of some layer multiplies on this GPU's Tensor Cores",
    **named_sizes.TRUTH,
    "gpu.tensor_cores": "has Tensor Cores",
    "gpu.fast_fp16": "fp16 arithmetic at fp32's rate or more",
    "gpu.hyper_q": "32 hardware work queues",
    "gpu.geforce": "a consumer board",
    "gpu.integrated": "shares memory with the CPU (Jetson)",
    **{f"gpu.tensor_{dtype}": f"Tensor Cores multiply {dtype}" for dtype in _TENSOR_DTYPES},
    **{
        f"runtime.{setting}": f"the setting {setting}"
        for setting in ("compile", "cudnn_benchmark", "fixed_input_size", "deterministic", "tf32", "prefer_nhwc",
                        "tf_cudnn_use_autotune", "pinned_memory")
    },
    **{
        f"support.{library}_{what}": f"the given {library} {why} the GPU"
        for library in ("cuda", "cudnn", "tensorrt", "framework")
        for what, why in (("dropped", "no longer supports"), ("too_old", "is older than"))
    },
}  # fmt: skip
_VERSION: Mapping[str, str] = {
    "gpu.compute_capability": "compute capability",
    "runtime.framework_version": "the framework's version",
    "runtime.cuda": "CUDA's version",
    "runtime.cudnn": "cuDNN's version",
    "runtime.tensorrt": "TensorRT's version",
}
_PASS_NUMBER: Mapping[str, str] = {
    "gemm_M": "gemm.M",
    "gemm_N": "gemm.N",
    "gemm_K": "gemm.K",
    "tile_m": "tile height",
    "tile_n": "tile width",
    "tiles": "tiles, split included",
    "split_k": "how often gemm.K is split",
    "waves": "tiles over SMs x resident tiles",
    "wave_tiles": "tiles in one full wave",
    "last_wave_tiles": "tiles in the last, partly filled wave (0: full)",
    "tile_efficiency": "useful share of the tiles",
    "wave_efficiency": "useful share of the waves",
    "main_loop_steps": "steps of gemm.K that one tile takes",
    "resident_warps": "warps on one SM",
    "time_us": "predicted time",
    "overhead_us": "launch and setup time",
    "arithmetic_intensity": "FLOPs per byte",
}
_PASS_TEXT = {"bound_by": "compute, memory or launch", "algorithm": "implicit-gemm, winograd, fft or direct"}
# the passes, and the passes in use with the emptiest tiles and waves
PASS_PREFIXES = ("fprop", "dgrad", "wgrad", "tiles_worst", "waves_worst")

MEANINGS: Mapping[str, str] = {
    **_NUMBER,
    **_TEXT,
    **_TRUTH,
    **_VERSION,
    **{f"{p}.{name}": f"{p}: {text}" for p in PASS_PREFIXES for name, text in {**_PASS_NUMBER, **_PASS_TEXT}.items()},
    "tiles_worst.pass_name": "the compute-bound pass with the emptiest tiles",
    "waves_worst.pass_name": "of fprop and dgrad with a full wave, the one with the emptiest waves",
}
VOCABULARY: Mapping[str, Type] = {
    **dict.fromkeys(_NUMBER, "number"),
    **dict.fromkeys(_TEXT, "text"),
    **dict.fromkeys(_TRUTH, "truth"),
    **dict.fromkeys(_VERSION, "version"),
    **{f"{p}.{name}": "number" for p in PASS_PREFIXES for name in _PASS_NUMBER},
    **{f"{p}.{name}": "text" for p in PASS_PREFIXES for name in _PASS_TEXT},
    "tiles_worst.pass_name": "text",
    "waves_worst.pass_name": "text",
}
# names beside gpu.* whose value depends on the target
GPU_NAMES = frozenset(
    name
    for name in VOCABULARY
    if name.split(".")[0] in (*PASS_PREFIXES, "support", "network")
    or name in ("compute_dtype", "alignment", "on_tensor_cores", "has_dgrad", "has_wgrad", "wgrad_per_tap", "tile",
                "batch_below", "batch_above", "batch_to_fill", "layer_percent",
                *named_sizes.OF_TILES_NUMBER, *named_sizes.OF_TILES_TEXT)
) - {"network.layers"}  # fmt: skip

# what a rule of scope `suppression` reads, and nothing else; it judges one rule that a comment or the config silences
SUPPRESSION_MEANINGS: Mapping[str, str] = {
    "suppression.text": "the suppression as it was written, without its reason",
    "suppression.rule": "the code or name in it",
    "suppression.reason": "its reason (empty: none)",
    "suppression.problem": "why it cannot be read or names no rule (empty: nothing is wrong)",
    "suppression.expires": "its last day (empty: none)",
    "suppression.known": "it can be read and names a rule",
    "suppression.used": "it silences a finding, or its rule could not be checked here",
    "suppression.expired": "its last day is over",
}
SUPPRESSION: Mapping[str, Type] = {
    name: "truth" if name.split(".")[1] in ("known", "used", "expired") else "text" for name in SUPPRESSION_MEANINGS
}

_FIELDS = (
    "N", "C", "D", "H", "W", "K", "Z", "P", "Q", "T", "R", "S", "StrideD", "U", "V", "PadD", "PadH", "PadW",
    "PadD_end", "PadH_end", "PadW_end", "OutPadD", "OutPadH", "OutPadW", "DilD", "DilH", "DilW", "groups",
)  # fmt: skip
_RUNTIME = tuple(name for name in VOCABULARY if name.startswith("runtime."))
_OTHER_PLACES = ("dtype", "layout", "bias", "name", "input", "layer", "target", "mode", "runtime")
PLACES: tuple[str, ...] = (*_FIELDS, *_OTHER_PLACES, *_RUNTIME)
SETTABLE: Mapping[str, Type] = {
    **dict.fromkeys(_FIELDS, "number"),
    "dtype": "text",
    "layout": "text",
    "bias": "truth",
    **{name: VOCABULARY[name] for name in _RUNTIME if VOCABULARY[name] != "version"},
}
