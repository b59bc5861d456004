"""On Ray clusters of several nodes an audit finds what it finds in processes of one machine, whatever dies there."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import default_interrupt
from onnx import helper
from onnx_graphs import model, save, value, weight
from ray_clusters import ENV, PATH, RayCluster, until

pytestmark = pytest.mark.slow

POISON = '''
import os, signal, torch

def Poison():
    """Ends the process that audits it."""
    pid = os.getpid()
    for _ in range(4):
        with open(f"/proc/{pid}/cmdline") as line:
            words = line.read()
        if words.startswith("ray::") or "audit.local" in words:
            os.kill(pid, signal.SIGKILL)
            return None
        with open(f"/proc/{pid}/stat") as status:
            pid = int(status.read().rpartition(")")[2].split()[1])

def Net():
    print("built", flush=True)
    return torch.nn.Conv2d(62, 64, 3)
'''


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    with RayCluster() as cluster:
        cluster.add()
        yield cluster


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def spec(layers: int, rng: random.Random) -> str:
    lines = [
        f"  - {{name: c{i}, N: {rng.choice([8, 32, 250])}, C: {rng.randrange(3, 300)}, H: {rng.randrange(9, 99)}, "
        f"W: 56, K: {rng.randrange(8, 300)}, R: 3, S: 3, dtype: {rng.choice(['fp16', 'fp32'])}, layout: NHWC}}\n"
        for i in range(layers)
    ]
    return "version: 1\nlayers:\n" + "".join(lines)


def graph(rng: random.Random, *, ballast: int = 0) -> object:
    first, second = rng.randrange(8, 200), rng.randrange(8, 200)
    nodes = [
        helper.make_node("Conv", ["x", "v"], ["y"], name="a"),
        helper.make_node("Conv", ["y", "w"], ["z"], name="b"),
    ]
    tensors = [weight("v", [first, 3, 3, 3]), weight("w", [second, first, 1, 1])]
    tensors += [weight("unused", [ballast])] if ballast else []
    return model(nodes, [value("x", [8, 3, rng.randrange(9, 99), 56])], ["z"], tensors)


def zoo(folder: Path, count: int, layers: int = 2) -> None:
    """Specs and ONNX files in turn."""
    rng = random.Random(count)
    folder.mkdir()
    for number in range(count):
        if number % 2:
            save(folder, graph(rng), f"{number:04}.onnx")
        else:
            (folder / f"{number:04}.yaml").write_text(spec(layers, rng))


def start(*words: str, **how: object) -> subprocess.Popen[str]:
    line = [sys.executable, "-m", "convlint", "audit", *words]
    return subprocess.Popen(
        line, env=ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=default_interrupt, **how  # type: ignore[call-overload]
    )  # fmt: skip


def said(err: str) -> str:
    """Standard error without the lines that Ray's core writes there by itself when what it tells a node is lost.

    As "[2026-11-24 02:10:24,981 E 17018 17074] task_manager.cc:1545: Failed to push error to driver for task ...".
    Only a variable that announces itself on standard error (RAY_BACKEND_LOG_LEVEL) would silence them.
    """
    return re.sub(r"^\[[-0-9]+ [0-9:,]+ [EW] [0-9 ]+\] \w+\.cc:\d+: .*\n", "", err, flags=re.MULTILINE)


def audit(*words: str, **how: object) -> tuple[int, str, str]:
    with start(*words, **how) as process:
        out, err = process.communicate(timeout=200)
    return process.returncode, out, said(err)


def tables(stem: str) -> dict[str, bytes]:
    """All files of an audit's tables, by what follows the stem."""
    found = {path.name.removeprefix(stem): path.read_bytes() for path in Path.cwd().glob(f"{stem}[-.]*")}
    return {name: content for name, content in found.items() if not name.endswith(".sqlite")}


def every_format(stem: str) -> list[str]:
    return [word for form in ("jsonl", "csv", "parquet") for word in ("-o", f"{form}={stem}.{form}")]


