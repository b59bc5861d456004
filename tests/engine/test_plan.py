"""Plans of whole networks: their result, checked again, has the promised time."""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from math import gcd
from typing import Any

import pytest
from cases import sampled
from msgspec.structs import replace
from promised import promised, without
from random_networks import chain, tangle
from read_specs import network
from wirings import Wiring, densenet201, efficientnet_b0, mobilenet_v2, resnet50, resnext50, told, unet

from convlint.engine.check import OnPromise, Target, check_network
from convlint.engine.findings import NetworkResult
from convlint.engine.joint import Promise
from convlint.engine.levers import NO_LIMITS, Limits
from convlint.engine.plan import ALONE, BUILT, NO_DATAFLOW, THEN, plan
from convlint.engine.steps import NetworkPlan, Wishes
from convlint.estimate.memory import parameters
from convlint.gpus.gpu import load_gpu
from convlint.model.channels import channels_of
from convlint.model.layer import Dtype, Mode
from convlint.model.network import Network
from convlint.model.runtime import Runtime
from convlint.rulebook.book import load_rulebook

RULEBOOK = load_rulebook()


def target(gpu: str = "a100") -> Target:
    return Target(label=gpu, gpu=load_gpu(gpu))


def planned(network: Network, gpu: str = "a100", mode: Mode = "training", **wishes: Any) -> NetworkPlan:
    found = plan(network, RULEBOOK, target(gpu), mode, Wishes(**wishes))
    assert found is not None
    return found


def checked_us(found: NetworkPlan, network: Network | None = None) -> float:
    """What the check says of the time of a network, or of the plan's; of as many images as the plan's times are of."""
    layers = check_network(network or found.network, RULEBOOK, [target(found.gpu)], found.mode).layers
    N = layers[0].layer.N or 1
    share = (found.batch or N) / N
    return share * sum(times.time_us for one in layers if (times := one.times[found.gpu]) is not None)


