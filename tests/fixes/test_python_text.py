"""Literals that construct layers change where every place that states them can, and nowhere else."""

import random
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest
from constructed import NN, PATH, alone, chain, conv, norm
from msgspec.structs import replace

from convlint.fixes.python.source import applied_to_bytes
from convlint.fixes.python_text import OF_A_NORM, Constructed, PythonEditor, PythonEdits, Statements, site_of
from convlint.model.channels import channels_of
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
        (each.site.span[0] if each.site else 0, each.parameter, each.old, each.new) for each in statements.statements
    ]


def test_a_width_is_stated_by_all_that_share_it() -> None:
    found = Statements(Constructed(network()), WIDER)
    assert found.refused == {}
    assert sorted(stated(found)) == [
        (2, "out_channels", (60,), (64,)), (3, OF_A_NORM, (60,), (64,)), (4, "groups", (60,), (64,)),
        (4, "in_channels", (60,), (64,)), (4, "out_channels", (60,), (64,)), (5, "in_channels", (60,), (64,)),
    ]  # fmt: skip
    every = {(index, field) for index, fields in WIDER.items() for field in fields}
    assert found.tied == [every]
    assert next(each for each in found.statements if each.operation is not None).asked == every


def test_a_norm_without_sizes_states_nothing() -> None:
    assert OF_A_NORM not in {
        each.parameter for each in Statements(Constructed(network(sized=False, span=None)), WIDER).statements
    }


def test_a_norm_that_a_layers_own_call_constructs_follows_it() -> None:
    before = network()
    operation = replace(before.operations[2], span=before.layers[0].spans["layer"])
    after = replace(before, operations=(*before.operations[:2], operation, *before.operations[3:]))
    of_norm = next(each for each in Statements(Constructed(after), WIDER).statements if each.operation is not None)
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
    assert [(each.parameter, each.old, each.new) for each in found.statements] == [statement]


OUT = "\nout = nn.Conv2d(60, 8, 1)\n"
Sets = Mapping[int, Mapping[str, Any]]


def edits_of(text: str, network: Network, sets: Sets) -> PythonEdits:
    return PythonEditor(network, {PATH: text.encode()}.get).edits(sets)


def edited(text: str, network: Network, sets: Sets) -> str:
    made = edits_of(text, network, sets)
    assert made.refused == {}
    return applied_to_bytes(text.encode(), made.edits.get(PATH, ())).decode()


def wider(network: Network, old: int = 60, new: int = 64) -> Sets:
    """All channels that are `old` become `new`."""
    channels = channels_of(network)
    widths = {number: new for number, group in enumerate(channels.groups) if group.width == old}
    return channels.changes(network.layers, widths)


def why(text: str, network: Network, sets: Sets) -> str:
    made = edits_of(text, network, sets)
    assert made.edits == {}
    assert set(made.refused) == {(index, field) for index, fields in sets.items() for field in fields}
    reasons = set(made.refused.values())
    assert len(reasons) == 1, reasons
    assert made.in_code in ("", *reasons)
    return reasons.pop()


@pytest.mark.parametrize(
    ("call", "fields", "after"),
    [
        ("nn.Conv2d(3, 60, 3)", {}, "nn.Conv2d(3, 64, 3)"),
        ("nn.Conv2d(3, 60, 7, 2, 3)", {}, "nn.Conv2d(3, 64, 7, 2, 3)"),
        ("nn.Conv2d(60, 60, 60)", {"C": 3}, None),
        ("nn.Conv2d(in_channels=3, kernel_size=3, out_channels=60)", {},
         "nn.Conv2d(in_channels=3, kernel_size=3, out_channels=64)"),
        ("nn.Conv2d(\n  3,\n  0x3c, # 60\n  3)", {}, "nn.Conv2d(\n  3,\n  64, # 60\n  3)"),
        ("nn.Conv1d(3, 60, 3)", {"dims": 1}, "nn.Conv1d(3, 64, 3)"),
        ("nn.Conv3d(3, 60, 3)", {"dims": 3}, "nn.Conv3d(3, 64, 3)"),
        ("nn.ConvTranspose2d(3, 60, 3, bias=False)", {"op": "conv_transpose"},
         "nn.ConvTranspose2d(3, 64, 3, bias=False)"),
        ("nn.LazyConv2d(60, 3)", {}, "nn.LazyConv2d(64, 3)"),
        ("ConvBlock(out_channels=60, in_channels=3)", {}, "ConvBlock(out_channels=64, in_channels=3)"),
        ("nn.Conv2d(3, 60, *rest)", {}, "nn.Conv2d(3, 64, *rest)"),
        ("nn.Conv2d(3, 60, **more)", {}, "nn.Conv2d(3, 64, **more)"),
    ],
)  # fmt: skip
def test_a_literal_width_changes(call: str, fields: dict[str, Any], after: str | None) -> None:
    text = f"{NN}ß = 'ß'; a = {call}{OUT}"
    network = chain(conv(text, call, **fields), conv(text, OUT[7:-1], C=60, K=8))
    if after is None:
        after = call.replace("60, 60,", "60, 64,")
    assert edited(text, network, wider(network)) == text.replace(call, after).replace("(60, 8", "(64, 8")


