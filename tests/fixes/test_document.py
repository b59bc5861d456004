"""A spec as its items, its defaults and its runtime."""

from typing import Any

import pytest
from fixed_specs import Asked, edits_of, fixed, fixed_layer, one_layer, refused
from read_specs import network

from convlint.fixes.document import Document, decide, document_of, effective
from convlint.fixes.edits import applied
from convlint.fixes.yaml_nodes import nodes_of

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
    found = document(text)
    (holder,) = found.holders
    holder.changes["S"] = 5
    decide(holder, found)
    keys = ("kernel", "padding", "PadH", "PadW", "dtype", "bias", "P", "stride")
    assert [effective(key, holder) for key in keys] == [
        ("3", "5"), ("1", "2", "0", "0"), None, "0", "half", None, "10", "1",
    ]  # fmt: skip


def document(text: str) -> Document:
    return document_of(text, nodes_of(text), network(text))


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
    ("block", "there", "own"),
    [
        ("", False, True), ("B:\n", False, True), ("B: ~\n", False, True), ("B: {}\n", True, True),
        ("x-b: &b {}\nB: *b\n", True, False), ("x-b: &b\nB: *b\n", False, False), ("B: &b\nx-b: *b\n", False, False),
    ],
)  # fmt: skip
def test_blocks(name: str, block: str, there: bool, own: bool) -> None:
    found = document("version: 1\n" + block.replace("B:", f"{name}:") + LAYERS)
    block_found = found.defaults if name == "defaults" else found.runtime
    assert (block_found is not None) is there
    assert (found.shares(name) == "") is own
    assert len(found.all_holders) == len(found.holders) + (there and name == "runtime")


A = "C: 8, H: 9, W: 9, kernel_size: 3"
NO_TF32: Asked = (None, "runtime.tf32", False)


def spec(head: str, *layers: str) -> str:
    return f"version: 1\n{head}layers:\n" + "".join(f"  - {layer}\n" for layer in layers)


def each(field: str, value: Any, *layers: int) -> list[Asked]:
    return [(layer, field, value) for layer in layers]


DEFAULTS = "defaults: {K: 60, dtype: float16, kernel_size: 3}\n"


@pytest.mark.parametrize(
    ("head", "layers", "changes", "after_head", "after"),
    [
        pytest.param(
            DEFAULTS, ["{C: 8, H: 9, W: 9}", "{bias: true}"], [*each("K", 64, 0, 1), *each("dtype", "bf16", 0, 1)],
            "defaults: {K: 64, dtype: bfloat16, kernel_size: 3}\n", ["{C: 8, H: 9, W: 9}", "{bias: true}"],
            id="defaults, all agree",
        ),
        pytest.param(
            DEFAULTS, ["{C: 8, H: 9, W: 9}", "{bias: true}"], [(1, "K", 64), (1, "dtype", "bf16"), (1, "R", 5)],
            DEFAULTS, ["{C: 8, H: 9, W: 9}", "{bias: true, K: 64, dtype: bfloat16, kernel_size: [5, 3]}"],
            id="defaults, one only",
        ),
        pytest.param(
            DEFAULTS, ["{C: 8, H: 9, W: 9}", "{op: pool, kernel_size: 2}", "{K: 70}"], each("K", 64, 0),
            "defaults: {K: 64, dtype: float16, kernel_size: 3}\n",
            ["{C: 8, H: 9, W: 9}", "{op: pool, kernel_size: 2}", "{K: 70}"], id="defaults that one layer alone reads",
        ),
        pytest.param(
            DEFAULTS, ["{C: 8, H: 9, W: 9, R: 3}", "{K: 70}"], each("S", 5, 0),
            DEFAULTS, ["{C: 8, H: 9, W: 9, R: 3, kernel_size: [3, 5]}", "{K: 70}"], id="half of a default",
        ),
        pytest.param(
            "defaults: {stride: 2}\n", [f"{{{A}, K: 8}}", "{op: conv3d, C: 8, K: 8, kernel_size: 3}"],
            [*each("V", 1, 0, 1)],
            "defaults: {stride: 2}\n",
            [f"{{{A}, K: 8, stride: [2, 1]}}", "{op: conv3d, C: 8, K: 8, kernel_size: 3, stride: [2, 2, 1]}"],
            id="a list in the defaults would have one length",
        ),
        pytest.param(
            "defaults: {stride: 2}\n", [f"{{{A}, K: 8}}", "{op: conv3d, C: 8, K: 8, kernel_size: 3, stride: 1}"],
            each("V", 1, 0),
            "defaults: {stride: 2}\n",
            [f"{{{A}, K: 8, stride: [2, 1]}}", "{op: conv3d, C: 8, K: 8, kernel_size: 3, stride: 1}"],
            id="and is read by those that do not use it",
        ),
    ],
)  # fmt: skip
def test_defaults(head: str, layers: list[str], changes: list[Asked], after_head: str, after: list[str]) -> None:
    assert fixed(spec(head, *layers), *changes) == spec(after_head, *after)


