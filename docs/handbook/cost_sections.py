"""What a rule costs, as a section of its page."""

from __future__ import annotations

from convlint.files.languages import duration
from convlint.gpus.gpu import Gpu
from convlint.model.layer import OF_STEPS
from convlint.rulebook.rule import Rule
from handbook.charts import Bar, bars
from handbook.examples import lines, shown
from handbook.markup import block, code
from handbook.prices import Price, Prices, is_something, prices


def section(rule: Rule) -> list[str]:
    """The section on its costs: a drawing with bars for three GPUs, or why there is none."""
    found = prices(rule)
    out = ["## What it costs", ""]
    if found is None:
        if rule.loss == "none" or rule.loss in OF_STEPS:
            return [*out, "It has no price: what it finds is right or wrong, or costs what no estimate can say.", ""]
        return [*out, "None of its examples loses time by it on the GPUs that were tried.", ""]
    if list(lines(found.given)) == list(lines(shown(rule).given)):
        out += ["The example above, predicted on three GPUs, with this rule alone:", ""]
    else:
        out += ["This example, predicted on three GPUs, with this rule alone:", "", *block(lines(found.given), "yaml")]
    if found.filled:
        out += [f"The rule's own example leaves {', '.join(map(code, found.filled))} open.", ""]
    out += bars([_bar(row) for row in found.rows], f"What {rule.info.code} costs on three GPUs")
    return [*out, _legend(found), ""]


def _legend(found: Prices) -> str:
    kinds = dict.fromkeys(_kind(row) for row in found.rows if _kind(row) != "plain")
    words = {"saved": "what the fix saves, alone", "idle": "what is paid for tiles or waves that stay empty"}
    marked = " and ".join(f'<span class="key {kind}"></span> {words[kind]}' for kind in kinds)
    return (
        f"Bars are times of the three passes together (of fprop alone in inference), with {marked}. What these "
        "predictions rest on, and how far off they are, is on the page about [accuracy](../accuracy.md)."
    )


def _kind(row: Price) -> str:
    return "saved" if is_something(row.lost_us) else "idle" if is_something(row.capacity_us) else "plain"


def _bar(row: Price) -> Bar:
    kind = _kind(row)
    name = short_name(row.gpu)
    if row.time_us is None:
        return Bar(name=name, value=0.0, words=row.message or "no time can be predicted")
    if kind == "plain":
        words = "nothing lost" if row.message else "silent"
        return Bar(name=name, value=row.time_us, words=f"{duration(row.time_us)}, {words}")
    part = (row.lost_us if kind == "saved" else row.capacity_us) or 0.0
    share = f"{duration(part)} ({100 * part / row.time_us:.0f} %)"
    words = f"{duration(row.time_us)}, {share} {'saved by the fix' if kind == 'saved' else 'for nothing'}"
    return Bar(name=name, value=row.time_us, marked=part, words=words, kind=kind)


def short_name(gpu: Gpu) -> str:
    """`V100` for v100-sxm2-16gb."""
    return gpu.id.split("-")[0].upper()
