"""What findings promise, held against timings of their layers before and after the fix."""

from math import sqrt

import pytest
from measured import predicted_us, row_of
from read_specs import network

from convlint.engine.check import Target
from convlint.estimate import estimate_layer
from convlint.gpus.gpu import load_gpu
from convlint.measuring.rows import TimingRow
from convlint.measuring.trial import (
    Compared,
    Part,
    TimePlan,
    Trial,
    TrialResult,
    agreement,
    chosen,
    compared,
    outcome,
    plan_of,
)
from convlint.measuring.workload import Workload
from convlint.model.layer import Mode
from convlint.reporters.measurements import promise
from convlint.rulebook.book import load_rulebook

BUILTIN = load_rulebook()
A100 = Target(label="a100", gpu=load_gpu("a100"))
TOP = "version: 1\nruntime: { framework: pytorch }\ndefaults: { N: 64, dtype: fp16, layout: NHWC }\nlayers:\n"
WIRED = """\
  - { name: image, op: input, C: 4, H: 56, W: 56 }
  - { name: a, K: 60, kernel_size: 3, padding: 1 }
  - { name: b, K: 128, kernel_size: 3, padding: 1 }
"""


def wants(layers: str, top: str = TOP, mode: Mode = "training") -> TimePlan:
    return plan_of(network(top + layers), BUILTIN, A100, mode)


def trial_of(found: TimePlan, code: str) -> Trial:
    return next(trial for trial in found.trials if trial.finding.rule.code == code)


def rows(found: TimePlan, factor: float = 1.0, spread: float = 0.001) -> dict[Workload, TimingRow]:
    """Timings as predicted, but for a factor."""
    return {work: row_of(work, factor * predicted_us(work), spread) for work in found.workloads()}


def held(found: TrialResult | None) -> str:
    return found.held


def test_a_width_is_tried_in_all_layers_that_have_it() -> None:
    found = wants(WIRED)
    trial = trial_of(found, "CL102")
    before = {(part.layer, part.which): part.options[0] for part in trial.before}
    after = {(part.layer, part.which): part.options[0] for part in trial.after}
    assert {place[0] for place in before} == {0, 1}
    assert {(work.C, work.K) for (layer, _), work in after.items() if layer == 0} == {(4, 64)}
    assert {(work.C, work.K) for (layer, _), work in after.items() if layer == 1} == {(64, 128)}
    assert before.keys() == after.keys()
    assert (0, "dgrad") not in before  # the first layer


def test_what_is_measured_as_predicted_holds_whatever_the_machine_is_slower_by() -> None:
    found = wants(WIRED)
    for factor in (0.5, 1.0, 3.0):
        some = rows(found, factor)
        for trial in found.trials:
            one = outcome(trial, some)
            assert one.held == ("held" if one.before_us - one.after_us > one.noise_us else "too close to tell")
            assert one.after_us / one.before_us - 1 == pytest.approx(trial.promised, abs=1e-6)


def test_a_layout_is_tried_in_the_whole_network_and_a_batch_per_image() -> None:
    found = wants(WIRED.replace("60", "64"), TOP.replace("NHWC", "NCHW").replace("N: 64", "N: 2"))
    layout, batch = trial_of(found, "CL401"), trial_of(found, "CL301")
    assert {part.options[0].layout for part in layout.after} == {"NHWC"}
    assert len(layout.after) == len(layout.before) == 5
    (N,) = {part.options[0].N for part in batch.after}
    assert N > 2
    assert {part.times for part in batch.after} == {2 / N}
    assert {part.times for part in batch.before} == {1.0}
    some = rows(found)
    says = {trial.finding.rule.code: promise(outcome(trial, some)) for trial in (layout, batch)}
    assert says["CL301"].endswith(" for as many images")
    assert not says["CL401"].endswith("images")


def test_a_batch_that_one_layer_speaks_for_is_the_whole_networks() -> None:
    layers = WIRED.replace("60", "64") + "  - { name: tail, K: 2048, kernel_size: 1 }\n"
    found = wants(layers, TOP.replace("N: 64", "N: 2"))
    batches = [trial for trial in found.trials if "N" in (trial.finding.fix.set if trial.finding.fix else {})]
    assert len(batches) > 0
    for trial in batches:
        assert {part.layer for part in trial.before} == {part.layer for part in trial.after} == {0, 1, 2}
        assert -1 < trial.promised < 0


def test_a_setting_without_a_price_is_tried_and_holds_where_it_is_faster() -> None:
    top = TOP.replace("pytorch }", "pytorch, cudnn_benchmark: false, fixed_input_size: true }")
    found = wants(WIRED.replace("60", "64"), top)
    trial = trial_of(found, "CL501")
    assert trial.promised is None
    assert [part.options[0].benchmark for part in trial.before] == [False] * len(trial.before)
    assert [part.options[0].benchmark for part in trial.after] == [True] * len(trial.before)
    for factor, expected in ((0.9, "held"), (1.0, "too close to tell"), (1.1, "not held")):
        some = {work: row_of(work, 100.0 * (factor if work.benchmark else 1.0)) for work in found.workloads()}
        assert held(outcome(trial, some)) == expected


