"""A progress bar on standard error, for runs that take longer than a second; Rich is loaded only then."""

from __future__ import annotations

from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

from convlint.cli.streams.gate import bare

if TYPE_CHECKING:
    import threading

DELAY_S = 1.0


class Progress:
    """Shows nothing where nobody watches: not a terminal, --quiet, or a run that is soon over."""

    def __init__(self, stream: TextIO, *, quiet: bool, doing: str = "checking") -> None:
        self._stream, self._doing = stream, doing
        self._watched = not quiet and stream.isatty()
        self._timer: threading.Timer | None = None
        self._lock: Any = None  # made where there is a second thread
        self._bar: Any = None
        self._task: Any = None
        self._total: int | None = 0
        self._finished = 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is None:
            return
        self._timer.cancel()
        with self._lock:
            self._watched = False
            if self._bar is not None:
                with suppress(OSError):  # the terminal is gone
                    self._bar.stop()

    def start(self, total: int | None) -> None:
        """From now on `total` inputs are checked; None where nobody knows how many there are."""
        self._total = total
        if self._watched:
            import threading

            self._lock = threading.Lock()
            self._timer = threading.Timer(DELAY_S, self._show)
            self._timer.daemon = True
            self._timer.start()

    def done(self, path: str) -> None:
        """The input at `path` is checked."""
        self._finished += 1
        if self._lock is None:
            return
        with self._lock:
            if self._bar is not None:
                from convlint.files.safe import clean_path

                self._bar.update(self._task, completed=self._finished, path=clean_path(path))

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as Bar

        with self._lock:
            if not self._watched:
                return
            columns = (
                TextColumn(self._doing),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[path]}", markup=False),
            )
            console = Console(
                file=bare(self._stream)
            )  # it moves the cursor; the one text in it that comes from outside is cleaned
            # Whatever else is printed goes through the gate, not through Rich.
            self._bar = Bar(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False)
            self._task = self._bar.add_task("", total=self._total, completed=self._finished, path="")
            self._bar.start()
