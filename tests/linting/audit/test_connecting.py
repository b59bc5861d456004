"""A cluster that cannot be used is said within seconds, with what to do; none is ever started in its place."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from ray_clusters import ENV

from convlint.errors import UsageError
from convlint.linting.audit import connecting
from convlint.linting.audit.connecting import connect, other_version

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
    monkeypatch.setattr(connecting, "_CONNECT_S", 1.0)
    with pytest.raises(UsageError, match="it does not answer within 1 s"):
        connecting._rehearse(silent, silent)


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
    why = other_version("a", connecting.__version__, "No module named 'yaml'")
    assert why == "convlint does not run on the node a of the cluster: No module named 'yaml'"


def test_another_ray_or_python_is_told_from_no_cluster() -> None:
    said = "Version mismatch: The cluster was started with:\n    Ray: 2.9.0\n    Python: 3.10.1\n"
    told = "the cluster at head:1 has another Ray or Python: Version mismatch: The cluster was started with: Ray: 2.9.0"
    assert connecting._unreached("head:1", said) == f"{told} Python: 3.10.1"
    assert "pip install 'ray[client]'" in connecting._unreached("ray://head:1", "requires pip package `ray[client]`.")


@pytest.mark.parametrize(("slow", "tries"), [(0, 1), (2, 3), (9, 3)])
def test_a_head_that_is_slow_to_start_a_clients_server_is_asked_again(
    slow: int, tries: int, silent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def init(_: object, address: str) -> None:
        asked.append(address)
        if len(asked) <= slow:
            raise RuntimeError("Initialization failure from server: RuntimeError: Starting Ray client server failed.")

    monkeypatch.setattr(connecting, "_init", init)
    if slow < tries:
        connect(f"ray://{silent}")
    else:
        with pytest.raises(UsageError, match="Starting Ray client server failed"):
            connect(f"ray://{silent}")
    assert asked == [f"ray://{silent}"] * tries
