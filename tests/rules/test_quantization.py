"""Family 2, quantization: messages, fixes and missing facts for sizes that leave tiles partly empty."""

from typing import Any

import pytest
from rule_outcomes import SILENT, findings, outcome

from convlint.model.report import Finding
from convlint.rulebook.book import load_rulebook

MAP = "H: 16, W: 16, R: 3, S: 3, padding: 1, dtype: fp16"
SMALL = "H: 7, W: 7, R: 3, S: 3, padding: 1, dtype: fp16"
TAIL = ", so that the last tiles are partly empty"


OF_C = ", so that the last tiles of dgrad and wgrad are partly empty"
LARGE = "N: 256, H: 28, W: 28, R: 3, S: 3, padding: 1, dtype: fp16, layout: NHWC"


@pytest.mark.parametrize(
    ("layer", "mode", "severity", "message", "new"),
    [
        # what it costs a layer of unknown size is not known
        ("C: 96, K: 160", "training", "info", "C=96 and K=160 are not multiples of 64" + TAIL, {"C": 128, "K": 192}),
        ("C: 96, K: 160", "inference", "info", "K=160 is not a multiple of 64" + TAIL, {"K": 192}),
        ("C: 64, K: 160", "training", "info", "K=160 is not a multiple of 64" + TAIL, {"K": 192}),
        ("C: 96, K: 128", "training", "info", "C=96 is not a multiple of 64" + OF_C, {"C": 128}),
        (
            f"C: 64, K: 64, N: 32, {SMALL}", "training", "info",
            "N=32 is not a multiple of 64, and N·P·Q=1568 is not one either", {"N": 64},
        ),
        # a little less saves much more than the work that goes: an alternative, as it takes capacity away
        (f"C: 512, K: 520, {LARGE}", "training", "info", "K=520 is not a multiple of 64" + TAIL, {"K": 512}),
        (f"C: 512, K: 264, {LARGE}", "inference", "info", "K=264 is not a multiple of 64" + TAIL, {"K": 256}),
        (f"C: 136, K: 256, {LARGE}", "training", "info", "C=136 is not a multiple of 64" + OF_C, {"C": 128}),
        # more channels for a little more time: free capacity, and not a loss
        (f"C: 96, K: 160, {LARGE}", "inference", "info", "K=160 is not a multiple of 64" + TAIL, {"K": 192}),
        (f"C: 64, K: 160, {LARGE}", "training", "info", "K=160 is not a multiple of 64" + TAIL, {"K": 192}),
        (f"C: 96, K: 128, {LARGE}", "training", "info", "C=96 is not a multiple of 64" + OF_C, {"C": 128}),
    ],
)  # fmt: skip
def test_multiple_of_64(layer: str, mode: str, severity: str, message: str, new: dict[str, int]) -> None:
    (finding,) = findings("CL201", f"{{ {layer} }}", mode=mode)
    assert (finding.severity, finding.message) == (severity, message)
    assert new in [finding.fix.set, *(other.set for other in finding.alternatives)]


@pytest.mark.parametrize(
    ("layer", "expected"),
    [
        (f"C: 64, K: 64, N: 64, {SMALL}", SILENT),
        (f"C: 64, K: 64, N: 33, {MAP}", SILENT),  # 16 x 16 positions alone are a multiple of 64
        ("C: 64, K: 64, N: 33", SILENT),  # whether N·P·Q is one is not known, and only a reminder
        ("C: 65, K: 64, N: 33, R: 3, S: 3", "info"),
        ("C: 65, K: 64, N: 33, H: 56, W: 56, R: 3, S: 3, padding: 1, dtype: fp16, layout: NHWC", "info"),
        # what is wrong is known, and yet what would mend the layer is not
        (f"K: 160, N: 64, {MAP}", ("C",)),
        (f"C: 64, N: 64, {MAP}", ("K",)),
    ],
)
def test_multiple_of_64_speaks_of_what_is_known(layer: str, expected: object) -> None:
    assert outcome("CL201", f"{{ {layer} }}") == expected


