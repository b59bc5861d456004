"""Family 0, geometry: impossible sizes, and sizes that waste computation."""

from typing import Any

import pytest
from read_specs import only
from rule_outcomes import SILENT, findings, outcome, rows

from convlint.engine.hits import with_fix
from convlint.model.layer import with_output

MAP = "N: 1, C: 8, K: 8, dtype: fp32"


OF_LAYER: dict[str, list[tuple[Any, ...]]] = {
    "CL001": [
        ("H: 56, W: 56, R: 3, S: 3, padding: 1, P: 55, Q: 56", "error"),
        ("H: 56, W: 56, R: 3, S: 3, padding: 1, Q: 55", "error"),
        ("H: 57, W: 57, R: 3, S: 3, stride: 2, P: 28, Q: 28", SILENT),
        ("H: 58, W: 58, R: 3, S: 3, stride: 2, P: 28, Q: 28", SILENT),
        ("H: 59, W: 59, R: 3, S: 3, stride: 2, P: 28, Q: 28", "error"),
        ("H: 9, W: 9, R: 3, S: 3, dilation: 2, P: 5, Q: 5", SILENT),
        ("H: 9, W: 9, R: 3, S: 3, dilation: 3, P: 3, Q: 3", SILENT),
        ("W: 9, S: 3, dims: 1, Q: 6", "error"),
        ("op: conv_transpose, H: 7, W: 7, R: 3, S: 3, stride: 2, padding: 1, P: 13, Q: 13", SILENT),
        ("op: conv_transpose, H: 7, W: 7, R: 3, S: 3, stride: 2, padding: 1, P: 14, Q: 14", "error"),
        ("op: conv_transpose, H: 7, W: 7, R: 3, S: 3, stride: 2, padding: 1, output_padding: 1, P: 14, Q: 14", SILENT),
        ("R: 3, S: 3, P: 56, Q: 56", ("H", "W")),
        ("R: 3, S: 3", SILENT),
    ],
    "CL003": [
        # effective filter of a 3x3: 5 with dilation 2, 7 with dilation 3
        ("H: 4, W: 5, R: 3, S: 3, dilation: 2", "error"),
        ("H: 7, W: 6, R: 3, S: 3, dilation: 3", "error"),
        ("H: 1, W: 1, R: 7, S: 7, padding: 3", SILENT),
        ("H: 1, W: 1, R: 7, S: 7, padding: 2", "error"),
        ("D: 1, H: 8, W: 8, T: 3, R: 3, S: 3", "error"),
        ("H: 2, W: 2, R: 2, S: 2, stride: 100", SILENT),
        ("op: conv_transpose, H: 1, W: 1, R: 7, S: 7", SILENT),
        ("R: 3, S: 3", ("H", "W")),
    ],
    "CL004": [
        ("H: 56, W: 56, R: 3, S: 3, stride: 3", SILENT),
        ("H: 56, W: 56, R: 3, S: 3, stride: 4", "warning"),
        ("H: 56, W: 56, R: 3, S: 3, stride: 4, dilation: 2", SILENT),
        ("H: 56, W: 56, R: 1, S: 1", SILENT),
        ("H: 56, W: 56, R: 1, S: 3, stride: [1, 2]", SILENT),
        ("H: 56, W: 56, R: 1, S: 3, stride: [2, 1]", "warning"),
        ("H: 1, W: 56, R: 1, S: 1, stride: [2, 1]", SILENT),
        ("H: 2, W: 2, R: 1, S: 1, stride: 2", SILENT),
        ("W: 64, S: 1, dims: 1, stride: 2", "info"),
        ("op: conv_transpose, H: 7, W: 7, R: 1, S: 1, stride: 2", SILENT),
        ("R: 1, S: 1, stride: 2", ("H", "W")),
        ("R: 3, S: 3, stride: 2", SILENT),
    ],
    "CL005": [
        # DeepLabV3's rates: on 33x33 all but the last see something, on 16x16 only those below 16 do
        *((f"H: 33, W: 33, R: 3, S: 3, dilation: {rate}, padding: {rate}", verdict)
          for rate, verdict in ((12, SILENT), (24, SILENT), (32, SILENT), (33, "warning"), (36, "warning"))),
        *((f"H: 16, W: 16, R: 3, S: 3, dilation: {rate}, padding: {rate}", verdict)
          for rate, verdict in ((6, SILENT), (12, SILENT), (15, SILENT), (16, "warning"), (24, "warning"))),
        ("H: 1, W: 8, R: 3, S: 3, padding: 1", "warning"),
        ("H: 1, W: 8, R: 1, S: 3, padding: [0, 1]", SILENT),
        ("H: 7, W: 7, R: 3, S: 3, dilation: 3", SILENT),
        # with stride the last window starts further in
        ("H: 14, W: 14, R: 3, S: 3, dilation: 8, padding: 8, stride: 2", SILENT),
        ("H: 14, W: 14, R: 3, S: 3, dilation: 13, padding: 13, stride: 2", "warning"),
        # the filter does not fit at all: another rule's business
        ("H: 2, W: 2, R: 9, S: 9, padding: 1", SILENT),
        ("R: 3, S: 3, padding: 1", ("H", "W")),
        ("R: 3, S: 3", SILENT),
    ],
    "CL006": [
        ("H: 32, W: 32, R: 3, S: 3, padding: 5, dilation: 2", "warning"),
        ("H: 32, W: 32, R: 3, S: 3, padding: [0, 3, 0, 0]", "warning"),
        ("H: 32, W: 32, R: 3, S: 3, padding: same", SILENT),
        # known without the size of the input
        ("R: 1, S: 1, padding: 1", "warning"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(("code", "layer", "expected"), rows(OF_LAYER))
def test_which_layers_are_wrong(code: str, layer: str, expected: object) -> None:
    assert outcome(code, f"{{ {layer} }}") == expected


def test_output_mismatch_points_at_the_wrong_number_and_names_the_right_one() -> None:
    (finding,) = findings("CL001", "{ H: 56, W: 56, R: 3, S: 3, P: 54, Q: 55 }")
    assert (finding.location.line, finding.location.column) == (4, 43)
    assert "P=54, Q=54" in finding.fix.describe


TWO = "{ name: a, C: 3, H: 32, W: 32, K: 64, kernel_size: 3 }, "


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        (TWO + "{ name: b, K: 8, kernel_size: 1 }", SILENT),
        (TWO + "{ name: b, C: 64, K: 8, kernel_size: 1 }", SILENT),
        (TWO + "{ name: b, C: 3, K: 8, kernel_size: 1 }", "error"),
        (TWO + "{ name: b, input: a, C: 64, H: 30, W: 30, K: 8, kernel_size: 1 }", SILENT),
        (TWO + "{ name: b, input: a, C: 64, H: 30, W: 32, K: 8, kernel_size: 1 }", "error"),
        # C, H and W all given and no input: it stands alone
        (TWO + "{ name: b, C: 3, H: 32, W: 32, K: 8, kernel_size: 1 }", SILENT),
        ("{ C: 64, K: 64, groups: 64 }", SILENT),
        ("{ C: 64, K: 96, groups: 32 }", SILENT),
        ("{ C: 64, K: 100, groups: 32 }", "error"),
        ("{ C: 48, K: 64, groups: 32 }", "error"),
        ("{ K: 64, H: 1, W: 1, groups: 32 }", ("C",)),
        ("{ K: 63, groups: 32 }", "error"),
        ("{ K: 64 }", SILENT),
        # what is known to be wrong is said although other sizes are unknown
        ("{ name: a, C: 3, K: 64, kernel_size: 3 }, { name: b, C: 3, K: 8, kernel_size: 1 }", "error"),
        ("{ name: a, C: 3, K: 64, kernel_size: 3 }, { name: b, K: 8, kernel_size: 1 }",
         ("H", "W", "arriving.H", "arriving.W")),
    ],
)  # fmt: skip
def test_channel_mismatch(layers: str, expected: object) -> None:
    assert outcome("CL002", layers) == expected


def test_channel_mismatch_names_what_arrives_from_whom() -> None:
    (finding,) = findings("CL002", TWO + "{ name: b, C: 32, K: 8, kernel_size: 1 }")
    assert finding.message == "C=32, but a delivers 64 channels"
    assert finding.fix.set == {"C": 64}
    # what arrives cannot be rounded up here
    (finding,) = findings("CL002", TWO + "{ name: b, K: 9, kernel_size: 1, groups: 3 }")
    assert finding.fix.set == {}


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("taps", [2, 3, 5])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 16])
@pytest.mark.parametrize("dilation", [1, 2, 5, 12, 24])
def test_dead_taps_fix_keeps_the_output_and_mends_it(size: int, taps: int, dilation: int, stride: int) -> None:
    extent = dilation * (taps - 1) + 1
    sizes = f"H: {size}, W: 16, R: {taps}, S: 1, dilation: [{dilation}, 1], stride: [{stride}, 1]"
    layer = f"{{ name: x, {MAP}, {sizes}, padding: [{extent // 2}, 0] }}"
    found = findings("CL005", layer)
    before = with_output(only(f"version: 1\nlayers: [ {layer} ]\n"))
    live = [
        tap for tap in range(taps)
        if (before.P - 1) * stride + tap * dilation - extent // 2 >= 0 and tap * dilation - extent // 2 < size
    ]  # fmt: skip
    assert bool(found) == (len(live) < taps)
    if found and not live:
        assert found[0].message.startswith("no tap of this filter reads input")
    elif found:
        fix = found[0].fix
        after = with_fix(before, fix.set)
        assert (after.P, after.Q) == (before.P, before.Q)
        assert found[0].message.startswith(f"{taps - len(live)} of the {taps} taps")
        pads = f"padding: [{after.PadH}, {after.PadH_end}, 0, 0]"
        mended = f"H: {size}, W: 16, R: {after.R}, S: 1, dilation: [{after.DilH}, 1], stride: [{stride}, 1], {pads}"
        assert not findings("CL005", f"{{ name: x, {MAP}, {mended} }}")
