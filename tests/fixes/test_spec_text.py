"""After the edits a spec reads as before but for what was asked for, and not a byte beside the edits is another."""

import json
import random
import re
from typing import Any

import pytest
from fixed_specs import edits_of, fixed, fixed_layer, one_layer, refused
from random_specs import random_changes, random_spec
from read_specs import network as network_of
from resolved_specs import resolved

from convlint.fixes.edits import applied
from convlint.fixes.forms import Data, Sides, data_of, unwritable
from convlint.fixes.plan import ValueChange
from convlint.fixes.spec_text import SpecText, rendered, spec_edits
from convlint.fixes.yaml_nodes import Node, nodes_of
from convlint.model.errors import InputFault
from convlint.model.network import Network
from convlint.readers.spec.reader import read_spec

SIZED = "C: 8, K: 8, H: 9, W: 9, kernel_size: 3, "


def value(text: str) -> Node:
    root = nodes_of(text)
    return root.own["a"].value


@pytest.mark.parametrize(
    ("before", "change", "after"),
    [
        ('dtype: "fp16"', ("dtype", "fp32"), 'dtype: "fp32"'),
        ("dtype: 'fp16' ", ("dtype", "fp32"), "dtype: 'fp32' "),
        ("dtype: &d fp16", ("dtype", "fp32"), "dtype: &d fp32"),
        ("dtype: ! fp16", ("dtype", "fp32"), "dtype: ! fp32"),
        ("dtype: &d   # c\n   fp16", ("dtype", "fp32"), "dtype: &d   # c\n   fp32"),
        ("layout: 'channels_last'", ("layout", "NCHW"), "layout: 'channels_first'"),
        ("bias: Yes", ("bias", False), "bias: No"),
        ("groups: 1 # c", ("groups", 2), "groups: 2 # c"),
        ("? groups : 1", ("groups", 2), "? groups : 2"),
        ("'groups': 1", ("groups", 2), "'groups': 2"),
        ("padding: [ 1 , # top\n   2]", ("PadW", 5), "padding: [ 1 , # top\n   5]"),
    ],
)
def test_only_the_characters_of_the_value_change(before: str, change: tuple[str, Any], after: str) -> None:
    if "#" in before:
        before, after = (text + "\n  " for text in (before, after))
    assert fixed_layer(SIZED + before, change) == SIZED + after


@pytest.mark.parametrize(
    ("old", "new", "writable"),
    [
        ("a: 3", ("5", "3"), True),
        ("a: >-\n  fp16", "fp32", False),
        ("a: [3]", ("5", "3"), True),
        ("a: [3, # c\n 3]", ("5", "3"), True),
        ("a: [3, # c\n 3]", ("5", "3", "1", "1"), False),
        ("a:\n- 3\n- 3", ("5", "3"), True),
        ("a:\n- 3", ("5", "3"), False),
        ("a: [&x 3, 3]", ("5", "3"), True),
    ],
)
def test_what_can_be_written(old: str, new: Data, writable: bool) -> None:
    assert (unwritable(old, value(old), data_of(value(old)), new) is None) is writable


def test_lists_in_block_style_keep_it() -> None:
    before = "version: 1\nlayers:\n  - K: 8\n    C: 8\n    kernel_size: # taps\n    - 3  # high\n    - 3  # wide\n"
    assert fixed(before, (0, "S", 5)) == before.replace("3  # wide", "5  # wide")
    short = before.replace("    - 3  # wide\n", "").replace("C: 8\n", "C: 8\n    op: conv2d\n")
    assert refused(short, (0, "S", 5)) == ["its list has another length, and is not written on one line"]


def test_sides_are_added_in_the_style_of_their_mapping() -> None:
    before = "version: 1\nlayers:\n  - K: 8\n    C: 8\n    kernel_size: 3\n    padding: # all\n      top: 1 # c\n"
    assert fixed(before, (0, "PadW", 2)) == before + "      left: 2\n      right: 2\n"


@pytest.mark.parametrize(
    ("data", "as_json", "text"),
    [
        (("5", "3"), False, "[5, 3]"),
        ((("1", "2"), ("3", "4")), False, "[[1, 2], [3, 4]]"),
        (Sides((("top", "1"),)), False, "{top: 1}"),
        (Sides((("top", "1"),)), True, '{"top": 1}'),
        ("NHWC", False, "NHWC"), ("NHWC", True, '"NHWC"'), ("true", True, "true"), ("64", True, "64"),
        ("8.9", False, '"8.9"'), ("8.9", True, '"8.9"'), ("a: b", False, '"a: b"'), ("é: #", False, '"\\xE9: #"'),
    ],
)  # fmt: skip
def test_values_in_flow_style(data: Data, as_json: bool, text: str) -> None:
    assert rendered(data, as_json=as_json) == text


def test_a_block_of_text_is_left_alone() -> None:
    text = one_layer("C: 8, K: 8, kernel_size: 3").replace("  - {", "  - &a {") + "  - K: 8\n    C: 8\n"
    text += "    kernel_size: 3\n    dtype: |\n      fp16\n"
    assert refused(text, (1, "dtype", "fp32")) == ["it is written as a block of text"]


