"""The last line, times and prices in words."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from reports import ALIGNMENT, finding, full_report, priced

from convlint.model.location import Location
from convlint.report import Alternative, Fix, InputError, Skipped, Source
from convlint.reporters.covered import coverage
from convlint.reporters.words import (
    advice,
    alternatives,
    change,
    costs_nothing,
    duration,
    lost,
    named_in,
    origin,
    said,
)


@pytest.mark.parametrize(
    ("time_us", "text"),
    [
        (0, "0 us"), (0.004, "0 us"), (0.05, "0.05 us"), (2.345, "2.35 us"), (12.345, "12.3 us"), (210.25, "210 us"),
        (999.4, "999 us"), (999.6, "1 ms"), (1234.5, "1.23 ms"), (100_000, "100 ms"), (4.5e6, "4.5 s"),
        (3.2e9, "3200 s"), (-48.0, "-48 us"),
    ],
)  # fmt: skip
def test_durations(time_us: float, text: str) -> None:
    assert duration(time_us) == text


def test_coverage_has_the_form_of_the_contract() -> None:
    report = full_report(errors=(), skipped=(), files=1)
    kept = tuple(finding for finding in report.findings if finding.severity != "info")
    assert coverage(replace(report, findings=kept)) == "4 layers in 1 file on a100: 1 error, 4 warnings"
    assert coverage(replace(report, findings=(), targets=("a100", "t4"))) == (
        "4 layers in 1 file on a100, t4: 0 errors, 0 warnings"
    )
    assert coverage(report) == "4 layers in 1 file on a100: 1 error, 4 warnings, 1 info"


def test_coverage_counts_skipped_layers_and_unread_inputs_once() -> None:
    skipped = (
        Skipped(code="CL102", layer="a", path="x", needs=("C",)),
        Skipped(code="CL103", layer="a", path="x", needs=("C",)),
        Skipped(code="CL103", layer="a", path="y", needs=("C",)),
        Skipped(code="CL501", layer=None, path="y", needs=("runtime.framework",)),
        Skipped(code="CL506", layer="b", path="y", needs=("bias", "norm_follows")),
        Skipped(code="CL507", layer="c", path="y", needs=("runtime.cudnn",)),
    )
    errors = (InputError(path="z", message="1"), InputError(path="z", message="2"), InputError(path="w", message="3"))
    report = full_report(findings=(), skipped=skipped, errors=errors)
    assert coverage(report).endswith(": 0 errors, 0 warnings; 2 layers skipped; 2 inputs not read")
    errors = (*errors, InputError(path="nets/spec.yaml", message="3"))
    assert coverage(replace(report, errors=errors)).endswith("; 2 inputs not read; 1 input incomplete")


@pytest.mark.parametrize(
    ("prices", "text"),
    [
        ({}, ""),
        ({"lost_us": 210.25}, "210 us"),
        ({"lost_us": 210.25, "lost_percent": 2.31}, "210 us, 2.3 % of the convolutions"),
        ({"lost_us": 210.25, "lost_percent": 23.4}, "210 us, 23 % of the convolutions"),
        ({"lost_us": 210.25, "lost_percent": 0.04}, "210 us, 0.04 % of the convolutions"),
        ({"lost_us": 0.001, "lost_percent": 0.0}, "nothing"),
        ({"lost_us": 0.0, "lost_alone_us": 0.004}, "nothing"),
        ({"lost_us": 0.0, "lost_alone_us": 12.0}, ""),  # alone it would pay, but not beside the other advice
        (
            {"lost_us": 210.25, "lost_alone_us": 0.0, "lost_percent": 2.31, "pays_with": ("CL401",)},
            "210 us, 2.3 % of the convolutions, only together with CL401",
        ),
        (
            {"lost_us": 210.25, "lost_alone_us": 7.0, "lost_percent": 2.31, "pays_with": ("CL106", "CL401")},
            "210 us, 2.3 % of the convolutions, most of it only together with CL106 and CL401",
        ),
        (
            {"lost_us": 10.0, "lost_alone_us": 9.0, "pays_with": ("CL102",)},  # of several layers, some pay alone
            "10 us, part of it only together with CL102",
        ),
        ({"lost_us": 0.0, "lost_capacity_us": 12.5}, "no time, but 12.5 us paid for capacity that it does not use"),
        ({"lost_us": 0.0, "lost_capacity_us": 0.001}, "nothing"),
        ({"lost_capacity_us": 12.5}, "12.5 us paid for capacity that it does not use"),
        (
            {"lost_us": 0.0, "lost_alone_us": 3.0, "lost_capacity_us": 12.5},
            "12.5 us paid for capacity that it does not use",
        ),
        (
            {"lost_us": 48.0, "lost_percent": 0.53, "lost_capacity_us": 12.5},
            "48 us, 0.5 % of the convolutions; 12.5 us paid for capacity that it does not use",
        ),
    ],
)
def test_lost(prices: dict[str, Any], text: str) -> None:
    assert lost(priced(**prices)) == text


def test_names_of_rules_that_a_price_depends_on_are_cleaned() -> None:
    assert "\x1b" not in lost(priced(lost_us=1.0, pays_with=("X\x1b[31m",)))


@pytest.mark.parametrize(
    ("severity", "prices", "free"),
    [
        ("info", {"lost_us": 0.0}, True),
        ("info", {"lost_us": 0.0, "lost_alone_us": 0.0, "lost_capacity_us": 0.0}, True),
        ("info", {"lost_us": 0.004, "lost_alone_us": 0.004, "lost_capacity_us": 0.004}, True),
        ("info", {"lost_us": 0.006}, False),
        ("info", {"lost_us": 0.0, "lost_alone_us": 0.006}, False),
        ("info", {"lost_us": 0.0, "lost_capacity_us": 0.006}, False),
        ("info", {}, False),  # no price is no free one
        ("warning", {"lost_us": 0.0}, False),
        ("error", {"lost_us": 0.0}, False),
    ],
)
def test_what_costs_nothing(severity: str, prices: dict[str, Any], free: bool) -> None:
    assert costs_nothing(priced(severity=severity, **prices)) is free


def test_origin_names_the_document_in_words() -> None:
    assert origin(ALIGNMENT) == "NVIDIA Optimizing Convolutional Layers, 4.4.3 Channels In And Out"
    own = replace(ALIGNMENT, source=Source(document="our-gpu-notes", section="2"))
    assert origin(own) == "our gpu notes, 2"
    assert origin(replace(own, source=Source(document="our-gpu-notes", section=""))) == "our gpu notes"


@pytest.mark.parametrize(
    ("time_change_us", "text"),
    [(-210.25, "210 us faster"), (12.0, "12 us slower"), (0.0, "no change in time"), (None, "")],
)
def test_change(time_change_us: float | None, text: str) -> None:
    fix = Fix(describe="use C=64", safety="unsafe", set={}, time_change_us=time_change_us)
    assert change(fix) == text
    assert advice(fix) == "use C=64 (changes the network)" + (f", {text}" if text else "")


@pytest.mark.parametrize(
    ("time_change_us", "text"),
    [(-7.0, "alone 7 us faster"), (31.3, "alone 31.3 us slower"), (0.0, "alone no change in time"), (None, "")],
)
def test_a_fix_that_is_taken_with_others_says_what_it_changes_alone(time_change_us: float | None, text: str) -> None:
    fix = Fix(describe="use C=64", safety="safe", set={}, time_change_us=time_change_us, alone=True)
    assert change(fix) == text


def test_alternatives_say_what_each_changes() -> None:
    others = (
        Alternative(describe="K=512", set={"K": 512}, time_change_us=-42.0, work_change=-0.0154),
        Alternative(describe="K=576", set={"K": 576}, time_change_us=1500.0, work_change=0.108),
        Alternative(describe="N=54", set={"N": 54}, time_change_us=0.001, work_change=0.001),
        Alternative(describe="fewer groups", set={}),
    )
    assert alternatives(priced()) == ""
    assert alternatives(priced(alternatives=others)) == (
        "K=512 (42 us faster, work -2 %) or K=576 (1.5 ms slower, work +11 %) or N=54 (no change in time) "
        "or fewer groups"
    )
    assert said(priced(alternatives=others[:1]), several_targets=False).endswith(
        "\nOr: K=512 (42 us faster, work -2 %)"
    )


def test_what_an_unsafe_fix_changes() -> None:
    fix = Fix(describe="turn it off", safety="unsafe", set={}, changes="results")
    assert advice(fix) == "turn it off (may change results)"
    assert advice(replace(fix, changes="network")) == "turn it off (changes the network)"
    assert advice(replace(fix, safety="safe")) == "turn it off"


@pytest.mark.parametrize(
    ("message", "names", "expected"),
    [
        ("K=44 of Net.a: no", ("Net.a",), True),
        ("C=44/89 and K=44 of Net.a, K=44 of Net.b: no", ("Net.a", "Net.b"), True),
        ("K=44 of Net.a, K=44 of Net.b and 2 more: no", ("Net.a", "Net.b", "Net.c", "Net.d"), False),
        ("K=44 of Net.ab: no", ("Net.a",), False),
        ("K=44 of Net.a.b: no", ("Net.a",), False),
        ("no multiple of a", ("a",), False),
        ("K=44 is no multiple", (), False),
    ],
)
def test_a_message_that_names_its_layers(message: str, names: tuple[str, ...], expected: bool) -> None:
    layer, layers = (names[0], ()) if len(names) == 1 else (None, names)
    found = replace(finding(ALIGNMENT, message, Location(path="a"), layer or "x"), layer=layer, layers=layers, fix=None)
    assert named_in(found) is expected
    assert said(found, False) == (message if expected or layer is None else f"{layer}: {message}")
