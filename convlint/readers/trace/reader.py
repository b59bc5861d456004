"""The reader of traces of PyTorch's profiler: the convolutions that ran, with what they took on their GPU."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import gcd
from statistics import median
from typing import Any

from msgspec.structs import replace

from convlint.files.languages import duration, plural
from convlint.files.safe import clean
from convlint.gpus.devices import Device, gpu_of
from convlint.gpus.gpu import Gpu
from convlint.model.errors import InputFault
from convlint.model.layer import ConvLayer, Dtype, Layout, Measured, Mode, Pass, mostly_nhwc, with_output
from convlint.model.network import Network, RecordedStep, unique_name
from convlint.model.report import InputError
from convlint.model.runtime import Runtime
from convlint.readers import Outcome, Reader, ReadOptions
from convlint.readers.operations import axis_fields
from convlint.readers.trace.engine import read_engine
from convlint.readers.trace.events import TraceFile, is_engine
from convlint.readers.trace.kernels import Parts, backward_parts, combined, forward_parts, uses_tensor_cores
from convlint.readers.trace.operators import TOO_LONG, KernelWorks
from convlint.readers.trace.recording import Call, OperatorArgument, TraceRecording, recorded

HOW = "record with torch.profiler.profile(record_shapes=True) and export_chrome_trace; with_stack=True adds names"
_DTYPES: Mapping[str, Dtype] = {
    "double": Dtype.fp64, "float": Dtype.fp32, "c10::Half": Dtype.fp16, "c10::BFloat16": Dtype.bf16,
    "c10::Float8_e4m3fn": Dtype.fp8, "c10::Float8_e5m2": Dtype.fp8, "signed char": Dtype.int8,
    "unsigned char": Dtype.int8, "c10::qint8": Dtype.int8,
}  # fmt: skip
_WHOLE = re.compile(r"-?\d{1,9}")
_LARGEST = 2**31
_Key = tuple[Any, ...]
_FORM = 9  # how much of the sizes of a call is none of its layout, which a gradient need not share
_ENOUGH_OPERATORS = 5  # that are called equally often, to say that steps repeat


def read(path: str, options: ReadOptions) -> Outcome:
    """The network of a trace or an engine, and the errors in it."""
    if is_engine(path):
        return read_engine(path, options.batch)
    network, _, errors = read_with_device(path)
    return network, errors


def read_with_device(path: str) -> tuple[Network | None, Device | None, tuple[InputError, ...]]:
    """The network, the device that it ran on, None where the trace names none, and the errors."""
    errors: list[str] = []
    try:
        if is_engine(path):
            raise InputFault("an engine of TensorRT, and no trace of PyTorch, whose convolutions measure is about")
        with TraceFile(path) as file:
            recording = recorded(file)
        network = _network(path, recording, errors)
    except InputFault as fault:
        return None, None, (InputError(path=path, message=fault.message),)
    if recording.fault:
        errors.append(f"not a whole trace: {recording.fault}")
    return network, _device(recording), tuple(InputError(path=path, message=message) for message in errors)


def _network(path: str, recording: TraceRecording, errors: list[str]) -> Network:
    if not recording.calls:
        cut = f" ({recording.fault})" if recording.fault else ""
        raise InputFault(f"no convolution ran in it, or its operators were not recorded{cut}: {HOW}")
    notes: list[str] = []
    device = _device(recording)
    gpu = None if device is None else gpu_of(device)
    if not recording.has_kernels:
        notes.append("no kernel of a GPU in the trace: its layers are predicted, not measured")
    elif gpu is None:
        name = clean(str(recording.device.get("name", "")))
        what = f"convlint does not know the GPU {name}" if name else "what could be read names no GPU"
        notes.append(f"{what}: --gpu names it, or one like it")
    of_steps = [call for call in recording.calls if call.in_step]
    if not recording.steps:
        of_steps = [call for call in of_steps if not call.warm_up] or of_steps
    groups, unknown = _grouped(of_steps)
    runtime = _runtime(recording, of_steps)
    sized = bool(groups)
    if not sized:
        groups = _by_kernels(of_steps)
        have = f"{plural(len(of_steps), 'call')} of convolutions {'has' if len(of_steps) == 1 else 'have'}"
        errors.append(f"its {have} no sizes{_took(of_steps)}: {HOW}")
    elif unknown:
        lacking = f"{plural(len(unknown), 'call')} of convolutions {'lacks' if len(unknown) == 1 else 'lack'}"
        errors.append(f"{lacking} sizes, strides or padding{_took(unknown)}: left out")
    if recording.has_kernels and not any(call.kernels for call in recording.calls):
        notes.append("no kernel belongs to a convolution, as with CUDA graphs: its layers are predicted, not measured")
    steps = len(recording.steps) or _repetitions(groups, recording.works)
    if steps > 1 and not recording.steps:
        notes.append(f"no step is marked in it: its calls repeat {steps} times, which are taken as steps")
    layers = [_layer(path, calls, steps) if sized else _unsized(path, calls) for calls in groups.values()]
    trains = any(call.kind == "backward" for call in of_steps)
    if recording.has_kernels:
        layers = [_measured(layer, calls, gpu, trains) for layer, calls in zip(layers, groups.values(), strict=True)]
    return Network(
        path=path, layers=tuple(_with_names(layers)), runtime=runtime, mode="training" if trains else "inference",
        targets=() if gpu is None else (gpu.id,), notes=tuple(notes),
        recorded=_recorded(recording, steps, unknown if sized else (), layers, "training" if trains else "inference"),
    )  # fmt: skip


def _took(calls: Iterable[Call]) -> str:
    us = sum(kernel.us for call in calls for kernel in call.kernels)
    return f", which took {duration(us)}" if us else ""


def _recorded(
    recording: TraceRecording, steps: int, unknown: Iterable[Call], layers: Sequence[ConvLayer], mode: Mode
) -> RecordedStep | None:
    """One step of all kernels; None where none ran, or the trace ends in one.

    Convolutions of which no layer is known are none of the layers'.
    """
    if recording.fault:
        return None
    count = recording.works.steps or steps
    lost_us = sum(kernel.us for call in unknown for kernel in call.kernels) / steps
    works = []
    for work in recording.works.works:
        work = replace(work, us=work.us / count, kernels=work.kernels / count, calls=work.calls / count)
        if work.part == "convolution" and lost_us:
            works.append(replace(work, part="other", op="convolution without sizes", us=lost_us))
            work = replace(work, us=max(0.0, work.us - lost_us))
        works.append(work)
    spans = [end - begin for begin, end in recording.steps]
    return RecordedStep(
        works=tuple(works), operations=recording.works.operations / count, mode=mode,
        dtypes=tuple(layer.dtype for layer in layers),
        in_nhwc=mostly_nhwc(layers),
        span_us=median(spans) if spans else 0.0,
    ) if works else None  # fmt: skip


def _by_kernels(calls: Iterable[Call]) -> dict[_Key, list[Call]]:
    """Calls without sizes, grouped by their position in a step: every step launches the same kernels.

    Gradients are of the layer whose sequence number they have.
    """
    calls = list(calls)
    names = [(call.kind, *(kernel.name for kernel in call.kernels if "Mem" not in kernel.name)) for call in calls]
    period = _period(names)
    of_sequence = {call.sequence: at % period for at, call in enumerate(calls) if call.kind == "forward"}
    groups: dict[_Key, list[Call]] = {}
    for at, call in enumerate(calls):
        known = call.kind == "backward" and call.sequence is not None
        groups.setdefault((of_sequence.get(call.sequence, at % period) if known else at % period,), []).append(call)
    return groups


def _unsized(path: str, calls: Sequence[Call]) -> ConvLayer:
    """A layer of which only its kernels are known."""
    return ConvLayer(name=_module(calls), path=path, layout=_layout_of_kernels(calls), H=None, W=None)


def _layout_of_kernels(calls: Sequence[Call]) -> Layout:
    """NCHW if kernels transpose it, NHWC if they read it directly; "auto" if their names show neither."""
    names = [kernel.name.lower() for call in calls for kernel in call.kernels]
    if any("nchwtonhwc" in name for name in names):
        return "NCHW"
    return "NHWC" if any("nhwc" in name for name in names) else "auto"


def _module(calls: Sequence[Call]) -> str:
    return next((".".join(call.modules[-2:]) for call in calls if call.modules), "")


def _device(recording: TraceRecording) -> Device | None:
    device = recording.device
    values = [device.get(name) for name in ("computeMajor", "computeMinor", "numSms", "totalGlobalMem")]
    numbers = [number for number in values if isinstance(number, int) and 0 <= number < 2**50]
    if len(numbers) < len(values):
        return None
    major, minor, sms, memory = numbers
    return Device(
        kind="cuda", name=clean(str(device.get("name", "")))[:200], framework_version="", sms=sms, memory_bytes=memory,
        compute_capability=f"{major}.{minor}",
    )  # fmt: skip


def _runtime(recording: TraceRecording, calls: Sequence[Call]) -> Runtime:
    """The settings that operators were called with; TF32 by the names of kernels where no call has it."""

    def setting(name: str) -> bool | None:
        values = {call.arguments[name].value for call in calls if name in call.arguments}
        return True if "True" in values else False if "False" in values else None

    allowed = setting("allow_tf32")
    return Runtime(
        framework="pytorch", cudnn_benchmark=setting("benchmark"), deterministic=setting("deterministic"),
        compile=True if recording.compiled else None, cuda_graphs=True if recording.has_graphs else None,
        tf32=(recording.has_tf32_kernels or not recording.has_kernels) if allowed is None else allowed,
    )  # fmt: skip


def _grouped(calls: Iterable[Call]) -> tuple[dict[_Key, list[Call]], list[Call]]:
    """The calls of each layer, forward calls and gradients, and the calls that lack information."""
    groups: dict[_Key, list[Call]] = {}
    of_sequence: dict[int | None, _Key] = {}
    of_sizes: dict[_Key, _Key] = {}
    unknown: list[Call] = []
    for call in calls:
        sizes = _sizes(call)
        if sizes is None:
            unknown.append(call)
            continue
        if call.kind == "forward":
            key = (*sizes, call.modules, call.place)
            of_sizes.setdefault(sizes, key)
            of_sizes.setdefault(sizes[:_FORM], key)
            if call.sequence is not None:
                of_sequence[call.sequence] = key
        else:
            form = sizes[:_FORM]
            match = of_sequence.get(call.sequence, ())
            other = of_sizes.get(sizes) or of_sizes.get(form, (*sizes, (), None))
            key = match if match[:_FORM] == form else other
        groups.setdefault(key, []).append(call)
    return groups, unknown


def _sizes(call: Call) -> _Key | None:
    """Everything that identifies the layer except its place in the code; None if a part is unknown."""
    arguments = call.arguments
    source, weight = arguments["input"], arguments["weight"]
    dims = len(weight.sizes) - 2
    if (
        dims not in (1, 2, 3)
        or len(source.sizes) not in (dims + 1, dims + 2)
        or not all((*source.sizes, *weight.sizes))
        or max(*source.sizes, *weight.sizes) > _LARGEST
    ):
        return None
    lists = [
        _list(arguments.get(name, OperatorArgument()).value, dims, least)
        for name, least in (("stride", 1), ("padding", 0), ("dilation", 1))
    ]
    groups = _list(arguments.get("groups", OperatorArgument()).value, 1, 1)
    if "depthwise" in call.operator and groups is None:  # whose operator has no such argument
        groups = (source.sizes[-dims - 1] // weight.sizes[1],)
    if None in lists or groups is None or groups == (0,):
        return None
    transposed = arguments.get("transposed", OperatorArgument()).value == "True" or call.operator.endswith("transpose")
    output_padding = _list(arguments.get("output_padding", OperatorArgument()).value, dims) or (0,) * dims
    shape = source.sizes if len(source.sizes) == dims + 2 else (1, *source.sizes)
    return (
        shape, weight.sizes, *lists, groups[0], transposed, output_padding, source.dtype, _layout(source, weight),
        _is_channels_last(source) is False and _is_channels_last(weight) is True,
    )  # fmt: skip


def _list(text: str, dims: int, least: int = 0) -> tuple[int, ...] | None:
    """`[16, 16]` or `1`: a number for each dimension, none of them below `least`."""
    numbers = tuple(map(int, _WHOLE.findall(text)))
    if len(numbers) == 1:
        numbers *= dims
    return numbers if len(numbers) == dims and min(numbers) >= least and max(numbers) < _LARGEST else None


def _is_channels_last(tensor: OperatorArgument) -> bool | None:
    """Whether its channels are contiguous; None if the strides are missing or fit both layouts."""
    sizes, strides = tensor.sizes, tensor.strides
    if len(strides) != len(sizes) or len(sizes) < 4 or sizes[1] == 1 or all(size == 1 for size in sizes[2:]):
        return None
    return strides[1] == 1


def _layout(source: OperatorArgument, weight: OperatorArgument) -> Layout:
    """PyTorch runs a layer in NHWC where its input or its weights have that."""
    if True in (_is_channels_last(source), _is_channels_last(weight)):
        return "NHWC"
    return "NCHW" if source.strides or len(source.sizes) < 4 else "auto"


def _repetitions(groups: Mapping[_Key, Sequence[Call]], works: KernelWorks) -> int:
    """How often the whole sequence of calls repeats; of a single layer, how often all operators do."""
    order = sorted((call.begin, number) for number, calls in enumerate(groups.values()) for call in calls)
    numbers = [number for _, number in order]
    if len(groups) > 1:
        return len(numbers) // _period(numbers)
    others = [round(work.calls) for work in works.works if work.part not in ("convolution", "other")]
    return gcd(len(numbers), *others) if len(others) >= _ENOUGH_OPERATORS and len(numbers) > 1 else 1


def _period(values: Sequence[Any]) -> int:
    """The length of the shortest beginning whose repetition gives all values."""
    count = len(values)
    return next(
        length
        for length in range(1, count + 1)
        if count % length == 0 and all(values[at] == values[at % length] for at in range(count))
    )


def _layer(path: str, calls: Sequence[Call], steps: int) -> ConvLayer:
    first = calls[0]
    sizes = _sizes(first)
    assert sizes is not None  # it was grouped by them
    shape, filters, stride, padding, dilation, groups, transposed, output_padding, dtype, layout, copies = sizes
    dims = len(filters) - 2
    ran = [call for call in calls if call.kind == "forward"]
    masks = [call.arguments["mask"].value for call in calls if call.kind == "backward"]
    place = next((call.place for call in ran if call.place is not None), None)
    file, line = place or (path, 0)
    bias = first.arguments.get("bias")
    return with_output(
        ConvLayer(
            name=_module(ran), path=file, spans={"layer": (line, 1, line, 1)} if place else {},
            op="conv_transpose" if transposed else "conv",
            dims=dims, N=shape[0], C=shape[1], K=filters[1] * groups if transposed else filters[0], groups=groups,
            **axis_fields(shape[2:], filters[2:], stride, padding, padding, dilation, output_padding),
            dtype=_DTYPES.get(dtype),
            layout=_layout_of_kernels(ran) if layout == "auto" else layout,
            bias=None if bias is None else bool(bias.sizes), copies_input=copies,
            first=bool(masks) and all(mask.startswith("[False") for mask in masks),
            calls=max(1, round((len(ran) or len(calls)) / steps)),
        )
    )  # fmt: skip


def _with_names(layers: Sequence[ConvLayer]) -> Iterator[ConvLayer]:
    """The layers with unique names: those of their modules, else a description, numbered."""
    names: dict[str, int] = {}
    for layer in layers:
        sides = "x".join(map(str, (layer.T, layer.R, layer.S)[-layer.dims :]))
        form = "convolution" if layer.C is None else f"conv {sides} {layer.C}-{layer.K} at {layer.H}x{layer.W}"
        name = clean(layer.name) or form
        yield replace(layer, name=unique_name(name, names))


def _measured(layer: ConvLayer, calls: Sequence[Call], gpu: Gpu | None, trains: bool) -> ConvLayer:
    """The layer with what its passes took on the GPU."""
    forward, backward = (_steady([call for call in calls if call.kind == kind]) for kind in ("forward", "backward"))
    of_pass: dict[Pass, list[Parts]] = {"fprop": [forward_parts(call.kernels) for call in forward]}
    for call in backward:
        for which, parts in backward_parts(call.kernels, _computed(call)).items():
            of_pass.setdefault(which, []).append(parts)
    ran = sum(call.kind == "forward" for call in calls)
    ratio = sum(call.kind == "backward" for call in calls) / (ran or 1)
    passes = []
    for which, call_parts in of_pass.items():
        if any(sum(parts.values()) for parts in call_parts):
            measured_pass = combined(call_parts, 1.0 if which == "fprop" else ratio if ran else 1.0)
            multiplies = _multiplies(which, forward if which == "fprop" else backward)
            passes.append((which, replace(measured_pass, tensor_cores=multiplies)))
    alike = not any(call.modules or call.place for call in calls)
    measured = Measured(gpu="" if gpu is None else gpu.id, passes=tuple(passes), trained=trains, alike=alike)
    return replace(layer, measured=measured) if passes else layer


def _multiplies(which: Pass, calls: Iterable[Call]) -> bool | None:
    """Whether Tensor Cores multiply in a pass; of a gradient, known only if its call computes no other."""
    own = [call for call in calls if which == "fprop" or _computed(call) == (which,)]
    return uses_tensor_cores([kernel.name for call in own for kernel in call.kernels])


def _computed(call: Call) -> tuple[Pass, ...]:
    """Which gradients a backward call computes, by the mask of its outputs."""
    mask = re.findall(r"True|False", call.arguments["mask"].value) or ["True", "True", "True"]
    gradients: tuple[tuple[str, Pass], ...] = ((mask[0], "dgrad"), (mask[1] if len(mask) > 1 else "True", "wgrad"))
    return tuple(which for flag, which in gradients if flag == "True")


def _steady(calls: Sequence[Call]) -> list[Call]:
    """The calls without warm-up: those named so, and much longer ones, in which algorithms are tried."""
    with_kernels = [call for call in calls if call.kernels]
    unmarked = [call for call in with_kernels if not call.warm_up] or with_kernels
    times = sorted(sum(kernel.us for kernel in call.kernels) for call in unmarked)
    if len(times) < 2:
        return unmarked
    usual = times[(len(times) - 1) // 2]
    return [call for call in unmarked if sum(kernel.us for kernel in call.kernels) <= TOO_LONG * usual] or unmarked


READER = Reader(read=read)
