"""The sample networks: published sizes, and exactly the findings that an expert would act on.

Each warning and error of a sample stands here with the reason why it is right, so that a rule which starts to drown
real networks, or falls silent on the bad one, fails a test.
"""

import io
import json
from collections import Counter
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from checkout import ROOT

from convlint.__main__ import _run
from convlint.mend.checking import Job
from convlint.readers.inputs import file_input
from convlint.rulebook.book import load_rulebook
from convlint.rulebook.rule import Rule
from convlint.run.run import report_on

FOLDER = ROOT / "sample_configs"

Key = tuple[str | None, str, str]  # layer (None: the network, or layers joined), code, severity
Sizes = tuple[int, ...]  # C, H, W, K, P, Q

# CL103 on the stems of ResNet-50, MobileNetV2 and EfficientNet-B0 is info: under 1 % of their time. SqueezeNet waits
# for its host.


# Every sample with the number of its convolutions, and some of its layers with their published C, H, W, K, P, Q.
SIZES = """
resnet50 53
    conv1                   3   224   224    64   112   112
    layer1.0.downsample    64    56    56   256    56    56
    layer2.0.conv2        128    56    56   128    28    28
    layer3.5.conv3        256    14    14  1024    14    14
    layer4.0.downsample  1024    14    14  2048     7     7
    layer4.2.conv3        512     7     7  2048     7     7
resnet50_latency 53
    conv1                   3   224   224    64   112   112
    layer4.2.conv3        512     7     7  2048     7     7
vgg16 13
    conv1_1                 3   224   224    64   224   224
    conv3_1               128    56    56   256    56    56
    conv5_3               512    14    14   512    14    14
mobilenetv2 52
    stem                    3   224   224    32   112   112
    block2.depthwise       96   112   112    96    56    56
    block14.expand         96    14    14   576    14    14
    block17.project       960     7     7   320     7     7
    last                  320     7     7  1280     7     7
efficientnet_b0 81
    stem                    3   224   224    32   112   112
    block2.se_reduce       96     1     1     4     1     1
    block2.se_expand        4     1     1    96     1     1
    block4.depthwise      144    56    56   144    28    28
    block12.depthwise     672    14    14   672     7     7
    last                  320     7     7  1280     7     7
unet 23
    down1.conv1             1   572   572    64   570   570
    down5.conv2          1024    30    30  1024    28    28
    up4.upconv           1024    28    28   512    56    56
    up4.conv1            1024    56    56   512    54    54
    up1.conv2              64   390   390    64   388   388
    segmentation           64   388   388     2   388   388
unet_thin 18
    down1.conv1             3   384   384    30   384   384
    down4.conv2           256    48    48   256    48    48
    up3.conv1             256    96    96   128    96    96
    up1.conv1              60   384   384    30   384   384
    segmentation           30   384   384     4   384   384
deeplabv3 61
    conv1                   3   257   257    64   129   129
    layer2.0.conv2        128    65    65   128    33    33
    layer4.2.conv2        512    33    33   512    33    33
    aspp.rate24          2048    33    33   256    33    33
    aspp.pool_conv       2048     1     1   256     1     1
    aspp.project         1280    33    33   256    33    33
    head.classifier       256    33    33    21    33    33
deeplabv3_small_map 8
    aspp.rate12          2048    16    16   256    16    16
    head.conv             256    16    16   256    16    16
    head.classifier       256    16    16    21    16    16
yolo_head 23
    head1.conv2           512    13    13  1024    13    13
    head1.detect         1024    13    13   255    13    13
    head2.conv1           768    26    26   256    26    26
    head3.conv1           384    52    52   128    52    52
    head3.detect          256    52    52   255    52    52
retinanet_head 58
    lateral3              512    80    80   256    80    80
    p6                   2048    20    20   256    10    10
    p7                    256    10    10   256     5     5
    p3.class_out          256    80    80   720    80    80
    p7.box_out            256     5     5    36     5     5
dcgan_generator 5
    up1                   100     1     1   512     4     4
    up2                   512     4     4   256     8     8
    rgb                    64    32    32     3    64    64
convnext_tiny 58
    stem                    3   224   224    96    56    56
    stage1.1.depthwise     96    56    56    96    56    56
    down2                  96    56    56   192    28    28
    stage3.9.expand       384    14    14  1536    14    14
    stage4.3.project     3072     7     7   768     7     7
squeezenet 26
    conv1                   3   224   224    64   111   111
    fire3.squeeze         128    55    55    16    55    55
    fire4.expand3x3        32    27    27   128    27    27
    fire9.squeeze         512    13    13    64    13    13
    conv10                512    13    13  1000    13    13
figure4 4
    batch54              4096    16    16   256    16    16
    batch55              4096    16    16   256    16    16
    batch81              4096    16    16   256    16    16
    batch108             4096    16    16   256    16    16
figure13 1
    high_performance     1024    64    64  1024    64    64
k80 5
    conv1                   3   224   224    64    55    55
    conv2                  64    27    27   192    27    27
    conv5                 256    13    13   256    13    13
c3d 8
    conv1a                  3   112   112    64   112   112
    conv3b                256    28    28   256    28    28
    conv5b                512     7     7   512     7     7
m11_waveform 10
    conv1                   1     1 32000    64     1  8000
    conv3_1                64     1   500   128     1   500
    conv4_3               256     1   125   256     1   125
    conv5_2               512     1    32   512     1    32
"""