BAD = (60, 124, 250, 500)
NETWORKS: dict[str, Callable[[], Network]] = {
    "resnet": partial(resnet50, BAD),
    "resnet in fp32": partial(resnet50, BAD, dtype="fp32", layout="NCHW"),
    "mobilenet": partial(mobilenet_v2, 1.4),
    "unet": partial(unet, (*BAD, 1000)),
    "resnext": resnext50,
    "resnext of odd groups": partial(resnext50, 6, dtype="fp32", layout="NCHW"),
    "efficientnet": partial(efficientnet_b0, dtype="fp32", layout="NCHW"),
    "densenet": partial(densenet201, 30),
    "at the host's pace": partial(resnet50, BAD, N=1, runtime=Runtime(framework="pytorch"), mode="inference"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", sampled(NETWORKS, 3))
@pytest.mark.parametrize("gpu", ["a100", "v100"])
def test_the_promise_is_kept(name: str, gpu: str) -> None:
    network = NETWORKS[name]()
    found = planned(network, gpu, network.mode or "training")
    assert found.now.time_us == checked_us(found, network)
    assert found.after.time_us == pytest.approx(checked_us(found), rel=1e-12)
    assert bool(found.steps) is (name != "at the host's pace")
    assert [found.now, *(step.after for step in found.steps)][-1] == found.after
    for step in found.steps:
        assert step.after.time_us < step.before.time_us
    for one, other in pairwise(found.steps):
        assert one.after == other.before


def test_two_forms_of_one_layer_are_both_in_the_plan() -> None:
    """C of the image and K of the only layer."""
    stem = "- { name: stem, C: 3, H: 224, W: 224, K: 61, kernel_size: 7, stride: 2, padding: 3 }"
    text = f"version: 1\ndefaults: {{ N: 32, dtype: fp16, layout: NHWC }}\nlayers:\n  {stem}\n"
    found = planned(network(text), "a100", "training")
    (layer,) = found.network.layers
    assert (layer.C, layer.K) == (4, 64)
    assert found.after.time_us == pytest.approx(checked_us(found), rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_the_changed_network_fits_together(name: str) -> None:
    """Channels meet, and what cannot change has not."""
    network = NETWORKS[name]()
    found = planned(network, mode=network.mode or "training")
    checked = check_network(found.network, RULEBOOK, [target()], found.mode)
    assert not [finding.message for finding in checked.findings if finding.rule.code in ("CL001", "CL002", "CL003")]
    again = channels_of(found.network)
    reasons = [group.fixed for group in channels_of(network).groups]
    assert [group.fixed for group in again.groups] == reasons


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_nothing_more_is_found_in_the_result(name: str) -> None:
    network = NETWORKS[name]()
    found = planned(network, mode=network.mode or "training")
    again = planned(found.network, mode=found.mode)
    assert again.after.time_us >= again.now.time_us * (1 - 2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("gpu", ["a100", "t4"])
def test_it_begins_and_ends_where_the_check_does(name: str, gpu: str) -> None:
    network = NETWORKS[name]()
    mode = network.mode or "training"
    (whole,) = check_network(network, RULEBOOK, [target(gpu)], mode).networks
    found = planned(network, gpu, mode)
    assert (found.now.time_us, found.now.grade) == (whole.times.time_us, whole.times.grade)
    assert found.after.time_us == pytest.approx(whole.times.after_us, rel=1e-9)
    assert found.after.grade == whole.times.grade_after


@pytest.mark.slow
@pytest.mark.parametrize("build", [chain, tangle])
@pytest.mark.parametrize("seed", range(10))
def test_no_single_width_more_or_less_is_faster(build: Callable[[int, int], Network], seed: int) -> None:
    """Of what the check asks for: its groups of channels, each at its new width or at the present one."""
    network = build(seed, 3)
    promises: list[Promise] = []
    check_network(network, RULEBOOK, [target()], "training", on_promise=lambda _, promise: promises.append(promise))
    (promise,) = promises
    best, search = promise.optimum, promise.search
    least_us = search.total_us(best.choices, best.levers)
    for key, lever in search.of(best.setting).levers.items():
        other = {one: on for one, on in best.levers.items() if one != key}
        if key not in best.levers:
            other = {**other, key: lever}
        assert search.total_us(best.choices, other) > least_us * (1 - 1e-3)
    for kind in best.choices:
        fewer = {one: choice for one, choice in best.choices.items() if one != kind}
        assert search.total_us(fewer, best.levers) > least_us


@pytest.mark.slow
def test_limits_hold_in_the_network_itself() -> None:
    network = resnet50(BAD)
    for share in (0.0, 0.005, 0.02):
        found = planned(network, max_parameters=share, max_flops=share, fixed=frozenset({"batch"}))
        now, after = parameters(network.layers), parameters(found.network.layers)
        assert after <= now * (1 + share)
        assert found.after.parameters == after
        assert (found.after.flops or 0) <= (found.now.flops or 0) * (1 + share)


def test_of_equal_flops_those_that_save_most_are_added() -> None:
    """Both add 0.05 % of the FLOPs; the layer on the small map adds sixteen times the parameters, and saves more."""
    head = (
        "version: 1\nmode: inference\ndefaults: { dtype: fp16, layout: NHWC, N: 32, R: 3, S: 3, padding: 1 }\nlayers:\n"
    )
    small = "".join(f"  - {{ name: small{n}, C: {C}, H: 14, W: 14, K: 1024 }}\n" for n, C in enumerate((1022, 1024)))
    both = network(head + small + "  - { name: large, C: 62, H: 56, W: 56, K: 64 }\n")
    plan = planned(both, mode="inference", max_flops=0.0015)
    assert [step.layers for step in plan.steps] == [("small0",)]


@pytest.mark.parametrize("seed", [14, 21, 52])
def test_no_channels_get_a_worse_multiple_of_eight(seed: int) -> None:
    """Concatenations that are aligned for 16 bits, of parts that are not."""
    network = tangle(seed, 6)
    found = planned(network, "rtx4090")
    assert found.steps
    for before, after in zip(network.layers, found.network.layers, strict=True):
        assert gcd(after.C or 0, 8) >= gcd(before.C or 0, 8), before.name
        assert gcd(after.K or 0, 8) >= gcd(before.K or 0, 8), before.name


def test_every_step_is_worth_doing() -> None:
    """Small sizes that follow each other are one step."""
    found = planned(resnet50(BAD), "h100")
    saved = [step.before.time_us - step.after.time_us for step in found.steps]
    least_us = 1e-3 * found.now.time_us
    assert min(saved) > 0
    assert not [pair for pair in pairwise(saved) if max(pair) < least_us]


def test_within_limits_nothing_is_narrowed_to_make_room() -> None:
    for share in (0.002, 0.005):
        found = planned(resnet50(BAD), "t4", max_parameters=share, fixed=frozenset({"batch"}))
        assert found.steps
        for before, after in zip(resnet50(BAD).layers, found.network.layers, strict=True):
            assert (after.C or 0) >= (before.C or 0)
            assert (after.K or 0) >= (before.K or 0)


def test_results_are_kept() -> None:
    found = planned(resnet50(BAD, dtype="fp32", layout="NCHW"), keeps_results=True)
    assert [step.kinds for step in found.steps] == [("layout",)]
    assert {step.safety for step in found.steps} == {"safe"}
    assert found.network.layers[0].C == 3
    assert found.notes == ()


def test_steps_say_what_each_layer_gets() -> None:
    net = Wiring(C=64, N=32, size=56)
    network = net.network(net.conv(net.conv(net.image, 60, 3), 64, 3))
    (step,) = planned(network, fixed=frozenset({"batch"})).steps
    assert step.kinds == ("channels",)
    assert step.layers == ("conv0", "conv1")
    assert step.by_layer == ({"K": 64}, {"C": 64})
    assert step.set == {}
    assert (step.after.parameters or 0) - (step.before.parameters or 0) == 2 * 4 * 64 * 9


def test_settings_say_what_all_share() -> None:
    first, second = planned(resnet50(dtype="fp32", layout="NCHW", C=4), fixed=frozenset({"batch"})).steps
    assert {**first.set, **second.set} == {"dtype": "fp16", "layout": "NHWC"}
    assert len(first.layers) == len(first.by_layer) == 54


def test_a_network_that_is_fine_gets_no_steps() -> None:
    fine = planned(resnet50(C=4, N=256))
    assert fine.steps == ()
    assert fine.after == fine.now
    assert fine.network.layers == resnet50(C=4, N=256).layers


def test_grades_rise_with_the_steps() -> None:
    found = planned(resnet50(BAD, dtype="fp32", layout="NCHW"))
    letters = [found.now.grade, *(step.after.grade for step in found.steps)]
    assert letters[0] == "F"
    assert letters[-1] == "A"
    assert all(before is not None and after is not None and after <= before for before, after in pairwise(letters))


def test_without_dataflow_it_says_so() -> None:
    bare = replace(resnet50(BAD, dtype="fp32", layout="NCHW"), operations=())
    found = planned(bare, fixed=frozenset({"batch"}))
    assert {kind for step in found.steps for kind in step.kinds} == {"dtype", "layout", "channels"}
    assert NO_DATAFLOW in found.notes
    assert planned(bare, fixed=frozenset({"channels"})).notes == ()


def test_channels_of_layers_that_stand_alone_are_said_to() -> None:
    net = Wiring(C=64, N=32, size=56)
    one = net.conv(net.image, 60, 3)
    whole = net.network(net.conv(one, 64, 3))
    assert planned(whole, fixed=frozenset({"batch"})).notes == ()
    text = """\
version: 1
defaults: { N: 64, H: 56, W: 56, kernel_size: 3, padding: 1, dtype: fp16, layout: NHWC }
layers: [{ name: a, C: 64, K: 60 }, { name: b, C: 60, K: 64 }]
"""
    lone = network(text)
    found = planned(lone, fixed=frozenset({"batch"}))
    assert found.steps
    assert found.notes == (ALONE,)
    assert planned(lone, fixed=frozenset({"batch", "channels"})).notes == ()


def test_layers_without_time_are_left_out_and_named() -> None:
    net = Wiring(C=64, N=32, size=56)
    x = net.conv(net.conv(net.image, 60, 3), 60, 3, dtype=None)
    found = planned(net.network(net.conv(net.conv(x, 60, 3), 64, 3)))
    assert found.without_time == (1,)
    assert found.now.grade is None
    assert found.after.time_us < found.now.time_us


def test_nothing_predictable_is_no_plan() -> None:
    net = Wiring(C=64)
    network = net.network(net.conv(net.image, 60, 3, H=None, W=None))
    assert plan(network, RULEBOOK, target(), "training", Wishes()) is None
    assert plan(Network(path="x", layers=()), RULEBOOK, target(), "training", Wishes()) is None


def test_advice_without_a_price_stands_beside() -> None:
    runtime = Runtime(framework="pytorch", cudnn_benchmark=True, fixed_input_size=False, mixed_precision=True)
    found = planned(resnet50(N=256, runtime=runtime))
    assert [finding.rule.code for finding in found.unpriced] == ["CL502"]


def test_where_the_host_sets_the_pace_no_kernel_that_ends_sooner_helps() -> None:
    network = resnet50(BAD, N=1, runtime=Runtime(framework="pytorch", cuda_graphs=False), mode="inference")
    assert planned(network, mode="inference").steps == ()
    recorded = replace(network, runtime=replace(network.runtime, cuda_graphs=True))
    assert planned(recorded, mode="inference").steps


def test_a_time_that_is_asked_for_takes_no_more_steps_than_it_needs() -> None:
    network = resnet50(BAD, dtype="fp32", layout="NCHW")
    every = planned(network)
    some = planned(network, target_us=every.steps[1].after.time_us)
    assert some.is_reached
    assert len(some.steps) <= 2
    assert some.after.time_us <= every.steps[1].after.time_us
    none = planned(network, target_us=2 * every.now.time_us)
    assert (none.steps, none.is_reached) == ((), True)
    assert planned(network, target_us=1.0).is_reached is False


def test_what_the_user_silenced_stays_as_it_is() -> None:
    """The judge is the check with all that the project says of it."""
    network = resnet50(BAD, dtype="fp32", layout="NCHW")

    def judge(
        one: Network, /, *, limits: Limits = NO_LIMITS, on_promise: OnPromise | None = None
    ) -> NetworkResult:  # fmt: skip
        codes = {rule.info.code for rule in RULEBOOK.rules} - {"CL106", "CL102"}
        return check_network(one, RULEBOOK, [target()], "training", codes=codes, limits=limits, on_promise=on_promise)

    found = plan(network, RULEBOOK, target(), "training", Wishes(), judge)
    assert {kind for step in found.steps for kind in step.kinds} <= {"layout", "channels"}
    assert {layer.dtype for layer in found.network.layers} == {layer.dtype for layer in network.layers}


def test_a_plan_ends_with_what_shortens_the_step_alone() -> None:
    network = told(resnet50(BAD, N=128, dtype="fp32", layout="NCHW", runtime=Runtime(framework="pytorch")))
    plan = planned(network)
    *others, last = plan.steps
    assert "torch.compile" in last.describe
    assert (last.layers, last.set, last.safety) == ((), {}, "safe")
    assert last.before.time_us == last.after.time_us == plan.after.time_us
    assert plan.now.step_us is not None
    assert plan.after.step_us < others[-1].after.step_us < plan.now.step_us  # type: ignore[operator]
    (checked,) = promised(network)[0].networks
    assert plan.now.step_us == pytest.approx(checked.step.time_us)
    assert plan.after.step_us == pytest.approx(checked.step_after_us)


def test_a_plan_that_only_records_the_step_begins_where_it_is() -> None:
    network = told(resnet50(N=1, runtime=Runtime(framework="pytorch")))
    first, *_ = steps = planned(network, mode="inference", fixed=frozenset({"channels", "layout", "dtype"})).steps
    assert {step.kinds for step in steps} == {("runtime",)}
    (checked,) = promised(network, mode="inference")[0].networks
    assert first.before.step_us == pytest.approx(checked.step.time_us)


def test_a_plan_for_the_whole_step_on_a_slow_host_records_it_first() -> None:
    """What comes before that would shorten no step, and autocast would make it longer."""
    plan = planned(told(resnet50(BAD, N=1, dtype="fp32", runtime=Runtime(framework="pytorch"))))
    compiled, hosted, *others = plan.steps
    assert compiled.describe.startswith("model = torch.compile(model)")
    assert hosted.describe.startswith('torch.compile with mode="reduce-overhead"')  # as the compiled network needs it
    series = [plan.now.step_us, *(step.after.step_us for step in plan.steps)]
    assert series[:-1] == [step.before.step_us for step in plan.steps]
    assert series == sorted(series, reverse=True)  # type: ignore[type-var]
    assert {"dtype", "channels"} <= {kind for step in others for kind in step.kinds}
    assert plan.after.step_us < plan.now.step_us / 5
    (checked,) = promised(told(resnet50(BAD, N=1, dtype="fp32", runtime=Runtime(framework="pytorch"))))[0].networks
    assert plan.after.step_us == pytest.approx(checked.step_after_us)


@pytest.mark.parametrize("N", [4, 36, 48])
def test_a_plan_ends_where_the_check_says_that_all_advice_leads(N: int) -> None:
    """Also where the rest of the advice has made what is advised of the step worth less than an advice of its own."""
    network = told(resnet50(BAD, N=N, layout="NHWC", runtime=Runtime(framework="pytorch")))
    (checked,) = promised(network, mode="inference")[0].networks
    assert planned(network, mode="inference").after.step_us == pytest.approx(checked.step_after_us)


@pytest.mark.parametrize(("source", "said"), [("module", True), ("stated", False)])
def test_a_module_in_fp32_is_planned_as_it_is_built_and_that_is_said(source: str, said: bool) -> None:
    """Autocast may stand around it."""
    network = resnet50(N=64, layout="NHWC")
    layers = tuple(replace(layer, dtype=Dtype.fp32, dtype_source=source) for layer in network.layers)
    found = planned(replace(network, layers=layers))
    assert (BUILT in found.notes) == said
    assert any("dtype" in step.kinds for step in found.steps) != said


def test_a_time_is_one_of_the_whole_step_where_that_is_known() -> None:
    network = told(resnet50(BAD, N=48, layout="NHWC", runtime=Runtime(framework="pytorch")))
    every = planned(network, mode="inference")
    compiled = next(step for step in every.steps if step.describe.startswith("model = torch.compile"))
    assert every.now.time_us < compiled.after.step_us < every.now.step_us  # type: ignore[operator]
    some = planned(network, mode="inference", target_us=compiled.after.step_us)
    assert (some.is_reached, some.after.step_us) == (True, compiled.after.step_us)
    alone = planned(network, mode="inference", target_us=every.now.step_us * 0.95)  # type: ignore[operator]
    assert [step.kinds for step in alone.steps] == [("runtime",)]  # safe, and one step: nothing of the network changes
    assert alone.is_reached
    none = planned(network, mode="inference", target_us=every.after.step_us * 0.99)  # type: ignore[operator]
    assert (none.is_reached, none.after) == (False, every.after)


def test_a_plan_takes_the_host_away_that_its_other_steps_leave_the_gpu_to_wait_for() -> None:
    """No step of it makes the whole step longer, and it ends where the check says that its advice leads."""
    network = told(resnet50(N=48, layout="NCHW", runtime=Runtime(framework="pytorch")))
    checked, _ = promised(network)
    (host,) = [finding for finding in checked.findings if finding.rule.loss == "host"]
    assert str(host.message).startswith("with the rest done, ")
    plan = planned(network)
    assert plan.after.step_us == pytest.approx(checked.networks[0].step_after_us)
    assert not [note for note in plan.notes if note.startswith(THEN)]
    times = [plan.now.step_us, *(step.after.step_us for step in plan.steps)]
    assert times == sorted(times, reverse=True)
    assert [step.describe for step in plan.steps if "reduce-overhead" in step.describe]
    again, _ = promised(plan.network)
    assert "CL306" in {finding.rule.code for finding in again.findings if finding.severity == "warning"}


def test_who_silences_the_host_is_told_that_the_gpu_will_wait() -> None:
    network = told(resnet50(N=48, layout="NCHW", runtime=Runtime(framework="pytorch")))
    checked, _ = promised(network, codes=without("CL306"))
    assert checked.networks[0].after_waits
    assert not promised(replace(network, runtime=replace(network.runtime, cuda_graphs=True)))[0].networks[0].after_waits


def test_what_comes_up_once_a_plan_is_done_is_named_and_no_part_of_it() -> None:
    """So that the plan ends where the check says that its advice leads."""
    network = told(resnet50(N=48, layout="NCHW", runtime=Runtime(framework="pytorch")))
    judged: list[bool] = []

    def judge(
        one: Network, /, *, limits: Limits = NO_LIMITS, on_promise: OnPromise | None = None
    ) -> NetworkResult:  # fmt: skip
        codes = None if judged else without("CL306")  # silenced until the plan has been made
        judged.append(True)
        return check_network(one, RULEBOOK, [target()], "training", codes=codes, limits=limits, on_promise=on_promise)

    found = plan(network, RULEBOOK, target(), "training", Wishes(), judge)
    assert found is not None
    (then,) = (note for note in found.notes if note.startswith(THEN))
    assert then.removeprefix(THEN).startswith('CL306: torch.compile with mode="reduce-overhead"')


def test_small_changes_leave_room_for_a_large_one_that_saves_more() -> None:
    """The first saves more for each parameter that it adds, and with it the limit has no room for the second."""
    text = (
        "version: 1\nmode: inference\ndefaults: { dtype: fp16, layout: NHWC, N: 32, R: 3, S: 3, padding: 1 }\nlayers:\n"
        "  - { name: small, C: 62, H: 80, W: 80, K: 64 }\n"
        "  - { name: large, C: 254, H: 28, W: 28, K: 256 }\n"
    )
    both = network(text)
    now = parameters(both.layers)
    assert now is not None
    large = 2 * 9 * 256 / now
    found = planned(both, mode="inference", max_parameters=large + 1e-6, fixed=frozenset({"batch"}))
    assert [step.layers for step in found.steps] == [("large",)]
    assert [step.layers for step in planned(both, mode="inference", max_parameters=large / 2).steps] == [("small",)]
