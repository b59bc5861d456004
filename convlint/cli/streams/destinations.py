"""What `--output FORMAT[=FILE]` means: which format goes where."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from convlint.cli.streams.clashes import Use
from convlint.errors import UsageError, suggestion

Destination = tuple[str, str | None]  # format, file; None is standard output


def parse_destinations(
    values: Sequence[str], known: Collection[str], *, default: str = "text", files_only: Sequence[str] = ()
) -> list[Destination]:
    """Each `FORMAT[=FILE]`; `default` where none is given.

    Raises UsageError for an unknown format, one of `files_only` without a file, and two for standard output.
    """
    places: list[Destination] = []
    for value in values or (default,):
        name, _, path = value.partition("=")
        if name not in known:
            raise UsageError(f"unknown format {name!r}{suggestion(name, known)}; known are {', '.join(known)}")
        if not path and name in files_only:
            raise UsageError(f"--output {name} needs a file: --output {name}=FILE.{name}")
        if not path and any(other is None for _, other in places):
            raise UsageError(f"two formats write to standard output; give one of them a file: {name}=FILE")
        places.append((name, path or None))
    return places


def files_of(places: Sequence[Destination]) -> list[Use]:
    """The files among the places."""
    return [Use(role=name, path=path) for name, path in places if path is not None]
