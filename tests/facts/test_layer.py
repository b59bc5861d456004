"""What a rule that cannot be checked lacks, in words that a user can act on."""

from typing import Any

import pytest
from cases import for_each
from layer_facts import facts
from msgspec.structs import replace
from source_records import program, record

from convlint.facts.layer import QUANTITIES, LayerFacts
from convlint.facts.quantity import UNKNOWN
from convlint.facts.source_layers import (
    OF_SOURCE,
    SourceFacts,
    Width,
    facts_of_construction,
    facts_of_program,
    facts_of_width,
)
from convlint.facts.target import TargetFacts
from convlint.gpus.gpu import load_gpu
from convlint.model.layer import ConvLayer, layer_identity
from convlint.model.runtime import Runtime, Version

FULL = "N: 256, H: 32, W: 32, K: 64, kernel_size: 3, padding: 1, dtype: fp16, layout: NHWC, bias: true"
BEFORE = "name: a, N: 256, C: 3, H: 32, W: 32, K: 62, kernel_size: 3, padding: 1, dtype: fp16, layout: NCHW"
SETTINGS = (
    "framework: pytorch, framework_version: '2.1', cuda: '11.8', cudnn: '8.9', tensorrt: '8.6', compile: false, "
    "cudnn_benchmark: true, fixed_input_size: true, deterministic: false, prefer_nhwc: true, pinned_memory: true, "
    "tf_cudnn_use_autotune: true, cudnn_conv_algo_search: EXHAUSTIVE, mxnet_cudnn_autotune_default: 1, "
    "cudnn_conv_use_max_workspace: true, "
    "xla_gpu_autotune_level: 4, gpu_clock: boost, mixed_precision: true, cuda_graphs: false, optimizer: adam"
)
# may stay unknown although all is given: nothing states them, or nothing bounds them
LEFT = {
    "norm_follows", "gpu.chip", "declared_P", "declared_Q", "declared_Z", "support.cuda_last", "support.cudnn_last",
    "support.tensorrt_last", "support.framework_first", "support.framework_last", "support.framework_dropped",
    "support.framework_too_old", "support.tensorrt_first", "support.tensorrt_too_old", "lacking_says", "lacking_fix",
    "lacking_instead", "lacking_mode", "eight_bits", "network.host_ms", "network.batch_for_the_host",
    "network.step_ms", "network.compiled_step_ms",
}  # fmt: skip
NOTHING = facts("name: a")
PYTHON = {"number": (int, float), "text": (str,), "truth": (bool,), "version": (Version,)}


def value(of: LayerFacts, name: str) -> Any:
    """As a rule's expression looks it up."""
    first, *rest = name.split(".")
    found = of[first]
    return getattr(found, rest[0]) if rest else found


@pytest.fixture(scope="module")
def full() -> LayerFacts:
    return facts(BEFORE, FULL, runtime=SETTINGS)


@for_each("name", QUANTITIES)
def test_a_layer_with_everything_given_has_a_value_of_the_type(name: str, full: LayerFacts) -> None:
    found = value(full, name)
    if name in LEFT and found is UNKNOWN:
        return
    assert isinstance(found, PYTHON[QUANTITIES[name].type])
    assert isinstance(found, bool) == (QUANTITIES[name].type == "truth")


@for_each("name", QUANTITIES)
def test_a_layer_of_which_nothing_is_known_says_what_is_lacking(name: str) -> None:
    nobody_gives = name.startswith(("arriving.", "support.", "declared_")) or name in LEFT
    if value(NOTHING, name) is UNKNOWN and not nobody_gives:
        assert NOTHING.needs(frozenset((name,)))


def test_what_is_known_needs_nothing(full: LayerFacts) -> None:
    for name in QUANTITIES:
        if value(full, name) is not UNKNOWN:
            assert full.needs(frozenset((name,))) == (), name


def test_only_what_is_said_to_depend_on_the_target_does() -> None:
    targets = [facts(BEFORE, FULL, gpu=gpu, runtime=SETTINGS) for gpu in ("a100", "k80", "t4")]
    for name, quantity in QUANTITIES.items():
        if not quantity.gpu:
            first, *others = (value(of, name) for of in targets)
            assert all(other is first or other == first for other in others), name


def test_layers_of_equal_fields_differ_in_what_is_said_to_be_their_own() -> None:
    """Else they share one evaluation, and one would be told what is true of the other."""
    one = facts(FULL + ", name: a, C: 64", runtime=SETTINGS)
    moved = replace(one.layer, name="b", path="other", node="n", library="l.py:3", model="m", spans={"C": (1, 1, 1, 2)})
    assert layer_identity(moved) == layer_identity(one.layer)
    other = LayerFacts(one.context, moved, None, (), one.estimate)
    for name, quantity in QUANTITIES.items():
        values = [value(of, name) for of in (one, other)]
        if any(found is UNKNOWN for found in values):
            assert all(found is UNKNOWN for found in values), name
        else:
            assert (values[0] != values[1]) == quantity.own, name


