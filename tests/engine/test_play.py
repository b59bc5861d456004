"""What comes to light once other flaws are mended, how it is said, and what gives way to it."""

from __future__ import annotations

from small_networks import checked

from convlint.engine.results import NetworkResult
from convlint.rulebook.book import load_rulebook

BUILTIN = load_rulebook()
SIZES = "N: 32, C: 57, H: 56, W: 56, K: 57, kernel_size: 3, padding: 1"


def found(layers: str, top: str = "", gpus: str = "a100") -> NetworkResult:
    return checked(BUILTIN, layers, top=top, gpus=gpus)


def test_what_comes_to_light_says_what_has_to_be_mended_first() -> None:
    """On CUDA cores nothing is wrong with 57 channels, nor with NCHW; on Tensor Cores both are."""
    result = found(f"  - {{ name: a, {SIZES}, dtype: fp32, layout: NCHW }}\n", gpus="v100")
    advised = {finding.rule.code: finding.message for finding in result.findings if finding.advised}
    assert set(advised) == {"CL106", "CL102", "CL401"}
    assert advised["CL102"] == "once CL106 is mended, C=57 and K=57 should be multiples of 8 for fp16"
    assert advised["CL401"].startswith("once CL106 is mended, NCHW")


def test_a_finding_gives_way_to_what_it_becomes() -> None:
    """57 is no multiple of 4, as TF32 wants it; in 16 bits it is none of 8, and that is said, once."""
    result = found(f"  - {{ name: a, {SIZES}, dtype: fp32, layout: NHWC }}\n")
    widths = [finding for finding in result.findings if finding.rule.code == "CL102"]
    assert [(finding.advised, dict(finding.fix.set) if finding.fix else {}) for finding in widths] == [
        (True, {"C": 64, "K": 64})
    ]


def test_layers_that_share_what_comes_to_light_share_its_finding() -> None:
    layers = "".join(f"  - {{ name: l{n}, {SIZES}, dtype: fp32, layout: NCHW }}\n" for n in range(3))
    (finding,) = [f for f in found(layers, gpus="v100").findings if f.rule.code == "CL401"]
    assert finding.layers == ("l0", "l1", "l2")
    assert (
        finding.message == "once CL106 is mended, NCHW in 3 layers: the library transposes tensors for the Tensor Cores"
    )
