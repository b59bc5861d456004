"""The time that a framework's host needs to start a network's operations, for which a faster GPU waits.

An eager framework launches one kernel after another, so that small layers wait for the CPU, whatever the GPU could do:
ResNet-50 infers on V100 with autocast in 12.8 ms at N = 1 and in 14.0 ms at N = 16 (NVIDIA DeepLearningExamples,
PyTorch/Classification/ConvNets/resnet50v1.5, container 21.03). Latency there follows the number of operations: 332 to
364 us per convolution over eight networks on one machine (torch2trt, benchmarks/JETSON_XAVIER.md).

A convolution counts with its normalisation, where some layer is known to have one or nothing is known of any, and its
activation: three operations, as ResNet-50 (3.3), MobileNetV2 (2.9) and EfficientNet-B0 (3.0) have them. What these take
on the GPU, by their bytes, is no time that the convolutions wait. The host's speed is that of a server; desktops were
measured at less than half of it per operation, slow cloud CPUs at three times.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from convlint.estimate import constants as const
from convlint.estimate.board import board_of
from convlint.estimate.passes import running_passes
from convlint.gpus.gpu import Gpu
from convlint.model.estimates import LayerEstimate, PassEstimate, StepEstimate
from convlint.model.layer import ConvLayer, Dtype, Loss, Mode, Pass
from convlint.model.runtime import Runtime, framework_of


class Host(NamedTuple):
    """The us that a host needs for each pass of one convolution and what follows it; and those of a byte on the GPU."""

    fprop: float = 0.0
    dgrad: float = 0.0
    wgrad: float = 0.0
    us_per_byte: float = 0.0
    fuses: bool = False  # what follows is one kernel


NO_HOST: Final = Host()

# ResNet-50 at N = 1, torch 2.0.1 in fp32: 6.53 ms on A100, 6.48 on V100, 6.03 on T4 (transformers,
# docs/source/en/perf_torch_compile.md), some 173 operations.
EAGER_US_PER_OPERATION: Final = 38.0
OPERATIONS: Final = 3  # per convolution
# Steps of training take 2.7 to 4 times as long as inference on one host, the optimizer included (pytorch/benchmark,
# pull requests 543 to 553, 706), under autocast 4 to 5.5 times (17 networks on three virtual machines with H100 and
# H200, PyTorch 2.11, bf16: 163 to 227 us for an operation, in inference 33 to 57).
BACKWARD: Final = 2.4
TENSORFLOW_BACKWARD: Final = 1.2  # of its graphs. Assumed
# Autocast looks at every operation and casts weights: 1.20 to 1.31 for ResNet-50 and EfficientNets (the README above).
# In training their gradients are cast back.
AUTOCAST: Final = 1.25
_BISECTIONS: Final = 40  # a share to within 1e-12
JETSON: Final = 3.0  # its ARM cores over a server's: torch2trt's table
# Over eager PyTorch on the same machine: torch.compile in its default mode .59 (V100) to .63 (A100) for ResNet-50.
# Its backward pass, and the optimizer, which is not compiled, are taken to be no faster: MobileNetV2 trains in 22.2 ms
# where eager takes 24.6, MobileNetV3 in 32.7 and 36.1, both at the pace of the host (H200, PyTorch 2.11); on a machine
# with H100 compiled training took 1.2 to 1.3 times as long as eager.
# TensorFlow's graphs 4.25 ms where PyTorch takes 12.78 (NVIDIA DeepLearningExamples). TensorRT's engines, XLA and ONNX
# Runtime have no term: the first start kernels as fast as the GPU asks for them, of the others nothing sure was found.
COMPILED: Final = 0.6
TENSORFLOW: Final = 0.33
# Fewer convolutions are taken to be a part of some network, whose other operations nobody knows.
LEAST_CALLS: Final = 10
# Times what the GPU needs that the host needs before it is the bound for sure: desktops are twice as fast.
SURELY: Final = 2.0
# How often what follows a convolution reads or writes its output: a batch norm in inference, in training and back, and
# an activation forward and back; and its kernels. In 16 bits, whatever the layers have: it is the least, and what 16
# bits save of it is no change of the convolutions' time.
_NORM: Final = (2, 3, 5)
_NORM_KERNELS: Final = (1, 2, 2)
_ACTIVATION: Final = (2, 3)
_BYTES: Final = 2
_SIXTEEN: Final = (Dtype.fp16, Dtype.bf16)


def is_autocast(layers: Sequence[ConvLayer], runtime: Runtime, mode: Mode) -> bool:
    """Whether 16-bit layers run in PyTorch beside weights and norms in fp32.

    Where nobody says so: in training, whose weights are fp32 unless a master copy stands beside them.
    """
    if framework_of(runtime) not in (None, "pytorch") or not any(layer.dtype in _SIXTEEN for layer in layers):
        return False
    return mode == "training" if runtime.mixed_precision is None else runtime.mixed_precision


def host_us(gpu: Gpu, runtime: Runtime) -> Host:
    """Microseconds before which no pass ends on a host of its framework; zeros where none holds the GPU up."""
    framework = framework_of(runtime)
    if runtime.cuda_graphs or framework not in ("pytorch", "tensorflow"):
        return NO_HOST
    share = TENSORFLOW if framework == "tensorflow" else COMPILED if runtime.compile else 1.0
    eager_us = EAGER_US_PER_OPERATION * OPERATIONS * (JETSON if gpu.jetson else 1.0)
    autocast = AUTOCAST if runtime.mixed_precision and framework == "pytorch" else 1.0
    backward = eager_us * (autocast * BACKWARD if framework == "pytorch" else share * TENSORFLOW_BACKWARD) / 2
    forward = eager_us * share * (1.0 if runtime.compile else autocast)
    us_per_byte = 1e6 / (gpu.dram_bytes_per_s * board_of(gpu).factors.bandwidth * const.STREAMED)
    return Host(forward, backward, backward, us_per_byte, fuses=bool(runtime.compile))


def steps_host_us(gpu: Gpu, runtime: Runtime, operations: int, back: int) -> float | None:
    """The host's time for a step of so many operations forward and `back`; None where no host is known."""
    host = host_us(gpu, runtime)
    if host == NO_HOST:
        return None
    return (operations * host.fprop + back * (host.dgrad + host.wgrad)) / OPERATIONS