@pytest.mark.parametrize(
    ("positions", "step"), [(1, 64), (49, 64), (2, 32), (196, 16), (6 * 4, 8), (48, 4), (7 * 32, 2)]
)
def test_the_step_of_N_is_what_the_positions_lack_of_64(positions: int, step: int) -> None:
    rule = load_rulebook().find("CL201")
    values: dict[str, Any] = {"training": True, "first": False, "no_dgrad": False, "has_output": True, "N": 33}
    values |= {"C": 64, "K": 64}
    values["NPQ"] = 33 * positions
    for name, expr in rule.decision.let:
        values[name] = expr.evaluate(values)
    assert values["bad_N"] is True
    assert values["step"] == step
    assert step == next(N for N in range(1, 65) if N * positions % 64 == 0)


def names(finding: Finding) -> tuple[str | None, ...]:
    """Whom it is about; what asks for another batch is said of the network."""
    return finding.layers or (finding.layer,)


@pytest.mark.parametrize(
    ("layer", "severity", "message", "new"),
    [
        (
            "N: 256, C: 1024, H: 32, W: 32, K: 72", "info",
            "fprop: only 56 % of its 2,048 tiles of 128x128 is useful work", {"K": 64},
        ),
        (
            "N: 256, C: 256, H: 28, W: 28, K: 136", "info",
            "fprop: only 71 % of its 2,352 tiles of 256x64 is useful work", {"K": 128},
        ),
        # nothing below one tile of the narrowest, and twice the channels take a little longer
        (
            "N: 64, C: 128, H: 28, W: 28, K: 32", "info",
            "fprop: only 50 % of its 196 tiles of 256x64 is useful work", {"K": 64},
        ),
        (
            "N: 1, C: 512, H: 9, W: 9, K: 512", "info",
            "fprop: only 63 % of its 96 tiles of 64x64 is useful work", {"N": 8},
        ),
    ],
)  # fmt: skip
def test_tile_quantization(layer: str, severity: str, message: str, new: dict[str, int]) -> None:
    gpu = "a100" if new == {"N": 8} else "v100"  # which has no tiles of 32 columns
    first = f"{{ name: a, {layer}, R: 3, S: 3, padding: 1, dtype: fp16, layout: NHWC }}"
    last = "{ name: last, K: 8, R: 1, S: 1, dtype: fp16 }"
    (finding,) = (
        item for item in findings("CL203", f"{first}, {last}", gpu=gpu, mode="inference") if "a" in names(item)
    )
    assert (finding.severity, finding.message) == (severity, message)
    assert new in [finding.fix.set, *(other.set for other in finding.alternatives)]


@pytest.mark.parametrize("gpu", ["t4", "v100"])
@pytest.mark.parametrize(("K", "new"), [(72, 64), (136, 128)])
def test_tile_quantization_names_fewer_channels_that_save_time(K: int, new: int, gpu: str) -> None:
    (finding,) = findings("CL203", f"{{ C: 512, K: {K}, {LARGE} }}", gpu=gpu, mode="inference")
    assert finding.severity == "info"
    assert not finding.fix.advised
    saving = {other.set["K"] for other in finding.alternatives if other.time_change_us and other.time_change_us < 0}
    assert saving == {new}


@pytest.mark.parametrize("gpu", ["k80", "t4", "v100", "a100", "h100"])
@pytest.mark.parametrize(
    ("layer", "silent_on"),
    [
        # DenseNet's growth, behind its bottleneck; tiles of 32 came with Ampere
        ("N: 64, C: 128, H: 28, W: 28, K: 32", ("k80", "a100", "h100")),
        # VGG's stem
        ("N: 64, C: 3, H: 224, W: 224, K: 64, first: true", ("k80", "t4", "v100", "a100", "h100")),
        ("N: 64, C: 64, H: 224, W: 224, K: 64", ("k80", "t4", "v100", "a100", "h100")),
    ],
)
def test_tile_quantization_warns_of_nothing_that_widening_does_not_speed_up(
    layer: str, silent_on: tuple[str, ...], gpu: str
) -> None:
    text = f"{{ {layer}, R: 3, S: 3, padding: 1, dtype: fp16, layout: NHWC }}"
    assert outcome("CL203", text, gpu=gpu, mode="inference") == (SILENT if gpu in silent_on else "info")