def test_an_axis_that_a_default_would_say_again_is_stated_alone() -> None:
    layers = ["{C: 8, W: 9, K: 8, kernel_size: [3], PadH: 1, dilation: 1}", "{op: conv1d, C: 8, W: 9, K: 8, S: 3}"]
    text = spec("defaults: {pad: 0}\n", *layers)
    assert fixed(text, (0, "PadW", 3)) == text.replace("dilation: 1", "dilation: 1, PadW: 3")


def test_one_refusal_keeps_nothing_else_back() -> None:
    found = edits_of(spec("", f"{{{A}, K: 60, padding: same}}"), (0, "K", 64), (0, "PadH", 9))
    assert [change.field for change in found.refused] == ["PadH"]
    assert "K: 64" in applied(spec("", f"{{{A}, K: 60, padding: same}}"), found.edits)


def test_a_default_written_as_a_block_of_text_stays_and_the_layer_states_its_own() -> None:
    text = "version: 1\ndefaults:\n  dtype: >-\n    fp16\nlayers:\n" + f"  - {{{A}, K: 8}}\n"
    assert fixed(text, (0, "dtype", "fp32")) == text.replace("K: 8", "K: 8, dtype: fp32")


W, BASE = "the YAML anchor &w in line 2", "the YAML anchor &t in line 2"


@pytest.mark.parametrize(
    ("head", "layers", "changes", "where"),
    [
        ("x-w: &w 60\n", [f"{{{A}, K: *w}}", "{K: *w, kernel_size: 1}"], [(0, "K", 64), (1, "K", 64)], W),
        ("x-w: &w 3\n", [f"{{{A}, K: 8, padding: [*w, 0]}}"], [(0, "PadW", 2)], W),
        ("x-w: &w {top: 1}\n", [f"{{{A}, K: 8, padding: {{<<: *w, left: 1}}}}"], [(0, "PadW", 2)], W),
        ("x-w: &w {K: 60}\ndefaults: *w\n", [f"{{{A}}}"], [(0, "K", 64)], W),
        ("x-w: &w {defaults: {K: 60}}\n<<: *w\n", [f"{{{A}}}"], [(0, "K", 64)], W),
        ("x-w: &w {tf32: true}\nruntime: *w\n", [f"{{{A}, K: 8}}"], [NO_TF32], W),
        ("x-w: &w true\nruntime: {tf32: *w}\n", [f"{{{A}, K: 8}}"], [NO_TF32], W),
        ("x-t: &t {K: 60}\n", [f"{{<<: *t, {A}}}"], [(0, "K", 64)], BASE),
        ("", [f"{{<<: {{K: 60}}, {A}}}"], [(0, "K", 64)], "a merge key (<<)"),
        ("", [f"{{{A}, K: &w 8}}", "{K: *w, kernel_size: 1}"], [(0, "K", 16)], "the YAML anchor &w in line 3"),
        ("", [f"{{{A}, K: 8, padding: [&w 1, 0], groups: *w}}"], [(0, "PadH", 2)], "the YAML anchor &w in line 3"),
        ("", [f"&a {{{A}, K: 60}}", "{<<: *a, K: 8}"], [(0, "K", 64)], "the YAML anchor &a in line 3"),
    ],
)
def test_a_shared_value_is_refused(head: str, layers: list[str], changes: list[Asked], where: str) -> None:
    reason = f"the value is shared through {where}; edit it by hand"
    assert refused(spec(head, *layers), *changes) == [reason] * len(changes)


