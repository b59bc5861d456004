"""A Ray cluster of several nodes on this machine, as long as somebody needs it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory

# A folder of its own, so that no other cluster of this machine is meant by `auto` instead, or forgotten for this one.
_FOLDER = "RAY_TMPDIR"


@contextmanager
def ray_cluster(nodes: int) -> Iterator[str]:
    """A cluster of that many nodes with one processor each; its address."""
    from ray.cluster_utils import Cluster

    before = os.environ.get(_FOLDER)
    with TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:
        os.environ[_FOLDER] = folder
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        try:
            for _ in range(nodes - 1):
                cluster.add_node(num_cpus=1)
            cluster.wait_for_nodes()
            yield str(cluster.address)
        finally:
            cluster.shutdown()
            os.environ.pop(_FOLDER)
            if before is not None:
                os.environ[_FOLDER] = before
