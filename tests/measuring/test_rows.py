"""Timings as CSV, and back."""

import msgspec
import pytest
from convolutions import conv
from measured import DEVICE, row, work
from msgspec.structs import replace

from convlint.measuring.rows import (
    COLUMNS,
    PUBLIC,
    CallTiming,
    Order,
    TimingAnswer,
    answer_of,
    encode,
    header,
    line,
    order_of,
    rows_of,
)
from convlint.model.errors import InputFault


def test_orders_and_answers_arrive_as_they_were_sent() -> None:
    order = Order(device="cuda", workload=work(), seconds=0.25)
    assert order_of(encode(order)) == order
    for answer in (
        TimingAnswer(device=DEVICE),
        TimingAnswer(timing=CallTiming(us=1.5, spread=0.1, runs=9), clock=1410),
        TimingAnswer(error="no"),
    ):
        assert answer_of(encode(answer)) == answer


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b'{"timing": {"us": "fast", "spread": 0, "runs": 1}}', b'{"timing": {"us": 1.0}}', b'{"more": 1}'],
)
def test_what_is_no_answer_is_refused(content: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        answer_of(content)


ROW = row()


def test_the_public_columns_come_first() -> None:
    assert header().startswith(
        "gpu,precision,layout,N,C,H,W,K,R,S,pad_h,pad_w,stride_h,stride_w,pass,residual_inputs,ms,source,"
    )
    values = dict(zip(COLUMNS, line(ROW).rstrip("\n").split(","), strict=True))
    assert {name: values[name] for name in PUBLIC} == {
        "gpu": "a100-40gb-sxm", "precision": "fp16", "layout": "NHWC", "N": "8", "C": "64", "H": "28", "W": "28",
        "K": "96", "R": "3", "S": "3", "pad_h": "1", "pad_w": "1", "stride_h": "1", "stride_w": "1", "pass": "dgrad",
        "residual_inputs": "0", "ms": "0.1234", "source": "convlint-measure",
    }  # fmt: skip
    assert {name: values[name] for name in ("device", "cudnn", "framework_version")} == {
        "device": "NVIDIA A100-SXM4-40GB", "cudnn": "9.10.2", "framework_version": "2.11.0",
    }  # fmt: skip


def test_what_is_written_is_read_again() -> None:
    several = [ROW, row(conv(groups=64, K=64, C=64), us=0.5), replace(ROW, device='A "GPU", or so', clock=0)]
    assert list(rows_of(header() + "".join(map(line, several)))) == several


def test_a_line_that_an_interrupt_cut_off_is_left_out() -> None:
    assert list(rows_of(header() + line(ROW) + line(ROW)[:70])) == [ROW]


def test_nothing_but_a_part_of_the_first_line_is_no_timing_yet() -> None:
    assert list(rows_of("")) == []
    assert list(rows_of(header()[:30])) == []


def test_the_first_line_may_come_again() -> None:
    assert list(rows_of(header() + line(ROW) + header() + line(ROW))) == [ROW, ROW]


def test_a_row_is_of_the_device_and_libraries_that_it_was_taken_with() -> None:
    from measured import DEVICE

    assert ROW.is_of(DEVICE)
    assert not ROW.is_of(replace(DEVICE, cudnn="9.1.0"))
    assert not ROW.is_of(replace(DEVICE, framework_version="2.4.0"))
    assert not ROW.is_of(replace(DEVICE, name="NVIDIA A100-SXM4-80GB"))


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("x", 1),
        (header() + line(ROW).replace(",20,", ",0,"), 2),
        (header() + line(ROW).replace(",3,3,1,1,1,1,", ",3,3,1,1,0,1,"), 2),
        ("a,b,c\n", 1),
        (header() + "1,2,3\n", 2),
        (header() + line(ROW) + line(ROW).replace("dgrad", "agrad"), 3),
        (header() + line(ROW).replace("0.1234", "nan"), 2),
        (header() + line(ROW).replace("0.1234", "-1"), 2),
        (header() + line(ROW).replace("0.1234", "0"), 2),
        (header() + line(ROW).replace(",8,64,", ",8.5,64,"), 2),
        (header() + line(ROW).replace("NHWC", "NWHC", 1), 2),
        (header() + line(ROW).replace(",8,64,", ",1" + "0" * 5000 + ",64,"), 2),
    ],
)
def test_what_is_no_timing_is_refused_at_its_line(text: str, at: int) -> None:
    with pytest.raises(InputFault) as fault:
        list(rows_of(text))
    assert fault.value.line == at
