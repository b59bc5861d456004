"""The reader of TensorRT's engines as `trtexec` describes them: convolutions with their formats, tactics and times.

`--exportLayerInfo` writes the layers (with `--profilingVerbosity=detailed` their sizes), `--exportProfile` what each
took. The engine explorer of TensorRT calls them `NAME.graph.json` and `NAME.profile.json`, and writes the device into
`NAME.profile.metadata.json` (github.com/NVIDIA/TensorRT, tools/experimental/trt-engine-explorer).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from msgspec.structs import replace

from convlint.files.languages import duration
from convlint.files.safe import clean
from convlint.gpus.devices import Device, gpu_of
from convlint.model.errors import InputFault
from convlint.model.layer import ConvLayer, Dtype, Layout, Measured, MeasuredPass, with_output
from convlint.model.network import Network
from convlint.model.report import InputError
from convlint.model.runtime import Runtime
from convlint.readers import Outcome
from convlint.readers.operations import axis_fields
from convlint.readers.trace.events import TraceFile, listed
from convlint.readers.trace.kernels import uses_tensor_cores

HOW = "build with trtexec --profilingVerbosity=detailed"
_MOST_LAYERS = 100_000
_PROFILES = (("graph", "profile"), ("layers", "profile"), ("layer-info", "profile"), ("layer_info", "profile"))
_CONVOLUTIONS = {"Convolution": "conv", "Deconvolution": "conv_transpose"}
_DTYPES: tuple[tuple[re.Pattern[str], Dtype], ...] = (
    (re.compile(r"BF16|BFloat16", re.IGNORECASE), Dtype.bf16), (re.compile(r"FP16|Half", re.IGNORECASE), Dtype.fp16),
    (re.compile(r"FP8", re.IGNORECASE), Dtype.fp8), (re.compile(r"Int8", re.IGNORECASE), Dtype.int8),
    (re.compile(r"FP32|Float", re.IGNORECASE), Dtype.fp32),
)  # fmt: skip
_MIB = re.compile(r"(\d{1,9}) MiB")


def read_engine(path: str, batch: int | None) -> Outcome:
    """The network of an engine, and the errors in it; `batch` is that of layers built for any batch."""
    try:
        with TraceFile(path) as file:
            layers = list(islice(file.events(), _MOST_LAYERS + 1))
        if file.fault:
            raise InputFault(f"not a whole description of an engine: {file.fault}")
        if layers and "count" in layers[0]:
            raise InputFault("times of an engine without its layers: name the file of --exportLayerInfo")
        if len(layers) > _MOST_LAYERS:
            raise InputFault(f"an engine of more than {_MOST_LAYERS:,} layers")
        if file.others and not layers:
            raise InputFault(f"its layers are names without sizes: {HOW}")
        return _network(path, layers, batch), ()
    except InputFault as fault:
        return None, (InputError(path=path, message=fault.message),)


def _network(path: str, known: Sequence[Mapping[str, Any]], batch: int | None) -> Network:
    convolutions = [layer for layer in known if layer.get("ParameterType") in _CONVOLUTIONS]
    if not convolutions:
        raise InputFault("no convolution in the engine")
    times, runs, device = _profile(path)
    gpu = None if device is None else gpu_of(device)
    notes = list(_notes(known, times, device))
    layers = []
    for number, described in enumerate(convolutions):
        name = str(described.get("Name", ""))[:2000]
        layer = _layer(path, clean(name) or f"convolution {number}", described)
        layer = replace(layer, N=batch) if layer.N is None else layer
        us = times.get(name)
        if us:
            tensor_cores = uses_tensor_cores([str(described.get("TacticName", ""))[:2000]])
            measured = MeasuredPass(us=us, convolution=us, calls=runs, tensor_cores=tensor_cores)
            layer = replace(layer, measured=Measured(gpu=gpu.id if gpu else "", passes=(("fprop", measured),)))
        layers.append(layer)
    return Network(
        path=path, layers=tuple(layers), runtime=Runtime(framework="tensorrt"), mode="inference",
        targets=() if gpu is None else (gpu.id,), notes=tuple(notes),
    )  # fmt: skip


def _layer(path: str, name: str, described: Mapping[str, Any]) -> ConvLayer:
    read = listed(described, "Inputs")
    first: Mapping[str, Any] = read[0] if read and isinstance(read[0], dict) else {}
    kernel, shape = _sizes(described, "Kernel"), _sizes(first, "Dimensions")
    dims = len(kernel)
    if dims not in (1, 2, 3) or len(shape) != dims + 2:
        raise InputFault(f"{name}: a convolution without the sizes of its filter and its input: {HOW}")
    op = _CONVOLUTIONS[described["ParameterType"]]
    stride, dilation = ([step or 1 for step in _axes(described, key, dims, 1)] for key in ("Stride", "Dilation"))
    begin, end = (_axes(described, key, dims, 0) for key in ("PrePadding", "PostPadding"))
    stored = str(first.get("Format/Datatype", ""))
    weights = described.get("Weights")
    multiplied = str(weights.get("Type", "")) if isinstance(weights, dict) else ""
    return with_output(
        ConvLayer(
            name=name, path=path, op="conv" if op == "conv" else "conv_transpose", dims=dims, N=shape[0], C=shape[1],
            K=_count(described.get("OutMaps")), groups=_count(described.get("Groups")) or 1,
            dtype=_dtype(multiplied) or _dtype(stored), layout=_layout(stored), bias=described.get("HasBias") == 1,
            residual_inputs=max(0, sum(isinstance(tensor, dict) for tensor in read) - 1),
            **axis_fields(shape[2:], kernel, stride, begin, end, dilation, [0] * dims),
        )
    )  # fmt: skip


def _axes(described: Mapping[str, Any], key: str, dims: int, missing: int) -> list[int | None]:
    """A number for each axis; `missing` where the layer does not have so many."""
    sizes = _sizes(described, key)
    return sizes if len(sizes) == dims else [missing] * dims


def _sizes(described: Mapping[str, Any], key: str) -> list[int | None]:
    """A list of sizes; None for open ones (-1)."""
    return [_count(value) for value in listed(described, key)[:8]]


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31 else None


def _dtype(text: str) -> Dtype | None:
    return next((dtype for pattern, dtype in _DTYPES if pattern.search(text)), None)


def _layout(stored: str) -> Layout:
    """Of `Channel major FP16 format where channel % 8 == 0` and the like; "auto" for vectors of channels."""
    if stored.startswith("Channel major"):
        return "NHWC"
    return "NCHW" if stored.startswith("Row major") else "auto"


def _beside(path: str, ending: str) -> str | None:
    """The file with that ending beside the one of the layers; None if there is none."""
    folder, name = os.path.split(path)
    for mine, other in _PROFILES:
        head, separator, tail = name.rpartition(mine)
        beside = os.path.join(folder, head + other + tail.removesuffix(".json") + ending)
        if separator and os.path.isfile(beside):
            return beside
    return None


def _profile(path: str) -> tuple[dict[str, float], int, Device | None]:
    """Times in us by layer, of how many runs they are the medians, and the device. Raises InputFault."""
    times_path, metadata_path = _beside(path, ".json"), _beside(path, ".metadata.json")
    times: dict[str, float] = {}
    runs = 1
    if times_path is not None:
        with TraceFile(times_path) as file:
            for event in file.events():
                runs = max(1, _count(event.get("count")) or runs)
                us = event.get("medianMs", event.get("averageMs"))
                if isinstance(us, int | float) and not isinstance(us, bool) and 0 <= us < 1e9:
                    name = str(event.get("name", ""))[:2000]
                    times[name] = times.get(name, 0.0) + us * 1e3
    device = None
    if metadata_path is not None:
        with TraceFile(metadata_path) as file:
            for _ in file.events():
                break
        device = _device(file.top.get("device_information"))
    return times, runs, device


def _device(information: Any) -> Device | None:
    if not isinstance(information, dict):
        return None
    capability, sms = information.get("Compute Capability"), information.get("SMs")
    memory = _MIB.fullmatch(str(information.get("Device Global Memory", "")))
    if not isinstance(capability, int | float) or not isinstance(sms, int | float) or memory is None:
        return None
    return Device(
        kind="cuda", name=clean(str(information.get("Selected Device", "")))[:200], framework_version="",
        compute_capability=f"{capability:.1f}", sms=int(sms), memory_bytes=int(memory[1]) << 20,
    )  # fmt: skip


def _notes(layers: Sequence[Mapping[str, Any]], times: Mapping[str, float], device: Device | None) -> Iterator[str]:
    if not times:
        yield "no times of the engine: --exportProfile beside it, as NAME.profile.json of NAME.graph.json, has them"
        return
    copies = {str(layer.get("Name", "")) for layer in layers if layer.get("ParameterType") == "Reformat"}
    whole_us, copied_us = sum(times.values()), sum(times.get(name, 0.0) for name in copies)
    yield f"the whole engine: {duration(whole_us)} a run, of which {duration(copied_us)} in reformats of tensors"
    if device is None:
        yield "nothing says which GPU timed the engine: --gpu names it"
    elif gpu_of(device) is None:
        yield f"convlint does not know the GPU {device.name}: --gpu names one like it"
