"""Drawings of tiles and waves, and the words that go with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from convlint.files.languages import is_english, plural, say, sentence
from convlint.model.estimates import Grid, LayerEstimate, PassEstimate
from convlint.model.layer import Pass
from convlint.model.report import Finding, RuleInfo

Line = tuple[tuple[float, float], ...]  # from corner to corner


class Box(Struct, frozen=True, kw_only=True):
    """A filled rectangle; its `kind` is its CSS class."""

    kind: str
    x: float
    y: float
    width: float
    height: float


class Label(Struct, frozen=True, kw_only=True):
    """Words that begin at a point; `upright` ones are read from bottom to top."""

    text: str
    x: float
    y: float
    upright: bool = False


class Picture(Struct, frozen=True, kw_only=True):
    """One picture in px; `edges` and `cuts` are data of SVG paths: sides of tiles and slots, and what is left out."""

    title: str
    width: float
    height: float
    boxes: tuple[Box, ...]
    labels: tuple[Label, ...]
    edges: str
    cuts: str = ""


def zigzag(x: float, y: float, length: float, *, upright: bool) -> Line:
    """A broken edge of about `length`: the mark of something left out beyond it."""
    teeth = max(2, round(length / 6))
    along = [(length * tooth / teeth, 2.5 if tooth % 2 else -2.5) for tooth in range(teeth + 1)]
    return tuple((x + across, y + way) if upright else (x + way, y + across) for way, across in along)


def path(lines: Iterable[Line]) -> str:
    """The lines as the data of one SVG path."""
    return "".join("M" + "L".join(f"{number(x)} {number(y)}" for x, y in line) for line in lines)


def number(value: float) -> str:
    """A coordinate, as short as a hundredth of a unit allows."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


_MARGIN = 2.0
_TOP, _LEFT = 17.0, 18.0  # for what is written beside the grid
_SIDE = 200.0  # of the grid and of the waves, in px


def _picture(
    title: str, boxes: Sequence[Box], labels: Sequence[Label], edges: Iterable[Line], bottom: float,
    *, cuts: Iterable[Line] = (), right: float = 0.0,
) -> Picture:  # fmt: skip
    """A picture that reaches down to `bottom`, with labels that end at `right`."""
    return Picture(
        title=title, width=max(right, _SIDE / 2, *(box.x + box.width for box in boxes)) + _MARGIN,
        height=bottom + _MARGIN, boxes=tuple(boxes), labels=tuple(labels), edges=path(edges), cuts=path(cuts),
    )  # fmt: skip


MOST_TILES = 24  # along one side of the drawing
_TILES_OF_A_PART = 12  # where that is too many
_LEAST_OF_A_PART = 2
_LETTERS = 7.0  # width of one, about
_MOST_SLENDER, _SLENDER = 4, 2  # a longer side is cut, to so many times the other one


def useful_part(estimate: PassEstimate, grid: Grid) -> tuple[float, float]:
    """Of the area that the grid covers, the part that the estimate calls useful, in elements: M x N of one product.

    Columns beyond gemm.N are channels that kernels pad. Rows are missing in all tiles alike where phases of a stride or
    blocks of positions are not full; those of wgrad are channels too, with the padded ones last.
    """
    area = estimate.tile_efficiency * grid.rows * grid.height * grid.columns * grid.width
    columns = float(min(estimate.gemm.N, grid.N))
    if area > columns * grid.M:  # the model counts padded channels as results
        columns = area / grid.M
    return area / columns, columns


def shown_tiles(grid: Grid) -> tuple[int, int]:
    """How many rows and columns of tiles are drawn: all, or the last ones."""
    rows, columns = grid.rows, grid.columns
    return (
        _shown(rows, grid.height, min(columns, _TILES_OF_A_PART) * grid.width),
        _shown(columns, grid.width, min(rows, _TILES_OF_A_PART) * grid.height),
    )


