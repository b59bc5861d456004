"""Output formats: name -> module with `render(report, style) -> str`. Reporters only render; they compute nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from convlint.report import Report

# name -> module in this package
REPORTERS: Mapping[str, str] = {
    "text": "text",
    "concise": "concise",
    "json": "json_v1",
    "sarif": "sarif",
    "github": "github",
    "gitlab": "gitlab",
    "junit": "junit",
    "rdjson": "rdjson",
    "markdown": "markdown",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """How the output may look. Formats for machines know only `unicode`: without it they write ASCII escapes.

    `quiet` leaves out what is not needed to act: infos, reasons and the summary table.
    """

    color: bool = False
    width: int = 80
    quiet: bool = False
    unicode: bool = True


def reporter(name: str) -> Callable[[Report, Style], str]:
    """The `render` function of a format. Raises KeyError for an unknown name; imports only that format's module."""
    render: Callable[[Report, Style], str] = import_module(f"{__name__}.{REPORTERS[name]}").render
    return render