def can_compile(runtime: Runtime, gpu: Gpu) -> bool:
    """Whether torch.compile is in the release and has a compiler for the GPU.

    Inductor writes Triton, which begins at compute capability 7.0 (GPUTooOldForTriton in torch/_inductor/exc.py).
    PyTorch 2.0 brought it; NVIDIA's containers had it in builds that call themselves 1.14.
    """
    version = runtime.framework_version if framework_of(runtime) == "pytorch" else None
    return gpu.compute_capability >= "7.0" and (version is None or version >= "1.14")


def runtime_on(runtime: Runtime, gpu: Gpu) -> Runtime:
    """The runtime on a GPU: eager where torch.compile is asked for and cannot be, since that is how it will run."""
    return replace(runtime, compile=False) if runtime.compile and not can_compile(runtime, gpu) else runtime


def is_eager(runtime: Runtime) -> bool:
    """Whether the framework is known to launch operation after operation from its interpreter.

    PyTorch does unless torch.compile is asked for, which is optional (PyTorch, "Introduction to torch.compile").
    """
    return framework_of(runtime) == "pytorch" and not runtime.compile and not runtime.cuda_graphs


class Hosted(Struct, frozen=True):
    """The estimates of a network with what its host adds to them; times in us, of all calls and passes.

    `all_host_us` is the host's time for the convolutions and what usually follows them, `following_us` the GPU's time
    for the latter, `host_us` the difference, which is left for the convolutions; `gpu_us` is the GPU's time for them.
    None: unknown. Where `gpu_us` is less than `host_us`, the host is the bound, and each pass takes as long as the host
    lets it. `step` is the whole step, and `compiled` the same behind torch.compile, where all operations are known:
    then it tells whether the host is the bound, layers take the GPU's time, and `host_us` is None. `host` is the pace
    that holds for layers.
    """

    estimates: tuple[LayerEstimate | None, ...]
    host_us: float | None
    gpu_us: float | None
    host: Host = NO_HOST
    step: StepEstimate | None = None
    compiled: StepEstimate | None = None
    following_us: float = 0.0
    kernels_us: float = 0.0  # of it what is the same for every batch
    all_host_us: float | None = None

    @property
    def is_bound(self) -> bool:
        """Whether the GPU waits for the host."""
        if self.step is not None:
            return self.step.idle_us > 0
        return self.host_us is not None and self.gpu_us is not None and self.gpu_us < self.host_us

    @property
    def step_us(self) -> float | None:
        """The whole step; where convolutions alone are known, their part of it."""
        if self.step is not None:
            return self.step.time_us
        return None if self.gpu_us is None else max(self.gpu_us, self.host_us or 0.0)

    @property
    def whole_host_us(self) -> float | None:
        """The host's time for all operations, or for the usual ones where they are unknown."""
        return self.all_host_us if self.step is None else self.step.host_us

    @property
    def whole_gpu_us(self) -> float | None:
        """The GPU's time for the same operations."""
        if self.step is not None:
            return self.step.gpu_us
        return None if self.gpu_us is None else self.gpu_us + self.following_us

    @property
    def pace(self) -> tuple[float, float]:
        """The host's time to start a step, and the GPU's time beside convolutions that follows N; 0 if not bound."""
        if not self.is_bound:
            return 0.0, 0.0
        if self.step is None:
            return self.all_host_us or 0.0, self.following_us - self.kernels_us
        return self.step.host_us or 0.0, self.step.beside_us

    @property
    def most_us(self) -> float | None:
        """How much shorter less work for the GPU can make the whole step, which then waits for the host."""
        if self.step is None or self.step.host_us is None:
            return None
        return max(0.0, self.step.time_us - self.step.host_us)

    @property
    def lost_step_us(self) -> dict[Loss, float]:
        """The time of a step lost to the host, and to operations that torch.compile would fuse."""
        lost: dict[Loss, float] = {}
        if self.step is not None:
            lost["host"] = self.step.idle_us
            if self.compiled is not None:
                lost["compile"] = self.step.time_us - self.compiled.time_us
        elif self.is_bound:
            lost["host"] = (self.host_us or 0.0) - (self.gpu_us or 0.0)
        return lost

    @property
    def is_surely_bound(self) -> bool:
        """Whether it would wait for a faster host too, so that no kernel that ends sooner saves time."""
        return self.is_bound and (self.whole_gpu_us or 0.0) * SURELY < (self.whole_host_us or 0.0)


