"""Findings by cause: what one change mends is one entry, whatever layers and targets it is found on."""

from typing import Any

import pytest
from msgspec.structs import replace
from reports import ALIGNMENT, AUTOTUNE, FEW_OUTPUTS, FIRST_LAYER, MISMATCH, finding, full_report, rendered

from convlint.model.estimates import StepEstimate
from convlint.model.location import Location
from convlint.model.report import Finding, Fix, Report
from convlint.reporters.causes import causes, ranked, saving

WIDER = Fix(describe="use K=64", safety="unsafe", set={"K": 64})


def spot(line: int) -> Location:
    return Location(path="nets/spec.yaml", line=line, column=1)


def narrow(layer: str, line: int, **more: Any) -> Finding:
    """K=60 of a layer."""
    values: dict[str, Any] = {"fix": WIDER, "lost_us": 10.0, "lost_percent": 1.0, "advised": True, "gpu": "a100"} | more
    return finding(ALIGNMENT, f"K=60 of {layer} should be a multiple of 8", spot(line), layer, **values)


def report(*findings: Finding, **changes: Any) -> Report:
    return full_report(findings=findings, errors=(), **changes)


def test_one_width_in_many_layers_is_one_cause() -> None:
    (cause,) = causes(report(narrow("conv_a", 5), narrow("conv_b", 6), narrow("conv_c", 7)))
    assert cause.layers == ("conv_a", "conv_b", "conv_c")
    assert (cause.saved_us("a100"), cause.share("a100")) == (30.0, 3.0)
    assert cause.where == "nets/spec.yaml:5:1, :6:1 and 1 more"
    assert cause.what == "K=60 of conv_a should be a multiple of 8"


@pytest.mark.parametrize(
    "other",
    [
        {"fix": replace(WIDER, describe="use K=32")},
        {"rule": FIRST_LAYER},
    ],
)
def test_another_change_or_rule_is_another_cause(other: dict[str, Any]) -> None:
    assert len(causes(report(narrow("conv_a", 5), replace(narrow("conv_b", 6), **other)))) == 2


def test_one_change_in_several_files_is_one_cause_but_steps_and_forward_passes_stay_apart() -> None:
    networks = full_report().networks
    served = replace(networks[0], path="nets/served.yaml", mode="inference")
    trained = replace(networks[0], path="nets/other.yaml")
    places = [Location(path=path, line=5) for path in ("nets/other.yaml", "nets/served.yaml")]
    found = [narrow("conv_a", 5), *(replace(narrow("conv_a", 5), location=place) for place in places)]
    assert [len(one.findings) for one in causes(report(*found, networks=(*networks, served, trained)))] == [2, 1]


@pytest.mark.parametrize(
    ("others", "words"),
    [
        ("{name}", "NHWC for the neighbouring layer too"),
        ("{name}, {name} and {name}", "NHWC for the neighbouring layers too"),
    ],
)
def test_a_fix_that_names_other_layers_names_none(others: str, words: str) -> None:
    names = ("conv_a", "conv_b")
    fixes = [replace(WIDER, describe=f"NHWC for {others.format(name=name)} too") for name in names]
    (cause,) = causes(report(*(narrow(name, 5, fix=fix) for name, fix in zip(names, fixes, strict=True))))
    assert cause.change == f"{words} (changes the network)"


def test_the_same_on_several_targets_is_one_cause_with_a_price_for_each() -> None:
    found = report(
        narrow("conv_a", 5), narrow("conv_a", 5, gpu="t4", lost_us=40.0, lost_percent=None), targets=("a100", "t4")
    )
    (cause,) = causes(found)
    assert [saving(cause, gpu, with_share=True) for gpu in ("a100", "t4", "h100")] == ["10 us, 1 %", "40 us", ""]


def test_layers_whose_names_hold_each_other_are_told_apart() -> None:
    fixes = [replace(WIDER, describe=f"NHWC for {name} too") for name in ("net.a", "net.a.b", "a")]
    layers = zip(("net.a", "net.a.b", "a"), fixes, strict=True)
    (cause,) = causes(report(*(narrow(name, 5, fix=fix) for name, fix in layers)))
    assert cause.layers == ("net.a", "net.a.b", "a")


def test_messages_that_differ_give_way_to_the_title() -> None:
    found = [replace(narrow(name, 5), message=f"K={K} of {name}") for name, K in (("a", 60), ("b", 61))]
    (cause,) = causes(report(*found))
    assert cause.what == ALIGNMENT.title


