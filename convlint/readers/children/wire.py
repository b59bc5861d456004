"""Networks and errors as JSON between processes; what a child process sends is checked field by field, like a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from math import isfinite
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT, Struct
from msgspec.structs import fields

from convlint.model.errors import defect
from convlint.model.layer import Dtype
from convlint.model.network import Network
from convlint.model.report import InputError
from convlint.model.runtime import Version
from convlint.readers import ReadOptions

Outcome = tuple[Network | None, tuple[InputError, ...]]
_T = TypeVar("_T", bound=Struct)
_READERS: dict[type[Struct], Mapping[str, Callable[[Any], Any]]] = {}  # by type, filled when one is first decoded


class WireError(ValueError):
    """The answer of a child process is no outcome of reading."""


def encode(outcome: Outcome) -> bytes:
    """The outcome of reading one input, as UTF-8 JSON."""
    network, errors = outcome
    return json.dumps({"network": _plain(network), "errors": _plain(errors)}).encode()


def encode_defect(path: str, error: BaseException) -> bytes:
    """The outcome where reading raised an unexpected error: a defect of convlint (exit code 4)."""
    return encode((None, (InputError(path=path, message=defect(error)[:500], internal=True),)))


def decode(content: bytes) -> Outcome:
    """The outcome that `content` holds. Raises WireError."""
    try:
        document = json.loads(content)
        network = None if document["network"] is None else _sound(_built(Network, document["network"]))
        return network, tuple(_built(InputError, error) for error in document["errors"])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise WireError(f"not an outcome: {error}") from None


def _sound(network: Network) -> Network:
    """The network itself. Raises WireError where an index in it leads nowhere, or an operation reads a later one."""
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
    return network


def _plain(value: Any) -> Any:
    """The value in JSON's own types, without the fields that hold their default."""
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int):
        return int(value)  # a subclass, such as IntEnum, becomes a plain number
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Version):
        return value.text
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Struct):
        return {
            name: _plain(item)
            for name, default in _defaults(type(value)).items()
            # The identity first: it is cheap, and most fields hold the default itself.
            if (item := getattr(value, name)) is not default and item != default
        }
    raise TypeError(f"a {type(value).__name__} does not travel")


@cache  # a network has thousands of records of a few types
def _defaults(kind: type[Struct]) -> Mapping[str, Any]:
    return {
        field.name: field.default if field.default_factory is NODEFAULT else field.default_factory()
        for field in fields(kind)
    }


def _built(kind: type[_T], values: Any) -> _T:
    if not isinstance(values, dict):
        raise WireError(f"{kind.__name__} is no object")
    readers = _READERS.get(kind)
    if readers is None:
        hints = get_type_hints(kind)
        readers = _READERS[kind] = {name: _reader(hints[name]) for name in kind.__struct_fields__}
    return kind(**{name: readers[name](value) for name, value in values.items()})


def _reader(hint: Any) -> Callable[[Any], Any]:
    """A function that turns JSON into a value of type `hint`, and raises WireError for JSON of any other type."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType) and len(parts) == 2 and NoneType in parts:
        inner = _reader(next(part for part in parts if part is not NoneType))
        return lambda value: None if value is None else inner(value)
    # The type decides, so that a child cannot send a dict where a later step expects a tuple.
    if origin is Literal:
        return lambda value: value if value in parts else _refuse(value, hint)
    if origin is tuple and len(parts) == 2 and parts[1] is Ellipsis:
        every = _reader(parts[0])
        return lambda value: tuple([every(item) for item in _typed(value, list)])
    if origin is tuple:
        inner_readers = [_reader(part) for part in parts]
        return lambda value: tuple([read(item) for read, item in zip(inner_readers, _typed(value, list), strict=True)])
    if origin is Mapping:
        inside = _reader(parts[1])
        return lambda value: {key: inside(item) for key, item in _typed(value, dict).items()}
    if hint in (Dtype, Version):
        return lambda value: hint(_typed(value, str))
    if isinstance(hint, type) and issubclass(hint, Struct):
        return lambda value: _built(hint, value)
    if hint is float:
        return lambda value: value if type(value) is float and isfinite(value) else _refuse(value, hint)
    if hint in (int, str, bool):
        return lambda value: _typed(value, hint)
    raise TypeError(f"no way to read {hint}")


def _typed(value: Any, kind: type) -> Any:
    return value if type(value) is kind else _refuse(value, kind)


def _refuse(value: Any, hint: Any) -> Any:
    raise WireError(f"{str(value)[:40]!r} is no {hint}")


# The options that a child gets. The time limit is not among them, because the parent enforces it.
_SENT = ("batch", "inputs", "reference", "channels_last", "autocast", "roots", "trains", "sources", "again")


def encode_request(reader: str, name: str, options: ReadOptions) -> bytes:
    """A request for a child: the reader's module, the name of the input, and the options."""
    return json.dumps([reader, name, {field: _plain(getattr(options, field)) for field in _SENT}]).encode()


def decode_request(content: bytes) -> tuple[str, str, ReadOptions]:
    """The reader's module, the name of the input, and the options, from `encode_request`."""
    reader, name, values = json.loads(content)
    return reader, name, ReadOptions(**{**values, "roots": tuple(values["roots"])})
