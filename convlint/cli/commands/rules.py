"""`convlint rule`: a rule's documentation from its file, the list of all rules, and the test of a folder of rules."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Mapping, Sequence

from convlint.cli.streams.output import style_of, write
from convlint.engine.severity import (
    MOST_WIDENING,
    WARNING_BATCH_GAIN,
    WARNING_CAPACITY,
    WARNING_CAPACITY_NETWORK,
    WARNING_LAYER,
    WARNING_RULE,
    WARNING_SHARE,
)
from convlint.errors import RuleError, UsageError
from convlint.files.located_yaml import Value, parse, read_text
from convlint.files.safe import clean
from convlint.linting.rule_examples import run_examples
from convlint.reporters.addresses import page_of
from convlint.reporters.words import CHANGES
from convlint.rulebook.book import Rulebook, linked, load_rulebook
from convlint.rulebook.file import read_rule
from convlint.rulebook.folders import rule_files
from convlint.rulebook.rule import SOURCE_SCOPES, Rule


def run(key: str | None, test: str | None, folders: Sequence[str], color: str) -> int:
    """Prints and returns the exit code. Raises UsageError for an unknown rule, RuleError for a defective one."""
    if test is not None:
        return _test(test)
    rulebook = load_rulebook(folders)
    if key is None:
        write(sys.stdout, _list(rulebook))
        return 0
    rule = rulebook.find(key)
    if rule is None:
        raise UsageError(f"unknown rule {key!r}{rulebook.suggestion(key)}")
    write(sys.stdout, document(rule, min(100, style_of(sys.stdout, color).width)))
    return 0


def _list(rulebook: Rulebook) -> str:
    width = max(len(rule.info.name) for rule in rulebook.rules)
    lines = []
    for rule in rulebook.rules:
        info = rule.info
        opt_in = " (opt-in)" if rule.opt_in else ""
        lines.append(clean(f"{info.code}  {info.name:<{width}}  {info.severity:<7}  {info.title}{opt_in}"))
    return "\n".join(lines)


def _test(folder: str) -> int:
    """Runs the examples of all rules in `folder`, which may reuse codes of the built-in ones."""
    if not os.path.isdir(folder):
        raise RuleError("is not a folder of rules", path=folder)
    paths = rule_files(folder)
    if not paths:
        raise RuleError("holds no rule (*.yaml)", path=folder)
    rules = linked([read_rule(path) for path in paths], load_rulebook().rules)
    total = failed = 0
    for rule in rules:
        for outcome in run_examples(rule):
            total += 1
            if outcome.problem is not None:
                failed += 1
                write(sys.stdout, clean(f"{outcome.path}:{outcome.line}: {outcome.code} {outcome.problem}"))
    write(sys.stdout, f"{len(rules)} rules, {total} examples: {failed} failed")
    return 1 if failed else 0


def document(rule: Rule, width: int) -> str:
    """What the rule is, why, how to fix it, an example that passes and one that fails, and its source."""
    info = rule.info
    parsed = parse(read_text(rule.path))
    assert parsed is not None
    top = parsed.data
    lines = [f"{info.code} {info.name} ({info.severity})", "", *_wrap(one_line(info.title) + ".", width), ""]
    lines += ["Why", *_wrap(one_line(info.rationale), width, "  "), ""]
    if "when" in top:
        lines += ["Applies when", *_wrap(one_line(top["when"].data), width, "  "), ""]
    if "let" in top:
        lines += ["With", *_definitions(top["let"], width), ""]
    lines += ["Must hold", *_wrap(one_line(top["check"].data), width, "  "), ""]
    if isinstance(top["message"].data, list):
        lines += ["Says, joined by commas", *_fragments(top["message"], width), ""]
    if "fix" in top and not top["fix"].is_null:
        fix = top["fix"].data
        spec = rule.cases[-1].fix
        changes = "" if spec is None or spec.safety == "safe" else f" ({CHANGES[spec.changes]})"
        lines += ["Fix", *_wrap(one_line(fix["describe"].data) + changes, width, "  "), ""]
    lines += _in_source(top, rule, width)
    for item in top["examples"].data["fail"].data[:1]:
        lines += ["Fails", f"  {clean(flow(item.data['given']))}"]
        if "message" in item.data:
            lines += _wrap(f"-> {one_line(item.data['message'].data)}", width, "  ")
        if "fixed" in item.data:
            lines.append(f"  fixed by {clean(flow(item.data['fixed']))}")
        lines.append("")
    lines += ["Passes", f"  {clean(flow(top['examples'].data['pass'].data[0]))}", ""]
    lines += ["Severity", *_wrap(severity_in_words(rule), width, "  "), ""]
    if rule.yields_to:
        lines += [f"Silent where {', '.join(sorted(rule.yields_to))} speaks.", ""]
    lines.append(clean(f"Source: {info.source.document}, {info.source.section}"))
    if page := page_of(info):
        lines.append(f"Page: {page}")
    return "\n".join(lines)


JUDGED = {
    "construction": "a convolution where it is constructed; broken where all that one place constructs are",
    "width": "each C and K of a convolution that is constructed, joined by the literal that makes the number",
    "program": "a script that trains, with all that it imports",
}


def _in_source(top: Mapping[str, Value], rule: Rule, width: int) -> list[str]:
    """What it judges in Python source and, where that is not its own scope, what it says there instead."""
    judging = rule if rule.scope in SOURCE_SCOPES else rule.in_source
    if judging is None:
        return []
    own = top["source_code"].data if rule.in_source is not None else {}
    texts = [f"Judges {JUDGED[judging.scope]}."]
    for key, word in (("severity", "Severity"), ("when", "Applies when"), ("check", "Must hold")):
        texts += [f"{word}: {one_line(own[key].data)}"] if key in own else []
    lines = ["In Python source", *_hanging(texts, width)]
    if "let" in own:
        lines += ["  With", *(f"  {line}" for line in _definitions(own["let"], width - 2))]
    if "message" in own:
        message = own["message"]
        listed = isinstance(message.data, list)
        said = _fragments(message, width - 2) if listed else _hanging([one_line(message.data)], width - 2)
        lines += ["  Says", *(f"  {line}" for line in said)]
    return [*lines, ""]


def severity_in_words(rule: Rule) -> str:
    """What decides it, in words: the rule, the price of its fix, or the time per image."""
    if rule.info.severity == "error":
        return "An error stands, whatever it costs; a fix that can be priced has its share of the time lost."
    if rule.loss == "none":
        return "It has no price: its findings have the severity that the rule states."
    if all(case.severity == "info" for case in rule.cases):
        return "Info, whatever it costs, and no part of what all advice saves."
    if rule.loss == "wave":
        return f"For another batch, a warning from {_percent(WARNING_BATCH_GAIN)} less time per image on; else info."
    lost = (
        f"a warning where its share of the time lost is {_percent(WARNING_SHARE)} of its layer's time or more, that of "
        f"all advice on the layer {_percent(WARNING_LAYER)}, and that of all findings of this rule "
        f"{_percent(WARNING_RULE)} of the network's"
    )
    if rule.loss == "fix":
        return f"By price: {lost}; else info."
    wider = (
        f"{_percent(WARNING_CAPACITY)} of the layer's time and {_percent(WARNING_CAPACITY_NETWORK)} of the network's "
        f"pay for tiles that it leaves empty, and a fix that widens {_percent(MOST_WIDENING)} at most takes no longer"
    )
    return f"By price: {lost}; or where {wider}; else info."


def _percent(share: float) -> str:
    """`2 %`."""
    return f"{100 * share:g} %"


def _definitions(let: Value, width: int) -> list[str]:
    """`name = expression`, each with its further lines set in."""
    return _hanging([f"{name} = {one_line(value.data)}" for name, value in let.data.items()], width)


def _fragments(message: Value, width: int) -> list[str]:
    """`text (where condition)` for each fragment of a message."""
    texts = []
    for item in message.data:
        when = f" (where {one_line(item.data['when'].data)})" if "when" in item.data else ""
        texts.append(one_line(item.data["text"].data) + when)
    return _hanging(texts, width)


def _hanging(texts: Sequence[str], width: int) -> list[str]:
    return [
        line
        for text in texts
        for line in textwrap.wrap(text, width, initial_indent="  ", subsequent_indent="      ", break_on_hyphens=False)
    ]


def _wrap(text: str, width: int, indent: str = "") -> list[str]:
    return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=indent)


def one_line(text: str) -> str:
    """The text with single spaces, and with nothing in it that steers a terminal."""
    return clean(" ".join(str(text).split()))


def flow(value: Value) -> str:
    """A Value as YAML's flow style, to be copied into a spec."""
    if isinstance(value.data, dict):
        return "{ " + ", ".join(f"{key}: {flow(item)}" for key, item in value.data.items()) + " }"
    if isinstance(value.data, list):
        return "[" + ", ".join(flow(item) for item in value.data) + "]"
    return str(value.data) if value.plain else f'"{value.data}"'
