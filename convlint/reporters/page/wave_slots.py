"""The waves of a pass: a bar for each full one, and the slots of the last one, or the SMs of one alone, to scale."""

from __future__ import annotations

from msgspec import Struct

from convlint.estimate import PassEstimate
from convlint.files.languages.saying import is_english, say, sentence
from convlint.reporters.page.shapes import Box, Label, Line, Panel
from convlint.reporters.words import plural

MOST_MARKS = 200  # in the last wave; each stands for one slot or SM, or for several
_MARKS_A_ROW = 20
_MOST_BARS = 8
_BARS_OF_MANY = 4
_BAR, _STEP = 4.0, 6.0  # height of a full wave's bar, and from one to the next
_WORDS, _TEXT = 17.0, 12.0  # height of a line of words, and where they stand in it
_HIGHEST_MARK = 12.0


class Waves(Struct, frozen=True, kw_only=True):
    """How a pass's tiles fill its waves: `full` ones before the last, in which `filled` of `slots` have a tile."""

    slots: int
    full: int
    filled: int


def wave_of(estimate: PassEstimate) -> int:
    """Tiles that run at once: SMs times resident tiles."""
    return round(estimate.tiles / estimate.waves)


def waves_of(estimate: PassEstimate) -> Waves:
    """The waves of a pass; the last one may be full too."""
    wave = wave_of(estimate)
    last = estimate.last_wave_tiles
    return Waves(slots=wave, full=estimate.tiles // wave - (last == 0), filled=last or wave)


def slots_panel(estimate: PassEstimate, side: float) -> Panel:
    """The waves in `side` units of width."""
    waves = waves_of(estimate)
    if not waves.full:
        return _sms(estimate, waves, side)
    drawn = waves.full if waves.full <= _MOST_BARS else _BARS_OF_MANY
    several = plural(waves.full, "full wave")
    words = several if waves.full < 1000 or not is_english() else f"{waves.full:,} full waves"
    bars = [Box(kind="slot", x=0.0, y=_WORDS + bar * _STEP, width=side, height=_BAR) for bar in range(drawn)]
    words_of_last = say("last wave: {count:,} of {all:,} slots", count=waves.filled, all=waves.slots)
    last = _marks(waves.filled, waves.slots, sentence("slots"), side, [words_of_last])
    last = last.moved(0.0, _WORDS + drawn * _STEP + 4.0)
    return Panel(
        boxes=(*bars, *last.boxes),
        labels=(
            Label(
                text=words if drawn == waves.full else say("{waves}, {count} drawn", waves=words, count=drawn),
                x=0.0,
                y=_TEXT,
            ),
            *last.labels,
        ),
        edges=last.edges,
        bottom=last.bottom,
    )


def _sms(estimate: PassEstimate, waves: Waves, side: float) -> Panel:
    """Where there is no more than one wave, what matters is how many SMs have a tile at all."""
    sms = waves.slots // estimate.resident_tiles
    busy = min(estimate.tiles, sms)
    words = [say("{busy:,} of {all:,} SMs busy", busy=busy, all=sms)]
    if busy == sms and estimate.resident_tiles > 1:
        words.append(say("{count:,} of {all:,} tiles that fit", count=waves.filled, all=waves.slots))
    return _marks(busy, sms, sentence("SMs"), side, words)


def _marks(filled: int, every: int, noun: str, side: float, words: list[str]) -> Panel:
    """Slots or SMs in rows of marks, below the words; the first ones are filled."""
    each = -(-every // MOST_MARKS)
    if each > 1:
        words = [*words, say("each square: {count} {what}", count=each, what=say(noun))]
    wide = side / min(_MARKS_A_ROW, -(-every // each))
    high = min(wide, _HIGHEST_MARK)
    idle = _rows(every / each, "slot idle", wide, high)
    edges = tuple(line for box in idle for line in _sides(box, wide, high))
    panel = Panel(
        boxes=(*idle, *_rows(filled / each, "slot", wide, high)), edges=edges, bottom=sum(box.height for box in idle)
    ).moved(0.0, _WORDS * len(words))
    labels = tuple(Label(text=text, x=0.0, y=_TEXT + line * _WORDS) for line, text in enumerate(words))
    return Panel(boxes=panel.boxes, edges=panel.edges, bottom=panel.bottom, labels=labels)


def _rows(marks: float, kind: str, wide: float, high: float) -> list[Box]:
    """So many marks, not always a whole number: the full rows as one box, the rest as another."""
    full, rest = divmod(marks, _MARKS_A_ROW)
    boxes = []
    if full:
        boxes.append(Box(kind=kind, x=0.0, y=0.0, width=_MARKS_A_ROW * wide, height=full * high))
    if rest:
        boxes.append(Box(kind=kind, x=0.0, y=full * high, width=rest * wide, height=high))
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
