"""Tensors are found in whatever a model returns."""

from __future__ import annotations

from collections import OrderedDict, deque, namedtuple
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from convlint.readers.torch import returned
from convlint.readers.torch.returned import tensors_in

A, B = torch.zeros(1), torch.zeros(2)
Pair = namedtuple("Pair", "first second")


@dataclass
class Held:
    """A dataclass."""

    maps: Any
    name: str = "x"


@dataclass(slots=True)
class Slotted:
    """One without a __dict__."""

    maps: Any


def held_by_itself() -> list[Any]:
    value: list[Any] = [A]
    value.append(value)
    return value


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (A, [A]), ([A, (B, None)], [A, B]), ({"a": [A], "b": {"c": B}}, [A, B]), (OrderedDict(a=A), [A]),
        (Pair(A, B), [A, B]), (Held([A, Held(B)]), [A, B]), (Slotted({"a": A}), [A]), (SimpleNamespace(x=A), [A]),
        (torch.distributions.Normal(A, A + 1, validate_args=False), None), ({A}, [A]), ((A, A), [A]),
        (held_by_itself(), [A]), (deque([A]), [A]), ((index for index in ()), []),
        (None, []), (3, []), ("text", []), (nn.Conv2d(3, 8, 1), []), (Held, []), (torch, []), (lambda: A, []),
    ],
)  # fmt: skip
def test_tensors_are_found(value: Any, found: list[Any] | None) -> None:
    tensors = tensors_in(value)
    assert tensors is not None
    ids = {id(tensor) for tensor in tensors}
    if found is None:
        assert id(value.loc) in ids
        assert len(ids) == 2
    else:
        assert ids == {id(tensor) for tensor in found}


def test_looking_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(returned, "MOST_OBJECTS", 10)
    assert tensors_in([A, *map(str, range(8))]) == [A]
    assert tensors_in([A, *map(str, range(9))]) is None


def test_models_of_transformers_return_mappings_of_their_own() -> None:
    from transformers.modeling_outputs import BaseModelOutput

    tensors = tensors_in(BaseModelOutput(last_hidden_state=A, hidden_states=(B,)))
    assert tensors is not None
    assert {id(tensor) for tensor in tensors} == {id(A), id(B)}
