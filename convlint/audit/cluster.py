"""Audits on a Ray cluster, one task per model: connecting, sending models, and the code of the workers."""

from __future__ import annotations

import logging
import os
import pickle
import re
import socket
import tempfile
import time
import warnings
from ast import literal_eval
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from functools import cache
from itertools import islice
from queue import Empty, SimpleQueue
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from convlint import __version__
from convlint.audit.audit import Answers, Run, look_after, look_seldom
from convlint.audit.subjects import Subject
from convlint.audit.task import DEATH, TRIES, AuditConfig, Audited, Task, audited, lost, stamp_of
from convlint.files.bounded_file import open_regular
from convlint.mend.checking import say
from convlint.model.errors import InputFault, UsageError
from convlint.readers.children.child import Channel, Child, ChildDied
from convlint.readers.inputs import Input
from convlint.readers.reading import Reading

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
    ray_address = _judged(address)
    if ray_address != "auto":
        _refuse_closed(ray_address)
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError as error:
        raise UsageError("--cluster needs ray: pip install 'convlint[ray]'") from error
    if not ray_address.startswith(_CLIENT):
        _rehearse(address, ray_address)
    try:
        _enter(ray, ray_address)
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
    probes = {}
    for node in ray.nodes():
        if node["Alive"] and node["Resources"].get("CPU"):
            strategy = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            probes[node["NodeID"]] = node["NodeManagerHostname"], probe.options(scheduling_strategy=strategy).remote()
    ends = time.monotonic() + _PROBE_S
    for number, (host, ref) in probes.items():
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
            import convlint.audit.cluster
        except ImportError as error:  # what it needs is not there, or it has no such module yet
            return convlint.__version__, str(error)
        return convlint.__version__, ""

    return convlint_version


def other_version(host: str, version: str | None, why: str = "") -> str:
    """The message on a node without this version of convlint."""
    if version == __version__:
        return f"convlint does not run on the node {host} of the cluster: {why}"
    has = "no convlint" if version is None else f"convlint {version}"
    return f"the node {host} of the cluster has {has}, and this is {__version__}: install this version there"


def _judged(address: str) -> str:
    """The address for Ray. Raises UsageError for any other word: Ray takes more, some of which start a cluster."""
    ray_address = os.environ.get("RAY_ADDRESS", "").strip() or "auto" if address == "auto" else address
    match = _ADDRESS.fullmatch(ray_address)
    if ray_address != "auto" and (match is None or not 0 < int(match["port"]) < 1 << 16):
        stated = f"RAY_ADDRESS={ray_address}" if address == "auto" else address
        raise UsageError(f"--cluster {stated}: no address of a cluster, such as ray://HOST:10001, HOST:6379 or auto")
    return ray_address


def _refuse_closed(address: str) -> None:
    """Raises UsageError if nobody listens at the address: Ray itself would go on trying for minutes."""
    match = _ADDRESS.fullmatch(address)
    assert match is not None
    try:
        socket.create_connection((match["host"].strip("[]"), int(match["port"])), _REACH_S).close()
    except (OSError, UnicodeError) as error:
        reason = "it does not answer" if isinstance(error, TimeoutError) else getattr(error, "strerror", "") or error
        raise UsageError(f"no cluster at {address}: {reason}; {_HOW}") from None


def _rehearse(address: str, ray_address: str) -> None:
    """Connects from a child first, which can be ended: Ray itself cannot be stopped while it waits."""
    try:
        child = Child("convlint.audit.cluster:rehearse")
    except ChildDied as died:
        raise UsageError(f"--cluster {address}: {died}") from died
    try:
        child.answer(_LOAD_S)
        reply = child.ask(ray_address.encode("utf-8", "surrogateescape"), _CONNECT_S).decode()
    except ChildDied as died:
        reply = f"it does not answer within {_CONNECT_S:g} s" if died.timed_out else _brief(died.tail) or str(died)
    finally:
        child.close()
    if reply != "connected":
        raise UsageError(_unreached(address, reply))


def rehearse(channel: Channel) -> None:
    """The child of `_rehearse`: connects, and sends "connected" or what is wrong."""
    import ray

    channel.send(b"loaded")
    request = channel.receive()
    assert request is not None
    try:
        _init(ray, request.decode("utf-8", "surrogateescape"))
        reply = "connected"
    except (*_FAULTS, ray.exceptions.RayError) as error:
        reply = str(error) or type(error).__name__
    channel.send(reply.encode("utf-8", "replace"))
    with suppress(ConnectionError):
        ray.shutdown()


