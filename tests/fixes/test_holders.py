"""What each layer has to say: where its values come from, what it gets anew, and what it cannot get."""

from __future__ import annotations

from typing import Any

import pytest
from fixed_specs import fixed, fixed_layer, one_layer, refused

from convlint.fixes.document import document_of
from convlint.fixes.holders import decide, effective
from convlint.fixes.yaml_nodes import nodes_of
from convlint.readers.spec.reader import read_spec

SIZED = "C: 8, K: 8, H: 9, W: 9, kernel_size: 3"


@pytest.mark.parametrize(
    ("before", "changes", "added"),
    [
        ("", [("groups", 2)], "groups: 2"),
        ("", [("DilH", 2), ("DilW", 2)], "dilation: 2"),
        ("", [("DilH", 2), ("DilW", 3)], "dilation: [2, 3]"),
        ("", [("DilW", 2)], "DilW: 2"),
        (", DilW: 1", [("DilH", 2)], "DilH: 2"),
        ("", [("PadH", 1), ("PadW", 1)], "padding: 1"),
        ("", [("PadH", 1)], "padding: [1, 0]"),
        ("", [("PadH_end", 1)], "padding: [0, 1, 0, 0]"),
        (", PadW: 1", [("PadH", 2)], "PadH: 2"),
        (", op: conv_transpose, stride: 2", [("OutPadW", 1)], "output_padding: [0, 1]"),
        ("", [("bias", False)], "bias: false"),
        ("", [("P", 7)], "P: 7"),
    ],
)
def test_what_nothing_states_is_added(before: str, changes: list[tuple[str, Any]], added: str) -> None:
    if "op:" in before:
        head = f"version: 1\nlayers:\n  - {{{SIZED}{before}"
        assert fixed(head + "}\n", *((0, *change) for change in changes)) == f"{head}, {added}}}\n"
    else:
        assert fixed_layer(SIZED + before, *changes) == f"{SIZED}{before}, {added}"


@pytest.mark.parametrize(
    ("layer", "change", "reason"),
    [
        ("K: 8, H: 9, W: 9, kernel_size: 3", ("C", 8), "it comes from the layer before"),
        ("K: 8, kernel_size: 3, C: 8, W: 9", ("H", 9), "it comes from the layer before"),
    ],
)
def test_a_size_that_would_cut_a_layer_off_is_refused(layer: str, change: tuple[str, Any], reason: str) -> None:
    text = one_layer(f"name: a, {SIZED}") + f"  - {{{layer}}}\n"
    assert [found.startswith(reason) for found in refused(text, (1, *change))] == [True]
    named = text.replace(f"{{{layer}}}", f"{{input: a, {layer}}}")
    assert fixed(named, (1, *change)) == named.replace(f"{layer}}}", f"{layer}, {change[0]}: {change[1]}}}")


def test_a_size_that_leaves_others_to_the_layer_before_is_added() -> None:
    text = one_layer(f"name: a, {SIZED}") + "  - {K: 8, kernel_size: 3}\n"
    assert fixed(text, (1, "C", 8)) == text.replace("{K: 8, kernel_size: 3", "{K: 8, kernel_size: 3, C: 8")


def test_the_first_layer_has_none_before_it() -> None:
    assert fixed_layer("K: 8, H: 9, W: 9, kernel_size: 3", ("C", 8)) == "K: 8, H: 9, W: 9, kernel_size: 3, C: 8"


def test_one_dimensional_layers_have_no_height() -> None:
    text = one_layer("C: 8, K: 8, W: 9, S: 3", dims=1)
    assert refused(text, (0, "R", 3), (0, "PadH", 1)) == ["a 1-D convolution has no R", "a 1-D convolution has no PadH"]
    assert fixed_layer("C: 8, K: 8, W: 9, S: 3", ("DilW", 2), dims=1) == "C: 8, K: 8, W: 9, S: 3, dilation: 2"


def test_both_keys_for_one_thing_change_together() -> None:
    before, after = ("K: 8, C: 8, H: 9, W: 9, kernel: 3, R: 3, out_channels: 8",
                     "K: 9, C: 8, H: 9, W: 9, kernel: [5, 3], R: 5, out_channels: 9")  # fmt: skip
    assert fixed_layer(before, ("K", 9), ("R", 5)) == after


def test_what_one_key_cannot_say_takes_the_other_back_too() -> None:
    text = one_layer(f"{SIZED}, padding: 1, PadH: 1")
    assert refused(text, (0, "PadH_end", 2)) == ["PadH pads both sides alike"]


def test_operations_that_are_no_convolutions_change_plain_values_only() -> None:
    text = "version: 1\nlayers:\n  - {op: input, C: 3, H: 9, W: 9}\n  - {op: pool, kernel_size: 3}\n" \
        "  - {K: 8, kernel_size: 3}\n"  # fmt: skip
    assert fixed(text, (0, "C", 4)) == text.replace("C: 3", "C: 4")
    assert refused(text, (1, "R", 2)) == ["it is no convolution"]


def test_what_a_layer_would_have_to_state_so_that_it_stays_as_it_is() -> None:
    text = one_layer(f"{SIZED}, padding: [1, 2, 0, 0], dtype: half")
    network, _ = read_spec(text, "net.yaml")
    tree = nodes_of(text)
    assert network is not None
    assert tree is not None
    document = document_of(tree, network)
    (holder,) = document.holders
    holder.changes["S"] = 5
    decide(holder, document.defaults, lambda *_: None)
    keys = ("kernel", "padding", "PadH", "PadW", "dtype", "bias", "P", "stride")
    assert [effective(key, holder) for key in keys] == [
        ("3", "5"), ("1", "2", "0", "0"), None, "0", "half", None, "10", "1",
    ]  # fmt: skip