@pytest.mark.parametrize(
    ("head", "layers", "changes"),
    [
        ("", [f"&a {{{A}, K: 8}}", "{<<: *a, bias: true}"], [(0, "groups", 2)]),
        ("", [f"&a {{{A}, K: 8}}", "*a"], [(0, "K", 16)]),
        ("", [f"&a {{{A}, K: 8}}", "*a"], [(0, "K", 16), (1, "K", 24)]),
        ("defaults: {K: 60}\n", [f"&a {{{A}}}", "{<<: *a, bias: true}"], [(0, "K", 64)]),
    ],
)
def test_a_shared_layer_gets_no_key_and_changes_as_a_whole(head: str, layers: list[str], changes: list[Asked]) -> None:
    reason = f"the layer is shared through the YAML anchor &a in line {3 + bool(head)}; edit it by hand"
    assert refused(spec(head, *layers), *changes) == [reason] * len(changes)


def test_a_shared_runtime_gets_no_setting() -> None:
    for head in ("x-w: &w {}\nruntime: *w\n", "x-w: &w\nruntime: *w\n"):
        assert refused(spec(head, f"{{{A}, K: 8}}"), NO_TF32) == [f"the runtime is shared through {W}; edit it by hand"]


def test_layers_behind_an_alias_are_shared() -> None:
    text = f"version: 1\nx-l: &w\n  - {{{A}, K: 8}}\nlayers: *w\n"
    assert refused(text, (0, "K", 16)) == [f"the value is shared through {W}; edit it by hand"]


@pytest.mark.parametrize(
    ("before", "changes", "after"),
    [
        ("{<<: *a, name: *n, K: 8}", [(1, "K", 16)], "{<<: *a, name: *n, K: 16}"),
        ("{<<: *a, K: &w 8}", [(1, "K", 16)], "{<<: *a, K: &w 16}"),  # which no alias refers to
        ("{<<: *a, K: 8}", [(1, "groups", 2)], "{<<: *a, K: 8, groups: 2}"),
        ("{<<: *a, K: 8}", [(0, "K", 64), (1, "K", 16), (1, "bias", True)], "{<<: *a, K: 16, bias: true}"),
    ],
)
def test_the_rest_of_the_file_is_edited(before: str, changes: list[Asked], after: str) -> None:
    head, first = "x-n: &n last\n", f"&a {{{A}, K: 60}}"
    found = edits_of(spec(head, first, before), *changes)
    assert [change.layer for change in found.refused] == [0] * (changes[0][0] == 0)
    assert applied(spec(head, first, before), found.edits) == spec(head, first, after)


def test_defaults_and_new_blocks_are_edited_beside_shared_layers() -> None:
    text = spec("defaults: {K: 60}\n", f"&a {{{A}}}", "{<<: *a, bias: true}", "*a")
    assert fixed(text, *each("K", 64, 0, 1, 2)) == text.replace("60", "64")
    assert fixed(text, *each("layout", "NHWC", 0, 1, 2)) == text.replace("60", "60, layout: NHWC")


ONE_LAYER = "layers:\n  - {C: 8, H: 9, W: 9, K: 8, kernel_size: 3}\n"


