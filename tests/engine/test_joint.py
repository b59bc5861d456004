"""One finding for each setting of the network and each group of channels."""

from collections.abc import Callable
from functools import partial

import pytest
from mended_specs import network_of
from msgspec.structs import replace
from promised import RULEBOOK, followed, promised, without
from random_networks import chain, tangle
from small_networks import checked, layer, rulebook
from wirings import Wiring, mobilenet_v2, resnet50, resnext50, told, unet

from convlint.engine.findings import NetworkResult
from convlint.engine.joint import Promise
from convlint.engine.levers import Levers
from convlint.engine.optimum import Choices
from convlint.model.layer import Layout, Mode
from convlint.model.network import Network
from convlint.model.report import Finding
from convlint.model.runtime import Runtime
from convlint.verdict.baseline import baseline_of

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
    assert finding.fix.time_change_us == pytest.approx(-(finding.lost_us or 0.0))


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
        assert finding.fix.set == sets
        assert len(finding.identities) == len(finding.layers)


def test_its_layers_are_all_that_change_and_its_words_count_them() -> None:
    network = mobilenet_v2(1.0, dtype="fp32", layout="NHWC")
    result, promise = promised(network, "a100", "inference")
    (finding,) = advised(result, "CL106")
    assert len(finding.layers) == len(promise.optimum.choices["dtype"].layers) == len(network.layers)
    assert f"in {len(finding.layers)} layers" in finding.message


def test_it_names_the_grouped_layers_that_stay_as_they_are() -> None:
    """In words alone: they are no layers of the finding, which changes nothing in them."""
    net = Wiring(C=256, N=64, size=56, layout="NCHW")
    network = net.network(net.conv(net.conv(net.conv(net.image, 192), 192, 3, groups=4), 256))
    result, _ = promised(network, "a100")
    (finding,) = (finding for finding in result.findings if finding.advised)
    assert finding.rule.code == "CL401"
    assert finding.layers == ("conv0", "conv2")
    assert finding.fix.describe.endswith(", but NCHW stays in conv1")


def test_a_layer_that_keeps_its_layout_copies_what_its_producer_writes_in_another() -> None:
    """That nothing is copied between them is said of the layouts as they are."""
    net = Wiring(C=256, N=64, size=56, layout="NCHW")
    x = net.conv(net.conv(net.image, 256), 256, 3, groups=8)
    network = net.network(net.conv(x, 256))
    network = replace(network, edges=tuple(replace(edge, copied=False) for edge in network.edges))
    result, promise = promised(network, "a100")
    after = followed(network, promise)
    assert [layer.layout for layer in after.layers] == ["NHWC", "NCHW", "NHWC"]
    (then,) = promised(after, "a100")[0].networks
    assert then.times.time_us == pytest.approx(result.networks[0].times.after_us)


def test_groups_take_the_whole_network_to_nchw_where_copies_cost_more() -> None:
    """The words speak of the slow layers alone; the finding changes all."""
    net = Wiring(C=128, N=64, size=28)
    x = net.conv(net.image, 512)
    for _ in range(2):
        x = net.conv(x, 512, 3, groups=512, R=1, PadH=0, PadH_end=0)
    network = net.network(net.conv(x, 128))
    result, promise = promised(network, "h100")
    (finding,) = (finding for finding in result.findings if finding.advised)
    assert finding.rule.code == "CL404"
    assert finding.message == "in NHWC the library has no fast kernel for the groups of 2 layers: conv1, conv2"
    assert finding.layers == ("conv0", "conv1", "conv2", "conv3")
    assert finding.fix.describe.startswith("NCHW in all layers")
    again, _ = promised(followed(network, promise), "h100")
    assert again.networks[0].times.time_us == pytest.approx(result.networks[0].times.after_us)
    assert not [finding for finding in again.findings if finding.advised]


def test_it_names_a_view_that_refuses_the_layout() -> None:
    net = Wiring(C=256, N=64, size=56, layout="NCHW")
    network = replace(net.network(net.conv(net.image, 256)), rigid_view="net.py:9")
    result, _ = promised(network, "a100")
    (finding,) = (finding for finding in result.findings if finding.advised)
    assert finding.fix.describe.endswith("; .view() in net.py:9 refuses that, .reshape() does not")


