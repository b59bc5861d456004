"""Speed of convlint against peers that do the part of the work nobody can avoid, measured side by side.

Every comparison alternates the two sides in one run and prints medians and the ratio of medians; absolute times say
more about the machine than about either side. Whole processes are timed from outside, peak memory is the operating
system's own figure.

    python benchmarks/speed.py [--runs 9] [spec models estimates formats config]
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

PYTHON = sys.executable
# (C, H = W, K, filter, stride, padding): the shapes of ResNet-50, over and over, as large networks repeat theirs
SHAPES = (
    (64, 56, 64, 1, 1, 0), (64, 56, 64, 3, 1, 1), (64, 56, 256, 1, 1, 0), (256, 56, 64, 1, 1, 0),
    (256, 56, 128, 1, 1, 0), (128, 56, 128, 3, 2, 1), (128, 28, 512, 1, 1, 0), (256, 56, 512, 1, 2, 0),
    (512, 28, 128, 1, 1, 0), (128, 28, 128, 3, 1, 1), (512, 28, 256, 1, 1, 0), (256, 28, 256, 3, 2, 1),
    (256, 14, 1024, 1, 1, 0), (512, 28, 1024, 1, 2, 0), (1024, 14, 256, 1, 1, 0), (256, 14, 256, 3, 1, 1),
    (1024, 14, 512, 1, 1, 0), (512, 14, 512, 3, 2, 1), (512, 7, 2048, 1, 1, 0), (2048, 7, 512, 1, 1, 0),
)  # fmt: skip
HEAD = "version: 1\ntarget: [a100]\ndefaults: { N: 256, dtype: fp16, layout: NHWC }\nlayers:\n"


def spec_text(layers: int, *, distinct: bool = False) -> str:
    """A spec of `layers` layers: ResNet-50's shapes repeated, or every layer another."""
    lines = []
    for i in range(layers):
        if distinct:
            C, H, K, R, stride, pad = 64 * (1 + i % 31), 7 + i % 50, 64 * (1 + i % 29), 3, 1 + i // 5000 % 2, 1
        else:
            C, H, K, R, stride, pad = SHAPES[i % len(SHAPES)]
        sizes = f"C: {C}, H: {H}, W: {H}, K: {K}, R: {R}, S: {R}, stride: {stride}, padding: {pad}"
        lines.append(f"  - {{ name: layer{i}, {sizes} }}\n")
    return HEAD + "".join(lines)


def process(command: list[str]) -> tuple[float, int]:
    """Wall seconds and peak bytes of one whole process; its output is thrown away."""
    begin = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 1):  # 1: findings; anything else was no check
        raise SystemExit(f"exit {child.returncode}: {' '.join(command)}")
    return time.perf_counter() - begin, usage.ru_maxrss * 1024


def compare(name: str, ours: list[str], theirs: list[str], *, runs: int, aim: str) -> None:
    """Alternates two processes and prints the medians, the ratio and the aim."""
    for command in (ours, theirs):
        process(command)
    pairs = [(process(ours)[0], process(theirs)[0]) for _ in range(runs)]
    show(name, [a for a, _ in pairs], [b for _, b in pairs], aim)


def compare_calls(name: str, ours: Callable[[], object], theirs: Callable[[], object], *, runs: int, aim: str) -> None:
    """Alternates two calls in this process and prints the medians, the ratio and the aim."""
    pairs = []
    for _ in range(runs):
        pairs.append((timed(ours), timed(theirs)))
    show(name, [a for a, _ in pairs], [b for _, b in pairs], aim)


def timed(call: Callable[[], object]) -> float:
    """Seconds of one call."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def show(name: str, ours: list[float], theirs: list[float], aim: str) -> None:
    """One line of the table."""
    a, b = statistics.median(ours), statistics.median(theirs)
    print(f"{name:<58} {a * 1e3:9.1f} ms {b * 1e3:9.1f} ms   ratio {a / b:5.2f}   aim {aim}", flush=True)


def convlint(*arguments: str) -> list[str]:
    """The command line of this installation's convlint."""
    script = Path(PYTHON).with_name("convlint")
    return [str(script), *arguments] if script.exists() else [PYTHON, "-m", "convlint", *arguments]


