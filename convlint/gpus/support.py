"""What libraries and frameworks still support on a GPU, by version."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Any, Final

from msgspec import Struct

from convlint.files.patterns import pattern
from convlint.gpus.gpu import Gpu, table
from convlint.model.errors import ConvlintError
from convlint.model.layer import Dtype, Mode
from convlint.model.runtime import Runtime, Version, framework_of

_PATH: Final = os.path.join(os.path.dirname(__file__), "support.yaml")


class _Oldest(Struct, frozen=True, kw_only=True):
    """From release `since` on, compute capabilities from `lowest` are supported, those from `unsure_from` maybe."""

    since: Version
    lowest: Version
    unsure_from: Version
    last: str | None


class _Wheels(Struct, frozen=True, kw_only=True):
    """From release `since` of PyTorch on, what its wheels for one CUDA have code for."""

    since: Version
    codes: tuple[Version, ...]


class _Library(Struct, frozen=True, kw_only=True):
    """Which compute capabilities the releases of one library support."""

    same_major: bool  # code for a compute capability runs on the later minors of its major version too
    discrete_only: bool  # nothing is known of Jetsons, where the library comes with JetPack
    first: Mapping[Version, Version]  # compute capability -> the release that first has code for it
    # compute capability -> a release that supports all up to it, perhaps not the first
    listed: Mapping[Version, Version]
    oldest: tuple[_Oldest, ...]


def first_version(library: str, gpu: Gpu) -> Version | None:
    """Return the oldest release that knows the GPU, by itself or as a newer minor of what it knows; None: unknown."""
    facts = _facts(library, gpu)
    known = _kin(facts, gpu) if facts else {}
    return known[max(known)] if known else None


def last_version(library: str, gpu: Gpu) -> str | None:
    """Return the last release known to support the GPU, as text to print; None: still supported, or unknown.

    JetPack decides which releases a Jetson gets, and its last one is older than those for the compute capability.
    """
    facts = None if gpu.jetson else _facts(library, gpu)
    gone = (entry.last for entry in (facts.oldest if facts else ()) if gpu.compute_capability < entry.unsure_from)
    return next(gone, None)


def too_old(library: str, version: Version, gpu: Gpu) -> bool | None:
    """Tell whether `version` predates the GPU, that is, has no code that runs on it; None: unknown."""
    facts = _facts(library, gpu)
    if facts is None:
        return None
    if any(gpu.compute_capability <= cc and version >= release for cc, release in facts.listed.items()):
        return False
    known = _kin(facts, gpu)
    return version < min(known.values()) if known else None


def dropped(library: str, version: Version, gpu: Gpu) -> bool | None:
    """Tell whether `version` no longer supports the GPU; None: unknown."""
    facts = _facts(library, gpu)
    if facts is None or not facts.oldest:
        return None
    past = [entry for entry in facts.oldest if entry.since <= version]
    entry = past[-1] if past else facts.oldest[0]
    if gpu.compute_capability >= entry.lowest:
        return False
    return True if past and gpu.compute_capability < entry.unsure_from else None


_BUILT_FOR = pattern(r".*\+cu(\d{2})(\d)")  # a local version: 2.9.0+cu126


def wheel_cuda(version: Version) -> str | None:
    """The CUDA that a version of PyTorch names itself to be built with; None where it names none."""
    match = _BUILT_FOR.fullmatch(version.text.strip())
    return None if match is None else f"{match[1]}.{match[2]}"


def wheel_codes(cuda: str, version: Version) -> tuple[Version, ...]:
    """The compute capabilities that PyTorch's wheel of that release and CUDA has code for; none where unknown."""
    codes: tuple[Version, ...] = ()
    for entry in _wheels().get(cuda, ()):
        if entry.since <= version:
            codes = entry.codes
    return codes


def wheels(version: Version | None) -> list[tuple[Version, ...]]:
    """The compute capabilities that each wheel which a release of PyTorch may come in has code for; None: any release.

    The wheels for a CUDA that later releases no longer came in are among them.
    """
    if version is None:
        return [entry.codes for entries in _wheels().values() for entry in entries]
    return [codes for cuda in _wheels() if (codes := wheel_codes(cuda, version))]


def _kin(facts: _Library, gpu: Gpu) -> dict[Version, Version]:
    """First releases by compute capability, for those whose code runs on `gpu`: its own, or a lower minor's."""
    own = gpu.compute_capability
    if gpu.jetson or not facts.same_major:
        return {cc: release for cc, release in facts.first.items() if cc == own}
    return {cc: release for cc, release in facts.first.items() if cc.numbers[0] == own.numbers[0] and cc <= own}


def _facts(library: str, gpu: Gpu) -> _Library | None:
    facts = _libraries().get(library)
    return None if facts is None or (facts.discrete_only and gpu.jetson) else facts