def test_rows_are_those_of_processes_on_this_machine(cluster: RayCluster) -> None:
    """Also for what cannot be read, and for a model whose code ends whichever process audits it."""
    zoo(Path("zoo"), 12, layers=9)
    Path("zoo/broken.yaml").write_text("layers: [")
    Path("zoo/broken.onnx").write_bytes(b"\x08" * 99)
    Path("zoo/empty.onnx").write_bytes(b"")
    Path("net.py").write_text(POISON)
    Path("list").write_text(
        "net:Poison inputs=8x3x9x9\nnet:Net inputs=8x62x32x32\nzoo/0000.yaml batch=16 name=x\nno.onnx\n"
    )
    said = {}
    for stem, how in (("here", ["--jobs", "2"]), ("there", ["--cluster", cluster.address])):
        said[stem] = audit("zoo", "--models-from", "list", "--quiet", *every_format(stem), "-o", "text", *how)
    assert said["there"] == said["here"]
    assert said["here"][0] == 3
    assert said["there"][2] == "built\n"
    assert len(tables("here")) == 12
    assert tables("there") == tables("here")
    errors = tables("there")["-errors.csv"].decode()
    assert errors.count("died") == 1
    assert "net:Poison,net:Poison,,,the process that audits it died 3 times," in errors


def test_a_zoo_while_nodes_come_and_go_and_a_worker_is_killed(cluster: RayCluster) -> None:
    zoo(Path("zoo"), 2000)
    assert audit("zoo", "-o", "jsonl=here.jsonl", "--jobs", "2")[0] in (0, 1)
    with start("zoo", "-o", "jsonl=there.jsonl", "--cluster", cluster.address) as process:
        until(cluster.busy)
        raylet = cluster.add()
        until(lambda: cluster.busy(raylet))  # it is given work
        os.kill(next(iter(cluster.busy())), signal.SIGKILL)
        until(lambda: cluster.busy(raylet))
        assert process.poll() is None
        cluster.remove()
        _, err = process.communicate(timeout=200)
    assert (process.returncode, err) == (1, "")
    assert tables("there") == tables("here")


def test_an_interrupt_ends_it_and_resume_goes_on(cluster: RayCluster) -> None:
    zoo(Path("zoo"), 60, layers=150)
    audit("zoo", "-o", "parquet=here.parquet", "--jobs", "2")
    words = ("zoo", "-o", "parquet=there.parquet", "--cluster", cluster.address)
    with start(*words) as process:
        until(cluster.busy)
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        err = said(process.communicate(timeout=60)[1])
    assert (process.returncode, err.count("\n")) == (130, 1), err
    assert time.monotonic() - began < 5
    assert err.startswith("convlint: ")
    assert err.endswith("audited; --resume goes on\n")
    assert tables("there") == {}
    until(lambda: not cluster.busy())
    code, out, _ = audit(*words, "--resume")
    assert code == 1
    assert "known from before" in " ".join(out.split())
    assert tables("there") == tables("here")
    again = audit(*words, "--resume")[1]
    assert "60 known from before" in " ".join(again.split())


