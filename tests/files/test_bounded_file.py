"""Files are opened and read within bounds, in the encoding that they state."""

import os
from pathlib import Path

import pytest

from convlint.files.bounded_file import python_bytes, python_encoding, python_text
from convlint.model.errors import InputFault


def test_what_is_edited_comes_before_what_lies_on_disk(tmp_path: Path) -> None:
    path, link = tmp_path / "net.py", tmp_path / "link.py"
    path.write_bytes(b"a = 1\n")
    link.symlink_to(path)
    assert python_bytes(str(path), {}) == b"a = 1\n"
    assert python_bytes(str(link), {os.path.realpath(path): "a = '\xe9'\n"}) == b"a = '\xe9'\n"
    with pytest.raises(InputFault):
        python_bytes(str(tmp_path / "none.py"), {})


@pytest.mark.parametrize(
    ("content", "encoding", "text"),
    [
        (b"a\r\nb\rc\n", "utf-8", "a\nb\nc\n"),
        (b"\xef\xbb\xbfa\n", "utf-8-sig", "a\n"),
        (b"# coding: latin-1\n\xe9\n", "iso-8859-1", "# coding: latin-1\n\xe9\n"),
    ],
)
def test_encodings(content: bytes, encoding: str, text: str) -> None:
    assert (python_encoding(content), python_text(content)) == (encoding, text)


@pytest.mark.parametrize("content", [b"# coding: no-such\n", b"\n\n\n\xff\n"])
def test_what_is_no_text(content: bytes) -> None:
    with pytest.raises(InputFault, match="not text"):
        python_text(content)
