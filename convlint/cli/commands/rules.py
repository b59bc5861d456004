"""`convlint rule`: documents a rule from its file, lists all rules, or tests a folder of rules."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Mapping, Sequence

from convlint.cli.streams.gate import style_of, write
from convlint.config.find import Configs
from convlint.engine.hits import SAID_SHARE, SAVING_SHARE, STEP_SHARE, WARNING_SHARE
from convlint.files.languages import (
    ENGLISH,
    is_english,
    language_chosen,
    plural,
    rule_text,
    say,
    sentence,
    speaking,
    spoken,
)
from convlint.files.located_yaml import Value, parse, read_text
from convlint.files.safe import ascii_only, clean
from convlint.mend.examples import example_findings, run_examples
from convlint.model.errors import RuleError, UsageError
from convlint.model.layer import OF_STEPS
from convlint.reporters.ink import wrap
from convlint.reporters.translated import Translator
from convlint.reporters.words import CHANGES, page_of
from convlint.rulebook.book import Rulebook, linked, load_rulebook, rule_files
from convlint.rulebook.file import read_rule
from convlint.rulebook.rule import SOURCE_SCOPES, Rule


def run(key: str | None, test: str | None, folders: Sequence[str], color: str, language: str | None = ENGLISH) -> int:
    """Prints and returns the exit code. Raises UsageError for an unknown rule, RuleError for a defective one.

    Where the `language` is None, the config of the current folder says it.
    """
    if test is not None:
        return _test(test)
    chosen = language_chosen(language, lambda: Configs().of_folder(os.getcwd()).lang)
    rulebook = load_rulebook(folders)
    rule = None if key is None else rulebook.find(key)
    if key is not None and rule is None:
        raise UsageError(f"unknown rule {key!r}{rulebook.suggestion(key)}")
    style = style_of(sys.stdout, color)
    with speaking(chosen):
        text = _list(rulebook) if rule is None else document(rule, min(100, style.width))
    write(sys.stdout, text if style.unicode or chosen == ENGLISH else ascii_only(text))
    return 0


def _list(rulebook: Rulebook) -> str:
    width = max(len(rule.info.name) for rule in rulebook.rules)
    lines = []
    for rule in rulebook.rules:
        info = rule.info
        opt_in = say(" (opt-in)") if rule.opt_in else ""
        title = rule_text(info.code, info.title)
        lines.append(clean(f"{info.code}  {info.name:<{width}}  {info.severity:<7}  {title}{opt_in}"))
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
    write(sys.stdout, f"{plural(len(rules), 'rule')}, {plural(total, 'example')}: {failed} failed")
    return 1 if failed else 0


def document(rule: Rule, width: int) -> str:
    """What the rule is, why, how to fix it, an example that passes and one that fails, and its source."""
    info = rule.info
    parsed = parse(read_text(rule.path))
    assert parsed is not None
    top = parsed.data
    title, why = (one_line(rule_text(info.code, text)) for text in (info.title, info.rationale))
    lines = [f"{info.code} {info.name} ({info.severity})", "", *_wrap(say("{title}.", title=title), width), ""]
    lines += [say("Why"), *_wrap(why, width, "  "), ""]
    if "when" in top:
        lines += [say("Applies when"), *_wrap(one_line(top["when"].data), width, "  "), ""]
    if "let" in top:
        lines += [say("With"), *_definitions(top["let"], width), ""]
    lines += [say("Must hold"), *_wrap(one_line(top["check"].data), width, "  "), ""]
    if isinstance(top["message"].data, list):
        lines += [say("Says, joined by commas"), *_fragments(info.code, top["message"], width), ""]
    if "fix" in top and not top["fix"].is_null:
        fix = top["fix"].data
        spec = rule.cases[-1].fix
        changes = "" if spec is None or spec.safety == "safe" else say(" ({effect})", effect=say(CHANGES[spec.changes]))
        describe = one_line(rule_text(info.code, fix["describe"].data.strip()))
        lines += [say("Fix"), *_wrap(describe + changes, width, "  "), ""]
    lines += _in_source(top, rule, width)
    for item in top["examples"].data["fail"].data[:1]:
        lines += [say("Fails"), f"  {clean(flow(item.data['given']))}"]
        if "message" in item.data:
            lines += _wrap(f"-> {one_line(_message(rule, item))}", width, "  ")
        if "fixed" in item.data:
            lines.append("  " + say("fixed by {changes}", changes=clean(flow(item.data["fixed"]))))
        lines.append("")
    lines += [say("Passes"), f"  {clean(flow(top['examples'].data['pass'].data[0]))}", ""]
    lines += [say("Severity"), *_wrap(severity_in_words(rule), width, "  "), ""]
    if rule.yields_to:
        lines += [*_wrap(say("Silent where {codes} speaks.", codes=", ".join(sorted(rule.yields_to))), width), ""]
    section = info.source.section
    source = clean(say("Source: {document}, {section}", document=info.source.document, section=section))
    lines += _wrap(source, width)
    if page := page_of(info):
        lines.append(say("Page: {address}", address=page))
    return "\n".join(lines)


def _message(rule: Rule, item: Value) -> str:
    """What a failing example says, in another language than English by being run."""
    english: str = item.data["message"].data
    findings = () if is_english() else example_findings(rule, item.data["given"])[0]
    return Translator(spoken()).text(findings[0].message) if findings else english


JUDGED = {
    "construction": sentence("a convolution where it is constructed; broken where all that one place constructs are"),
    "width": sentence("each C and K of a convolution that is constructed, joined by the literal that makes the number"),
    "program": sentence("a script that trains, with all that it imports"),
}


def _in_source(top: Mapping[str, Value], rule: Rule, width: int) -> list[str]:
    """What it judges in Python source and, where that is not its own scope, what it says there instead."""
    judging = rule if rule.scope in SOURCE_SCOPES else rule.in_source
    if judging is None:
        return []
    own = top["source_code"].data if rule.in_source is not None else {}
    code = rule.info.code
    texts = [say("Judges {what}.", what=say(JUDGED[judging.scope]))]
    for key, word in (("severity", say("Severity")), ("when", say("Applies when")), ("check", say("Must hold"))):
        texts += [say("{word}: {text}", word=word, text=one_line(own[key].data))] if key in own else []
    lines = [say("In Python source"), *_hanging(texts, width)]
    if "let" in own:
        lines += ["  " + say("With"), *(f"  {line}" for line in _definitions(own["let"], width - 2))]
    if "message" in own:
        message = own["message"]
        listed = isinstance(message.data, list)
        text = "" if listed else one_line(rule_text(code, message.data.strip()))
        message_lines = _fragments(code, message, width - 2) if listed else _hanging([text], width - 2)
        lines += ["  " + say("Says"), *(f"  {line}" for line in message_lines)]
    return [*lines, ""]


def severity_in_words(rule: Rule) -> str:
    """What decides it, in words: the rule, the price of its fix, or the time per image."""
    if rule.info.severity == "error":
        return say("An error stands, whatever it costs; a fix that can be priced has its share of the time lost.")
    if rule.loss == "none":
        return say("It has no price: its findings have the severity that the rule states.")
    if rule.loss in OF_STEPS:
        return say("By its share of the step: from {share} on it is a warning, else info.", share=_percent(STEP_SHARE))
    if all(case.severity == "info" for case in rule.cases):
        return say("Info, whatever it costs, and no part of what all advice saves.")
    if rule.loss != "fix":
        return say("Info: what tiles and waves leave unused is evidence, and other sizes are alternatives.")
    return say(
        "By price: of advised findings those that lose {share} of the network's time are warnings; where these come to "
        "less than {said} of what all advice saves, and that is {saving} or more, the largest next ones are too; else "
        "info.",
        share=_percent(WARNING_SHARE), said=_percent(SAID_SHARE), saving=_percent(SAVING_SHARE),
    )  # fmt: skip


def _percent(share: float) -> str:
    """`2 %`."""
    return f"{100 * share:g} %"


def _definitions(let: Value, width: int) -> list[str]:
    """`name = expression`, each with its further lines set in."""
    return _hanging([f"{name} = {one_line(value.data)}" for name, value in let.data.items()], width)


def _fragments(code: str, message: Value, width: int) -> list[str]:
    """`text (where condition)` for each fragment of a message."""
    texts = []
    for item in message.data:
        condition = one_line(item.data["when"].data) if "when" in item.data else ""
        when = say(" (where {condition})", condition=condition) if condition else ""
        texts.append(one_line(rule_text(code, item.data["text"].data.strip())) + when)
    return _hanging(texts, width)


def _hanging(texts: Sequence[str], width: int) -> list[str]:
    if not is_english():  # textwrap counts a wide character as one column, and breaks only at spaces
        broken = (wrap(text, width - 6) for text in texts)
        return [f"{' ' * (6 if number else 2)}{line}" for lines in broken for number, line in enumerate(lines)]
    return [
        line
        for text in texts
        for line in textwrap.wrap(text, width, initial_indent="  ", subsequent_indent="      ", break_on_hyphens=False)
    ]


def _wrap(text: str, width: int, indent: str = "") -> list[str]:
    if not is_english():
        return [indent + line for line in wrap(text, width - len(indent))]
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
