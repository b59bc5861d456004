"""What goes between the parent and the child that times is checked as data."""

from __future__ import annotations

import msgspec
import pytest
from measured import DEVICE, work

from convlint.measuring.protocol import Answer, Order, Timing, answer_of, encode, order_of


def test_orders_and_answers_arrive_as_they_were_sent() -> None:
    order = Order(device="cuda", workload=work(), seconds=0.25)
    assert order_of(encode(order)) == order
    for answer in (
        Answer(device=DEVICE),
        Answer(timing=Timing(us=1.5, spread=0.1, runs=9), clock=1410),
        Answer(error="no"),
    ):
        assert answer_of(encode(answer)) == answer


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b'{"timing": {"us": "fast", "spread": 0, "runs": 1}}', b'{"timing": {"us": 1.0}}', b'{"more": 1}'],
)
def test_what_is_no_answer_is_refused(content: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        answer_of(content)