@pytest.mark.parametrize(
    ("before", "call", "reason"),
    [
        ("width = 60\n", "nn.Conv2d(3, width, 3)", "net.py:3: out_channels comes from `width` at net.py:2"),
        ("", "nn.Conv2d(3, 30 * 2, 3)", "net.py:2: out_channels comes from the expression `30 * 2`"),
        ("", "nn.Conv2d(3, self.width, 3)", "net.py:2: out_channels comes from the attribute `self.width`"),
        ("", "nn.Conv2d(3, 62, 3)", "net.py:2: out_channels comes from `62`"),
        ("", "nn.Conv2d(3, 60., 3)", "net.py:2: out_channels comes from `60.`"),
        ("", "nn.Conv2d(3, *sizes)", "net.py:2: out_channels may come with its *arguments"),
        ("", "nn.Conv2d(3, **sizes)", "net.py:2: out_channels may come with its **arguments"),
        ("", "ConvBNReLU(3, 60, 3)", "net.py:2: which sizes `ConvBNReLU` takes is not known"),
        ("", "nn.Sequential(nn.Conv2d(3, 60, 3), nn.ReLU())",
         "net.py:2: which sizes `nn.Sequential` takes is not known"),
        ("", "[nn.Conv2d(3, 60, 3)]", "net.py:2: there is no call, or more than one"),
        ("from my import Conv2d\n", "Conv2d(3, 60, 3)", "net.py:3: which sizes `Conv2d` takes is not known"),
    ],
)  # fmt: skip
def test_a_width_from_elsewhere_stays_and_so_does_all_that_depends_on_it(before: str, call: str, reason: str) -> None:
    text = f"{NN}{before}a = {call}{OUT}"
    network = chain(conv(text, call), conv(text, OUT[7:-1], C=60, K=8))
    assert why(text, network, wider(network)) == reason


@pytest.mark.parametrize(
    ("call", "after"),
    [
        ("nn.BatchNorm2d(60)", "nn.BatchNorm2d(64)"),
        ("nn.BatchNorm2d(num_features=60, eps=1e-3)", "nn.BatchNorm2d(num_features=64, eps=1e-3)"),
        ("nn.GroupNorm(60, 60)", "nn.GroupNorm(60, 64)"),
        ("nn.GroupNorm(num_groups=4, num_channels=60)", "nn.GroupNorm(num_groups=4, num_channels=64)"),
        ("nn.PReLU(60)", "nn.PReLU(64)"),
        ("nn.LazyBatchNorm2d()", "nn.LazyBatchNorm2d()"),
    ],
)
def test_the_norm_behind_a_layer_follows(call: str, after: str) -> None:
    text = f"{NN}a, n = nn.Conv2d(3, 60, 3), {call}{OUT}"
    network = chain(conv(text, "nn.Conv2d(3, 60, 3)"), norm(text, call, 60), conv(text, OUT[7:-1], C=60, K=8))
    wanted = text.replace(call, after).replace("(60, 8", "(64, 8").replace("3, 60, 3", "3, 64, 3")
    assert edited(text, network, wider(network)) == wanted


