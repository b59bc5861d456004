"""Every attack is slow: it waits for processes, or tries input by the thousand."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Items of other folders come here too."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.slow)