def left_us(layers: Sequence[ConvLayer], mode: Mode, host: Host) -> float:
    """The host's time for the convolutions of these layers, less the GPU's time for what follows them."""
    total = _summed(layers, _shares(layers, [running_passes(layer, mode) for layer in layers], host))
    return max(0.0, total.host_us - total.following_us)


class _Share(NamedTuple):
    """One pass of a layer: the host's time, the GPU's for what follows it, and the launches' part of that."""

    host_us: float
    following_us: float
    kernels_us: float


_Shares = Sequence[dict[Pass, _Share]]


def _shares(layers: Sequence[ConvLayer], passes: Sequence[Collection[Pass]], host: Host) -> _Shares:
    """The share of each pass, by layer."""
    norms = any(layer.norm_follows for layer in layers)  # else nobody says which layers have one
    shares = []
    for layer, running in zip(layers, passes, strict=True):
        has_norm = bool(layer.norm_follows) or not norms
        size = (layer.N or 0) * (layer.K or 0) * (layer.Z or 0) * (layer.P or 0) * (layer.Q or 0)
        moved = size * _BYTES * host.us_per_byte
        trains = "wgrad" in running
        of_host = 1.0 if has_norm else (OPERATIONS - 1) / OPERATIONS
        own: dict[Pass, _Share] = {}
        for which in running:
            way = 2 if which != "fprop" else 1 if trains else 0
            back = which != "fprop"
            fused = has_norm and host.fuses
            accesses = has_norm * _NORM[way] + (0 if fused else _ACTIVATION[back])
            kernels = has_norm * _NORM_KERNELS[way] + (0 if fused else 1)
            parts = len(running) - 1 if back else 1  # dgrad and wgrad have halves
            own_us = kernels * const.KERNEL_US / parts
            own[which] = _Share(getattr(host, which) * of_host, accesses * moved / parts + own_us, own_us)
        shares.append(own)
    return shares