@pytest.mark.parametrize(
    ("call", "known", "reason"),
    [
        ("nn.BatchNorm2d(w)", True, "net.py:2: num_features comes from `w`, which this file does not set"),
        ("norm_layer(60)", True, "net.py:2: which sizes `norm_layer` takes is not known"),
        ("nn.PReLU()", True, "net.py:2: num_parameters is not given"),
        ("nn.BatchNorm2d(60)", False, "batch_norm has as many weights, and it is not known which line of the project"
                                      " says how many"),
    ],
)  # fmt: skip
def test_without_its_norm_no_width_changes(call: str, known: bool, reason: str) -> None:
    text = f"{NN}a, n = nn.Conv2d(3, 60, 3), {call}{OUT}"
    of_norm = norm(text, call if known else None, 60)
    network = chain(conv(text, "nn.Conv2d(3, 60, 3)"), of_norm, conv(text, OUT[7:-1], C=60, K=8))
    assert why(text, network, wider(network)) == reason


@pytest.mark.parametrize(
    ("call", "after"),
    [
        ("nn.Conv2d(3, 60, 3)", "nn.Conv2d(3, 60, 3, bias=False)"),
        ("nn.Conv2d(3, 60, 3, bias=True)", "nn.Conv2d(3, 60, 3, bias=False)"),
        ("nn.Conv2d(3, 60, 3, 1, 1, 1, 1, True)", "nn.Conv2d(3, 60, 3, 1, 1, 1, 1, False)"),
        ("nn.ConvTranspose2d(3, 60, 3, 1, 1, 0, 1, True, 1)", "nn.ConvTranspose2d(3, 60, 3, 1, 1, 0, 1, False, 1)"),
        ("ConvBlock(3, 60, bias=True)", "ConvBlock(3, 60, bias=False)"),
        (
            "nn.Conv2d(\n    3,\n    w,\n    3,  # taps\n)",
            "nn.Conv2d(\n    3,\n    w,\n    3,  # taps\n    bias=False,\n)",
        ),
        ("nn.Conv2d(3, 60, bias=True, **more)", "nn.Conv2d(3, 60, bias=False, **more)"),
    ],
)
def test_a_bias_goes_alone(call: str, after: str) -> None:
    text = f"{NN}a = {call}\n"
    assert edited(text, alone([conv(text, call)]), {0: {"bias": False}}) == text.replace(call, after)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("nn.Conv2d(3, 60, bias=not norm)", "bias comes from the expression `not norm`"),
        ("nn.Conv2d(3, 60, 3, bias=1)", "bias comes from `1`"),
        ("nn.Conv2d(3, 60, 3, **more)", "bias may come with its **arguments"),
        ("ConvBlock(3, 60, 3)", "which sizes `ConvBlock` takes is not known"),
        ("F.conv2d(x, w, b)", "which sizes `F.conv2d` takes is not known"),
    ],
)
def test_a_bias_that_is_no_literal_stays(call: str, reason: str) -> None:
    text = f"{NN}a = {call}\n"
    assert why(text, alone([conv(text, call)]), {0: {"bias": False}}) == f"net.py:2: {reason}"


@pytest.mark.parametrize(
    ("call", "fields", "after"),
    [
        ("nn.Conv2d(3, 60, 3, padding=0)", {"PadH": 1, "PadW": 1}, "nn.Conv2d(3, 60, 3, padding=1)"),
        ("nn.Conv2d(3, 60, 3)", {"PadH": 1, "PadW": 1}, "nn.Conv2d(3, 60, 3, padding=1)"),
        ("nn.Conv2d(3, 60, 3)", {"PadH": 1, "bias": False}, "nn.Conv2d(3, 60, 3, padding=(1, 0), bias=False)"),
        ("nn.Conv2d(3, 60, (3, 3))", {"R": 1}, "nn.Conv2d(3, 60, (1, 3))"),
        ("nn.Conv2d(3, 60, 3, [1, 1])", {"V": 2}, "nn.Conv2d(3, 60, 3, [1, 2])"),
        ("nn.Conv2d(3, 60, 3, 1, 0, 1)", {"DilH": 2, "DilW": 2}, "nn.Conv2d(3, 60, 3, 1, 0, 2)"),
    ],
)
def test_other_sizes_change_where_that_is_simple(call: str, fields: dict[str, Any], after: str) -> None:
    text = f"{NN}a = {call}\n"
    assert edited(text, alone([conv(text, call)]), {0: fields}) == text.replace(call, after)


