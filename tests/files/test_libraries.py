"""Libraries whose patterns are compiled late."""

import copy
import re
import sys
from pathlib import Path

import pytest

from convlint.files.libraries import late_patterns_of
from convlint.files.patterns import pattern


def test_only_the_patterns_of_a_package_are_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What others compile meanwhile is a pattern at once, and so is all afterwards."""
    package = tmp_path / "slow_to_load"
    package.mkdir()
    (package / "__init__.py").write_text("from slow_to_load import inner")
    (package / "inner.py").write_text("import re\nPATTERN, WRONG = re.compile('(a)b', re.I), re.compile('(')")
    monkeypatch.syspath_prepend(tmp_path)
    with late_patterns_of("slow_to_load"):
        import slow_to_load  # type: ignore[import-not-found]

        own = re.compile("c")
    late = sys.modules["slow_to_load.inner"].PATTERN
    assert not isinstance(late, re.Pattern)
    assert isinstance(own, re.Pattern)
    assert isinstance(re.compile("d"), re.Pattern)
    assert late.match("AB")[1] == "A"
    assert (late.pattern, late.groups) == ("(a)b", 1)
    with pytest.raises(re.error):
        slow_to_load.inner.WRONG.match("")


def test_patterns_that_wait_can_be_copied() -> None:
    late: re.Pattern[str] = pattern("a+")
    assert copy.copy(late).match("aab")[0] == copy.deepcopy(late).match("aab")[0] == "aa"  # type: ignore[index]
