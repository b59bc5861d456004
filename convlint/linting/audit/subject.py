"""One model of an audit: what is read, under which name, and how it runs where its list says so."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from convlint.linting.one_input import Job
from convlint.linting.running import Running
from convlint.model.layer import Mode
from convlint.readers.inputs import Input

NOTHING_SAID = Running()


class Subject(Struct, frozen=True, kw_only=True):
    """A model under a name that no other of the audit has; what is left open is the config's and the file's to say."""

    name: str
    source: Input
    architecture: str = ""  # what the list calls it; models of one architecture are ranked together
    gpus: tuple[str, ...] = ()
    mode: Mode | None = None
    batch: int | None = None
    inputs: Mapping[str, str] = {}
    running: Running = NOTHING_SAID

    def job(self, usual: Job) -> Job:
        """How it is checked: as the command line asks, then as its list says, then as the config does."""
        reading = usual.reading
        asked, own = usual.asked, self.running
        return replace(
            usual,
            gpus=usual.gpus or self.gpus,
            mode=usual.mode or self.mode,
            reading=replace(
                reading,
                batch=self.batch if reading.batch is None else reading.batch,
                inputs=reading.inputs or self.inputs,
            ),
            asked=replace(
                asked,
                settings={**own.settings, **asked.settings},
                dtype=asked.dtype or own.dtype,
                layout=asked.layout or own.layout,
            ),
            fixing=None,
        )
