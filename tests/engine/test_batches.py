"""Which batch is advised: one for the network, and only where an image then takes less time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest
from convolutions import A100, RUNTIME, conv

from convlint.engine.batches import Batches, sets_batch
from convlint.engine.hits import Flaw, Hit
from convlint.estimate import LayerEstimate, estimate_layer
from convlint.linting.one_input import Job
from convlint.linting.run import check_inputs
from convlint.model.layer import ConvLayer
from convlint.model.location import Location
from convlint.readers.inputs import file_input
from convlint.report import Report, Severity
from convlint.rulebook.book import load_rulebook

BUILTIN = load_rulebook()


def _report(spec: str, tmp_path: Path) -> Report:
    (tmp_path / "net.yaml").write_text(spec)
    return check_inputs([file_input(str(tmp_path / "net.yaml"))], BUILTIN, Job())


STAGE = """
version: 1
target: a100
defaults: { N: 8, dtype: fp16, layout: NHWC }
layers:
  - { name: a, C: 1024, H: 14, W: 14, K: 512, kernel_size: 1 }
  - { name: b, K: 512, kernel_size: 3, stride: 2, padding: 1 }
  - { name: c, K: 2048, kernel_size: 1 }
  - { name: d, K: 512, kernel_size: 1 }
"""


def test_batch_advice_is_given_once_and_pays(tmp_path: Path) -> None:
    """Layers want different batches, but a network has one: it is named where an image then takes less time."""
    found = [f for f in _report(STAGE, tmp_path).findings if f.rule.code == "CL301"]
    assert len(found) == 1
    assert found[0].severity == "warning"
    assert found[0].fix is not None
    N = int(found[0].fix.set["N"])
    assert 8 < N <= 16
    before, after = _report(STAGE, tmp_path).time_us, _report(STAGE.replace("N: 8", f"N: {N}"), tmp_path).time_us
    assert before is not None
    assert after is not None
    assert after / N < 0.95 * before / 8


def test_layers_of_another_batch_have_no_say(tmp_path: Path) -> None:
    """A spec may hold layers of several networks: each batch is weighed with the layers that share it."""
    alone = "version: 1\ntarget: a100\nmode: inference\nlayers:\n"
    common = "kernel_size: 3, padding: 1, dtype: fp16, layout: NHWC }\n"
    wave = f"  - {{ name: wave, N: 55, C: 4096, H: 16, W: 16, K: 256, {common}"
    big = f"  - {{ name: big, N: 256, C: 1024, H: 64, W: 64, K: 1024, {common}"
    for spec in (alone + wave, alone + wave + big):
        finding = next(f for f in _report(spec, tmp_path).findings if f.rule.code == "CL204")
        assert finding.fix is not None
        assert "N=54" in finding.fix.describe
        assert "N=108" in finding.fix.describe


RULE = load_rulebook().by_key["CL301"]


def settled(us_per_image: Mapping[int, float], *wanted: int, now: int = 60, kinds: int = 1) -> Hit:
    """Of a network that takes so long for an image at each batch, 100 us where nothing is said."""
    layers = [ConvLayer(name=f"l{number}", N=now) for number in range(kinds)]
    batches = Batches(layers, [None] * kinds, lambda _, N: us_per_image.get(N, 100.0) * N)
    flaw = Flaw(rule=RULE, case=RULE.cases[-1], places=(), message="")
    hit = Hit(
        flaw=flaw, indices=(0,), names=("l0",), location=Location(path="a"), message="", sets=({"N": wanted[0]},),
        other={}, severity="warning", batches=wanted,
    )  # fmt: skip
    return batches.settled(hit)


@pytest.mark.parametrize(
    ("us_per_image", "sets", "severity"),
    [
        (99.49, {"N": 72}, "info"),  # 0.51 % less time per image: worth the words, not a warning
        (99.51, {}, "info"),
        (95.01, {"N": 72}, "info"),
        (94.99, {"N": 72}, "warning"),
    ],
)
def test_what_a_batch_must_gain(us_per_image: float, sets: dict[str, int], severity: Severity) -> None:
    hit = settled({72: us_per_image}, 72)
    assert (hit.sets, hit.severity) == ((sets,), severity)
    assert hit.flaw.case == RULE.cases[-1]


@pytest.mark.parametrize(("best", "sets"), [(54, {"N": 54}), (53, {})])
def test_six_batches_are_tried_on_each_side(best: int, sets: dict[str, int]) -> None:
    assert settled({best: 50.0}, 59, 58, 57, 56, 55, 54, 53).sets == (sets,)


@pytest.mark.parametrize(("kinds", "N"), [(400, 64), (401, 65)])
def test_round_batches_are_tried_in_networks_of_few_kinds(kinds: int, N: int) -> None:
    assert settled({64: 40.0, 65: 50.0}, 65, kinds=kinds).sets == ({"N": N},)


@pytest.mark.parametrize(
    ("best", "sets"), [(71, {}), (72, {"N": 72}), (80, {"N": 80}), (88, {}), (96, {"N": 96}), (128, {"N": 128})]
)
def test_the_next_multiples_of_8_16_32_and_64_are_round(best: int, sets: dict[str, int]) -> None:
    assert settled({best: 50.0}, 140, now=70).sets == (sets,)


@pytest.mark.parametrize(
    ("now", "wanted", "sets"),
    [
        (60, 120, {"N": 120}), (60, 121, {}), (60, 30, {"N": 30}), (60, 29, {}), (61, 31, {"N": 31}), (61, 30, {}),
        (1, 50, {"N": 50}),  # one image is no batch
        (2, 5, {}),
        (60, 60, {}),
    ],
)  # fmt: skip
def test_more_than_twice_or_less_than_half_is_another_way_to_work(now: int, wanted: int, sets: dict[str, int]) -> None:
    assert settled({wanted: 50.0}, wanted, now=now).sets == (sets,)


@pytest.mark.parametrize(
    ("us_per_image", "sets", "other"),
    [
        ({50: 90.0, 66: 80.0}, {"N": 66}, {"N": 50}),  # the nearer one is set, the other is said
        ({50: 90.0, 72: 80.0}, {"N": 50}, {"N": 72}),
        ({50: 90.0, 72: 99.9}, {"N": 50}, {}),
        ({66: 90.0, 72: 90.0}, {"N": 72}, {}),  # of equals the larger
    ],
)
def test_one_batch_on_each_side(us_per_image: dict[int, float], sets: dict[str, int], other: dict[str, int]) -> None:
    hit = settled(us_per_image, 50, 66, 72)
    assert (hit.sets, hit.other) == ((sets,), other)


def test_a_fix_of_something_else_is_left_alone() -> None:
    batches = Batches([ConvLayer(name="a", N=60)], [None], lambda *_: pytest.fail("priced"))
    flaw = Flaw(rule=RULE, case=RULE.cases[-1], places=(), message="")
    hit = Hit(
        flaw=flaw, indices=(0,), names=("a",), location=Location(path="a"), message="", sets=({"C": 64},), other={},
        severity="warning",
    )  # fmt: skip
    assert batches.settled(hit) is hit
    assert not sets_batch(hit)
    assert sets_batch(hit._replace(sets=({"N": 64},)))
    assert not sets_batch(hit._replace(sets=({"N": 64, "C": 64},)))


def test_equal_layers_are_one_kind_and_each_batch_has_its_own() -> None:
    sizes = [60, 60, 60, 8, None]
    layers = [ConvLayer(name=f"l{index}", N=N) for index, N in enumerate(sizes)]
    one, two = (estimate_layer(conv(K=K), A100, RUNTIME, "training") for K in (64, 128))
    batches = Batches(layers, [one, two, one, one, one], lambda *_: 0.0)
    hit = settled({}, 60)
    assert batches.kinds(hit) == {0: 2, 1: 1}
    assert batches.kinds(hit._replace(indices=(3,))) == {0: 1}  # of another batch, but of the kind that came first
    assert batches.kinds(hit._replace(indices=(4,))) == {}


@pytest.mark.parametrize("kinds", [400, 401, 1000, 3456])
def test_a_sample_gains_what_the_whole_network_gains(kinds: int) -> None:
    """Long layers gain least from another batch: those alone would hide what the network gains."""
    now, better = 60, 64
    long_us = [1000.0 / (1 + number) for number in range(kinds)]
    gains = [0.0 if us > 10 else 0.2 for us in long_us]
    estimates = [
        LayerEstimate(
            passes={"fprop": SimpleNamespace()}, time_us=us * now, attainable_us=us, grade="A", basis="assumed"
        )  # type: ignore[dict-item]
        for us in long_us
    ]
    batches = Batches(
        [ConvLayer(name=f"l{number}", N=now) for number in range(kinds)], estimates,
        lambda index, N: N * long_us[index] * (1 - gains[index] if better == N else 1),
    )  # fmt: skip
    whole = sum(us * (1 - gain) for us, gain in zip(long_us, gains, strict=True)) / sum(long_us)
    present, then = batches._us_per_image(now, now), batches._us_per_image(now, better)
    assert present == pytest.approx(sum(long_us))
    assert then / present == pytest.approx(whole, abs=0.01)
