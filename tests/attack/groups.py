"""Runs many hostile inputs in one process: if the whole run keeps the limits of one input, each of them did.

For every input a tenth of a second is added, which reading even an innocent one may take.
A group that does not proves nothing about its members; it is halved until what spoils it stands alone.
"""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from .contract import Attack, Outcome, bare_of, breaches, hold, run

EACH_S = 0.1


def verdicts(group: Sequence[Attack], folder: Path) -> Iterator[tuple[Attack, list[str]]]:
    """Each attack of a group and its breaches, all of them from one run where that goes well."""
    if len(group) == 1:
        with tempfile.TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as own:
            yield group[0], hold(group[0], Path(own))[1]
        return
    cleared = together(group, folder)
    yield from ((attack, []) for attack in group if attack.name in cleared)
    left = [attack for attack in group if attack.name not in cleared]
    half = len(left) // 2  # a run that clears nobody: which half spoils it?
    parts = [[attack] for attack in left] if cleared else [left[:half], left[half:]]
    for part in filter(None, parts):
        yield from verdicts(part, folder)


def together(group: Sequence[Attack], folder: Path) -> set[str]:
    """The names of those that one run of all of them clears."""
    first = group[0]

    def make(work: Path) -> None:
        for attack in group:
            attack.make(work)

    inputs = tuple(dict.fromkeys(path for attack in group for path in attack.inputs))
    extra_s, exits = EACH_S * len(group), frozenset({0, 1, 3})
    joined = replace(first, name="together", make=make, inputs=inputs, exits=exits, says="", extra_s=extra_s)
    bare = bare_of(first)
    with tempfile.TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as own:
        outcome = run(joined, Path(own), most_cpu_s=bare.cpu_s + 4 + joined.extra_s, most_mb=bare.mb + 400)
        if breaches(joined, outcome, bare):
            return set()
    return {attack.name for attack in group if is_cleared(attack, outcome)}


def is_cleared(attack: Attack, outcome: Outcome) -> bool:
    """Whether the joint report says of this attack's inputs what its own exit codes ask for."""
    report = outcome.report or {}
    wrong = [error["message"] for error in report.get("errors", ()) if error["path"] in attack.inputs]
    if attack.says or attack.argv is not None:
        return False
    return bool(wrong) if attack.exits == {3} else bool(attack.exits & {0, 1}) or bool(wrong)
