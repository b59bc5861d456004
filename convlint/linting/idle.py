"""What the command line asks of inputs and none can do: an error, since whoever asked counts on it."""

from __future__ import annotations

from collections.abc import Iterable

from convlint.errors import InputFault, UsageError, shown
from convlint.linting.models import refuse_wrong_references
from convlint.readers import MODULE, MODULE_TIMEOUT_S, ReadOptions
from convlint.readers.input_shapes import looks_like_shapes, parse_shapes, refuse_lists, words_of
from convlint.readers.inputs import Input
from convlint.readers.reading import format_of_input


def refuse_idle(options: ReadOptions, inputs: Iterable[Input]) -> None:
    """Raises UsageError for an option of reading, or a part of one, that none of the `inputs` takes.

    So it does for a module that is not called with literals, and for an `--input` that is no shape.
    """
    inputs = list(inputs)
    refuse_wrong_references(inputs)
    formats = {known for source in inputs if (known := format_of_input(source)) is not None}
    if not formats:
        return
    modules = MODULE in formats
    if options.inputs and not any(known.takes_inputs for known in formats):
        raise UsageError("--input: none of the inputs takes a shape; specs have theirs, and weights alone have none")
    if not modules:
        for text in options.inputs.values():
            for part in words_of(text):
                raise UsageError(
                    f"--input: {shown(part)!r} is for modules alone; --dtype and --layout say how a file runs"
                )
        if options.module_timeout_s != MODULE_TIMEOUT_S:
            raise UsageError("--module-timeout: none of the inputs is a module")
        if options.trains is not None:
            raise UsageError("--trace: none of the inputs is a module")
        if options.channels_last:
            raise UsageError("--channels-last: none of the inputs is a module; --layout says how a file runs")
    for text in options.inputs.values():
        try:
            refuse_lists(text)
            if looks_like_shapes(text):
                parse_shapes(text, options.batch)
        except InputFault as fault:
            raise UsageError(f"--input: {fault.message.removeprefix('input ')}") from None
