"""A statement goes in front of another one, with its indentation, and nothing else of the file changes."""

from __future__ import annotations

import pytest

from convlint.errors import InputFault
from convlint.fixes.python.inserting import inserted
from convlint.fixes.python.rewriting import applied_to_bytes
from convlint.fixes.python.source import PythonSource

NEW = "torch.x = True"


def after(raw: bytes, line: int, column: int = 1) -> bytes:
    return applied_to_bytes(raw, inserted(PythonSource(raw), (line, column), NEW))


@pytest.mark.parametrize(
    ("before", "place", "expected"),
    [
        ("a = 1\nb = 2\n", (2, 1), f"a = 1\n{NEW}\nb = 2\n"),
        ("def main():\n    a = 1\n", (2, 5), f"def main():\n    {NEW}\n    a = 1\n"),
        ("def main():\n\ta = 1\n", (2, 2), f"def main():\n\t{NEW}\n\ta = 1\n"),
        ("def main():\r\n    a = 1\r\n", (2, 5), f"def main():\r\n    {NEW}\r\n    a = 1\r\n"),
        ("def main():\r    a = 1\r", (2, 5), f"def main():\r    {NEW}\r    a = 1\r"),
        ("if a:\n    b", (2, 5), f"if a:\n    {NEW}\n    b"),
        ("if a: main()\n", (1, 7), f"if a: {NEW}; main()\n"),
        ("a = 1; b = 2\n", (1, 8), f"a = 1; {NEW}; b = 2\n"),
        ("a = 1; \\\nb = 2\n", (2, 1), f"a = 1; \\\n{NEW}\nb = 2\n"),
        ("'ä'; b = 2\n", (1, 6), f"'ä'; {NEW}; b = 2\n"),
        ("@wraps\n@other(1)\ndef f(): pass\n", (3, 1), f"{NEW}\n@wraps\n@other(1)\ndef f(): pass\n"),
        ("for a in b:\n    c\nelse:\n    d\n", (4, 5), f"for a in b:\n    c\nelse:\n    {NEW}\n    d\n"),
        ("try:\n    a\nexcept E:\n    b\n", (4, 5), f"try:\n    a\nexcept E:\n    {NEW}\n    b\n"),
        ("# ä\nclass C:\n  def f(s):\n    a\n", (4, 5), f"# ä\nclass C:\n  def f(s):\n    {NEW}\n    a\n"),
        ("def f():\n    '''ä\n    '''\n    a\n", (4, 5), f"def f():\n    '''ä\n    '''\n    {NEW}\n    a\n"),
    ],
)  # fmt: skip
def test_in_front_of_a_statement(before: str, place: tuple[int, int], expected: str) -> None:
    assert after(before.encode(), *place) == expected.encode()


def test_encodings_are_kept() -> None:
    assert after(b"\xef\xbb\xbfa = 1\n", 1) == b"\xef\xbb\xbf" + NEW.encode() + b"\na = 1\n"
    assert after("# coding: latin-1\n'ä'; b\n".encode("latin-1"), 2, 6) == (
        f"# coding: latin-1\n'ä'; {NEW}; b\n".encode("latin-1")
    )


@pytest.mark.parametrize(
    ("before", "place"),
    [
        ("a = 1\n", (1, 2)),
        ("a = 1\n", (7, 1)),
        ("x = lambda: f(\n    a)\n", (2, 5)),
    ],
)
def test_what_is_no_place_for_it_is_refused(before: str, place: tuple[int, int]) -> None:
    with pytest.raises(InputFault):
        after(before.encode(), *place)
