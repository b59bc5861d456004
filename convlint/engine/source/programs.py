"""Rules on programs that train: which of them are broken by which statement, and what could not be checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from convlint.engine.evaluate import Evaluator
from convlint.engine.source.draft import Draft, Member
from convlint.engine.source.places import of_program
from convlint.facts.source import of_program as facts_of_program
from convlint.facts.target import TargetFacts
from convlint.model.layer import ConvLayer, Dtype
from convlint.model.source import Program
from convlint.report import Skipped
from convlint.rulebook.rule import Rule


def programs(
    rules: Sequence[Rule], found: Sequence[Program], context: Mapping[str, TargetFacts], dtype: Dtype | None
) -> tuple[list[Draft], list[Skipped]]:
    """(one draft for each statement that a broken rule is about, what could not be checked and for want of what)."""
    evaluator = Evaluator(rules)
    drafts: list[Draft] = []
    skipped: list[Skipped] = []
    for program in found:
        layer = ConvLayer(name="", path=program.path, dtype=dtype)
        evaluation = evaluator.evaluate(facts_of_program(context[program.framework], program, layer), connected=False)
        member = Member(program.path, program.path)
        for flaw in evaluation.flaws:
            places = of_program(flaw.places, program)
            drafts += [Draft(flaw=flaw, at=at, members=(member,), is_program=True) for at in places]
        skipped += [
            Skipped(code=code, layer=None, path=program.path, needs=needs) for code, needs in evaluation.skipped
        ]
    return drafts, skipped


def merged(found: Sequence[Program]) -> list[Program]:
    """One program for each script, whatever asked for it; the one of which more is known."""
    by_path: dict[str, Program] = {}
    for program in found:
        known = by_path.get(program.path)
        if known is None or (program.complete, len(program.settings)) > (known.complete, len(known.settings)):
            by_path[program.path] = program
    return [by_path[path] for path in sorted(by_path)]
