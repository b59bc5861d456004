"""What is known of Python's own functions and of its library, by full name."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from convlint.readers.python.evaluator.library import Call
from convlint.readers.python.evaluator.standard_functions import LIBRARY
from convlint.readers.python.evaluator.standard_iterators import ITERATORS
from convlint.readers.python.evaluator.standard_numbers import NUMBERS
from convlint.readers.python.evaluator.standard_objects import OBJECTS
from convlint.readers.python.evaluator.standard_patterns import PATTERNS
from convlint.readers.python.evaluator.standard_sequences import SEQUENCES
from convlint.readers.python.evaluator.values import Items, Table, Unknown, Value

if TYPE_CHECKING:
    from convlint.readers.python.evaluator.machine import Machine

BUILTINS = frozenset(dir(builtins)) | {"reveal_type"}
FUNCTIONS: Mapping[str, Callable[[Machine, Call], Value | None]] = {
    **NUMBERS,
    **SEQUENCES,
    **OBJECTS,
    **LIBRARY,
    **PATTERNS,
    **ITERATORS,
}
_CONFIGS = (
    "json.load", "yaml.", "omegaconf.", "hydra.", "argparse.", "absl.flags", "toml", "configparser.", "os.environ",
    "os.getenv", "click.", "mmengine.Config", "mmcv.Config", "yacs.", "ml_collections.",
)  # fmt: skip


def is_config(name: str) -> bool:
    """Whether what a function of that name gives comes from a file, the command line or the environment."""
    return name.startswith(_CONFIGS)


def why_of(args: list[Value], keywords: Mapping[str, Value]) -> str:
    """Why the result of a known function on these is unknown."""
    for value in (*args, *keywords.values()):
        if isinstance(value, Unknown):
            return value.why
        if isinstance(value, (Items, Table)) and not value.complete:
            return value.why
    return "call"
