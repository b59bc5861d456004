"""Cliffs: versions, sizes and forms that are slow, found in the lock file, priced, with a way out that works."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from command_line import convlint as run
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from convlint.engine.check import Target, check_network
from convlint.estimate import time_us
from convlint.gpus.gpu import load_gpu
from convlint.model.layer import ConvLayer, Dtype, with_output
from convlint.model.network import Network
from convlint.model.runtime import Runtime
from convlint.rulebook.book import load_rulebook

BUILTIN = load_rulebook()
GPUS = [load_gpu(name) for name in ("k80", "v100", "t4", "a100", "rtx-4090", "h100")]
VIDEO = """\
version: 1
mode: inference
runtime: { framework: pytorch }
defaults: { N: 1, dtype: bf16, layout: NCHW }
layers:
  - { name: a, C: 128, D: 16, H: 64, W: 64, K: 128, kernel_size: 3, padding: 1 }
  - { name: b, K: 256, kernel_size: 3, padding: 1 }
"""


def checked(spec: str, *arguments: str) -> dict[str, Any]:
    Path("net.yaml").write_text(spec, encoding="utf-8")
    return json.loads(run("check", "net.yaml", "-o", "json", *arguments).out)


def finding(document: dict[str, Any], code: str) -> dict[str, Any]:
    (one,) = (each for each in document["findings"] if each["code"] == code)
    return one


def codes(document: dict[str, Any]) -> set[str]:
    return {each["code"] for each in document["findings"]}


@pytest.fixture(autouse=True)
def _here(here: Path) -> None:
    (here / ".git").mkdir()  # no lock above it counts


def test_what_an_upgrade_saves_is_what_the_next_check_says() -> None:
    versions = ("--runtime", "cudnn=9.10.2", "--runtime", "framework_version=2.9.0")
    before = checked(VIDEO, *versions)
    after = checked(VIDEO, "--runtime", "cudnn=9.10.2", "--runtime", "framework_version=2.10.0")
    one = finding(before, "CL811")
    assert (one["severity"], one["fix"]["applicable"]) == ("warning", False)
    assert "PyTorch 2.10 or newer, or 2.9.1 with cuDNN 9.15" in one["fix"]["describe"]
    change = one["fix"]["time_change_us"]
    assert change == pytest.approx(after["summary"]["time_us"] - before["summary"]["time_us"], rel=1e-3)
    assert before["summary"]["time_us"] == pytest.approx(4 * after["summary"]["time_us"], rel=0.01)


DILATED = """\
version: 1
mode: inference
runtime: {{ framework: pytorch, framework_version: "{version}", deterministic: {deterministic} }}
layers:
  - {{ name: a, N: 32, C: 256, H: 64, W: 64, K: 256, kernel_size: 3, padding: 2, dilation: 2, dtype: fp32,
       layout: {layout} }}
"""


def test_determinism_before_2_8_is_priced_where_it_costs() -> None:
    slow = checked(DILATED.format(version="2.7.1", deterministic="true", layout="NCHW"))
    fast = checked(DILATED.format(version="2.8.0", deterministic="true", layout="NCHW"))
    change = finding(slow, "CL816")["fix"]["time_change_us"]
    assert change == pytest.approx(fast["summary"]["time_us"] - slow["summary"]["time_us"], rel=1e-3)
    assert slow["layers"][0]["estimates"][0]["basis"] == "extrapolated"
    for version, deterministic, layout in (("2.7.1", "false", "NCHW"), ("2.7.1", "true", "NHWC")):
        other = checked(DILATED.format(version=version, deterministic=deterministic, layout=layout))
        assert "CL816" not in codes(other)
        assert other["summary"]["time_us"] < slow["summary"]["time_us"] / 5


PATCHES = """\
version: 1
mode: training
runtime: {{ framework: pytorch }}
layers:
  - {{ name: patch, N: 64, {sizes}, K: 768, kernel_size: {kernel}, stride: {kernel}, dtype: bf16, layout: NCHW{more} }}