def verdict(promised_us: float | None, saved_us: float, spread: float = 0.0, each_us: float = 1000.0) -> str:
    """Of one layer of one pass that takes `each_us`; one timing is uncertain by 3 %, two of them by 42 us of 1000."""
    found = wants(WIRED)
    trial = trial_of(found, "CL102")
    before, after = trial.before[0], trial.after[0]
    promised = None if promised_us is None else -promised_us / each_us
    one = Trial(finding=trial.finding, promised=promised, before=(before,), after=(after,))
    some = {before.options[0]: row_of(before.options[0], each_us, spread),
            after.options[0]: row_of(after.options[0], each_us - saved_us, spread)}  # fmt: skip
    return held(outcome(one, some))


@pytest.mark.parametrize(
    ("promised_us", "saved_us", "expected"),
    [
        (200, 200, "held"), (200, 110, "held"), (200, 90, "too close to tell"), (400, 100, "in part"),
        (200, 20, "not held"), (200, 0, "not held"), (200, -100, "not held"), (30, 20, "too close to tell"),
        (30, -100, "not held"), (100, 30, "too close to tell"), (60, 60, "held"),
        (None, 100, "held"), (None, 20, "too close to tell"), (None, -20, "too close to tell"),
        (None, -100, "not held"),
    ],
)  # fmt: skip
def test_advice_holds_by_what_is_saved_and_how_sure_that_is(
    promised_us: float | None, saved_us: float, expected: str
) -> None:
    assert verdict(promised_us, saved_us) == expected


def test_what_spreads_widely_decides_less() -> None:
    assert verdict(200, 200, spread=0.6) == "too close to tell"
    assert verdict(200, 0, spread=0.6) == "too close to tell"
    assert verdict(200, 200, spread=0.1) == "held"


def test_equal_layers_are_one_timing_and_what_stays_cancels() -> None:
    found = wants(WIRED)
    trial = trial_of(found, "CL102")
    before, after = trial.before[0], trial.after[0]
    some = {before.options[0]: row_of(before.options[0], 100.0), after.options[0]: row_of(after.options[0], 80.0)}

    def noise_us(of: tuple[Part, ...], become: tuple[Part, ...]) -> float:
        one = outcome(Trial(finding=trial.finding, promised=-0.2, before=of, after=become), some)
        return one.noise_us

    once = noise_us((before,), (after,))
    assert once == pytest.approx(0.03 * (100**2 + 80**2) ** 0.5)
    assert noise_us((before,) * 16, (after,) * 16) == pytest.approx(16 * once)
    assert noise_us((before._replace(times=16.0),), (after._replace(times=16.0),)) == pytest.approx(16 * once)
    assert noise_us((before, before), (before, after)) == pytest.approx(once)


def test_a_trial_that_lacks_a_timing_has_no_outcome() -> None:
    found = wants(WIRED)
    some = rows(found)
    trial = trial_of(found, "CL102")
    del some[trial.after[-1].options[0]]
    assert outcome(trial, some) is None


def test_of_an_open_layout_the_faster_order_counts() -> None:
    found = wants(WIRED, TOP.replace("pytorch", "tensorrt"), "inference")
    part = found.parts[0]
    assert [option.layout for option in part.options] == ["NCHW", "NHWC"]
    slow, fast = part.options
    assert chosen(part, {slow: row_of(slow, 9.0), fast: row_of(fast, 4.0)}) == row_of(fast, 4.0)
    assert chosen(part, {slow: row_of(slow, 9.0)}) is None


def test_a_batch_is_that_of_the_layers_which_have_the_same() -> None:
    roi = "  - { name: roi, N: 1000, C: 64, H: 7, W: 7, K: 64, kernel_size: 3, padding: 1 }\n"
    found = wants(WIRED.replace("60", "64") + roi, TOP.replace("N: 64", "N: 2"))
    trials = [trial for trial in found.trials if "N" in (trial.finding.fix.set if trial.finding.fix else {})]
    assert trials
    for trial in trials:
        assert {part.layer for part in trial.before} in ({0, 1}, {2})
        assert len({part.options[0].N for part in trial.after}) == 1


def test_what_promises_nothing_is_not_tried() -> None:
    found = wants(WIRED)
    assert found.findings >= len(found.trials) > 0
    assert all((trial.finding.fix.time_change_us or 0) < 0 for trial in found.trials if trial.finding.fix is not None)
    promised = [trial.finding.fix.time_change_us for trial in found.trials if trial.finding.fix is not None]
    assert promised == sorted(promised)  # type: ignore[type-var]


