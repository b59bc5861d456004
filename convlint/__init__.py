"""convlint: linter and advisor for convolution layers on NVIDIA GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from convlint.api import lint
    from convlint.model import ConvLayer
    from convlint.report import Finding, Report

__version__ = "0.1.0"
__all__ = ["ConvLayer", "Finding", "Report", "__version__", "lint"]

_HOMES = {"ConvLayer": "model", "Finding": "report", "Report": "report", "lint": "api"}


def __getattr__(name: str) -> object:
    """Loads what is asked for, so that `import convlint` stays fast."""
    if name not in _HOMES:
        raise AttributeError(f"module 'convlint' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"convlint.{_HOMES[name]}"), name)
