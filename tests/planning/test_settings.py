"""The ways in which a whole network may run."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from planned import RULEBOOK, target
from wirings import Wiring, resnext50

from convlint.engine.networks import as_laid_out
from convlint.model.layer import Dtype, Mode
from convlint.model.network import Network
from convlint.model.runtime import Runtime
from convlint.planning.advice import Adviser
from convlint.planning.settings import Choice, Setting, on_host, settings, with_choices
from convlint.planning.wishes import Wishes


def ways(network: Network, gpu: str = "a100", mode: Mode = "training", wishes: Wishes | None = None) -> list[Setting]:
    return settings(network, Adviser(RULEBOOK.of_networks), target(gpu), mode, wishes or Wishes())


def chosen(found: list[Setting]) -> list[set[tuple[str, object]]]:
    return [{(choice.name, choice.value) for choice in setting.choices} for setting in found]


def pair(runtime: Runtime | None = None, **setting: object) -> Network:
    net = Wiring(C=64, **setting)  # type: ignore[arg-type]
    x = net.conv(net.image, 60, 3)
    x = net.conv(x, 60, 3, groups=60)
    return net.network(net.conv(x, 64), runtime=runtime)


DTYPE, LAYOUT = ("dtype", "fp16"), ("layout", "NHWC")


def test_all_combinations_of_what_is_advised() -> None:
    found = ways(pair(dtype="fp32", layout="NCHW"))
    assert chosen(found)[0] == set()
    assert sorted(map(sorted, chosen(found))) == sorted(map(sorted, [set(), {DTYPE}, {LAYOUT}, {DTYPE, LAYOUT}]))


def test_all_layers_change_together() -> None:
    """Mixed precision and channels_last do not stop at a depthwise layer, of which no rule speaks."""
    both = next(one for one in ways(pair(dtype="fp32", layout="NCHW")) if len(one.choices) == 2)
    assert {(layer.dtype, layer.layout, layer.dtype_source) for layer in both.network.layers} == {
        (Dtype.fp16, "NHWC", "stated")
    }


@pytest.mark.parametrize(
    ("wishes", "expected"),
    [
        (Wishes(fixed=frozenset({"dtype"})), [set(), {LAYOUT}]),
        (Wishes(fixed=frozenset({"layout"})), [set(), {DTYPE}]),
        (Wishes(fixed=frozenset({"dtype", "layout"})), [set()]),
        (Wishes(keeps_results=True), [set(), {LAYOUT}]),
    ],
)
def test_what_stays_is_not_set(wishes: Wishes, expected: list[set[tuple[str, object]]]) -> None:
    assert chosen(ways(pair(dtype="fp32", layout="NCHW"), wishes=wishes)) == expected


def test_tf32_is_a_dtype() -> None:
    network = pair(Runtime(tf32=False), dtype="fp32", layout="NHWC")
    assert {("runtime.tf32", True)} in chosen(ways(network))
    kept = ways(network, wishes=Wishes(fixed=frozenset({"dtype"})))
    assert all("runtime.tf32" not in {name for name, _ in one} for one in chosen(kept))


def test_settings_that_pay_are_part_of_every_way_and_others_of_none() -> None:
    tuned = Runtime(framework="pytorch", cudnn_benchmark=False, fixed_input_size=True, deterministic=False)
    network = pair(tuned, dtype="fp16", layout="NHWC", N=256)
    pays = on_host(network, target(), "training").gpu_us != on_host(
        replace(network, runtime=replace(tuned, cudnn_benchmark=True)), target(), "training"
    ).gpu_us  # fmt: skip
    assert all((("runtime.cudnn_benchmark", True) in one) == pays for one in chosen(ways(network)))


def test_single_layers_have_alternatives() -> None:
    (first, *_) = ways(resnext50(6))
    grouped = {index for index, layer in enumerate(first.network.layers) if layer.groups > 1}
    assert set(first.alternatives) == grouped
    assert {one.value for one in first.alternatives.values()} == {"NCHW"}


def test_quantized_layers_keep_their_dtype() -> None:
    assert all(
        "dtype" not in {name for name, _ in one} for one in chosen(ways(pair(dtype="int8"), "v100", "inference"))
    )


def test_a_framework_that_picks_the_layout_has_its_own() -> None:
    network = pair(Runtime(framework="tensorrt"), dtype="fp16", layout="NCHW")
    assert {layer.layout for layer in as_laid_out(network)} == {"auto"}
    assert as_laid_out(replace(network, runtime=Runtime())) == network.layers
    assert chosen(ways(network, mode="inference")) == [set()]


def test_what_was_copied_between_layouts_is_known_no_more() -> None:
    network = pair(dtype="fp16", layout="NCHW")
    edges = tuple(replace(edge, copied=True, changed_at="view at net.py:3") for edge in network.edges)
    changed = with_choices(replace(network, edges=edges), [Choice("layout", "NHWC", (0, 1, 2), "NHWC", "safe")])
    assert {(edge.copied, edge.changed_at) for edge in changed.edges} == {(None, "")}
