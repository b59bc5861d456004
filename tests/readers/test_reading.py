"""What a parser written in C does to its process is an error of that input; all others are reported, in order."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from checkout import ROOT
from msgspec.structs import replace
from onnx import helper
from onnx_graphs import model, save, value, weight

from convlint.readers import ReadOptions
from convlint.readers.inputs import Input, file_input
from convlint.readers.reading import Reading, format_of_input

pytestmark = pytest.mark.slow

# stands in for the parser: what a file holds is what becomes of the process that parses it
PARSER = """
import os, signal, sys, time
class ModelProto:
    def ParseFromString(self, content):
        how = content.decode()
        if how == "spins":
            while True: pass
        elif how == "swells":
            self.graph = [bytearray(1 << 20) for _ in range(10**6)]
        elif how == "throws bad_alloc":
            sys.stderr.write("terminate called after throwing an instance of 'std::bad_alloc'"); sys.stderr.flush()
            os.abort()
        elif how == "surprises":
            raise LookupError("odd")
        elif how.startswith("SIG"):
            os.kill(os.getpid(), getattr(signal, how))
        elif how == "leaves":
            os._exit(3)
        elif how == "prints":
            print("::error::noise"); sys.stderr.write("noise")
        from google.protobuf.message import DecodeError
        raise DecodeError
