"""Reaching a Ray cluster: within seconds or not at all, and only one whose nodes have this very convlint."""

from __future__ import annotations

import logging
import os
import re
import socket
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from convlint import __version__
from convlint.errors import UsageError
from convlint.readers.children.child import Child, ChildDied
from convlint.readers.children.serve import Channel

_CLIENT = "ray://"
_ADDRESS = re.compile(r"(?:ray://)?(?P<host>[^\s:/?#\[\]]+|\[[0-9A-Fa-f:.]+\]):(?P<port>[0-9]{1,5})")
_REACH_S = 5.0  # for a port to answer
_LOAD_S = 60.0  # for importing ray, on however busy a machine
_CONNECT_S = 15.0
_PROBE_S = 60.0  # for all nodes to start a process each
# Of this process alone, and read when ray is imported. A cluster that is lost is not to be replaced by one that Ray
# starts by itself.
_SETTINGS = {
    "RAY_CLIENT_INITIAL_CONNECTION_TIMEOUT_S": "3",
    "RAY_CLIENT_MAX_CONNECTION_TIMEOUT_S": "3",
    "RAY_ENABLE_AUTO_CONNECT": "0",
}
# Ray's client asks a head for a server of its own, which a busy head may not have started within Ray's 30 s.
_CLIENT_TRIES = 3
_NOT_STARTED = "Starting Ray client server failed"
_FAULTS = (OSError, RuntimeError, ValueError)  # that Ray has for an address, beside errors of its own
_HOW = "`ray start --head` starts a cluster, `ray status` shows one"


def connect(address: str) -> None:
    """Makes this process a driver of the cluster at `address`. Raises UsageError where that cannot be."""
    found = _judged(address)
    if found != "auto":
        _refuse_closed(found)
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError as error:
        raise UsageError("--cluster needs ray: pip install 'convlint[ray]'") from error
    if not found.startswith(_CLIENT):
        _rehearse(address, found)
    try:
        _enter(ray, found)
    except (*_FAULTS, ray.exceptions.RayError) as error:
        disconnect()
        raise UsageError(_unreached(address, str(error))) from error
    except BaseException:
        disconnect()
        raise


def disconnect() -> None:
    """Leaves the cluster; what still runs there for this process ends."""
    import ray

    with suppress(ConnectionError):  # it has gone first
        ray.shutdown()


def refuse_other_versions() -> None:
    """Raises UsageError unless each node that has processors has this version of convlint."""
    import ray
    from ray.exceptions import GetTimeoutError, RayError
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    probe = ray.remote(num_cpus=0, max_retries=0)(probing())
    asked = {}
    for node in ray.nodes():
        if node["Alive"] and node["Resources"].get("CPU"):
            strategy = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            asked[node["NodeID"]] = node["NodeManagerHostname"], probe.options(scheduling_strategy=strategy).remote()
    ends = time.monotonic() + _PROBE_S
    for number, (host, ref) in asked.items():
        try:
            version, why = ray.get(ref, timeout=max(0.0, ends - time.monotonic()))
        except GetTimeoutError:
            raise UsageError(f"the node {host} of the cluster starts no process within {_PROBE_S:g} s") from None
        except RayError as error:
            if number not in {node["NodeID"] for node in ray.nodes() if node["Alive"]}:
                continue  # it has left meanwhile
            raise UsageError(f"the node {host} of the cluster runs no task: {_brief(str(error))}") from error
        if version != __version__ or why:
            raise UsageError(other_version(host, version, why))


def probing() -> Callable[[], tuple[str | None, str]]:
    """A function for other machines; made in here, it travels with its code, as they may have no convlint."""

    def convlint_version() -> tuple[str | None, str]:
        try:
            import convlint
        except ImportError:
            return None, ""
        try:
            import convlint.linting.audit.remote
        except ImportError as error:  # what it needs is not there, or it has no such module yet
            return convlint.__version__, str(error)
        return convlint.__version__, ""

    return convlint_version


