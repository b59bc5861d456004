"""The newer published timings of single layers: reading each CSV by its columns, and what ran its rows."""

from __future__ import annotations

import csv
import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

from msgspec.structs import replace
from timings import Row, known_gpus

from convlint.gpus.gpu import Gpu, load_gpu
from convlint.model.errors import ConvlintError
from convlint.model.layer import ConvLayer, Dtype, Layout, Pass, flops, with_output
from convlint.model.runtime import Runtime, Version

DATA = Path(__file__).resolve().parent / "data"
DEFAULT_CSVS = tuple(
    DATA / f"{name}.csv"
    for name in (
        "newer_layers",
        "v100_tensorrt_layers",
        "alignment_pairs",
        "h200_layers",
        "conv3d_layout_pairs",
        "patch_embeddings",
        "gemm_padding_pairs",
    )
)
HALVES = ("fit", "held")


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """One measurement: `row.source` names its kind, "file:kind".

    `passes` are those that ran in the measured time, where they are more than `row.which`. `narrow` are layers of less
    aligned channels: elements in one vector load, the layer, its time in us.
    """

    row: Row
    runtime: Runtime
    passes: tuple[Pass, ...] = ()
    narrow: tuple[tuple[int, ConvLayer, float], ...] = ()


Record = Mapping[str, str]


def _scaled(base: str, gpu_id: str, name: str, sms: int, clock_hz: float) -> Gpu:
    """A GPU that convlint has no file for: another's SMs, fewer of them; 448 GB/s, 8 GB and 4 MB of L2."""
    gpu = load_gpu(base)
    assert gpu.boost_clock_hz is not None
    scale = sms * clock_hz / (gpu.sms * gpu.boost_clock_hz)
    return replace(
        gpu, id=gpu_id, name=name, sms=sms, boost_clock_hz=clock_hz, dram_bytes_per_s=448e9,
        memory_bytes=8 * 2**30, l2_bytes=4 * 2**20,
        peak_flops={kind: peak * scale for kind, peak in gpu.peak_flops.items()},
    )  # fmt: skip


# By their names in the CSVs. NVIDIA lists 5888 CUDA cores (128 per SM), 1725 MHz, 448 GB/s and 8 GB for the RTX 3070,
# which comes to its 20.3 TFLOPS in fp32; 2560 (64 per SM), 1770 MHz, 448 GB/s and 8 GB for the RTX 2070 SUPER.
_OWN_GPUS: Mapping[str, Callable[[], Gpu]] = {
    "rtx-3070": lambda: _scaled("rtx-3080", "rtx-3070", "NVIDIA GeForce RTX 3070", 46, 1.725e9),
    "RTX 2070 SUPER": lambda: _scaled("rtx-2080-ti", "rtx-2070-super", "NVIDIA GeForce RTX 2070 SUPER", 40, 1.77e9),
}


def gpus_of(rows: Sequence[Timed], given: dict[str, str], script: str) -> dict[str, Gpu]:
    """The GPUs of some rows, by their names in the CSV; unknown ones are said and left out."""
    names = {timed.row.gpu for timed in rows}
    gpus = {name: make() for name, make in _OWN_GPUS.items() if name in names and name not in given}
    return gpus | known_gpus(names - set(gpus), given, script)


def read_csv(path: Path) -> list[Timed]:
    """The rows of a CSV of any of the known kinds; raises ConvlintError where one cannot be read."""
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        columns = set(reader.fieldnames or ())
        known = next((read for needed, read in _READERS if needed <= columns), None)
        if known is None:
            wanted = "; ".join(", ".join(sorted(needed)) for needed, _ in _READERS)
            raise ConvlintError(f"{path}: columns of no known kind; each has one of: {wanted}")
        rows: list[Timed] = []
        for number, record in enumerate(reader, start=2):
            try:
                rows.extend(known(record))
            except (KeyError, TypeError, ValueError) as error:
                raise ConvlintError(f"{path}:{number}: {error!r}") from error
    return _joined(rows)


def half_of(layer: ConvLayer) -> str:
    """Which half a layer belongs to, whatever its GPU, element type, batch and pass: both halves share no shape."""
    shape = (
        layer.op, layer.C, layer.D, layer.H, layer.W, layer.K, layer.T, layer.R, layer.S, layer.StrideD, layer.U,
        layer.V, layer.PadD, layer.PadH, layer.PadW, layer.DilD, layer.DilH, layer.DilW, layer.groups,
    )  # fmt: skip
    return HALVES[crc32(repr(shape).encode()) % 2]


