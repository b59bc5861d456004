"""Whether a network fits in memory (CL801), can run (CL802), and is bound by its host (CL306)."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from checkout import ROOT
from command_line import convlint
from msgspec.structs import replace
from read_specs import network as read
from rule_outcomes import SILENT, findings, outcome

from convlint.engine.check import Target, check_network
from convlint.engine.findings import NetworkResult
from convlint.gpus.gpu import load_gpu
from convlint.mend.checking import Job
from convlint.model.layer import Mode
from convlint.model.report import Finding, Report
from convlint.model.runtime import Runtime
from convlint.readers.inputs import file_input
from convlint.rulebook.book import load_rulebook
from convlint.run.run import report_on

RULES = load_rulebook()
LAYER = "{ C: 64, H: 56, W: 56, K: 64, kernel_size: 3, padding: 1, layout: NHWC, dtype: %s%s }"
BATCH = ("CL201", "CL204", "CL301")


def resnet50(N: int, gpu: str = "a100", mode: Mode = "training", **settings: Any) -> NetworkResult:
    path = ROOT / "sample_configs" / "resnet50.yaml"
    network = read(re.sub(r"\bN: \d+", f"N: {N}", path.read_text(encoding="utf-8")))
    network = replace(network, runtime=replace(network.runtime, **settings), mode=mode)
    return check_network(network, RULES, [Target(label=gpu, gpu=load_gpu(gpu))], mode)


def only(result: NetworkResult, code: str) -> Finding | None:
    found = [finding for finding in result.findings if finding.rule.code == code]
    assert len(found) <= 1
    return found[0] if found else None


def new_batch(finding: Finding) -> int:
    return int(finding.fix.set["N"])


@pytest.mark.parametrize("gpu", ["a100", "v100", "t4", "k80", "h100"])
def test_a_batch_that_does_not_fit_is_an_error_that_names_one_that_does(gpu: str) -> None:
    found = only(resnet50(8192, gpu), "CL801")
    assert found.severity == "error"
    assert "N=8192" in found.message
    fitting = new_batch(found)
    assert 100 < fitting < 8192
    assert f"at most N={fitting:,}" in found.fix.describe
    assert only(resnet50(fitting, gpu), "CL801") is None
    assert only(resnet50(fitting + 1, gpu), "CL801") is not None


def test_the_largest_batch_of_resnet50_is_about_what_its_convolutions_leave() -> None:
    """19.6 MiB of activations for an image in fp16; with norms and the rest about twice that."""
    found = only(resnet50(8192), "CL801")
    assert found is not None
    assert new_batch(found) == pytest.approx(40 * 1024 / 17.4, rel=0.05)


def test_the_optimizer_and_mixed_precision_take_their_part() -> None:
    plain, adam = (only(resnet50(8192, **settings), "CL801") for settings in ({}, {"optimizer": "adam"}))
    assert plain is not None
    assert adam is not None
    assert new_batch(adam) < new_batch(plain)


def test_the_finding_stands_at_the_batch(tmp_path: Path) -> None:
    spec = tmp_path / "net.yaml"
    spec.write_text(f"version: 1\ndefaults: {{ N: 999999 }}\nlayers: [ {LAYER % ('fp16', '')} ]\n", encoding="utf-8")
    found = [one for one in check(spec).findings if one.rule.code == "CL801"]
    assert [(one.location.line, one.location.column) for one in found] == [(2, 16)]


@pytest.mark.parametrize("N", [1200, 1600, 1900, 2000, 2200, 2300, 2314])
def test_no_batch_advice_goes_past_what_fits(N: int) -> None:
    """On a board with just enough memory that twice the batch does not fit."""
    result = resnet50(N)
    (network,) = result.networks
    assert network.largest_batch is not None
    for finding in result.findings:
        if finding.fix is not None and finding.rule.code in BATCH and "N" in finding.fix.set:
            assert new_batch(finding) <= network.largest_batch


@pytest.mark.parametrize("name", ["unet", "yolo_head", "deeplabv3"])
def test_batch_advice_stops_where_the_memory_does(name: str) -> None:
    """On a GPU with room for one image less than what would be advised."""
    path = ROOT / "sample_configs" / f"{name}.yaml"
    network = read(path.read_text(encoding="utf-8"))

    def advised(memory_bytes: int) -> tuple[int | None, list[int]]:
        gpu = replace(load_gpu("a100"), memory_bytes=memory_bytes)
        result = check_network(network, RULES, [Target(label="mine", gpu=gpu)], "training")
        found = [one for one in result.findings if one.rule.code in BATCH and one.fix and "N" in one.fix.set]
        return result.networks[0].largest_batch, [new_batch(one) for one in found]

    _, (wanted,) = advised(2**50)
    now = network.layers[0].N
    assert now < wanted
    capacity = 2**34  # to the byte at which one image less than is wanted is the most
    for step in reversed(range(34)):
        largest, _ = advised(capacity - 2**step)
        assert largest is not None
        capacity -= 2**step if largest >= wanted else 0
    largest, batches = advised(capacity - 1)
    assert largest == wanted - 1
    assert max(batches, default=0) <= largest
    assert advised(capacity) == (wanted, [wanted])


def test_unrelated_layers_of_large_batches_are_no_network() -> None:
    """A list of benchmarks, each of which fits alone."""
    one = "{{ N: 8192, C: {C}, H: 56, W: 56, K: 256, kernel_size: 1, dtype: fp16, layout: NHWC }}"
    apart = ", ".join(one.format(C=C) for C in (64, 128, 192, 320, 384))
    assert outcome("CL801", apart) == SILENT
    assert outcome("CL801", one.format(C=256)) == SILENT
    assert outcome("CL801", ", ".join([one.format(C=256)] * 5)) == "error"


def test_batches_that_differ_have_no_one_limit() -> None:
    layers = [
        LAYER % ("fp16", f", N: {N}, name: l{number}, input: {source}")
        for number, (N, source) in enumerate(((60000, "null"), (120000, "l0")))
    ]
    layers[0] = layers[0].replace(", input: null", "")
    (found,) = findings("CL801", ", ".join(layers))
    assert found.message.startswith("training keeps ")
    assert (found.fix.describe.split(";")[0], dict(found.fix.set)) == ("smaller batches", {})


def test_an_unknown_optimizer_hides_no_network_that_cannot_fit_without_it() -> None:
    layers = ", ".join([LAYER % ("fp16", ", N: 90000")] * 2)
    (found,) = findings("CL801", layers, runtime="optimizer: shampoo")
    assert found.severity == "error"
    assert outcome("CL801", layers, runtime="optimizer: shampoo", mode="inference") == "error"  # none is kept there


@pytest.mark.parametrize(
    ("layer", "runtime", "needs"),
    [
        ("{ C: 64, H: 56, W: 56, K: 64, kernel_size: 3, dtype: fp16 }", "", "N"),
        ("{ N: 8, C: 64, H: 56, W: 56, K: 64, kernel_size: 3 }", "", "dtype"),
        ("{ N: 8, C: 64, H: 56, W: 56, K: 64, kernel_size: 3, dtype: fp16 }", "optimizer: shampoo", "shampoo"),
    ],
)
def test_what_is_unknown_is_said_and_not_guessed(layer: str, runtime: str, needs: str) -> None:
    (found,) = outcome("CL801", layer, runtime=runtime)
    assert needs in found


def test_a_gpu_whose_memory_nobody_gives_is_not_judged() -> None:
    network = read(f"version: 1\nlayers: [ {LAYER % ('fp16', ', N: 99999')} ]\n")
    gpu = replace(load_gpu("a100"), memory_bytes=None)
    result = check_network(network, RULES, [Target(label="mine", gpu=gpu)], "training")
    assert only(result, "CL801") is None
    assert [skip.needs for skip in result.skipped if skip.code == "CL801"] == [("gpu.memory_bytes",)]


# --- frameworks -------------------------------------------------------------------------------------------------------


def test_many_layers_are_one_finding_and_have_no_time() -> None:
    layers = ", ".join([LAYER % ("fp8", ", N: 32")] * 3)
    (found,) = findings("CL802", layers, gpu="h100", runtime="framework: pytorch")
    assert (
        found.message
        == "PyTorch has no fp8 convolutions (torchao's begin with compute capability 10.0) (fp8, 3 layers)"
    )
    assert found.fix.set == {"dtype": "fp16"}
    assert found.lost_us is None


def check(path: Path, **job: Any) -> Report:
    return report_on([(file_input(str(path)), RULES, Job(**job))])


def spec(tmp_path: Path, *, runtime: str, dtype: str = "fp16", mode: str = "") -> Path:
    path = tmp_path / "net.yaml"
    head = f"version: 1\nruntime: {{ {runtime} }}\n" + (f"mode: {mode}\n" if mode else "")
    path.write_text(f"{head}layers: [ {LAYER % (dtype, ', N: 32, name: a')} ]\n", encoding="utf-8")
    return path


def codes(report: Report) -> dict[str, str]:
    return {finding.rule.code: finding.severity for finding in report.findings}


def test_tensorrt_without_a_mode_means_inference(tmp_path: Path) -> None:
    path = spec(tmp_path, runtime="framework: tensorrt, tensorrt: '10.3'")
    report = check(path)
    assert report.mode == "inference"
    assert "CL802" not in codes(report)
    (estimate,) = report.layers[0].estimates.values()
    assert list(estimate.passes) == ["fprop"]


@pytest.mark.parametrize("stated", ["spec", "option", "config"])
def test_who_states_training_with_tensorrt_hears_that_there_is_none(tmp_path: Path, stated: str) -> None:
    path = spec(tmp_path, runtime="framework: tensorrt", mode="training" if stated == "spec" else "")
    job = {"option": {"mode": "training"}, "config": {"default_mode": "training"}}.get(stated, {})
    report = check(path, **job)
    assert (report.mode, codes(report).get("CL802")) == ("training", "error")
    assert report.layers[0].estimates == {"a100": None}


def test_int8_is_an_error_only_where_training_is_asked_for(tmp_path: Path) -> None:
    path = spec(tmp_path, runtime="gpu_clock: boost", dtype="int8")
    assert codes(check(path))["CL802"] == "info"
    assert codes(check(path, mode="training"))["CL802"] == "error"
    assert "CL802" not in codes(check(path, mode="inference"))
    neither = spec(tmp_path, runtime="framework: pytorch", dtype="int8")
    assert codes(check(neither))["CL802"] == "error"


@pytest.mark.parametrize(
    ("gpu", "dtype", "framework", "code"),
    [
        ("a100", "fp8", "pytorch", "CL107"), ("t4", "bf16", "mxnet", "CL107"), ("m40", "int8", "pytorch", "CL107"),
        ("v100", "int8", "pytorch", "CL802"), ("h100", "fp8", "pytorch", "CL802"), ("v100", "int8", "jax", "CL107"),
        ("v100", "int8", "tensorflow", "CL802"), ("a100", "int8", "tensorflow", "CL802"),
    ],
)  # fmt: skip
def test_one_cause_is_one_finding(tmp_path: Path, gpu: str, dtype: str, framework: str, code: str) -> None:
    path = spec(tmp_path, runtime=f"framework: {framework}", dtype=dtype, mode="inference")
    found = codes(check(path, gpus=(gpu,)))
    assert set(found) & {"CL107", "CL802"} == {code}


def test_int8_of_tensorflow_is_that_of_tensorrt(tmp_path: Path) -> None:
    path = spec(tmp_path, runtime='framework: tensorflow, tensorrt: "10.0"', dtype="int8", mode="inference")
    assert "CL802" not in codes(check(path))


def test_estimate_says_why_there_is_no_time(tmp_path: Path) -> None:
    path = spec(tmp_path, runtime="framework: pytorch", dtype="fp8")
    result = convlint("estimate", str(path), "--gpu", "h100", "--output", "json")
    document = json.loads(result.out)
    assert result.code == 3
    assert (
        document["errors"][0]["message"]
        == "no time for a: PyTorch has no fp8 convolutions (torchao's begin with compute capability 10.0)"
    )


# --- hosts ------------------------------------------------------------------------------------------------------------


def time_us(result: NetworkResult) -> float:
    times = [entry.times[label] for entry in result.layers for label in result.labels]
    assert all(times)
    return sum(each.time_us for each in times if each is not None)


def whole_us(result: NetworkResult) -> float:
    """What a stopwatch would see: the convolutions and what usually follows them."""
    (network,) = result.networks
    assert network.host_us is not None
    assert network.gpu_us is not None
    return max(network.host_us, network.gpu_us)


def test_resnet50_with_amp_on_v100_takes_as_long_for_one_image_as_for_sixteen() -> None:
    one, sixteen = (whole_us(resnet50(N, "v100", mixed_precision=True)) for N in (1, 16))
    assert sixteen / one == pytest.approx(14.0 / 12.8, rel=0.1)


@pytest.mark.parametrize("mode", ["training", "inference"])
def test_an_eager_host_is_told_of_what_helps_it(mode: Mode) -> None:
    found = only(resnet50(1, mode=mode), "CL306")
    assert found.severity == "warning"
    assert found.lost_step_us is not None
    assert found.lost_us is None
    assert found.message.startswith("eager pytorch needs about ")
    assert "torch.compile" in found.fix.describe
    assert ("TensorRT" in found.fix.describe) == (mode == "inference")


@pytest.mark.parametrize("N", [1, 4, 16])
def test_the_batch_that_takes_no_longer_does_not(N: int) -> None:
    found = only(resnet50(N, mode="inference"), "CL306")
    named = re.search(r"up to about N=(\d+)", found.fix.describe)
    now, there, beyond = (
        whole_us(resnet50(each, mode="inference")) for each in (N, int(named[1]), int(int(named[1]) * 1.3))
    )
    assert there == pytest.approx(now)
    assert beyond > now


def test_what_is_in_use_is_not_advised() -> None:
    for settings in (
        {"cuda_graphs": True},
        {"cuda_graphs": True, "compile": True},
        {"cuda_graphs": True, "framework": "tensorrt"},
    ):
        found = only(resnet50(1, mode="inference", **settings), "CL306")
        assert found.fix.describe == "a larger N"


@pytest.mark.parametrize("mode", ["inference", "training"])
def test_tensorflow_is_told_to_compile_with_xla(mode: Mode) -> None:
    """It has no graphs of CUDA's that one could ask for."""
    found = only(resnet50(1, mode=mode, framework="tensorflow"), "CL306")
    assert found.fix.describe.startswith("jit_compile=True (XLA; --runtime framework=xla prices its step), ")


