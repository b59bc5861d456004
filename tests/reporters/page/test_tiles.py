"""The drawing of tiles and waves: exact numbers, areas to scale, few shapes, well-formed markup without styles."""

import re
from functools import cache
from math import prod
from xml.etree import ElementTree

import pytest
from cases import for_each
from convolutions import FIRST, RUNTIME, conv, fig4
from jinja2 import Environment, PackageLoader, StrictUndefined
from msgspec.structs import replace
from reports import ALIGNMENT, TILES

from convlint.estimate import estimate_layer
from convlint.gpus.gpu import load_gpu
from convlint.model.estimates import LayerEstimate, PassEstimate
from convlint.model.layer import PASSES, ConvLayer, Dtype, Pass
from convlint.model.location import Location
from convlint.model.report import Finding, RuleInfo
from convlint.reporters.page.layers import say_marked_up
from convlint.reporters.page.tiles import (
    MOST_MARKS,
    MOST_TILES,
    Box,
    Drawing,
    Picture,
    drawing,
    pass_shown,
    shown_tiles,
    shows_tiles,
    shows_waves,
    wave_of,
)
from convlint.rulebook.book import load_rulebook

GPUS = ("a100", "h100", "v100", "k80")
LAYERS: dict[str, ConvLayer] = {
    "plain": conv(N=16, C=256, H=28, W=28, K=320),
    "Fig. 4": fig4(55),
    "narrow": conv(N=64, C=128, H=28, W=28, K=32),
    "first": conv(**FIRST, C=3),
    "strided": conv(N=32, K=128, U=2, V=2, H=57, W=57),
    "strided, uneven phases": conv(N=3, K=72, U=3, V=2, H=31, W=29),
    "groups": conv(N=8, C=256, K=256, groups=32),
    "wide groups": conv(N=8, C=512, K=256, H=28, W=28, groups=2),
    "small": conv(N=2, C=512, H=7, W=7, K=512),
    "pointwise": conv(N=5, C=100, K=60, R=1, S=1),
    "fused": conv(N=4, C=64, K=80, H=28, W=28, dtype=Dtype.fp32, layout="NCHW"),
    "transforms": conv(N=16, C=100, K=60, dtype=Dtype.fp32, layout="NCHW"),
    "large filter": conv(N=16, C=3, K=100, R=5, S=5, H=31, W=31, dtype=Dtype.fp32, layout="NCHW"),
    "odd channels": conv(N=16, C=90, K=130),
    "volume": conv(N=4, C=32, K=40, D=9, T=3, H=28, W=28, Z=9, dtype=Dtype.fp16),
    "depthwise": conv(N=16, C=64, K=64, groups=64),
    "transposed": conv(N=4, C=256, K=96, H=16, W=16, R=4, S=4, U=2, V=2, pad=(1, 1), op="conv_transpose"),
}
TEMPLATE = Environment(
    loader=PackageLoader("convlint.reporters.page"), autoescape=True, undefined=StrictUndefined
).from_string('{% from "tiles.svg.j2" import tiles %}{{ tiles(drawing) }}', globals={"t": say_marked_up})


@cache
def passes(name: str, gpu: str) -> LayerEstimate:
    estimate = estimate_layer(LAYERS[name], load_gpu(gpu), RUNTIME, "training")
    assert estimate is not None
    return estimate


EVERY = [(name, gpu, which) for name in LAYERS for gpu in GPUS for which in PASSES if which in passes(name, gpu).passes]
TILED = [(name, gpu, which) for name, gpu, which in EVERY if passes(name, gpu).passes[which].grid is not None]


def drawn(name: str, gpu: str, which: Pass) -> tuple[PassEstimate, Drawing]:
    estimate = passes(name, gpu).passes[which]
    found = drawing(estimate, which)
    assert found is not None
    return estimate, found


def area(boxes: list[Box]) -> float:
    return sum(box.width * box.height for box in boxes)


def pictures(found: Drawing) -> list[Picture]:
    return [picture for picture in (found.tiles, found.waves) if picture is not None]


