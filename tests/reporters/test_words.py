"""Words that reporters share: the last line, times and prices, notes on calibrations, dtypes and the host."""

import json
import re
from typing import Any

import pytest
from msgspec.structs import replace
from reports import ALIGNMENT, NETWORK, finding, full_report, layer_times, priced, total

from convlint.cli.streams.gate import harmless
from convlint.files.languages import duration
from convlint.model.estimates import OperationEstimate, StepEstimate
from convlint.model.layer import ConvLayer, Dtype
from convlint.model.location import Location
from convlint.model.network import Operation, Work
from convlint.model.report import Alternative, Fix, InputError, NetworkReport, NetworkTotal, Report, SkippedRule, Source
from convlint.reporters import Style, reporter
from convlint.reporters.ink import LINK_CLOSES, LINK_ENDS, LINK_OPENS
from convlint.reporters.summary import coverage
from convlint.reporters.words import (
    DOCS,
    MOST_STEPS,
    advice,
    alternatives,
    asks_for_nothing,
    batch_notes,
    binary,
    change,
    count,
    dtype_notes,
    finding_text,
    host_notes,
    layout_notes,
    lost,
    named_in,
    network_notes,
    origin,
    outcome,
    page_of,
    rule_page,
    shape,
    step_line,
    step_lines,
    step_notes,
    two_digits,
    verdict,
    verdicts,
    weak_notes,
)
from convlint.rulebook.book import load_rulebook

BUILT_IN = replace(ALIGNMENT, built_in=True)
PAGE = "https://convlint.github.io/convlint/rules/CL102.html"
OPENED = f"{LINK_OPENS}{PAGE}{LINK_ENDS}"


def reported(*, built_in: bool = True) -> Report:
    rule = BUILT_IN if built_in else ALIGNMENT
    return full_report(
        findings=(finding(rule, "C=62 is odd", Location(path="net.yaml", line=3), "stem"),),
        suppressed=(),
        rules=(rule,),
    )


def without_links(text: str) -> str:
    return re.sub("\x1b]8;;[^\x1b]*\x1b\\\\", "", text)


def test_rules_that_ship_have_a_page_and_others_none() -> None:
    assert page_of(BUILT_IN) == PAGE == DOCS + rule_page("CL102")
    assert page_of(ALIGNMENT) == ""
    assert DOCS.endswith("/")


def test_all_rules_that_ship_are_known_as_such() -> None:
    assert all(rule.info.built_in for rule in load_rulebook().rules)
    assert all(rule.info.built_in for rule in load_rulebook().of_source)


@pytest.mark.parametrize("name", ["text", "concise"])
@pytest.mark.parametrize("quiet", [False, True])
def test_codes_are_links_where_a_terminal_follows_them(name: str, quiet: bool) -> None:
    style = Style(color=True, links=True, quiet=quiet)
    shown = reporter(name)(reported(), style)
    assert shown.count(OPENED) == 1
    assert shown.count(LINK_OPENS) == 2 * shown.count(LINK_CLOSES) == 2
    assert re.search(re.escape(OPENED) + r"[^\n]*CL102[^\n]*" + re.escape(LINK_CLOSES), shown)
    assert without_links(shown) == reporter(name)(reported(), replace(style, links=False))
    assert harmless(shown, inks=True) == shown
    assert "\x1b" not in harmless(shown)


@pytest.mark.parametrize("name", ["text", "concise"])
def test_rules_of_ones_own_are_no_links(name: str) -> None:
    style = Style(color=True, links=True)
    assert LINK_OPENS not in reporter(name)(reported(built_in=False), style)


@pytest.mark.parametrize(
    "address", ["https://example.com/rules/CL102.html", f"{PAGE}#x", f"{PAGE}\x07", f"{DOCS}x", "x"]
)
def test_no_other_link_reaches_a_terminal(address: str) -> None:
    shown = harmless(f"{LINK_OPENS}{address}{LINK_ENDS}text{LINK_CLOSES}", inks=True)
    assert "\x1b" not in shown.replace(LINK_CLOSES, "")


