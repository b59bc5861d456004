"""A spec as its items, its defaults and its runtime."""

from __future__ import annotations

from typing import Any

import pytest
from fixed_specs import Asked, edits_of, fixed, fixed_layer, one_layer, refused

from convlint.fixes.document import Document, decide, document_of, effective
from convlint.fixes.edits import applied
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


REASON = "a layer that merges this one would get it too"


@pytest.mark.parametrize(
    "others",
    [
        "  - {<<: *a, name: b}\n",
        "  - &b {<<: *a, name: b, dtype: fp32}\n  - {<<: *a, name: c}\n",
        "  - &b {<<: *a, name: b}\n  - {<<: *b, name: c}\n",
        "  - {<<: [{<<: *a}], name: b}\n",
    ],
)
def test_what_others_lack_is_not_added(others: str) -> None:
    assert refused(f"version: 1\nlayers:\n  - &a {{{SIZED}}}\n{others}", (0, "dtype", "fp16")) == [REASON]


def test_what_others_state_or_want_is_added_once() -> None:
    text = f"version: 1\nlayers:\n  - &a {{{SIZED}}}\n  - {{<<: *a, dtype: fp32}}\n  - {{<<: *a, bias: true}}\n"
    after = fixed(text, (0, "dtype", "fp16"), (2, "dtype", "fp16"))
    assert after == text.replace(f"{{{SIZED}}}", f"{{{SIZED}, dtype: fp16}}")


def test_what_others_state_in_another_word_they_state_in_this_one_too() -> None:
    text = f"version: 1\nlayers:\n  - &a {{{SIZED}}}\n  - {{<<: *a, precision: fp32}}\n"
    after = text.replace(f"{{{SIZED}}}", f"{{{SIZED}, dtype: fp16}}").replace("fp32", "fp32, dtype: fp32")
    assert fixed(text, (0, "dtype", "fp16")) == after


def test_so_do_operations_that_are_no_convolutions() -> None:
    text = f"version: 1\nlayers:\n  - {{{SIZED}}}\n  - &a {{op: pool, kernel_size: 1}}\n  - {{<<: *a, batch_size: 4}}\n"
    after = text.replace("kernel_size: 1", "kernel_size: 1, N: 8").replace("batch_size: 4", "batch_size: 4, N: 4")
    assert fixed(text, (1, "N", 8)) == after


def test_the_layer_that_merges_may_change() -> None:
    text = f"version: 1\nlayers:\n  - &a {{{SIZED}}}\n  - {{<<: *a, bias: true}}\n"
    assert fixed(text, (1, "dtype", "fp16")) == text.replace("true", "true, dtype: fp16")


def test_pools_have_no_use_for_a_dtype_but_for_padding() -> None:
    text = f"version: 1\nlayers:\n  - &a {{{SIZED}}}\n  - {{<<: *a, op: pool}}\n  - {{{SIZED}, dtype: fp32}}\n"
    assert fixed(text, (0, "dtype", "fp16")) == text.replace(f"&a {{{SIZED}}}", f"&a {{{SIZED}, dtype: fp16}}")
    assert refused(text, (0, "PadH", 1)) == [REASON]
    drawn = text.replace("layers:", "defaults: {padding: 0}\nlayers:")
    assert refused(drawn, (0, "PadH", 1)) == [REASON]


def test_padding_that_follows_from_the_sizes_takes_no_number() -> None:
    text = f"version: 1\nlayers:\n  - &a {{{SIZED}}}\n  - {{<<: *a, pad: same}}\n"
    assert refused(text, (0, "PadH", 1)) == [REASON]


def test_what_is_refused_in_one_place_is_lacking_in_those_above() -> None:
    text = f"version: 1\nlayers:\n  - &a {{{SIZED}}}\n  - &b {{<<: *a, name: b}}\n  - {{<<: *b, name: c}}\n"
    asked = ((0, "dtype", "fp16"), (1, "dtype", "fp16"), (1, "K", 16))
    found = edits_of(text, *asked)
    assert [refusal.reason for refusal in found.refused] == [REASON, REASON]
    assert applied(text, found.edits) == text.replace("name: b", "name: b, K: 16").replace("name: c", "name: c, K: 8")


LAYERS_of_settings = "layers:\n  - {C: 8, H: 9, W: 9, K: 8, kernel_size: 3}\n"
NO_TF32: Asked = (None, "runtime.tf32", False)


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
        ("x-r: &r {tf32: true}\nruntime: *r\n", [NO_TF32], "x-r: &r {tf32: false}\nruntime: *r\n"),
        ("x-t: &t true\nruntime: {tf32: *t}\n", [NO_TF32], "x-t: &t false\nruntime: {tf32: *t}\n"),
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
    before = "# net\nversion: 1\ntarget: [a100,\n  v100] # both\n\n# the layers\n" + LAYERS_of_settings
    after = before.replace("both\n", "both\nruntime: {tf32: false}\n")
    assert fixed(before, NO_TF32) == after