def test_tensorrt_is_never_advised_to_those_who_use_it() -> None:
    result = resnet50(1, mode="inference", framework="tensorrt")
    found = only(result, "CL306")
    for finding in result.findings:
        assert finding.fix is None or "TensorRT" not in finding.fix.describe
    assert "CUDA graphs" in found.fix.describe


def test_where_the_host_is_surely_the_bound_nothing_is_advised_and_no_layer_graded_down() -> None:
    result = resnet50(1, mode="inference")
    grave = [finding for finding in result.findings if finding.advised or finding.severity != "info"]
    assert [finding.rule.code for finding in grave] == ["CL306"]
    grades = {times.grade for entry in result.layers for times in entry.times.values() if times is not None}
    assert grades == {"A"}


def test_a_compiled_step_is_faster_than_an_eager_one_and_a_graph_than_both() -> None:
    eager, compiled, graph = (
        time_us(resnet50(1, mode="inference", **settings))
        for settings in ({}, {"compile": True}, {"cuda_graphs": True})
    )
    assert graph < compiled < eager


def test_runtimes_without_a_framework_have_no_host() -> None:
    bare = time_us(resnet50(1, mode="inference", framework=None, cudnn_benchmark=None))
    assert bare < time_us(resnet50(1, mode="inference")) / 5
    assert Runtime().framework is None
