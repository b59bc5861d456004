"""`convlint export`: writes a model as a spec, to edit and to check again."""

from __future__ import annotations

import sys

from convlint.cli.streams.gate import write
from convlint.cli.streams.outputs import FileUse, inputs, refuse_clashes, replace_file
from convlint.files.safe import clean, clean_path
from convlint.mend.checking import Job, last_resort, read_input, say
from convlint.model.report import InputError
from convlint.readers import ReadOptions
from convlint.readers.inputs import Input
from convlint.readers.reading import Reading
from convlint.readers.spec.writing import spec_text
from convlint.reporters.words import place
from convlint.run.plan import refuse_idle
from convlint.verdict.select import incomplete


def run(source: Input, options: ReadOptions, file: str | None) -> int:
    """Writes the spec to `file` or standard output and returns the exit code. Raises UsageError for a bad `file`."""
    refuse_idle(options, [source])
    refuse_clashes([FileUse(role="the spec", path=file)] if file is not None else [], inputs([source]))
    errors: list[InputError] = []
    network = None
    with last_resort(errors, source.name), Reading(on_output=say) as reading:
        network, read_errors = read_input(source, Job(reading=options), reading)
        errors += read_errors
    for error in errors:
        write(sys.stderr, f"{place(error.path, error.line, error.column)}: error: {clean(error.message)}")
    if network is not None and network.layers:
        text = spec_text(network)
        if file is None:
            write(sys.stdout, text)
        else:
            replace_file(file, text)
    elif not errors:
        write(sys.stderr, f"{clean_path(source.name)}: error: nothing to export: no convolution in it")
        return 3
    return incomplete(errors)