@pytest.mark.parametrize(("built_in", "address"), [(True, PAGE), (False, "https://docs.nvidia.com/")])
def test_formats_for_machines_name_the_page(built_in: bool, address: str) -> None:
    report = reported(built_in=built_in)
    sarif = json.loads(reporter("sarif")(report, Style()))
    (rule,) = [each for each in sarif["runs"][0]["tool"]["driver"]["rules"] if each["id"] == "CL102"]
    assert rule["helpUri"].startswith(address)
    rdjson = json.loads(reporter("rdjson")(report, Style()))
    (code,) = [each["code"] for each in rdjson["diagnostics"] if "code" in each]
    assert code["url"].startswith(address)


def test_shapes() -> None:
    layer = ConvLayer(
        name="x", N=1, C=3, H=224, W=200, K=64, R=7, S=5, U=2, V=2, DilH=1, DilW=3, dtype=Dtype.fp16, layout="NHWC"
    )
    assert shape(layer, "x", "->") == "conv 7x5 stride 2 dilation 1x3, 3->64 channels, 224x200, fp16 NHWC"
    unknown = ConvLayer(name="x", op="conv_transpose", C=8, K=8, groups=8, R=3, S=3)
    assert shape(unknown, "×", "→") == "transposed conv 3×3, 8→8 channels, depthwise, ?×?"
    volume = ConvLayer(name="x", dims=3, C=8, K=8, groups=2, T=3, R=3, S=3, D=16, H=8, W=8)
    assert shape(volume, "×", "→") == "conv 3×3×3, 8→8 channels, 2 groups, 16×8×8"
    line = ConvLayer(name="x", dims=1, C=8, K=8, R=1, S=3, H=1, W=100, V=2)
    assert shape(line, "×", "→") == "conv 3 stride 2, 8→8 channels, 100"


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
        SkippedRule(code="CL102", layer="a", path="x", needs=("C",)),
        SkippedRule(code="CL103", layer="a", path="x", needs=("C",)),
        SkippedRule(code="CL103", layer="a", path="y", needs=("C",)),
        SkippedRule(code="CL501", layer=None, path="y", needs=("runtime.framework",)),
        SkippedRule(code="CL506", layer="b", path="y", needs=("bias", "norm_follows")),
        SkippedRule(code="CL507", layer="c", path="y", needs=("runtime.cudnn",)),
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
            "10 us, part of it only together with another CL102",
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
def test_what_asks_for_nothing(severity: str, prices: dict[str, Any], free: bool) -> None:
    assert asks_for_nothing(priced(severity=severity, **prices)) is free


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
    assert finding_text(priced(alternatives=others[:1]), several_targets=False).endswith(
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
    assert finding_text(found, False) == (message if expected or layer is None else f"{layer}: {message}")


STEP = layer_times(45_700.0, 38_000.0, 35_000.0)
PASS = layer_times(12_300.0, 12_300.0, 12_000.0)


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (total("a100", STEP), "45.7 ms of convolutions per training step, grade B; 38 ms with all of it"),
        (
            total("a100", layer_times(45_700.0, 45_699.0, 10_000.0)),
            "45.7 ms of convolutions per training step, grade F; 1 us less with all of it",
        ),
        (
            total("a100", PASS, "inference"),
            "12.3 ms of convolutions per forward pass, grade A; no fix of theirs is advised",
        ),
        (total("a100", None), ""),
    ],
)
def test_the_verdict(one: NetworkTotal, text: str) -> None:
    assert verdict(one) == text


