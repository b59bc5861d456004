"""An input read by one of the readers, which has to be sound, or to have one error."""

from pathlib import Path
from typing import Any

from convlint.model.network import Network
from convlint.readers import ReadFunction, ReadOptions


def sound(read: ReadFunction, path: str | Path, **options: Any) -> Network:
    """The network in `path`, which has no error."""
    network, errors = read(str(path), ReadOptions(**options))
    assert errors == ()
    assert network is not None
    return network


def only_message(read: ReadFunction, path: str | Path, **options: Any) -> str:
    """The message of the only error in `path`, whether a network is read beside it or not."""
    _, errors = read(str(path), ReadOptions(**options))
    assert len(errors) == 1, errors
    assert errors[0].path == str(path)
    return errors[0].message


def refusal(read: ReadFunction, path: str | Path, **options: Any) -> str:
    """The message of the only error in `path`, beside which no network is read."""
    assert read(str(path), ReadOptions(**options))[0] is None
    return only_message(read, path, **options)
