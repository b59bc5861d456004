"""Formats and files of `convlint estimate` and `convlint sweep`: what `--output FORMAT[=FILE]` means there."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from convlint.commands.output import check_writable
from convlint.errors import UsageError, suggestion

Destination = tuple[str, str | None]  # format, file; None is standard output


def parse_destinations(
    values: Sequence[str], known: Sequence[str], *, default: str, files_only: Sequence[str] = ()
) -> list[Destination]:
    """Each `FORMAT[=FILE]`; `default` where none is given. Nothing is written yet.

    Raises UsageError for an unknown format, one of `files_only` without a file, two that share a place, and a file
    that cannot be written.
    """
    places: list[Destination] = []
    for value in values or (default,):
        name, _, path = value.partition("=")
        if name not in known:
            raise UsageError(f"unknown format {name!r}{suggestion(name, known)}; known are {', '.join(known)}")
        if not path and name in files_only:
            raise UsageError(f"--output {name} needs a file: --output {name}=FILE.{name}")
        if any(other == (path or None) for _, other in places):
            raise UsageError(f"two formats write to {path or 'standard output'}; give one of them a file: {name}=FILE")
        places.append((name, path or None))
    check_writable(places)
    return places


def replace_bytes(path: str, content: bytes) -> None:
    """Writes all of `content` or nothing: an existing file stays as it was until the new one is complete."""
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(content)
        temporary.replace(target)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)
