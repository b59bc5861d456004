"""Laws of prices, severities and grades, on random layers that stand alone."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import NamedTuple

import pytest
from cases import sampled
from msgspec.structs import replace

from convlint.engine.check import Target, check_network
from convlint.engine.findings import NetworkResult
from convlint.engine.hits import with_fix, with_settings
from convlint.gpus.gpu import Gpu, gpu_names, load_gpu
from convlint.model.layer import ConvLayer, Dtype, Mode, with_output
from convlint.model.network import Network
from convlint.model.report import Finding, LayerTimes
from convlint.model.runtime import Runtime, Version
from convlint.rulebook.book import load_rulebook

BUILTIN = load_rulebook()
SAME = 1e-6  # relative
DTYPES = (*Dtype, Dtype.fp16, Dtype.fp32, Dtype.fp16, Dtype.fp32)
FRAMEWORKS = (None, None, "pytorch", "pytorch", "tensorrt", "tensorflow", "jax", "onnxruntime")
CUDNN = (None, None, Version("7.4"), Version("8.1"))  # the older one on GPUs that it knows
# Not drawn from, so that the cases of each number stay what they are; each has a test of its own.
# A seed is the same layer whatever GPUs come; those that do are each tried on a few layers.
DRAWN = (
    "a10", "a100-40gb-pcie", "a100-40gb-sxm", "a100-80gb-pcie", "a100-80gb-sxm", "a10g", "a2", "a30", "a40",
    "b100", "b200", "gb200", "gh200", "gk20a", "gtx-1080-ti", "gtx-1650", "gtx-1660-ti", "gtx-680",
    "gtx-980-ti", "h100-nvl", "h100-pcie", "h100-sxm", "h20", "h200-sxm", "jetson-agx-orin",
    "jetson-agx-xavier", "jetson-orin-nano", "k10", "k20", "k20x", "k40", "k80", "l4", "l40", "l40s", "m40",
    "m60", "p100-pcie", "p100-sxm2", "p4", "p40", "quadro-rtx-6000", "rtx-2080-ti", "rtx-3060", "rtx-3080",
    "rtx-3090", "rtx-4070", "rtx-4090", "rtx-5090", "rtx-6000-ada", "rtx-a6000", "rtx-pro-6000-blackwell", "t4",
    "titan-rtx", "titan-v", "titan-xp", "v100-pcie-16gb", "v100-sxm2-16gb", "v100-sxm2-32gb",
)  # fmt: skip
OTHERS = sorted(set(gpu_names()) - set(DRAWN))


class Case(NamedTuple):
    """One layer and what runs it."""

    layer: ConvLayer
    runtime: Runtime
    gpu: Gpu
    mode: Mode

    def checked(self) -> NetworkResult:
        """What convlint says of it."""
        network = Network(path="net.yaml", layers=(self.layer,), runtime=self.runtime)
        return check_network(network, BUILTIN, [Target(label=self.gpu.id, gpu=self.gpu)], self.mode)

    def mended(self, findings: Iterable[Finding]) -> Case:
        """The same with these fixes applied."""
        layer, runtime = self.layer, self.runtime
        for finding in findings:
            layer, runtime = with_fix(layer, finding.fix.set), with_settings(runtime, finding.fix.set)
        return self._replace(layer=layer, runtime=runtime)


def channels(rng: random.Random) -> int:
    """Aligned, round, an image's, or any."""
    kind = rng.random()
    if kind < 0.3:
        return 8 * rng.randint(1, 128)
    if kind < 0.5:
        return 64 * rng.randint(1, 16)
    return rng.randint(1, 4) if kind < 0.6 else rng.randint(1, 1100)