def test_json() -> None:
    layer = '{"C": 8, "K": 8, "kernel_size": 3}'
    before = f'{{\n  "version": 1,\n  "layers": [{layer}]\n}}\n'
    after = f'{{\n  "version": 1,\n  "runtime": {{"tf32": false}},\n  "layers": [{layer}]\n}}\n'
    assert fixed(before, NO_TF32) == after
    empty = before.replace('"version": 1,', '"version": 1, "runtime": null,')
    assert fixed(empty, NO_TF32) == empty.replace("null", '{"tf32": false}')


@pytest.mark.parametrize(
    ("block", "change", "reason"),
    [
        ("", (None, "runtime.speed", 1), "speed is no setting of the runtime"),
        ("", (None, "tf32", False), "tf32 is no setting of the whole network"),
        ("runtime: &r\nx-r: *r\n", NO_TF32, "an alias refers to the empty runtime"),
        ("runtime:\n  cudnn: >-\n    8.1\n", (None, "runtime.cudnn", "8.9"), "it is written as a block of text"),
    ],
)
def test_what_is_no_setting_or_has_no_place(block: str, change: Asked, reason: str) -> None:
    assert refused(f"version: 1\n{block}{LAYERS}", change) == [reason]


A, B = "{C: 8, H: 9, W: 9, K: 8, kernel_size: 3}", "{K: 8, kernel_size: 1}"
POOL = "{op: pool, kernel_size: 3}"
NHWC: list[Asked] = [(0, "layout", "NHWC"), (2, "layout", "NHWC")]


def spec(head: str, *layers: str) -> str:
    return f"version: 1\n{head}layers:\n" + "".join(f"  - {layer}\n" for layer in layers)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "defaults: {layout: NHWC}\n"),
        ("defaults: {N: 8}\n", "defaults: {N: 8, layout: NHWC}\n"),
        ("defaults:\n  N: 8 # c\n", "defaults:\n  N: 8 # c\n  layout: NHWC\n"),
        ("defaults:\n", "defaults: {layout: NHWC}\n"),
        ("defaults: &d {N: 8}\n", "defaults: &d {N: 8, layout: NHWC}\n"),
        ("x-d: &d {N: 8}\ndefaults: *d\n", "x-d: &d {N: 8, layout: NHWC}\ndefaults: *d\n"),
        ("runtime:\n  tf32: true\n", "defaults: {layout: NHWC}\nruntime:\n  tf32: true\n"),
    ],
)  # fmt: skip
def test_one_line_for_all(before: str, after: str) -> None:
    assert fixed(spec(before, A, POOL, B), *NHWC) == spec(after, A, POOL, B)


def test_several_at_once_and_a_runtime_before_them() -> None:
    asked: list[Asked] = [*NHWC, (0, "dtype", "fp16"), (2, "dtype", "fp16"), (None, "runtime.tf32", False)]
    head = "runtime: {tf32: false}\ndefaults: {dtype: fp16, layout: NHWC}\n"
    assert fixed(spec("", A, POOL, B), *asked) == spec(head, A, POOL, B)


@pytest.mark.parametrize("asked", [NHWC[:1], [NHWC[0], (2, "layout", "NCHW")]])
def test_what_not_all_want_stands_at_the_layers(asked: list[Asked]) -> None:
    after = [text[:-1] + f", layout: {value}}}" for text, (_, _, value) in zip((A, B), asked, strict=False)]
    expected = spec("", after[0], POOL, after[1] if len(after) > 1 else B)
    assert fixed(spec("", A, POOL, B), *asked) == expected


def test_what_one_states_already_stands_at_the_layers() -> None:
    stated = B[:-1] + ", layout: NCHW}"
    assert fixed(spec("", A, POOL, stated), *NHWC) == spec(
        "", A[:-1] + ", layout: NHWC}", POOL, stated.replace("NCHW", "NHWC")
    )


def test_empty_defaults_that_an_alias_refers_to_stay() -> None:
    head = "defaults: &d\nruntime: *d\n"
    after = [text[:-1] + ", layout: NHWC}" for text in (A, B)]
    assert fixed(spec(head, A, POOL, B), *NHWC) == spec(head, after[0], POOL, after[1])


INPUT = "{op: input, N: 8, C: 8, H: 9, W: 9}"
CONV = "{K: 8, kernel_size: 3}"


def test_a_batch_that_the_inputs_bring_changes_there() -> None:
    asked = [(1, "N", 64), (2, "N", 64)]
    assert fixed(spec("", INPUT, CONV, CONV), *asked) == spec("", INPUT.replace("N: 8", "N: 64"), CONV, CONV)


def test_and_in_the_defaults_for_those_that_no_input_reaches() -> None:
    asked = [(1, "N", 64), (2, "N", 64)]
    after = spec("defaults: {N: 64}\n", INPUT.replace("N: 8", "N: 64"), CONV, A)
    assert fixed(spec("", INPUT, CONV, A), *asked) == after


def test_a_batch_of_some_stands_at_them() -> None:
    after = spec("", INPUT, CONV, CONV[:-1] + ", N: 64}")
    assert fixed(spec("", INPUT, CONV, CONV), (2, "N", 64)) == after


def test_an_input_that_takes_its_batch_from_the_defaults_does_not_hold_them() -> None:
    bare = INPUT.replace("N: 8, ", "")
    before, after = (spec(f"defaults: {{N: {N}}}\n", bare, CONV) for N in (8, 64))
    assert fixed(before, (1, "N", 64)) == after