def test_each_mode_and_each_target_has_its_own_verdict() -> None:
    both = (total("a100", STEP), total("a100", PASS, "inference"))
    report = full_report(total=both[0], totals=both)
    assert list(verdicts(report)) == [
        (both[0], "45.7 ms of convolutions per training step, grade B; 38 ms with all of it"),
        (both[1], "12.3 ms of convolutions per forward pass, grade A; its errors come first"),
    ]
    unknown = (both[0], total("a100", None, "inference"))
    assert [text for _, text in verdicts(replace(report, totals=unknown))] == [
        "45.7 ms of convolutions per training step, grade B; 38 ms with all of it",
        "time per forward pass unknown",
    ]
    assert [one.gpu for one, _ in verdicts(replace(report, totals=(both[0], total("t4", STEP))))] == ["a100", "t4"]
    assert list(verdicts(replace(report, total=None, totals=()))) == []
    assert list(verdicts(full_report(total=unknown[1], totals=unknown[1:]))) == []


def test_another_batch_is_no_fix_but_said() -> None:
    one = total("a100", PASS, "inference")
    finding = replace(priced(), gpu="a100", severity="warning", fix=Fix(describe="N=8", safety="unsafe", set={"N": 8}))
    said = "12.3 ms of convolutions per forward pass, grade A; no fix of theirs is advised"
    for found, text in ((finding, f"{said} but another batch"), (replace(finding, severity="info"), said)):
        report = full_report(total=one, totals=(one,), findings=(found,))
        assert list(verdicts(report)) == [(one, text)]


def test_another_batch_is_no_part_of_what_all_advice_makes() -> None:
    one = total("a100", STEP)
    batch = replace(priced(), gpu="a100", severity="warning", fix=Fix(describe="N=8", safety="unsafe", set={"N": 8}))
    report = full_report(total=one, totals=(one,), findings=(batch,))
    assert [text for _, text in verdicts(report)] == [
        "45.7 ms of convolutions per training step, grade B; 38 ms with all of it but another batch"
    ]


@pytest.mark.parametrize(
    ("after_us", "said"), [(38_000.0, ("38 ms", False)), (45_699.0, ("1 us", True)), (45_700.0, ("", False))]
)
def test_what_all_advice_makes_of_the_time(after_us: float, said: tuple[str, bool]) -> None:
    assert outcome(layer_times(45_700.0, after_us, 35_000.0)) == said


def report(*networks: NetworkReport, targets: tuple[str, ...] = ("a100",)) -> Report:
    return full_report(networks=networks, targets=targets)


def notes(*networks: NetworkReport, targets: tuple[str, ...] = ("a100",)) -> list[str]:
    return list(network_notes(report(*networks, targets=targets)))


def test_a_network_has_parameters_flops_memory_and_a_largest_batch() -> None:
    assert notes(NETWORK) == [
        "4.70 k parameters in convolutions, 236 MFLOPs (118 M multiply-adds) forward per image, 60.4 GFLOPs with N=256",
        "memory: 465 MiB of 40.0 GiB (activations 465 MiB, weights 9.19 KiB, gradients 9.19 KiB); room for N=22,530 at "
        "most, less what other layers keep",
    ]


def test_one_image_and_several_batches_have_one_figure() -> None:
    assert notes(replace(NETWORK, batch=1))[0].endswith("60.4 GFLOPs (30.2 G multiply-adds) forward per image")
    assert notes(replace(NETWORK, batch=None))[0].endswith("60.4 GFLOPs (30.2 G multiply-adds) forward")
    small = replace(NETWORK, batch=1, parameters=4, flops=128)
    assert notes(small)[0] == "4 parameters in convolutions, 128 FLOPs (64 multiply-adds) forward per image"


def test_what_is_unknown_is_said() -> None:
    bare = NetworkReport(path="a.yaml", gpu="a100", mode="training", memory_needs=("N", "dtype"))
    assert notes(bare) == ["unknown parameters, unknown FLOPs", "memory: unknown for want of N, dtype"]
    assert notes(replace(NETWORK, capacity_bytes=None, largest_batch=None))[1].endswith("; the GPU's own is unknown")
    several = notes(replace(NETWORK, batch=None, largest_batch=None))[1]
    assert several.endswith("gradients 9.19 KiB)")  # of several batches none is the largest
    assert notes(replace(NETWORK, largest_batch=0))[1].endswith("; not even one image fits")


