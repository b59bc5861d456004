"""The child that times, as its parent sees it."""

from __future__ import annotations

import pytest
from convolutions import conv
from measured import work

from convlint.measuring import process
from convlint.measuring.process import Bench, NoDevice
from convlint.model.layer import Dtype

SMALL = work(conv(N=1, C=4, H=6, W=6, K=4, dtype=Dtype.fp32), "wgrad")


def test_it_times_and_what_ends_it_costs_one_timing_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with Bench("cpu") as bench:
        assert bench.device.kind == "cpu"
        first = bench.time(SMALL, 0.001)
        assert first.timing is not None
        assert bench._child is not None
        bench._child._process.kill()
        bench._child._process.wait()
        ended = bench.time(SMALL, 0.001)
        assert ended.timing is None
        assert ended.error == "the process that timed it was ended by SIGKILL; the machine may be out of memory"
        assert bench.time(SMALL, 0.001).timing is not None
        monkeypatch.setattr(process, "WORKLOAD_S", 0.05)
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
