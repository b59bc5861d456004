"""torch.autocast on a machine without a GPU, where torch switches it off: what it would run convolutions in."""

from __future__ import annotations

from types import TracebackType
from typing import Any

import torch

_NAMED = {"fp16": torch.float16, "bf16": torch.bfloat16}


class Autocast:
    """While entered, every `torch.autocast` for CUDA is noted as it is meant; `dtype` is what holds at the moment."""

    def __init__(self, outer: str | None) -> None:
        """`outer` is the dtype of an autocast around the whole forward pass."""
        self._held: list[torch.dtype | None] = [None if outer is None else _NAMED[outer]]

    @property
    def dtype(self) -> torch.dtype | None:
        """What convolutions of floating point tensors run in; None: what their tensors are."""
        return self._held[-1]

    def __enter__(self) -> Autocast:
        """Puts its own notes into torch's class, which keeps doing what it does."""
        kind = torch.amp.autocast_mode.autocast
        self._originals = kind.__init__, kind.__enter__, kind.__exit__
        began, entered, left = self._originals
        held = self._held

        def begin(
            it: Any, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: Any = None
        ) -> None:
            it.__dict__[_MEANT] = (device_type, dtype, enabled)
            on = enabled and device_type != "cuda"  # which this machine need not have, nor be warned of
            began(it, device_type, dtype if device_type != "cuda" else None, on, cache_enabled)

        def enter(it: Any) -> Any:
            device_type, dtype, enabled = it.__dict__.get(_MEANT, ("", None, False))
            if device_type == "cuda":
                held.append((dtype or torch.float16) if enabled else None)
            return entered(it)

        def leave(it: Any, *error: Any) -> Any:
            if it.__dict__.get(_MEANT, ("",))[0] == "cuda" and len(held) > 1:
                held.pop()
            return left(it, *error)

        kind.__init__, kind.__enter__, kind.__exit__ = begin, enter, leave
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Gives torch its class back."""
        own = torch.amp.autocast_mode.autocast
        own.__init__, own.__enter__, own.__exit__ = self._originals


_MEANT = "_convlint_meant"
