"""The levers of the fastest network that the rules, layouts and channels allow."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from planned import RULEBOOK, target
from wirings import Wiring, densenet201, resnet50, resnext50

from convlint.model.channel_walk import channels_of
from convlint.model.layer import Mode
from convlint.model.network import Network
from convlint.model.runtime import Runtime
from convlint.planning.advice import Adviser
from convlint.planning.options import Options, options
from convlint.planning.settings import on_host
from convlint.planning.wishes import LOTS, Lot, Wishes

BAD = (60, 124, 250, 500)


def found(network: Network, mode: Mode = "training", gpu: str = "a100", **wishes: object) -> Options:
    one = target(gpu)
    return options(
        network, channels_of(network), Adviser(RULEBOOK.of_networks), on_host(network, one, mode), one, mode,
        Wishes(**wishes),  # type: ignore[arg-type]
    )  # fmt: skip


def kinds(every: Options) -> set[str]:
    return {lever.kind for lever in every.levers}


def test_all_lots_where_all_are_wrong() -> None:
    assert kinds(found(resnet50(BAD, dtype="fp32", layout="NCHW"))) == {"dtype", "layout", "channels"}


@pytest.mark.parametrize("lot", LOTS)
def test_what_is_fixed_stays(lot: Lot) -> None:
    network = resnet50(BAD, dtype="fp32", layout="NCHW")
    assert kinds(found(network, fixed=frozenset({lot}))) == {"dtype", "layout", "channels"} - {lot}


def test_what_changes_neither_network_nor_weights_is_safe() -> None:
    """As `check --fix` has it, zeros in the input are not: they change the weights."""
    every = found(resnet50(BAD, dtype="fp32", layout="NCHW"), keeps_results=True)
    assert {lever.safety for lever in every.levers} == {"safe"}
    assert kinds(every) == {"layout"}


def test_layers_with_groups_take_the_layout_that_suits_them() -> None:
    network = resnext50(6)
    (layout,) = [lever for lever in found(network, fixed=frozenset({"channels"})).levers if lever.kind == "layout"]
    assert {network.layers[index].groups for index in layout.layers} == {32}


def test_a_dtype_that_is_slower_is_not_chosen() -> None:
    assert found(resnet50(dtype="fp32", layout="NCHW"), gpu="p100").levers == []


def test_a_step_that_waits_for_its_host_is_recorded() -> None:
    runtime = Runtime(framework="pytorch")
    eager = resnet50(N=1, runtime=runtime, mode="inference")
    assert "runtime" in kinds(found(eager, "inference"))
    for other in (
        replace(runtime, fixed_input_size=False), replace(runtime, cuda_graphs=True), replace(runtime, compile=True),
        Runtime(framework="tensorrt"), Runtime(),
    ):  # fmt: skip
        assert "runtime" not in kinds(found(replace(eager, runtime=other), "inference"))


def test_groups_of_layers_without_a_time_stay_as_they_are() -> None:
    net = Wiring(C=64, N=32, size=56)
    x = net.conv(net.conv(net.image, 60, 3), 60, 3, dtype=None)
    network = net.network(net.conv(net.conv(x, 60, 3), 64, 3))
    (lever,) = found(network).levers
    assert lever.layers == (2, 3)


def test_exactness_is_told() -> None:
    assert found(resnet50(BAD)).is_exact
    assert not found(densenet201(30, N=8)).is_exact
    assert not found(resnet50(BAD), max_flops=0.01).is_exact


def test_only_an_exact_search_makes_anything_narrower() -> None:
    def narrower(network: Network, **wishes: object) -> bool:
        groups = channels_of(network).groups
        levers = found(network, **wishes).levers  # type: ignore[arg-type]
        return any(lever.group is not None and lever.width < groups[lever.group].width for lever in levers)

    assert narrower(resnet50((65, 130, 260, 516)))
    assert not narrower(densenet201(30, N=32))


def test_without_dataflow_there_are_no_widths() -> None:
    network = replace(resnet50(BAD, dtype="fp32", layout="NCHW"), operations=())
    assert kinds(found(network)) == {"dtype", "layout"}
