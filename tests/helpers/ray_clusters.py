"""Ray clusters of several nodes on this machine, each in a process of its own that does what it is told by lines."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep

from checkout import ROOT

# The current folder last: what is installed for these tests alone, such as a Ray Client, may come from there.
PATH = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
# The three seconds that users wait for the first answer of Ray's client are too few for a busy machine. A head forks
# each client's server while its gRPC has threads, whose handlers abort that child now and then ("next_worker->state ==
# KICKED" in ray_client_server.err): without them it is left alone until it runs the server.
ENV = {
    **os.environ,
    "PYTHONPATH": PATH,
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ADDRESS": "",
    "RAY_CLIENT_INITIAL_CONNECTION_TIMEOUT_S": "60",
    "GRPC_ENABLE_FORK_SUPPORT": "0",
}
STORE_BYTES = 100 << 20
PATIENCE_S = 60.0


class RayCluster:
    """A cluster with one node of one processor, to which more are added."""

    def __init__(self, *, client: bool = False) -> None:
        """`client` also serves Ray Client, at the address `client`."""
        words = [sys.executable, __file__, *(["client"] if client else [])]
        self._process = subprocess.Popen(words, env=ENV, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.address, self.client, raylet = self._answer().split()
        self._raylets = [int(raylet)]

    def __enter__(self) -> RayCluster:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate("end\n", timeout=PATIENCE_S)

    def add(self, *, path: str = PATH) -> int:
        """One more node, whose Python imports from `path`; the number of its process."""
        self._raylets.append(int(self._ask(f"add {path}")))
        return self._raylets[-1]

    def remove(self) -> None:
        """Takes out the node that was added last."""
        self._ask("remove")
        self._raylets.pop()

    def kill(self) -> None:
        """All of it, at once."""
        self._ask("kill")

    def busy(self, raylet: int | None = None) -> list[int]:
        """The workers, of one node or of all, that audit a model just now."""
        found = []
        for process in Path("/proc").iterdir():
            try:
                if not (process / "cmdline").read_bytes().startswith(b"ray::convlint_audit"):
                    continue
                parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, ValueError):
                continue
            if parent in (self._raylets if raylet is None else [raylet]):
                found.append(int(process.name))
        return found

    def _ask(self, line: str) -> str:
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        while line := self._process.stdout.readline():
            if line.startswith("> "):
                return line[2:].strip()
        raise AssertionError("the cluster's process has ended")


def until(seen: Callable[[], object]) -> None:
    ends = monotonic() + PATIENCE_S
    while not seen():
        assert monotonic() < ends
        sleep(0.005)


def _listens(port: int) -> bool:
    with suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port), PATIENCE_S):
        return True
    return False


def _serve(client: bool) -> None:
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "object_store_memory": STORE_BYTES}
    head = {**node, "include_dashboard": False}
    if client:
        with socket.create_server(("127.0.0.1", 0)) as free:
            head["ray_client_server_port"] = free.getsockname()[1]
    cluster = Cluster(initialize_head=True, head_node_args=head)
    if client:
        # A head is up before its client's server is: that one imports Ray once more, seconds on a busy machine.
        until(lambda: _listens(head["ray_client_server_port"]))
    raylet = cluster.head_node.all_processes["raylet"][0].process.pid
    print(">", cluster.address, f"ray://127.0.0.1:{head.get('ray_client_server_port', 0)}", raylet, flush=True)
    added = []
    for line in sys.stdin:
        word, _, rest = line.strip().partition(" ")
        said: object = "done"
        if word == "add":
            os.environ["PYTHONPATH"] = rest
            added.append(cluster.add_node(**node))
            said = added[-1].all_processes["raylet"][0].process.pid
        elif word == "remove":
            cluster.remove_node(added.pop(), allow_graceful=False)
        elif word == "kill":
            cluster.head_node.kill_all_processes(check_alive=False, allow_graceful=False)
        else:
            break
        print(">", said, flush=True)
    cluster.shutdown()


if __name__ == "__main__":
    _serve(sys.argv[1:] == ["client"])