SAMPLE = """\
# üben
version: 1\t# one
target: [a100]
defaults: { N: 256, dtype: float16 }   # shared
layers:
  - { name: stém, C: 3, H: 224, W: 224, filters: 62, kernel_size: 7, strides: 2, padding: [3, 3] }  # convlint: ignore
  - name: 'zweite: 层'\t
    K: 62    # 🙂
    kernel_size:   3
    data_format: channels_first

  - {name: pool, op: pool, kernel_size: 2}
  - &last {name: "last", K: 1000,
     kernel_size: 1, bias: yes}"""
CHANGES = (
    (0, "K", 64), (1, "K", 64), (1, "layout", "NHWC"), (1, "dtype", "fp32"), (3, "bias", False), (0, "PadH", 2),
    (3, "layout", "NHWC"), (None, "runtime.tf32", True),
)  # fmt: skip
EXPECTED = """\
# üben
version: 1\t# one
target: [a100]
runtime: {tf32: true}
defaults: { N: 256, dtype: float16 }   # shared
layers:
  - { name: stém, C: 3, H: 224, W: 224, filters: 64, kernel_size: 7, strides: 2, padding: [2, 3] }  # convlint: ignore
  - name: 'zweite: 层'\t
    K: 64    # 🙂
    kernel_size:   3
    data_format: channels_last
    dtype: float32

  - {name: pool, op: pool, kernel_size: 2}
  - &last {name: "last", K: 1000,
     kernel_size: 1, bias: no, layout: NHWC}"""


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("end", ["", "\n", "\n...\n", " "])
def test_a_whole_spec(mark: str, newline: str, end: str) -> None:
    before, after = (mark + text.replace("\n", newline) + end for text in (SAMPLE, EXPECTED))
    assert fixed(before, *CHANGES) == after


def test_edits_stand_in_order_and_name_no_more_characters_than_change() -> None:
    found = edits_of(SAMPLE, *CHANGES).edits
    assert list(found) == sorted(found)
    assert [SAMPLE[edit.start : edit.end] for edit in found] == ["", "62", "3", "62", "channels_first", "", "yes", ""]


def test_json_stays_json() -> None:
    before = {
        "version": 1,
        "layers": [
            {"name": "a", "C": 8, "H": 9, "W": 9, "K": 62, "kernel_size": 3, "dtype": "float16", "padding": "valid"},
            {"name": "b", "K": 62, "kernel_size": [3, 3], "bias": True, "padding": {"top": 1}},
        ],
    }
    asked = [
        (0, "K", 64), (1, "S", 5), (0, "dtype", "fp32"), (1, "dtype", "fp16"), (1, "bias", False), (1, "PadW", 2),
        (0, "PadH", 1), (None, "runtime.cudnn", "8.9.2"),
    ]  # fmt: skip
    for indent in (None, 0, 2, "\t"):
        for separators in (None, (",", ":"), (" , ", " : ")):
            text = json.dumps(before, indent=indent, separators=separators)
            after = json.loads(fixed(text, *asked))
            assert after["runtime"] == {"cudnn": "8.9.2"}
            assert after["layers"] == [
                {**before["layers"][0], "K": 64, "dtype": "float32", "padding": [1, 0]},  # type: ignore[index]
                {"name": "b", "K": 62, "kernel_size": [3, 5], "bias": False, "dtype": "fp16",
                 "padding": {"top": 1, "left": 2, "right": 2}},
            ]  # fmt: skip


def test_nothing_asked_for_is_nothing_edited() -> None:
    assert edits_of(SAMPLE).edits == ()
    assert edits_of(SAMPLE, (0, "K", 62), (1, "layout", "NCHW"), (0, "dtype", "fp16")).edits == ()


@pytest.mark.parametrize("layer", [-1, 4])
def test_a_layer_that_is_not_there(layer: int) -> None:
    assert refused(SAMPLE, (layer, "K", 64)) == ["there is no such layer"]


def test_two_values_for_one_field() -> None:
    found = edits_of(SAMPLE, (0, "K", 64), (0, "K", 72), (1, "K", 64), (1, "K", 64))
    assert [(change.value, reason) for change, reason in found.refused.items()] == [(72, "K = 64 is asked for as well")]
    assert "filters: 64" in applied(SAMPLE, found.edits)


def shared(text: str) -> list[str]:
    """The aliases, and the numbers at anchors that they refer to; "again" stands for several numbers in turn."""
    names = set(re.findall(r"\*(\w+)", text)) - {"again"}
    return [found[0] for found in re.finditer(r"\*\w+|&(\w+)(?: \d+)?", text) if found[1] is None or found[1] in names]


def read(text: str) -> Network | None:
    try:
        network, errors = read_spec(text, "net.yaml")
    except InputFault:
        return None
    return None if errors else network


