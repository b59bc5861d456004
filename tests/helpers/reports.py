"""Reports that the reporters' tests render."""

from types import SimpleNamespace
from typing import Any

from msgspec.structs import replace

from convlint.model.estimates import Roof
from convlint.model.layer import ConvLayer, Dtype, Gemm, Mode, with_output
from convlint.model.location import Location
from convlint.model.report import (
    Finding,
    Fix,
    InputError,
    LayerReport,
    LayerTimes,
    NetworkReport,
    NetworkTotal,
    Report,
    RuleInfo,
    Severity,
    SkippedRule,
    Source,
    Suppressed,
)
from convlint.reporters import Style, reporter

GUIDE = "convolutional-layers-guide"


def _rule(name: str, severity: Severity, section: str, title: str, rationale: str) -> RuleInfo:
    """A rule by its code and name, with the section of the guide that it is from."""
    code, _, words = name.partition(" ")
    source = Source(document=GUIDE, section=section)
    return RuleInfo(code=code, name=words, title=title, severity=severity, rationale=rationale, source=source)


ALIGNMENT = _rule(
    "CL102 channel-alignment", "warning",
    "4.4.3 Channels In And Out", "Channels are not a multiple of the Tensor Core vector width",
    "Tensor Cores work on vectors of 16 bytes of channels. Since cuDNN 7.6.3 other channel counts are "
    "padded before the kernel runs, so the padding's copies and its empty lanes cost time on every call.",
)  # fmt: skip
FIRST_LAYER = _rule(
    "CL103 first-layer-channels", "warning",
    "4.4.3 Channels In And Out", "The first layer has fewer than four input channels",
    "cuDNN has special kernels for a first layer of four channels; with three, most of each vector is empty.",
)  # fmt: skip
MISMATCH = _rule(
    "CL001 output-mismatch", "error", "2 Convolution Basics", "Declared output size differs from the computed one",
    "A declared size that the formula does not give means that the spec describes another network.",
)  # fmt: skip
AUTOTUNE = _rule(
    "CL501 enable-autotune", "warning", "3.1 Choosing An Algorithm", "Autotuning is off though the input size is fixed",
    "With a fixed input size the search for the fastest algorithm is paid once.",
)  # fmt: skip
FEW_OUTPUTS = _rule(
    "CL104 few-output-channels", "info", "4.4.3 Channels In And Out", "Few output channels leave tiles empty",
    "The tile is at least 64 wide in gemm.N, which is K for fprop and wgrad.",
)  # fmt: skip
LAYOUT = _rule(
    "CL401 prefer-nhwc", "warning", "4.1 Tensor Layouts In Memory", "NCHW on Tensor Cores",
    "Tensor Core kernels read channels side by side, as NHWC stores them.",
)  # fmt: skip
TILES = _rule(
    "CL203 tile-quantization", "warning", "4.3 Quantization Effects", "Tiles are partly empty",
    "Where the output matrix ends inside a tile, the rest of that tile is computed and thrown away.",
)  # fmt: skip
RULES = (MISMATCH, ALIGNMENT, FIRST_LAYER, FEW_OUTPUTS, AUTOTUNE)

SPEC = """\
version: 1
runtime: { framework: pytorch, cudnn_benchmark: false, fixed_input_size: true }
defaults: { N: 256, dtype: fp16, layout: NHWC }
layers:
  - { name: stem, C: 3, H: 224, W: 224, K: 64, R: 7, S: 7, stride: 2, padding: 3 }
  - { name: conv2, C: 62, H: 56, W: 56, K: 126, kernel_size: 3, padding: 1 }
  - { name: conv3, C: 62, H: 56, W: 56, K: 64, kernel_size: 3, padding: 1, P: 57, Q: 57 }
  - { name: head, C: 64, H: 56, W: 56, K: 21, kernel_size: 1 }
"""
LINES = tuple(SPEC.splitlines())
LAYERS = ("stem", "conv2", "conv3", "head")


ROOF = Roof(
    dtype=Dtype.fp16, tensor_cores=True, fp16_sums=False, peak=312e12, reached=250e12, bandwidth=1555e9,
    reached_bandwidth=1322e9,
)  # fmt: skip


def passes() -> dict[str, Any]:
    one = SimpleNamespace(
        gemm=Gemm(M=3211264, N=64, K=147), flops=60423143424, bytes=488000000, arithmetic_intensity=123.8,
        tile=(128, 64), split_k=1, tiles=25088, waves=116.148, tile_efficiency=1.0, wave_efficiency=0.9927,
        workspace_bytes=0, time_us=406.25, tflops=148.7, bound_by="memory", compute_dtype=Dtype.fp16, tensor_cores=True,
        algorithm="implicit-gemm", resident_tiles=2, last_wave_tiles=32, roof=ROOF, transposes_us=0.0,
        padding_us=0.0,
    )  # fmt: skip
    return {"fprop": one, "wgrad": one}