def case(seed: int) -> Case:
    """The layer of that number."""
    rng = random.Random(seed)
    C, K, groups = channels(rng), channels(rng), 1
    kind = rng.random()
    if kind < 0.15:
        groups, K = C, C * rng.choice((1, 1, 1, 2))
    elif kind < 0.25:
        groups = rng.choice((2, 4, 8, 32))
        C, K = groups * rng.randint(1, 64), groups * rng.randint(1, 64)
    dims = rng.choice((1, 2, 2, 2, 2, 2, 2, 3))
    taps = rng.choice((1, 1, 3, 3, 3, 5, 7))
    stride = rng.choice((1, 1, 1, 2))
    T, R, S = (1 if dims < 3 else taps, 1 if dims < 2 else taps, taps)
    layer = ConvLayer(
        name="a", dims=dims, op=rng.choice(("conv",) * 9 + ("conv_transpose",)),
        N=rng.choice((1, 2, 8, 16, 32, 55, 64, 100, 128, 256)), C=C, K=K, groups=groups, first=C <= 4,
        D=rng.choice((4, 8, 16)) if dims == 3 else 1,
        H=1 if dims == 1 else rng.choice((1, 7, 14, 28, 32, 56, 64, 100, 112, 224)),
        W=rng.choice((7, 14, 28, 32, 56, 64, 100, 112, 224, 1000)),
        T=T, R=R, S=S, StrideD=stride if dims == 3 else 1, U=stride if dims > 1 else 1, V=stride,
        PadD=T // 2, PadD_end=T // 2, PadH=R // 2, PadH_end=R // 2, PadW=S // 2, PadW_end=S // 2,
        dtype=rng.choice(DTYPES), layout=rng.choice(("NCHW", "NHWC", "auto")),
    )  # fmt: skip
    gpu, cudnn = load_gpu(rng.choice(DRAWN)), rng.choice(CUDNN)
    runtime = Runtime(
        framework=rng.choice(FRAMEWORKS), tf32=rng.random() < 0.7,
        cudnn=cudnn if gpu.compute_capability < "8.0" else None, cudnn_benchmark=rng.choice((None, True, False)),
    )  # fmt: skip
    return Case(with_output(layer), runtime, gpu, rng.choice(("training", "inference")))


def times_of(result: NetworkResult) -> LayerTimes | None:
    (label,) = result.labels
    return result.layers[0].times[label]


def warnings(result: NetworkResult) -> list[str]:
    """The codes of the layer's own warnings."""
    return sorted(f.rule.code for f in result.findings if f.severity == "warning" and f.layer == "a")


def check_shares(result: NetworkResult, times: LayerTimes) -> None:
    """They add up to time now minus time after, and none is negative; who is not advised loses nothing."""
    assert sum(f.lost_us or 0.0 for f in result.findings) == pytest.approx(
        times.time_us - times.after_us, rel=SAME, abs=SAME * times.time_us
    )
    for finding in result.findings:
        assert finding.lost_us is None or finding.lost_us >= 0
        assert finding.advised or not finding.lost_us
        assert set(finding.pays_with) <= {other.rule.code for other in result.findings if other.advised}


def check_severities(result: NetworkResult, times: LayerTimes) -> None:
    """Much to be gained is never silent, and what is priced as slower is a warning only beside what it pays with."""
    if times.after_us < 0.8 * times.time_us:
        assert any(finding.severity != "info" for finding in result.findings)
    for finding in result.findings:
        slower = finding.fix is not None and (finding.fix.time_change_us or 0.0) > 0
        assert finding.severity != "warning" or not slower or finding.pays_with


def check_mended(one: Case, fixes: list[Finding], before: LayerTimes, promised_us: float) -> NetworkResult:
    """The flaws are gone, the time is the one promised, and the grade no lower."""
    again = one.mended(fixes).checked()
    after = times_of(again)
    assert after.time_us == pytest.approx(promised_us, rel=SAME)
    assert after.grade <= before.grade
    codes = {finding.rule.code for finding in fixes}
    assert not [f for f in again.findings if f.rule.code in codes and f.layer == "a" and f.severity != "info"]
    return again