def _summed(layers: Sequence[ConvLayer], shares: _Shares) -> _Share:
    parts = [(layer.calls, share) for layer, own in zip(layers, shares, strict=True) for share in own.values()]
    return _Share(*(sum(calls * share[place] for calls, share in parts) for place in range(3)))


def hosted(layers: Sequence[ConvLayer], estimates: Sequence[LayerEstimate | None], host: Host) -> Hosted:
    """The estimates of the layers of one network on a host; as they are where a layer's time is not known."""
    known = [(layer, estimate) for layer, estimate in zip(layers, estimates, strict=True) if estimate is not None]
    if len(known) < len(layers):
        return Hosted(tuple(estimates), None, None)
    gpu_us = sum(estimate.time_us for _, estimate in known)
    if host == NO_HOST:
        return Hosted(tuple(estimates), None, gpu_us)
    shares = _shares(layers, [estimate.passes for _, estimate in known], host)
    parts = [
        (layer.calls, of_pass.time_us, own[which])
        for (layer, estimate), own in zip(known, shares, strict=True)
        for which, of_pass in estimate.passes.items()
    ]
    total = _summed(layers, shares)
    host_us = max(0.0, total.host_us - total.following_us)
    alone = Hosted(
        tuple(estimates), host_us, gpu_us, host, following_us=total.following_us, kernels_us=total.kernels_us,
        all_host_us=total.host_us,
    )  # fmt: skip
    if gpu_us >= host_us:
        return alone
    low, high = 0.0, 1.0  # the GPU catches up in long passes: of what the host needs, this share is waited for
    for _ in range(_BISECTIONS):
        share = (low + high) / 2
        sum_us = sum(calls * max(time, share * own.host_us - own.following_us) for calls, time, own in parts)
        low, high = (share, high) if sum_us < host_us else (low, share)
    sure = alone.is_surely_bound
    waiting: dict[tuple[int, float], PassEstimate] = {}
    result = []
    for (layer, estimate), shared in zip(known, shares, strict=True):
        passes = {}
        for which, of_pass in estimate.passes.items():
            key = id(of_pass), high * shared[which].host_us - shared[which].following_us
            passes[which] = waiting[key] = waiting.get(key) or _held_up(of_pass, key[1], sure=sure)
        time_us, unquantized_us = (
            layer.calls * sum(getattr(item, name) for item in passes.values()) for name in ("time_us", "unquantized_us")
        )
        result.append(replace(estimate, passes=passes, time_us=time_us, unquantized_us=unquantized_us))
    return replace(alone, estimates=tuple(result))


def _held_up(of_pass: PassEstimate, least_us: float, *, sure: bool) -> PassEstimate:
    """The pass on a host that lets it end after `least_us`; where that is `sure`, tiles and waves lose no time."""
    time_us = max(of_pass.time_us, least_us)
    wait_us, share = time_us - of_pass.time_us, of_pass.time_us / time_us
    overhead_us = of_pass.overhead_us + wait_us
    return replace(
        of_pass, time_us=time_us, overhead_us=overhead_us, tflops=of_pass.tflops * share,
        peak_share=of_pass.peak_share * share, unquantized_us=time_us if sure else of_pass.unquantized_us + wait_us,
        lost_to_tiles_us=0.0 if sure else of_pass.lost_to_tiles_us,
        lost_to_waves_us=0.0 if sure else of_pass.lost_to_waves_us,
        bound_by="launch" if 2 * overhead_us > time_us else of_pass.bound_by,
    )  # fmt: skip
