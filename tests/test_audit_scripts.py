"""The zoo of models that audits are shown and measured on, and the scripts that do: that they do the work they name."""

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from audited import rows_of
from benchmark_scripts import BENCHMARKS, importable, modules_fixture
from command_line import convlint

pytestmark = pytest.mark.slow


zoo = modules_fixture("zoo")


def script(name: str, *arguments: str) -> str:
    """What a script prints."""
    command = [sys.executable, str(BENCHMARKS / name), *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:]
    return ran.stdout


def test_a_zoo_is_always_the_same(zoo: ModuleType, tmp_path: Path) -> None:
    one, other = zoo.write(tmp_path / "one" / "zoo", 40), zoo.write(tmp_path / "other" / "zoo", 40)
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in other]
    assert len({path.read_bytes() for path in one}) == 40
    assert {path.suffix for path in one} == {".yaml", ".onnx"}
    for name in ("models.csv", "hours.csv"):
        assert (tmp_path / "one/zoo" / name).read_text() == (tmp_path / "other/zoo" / name).read_text()


def test_a_larger_zoo_begins_with_a_smaller_one(zoo: ModuleType, tmp_path: Path) -> None:
    few, more = zoo.write(tmp_path / "few", 8), zoo.write(tmp_path / "more", 12)
    assert [path.read_bytes() for path in few] == [path.read_bytes() for path in more[:8]]


@pytest.mark.parametrize("family", ["resnet", "mobilenet", "unet", "vgg"])
def test_a_network_has_the_same_layers_as_spec_and_as_onnx(family: str, zoo: ModuleType, here: Path) -> None:
    net = zoo.FAMILIES[family](zoo.Choices(5))
    Path("a.yaml").write_text(zoo.spec_text(net, "inference", 8, 128, "fp16", "NCHW"))
    Path("a.onnx").write_bytes(zoo.onnx_bytes(net, 8, 128, "fp16"))
    assert convlint("audit", "a.yaml", "a.onnx", "--fail-on", "never", "-o", "jsonl=a.jsonl").code == 0
    keys = ("op", "N", "C", "H", "W", "K", "P", "Q", "R", "S", "U", "V", "groups", "dtype")
    spec, graph = (
        [[row[key] for key in keys] for row in rows_of("a.jsonl", "layers") if row["model"] == name]
        for name in ("a.yaml", "a.onnx")
    )
    assert spec == graph
    assert len(spec) >= 8


def test_every_model_has_hours_and_a_time(zoo: ModuleType, here: Path) -> None:
    zoo.write(Path("zoo"), 24)
    arguments = ("--models-from", "zoo/models.csv", "--weights", "zoo/hours.csv", "--fail-on", "never")
    ran = convlint("audit", *arguments, "-o", "json")
    found = json.loads(ran.out)
    assert (ran.code, found["models"], found["failed"], found["without_hours"]["pairs"]) == (0, 24, 0, 0)
    assert found["unused_weights"]["rows"] == 0
    assert {each["what"] for each in found["architectures"]} == set(zoo.FAMILIES)


def test_the_demonstration_shows_equal_tables_and_the_ranking(tmp_path: Path) -> None:
    for _ in range(2):  # what a run has left is in no later one's way
        shown = script("audit_demo.py", str(tmp_path / "demo"), "--models", "12")
    assert shown.startswith("8 specs and 4 ONNX files")
    assert "all 8 tables are the same, byte for byte" in shown
    assert "Models that lose most" in shown
    assert "in 12 models on" in shown


def test_tables_that_differ_are_named(zoo: ModuleType, tmp_path: Path) -> None:
    with importable():
        import audit_demo
    for name in ("a", "b"):
        for table in ("", "-layers", "-models", "-errors"):
            for form in ("parquet", "jsonl"):
                (tmp_path / f"{name}{table}.{form}").write_text("same")
    assert audit_demo.differing(tmp_path, "a", "b") == []
    (tmp_path / "b-layers.jsonl").write_text("other")
    assert audit_demo.differing(tmp_path, "a", "b") == ["a-layers.jsonl"]


@pytest.mark.skipif(sys.platform != "linux", reason="/proc says what a tree of processes takes")
@pytest.mark.parametrize(
    ("section", "lines"),
    [("overhead", ["processor time", "peak memory"]), ("memory", ["100"])],
)
def test_sections_of_the_benchmark_print_their_tables(section: str, lines: list[str]) -> None:
    shown = script("audit.py", section, "--models", "8", "--runs", "1")
    for line in lines:
        assert f"\n| {line} |" in shown


@pytest.mark.skipif(sys.platform != "linux", reason="/proc says what a tree of processes takes")
def test_what_children_take_is_counted(tmp_path: Path) -> None:
    with importable():
        from process_trees import taken
    child = "import time; held = bytearray(80 << 20); end = time.time() + 0.7\nwhile time.time() < end: pass"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    found = taken([sys.executable, "-c", parent], cwd=tmp_path)
    assert found.peak > 80 << 20
    assert 0.2 < found.cpu <= found.wall * 2