def test_files_that_the_nodes_do_not_see_are_sent_there(cluster: RayCluster) -> None:
    """Names below /proc/self mean another file to each process: here a folder that only the asking one has."""
    zoo(Path("zoo"), 6)
    save(Path("zoo"), graph(random.Random(1), ballast=1 << 18), "big.onnx")
    Path("zoo/x.safetensors.index.json").write_text("{}")
    Path("zoo/broken.onnx").write_bytes(b"\x08" * 99)
    names = sorted(path.name for path in Path("zoo").iterdir())
    Path("there.list").write_text("".join(f"/proc/self/fd/900/{name} name={name}\n" for name in names))
    Path("here.list").write_text("".join(f"zoo/{name} name={name}\n" for name in names))
    audit("--models-from", "here.list", "-o", "jsonl=here.jsonl")
    folder = os.open("zoo", os.O_RDONLY)
    os.dup2(folder, 900)
    try:
        words = ("--models-from", "there.list", "--cluster", cluster.address, "--ship-limit", "1")
        assert audit(*words, "-o", "jsonl=there.jsonl", pass_fds=(900,))[0] == 3
        out = audit(*words, "-o", "jsonl=there.jsonl", "--resume", pass_fds=(900,))[1]
        assert "7 known from before" in " ".join(out.split())  # the broken one was read, too
    finally:
        os.close(folder)
        os.close(900)
    path = re.compile(rb'"path":"[^"]*/|"fingerprint":"[^"]*"')  # these are of the path
    here, there = (
        {name: path.sub(b"", content) for name, content in tables(stem).items()} for stem in ("here", "there")
    )
    assert b"/proc/self" in tables("there")["-errors.jsonl"]
    errors = [line for line in there["-errors.jsonl"].splitlines() if b"broken" not in line]
    assert [line.split(b'"message":')[1] for line in errors] == [
        b'"is not on the cluster\'s disks, and with 1.0 MiB larger than --ship-limit (1 MiB)","internal":false}',
        b'"is not on the cluster\'s disks, and cannot be sent there: its shards are files of their own",'
        b'"internal":false}',
    ]
    for name in ("", "-layers", "-models"):
        kept = [line for line in here[f"{name}.jsonl"].splitlines() if b'"big.onnx"' not in line]
        assert there[f"{name}.jsonl"].splitlines() == kept
    broken = [line for line in here["-errors.jsonl"].splitlines() if b"broken" in line]
    assert [line for line in there["-errors.jsonl"].splitlines() if b"broken" in line] == broken


def test_a_node_with_another_convlint(tmp_path: Path) -> None:
    """One that joins ends the audit, which can go on; one that is there lets none begin."""
    zoo(Path("zoo"), 160, layers=10)
    other = tmp_path / "other" / "convlint"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text('__version__ = "0.0.7"\n')
    with RayCluster() as cluster:
        words = ("zoo", "-o", "jsonl=there.jsonl", "--cluster", cluster.address)
        with start(*words) as process:
            until(cluster.busy)
            cluster.add(path=str(other.parent))
            _, err = process.communicate(timeout=100)
        assert process.returncode == 2
        assert " has convlint 0.0.7, and this is " in err
        assert err.endswith("install this version there, or take it out; --resume goes on\n")
        code, _, err = audit(*words, "--resume")
        assert (code, err.count("\n")) == (2, 1)
        assert " has convlint 0.0.7, and this is " in err
        cluster.remove()
        assert audit(*words, "--resume")[0] == 1
    audit("zoo", "-o", "jsonl=here.jsonl", "--jobs", "2")
    assert tables("there") == tables("here")


def test_by_ray_client_until_the_cluster_is_lost() -> None:
    zoo(Path("zoo"), 300, layers=10)
    Path("few").mkdir()
    for name in ("0000.yaml", "0001.onnx"):
        Path("few", name).write_bytes(Path("zoo", name).read_bytes())
    # It also waits that long for a cluster that is lost.
    env = {**ENV, "RAY_CLIENT_RECONNECT_GRACE_PERIOD": "3", "RAY_CLIENT_INITIAL_CONNECTION_TIMEOUT_S": "3"}
    with RayCluster(client=True) as cluster:
        here, there = (audit("few", "-o", "text", *how) for how in ((), ("--cluster", cluster.client)))
        assert there == here
        assert here[0] == 1
        line = [sys.executable, "-m", "convlint", "audit", "zoo", "-o", "jsonl=x.jsonl", "--cluster", cluster.client]
        with subprocess.Popen(line, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            state = Path("x-resume.sqlite")
            until(lambda: state.exists() and state.stat().st_size)  # what was audited is saved
            cluster.kill()
            _, err = process.communicate(timeout=100)
    assert process.returncode == 2
    assert "\nconvlint: error: the cluster is lost (" in f"\n{err}"
    assert err.endswith("--resume goes on with what it has audited\n")
    assert state.exists()


def test_nothing_of_ray_is_loaded_without_a_cluster() -> None:
    zoo(Path("zoo"), 2)
    code = (
        "import sys; from convlint.__main__ import _run; _run(['audit', 'zoo', '-q']); assert 'ray' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], env={**ENV, "PYTHONPATH": PATH}, check=True, capture_output=True)