def estimate(time_us: float = 812.5) -> Any:
    return SimpleNamespace(time_us=time_us, unquantized_us=750.0, basis="measured", passes=passes(), predicted={})


def layer_times(time_us: float, after_us: float, ideal_us: float) -> LayerTimes:
    return LayerTimes(time_us=time_us, after_us=after_us, ideal_us=ideal_us)


TIMES = {
    "stem": layer_times(812.5, 602.25, 500.0),
    "conv2": layer_times(812.5, 764.5, 700.0),
    "conv3": layer_times(812.5, 812.5, 780.0),
    "head": layer_times(812.5, 812.5, 400.0),
}  # grades C, B, A and D
ALL_TIMES = replace(layer_times(3250.0, 2991.75, 2380.0), after_fix_us=3000.5)  # grade C, then B


NETWORK = NetworkReport(
    path="nets/spec.yaml", gpu="a100", mode="training", batch=256, parameters=4704, flops=60423143424,
    memory={"weights": 9408, "gradients": 9408, "optimizer": 0, "activations": 488000000, "workspace": 0},
    capacity_bytes=40 * 2**30, largest_batch=22530, host_us=228.0, gpu_us=3250.0, times=ALL_TIMES,
)  # fmt: skip


def span(line: int, value: str) -> tuple[int, int, int, int]:
    column = LINES[line - 1].index(value) + 1
    return line, column, line, column + len(value)


def at(line: int, value: str, path: str = "nets/spec.yaml") -> Location:
    first, column, last, end = span(line, value)
    return Location(path=path, line=first, column=column, end_line=last, end_column=end)


def layer(name: str, line: int, **sizes: Any) -> LayerReport:
    text = LINES[line - 1]
    spans = {"layer": (line, text.index("{") + 1, line, len(text) + 1)}
    given = {"N": 256, "dtype": Dtype.fp16, "layout": "NHWC", "path": "nets/spec.yaml"} | sizes
    one = with_output(ConvLayer(name=name, spans=spans, **given))
    return LayerReport(layer=one, estimates={"a100": estimate()}, times={"a100": TIMES[name]})


def finding(rule: RuleInfo, message: str, location: Location, layer: str | None = None, **more: Any) -> Finding:
    severity = more.pop("severity", rule.severity)
    identity = more.pop("identity", (rule.code, location.path, layer or "", "", 1))
    return Finding(
        rule=rule, severity=severity, message=message, location=location, layer=layer, identity=identity, **more
    )


def full_report(**changes: Any) -> Report:
    """A run with everything in it: errors, warnings, infos, skipped rules, suppressed findings, an unread input."""
    stem = finding(
        FIRST_LAYER, "C=3 leaves most of each vector empty; C=4 has its own kernels", at(5, "3"), "stem",
        advised=True, lost_us=210.25, lost_alone_us=210.25, lost_percent=6.47, basis="measured",
        fix=Fix(describe="use C=4, zero-filled", safety="safe", set={"C": 4}, time_change_us=-210.25, applicable=True),
    )  # fmt: skip
    conv2 = finding(
        ALIGNMENT, "C=62 and K=126 should be multiples of 8 for fp16", at(6, "62"), "conv2",
        advised=True, lost_us=48.0, lost_alone_us=48.0, lost_percent=1.48,
        fix=Fix(describe="use C=64, K=128", safety="unsafe", set={"C": 64, "K": 128}, time_change_us=-48.0),
    )  # fmt: skip
    conv3 = finding(
        ALIGNMENT, "C=62 should be a multiple of 8 for fp16", at(7, "62"), "conv3",
        fix=Fix(describe="use C=64", safety="unsafe", set={"C": 64}),
    )  # fmt: skip
    wrong = finding(
        MISMATCH, "P=57 and Q=57 are declared, but H=56, R=3, U=1, PadH=1 give P=56", at(7, "57"), "conv3",
        fix=Fix(describe="P=56, Q=56", safety="safe", set={"P": 56, "Q": 56}),
    )  # fmt: skip
    autotune = finding(
        AUTOTUNE, "cudnn_benchmark is off though fixed_input_size is on", at(2, "false"),
        layers=LAYERS, identities=tuple(("CL501", "nets/spec.yaml", name, "a100", 1) for name in LAYERS),
        fix=Fix(
            describe="torch.backends.cudnn.benchmark = True", safety="safe", set={"runtime.cudnn_benchmark": True}
        ),
    )  # fmt: skip
    head = finding(
        FEW_OUTPUTS, "K=21 fills a third of a tile of 64: pad K and slice the result", at(8, "21"), "head",
        lost_us=0.0, lost_alone_us=0.0, lost_percent=0.0, lost_capacity_us=120.5,
    )  # fmt: skip
    values: dict[str, Any] = {
        "version": "0.1.0",
        "targets": ("a100",),
        "mode": "training",
        "files": 2,
        "networks": (NETWORK,),
        "layers": (
            layer("stem", 5, C=3, H=224, W=224, K=64, R=7, S=7, U=2, V=2, PadH=3, PadW=3, PadH_end=3, PadW_end=3),
            layer("conv2", 6, C=62, H=56, W=56, K=126, R=3, S=3, PadH=1, PadW=1, PadH_end=1, PadW_end=1),
            layer("conv3", 7, C=62, H=56, W=56, K=64, R=3, S=3, PadH=1, PadW=1, PadH_end=1, PadW_end=1),
            layer("head", 8, C=64, H=56, W=56, K=21, R=1, S=1),
        ),
        "findings": (stem, conv2, conv3, wrong, autotune, head),
        "skipped": (
            SkippedRule(code="CL402", layer="conv2", path="nets/spec.yaml", needs=("dtype",)),
            SkippedRule(code="CL402", layer="conv3", path="nets/spec.yaml", needs=("dtype",)),
            SkippedRule(code="CL505", layer=None, path="nets/spec.yaml", needs=("runtime.cudnn",)),
        ),
        "suppressed": (
            Suppressed(finding=finding(ALIGNMENT, "K=21", at(8, "21"), "head"), reason="classes", by="comment"),
            Suppressed(finding=finding(FEW_OUTPUTS, "K=21", at(8, "21"), "head"), reason="", by="baseline"),
        ),
        "errors": (InputError(path="nets/other.yaml", message="H is not a whole number: 1.5", line=3, column=7),),
        "rules": RULES,
        "sources": {"nets/spec.yaml": LINES},
        "total": total("a100", ALL_TIMES),
        "totals": (total("a100", ALL_TIMES),),
    }
    return Report(**(values | changes))


