"""Speed of convlint against peers that do the part of the work nobody can avoid, measured side by side.

Every comparison alternates the two sides in one run and prints medians and the ratio of medians; absolute times say
more about the machine than about either side. Whole processes are timed from outside, on the clock and on the
processor; the processor's time suffers less from what else the machine does. Peak memory is the operating system's own
figure. What cannot be compared here, for want of a package, is named with the reason.

    python benchmarks/speed.py [--runs 9] [--quick] [--markdown] [SECTION...]

Sections: spec flawed models project estimates formats config source.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import patch

import speed_inputs as given
from side_by_side import Row, Table, call, compare, process, shown

PYTHON = sys.executable
RESNET50 = Path(__file__).resolve().parent.parent / "sample_configs" / "resnet50.yaml"
REPEATED = f"layers ({len(given.SHAPES)} shapes repeated)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A run: how often, how large, where its files may lie and where its lines go."""

    folder: Path
    runs: int
    layers: int  # of a large spec
    fewer: int  # of one whose memory a large one's is compared with
    warm_up: bool
    table: Table

    def write(self, name: str, text: str) -> str:
        """A file for the two sides to work on."""
        (self.folder / name).write_text(text)
        return str(self.folder / name)

    def processes(
        self, name: str, ours: list[str], theirs: list[str], *, aim: str, exits: int = 0, cwd: Path | None = None
    ) -> None:
        """Compares two processes; ours ends with `exits`, theirs with 0."""
        sides = partial(process, ours, exits=exits, cwd=cwd), partial(process, theirs, cwd=cwd)
        self.table.add(compare(name, *sides, runs=self.runs, warm_up=self.warm_up, aim=aim))

    def lacks(self, name: str, *packages: str) -> bool:
        """Whether the comparison needs packages that are not here; says so where it does."""
        missing = [package for package in packages if find_spec(package) is None]
        if missing:
            self.table.leave_out(name, f"needs {' and '.join(missing)}, not installed")
        return bool(missing)

    def lacks_libyaml(self, name: str) -> bool:
        """Whether PyYAML was built without its loader in C; says so where it was."""
        import yaml

        if not hasattr(yaml, "CSafeLoader"):
            self.table.leave_out(name, "needs PyYAML with libyaml")
            return True
        return False


def script(name: str, *arguments: str) -> list[str]:
    """The command line of a program that is installed beside this Python."""
    path = Path(PYTHON).with_name(name)
    return [str(path), *arguments] if path.exists() else [PYTHON, "-m", name, *arguments]


convlint = partial(script, "convlint")
UNBOUND = "--ignore", "CL801"  # a network of 10,000 layers fits into no GPU; that it is read and priced is the point
yamllint = partial(script, "yamllint", "-d", "relaxed")


def bench_spec(bench: Bench) -> None:
    """The YAML path: against yamllint on the same file, against PyYAML's C loader alone, and memory per layer."""
    small = bench.write("50.yaml", given.spec_text(50))
    fewer = bench.write("fewer.yaml", given.spec_text(bench.fewer))
    large = bench.write("large.yaml", given.spec_text(bench.layers))
    name = f"check, 50 {REPEATED} : yamllint"
    if not bench.lacks(name, "yamllint"):
        bench.processes(name, convlint("check", small), yamllint(small), aim="<= 1.0")
    name = f"check, {bench.layers:,} {REPEATED} : CSafeLoader"
    if not bench.lacks_libyaml(name):
        bench.processes(name, convlint("check", large, *UNBOUND), [PYTHON, "-c", given.LOAD_YAML, large], aim="<= 2.0")
    of_fewer, of_large = (
        statistics.median(process(convlint("check", path, *UNBOUND)).peak for _ in range(min(bench.runs, 3)))
        for path in (fewer, large)
    )
    kilobytes = (of_large - of_fewer) / (bench.layers - bench.fewer) / 1000
    name = f"peak memory per layer, {bench.fewer:,} to {bench.layers:,} {REPEATED}"
    bench.table.add(Row(name=name, ours=f"{kilobytes:.1f} kB", aim="< 10 kB"))
    name = f"peak memory, {bench.layers:,} {REPEATED} : {bench.fewer:,}"
    sizes = (f"{peak / 2**20:.0f} MiB" for peak in (of_large, of_fewer))
    bench.table.add(Row(name=name, ours=next(sizes), theirs=next(sizes), ratio=of_large / of_fewer, aim="-"))


