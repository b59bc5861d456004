"""Equality of records that leaves a field out, such as where the record was written down."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TypeVar

from msgspec import Struct

_T = TypeVar("_T", bound=Struct)


def equal_without(*names: str) -> Callable[[type[_T]], type[_T]]:
    """Makes `==` and hash() of a record leave out its fields `names`."""

    def decorated(kind: type[_T]) -> type[_T]:
        kept = attrgetter(*(name for name in kind.__struct_fields__ if name not in names))
        namespace = {
            "__eq__": lambda self, other: kept(self) == kept(other) if type(other) is kind else NotImplemented,
            "__hash__": lambda self: hash(kept(self)),
        }
        for name, method in namespace.items():
            setattr(kind, name, method)
        return kind

    return decorated
