"""A measurement for people: passes with their times beside each other, then what came of the advice."""

from __future__ import annotations

from convlint.cli.commands.measure_words import Measurement, agreed, headline, notes, percent, promise, tally
from convlint.files.languages.saying import duration
from convlint.files.safe import ascii_only, clean, clean_path
from convlint.measuring.trial import Held
from convlint.reporters import Style
from convlint.reporters.ink import ASCII, UNICODE, Paint, painter, shorten, wrap
from convlint.reporters.words import place

_NARROW, _WIDE = 60, 120
_TITLES = ("pass", "predicted", "measured", "spread", "ratio")
_INKS: dict[Held, str] = {"held": "good", "in part": "fair", "not held": "poor", "too close to tell": "faint"}


def render(found: Measurement, style: Style) -> str:
    """The whole report; the same words with and without colour."""
    paint, width = painter(style.color), min(max(style.width, _NARROW), _WIDE)
    lines: list[str] = []
    if found.device is not None and not style.quiet:
        lines += _wrapped(f"{clean_path(found.path)}: {headline(found)}", width)
        lines += _table(found, paint, width, unicode=style.unicode)
        if found.agreement is not None:
            lines += ["", *_wrapped(agreed(found.agreement, found.gpu), width)]
    if found.outcomes:
        lines += _advice(found, paint, width)
    if not style.quiet:
        said = list(notes(found))
        lines += ["", *(line for note in said for line in _wrapped(note, width, "  "))] if said else []
    for error in found.errors:
        first, *rest = _wrapped(f"error: {place(error.path, error.line, error.column)}: {error.message}", width)
        lines += ["", first.replace("error:", paint("error", "error:"), 1), *(f"  {line}" for line in rest)]
    text = "\n".join(line.rstrip() for line in [*lines, ""]).lstrip("\n")
    return text if style.unicode else ascii_only(text)


def _table(found: Measurement, paint: Paint, width: int, *, unicode: bool) -> list[str]:
    rows = [
        (
            each.which,
            "-" if each.predicted_us is None else duration(each.predicted_us),
            "-" if each.measured_us is None else duration(each.measured_us),
            "-" if each.measured_us is None else percent(each.spread),
            "-" if each.ratio is None else f"{each.ratio:.2f}",
        )
        for each in found.compared
    ]
    if not rows:
        return []
    sizes = [max(map(len, column)) for column in zip(_TITLES, *rows, strict=True)]
    room = width - sum(sizes) - 2 * len(sizes)

    def line(layer: str, cells: tuple[str, ...]) -> str:
        name = shorten(clean(layer), room, more).ljust(room)
        return name + "  " + cells[0].ljust(sizes[0]) + "".join(
            "  " + cell.rjust(size) for cell, size in zip(cells[1:], sizes[1:], strict=True)
        )  # fmt: skip

    more = (UNICODE if unicode else ASCII).more
    lines, before = ["", paint("faint", line("layer", _TITLES))], ""
    for each, cells in zip(found.compared, rows, strict=True):
        lines.append(line("" if each.layer == before else each.layer, cells))
        before = each.layer
    return lines


def _advice(found: Measurement, paint: Paint, width: int) -> list[str]:
    lines = ["", paint("strong", tally(found))]
    for one in found.outcomes:
        finding = one.trial.finding
        where = f"{finding.layer}: " if finding.layer is not None else ""
        fix = finding.fix.describe if finding.fix is not None else ""
        first, *rest = _wrapped(f"{one.held}: {finding.rule.code} {where}{fix}; {promise(one)}", width - 2, "  ")
        lines += [first.replace(one.held, paint(_INKS[one.held], one.held), 1), *(f"  {line}" for line in rest)]
    return lines


def _wrapped(text: str, width: int, indent: str = "") -> list[str]:
    return [indent + line for line in wrap(clean(text), width - len(indent))]
