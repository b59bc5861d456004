"""First layers, heads, and normalisations that follow."""

from __future__ import annotations

from read_specs import STEM, network, spec


def test_roles_in_a_connected_network() -> None:
    found = network(
        spec(
            "name: image, op: input, N: 8, C: 12, H: 32, W: 32",
            "name: a, K: 16, kernel_size: 3",
            "name: bn, op: batchnorm",
            "name: b, K: 16, kernel_size: 1, bias: true",
            "name: act, op: relu",
            "name: bn2, op: batchnorm",
            "name: c, K: 19, kernel_size: 1",
        )
    )
    assert [(layer.name, layer.first, layer.head, layer.norm_follows, layer.N) for layer in found.layers] == [
        ("a", True, False, True, 8),
        ("b", False, False, False, 8),
        ("c", False, True, None, 8),
    ]


def test_a_normalisation_beside_another_reader() -> None:
    found = network(spec(f"name: a, {STEM}", "name: n, op: bn", "op: add, inputs: [a, n]", "K: 8, kernel_size: 1"))
    assert found.layers[0].norm_follows is False


def test_roles_of_layers_that_stand_alone() -> None:
    rgb, wide = network(spec(STEM, "C: 64, H: 8, W: 8, K: 8, kernel_size: 1")).layers
    assert (rgb.first, rgb.head, wide.first, wide.head) == (True, False, False, False)
    fed, _ = network(spec("C: 64, H: 8, W: 8, K: 8, kernel_size: 1", "K: 8, kernel_size: 1")).layers
    assert fed.first


def test_stated_roles_win() -> None:
    first, last = network(spec(f"{STEM}, first: false", "K: 8, kernel_size: 1, head: false, first: true")).layers
    assert (first.first, last.head, last.first) == (False, False, True)
