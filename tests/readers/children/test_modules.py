"""Modules in processes of their own: whatever their code does is an error of that input, and the next one is read."""

import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from checkout import ROOT
from command_line import default_interrupt

from convlint.readers import ReadOptions
from convlint.readers.inputs import Input
from convlint.readers.reading import Reading

pytestmark = pytest.mark.slow

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
GOOD = """from torch import nn
class Net(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.Conv2d(3, 8, 3),
        )
"""
SHAPE = {"": "2x3x8x8"}

# what stands in the module before the network, and what the error says; None: the network is read all the same
BEHAVIOUR = {
    "changes_folder": ("import os\nos.chdir('/')\n", None),
    "prints": ("import os\nprint('noise')\nos.system('echo noise')\nos.write(1, b'noise\\n')\n", None),
    "registers_exit": ("import atexit, os\natexit.register(os._exit, 0)\n", None),
    "starts_threads": ("import threading, time\nthreading.Thread(target=time.sleep, args=(1000,)).start()\n", None),
    "replaces_streams": ("import sys\nsys.stdout = sys.stderr = None\nsys.__stdout__ = 3\n", None),
    "closes_streams": ("import os\nos.close(1); os.close(2); os.close(0)\n", None),
    "handles_signals": ("import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n", None),
    "forks_and_goes_on": ("import os\nos.fork()\n", None),
    "leaves_a_daemon": ("import os, time\nif os.fork() == 0:\n    os.setsid(); time.sleep(30); os._exit(0)\n", None),
    "reads_input": ("import sys\nassert sys.stdin.read() == ''\n", None),
    "interrupts": ("raise KeyboardInterrupt\n", "importing interrupts raises KeyboardInterrupt at interrupts.py:1"),
    "exits": ("import sys\nsys.exit(0)\n", "importing exits calls sys.exit(0) at exits.py:2"),
    "leaves": ("import os\nos._exit(0)\n", "its code ends the process, with exit status 0"),
    "kills_itself": ("import os\nos.kill(os.getpid(), 9)\n", "its code ends the process, by signal SIGKILL"),
    "crashes": ("import os\nos.abort()\n", "its code ends the process, by signal SIGABRT"),
    "closes_pipes": ("import os\nos.closerange(3, 256)\n", ""),
    "never_ends": ("while True: pass\n", "building and tracing it takes more than 3 s; --module-timeout"),
    "ignores_alarms": (
        "import signal, time\nsignal.pthread_sigmask(0, range(1, 65))\ntime.sleep(1000)\n",
        "more than 3 s",
    ),
    "base_exception": ("raise BaseException('odd')\n", "raises BaseException: odd"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("modules")
    for name, (before, _) in BEHAVIOUR.items():
        (folder / f"{name}.py").write_text(before + GOOD)
    (folder / "good.py").write_text(GOOD)
    return folder


@pytest.fixture(scope="module")
def heard() -> list[str]:
    return []


@pytest.fixture(scope="module")
def reading(folder: Path, heard: list[str]) -> Iterator[Reading]:
    before = Path.cwd()
    os.chdir(folder)
    with Reading(on_output=heard.append) as reading:
        yield reading
    os.chdir(before)


@pytest.mark.contract
@pytest.mark.parametrize("name", BEHAVIOUR)
def test_what_a_module_does_is_its_own_affair(name: str, reading: Reading, heard: list[str]) -> None:
    options = ReadOptions(inputs=SHAPE, module_timeout_s=3 if "3 s" in (BEHAVIOUR[name][1] or "") else 60)
    network, errors = reading.read(Input(kind="module", name=f"{name}:Net"), options)
    expected = BEHAVIOUR[name][1]
    if expected is None:
        assert errors == ()
        line = 5 + BEHAVIOUR[name][0].count("\n")
        assert [(layer.K, layer.locate().path, layer.locate().line) for layer in network.layers] == [
            (8, f"{name}.py", line)
        ]
    else:
        assert network is None
        assert len(errors) == 1
        assert expected in errors[0].message
        assert not errors[0].internal
    network, errors = reading.read(Input(kind="module", name="good:Net"), ReadOptions(inputs=SHAPE))
    assert errors == ()
    assert network is not None


@pytest.mark.contract
def test_what_was_printed_was_heard(reading: Reading, heard: list[str]) -> None:
    reading.read(Input(kind="module", name="prints:Net"), ReadOptions(inputs=SHAPE))
    for _ in range(100):
        if "".join(heard).count("noise") >= 3:
            return
        time.sleep(0.05)
    pytest.fail(f"heard only {heard}")


def test_the_command_line_reports_everything_else(folder: Path) -> None:
    (folder / "spec.yaml").write_text(
        "version: 1\nlayers:\n  - {name: a, N: 64, C: 62, H: 56, W: 56, K: 64, R: 3, S: 3, dtype: fp16, layout: NHWC}\n"
    )
    names = ["changes_folder", "interrupts", "leaves", "registers_exit", "prints", "forks_and_goes_on"]
    modules = [f"{name}:Net" for name in names]
    for jobs in ("1", "3"):
        ran = subprocess.run(
            [sys.executable, "-m", "convlint", "check", *modules, "spec.yaml", "--input", "2x3x8x8", "--jobs", jobs,
             "--output", "concise", "--select", "CL106,CL102"],
            cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=200, check=False,
        )  # fmt: skip
        assert ran.returncode == 3, ran.stderr
        assert ran.stdout.count("spec.yaml:3:") == 1, ran.stdout
        assert ran.stdout.count("KeyboardInterrupt at interrupts.py:1") == 1
        assert ran.stdout.count("its code ends the process, with exit status 0") == 1
        assert ran.stdout.count("forks_and_goes_on.py:7:13: ") == 1
        assert "5 layers in 7 files" in ran.stdout
        assert "noise" not in ran.stdout
        assert ran.stderr.count("noise") == 3
        assert "Traceback" not in ran.stderr


def test_an_interrupt_ends_the_run_and_its_children(folder: Path) -> None:
    for jobs in ("1", "2"):
        run = subprocess.Popen(
            [sys.executable, "-m", "convlint", "check", "never_ends:Net", "good:Net", "--input",
             "2x3x8x8", "-j", jobs],
            cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            preexec_fn=default_interrupt,
        )  # fmt: skip
        time.sleep(4)
        children = descendants(run.pid)
        assert children
        run.send_signal(2)
        out, err = run.communicate(timeout=60)
        assert run.returncode == 130
        assert (out, err) == ("", "")
        deadline = time.monotonic() + 20
        while left := [pid for pid in children if alive(pid)]:
            assert time.monotonic() < deadline, left
            time.sleep(0.1)


def descendants(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += [int(child), *descendants(int(child))]
    return found


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_module_that_wants_all_memory_is_an_error(folder: Path) -> None:
    (folder / "swells.py").write_text("x = [bytearray(1 << 20) for _ in range(10**6)]\n" + GOOD)
    most = 2 << 30
    ran = subprocess.run(
        [sys.executable, "-m", "convlint", "check", "swells:Net", "good:Net", "--input", "2x3x8x8", "-o", "concise"],
        cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=200, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (most, most)),
    )  # fmt: skip
    assert ran.returncode == 3
    assert "swells:Net: error: importing swells raises MemoryError at swells.py:1" in ran.stdout
    assert "1 layer in 2 files" in ran.stdout


def test_no_torch_is_an_error_of_the_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('not installed')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    with Reading() as reading:
        network, errors = reading.read(Input(kind="module", name="good:Net"), ReadOptions(inputs=SHAPE))
    assert network is None
    assert [(error.message.split(",")[0], error.internal) for error in errors] == [
        ("reading modules needs PyTorch 2.4 or later", False)
    ]