def bench_spec(folder: Path, runs: int) -> None:
    """The YAML path: against yamllint on the same file, against PyYAML's C loader alone, and memory per layer."""
    files = {}
    for count in (50, 1_000, 10_000):
        files[count] = folder / f"layers{count}.yaml"
        files[count].write_text(spec_text(count))
    yamllint = [PYTHON, "-m", "yamllint", "-d", "relaxed", str(files[50])]
    script = Path(PYTHON).with_name("yamllint")
    if script.exists():
        yamllint = [str(script), "-d", "relaxed", str(files[50])]
    compare("check, 50 layers : yamllint", convlint("check", str(files[50])), yamllint, runs=runs, aim="<= 1.0")
    load = "import sys, yaml; yaml.load(open(sys.argv[1]).read(), Loader=yaml.CSafeLoader)"
    big = str(files[10_000])
    compare(
        "check, 10,000 layers : CSafeLoader alone",
        convlint("check", big), [PYTHON, "-c", load, big], runs=runs, aim="<= 2.0",
    )  # fmt: skip
    peaks = {
        count: statistics.median(process(convlint("check", str(files[count])))[1] for _ in range(3))
        for count in (1_000, 10_000)
    }
    slope = (peaks[10_000] - peaks[1_000]) / 9_000
    print(
        f"peak memory: {peaks[1_000] / 2**20:.0f} MiB at 1,000 layers, {peaks[10_000] / 2**20:.0f} MiB at 10,000:"
        f" {slope / 1000:.1f} kB per layer   aim < 10 kB",
        flush=True,
    )


