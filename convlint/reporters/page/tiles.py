"""Which findings get a drawing of tiles and waves, of which pass it is, and what it shows and says.

The numbers are those of the estimate; to scale are the areas: what tiles compute for nothing, and the slots of the last
wave that stay empty (CG 4.3).
"""

from __future__ import annotations

from msgspec import Struct

from convlint.estimate import LayerEstimate, PassEstimate
from convlint.model.layer import Pass
from convlint.report import Finding, RuleInfo
from convlint.reporters.page.shapes import Box, Label, path
from convlint.reporters.page.tile_grid import grid_panel
from convlint.reporters.page.tile_words import tiles_in_words, waves_in_words
from convlint.reporters.page.wave_slots import slots_panel

WIDTH = 340.0
_MARGIN = 2.0
_TOP, _LEFT = 14.0, 16.0  # for what is written beside the grid
_SIDE = 144.0  # of either panel
# what an estimate says of the loss that a rule counts: the time, and the useful share
_LOST = {"tile": ("lost_to_tiles_us", "tile_efficiency"), "wave": ("lost_to_waves_us", "wave_efficiency")}


class Drawing(Struct, frozen=True, kw_only=True):
    """The tile grid and the waves of a pass, for the macro in `tiles.svg.j2`.

    `edges` and `cuts` are data of SVG paths: sides of tiles and slots, and where parts of the grid are left out.
    `captions` say in words what is drawn, and stand beside it as text for everybody; `title` only names the picture.
    """

    title: str
    captions: tuple[str, ...]
    width: float
    height: float
    boxes: tuple[Box, ...]
    labels: tuple[Label, ...]
    edges: str
    cuts: str


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


def drawing(estimate: PassEstimate, which: Pass) -> Drawing | None:
    """The drawing of a pass; None where it runs without tiles."""
    grid = estimate.grid
    if grid is None:
        return None
    tiles = grid_panel(estimate, grid, which, _SIDE).moved(_LEFT, _TOP)
    waves = slots_panel(estimate, _SIDE).moved(WIDTH - _SIDE - _MARGIN, 0.0)
    return Drawing(
        title=f"Tiles and waves of {which}",
        captions=(tiles_in_words(estimate, grid, which), waves_in_words(estimate)),
        width=WIDTH,
        height=max(tiles.bottom, waves.bottom) + _MARGIN,
        boxes=tiles.boxes + waves.boxes,
        labels=tiles.labels + waves.labels,
        edges=path(tiles.edges + waves.edges),
        cuts=path(tiles.cuts),
    )