def check_laws(seed: int, gpu: Gpu | None = None) -> None:
    one = case(seed)
    if gpu is not None:
        one = one._replace(gpu=gpu, runtime=replace(one.runtime, cudnn=None))
    result = one.checked()
    times = times_of(result)
    if times is None:
        assert not [finding for finding in result.findings if finding.lost_us is not None]
        return
    assert times.ideal_us <= times.after_us * (1 + SAME) <= times.time_us * (1 + 2 * SAME)
    check_shares(result, times)
    check_severities(result, times)
    advised = [finding for finding in result.findings if finding.advised]
    for finding in advised:
        change_us = finding.fix.time_change_us if finding.fix else None
        # what stands only once others are mended is no advice on the layer as it is
        if change_us is not None and change_us <= 0 and not finding.message.startswith("once "):
            check_mended(one, [finding], times, times.time_us + change_us)
    if advised:
        again = check_mended(one, advised, times, times.after_us)
        assert not [finding for finding in again.findings if finding.advised]
    lacking = random.Random(seed).choice(("N", "H", "W"))
    unsized = replace(one.layer, **{lacking: None, **({} if lacking == "N" else {"P": None, "Q": None})})
    assert len(warnings(one._replace(layer=unsized).checked())) <= len(warnings(result))


@pytest.mark.parametrize("chunk", range(4))
def test_laws_hold(chunk: int) -> None:
    for seed in range(100 * chunk, 100 * (chunk + 1)):
        check_laws(seed)


@pytest.mark.parametrize("gpu", OTHERS)
def test_laws_hold_on_other_gpus(gpu: str) -> None:
    start = 6 * OTHERS.index(gpu)
    for seed in range(start, start + 6):
        check_laws(seed, load_gpu(gpu))


def test_sizes_that_do_more_without_a_setting_earn_no_more_than_all() -> None:
    """fp32 on CUDA cores with 144 and 8 channels is the fastest here, and no rule asks for it: 16 bits, then sizes."""
    check_laws(7424, load_gpu("rtx-5070"))


@pytest.mark.slow
@pytest.mark.parametrize("chunk", sampled(range(10), 5))
def test_laws_hold_on_ten_thousand_layers(chunk: int) -> None:
    for seed in range(1000 * (chunk + 1), 1000 * (chunk + 2)):
        try:
            check_laws(seed)
        except AssertionError as error:
            raise AssertionError(f"layer {seed}: {case(seed)}") from error


def network_of(seed: int) -> tuple[Case, tuple[ConvLayer, ...]]:
    """Two to six layers that stand alone, some of them alike, on one GPU."""
    rng = random.Random(f"network {seed}")
    one = case(seed)
    kinds = [replace(case(seed + 7919 * (number + 1)).layer, name="a") for number in range(rng.randint(1, 3))]
    layers = [one.layer, *rng.choices([one.layer, *kinds], k=rng.randint(1, 5))]
    return one, tuple(replace(layer, name=f"l{number}") for number, layer in enumerate(layers))


def checked(one: Case, layers: tuple[ConvLayer, ...]) -> NetworkResult:
    network = Network(path="net.yaml", layers=layers, runtime=one.runtime)
    return check_network(network, BUILTIN, [Target(label=one.gpu.id, gpu=one.gpu)], one.mode)


@pytest.mark.parametrize("chunk", range(3))
def test_joined_findings_promise_what_their_layers_reach(chunk: int) -> None:
    """Each layer's shares are in one finding alone, and what that sets in each of its layers is meant for it."""
    for seed in range(60 * chunk, 60 * (chunk + 1)):
        one, layers = network_of(seed)
        result = checked(one, layers)
        times = [entry.times[one.gpu.id] for entry in result.layers]
        known = [each for each in times if each is not None]
        saved = sum(each.time_us - each.after_us for each in known)
        assert sum(f.lost_us or 0.0 for f in result.findings) == pytest.approx(saved, rel=SAME, abs=1e-6), seed
        changes: dict[str, dict[str, object]] = {layer.name: {} for layer in layers}
        for finding in result.findings:
            assert finding.fix is not None or not finding.advised
            if finding.advised and finding.fix is not None:
                names = finding.layers or (finding.layer or "",)
                for name, own in zip(names, finding.fix.by_layer, strict=True):
                    assert not any(changes[name].get(key, value) != value for key, value in own.items()), seed
                    changes[name].update(own)
        for layer, each in zip(layers, times, strict=True):
            if each is not None:
                own = changes[layer.name]
                mended = one._replace(
                    layer=with_fix(layer, own),  # type: ignore[arg-type]
                    runtime=with_settings(one.runtime, own),  # type: ignore[arg-type]
                )
                after = times_of(mended.checked())
                assert after.time_us == pytest.approx(each.after_us, rel=SAME), seed