def bench_estimates(folder: Path, runs: int) -> None:
    """The cost model: one layer's three passes, and what it adds to a check of 10,000 distinct layers."""
    from convlint.engine import check as engine
    from convlint.estimate import estimate_layer
    from convlint.gpus.gpu import load_gpu
    from convlint.readers import ReadOptions
    from convlint.readers.inputs import file_input
    from convlint.readers.reading import Reading
    from convlint.rulebook.book import load_rulebook

    path = folder / "distinct.yaml"
    path.write_text(spec_text(10_000, distinct=True))
    with Reading() as reading:
        network, errors = reading.read(file_input(str(path)), ReadOptions())
    assert network is not None
    assert not errors
    gpu = load_gpu("a100")
    seconds = timed(lambda: [estimate_layer(layer, gpu, network.runtime, "training") for layer in network.layers])
    print(f"three passes of a layer: {seconds / len(network.layers) * 1e6:.0f} us, each layer another   aim <= 100 us")

    rulebook, targets = load_rulebook(), [engine.Target(label="a100", gpu=gpu)]
    with_estimates = []
    without = []
    for _ in range(max(3, runs // 3)):
        with_estimates.append(timed(lambda: engine.check_network(network, rulebook, targets, "training")))
        original, engine.estimate_layer = engine.estimate_layer, lambda *_: None  # type: ignore[assignment,return-value]
        try:
            without.append(timed(lambda: engine.check_network(network, rulebook, targets, "training")))
        finally:
            engine.estimate_layer = original
    a, b = statistics.median(with_estimates), statistics.median(without)
    print(
        f"10,000 distinct layers, all rules: {a:.2f} s with estimates, {b:.2f} s without: {a - b:+.2f} s   aim <= +2 s"
    )


def bench_formats(folder: Path, runs: int) -> None:
    """All report formats at once against text alone, on 10,000 layers."""
    path = folder / "layers.yaml"
    path.write_text(spec_text(10_000))
    formats = ("concise", "json", "sarif", "github", "gitlab", "junit", "rdjson", "markdown")
    extra = [f"--output={name}={folder / name}.out" for name in formats]
    compare(
        "check, 10,000 layers, all formats : text alone",
        convlint("check", str(path), "--output=text", *extra), convlint("check", str(path)), runs=runs, aim="<= 1.2",
    )  # fmt: skip


def bench_config(folder: Path, runs: int) -> None:
    """What looking for a configuration adds to a small check."""
    deep = folder.joinpath(*"abcdefgh")
    deep.mkdir(parents=True)
    path = deep / "small.yaml"
    path.write_text(spec_text(5))
    (folder / "pyproject.toml").write_text('[tool.convlint]\nfail-on = "error"\n')
    with_config, without = [], []
    for _ in range(runs + 1):
        with_config.append(process(convlint("check", str(path)))[0])
        without.append(process(convlint("check", "--isolated", str(path)))[0])
    a, b = statistics.median(with_config[1:]), statistics.median(without[1:])
    print(f"configuration eight folders up: {(a - b) * 1e3:+.1f} ms on {b * 1e3:.0f} ms   aim <= +5 ms", flush=True)


_ONNX_CHILD = """
import sys
from convlint.readers import ReadOptions
from convlint.readers.inputs import file_input
from convlint.readers.reading import Reading
with Reading() as reading:
    assert reading.read(file_input(sys.argv[1]), ReadOptions(batch=256))[0] is not None
"""
_ONNX_HERE = """
import sys
from convlint.readers import ReadOptions, onnx_model
assert onnx_model.read(sys.argv[1], ReadOptions(batch=256))[0] is not None
"""
_ONNX_ALONE = """
import sys, onnx
model = onnx.load(sys.argv[1], load_external_data=False)
for value in model.graph.input:
    shape = value.type.tensor_type.shape
    if len(shape.dim) == 4:
        shape.dim[0].dim_value = 256
onnx.shape_inference.infer_shapes(model, data_prop=True)
"""
_TORCH_ALONE = """
import torch
from transformers import ResNetConfig, ResNetModel
with torch.device("meta"):
    model = ResNetModel(ResNetConfig()).eval()
    model(torch.empty(256, 3, 224, 224))
"""
_TORCH_MODULE = """
from transformers import ResNetConfig, ResNetModel
def build():
    return ResNetModel(ResNetConfig())
"""
_HEADER_ALONE = """
import json, sys
with open(sys.argv[1], "rb") as file:
    json.loads(file.read(int.from_bytes(file.read(8), "little")))
"""


def bench_models(folder: Path, runs: int) -> None:
    """The readers of models, each against a script that only loads what the reader cannot do without."""
    import json

    import onnx

    graph = Path(onnx.__file__).parent / "backend/test/data/light/light_resnet50.onnx"
    compare(
        "check ResNet-50 as ONNX : load and shape inference",
        convlint("check", str(graph), "--batch", "256"), [PYTHON, "-c", _ONNX_ALONE, str(graph)], runs=runs,
        aim="<= 1.3",
    )  # fmt: skip
    compare(
        "read ResNet-50 as ONNX in a child : in the process",
        [PYTHON, "-c", _ONNX_CHILD, str(graph)], [PYTHON, "-c", _ONNX_HERE, str(graph)], runs=runs,
        aim="60 ms more at most",
    )  # fmt: skip
    (folder / "resnet.py").write_text(_TORCH_MODULE)
    os.chdir(folder)
    compare(
        "check a transformers ResNet : build it, one meta forward",
        convlint("check", "resnet:build", "--input", "256x3x224x224"), [PYTHON, "-c", _TORCH_ALONE], runs=runs,
        aim="<= 1.2",
    )  # fmt: skip
    tensors = {}
    end = 0
    for i in range(500):
        for kind, shape in (("weight", [256, 256, 3, 3]), ("bias", [256])):
            begin, end = end, end + 2 * math.prod(shape)
            tensors[f"layer{i}.{kind}"] = {"dtype": "F16", "shape": shape, "data_offsets": [begin, end]}
    header = json.dumps(tensors).encode()
    weights = folder / "weights.safetensors"
    with weights.open("wb") as stream:
        stream.write(len(header).to_bytes(8, "little") + header)
        stream.truncate(8 + len(header) + end)  # zeros that take no room
    compare(
        "check 1,000 safetensors : read the header",
        convlint("check", str(weights)), [PYTHON, "-c", _HEADER_ALONE, str(weights)], runs=runs, aim="<= 1.5",
    )  # fmt: skip


SECTIONS: dict[str, Callable[[Path, int], None]] = {
    "spec": bench_spec,
    "models": bench_models,
    "estimates": bench_estimates,
    "formats": bench_formats,
    "config": bench_config,
}


def main() -> None:
    """Runs the sections asked for, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", choices=[*SECTIONS, []], help="which to run (default: all)")
    parser.add_argument("--runs", type=int, default=9, help="alternating pairs (default 9, at least 7 count)")
    arguments = parser.parse_args()
    print(f"{'comparison':<58} {'convlint':>12} {'peer':>12}")
    for name in arguments.sections or SECTIONS:
        with tempfile.TemporaryDirectory() as folder:
            SECTIONS[name](Path(folder), arguments.runs)


if __name__ == "__main__":
    main()
