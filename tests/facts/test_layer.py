"""What a rule that cannot be checked lacks, in words that a user can act on."""

from __future__ import annotations

import pytest
from layer_facts import facts

from convlint.facts.unknown import UNKNOWN


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
)  # fmt: skip
def test_what_a_rule_lacks(runtime: str, names: tuple[str, ...], needs: tuple[str, ...]) -> None:
    assert facts("R: 3, S: 3", runtime=runtime).needs(frozenset(names)) == needs


@pytest.mark.parametrize(
    ("name", "needs"),
    [
        ("dead_taps", ("H", "W", "R", "S")), ("spatial_filter", ("R", "S")), ("padded", ()), ("has_output", ("H", "W")),
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
