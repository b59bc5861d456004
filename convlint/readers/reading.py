"""From an input to its network: chooses the reader, and runs it in this process or in a child process.

Text is read in this process. Parsers written in C and the user's modules run in children, because they may crash.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn

from msgspec.structs import replace

from convlint.files.patterns import pattern
from convlint.files.safe import clean
from convlint.model.errors import InputFault, shown
from convlint.model.report import InputError
from convlint.readers import (
    INSTEAD_OF_SOURCE,
    MODULE,
    PYTHON,
    SPEC,
    TRACE,
    Format,
    Outcome,
    ReadOptions,
    find_format,
    known_suffixes,
)
from convlint.readers.bounded_json import refuse_layers, refuse_sizes
from convlint.readers.inputs import Input, Model, of_model

if TYPE_CHECKING:
    from convlint.readers.children.child import Child, ChildDied

# A module that is named as a file (net/unet.py:UNet()) or by dots alone (net.unet.UNet)
_REFERENCE = pattern(
    r"(?P<path>\w+(?:/\w+)*)\.py:(?P<name>\w+.*)|(?P<module>[a-z_]\w*(?:\.[a-z_]\w*)*)\.(?P<class>[A-Z]\w*[a-z]\w*)"
)
_TORCH_S = 300.0  # for importing torch, on however busy a machine
_FOLDER = f"is a folder, and Python source in it would state no sizes (N, H, W): {INSTEAD_OF_SOURCE}"


class Reading:
    """Reads the inputs of one run.

    A child is started for the first input that needs it, serves all further ones, and is replaced when it dies.
    """

    def __init__(self, *, on_output: Callable[[str], None] | None = None) -> None:
        """`on_output` gets what the code of modules prints."""
        self._on_output = on_output
        self._children: dict[Format, Child] = {}
        self._torch_is_loaded = False  # in the child for modules, so that its time can be counted from there

    def __enter__(self) -> Reading:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for known in list(self._children):
            self._end(known)

    def expect(self, sources: Iterable[Input]) -> None:
        """Starts the children that these inputs need, so that they import their libraries in the meantime."""
        formats = dict.fromkeys(known for known in map(format_of_input, sources) if known and known.runs != "here")
        if formats:
            from convlint.readers.children.child import ChildDied  # specs need no child

            for known in formats:
                with suppress(ChildDied):  # reported for the input that needs it
                    self._child(known)

    def read(self, source: Input, options: ReadOptions) -> Outcome:
        """The network in `source`, or None, and everything that could not be read or resolved."""
        network, errors = self._read(source, options)
        if network is None:
            return None, errors
        known = format_of_input(source)
        if known is not SPEC:
            network = (
                network if known is TRACE else of_model(network, options, "module" if known is MODULE else "storage")
            )
        # Checked here too, whatever readers check: the answer of a child is trusted no more than a file.
        try:
            refuse_layers(len(network.layers))
            refuse_sizes(network.layers)
        except InputFault as fault:
            return None, (InputError(path=source.name, message=fault.message),)
        return network, errors

    def _read(self, source: Input, options: ReadOptions) -> Outcome:
        if source.copy:
            return _of_copy(self._read(replace(source, name=source.copy, copy=""), options), source)
        known = format_of_input(source)
        if source.kind == "file" and known in (None, SPEC) and os.path.isdir(source.name):
            return None, (InputError(path=source.name, message=_FOLDER),)
        if known is None:
            tail = source.name.rsplit("/", 1)[-1]
            suffixes = ", ".join(known_suffixes(refused=False))
            meant = _meant(source.name) or f"; known are {suffixes} and package.module:name"
            message = f"no reader knows {shown(tail)}{meant}"
            return None, (InputError(path=source.name, message=message),)
        if known.runs == "here":
            return _watched(known, source, options)
        from convlint.readers.children.child import ChildDied
        from convlint.readers.children.wire import WireError, decode, encode_request

        if source.model is not None:
            options = _of_model(source.model, options)
        request = encode_request(known.module, source.name, options)
        module = known.runs == "modules"
        try:
            return decode(self._ask(known, request, options))
        except ChildDied as died:
            message = _death_of_module(died, options) if module else _death_of_parser(died)
        except WireError:
            message = "the process that read it gave no sensible answer"
        self._end(known)
        return None, (InputError(path=source.name, message=message),)

    def _ask(self, known: Format, request: bytes, options: ReadOptions) -> bytes:
        child = self._child(known)
        if known.runs == "parser":
            from convlint.readers.children.parser import WALL_S

            return child.ask(request, WALL_S)
        from convlint.readers.children.modules import FORKS

        if not self._torch_is_loaded:
            child.answer(_TORCH_S)
            self._torch_is_loaded = True
        answer = child.ask(request, options.module_timeout_s)
        if not FORKS:  # such a child reads one model only
            self._end(known)
        return answer

    def _child(self, known: Format) -> Child:
        from convlint.readers.children.child import Child

        if known not in self._children:
            modules = known.runs == "modules"
            self._children[known] = Child(
                f"convlint.readers.children.{known.runs}:work",
                on_output=self._on_output if modules else None,  # what a parser prints is not for the user
                watched=not modules,  # modules fork, which threads do not survive
            )
        return self._children[known]

    def _end(self, known: Format) -> None:
        child = self._children.pop(known, None)
        if child is not None:
            child.close()
        if known.runs == "modules":
            self._torch_is_loaded = False


def _meant(name: str) -> str:
    """The hint "did you mean" for a module that is named as a file or by dots alone; empty for other names."""
    match = _REFERENCE.fullmatch(name)
    if match is None:
        return ""
    module, what = (match["path"] or match["module"]).replace("/", "."), match["name"] or match["class"]
    return f"; did you mean {clean(f'{module}:{what}')}?"


def _of_model(model: Model, options: ReadOptions) -> ReadOptions:
    """The options for a model that the config names; those of the command line come first."""
    return replace(
        options,
        inputs=options.inputs or model.inputs,
        reference=model.reference,
        channels_last=options.channels_last or model.channels_last,
        autocast=model.autocast,
        roots=(model.folder, os.path.join(model.folder, "src")),
    )


def _of_copy(outcome: Outcome, source: Input) -> Outcome:
    """The outcome of reading a copy of a file, with the path of the file itself."""
    network, errors = outcome
    if network is not None:
        layers = [replace(layer, path=source.name) if layer.path == network.path else layer for layer in network.layers]
        network = replace(network, path=source.name, layers=tuple(layers))
    return network, tuple(replace(item, path=source.name if item.path == source.copy else item.path) for item in errors)


def format_of_input(source: Input) -> Format | None:
    """The format of `source`; None where no reader knows it."""
    if source.kind == "source":
        return PYTHON
    if source.kind != "file":
        return SPEC if source.kind == "stdin" else MODULE
    tail = source.name.rsplit("/", 1)[-1]
    if tail.lower().endswith(".json") and source.text is None:
        from convlint.readers.trace.events import is_trace

        if is_trace(source.name):
            return TRACE
    return find_format(source.name) or (None if "." in tail.lstrip(".") else SPEC)  # such as a spec without a suffix


def _watched(known: Format, source: Input, options: ReadOptions) -> Outcome:
    """Reads in this process, for `known.cpu_s` seconds at most, as a reader may loop over its input for long."""
    reader = known.reader()
    try:
        with time_bound(known.cpu_s):
            if source.text is not None and reader.read_text is not None:
                shown_name = "<stdin>" if source.kind == "stdin" else source.name
                return reader.read_text(source.text, shown_name, options)
            return reader.read(source.name, options)
    except OutOfTime:
        message = f"reading it takes more than {known.cpu_s:g} s of processor time; no network that can be judged does"
        return None, (InputError(path=source.name, message=message),)


class OutOfTime(BaseException):
    """The processor time is used up; a BaseException, so that no reader takes it for a fault in its input."""


@contextmanager
def time_bound(seconds: float) -> Iterator[None]:
    """Raises OutOfTime in the block after that much processor time, in the main thread and on platforms with timers."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(_signal: int, _frame: object) -> NoReturn:
        raise OutOfTime

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _death_of_parser(died: ChildDied) -> str:
    from convlint.readers.children import parser

    if died.unstarted:
        return f"the process that reads it could not be started: {died.tail}"
    if died.timed_out:
        return f"not read within {parser.WALL_S:g} s"
    if died.signal_name == "SIGPROF":
        return (
            f"reading it takes more than {parser.CPU_S:g} s of processor time; no network that convlint can judge does"
        )
    if "bad_alloc" in died.tail or died.signal_name == "SIGKILL":
        return parser.TOO_MUCH_MEMORY
    how = died.signal_name or f"exit status {died.status}"
    return f"not a sound model: the parser of its format crashes on it ({how})"


def _death_of_module(died: ChildDied, options: ReadOptions) -> str:
    if died.unstarted:
        return f"the process that runs it could not be started: {died.tail}"
    if died.timed_out:
        return (
            f"building and tracing it takes more than {options.module_timeout_s:g} s; --module-timeout SECONDS allows "
            "more"
        )
    return f"its code ends the process ({died.signal_name or f'exit status {died.status}'})"