def _enter(ray: Any, address: str) -> None:
    """Connects, and tries again where the head was only too slow: each try has a server of its own."""
    for tries_left in reversed(range(_CLIENT_TRIES)):
        try:
            _init(ray, address)
            return
        except (*_FAULTS, ray.exceptions.RayError) as error:
            if not tries_left or _NOT_STARTED not in str(error):
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
    """Moves to an empty folder: Ray's workers import from the one of the driver, maybe a stranger's checkout."""
    here = os.getcwd()
    with tempfile.TemporaryDirectory(prefix="convlint-") as empty:
        os.chdir(empty)
        try:
            yield
        finally:
            os.chdir(here)


def _unreached(address: str, reply: str) -> str:
    if "ray[client]" in reply:
        return f"--cluster {address} needs Ray's client: pip install 'ray[client]'"
    if "Version mismatch" in reply:
        return f"the cluster at {address} has another Ray or Python: {_brief(reply)}"
    return f"no cluster at {address}: {_brief(reply).rstrip('.')}; {_HOW}"


def _brief(text: str) -> str:
    """The text in one line, without most of a stack trace."""
    return " ".join(text.split())[:400]


_MIB = 1 << 20
_INDEX = ".safetensors.index.json"
_ABSENT = "is not on the cluster's disks"


def content_of(source: Input, most: int, room: int | None = None) -> bytes | None:
    """The content of a file, to be sent. None where it is sound, but takes more than `room`; None is room for any.

    Raises InputFault for one of more than `most` bytes, and what cannot be read or is more than one file.
    """
    if source.name.lower().endswith(_INDEX):
        raise InputFault(f"{_ABSENT}, and cannot be sent there: its shards are files of their own")
    with open_regular(source.name) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise InputFault(f"{_ABSENT}, and with {size / _MIB:.1f} MiB larger than --ship-limit ({most // _MIB} MiB)")
        if room is not None and size > room:
            return None
        return file.read(size)


_MOST_HEARD = 1 << 16  # characters that the code of one module prints
_REST_S = 0.02  # for what a module printed last to arrive


class Common(Struct, frozen=True, kw_only=True):
    """What is the same for many tasks; paths are relative to `folder`."""

    setting: AuditConfig
    folder: str


class Request(Struct, frozen=True, kw_only=True):
    """A model to audit; `stamp` is that of its files where the process runs that asks, empty where there are none."""

    subject: Subject
    stamp: str = ""


class ClusterAnswer(Struct, kw_only=True):
    """The answer to a request; without an outcome, this machine has no such file, or another version of it."""

    audited: Audited | None = None
    heard: str = ""  # from the code of modules


def answer(request: bytes, common: bytes, content: bytes | None = None) -> bytes:
    """Audits in this process what is asked for, of `content` where that was sent."""
    return pickle.dumps(_Worker.of_this_process().answer(pickle.loads(request), _common(common), content))


class _Worker:
    """What this process keeps from one task to the next: readers that have started, and what their modules print."""

    def __init__(self) -> None:
        self._heard: list[str] = []
        self._reading = Reading(on_output=self._heard.append)
        self._number = 0
        look_seldom()

    @staticmethod
    @cache
    def of_this_process() -> _Worker:
        return _Worker()

    def answer(self, request: Request, common: Common, content: bytes | None) -> ClusterAnswer:
        source = request.subject.source
        at_home = _enter_folder(common.folder)
        task = Task(subject=request.subject, setting=common.setting)
        if source.kind == "module":
            outcome = self._of_module(task, common.folder, at_home=at_home)
        elif content is not None:
            with _laid_down(source, content) as laid:
                outcome = audited(replace(task, subject=replace(task.subject, source=laid)), self._reading)
        elif not (at_home or os.path.isabs(source.name)) or not is_alike(request.stamp, source):
            return ClusterAnswer()
        else:
            outcome = audited(task, self._reading)
        self._number += 1
        look_after(self._number)
        printed, self._heard[:] = "".join(self._heard), []
        return ClusterAnswer(audited=outcome, heard=printed[-_MOST_HEARD:])

    def _of_module(self, task: Task, folder: str, *, at_home: bool) -> Audited:
        model = task.subject.source.model
        own = folder if model is None else os.path.join(folder, model.folder)
        if not at_home or not os.path.isdir(own):
            return lost(task, f"its code cannot be run: {own} is not on the cluster's disks")
        outcome = audited(task, self._reading)
        time.sleep(_REST_S)
        return outcome


