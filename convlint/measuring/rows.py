"""Timings as rows of a CSV file, and the messages between the command line and the child that times."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from convlint.gpus.devices import Device, Kind
from convlint.measuring.workload import Workload
from convlint.model.errors import InputFault


class Order(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Time `workload` for about `seconds`; without one, say what the device is."""

    device: Kind
    workload: Workload | None = None
    seconds: float = 0.0


class CallTiming(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The time of one call in us: the median of `runs` blocks; `spread` is the width of their middle half over it."""

    us: float
    spread: Annotated[float, Meta(ge=0)]
    runs: Annotated[int, Meta(ge=1)]


class TimingAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A device, a timing or an error. After a `fatal` error the process is of no use any more.

    `clock` is what the SM clock was after the last block, in MHz, 0 where nothing says it.
    """

    device: Device | None = None
    timing: CallTiming | None = None
    error: str = ""
    fatal: bool = False
    clock: int = 0


encode = msgspec.json.encode
order_of = msgspec.json.Decoder(Order).decode
answer_of = msgspec.json.Decoder(TimingAnswer).decode


SOURCE = "convlint-measure"
MOST_BYTES = 64 << 20  # a row has some 250
PUBLIC = (
    "gpu", "precision", "layout", "N", "C", "H", "W", "K", "R", "S", "pad_h", "pad_w", "stride_h", "stride_w", "pass",
    "residual_inputs", "ms", "source",
)  # fmt: skip
_MORE = (
    "groups", "op", "dims", "D", "T", "pad_d", "stride_d", "dilation_d", "dilation_h", "dilation_w",
    "output_padding_d", "output_padding_h", "output_padding_w", "arrives", "benchmark", "deterministic",
    "spread", "runs", "clock_mhz", "device", "framework_version", "cudnn", "cuda",
)  # fmt: skip
COLUMNS = (*PUBLIC, *_MORE)
_TRIPLES = ("stride", "pad", "dilation", "output_padding")
_PLAIN = ("op", "dims", "N", "C", "D", "H", "W", "K", "T", "R", "S", "groups", "precision", "layout", "arrives")


class TimingRow(Struct, frozen=True, kw_only=True):
    """One timing, and what it was taken on; `gpu` is convlint's name for the device, or what it calls itself.

    `clock` is the SM clock after it in MHz, 0 where that is not known.
    """

    workload: Workload
    timing: CallTiming
    gpu: str
    device: str
    framework_version: str
    cudnn: str
    cuda: str
    clock: int = 0

    def is_of(self, device: Device) -> bool:
        """Whether the same device with the same libraries would be timed again."""
        mine = (self.device, self.framework_version, self.cudnn, self.cuda)
        return mine == (device.name, device.framework_version, device.cudnn, device.cuda)


def header() -> str:
    """The first line."""
    return _line(COLUMNS)


def line(row: TimingRow) -> str:
    """One row as a line."""
    return _line(str(_values(row)[name]) for name in COLUMNS)


def _values(row: TimingRow) -> dict[str, object]:
    work = row.workload
    values: dict[str, object] = {name: getattr(work, name) for name in _PLAIN}
    for name in _TRIPLES:
        values |= {f"{name}_{axis}": part for axis, part in zip("dhw", getattr(work, name), strict=True)}
    return values | {
        "gpu": row.gpu, "pass": work.which, "residual_inputs": 0, "ms": f"{row.timing.us / 1e3:.6g}", "source": SOURCE,
        "benchmark": int(work.benchmark), "deterministic": int(work.deterministic),
        "spread": f"{row.timing.spread:.3g}", "runs": row.timing.runs, "clock_mhz": row.clock or "",
        "device": row.device, "framework_version": row.framework_version, "cudnn": row.cudnn, "cuda": row.cuda,
    }  # fmt: skip


def _line(values: Iterable[str]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow(values)
    return buffer.getvalue()


def rows_of(text: str) -> Iterator[TimingRow]:
    """The rows that a file holds, whose last line may have been cut off. Raises InputFault with the line."""
    complete = text[: text.rfind("\n") + 1]
    if not complete:
        if header().startswith(text):
            return
        raise InputFault("it is no file that convlint measure writes", line=1, column=1)
    lines = csv.reader(io.StringIO(complete, newline=""))
    if tuple(next(lines, ())) != COLUMNS:
        raise InputFault("its first line is not that of a file that convlint measure writes", line=1, column=1)
    while True:
        try:
            values = next(lines, None)
            if values is None:
                return
            if tuple(values) == COLUMNS:  # two runs that began at once
                continue
            yield _row(dict(zip(COLUMNS, values, strict=True)))
        except (ValueError, csv.Error, msgspec.ValidationError) as error:
            raise InputFault(f"not a timing: {error}", line=lines.line_num, column=1) from None


def _row(values: Mapping[str, str]) -> TimingRow:
    fields: dict[str, object] = {name: values[name] for name in _PLAIN}
    fields |= {name: tuple(values[f"{name}_{axis}"] for axis in "dhw") for name in _TRIPLES}
    fields |= {"which": values["pass"], "benchmark": values["benchmark"], "deterministic": values["deterministic"]}
    timing = {"us": round(float(values["ms"]) * 1e3, 6), "spread": values["spread"], "runs": values["runs"]}
    row = TimingRow(
        workload=msgspec.convert(fields, Workload, strict=False),
        timing=msgspec.convert(timing, CallTiming, strict=False),
        clock=int(values["clock_mhz"] or "0"),
        **{name: values[name] for name in ("gpu", "device", "framework_version", "cudnn", "cuda")},
    )
    if not 0 < row.timing.us < 1e9 or not 0 <= row.timing.spread < 1e6:
        raise ValueError(f"{values['ms']} ms with a spread of {values['spread']}")
    return row