"""
DEATHS = {
    "SIGABRT": "the parser of its format crashes on it (SIGABRT)",
    "SIGSEGV": "the parser of its format crashes on it (SIGSEGV)",
    "leaves": "the parser of its format crashes on it (exit status 3)",
    "spins": "takes more than 1.5 s of processor time",
    "swells": "takes more than 180 MiB of memory",
    "throws bad_alloc": "takes more than 180 MiB of memory",
    "prints": "it cannot be decoded",
}
SPEC = "version: 1\nlayers:\n  - {name: a, N: 64, C: 62, H: 56, W: 56, K: 64, R: 3, S: 3, dtype: fp16, layout: NHWC}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for place, text in (("onnx/__init__.py", ""), ("onnx/onnx_pb.py", PARSER), ("onnx/onnx_cpp2py_export.py", "")):
        (tmp_path / "fake" / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "fake" / place).write_text(text)
    (tmp_path / "work").mkdir()
    for number, how in enumerate(DEATHS):
        (tmp_path / "work" / f"{number}.onnx").write_text(how)
        (tmp_path / "work" / f"{number}z.yaml").write_text(SPEC)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path / "fake"), str(ROOT)]))
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


@pytest.mark.parametrize(
    ("module", "message"),
    [("raise TypeError('Descriptors cannot be created\\nmore')", "cannot be imported: Descriptors cannot be created"),
     ("import numpyy", "cannot be imported: No module named 'numpyy'")],
)  # fmt: skip
def test_a_parser_that_cannot_be_imported_is_not_blamed_on_the_model(folder: Path, module: str, message: str) -> None:
    (folder.parent / "fake" / "onnx" / "onnx_pb.py").write_text(module)
    with Reading() as reading:
        _, (error,) = reading.read(file_input("0.onnx"), ReadOptions())
    assert error.message == f"reading ONNX needs the onnx package, which {message}"


@pytest.mark.usefixtures("folder")
def test_every_death_has_its_message() -> None:
    heard: list[str] = []
    with Reading(on_output=heard.append) as reading:
        for number, (_, message) in enumerate(DEATHS.items()):
            network, errors = reading.read(file_input(f"{number}.onnx"), ReadOptions())
            assert network is None
            assert [error.path for error in errors] == [f"{number}.onnx"]
            assert message in errors[0].message
            assert not errors[0].internal


@pytest.mark.usefixtures("folder")
def test_what_nobody_expected_is_a_defect_and_what_a_parser_mutters_is_not_heard() -> None:
    Path("odd.onnx").write_text("surprises")
    Path("loud.onnx").write_text("prints")
    heard: list[str] = []
    with Reading(on_output=heard.append) as reading:
        _, errors = reading.read(file_input("odd.onnx"), ReadOptions())
        assert [error.internal for error in errors] == [True]
        assert errors[0].message.startswith("internal error: LookupError: odd")
        reading.read(file_input("loud.onnx"), ReadOptions())
    assert heard == []


@pytest.mark.contract
@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_all_other_inputs_are_reported_in_order(folder: Path, jobs: int) -> None:
    names = sorted(os.listdir(folder))
    ran = subprocess.run(
        [sys.executable, "-m", "convlint", "check", *names, "--output", "json", "--jobs", str(jobs), "--isolated"],
        capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert ran.returncode == 3, ran.stderr
    report = json.loads(ran.stdout)
    assert [error["path"] for error in report["errors"]] == [name for name in names if name.endswith(".onnx")]
    assert [layer["path"] for layer in report["layers"]] == [name for name in names if name.endswith(".yaml")]
    assert "Traceback" not in ran.stderr


def test_one_child_serves_all_files_of_a_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from convlint.readers.children import child

    started = []
    original = child.Child.__init__

    def counting(self: child.Child, entry: str, **options: object) -> None:
        started.append(entry)
        original(self, entry, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(child.Child, "__init__", counting)
    node = helper.make_node("Conv", ["x", "w"], ["y"], name="c")
    path = save(tmp_path, model([node], [value("x", [1, 8, 9, 9])], ["y"], [weight("w", [8, 8, 3, 3])]))
    with Reading() as reading:
        for _ in range(3):
            network, errors = reading.read(file_input(path), ReadOptions())
            assert network is not None
            assert errors == ()
    assert started == ["convlint.readers.children.parser:work"]


def test_text_is_read_without_a_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "Popen", None)
    (tmp_path / "a.yaml").write_text(SPEC)
    with Reading() as reading:
        reading.expect([file_input(str(tmp_path / "a.yaml"))])
        network, errors = reading.read(file_input(str(tmp_path / "a.yaml")), ReadOptions())
    assert network is not None
    assert errors == ()


@pytest.mark.parametrize(
    ("source", "reader"),
    [
        (file_input("a.onnx"), "onnx.reader"), (file_input("evil:Net"), "spec.reader"), (file_input("a.txt"), None),
        (file_input("folder.d/plain"), "spec.reader"), (Input(kind="stdin", name="-"), "spec.reader"),
        (Input(kind="module", name="a:b.onnx"), "torch.module"), (file_input(".hidden"), "spec.reader"),
    ],
)  # fmt: skip
def test_which_reader_an_input_gets(source: Input, reader: str | None) -> None:
    found = format_of_input(source)
    assert (found and found.module) == reader


def test_limits_of_all_formats_hold_for_onnx_too(tmp_path: Path) -> None:
    def read(H: int, count: int) -> str:
        nodes = [helper.make_node("Conv", ["x", "w"], [f"y{n}"], name=f"c{n}") for n in range(count)]
        path = save(tmp_path, model(nodes, [value("x", [1, 1, H, 1])], [], [weight("w", [1, 1, 1, 1])]))
        with Reading() as reading:
            network, errors = reading.read(file_input(path), ReadOptions())
        return "" if network is not None and not errors else errors[0].message

    assert "more than 10,000 convolutions" in read(1, 10_001)
    assert "H is 1,099,511,627,776, more than 2^31" in read(2**40, 1)


def test_a_reader_that_never_ends_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import convlint.readers
    from convlint.readers import SPEC, Reader

    def endless(*_: object) -> None:
        while True:
            pass

    monkeypatch.setitem(convlint.readers._BY_SUFFIX, ".yaml", replace(SPEC, cpu_s=0.2))
    monkeypatch.setattr("convlint.readers.spec.reader.READER", Reader(read=endless))
    with Reading() as open_reading:
        network, errors = open_reading.read(file_input("a.yaml"), ReadOptions())
    assert network is None
    assert "takes more than 0.2 s of processor time" in errors[0].message
