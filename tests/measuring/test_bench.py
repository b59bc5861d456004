"""What the child answers, in this process."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from convolutions import conv
from measured import work
from msgspec.structs import replace

from convlint.measuring import bench
from convlint.measuring.protocol import Answer, Order, answer_of, encode
from convlint.model.layer import Dtype

SMALL = work(conv(N=1, C=4, H=6, W=6, K=4, dtype=Dtype.fp32), "fprop")


class Asked:
    """A channel on which these orders come."""

    def __init__(self, *orders: Order) -> None:
        self._orders, self.answers = list(orders), list[Answer]()

    def receive(self) -> bytes | None:
        return encode(self._orders.pop(0)) if self._orders else None

    def send(self, content: bytes) -> None:
        self.answers.append(answer_of(content))


def answers(*orders: Order) -> list[Answer]:
    channel: Any = Asked(*orders)
    bench.work(channel)
    found: list[Answer] = channel.answers
    return found


def test_the_device_and_a_timing() -> None:
    device, timing = answers(Order(device="cpu"), Order(device="cpu", workload=SMALL, seconds=0.01))
    assert device.device is not None
    assert (device.device.kind, device.device.framework_version) == ("cpu", torch.__version__)
    assert timing.timing is not None
    assert timing.timing.us > 0
    assert timing.timing.runs >= 5
    assert timing.clock == 0


def test_a_kernel_that_fails_is_an_answer_and_the_next_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    too_large = work(conv(N=1 << 20, C=1 << 20, H=1 << 10, W=1 << 10, dtype=Dtype.fp32), "fprop")
    failed, fine = answers(*(Order(device="cpu", workload=each, seconds=0.01) for each in (too_large, SMALL)))
    assert failed.timing is None
    assert failed.error
    assert "\n" not in failed.error
    assert not failed.fatal
    assert fine.timing is not None

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("CUDA error: an illegal memory access was encountered\nmore of it")

    monkeypatch.setattr(torch, "convolution", broken)
    (fatal,) = answers(Order(device="cpu", workload=SMALL, seconds=0.01))
    assert (fatal.error, fatal.fatal) == ("CUDA error: an illegal memory access was encountered", True)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_so() -> None:
    (answer,) = answers(Order(device="cuda"))
    assert answer.device is None
    assert "no CUDA device" in answer.error
    assert "--device cpu" in answer.error


def test_without_pytorch_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    (answer,) = answers(Order(device="cpu"))
    assert answer.error.startswith("timing needs PyTorch 2.4 or later, in a build for your GPU")


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, ""), (7605, "7.6.5"), (8902, "8.9.2"), (90100, "9.1.0"), (91002, "9.10.2")],
)
def test_cudnn_counts_in_another_way_since_9(number: int, text: str) -> None:
    assert bench._cudnn(number) == text


def test_settings_of_cudnn_hold_while_it_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[bool, bool, bool]] = []
    real = torch.convolution
    cudnn = torch.backends.cudnn

    def noted(*arguments: Any) -> torch.Tensor:
        seen.append((cudnn.benchmark, cudnn.deterministic, cudnn.allow_tf32))
        return real(*arguments)

    monkeypatch.setattr(torch, "convolution", noted)
    tuned = replace(SMALL, benchmark=True, deterministic=True, precision=Dtype.fp32)
    for workload in (SMALL, tuned):
        answers(Order(device="cpu", workload=workload, seconds=0.001))
    assert set(seen) == {(False, False, True), (True, True, False)}
    assert SMALL.precision == Dtype.tf32