@pytest.mark.parametrize(
    ("before", "changes", "after"),
    [
        ("runtime: {tf32: true}\n", [NO_TF32], "runtime: {tf32: false}\n"),
        ("runtime:\n  tf32: yes # c\n", [NO_TF32], "runtime:\n  tf32: no # c\n"),
        ("runtime: {allow_tf32: 1}\n", [NO_TF32], "runtime: {allow_tf32: 0}\n"),
        ("runtime: {TF32: '1'}\n", [NO_TF32], "runtime: {TF32: '0'}\n"),
        ("runtime: {tf32: false}\n", [NO_TF32], "runtime: {tf32: false}\n"),
        ('runtime: {cudnn: "8.1"}\n', [(None, "runtime.cudnn", "8.9.2")], 'runtime: {cudnn: "8.9.2"}\n'),
        ("runtime: {cudnn: 8.1}\n", [(None, "runtime.cudnn", "9")], "runtime: {cudnn: 9}\n"),
        ("runtime: {cuda: '12.1'}\n", [NO_TF32], "runtime: {cuda: '12.1', tf32: false}\n"),
        ("runtime:\n  cuda: '12.1'\n", [NO_TF32], "runtime:\n  cuda: '12.1'\n  tf32: false\n"),
        ("runtime: {}\n", [NO_TF32], "runtime: {tf32: false}\n"),
        ("runtime:\n", [NO_TF32], "runtime: {tf32: false}\n"),
        ("runtime: ~ # none\n", [NO_TF32], "runtime: {tf32: false} # none\n"),
        ("mode: inference # c\n", [NO_TF32], "mode: inference # c\nruntime: {tf32: false}\n"),
        ("", [NO_TF32], "runtime: {tf32: false}\n"),
        (
            "", [NO_TF32, (None, "runtime.cudnn_conv_algo_search", "HEURISTIC"), (None, "runtime.cudnn", "8.9")],
            'runtime: {tf32: false, cudnn_conv_algo_search: HEURISTIC, cudnn: "8.9"}\n',
        ),
    ],
)  # fmt: skip
def test_settings(before: str, changes: list[Asked], after: str) -> None:
    assert fixed(f"version: 1\n{before}{LAYERS}", *changes) == f"version: 1\n{after}{LAYERS}"


def test_a_new_block_stands_before_the_layers_and_their_comments() -> None:
    before = "# net\nversion: 1\ntarget: [a100,\n  v100] # both\n\n# the layers\n" + ONE_LAYER
    after = before.replace("both\n", "both\nruntime: {tf32: false}\n")
    assert fixed(before, NO_TF32) == after


def test_json() -> None:
    layer = '{"C": 8, "K": 8, "kernel_size": 3}'
    before = f'{{\n  "version": 1,\n  "layers": [{layer}]\n}}\n'
    after = f'{{\n  "version": 1,\n  "runtime": {{"tf32": false}},\n  "layers": [{layer}]\n}}\n'
    assert fixed(before, NO_TF32) == after
    empty = before.replace('"version": 1,', '"version": 1, "runtime": null,')
    assert fixed(empty, NO_TF32) == empty.replace("null", '{"tf32": false}')


R = "the YAML anchor &r in line 2"


@pytest.mark.parametrize(
    ("block", "change", "reason"),
    [
        ("", (None, "runtime.speed", 1), "speed is no setting of the runtime"),
        ("", (None, "tf32", False), "tf32 is no setting of the whole network"),
        (
            "runtime: &r\nx-r: *r\n",
            NO_TF32,
            "the runtime is shared through the YAML anchor &r in line 2; edit it by hand",
        ),
        ("runtime:\n  cudnn: >-\n    8.1\n", (None, "runtime.cudnn", "8.9"), "it is written as a block of text"),
    ],
)
def test_what_is_no_setting_or_has_no_place(block: str, change: Asked, reason: str) -> None:
    assert refused(f"version: 1\n{block}{LAYERS}", change) == [reason]


