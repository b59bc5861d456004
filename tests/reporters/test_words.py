"""The last line, times, prices and the one-line description of a layer."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from reports import ALIGNMENT, full_report

from convlint.model.layer import ConvLayer, Dtype
from convlint.report import Fix, InputError, Skipped, Source
from convlint.reporters.words import advice, change, coverage, duration, lost, origin, shape


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


def test_lost() -> None:
    finding = full_report().findings[0]
    assert lost(finding) == "210 us, 2.3 % of the network"
    assert lost(replace(finding, lost_percent=23.4)) == "210 us, 23 % of the network"
    assert lost(replace(finding, lost_percent=0.04)) == "210 us, 0.04 % of the network"
    assert lost(replace(finding, lost_percent=None)) == "210 us"
    assert lost(replace(finding, lost_us=None)) == ""
    assert lost(replace(finding, lost_us=0.001)) == "nothing"


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
