"""From drafts to findings: said once for all targets, without what the user silenced, under names that last."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from msgspec.structs import replace

from convlint.engine.source.draft import Draft, Member
from convlint.facts.network import shortened
from convlint.facts.source_layers import GETTING
from convlint.files.languages.saying import say
from convlint.report import Finding, Fix, Identity

_MOST_NAMED = 4


def on_targets(found: Iterable[tuple[str, Draft]], targets: int) -> list[tuple[str | None, Draft]]:
    """Each draft once, in the order of places, with its target where it is said of one of several alone.

    A rule that no GPU changes is asked for the first target only, and speaks for all.
    """
    by_text: dict[object, tuple[Draft, set[str]]] = {}
    for label, draft in found:
        known, labels = by_text.setdefault(draft.says, (draft, set()))
        labels.add(label)
        if known is not draft:  # of several programs that reach one statement
            members = tuple(sorted({*known.members, *draft.members})) if draft.is_program else known.members
            by_text[draft.says] = replace(known, members=members), labels
    said = [
        (min(labels) if len(labels) == 1 < targets and draft.flaw.rule.needs_gpu else None, draft)
        for draft, labels in by_text.values()
    ]
    return sorted(said, key=lambda each: _order(*each))


def _order(label: str | None, draft: Draft) -> tuple[str, str, int, int, str, str]:
    at = draft.at
    return draft.flaw.rule.info.code, at.path, at.line or 0, at.column or 0, label or "", draft.flaw.message


class Findings:
    """Makes findings of drafts; ordinals tell those apart that share rule, file, layer and GPU."""

    def __init__(self, given: Collection[str], silenced: Callable[[Finding], bool] | None) -> None:
        """`silenced` is None where nothing is."""
        self.given, self.silenced = given, silenced
        self._ordinals: dict[tuple[str, str, str, str], int] = {}

    def of(self, drafts: Iterable[tuple[str | None, Draft]]) -> list[Finding]:
        """Those that stand in a file that was given and are not silenced, in order."""
        made = (self._finding(gpu, draft) for gpu, draft in drafts)
        return [finding for finding in made if finding is not None]

    def _finding(self, gpu: str | None, draft: Draft) -> Finding | None:
        if draft.at.path not in self.given and all(member.path not in self.given for member in draft.members):
            return None
        if draft.is_program:  # that several scripts reach one statement makes it no other
            finding = _worded(draft, draft.members[:1], gpu, [self._identity(draft, draft.members[0].name, gpu)])
            return None if self.silenced is not None and self.silenced(finding) else finding
        kept: list[Member] = []
        identities: list[Identity] = []
        for name in dict.fromkeys(member.name for member in draft.members):
            own = [member for member in draft.members if member.name == name]
            identity = self._identity(draft, name, gpu)
            if self.silenced is not None and self.silenced(_worded(draft, own, gpu, [identity])):
                continue
            kept += own
            identities.append(identity)
        return _worded(draft, kept, gpu, identities) if kept else None

    def _identity(self, draft: Draft, name: str, gpu: str | None) -> Identity:
        key = draft.flaw.rule.info.code, draft.at.path, name, gpu or ""
        self._ordinals[key] = ordinal = self._ordinals.get(key, 0) + 1
        return *key, ordinal


def _worded(draft: Draft, members: Sequence[Member], gpu: str | None, identities: Sequence[Identity]) -> Finding:
    flaw = draft.flaw
    names = () if draft.is_program else tuple(dict.fromkeys(member.name for member in members))
    getting = _getting(members)
    fix = None
    if flaw.case.fix is not None:
        describe = flaw.describe.replace(GETTING, getting)
        spec = flaw.case.fix
        fix = Fix(describe=describe, safety=spec.safety, changes=spec.changes, set=flaw.set, advised=False)
    return Finding(
        rule=flaw.rule.info,
        severity=flaw.case.severity,
        message=flaw.message.replace(GETTING, getting),
        location=draft.at,
        layer=names[0] if len(names) == 1 else None,
        layers=names if len(names) > 1 else (),
        gpu=gpu,
        fix=fix,
        identity=identities[0],
        identities=tuple(identities) if len(names) > 1 else (),
    )


def _getting(members: Sequence[Member]) -> str:
    """Such as "C=44/89 and K=44 of Net.a, K=44 of Net.b, at 56x56"; the map where it is the same for all."""
    numbers: dict[str, dict[str, set[int]]] = {}
    for member in members:
        numbers.setdefault(member.name, {}).setdefault(member.side, set()).add(member.value)
    several = [
        say(
            "{numbers} of {name}",
            numbers=say(" and ").join(f"{side}={_few(values)}" for side, values in sides.items()),
            name=name,
        )
        for name, sides in numbers.items()
    ]
    maps = {member.map for member in members}
    at = maps.pop() if len(maps) == 1 else ""
    return shortened(several, _MOST_NAMED) + (at if len(several) > 1 else at.replace(", ", " ", 1))


def _few(numbers: Collection[int]) -> str:
    first = sorted(numbers)[:_MOST_NAMED]
    return "/".join([*map(str, first), *(["..."] if len(numbers) > len(first) else [])])