# Why each finding above info is right. N=11 would fill the last wave at the bottom of the U-Net, for 1 % less time.
REASONS: dict[str, dict[Key, str]] = {
    "vgg16": {
        (None, "CL106", "warning"): "the spec states fp32, which runs as TF32: 16 bits save 42 % of the time",
        (None, "CL401", "warning"): "every layer is NCHW, and Tensor Cores multiply TF32: transposes around each",
        (None, "CL501", "warning"): "inputs of one size, and PyTorch's autotuning is off",
    },
    "unet_thin": {
        (None, "CL401", "warning"): "every layer is NCHW in fp16: channels_last saves more than a third of the time",
        (None, "CL501", "warning"): "inputs of one size, and PyTorch's autotuning is off",
        ("down1.conv2", "CL102", "warning"): "K=30 in NHWC is padded in a copy, where maps are largest; 32 is not",
    },
    "resnet50_latency": {
        (None, "CL306", "warning"): "one image at a time: the host starts kernels far slower than the GPU runs them",
    },
    "deeplabv3": {
        ("aspp.rate36", "CL005", "warning"): "36 steps from any place of a 33x33 map lie outside it",
    },
    "deeplabv3_small_map": {
        ("aspp.rate24", "CL005", "warning"): "24 steps from any place of a 16x16 map lie outside it",
        ("aspp.rate36", "CL005", "warning"): "36 steps from any place of a 16x16 map lie outside it",
    },
    "squeezenet": {
        ("conv1", "CL103", "warning"): "three channels in fp16 and NHWC, stride 2: four take 5 % less of the time",
    },
    "m11_waveform": {
        (None, "CL401", "warning"): "NCW on Tensor Cores: Conv2d with H=1 and channels_last saves 40 %",
    },
}


def published() -> dict[str, tuple[int, dict[str, Sizes]]]:
    """The samples of the table above: convolutions, and the sizes of layers by their names."""
    samples: dict[str, tuple[int, dict[str, Sizes]]] = {}
    for line in SIZES.strip().splitlines():
        name, *numbers = line.split()
        if not line.startswith(" "):
            sizes: dict[str, Sizes] = {}
            samples[name] = int(numbers[0]), sizes
        else:
            sizes[name] = tuple(map(int, numbers))
    return samples


SAMPLES = published()