def check(seed: int) -> int:
    """How many changes were made in the random spec of this seed; none where it is no valid spec."""
    rng = random.Random(seed)
    text = random_spec(rng)
    before = read(text)
    if before is None:
        return 0
    items = range(len(before.operations))
    convolutions = [item for item in items if before.operations[item].layer is not None]
    asked = random_changes(rng, convolutions, len(items))
    changes = [ValueChange(layer, name, value) for (layer, name), value in asked.items()]
    found = spec_edits(text, before, changes)
    made = [change for change in changes if change not in found.refused]
    expected = read(resolved(text, before, made))
    mended = applied(text, found.edits)
    assert shared(mended) == shared(text)
    after = read(mended)
    if expected is None:  # what was asked for fits no network
        assert after is None
        return 0
    assert after is not None
    for name in ("layers", "edges", "operations", "runtime", "mode", "targets"):
        assert getattr(after, name) == getattr(expected, name)
    return len(made)


def test_random_specs_quickly() -> None:
    assert sum(map(check, range(40))) > 30


@pytest.mark.slow
def test_random_specs() -> None:
    assert sum(map(check, range(40, 1240))) > 1000


TEXT = """\
version: 1
runtime: { tf32: false }
defaults: { N: 8, H: 32, W: 32, padding: 1, dtype: fp16 }
layers:
  - { name: a, C: 8, K: 60, kernel_size: 3, layout: NCHW }
  - { name: b, C: 60, K: 64, kernel_size: 3, padding: 0 }
  - { <<: { K: 62 }, name: c, C: 64, kernel_size: 3 }
"""


def spec_of(text: str = TEXT) -> SpecText:
    return SpecText(text, network_of(text))


@pytest.mark.parametrize(
    ("change", "local"),
    [
        ((0, "K", 64), True),
        ((0, "R", 1), True),  # a part of kernel_size
        ((0, "layout", "NHWC"), True),
        ((1, "layout", "NHWC"), False),  # said nowhere: the defaults may get it
        ((0, "groups", 2), True),  # said nowhere, and the defaults never get it
        ((0, "dtype", "bf16"), False),  # of the defaults
        ((0, "PadH", 0), False),
        ((1, "PadH", 1), True),
        ((2, "K", 64), True),  # merged, and refused
        ((None, "runtime.tf32", True), True),
        ((0, "colour", 3), True),  # refused wherever it stands
        ((3, "K", 64), False),
        ((-1, "K", 64), False),
    ],
)
def test_what_depends_on_nothing_but_its_own_mapping(change: tuple[int | None, str, object], local: bool) -> None:
    spec, asked = spec_of(), [ValueChange(*change)]  # type: ignore[arg-type]
    assert spec.is_local(asked) is local
    assert spec.cost(asked) == (1 if local else 3)
    assert spec.edits(asked) == spec_edits(TEXT, spec.network, asked)


def test_answers_do_not_depend_on_those_before() -> None:
    spec = spec_of()
    questions = [
        [ValueChange(0, "K", 64), ValueChange(1, "C", 64)],
        [ValueChange(0, "K", 72)],
        [ValueChange(0, "groups", 2)],
        [ValueChange(None, "runtime.tf32", True)],
        [ValueChange(None, "runtime.deterministic", True)],
        [ValueChange(layer, "dtype", "bf16") for layer in range(3)],
        [ValueChange(0, "K", 64)],
        [],
    ]
    answers = [applied(TEXT, spec.edits(asked).edits) for asked in questions]
    assert answers == [applied(TEXT, spec_edits(TEXT, spec.network, asked).edits) for asked in questions]
    assert answers[-2:] == [TEXT.replace("K: 60", "K: 64"), TEXT]
    assert "tf32: true" in answers[3]
    assert "deterministic" not in answers[5]


def check_one_by_one(seed: int) -> tuple[int, int]:
    """How often a random spec was asked, and for what is local; each time the answer is that of the whole spec."""
    rng = random.Random(seed)
    text = random_spec(rng)
    network = read(text)
    if network is None:
        return 0, 0
    items = range(len(network.operations))
    convolutions = [item for item in items if network.operations[item].layer is not None]
    spec, local = SpecText(text, network), 0
    for _ in range(8):
        asked = random_changes(rng, convolutions, len(items))
        changes = [ValueChange(layer, name, value) for (layer, name), value in asked.items()]
        changes = rng.sample(changes, min(len(changes), rng.randrange(1, 4)))
        local += spec.is_local(changes)
        assert spec.edits(changes) == spec_edits(text, network, changes)
    return 8, local


def test_random_specs_one_by_one_quickly() -> None:
    asked, local = map(sum, zip(*map(check_one_by_one, range(60)), strict=True))
    assert 0.1 * asked < local < 0.9 * asked


@pytest.mark.slow
def test_random_specs_one_by_one() -> None:
    asked, local = map(sum, zip(*map(check_one_by_one, range(60, 1000)), strict=True))
    assert 0.1 * asked < local < 0.9 * asked