@pytest.mark.parametrize("beside", [{}, {"lost_us": 300.0, "lost_percent": 40.0}])
def test_what_the_step_loses_is_the_price_where_that_is_known(beside: dict[str, float]) -> None:
    fix = Fix(describe="x", safety="safe", set={})
    one = finding(AUTOTUNE, "eager", spot(1), lost_step_us=500.0, lost_step_percent=19.0, fix=fix, **beside)
    (cause,) = causes(report(one))
    assert saving(cause, "a100", with_share=True) == "500 us, 19 %"


@pytest.mark.parametrize(
    ("gpu_us", "host_us", "saved"), [(1000.0, 100.0, 50.0), (1000.0, 980.0, 20.0), (900.0, 1000.0, 0.0)]
)
def test_less_work_for_the_gpu_saves_no_more_than_the_hosts_pace_lets_it(
    gpu_us: float, host_us: float, saved: float
) -> None:
    fix = Fix(describe="x", safety="safe", set={})
    one = finding(AUTOTUNE, "slow", spot(1), lost_us=50.0, lost_step_percent=5.0, fix=fix)
    made = report(one)
    network = made.networks[0]
    step = StepEstimate(parts={"convolution": gpu_us}, host_us=host_us)
    stepped = replace(network, step=step, step_after_us=step.time_us)
    assert made.total is not None
    made = replace(made, networks=(stepped,), total=replace(made.total, networks=(stepped,)))
    (cause,) = causes(made)
    assert cause.saved_us("a100") == pytest.approx(saved)
    assert cause.share("a100") == pytest.approx(5.0 * saved / 50.0)


def test_errors_then_what_saves_most_then_the_rest() -> None:
    several = [
        narrow(str(n), n, fix=replace(WIDER, describe=f"use K={n}"), lost_us=9.0 * n, lost_percent=float(n))
        for n in range(1, 8)
    ]
    free = finding(FEW_OUTPUTS, "few", spot(9), "x", lost_us=0.0)
    rest = [finding(AUTOTUNE, "off", spot(2)), finding(MISMATCH, "P", spot(3), "y")]
    info = finding(FEW_OUTPUTS, "tiles", spot(9), "z", lost_us=5.0, lost_percent=0.5)
    found = ranked(report(*several, *rest, free, info))
    assert [cause.rule.code for cause in found.errors] == ["CL001"]
    assert [cause.share("a100") for cause in found.first] == [7, 6, 5, 4, 3]
    assert [cause.share("a100") for cause in found.others] == [2, 1, None]
    assert [cause.first.layer for cause in found.infos] == ["z"]


@pytest.mark.parametrize(
    ("change_us", "loss", "said"), [(-100.0, "none", True), (-1.0, "none", False), (-100.0, "tile", False)]
)
def test_an_info_that_saves_much_is_said_though_it_is_in_no_total(change_us: float, loss: str, said: bool) -> None:
    fix = Fix(describe="use bias=False", safety="unsafe", set={"bias": False}, time_change_us=change_us, advised=False)
    info = finding(replace(FEW_OUTPUTS, loss=loss), "the bias is cancelled", spot(9), "z", fix=fix, gpu="a100")
    found = report(info)
    assert [cause.first.layer for cause in ranked(found).beside] == ["z"] * said
    text = rendered("text", found)
    assert ("also, not in the total" in text) == said
    words = "the bias is cancelled; use bias=False (changes the network), 100 us faster"
    assert (words in " ".join(text.split())) == said


def test_annotations_are_one_for_each_cause() -> None:
    text = rendered("github", report(narrow("conv_a", 5), narrow("conv_b", 6), narrow("conv_c", 7)))
    (line,) = [line for line in text.split("\n") if line.startswith("::warning")]
    assert line.endswith("%0AAlso: conv_b at nets/spec.yaml:6:1, conv_c at nets/spec.yaml:7:1")


def test_markdown_begins_with_what_to_do_first() -> None:
    text = rendered("markdown", report(narrow("conv_a", 5), narrow("conv_b", 6)))
    wanted = (
        "**Do first**: **1** use K=64 (changes the network); saves 20 us "
        "(CL102, <code>nets/spec.yaml&#58;5&#58;1, &#58;6&#58;1</code>)"
    )
    assert wanted in text
    assert text.index(wanted) < text.index("| | place |")
    assert "**Do first**" not in rendered("markdown", report())
