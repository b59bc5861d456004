"""The pictures that are drawn: those of README and of the site are there, and show what is printed today."""

import html
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from drawn_pictures import MOST_BYTES, SWEEP, TERMINAL, draw, report

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("picture", [TERMINAL, SWEEP], ids=["terminal", "sweep"])
def test_they_are_small_and_load_nothing(picture: Path) -> None:
    text = picture.read_text(encoding="utf-8")
    assert 0 < len(text.encode()) < MOST_BYTES
    root = ElementTree.fromstring(text)
    assert root.tag == f"{SVG}svg"
    assert not re.search(r"url\((?!#)|@import|@font-face", text)
    for element in root.iter():
        assert element.tag not in {f"{SVG}script", f"{SVG}image", f"{SVG}foreignObject"}
        assert all(value.startswith("#") for name, value in element.attrib.items() if name.endswith("href"))


@pytest.mark.slow
def test_the_terminal_shows_what_is_printed(tmp_path: Path) -> None:
    """However Rich draws it: all its letters in their order."""
    matrix = TERMINAL.read_text(encoding="utf-8").partition('-matrix">')[2]
    shown = "".join(html.unescape(text) for text in re.findall(r"<text [^>]*>(.*?)</text>", matrix))
    assert "".join(shown.split()) == "".join(report(tmp_path, color="never").split())


@pytest.mark.slow
def test_they_are_drawn(tmp_path: Path) -> None:
    drawn = (tmp_path / "new" / "terminal.svg", tmp_path / "pages" / "sweep.svg")
    draw(*drawn)
    for path in drawn:
        assert ElementTree.parse(path).getroot().tag == f"{SVG}svg"
