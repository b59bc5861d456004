"""Words of the page: what bounds a pass, and the sentences that its scripts say."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from markupsafe import Markup

from convlint.files.languages.saying import is_english, say, sentence

BOUNDS: Mapping[str, str] = {
    "compute": sentence("compute"),
    "memory": sentence("memory"),
    "launch": sentence("launch"),
}
SCRIPTS = ("page.js", "roofline.js")
_SAID = re.compile(r"""\bsay\(\s*"([^"]+)\"""")


def say_marked_up(english: str, **values: object) -> Markup:
    """A sentence of a template, which may hold tags; what fills it is escaped."""
    return Markup(say(english)).format(**values)


def said_by_scripts() -> dict[str, dict[str, str]]:
    """The sentences of the scripts in the language that is spoken, for their data; of English, nothing is needed."""
    return (
        {} if is_english() else {"say": {english: say(english) for english in (*script_sentences(), *BOUNDS.values())}}
    )


@cache
def script_sentences() -> tuple[str, ...]:
    """What the scripts say, in English."""
    texts = (files("convlint.reporters.page").joinpath("assets", name).read_text("utf-8") for name in SCRIPTS)
    return tuple(dict.fromkeys(found for text in texts for found in _SAID.findall(text)))
