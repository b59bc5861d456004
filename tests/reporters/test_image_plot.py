"""Images of a sweep: valid, repeatable, and any name as it is."""

import json
import sys
from xml.etree import ElementTree

import pytest
from sweeps import FIG4, plain, sweep

plain = pytest.fixture(autouse=True)(plain)


def test_images_are_valid_and_repeatable(tmp_path):
    svg, png = tmp_path / "a.svg", tmp_path / "a.png"
    code, out, _ = sweep("--figure", "15", "-o", f"svg={svg}", "-o", f"png={png}")
    assert (code, out) == (0, "")
    assert ElementTree.parse(svg).getroot().tag.endswith("svg")
    assert png.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    before = svg.read_bytes()
    sweep("--figure", "15", "-o", f"svg={svg}")
    assert svg.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.png", "a.svg"]


def test_images_without_matplotlib_name_the_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, _, err = sweep("--figure", "4", "-o", f"png={tmp_path / 'a.png'}")
    assert code == 2
    assert "pip install matplotlib" in err
    assert list(tmp_path.iterdir()) == []


def test_gaps_stay_gaps_in_an_image(tmp_path):
    code, _, _ = sweep("--groups", "1:4", "-N", "4", *FIG4, "-o", f"svg={tmp_path / 'a.svg'}")
    assert code == 3
    assert (tmp_path / "a.svg").stat().st_size > 1000


@pytest.mark.parametrize("name", [r"$\frac{", r"$\no$", "$$", "a" * 500, "<svg>&", "^{x}_"])
def test_figures_show_any_name_as_it_is(name, tmp_path):
    spec, image = tmp_path / "net.yaml", tmp_path / "a.svg"
    layer = "N: 8, C: 64, H: 8, W: 8, K: 64, kernel_size: 1, dtype: fp16"
    spec.write_text(f"version: 1\nlayers: [{{ name: {json.dumps(name)}, {layer} }}]")
    code, _, err = sweep(str(spec), "-N", "1,2", "-o", f"svg={image}")
    assert (code, err) == (0, "")
    assert ElementTree.parse(image).getroot().tag.endswith("svg")
