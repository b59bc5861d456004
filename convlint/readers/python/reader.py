"""Read Python source files together: the convolutions they construct, and the programs that train. No code is run.

Source states no input sizes, so that it is no network by itself: only `check` can use it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from convlint.files.repository import is_quiet, root_of
from convlint.model.errors import InputFault
from convlint.model.location import Location
from convlint.model.report import InputError
from convlint.model.source import SourceLayer, SourceReading, TrainingProgram, Unread, UnreadCell, UnreadFile
from convlint.readers import INSTEAD_OF_SOURCE, Reader, ReadOptions
from convlint.readers.python.notebook import SUFFIX, Notebook, notebook, read_notebook
from convlint.readers.python.project import Project, unread_for

if TYPE_CHECKING:
    from convlint.model.network import Network
    from convlint.readers.python.evaluator.paths import Side
    from convlint.readers.python.nn.merging import Start

_MARKER = b"convlint:"  # comments that silence rules are said to be unused also where nothing is found
_NO_NETWORK = f"Python source states no sizes (N, H, W), so that `convlint check` alone reads it: {INSTEAD_OF_SOURCE}"


def read_source(
    given: Sequence[str],
    *,
    entries: Sequence[str] = (),
    input_shape: tuple[int, ...] | None = None,
    contents: Mapping[str, bytes] | None = None,
    root: str | None = None,
    part: Sequence[str] | None = None,
) -> SourceReading:
    """Read the files `given`, with all that they import from the repository at `root`.

    `entries` are scripts that train; `contents` replace files on disk. With a `part`, only constructions and programs
    in those files are read, while positions in all of `given` are reported. Never raises for what is in a file.
    """
    paths = given if part is None else part
    return _with_room(lambda: _read(given, entries, input_shape, contents or {}, root, paths))


def _with_room(run: Callable[[], SourceReading]) -> SourceReading:
    """Call `run` on a frame that reserves room for the frames of all calls below it.

    CPython keeps frames in chunks of 16 KiB, and maps and unmaps memory whenever a call crosses the end of one, which
    took a fifth of the time of code as deep as this. A frame that needs more than a chunk gets one of its own, rounded
    up to a power of two, whose remainder later frames use (Python/pystate.c, push_chunk).
    """
    return run()


_with_room.__code__ = _with_room.__code__.replace(co_stacksize=2**15)  # words: 256 KiB, and as much is left


def _read(
    given: Sequence[str], entries: Sequence[str], input_shape: tuple[int, ...] | None, contents: Mapping[str, bytes],
    root: str | None, paths: Sequence[str],
) -> SourceReading:  # fmt: skip
    from convlint.readers.python.imports import ProjectImports
    from convlint.readers.python.nn.bias_uses import first_uses
    from convlint.readers.python.nn.reading import read_layers
    from convlint.readers.python.programs.reading import read_programs

    notebooks, unread = _notebooks(given, contents)
    code = {**contents, **{path: source.code for path, source in notebooks.items()}}
    project = Project(
        root if root is not None else root_of(given[0] if given else "."),
        [path for path in given if path not in unread],
        code,
    )
    own = [path for path in paths if path not in unread and project.file(path) is not None]
    imports = ProjectImports(project)
    read = read_layers(imports, own, input_shape=input_shape)
    programs = read_programs(imports, own, tuple(entries))
    pointed = dict.fromkeys(
        (*_pointed(read.layers, programs), *(path for path in own if _MARKER in (project.content(path) or b"")))
    )
    faults = {**unread, **{path: _in_file(fault, notebooks.get(path)) for path, fault in project.unread.items()}}
    ours = {path: source for path, source in notebooks.items() if path in own}
    files = {path: file for path in pointed if (file := project.file(path)) is not None}
    return replace(
        read,
        files=tuple(own),
        programs=programs,
        unread_files={path: faults[path] for path in paths if path in faults},
        unread_cells=tuple(cell for path, source in ours.items() for cell in _unread_cells(path, source)),
        lines={path: tuple(file.text.split("\n")) for path, file in files.items()},
        cells={
            path: tuple((place.cell, place.line, place.file_line) for place in source.places)
            for path, source in ours.items()
        },
        whole=not project.unread
        and not any(source.broken for source in notebooks.values())
        and all(path in project.given or is_quiet(path) for path in project.paths),
        # The search is worth it only if a convolution has a needless bias.
        bias_uses=(*read.bias_uses, *first_uses(imports))
        if any(layer.layer.bias and (layer.layer.norm_follows or layer.silent) for layer in read.layers)
        else read.bias_uses,
    )


def joined(parts: Sequence[SourceReading]) -> SourceReading:
    """Join the readings that several processes made of parts of the files, whichever of them read a file.

    A construction that one process could not read may have been read by another, so that places are counted again; if
    none could, the reason that tells most is given.
    """
    from convlint.readers.python.evaluator.paths import Untaken
    from convlint.readers.python.nn.merging import known_places, merged_again, start, tells

    # A branch that one process left out may have been taken by a root of another.
    left: frozenset[Side] = frozenset().union(*(part.left for part in parts))
    refused: frozenset[Side] = frozenset().union(*(part.refused for part in parts))
    taken: frozenset[Side] = frozenset().union(*(part.taken for part in parts))
    untaken = Untaken(left, taken)
    layers = tuple(merged_again(layer for part in parts for layer in part.layers))
    files = tuple(sorted(path for part in parts for path in part.files))
    own = {path for path in files if not is_quiet(path)}
    overridden = frozenset[Location]().union(*(part.overridden for part in parts))
    kept = frozenset[Location]().union(*(part.kept for part in parts))
    # A default is no width of any network if every caller passes another value, even an unknown one.
    known = known_places(layer for layer in layers if layer.layer.path in own and not layer.rests_on(overridden - kept))
    unread: dict[Start, Unread] = {}
    places = (place for part in parts for place in (*part.unread, *part.by_defaults))
    for place in sorted(places, key=lambda place: tells(place.otherwise)):
        if (at := start(place.at)) not in known:
            why = "untaken" if untaken.holds(place.at.path, place.at.line or 0) else place.otherwise
            unread[at] = replace(place, why=why)
    return SourceReading(
        files=files,
        layers=layers,
        programs=tuple(sorted((program for part in parts for program in part.programs), key=attrgetter("path"))),
        constructions=len(known) + len(unread),
        known=len(known),
        unread=tuple(place for _, place in sorted(unread.items(), key=itemgetter(0))),
        left=left,
        refused=refused,
        taken=taken,
        overridden=overridden,
        kept=kept,
        unread_files=dict(sorted(fault for part in parts for fault in part.unread_files.items())),
        unread_cells=tuple(sorted((cell for part in parts for cell in part.unread_cells), key=attrgetter("at.path"))),
        lines={path: lines for part in parts for path, lines in part.lines.items()},
        cells={path: cells for part in parts for path, cells in part.cells.items()},
        whole=all(part.whole for part in parts),
        bias_uses=tuple(dict.fromkeys(use for part in parts for use in part.bias_uses)),
        loaded={at: by for part in parts for at, by in part.loaded.items()},
    )


def _notebooks(
    given: Iterable[str], contents: Mapping[str, bytes]
) -> tuple[dict[str, Notebook], dict[str, UnreadFile]]:
    """Return the notebooks by path, and the reasons for those that cannot be read."""
    notebooks: dict[str, Notebook] = {}
    unread: dict[str, UnreadFile] = {}
    for path in given:
        if path.lower().endswith(SUFFIX):
            try:
                notebooks[path] = notebook(contents[path]) if path in contents else read_notebook(path)
            except InputFault as fault:
                unread[path] = unread_for(fault)
    return notebooks, unread


def _unread_cells(path: str, code: Notebook) -> Iterator[UnreadCell]:
    for broken in code.broken:
        cell = broken.at.cell, broken.at.line, broken.column
        yield UnreadCell(at=Location(path=path, line=broken.at.file_line, cell=cell), why=broken.why)


def _in_file(fault: UnreadFile, code: Notebook | None) -> UnreadFile:
    """Convert the line of a fault in a notebook's code to the line in its file."""
    if code is None or fault.line is None:
        return fault
    at = code.places[min(fault.line, len(code.places)) - 1].file_line if code.places else None
    return UnreadFile(why=fault.why, line=at)


def _pointed(layers: Iterable[SourceLayer], programs: Iterable[TrainingProgram]) -> Iterator[str]:
    """Yield the files that layers or programs point into."""
    for layer in layers:
        yield layer.layer.path
        yield from (literal.at.path for literals in layer.stated.values() for literal in literals)
    for program in programs:
        yield program.path
        settings = (*program.settings, *program.autotune_disabled, *(program.conflict or ()))
        yield from (setting.at.path for setting in settings)
        evidence = (at for _, at in program.evidence)
        yield from (at.path for at in (*evidence, *program.backward_in_autocast, *program.autocast_around_loss))


def read(path: str, options: ReadOptions) -> tuple[Network | None, tuple[InputError, ...]]:  # noqa: ARG001
    """Return an error that says what to do instead; the file is not opened."""
    return None, (InputError(path=path, message=_NO_NETWORK),)


READER = Reader(read=read)
