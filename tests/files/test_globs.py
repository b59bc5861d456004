"""Patterns for names: they match as fnmatch does, and none takes long."""

import warnings
from fnmatch import fnmatchcase

from hypothesis import given, settings
from hypothesis import strategies as st

from convlint.files.globs import name_expression

_texts = st.text(alphabet="ab]-^[!.\\\n", max_size=7)
_globs = st.text(alphabet="aab**?[]!-^.\\\n", max_size=9)


@settings(max_examples=500)
@given(_globs, _texts)
def test_names_match_as_with_fnmatch(pattern: str, text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fnmatch's own, for brackets within brackets
        expected = fnmatchcase(text, pattern)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        name_expression.cache_clear()
        assert bool(name_expression(pattern).match(text)) is expected
