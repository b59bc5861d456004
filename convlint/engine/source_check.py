"""Rules on Python source: its constructions and programs judged, and what is said of each."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Iterable, Sequence
from operator import itemgetter

from msgspec import Struct
from msgspec.structs import replace

from convlint.engine.findings import Silences, Target
from convlint.engine.hits import Evaluator, Flaw
from convlint.facts.network import shortened
from convlint.facts.source_layers import (
    GETTING,
    MAP,
    PROVISO,
    SIDES,
    Side,
    SourceFacts,
    Width,
    facts_of_construction,
    facts_of_program,
    facts_of_width,
    in_order,
    is_inside,
    map_in_words,
    map_of,
    proviso,
    settings_of,
)
from convlint.facts.target import TargetFacts
from convlint.files.repository import is_quiet
from convlint.model.layer import ConvLayer, Dtype, Mode, layer_identity
from convlint.model.location import Location
from convlint.model.report import Finding, Fix, Identity, SkippedRule
from convlint.model.runtime import Runtime
from convlint.model.source import SourceLayer, SourceReading, StatedLiteral, TrainingProgram
from convlint.model.text import Text, filled, joined
from convlint.rulebook.book import Rulebook
from convlint.rulebook.rule import Rule, Scope

# Ranks of literals by which one is to blame for a width: see `of_width`.
_FACTOR = 7  # up to it, a whole number is more often a factor, a divisor or an index than a width
_VECTOR = 8  # what widths are best a multiple of, as 16 bits want it
_NONE = 9


def of_width(width: Width) -> Location:
    """The literal that makes the number what it is, as far as one can tell; else the construction.

    That is the number itself; then a fraction that widths are multiplied with; then a width that is misaligned itself.
    Where all widths are aligned, a number above them may have something small added to it, and one below them is a part
    of one. Literals at the caller's come before the construction's.
    """
    stated = [literal for literal in width.literals if not (literal.quiet or literal.bound)]
    keys = [(_blame(literal, width, stated), literal.at) for literal in stated]
    blame, place = min(keys, key=itemgetter(0), default=((_NONE,), None))
    return width.record.layer.locate() if place is None or blame[0] == _NONE else place


def _blame(
    literal: StatedLiteral, width: Width, stated: Sequence[StatedLiteral]
) -> tuple[int, bool, float, str, int, int]:
    """A sort key of literals: the one with the lowest is to blame."""
    at = literal.at
    rank, size = _rank(literal.value, width.value or 0, [value for other in stated if (value := _whole(other))])
    return rank, is_inside(at, width.record), size, at.path, at.line or 0, at.column or 0


def _rank(value: object, number: int, literals: Sequence[int]) -> tuple[int, float]:
    """(rank of a value, the lowest being to blame first; what orders values of one rank)."""
    if isinstance(value, float) and value > 0 and not value.is_integer():
        return (3 if math.frexp(value)[0] == 0.5 else 1), -value  # a half may be of what is misaligned before
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        return _NONE, 0
    if value == number:
        return 0, 0
    if value > _FACTOR:
        return 2 if value % _VECTOR else 5, -value
    # Sums of widths are multiples of what divides them all; what is far from one was divided, not added to.
    beyond = (number - value) % (math.gcd(*(other for other in literals if other > _FACTOR)) or 1)
    added = number > max(literals) and _power(value) == _power(number) and beyond <= 2 * _FACTOR
    return 4 if added else 6, value


def _whole(literal: StatedLiteral) -> int | None:
    value = literal.value
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _power(value: int) -> int:
    """The highest power of two that divides it."""
    return value & -value


_OFF = ("ieee", "0")  # texts that switch something off


def of_program(places: Sequence[str], program: TrainingProgram) -> tuple[Location, ...]:
    """The statements that a rule is about; the program, where there are none."""
    for name in places:
        locations = _places(name, program)
        if locations:
            return locations
    return (program.at,)


def _places(name: str, program: TrainingProgram) -> tuple[Location, ...]:
    if name.startswith("runtime."):
        setting = name.removeprefix("runtime.")
        own = list(settings_of(program, setting))
        value = getattr(program, setting, None)
        agreeing = [statement for statement in own if statement.value is not None and _agrees(statement.value, value)]
        return tuple(statement.at for statement in (agreeing or own)[-1:])
    if name == "program.conflict":
        pair = in_order(program)
        return () if pair is None else (pair[1].at,)
    if name == "program.evidence":
        return tuple(at for _, at in program.evidence[:1])
    if name == "program.autotune_disabled":
        return tuple(statement.at for statement in program.autotune_disabled[:1])
    if name in ("program.backward_in_autocast", "program.autocast_around_loss"):
        locations: tuple[Location, ...] = getattr(program, name.removeprefix("program."))
        return locations
    return ()


def _agrees(value: bool | int | str, setting: bool | None) -> bool:
    """Whether a statement is the one by which the setting is what it is."""
    return setting is None or (value not in _OFF and bool(value)) == setting


class FindingMember(Struct, frozen=True, order=True):
    """A layer or program of which a finding speaks: its name, the file, and of a width the letter and the number."""

    name: str
    path: str
    side: str = ""
    value: int = 0
    map: tuple[int, ...] = ()  # height and width of what it reads, where they are known


class RuleStatement(Struct, frozen=True, kw_only=True):
    """What a rule says at one place. `is_program`: of programs, which are no layers."""

    flaw: Flaw
    at: Location
    members: tuple[FindingMember, ...]
    is_program: bool = False

    @property
    def says(self) -> tuple[str, Location, str, str, tuple[FindingMember, ...]]:
        """A key, equal for statements that are one: on several targets, or of several programs."""
        members = () if self.is_program else self.members
        return self.flaw.rule.info.code, self.at, self.flaw.message, self.flaw.describe, members


_Broken = tuple[Flaw, SourceLayer]
_OPPOSITE: dict[Side, Side] = {"C": "K", "K": "C"}


def constructions(
    rules: Sequence[Rule], records: Sequence[SourceLayer], context: _Contexts,
    unheld: Collection[Location] = frozenset(),
) -> list[RuleStatement]:  # fmt: skip
    """One draft for each place where every layer that it constructs breaks the rule; of a separable one, each part.

    Left out are constructions whose bias, or norm behind them, rests on a default that every known caller overrides.
    """
    evaluator = Evaluator(rules)
    sites: dict[tuple[Location, str], list[SourceLayer]] = {}
    for record in records:
        if not record.rests_on(unheld, ("bias",)) and not any(literal.at in unheld for literal in record.norm_by):
            sites.setdefault((record.layer.locate(), record.part), []).append(record)
    drafts = []
    for site in sites.values():
        broken: dict[str, list[_Broken]] = {}
        for record in site:
            facts = facts_of_construction(context.of(record.framework, record.layer.path), record)
            for flaw in _flaws(evaluator, facts):
                broken.setdefault(flaw.rule.info.code, []).append((flaw, record))
        drafts += [_at_site(pairs) for pairs in broken.values() if len(pairs) == len(site)]
    return drafts


def _at_site(pairs: Sequence[_Broken]) -> RuleStatement:
    flaw, record = min(pairs, key=lambda pair: _doubt(pair[1]))
    records = [record for _, record in pairs]
    members = {FindingMember(record.layer.name, record.layer.path) for record in records}
    literals = [literal for which in records for group in which.stated.values() for literal in group]
    worded = _with(flaw, proviso(record, literals), records)
    return RuleStatement(flaw=worded, at=record.layer.locate(*flaw.places), members=tuple(sorted(members)))


def _with(flaw: Flaw, provisos: str, records: Iterable[SourceLayer]) -> Flaw:
    """The flaw with the provisos, and the map that all `records` share, filled into its texts."""
    blanks = {PROVISO: provisos, MAP: map_in_words(map_of(records))}
    return replace(flaw, message=filled(flaw.message, blanks), describe=filled(flaw.describe, blanks))


def widths(
    rules: Sequence[Rule], records: Sequence[SourceLayer], context: _Contexts,
    unheld: Collection[Location] = frozenset(),
) -> list[RuleStatement]:  # fmt: skip
    """One draft for each literal to blame: it names the layers that get a number by it which breaks the rule.

    Nothing is said of numbers that rest on one of the defaults `unheld`, which every known caller overrides.
    """
    evaluator = Evaluator(rules)
    numbers = [width for width in _numbers(records) if not width.record.rests_on(unheld, width.side)]
    broken: dict[tuple[str, Location], list[tuple[Flaw, Width]]] = {}
    for width in numbers:
        for flaw in _flaws(
            evaluator, facts_of_width(context.of(width.record.framework, width.record.layer.path), width)
        ):
            broken.setdefault((flaw.rule.info.code, of_width(width)), []).append((flaw, width))
    return [_at_literal(at, pairs) for (_, at), pairs in broken.items()]


def _at_literal(at: Location, pairs: Sequence[tuple[Flaw, Width]]) -> RuleStatement:
    """The statement about one literal, from those widths alone whose conditions are surest.

    The worst width gives the text. The advice is for the literal itself where that is a width and the worst one no
    divisor of it: no other WIDTH makes `2 * WIDTH + 1` even.
    """
    surest = min(_doubt(width.record) for _, width in pairs)
    sure_pairs = [(flaw, width) for flaw, width in pairs if _doubt(width.record) == surest]
    flaw, worst = min(sure_pairs, key=lambda pair: _worst(pair[1]))
    for other, width in sure_pairs:
        if _is_literal(width, at) and (width.value or 0) % (worst.value or 1):
            flaw = replace(flaw, describe=other.describe)
    literals = [literal for _, width in sure_pairs for literal in width.literals]
    flaw = _with(flaw, proviso(_in_any_case(worst, pairs), literals), [width.record for _, width in sure_pairs])
    return RuleStatement(
        flaw=flaw, at=at, members=tuple(dict.fromkeys(_member(width) for _, width in sorted(sure_pairs, key=_place)))
    )


def _in_any_case(worst: Width, pairs: Iterable[tuple[Flaw, Width]]) -> SourceLayer:
    """The record of a number with all conditions under which its place has that number."""
    own, at = worst.record, worst.record.layer.locate()
    alike = (width for _, width in pairs if width.value == worst.value and width.record.layer.locate() == at)
    conditions = dict.fromkeys(width.record.condition for width in alike if width.record.certainty == own.certainty)
    return replace(own, condition="\n".join(conditions) if all(conditions) else "")


def _numbers(records: Iterable[SourceLayer]) -> list[Width]:
    """Every channel count that is known; what layers write and read, by one literal or in one file, are inner ones.

    A depthwise convolution hands on what it gets, so it tells neither what reads a number nor what writes it. Nor do
    the two ends of a network: an autoencoder gives as many channels as it gets.
    """
    every = [Width(record=record, side=side) for record in records for side in SIDES]
    known = [(width, width.brought) for width in every if width.value is not None]
    sides: dict[Location, set[Side]] = {}
    numbers: set[tuple[str, Side, int | None]] = set()
    for width, brought in known:
        if width.is_end or _is_depthwise(width.record):
            continue
        numbers.add((width.record.layer.path, width.side, width.value))
        for literal in brought:
            sides.setdefault(literal.at, set()).add(width.side)

    def is_inner(width: Width, brought: Iterable[StatedLiteral]) -> bool:
        layer = width.record.layer
        return (
            any(len(sides.get(literal.at, ())) > 1 for literal in brought)
            or (layer.path, _OPPOSITE[width.side], width.value) in numbers
            or (width.side == "K" and layer.norm_follows is True)  # nobody normalises an answer
        )

    return [replace(width, inner=True) if is_inner(width, brought) else width for width, brought in known]


def _is_depthwise(record: SourceLayer) -> bool:
    layer = record.layer
    return layer.groups is not None and layer.groups > 1 and layer.groups == layer.C == layer.K


def _flaws(evaluator: Evaluator, facts: SourceFacts) -> tuple[Flaw, ...]:
    """The flaws by these facts; what is unknown makes none, and is counted by the coverage."""
    return evaluator.evaluate(facts, connected=False).flaws


def _member(width: Width) -> FindingMember:
    layer = width.record.layer
    return FindingMember(layer.name, layer.path, width.side, width.value or 0, map_of([width.record]))


def _doubt(record: SourceLayer) -> tuple[bool, str]:
    return record.certainty != "stated", record.condition


def _worst(width: Width) -> tuple[int, int]:
    value = width.value or 0
    return _power(value), value


def _is_literal(width: Width, at: Location) -> bool:
    return any(literal.at == at and literal.value == width.value for literal in width.literals)


def _place(entry: tuple[Flaw, Width]) -> tuple[str, int, int, str, str]:
    layer, at = entry[1].record.layer, entry[1].record.layer.locate()
    return at.path, at.line or 0, at.column or 0, layer.name, entry[1].side


def programs(
    rules: Sequence[Rule], training: Sequence[TrainingProgram], context: _Contexts, dtype: Dtype | None
) -> tuple[list[RuleStatement], list[SkippedRule]]:
    """(one draft for each statement that a broken rule is about, the rules not checked with what they need)."""
    evaluator = Evaluator(rules)
    drafts: list[RuleStatement] = []
    skipped: list[SkippedRule] = []
    for program in training:
        layer = ConvLayer(name="", path=program.path, dtype=dtype)
        evaluation = evaluator.evaluate(
            facts_of_program(context.of(program.framework, program.path), program, layer), connected=False
        )
        member = FindingMember(program.path, program.path)
        for flaw in evaluation.flaws:
            places = of_program(flaw.places, program)
            drafts += [RuleStatement(flaw=flaw, at=at, members=(member,), is_program=True) for at in places]
        skipped += [
            SkippedRule(code=code, layer=None, path=program.path, needs=needs) for code, needs in evaluation.skipped
        ]
    return drafts, skipped


def merged(training: Sequence[TrainingProgram]) -> list[TrainingProgram]:
    """One program for each script: of several, the one of which more is known."""
    by_path: dict[str, TrainingProgram] = {}
    for program in training:
        known = by_path.get(program.path)
        if known is None or (program.complete, len(program.settings)) > (known.complete, len(known.settings)):
            by_path[program.path] = program
    return [by_path[path] for path in sorted(by_path)]


_MOST_NAMED = 4


def on_targets(labelled: Iterable[tuple[str, RuleStatement]], targets: int) -> list[tuple[str | None, RuleStatement]]:
    """Each draft once, sorted by rule and place, with its target where only one of several has it.

    A rule that no GPU changes is asked for the first target only, and its drafts count for all.
    """
    by_text: dict[object, tuple[RuleStatement, set[str]]] = {}
    for label, draft in labelled:
        known, labels = by_text.setdefault(draft.says, (draft, set()))
        labels.add(label)
        if known is not draft:  # of several programs that reach one statement
            members = tuple(sorted({*known.members, *draft.members})) if draft.is_program else known.members
            by_text[draft.says] = replace(known, members=members), labels
    drafts = [
        (min(labels) if len(labels) == 1 < targets and draft.flaw.rule.needs_gpu else None, draft)
        for draft, labels in by_text.values()
    ]
    return sorted(drafts, key=lambda pair: _order(*pair))


def _order(label: str | None, draft: RuleStatement) -> tuple[str, str, int, int, str, str]:
    at = draft.at
    return draft.flaw.rule.info.code, at.path, at.line or 0, at.column or 0, label or "", draft.flaw.message


class Findings:
    """Makes findings of drafts; ordinals tell those apart that share rule, file, layer and GPU."""

    def __init__(self, given: Collection[str], silenced: Callable[[Finding], bool] | None) -> None:
        """`silenced` is None where nothing is."""
        self.given, self.silenced = given, silenced
        self._ordinals: dict[tuple[str, str, str, str], int] = {}

    def of(self, drafts: Iterable[tuple[str | None, RuleStatement]]) -> list[Finding]:
        """The findings in files that were given, but for silenced ones, in order."""
        findings = (self._finding(gpu, draft) for gpu, draft in drafts)
        return [finding for finding in findings if finding is not None]

    def _finding(self, gpu: str | None, draft: RuleStatement) -> Finding | None:
        if draft.at.path not in self.given and all(member.path not in self.given for member in draft.members):
            return None
        if draft.is_program:  # that several scripts reach one statement makes it no other
            finding = _worded(draft, draft.members[:1], gpu, [self._identity(draft, draft.members[0].name, gpu)])
            return None if self.silenced is not None and self.silenced(finding) else finding
        members: list[FindingMember] = []
        identities: list[Identity] = []
        for name in dict.fromkeys(member.name for member in draft.members):
            own = [member for member in draft.members if member.name == name]
            identity = self._identity(draft, name, gpu)
            if self.silenced is not None and self.silenced(_worded(draft, own, gpu, [identity])):
                continue
            members += own
            identities.append(identity)
        return _worded(draft, members, gpu, identities) if members else None

    def _identity(self, draft: RuleStatement, name: str, gpu: str | None) -> Identity:
        key = draft.flaw.rule.info.code, draft.at.path, name, gpu or ""
        self._ordinals[key] = ordinal = self._ordinals.get(key, 0) + 1
        return *key, ordinal


def _worded(
    draft: RuleStatement, members: Sequence[FindingMember], gpu: str | None, identities: Sequence[Identity]
) -> Finding:
    flaw = draft.flaw
    names = () if draft.is_program else tuple(dict.fromkeys(member.name for member in members))
    blanks = {GETTING: _getting(members)}
    fix = None
    if flaw.case.fix is not None:
        describe = filled(flaw.describe, blanks)
        spec = flaw.case.fix
        fix = Fix(describe=describe, safety=spec.safety, changes=spec.changes, set=flaw.set, advised=False)
    return Finding(
        rule=flaw.rule.info,
        severity=flaw.case.severity,
        message=filled(flaw.message, blanks),
        location=draft.at,
        layer=names[0] if len(names) == 1 else None,
        layers=names if len(names) > 1 else (),
        gpu=gpu,
        fix=fix,
        identity=identities[0],
        identities=tuple(identities) if len(names) > 1 else (),
    )


def _getting(members: Sequence[FindingMember]) -> str:
    """Such as "C=44/89 and K=44 of Net.a, K=44 of Net.b, at 56x56"; the map where it is the same for all."""
    numbers: dict[str, dict[str, set[int]]] = {}
    for member in members:
        numbers.setdefault(member.name, {}).setdefault(member.side, set()).add(member.value)
    texts = [
        Text(
            "{numbers} of {name}",
            numbers=joined(Text(" and "), [f"{side}={_few(values)}" for side, values in sides.items()]),
            name=name,
        )
        for name, sides in numbers.items()
    ]
    maps = {member.map for member in members}
    sizes = maps.pop() if len(maps) == 1 else ()
    if len(texts) == 1 and sizes:  # English sets a comma only after a list of layers
        return texts[0] + Text(" at {H}x{W}", H=sizes[0], W=sizes[1])
    return shortened(texts, _MOST_NAMED) + map_in_words(sizes)


def _few(numbers: Collection[int]) -> str:
    first = sorted(numbers)[:_MOST_NAMED]
    return "/".join([*map(str, first), *(["..."] if len(numbers) > len(first) else [])])


class SourceResult(Struct, frozen=True, kw_only=True):
    """What the check of Python source found."""

    findings: tuple[Finding, ...] = ()
    skipped: tuple[SkippedRule, ...] = ()
    mode: Mode = "training"


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
    versioned: Callable[[Runtime, str], Runtime] = lambda runtime, _: runtime,
) -> SourceResult:
    """All rules that judge source on what was read. Raises RuleError where a rule divides by zero.

    Only findings in the files `given` are reported: of a construction or program, or of the literal or statement at
    fault. `dtype` is what the layers are computed in, where that is stated. Rules not among `codes`, findings that
    `silences` accepts, and those that are `known` are left out. `versioned` adds to a runtime the versions that are
    pinned for a file.
    """
    rules = [rule for rule in rulebook.of_source if codes is None or rule.info.code in codes]
    records = _chosen(_records(reading.layers, dtype), reading)
    scripts = merged([program for program in reading.programs if not is_quiet(program.path)])
    drafts: list[tuple[str, RuleStatement]] = []
    skipped: list[SkippedRule] = []
    for number, target in enumerate(targets):
        target_rules = [rule for rule in rules if number == 0 or rule.needs_gpu]
        context = _Contexts(target, mode, versioned)
        of_programs, lacking = programs(_of("program", target_rules), scripts, context, dtype)
        skipped += [skip for skip in lacking if skip.path in given]
        target_drafts = [
            *constructions(_of("construction", target_rules), records, context, reading.unheld),
            *widths(_of("width", target_rules), records, context, reading.unheld),
            *of_programs,
        ]
        drafts += [(target.label, draft) for draft in target_drafts]

    tests = [test for test in (silences, known) if test is not None]

    def silenced(finding: Finding) -> bool:
        return any(test(finding) for test in tests)

    return SourceResult(
        findings=tuple(Findings(given, silenced if tests else None).of(on_targets(drafts, len(targets)))),
        skipped=tuple({(skip.code, skip.path): skip for skip in skipped}.values()),
        mode=mode or "training",
    )


class _Contexts(dict[tuple[str, str], TargetFacts]):
    """The facts of one target for the code of one framework in one folder, by framework and folder."""

    def __init__(self, target: Target, mode: Mode | None, versioned: Callable[[Runtime, str], Runtime]) -> None:
        super().__init__()
        self.target, self.mode, self.versioned = target, mode, versioned

    def of(self, framework: str, path: str) -> TargetFacts:
        """The facts of the target for code in this file."""
        return self[framework, os.path.dirname(path)]

    def __missing__(self, key: tuple[str, str]) -> TargetFacts:
        framework, folder = key
        runtime = self.versioned(Runtime(framework=framework), folder)
        facts = TargetFacts(
            self.target.label, self.target.gpu, runtime, self.mode or "training", mode_stated=self.mode is not None
        )
        self[key] = facts
        return facts


def _of(scope: Scope, rules: Sequence[Rule]) -> list[Rule]:
    return [rule for rule in rules if rule.scope == scope]


def _records(layers: Sequence[SourceLayer], dtype: Dtype | None) -> list[SourceLayer]:
    """The layers that stay in their models, each once; those without a dtype get the one that is stated.

    Layers of tests, documentation and other people's code are left out.
    """
    by_key: dict[object, SourceLayer] = {}
    for record in layers:
        if record.replaced or is_quiet(record.layer.path):
            continue
        layer = record.layer
        if dtype is not None and layer.dtype is None:
            record = replace(record, layer=replace(layer, dtype=dtype))
        key = layer.locate(), layer.name, layer_identity(layer), _stated(record), record.condition, record.certainty
        by_key.setdefault((*key, record.pointwise_map), record)
    return list(by_key.values())


def _chosen(records: list[SourceLayer], reading: SourceReading) -> list[SourceLayer]:
    """Those but for layers that stand, or whose numbers stand, in branches that calls lead to and none takes."""
    sides: dict[str, list[range]] = {}
    for path, first, last in reading.refused - reading.taken:
        sides.setdefault(path, []).append(range(first, last + 1))

    def is_refused(at: Location) -> bool:
        return any(at.line in lines for lines in sides.get(at.path, ()))

    return [
        record for record in records
        if not is_refused(record.layer.locate())
        and not any(is_refused(literal.at) for literals in record.stated.values() for literal in literals)
    ]  # fmt: skip


def _stated(record: SourceLayer) -> frozenset[object]:
    """The literals by field, with the types of their values: 1 and True differ."""
    return frozenset(
        (field, values, tuple([type(literal.value) for literal in values])) for field, values in record.stated.items()
    )