# What each line of bad.yaml is there for; other rules may speak of its layers too.
BAD: dict[Key, str] = {
    ("wrong_output", "CL001", "error"): "P=54 declared, 56 computed",
    ("wrong_input", "CL002", "error"): "C=128 declared, 64 arrive",
    ("too_large", "CL003", "error"): "7x7 on 4x4 without padding",
    ("skips_rows", "CL004", "warning"): "stride 3 steps over a 2x2 filter",
    ("dead_taps", "CL005", "warning"): "dilation 24 on a 16x16 map",
    ("blank_border", "CL006", "warning"): "a padded 1x1",
    ("stem", "CL101", "error"): "K=62 in NHWC before cuDNN 7.6.3",
    ("odd_channels", "CL101", "error"): "C=62 and K=127 in NHWC before cuDNN 7.6.3",
    ("byte_channels", "CL101", "error"): "int8 with C=62",
    ("odd_channels", "CL102", "info"): "K=127 of a head, which an A100's library pads",
    ("plain_fp32", "CL106", "warning"): "TF32 switched off",
    ("brain_float", "CL107", "error"): "bf16 on a T4",
    ("double", "CL108", "info"): "fp64 at 1/32 of the rate on a T4: of all dtypes CL106 has the price",
    (None, "CL203", "info"): "C=96, K=160, or K=72 in tiles of 128: wider channels take longer, and do more",
    ("empty_tiles", "CL201", "info"): "K=72, which takes a K80 as long as 128: other sizes are alternatives",
    ("tail_wave", "CL204", "info"): "220 tiles where 216 run at a time",
    ("idle_sms", "CL301", "info"): "N=2 on 14x14",
    (None, "CL302", "info"): "several 1x1 layers with few channels",
    ("transposes", "CL401", "info"): "NCHW on Tensor Cores, 1 % of this network's time",
    ("back_again", "CL402", "info"): "NHWC behind NCHW; the layout to change is the other's",
    (None, "CL403", "warning"): "NHWC in which a K80 runs 3x3 filters without Winograd",
    ("grouped", "CL404", "info"): "12 channels a group in NHWC, 1 % of this network's time",
    ("lopsided", "CL405", "info"): "same padding with stride 2 on an even size",
    (None, "CL501", "warning"): "one input size, no autotuning",
    (None, "CL505", "warning"): "cuDNN 7.5",
    ("biased", "CL506", "info"): "bias in front of a batch normalisation",
    ("grouped", "CL601", "info"): "12 channels a group",
    ("depthwise", "CL602", "info"): "depthwise",
    ("checkerboard", "CL603", "info"): "3x3 with stride 2",
    (None, "CL701", "info"): "a K80 has no Tensor Cores",
    (None, "CL702", "info"): "fp16 on a K80, where fp32 would only move more bytes",
    (None, "CL703", "info"): "a K80 has two dies",
    (None, "CL707", "error"): "CUDA 12 on a K80",
    (None, "CL708", "error"): "cuDNN 7.5 on an A100",
    (None, "CL709", "info"): "no pinned memory",
}


@cache
def checked(path: str, *options: str) -> tuple[int, dict[str, Any]]:
    """Exit code and JSON report of `convlint check`."""
    out = io.StringIO()
    with redirect_stdout(out):
        code = _run(["check", path, "--output", "json", *options])
    return code, json.loads(out.getvalue())


def sample(name: str, *options: str) -> tuple[int, dict[str, Any]]:
    return checked(str(FOLDER / f"{name}.yaml"), *options)


def above_info(report: dict[str, Any]) -> set[Key]:
    return {key for key in keys(report) if key[2] != "info"}


def keys(report: dict[str, Any]) -> set[Key]:
    return {(found["layer"], found["code"], found["severity"]) for found in report["findings"]}


def test_every_sample_is_covered() -> None:
    assert {path.stem for path in FOLDER.glob("*.yaml")} == {*SAMPLES, "bad"}


@pytest.mark.parametrize("name", SAMPLES)
def test_sizes_are_the_published_ones(name: str) -> None:
    _, report = sample(name)
    layers = {layer["name"]: layer for layer in report["layers"]}
    convolutions, sizes = SAMPLES[name]
    assert len(report["layers"]) == convolutions
    assert {wanted: tuple(layers[wanted][letter] for letter in "CHWKPQ") for wanted in sizes} == sizes


@pytest.mark.parametrize("name", SAMPLES)
def test_findings_are_the_expected_ones(name: str) -> None:
    code, report = sample(name)
    assert report["errors"] == []
    assert report["complete"]
    assert above_info(report) == set(REASONS.get(name, {}))
    assert code == (1 if name in REASONS else 0)