FIRST, SECOND = "{C: 8, H: 9, W: 9, K: 8, kernel_size: 3}", "{K: 8, kernel_size: 1}"
POOL = "{op: pool, kernel_size: 3}"
NHWC: list[Asked] = [(0, "layout", "NHWC"), (2, "layout", "NHWC")]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "defaults: {layout: NHWC}\n"),
        ("defaults: {N: 8}\n", "defaults: {N: 8, layout: NHWC}\n"),
        ("defaults:\n  N: 8 # c\n", "defaults:\n  N: 8 # c\n  layout: NHWC\n"),
        ("defaults:\n", "defaults: {layout: NHWC}\n"),
        ("defaults: &d {N: 8}\n", "defaults: &d {N: 8, layout: NHWC}\n"),
        ("runtime:\n  tf32: true\n", "defaults: {layout: NHWC}\nruntime:\n  tf32: true\n"),
    ],
)
def test_one_line_for_all(before: str, after: str) -> None:
    assert fixed(spec(before, FIRST, POOL, SECOND), *NHWC) == spec(after, FIRST, POOL, SECOND)


def test_several_at_once_and_a_runtime_before_them() -> None:
    asked: list[Asked] = [*NHWC, (0, "dtype", "fp16"), (2, "dtype", "fp16"), (None, "runtime.tf32", False)]
    head = "runtime: {tf32: false}\ndefaults: {dtype: fp16, layout: NHWC}\n"
    assert fixed(spec("", FIRST, POOL, SECOND), *asked) == spec(head, FIRST, POOL, SECOND)


@pytest.mark.parametrize("asked", [NHWC[:1], [NHWC[0], (2, "layout", "NCHW")]])
def test_what_not_all_want_stands_at_the_layers(asked: list[Asked]) -> None:
    after = [text[:-1] + f", layout: {value}}}" for text, (_, _, value) in zip((FIRST, SECOND), asked, strict=False)]
    expected = spec("", after[0], POOL, after[1] if len(after) > 1 else SECOND)
    assert fixed(spec("", FIRST, POOL, SECOND), *asked) == expected


def test_what_one_states_already_stands_at_the_layers() -> None:
    stated = SECOND[:-1] + ", layout: NCHW}"
    assert fixed(spec("", FIRST, POOL, stated), *NHWC) == spec(
        "", FIRST[:-1] + ", layout: NHWC}", POOL, stated.replace("NCHW", "NHWC")
    )


@pytest.mark.parametrize(
    "head", ["defaults: &d\nruntime: *d\n", "x-d: &d {N: 8}\ndefaults: *d\n", "x-d: &d\ndefaults: *d\n"]
)
def test_shared_defaults_stay(head: str) -> None:
    after = [text[:-1] + ", layout: NHWC}" for text in (FIRST, SECOND)]
    assert fixed(spec(head, FIRST, POOL, SECOND), *NHWC) == spec(head, after[0], POOL, after[1])


INPUT = "{op: input, N: 8, C: 8, H: 9, W: 9}"
CONV = "{K: 8, kernel_size: 3}"


def test_a_batch_that_the_inputs_bring_changes_there() -> None:
    asked = [(1, "N", 64), (2, "N", 64)]
    assert fixed(spec("", INPUT, CONV, CONV), *asked) == spec("", INPUT.replace("N: 8", "N: 64"), CONV, CONV)


def test_and_in_the_defaults_for_those_that_no_input_reaches() -> None:
    asked = [(1, "N", 64), (2, "N", 64)]
    after = spec("defaults: {N: 64}\n", INPUT.replace("N: 8", "N: 64"), CONV, FIRST)
    assert fixed(spec("", INPUT, CONV, FIRST), *asked) == after


def test_a_batch_of_some_stands_at_them() -> None:
    after = spec("", INPUT, CONV, CONV[:-1] + ", N: 64}")
    assert fixed(spec("", INPUT, CONV, CONV), (2, "N", 64)) == after


def test_an_input_that_takes_its_batch_from_the_defaults_does_not_hold_them() -> None:
    bare = INPUT.replace("N: 8, ", "")
    before, after = (spec(f"defaults: {{N: {N}}}\n", bare, CONV) for N in (8, 64))
    assert fixed(before, (1, "N", 64)) == after
