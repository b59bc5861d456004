"""Which findings get a drawing of tiles and waves, of which pass it is, and what it shows and says.

The numbers are those of the estimate; to scale are the areas: what tiles compute for nothing, and the slots of the last
wave that stay empty (CG 4.3).
"""

from __future__ import annotations

from msgspec import Struct

from convlint.estimate import LayerEstimate, PassEstimate
from convlint.files.languages.saying import say
from convlint.model.layer import Pass
from convlint.report import Finding, RuleInfo
from convlint.reporters.page.shapes import Box, Label, Panel, path
from convlint.reporters.page.tile_grid import grid_panel
from convlint.reporters.page.tile_words import tiles_in_words, waves_in_words
from convlint.reporters.page.wave_slots import slots_panel

_MARGIN = 2.0
_TOP, _LEFT = 17.0, 18.0  # for what is written beside the grid
_SIDE = 200.0  # of either panel, in px
# what an estimate says of the loss that a rule counts: the time, and the useful share
_LOST = {"tile": ("lost_to_tiles_us", "tile_efficiency"), "wave": ("lost_to_waves_us", "wave_efficiency")}


class Picture(Struct, frozen=True, kw_only=True):
    """One panel in px; `edges` and `cuts` are data of SVG paths: sides of tiles and slots, and what is left out."""

    title: str
    width: float
    height: float
    boxes: tuple[Box, ...]
    labels: tuple[Label, ...]
    edges: str
    cuts: str


class Drawing(Struct, frozen=True, kw_only=True):
    """The tile grid and the waves of a pass, for the macro in `tiles.svg.j2`; of what tiles lose the grid alone.

    `captions` say in words what is drawn, and stand beside it as text for everybody; titles only name the pictures.
    """

    captions: tuple[str, ...]
    tiles: Picture
    waves: Picture | None


def shows_tiles(rule: RuleInfo) -> bool:
    """Whether findings of this rule are about what tiles or waves leave empty: in its file, `loss` says so."""
    return rule.loss in _LOST


def pass_shown(finding: Finding, layer: LayerEstimate) -> Pass | None:
    """The pass that the finding names, else the one that loses most to what its rule counts; None: nothing to draw."""
    rule = finding.rule
    if not shows_tiles(rule):
        return None
    tiled = {which: one for which, one in layer.passes.items() if one.grid is not None and which in rule.loss_passes}
    named = next((which for which in tiled if finding.message.startswith(which)), None)
    if named is not None or not tiled:
        return named
    lost, efficiency = _LOST[rule.loss]
    return min(tiled, key=lambda which: (-getattr(tiled[which], lost), getattr(tiled[which], efficiency)))


def drawing(estimate: PassEstimate, which: Pass, *, waves: bool = True) -> Drawing | None:
    """The drawing of a pass, with its `waves` or without; None where it runs without tiles."""
    grid = estimate.grid
    if grid is None:
        return None
    return Drawing(
        captions=(tiles_in_words(estimate, grid, which), *([waves_in_words(estimate)] if waves else [])),
        tiles=_picture(
            say("Tiles of {which}", which=which), grid_panel(estimate, grid, which, _SIDE).moved(_LEFT, _TOP)
        ),
        waves=_picture(say("Waves of {which}", which=which), slots_panel(estimate, _SIDE)) if waves else None,
    )


def shows_waves(rule: RuleInfo) -> bool:
    """Whether findings of this rule are about what waves leave empty."""
    return rule.loss == "wave"


def _picture(title: str, panel: Panel) -> Picture:
    return Picture(
        title=title, width=max(panel.right, _SIDE / 2, *(box.x + box.width for box in panel.boxes)) + _MARGIN,
        height=panel.bottom + _MARGIN, boxes=panel.boxes, labels=panel.labels, edges=path(panel.edges),
        cuts=path(panel.cuts),
    )  # fmt: skip