"""


@pytest.mark.parametrize("gpu", ["a100", "h100", "v100", "t4", "rtx-4090"])
@pytest.mark.parametrize(
    ("sizes", "kernel"), [("C: 3, H: 224, W: 224", "16"), ("C: 3, H: 224, W: 224", "4"), ("C: 4, H: 64, W: 64", "2")]
)
def test_patches_promise_what_the_next_check_says(gpu: str, sizes: str, kernel: str) -> None:
    dtype = ("--dtype", "fp16")
    before = checked(PATCHES.format(sizes=sizes, kernel=kernel, more=""), "--gpu", gpu, *dtype)
    after = checked(PATCHES.format(sizes=sizes, kernel=kernel, more=", unfolded: true"), "--gpu", gpu, *dtype)
    one = finding(before, "CL813")
    assert (one["severity"], one["advised"], one["fix"]["set"]) == ("warning", True, {"unfolded": True})
    assert one["fix"]["time_change_us"] == pytest.approx(
        after["summary"]["time_us"] - before["summary"]["time_us"], rel=1e-3
    )
    assert before["summary"]["time_after_us"] == pytest.approx(after["summary"]["time_us"], rel=0.01)
    assert before["summary"]["time_after_fix_us"] > after["summary"]["time_us"]  # nobody writes code
    assert not {"CL813", "CL103", "CL102"} & codes(after)
    ran = json.loads(run("plan", "net.yaml", "-o", "json", "--gpu", gpu, *dtype).out)
    assert ran["time_us"] == ran["time_after_us"]


@pytest.mark.parametrize(
    ("size", "kernel"), [((3, 32, 48), (8, 16)), ((4, 12), (3,)), ((3, 4, 32, 32), (2, 16, 8))], ids=["2d", "1d", "3d"]
)
def test_the_way_out_of_a_patch_embedding_gives_the_same_numbers(
    size: tuple[int, ...], kernel: tuple[int, ...]
) -> None:
    """The expression that the finding shows is run as it stands, beside the convolution."""
    N, (C, *space), K = 2, size, 24
    letters = "DHW"[-len(space) :]
    sizes = ", ".join([f"C: {C}", f"dims: {len(space)}", *(f"{n}: {s}" for n, s in zip(letters, space, strict=True))])
    document = checked(
        PATCHES.format(sizes=sizes, kernel=f"[{', '.join(map(str, kernel))}]", more="").replace("768", "24")
    )
    expression = finding(document, "CL813")["fix"]["describe"].partition(": the same")[0]
    conv = getattr(torch.nn, f"Conv{len(space)}d")(C, K, kernel, stride=kernel, dtype=torch.float64)
    x = torch.randn(N, C, *space, dtype=torch.float64)
    names = {"F": torch.nn.functional, "x": x, "N": N, "weight": conv.weight, "bias": conv.bias}
    ours = eval(expression, {"__builtins__": {}}, names)
    theirs = conv(x).movedim(1, -1)
    assert ours.shape == theirs.shape
    assert torch.allclose(ours, theirs)


def test_a_network_behind_its_patches_is_no_further_from_its_input() -> None:
    """What follows an unfolded layer is connected to it as before."""
    spec = PATCHES.format(sizes="C: 3, H: 64, W: 64", kernel="4", more=", unfolded: true")
    spec += "  - { name: next, K: 384, kernel_size: 1, dtype: bf16, layout: NHWC }\n"
    found = checked(spec)
    assert found["complete"]
    assert not [each for each in found["findings"] if each["severity"] == "error"]
    assert (found["layers"][1]["C"], found["layers"][1]["H"]) == (768, 16)


@pytest.mark.parametrize(
    ("file", "pin", "gpu", "fires"),
    [
        ("requirements.txt", "torch==2.11.0", "v100", False),  # CUDA 13 itself has left Volta: CL707
        ("requirements.txt", "torch==2.11.0+cu128", "v100", True),
        ("requirements.txt", "torch==2.10.0+cu128", "v100", False),
        ("requirements.txt", "torch==2.8.0", "p100", True),
        ("requirements.txt", "torch==2.8.0+cu126", "p100", False),
        ("requirements.txt", "torch==2.8.0", "rtx-5090", False),
        ("environment.yml", "- pytorch==2.8.0", "p100", False),  # another build
    ],
)
def test_a_wheel_without_the_gpus_code_is_an_error(file: str, pin: str, gpu: str, fires: bool) -> None:
    Path(file).write_text(f"{pin}\n", encoding="utf-8")
    found = checked(VIDEO, "--gpu", gpu, "--dtype", "fp16")
    assert ("CL818" in codes(found)) is fires
    if fires:
        assert finding(found, "CL818")["severity"] == "error"
        assert "compute capability" in finding(found, "CL818")["message"]


@pytest.mark.parametrize(
    ("version", "gpu", "needs"),
    [
        ("2.9.1", "p100", "the CUDA of its wheel, as in 2.9.1+cu126"),  # that for CUDA 12.8 lacks it
        ("2.9.1", "rtx-5090", "the CUDA of its wheel, as in 2.9.1+cu126"),
        ("2.13.0+cpu", "v100", "the CUDA of its wheel, as in 2.13.0+cu126"),
        (None, "p100", "runtime.framework_version"),
        ("2.9.1", "a100", None),  # which all of them have code for
        ("2.9.1+cu126", "p100", None),
        (None, "h100", None),
    ],
)
def test_a_release_that_comes_in_several_wheels(version: str | None, gpu: str, needs: str | None) -> None:
    stated = f", framework_version: '{version}'" if version else ""
    found = checked(VIDEO.replace("framework: pytorch", f"framework: pytorch{stated}"), "--gpu", gpu, "--dtype", "fp16")
    assert "CL818" not in codes(found)
    assert [skip["needs"] for skip in found["skipped"] if skip["code"] == "CL818"] == ([[needs]] if needs else [])


def test_rules_on_versions_are_not_guessed() -> None:
    """Where nobody says the version, they are skipped with what they need; where nobody says the framework, silent."""
    found = checked(VIDEO)
    assert "CL811" not in codes(found)
    assert {"CL811"} <= {skip["code"] for skip in found["skipped"]}
    assert all("runtime.framework_version" in skip["needs"] for skip in found["skipped"] if skip["code"] == "CL811")
    silent = checked(VIDEO.replace("runtime: { framework: pytorch }\n", ""))
    assert not [skip for skip in silent["skipped"] if skip["code"].startswith(("CL81", "CL82"))]
    eights = (
        VIDEO.replace("pytorch", "tensorrt")
        .replace("bf16", "fp8")
        .replace("padding: 1 }", "padding: 1, groups: 2 }", 1)
    )
    skipped = checked(eights, "--gpu", "h100")["skipped"]
    assert [(skip["layer"], skip["needs"]) for skip in skipped if skip["code"] == "CL824"] == [
        ("a", ["runtime.tensorrt"])
    ]


SOURCE = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv3d(16, 32, 3, padding=1)
        self.b = nn.Conv3d(32, 32, 1)

    def forward(self, x):
        return self.b(self.a(x))


def main(loader):
    net = Net().cuda()
    opt = torch.optim.SGD(net.parameters(), lr=.1)
    for x, y in loader:
        (net(x) - y).mean().backward()
        opt.step()


main([])
"""