def bench_flawed(bench: Bench) -> None:
    """Specs in which nothing repeats and nearly every layer has findings: estimates, prices and fixes for each."""
    small = bench.write("50.yaml", given.flawed_text(50))
    large = bench.write("large.yaml", given.flawed_text(bench.layers))
    for path, layers in ((small, 50), (large, bench.layers)):
        refuse_idle(path, layers)
    name = "check, 50 distinct, flawed layers : yamllint"
    if not bench.lacks(name, "yamllint"):
        bench.processes(name, convlint("check", small), yamllint(small), exits=1, aim="<= 1.0")
    name = f"check, {bench.layers:,} distinct, flawed layers : CSafeLoader"
    if not bench.lacks_libyaml(name):
        peer = [PYTHON, "-c", given.LOAD_YAML, large]
        bench.processes(name, convlint("check", large), peer, exits=1, aim="<= 3.0, goal 2.0")
    name = f"--fix (as --diff), {bench.layers:,} distinct, flawed layers : check"
    fixing = convlint("check", large, "--diff", "--unsafe-fixes")
    bench.processes(name, fixing, convlint("check", large, "--fail-on", "never"), exits=1, aim="<= 2.0")


def refuse_idle(path: str, layers: int) -> None:
    """Ends the run where a check of `path` does not find flaws of many kinds, in nearly every layer."""
    done = subprocess.run(convlint("check", path, "--output", "json"), stdout=subprocess.PIPE, check=False)
    assert done.returncode == 1, done.returncode
    report = json.loads(done.stdout)
    findings = report["findings"]
    assert report["summary"]["layers"] == layers
    assert len({finding["layer"] for finding in findings}) > 0.9 * layers, "too few layers with findings of their own"
    assert len({finding["code"] for finding in findings}) >= 8, "too few rules fire"


def bench_models(bench: Bench) -> None:
    """The readers of models, each against a script that only loads what the reader cannot do without."""
    name = "check ResNet-50 as ONNX : load and shape inference"
    in_child = "read ResNet-50 as ONNX in a child : in the process"
    if not any([bench.lacks(name, "onnx"), bench.lacks(in_child, "onnx")]):  # a list: each is named
        import onnx

        graph = str(Path(onnx.__file__).parent / "backend/test/data/light/light_resnet50.onnx")
        ours, theirs = convlint("check", graph, "--batch", "256"), [PYTHON, "-c", given.ONNX_ALONE, graph]
        bench.processes(name, ours, theirs, aim="<= 1.3")
        ours, theirs = ([PYTHON, "-c", code, graph] for code in (given.ONNX_CHILD, given.ONNX_HERE))
        bench.processes(in_child, ours, theirs, aim="60 ms more at most")
    name = "check a transformers ResNet : build it, one meta forward"
    if not bench.lacks(name, "torch", "transformers"):
        bench.write("resnet.py", given.TORCH_MODULE)
        ours = convlint("check", "resnet:build", "--input", "256x3x224x224")
        peer = [PYTHON, "-c", given.TORCH_ALONE]
        bench.processes(name, ours, peer, exits=1, cwd=bench.folder, aim="<= 1.2")  # it is NCHW
    weights = bench.folder / "weights.safetensors"
    given.write_safetensors(weights, 500)
    name = "check a safetensors header of 1,000 tensors : read it"
    theirs = [PYTHON, "-c", given.HEADER_ALONE, str(weights)]
    bench.processes(name, convlint("check", str(weights)), theirs, aim="<= 1.5")


def bench_project(bench: Bench) -> None:
    """A project's own models, named in its config, against one process that builds and runs the same on meta."""
    for name, widths in (
        ("check --models, a ResNet-50 : build it, one meta forward", [64]),
        ("check --models, 10 ResNets : build them, one meta forward each", range(64, 224, 16)),
    ):
        if bench.lacks(name, "torch"):
            continue
        bench.write("resnets.py", given.RESNETS)
        bench.write("pyproject.toml", "".join(given.model_entry(f"of{width}", width) for width in widths))
        peer = [PYTHON, "-c", given.RESNETS_ALONE, *map(str, widths)]
        aim = "<= 1.2" if len(widths) == 1 else "<= 1.3"
        bench.processes(name, convlint("check", "--models"), peer, exits=1, cwd=bench.folder, aim=aim)  # it is NCHW


