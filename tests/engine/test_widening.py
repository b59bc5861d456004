"""A group is widened where that saves time over all of its layers together."""

from __future__ import annotations

from itertools import product

import pytest
from small_networks import checked
from wired_networks import wired_spec

from convlint.engine.check import Target, check_network
from convlint.estimate import time_us
from convlint.gpus.gpu import load_gpu
from convlint.model.channel_walk import channels_of
from convlint.readers.spec.reader import read_spec
from convlint.rulebook.book import load_rulebook

BUILTIN = load_rulebook()


def test_what_costs_the_others_more_than_it_saves_is_not_advised() -> None:
    """One small layer would gain; ten large depthwise ones behind it would only carry more channels."""
    layers = (
        "  - { name: image, op: input, C: 64, H: 112, W: 112 }\n  - { name: a, K: 42, kernel_size: 1 }\n"
        + "".join(f"  - {{ name: d{n}, op: depthwise, C: 42, kernel_size: 7, padding: 3 }}\n" for n in range(10))
        + "  - { name: b, K: 64, kernel_size: 1 }\n"
    )
    result = checked(BUILTIN, layers, top="defaults: { N: 64, dtype: fp16, layout: NHWC }\n")
    found = [finding for finding in result.findings if finding.rule.code == "CL102"]
    assert [(finding.severity, finding.advised, finding.lost_us) for finding in found] == [("info", False, 0.0)]
    assert found[0].fix is not None
    assert (found[0].fix.time_change_us or 0.0) > 0
    few = checked(BUILTIN, layers.replace("op: depthwise, C: 42,", "K: 42,"), top=TOP)
    assert any(finding.advised for finding in few.findings if finding.rule.code == "CL102")


TOP = "defaults: { N: 64, dtype: fp16, layout: NHWC }\n"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_no_other_choice_of_the_same_widths_is_much_faster(seed: int) -> None:
    """All combinations of the widths that are asked for, with nothing else in play."""
    text = wired_spec(seed, layers=6).replace("NCHW", "NHWC").replace("fp32", "fp16")
    network, _ = read_spec(text, "x.yaml")
    assert network is not None
    gpu, mode, codes = load_gpu("a100"), network.mode or "training", ("CL102",)
    result = check_network(network, BUILTIN, [Target(label="gpu", gpu=gpu)], mode, codes=codes)
    after_us = sum(times.after_us for report in result.layers if (times := report.times["gpu"]) is not None)
    channels = channels_of(network)
    asked = {}
    for group, entry in enumerate(channels.groups):
        wide = -(-entry.width // 8) * 8
        if wide != entry.width and entry.writers and entry.readers and wide % entry.multiple_of == 0:
            asked[group] = wide
    best = float("inf")
    for choice in product((False, True), repeat=len(asked)):
        widths = {group: width for (group, width), taken in zip(asked.items(), choice, strict=True) if taken}
        changed = channels.widened(network, widths).layers
        best = min(best, sum(time_us(layer, gpu, network.runtime, mode) or 0.0 for layer in changed))
    assert after_us <= best * 1.02
