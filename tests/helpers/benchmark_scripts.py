"""The scripts in `benchmarks/`, which import each other by bare names."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from checkout import ROOT

BENCHMARKS = ROOT / "benchmarks"


@contextmanager
def importable() -> Iterator[None]:
    """While this holds, `import layers` finds the script."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        yield
    finally:
        sys.path.remove(str(BENCHMARKS))


def modules_fixture(*names: str) -> Any:
    """A fixture of a module's tests: these scripts as modules, one of them alone or several as a tuple."""

    @pytest.fixture(scope="module")
    def scripts() -> Iterator[ModuleType | tuple[ModuleType, ...]]:
        with importable():
            modules = tuple(map(import_module, names))
            yield modules if len(modules) > 1 else modules[0]

    return scripts


def run_on_rows(
    main: Callable[[list[str]], int], folder: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """A function that runs a script on a file of a given text, and returns exit code, stdout and stderr."""

    def run(text: str, *options: str) -> tuple[int, str, str]:
        path = folder / "rows.csv"
        path.write_text(text, encoding="utf-8")
        code = main([str(path), *options])
        out, err = capsys.readouterr()
        return code, out, err

    return run
