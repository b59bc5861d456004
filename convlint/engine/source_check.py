"""What was read in Python source, checked: from constructions and programs to findings, each where its cause stands.

Nothing here has a price, as sizes are not known. What is the same for all targets is said once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from convlint.engine.source.constructions import constructions, widths
from convlint.engine.source.draft import Draft
from convlint.engine.source.programs import merged, programs
from convlint.engine.source.saying import Findings, on_targets
from convlint.engine.target import Silences, Target
from convlint.facts.target import TargetFacts
from convlint.files.quiet_paths import is_quiet
from convlint.model.layer import Dtype, Mode, layer_identity
from convlint.model.runtime import Runtime
from convlint.model.source import SourceLayer, SourceReading
from convlint.report import Finding, Skipped
from convlint.rulebook.book import Rulebook
from convlint.rulebook.rule import Rule, Scope


class SourceResult(Struct, frozen=True, kw_only=True):
    """What the check of Python source found."""

    findings: tuple[Finding, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    labels: tuple[str, ...] = ()
    mode: Mode = "training"
    lines: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # of files that findings point into


def check_source(
    reading: SourceReading,
    rulebook: Rulebook,
    targets: Sequence[Target],
    mode: Mode | None,
    *,
    given: Collection[str],
    dtype: Dtype | None = None,
    codes: Collection[str] | None = None,
    silences: Silences | None = None,
    known: Silences | None = None,
) -> SourceResult:
    """All rules that judge source on what was read. Raises RuleError where a rule divides by zero.

    Only what stands in one of the files `given` is said: the construction or program, or the literal or statement at
    fault. `dtype` is what the layers are computed in, where that is stated. Rules not among `codes` and findings that
    `silences` takes are not in force; what is `known` is not said either.
    """
    rules = [rule for rule in rulebook.of_source if codes is None or rule.info.code in codes]
    records = _records(reading.layers, dtype)
    scripts = merged([program for program in reading.programs if not is_quiet(program.path)])
    drafts: list[tuple[str, Draft]] = []
    skipped: list[Skipped] = []
    for number, target in enumerate(targets):
        wanted = [rule for rule in rules if number == 0 or rule.needs_gpu]
        context = _Contexts(target, mode)
        of_programs, lacking = programs(_of("program", wanted), scripts, context, dtype)
        skipped += [each for each in lacking if each.path in given]
        several = [
            *constructions(_of("construction", wanted), records, context),
            *widths(_of("width", wanted), records, context),
            *of_programs,
        ]
        drafts += [(target.label, draft) for draft in several]

    asked = [each for each in (silences, known) if each is not None]

    def silenced(finding: Finding) -> bool:
        return any(each(finding) for each in asked)

    return SourceResult(
        findings=tuple(Findings(given, silenced if asked else None).of(on_targets(drafts, len(targets)))),
        skipped=tuple({(skip.code, skip.path): skip for skip in skipped}.values()),
        labels=tuple(target.label for target in targets),
        mode=mode or "training",
        lines=reading.lines,
    )


class _Contexts(dict[str, TargetFacts]):
    """What all that one framework runs shares on one target, by the framework."""

    def __init__(self, target: Target, mode: Mode | None) -> None:
        super().__init__()
        self.target, self.mode = target, mode

    def __missing__(self, framework: str) -> TargetFacts:
        runtime = Runtime(framework=framework)
        found = TargetFacts(
            self.target.label, self.target.gpu, runtime, self.mode or "training", mode_stated=self.mode is not None
        )
        self[framework] = found
        return found


def _of(scope: Scope, rules: Sequence[Rule]) -> list[Rule]:
    return [rule for rule in rules if rule.scope == scope]


def _records(layers: Sequence[SourceLayer], dtype: Dtype | None) -> list[SourceLayer]:
    """Those that stay in their models, each once, whatever led to it; their dtype is the one that is stated.

    Of tests, documentation and other people's code nothing is said.
    """
    found: dict[object, SourceLayer] = {}
    for record in layers:
        if record.replaced or is_quiet(record.layer.path):
            continue
        layer = record.layer
        if dtype is not None and layer.dtype is None:
            record = replace(record, layer=replace(layer, dtype=dtype))
        key = layer.locate(), layer.name, layer_identity(layer), _stated(record), record.condition, record.certainty
        found.setdefault((*key, record.pointwise_map), record)
    return list(found.values())


def _stated(record: SourceLayer) -> frozenset[object]:
    """The literals by field, with the types of their values: 1 and True are two."""
    return frozenset(
        (field, values, tuple([type(each.value) for each in values])) for field, values in record.stated.items()
    )
