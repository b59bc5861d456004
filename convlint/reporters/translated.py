"""A report in another language than English: the one place where texts of findings are translated."""

from __future__ import annotations

from msgspec.structs import replace

from convlint.files.languages import tidied
from convlint.files.languages.catalogue import catalogue
from convlint.model.report import Finding, Report, RuleInfo
from convlint.model.text import Text, fill


def in_language(report: Report, language: str) -> Report:
    """The report with its findings, rules and what these lack in a language that is not English, as far as known."""
    translator = Translator(language)
    return replace(
        report,
        findings=tuple(map(translator.finding, report.findings)),
        suppressed=tuple(replace(entry, finding=translator.finding(entry.finding)) for entry in report.suppressed),
        rules=tuple(map(translator.rule, report.rules)),
        skipped=tuple(replace(skip, needs=tuple(map(translator.text, skip.needs))) for skip in report.skipped),
    )


class Translator:
    """Shows texts in a language that is not English."""

    def __init__(self, language: str) -> None:
        self._known = catalogue(language)
        self._rules: dict[RuleInfo, RuleInfo] = {}  # many findings share a rule

    def text(self, text: str) -> str:
        """The text in the language; a plain string stays as it is."""
        return tidied(self._text(text))

    def _text(self, text: str) -> str:
        if not isinstance(text, Text):
            return text
        known, code = self._known, text.code
        template = known.of_rule(code, text.template) if code else known.sentence(text.template)
        if template is None:  # a rule of the user's own
            return fill(text.template, {field: self._text(value) for field, value in text.values.items()})
        return fill(template, {field: self._value(value, field, code) for field, value in text.values.items()})

    def _value(self, value: str, field: str, code: str) -> str:
        """A text translated, and a word that the rule chose; names that stand in an input stay."""
        if not code or isinstance(value, Text) or "." in field:
            return self._text(value)
        return self._known.of_rule(code, value) or self._known.sentence(value)

    def finding(self, finding: Finding) -> Finding:
        """The finding with its message, its fix and its alternatives."""
        fix = finding.fix
        if fix is not None:
            fix = replace(fix, describe=self.text(fix.describe), no_edit=self.text(fix.no_edit))
        others = tuple(replace(other, describe=self.text(other.describe)) for other in finding.alternatives)
        rule, message = self.rule(finding.rule), self.text(finding.message)
        return replace(finding, rule=rule, message=message, fix=fix, alternatives=others)

    def rule(self, info: RuleInfo) -> RuleInfo:
        """The rule with its title and rationale."""
        if info not in self._rules:
            title, rationale = (self._known.of_rule(info.code, text) or text for text in (info.title, info.rationale))
            self._rules[info] = replace(info, title=title, rationale=rationale)
        return self._rules[info]
