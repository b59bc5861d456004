"""Networks and errors as JSON between processes; what a child process sends is checked field by field, like a file."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

from msgspec import Struct, ValidationError, convert, to_builtins

from convlint.model.errors import defect
from convlint.model.network import Network
from convlint.model.report import InputError
from convlint.model.runtime import Version
from convlint.readers import Outcome, ReadOptions


class WireError(ValueError):
    """The answer of a child process is not a valid outcome."""


class _Answer(Struct, forbid_unknown_fields=True):
    """An outcome in the form in which it is encoded."""

    network: Network | None
    errors: tuple[InputError, ...]


def encode(outcome: Outcome) -> bytes:
    """The outcome of reading one input, as UTF-8 JSON."""
    # Not by msgspec alone, which writes no lone surrogates: a path may have some.
    return json.dumps(to_builtins(_Answer(*outcome), enc_hook=_plain)).encode()


def _plain(value: Any) -> Any:
    """A value that JSON has: a version as text, an instance of a subclass of int, float or str as that type."""
    if isinstance(value, Version):
        return value.text
    for kind in (int, float, str):
        if isinstance(value, kind):
            return kind(value)
    raise TypeError(f"a {type(value).__name__} does not travel")


def encode_defect(path: str, error: BaseException) -> bytes:
    """The outcome where reading raised an unexpected error: a defect of convlint (exit code 4)."""
    return encode((None, (InputError(path=path, message=defect(error)[:500], internal=True),)))


def decode(content: bytes) -> Outcome:
    """The outcome that `content` holds. Raises WireError."""
    try:
        document = json.loads(content, parse_float=_finite, parse_constant=_finite)
        answer = convert(document, _Answer, dec_hook=lambda kind, value: kind(value))
    except (ValueError, TypeError, AttributeError, RecursionError, ValidationError) as error:
        raise WireError(f"not an outcome: {error}") from None
    if answer.network is not None:
        _check(answer.network)
    return answer.network, answer.errors


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"{text} is no number")
    return number


def _check(network: Network) -> None:
    """Raises WireError where an index in the network leads nowhere, or an operation reads a later one."""
    for edge in network.edges:
        if not all(0 <= index < len(network.layers) for index in (edge.consumer, *edge.producers)):
            raise WireError("an edge leads to no layer")
    for number, operation in enumerate(network.operations):
        if not all(0 <= index < number for index in operation.inputs):
            raise WireError("an operation reads what comes after it")
        if (operation.kind == "conv") != (operation.layer is not None):
            raise WireError("a convolution is no layer, or another operation is one")
        for layer in (operation.layer, operation.weights):
            if layer is not None and not 0 <= layer < len(network.layers):
                raise WireError("an operation is no layer")


# The options that a child gets. The time limit is not among them, because the parent enforces it.
_SENT = ("batch", "inputs", "reference", "channels_last", "autocast", "roots", "trains", "sources", "again")


def encode_request(reader: str, name: str, options: ReadOptions) -> bytes:
    """A request for a child: the reader's module, the name of the input, and the options."""
    return json.dumps([reader, name, {field: getattr(options, field) for field in _SENT}]).encode()


def decode_request(content: bytes) -> tuple[str, str, ReadOptions]:
    """The reader's module, the name of the input, and the options, from `encode_request`."""
    reader, name, values = json.loads(content)
    return reader, name, convert(values, ReadOptions)
