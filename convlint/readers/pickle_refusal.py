"""Pickled checkpoints are refused: unpickling runs whatever code the file holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from convlint.readers import Reader, ReadOptions
from convlint.report import InputError

if TYPE_CHECKING:
    from convlint.model.network import Network


def read(path: str, options: ReadOptions) -> tuple[Network | None, tuple[InputError, ...]]:  # noqa: ARG001
    """Always an error, which says what to use instead; the file is not opened."""
    message = (
        "a pickled checkpoint is not read, because unpickling runs the code inside it; "
        "use safetensors, ONNX or a torch.export program (.pt2), or check the module itself as package.module:name"
    )
    return None, (InputError(path=path, message=message),)


READER = Reader(read=read)
