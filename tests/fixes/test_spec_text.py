"""After the edits a spec reads as before but for what was asked for, and not a byte beside the edits is another."""

from __future__ import annotations

import json
import random

import pytest
from fixed_specs import edits_of, fixed, refused
from random_specs import random_changes, random_spec
from resolved_specs import resolved

from convlint.errors import InputFault
from convlint.fixes.change import Change
from convlint.fixes.edits import applied
from convlint.fixes.spec_text import spec_edits
from convlint.model.network import Network
from convlint.readers.spec.reader import read_spec

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
    assert [(refusal.change.value, refusal.reason) for refusal in found.refused] == [
        (72, "K = 64 is asked for as well")
    ]
    assert "filters: 64" in applied(SAMPLE, found.edits)


def test_layers_under_an_alias_are_the_same_layers() -> None:
    text = "version: 1\nx-l: &l\n  - {C: 8, K: 8, kernel_size: 3}\nlayers: *l\n"
    assert fixed(text, (0, "K", 16)) == text.replace("K: 8", "K: 16")


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
    changes = [Change(layer, name, value) for (layer, name), value in asked.items()]
    found = spec_edits(text, before, changes)
    refused_changes = {refusal.change for refusal in found.refused}
    made = [change for change in changes if change not in refused_changes]
    expected = read(resolved(text, before, made))
    after = read(applied(text, found.edits))
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
