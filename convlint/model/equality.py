"""Records of which a field makes no difference, such as where they were written down."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TypeVar

from msgspec import Struct

_T = TypeVar("_T", bound=Struct)


def equal_without(*names: str) -> Callable[[type[_T]], type[_T]]:
    """Makes `==`, hash() and repr() of a record leave out its fields `names`."""

    def decorated(kind: type[_T]) -> type[_T]:
        shown = [name for name in kind.__struct_fields__ if name not in names]
        kept = attrgetter(*shown)

        def written(self: object) -> str:
            return f"{kind.__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

        namespace = {
            "__eq__": lambda self, other: kept(self) == kept(other) if type(other) is kind else NotImplemented,
            "__hash__": lambda self: hash(kept(self)),
            "__repr__": written,
        }
        for name, method in namespace.items():
            setattr(kind, name, method)
        return kind

    return decorated
