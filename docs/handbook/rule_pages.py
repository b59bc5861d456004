"""A page for each rule, and the index of all: what the rule's file says, what its examples give, what it costs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from convlint.cli.commands.rules import JUDGED, severity_in_words
from convlint.facts.layer import QUANTITIES
from convlint.facts.source_layers import OF_SOURCE
from convlint.files.located_yaml import Value
from convlint.reporters.words import CHANGES, DOCUMENT_URLS, HOME, advice, origin
from convlint.rulebook.file import SUPPRESSION_MEANINGS
from convlint.rulebook.rule import SOURCE_SCOPES, Fragments, Message, Rule, Template
from handbook.cost_sections import section
from handbook.examples import document, lines, passing, shown
from handbook.markup import block, code, table, text
from handbook.scripts import PAIRS, Pair, findings, script

# what a finding can point at, in words
_SCOPES = {
    "layer": "each convolution",
    "edge": "each pair of convolutions of which one reads what the other writes",
    "network": "the network as a whole, its runtime and its target",
    "suppression": "what silences findings: comments and entries of the config",
    "construction": "Python source, where a convolution is constructed",
    "width": "Python source, where a number of channels is written",
    "program": "Python source, a script that trains",
}
_FAMILIES = {
    "geometry": "CL0: geometry",
    "channels": "CL1: channels and types",
    "quantization": "CL2: tiles and waves",
    "parallelism": "CL3: parallelism and limits",
    "layout": "CL4: layout",
    "algorithm": "CL5: algorithms and settings",
    "variants": "CL6: kinds of convolution",
    "architecture": "CL7: GPUs and libraries",
    "feasibility": "CL8: what fits and what exists",
    "cliffs": "CL811 and on: versions, sizes and forms that are known to be slow",
    "suppression": "CL9: suppressions",
}
_PRICES = {
    "none": "none",
    "fix": "what its fix saves",
    "tile": "tiles that stay empty",
    "wave": "waves that stay empty",
    "host": "what of the step waits for the host",
    "compile": "what torch.compile saves of the step",
}
_PASSING = 3  # examples that are shown


def family_of(rule: Rule) -> str:
    """The heading of its family, which is its folder."""
    return _FAMILIES[Path(rule.path).parent.name]


def index(rules: Iterable[Rule]) -> str:
    """All rules, by family."""
    rules = list(rules)
    out = [
        "# Rules",
        "",
        f"There are {len(rules)} of them. Each is one YAML file, of which its page is made; a code is never used "
        "twice. The severity is the one that the rule states: what it costs may make an info of a warning.",
        "",
    ]
    for heading in _FAMILIES.values():
        rows = [
            (
                f"[{rule.info.code}]({rule.info.code}.md)", code(rule.info.name), rule.info.severity,
                text(rule.info.title) + (" (opt-in)" if rule.opt_in else ""),
            )
            for rule in rules
            if family_of(rule) == heading
        ]  # fmt: skip
        out += [f"## {heading}", "", *table(("code", "name", "severity", "what it finds"), rows)]
    return "\n".join(out)


def page(rule: Rule, rules: Iterable[Rule]) -> str:
    """The page of one rule, which leads to the others of its family."""
    info = rule.info
    row = (info.severity, _SCOPES[rule.scope], _fix(rule), _PRICES[rule.loss])
    out = [
        "---", f"title: {info.code} {info.name}", "---", "",
        f"# {info.code} {info.name}", "",
        f"**{text(info.title)}.**", "",
        *table(("severity", "judges", "fix", "price"), [row]),
        "## Why", "", text(info.rationale), "",
        *_before_and_after(rule),
        *section(rule),
        *_condition(rule),
        *_silent(rule),
        *_in_source(rule),
        "## Severity", "", text(severity_in_words(rule)), "",
        "## Source", "", _source(rule), "",
        f"The rule itself: [{_file(rule)}]({HOME}/blob/main/{_file(rule)}); in a terminal, "
        f"`convlint rule {info.code}`.", "",
        _family(rule, rules), "",
    ]  # fmt: skip
    return "\n".join(out)


def _family(rule: Rule, rules: Iterable[Rule]) -> str:
    heading = family_of(rule)
    links = [
        f"[{each.info.code}]({each.info.code}.md)" if each is not rule else f"**{each.info.code}**"
        for each in rules
        if family_of(each) == heading
    ]
    return f"{heading}: {', '.join(links)}. [All rules](index.md)."


def _file(rule: Rule) -> str:
    path = Path(rule.path)
    return f"rules/{path.parent.name}/{path.name}"


def _fix(rule: Rule) -> str:
    spec = rule.cases[-1].fix or next((case.fix for case in rule.cases if case.fix is not None), None)
    if spec is None:
        return "none"
    return "safe" if spec.safety == "safe" else CHANGES[spec.changes]


def _condition(rule: Rule) -> list[str]:
    top = document(rule)
    out = ["## What it asks", ""]
    if "when" in top:
        out += ["Where this holds:", "", *block(_wrapped(top["when"]), "python")]
    if "let" in top:
        given = [line for name, value in top["let"].data.items() for line in _wrapped(value, f"{name} = ")]
        out += ["with", "", *block(given, "python")]
    out += ["this must hold:", "", *block(_wrapped(top["check"]), "python")]
    said = list(dict.fromkeys(words for case in reversed(rule.cases) for words in _messages(case.message)))
    out += ["Where it does not, it says:" if len(said) == 1 else "Where it does not, it says one of:", ""]
    return [*out, *(f"- {code(words)}" for words in said), ""]


def _wrapped(value: Value, start: str = "") -> list[str]:
    """An expression in lines that are not longer than a page; they are broken before `and` and `or`."""
    words = start + " ".join(str(value.data).split())
    if len(words) <= 90:
        return [words]
    parts = re.split(r" (?=(?:and|or|if|else) )", words)
    out = [parts[0]]
    for part in parts[1:]:
        if len(out[-1]) + 1 + len(part) <= 90:
            out[-1] += f" {part}"
        else:
            out.append(f"    {part}")
    return out


def _messages(message: Message) -> list[str]:
    if isinstance(message, Fragments):
        return [_template(each) for _, each in message.pieces]
    return [_template(message)]


def _template(template: Template) -> str:
    return "".join(part if isinstance(part, str) else f"{{{part[0]}}}" for part in template.parts)


def _silent(rule: Rule) -> list[str]:
    out = ["## When it is silent", ""]
    if rule.opt_in:
        out += ["- unless it is asked for (`--extend-select`): it is opt-in;"]
    if rule.info.evidence:
        out += ["- in text, where its infos are only counted: they say where time goes, and ask for no change;"]
    if "when" in document(rule):
        out += ["- where its condition above does not hold;"]
    if rule.yields_to:
        codes = ", ".join(f"[{each}]({each}.md)" for each in sorted(rule.yields_to))
        out += [f"- where {codes} speaks of the same place;"]
    out += [f"- where a comment, the config or a baseline silences it, as `# convlint: ignore[{rule.info.code}]`."]
    known = {**QUANTITIES, **OF_SOURCE}
    meanings = {**{name: row.meaning for name, row in known.items()}, **SUPPRESSION_MEANINGS}
    read = sorted((name for name in rule.names() if name in meanings), key=str.casefold)
    if read:
        out += [
            "", "It reads this. Where a value that decides is not known, it is skipped, and the report says so.",
            "", *table(("name", "what it is"), [(code(name), text(meanings[name])) for name in read]),
        ]  # fmt: skip
    examples = passing(rule, _PASSING)
    spec = [line for number, given in enumerate(examples) for line in (*(["---"] if number else []), *lines(given))]
    return [*out, "", "These pass:", "", *block(spec, "yaml")]


def _before_and_after(rule: Rule) -> list[str]:
    if rule.scope in SOURCE_SCOPES and (pair := PAIRS.get(rule.info.code)):
        return ["## Before and after", "", *_in_a_script(pair)]
    example = shown(rule)
    what = "What was read" if example.of_source or rule.scope == "suppression" else "Before"
    out = ["## Before and after", "", f"{what}:", "", *block(lines(example.given), "yaml")]
    out += [f"> {text(example.message)}", ""]
    if example.finding is not None and example.finding.fix is not None:
        out += [f"Fix: {text(advice(example.finding.fix))}.", ""]
    if example.mended is not None:
        out += ["After:", "", *block(lines(example.mended), "yaml")]
    return out


def _in_source(rule: Rule) -> list[str]:
    judging = rule if rule.scope in SOURCE_SCOPES else rule.in_source
    if judging is None:
        return []
    out = ["## In Python source", "", f"It judges {JUDGED[judging.scope]}.", ""]
    said = list(dict.fromkeys(words for case in reversed(judging.cases) for words in _messages(case.message)))
    out += ["There it says:", "", *(f"- {code(words)}" for words in said), ""]
    if rule.scope not in SOURCE_SCOPES and (pair := PAIRS.get(rule.info.code)):
        out += _in_a_script(pair)
    if rule.in_source is not None and judging.cases[-1].severity != rule.cases[-1].severity:
        out += [f"Its severity there is {judging.cases[-1].severity}.", ""]
    return out


def _in_a_script(pair: Pair) -> list[str]:
    """A part of a script before and after, and what a check of the whole script says."""
    (finding,) = findings(script(pair.part, pair.before))
    out = ["Before, in a script that trains:", "", *block(pair.before.split("\n"), "python")]
    out += [f"> {text(finding.message)}", ""]
    if finding.fix is not None:
        out += [f"Fix: {text(advice(finding.fix))}.", ""]
    return [*out, "After:", "", *block(pair.after.split("\n"), "python")]


def _source(rule: Rule) -> str:
    address = DOCUMENT_URLS.get(rule.info.source.document)
    words = text(origin(rule.info))
    return f"[{words}]({address})." if address else f"{words}."