@pytest.mark.parametrize("name", SAMPLES)
def test_infos_do_not_drown_the_reader(name: str) -> None:
    _, report = sample(name)
    infos = Counter(found["code"] for found in report["findings"] if found["severity"] == "info")
    assert sum(infos.values()) <= 10
    advice = Counter(found["code"] for found in report["findings"] if found["severity"] == "info" and found["advised"])
    infos -= advice  # each with a place of its own
    assert all(count <= 3 for count in infos.values()), infos


@pytest.mark.parametrize("name", SAMPLES)
def test_safe_advice_never_costs_time(name: str) -> None:
    _, report = sample(name)
    for found in report["findings"]:
        fix = found["fix"]
        if fix and fix["safety"] == "safe" and fix["time_change_us"] is not None and not found["pays_with"]:
            assert fix["time_change_us"] <= 0, found


def test_bad_fires_most_rules() -> None:
    code, report = sample("bad")
    assert code == 1
    assert report["errors"] == []
    assert set(BAD) <= keys(report)
    alone = {name for found in report["findings"] for name in (found["layer"], *found["layers"])}
    assert {layer["name"] for layer in report["layers"]} <= alone  # no line is there for nothing


def test_bad_says_nothing_of_the_size_of_a_layer_that_cannot_run() -> None:
    _, report = sample("bad")
    assert {found["code"] for found in report["findings"] if found["layer"] == "too_large"} == {"CL003"}


def places(rule: Rule) -> set[str]:
    return {name for case in rule.cases for name, _ in case.at}


SIZE_RULES = {rule.info.code for rule in load_rulebook().rules if places(rule) and places(rule) <= {"N", "C", "K"}}


@pytest.mark.parametrize(("name", "exempt"), [("mobilenetv2", 17), ("efficientnet_b0", 16 + 32), ("convnext_tiny", 18)])
def test_no_size_rule_speaks_of_depthwise_layers_or_of_1x1_maps(name: str, exempt: int) -> None:
    report = report_on([(file_input(str(FOLDER / f"{name}.yaml")), load_rulebook(), Job())])
    layers = [entry.layer for entry in report.layers]
    spared = {layer.name for layer in layers if layer.depthwise or layer.H == layer.W == layer.P == layer.Q == 1}
    assert len(spared) == exempt
    assert len(SIZE_RULES) > 10
    for finding in report.findings:
        if finding.rule.code in SIZE_RULES:
            # a finding on one layer may name others that change with its channels
            spoken_of = {finding.layer} if finding.layer is not None else {*finding.layers}
            assert not spoken_of & spared, finding.message
    joined = next(finding for finding in report.findings if finding.rule.code == "CL602")
    assert len(joined.layers) == sum(layer.depthwise for layer in layers)


@pytest.mark.parametrize(
    ("name", "heads", "padded"),
    [
        ("yolo_head", {"head1.detect", "head2.detect", "head3.detect"}, 256),
        ("retinanet_head", {f"p{level}.box_out" for level in range(3, 8)}, 40),
        ("deeplabv3", {"head.classifier"}, 24),
        ("unet", {"segmentation"}, 8),
    ],
)
def test_a_head_gets_one_info_that_pads_and_slices(name: str, heads: set[str], padded: int) -> None:
    _, report = sample(name)
    found = [item for item in report["findings"] if item["code"] == "CL102"]
    assert len(found) == 1
    assert found[0]["severity"] == "info"
    assert found[0]["fix"]["set"] == {"K": padded}
    assert "slice" in found[0]["fix"]["describe"]
    named = found[0]["message"] if len(heads) > 1 else found[0]["layer"]
    assert min(heads) in named


def test_figure_4_fires_at_55_and_81_and_offers_54_and_108() -> None:
    _, report = sample("figure4")
    found = {item["layer"]: item for item in report["findings"] if item["code"] == "CL204"}
    assert set(found) == {"batch55", "batch81"}
    assert "N=54" in found["batch55"]["fix"]["describe"]
    assert "N=108" in found["batch55"]["fix"]["describe"]
    assert found["batch55"]["fix"]["set"] == {"N": 108}  # fewer images are less work
    assert "220 tiles" in found["batch55"]["message"]
    assert "4 tiles" in found["batch55"]["message"]