def of_source(pin: str, *arguments: str) -> dict[str, Any]:
    Path("net.py").write_text(SOURCE, encoding="utf-8")
    Path("requirements.txt").write_text(f"{pin}\n", encoding="utf-8")
    return json.loads(run("check", "net.py", "-o", "json", *arguments).out)


def test_source_is_judged_by_the_versions_that_are_pinned_beside_it() -> None:
    one = finding(of_source("torch==2.9.0"), "CL811")
    assert (one["severity"], one["line"], one["layer"]) == ("info", 8, "Net.a")
    assert "PyTorch 2.9.0, which is pinned here" in one["message"]
    assert "CL811" not in codes(of_source("torch==2.8.0"))
    assert "CL811" not in codes(of_source("torch==2.9.0", "--dtype", "fp32"))
    assert "CL811" not in codes(of_source("torch>=2.9.0"))
    assert "CL811" in codes(
        of_source("torch>=2.9.0", "--runtime", "framework_version=2.9.0", "--runtime", "cudnn=9.10.2")
    )


def test_a_script_whose_wheel_has_no_code_for_the_target_fails() -> None:
    one = finding(of_source("torch==2.11.0+cu128", "--gpu", "v100"), "CL818")
    assert (one["severity"], one["path"]) == ("error", "net.py")
    assert "CL818" not in codes(of_source("torch==2.11.0+cu128", "--gpu", "a100"))
    assert "CL818" not in codes(of_source("torch==2.11.0+cu126", "--gpu", "v100"))


@pytest.mark.slow
@given(
    layer=st.builds(
        ConvLayer, name=st.just("a"), N=st.sampled_from([2, 8, 32, 256]), C=st.sampled_from([4, 8, 16, 64, 256, 1024]),
        K=st.sampled_from([8, 16, 64, 256, 512]), H=st.sampled_from([7, 14, 28, 56]), W=st.sampled_from([7, 14, 56]),
        R=st.sampled_from([1, 3]), S=st.sampled_from([1, 3]), dtype=st.sampled_from(Dtype),
        layout=st.sampled_from(["NCHW", "NHWC"]),
    ),
    gpu=st.sampled_from(GPUS), size=st.sampled_from(["N", "C", "K", "H", "W"]),
)  # fmt: skip
def test_a_size_that_falls_by_one_is_not_silent_where_it_costs_ten_times(
    layer: ConvLayer, gpu: object, size: str
) -> None:
    before = with_output(layer)
    after = with_output(replace(layer, **{size: getattr(layer, size) - 1}))
    now, then = (time_us(one, gpu, Runtime(), "training") for one in (before, after))  # type: ignore[arg-type]
    if now and then and then > 10 * now:
        target = Target(label="gpu", gpu=gpu)  # type: ignore[arg-type]
        found = check_network(Network(path="x", layers=(after,)), BUILTIN, [target], "training").findings
        assert [finding for finding in found if finding.severity != "info"]
