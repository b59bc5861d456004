"""What findings promise, held against timings of their layers before and after the fix."""

from __future__ import annotations

import pytest
from measured import predicted_us, row_of

from convlint.engine.check import Target
from convlint.gpus.gpu import load_gpu
from convlint.measuring.rows import Row
from convlint.measuring.trial import Outcome, Trial, measured, outcome
from convlint.measuring.wanted import Wanted, wanted
from convlint.measuring.workload import Workload
from convlint.model.layer import Mode
from convlint.readers.spec.reader import read_spec
from convlint.rulebook.book import load_rulebook

BUILTIN = load_rulebook()
A100 = Target(label="a100", gpu=load_gpu("a100"))
TOP = "version: 1\nruntime: { framework: pytorch }\ndefaults: { N: 64, dtype: fp16, layout: NHWC }\nlayers:\n"
WIRED = """\
  - { name: image, op: input, C: 4, H: 56, W: 56 }
  - { name: a, K: 60, kernel_size: 3, padding: 1 }
  - { name: b, K: 128, kernel_size: 3, padding: 1 }
"""


def wants(layers: str, top: str = TOP, mode: Mode = "training") -> Wanted:
    network, errors = read_spec(top + layers, "net.yaml")
    assert network is not None
    assert not errors
    return wanted(network, BUILTIN, A100, mode)


def trial_of(found: Wanted, code: str) -> Trial:
    return next(trial for trial in found.trials if trial.finding.rule.code == code)


def rows(found: Wanted, factor: float = 1.0, spread: float = 0.001) -> dict[Workload, Row]:
    """Timings as predicted, but for a factor."""
    return {work: row_of(work, factor * predicted_us(work), spread) for work in found.workloads()}


def held(found: Outcome | None) -> str:
    assert found is not None
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
            assert held(one) == "held"
            assert one is not None
            assert one.after.us / one.before.us - 1 == pytest.approx(trial.promised, abs=1e-6)


def test_a_layout_is_tried_in_the_whole_network_and_a_batch_per_image() -> None:
    found = wants(WIRED.replace("60", "64"), TOP.replace("NHWC", "NCHW").replace("N: 64", "N: 2"))
    layout, batch = trial_of(found, "CL401"), trial_of(found, "CL301")
    assert {part.options[0].layout for part in layout.after} == {"NHWC"}
    assert len(layout.after) == len(layout.before) == 5
    (N,) = {part.options[0].N for part in batch.after}
    assert N > 2
    assert {part.times for part in batch.after} == {2 / N}
    assert {part.times for part in batch.before} == {1.0}


def test_a_batch_that_one_layer_speaks_for_is_the_whole_networks() -> None:
    layers = WIRED.replace("60", "64") + "  - { name: tail, K: 2048, kernel_size: 1 }\n"
    found = wants(layers, TOP.replace("N: 64", "N: 2"))
    batches = [trial for trial in found.trials if "N" in (trial.finding.fix.set if trial.finding.fix else {})]
    assert len(batches) > 0
    for trial in batches:
        assert {part.layer for part in trial.before} == {part.layer for part in trial.after} == {0, 1, 2}
        assert trial.promised is not None
        assert -1 < trial.promised < 0


def test_a_setting_without_a_price_is_tried_and_holds_where_it_is_faster() -> None:
    top = TOP.replace("pytorch }", "pytorch, cudnn_benchmark: false, fixed_input_size: true }")
    found = wants(WIRED.replace("60", "64"), top)
    trial = trial_of(found, "CL501")
    assert trial.promised is None
    assert [part.options[0].benchmark for part in trial.before] == [False] * len(trial.before)
    assert [part.options[0].benchmark for part in trial.after] == [True] * len(trial.before)
    for factor, verdict in ((0.9, "held"), (1.0, "too close to tell"), (1.1, "not held")):
        some = {work: row_of(work, 100.0 * (factor if work.benchmark else 1.0), 0.01) for work in found.workloads()}
        assert held(outcome(trial, some)) == verdict


def test_no_gain_is_not_held_and_half_of_it_is() -> None:
    found = wants(WIRED)
    trial, some = trial_of(found, "CL102"), rows(found)
    after = {option for part in trial.after for option in part.options}
    before_us = measured(trial.before, some)
    assert before_us is not None

    def with_gain(share: float, spread: float = 0.001) -> dict[Workload, Row]:
        """Timings in which the fix saves that share of what it promises."""
        wanted_us = before_us.us * (1 + share * trial.promised)
        now = measured(trial.after, some)
        assert now is not None
        return {
            work: row_of(work, row.timing.us * (wanted_us / now.us if work in after else 1.0), spread)
            for work, row in some.items()
        }

    verdicts = [held(outcome(trial, with_gain(share))) for share in (1.4, 0.6, 0.4, 0.0, -0.5)]
    assert verdicts == ["held", "held", "in part", "not held", "not held"]
    assert held(outcome(trial, with_gain(0.5, spread=4.0))) == "too close to tell"
    assert held(outcome(trial, with_gain(-9.0, spread=0.5))) == "not held"


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
    assert measured([part], {slow: row_of(slow, 9.0), fast: row_of(fast, 4.0)}) == (4.0, 0.0)
    assert measured([part], {slow: row_of(slow, 9.0)}) is None


def test_shared_layers_count_as_often_as_they_run() -> None:
    found = wants(WIRED)
    part = found.parts[0]._replace(times=3.0)
    assert measured([part], rows(found))[0] == pytest.approx(3 * predicted_us(part.options[0]))  # type: ignore[index]


def test_what_promises_nothing_is_not_tried() -> None:
    found = wants(WIRED)
    assert found.findings >= len(found.trials) > 0
    assert all((trial.finding.fix.time_change_us or 0) < 0 for trial in found.trials if trial.finding.fix is not None)
    promised = [trial.finding.fix.time_change_us for trial in found.trials if trial.finding.fix is not None]
    assert promised == sorted(promised)  # type: ignore[type-var]
