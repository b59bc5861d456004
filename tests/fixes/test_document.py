"""A spec as its items, its defaults and its runtime."""

from __future__ import annotations

import pytest

from convlint.fixes.document import Document, document_of
from convlint.fixes.yaml_nodes import nodes_of
from convlint.readers.spec.reader import read_spec


def document(text: str) -> Document:
    network, errors = read_spec(text, "net.yaml")
    tree = nodes_of(text)
    assert errors == ()
    assert network is not None
    assert tree is not None
    return document_of(tree, network)


LAYERS = """layers:
  - {op: input, C: 3, H: 9, W: 9}
  - &a {K: 8, kernel_size: 3}
  - {op: pool, kernel_size: 1}
  - *a
  - {op: conv3d, C: 3, K: 8, kernel_size: 3}
"""


def test_items_are_held_by_their_mapping() -> None:
    found = document("version: 1\n" + LAYERS)
    assert [holder.items for holder in found.holders] == [[0], [1, 3], [2], [4]]
    assert [found.holders.index(holder) for holder in found.items] == [0, 1, 2, 1, 3]
    assert [[layer.name for layer in holder.layers] for holder in found.holders] == [
        [], ["layer2", "layer4"], [], ["layer5"],
    ]  # fmt: skip
    assert [holder.dims for holder in found.holders] == [None, 2, None, 3]
    assert [holder.takes_N for holder in found.holders] == [True, False, False, False]


def test_a_layer_that_stands_where_dimensions_differ_has_none() -> None:
    text = "version: 1\nlayers:\n  - &a {C: 8, K: 8, S: 3, R: 1}\n  - {op: conv1d, C: 8, K: 8, S: 3}\n  - *a\n"
    found = document(text.replace("C: 8, K: 8, S: 3, R: 1", "K: 8, S: 3, R: 1"))
    assert [layer.dims for layer in found.holders[0].layers] == [2, 1]
    assert found.holders[0].dims is None


@pytest.mark.parametrize("name", ["defaults", "runtime"])
@pytest.mark.parametrize(
    ("block", "there", "can_get"),
    [
        ("", False, True), ("B:\n", False, True), ("B: ~\n", False, True), ("B: {}\n", True, True),
        ("x-b: &b {}\nB: *b\n", True, True), ("x-b: &b\nB: *b\n", False, True), ("B: &b\nx-b: *b\n", False, False),
    ],
)  # fmt: skip
def test_blocks(name: str, block: str, there: bool, can_get: bool) -> None:
    found = document("version: 1\n" + block.replace("B:", f"{name}:") + LAYERS)
    block_found = found.defaults if name == "defaults" else found.runtime
    assert (block_found is not None) is there
    assert found.can_get(name) is can_get
    assert len(found.all_holders) == len(found.holders) + (there and name == "runtime")
