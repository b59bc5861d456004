"""Of tests, documentation and other people's code nothing is said."""

from __future__ import annotations

import pytest

from convlint.files.quiet_paths import is_quiet


@pytest.mark.parametrize(
    ("path", "quiet"),
    [
        ("net.py", False), ("models/net.py", False), ("latest/net.py", False), ("attest.py", False),
        ("tests/net.py", True), ("a/Tests/net.py", True), ("docs/net.py", True), ("third_party/net.py", True),
        ("a/vendor/b/net.py", True), ("test_net.py", True), ("net_test.py", True), ("a/conftest.py", True),
        ("tests.py", True), ("tests", False),
    ],
)  # fmt: skip
def test_by_folder_and_name(path: str, quiet: bool) -> None:
    assert is_quiet(path) is quiet