def test_images_and_sequences_have_memory_formats_of_their_own() -> None:
    """PyTorch's Conv1d has none with channels last."""
    layers = (
        layer("a", C=128, K=128, H=56, W=56, layout="NCHW")
        + layer("b", dims=1, C=128, K=128, H=None, W=3136, layout="NCHW")
    )  # fmt: skip
    result = checked(RULEBOOK, layers, gpus="v100", top="runtime: { framework: pytorch }\n")
    (finding,) = (finding for finding in result.findings if finding.rule.code == "CL401")
    assert finding.layers == ("a", "b")
    assert finding.fix.describe == (
        "memory_format=torch.channels_last for model and input; Conv2d with H=1, memory_format=torch.channels_last for "
        "model and input: Conv1d has no such format"
    )


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


NETWORKS_of_promise: dict[str, Callable[[], Network]] = {
    "resnet": partial(resnet50, BAD, dtype="fp32", layout="NCHW"),
    "resnext": partial(resnext50, 6, dtype="fp32", layout="NCHW"),
    "on a host": partial(resnet50, BAD, dtype="fp32", layout="NCHW", runtime=Runtime(framework="pytorch")),
    "chain": partial(chain, 2),
    "tangle": partial(tangle, 7),
}


@pytest.mark.parametrize("name", NETWORKS_of_promise)
def test_it_is_kept_layer_by_layer(name: str) -> None:
    network = NETWORKS_of_promise[name]()
    before, promise = promised(network, "v100")
    after, _ = promised(followed(network, promise), "v100")
    for one, other in zip(before.layers, after.layers, strict=True):
        now, then = one.times["v100"], other.times["v100"]
        assert then.time_us == pytest.approx(now.after_us, rel=1e-6), one.layer.name
        assert then.ideal_us == pytest.approx(now.ideal_us, rel=1e-6), one.layer.name


def test_where_the_host_sets_the_pace_nothing_is_promised() -> None:
    runtime = Runtime(framework="pytorch", cuda_graphs=False)
    result, promise = promised(resnet50(BAD, N=1, runtime=runtime, mode="inference"), "a100", "inference")
    (whole,) = result.networks
    assert whole.times.after_us == pytest.approx(whole.times.time_us)
    assert (promise.optimum.choices, promise.optimum.levers) == ({}, {})


def test_shares_add_up_where_wider_maps_leave_less_of_the_host() -> None:
    """What follows wider convolutions keeps the GPU busy for longer, and these wait for less of the host."""
    network = resnet50(BAD, N=128, dtype="fp16", layout="NCHW", runtime=Runtime(framework="pytorch"))
    result, promise = promised(network, "h100")
    (now,) = result.networks
    (after,) = promised(followed(network, promise), "h100")[0].networks
    assert now.times.after_us == pytest.approx(after.times.time_us)
    lost = [finding.lost_us or 0.0 for finding in result.findings if finding.advised]
    assert sum(lost) == pytest.approx(now.times.time_us - now.times.after_us)


def test_what_no_file_states_is_no_part_of_what_is_written() -> None:
    """A copy that an operation of the user's code makes is saved by whoever changes that."""
    net = Wiring(C=64, N=32, size=56)
    network = net.network(net.conv(net.conv(net.image, 64, 3), 64, 3))
    layers = (network.layers[0], replace(network.layers[1], copies_input=True))
    edges = tuple(replace(edge, copied=True, changed_at="view at net.py:3") for edge in network.edges)
    result, promise = promised(replace(network, layers=layers, edges=edges))
    (whole,) = result.networks
    assert promise.optimum.levers
    assert whole.times.after_us < whole.times.time_us
    assert whole.times.after_fix_us == pytest.approx(whole.times.time_us)
    (finding,) = [each for each in result.findings if each.advised]
    assert (finding.rule.code, finding.fix.applicable) == ("CL402", False)


def test_a_layer_without_a_time_promises_none() -> None:
    net = Wiring(C=64, N=32, size=56)
    network = net.network(net.conv(net.conv(net.image, 60, 3), 64, 3, dtype=None))
    result, _ = promised(network)
    assert [layer.times["a100"] is None for layer in result.layers] == [False, True]
    assert result.networks[0].times is None