@cache
def _libraries() -> Mapping[str, _Library]:
    return parse_support(table(_PATH))


@cache
def _wheels() -> Mapping[str, tuple[_Wheels, ...]]:
    """By CUDA, in the order of releases."""
    content = table(_PATH)
    return {
        cuda: tuple(
            _Wheels(since=Version(entry["since"]), codes=tuple(map(Version, entry["codes"].split())))
            for entry in entries
            if content["sources"][entry["source"]]
        )
        for cuda, entries in content["wheels"].items()
    }


def parse_support(content: Mapping[str, Any]) -> Mapping[str, _Library]:
    """Build the table from the file's content; ConvlintError for anything but versions with a known source."""
    try:
        sources = content["sources"]
        return {name: _library(facts, sources) for name, facts in content.items() if name not in ("sources", "wheels")}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ConvlintError(f"{_PATH}: {error!r}") from error


def _library(facts: Mapping[str, Any], sources: Mapping[str, str]) -> _Library:
    def sourced(entry: Mapping[str, str]) -> Version:
        if entry["source"] not in sources:
            raise ValueError(f"unknown source {entry['source']!r}")
        return Version(entry["value"])

    oldest = []
    for entry in facts.get("oldest", []):
        lowest = sourced(entry)
        unsure_from = Version(entry["unsure_from"]) if "unsure_from" in entry else lowest
        oldest.append(
            _Oldest(since=Version(entry["since"]), lowest=lowest, unsure_from=unsure_from, last=entry.get("last"))
        )
    if oldest != sorted(oldest, key=lambda entry: entry.since):
        raise ValueError("the entries of oldest do not stand in the order of releases")
    return _Library(
        same_major=facts.get("same_major", False),
        discrete_only=facts.get("discrete_only", False),
        first={Version(cc): sourced(entry) for cc, entry in facts.get("first", {}).items()},
        listed={Version(cc): sourced(entry) for cc, entry in facts.get("listed", {}).items()},
        oldest=tuple(oldest),
    )


_FRAMEWORKS: Final = os.path.join(os.path.dirname(__file__), "frameworks.yaml")


class Lack(Struct, frozen=True, kw_only=True):
    """Convolutions that do not exist; None stands for all. `instead` is a dtype that the framework has in that mode."""

    says: str
    fix: str
    instead: Dtype | None
    source: str
    framework: str | None = None
    dtype: Dtype | None = None
    mode: Mode | None = None
    below: Version | None = None  # on GPUs of lower compute capability alone
    unless: str | None = None  # a field of the runtime: only where it is not given
    operators: tuple[str, ...] = ()  # the ONNX operators that it is limited to

    def holds(self, runtime: Runtime, gpu: Gpu, operator: str = "") -> bool:
        """Whether it is so on this GPU, with what is given beside the framework, for this ONNX operator."""
        if self.operators and operator not in self.operators:
            return False
        if self.below is not None and not gpu.compute_capability < self.below:
            return False
        return self.unless is None or getattr(runtime, self.unless) is None


def is_settled(runtime: Runtime, dtype: Dtype, mode: Mode) -> bool:
    """Whether the table answers for this dtype without the framework's name, or has it."""
    if framework_of(runtime) is not None:
        return True
    rows = [lack for lack in lacks() if lack.dtype == dtype and lack.mode in (None, mode)]
    return not rows or any(lack.framework is None for lack in rows)


def lack_of(runtime: Runtime, dtype: Dtype | None, mode: Mode, gpu: Gpu, operator: str = "") -> Lack | None:
    """What the framework in use lacks to run a convolution of this dtype; None: nothing that is known.

    `operator` is the ONNX operator that the file has for it, where another than Conv might do.
    """
    rows = _of_framework(framework_of(runtime), dtype, mode)
    return next((lack for lack in rows if lack.holds(runtime, gpu, operator)), None)


@lru_cache(maxsize=256)
def _of_framework(framework: str | None, dtype: Dtype | None, mode: Mode) -> tuple[Lack, ...]:
    return tuple(
        lack
        for lack in lacks()
        if lack.framework in (None, framework) and lack.mode in (None, mode) and lack.dtype in (None, dtype)
    )


_TYPES: Final[Mapping[str, Callable[[Any], Any]]] = {
    "dtype": Dtype, "below": Version, "instead": Dtype, "operators": tuple,
}  # fmt: skip


@cache
def lacks() -> tuple[Lack, ...]:
    """All rows of the table."""
    return tuple(
        Lack(**{key: value if value is None or key not in _TYPES else _TYPES[key](value) for key, value in row.items()})
        for row in table(_FRAMEWORKS)["lacks"]
    )
