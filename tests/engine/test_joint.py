"""One finding for each setting of the network and each group of channels."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from promised import promised
from small_networks import checked, layer, rulebook
from wirings import Wiring, mobilenet_v2, resnet50

from convlint.engine.results import NetworkResult
from convlint.report import Finding

BAD = (60, 124, 250, 500)


def advised(result: NetworkResult, code: str) -> list[Finding]:
    return [finding for finding in result.findings if finding.advised and finding.rule.code == code]


@pytest.mark.parametrize("gpu", ["v100", "a100"])
def test_a_setting_is_one_finding(gpu: str) -> None:
    network = resnet50(BAD, dtype="fp32", layout="NCHW")
    result, _ = promised(network, gpu)
    for code, sets in (("CL106", {"dtype": "fp16"}), ("CL401", {"layout": "NHWC"})):
        (finding,) = advised(result, code)
        assert finding.layer is None
        assert finding.layers == tuple(each.name for each in network.layers)
        assert finding.fix is not None
        assert finding.fix.set == sets
        assert len(finding.identities) == len(finding.layers)


def test_its_layers_are_all_that_change_and_its_words_count_them() -> None:
    network = mobilenet_v2(1.0, dtype="fp32", layout="NHWC")
    result, promise = promised(network, "a100", "inference")
    (finding,) = advised(result, "CL106")
    assert len(finding.layers) == len(promise.optimum.choices["dtype"].layers) == len(network.layers)
    assert f"in {len(finding.layers)} layers" in finding.message


def test_what_stands_once_another_is_mended_says_so() -> None:
    """On V100, fp32 in NCHW is right: NHWC is once 16 bits reach the Tensor Cores."""
    result, _ = promised(resnet50(BAD, dtype="fp32", layout="NCHW"), "v100")
    (layout,) = advised(result, "CL401")
    assert layout.message.startswith("once CL106 is mended, NCHW in ")
    widths = advised(result, "CL102")
    assert widths
    assert all(finding.message.startswith("once CL106 is mended, ") for finding in widths)


def test_a_group_is_one_finding_where_its_width_is_written() -> None:
    net = Wiring(C=64, N=32, size=56)
    network = net.network(net.conv(net.conv(net.image, 60, 3), 64, 3))
    result, _ = promised(network)
    (finding,) = advised(result, "CL102")
    assert (finding.layer, finding.layers) == ("conv0", ("conv0", "conv1"))
    assert finding.fix is not None
    assert finding.fix.by_layer == ({"K": 64}, {"C": 64})
    assert finding.fix.describe == "use K=64; C of conv1 with it"


def test_of_two_rules_on_one_setting_one_speaks() -> None:
    """Connected layers of different layouts: CL401 has the price, CL402 is told and loses nothing."""
    network = resnet50(BAD)
    layers = tuple(replace(each, layout="NCHW" if i % 5 == 2 else "NHWC") for i, each in enumerate(network.layers))
    result, _ = promised(replace(network, layers=layers))
    assert len(advised(result, "CL401")) == 1
    others = [finding for finding in result.findings if finding.rule.code == "CL402"]
    assert others
    assert {(finding.severity, finding.advised, finding.lost_us or 0.0) for finding in others} == {("info", False, 0.0)}


def test_a_setting_that_is_slower_has_no_fix(tmp_path: pytest.TempPathFactory) -> None:
    rules = rulebook(
        tmp_path,  # type: ignore[arg-type]
        {
            "check": 'dtype == "fp64"',
            "loss": "fix",
            "fix": "{ describe: d, safety: unsafe, set: { dtype: \"'fp64'\" } }",
        },
    )
    (finding,) = checked(rules, layer("a"), gpus="t4").findings
    assert (finding.severity, finding.advised, finding.fix) == ("info", False, None)
