"""Whether the libraries that a user names know the GPU; their table is read only when a rule asks about a version."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from convlint.facts.quantity import Quantity, Table, known, text, truth
from convlint.facts.unknown import UNKNOWN
from convlint.gpus.gpu import Gpu
from convlint.model.runtime import Runtime, framework_of
from convlint.model.version import Version

if TYPE_CHECKING:
    from convlint.facts.layer import LayerFacts


class Libraries(NamedTuple):
    """What runs, and on what."""

    gpu: Gpu
    runtime: Runtime


def _named(library: str, runtime: Runtime) -> tuple[str, Version | None]:
    """The library's name in the table, and the version given."""
    if library == "framework":
        return framework_of(runtime) or "", runtime.framework_version
    version: Version | None = getattr(runtime, library)
    return library, version


def _first(library: str, libraries: Libraries) -> Any:
    from convlint.gpus import support

    name, _ = _named(library, libraries.runtime)
    return str(support.first_version(name, libraries.gpu) or "") or UNKNOWN


def _last(library: str, libraries: Libraries) -> Any:
    from convlint.gpus import support

    name, _ = _named(library, libraries.runtime)
    return support.last_version(name, libraries.gpu) or UNKNOWN


def _dropped(library: str, libraries: Libraries) -> Any:
    from convlint.gpus import support

    name, given = _named(library, libraries.runtime)
    return UNKNOWN if given is None else known(support.dropped(name, given, libraries.gpu))


def _too_old(library: str, libraries: Libraries) -> Any:
    from convlint.gpus import support

    name, given = _named(library, libraries.runtime)
    return UNKNOWN if given is None else known(support.too_old(name, given, libraries.gpu))


def _version(library: str, bound: Callable[[str, Libraries], Any], facts: LayerFacts) -> tuple[str, ...]:
    """The version, where there is one at which the library's support begins or ends."""
    runtime = facts.context.runtime
    libraries = Libraries(facts.context.gpu, runtime)
    if bound(library, libraries) is UNKNOWN:
        return ()
    name, given = _named(library, runtime)
    if given is None:
        return ("runtime.framework_version" if library == "framework" else f"runtime.{library}",)
    answered = (_dropped if bound is _last else _too_old)(library, libraries) is not UNKNOWN
    return () if answered else (f"a source on {name} {given}",)


def _nothing(_facts: LayerFacts) -> tuple[str, ...]:
    return ()


def _of(library: str) -> dict[str, Quantity]:
    return {
        f"{library}_first": text(f"the first {library} that knows the GPU", partial(_first, library), _nothing, True),
        f"{library}_last": text(f"the last {library} for the GPU", partial(_last, library), _nothing, True),
        f"{library}_dropped": truth(
            f"the given {library} no longer supports the GPU",
            partial(_dropped, library),
            partial(_version, library, _last),
            True,
        ),
        f"{library}_too_old": truth(
            f"the given {library} is older than the GPU",
            partial(_too_old, library),
            partial(_version, library, _first),
            True,
        ),
    }


SUPPORT: Table = {
    name: row for library in ("cuda", "cudnn", "tensorrt", "framework") for name, row in _of(library).items()
}