def test_one_number_for_two_axes_does_not_become_two() -> None:
    text = f"{NN}a = nn.Conv2d(3, 60, 3)\n"
    network = alone([conv(text, "nn.Conv2d(3, 60, 3)")])
    assert why(text, network, {0: {"R": 1}}) == "net.py:2: kernel_size comes from `3`"


BLOCKS = f"""{NN}class Block:
    def __init__(self):
        self.conv, self.bn = nn.Conv2d(60, 60, 3), nn.BatchNorm2d(60)
stem = nn.Conv2d(3, 60, 3)
head = nn.Conv2d(60, 8, 1)
"""
BLOCK, BN, STEM, HEAD = "nn.Conv2d(60, 60, 3)", "nn.BatchNorm2d(60)", "nn.Conv2d(3, 60, 3)", "nn.Conv2d(60, 8, 1)"


def blocks(*widths: int) -> Network:
    """A stem, blocks that one line constructs, of which each writes so many channels, and a head."""
    steps: list[Any] = [conv(BLOCKS, STEM)]
    for number, K in enumerate(widths):
        steps += [conv(BLOCKS, BLOCK, name=f"block{number}", C=steps[-1].C if number else 60, K=K)]
        steps += [norm(BLOCKS, BN, K)]
    return chain(*steps, conv(BLOCKS, HEAD, C=widths[-1], K=8))


def test_one_line_for_many_layers_changes_with_all_of_them() -> None:
    network = blocks(60, 60, 60)
    assert edited(BLOCKS, network, wider(network)) == BLOCKS.replace("60", "64")


def test_one_line_for_many_layers_stays_where_one_of_them_does() -> None:
    network = blocks(60, 60, 60)
    channels = channels_of(network)
    some = channels.changes(network.layers, {channels.written[index]: 64 for index in (0, 1)})
    made = edits_of(BLOCKS, network, some)
    assert made.edits == {}
    assert "net.py:4 constructs block2 too, whose in_channels would stay" in made.refused.values()


def test_one_line_for_many_layers_keeps_its_bias_where_one_needs_it() -> None:
    network = blocks(60, 60)
    assert why(BLOCKS, network, {1: {"bias": False}}) == "net.py:4 constructs block1 too, whose bias would stay"
    assert "bias=False" in edited(BLOCKS, network, {1: {"bias": False}, 2: {"bias": False}})


def test_one_line_cannot_state_two_widths() -> None:
    network = blocks(60, 60)
    channels = channels_of(network)
    widths = {channels.written[0]: 64, channels.written[1]: 64, channels.written[2]: 72}
    sets = channels.changes(network.layers, widths)
    made = edits_of(BLOCKS, network, sets)
    assert made.edits == {}
    assert set(made.refused) == {(index, field) for index, fields in sets.items() for field in fields}
    assert "net.py:4 constructs several layers, which would have to differ in out_channels" in made.refused.values()


def test_what_does_not_depend_on_what_is_refused_is_edited() -> None:
    text = f"{NN}w = 60\na = nn.Conv2d(3, 60, 3)\nb = nn.Conv2d(60, 30, 3)\nc = nn.Conv2d(30, w, 3){OUT}"
    a, b, c = "nn.Conv2d(3, 60, 3)", "nn.Conv2d(60, 30, 3)", "nn.Conv2d(30, w, 3)"
    network = chain(
        conv(text, a), conv(text, b, C=60, K=30), conv(text, c, C=30, K=60), conv(text, OUT[7:-1], C=60, K=8)
    )
    made = edits_of(text, network, {**wider(network), 2: {"K": 64, "bias": False}})
    assert set(made.refused) == {(2, "K"), (3, "C")}
    after = applied_to_bytes(text.encode(), made.edits[PATH]).decode()
    assert after == text.replace("3, 60, 3", "3, 64, 3").replace("60, 30", "64, 30").replace("w, 3", "w, 3, bias=False")


