"""Output formats: name -> module with `render(report) -> str`. Reporters only render; they compute nothing."""

from __future__ import annotations

from collections.abc import Mapping

# name -> module in this package
REPORTERS: Mapping[str, str] = {
    "text": "text",
    "concise": "concise",
    "json": "json_v1",
}
