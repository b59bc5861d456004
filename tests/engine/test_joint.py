"""Flaws of channels that layers share: one finding, one decision, one price over all layers that change."""

from __future__ import annotations

from collections import Counter

import pytest
from msgspec.structs import replace
from small_networks import checked
from wired_networks import wired_spec

from convlint.engine.changes import with_fix, with_settings
from convlint.engine.check import Target, check_network
from convlint.engine.results import NetworkResult
from convlint.estimate import time_us
from convlint.gpus.gpu import load_gpu
from convlint.model.channel_walk import channels_of
from convlint.model.network import Network
from convlint.readers.spec.reader import read_spec
from convlint.report import Finding, Scalar
from convlint.rulebook.book import load_rulebook

BUILTIN = load_rulebook()
SAME = 1e-6


def chain(*widths: int, between: str = "", **more: object) -> str:
    """An image and convolutions of these widths, one after the other."""
    extra = "".join(f", {name}: {value}" for name, value in more.items())
    lines = ["  - { name: image, op: input, C: 4, H: 56, W: 56 }\n"]
    for number, width in enumerate(widths):
        lines.append(f"  - {{ name: c{number}, K: {width}, kernel_size: 3, padding: 1{extra} }}\n")
        if between and number < len(widths) - 1:
            lines.append(f"  - {{ {between} }}\n")
    return "".join(lines)


TOP = "defaults: { N: 64, dtype: fp16, layout: NHWC }\n"


def of(result: NetworkResult, code: str) -> list[Finding]:
    return [finding for finding in result.findings if finding.rule.code == code]


def changes_of(result: NetworkResult) -> tuple[dict[str, dict[str, Scalar]], dict[str, Scalar]]:
    """What all advice sets, by layer, and of the runtime."""
    layers: dict[str, dict[str, Scalar]] = {}
    for finding in result.findings:
        if finding.advised and finding.fix is not None:
            names = finding.layers or (finding.layer or "",)
            for name, changes in zip(names, finding.fix.by_layer, strict=True):
                layers.setdefault(name, {}).update(changes)
    every = {name: value for changes in layers.values() for name, value in changes.items() if name.startswith("run")}
    return layers, every


def network_of(text: str) -> Network:
    network, errors = read_spec(text, "x.yaml")
    assert network is not None
    assert not errors
    return network


def test_a_number_that_two_layers_share_is_one_finding() -> None:
    (first, second) = of(checked(BUILTIN, chain(60, 124, 64), top=TOP), "CL102")
    assert (first.layer, first.layers, first.message) == (
        "c0", ("c0", "c1"), "K=60 should be a multiple of 8 for fp16",
    )  # fmt: skip
    assert first.fix is not None
    assert (first.fix.set, first.fix.by_layer) == ({"K": 64}, ({"K": 64}, {"C": 64}))
    assert first.fix.describe == "use K=64; C of c1 with it"
    assert (second.layer, second.layers) == ("c1", ("c1", "c2"))
    assert first.severity == second.severity == "warning"


def test_the_price_is_that_of_all_its_layers() -> None:
    result = checked(BUILTIN, chain(60, 64), top=TOP)
    (finding,) = of(result, "CL102")
    layers = [report.layer for report in result.layers]
    gpu, runtime = load_gpu("a100"), network_of("version: 1\n" + TOP + "layers:\n" + chain(60, 64)).runtime
    sides: list[dict[str, Scalar]] = [{"K": 64}, {"C": 64}]
    saved = 0.0
    for layer, changes in zip(layers, sides, strict=True):
        before = time_us(layer, gpu, runtime, "training")
        after = time_us(with_fix(layer, changes), gpu, runtime, "training")
        assert before is not None
        assert after is not None
        saved += before - after
    assert finding.lost_us == pytest.approx(saved, rel=SAME)
    assert finding.fix is not None
    assert finding.fix.time_change_us == pytest.approx(-saved, rel=SAME)


def test_sums_and_depthwise_layers_change_with_it() -> None:
    layers = (
        "  - { name: image, op: input, C: 4, H: 56, W: 56 }\n"
        "  - { name: a, K: 44, kernel_size: 3, padding: 1 }\n"
        "  - { name: dw, op: depthwise, C: 44, kernel_size: 3, padding: 1 }\n"
        "  - { name: b, K: 44, kernel_size: 1 }\n"
        "  - { name: s, op: add, inputs: [a, b] }\n"
        "  - { name: c, K: 64, kernel_size: 1 }\n"
    )
    (finding,) = of(checked(BUILTIN, layers, top=TOP), "CL102")
    assert finding.layers == ("a", "dw", "b", "c")
    assert finding.fix is not None
    assert finding.fix.by_layer == ({"K": 48}, {"C": 48, "K": 48, "groups": 48}, {"K": 48, "C": 48}, {"C": 48})
    assert finding.fix.describe == "use K=48; K of b and C of dw, b, c with it"


