"""A report in one language: of every text that the engine has said in two, one half is kept."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from convlint.files.languages import ENGLISH
from convlint.files.languages.catalogue import Catalogue, catalogue
from convlint.files.languages.saying import english_of, other_of, tidied
from convlint.model.report import Finding, Report, RuleInfo


def in_language(report: Report, language: str) -> Report:
    """The report of a run in two languages as this one has it; of a run in English alone, the report itself."""
    if language == ENGLISH:
        return _Half(english_of, None).report(report)
    return _Half(lambda text: tidied(other_of(text)), catalogue(language)).report(report)


def title_of(rule: RuleInfo, known: Catalogue) -> RuleInfo:
    """The rule with its title and rationale in another language, as far as they are translated."""
    title, rationale = (known.of_rule(rule.code, text) or text for text in (rule.title, rule.rationale))
    return replace(rule, title=title, rationale=rationale)


class _Half:
    def __init__(self, half: Callable[[str], str], known: Catalogue | None) -> None:
        self.half, self.known = half, known
        self._infos: dict[int, tuple[RuleInfo, RuleInfo]] = {}  # by id: the rule, which is kept alive, and as it reads

    def report(self, report: Report) -> Report:
        return replace(
            report,
            findings=tuple(map(self._finding, report.findings)),
            suppressed=tuple(replace(each, finding=self._finding(each.finding)) for each in report.suppressed),
            errors=tuple(replace(each, message=self.half(each.message)) for each in report.errors),
            rules=tuple(map(self._info, report.rules)),
        )

    def _finding(self, finding: Finding) -> Finding:
        fix = finding.fix
        if fix is not None:
            fix = replace(fix, describe=self.half(fix.describe), no_edit=self.half(fix.no_edit))
        others = tuple(replace(each, describe=self.half(each.describe)) for each in finding.alternatives)
        rule, message = self._info(finding.rule), self.half(finding.message)
        return replace(finding, rule=rule, message=message, fix=fix, alternatives=others)

    def _info(self, info: RuleInfo) -> RuleInfo:
        if self.known is None:
            return info
        if id(info) not in self._infos:
            self._infos[id(info)] = info, title_of(info, self.known)
        return self._infos[id(info)][1]
