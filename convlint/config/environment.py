"""The versions that a project pins: lock files, requirements and conda environments near an input.

Nothing is run or installed, and nothing is guessed: a range is no version, nor is a nightly build, and pins that
disagree are none. Files count as hostile: what is larger than `MOST_LOCK_BYTES` is not read, and of TOML only the
blocks of the packages that matter are parsed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from typing import Any, Final

from msgspec import Struct, field

from convlint.files.bounded_file import file_size, open_regular
from convlint.files.patterns import pattern
from convlint.gpus.support import wheel_codes, wheel_cuda
from convlint.model.errors import InputFault, UsageError
from convlint.model.runtime import ASKED, INSTALLED, Runtime, Version, framework_of

MOST_LOCK_BYTES: Final = 32 * 2**20  # of a monorepo with 2,000 packages uv.lock has some 5 MB
_MOST_FILES, _MOST_INCLUDED, _MOST_BLOCKS, _LONGEST_LINE = 20, 10, 500, 100_000
_LOCKS = ("uv.lock", "pylock.toml", "poetry.lock", "pdm.lock")
_REQUIREMENTS = pattern(r"requirements[\w.-]*\.txt")
_CONDA = ("environment.yml", "environment.yaml")

_FRAMEWORKS: Mapping[str, tuple[str, ...]] = {  # by what a runtime calls it, the packages that are it
    "pytorch": ("torch", "pytorch"),
    "tensorflow": ("tensorflow", "tensorflow-gpu"),
    "jax": ("jax",),
    "onnxruntime": ("onnxruntime-gpu",),
    "tensorrt": ("tensorrt", "tensorrt-cu12", "tensorrt-cu13"),
    "mxnet": ("mxnet",),
}
_CUDNN = ("nvidia-cudnn-cu13", "nvidia-cudnn-cu12", "nvidia-cudnn-cu11", "cudnn")
_CUDA = (
    "nvidia-cuda-runtime", "nvidia-cuda-runtime-cu12", "nvidia-cuda-runtime-cu11", "cuda-version", "pytorch-cuda",
    "cudatoolkit",
)  # fmt: skip
_RELEASED = frozenset(name for names in _FRAMEWORKS.values() for name in names)
_WANTED = frozenset((*_CUDNN, *_CUDA, *_RELEASED))

# cuDNN of PyTorch's wheels by CUDA, the one on PyPI first: RELEASE.md of pytorch/pytorch ("Release Compatibility
# Matrix"), and what the wheels on PyPI require: cu121 in 2.4, cu124 in 2.5 and 2.6, cu126 in 2.7, cu128 in 2.8 to 2.10,
# cu130 in 2.11 to 2.14, cu132 in 2.15.
_OF_TORCH: Mapping[str, Mapping[str, str]] = {
    "2.15": {"13.2": "9.26.0"},
    "2.14": {"13.0": "9.24.0", "13.2": "9.24.0", "12.6": "9.10.2"},
    "2.13": {"13.0": "9.20.0", "13.2": "9.20.0", "12.6": "9.10.2"},
    "2.12": {"13.0": "9.20.0", "13.2": "9.20.0", "12.6": "9.10.2"},
    "2.11": {"13.0": "9.19.0", "12.6": "9.10.2"},
    "2.10": {"12.8": "9.10.2", "12.6": "9.10.2", "13.0": "9.15.1"},
    "2.9": {"12.8": "9.10.2", "12.6": "9.10.2", "13.0": "9.13.0"},
    "2.8": {"12.8": "9.10.2", "12.6": "9.10.2", "12.9": "9.10.2"},
    "2.7": {"12.6": "9.5.1", "11.8": "9.1.0", "12.8": "9.7.1"},
    "2.6": {"12.4": "9.1.0", "11.8": "9.1.0", "12.6": "9.5.1"},
    "2.5": {"12.4": "9.1.0", "11.8": "9.1.0", "12.1": "9.1.0"},
    "2.4": {"12.1": "9.1.0", "11.8": "9.1.0", "12.4": "9.1.0"},
}
_OLDEST = min(_OF_TORCH, key=lambda release: Version(release).numbers)
# What a GPU's host is taken to be, where a marker asks.
_HOST = {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix", "platform_machine": "x86_64"}


class Pin(Struct, frozen=True):
    """A version of one package, as it is written, and where: `uv.lock:1203`."""

    version: str
    origin: str


class Environment(Struct, frozen=True, kw_only=True):
    """What is pinned, by package; `notes` say what could not be taken, and why."""

    pins: Mapping[str, Pin] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    open: bool = False  # a framework is asked for in more than one version: what lies farther away says nothing of it


class _File(Environment, frozen=True, kw_only=True):
    """What one file pins; of frameworks that it asks for in several versions, a note."""

    ranges: Mapping[str, str] = field(default_factory=dict)


def environment_near(folder: str, top: str | None) -> Environment:
    """The pins of the nearest folder that has some, from `folder` upward to `top`, or to the root of its repository."""
    folder = os.path.abspath(folder)
    notes: list[str] = []
    while True:
        environment = _in_folder(folder)
        notes += environment.notes
        parent = os.path.dirname(folder)
        ends = environment.open or parent == folder or folder == top or os.path.lexists(os.path.join(folder, ".git"))
        if environment.pins or ends:
            return Environment(pins=environment.pins, notes=tuple(notes))
        folder = parent


def environment_in(path: str) -> Environment:
    """The pins of one file. Raises InputFault where it cannot be read."""
    open_regular(path).close()
    return _agreed([_read(path, ())])


def environment_of(release: str) -> Environment:
    """An environment with that release for whichever framework runs, and nothing else."""
    pin = Pin(release, ASKED)
    return Environment(pins={name: pin for names in _FRAMEWORKS.values() for name in names})


def refuse_unknown(release: str, runtime: Runtime) -> None:
    """Raises UsageError for a release of PyTorch, or a wheel of it, of which nothing is known."""
    version = Version(release)
    if framework_of(runtime) != "pytorch" or version < _OLDEST:
        return
    wheels = _wheels(version)
    built = wheel_cuda(version)
    if not wheels:
        raise UsageError(f"PyTorch {release}: convlint knows releases up to {next(iter(_OF_TORCH))}")
    if "+" in release and built is None:
        raise UsageError(f"PyTorch {release}: no such wheel is known")
    if built is not None and not wheel_codes(built, version):
        raise UsageError(f"PyTorch {release}: no wheel for CUDA {built} is known")


@cache
def environment_installed() -> Environment:
    """The versions that are installed where this runs, and that modules which are read here have."""
    from importlib.metadata import PackageNotFoundError, version

    pins = {}
    for name in sorted(_WANTED):
        with suppress(PackageNotFoundError):
            pins[name] = Pin(version(name), INSTALLED)
    return Environment(pins=pins)


def installed_beside(pinned: Environment) -> Environment:
    """What is installed where this runs; a note where a lock file pins another release of a framework."""
    here = environment_installed()
    notes = tuple(
        f"{pin.origin} pins {name} {pin.version}, but {here.pins[name].version} is installed and counts: "
        f"--versions {pin.origin.rpartition(':')[0]} takes what is pinned"
        for name, pin in pinned.pins.items()
        if name in _RELEASED and name in here.pins and Version(pin.version) != Version(here.pins[name].version)
    )
    return Environment(pins=here.pins, notes=notes)


def _in_folder(folder: str) -> Environment:
    try:
        entries = sorted(entry.name for entry in os.scandir(folder))
    except OSError:
        return Environment()
    names = [name for name in entries if name in _LOCKS or name in _CONDA or _REQUIREMENTS.fullmatch(name)]
    return _agreed([_read(os.path.join(folder, name), ()) for name in names[:_MOST_FILES]])


def _agreed(files: Sequence[_File]) -> Environment:
    """What all files agree on."""
    pins: dict[str, Pin] = {}
    refused: dict[str, str] = {}
    notes: list[str] = []
    for file in files:
        notes += file.notes
        for name, pin in file.pins.items():
            other = pins.setdefault(name, pin)
            if other.version != pin.version:
                refused[name] = (
                    f"{name}: {other.version} in {other.origin}, but {pin.version} in {pin.origin}: neither is taken"
                )
    agreed = {name: pin for name, pin in pins.items() if name not in refused}
    ranges = {name: note for file in files for name, note in file.ranges.items() if name not in pins}
    return Environment(pins=agreed, notes=(*notes, *refused.values(), *ranges.values()), open=bool(ranges))


def _read(path: str, seen: tuple[str, ...]) -> _File:
    """The pins of a file; `seen` are those that it is included from."""
    try:
        status = os.stat(path)
    except OSError:
        return _File()
    if path.endswith(".txt"):  # small, and others that it includes may change
        return _parsed(path, seen)
    return _kept(path, (status.st_mtime_ns, status.st_size))


@lru_cache(maxsize=64)
def _kept(path: str, _state: tuple[int, int]) -> _File:
    """The pins of a file, kept while it does not change: each spec of a folder asks for them."""
    return _parsed(path, ())


def _parsed(path: str, seen: tuple[str, ...]) -> _File:
    name = os.path.relpath(path)
    try:
        with open_regular(path) as stream:
            if file_size(stream) > MOST_LOCK_BYTES:
                raise InputFault(f"more than {MOST_LOCK_BYTES >> 20} MiB")
            text = stream.read(MOST_LOCK_BYTES).decode("utf-8", "replace")
    except InputFault as fault:
        return _File(notes=(f"{name}: not read for versions: {fault.message}",))
    if path.endswith((".lock", ".toml")):
        versions = _of_lock(text)
    elif path.endswith(".txt"):
        versions = _of_requirements(text, path, seen)
    else:
        versions = _of_conda(text)
    pins: dict[str, Pin] = {}
    notes: list[str] = []
    ranges: dict[str, str] = {}
    for package, version, line, origin in versions:
        where = f"{origin or name}:{line}"
        if version is None:
            notes.append(f"{package} in {where} has no version that can be read: none is taken")
            continue
        if not version:
            ranges[package] = f"{package} in {where} is a range: no version is taken"
            continue
        reason = _not_taken(version)
        if reason:
            notes.append(f"{package} {version} in {where} is {reason}: no version is taken")
        elif package in pins and pins[package].version != version:
            if pins[package].version:
                notes.append(f"{package}: {pins[package].version} and {version} in {name}: neither is taken")
            pins[package] = Pin("", where)
        else:
            pins.setdefault(package, Pin(version, where))
    known = {key: pin for key, pin in pins.items() if pin.version}
    return _File(pins=known, notes=tuple(dict.fromkeys(notes)), ranges=ranges)


# package, version (empty for a range, None where it cannot be read), line, the file where that is another
_VersionLine = tuple[str, str | None, int, str]


# What packaging need not be asked about: to load it takes a tenth of a small check.
_RELEASE = r"[0-9]{1,9}(?:\.[0-9]{1,9}){0,5}"
_PLAIN_VERSION = pattern(_RELEASE)
_PLAIN_PIN = pattern(rf"[\w.-]+ ?== ?({_RELEASE})", re.ASCII)


def _not_taken(version: str) -> str:
    """Why a version is not taken; empty where it is."""
    if _PLAIN_VERSION.fullmatch(version):
        return ""
    from packaging.version import InvalidVersion
    from packaging.version import Version as Released

    try:
        return "a nightly or a release candidate" if Released(version).is_prerelease else ""
    except InvalidVersion:
        return "no version"


def _name(text: str) -> str:
    return re.sub(r"[-_.]+", "-", text).lower()


_BLOCK = pattern(r"^\[\[packages?\]\][ \t]*$", re.MULTILINE)
_NEXT_TABLE = pattern(r"^\[(?!\[packages?\]\])", re.MULTILINE)
_KEY = pattern(r"""^name[ \t]*=[ \t]*["']([\w.-]{1,80})["']""", re.MULTILINE)


def _of_lock(text: str) -> Iterator[_VersionLine]:
    """uv, pylock, Poetry and PDM: a table for each package. Only those that matter are parsed."""
    import tomllib

    starts = [match.start() for match in _BLOCK.finditer(text)]
    count = 0
    for start, end in zip(starts, [*starts, len(text)][1:], strict=True):
        match = _KEY.search(text, start, end)
        if match is None or _name(match[1]) not in _WANTED or count >= _MOST_BLOCKS:
            continue
        count += 1
        # The next table may be a large one of files.
        after = _NEXT_TABLE.search(text, start, end)
        try:
            tables = tomllib.loads(text[start : end if after is None else after.start()])
            block: Any = next(iter(tables.values()))[0]
        except (tomllib.TOMLDecodeError, RecursionError):
            block = {}
        version = block.get("version")
        markers = block.get("resolution-markers") or [block.get("marker") or block.get("markers")]
        if _holds_somewhere(markers):
            line = 1 + text.count("\n", 0, match.start())
            yield _name(match[1]), version if isinstance(version, str) else None, line, ""


def _holds_somewhere(markers: Any) -> bool:
    """Whether one of the markers may hold on a Linux host with a GPU, whatever its Python."""
    return any(not isinstance(item, str) or _holds(item) for item in markers) if isinstance(markers, list) else True


def _holds(marker: str) -> bool:
    from packaging.markers import InvalidMarker, Marker

    if "python" in marker or "extra" in marker:
        return True  # nobody says which
    try:
        return Marker(marker).evaluate({**_HOST, "extra": ""})
    except (InvalidMarker, RecursionError, ValueError):
        return True


def _lines(text: str) -> list[str]:
    """The lines, without those that no person and no tool writes."""
    return [line if len(line) <= _LONGEST_LINE else "" for line in text.split("\n")]


_PINNED = pattern(r"^\s*([\w.-]{1,80})\s*(\[[^\]]*\])?\s*(==|===|@)")
_RANGED = pattern(r"^\s*([\w.-]{1,80})\s*(?:\[[^\]]*\])?\s*(?:[<>~!]|==\s*[\d.]+\*|#|$)")
_INDEX = pattern(r"^\s*(?:-i|--index-url|--extra-index-url)[ =]\s*\S*download\.pytorch\.org/whl/(cu\d+|cpu|rocm[\d.]+)")
_WHEEL = pattern(r"^\s*((?:https?|file)://\S+/(torch)-\S+\.whl)")
_OPTIONS = pattern(r"\s(?:--|#)")  # what a requirement ends at
_INCLUDE = pattern(r"^\s*(?:-r|--requirement|-c|--constraint)[ =]?\s*(\S+)\s*$")


def _of_requirements(text: str, path: str, seen: tuple[str, ...]) -> Iterator[_VersionLine]:
    """What pip reads, `torch==2.9.0+cu126 ; sys_platform == "linux"`, and what is included from its folder."""
    lines = _lines(text.replace("\\\n", "  "))
    index = next((match[1] for line in lines if (match := _INDEX.match(line))), "")
    for number, line in enumerate(lines, 1):
        if include := _INCLUDE.match(line):
            other = os.path.normpath(os.path.join(os.path.dirname(path), include[1]))
            inside = os.path.dirname(os.path.abspath(other)).startswith(os.path.dirname(os.path.abspath(path)))
            if inside and other not in seen and len(seen) < _MOST_INCLUDED:
                for package, pin in _read(other, (*seen, path)).pins.items():
                    file, _, place = pin.origin.rpartition(":")
                    yield package, pin.version, int(place), file
            continue
        if wheel := _WHEEL.match(line):
            yield _name(wheel[2]), _of_wheel(wheel[1]), number, ""
            continue
        ranged = _RANGED.match(line)
        if ranged is not None and _name(ranged[1]) in _RELEASED:
            yield _name(ranged[1]), "", number, ""
            continue
        pinned = _PINNED.match(line)
        if pinned is None or _name(pinned[1]) not in _WANTED:
            continue
        version = _version_of(_OPTIONS.split(line.strip(), maxsplit=1)[0].rstrip())
        if version and index and "+" not in version and _name(pinned[1]) == "torch":
            version += f"+{index}"  # from PyTorch's own index, whose wheels say what they are built for
        if version:
            yield _name(pinned[1]), version, number, ""


def _version_of(requirement: str) -> str:
    """The version that it pins on such a host; empty where there is none, or where pip refuses it."""
    if plain := _PLAIN_PIN.fullmatch(requirement):
        return plain[1]
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        parsed = Requirement(requirement)
    except (InvalidRequirement, RecursionError):
        return ""
    if parsed.marker is not None and not _holds(str(parsed.marker)):
        return ""
    return _of_wheel(parsed.url) if parsed.url else _exact(str(parsed.specifier))


def _exact(specifier: str) -> str:
    """The version that `==2.9.0` pins; empty for a range."""
    match = re.fullmatch(r"===?\s*([^,*]+)", specifier)
    return match[1].strip() if match else ""


def _of_wheel(url: str) -> str:
    """`.../torch-2.9.0%2Bcu126-cp312-cp312-linux_x86_64.whl`."""
    from urllib.parse import unquote

    from packaging.utils import InvalidWheelFilename, parse_wheel_filename

    try:
        return str(parse_wheel_filename(unquote(url.partition("#")[0].rpartition("/")[2]))[1])
    except InvalidWheelFilename:
        return ""


_CONDA_PIN = pattern(r"^\s*-\s*(?:[\w.-]+::)?([\w.-]{1,80})\s*(==?)\s*([\w.+!]+)(?:=\S*)?\s*(?:#.*)?$")


def _of_conda(text: str) -> Iterator[_VersionLine]:
    """`- pytorch=2.9.0=py3.12_cuda12.6`, and pip's pins below it. `=2.9` is a range: 2.9.1 satisfies it.

    Packages that stand for a CUDA have versions of two numbers, and `=12.4` is one.
    """
    for number, line in enumerate(_lines(text), 1):
        match = _CONDA_PIN.match(line)
        if match is None or (name := _name(match[1])) not in _WANTED:
            continue
        if match[2] == "==" or match[3].count(".") >= (1 if name in ("pytorch-cuda", "cuda-version") else 2):
            yield name, match[3], number, ""


def settings_from(environment: Environment, runtime: Runtime) -> tuple[dict[str, Version], dict[str, str]]:
    """(settings, where each is from) of what the runtime leaves open; a lock never says which framework runs."""
    settings: dict[str, Version] = {}
    origins: dict[str, str] = {}

    def take(setting: str, version: str, origin: str) -> None:
        if getattr(runtime, setting) is None and setting not in settings:
            settings[setting], origins[setting] = Version(version), origin

    framework = framework_of(runtime)
    pin = _first(environment, _FRAMEWORKS.get(framework or "", ()))
    if pin is not None:
        take("tensorrt" if framework == "tensorrt" else "framework_version", pin.version, pin.origin)
    is_stated = runtime.framework_version is not None
    # What conda calls pytorch is another build, with a cuDNN of its own.
    is_torch = framework == "pytorch" and pin is not None and not is_stated and pin is environment.pins.get("torch")
    local = pin.version.partition("+")[2] if pin is not None else ""
    if pin is not None and not is_stated and (local == "cpu" or local.startswith(("rocm", "xpu"))):
        return settings, origins  # neither CUDA nor cuDNN
    for setting, packages in (("cudnn", _CUDNN), ("cuda", _CUDA)):
        own = _first(environment, packages)
        if own is not None:
            take(setting, own.version, own.origin)
    if is_torch and pin is not None:
        cuda, cudnn = _of_wheels(pin.version)
        for setting, version in (("cuda", cuda), ("cudnn", cudnn)):
            if version:
                take(setting, version, f"what torch {pin.version} needs, {pin.origin}")
    return settings, origins


def wheel_in(environment: Environment, runtime: Runtime) -> str | None:
    """The CUDA of PyTorch's wheel on PyPI, where that is what the environment has and the runtime runs."""
    pin = environment.pins.get("torch")
    if pin is None or framework_of(runtime) != "pytorch" or str(runtime.framework_version) != pin.version:
        return None
    return _of_wheels(pin.version)[0] or None


def _first(environment: Environment, packages: Iterable[str]) -> Pin | None:
    return next((environment.pins[name] for name in packages if name in environment.pins), None)


def _of_wheels(version: str) -> tuple[str, str]:
    """CUDA and cuDNN of a wheel of PyTorch's; empty where that is not known."""
    known, built = _wheels(Version(version)), wheel_cuda(Version(version))
    if built is not None:
        return built, known.get(built, "")
    return ("", "") if "+" in version else next(iter(known.items()), ("", ""))


def _wheels(version: Version) -> Mapping[str, str]:
    """What cuDNN the wheels of a release bring, by CUDA."""
    return _OF_TORCH.get(".".join(map(str, (*version.numbers, 0, 0)[:2])), {})