def _shown(count: int, side: int, across: int) -> int:
    if count <= MOST_TILES and count * side <= _MOST_SLENDER * across:
        return count
    return min(count, _TILES_OF_A_PART, max(_LEAST_OF_A_PART, _SLENDER * across // side))


def _grid_picture(estimate: PassEstimate, grid: Grid, which: Pass) -> Picture:
    """The grid of one product."""
    rows, columns = shown_tiles(grid)
    scale = _SIDE / max(rows * grid.height, columns * grid.width)
    high, wide = grid.height * scale, grid.width * scale
    width, height = columns * wide, rows * high
    across, down = f"N {grid.N:,}", f"M {grid.M:,}"
    lowest = max(height, len(down) * _LETTERS) + _TOP
    edges: list[Line] = [((_LEFT, y), (width + _LEFT, y)) for y in (row * high + _TOP for row in range(rows + 1))]
    edges += [((x, _TOP), (x, height + _TOP)) for x in (column * wide + _LEFT for column in range(columns + 1))]
    cuts = [zigzag(_LEFT, _TOP, width, upright=False)] if rows < grid.rows else []
    cuts += [zigzag(_LEFT, _TOP, height, upright=True)] if columns < grid.columns else []
    return _picture(
        say("Tiles of {which}", which=which),
        [Box(kind="wasted", x=_LEFT, y=_TOP, width=width, height=height), *_filled(estimate, grid, which, scale)],
        [Label(text=across, x=_LEFT, y=_TOP - 5.0), Label(text=down, x=_LEFT - 6.0, y=lowest, upright=True)],
        edges, lowest, cuts=cuts, right=max(width, len(across) * _LETTERS) + _LEFT,
    )  # fmt: skip


def _filled(estimate: PassEstimate, grid: Grid, which: Pass, scale: float) -> list[Box]:
    """The useful parts of what is drawn: one box, or one for each row of tiles."""
    rows, columns = shown_tiles(grid)
    useful_M, useful_N = useful_part(estimate, grid)
    hidden = (grid.rows - rows) * grid.height
    width = (useful_N - (grid.columns - columns) * grid.width) * scale
    full = useful_M >= grid.M * (1 - 1e-9)
    if full or which == "wgrad":
        parts = [(0.0, useful_M - hidden)]
    else:  # what is not useful lies in all rows of tiles alike
        share = useful_M / grid.M
        starts = range(0, rows * grid.height, grid.height)
        parts = [(float(start), share * min(grid.height, grid.M - hidden - start)) for start in starts]
    return [
        Box(kind="tile", x=_LEFT, y=start * scale + _TOP, width=width, height=height * scale)
        for start, height in parts
        if width > 0 and height > 0
    ]


MOST_MARKS = 200  # in the last wave; each stands for one slot or SM, or for several
_MARKS_A_ROW = 20
_MOST_BARS = 8
_BARS_OF_MANY = 4
_BAR, _STEP = 4.0, 6.0  # height of a full wave's bar, and from one to the next
_WORDS, _TEXT = 17.0, 12.0  # height of a line of words, and where they stand in it
_HIGHEST_MARK = 12.0


def wave_of(estimate: PassEstimate) -> int:
    """Tiles that run at once: SMs times resident tiles."""
    return round(estimate.tiles / estimate.waves)


def _waves_picture(estimate: PassEstimate, which: Pass) -> Picture:
    """The waves of a pass: a bar for each full one, and the slots of the last one, which may be full too."""
    title = say("Waves of {which}", which=which)
    slots, last = wave_of(estimate), estimate.last_wave_tiles
    full, filled = estimate.tiles // slots - (last == 0), last or slots
    if not full:  # what matters then is how many SMs have a tile at all
        sms = slots // estimate.resident_tiles
        busy = min(estimate.tiles, sms)
        words = [say("{busy:,} of {all:,} SMs busy", busy=busy, all=sms)]
        if busy == sms and estimate.resident_tiles > 1:
            words.append(say("{count:,} of {all:,} tiles that fit", count=filled, all=slots))
        return _marks_picture(title, busy, sms, sentence("SMs"), words)
    drawn = full if full <= _MOST_BARS else _BARS_OF_MANY
    full_waves = _count(full, "full wave")
    words_of_all = full_waves if drawn == full else say("{waves}, {count} drawn", waves=full_waves, count=drawn)
    words_of_last = say("last wave: {count:,} of {all:,} slots", count=filled, all=slots)
    bars = [Box(kind="slot", x=0.0, y=_WORDS + bar * _STEP, width=_SIDE, height=_BAR) for bar in range(drawn)]
    return _marks_picture(
        title, filled, slots, sentence("slots"), [words_of_last], top=_WORDS + drawn * _STEP + 4.0, bars=bars,
        labels=[Label(text=words_of_all, x=0.0, y=_TEXT)],
    )  # fmt: skip


def _marks_picture(
    title: str, filled: int, every: int, noun: str, words: list[str],
    *, top: float = 0.0, bars: Sequence[Box] = (), labels: Sequence[Label] = (),
) -> Picture:  # fmt: skip
    """Slots or SMs in rows of marks, the first ones filled, below their words and, above `top`, bars with theirs."""
    per_mark = -(-every // MOST_MARKS)
    if per_mark > 1:
        words = [*words, say("each square: {count} {what}", count=per_mark, what=say(noun))]
    wide = _SIDE / min(_MARKS_A_ROW, -(-every // per_mark))
    high = min(wide, _HIGHEST_MARK)
    below = [Label(text=text, x=0.0, y=_TEXT + line * _WORDS + top) for line, text in enumerate(words)]
    top += _WORDS * len(words)
    idle = _rows(every / per_mark, "slot idle", wide, high, top)
    return _picture(
        title,
        [*bars, *idle, *_rows(filled / per_mark, "slot", wide, high, top)],
        [*labels, *below],
        [line for box in idle for line in _sides(box, wide, high)],
        sum(box.height for box in idle) + top,
    )


def _rows(marks: float, kind: str, wide: float, high: float, top: float) -> list[Box]:
    """So many marks, not always a whole number: the full rows as one box, the rest as another."""
    full, rest = divmod(marks, _MARKS_A_ROW)
    boxes = []
    if full:
        boxes.append(Box(kind=kind, x=0.0, y=top, width=_MARKS_A_ROW * wide, height=full * high))
    if rest:
        boxes.append(Box(kind=kind, x=0.0, y=full * high + top, width=rest * wide, height=high))
    return boxes


def _sides(box: Box, wide: float, high: float) -> list[Line]:
    """The sides of the marks in a box."""
    right, bottom = box.x + box.width, box.y + box.height
    rows, marks = round(box.height / high), int(box.width / wide + 1e-9)
    stops = [box.x + mark * wide for mark in range(marks + 1)]
    if right - stops[-1] > 1e-9:  # the last mark stands for fewer slots than the others
        stops.append(right)
    across: list[Line] = [((box.x, box.y + row * high), (right, box.y + row * high)) for row in range(rows + 1)]
    return across + [((x, box.y), (x, bottom)) for x in stops]


def tiles_in_words(estimate: PassEstimate, grid: Grid, which: Pass) -> str:
    """The matrix, its tiles, and how much of them is computed for nothing."""
    useful_M, useful_N = useful_part(estimate, grid)
    M = f"M={grid.M:,}{_channels(useful_M, grid.M) if which == 'wgrad' else ''}"
    N = f"N={grid.N:,}{_channels(useful_N, grid.N)}"
    batch = f"{grid.batch:,} x " if grid.batch > 1 else ""
    split = say(" x {count} (gemm.K is split)", count=estimate.split_k) if estimate.split_k > 1 else ""
    products = say(_products(estimate, grid, which), count=grid.batch) if grid.batch > 1 else ""
    text = say(
        "{which}:{several} {M} x {N} in tiles of {tile}: {product} = {tiles}, {share} of their area is padding.",
        which=which,
        several=products,
        M=M,
        N=N,
        tile=f"{grid.height}x{grid.width}",
        product=f"{batch}{grid.rows:,} x {grid.columns:,}{split}",
        tiles=_count(estimate.tiles, "tile"),
        share=_share(1 - estimate.tile_efficiency, say("none")),
    )
    return text + _left_out(grid)


def waves_in_words(estimate: PassEstimate) -> str:
    """How the tiles are dealt over the SMs."""
    wave = wave_of(estimate)
    resident = estimate.resident_tiles
    last = estimate.last_wave_tiles / wave if estimate.last_wave_tiles else 1.0
    filled = say("all full")
    if last != 1.0:
        filled = say("the last one {share} full", share=_share(last, say("not")))
    if estimate.tiles < wave:
        filled = say("{share} of one", share=_share(last, say("not")))
    return say(
        "{tiles} on {SMs:,} SMs x {each}: {waves:,.2f} waves, {filled}.",
        tiles=_count(estimate.tiles, "tile"),
        SMs=wave // resident,
        each=plural(resident, "tile"),
        waves=estimate.waves,
        filled=filled,
    )


def _channels(useful: float, side: int) -> str:
    """A note on a side that is channels: how many there are without padded ones; empty where none are padded."""
    return "" if round(useful) >= side else say(" ({count:,} without padded channels)", count=round(useful))


def _products(estimate: PassEstimate, grid: Grid, which: Pass) -> str:
    """The words for what there is one product of: groups, taps, phases of the stride, points of the transform."""
    groups = estimate.gemm.batch
    if estimate.algorithm != "implicit-gemm":
        return sentence(" each of {count:,} points of the transform:")
    if grid.batch == groups:
        return sentence(" each of {count:,} groups:")
    if which == "wgrad":
        return sentence(" each of {count:,} taps:") if groups == 1 else sentence(" each of {count:,} groups and taps:")
    if groups == 1:
        return sentence(" each of {count:,} phases of the stride:")
    return sentence(" each of {count:,} groups and phases of the stride:")


def _left_out(grid: Grid) -> str:
    rows, columns = shown_tiles(grid)
    parts = [say("{count} rows", count=rows)] if rows < grid.rows else []
    parts += [say("{count} columns", count=columns)] if columns < grid.columns else []
    return say(" Drawn are the last {parts} of tiles.", parts=say(" and ").join(parts)) if parts else ""


def _count(count: int, noun: str) -> str:
    return plural(count, noun) if count < 1000 or not is_english() else f"{count:,} {noun}s"


def _share(share: float, nothing: str) -> str:
    """A share in whole percent, which neither hides a little nor rounds up to everything."""
    if share <= 0:
        return nothing
    if share < 0.01:
        return say("under 1 %")
    return f"{min(99.0, 100 * share):.0f} %" if share < 1 else "100 %"


# what an estimate says of the loss that a rule counts: the time, and the useful share
_LOST = {"tile": ("lost_to_tiles_us", "tile_efficiency"), "wave": ("lost_to_waves_us", "wave_efficiency")}


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
    tiled = {which: item for which, item in layer.passes.items() if item.grid is not None and which in rule.loss_passes}
    stated = next((which for which in tiled if finding.message.startswith(which)), None)
    if stated is not None or not tiled:
        return stated
    lost, efficiency = _LOST[rule.loss]
    return min(tiled, key=lambda which: (-getattr(tiled[which], lost), getattr(tiled[which], efficiency)))


def drawing(estimate: PassEstimate, which: Pass, *, waves: bool = True) -> Drawing | None:
    """The drawing of a pass, with its `waves` or without; None where it runs without tiles."""
    grid = estimate.grid
    if grid is None:
        return None
    return Drawing(
        captions=(tiles_in_words(estimate, grid, which), *([waves_in_words(estimate)] if waves else [])),
        tiles=_grid_picture(estimate, grid, which),
        waves=_waves_picture(estimate, which) if waves else None,
    )


def shows_waves(rule: RuleInfo) -> bool:
    """Whether findings of this rule are about what waves leave empty."""
    return rule.loss == "wave"