def test_parts_of_a_concatenation_are_named_so() -> None:
    layers = (
        "  - { name: image, op: input, C: 4, H: 56, W: 56 }\n"
        "  - { name: a, K: 60, kernel_size: 3, padding: 1 }\n"
        "  - { name: b, K: 64, kernel_size: 3, padding: 1 }\n"
        "  - { name: j, op: concat, inputs: [a, b] }\n"
        "  - { name: c, K: 64, kernel_size: 3, padding: 1 }\n"
    )
    finding = of(checked(BUILTIN, layers, top=TOP), "CL102")[0]
    assert finding.fix is not None
    assert finding.fix.by_layer == ({"K": 64}, {"C": 64}, {"C": 128})
    assert finding.fix.describe == "use K=64; C of b and part of C of c with it"


def test_what_cannot_change_says_why() -> None:
    layers = chain(60, 64, between="name: view, op: reshape, C: 60, H: 56, W: 56")
    (finding,) = [each for each in of(checked(BUILTIN, layers, top=TOP), "CL102") if each.layer == "c0"]
    assert finding.layers == ()  # nothing else is known to follow
    layers = chain(60, 64) + "  - { name: out, op: reshape, input: c0, C: 60, H: 56, W: 56 }\n"
    (finding,) = of(checked(BUILTIN, layers, top=TOP), "CL102")
    assert finding.fix is not None
    assert finding.fix.describe == "use K=64; C of c1 with it; but reshape out depends on it"


def test_groups_keep_the_width_divisible() -> None:
    layers = chain(60, 64) + "  - { name: g, input: c0, K: 66, groups: 6, kernel_size: 1 }\n"
    (finding,) = [each for each in of(checked(BUILTIN, layers, top=TOP), "CL102") if each.layer == "c0"]
    assert finding.fix is not None
    assert finding.fix.set["K"] == 66
    assert finding.fix.describe.startswith("use K=66;")


def test_a_silenced_layer_leaves_the_other_its_own_finding() -> None:
    text = "version: 1\n" + TOP + "layers:\n" + chain(60, 64)
    result = check_network(
        network_of(text), BUILTIN, [Target(label="a100", gpu=load_gpu("a100"))], "training",
        silences=lambda finding: finding.layer == "c0" and finding.rule.code == "CL102",
    )  # fmt: skip
    assert of(result, "CL102") == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(150))
def test_laws(seed: int) -> None:
    """Shares add up to what is saved and are never negative; what is advised, once made, has the promised time."""
    network = network_of(wired_spec(seed))
    gpu_name = ("a100", "h100", "rtx3090", "l4", "a100", "b200")[seed % 6]
    gpu, mode = load_gpu(gpu_name), network.mode or "training"
    result = check_network(network, BUILTIN, [Target(label="gpu", gpu=gpu)], mode)
    now_us, after_us = 0.0, 0.0
    for report in result.layers:
        times = report.times["gpu"]
        assert times is not None
        now_us, after_us = now_us + times.time_us, after_us + times.after_us
    assert sum(finding.lost_us or 0.0 for finding in result.findings) == pytest.approx(
        now_us - after_us, rel=SAME, abs=SAME * now_us
    )
    assert all(finding.lost_us is None or finding.lost_us >= 0 for finding in result.findings)

    changes, settings = changes_of(result)
    runtime = with_settings(network.runtime, settings)
    made = [with_fix(layer, changes.get(layer.name, {})) for layer in network.layers]
    times_us = [time_us(layer, gpu, runtime, mode) for layer in made]
    assert sum(each or 0.0 for each in times_us) == pytest.approx(after_us, rel=SAME)

    # whatever follows from one another has changed together
    channels = channels_of(network)
    widths = {group: made[layer].K or 0 for layer, group in channels.written.items()}
    whole = channels.widened(network, {group: width for group, width in widths.items() if width})
    for layer, consistent in zip(made, whole.layers, strict=True):
        if not layer.first:
            assert (layer.name, layer.C, layer.groups) == (layer.name, consistent.C, consistent.groups)

    of_groups = Counter(
        (finding.rule.code, channels.written.get(index))
        for finding in result.findings
        if finding.layer is not None and finding.fix is not None and finding.fix.set.keys() == {"K"}
        for index, layer in enumerate(network.layers)
        if layer.name == finding.layer and finding.severity != "info"
    )
    assert max(of_groups.values(), default=1) == 1
    assert replace(result, findings=()) is not None
