"""Networks from traces: times are those that were measured, whatever is changed, and differences are said."""

import pytest
from checkout import ROOT
from convolutions import conv
from msgspec.structs import replace

from convlint.engine.measured import far_off, held_to_trace
from convlint.engine.timing import as_laid_out, estimated
from convlint.estimate import estimate_layer, estimate_pass
from convlint.estimate.memory import parameters
from convlint.gpus.gpu import load_gpu
from convlint.model.layer import ConvLayer, Measured, MeasuredPass
from convlint.model.network import Network
from convlint.model.runtime import Runtime
from convlint.readers.trace.reader import read_with_device

GPU = load_gpu("a100-40gb-sxm")
RUNTIME = Runtime(framework="pytorch", tf32=False)
LAYER = replace(conv(N=64, K=256, layout="NCHW"), name="body")


def held(
    layer: ConvLayer, *, tensor_cores: bool | None = None, **parts: float
) -> tuple[ConvLayer, tuple[str, ...]]:  # fmt: skip
    """The layer with one measured pass, and what is said of it."""
    us = sum(parts.values())
    measured = Measured(gpu=GPU.id, passes=(("fprop", MeasuredPass(us=us, tensor_cores=tensor_cores, **parts)),))
    network = held_to_trace(
        Network(path="t.json", layers=(replace(layer, measured=measured),), runtime=RUNTIME, mode="inference"), ()
    )
    return network.layers[0], network.notes


def test_times_are_those_that_were_measured_and_predictions_stand_beside_them() -> None:
    layer, _ = held(LAYER, convolution=700.0, transpose=300.0)
    estimate, plain = (estimate_layer(each, GPU, RUNTIME, "inference") for each in (layer, LAYER))
    assert estimate.time_us == pytest.approx(1000.0)
    assert estimate.passes["fprop"].transposes_us == pytest.approx(300.0)
    assert estimate.predicted == {"fprop": plain.time_us}
    assert (estimate.basis, plain.predicted) == ("measured", {})


def test_a_layout_without_transposes_costs_what_they_did_not_take() -> None:
    turned, _ = held(LAYER, convolution=700.0, transpose=300.0)
    straight, _ = held(LAYER, convolution=1000.0)
    nchw, nhwc = (estimate_pass(replace(LAYER, layout=layout), "fprop", GPU, RUNTIME) for layout in ("NCHW", "NHWC"))
    rest = nhwc.time_us / (nchw.time_us - nchw.transposes_us)
    for layer, others_us in ((turned, 700.0), (straight, 1000.0)):
        found = estimate_pass(replace(layer, layout="NHWC"), "fprop", GPU, RUNTIME)
        assert found.time_us == pytest.approx(others_us * rest)


def test_another_gpu_is_predicted() -> None:
    layer, _ = held(LAYER, convolution=1000.0)
    other = load_gpu("h100-sxm")
    assert estimate_layer(layer, other, RUNTIME, "inference") == estimate_layer(LAYER, other, RUNTIME, "inference")


def test_what_was_predicted_otherwise_is_said() -> None:
    plain = estimate_layer(LAYER, GPU, RUNTIME, "inference")
    _, notes = held(LAYER, tensor_cores=False, convolution=plain.time_us / 3)
    assert notes[1:] == (
        "predicted over measured, 1 of 1 prediction off by more than a factor of 1.5: body fprop (3.00)",
        "ran without Tensor Cores, where convlint predicts them: body",
    )
    _, notes = held(LAYER, tensor_cores=True, convolution=plain.time_us)
    assert len(notes) == 1


def test_another_kernel_than_is_predicted_says_nothing_of_other_layouts() -> None:
    slow, _ = held(LAYER, tensor_cores=False, convolution=9000.0)
    now, nhwc = (estimate_pass(replace(slow, layout=layout), "fprop", GPU, RUNTIME) for layout in ("NCHW", "NHWC"))
    assert now.time_us == pytest.approx(9000.0)
    assert nhwc == estimate_pass(replace(LAYER, layout="NHWC"), "fprop", GPU, RUNTIME)


