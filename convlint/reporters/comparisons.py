"""A comparison of two checks, as text, JSON and Markdown."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from convlint import __version__
from convlint.files.languages import duration, plural
from convlint.files.safe import clean, clean_path, fields, number, plain
from convlint.reporters import Style
from convlint.reporters.ink import Paint, column_sizes, error_lines, finished, painter, row, wrapped
from convlint.reporters.json_v3 import error_object
from convlint.reporters.markdown import code, prose
from convlint.reporters.plans import percent
from convlint.reporters.words import LIBRARIES, binary, count, fault, step
from convlint.run.comparison import Comparison, FindingFigures, LayerChange, NetworkFigures, Pair

_MOST = 8  # layers, findings and networks that the text names of each kind
_TIMES = 100  # percent from which on the verdict says how many times as long
_TITLES = ("", "old", "new", "change")


def headline(pair: Pair) -> str:
    """`net.yaml on a100, training, N=64`; both paths and batches where they differ."""
    old, new = pair.old, pair.new
    path = new.path if old.path == new.path else f"{old.path} -> {new.path}"
    batch = ""
    if old.batch or new.batch:
        batch = f", N={new.batch}" if old.batch == new.batch else f", N={old.batch or '?'} -> {new.batch or '?'}"
    return f"{path} on {new.gpu}, {new.mode}{batch}"


def version_change(pair: Pair) -> str:
    """`framework 2.8.0 -> 2.9.1, cuDNN 9.10.2 -> ?`; empty where all versions are the same."""
    return ", ".join(
        f"{LIBRARIES.get(name, clean(name))} {before or '?'} -> {after or '?'}"
        for name, (before, after) in pair.versions.items()
    )


def figures(pair: Pair) -> Iterator[tuple[str, str, str, str]]:
    """What is known of both sides: step, convolutions, grade, memory, parameters and FLOPs, with their changes."""
    old, new = pair.old, pair.new
    times = [(step(new.mode), old.step_us, new.step_us), ("convolutions", old.time_us, new.time_us)]
    for name, before, after in times:
        if before is None or after is None:
            continue
        yield name, duration(before), duration(after), percent(before, after)
        if pair.per_image and (name == "convolutions") is (pair.measure == "time_us"):
            first, second = before / (old.batch or 1), after / (new.batch or 1)
            yield "  of one image", duration(first), duration(second), percent(first, second)
    if old.grade and new.grade:
        yield "grade", old.grade, new.grade, "" if old.grade != new.grade else "-"
    of = " of convolutions" if old.step_us is not None and new.step_us is not None else ""
    if old.memory is not None and new.memory is not None:
        yield f"memory{of}", binary(old.memory), binary(new.memory), percent(old.memory, new.memory)
    for name, was, now in (
        (f"parameters{of}", old.parameters, new.parameters), ("FLOPs forward", old.flops, new.flops),
    ):  # fmt: skip
        if was is not None and now is not None:
            yield name, count(was).strip(), count(now).strip(), percent(was, now)


def slower_first(pair: Pair) -> list[tuple[str, list[LayerChange]]]:
    """The layers that changed, by kind of change; in each kind the largest changes first."""
    kinds: tuple[tuple[str, Sequence[LayerChange]], ...] = (
        ("slower", [item for item in pair.layers if item.kind == "kept" and item.change_us > 0]),
        ("faster", [item for item in pair.layers if item.kind == "kept" and item.change_us < 0]),
        ("other sizes, the same time", [item for item in pair.layers if item.kind == "kept" and not item.change_us]),
        ("added", [item for item in pair.layers if item.kind == "added"]),
        ("removed", [item for item in pair.layers if item.kind == "removed"]),
    )
    return [(name, sorted(layers, key=lambda layer: -abs(layer.change_us))) for name, layers in kinds if layers]


def what_changed(change: LayerChange) -> str:
    """`C 256 -> 255, dtype fp32 -> fp16`."""
    return ", ".join(f"{name} {_value(was)} -> {_value(now)}" for name, (was, now) in change.changed.items())


def _value(value: object) -> str:
    return "?" if value is None else str(value)


def _time(time_us: float | None) -> str:
    return "-" if time_us is None else duration(time_us)


def verdict(comparison: Comparison) -> str:
    """The result of the comparison in one line."""
    words = [_verdict(comparison)] if comparison.pairs else []
    if comparison.broken:
        words.insert(0, plural(sum(len(pair.broken) for pair in comparison.broken), "new error"))
    unpriced = dict.fromkeys(entry.code for pair in comparison.pairs for entry in pair.appeared if not entry.priced)
    if codes := ", ".join(clean(rule) for rule in unpriced if rule):
        words.append(f"now said without a price: {codes}")
    if comparison.errors:
        words.insert(0, "incomplete")
    return "; ".join(words)


def _verdict(comparison: Comparison) -> str:
    slower, pairs = comparison.slower, comparison.pairs
    limit = f"{comparison.tolerance:g} %"
    if len(pairs) == 1 and pairs[0].change is not None:
        change = 100 * pairs[0].change
        if abs(change) < 0.05:
            return "as fast as before"
        words = f"{abs(change):.1f} % {'slower' if change > 0 else 'faster'}"
        if change >= _TIMES:
            words = f"{1 + change / 100:.1f} times as long as before"
        return f"{words}; {limit} more is the limit" if slower else words
    known = sum(pair.change is not None for pair in pairs)
    if slower:
        return f"{len(slower)} of {plural(known, 'network')} slower by more than {limit}"
    return f"no network slower by more than {limit}, of {known}" if known else "no time that could be compared"


def only_lines(comparison: Comparison) -> Iterator[str]:
    """Networks that one side alone has."""
    for paths, words in ((comparison.only_old, "no longer there"), (comparison.only_new, "new")):
        if paths:
            more = f" and {len(paths) - _MOST} more" if len(paths) > _MOST else ""
            yield f"{words}: {', '.join(map(clean_path, paths[:_MOST]))}{more}"


def of_interest(pair: Pair) -> bool:
    """Whether anything of the network changed."""
    return bool(pair.layers or pair.appeared or pair.gone or pair.versions) or bool(pair.change)


def render_text(comparison: Comparison, style: Style) -> str:
    """All networks that changed; the same words with and without colour."""
    paint, width = painter(style.color), style.table_width
    lines: list[str] = []
    pairs = sorted(filter(of_interest, comparison.pairs), key=lambda pair: -(pair.change or 0.0))
    for pair in pairs[:_MOST]:
        lines += [*wrapped(headline(pair), width), *_body(pair, paint, width), ""]
    if len(pairs) > _MOST:
        lines += [f"and {len(pairs) - _MOST} more networks that changed; --output json has all of them", ""]
    same = len(comparison.pairs) - len(pairs)
    if same and len(comparison.pairs) > 1:
        lines += [f"{plural(same, 'network')} as before", ""]
    for line in only_lines(comparison):
        lines += [*wrapped(line, width), ""]
    for error in comparison.errors:
        lines += error_lines(f"error: {fault(error)}", width, paint)
    first, *rest = wrapped(verdict(comparison), width - 2)
    ink = "poor" if comparison.slower or comparison.broken or comparison.errors else "good"
    return finished([*lines, paint(ink, first), *(f"  {line}" for line in rest), ""], unicode=style.unicode)


def _body(pair: Pair, paint: Paint, width: int) -> Iterator[str]:
    if words := version_change(pair):
        yield from wrapped(words, width, "  ")
    rows = [_TITLES, *figures(pair)]
    sizes = column_sizes(rows)
    head, *lines = [f"  {row(cells, sizes, 'lrrr')}" for cells in rows]
    yield paint("faint", head)
    yield from lines
    for kind, layers in slower_first(pair):
        yield f"  {kind}:"
        yield from _layer_lines(layers, width)
    for kind, findings in (("now said", pair.appeared), ("no longer said", pair.gone)):
        if findings:
            yield f"  {kind}:"
            for finding in findings[:_MOST]:
                first, *rest = wrapped(finding_line(finding), width - 4)
                yield f"    {first}"
                yield from (f"      {line}" for line in rest)
            if len(findings) > _MOST:
                yield f"    and {len(findings) - _MOST} more"


def _layer_lines(layers: Sequence[LayerChange], width: int) -> Iterator[str]:
    rows = [
        (clean(layer.name), _time(layer.before_us), _time(layer.after_us), percent(layer.before_us, layer.after_us))
        for layer in layers[:_MOST]
    ]
    sizes = column_sizes(rows)
    sizes[0] = min(sizes[0], max(16, width - 4 - sum(sizes[1:]) - 6))
    for layer, cells in zip(layers, rows, strict=False):
        line = f"    {row(cells, sizes, 'mrrr')}"
        changed = what_changed(layer)
        room = width - len(line) - 2
        if changed and room >= len(changed):
            line += f"  {changed}"
        yield line
        if changed and room < len(changed):
            yield from wrapped(changed, width, "      ")
    if len(layers) > _MOST:
        rest = sum(layer.change_us for layer in layers[_MOST:])
        yield f"    and {len(layers) - _MOST} more, {duration(abs(rest))} together"


def finding_line(finding: FindingFigures) -> str:
    """`warning CL102 conv2: C=62 should be ...`."""
    layer = f" {finding.layer}" if finding.layer else ""
    return f"{finding.severity} {finding.code}{layer}: {finding.message}"


def render_json(comparison: Comparison) -> str:
    """The comparison as one JSON object on one line; times in us, `null` for what is not known."""
    document = {
        "schema_version": 3,
        "convlint": __version__,
        "complete": not comparison.errors,
        "old": clean_path(comparison.old),
        "new": clean_path(comparison.new),
        "tolerance_percent": number(comparison.tolerance),
        "slower": len(comparison.slower),
        "new_errors": sum(len(pair.broken) for pair in comparison.pairs),
        "networks": [_pair_object(pair) for pair in comparison.pairs],
        "only_old": [clean_path(path) for path in comparison.only_old],
        "only_new": [clean_path(path) for path in comparison.only_new],
        "errors": [error_object(error) for error in comparison.errors],
    }
    return json.dumps(document, ensure_ascii=False, allow_nan=False) + "\n"


def _pair_object(pair: Pair) -> dict[str, Any]:
    change = pair.change
    return {
        "gpu": clean(pair.new.gpu),
        "mode": pair.new.mode,
        "compared": pair.measure,
        "per_image": pair.per_image,
        "change_percent": None if change is None else number(100 * change),
        "slower": pair.is_slower,
        "old": _side(pair.old),
        "new": _side(pair.new),
        "versions": {clean(name): plain(both) for name, both in pair.versions.items()},
        "layers": [
            {
                "name": clean(layer.name),
                "kind": layer.kind,
                "old_us": number(layer.before_us),
                "new_us": number(layer.after_us),
                "changed": {name: plain(both) for name, both in layer.changed.items()},
            }
            for layer in pair.layers
        ],
        "new_findings": [fields(finding, *_OF_FINDING) for finding in pair.appeared],
        "gone_findings": [fields(finding, *_OF_FINDING) for finding in pair.gone],
    }


def _side(network: NetworkFigures) -> dict[str, Any]:
    figures = fields(network, "path", "batch", "grade", "time_us", "step_us", "parameters", "flops")
    return {**figures, "memory_bytes": network.memory}


_OF_FINDING = ("code", "severity", "layer", "message")


def render_markdown(comparison: Comparison) -> str:
    """For a comment on a pull request: a table of networks, and the layers of those that became slower."""
    lines = [f"**convlint**: {prose(verdict(comparison))}", ""]
    pairs = [pair for pair in comparison.pairs if of_interest(pair)]
    if pairs:
        lines += ["| network | old | new | change | grade |", "|---|--:|--:|--:|---|"]
        lines += [_table_line(pair) for pair in pairs]
        lines.append("")
    for pair in pairs:
        if words := version_change(pair):
            lines += [f"{code(headline(pair))}: {prose(words)}", ""]
        kinds = [(kind, layers) for kind, layers in slower_first(pair) if kind in ("slower", "added")]
        if pair.is_slower and kinds:
            lines += [f"Of {code(headline(pair))}:", "", *_layer_items(kinds), ""]
        lines += [f"- now said: {prose(finding_line(finding))}" for finding in pair.appeared[:_MOST]]
        lines += [""] if pair.appeared else []
    lines += [f"- {prose(line)}" for line in only_lines(comparison)]
    lines += [f"- error: {prose(fault(error))}" for error in comparison.errors]
    return "\n".join(lines).rstrip() + "\n"


def _table_line(pair: Pair) -> str:
    before, after = getattr(pair.old, pair.measure), getattr(pair.new, pair.measure)
    change = "?" if pair.change is None else f"{100 * pair.change:+.1f} %"
    grades = " -> ".join(dict.fromkeys(grade or "?" for grade in (pair.old.grade, pair.new.grade)))
    cells = (code(headline(pair)), _time(before), _time(after), f"**{change}**" if pair.is_slower else change, grades)
    return f"| {' | '.join(cells)} |"


def _layer_items(kinds: Iterable[tuple[str, Sequence[LayerChange]]]) -> Iterator[str]:
    for kind, layers in kinds:
        for layer in layers[:_MOST]:
            changed = f" ({prose(what_changed(layer))})" if layer.changed else ""
            yield f"- {kind}: {code(layer.name)} {_time(layer.before_us)} -> {_time(layer.after_us)}{changed}"
        if len(layers) > _MOST:
            yield f"- {kind}: {len(layers) - _MOST} more"
