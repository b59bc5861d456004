"""convlint: linter and advisor for convolution layers on NVIDIA GPUs."""

from __future__ import annotations

__version__ = "0.1.0"