# --- the whole step


STEPS = {
    "resnet": lambda: told(resnet50((60, 124, 250, 500), dtype="fp32", layout="NCHW")),
    "mobilenet": lambda: told(mobilenet_v2(1.4, dtype="fp32", layout="NCHW")),
    "unet": lambda: told(unet((60, 124, 250, 500, 1000), layout="NCHW")),
}
EAGER = Runtime(framework="pytorch")


@pytest.mark.parametrize("mode", ["training", "inference"])
@pytest.mark.parametrize("name", STEPS)
def test_the_step_that_is_promised_is_that_of_the_changed_network(name: str, mode: Mode) -> None:
    network = replace(STEPS[name](), runtime=EAGER)
    result, promise = promised(network, mode=mode)
    (now,) = result.networks
    (after,) = promised(told(followed(network, promise)), mode=mode)[0].networks
    wanted = promise.step_us(*best(promise), compiled=False)
    assert after.step.time_us == pytest.approx(wanted, rel=0.01)
    assert wanted < now.step.time_us


@pytest.mark.parametrize("compiled", [False, True])
def test_the_promised_step_has_products_as_large_as_those_of_the_changed_network(compiled: bool) -> None:
    """What reads a wider tensor multiplies more, and hands on as much as before."""
    network = network_of(
        """
  - { name: a, C: 64, K: 130 }
  - { name: act, op: relu }
  - { name: mix, op: linear, C: 256 }
  - { name: gate, op: gelu }
  - { name: gap, op: global_pool }
  - { name: fc, op: linear, C: 1000 }
""",
        top="runtime: { framework: pytorch }\n",
        defaults="N: 64, H: 56, W: 56, kernel_size: 3, padding: 1, dtype: fp16, layout: NHWC",
    )
    _, promise = promised(network)
    after = followed(network, promise)
    assert after.layers[0].K == 136
    runtime = replace(after.runtime, compile=compiled)
    (then,) = promised(replace(after, runtime=runtime))[0].networks
    assert promise.step_us(*best(promise), compiled=compiled) == pytest.approx(then.step.time_us)


def best(promise: Promise) -> tuple[Choices, Levers]:
    return promise.optimum.choices, promise.optimum.levers


def test_the_step_after_all_advice_counts_torch_compile_where_it_is_advised() -> None:
    """And is never shorter than the host needs, unless what takes the host away is advised."""
    network = replace(STEPS["resnet"](), runtime=EAGER)
    result, promise = promised(network)
    (report,) = result.networks
    assert report.step_after_us == pytest.approx(promise.step_us(*best(promise), compiled=True, hosted=False))
    result, promise = promised(network, silences=lambda finding: finding.rule.code == "CL306")
    (report,) = result.networks
    found = {finding.rule.code: finding for finding in result.findings if finding.rule.loss in ("compile", "host")}
    compiled = found["CL510"]
    assert (compiled.severity, compiled.lost_us, compiled.advised) == ("warning", None, False)
    assert compiled.lost_step_us > 0.05 * report.step.time_us  # type: ignore[union-attr]
    assert report.step_after_us == pytest.approx(promise.step_us(*best(promise), compiled=True))
    silent, _ = promised(network, silences=lambda finding: finding.rule.code in ("CL306", "CL510"))
    assert silent.networks[0].step_after_us == pytest.approx(promise.step_us(*best(promise), compiled=False))


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_what_settings_save_of_the_step_is_what_the_next_step_lacks(layout: Layout) -> None:
    """Norms and activations of 16 bits move half of the bytes; widths are good already."""
    runtime = Runtime(framework="pytorch")
    network = told(resnet50((64, 128, 256, 512), N=128, dtype="fp32", layout=layout, runtime=runtime))
    result, promise = promised(network)
    (now,) = result.networks
    settings = [finding for finding in result.findings if finding.advised and finding.lost_step_us is not None]
    assert {finding.rule.code for finding in settings} == {"CL106"} | ({"CL401"} if layout == "NCHW" else set())
    assert all(finding.lost_step_us > finding.lost_us for finding in settings if finding.rule.code == "CL106")
    then_us = promise.step_us(promise.optimum.choices, {})
    assert sum(finding.lost_step_us for finding in settings) == pytest.approx(now.step.time_us - then_us, rel=0.01)