def test_one_image_at_a_time_gets_batch_advice_once_with_its_price() -> None:
    _, report = sample("resnet50_latency")
    found = [item for item in report["findings"] if item["code"] in ("CL201", "CL204", "CL301")]
    assert [(item["code"], item["severity"]) for item in found] == [("CL301", "info")]
    assert found[0]["lost_us"] is None
    assert "per step +" in found[0]["fix"]["describe"]


@pytest.mark.parametrize("name", ["deeplabv3", "dcgan_generator", "yolo_head", "unet"])
def test_batch_advice_is_near_and_pays(name: str) -> None:
    _, report = sample(name)
    (found,) = [item for item in report["findings"] if item["code"] == "CL204"]
    now, total = report["layers"][0]["N"], report["summary"]["time_us"]
    new = found["fix"]["set"]["N"]
    assert now / 2 <= new <= 2 * now
    assert found["fix"]["time_change_us"] < 0  # for as many images as now
    assert total + found["fix"]["time_change_us"] > 0


# --- the same network on other GPUs and in other dtypes ---------------------------------------------------------------


@pytest.fixture
def resnet50(tmp_path: Path) -> Any:
    """ResNet-50 with another line of defaults (and other words), checked on a GPU."""

    def check(gpu: str, defaults: str, *options: str, **words: str) -> tuple[int, dict[str, Any]]:
        text = (FOLDER / "resnet50.yaml").read_text(encoding="utf-8")
        text = text.replace("N: 256, dtype: fp16, layout: NHWC", f"N: 256, {defaults}")
        for old, new in words.items():
            assert f"{old}: " in text
            text = "\n".join(
                f"{line.split(old)[0]}{old}: {new}" if line.strip().startswith(f"{old}: ") else line
                for line in text.split("\n")
            )
        path = tmp_path / "variant.yaml"
        path.write_text(text, encoding="utf-8")
        checked.cache_clear()
        return checked(str(path), "--gpu", gpu, *options)

    return check


MULTIPLES = {"CL101", "CL102", "CL103", "CL106", "CL202", "CL401", "CL601"}


@pytest.mark.parametrize("gpu", ["p100", "k80", "m40"])
def test_fp32_without_tensor_cores_hears_nothing_of_multiples_of_8(resnet50: Any, gpu: str) -> None:
    code, report = resnet50(gpu, "dtype: fp32, layout: NCHW", cuda='"11.3"', cudnn='"8.2"', framework_version='"1.10"')
    assert above_info(report) == set()
    assert code == 0
    assert not {found["code"] for found in report["findings"]} & MULTIPLES
    assert (None, "CL701", "info") in keys(report)


def test_int8_needs_turing(resnet50: Any) -> None:
    inference = "--mode", "inference"
    _, report = resnet50(
        "v100", "dtype: int8, layout: NHWC", *inference, framework="tensorrt", framework_version='"8.6"'
    )
    assert above_info(report) == {(None, "CL106", "warning"), (None, "CL107", "warning")}
    code, report = resnet50(
        "t4", "dtype: int8, layout: NHWC", *inference, framework="tensorrt", framework_version='"8.6"'
    )
    assert above_info(report) == set()
    assert code == 0
    _, report = resnet50("t4", "dtype: int8, layout: NHWC", *inference)
    assert above_info(report) == {(None, "CL802", "error")}  # PyTorch has none


def test_an_unknown_layout_gets_no_layout_finding(resnet50: Any) -> None:
    _, report = resnet50("a100", "dtype: fp16", framework="onnxruntime", framework_version='"1.19"')
    assert {layer["layout"] for layer in report["layers"]} == {"auto"}
    assert not [found for found in report["findings"] if found["code"].startswith("CL4")]
    _, report = resnet50("a100", "dtype: fp16, layout: NCHW", framework="onnxruntime", framework_version='"1.19"')
    assert (None, "CL401", "warning") in keys(report)  # the same network with a known layout


@pytest.mark.parametrize("gpu", ["v100", "h100", "l4", "rtx-4090"])
def test_a_good_network_stays_good_on_other_tensor_core_gpus(resnet50: Any, gpu: str) -> None:
    _, report = resnet50(gpu, "dtype: fp16, layout: NHWC")
    assert above_info(report) <= {("conv1", "CL103", "warning")}