@pytest.mark.parametrize("path", ["/usr/lib/python3/site-packages/timm/conv.py", "pyproject.toml", "net.pyc"])
def test_only_python_of_the_project_is_edited(path: str) -> None:
    text = f"{NN}a = nn.Conv2d(3, 60, 3)\n"
    network = alone([conv(text, "nn.Conv2d(3, 60, 3)", path=path)])
    made = PythonEditor(network, {path: text.encode()}.get).edits({0: {"bias": False}})
    assert made.edits == {}
    assert made.refused == {(0, "bias"): f"{path}:2: it is no code of the project"}


@pytest.mark.parametrize(
    ("raw", "reason"), [(None, "the file cannot be read"), (b"a = (", "not Python"), (b"\xff\xfe\n", "not text")]
)
def test_what_cannot_be_parsed_is_not_edited(raw: bytes | None, reason: str) -> None:
    text = f"{NN}a = nn.Conv2d(3, 60, 3)\n"
    made = PythonEditor(alone([conv(text, "nn.Conv2d(3, 60, 3)")]), lambda path: raw).edits({0: {"bias": False}})
    assert made.edits == {}
    assert made.refused[0, "bias"].startswith(f"net.py:2: {reason}")


@pytest.mark.parametrize("raw", [None, b"a = (", f"{NN}a = nn.Conv2d(3, 60, 3)\n".encode()])
def test_each_file_is_read_once(raw: bytes | None) -> None:
    asked: list[str] = []

    def read(path: str) -> bytes | None:
        asked.append(path)
        return raw

    layer = conv(f"{NN}a = nn.Conv2d(3, 60, 3)\n", "nn.Conv2d(3, 60, 3)")
    editor = PythonEditor(alone([layer]), read)
    assert editor.edits({0: {"bias": False}}) == editor.edits({0: {"bias": False}})
    assert asked == [PATH]


def test_a_layer_without_a_place_is_not_edited() -> None:
    layer = conv(NN, "nn", name="conv1", spans={})
    made = PythonEditor(alone([layer]), lambda path: None).edits({0: {"bias": False}})
    assert made.refused == {(0, "bias"): "it is not known which line constructs conv1"}


FORMS = (
    "nn.Conv2d({}, {}, 3)", "nn.Conv2d( {},\t{}, (3), )", "nn.Conv2d({},\n  {}, # ß 60\n 3)",
    "nn.Conv2d(kernel_size=3, in_channels={}, out_channels={})", "nn.LazyConv2d(out_channels={1}, kernel_size=3)",
    "torch.nn.ConvTranspose2d({}, {}, 60)",
)  # fmt: skip


def generated(random_: random.Random) -> tuple[str, Network, str]:
    """A chain of calls in odd forms: the text, the network, and the text with 64 for 60 in their widths."""
    widths = [3, *random_.choices((24, 60), k=random_.randint(1, 5)), 8]
    break_ = random_.choice(("\n", "\r\n", "\r"))
    text = after = f"import torch{break_}from torch import nn{break_}"
    steps = []
    for number, (C, K) in enumerate(pairwise(widths)):
        form = random_.choice(FORMS).replace("\n", break_)
        call, new = form.format(C, K), form.format(*(64 if size == 60 else size for size in (C, K)))
        before, behind = random_.choice(("", "'ẞ𝄞'; ", "'\x0c'; ")) + f"x{number} = [", f", 60]{break_}"
        text, after = text + before + call + behind, after + before + new + behind
        times = text.count(call) - 1
        steps.append(conv(text, call, number=times, name=f"x{number}", C=C, K=K))
    return text, chain(*steps), after


@pytest.mark.slow
def test_generated_modules_change_in_their_calls_and_nowhere_else() -> None:
    random_ = random.Random(20240611)
    for _ in range(300):
        text, network, after = generated(random_)
        encoding = random_.choice(("utf-8", "utf-8-sig", "utf-8"))
        made = PythonEditor(network, {PATH: text.encode(encoding)}.get).edits(wider(network))
        assert made.refused == {}
        assert applied_to_bytes(text.encode(encoding), made.edits.get(PATH, ())) == after.encode(encoding)