def test_inputs_and_targets_are_named_where_there_are_several() -> None:
    both = replace(NETWORK, gpu="t4"), replace(NETWORK, path="b.yaml")
    found = notes(NETWORK, *both, targets=("a100", "t4"))
    assert [line.split(" parameters")[0] for line in found if "parameters" in line] == [
        "nets/spec.yaml: 4.70 k", "b.yaml: 4.70 k",
    ]  # fmt: skip
    assert [line.split(":")[0] for line in found if line.startswith("memory")] == [
        "memory of nets/spec.yaml on a100", "memory of nets/spec.yaml on t4", "memory of b.yaml on a100",
    ]  # fmt: skip


def test_times_that_the_host_sets_are_not_said_of_the_gpu() -> None:
    waiting = replace(NETWORK, host_us=8440.0, gpu_us=3060.0)
    one = replace(total("a100", layer_times(8440.0, 8440.0, 8440.0), "inference"), networks=(waiting,))
    at_pace = "8.44 ms of convolutions per forward pass at the pace of the host (GPU: 3.06 ms), grade A; "
    assert verdict(one) == f"{at_pace}no fix of theirs is advised"
    for other in (NETWORK, replace(waiting, step=StepEstimate(parts={}, host_us=8440.0))):
        assert "host" not in verdict(replace(one, networks=(other,)))
    both = full_report(targets=("a100", "t4"), networks=(waiting,), totals=(one, replace(one, gpu="t4")))
    assert reporter("text")(both, Style()).count("8.44 ms, host      A") == 2


def test_the_host_is_named_only_where_it_is_the_bound() -> None:
    slow = replace(NETWORK, host_us=6042.0, gpu_us=550.0)
    assert host_notes(report(NETWORK)) == []
    assert host_notes(report(replace(NETWORK, host_us=None))) == []
    assert host_notes(report(slow)) == [
        "times: at the pace of the host, which needs about 6.04 ms for the convolutions and what follows them; the GPU "
        "needs 550 us, and what fixes save shows on a host that keeps up"
    ]


def test_an_image_without_a_batch_is_said_to_be_one() -> None:
    assert batch_notes(report(NETWORK)) == []
    alone = replace(NETWORK, batch=1, unbatched="3x224x224")
    said = "an input of 3x224x224 states no N, and is priced as N = 1; write 64x3x224x224, say, for another"
    assert batch_notes(report(alone)) == batch_notes(report(alone, replace(alone, gpu="t4"))) == [f"batch: {said}"]
    assert batch_notes(report(replace(alone, path="b.yaml"), NETWORK)) == [f"batch of b.yaml: {said}"]


def test_a_dtype_that_is_only_that_of_stored_weights_is_said_to_be_so() -> None:
    whole = full_report()
    entry = next(entry for entry in whole.layers if any(entry.times.values()))
    stored = replace(entry, layer=replace(entry.layer, dtype=Dtype.fp32, dtype_source="storage"))
    for dtype, source in ((Dtype.fp32, "stated"), (Dtype.fp16, "storage")):
        other = replace(entry, layer=replace(entry.layer, dtype=dtype, dtype_source=source))
        assert dtype_notes(replace(whole, layers=(other,))) == []
    assert dtype_notes(replace(whole, layers=(replace(stored, times={}),))) == []
    assert dtype_notes(replace(whole, layers=(stored, stored))) == [
        "dtype: the weights of 2 layers are stored in fp32, and may run in another one: --dtype says in which"
    ]


