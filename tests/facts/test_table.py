"""The one table of quantities: every row has a value of its type, or is unknown and says what it needs."""

from __future__ import annotations

from typing import Any

import pytest
from cases import for_each
from layer_facts import facts
from msgspec.structs import replace

from convlint.facts.layer import LayerFacts
from convlint.facts.table import QUANTITIES
from convlint.facts.unknown import UNKNOWN
from convlint.model.layer import layer_identity
from convlint.model.version import Version

FULL = "N: 256, H: 32, W: 32, K: 64, kernel_size: 3, padding: 1, dtype: fp16, layout: NHWC, bias: true"
BEFORE = "name: a, N: 256, C: 3, H: 32, W: 32, K: 62, kernel_size: 3, padding: 1, dtype: fp16, layout: NCHW"
SETTINGS = (
    "framework: pytorch, framework_version: '2.1', cuda: '11.8', cudnn: '8.9', tensorrt: '8.6', compile: false, "
    "cudnn_benchmark: true, fixed_input_size: true, deterministic: false, prefer_nhwc: true, pinned_memory: true, "
    "tf_cudnn_use_autotune: true, cudnn_conv_algo_search: EXHAUSTIVE, mxnet_cudnn_autotune_default: 1, "
    "xla_gpu_autotune_level: 4, gpu_clock: boost, mixed_precision: true, cuda_graphs: false, optimizer: adam"
)
# may stay unknown although all is given: nothing states them, or nothing bounds them
LEFT = {
    "norm_follows", "gpu.chip", "declared_P", "declared_Q", "declared_Z", "support.cuda_last", "support.cudnn_last",
    "support.tensorrt_last", "support.framework_first", "support.framework_last", "support.framework_dropped",
    "support.framework_too_old", "support.tensorrt_first", "support.tensorrt_too_old", "lacking_says", "lacking_fix",
    "lacking_instead", "lacking_mode", "eight_bits", "network.host_ms", "network.batch_for_the_host",
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
