"""A Ray cluster of several nodes on this machine, as long as somebody needs it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory

# A folder of its own, so that no other cluster of this machine is meant by `auto` instead, or forgotten for this one.
_FOLDER = "RAY_TMPDIR"
# Ray's workers make room for all others of a machine; where these are busy, nothing could be compared.
_PRIORITY = "RAY_worker_niceness"


@contextmanager
def ray_cluster(nodes: int) -> Iterator[str]:
    """A cluster of that many nodes with one processor each; its address."""
    from ray.cluster_utils import Cluster

    before = {name: os.environ.get(name) for name in (_FOLDER, _PRIORITY)}
    with TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:
        os.environ |= {_FOLDER: folder, _PRIORITY: "0"}
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        try:
            for _ in range(nodes - 1):
                cluster.add_node(num_cpus=1)
            cluster.wait_for_nodes()
            yield str(cluster.address)
        finally:
            cluster.shutdown()
            for name, value in before.items():
                os.environ.pop(name)
                if value is not None:
                    os.environ[name] = value