def test_every_meaning_is_there_once() -> None:
    meanings = [quantity.meaning for quantity in QUANTITIES.values()]
    assert all(meanings)
    doubled = {meaning for meaning in meanings if meanings.count(meaning) > 1}
    # sides of one padding are told apart by their names alone
    assert doubled <= {meaning for meaning in doubled if meaning.endswith("does so")}, doubled


@pytest.mark.parametrize(
    ("runtime", "names", "needs"),
    [
        ("framework: pytorch", ("runtime.cudnn_benchmark",), ("runtime.cudnn_benchmark",)),
        # who runs another framework is not asked for what one alone has, as long as anything else is lacking
        ("framework: jax", ("runtime.cudnn_benchmark", "runtime.fixed_input_size"), ("runtime.fixed_input_size",)),
        ("framework: jax", ("runtime.cudnn_benchmark",), ("runtime.cudnn_benchmark",)),
        ("framework: pytorch", ("support.cudnn_too_old",), ("runtime.cudnn",)),
        ("cudnn: '8.1'", ("support.cudnn_too_old",), ()),
        ("", ("layer_percent", "network.time_us"), ("N", "C", "H", "W", "K", "dtype", "predicted time")),
        ("framework: pytorch", ("network.on_tensor_cores", "alignment"), ("dtype",)),
    ],
)
def test_what_a_rule_lacks(runtime: str, names: tuple[str, ...], needs: tuple[str, ...]) -> None:
    assert facts("R: 3, S: 3", runtime=runtime).needs(frozenset(names)) == needs


@pytest.mark.parametrize(
    ("name", "needs"),
    [
        ("dead_taps", ("H", "W", "R", "S")), ("spatial_filter", ("R", "S")), ("padded", ()),
        ("has_output", ("H", "W", "R", "S")),
        ("fitting_PadH_end", ("H", "R")), ("fitting_DilW", ("W", "S")), ("live_PadW", ("W", "S")),
        ("even_OutPadH", ("R",)), ("groups_divide", ("C", "K")), ("matches_arriving", ()), ("filter_size", ()),
    ],
)  # fmt: skip
def test_what_a_user_can_give_so_that_it_is_known(name: str, needs: tuple[str, ...]) -> None:
    found = facts("op: conv_transpose, stride: 2, H: 4" if name == "even_OutPadH" else "groups: 2")
    assert found.needs(frozenset((name,))) == needs


def test_nothing_is_lacking_where_nothing_arrives() -> None:
    assert facts("C: 8").needs(frozenset(("arriving.C", "arriving.layout"))) == ()


def test_only_quantities_have_a_value() -> None:
    with pytest.raises(KeyError):
        facts("C: 8")["channels"]


def test_what_a_rule_names_itself_hides_no_quantity() -> None:
    """`let` puts its names beside the quantities; those that several share are spelled as no rule can."""
    found = facts("N: 8, C: 64, H: 28, W: 28, K: 64, kernel_size: 3, padding: 1, dtype: fp16")
    found["full_waves"] = 3
    assert found["batch_above"] is not UNKNOWN


CONTEXT = TargetFacts("a100", load_gpu("a100"), Runtime(framework="pytorch"), "training")


def kinds() -> dict[str, SourceFacts]:
    return {
        "construction": facts_of_construction(CONTEXT, record(K=62)),
        "width": facts_of_width(CONTEXT, Width(record=record(K=62), side="K")),
        "program": facts_of_program(CONTEXT, program(), ConvLayer(name="")),
    }


def test_each_scope_has_its_own_names_and_the_layer_s() -> None:
    found = kinds()
    assert [(found["construction"]["K"], found["construction"]["source"].stated)] == [(62, True)]
    assert (found["width"]["width"].value, found["width"]["source"].stated) == (62, True)
    assert found["program"]["program"].path == "train.py"
    assert found["construction"]["width"] is found["construction"]["program"] is UNKNOWN
    assert found["program"]["source"] is found["program"]["K"] is UNKNOWN


def test_numbers_that_a_layer_has_to_have_may_be_unknown() -> None:
    facts = facts_of_construction(CONTEXT, record(K=62, unknown=("groups",)))
    assert (facts["groups"], facts["U"]) == (UNKNOWN, 1)


def test_what_a_network_alone_shows_is_unknown() -> None:
    for asked in kinds().values():
        assert asked["network"].time_us is UNKNOWN


def test_what_is_lacking_has_the_name_that_a_user_knows() -> None:
    assert kinds()["program"].needs(frozenset(("runtime.cudnn_benchmark", "program.trainer"))) == (
        "runtime.cudnn_benchmark",
    )
    assert kinds()["construction"].needs(frozenset(("source.pointwise_map", "bias"))) == (
        "bias", "source.pointwise_map",
    )  # fmt: skip


def test_names_of_source_are_none_of_a_layer_s() -> None:
    assert OF_SOURCE.keys().isdisjoint(QUANTITIES)
    meanings = [quantity.meaning for quantity in OF_SOURCE.values()]
    assert all(meanings)
    assert len(set(meanings)) == len(meanings)
