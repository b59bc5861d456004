"""The scripts in `benchmarks/`, which import each other by bare names."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

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
