"""Applies the fixes of SARIF as any consumer of SARIF would."""

from typing import Any


def applied(content: bytes, fix: dict[str, Any]) -> bytes:
    """A file after a fix of SARIF: lines end with LF or CRLF, columns are code points, a BOM is none of them."""
    (change,) = fix["artifactChanges"]
    bom = b"\xef\xbb\xbf" if content.startswith(b"\xef\xbb\xbf") else b""
    lines = content[len(bom) :].decode().split("\n")
    replacements = sorted(
        change["replacements"],
        key=lambda each: (each["deletedRegion"]["startLine"], each["deletedRegion"]["startColumn"]),
        reverse=True,
    )
    for replacement in replacements:
        region, new = replacement["deletedRegion"], replacement["insertedContent"]["text"]
        first, last = region["startLine"] - 1, region["endLine"] - 1
        head, tail = lines[first][: region["startColumn"] - 1], lines[last][region["endColumn"] - 1 :]
        lines[first : last + 1] = (head + new + tail).split("\n")
    return bom + "\n".join(lines).encode()
