"""Many workloads: what is known is not timed again, what fails is said, and an interrupt loses nothing."""

import pytest
from convolutions import conv
from measured import DEVICE, Pretender, row_of, work
from msgspec.structs import replace

from convlint.measuring import session
from convlint.measuring.rows import TimingAnswer, TimingRow
from convlint.measuring.session import MOST_FATAL, Bench, NoDevice, timed
from convlint.measuring.workload import Workload
from convlint.model.layer import Dtype

SMALL = work(conv(N=1, C=4, H=6, W=6, K=4, dtype=Dtype.fp32), "wgrad")


def test_it_times_and_what_ends_it_costs_one_timing_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with Bench("cpu") as bench:
        assert bench.device.kind == "cpu"
        first = bench.time(SMALL, 0.001)
        assert first.timing is not None
        bench._child._process.kill()
        bench._child._process.wait()
        ended = bench.time(SMALL, 0.001)
        assert ended.timing is None
        assert ended.error == "the process that timed it was ended by SIGKILL; the machine may be out of memory"
        assert bench.time(SMALL, 0.001).timing is not None
        monkeypatch.setattr(session, "WORKLOAD_S", 0.002)
        slow = bench.time(work(conv(N=64, dtype=Dtype.fp64), "fprop"), 60.0)
        assert slow.error == "it took more than 0 s"
    assert bench._child is None


def test_where_there_is_nothing_to_time_on_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(NoDevice, match="no CUDA device"):
        Bench("cuda")


def test_a_child_that_cannot_start_is_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    with pytest.raises(NoDevice, match="No such file"):
        Bench("cpu")


WORKLOADS = [work(conv(K=width)) for width in (32, 64, 96)]


def test_each_is_timed_once_and_kept_at_once() -> None:
    timer, kept = Pretender(lambda workload: float(workload.K)), list[TimingRow]()
    found = timed([*WORKLOADS, *WORKLOADS], timer, "a100-40gb-sxm", {}, kept.append)
    assert timer.asked == WORKLOADS
    assert [found.rows[each].timing.us for each in WORKLOADS] == [32.0, 64.0, 96.0]
    assert kept == list(found.rows.values())
    assert all(row.is_of(DEVICE) and row.gpu == "a100-40gb-sxm" and row.clock == 1410 for row in kept)
    assert not found.failed


def test_what_is_known_is_not_timed_again() -> None:
    known = {WORKLOADS[1]: row_of(WORKLOADS[1], 7.0)}
    timer, kept = Pretender(lambda _: 5.0), list[TimingRow]()
    found = timed(WORKLOADS, timer, "a100", known, kept.append)
    assert timer.asked == [WORKLOADS[0], WORKLOADS[2]]
    assert [found.rows[each].timing.us for each in WORKLOADS] == [5.0, 7.0, 5.0]
    assert len(kept) == 2


def test_what_fails_does_not_keep_the_others() -> None:
    timer = Pretender(lambda workload: "CUDA out of memory." if workload.K == 64 else 1.0)
    found = timed(WORKLOADS, timer, "a100", {}, lambda _: None)
    assert found.failed == {WORKLOADS[1]: "CUDA out of memory."}
    assert list(found.rows) == [WORKLOADS[0], WORKLOADS[2]]


def test_nothing_is_begun_after_the_time_is_over_but_what_is_known_counts() -> None:
    clock = iter((0.0, 1.0, 9.0, 11.0))
    known = {WORKLOADS[2]: row_of(WORKLOADS[2], 7.0)}
    several = [*WORKLOADS, work(conv(K=128))]
    timer = Pretender(lambda _: 5.0)
    found = timed(several, timer, "a100", known, lambda _: None, limit_s=10.0, now=lambda: next(clock))
    assert timer.asked == WORKLOADS[:2]
    assert list(found.rows) == WORKLOADS
    assert several[3] not in found.failed


def test_an_interrupt_leaves_what_was_kept() -> None:
    def interrupted(workload: object) -> float:
        if workload == WORKLOADS[2]:
            raise KeyboardInterrupt
        return 1.0

    kept: list[TimingRow] = []
    with pytest.raises(KeyboardInterrupt):
        timed(WORKLOADS, Pretender(interrupted), "a100", {}, kept.append)
    assert [row.workload for row in kept] == WORKLOADS[:2]


def test_everything_is_told_as_done() -> None:
    told: list[object] = []
    known = {WORKLOADS[0]: row_of(WORKLOADS[0], 7.0)}
    timed(WORKLOADS, Pretender(lambda _: "no"), "a100", known, lambda _: None, done=told.append)
    assert told == WORKLOADS


def test_a_device_that_fails_again_and_again_is_left_alone() -> None:
    several = [work(conv(K=8 * width)) for width in range(1, 12)]

    class Broken(Pretender):
        def time(self, workload: Workload, seconds: float) -> TimingAnswer:
            return replace(super().time(workload, seconds), fatal=True)

    timer = Broken(lambda _: "CUDA error: unspecified launch failure")
    found = timed(several, timer, "a100", {}, lambda _: None)
    assert timer.asked == several[:MOST_FATAL]
    assert list(found.failed) == several
    assert found.failed[several[-1]] == "not begun, since timing failed 5 times in a row"
