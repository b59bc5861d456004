"""Which Python files nothing is said about: tests, documentation, and other people's code."""

from __future__ import annotations

import os

TEST_FOLDERS = frozenset({"test", "tests", "testing", "unittests", "doc", "docs"})
VENDOR_FOLDERS = frozenset({"third_party", "thirdparty", "vendor", "vendored", "_vendor", "external", "extern"})


def is_quiet(path: str) -> bool:
    """Whether a path is that of a test, of documentation or of other people's code."""
    *folders, name = path.replace(os.sep, "/").lower().split("/")
    if not (TEST_FOLDERS | VENDOR_FOLDERS).isdisjoint(folders):
        return True
    return name.startswith("test_") or name.endswith(("_test.py", "_tests.py")) or name in ("conftest.py", "tests.py")
