"""What a layer leaves out is filled from the defaults."""

from __future__ import annotations

import pytest
from read_specs import STEM, errors, network, only, sizes, spec


def test_defaults_fill_what_a_layer_leaves_out() -> None:
    text = spec(
        "C: 4, H: 8, W: 8, K: 8", "K: 16, R: 1, N: 2", defaults="{ N: 256, kernel_size: 3, padding: 1, dtype: fp16 }"
    )
    first, second = network(text).layers
    assert sizes(first, "N R S PadH PadW dtype") == [256, 3, 3, 1, 1, "fp16"]
    assert sizes(second, "N R S PadH PadW") == [2, 1, 3, 1, 1]


@pytest.mark.parametrize(
    ("default", "layer", "sides"),
    [
        ("1", "PadH: 0", (0, 0, 1, 1)),
        ("1", "padding: 0", (0, 0, 0, 0)),
        ("1", "padding: same", (2, 2, 2, 2)),
        ("same", "padding: 1", (1, 1, 1, 1)),
        ("same", "PadW: 1", (0, 0, 1, 1)),
        ("same", "bias: true", (2, 2, 2, 2)),
    ],
)
def test_default_padding(default: str, layer: str, sides: tuple[int, ...]) -> None:
    made = only(spec(f"C: 4, H: 8, W: 8, K: 8, kernel_size: 5, {layer}", defaults=f"{{ padding: {default} }}"))
    assert (made.PadH, made.PadH_end, made.PadW, made.PadW_end) == sides


def test_defaults_of_other_dimensions() -> None:
    volumes = network(spec("C: 4, H: 8, W: 8, D: 8, K: 8", defaults="{ kernel_size: [3, 1, 1], stride: [1, 2, 2] }"))
    assert sizes(volumes.layers[0], "dims T R StrideD U") == [3, 3, 1, 1, 2]
    sound = network(spec("C: 4, W: 100, K: 8", "K: 8", defaults="{ dims: 1, kernel_size: 5 }"))
    assert [layer.dims for layer in sound.layers] == [1, 1]
    assert sound.layers[1].Q == 92


def test_defaults_count_as_written() -> None:
    found = network(spec("K: 8, kernel_size: 1", "K: 8, kernel_size: 1", defaults="{ C: 64, H: 56, W: 56 }"))
    assert found.edges == ()


def test_a_default_is_located_where_it_stands() -> None:
    layer = only("version: 1\ndefaults:\n  dtype: fp16\nlayers:\n  - {C: 4, H: 8, W: 8, K: 8, kernel_size: 1}\n")
    assert layer.spans["dtype"] == (3, 10, 3, 14)


def test_errors_of_defaults_are_told_once() -> None:
    found = errors(spec(STEM, STEM, "op: conv1d, C: 3, W: 9, K: 1, kernel_size: 1", defaults="{ N: 0, nane: x }"))
    assert [error.message.split(":")[0] for error in found] == [
        "N",
        "unknown key 'nane' in defaults; did you mean 'name'?",
    ]
    assert [error.message for error in errors(spec(defaults="{ name: x }", layers="[]").replace("layers:\n", ""))] == [
        "name cannot be a default"
    ]
