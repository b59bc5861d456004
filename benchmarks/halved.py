"""timm's networks in fp16, each under its own name, as `steps.py` has them read: `halved:resnet50`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def __getattr__(name: str) -> Callable[[], Any]:
    """What builds the network of that name."""
    if name.startswith("_"):
        raise AttributeError(name)
    import timm  # type: ignore[import-not-found, unused-ignore]

    return lambda: timm.create_model(name).half()
