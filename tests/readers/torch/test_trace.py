"""torch.autocast as it is meant, on a machine that need not have a GPU."""

import warnings
from collections.abc import Callable

import pytest
import torch

from convlint.readers.torch.trace import recorded_autocast

HALF, BRAIN = torch.float16, torch.bfloat16


def inside(*contexts: Callable[[], torch.autocast], outer: str | None = None) -> torch.dtype | None:
    """What convolutions run in inside these, from the outermost inwards."""
    with warnings.catch_warnings(), recorded_autocast(outer) as held:
        warnings.simplefilter("error")
        entered = [context() for context in contexts]
        for context in entered:
            context.__enter__()
        found = held[-1]
        for context in reversed(entered):
            context.__exit__(None, None, None)
        assert held[-1] == (None if outer is None else {"fp16": HALF, "bf16": BRAIN}[outer])
        return found


@pytest.mark.parametrize(
    ("contexts", "outer", "expected"),
    [
        ((), None, None),
        ((), "bf16", BRAIN),
        ((lambda: torch.autocast("cuda"),), None, HALF),
        ((lambda: torch.autocast("cuda", dtype=torch.bfloat16),), None, BRAIN),
        ((lambda: torch.autocast(device_type="cuda", enabled=False),), "bf16", None),
        ((lambda: torch.autocast("cuda"), lambda: torch.autocast("cuda", enabled=False)), None, None),
        ((lambda: torch.autocast("cpu", dtype=torch.bfloat16),), None, None),
        ((lambda: torch.amp.autocast("cuda", dtype=torch.bfloat16),), "fp16", BRAIN),
    ],
)
def test_what_holds_is_what_was_meant(
    contexts: tuple[Callable[[], torch.autocast], ...], outer: str | None, expected: torch.dtype | None
) -> None:
    assert inside(*contexts, outer=outer) == expected


def test_torch_gets_its_class_back() -> None:
    before = torch.autocast.__init__, torch.autocast.__enter__, torch.autocast.__exit__
    with recorded_autocast(None):
        assert torch.autocast.__enter__ is not before[1]
    assert (torch.autocast.__init__, torch.autocast.__enter__, torch.autocast.__exit__) == before


def test_it_decorates_functions_too() -> None:
    with recorded_autocast(None) as held:

        @torch.autocast("cuda", dtype=torch.bfloat16)
        def forward() -> torch.dtype | None:
            return held[-1]

        assert (forward(), held[-1]) == (BRAIN, None)
