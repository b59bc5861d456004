"""Which tensors are alive while each layer of an inference runs."""

from __future__ import annotations

from convolutions import conv

from convlint.estimate.liveness import alive, input_bytes, output_bytes
from convlint.model.network import Edge

MAP = 256 * 64 * 56 * 56 * 2  # bytes


def edge(consumer: int, *producers: int, source: str, C: int = 64) -> Edge:
    return Edge(consumer=consumer, producers=producers, source=source, C=C, H=56, W=56)


def test_a_chain_has_one_input_and_one_output_alive() -> None:
    layers = [conv(), conv(), conv(K=8)]
    edges = [edge(1, 0, source="a"), edge(2, 1, source="b")]
    assert alive(layers, edges, copies=False) == [2 * MAP, 2 * MAP, MAP + MAP // 8]


def test_a_shortcut_lives_until_it_is_added() -> None:
    """0 -> 1 -> 2, whose output is added to that of 0; 3 reads the sum."""
    edges = [edge(1, 0, source="a"), edge(2, 1, source="b"), edge(3, 2, 0, source="sum")]
    sizes = alive([conv()] * 4, edges, copies=False)
    assert sizes == [2 * MAP, 2 * MAP, 3 * MAP, 2 * MAP]


def test_a_norm_writes_a_tensor_of_its_own_where_nothing_folds_it() -> None:
    """Its input and its output, when the layer's own input is no longer needed; else all three."""
    first, second = conv(C=32, norm_follows=True), conv()
    edges = [edge(1, 0, source="a")]
    assert alive([first, second], edges, copies=True)[0] == 2 * MAP
    assert alive([first, second], edges, copies=False)[0] == MAP + MAP // 2
    read_again = [edge(1, 0, source="a"), edge(2, 1, source="b"), edge(3, 2, 0, source="sum")]
    normed = conv(norm_follows=True)
    assert alive([conv(), normed, conv(), conv()], read_again, copies=True)[1] == 3 * MAP


def test_a_concatenation_copies_what_it_joins() -> None:
    edges = [edge(1, 0, source="a"), edge(2, 0, 1, source="cat", C=128)]
    layers = [conv(), conv(), conv(C=128)]
    copied, joined_in_place = (alive(layers, edges, copies=copies)[2] for copies in (True, False))
    assert copied == 4 * MAP  # both parts and the whole
    assert joined_in_place == 3 * MAP  # the whole, and the output


def test_bytes_of_tensors_count_every_axis() -> None:
    volume = conv(D=4, dims=3, Z=4)
    assert input_bytes(volume) == 4 * MAP
    assert output_bytes(conv(K=128)) == 2 * MAP
