"""A cluster that cannot be used is said within seconds, with what to do; none is ever started in its place."""

import os
import pickle
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import default_interrupt
from onnx import helper
from onnx_graphs import model, save, value, weight
from ray_clusters import ENV, PATH, RayCluster, until

from convlint.audit import cluster as audit_cluster
from convlint.audit.cluster import ClusterAnswer, Common, Request, answer, connect, content_of, is_alike, other_version
from convlint.audit.subjects import Subject
from convlint.audit.task import AuditConfig, Task, audited, stamp_of
from convlint.mend.checking import Job
from convlint.model.errors import InputFault, UsageError
from convlint.readers.inputs import Input, Model, decide, file_input
from convlint.readers.reading import Reading
from convlint.verdict.select import Policy, Selection

SPEC = "version: 1\nlayers:\n  - {name: a, N: 64, C: 62, H: 56, W: 56, K: 64, R: 3, S: 3, dtype: fp16, layout: NHWC}\n"


@pytest.fixture
def closed() -> str:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return f"127.0.0.1:{free.getsockname()[1]}"


@pytest.fixture
def silent() -> Iterator[str]:
    """A port that takes what comes and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize(
    "address", ["", "local", "head", "head:x", "head:0", "head:99999", "foo://x:1", "ray://", "a b:1"]
)
def test_words_that_are_no_address(address: str) -> None:
    with pytest.raises(UsageError, match=r"no address of a cluster, such as ray://HOST:10001, HOST:6379 or auto"):
        connect(address)


def test_the_environment_is_held_to_the_same(monkeypatch: pytest.MonkeyPatch, closed: str) -> None:
    """Ray would start a cluster of its own for `local`."""
    monkeypatch.setenv("RAY_ADDRESS", "local")
    with pytest.raises(UsageError, match="--cluster RAY_ADDRESS=local: no address"):
        connect("auto")
    monkeypatch.setenv("RAY_ADDRESS", closed)
    with pytest.raises(UsageError, match=f"no cluster at {closed}: Connection refused; `ray start --head`"):
        connect("auto")


@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_nobody_listens(closed: str, scheme: str) -> None:
    with pytest.raises(UsageError, match=f"no cluster at {scheme}{closed}: Connection refused"):
        connect(scheme + closed)


def test_a_host_that_nobody_knows() -> None:
    with pytest.raises(UsageError, match=r"no cluster at no-such-host.invalid:6379: .*; `ray start --head`"):
        connect("no-such-host.invalid:6379")


def test_what_listens_is_no_cluster(silent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_cluster, "_CONNECT_S", 1.0)
    with pytest.raises(UsageError, match="it does not answer within 1 s"):
        audit_cluster._rehearse(silent, silent)


def test_ray_is_not_installed(silent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match=r"--cluster needs ray: pip install 'convlint\[ray\]'"):
        connect(silent)


@pytest.mark.slow
def test_the_command_line_says_it_and_leaves_nothing(tmp_path: Path, closed: str) -> None:
    (tmp_path / "a.yaml").write_text(SPEC)
    ran = subprocess.run(
        [sys.executable, "-m", "convlint", "audit", "-o", "jsonl=audit.jsonl", "--cluster", closed],
        cwd=tmp_path, env=ENV, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)
    assert ran.stderr.startswith(f"convlint: error: no cluster at {closed}: ")
    assert os.listdir(tmp_path) == ["a.yaml"]


def test_other_versions_are_named() -> None:
    assert other_version("a", None).startswith("the node a of the cluster has no convlint, and this is ")
    assert other_version("a", "0.0.1").startswith("the node a of the cluster has convlint 0.0.1, and this is ")
    why = other_version("a", audit_cluster.__version__, "No module named 'yaml'")
    assert why == "convlint does not run on the node a of the cluster: No module named 'yaml'"


def test_another_ray_or_python_is_told_from_no_cluster() -> None:
    said = "Version mismatch: The cluster was started with:\n    Ray: 2.9.0\n    Python: 3.10.1\n"
    told = "the cluster at head:1 has another Ray or Python: Version mismatch: The cluster was started with: Ray: 2.9.0"
    assert audit_cluster._unreached("head:1", said) == f"{told} Python: 3.10.1"
    assert "pip install 'ray[client]'" in audit_cluster._unreached(
        "ray://head:1", "requires pip package `ray[client]`."
    )


@pytest.mark.parametrize(("slow", "tries"), [(0, 1), (2, 3), (9, 3)])
def test_a_head_that_is_slow_to_start_a_clients_server_is_asked_again(
    slow: int, tries: int, silent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def init(_: object, address: str) -> None:
        asked.append(address)
        if len(asked) <= slow:
            raise RuntimeError("Initialization failure from server: RuntimeError: Starting Ray client server failed.")

    monkeypatch.setattr(audit_cluster, "_init", init)
    if slow < tries:
        connect(f"ray://{silent}")
    else:
        with pytest.raises(UsageError, match="Starting Ray client server failed"):
            connect(f"ray://{silent}")
    assert asked == [f"ray://{silent}"] * tries


MIB = 1 << 20


def test_content_up_to_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(b"x" * MIB)
    source = file_input(str(path))
    assert content_of(source, MIB) == content_of(source, MIB, MIB) == b"x" * MIB
    assert content_of(source, MIB, MIB - 1) is None
    path.write_bytes(b"x" * (MIB + MIB // 2))
    with pytest.raises(InputFault) as fault:
        content_of(source, MIB, MIB)
    assert fault.value.message == "is not on the cluster's disks, and with 1.5 MiB larger than --ship-limit (1 MiB)"


def test_a_limit_that_no_memory_has(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(b"x")
    assert content_of(file_input(str(path)), 1 << 60) == b"x"


def test_models_of_several_files(tmp_path: Path) -> None:
    with pytest.raises(InputFault, match="cannot be sent there: its shards are files of their own"):
        content_of(file_input(str(tmp_path / "model.safetensors.index.json")), MIB)


@pytest.mark.parametrize(("name", "said"), [("gone", "No such file or directory"), (".", "not a regular file")])
def test_what_is_no_file_is_said_as_by_readers(name: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputFault, match=f"cannot read the file: .*{said}"):
        content_of(file_input(str(tmp_path / name)), MIB)


SETTING = AuditConfig(folders=(), job=Job(), selection=Selection(policy=Policy(), codes=frozenset(), severities={}))


@pytest.fixture
def _with_files(here: Path) -> None:
    Path("a.yaml").write_text(SPEC)
    Path("broken.yaml").write_text("layers: [")
    node = helper.make_node("Conv", ["x", "w"], ["y"], name="only")
    graph = model([node], [value("x", [8, 3, 32, 32])], ["y"], [weight("w", [16, 3, 3, 3])])
    save(here, graph, "net.onnx")


def asked(source: Input, *, folder: str, stamp: str = "", content: bytes | None = None) -> ClusterAnswer:
    request = Request(subject=Subject(name="m", source=source), stamp=stamp)
    common = Common(setting=SETTING, folder=folder)
    return pickle.loads(answer(pickle.dumps(request), pickle.dumps(common), content))


@pytest.mark.usefixtures("_with_files")
@pytest.mark.parametrize("name", ["a.yaml", "broken.yaml", pytest.param("net.onnx", marks=pytest.mark.slow)])
def test_a_file_is_the_same_where_it_lies_and_where_it_was_sent(name: str, tmp_path: Path) -> None:
    source = file_input(name)
    with Reading() as reading:
        here = audited(Task(subject=Subject(name="m", source=source), setting=SETTING), reading)
    where = asked(source, folder=str(tmp_path), stamp=stamp_of(source)).audited
    content = Path(name).read_bytes()
    sent = asked(source, folder="/no/such/folder", stamp="[(1, 1, 1, 1, 1)]", content=content).audited
    assert sent is not None
    assert here.rows == where.rows == sent.rows
    assert here.digest == where.digest == sent.digest
    assert here.digest


@pytest.mark.usefixtures("_with_files")
def test_what_was_sent_is_removed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    room = tmp_path / "room"
    room.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(room))
    assert asked(file_input("a.yaml"), folder="/no/such/folder", content=SPEC.encode()).audited
    assert os.listdir(room) == []


@pytest.mark.usefixtures("_with_files")
def test_a_file_that_is_not_there_or_another_is_asked_for(tmp_path: Path) -> None:
    source = file_input("a.yaml")
    stamp = stamp_of(source)
    assert asked(source, folder="/no/such/folder", stamp=stamp) == ClusterAnswer()
    (tmp_path / "a.yaml").write_text(SPEC + "\n")
    assert asked(source, folder=str(tmp_path), stamp=stamp) == ClusterAnswer()
    (tmp_path / "a.yaml").unlink()
    assert asked(source, folder=str(tmp_path), stamp=stamp) == ClusterAnswer()


@pytest.mark.usefixtures("_with_files")
def test_the_same_file_on_another_machine() -> None:
    """Devices, numbers and times of change differ there."""
    source = file_input("a.yaml")
    status = os.stat("a.yaml")
    assert is_alike(f"[(7, 7, {status.st_size}, {status.st_mtime_ns}, 7)]", source)
    assert not is_alike(f"[(7, 7, {status.st_size}, {status.st_mtime_ns + 1}, 7)]", source)
    assert not is_alike(f"[(7, 7, {status.st_size + 1}, {status.st_mtime_ns}, 7)]", source)
    assert is_alike("", source)


@pytest.mark.usefixtures("_with_files")
def test_a_path_from_the_root_needs_no_common_folder(tmp_path: Path) -> None:
    source = file_input(str(tmp_path / "a.yaml"))
    assert asked(source, folder="/no/such/folder", stamp=stamp_of(source)).audited


@pytest.mark.usefixtures("_with_files")
def test_what_nobody_sees_is_judged_in_the_common_folder_alone(tmp_path: Path) -> None:
    gone = file_input("gone.yaml")
    found = asked(gone, folder=str(tmp_path)).audited
    assert [row.path for row in found.rows.errors] == ["gone.yaml"]
    assert asked(gone, folder="/no/such/folder") == ClusterAnswer()


@pytest.mark.usefixtures("_with_files")
@pytest.mark.parametrize(("folder", "inner"), [("/no/such/folder", "."), ("", "no/such")])
def test_code_is_not_run_where_its_project_is_not(folder: str, inner: str, tmp_path: Path) -> None:
    known = Model(reference="net:Net", path="convlint.toml", folder=inner)
    source = Input(kind="module", name="mine", model=known)
    folder = folder or str(tmp_path)
    found = asked(source, folder=folder).audited
    message = f"its code cannot be run: {os.path.join(folder, inner)} is not on the cluster's disks"
    assert [row.message for row in found.rows.errors] == [message]
    assert found.digest is None


@pytest.mark.usefixtures("_with_files")
def test_a_module_named_alone() -> None:
    found = asked(decide("net:Net"), folder="/no/such/folder").audited
    message = "its code cannot be run: /no/such/folder is not on the cluster's disks"
    assert [row.message for row in found.rows.errors] == [message]


pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("here")]

POISON = '''
import os, signal, torch

def Poison():
    """Ends the process that audits it."""
    pid = os.getpid()
    for _ in range(4):
        with open(f"/proc/{pid}/cmdline") as line:
            words = line.read()
        if words.startswith("ray::") or "convlint.audit" in words:
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