def is_alike(stamp: str, source: Input) -> bool:
    """Whether the files of an input have the sizes and times of a stamp; the rest of it differs between machines.

    An empty stamp is like any.
    """
    there, here = ([status[2:4] for status in literal_eval(text or "[]")] for text in (stamp, stamp_of(source)))
    return not stamp or there == here


def _enter_folder(folder: str) -> bool:
    """Changes to the folder that paths are relative to; to the root, and False, where there is no such folder."""
    try:
        os.chdir(folder)
    except OSError:
        os.chdir(os.sep)
        return False
    return True


@contextmanager
def _laid_down(source: Input, content: bytes) -> Iterator[Input]:
    """The input with a copy of its content where nobody else can read or foresee it."""
    with TemporaryDirectory(prefix="convlint-") as folder:
        path = os.path.join(folder, os.path.basename(source.name))
        with open(path, "xb") as file:
            file.write(content)
        yield replace(source, copy=path)


@cache
def _common(content: bytes) -> Common:
    common: Common = pickle.loads(content)  # convlint's own, from the process that asks
    return common


_WAITING = 3  # tasks for each processor of the cluster that are under way: few, so that memory stays flat
_LEAST = 8  # also where it has no processor yet, as its autoscaler looks at what waits
_LOOK_S = 2.0  # between looks at how many processors there are
_LOST_S = 20.0  # for its head to answer
_SHIPPED = 512 << 20  # bytes of files that are under way at once, unless one alone is larger
# The owner of a task reads it: Ray would try for ever what exhausts a machine's memory.
_OOM_RETRIES = "RAY_task_oom_retries"


@contextmanager
def on_cluster(address: str, ship_bytes: int) -> Iterator[Run]:
    """A `Run` on the cluster at `address`, to be used once. Raises UsageError, before the first task where it can.

    Until it is left, standard output goes nowhere.
    """
    os.environ.setdefault(_OOM_RETRIES, str(TRIES - 1))
    with (
        open(os.devnull, "w") as nowhere,
        redirect_stdout(nowhere),
    ):  # threads of Ray's print there what workers died of
        connect(address)
        try:
            refuse_other_versions()
            yield lambda tasks: _Flight(tasks, ship_bytes).answers()
        finally:
            disconnect()


class _Sent(Struct, kw_only=True):
    """A task under way, and what is kept for it until it is done."""

    task: Task
    stamp: str
    seen_ns: int
    shipped: int = 0
    content: Any = None  # a reference into the object store