def of_kind(found: Drawing, kind: str) -> list[Box]:
    return [box for picture in pictures(found) for box in picture.boxes if box.kind == kind]


def labels(found: Drawing) -> list[str]:
    return [label.text for picture in pictures(found) for label in picture.labels]


def test_there_is_every_kind_of_pass() -> None:
    algorithms = {passes(name, gpu).passes[which].algorithm for name, gpu, which in EVERY}
    assert algorithms == {"implicit-gemm", "winograd", "fft", "direct"}
    assert len(TILED) > 100
    assert any(passes(name, gpu).passes[which].split_k > 1 for name, gpu, which in TILED)


@pytest.mark.parametrize("gpu", GPUS)
def test_a_pass_without_tiles_has_no_drawing(gpu: str) -> None:
    direct = [one for one in passes("depthwise", gpu).passes.values() if one.algorithm == "direct"]
    assert direct
    assert all(one.grid is None and drawing(one, "fprop") is None for one in direct)


@for_each("name, gpu, which", TILED)
def test_the_words_have_the_numbers_of_the_estimate(name: str, gpu: str, which: Pass) -> None:
    estimate, picture = drawn(name, gpu, which)
    grid, sms = estimate.grid, load_gpu(gpu).sms
    tiles, waves = picture.captions
    product = re.search(r": ([\d,]+(?: x [\d,]+)+)(?: \(gemm\.K is split\))? = ", tiles)
    assert prod(int(factor.replace(",", "")) for factor in product[1].split(" x ")) == estimate.tiles
    assert f"tiles of {grid.height}x{grid.width}: " in tiles
    assert f"= {estimate.tiles:,} tile" in tiles
    assert waves.startswith(f"{estimate.tiles:,} tile")
    assert f" on {sms:,} SMs x {estimate.resident_tiles} tile" in waves
    assert f" {estimate.waves:,.2f} waves, " in waves
    assert wave_of(estimate) == sms * estimate.resident_tiles
    wasted = 1 - estimate.tile_efficiency
    said = re.search(r"(none|under 1 %|\d+ %) of their area is padding", tiles)
    assert said is not None
    if wasted <= 0:
        assert said[1] == "none"
    elif wasted < 0.01:
        assert said[1] == "under 1 %"
    else:
        assert float(said[1].split()[0]) == pytest.approx(100 * wasted, abs=0.51)


@for_each("name, gpu, which", TILED)
def test_areas_are_to_scale(name: str, gpu: str, which: Pass) -> None:
    estimate, picture = drawn(name, gpu, which)
    grid = estimate.grid
    assert grid is not None
    rows, columns = shown_tiles(grid)
    (whole,) = of_kind(picture, "wasted")
    useful = of_kind(picture, "tile")
    assert useful
    for box in useful:
        assert whole.x <= box.x
        assert whole.y - 1e-6 <= box.y
        assert box.x + box.width <= whole.x + whole.width + 1e-6
        assert box.y + box.height <= whole.y + whole.height + 1e-6
    assert whole.width / whole.height == pytest.approx(columns * grid.width / (rows * grid.height))
    if (rows, columns) == (grid.rows, grid.columns):
        assert area(useful) / area([whole]) == pytest.approx(estimate.tile_efficiency)
    else:  # only what lies at the far edges is missing from the part that is drawn
        wasted = area([whole]) - area(useful)
        assert wasted / area([whole]) >= (1 - estimate.tile_efficiency) * (1 - 1e-6)