def test_no_setting_saves_more_than_the_step_with_all_advice() -> None:
    """Behind autocast the step waits for its host, which has more to start than it has now."""
    eager = Runtime(framework="pytorch", tf32=False)
    network = told(resnet50(N=12, dtype="fp32", layout="NHWC", runtime=eager))
    result, _ = promised(network, codes=without("CL306"))
    (report,) = result.networks
    settings = [finding for finding in result.findings if finding.rule.code == "CL106"]
    assert [finding.lost_step_us for finding in settings] == [report.step.time_us - report.step_after_us]
    assert report.step_after_us > report.step.host_us


@pytest.mark.parametrize(("N", "dtypes"), [(16, False), (20, False), (32, True)])
def test_autocast_is_no_advice_where_its_own_launches_make_the_step_longer(N: int, dtypes: bool) -> None:
    """Few images wait for the host, or would behind autocast, and who silences CL306 does not want CUDA graphs."""
    network = told(resnet50(N=N, dtype="fp32", layout="NCHW", runtime=Runtime(framework="pytorch")))
    result, _ = promised(network, codes=without("CL306"))
    (report,) = result.networks
    assert report.step_after_us <= report.step.time_us
    assert ("CL106" in {finding.rule.code for finding in result.findings if finding.advised}) == dtypes


@pytest.mark.parametrize("new", ["CL106", "CL306", "CL401", "CL510"])
def test_a_baseline_holds_what_comes_up_later_too(new: str) -> None:
    """What it holds of the whole step stays silent where another finding, whose advice brings it up, is new."""
    network = told(resnet50(N=32, dtype="fp32", layout="NCHW", runtime=Runtime(framework="pytorch")))
    every = promised(network)[0].findings
    held = baseline_of(finding for finding in every if finding.rule.code != new)
    assert new in {finding.rule.code for finding in every}
    left = promised(network, known=lambda finding: finding.fingerprint in held)[0].findings
    assert {finding.rule.code for finding in left} <= {new}


@pytest.mark.parametrize("N", [16, 20, 32])
def test_a_host_that_becomes_too_slow_with_the_advice_is_part_of_it(N: int) -> None:
    """So that the next check, of a network that does the rest, has nothing to say that is not said now."""
    network = told(resnet50(N=N, dtype="fp32", layout="NCHW", runtime=Runtime(framework="pytorch")))
    result, promise = promised(network)
    (report,) = result.networks
    (host,) = [finding for finding in result.findings if finding.rule.loss == "host"]
    assert host.severity == "warning"
    assert {"CL106", "CL401", "CL510"} <= {finding.rule.code for finding in result.findings}
    assert not report.after_waits
    assert str(host.message).startswith("with the rest done, the host of pytorch needs about ") == (N > 16)
    done = followed(network, promise)
    done = replace(done, runtime=replace(done.runtime, compile=True))
    (later,) = [finding for finding in promised(done)[0].findings if finding.rule.loss == "host"]
    if N > 16:
        assert str(host.message).removeprefix("with the rest done, ") == str(later.message)
        assert host.lost_step_us == pytest.approx(later.lost_step_us)
        assert host.fingerprint == later.fingerprint
    alone = promised(replace(done, runtime=replace(done.runtime, cuda_graphs=True)))[0].networks[0]
    assert alone.step.time_us == pytest.approx(report.step_after_us)


def test_one_image_waits_for_the_host() -> None:
    network = told(resnet50(N=1, runtime=EAGER))
    result, _ = promised(network, mode="inference")
    (report,) = result.networks
    step = report.step
    assert step.time_us == step.host_us > 5 * step.gpu_us
    (bound,) = [finding for finding in result.findings if finding.rule.code == "CL306"]
    assert (bound.severity, bound.lost_us) == ("warning", None)
    assert bound.lost_step_us == pytest.approx(step.idle_us)
    assert (report.host_us, report.gpu_us, report.waits) == (step.host_us, step.gpu_us, True)
    assert report.step_after_us < step.host_us / 5  # CUDA graphs are advised
    plain = promised(told(resnet50(N=256, runtime=EAGER)), mode="training")[0]
    assert not [finding for finding in plain.findings if finding.rule.code == "CL306"]
