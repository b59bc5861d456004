"""The child that times, as its parent sees it: started anew where a workload has ended it."""

from __future__ import annotations

from types import TracebackType

from convlint.errors import ConvlintError
from convlint.measuring.device import Device, Kind
from convlint.measuring.protocol import Answer, Order, answer_of, encode
from convlint.measuring.workload import Workload
from convlint.readers.children.child import Child, ChildDied

START_S = 300.0  # to load PyTorch from a slow disk
WORKLOAD_S = 120.0  # for one workload


class NoDevice(ConvlintError):
    """There is nothing to time on; says why."""


class Bench:
    """Times workloads on one device. A context manager, which ends the child."""

    def __init__(self, kind: Kind) -> None:
        """Raises NoDevice."""
        self._kind = kind
        self._child: Child | None = None
        found = self._asked(Order(device=kind), START_S)
        if found.device is None:
            self.close()
            raise NoDevice(found.error)
        self.device: Device = found.device

    def __enter__(self) -> Bench:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def time(self, workload: Workload, seconds: float) -> Answer:
        """A timing, or what came of it instead."""
        return self._asked(Order(device=self._kind, workload=workload, seconds=seconds), WORKLOAD_S)

    def close(self) -> None:
        """Ends the child."""
        if self._child is not None:
            self._child.close()
            self._child = None

    def _asked(self, order: Order, timeout_s: float) -> Answer:
        try:
            if self._child is None:
                self._child = Child("convlint.measuring.bench:work")
                timeout_s = max(timeout_s, START_S)
            answer = answer_of(self._child.ask(encode(order), timeout_s))
        except ChildDied as died:
            self.close()
            return Answer(error=_ending(died, timeout_s), fatal=True)
        if answer.fatal:
            self.close()
        return answer


def _ending(died: ChildDied, timeout_s: float) -> str:
    if died.timed_out:
        return f"it took more than {timeout_s:.0f} s"
    if died.signal_name is not None:
        more = "; the machine may be out of memory" if died.signal_name == "SIGKILL" else ""
        return f"the process that timed it was ended by {died.signal_name}{more}"
    last = died.tail.strip().rpartition("\n")[2]
    return f"the process that timed it ended{f': {last}' if last else ''}"