def test_transposes_that_are_not_predicted_go_with_the_layout() -> None:
    volta = load_gpu("v100-sxm2-16gb")
    small = replace(LAYER, C=32, K=32)
    predicted = estimate_pass(small, "fprop", volta, RUNTIME)
    assert predicted.transposes_us == 0
    found = MeasuredPass(us=150.0, convolution=60.0, transpose=90.0)
    measured = Measured(gpu=volta.id, passes=(("fprop", found),))
    network = Network(path="t.json", layers=(replace(small, measured=measured),), runtime=RUNTIME, mode="inference")
    (layer,) = held_to_trace(network, ()).layers
    now, nhwc = (estimate_pass(replace(layer, layout=layout), "fprop", volta, RUNTIME) for layout in ("NCHW", "NHWC"))
    assert (now.time_us, now.transposes_us) == (pytest.approx(150.0), pytest.approx(90.0))
    assert nhwc.time_us < 70.0


def test_a_pass_that_did_not_run_or_runs_less_often_costs_as_much() -> None:
    passes = (("fprop", MeasuredPass(us=100.0)), ("wgrad", MeasuredPass(us=60.0, times=0.5)))
    measured = Measured(gpu=GPU.id, passes=passes, trained=True)
    layer = replace(LAYER, calls=2, measured=measured)
    network = held_to_trace(Network(path="t.json", layers=(layer,), runtime=RUNTIME, mode="training"), ())
    estimate = estimate_layer(network.layers[0], GPU, RUNTIME, "training")
    assert set(estimate.passes) == {"fprop", "wgrad"}
    assert estimate.time_us == pytest.approx(2 * 100.0 + 60.0)


def test_the_farthest_off_come_first() -> None:
    assert far_off([]) == ""
    assert far_off([("a", 1.4), ("b", 0.7)]) == ""
    assert far_off([("a", 1.6), ("b", 0.2), ("c", 1.0), ("d", 2.0), ("e", 1.7)]).endswith(
        "4 of 5 predictions off by more than a factor of 1.5: b (0.20), d (2.00), e (1.70) and 1 more"
    )


def test_a_step_is_known_in_the_mode_alone_in_which_it_was_recorded() -> None:
    network = _read_trace("h100-resnet50-nchw.json.gz")
    assert network.recorded is not None
    for mode, is_known in (("training", True), ("inference", False)):
        asked = held_to_trace(replace(network, mode=mode), ())
        hosted = estimated(asked, as_laid_out(asked, mode), load_gpu("h100-sxm"), mode)
        assert (hosted.step is not None) is is_known
        said = any(note.startswith("recorded in training, which does not tell") for note in asked.notes)
        assert said is not is_known


def test_layers_of_equal_sizes_that_a_trace_does_not_tell_apart_have_weights_of_their_own() -> None:
    assert parameters(_read_trace("h100-resnet50-nchw.json.gz").layers) == 23_454_912  # of ResNet-50's convolutions


def test_the_host_takes_no_longer_than_while_it_was_recorded() -> None:
    network = held_to_trace(_read_trace("h100-resnet50-nchw.json.gz"), ())
    assert network.recorded is not None
    for span_us in (0.0, 1000.0):
        recorded = replace(network, recorded=replace(network.recorded, span_us=span_us))
        step = estimated(recorded, as_laid_out(recorded, "training"), load_gpu("h100-sxm"), "training").step
        assert step is not None
        assert step.host_us is not None
        assert (step.host_us == span_us) is (span_us > 0)


def _read_trace(name: str) -> Network:
    network, _, errors = read_with_device(str(ROOT / "benchmarks/data/traces" / name))
    assert network is not None
    assert not errors
    return network