def narrowed(layer: ConvLayer, alignment: int) -> ConvLayer:
    """The layer with the largest smaller C and K that are multiples of `alignment` and of no more, up to 8."""
    less = 8 - alignment
    return replace(layer, C=(layer.C or 0) - less, K=(layer.K or 0) - less)


def _axes(text: str) -> tuple[int, int, int]:
    """D, H and W of "1x2x3"; two numbers lack D, one stands for W alone."""
    numbers = [int(part) for part in text.split("x")]
    if not 1 <= len(numbers) <= 3:
        raise ValueError(f"not one to three sizes: {text!r}")
    missing: list[int] = [-1] * (3 - len(numbers))
    D, H, W = [*missing, *numbers]
    return D, H, W


def _timed(
    kind: str, record: Record, which: Pass, layer: ConvLayer, us: float, runtime: Runtime, passes: tuple[Pass, ...] = ()
) -> Timed:
    layer, time = with_output(layer), us
    count = flops(layer)
    if not count or not 0 < time < float("inf"):
        raise ValueError(f"a layer of {count} FLOPs in {us} us")
    precision = "" if layer.dtype is None else layer.dtype.value
    count *= max(1, len(passes))
    return Timed(row=Row(record["gpu"], precision, which, kind, layer, time, count), runtime=runtime, passes=passes)


def _sizes(record: Record, *names: str) -> dict[str, int]:
    return {name: int(record[name]) for name in names}


def _kernelbench(record: Record) -> list[Timed]:
    """Eager PyTorch, forward; fp32 tensors, multiplied as the row's dtype says, by what the heuristics pick."""
    dims = {"NCW": 1, "NCHW": 2, "NCDHW": 3}[record["layout"]]
    (stride_d, U, V), (pad_d, pad_h, pad_w), (dil_d, dil_h, dil_w) = (
        _axes(record[key]) for key in ("stride", "pad", "dil")
    )
    transposed, groups = record["transposed"] == "1", int(record["groups"])
    if dims < 3:
        stride_d, pad_d, dil_d = 1, 0, 1
    layer = ConvLayer(
        name="row", op="conv_transpose" if transposed else "conv", dims=dims,
        **_sizes(record, "N", "C", "D", "H", "W", "K", "T", "R", "S"),  # type: ignore[arg-type]
        StrideD=stride_d, U=abs(U), V=V, PadD=pad_d, PadD_end=pad_d, PadH=max(0, pad_h), PadH_end=max(0, pad_h),
        PadW=pad_w, PadW_end=pad_w, DilD=dil_d, DilH=abs(dil_h), DilW=dil_w, groups=groups, dtype=Dtype.fp32,
        layout="NCHW", bias=record["bias"] == "bias",
    )  # fmt: skip
    shared = "dense" if groups == 1 else "depthwise" if groups == layer.C else "grouped"
    kind = f"kernelbench:{dims}-D {shared}{' transposed' if transposed else ''}"
    runtime = Runtime(framework="pytorch", cudnn_benchmark=False, tf32=record["dtype"] == "tf32")
    return [_timed(kind, record, "fprop", layer, float(record["us"]), runtime)]


def _tensorrt(record: Record) -> list[Timed]:
    """An engine of one layer, in the layout that TensorRT chose."""
    sizes = _sizes(record, "N", "C", "H", "W", "K", "R", "S")
    stride, pad_h, pad_w = int(record["stride"]), sizes["R"] // 2, sizes["S"] // 2
    layer = ConvLayer(
        name="row", **sizes, U=stride, V=stride, PadH=pad_h, PadH_end=pad_h,  # type: ignore[arg-type]
        PadW=pad_w, PadW_end=pad_w, groups=int(record["groups"]), dtype=Dtype(record["dtype"]),
    )  # fmt: skip
    kind = f"tensorrt:{layer.dtype} {'depthwise' if layer.groups > 1 else 'dense'}"
    return [_timed(kind, record, "fprop", layer, float(record["us"]), Runtime(framework="tensorrt", tf32=False))]


