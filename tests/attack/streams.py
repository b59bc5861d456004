"""What may not stand on a stream: a crash, a command to the CI system, a control character."""

import re
import unicodedata

_CRASH = re.compile(
    r"Traceback|[Ii]nternal error|Exception ignored|Fatal Python|Segmentation|core dumped|BrokenProcessPool"
)
_COMMAND = re.compile(r"(?m)^\s*::[\w-]+|##\w*\[")
_OF_GITHUB_FORMAT = re.compile(r"::(?:error|warning|notice) (?:file|title)=[^\n]*?::")
_DIRECTIONS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029")


def stream_problems(text: str, *, github: bool = False) -> list[str]:
    """What may not stand on a stream: a crash, a command to the CI system, a control character."""
    found = []
    crash = _CRASH.search(text)
    if crash:
        found.append(f"{crash[0]!r}: {text[crash.start() : crash.start() + 300]!r}")
    for match in _COMMAND.finditer(text):
        line = text[match.start() :].lstrip().split("\n", 1)[0]
        if not (github and _OF_GITHUB_FORMAT.match(line)):
            found.append(f"a command to the CI system: {line[:100]!r}")
    forbidden = {c for c in set(text) if (unicodedata.category(c) == "Cc" and c != "\n") or c in _DIRECTIONS}
    if forbidden:
        found.append(f"control characters {sorted(forbidden)!r}")
    return found[:5]
