"""What rules would change of a network, and what of that may play."""

from __future__ import annotations

import pytest
from promised import promised
from wirings import Wiring

from convlint.engine.hits import Flaw
from convlint.engine.levers import kind_of, may_play, takes_away
from convlint.model.layer import ConvLayer, Dtype, with_output
from convlint.report import Scalar
from convlint.rulebook.book import load_rulebook

BOOK = load_rulebook()
LAYER = with_output(
    ConvLayer(name="a", N=8, C=96, H=28, W=28, K=96, R=3, S=3, PadH=1, PadW=1, PadH_end=1, PadW_end=1, dtype=Dtype.fp16)
)


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        (("dtype",), "dtype"),
        (("runtime.tf32",), "dtype"),
        (("layout",), "layout"),
        (("runtime.cudnn_benchmark",), "runtime"),
        (("C",), None),
        (("copies_input",), None),
        (("dtype", "C"), None),
        ((), None),
    ],
)
def test_kinds_of_settings(fields: tuple[str, ...], kind: str | None) -> None:
    assert kind_of(fields) == kind


@pytest.mark.parametrize(
    ("changes", "less"),
    [
        ({"K": 128}, False),
        ({"K": 64}, True),
        ({"C": 64, "K": 256}, True),
        ({"groups": 2}, True),
        ({"U": 2, "V": 2}, True),
        ({"R": 1, "S": 1}, True),
        ({"DilH": 2, "DilW": 2}, True),  # fewer outputs
        ({"dtype": "fp8"}, False),
        ({"layout": "NHWC"}, False),
    ],
)
def test_what_takes_work_away(changes: dict[str, Scalar], less: bool) -> None:
    assert takes_away(changes, LAYER) is less


@pytest.mark.parametrize(
    ("code", "changes", "plays"),
    [
        ("CL102", {"K": 104}, True),
        ("CL102", {"K": 88}, False),  # takes work away
        ("CL201", {"K": 128}, False),  # capacity is evidence
        ("CL102", {"N": 16}, False),  # the batch is apart
        ("CL102", {}, False),
        ("CL107", {"dtype": "fp16"}, False),  # has no price
        ("CL401", {"layout": "NHWC"}, True),
    ],
)
def test_who_plays(code: str, changes: dict[str, Scalar], plays: bool) -> None:
    rule = BOOK.by_key[code]
    case = next(case for case in rule.cases if case.fix is not None and case.severity != "info")
    assert may_play(Flaw(rule=rule, case=case, places=(), message="m", set=changes), LAYER) is plays


def test_parts_of_a_concatenation_are_aligned_one_after_the_other() -> None:
    """Neither makes the whole a multiple of 8: once the first is, the other one shows."""
    net = Wiring(C=64, N=32, size=56)
    x = net.conv(net.image, 64, 3)
    one, two = net.conv(x, 60, 3), net.conv(x, 30, 3)
    _, promise = promised(net.network(net.conv(net.concat(one, two), 64, 1)))
    widths = {lever.width for lever in promise.optimum.levers.values()}
    assert widths == {64, 32}


def test_a_width_suits_groups_and_the_dtype_that_b_has() -> None:
    """108 channels in 6 groups: 112 does not divide, and 120 is what both take in 16 bits."""
    net = Wiring(C=464, N=32, size=28, dtype="fp32", layout="NCHW")
    x = net.conv(net.image, 108, 3)
    y = net.conv(x, 108, 3, groups=6)
    _, promise = promised(net.network(net.conv(net.add(x, y), 256, 1)), "v100", "inference")
    assert {lever.width for lever in promise.optimum.levers.values()} <= {120}


def test_what_cannot_change_does_not_play() -> None:
    """The network hands its channels out: somebody else counts on them."""
    net = Wiring(C=64, N=32, size=56)
    first = net.conv(net.image, 60, 3)
    network = net.network(first, net.conv(first, 64, 3))
    result, promise = promised(network)
    assert promise.optimum.levers == {}
    (finding,) = [each for each in result.findings if each.rule.code == "CL102"]
    assert (finding.severity, finding.advised) == ("info", False)
