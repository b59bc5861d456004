"""Which terminals follow links in text (OSC 8), as far as the environment tells; others may print the address."""

from __future__ import annotations

from collections.abc import Mapping

_LEAST_VTE = 5000  # GNOME Terminal and its relatives: 0.50
_PROGRAMS = frozenset(("Hyper", "WezTerm", "ghostty", "iTerm.app", "terminology", "vscode", "zed"))
_TERMS = frozenset(("alacritty", "alacritty-direct", "foot", "xterm-ghostty", "xterm-kitty"))
_NAMED = ("DOMTERM", "KONSOLE_VERSION", "WT_SESSION")  # the last is Windows Terminal


def follows_links(environment: Mapping[str, str], *, terminal: bool) -> bool:
    """Whether what is written may hold links: FORCE_HYPERLINK first, then what is known of the terminal."""
    forced = environment.get("FORCE_HYPERLINK", "").strip()
    if forced:
        return forced != "0"
    if not terminal:
        return False
    version = environment.get("VTE_VERSION", "")
    return (
        (version.isdecimal() and int(version[:9]) >= _LEAST_VTE)
        or environment.get("TERM_PROGRAM") in _PROGRAMS
        or environment.get("TERM") in _TERMS
        or environment.get("COLORTERM") == "xfce4-terminal"
        or any(environment.get(name) for name in _NAMED)
    )