def bench_estimates(bench: Bench) -> None:
    """The cost model: one layer's three passes, and what it adds to a check of distinct layers."""
    from convlint.engine import check as engine
    from convlint.engine import levers, timing
    from convlint.estimate import estimate_layer
    from convlint.estimate.board import board_of
    from convlint.gpus.gpu import load_gpu
    from convlint.readers import ReadOptions
    from convlint.readers.inputs import file_input
    from convlint.readers.reading import Reading
    from convlint.rulebook.book import load_rulebook

    with Reading() as reading:
        path = bench.write("distinct.yaml", given.spec_text(bench.layers, distinct=True))
        network, errors = reading.read(file_input(path), ReadOptions())
    assert network is not None
    assert not errors
    gpu = load_gpu("a100")
    cost = call(lambda: [estimate_layer(layer, gpu, network.runtime, "training") for layer in network.layers])
    name = f"three passes of a layer, {bench.layers:,} distinct layers"
    bench.table.add(Row(name=name, ours=shown(cost.wall / len(network.layers)), aim="<= 100 us"))

    rulebook, targets = load_rulebook(), [engine.Target(label="a100", gpu=gpu)]

    def check() -> None:
        board_of(gpu).passes.clear()  # kept by the run before
        assert engine.check_network(network, rulebook, targets, "training")

    def check_without() -> None:
        with ExitStack() as patched:
            for module, name in ((timing, "estimate_layer"), (timing, "time_us"), (levers, "estimate_layer")):
                patched.enter_context(patch.object(module, name, lambda *_: None))
            check()

    name = f"rules on {bench.layers:,} distinct layers, with estimates : without"
    sides = partial(call, check), partial(call, check_without)
    runs = max(min(bench.runs, 3), bench.runs // 3)
    bench.table.add(compare(name, *sides, runs=runs, warm_up=False, aim="2 s more at most"))


def bench_formats(bench: Bench) -> None:
    """All report formats at once against text alone, and what the page adds."""
    path = bench.write("layers.yaml", given.spec_text(bench.layers))
    formats = ("concise", "json", "sarif", "github", "gitlab", "junit", "rdjson", "markdown")
    extra = [f"--output={name}={bench.folder / name}.out" for name in formats]
    name = f"check, {bench.layers:,} {REPEATED}, all formats : text alone"
    bench.processes(
        name,
        convlint("check", path, *UNBOUND, "--output=text", *extra),
        convlint("check", path, *UNBOUND),
        aim="<= 1.2",
    )
    name = "check ResNet-50 with the HTML page : text alone"
    if not bench.lacks(name, "jinja2"):
        page = f"--output=html={bench.folder / 'report.html'}"
        text = convlint("check", "--isolated", str(RESNET50), "--output=text")
        bench.processes(name, [*text, page], text, aim="500 ms more at most")


def bench_config(bench: Bench) -> None:
    """What looking for a configuration adds to a small check."""
    deep = bench.folder.joinpath(*"abcdefgh")
    deep.mkdir(parents=True)
    path = deep / "small.yaml"
    path.write_text(given.spec_text(5))
    bench.write("pyproject.toml", '[tool.convlint]\nfail-on = "error"\n')
    ours, theirs = convlint("check", str(path)), convlint("check", "--isolated", str(path))
    bench.processes("check 5 layers, configuration eight folders up : isolated", ours, theirs, aim="5 ms more at most")


def bench_source(bench: Bench) -> None:
    """Python that is read and not run, against TorchFix, which looks at each file alone, on the same files."""
    folder = bench.folder / "source"
    names = given.write_source(folder, bench.fewer)
    for name, paths in (
        (f"check {bench.fewer:,} files of Python, 150 lines each : torchfix", ["."]),
        (f"check every 20th of {bench.fewer:,} files of Python : torchfix", names[::20]),
    ):
        if not bench.lacks(name, "torchfix"):
            bench.processes(name, convlint("check", *paths), script("torchfix", *paths), cwd=folder, aim="<= 1.0")
    name = f"check {bench.fewer:,} files of Python, --jobs 2 : one process"
    bench.processes(name, convlint("check", ".", "--jobs", "2"), convlint("check", "."), cwd=folder, aim="<= 0.7")


SECTIONS: dict[str, Callable[[Bench], None]] = {
    "spec": bench_spec,
    "flawed": bench_flawed,
    "models": bench_models,
    "project": bench_project,
    "estimates": bench_estimates,
    "formats": bench_formats,
    "config": bench_config,
    "source": bench_source,
}


def main() -> None:
    """Runs the sections asked for, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", choices=[*SECTIONS, []], help="which to run (default: all)")
    parser.add_argument("--runs", type=int, default=9, help="alternating pairs (default 9, at least 7 count)")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    parser.add_argument(
        "--quick", action="store_true", help="300 layers instead of 10,000, not warmed up: does every section run?"
    )
    arguments = parser.parse_args()
    layers, fewer = (300, 30) if arguments.quick else (10_000, 1_000)
    table = Table(markdown=arguments.markdown)
    for name in arguments.sections or SECTIONS:
        with tempfile.TemporaryDirectory() as folder:
            SECTIONS[name](
                Bench(
                    folder=Path(folder).resolve(), runs=max(arguments.runs, 1), layers=layers, fewer=fewer,
                    warm_up=not arguments.quick, table=table,
                )
            )  # fmt: skip


if __name__ == "__main__":
    main()
