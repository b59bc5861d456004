"""One text asked many times: each answer is that of a text asked once."""

from __future__ import annotations

import random

import pytest
from random_specs import random_changes, random_spec

from convlint.errors import InputFault
from convlint.fixes.edits import applied
from convlint.fixes.separate import SpecText
from convlint.fixes.spec_text import Change, spec_edits
from convlint.model.network import Network
from convlint.readers.spec.reader import read_spec

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
    network, errors = read_spec(text, "net.yaml")
    assert not errors
    assert network is not None
    return SpecText(text, network)


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
        ((2, "K", 64), False),  # merged
        ((None, "runtime.tf32", True), True),
        ((0, "colour", 3), True),  # refused wherever it stands
        ((3, "K", 64), False),
        ((-1, "K", 64), False),
    ],
)
def test_what_depends_on_nothing_but_its_own_mapping(change: tuple[int | None, str, object], local: bool) -> None:
    spec, asked = spec_of(), [Change(*change)]  # type: ignore[arg-type]
    assert spec.is_local(asked) is local
    assert spec.cost(asked) == (1 if local else 3)
    assert spec.edits(asked) == spec_edits(TEXT, spec.network, asked)


@pytest.mark.parametrize(
    ("change", "local"),
    [
        ((0, "K", 72), False),  # at the anchor
        ((1, "C", 72), False),  # an alias
        ((1, "K", 72), True),
        ((0, "C", 72), False),  # of a layer that others merge
        ((3, "R", 1), True),  # a list with an alias in it
        ((3, "U", 2), True),  # a list with an anchor in it
        ((None, "runtime.tf32", True), False),
        ((None, "runtime.deterministic", True), False),
    ],
)
def test_aliases(change: tuple[int | None, str, object], local: bool) -> None:
    text = """\
version: 1
runtime: &r { tf32: &no false }
x-r: *r
defaults: { N: 8, H: 32, W: 32, padding: 1, dtype: fp16 }
layers:
  - &a { name: a, C: 8, K: &k 64, kernel_size: &three 3, bias: *no }
  - { name: b, C: *k, K: 64, kernel_size: 3 }
  - { <<: *a, name: c, C: 64 }
  - { name: d, C: 64, K: 64, kernel_size: [*three, 3], stride: [&one 1, *one] }
"""
    spec, asked = spec_of(text), [Change(*change)]  # type: ignore[arg-type]
    assert spec.is_local(asked) is local
    assert spec.edits(asked) == spec_edits(text, spec.network, asked)


def test_answers_do_not_depend_on_those_before() -> None:
    spec = spec_of()
    questions = [
        [Change(0, "K", 64), Change(1, "C", 64)],
        [Change(0, "K", 72)],
        [Change(0, "groups", 2)],
        [Change(None, "runtime.tf32", True)],
        [Change(None, "runtime.deterministic", True)],
        [Change(layer, "dtype", "bf16") for layer in range(3)],
        [Change(0, "K", 64)],
        [],
    ]
    answers = [applied(TEXT, spec.edits(asked).edits) for asked in questions]
    assert answers == [applied(TEXT, spec_edits(TEXT, spec.network, asked).edits) for asked in questions]
    assert answers[-2:] == [TEXT.replace("K: 60", "K: 64"), TEXT]
    assert "tf32: true" in answers[3]
    assert "deterministic" not in answers[5]


def read(text: str) -> Network | None:
    try:
        network, errors = read_spec(text, "net.yaml")
    except InputFault:
        return None
    return None if errors else network


def check(seed: int) -> tuple[int, int]:
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
        changes = [Change(layer, name, value) for (layer, name), value in asked.items()]
        changes = rng.sample(changes, min(len(changes), rng.randrange(1, 4)))
        local += spec.is_local(changes)
        assert spec.edits(changes) == spec_edits(text, network, changes)
    return 8, local


def test_random_specs_quickly() -> None:
    asked, local = map(sum, zip(*map(check, range(60)), strict=True))
    assert 0.1 * asked < local < 0.9 * asked


@pytest.mark.slow
def test_random_specs() -> None:
    asked, local = map(sum, zip(*map(check, range(60, 1000)), strict=True))
    assert 0.1 * asked < local < 0.9 * asked
