"""The names that rules may read: each with a meaning, of one type, and known to depend on the GPU or not."""

from __future__ import annotations

import pytest
from cases import for_each
from layer_facts import facts

from convlint.facts.predicted import PASS_TABLES
from convlint.rulebook.vocabulary import (
    GPU_NAMES,
    MEANINGS,
    PLACES,
    SETTABLE,
    SUPPRESSION,
    SUPPRESSION_MEANINGS,
    VOCABULARY,
)


def test_every_name_has_a_meaning() -> None:
    assert MEANINGS.keys() == VOCABULARY.keys()
    assert SUPPRESSION_MEANINGS.keys() == SUPPRESSION.keys()
    assert all({**MEANINGS, **SUPPRESSION_MEANINGS}.values())


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("C", "number"), ("dtype.bytes", "number"), ("network.time_us", "number"), ("fprop.waves", "number"),
        ("name", "text"), ("gpu.id", "text"), ("support.cudnn_last", "text"), ("tiles_worst.pass_name", "text"),
        ("dgrad.bound_by", "text"), ("first", "truth"), ("gpu.tensor_fp8", "truth"), ("runtime.tf32", "truth"),
        ("support.cuda_dropped", "truth"), ("gpu.compute_capability", "version"), ("runtime.cudnn", "version"),
        ("stated.cudnn_benchmark", "truth"), ("stated.deterministic", "truth"), ("has_branches", "truth"),
        ("on_branches", "text"),
    ],
)  # fmt: skip
def test_types(name: str, kind: str) -> None:
    assert VOCABULARY[name] == kind


@pytest.mark.parametrize(
    ("name", "depends"),
    [
        ("C", False), ("dtype", False), ("runtime.cudnn", False), ("network.layers", False), ("arriving.C", False),
        ("compute_dtype", True), ("alignment", True), ("fprop.time_us", True), ("tiles_worst.tile_m", True),
        ("network.time_us", True), ("support.cudnn_dropped", True), ("batch_above", True), ("tile_K", True),
        ("stated.xla_gpu_autotune_level", False), ("on_branches", False), ("has_branches", False),
    ],
)  # fmt: skip
def test_what_depends_on_the_gpu(name: str, depends: bool) -> None:
    assert name in VOCABULARY
    assert (name in GPU_NAMES) == depends


def test_what_a_fix_may_set_can_be_pointed_at() -> None:
    assert set(SETTABLE) <= set(PLACES)
    assert {name for name in SETTABLE if "." not in name} <= VOCABULARY.keys()
    assert "version" not in SETTABLE.values()  # no fix makes up a release


def test_passes_have_the_same_names() -> None:
    by_prefix = {
        prefix: {name.split(".")[1] for name in VOCABULARY if name.startswith(f"{prefix}.")} - {"pass_name"}
        for prefix in PASS_TABLES
    }
    assert len(by_prefix["fprop"]) > 15
    assert all(names == by_prefix["fprop"] for names in by_prefix.values())


SIZED = "N: 8, C: 64, H: 28, W: 28, K: 64, R: 3, S: 3, padding: 1, dtype: fp16, layout: NHWC, bias: true, "


@for_each("name", [name for name in VOCABULARY if "." not in name])
def test_every_name_of_a_layer_can_be_read(name: str) -> None:
    found = facts(SIZED + "name: a")
    kinds: dict[str, type | tuple[type, ...]] = {"number": (int, float), "text": str, "truth": bool}
    value = found[name]
    assert repr(value) == "UNKNOWN" or isinstance(value, kinds[VOCABULARY[name]]), value