@for_each("name, gpu, which", TILED)
def test_the_last_wave_is_to_scale(name: str, gpu: str, which: Pass) -> None:
    estimate, picture = drawn(name, gpu, which)
    wave = wave_of(estimate)
    every = of_kind(picture, "slot idle")
    bars = [box for box in of_kind(picture, "slot") if box.y < every[0].y - 1e-6]
    filled = [box for box in of_kind(picture, "slot") if box not in bars]
    sms = load_gpu(gpu).sms
    last, busy = estimate.last_wave_tiles or wave, min(estimate.tiles, sms)
    full = estimate.tiles // wave - (estimate.last_wave_tiles == 0)
    assert len(bars) == full or len(bars) == 4 < full
    words = labels(picture)
    assert (f"{full:,} full wave" in " ".join(words)) == (full > 0)
    shown, whole, noun = (last, wave, "slots") if full else (busy, sms, "SMs")  # in one wave SMs matter, not slots
    assert area(filled) / area(every) == pytest.approx(shown / whole)
    assert any(f"{shown:,} of {whole:,} {noun}" in text for text in words)
    each = -(-whole // MOST_MARKS)
    assert (f"each square: {each} {noun}" in words) == (each > 1)
    high = min(200 / min(20, -(-whole // each)), 12)
    across = 200 / min(20, -(-whole // each))
    assert area(every) / (across * high) == pytest.approx(whole / each)


@for_each("name, gpu, which", TILED)
def test_it_is_small_well_formed_and_without_styles(name: str, gpu: str, which: Pass) -> None:
    _, picture = drawn(name, gpu, which)
    text = TEMPLATE.render(drawing=picture)
    assert len(text) < 4500
    figure = ElementTree.fromstring(text)
    tiles, waves = figure.findall("svg")
    assert tiles.findtext("title") == f"Tiles of {which}"
    assert waves.findtext("title") == f"Waves of {which}"
    assert [p.text for p in figure.iterfind("figcaption/p")] == list(picture.captions)
    assert not [element for element in figure.iter() if "style" in element.attrib or element.tag == "style"]
    assert not [key for element in figure.iter() for key in element.attrib if key.startswith("on") or key == "href"]
    assert len([*tiles.iter(), *waves.iter()]) <= 1 + 1 + 2 + 3 + MOST_TILES + 1 + 8 + 4 + 3
    sides = sum((path.get("d") or "").count("M") for path in figure.iter("path"))
    assert sides <= 2 * MOST_TILES + 2 + 2 + 2 * (MOST_MARKS // 20 + 22)
    for svg in (tiles, waves):
        assert (svg.get("class"), svg.get("role")) == ("tiles", "img")
        assert {rect.get("class") for rect in svg.iter("rect")} <= {"tile", "wasted", "slot", "slot idle"}
        _, _, width, height = map(float, (svg.get("viewBox") or "").split())
        assert (width, height) == (float(svg.get("width") or 0), float(svg.get("height") or 0))  # 12 px are 12 px
        assert width <= 260
        for rect in svg.iter("rect"):
            x, y, wide, high = (float(rect.get(key) or "nan") for key in ("x", "y", "width", "height"))
            assert 0 <= x <= x + wide <= width + 0.02
            assert 0 <= y <= y + high <= height + 0.02


def test_a_finding_about_tiles_has_no_waves() -> None:
    found = drawing(passes("plain", "a100").passes["wgrad"], "wgrad", waves=False)
    assert found.waves is None
    assert len(found.captions) == 1
    assert ElementTree.fromstring(TEMPLATE.render(drawing=found)).findall("svg")[1:] == []
    waves = {rule.info.code for rule in load_rulebook().rules if shows_waves(rule.info)}
    assert waves == {"CL204", "CL301", "CL704"}


def test_within_one_wave_it_is_the_sms_that_are_shown() -> None:
    """80 tiles or 108 on 108 SMs that take two each: what is idle is 28 SMs, or none."""
    whole = passes("plain", "a100").passes["wgrad"]
    for tiles, words in ((80, ["80 of 108 SMs busy"]), (150, ["108 of 108 SMs busy", "150 of 216 tiles that fit"])):
        found = drawing(replace(whole, tiles=tiles, waves=tiles / 216, last_wave_tiles=tiles), "wgrad")
        assert [label.text for label in found.waves.labels] == words


def test_message_and_drawing_of_a_fused_kernel_name_one_tile() -> None:
    _, found = drawn("fused", "v100", "fprop")
    tile = passes("fused", "v100").passes["fprop"].tile
    assert f"in tiles of {tile[0]}x{tile[1]}: " in found.captions[0]
    assert tile == (128, 32)


def test_what_is_too_much_to_draw_is_cut_and_said() -> None:
    estimate, picture = drawn("Fig. 4", "a100", "dgrad")
    assert (estimate.grid.rows, estimate.grid.columns) == (110, 32)
    assert picture.tiles.cuts.count("M") == 2
    assert "110 x 32 = 3,520 tiles" in picture.captions[0]
    assert picture.captions[0].endswith("Drawn are the last 12 rows and 12 columns of tiles.")
    assert "16 full waves, 4 drawn" in labels(picture)


def test_what_is_small_is_drawn_whole() -> None:
    _, picture = drawn("plain", "a100", "wgrad")
    assert picture.tiles.cuts == ""
    assert picture.captions == (
        "wgrad: each of 9 taps: M=256 x N=320 in tiles of 128x128: 9 x 2 x 3 x 2 (gemm.K is split) = 108 tiles, 17 % "
        "of their area is padding.",
        "108 tiles on 108 SMs x 2 tiles: 0.50 waves, 50 % of one.",
    )


def test_figure_4_of_the_guide() -> None:
    _, picture = drawn("Fig. 4", "a100", "fprop")
    assert picture.captions == (
        "fprop: M=14,080 x N=256 in tiles of 128x128: 110 x 2 = 220 tiles, none of their area is padding. Drawn are "
        "the last 4 rows of tiles.",
        "220 tiles on 108 SMs x 2 tiles: 1.02 waves, the last one 2 % full.",
    )
    assert labels(picture)[2:] == ["1 full wave", "last wave: 4 of 216 slots", "each square: 2 slots"]


def test_padded_channels_are_named_as_such() -> None:
    _, picture = drawn("large filter", "a100", "dgrad")
    assert "N=4 (3 without padded channels) in" in picture.captions[0]


def test_the_rule_says_whether_it_is_about_tiles() -> None:
    about = {rule.info.code for rule in load_rulebook().rules if shows_tiles(rule.info)}
    quantization = {
        rule.info.code for rule in load_rulebook().rules if "/quantization/" in rule.path.replace("\\", "/")
    }
    assert len(quantization) >= 5
    assert quantization <= about
    assert {"CL301", "CL104"} <= about
    assert not {"CL102", "CL401", "CL501"} & about


def finding(rule: RuleInfo, message: str) -> Finding:
    return Finding(rule=rule, severity="warning", message=message, location=Location(path="net.yaml"))


def test_a_finding_is_drawn_for_the_pass_that_it_names() -> None:
    rule = replace(TILES, loss="tile", loss_passes=PASSES)
    layer = passes("plain", "a100")
    for which in PASSES:
        assert pass_shown(finding(rule, f"{which}: only 56 % of its tiles is useful work"), layer) == which


@for_each("name, gpu", [(name, gpu) for name in LAYERS if name != "depthwise" for gpu in GPUS])
@pytest.mark.parametrize(("loss", "field"), [("tile", "lost_to_tiles_us"), ("wave", "lost_to_waves_us")])
def test_else_for_the_pass_that_loses_most(name: str, gpu: str, loss: str, field: str) -> None:
    layer = passes(name, gpu)
    for of in (PASSES, ("fprop", "dgrad"), ("wgrad",)):
        rule = replace(TILES, loss=loss, loss_passes=of)
        which = pass_shown(finding(rule, "tiles are partly empty in 3 layers"), layer)
        lost = {each: getattr(one, field) for each, one in layer.passes.items() if each in of and one.grid is not None}
        assert which is None if not lost else lost[which] == max(lost.values())


def test_nothing_is_drawn_of_other_findings_and_of_passes_without_tiles() -> None:
    assert pass_shown(finding(ALIGNMENT, "fprop: K=60"), passes("plain", "a100")) is None
    rule = replace(TILES, loss="tile", loss_passes=PASSES)
    assert pass_shown(finding(rule, "fprop: empty"), passes("depthwise", "a100")) is None
