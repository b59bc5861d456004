"""What rules would set for a whole network."""

from __future__ import annotations

from planned import RULEBOOK, target
from wirings import Wiring, resnext50

from convlint.facts.target import TargetFacts
from convlint.model.network import Network
from convlint.model.runtime import Runtime
from convlint.planning.advice import Advice, Adviser
from convlint.planning.settings import on_host


def advised(network: Network, gpu: str = "a100") -> list[Advice]:
    one = target(gpu)
    hosted = on_host(network, one, "training")
    facts = TargetFacts(gpu, one.gpu, network.runtime, "training")
    facts.add_network(network.layers, network.edges, hosted.estimates, network.layers, hosted)
    return list(Adviser(RULEBOOK.of_networks).advice(network, hosted.estimates, facts))


def pair(runtime: Runtime | None = None, **setting: object) -> Network:
    net = Wiring(C=64, **setting)  # type: ignore[arg-type]
    return net.network(net.conv(net.conv(net.image, 60, 3), 64), runtime=runtime)


def said(network: Network, gpu: str = "a100") -> set[tuple[str, object, int | None]]:
    return {(one.name, one.value, one.layer) for one in advised(network, gpu)}


def test_dtype_and_layout_are_advised_and_sizes_are_not() -> None:
    assert said(pair(dtype="fp32", layout="NCHW")) == {
        ("dtype", "fp16", 0), ("dtype", "fp16", 1), ("layout", "NHWC", 0), ("layout", "NHWC", 1),
    }  # fmt: skip


def test_what_is_well_set_gets_no_advice() -> None:
    assert said(pair(dtype="fp16", layout="NHWC")) == set()


def test_both_of_two_good_values_are_advised() -> None:
    found = said(pair(Runtime(tf32=False), dtype="fp32", layout="NHWC"))
    assert {("dtype", "fp16", 0), ("runtime.tf32", True, 0)} <= found


def test_settings_of_the_runtime_belong_to_no_layer() -> None:
    runtime = Runtime(framework="pytorch", cudnn_benchmark=False, fixed_input_size=True, deterministic=False)
    assert ("runtime.cudnn_benchmark", True, None) in said(pair(runtime, dtype="fp16", layout="NHWC"))


def test_a_layer_with_groups_may_get_another_layout_than_the_network() -> None:
    found = [one for one in advised(resnext50(6)) if one.name == "layout"]
    assert {one.value for one in found} == {"NCHW"}
    assert all(one.safety == "safe" and "keep this layer" in one.describe for one in found)


def test_layouts_are_the_rules_for_each_gpu() -> None:
    assert ("layout", "NCHW", 0) in said(pair(dtype="fp32", layout="NHWC"), "v100")
