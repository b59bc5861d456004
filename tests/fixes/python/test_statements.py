"""What has to be stated anew is complete: every layer and norm of the same channels, or a reason."""

from __future__ import annotations

from typing import Any

import pytest
from constructed import NN, alone, chain, conv, norm
from msgspec.structs import replace

from convlint.fixes.python.statements import OF_A_NORM, Constructed, Statements, site_of
from convlint.model.network import Network, Operation

TEXT = f"""{NN}a = nn.Conv2d(3, 60, 3)
n = nn.BatchNorm2d(60)
d = nn.Conv2d(60, 60, 3, groups=60)
b = nn.Conv2d(60, 32, 3)
"""
A, N, D, B = (line.split(" = ")[1] for line in TEXT.splitlines()[1:])
WIDER = {0: {"K": 64}, 1: {"C": 64, "K": 64, "groups": 64}, 2: {"C": 64}}


def network(**of_norm: Any) -> Network:
    step = replace(norm(TEXT, N, 60), **of_norm)
    return chain(conv(TEXT, A), step, conv(TEXT, D, C=60, groups=60), conv(TEXT, B, C=60, K=32))


def stated(statements: Statements) -> list[tuple[int, str, Any, Any]]:
    return [
        (each.site.span[0] if each.site else 0, each.parameter, each.old, each.new) for each in statements.found
    ]  # fmt: skip


def test_a_width_is_stated_by_all_that_share_it() -> None:
    found = Statements(Constructed(network()), WIDER)
    assert found.refused == {}
    assert sorted(stated(found)) == [
        (2, "out_channels", (60,), (64,)), (3, OF_A_NORM, (60,), (64,)), (4, "groups", (60,), (64,)),
        (4, "in_channels", (60,), (64,)), (4, "out_channels", (60,), (64,)), (5, "in_channels", (60,), (64,)),
    ]  # fmt: skip
    every = {(index, field) for index, fields in WIDER.items() for field in fields}
    assert found.tied == [every]
    assert next(each for each in found.found if each.operation is not None).asked == every


def test_a_norm_without_sizes_states_nothing() -> None:
    assert OF_A_NORM not in {
        each.parameter for each in Statements(Constructed(network(sized=False, span=None)), WIDER).found
    }


def test_a_norm_that_a_layers_own_call_constructs_follows_it() -> None:
    before = network()
    operation = replace(before.operations[2], span=before.layers[0].spans["layer"])
    after = replace(before, operations=(*before.operations[:2], operation, *before.operations[3:]))
    of_norm = next(each for each in Statements(Constructed(after), WIDER).found if each.operation is not None)
    assert (of_norm.parameter, of_norm.site) == ("out_channels", site_of(after.layers[0]))


@pytest.mark.parametrize(
    ("sets", "reason"),
    [
        ({0: {"K": 64}}, "other layers would have to change"),
        ({0: {"K": 64}, 2: {"C": 64}}, "other layers would have to change"),
        ({0: {"K": 64}, 1: {"C": 64, "K": 64, "groups": 64}, 2: {"C": 72}}, "have to change"),
        ({0: {"C": 4}}, "the network's input"),
        ({2: {"K": 40}}, "the network hands it out"),
        ({2: {"groups": 4}}, "which other layers"),
        ({0: {"layout": "NHWC"}}, "layout is nothing that the code states"),
        ({0: {"N": 64}}, "N is nothing that the code states"),
        ({0: {"PadH": 1, "PadH_end": 2}}, "does not state such sizes"),
        ({0: {"R": "3"}}, "does not state such sizes"),
    ],
)
def test_what_is_incomplete_is_refused(sets: dict[int, dict[str, Any]], reason: str) -> None:
    found = Statements(Constructed(network()), sets)
    assert set(found.refused) == {(index, field) for index, fields in sets.items() for field in fields}
    assert any(reason in each for each in found.refused.values())


def test_without_dataflow_no_width_changes() -> None:
    layers = [conv(TEXT, A), conv(TEXT, B, C=60, K=32)]
    found = Statements(Constructed(alone(layers)), {0: {"K": 64, "bias": False}, 1: {"C": 64}})
    assert set(found.refused) == {(0, "K"), (1, "C")}


def test_channels_that_are_joined_hang_together() -> None:
    text = NN + "nn.Conv2d(3, 30, 3)\nnn.Conv2d(3, 40, 3)\nnn.Conv2d(70, 8, 3)\n"
    one, other, both = text.splitlines()[1:]
    layers = (conv(text, one, K=30), conv(text, other, K=40), conv(text, both, C=70, K=8))
    operations = (
        Operation(kind="input", C=3),
        *(Operation(kind="conv", layer=index, inputs=(0,), C=layers[index].K) for index in (0, 1)),
        Operation(kind="concat", inputs=(1, 2), C=70),
        Operation(kind="conv", layer=2, inputs=(3,), C=8, output=True),
    )
    sets = {0: {"K": 32}, 1: {"K": 48}, 2: {"C": 80}}
    found = Statements(Constructed(Network(path="", layers=layers, operations=operations)), sets)
    assert found.refused == {}
    assert sorted(map(sorted, found.tied)) == [[(0, "K"), (2, "C")], [(1, "K"), (2, "C")]]


def test_groups_of_a_norm_divide_the_width() -> None:
    found = Statements(Constructed(network(groups=12)), WIDER)
    assert set(found.refused.values()) == {"60 channels stay: their number has to be a multiple of 12"}


@pytest.mark.parametrize(
    ("dims", "fields", "statement"),
    [
        (2, {"PadH": 1, "PadW": 1}, ("padding", (0, 0), (1, 1))),
        (2, {"PadH": 1, "PadH_end": 1}, ("padding", (0, 0), (1, 0))),
        (1, {"S": 5}, ("kernel_size", (3,), (5,))),
        (3, {"DilD": 2}, ("dilation", (1, 1, 1), (2, 1, 1))),
        (2, {"V": 2}, ("stride", (1, 1), (1, 2))),
    ],
)
def test_sizes_of_axes_are_stated_together(dims: int, fields: dict[str, int], statement: tuple[Any, ...]) -> None:
    found = Statements(Constructed(alone([conv(TEXT, A, dims=dims)])), {0: fields})
    assert [(each.parameter, each.old, each.new) for each in found.found] == [statement]
