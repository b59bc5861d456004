"""What the members of B earn: shares that are never negative, and add up."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from promised import promised
from random_networks import chain, tangle
from wirings import Wiring, resnet50, unet

from convlint.model.network import Network

BAD = (60, 124, 250, 500)
NETWORKS: dict[str, Callable[[], Network]] = {
    "resnet": partial(resnet50, BAD, dtype="fp32", layout="NCHW"),
    "unet": partial(unet, (*BAD, 1000)),
    **{f"chain {seed}": partial(chain, seed) for seed in range(4)},
    **{f"tangle {seed}": partial(tangle, seed) for seed in range(4)},
}


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("gpu", ["v100", "a100"])
def test_shares_add_up(name: str, gpu: str) -> None:
    result, promise = promised(NETWORKS[name](), gpu)
    deal = promise.settled.deal
    stakes = [*deal.settings.values(), *deal.levers.values()]
    assert all(stake.lost_us >= 0 and stake.advised for stake in stakes)
    assert sum(stake.lost_us for stake in stakes) == pytest.approx(deal.time_us - deal.after_us)
    lost = [finding.lost_us or 0.0 for finding in result.findings if finding.advised]
    assert sum(lost) == pytest.approx(deal.time_us - deal.after_us)


def test_what_pays_only_together_says_with_what() -> None:
    """On V100, sizes matter to the Tensor Cores alone, which fp32 does not reach."""
    result, _ = promised(resnet50(BAD, dtype="fp32", layout="NCHW"), "v100")
    widths = [finding for finding in result.findings if finding.rule.code == "CL102" and finding.advised]
    assert widths
    for finding in widths:
        assert finding.lost_alone_us is not None
        assert finding.lost_us is not None
        if finding.lost_alone_us < finding.lost_us / 2:
            assert "CL106" in finding.pays_with


def test_alone_is_what_a_fix_saves_by_itself() -> None:
    net = Wiring(C=64, N=32, size=56)
    result, promise = promised(net.network(net.conv(net.conv(net.image, 60, 3), 64, 3)))
    (finding,) = [each for each in result.findings if each.advised]
    deal = promise.settled.deal
    assert finding.lost_us == pytest.approx(deal.time_us - deal.after_us)
    assert finding.lost_alone_us == pytest.approx(finding.lost_us)
    assert finding.pays_with == ()
    assert finding.fix is not None
    assert finding.fix.time_change_us == pytest.approx(-(finding.lost_us or 0.0))