def _alignment(record: Record) -> list[Timed]:
    """CUTLASS's best kernel with vectors of eight halves, and the time with narrower ones beside it."""
    stride, pad, sums = int(record["stride"]), int(record["pad"]), record["accumulate"]
    which = {"fprop": "fprop", "dgrad": "dgrad", "wgrad": "wgrad"}[record["pass"]]
    layer = ConvLayer(
        name="row", **_sizes(record, "N", "C", "H", "W", "K", "R", "S"),  # type: ignore[arg-type]
        U=stride, V=stride, PadH=pad, PadH_end=pad, PadW=pad, PadW_end=pad, dtype=Dtype.fp16, layout="NHWC",
    )  # fmt: skip
    # Only TensorRT is taken to sum in fp16, at twice GeForce's rate.
    runtime = Runtime(framework={"f16": "tensorrt", "f32": None}[sums])
    timed = _timed(f"cutlass:{which} {sums}", record, which, layer, float(record["us_aligned_8"]), runtime)  # type: ignore[arg-type]
    alignment, narrow = int(record["alignment"]), float(record["us"])
    if alignment not in (1, 2, 4) or narrow <= 0:
        raise ValueError(f"{narrow} us at an alignment of {alignment}")
    as_is = narrowed(timed.row.layer, alignment)
    return [dataclasses.replace(timed, narrow=((alignment, as_is, narrow),))]