SPEC = """\
version: 1
defaults: { N: 8, dtype: fp16, layout: NHWC, kernel_size: 3, padding: 1 }
layers:
  - { name: a, C: 64, H: 32, W: 32, K: 64, first: false }
"""


def pair(predicted: float | None, measured: float | None) -> Compared:
    return Compared(layer="a", which="fprop", predicted_us=predicted, measured_us=measured)


def test_each_pass_has_its_prediction_its_timing_or_the_reason_for_none() -> None:
    found = plan_of(network(SPEC), load_rulebook(), A100, "training")
    fprop, dgrad, wgrad = (part.options[0] for part in found.parts)
    some = compared(["a"], found.parts, found.estimates, {fprop: row_of(fprop, 40.0, 0.03, 12)}, {dgrad: "no kernel"})
    estimate = found.estimates[0]
    assert [(one.layer, one.which) for one in some] == [("a", "fprop"), ("a", "dgrad"), ("a", "wgrad")]
    assert [one.predicted_us for one in some] == [each.time_us for each in estimate.passes.values()]
    assert [(one.measured_us, one.spread, one.runs, one.reason) for one in some] == [
        (40.0, 0.03, 12, ""), (None, 0.0, 0, "no kernel"), (None, 0.0, 0, ""),
    ]  # fmt: skip
    assert some[0].ratio == pytest.approx(estimate.passes["fprop"].time_us / 40.0)
    assert some[1].ratio is None
    assert wgrad not in {fprop, dgrad}


def test_a_bias_is_told_apart_from_what_is_left_of_the_error() -> None:
    found = agreement([pair(200.0, 100.0), pair(400.0, 100.0), pair(200 * sqrt(2), 100.0), pair(None, 1.0)])
    assert (found.count, found.bias) == (3, pytest.approx(2 * sqrt(2)))
    assert found.error == pytest.approx(2 * sqrt(2) - 1)
    assert found.error_unbiased == pytest.approx(1 - 1 / sqrt(2))


def test_without_a_pair_there_is_no_agreement() -> None:
    assert agreement([pair(None, 1.0), pair(2.0, None)]) is None


WANTED_SPEC = """\
version: 1
runtime: { framework: pytorch }
defaults: { N: 8, dtype: fp16, layout: NHWC, kernel_size: 3, padding: 1 }
layers:
  - { name: stem, C: 3, H: 32, W: 32, K: 64 }
  - { name: a, K: 64 }
  - { name: again, K: 64 }
"""
OPEN = WANTED_SPEC.replace("C: 3, H: 32, W: 32, K: 64", "C: 3, K: 64").replace(
    "name: a,", "name: a, C: 64, H: 32, W: 32,"
)


def wanted_of_spec(spec: str) -> TimePlan:
    return plan_of(network(spec), load_rulebook(), A100, "training")


def test_every_pass_of_every_layer_and_equal_ones_once() -> None:
    found = wanted_of_spec(WANTED_SPEC)
    passes = [(part.layer, part.which) for part in found.parts]
    assert passes[:5] == [(0, "fprop"), (0, "wgrad"), (1, "fprop"), (1, "dgrad"), (1, "wgrad")]
    assert len(passes) == 8
    options = {(part.layer, part.which): part.options for part in found.parts}
    assert options[1, "fprop"] == options[2, "fprop"]
    assert len({work for part in found.parts for work in part.options}) == 5


def test_what_the_network_runs_is_timed_before_what_fixes_make_of_it() -> None:
    found = wanted_of_spec(WANTED_SPEC.replace("K: 64", "K: 60"))
    order = list(found.workloads())
    own = [option for part in found.parts for option in part.options]
    assert order[: len(own)] == own
    assert len(found.trials) > 0
    assert len(set(order)) > len(set(own))


def test_layers_of_unknown_size_are_named_and_the_others_timed() -> None:
    found = wanted_of_spec(OPEN)
    assert dict(found.untimed) == {0: "H and W are not known"}
    assert {part.layer for part in found.parts} == {1, 2}


def test_estimates_are_those_of_the_layers_without_a_host() -> None:
    found, net = wanted_of_spec(WANTED_SPEC), network(WANTED_SPEC)
    expected = [estimate_layer(layer, A100.gpu, net.runtime, "training") for layer in net.layers]
    assert list(found.estimates) == expected


def test_a_bias_is_timed_nowhere_so_that_no_prediction_has_it() -> None:
    biased = WANTED_SPEC.replace("K: 64", "K: 64, bias: true")
    assert biased != WANTED_SPEC
    assert wanted_of_spec(biased).estimates == wanted_of_spec(WANTED_SPEC).estimates