def other_version(host: str, version: str | None, why: str = "") -> str:
    """What is said of a node without this version of convlint."""
    if version == __version__:
        return f"convlint does not run on the node {host} of the cluster: {why}"
    has = "no convlint" if version is None else f"convlint {version}"
    return f"the node {host} of the cluster has {has}, and this is {__version__}: install this version there"


def _judged(address: str) -> str:
    """The address as Ray is to have it. Ray takes more words than these, some of which start a cluster."""
    found = os.environ.get("RAY_ADDRESS", "").strip() or "auto" if address == "auto" else address
    match = _ADDRESS.fullmatch(found)
    if found != "auto" and (match is None or not 0 < int(match["port"]) < 1 << 16):
        said = f"RAY_ADDRESS={found}" if address == "auto" else address
        raise UsageError(f"--cluster {said}: no address of a cluster, such as ray://HOST:10001, HOST:6379 or auto")
    return found


def _refuse_closed(address: str) -> None:
    """Ray goes on trying for minutes where nobody listens."""
    match = _ADDRESS.fullmatch(address)
    assert match is not None
    try:
        socket.create_connection((match["host"].strip("[]"), int(match["port"])), _REACH_S).close()
    except (OSError, UnicodeError) as error:
        reason = "it does not answer" if isinstance(error, TimeoutError) else getattr(error, "strerror", "") or error
        raise UsageError(f"no cluster at {address}: {reason}; {_HOW}") from None


def _rehearse(address: str, found: str) -> None:
    """Connects from a child first, which can be ended: Ray itself cannot be stopped while it waits."""
    try:
        child = Child("convlint.linting.audit.connecting:rehearse")
    except ChildDied as died:
        raise UsageError(f"--cluster {address}: {died}") from died
    try:
        child.answer(_LOAD_S)
        said = child.ask(found.encode("utf-8", "surrogateescape"), _CONNECT_S).decode()
    except ChildDied as died:
        said = f"it does not answer within {_CONNECT_S:g} s" if died.timed_out else _brief(died.tail) or str(died)
    finally:
        child.close()
    if said != "connected":
        raise UsageError(_unreached(address, said))


def rehearse(channel: Channel) -> None:
    """The child's side."""
    import ray

    channel.send(b"loaded")
    request = channel.receive()
    assert request is not None
    try:
        _init(ray, request.decode("utf-8", "surrogateescape"))
        said = "connected"
    except (*_FAULTS, ray.exceptions.RayError) as error:
        said = str(error) or type(error).__name__
    channel.send(said.encode("utf-8", "replace"))
    with suppress(ConnectionError):
        ray.shutdown()


def _enter(ray: Any, address: str) -> None:
    """Again where the head alone was too slow: each try has a server of its own."""
    for left in reversed(range(_CLIENT_TRIES)):
        try:
            _init(ray, address)
            return
        except (*_FAULTS, ray.exceptions.RayError) as error:
            if not left or _NOT_STARTED not in str(error):
                raise
            disconnect()


def _init(ray: Any, address: str) -> None:
    """What tasks print stays on their nodes: Ray would mix it into standard output; convlint passes it on itself."""
    with _nowhere(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ray.init(address=address, ignore_reinit_error=False, logging_level=logging.CRITICAL, log_to_driver=False)
    logging.getLogger("ray").setLevel(logging.CRITICAL)  # its client says on one what the exceptions say anyway


@contextmanager
def _nowhere() -> Iterator[None]:
    """Ray lets its workers import from the folder that a driver is in, which may be a stranger's checkout."""
    here = os.getcwd()
    with tempfile.TemporaryDirectory(prefix="convlint-") as empty:
        os.chdir(empty)
        try:
            yield
        finally:
            os.chdir(here)


def _unreached(address: str, said: str) -> str:
    if "ray[client]" in said:
        return f"--cluster {address} needs Ray's client: pip install 'ray[client]'"
    if "Version mismatch" in said:
        return f"the cluster at {address} has another Ray or Python: {_brief(said)}"
    return f"no cluster at {address}: {_brief(said).rstrip('.')}; {_HOW}"


def _brief(said: str) -> str:
    """In one line, without what only a stack trace says."""
    return " ".join(said.split())[:400]