def rendered(name: str, report: Report, **style: Any) -> str:
    return reporter(name)(report, Style(**style))


def priced(**prices: Any) -> Finding:
    """A finding with these prices; the others are unknown."""
    return finding(ALIGNMENT, "C=62 should be a multiple of 8 for fp16", at(6, "62"), "conv2", **prices)


def priced_report() -> Report:
    """Each way in which a finding can be priced, in NCHW, beside a spec of the other mode."""
    report = full_report(errors=(), skipped=(), suppressed=())
    stem, conv2, conv3, *_ = report.findings
    layout = finding(
        LAYOUT, "NCHW in 4 layers: the library transposes tensors for the Tensor Cores", at(3, "NHWC"), layers=LAYERS,
        advised=True, lost_us=96.0, lost_alone_us=80.5, lost_percent=2.95,
        fix=Fix(describe="memory_format=torch.channels_last", safety="safe", set={}, time_change_us=-80.5),
    )  # fmt: skip
    mostly = replace(stem, lost_alone_us=4.0, pays_with=("CL401",), fix=_changing(stem, -4.0))
    only = replace(conv2, lost_alone_us=0.0, pays_with=("CL401",), fix=_changing(conv2, 0.0))
    both = finding(
        TILES, "only 50 % of its 128x128 tiles is useful work", at(7, "64"), "conv3",
        advised=True, lost_us=33.0, lost_alone_us=33.0, lost_percent=1.02, lost_capacity_us=405.5,
        fix=Fix(describe="use K=128", safety="unsafe", set={"K": 128}, time_change_us=-33.0),
    )  # fmt: skip
    beside = replace(conv3, severity="info", lost_us=0.0, lost_alone_us=9.0, fix=_changing(conv3, -9.0))
    capacity = finding(
        TILES, "only 33 % of its 128x64 tiles is useful work", at(8, "21"), "head",
        severity="info", lost_us=0.0, lost_alone_us=0.0, lost_capacity_us=120.5,
        fix=Fix(describe="use K=64", safety="unsafe", set={"K": 64}, time_change_us=2.5),
    )  # fmt: skip
    unpriced = finding(FEW_OUTPUTS, "K=21 is few", at(8, "21"), "head", lost_capacity_us=120.5)
    return replace(
        report,
        findings=(mostly, layout, only, both, beside, capacity, unpriced),
        layers=tuple(replace(entry, layer=replace(entry.layer, layout="NCHW")) for entry in report.layers),
        sources={"nets/spec.yaml": tuple(line.replace("NHWC", "NCHW") for line in LINES)},
        totals=(*report.totals, total("a100", layer_times(610.0, 610.0, 580.0), "inference")),
    )


def _changing(one: Finding, time_change_us: float) -> Fix:
    assert one.fix is not None
    return replace(one.fix, time_change_us=time_change_us)


def total(gpu: str, times: LayerTimes | None, mode: Mode = "training") -> NetworkTotal:
    return NetworkTotal(gpu=gpu, mode=mode, times=times)


def many(count: int) -> Report:
    """Infos, then warnings, then errors: the gravest come last."""
    rules = (FEW_OUTPUTS, ALIGNMENT, MISMATCH)
    findings = tuple(finding(rules[3 * i // count], f"message {i}", at(6, "62"), f"layer{i}") for i in range(count))
    return full_report(findings=findings, suppressed=(), errors=())
