"""The value of what nobody gave: using it raises, so that a rule that needs it is skipped rather than passed."""

from __future__ import annotations

from typing import Any, NoReturn

from convlint.errors import ConvlintError


class UnknownValue(ConvlintError):  # a signal, not a failure
    """An expression used a value that is not known."""


class _Unknown:
    """A value that nobody gave. Whatever is done with it raises UnknownValue; what belongs to it is unknown too."""

    __slots__ = ()

    def _raise(self, *_: object) -> NoReturn:
        raise UnknownValue

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __floordiv__ = __rfloordiv__ = _raise
    __truediv__ = __rtruediv__ = __mod__ = __rmod__ = __neg__ = __abs__ = __bool__ = __index__ = __float__ = _raise
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = __contains__ = __iter__ = _raise
    __hash__ = None  # type: ignore[assignment]

    def __getattr__(self, name: str) -> _Unknown:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Any = _Unknown()