def test_how_to_say_that_autocast_runs_a_module_is_said_where_it_would_save() -> None:
    whole = full_report()
    entry = next(entry for entry in whole.layers if any(entry.times.values()))
    built = replace(entry, layer=replace(entry.layer, dtype=Dtype.fp32, dtype_source="module"))
    fix = Fix(describe="fp16", safety="unsafe", set={"dtype": "fp16"}, time_change_us=-1500.0)
    known = replace(whole.findings[0], fix=fix, advised=False)
    (said,) = dtype_notes(replace(whole, layers=(built,), findings=(known,)))
    assert said.endswith("if it runs them, say --dtype fp16 --runtime mixed_precision=true")
    for other in (
        replace(known, advised=True),
        replace(known, fix=replace(fix, set={"K": 64})),
        replace(known, fix=None),
    ):
        assert dtype_notes(replace(whole, layers=(built,), findings=(other,))) == []


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 "), (999, "999 "), (1000, "1.00 k"), (23_454_912, "23.5 M"), (8.17e9, "8.17 G"), (2.09e12, "2.09 T")],
)
def test_counts_have_three_figures(value: float, text: str) -> None:
    assert count(value) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "0.98 KiB"), (1024, "1.00 KiB"), (40 * 2**30, "40.0 GiB"), (2**60, "1.00 EiB")],
)
def test_sizes_have_three_figures(size: int, text: str) -> None:
    assert binary(size) == text


# --- the whole step


def with_step(host_us: float | None = 50.0, unpriced: int = 0, **more: Any) -> NetworkReport:
    relu = Work(kind="activation", op="relu", reads=(8,), writes=8)
    odd = Work(kind="unknown", op="roi_align", reads=(8,), writes=8)
    operations = (Operation(kind="conv", layer=0), Operation(kind="identity", name="relu", work=relu),
                  Operation(kind="reshape", name="roi_align", work=odd))  # fmt: skip
    step = StepEstimate(
        parts={"convolution": 60.0, "normalisation": 30.0, "pointwise": 9.5, "copy": 0.5}, host_us=host_us,
        operations=(None, OperationEstimate("pointwise", 9.5, 32, 0, 1), None),
        unpriced=(2,) * unpriced, unpriced_share=0.5 if unpriced else 0.0,
    )  # fmt: skip
    return replace(NETWORK, step=step, operations=operations, **more)


def test_a_step_says_what_it_is_made_of() -> None:
    one = NetworkTotal(gpu="a100", mode="training", networks=(with_step(step_after_us=70.0),))
    assert step_line(one) == (
        "step 100 us (2,560,000 images/s), 70 us with all of it: convolutions 60 %, normalisation 30 %, pointwise 10 %"
    )
    idle = NetworkTotal(gpu="a100", mode="training", networks=(with_step(200.0, batch=None),))
    assert step_line(idle) == (
        "step 200 us: convolutions 30 %, normalisation 15 %, pointwise 5 %, waiting for the host 50 %"
    )
    assert step_lines(one) == [step_line(one)]
    assert step_line(NetworkTotal(gpu="a100", mode="training", networks=(NETWORK,))) == ""


def test_the_steps_of_several_networks_are_not_added() -> None:
    networks = replace(with_step(), path="fast.yaml"), replace(with_step(200.0), path="slow.yaml"), NETWORK
    several = NetworkTotal(gpu="a100", mode="training", networks=networks)
    assert [line.partition(" (")[0] for line in step_lines(several)] == [
        "slow.yaml: step 200 us",
        "fast.yaml: step 100 us",
    ]
    many = NetworkTotal(gpu="a100", mode="training", networks=(with_step(),) * (MOST_STEPS + 2))
    assert step_lines(many)[MOST_STEPS:] == ["and 2 more: --output json"]


def test_what_has_no_price_is_counted_and_named() -> None:
    report = full_report(networks=(with_step(unpriced=1),))
    assert step_notes(report) == ["step: 1 operation without a price, 50 % of what it moves: roi_align"]
    assert step_notes(full_report(networks=(with_step(),))) == []