class _Flight:
    """The tasks that are under way."""

    def __init__(self, tasks: Iterator[Task], ship_bytes: int) -> None:
        import ray

        self._ray = ray
        self._tasks, self._ship_bytes = tasks, ship_bytes
        self._work = ray.remote(max_retries=TRIES - 1)(_working(__version__))
        self._folder = os.getcwd()
        self._common: dict[int, tuple[AuditConfig, Any]] = {}  # with references into the object store
        self._running: dict[Any, _Sent] = {}
        self._unshipped: deque[_Sent] = deque()
        self._most, self._looked = 0, float("-inf")
        self._lost = False

    def answers(self) -> Answers:
        """The outcome of each task, as they come. Raises UsageError where the cluster is lost."""
        ray = self._ray
        try:
            while True:
                for task in islice(self._tasks, self._room()):
                    self._send(_Sent(task=task, stamp=stamp_of(task.subject.source), seen_ns=time.time_ns()))
                yield from self._ship()
                if not self._running and not self._unshipped:
                    return
                yield from self._done()
        except (
            ConnectionError, ray.exceptions.RaySystemError, ray.exceptions.LocalRayletDiedError,
            ray.exceptions.RpcError,
        ) as error:  # fmt: skip
            raise UsageError(
                f"the cluster is lost ({' '.join(str(error).split())[:200]}): with --output to a table, --resume goes "
                "on with what it has audited"
            ) from error
        finally:
            self._end()

    def _room(self) -> int:
        now = time.monotonic()
        if now - self._looked > _LOOK_S:
            self._most, self._looked = max(_LEAST, int(_WAITING * self._processors())), time.monotonic()
        return max(0, self._most - len(self._running) - len(self._unshipped))

    def _processors(self) -> float:
        """How many there are now. Raises ConnectionError, before Ray itself ends a process whose cluster is gone."""
        replies: SimpleQueue[Any] = SimpleQueue()

        def ask() -> None:
            try:
                replies.put(self._ray.cluster_resources().get("CPU", 0))
            except (ConnectionError, self._ray.exceptions.RayError) as error:
                replies.put(error)

        Thread(target=ask, daemon=True).start()  # nothing waits for a thread that Ray never lets go
        try:
            reply = replies.get(timeout=_LOST_S)
        except Empty:
            self._lost = True
            raise ConnectionError(f"its head has not answered for {_LOST_S:g} s") from None
        if isinstance(reply, Exception):
            raise reply
        return float(reply)

    def _send(self, sent: _Sent) -> None:
        task = sent.task
        request = Request(subject=task.subject, stamp=sent.stamp)
        ref = self._work.remote(pickle.dumps(request), self._common_of(task.setting), sent.content)
        self._running[ref] = sent

    def _common_of(self, setting: AuditConfig) -> Any:
        if id(setting) not in self._common:
            common = Common(setting=setting, folder=self._folder)
            self._common[id(setting)] = setting, self._ray.put(pickle.dumps(common))
        return self._common[id(setting)][1]

    def _ship(self) -> Answers:
        """Sends files that the cluster does not have, as many as may be under way."""
        under_way = sum(sent.shipped for sent in self._running.values()) if self._unshipped else 0
        while self._unshipped:
            sent = self._unshipped[0]
            try:
                content = content_of(
                    sent.task.subject.source, self._ship_bytes, _SHIPPED - under_way if under_way else None
                )
            except InputFault as fault:
                self._unshipped.popleft()
                yield sent.task, lost(sent.task, fault.message)
                continue
            if content is None:
                return
            self._unshipped.popleft()
            sent.shipped, sent.content = len(content), self._ray.put(content)
            under_way += len(content)
            self._send(sent)

    def _done(self) -> Answers:
        ray, running = self._ray, self._running
        if not ray.wait(list(running), num_returns=1, timeout=_LOOK_S)[0]:
            return
        done, _ = ray.wait(list(running), num_returns=len(running), timeout=0)
        for ref, reply in self._replies(done):
            sent = running.pop(ref)
            task = sent.task
            if isinstance(reply, ray.exceptions.RayError):
                yield task, lost(task, self._judged(reply))
                continue
            if not isinstance(reply, bytes):
                raise UsageError(f"{other_version(*reply)}, or take it out; --resume goes on")
            answer: ClusterAnswer = pickle.loads(reply)  # of convlint's own code, in this very version
            if answer.heard:
                say(answer.heard)
            if answer.audited is None:
                self._unshipped.append(sent)
            else:
                yield task, replace(answer.audited, stamp=sent.stamp, seen_ns=sent.seen_ns)

    def _replies(self, done: list[Any]) -> list[tuple[Any, Any]]:
        """(reference, answer or Ray's error) of each; all are asked for at once, as each request takes time."""
        ray = self._ray
        try:
            return list(zip(done, ray.get(done), strict=True))
        except ray.exceptions.RayError:
            replies: list[tuple[Any, Any]] = []
            for ref in done:
                try:
                    replies.append((ref, ray.get(ref)))
                except ray.exceptions.RayError as error:
                    replies.append((ref, error))
            return replies

    def _judged(self, error: Exception) -> str:
        """The message on a model for which Ray has no answer."""
        known = self._ray.exceptions
        if isinstance(error, known.LocalRayletDiedError):
            raise error
        if isinstance(error, (known.WorkerCrashedError, known.NodeDiedError, known.OutOfMemoryError)):
            return DEATH
        return f"the cluster could not audit it: {' '.join(str(error).split())[:400]}"

    def _end(self) -> None:
        """Ends all tasks, done or not: Ray ends the workers of a driver that leaves.

        Cancelling each task before that can crash this process, where one is just being done.
        """
        if self._lost:  # even leaving it would wait for ever
            return
        self._running.clear()
        self._common.clear()
        disconnect()


def _working(version: str) -> Callable[..., Any]:
    """A function for other machines; made in here, it travels with its code, as they may have no convlint."""

    def convlint_audit(request: bytes, common: bytes, content: bytes | None) -> Any:
        import socket

        try:
            import convlint
        except ImportError:
            return socket.gethostname(), None
        if convlint.__version__ != version:
            return socket.gethostname(), convlint.__version__

        return answer(request, common, content)

    return convlint_audit
