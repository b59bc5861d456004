"""A worker's side of an audit on a cluster: finds the file of a task where it lies or lays down what was sent."""

from __future__ import annotations

import os
import pickle
import time
from ast import literal_eval
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from tempfile import TemporaryDirectory

from msgspec import Struct
from msgspec.structs import replace

from convlint.linting.audit.circles import look_after, look_seldom
from convlint.linting.audit.seal import stamp_of
from convlint.linting.audit.subject import Subject
from convlint.linting.audit.task import Audited, Setting, Task, audited, lost
from convlint.readers.inputs import Input
from convlint.readers.reading import Reading

_MOST_HEARD = 1 << 16  # characters that the code of one module prints
_REST_S = 0.02  # for what a module printed last to arrive


class Common(Struct, frozen=True, kw_only=True):
    """What is the same for many tasks; paths are relative to `folder`."""

    setting: Setting
    folder: str


class Request(Struct, frozen=True, kw_only=True):
    """A model to audit; `stamp` is of its files as the process sees them that asks, and empty where it sees none."""

    number: int
    subject: Subject
    stamp: str = ""


class Answer(Struct, kw_only=True):
    """What became of a request; without an outcome, this machine does not have the file as it is meant."""

    audited: Audited | None = None
    heard: str = ""  # from the code of modules


def answer(request: bytes, common: bytes, content: bytes | None = None) -> bytes:
    """Audits in this process what is asked for, of `content` where that was sent."""
    return pickle.dumps(_Worker.of_this_process().answer(pickle.loads(request), _common(common), content))


class _Worker:
    """What this process keeps from one task to the next: readers that have started, and what they say."""

    def __init__(self) -> None:
        self._heard: list[str] = []
        self._reading = Reading(on_output=self._heard.append)
        self._number = 0
        look_seldom()

    @staticmethod
    @cache
    def of_this_process() -> _Worker:
        return _Worker()

    def answer(self, request: Request, common: Common, content: bytes | None) -> Answer:
        source = request.subject.source
        at_home = _enter(common.folder)
        task = Task(number=request.number, subject=request.subject, setting=common.setting)
        if source.kind == "module":
            found = self._of_module(task, common.folder, at_home=at_home)
        elif content is not None:
            with _laid_down(source, content) as laid:
                found = audited(replace(task, subject=replace(task.subject, source=laid)), self._reading)
        elif not (at_home or os.path.isabs(source.name)) or not is_alike(request.stamp, source):
            return Answer()
        else:
            found = audited(task, self._reading)
        self._number += 1
        look_after(self._number)
        heard, self._heard[:] = "".join(self._heard), []
        return Answer(audited=found, heard=heard[-_MOST_HEARD:])

    def _of_module(self, task: Task, folder: str, *, at_home: bool) -> Audited:
        model = task.subject.source.model
        own = folder if model is None else os.path.join(folder, model.folder)
        if not at_home or not os.path.isdir(own):
            return lost(task, f"its code cannot be run: {own} is not on the cluster's disks")
        found = audited(task, self._reading)
        time.sleep(_REST_S)
        return found


def is_alike(stamp: str, source: Input) -> bool:
    """Whether the files of an input have the sizes and times of a stamp; the rest of it differs between machines.

    What nobody saw there is judged here.
    """
    return not stamp or _sizes_and_times(stamp) == _sizes_and_times(stamp_of(source))


def _sizes_and_times(stamp: str) -> list[tuple[int, ...]]:
    return [status[2:4] for status in literal_eval(stamp)] if stamp else []


def _enter(folder: str) -> bool:
    """Goes to where paths are relative to; False where this machine has no such folder, and nothing lies near."""
    try:
        os.chdir(folder)
    except OSError:
        os.chdir(os.sep)
        return False
    return True


@contextmanager
def _laid_down(source: Input, content: bytes) -> Iterator[Input]:
    """The input with a copy that nobody else can read or foresee."""
    with TemporaryDirectory(prefix="convlint-") as folder:
        path = os.path.join(folder, os.path.basename(source.name))
        with open(path, "xb") as file:
            file.write(content)
        yield replace(source, copy=path)


@cache
def _common(content: bytes) -> Common:
    found: Common = pickle.loads(content)  # convlint's own, from the process that asks
    return found
