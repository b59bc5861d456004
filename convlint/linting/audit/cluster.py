"""Audits on a Ray cluster, a task for each model: Ray schedules, retries and counts; here is only what it is asked."""

from __future__ import annotations

import os
import pickle
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from itertools import islice
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from convlint import __version__
from convlint.errors import InputFault, UsageError
from convlint.linting.audit.audit import Run
from convlint.linting.audit.connecting import connect, disconnect, other_version, refuse_other_versions
from convlint.linting.audit.local import Answers
from convlint.linting.audit.remote import Answer, Common, Request
from convlint.linting.audit.seal import stamp_of
from convlint.linting.audit.shipping import content_of
from convlint.linting.audit.task import TRIES, Setting, Task, death, lost
from convlint.linting.one_input import say

_WAITING = 3  # tasks for each processor of the cluster that are under way: few, so that memory stays flat
_LEAST = 8  # also where it has no processor yet, as its autoscaler looks at what waits
_LOOK_S = 2.0  # between looks at how many processors there are
_LOST_S = 20.0  # for its head to answer
_SHIPPED = 512 << 20  # bytes of files that are under way at once, unless one alone is larger
# The owner of a task reads it: Ray would try for ever what exhausts a machine's memory.
_OOM_RETRIES = "RAY_task_oom_retries"


@contextmanager
def on_cluster(address: str, ship_bytes: int) -> Iterator[Run]:
    """What audits tasks on the cluster at `address`, once. Raises UsageError, before the first task where it can.

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
        self._common: dict[int, tuple[Setting, Any]] = {}  # with references into the object store
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
        said: SimpleQueue[Any] = SimpleQueue()

        def ask() -> None:
            try:
                said.put(self._ray.cluster_resources().get("CPU", 0))
            except (ConnectionError, self._ray.exceptions.RayError) as error:
                said.put(error)

        Thread(target=ask, daemon=True).start()  # nothing waits for a thread that Ray never lets go
        try:
            found = said.get(timeout=_LOST_S)
        except Empty:
            self._lost = True
            raise ConnectionError(f"its head has not answered for {_LOST_S:g} s") from None
        if isinstance(found, Exception):
            raise found
        return float(found)

    def _send(self, sent: _Sent) -> None:
        task = sent.task
        request = Request(number=task.number, subject=task.subject, stamp=sent.stamp)
        ref = self._work.remote(pickle.dumps(request), self._common_of(task.setting), sent.content)
        self._running[ref] = sent

    def _common_of(self, setting: Setting) -> Any:
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
        for ref, said in self._said(done):
            sent = running.pop(ref)
            task = sent.task
            if isinstance(said, ray.exceptions.RayError):
                yield task, lost(task, self._judged(said))
                continue
            if not isinstance(said, bytes):
                raise UsageError(f"{other_version(*said)}, or take it out; --resume goes on")
            answer: Answer = pickle.loads(said)  # of convlint's own code, in this very version
            if answer.heard:
                say(answer.heard)
            if answer.audited is None:
                self._unshipped.append(sent)
            else:
                yield task, replace(answer.audited, stamp=sent.stamp, seen_ns=sent.seen_ns)

    def _said(self, done: list[Any]) -> list[tuple[Any, Any]]:
        """The answer to each, or Ray's error; all are asked for at once, as each question takes its time."""
        ray = self._ray
        try:
            return list(zip(done, ray.get(done), strict=True))
        except ray.exceptions.RayError:
            said: list[tuple[Any, Any]] = []
            for ref in done:
                try:
                    said.append((ref, ray.get(ref)))
                except ray.exceptions.RayError as error:
                    said.append((ref, error))
            return said

    def _judged(self, error: Exception) -> str:
        """What is said of a model for which Ray has no answer."""
        known = self._ray.exceptions
        if isinstance(error, known.LocalRayletDiedError):
            raise error
        if isinstance(error, (known.WorkerCrashedError, known.NodeDiedError, known.OutOfMemoryError)):
            return death()
        return f"the cluster could not audit it: {' '.join(str(error).split())[:400]}"

    def _end(self) -> None:
        """Whatever they are at: Ray ends the workers of a driver that leaves.

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
        from convlint.linting.audit.remote import answer

        return answer(request, common, content)

    return convlint_audit
