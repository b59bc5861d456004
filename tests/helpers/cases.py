"""Runs many small cases as one test, and marks tests.

Each item that pytest collects costs about two milliseconds in each worker, whatever it does. Where a case costs less
than that, `for_each` runs all of them in one item, and a failure names the cases that failed.
"""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest

SHOWN = 5  # failures of one test, with their tracebacks


def slow_contract(test: Callable[..., None]) -> Callable[..., None]:
    """Marks a slow test that holds a contract, in a file whose other tests are quick."""
    return pytest.mark.slow(pytest.mark.contract(test))


def for_each(names: str, cases: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """As `pytest.mark.parametrize`, in one item: each case is a value of `names`, or a tuple of their values.

    All cases run, also after a failure. Fixtures that the test asks for are shared by its cases.
    """
    keys = [name.strip() for name in names.split(",")]
    every = [case if len(keys) > 1 else (case,) for case in cases]
    assert every, f"there is no case of {names}"

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(test)

        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            failed: list[BaseException] = []
            for case in every:
                try:
                    test(**dict(zip(keys, case, strict=True)), **fixtures)
                except pytest.skip.Exception as skipped:
                    raise AssertionError(f"a case among others cannot be skipped: {skipped}") from skipped
                except (Exception, pytest.fail.Exception) as error:  # of this case and no other
                    error.add_note(f"case: {', '.join(map(repr, case))}")
                    failed.append(error)
            if len(failed) == 1:
                raise failed[0]
            if failed:
                raise BaseExceptionGroup(f"{len(failed)} of {len(every)} cases failed", failed[:SHOWN])

        left = [parameter for name, parameter in signature.parameters.items() if name not in keys]
        run.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return run

    return decorate


def sampled(cases: Iterable[Any], step: int) -> list[Any]:
    """The cases of a slow test. Each `step`th, from the first on, is part of `make test`; `make test-all` runs all."""
    marked = []
    for number, case in enumerate(cases):
        marks = () if number % step else (pytest.mark.contract,)
        marked.append(pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=marks))
    return marked