def _product(record: Record) -> list[Timed]:
    """A matrix product in PyTorch, padded and as it is.

    It is that of a 1x1 convolution in NHWC if the second matrix is column-major, as filters are. Padding copied both
    matrices: copies at 0.8 of the bandwidth are taken off, and where they are over 30 % of the time, the row says too
    little.
    """
    if record["mat1_stride_1"] != "1" or record["mat2_stride_0"] != "1":
        return []
    m, k, n = (int(record[name]) for name in "mkn")
    kind = record["mat1_dtype"].removeprefix("torch.")
    dtype = Dtype({"float16": "fp16", "bfloat16": "bf16", "float32": "fp32"}[kind])
    tf32 = record["using_tf32"] == "True"
    element, width = (4, 4) if dtype is Dtype.fp32 else (2, 8)
    rows, depth, columns = (-(-size // width) * width for size in (m, k, n))
    padded = [  # a matrix that need not be padded, or was so before, is not copied
        (m * k, rows * depth, record["prepadded_mat1"]), (k * n, depth * columns, record["prepadded_mat2"])
    ]  # fmt: skip
    copied = element * sum(old + new for old, new, before in padded if old != new and before == "False")
    gpu, us = "a100-80gb-sxm", 1e3 * float(record["pad_ms"])
    copies_us = 1e6 * copied / (0.8 * load_gpu(gpu).dram_bytes_per_s)
    if copies_us > 0.3 * us:
        return []

    def layer(W: int, C: int, K: int) -> ConvLayer:
        return with_output(ConvLayer(name="row", N=1, C=C, H=1, W=W, K=K, R=1, S=1, dtype=dtype, layout="NHWC"))

    runtime = Runtime(framework="pytorch", tf32=tf32)
    timed = _timed(f"product:{'tf32' if tf32 else dtype}", {"gpu": gpu}, "fprop", layer(rows, depth, columns),
                   us - copies_us, runtime)  # fmt: skip
    alignment = min(width, k & -k, n & -n)
    if alignment == width:
        return [timed]
    return [dataclasses.replace(timed, narrow=((alignment, layer(m, k, n), 1e3 * float(record["orig_ms"])),))]


def _eager(record: Record) -> list[Timed]:
    """Eager PyTorch on one or two images, forward, by what the heuristics pick, with or without a bias."""
    N, C, *space = json.loads(record["input"])
    dims, taps = len(space), _spatial(record["kernel"], len(space), 1)
    stride, pad, dil = (_spatial(record[key], dims, none) for key, none in (("stride", 1), ("pad", 0), ("dil", 1)))
    groups, bias = int(record["groups"]), record["bias"] == "1"
    layer = ConvLayer(
        name="row", dims=dims, N=N, C=C, **dict(zip("DHW", _spatial(space, dims, 1), strict=True)),
        K=int(record["K"]), **dict(zip("TRS", taps, strict=True)),
        **dict(zip(("StrideD", "U", "V"), stride, strict=True)),
        **dict(zip(("DilD", "DilH", "DilW"), dil, strict=True)),
        **{f"Pad{axis}{end}": size for axis, size in zip("DHW", pad, strict=True) for end in ("", "_end")},
        groups=groups, dtype=Dtype(record["dtype"]), layout="NCHW", bias=bias,
    )  # fmt: skip
    kind = (
        "depthwise" if 1 < groups == C else "grouped" if groups > 1
        else "1-D" if dims == 1
        else f"C={C} {'volume' if dims == 3 else 'image'}" if C < 4
        else "3-D" if dims == 3
        else "1x1" if set(taps) == {1} else "k x k"
    )  # fmt: skip
    runtime = Runtime(framework="pytorch", cudnn_benchmark=False)
    title = f"h200:{kind}{', bias' if bias else ''}"
    return [_timed(title, record, "fprop", layer, float(record["eager_us"]), runtime)]


def _spatial(value: str | Sequence[int], dims: int, none: int) -> list[int]:
    """D, H and W of "3" or "[3, 3]"; `none` on axes that the layer lacks."""
    numbers = json.loads(value) if isinstance(value, str) else value
    numbers = numbers if isinstance(numbers, Sequence) else [numbers] * dims
    if len(numbers) == 1:
        numbers = [*numbers] * dims
    if len(numbers) != dims or any(type(number) is not int for number in numbers):
        raise ValueError(f"not {dims} sizes: {value!r}")
    return [none] * (3 - dims) + list(numbers)


def _volume(record: Record) -> list[Timed]:
    """The same volume in both layouts, timed through cuDNN; gradients are one number."""
    N, C, size, K, taps, pad, stride = (int(record[key]) for key in ("N", "C", "DHW", "K", "RST", "pad", "stride"))
    passes: dict[str, tuple[Pass, ...]] = {"fprop": ("fprop",), "dgrad+wgrad": ("dgrad", "wgrad")}
    which = passes[record["pass"]]
    layer = ConvLayer(
        name="row", dims=3, N=N, C=C, D=size, H=size, W=size, K=K, T=taps, R=taps, S=taps, StrideD=stride, U=stride,
        V=stride, PadD=pad, PadH=pad, PadW=pad, PadD_end=pad, PadH_end=pad, PadW_end=pad, dtype=Dtype(record["dtype"]),
    )  # fmt: skip
    version = int(record["cudnn"])  # 8005 is 8.0.5
    runtime = Runtime(cudnn=Version(f"{version // 1000}.{version // 100 % 10}.{version % 100}"))
    return [
        _timed(
            f"volume:{record['pass']}, {ours}", record, which[0], replace(layer, layout=ours),
            1e3 * float(record[f"ms_{theirs}"]), runtime, which,
        )
        for ours, theirs in LAYOUTS
    ]  # fmt: skip


def _patch_embedding(record: Record) -> list[Timed]:
    """A convolution whose stride is its filter, without padding, in eager PyTorch; gradients are of the weights.

    Where cuDNN was called by its name, what PyTorch's release keeps from it does not count.
    """
    taps = _sizes(record, "T", "R", "S")
    stride = dict(zip(("StrideD", "U", "V"), taps.values(), strict=True))
    layer = ConvLayer(
        name="row", dims=2 if record["D"] == "1" else 3, **_sizes(record, "N", "C", "D", "H", "W", "K"),  # type: ignore[arg-type]
        **taps, **stride, dtype=Dtype(record["dtype"]), layout={"NCHW": "NCHW", "NHWC": "NHWC"}[record["layout"]],  # type: ignore[arg-type]
        copies_input=record["copied"] == "1", bias=record["bias"] == "1",
    )  # fmt: skip
    passes: dict[str, tuple[Pass, ...]] = {"fprop": ("fprop",), "fprop+wgrad": ("fprop", "wgrad")}
    version = None if "by name" in record["source"] else Version(record["torch"])
    runtime = Runtime(framework="pytorch", framework_version=version, cudnn_benchmark=False)
    kind = f"patch:{record['pass']}{', bias' if layer.bias else ''}, {layer.dtype} {layer.layout}"
    return [_timed(kind, record, "fprop", layer, float(record["us"]), runtime, passes[record["pass"]])]


LAYOUTS: tuple[tuple[Layout, str], ...] = (("NCHW", "NCDHW"), ("NHWC", "NDHWC"))
_READERS: tuple[tuple[frozenset[str], Callable[[Record], list[Timed]]], ...] = (
    (frozenset({"ms_NCDHW", "ms_NDHWC"}), _volume),
    (frozenset({"eager_us", "kernel"}), _eager),
    (frozenset({"copied", "torch", "us"}), _patch_embedding),
    (frozenset({"alignment", "us_aligned_8"}), _alignment),
    (frozenset({"orig_ms", "pad_ms"}), _product),
    (frozenset({"transposed", "dil"}), _kernelbench),
    (frozenset({"dtype", "groups", "us"}), _tensorrt),
)


def _joined(rows: Sequence[Timed]) -> list[Timed]:
    """One row for each aligned kernel, with all its narrower ones."""
    found: dict[object, Timed] = {}
    for number, timed in enumerate(rows):
        key = timed.row if timed.narrow else number
        before = found.get(key)
        narrow = (*before.narrow, *timed.narrow) if before else timed.narrow
        found[key] = dataclasses.replace(timed, narrow=narrow)
    return list(found.values())