def test_what_is_lost_of_the_step_is_said_beside_what_is_lost_of_the_convolutions() -> None:
    of_step = priced(lost_step_us=25.0, lost_step_percent=12.5)
    assert lost(of_step) == "25 us, 12 % of the step"
    assert lost(priced(lost_step_us=25.0)) == "25 us of the step"
    waiting = priced(lost_us=25.0, lost_percent=50.0, lost_step_us=0.0, lost_step_percent=0.0)
    assert lost(waiting) == "25 us, 50 % of the convolutions; nothing of the step"
    both = priced(lost_us=25.0, lost_alone_us=25.0, lost_percent=50.0, lost_step_percent=20.0)
    assert lost(both) == "25 us, 50 % of the convolutions, 20 % of the step"
    setting = replace(both, lost_step_us=60.0, lost_step_percent=48.0)
    assert lost(setting) == "25 us, 50 % of the convolutions; 60 us, 48 % of the step"


def test_where_the_model_is_weak_the_notes_say_how_far_off_it_is() -> None:
    report = full_report()
    first, *others = report.layers
    assert weak_notes(report) == []
    volume = replace(first, layer=replace(first.layer, D=8, T=3))
    assert weak_notes(replace(report, layers=(volume, *others))) == [
        "3-D convolutions: mostly predicted at 0.7 to 1.3 of measured times"
    ]
    turned = replace(first, layer=replace(first.layer, op="conv_transpose", groups=2, dtype=Dtype.fp32))
    assert len(weak_notes(replace(report, layers=(turned, volume)))) == 2
    unpriced = replace(volume, times={})
    assert weak_notes(replace(report, layers=(unpriced,))) == []


@pytest.mark.parametrize(("changes", "hidden"), [((5.0,), True), ((5.0, -3.0), False), ((None,), False), ((), False)])
def test_widths_that_all_take_longer_ask_for_nothing(changes: tuple[float | None, ...], hidden: bool) -> None:
    others = tuple(Alternative(describe="K=64", set={"K": 64}, time_change_us=us, work_change=0.3) for us in changes)
    one = priced(severity="info", lost_us=0.0, lost_capacity_us=12.0)
    one = replace(one, rule=replace(one.rule, loss="tile"), alternatives=others)
    assert asks_for_nothing(one) is hidden
    assert not asks_for_nothing(replace(one, severity="warning"))


@pytest.mark.parametrize(
    ("percent", "text"), [(0.123, "0.12"), (4.26, "4.3"), (99.4, "99"), (99.7, "100"), (100, "100")]
)
def test_a_share_is_no_power_of_ten(percent: float, text: str) -> None:
    assert two_digits(percent) == text


def test_networks_without_a_layout_are_named_where_others_have_one() -> None:
    def notes(*assumed: bool) -> list[str]:
        networks = tuple(
            replace(NETWORK, path=f"net{number}.yaml", layout_assumed=value) for number, value in enumerate(assumed)
        )
        return [note.partition(":")[0] for note in layout_notes(replace(full_report(), networks=networks))]

    assert notes(False) == []
    assert notes(True, True) == ["layout"]
    assert notes(False, True) == ["layout of net1.yaml"]
    assert notes(True, False, True, True) == ["layout of net0.yaml and 2 more"]


def test_keras_files_whose_framework_is_not_known_do_not_lack_a_layout() -> None:
    """They state one for each layer, which TensorFlow and JAX need not run."""

    def notes(*paths: str) -> list[str]:
        networks = tuple(replace(NETWORK, path=path, layout_assumed=True) for path in paths)
        return layout_notes(replace(full_report(), networks=networks))

    (note,) = notes("net.keras")
    assert note.startswith("layout: priced as NHWC, as TensorFlow and JAX choose")
    assert [note.partition(":")[0] for note in notes("net.keras", "net.onnx")] == [
        "layout of net.onnx", "layout of net.keras",
    ]  # fmt: skip
