"""The game on hand-made fixes and times: who is advised, what each of them earns, and what comes to light."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from convlint.engine.game import MOST_PLAYERS, MOST_ROUNDS, Check, Outcome, settle
from convlint.engine.hits import Flaw
from convlint.engine.players import Changes, Player, merged
from convlint.engine.shapley import Stake
from convlint.report import Scalar
from convlint.rulebook.book import load_rulebook

RULE = load_rulebook().by_key["CL102"]
NOW = 100.0
NOTHING = Check((), frozenset())


def flaw(code: str, sets: Changes, *, safe: bool = False, describe: str = "d") -> Flaw:
    case = RULE.cases[-1]
    assert case.fix is not None
    case = replace(case, fix=replace(case.fix, safety="safe" if safe else "unsafe"))
    rule = replace(RULE, info=replace(RULE.info, code=code))
    return Flaw(rule=rule, case=case, places=(), message=f"m of {code}", describe=describe, set=sets, other={"N": 1})


def player(code: str, sets: Changes | None = None, *, safe: bool = False) -> Player:
    """Without `sets` it sets the field of its own name to 1."""
    made = flaw(code, sets or {code: 1}, safe=safe)
    return Player(made, made.set)


A, B, C, D = (player(code) for code in "ABCD")


def named(changes: Changes) -> str:
    """What is changed, as "A B" or "A C=64"."""
    return " ".join(name if value == 1 else f"{name}={value}" for name, value in sorted(changes.items()))


def settled(
    players: list[Player],
    times: Mapping[str, float | None],
    shows: Mapping[str, Check] | None = None,
    cuts: Callable[[Changes, Changes], bool] = lambda _, __: False,
) -> Outcome:
    """The game of a layer that takes 100 us now, and `times` after changes; after others it has no time."""

    def again(changes: Changes) -> Check:
        return (shows or {}).get(named(changes), NOTHING)

    return settle(players, NOW, lambda changes: times.get(named(changes)), again, cuts)


def advised(outcome: Outcome, players: list[Player]) -> str:
    own = [one.code for one, stake in zip(players, outcome.stakes, strict=True) if stake.advised]
    return " ".join(own + [one.code for one, _ in outcome.unlocked])


# --- shares


@pytest.mark.parametrize(
    ("times", "shares", "pays_with"),
    [
        ({"A": 70}, {"A": 30}, {}),
        ({"A": 90, "B": 80, "A B": 70}, {"A": 10, "B": 20}, {}),
        ({"A": 100, "B": 100, "A B": 60}, {"A": 20, "B": 20}, {"A": "B", "B": "A"}),  # each hides the other
        ({"A": 110, "B": 100, "A B": 70}, {"A": 15, "B": 15}, {"A": "B", "B": "A"}),  # alone it costs time
        ({"A": 80, "B": 80, "A B": 70}, {"A": 15, "B": 15}, {}),  # each mends part of the other's flaw
        ({"A": 90, "B": 90, "A B": 60}, {"A": 20, "B": 20}, {}),  # alone it earns just half its share
        ({"A": 91, "B": 90, "A B": 60}, {"A": 19.5, "B": 20.5}, {"A": "B", "B": "A"}),
        ({"A": None, "B": 100, "A B": 60}, {"A": 20, "B": 20}, {"A": "B", "B": "A"}),  # alone there is no such layer
        (
            {"A": 100, "B": 100, "C": 100, "A B": 40, "A C": 40, "B C": 100, "A B C": 34},
            {"A": 42, "B": 12, "C": 12},
            {"A": "B", "B": "A", "C": "A"},  # of the sets that do the first by code
        ),
        (
            {"A": 100, "B": 100, "C": 100, "A B": 100, "A C": 100, "B C": 100, "A B C": 70},
            {"A": 10, "B": 10, "C": 10},
            {"A": "B C", "B": "A C", "C": "A B"},
        ),
        (
            {"A": 100, "B": 100, "C": 40, "A B": 80, "A C": 40, "B C": 40, "A B C": 20},
            {"A": 10, "B": 10, "C": 60},
            {"A": "B", "B": "A"},
        ),
    ],
)
def test_shares(times: dict[str, float | None], shares: dict[str, float], pays_with: dict[str, str]) -> None:
    players = [A, B, C][: len(shares)]
    outcome = settled(players, times)
    assert [stake.lost_us for stake in outcome.stakes] == pytest.approx(list(shares.values()))
    assert [" ".join(stake.pays_with) for stake in outcome.stakes] == [pays_with.get(code, "") for code in shares]
    assert sum(shares.values()) == NOW - outcome.after_us
    assert outcome.changes == dict.fromkeys(shares, 1)
    for code, stake in zip(shares, outcome.stakes, strict=True):
        time = times[code]
        assert stake.change_us == (None if time is None else time - NOW)
        assert stake.alone_us == (0.0 if time is None else max(0.0, NOW - time))


@given(st.lists(st.integers(1, 150) | st.none(), min_size=16, max_size=16))
def test_shares_add_up_to_what_the_best_save(drawn: list[int | None]) -> None:
    """Over any times at all: those of the best are positive, those of the others are nothing."""
    players = [A, B, C, D]
    subsets = [
        " ".join(one.code for number, one in enumerate(players) if members >> number & 1) for members in range(16)
    ]
    times = dict(zip(subsets[1:], drawn, strict=False))
    outcome = settled(players, times)
    assert outcome.after_us == min([NOW, *(time for time in times.values() if time is not None)])
    assert sum(stake.lost_us for stake in outcome.stakes) == pytest.approx(NOW - outcome.after_us)
    assert named(outcome.changes) == advised(outcome, players)
    for one, stake in zip(players, outcome.stakes, strict=True):
        assert (stake.lost_us > 0) is stake.advised
        assert one.code not in stake.pays_with
        assert bool(stake.pays_with) is (stake.alone_us < stake.lost_us / 2)
        assert set(stake.pays_with) <= set(named(outcome.changes).split())


# --- which of them are best


@pytest.mark.parametrize(
    ("players", "times", "best"),
    [
        ([A, B], {"A": 70, "B": 100, "A B": 70}, "A"),  # of equals the fewer
        ([A, B], {"A": 70, "B": 70, "A B": 70}, "A"),  # by code
        ([B, A], {"A": 70, "B": 70, "A B": 70}, "A"),
        ([A, player("Z", safe=True)], {"A": 70, "Z": 70, "A Z": 70}, "Z"),  # the safe one
        ([A, player("Z", safe=True)], {"A": 70, "Z": 71}, "A"),  # but time comes first
        ([A, B, player("Z", safe=True)], {"A B": 70, "A Z": 70, "B Z": 70}, "A Z"),
        ([A, player("Z", safe=True)], {"A": 70, "Z": 70 * (1 + 1e-10), "A Z": 70}, "Z"),  # as good as equal
        ([A, player("Z", safe=True)], {"A": 70, "Z": 70 * (1 + 1e-8), "A Z": 70}, "A"),
        ([A, B], {"A": 100, "B": 130}, ""),
        ([A, B], {}, ""),  # no time is known
        ([A, B], {"A": 100 * (1 - 1e-10)}, ""),
        ([], {}, ""),
    ],
)
def test_the_fastest_and_of_equals_the_smallest(players: list[Player], times: dict[str, float], best: str) -> None:
    outcome = settled(players, times)
    assert named(outcome.changes) == best
    assert advised(outcome, players) == best
    assert outcome.after_us == pytest.approx(min([NOW, *times.values()]))


@pytest.mark.parametrize(
    ("times", "best"),
    [
        ({"C=64": 80, "C=128": 70, "L": 100}, "C=128"),
        ({"C=64": 80, "C=128": 70, "C=64 L": 50, "C=128 L": 65, "L": 100}, "C=64 L"),
        ({"C=64": 80, "C=128": 70, "C=64 L": 90, "C=128 L": 75, "L": 60}, "L"),
    ],
)
def test_fixes_that_set_one_field_to_two_values_do_not_go_together(times: dict[str, float], best: str) -> None:
    players = [player("A", {"C": 64}), player("B", {"C": 128}), player("L")]
    outcome = settled(players, times)
    assert named(outcome.changes) == best
    assert outcome.after_us == times[best]
    for one, stake in zip(players, outcome.stakes, strict=True):
        assert stake.advised is (one.changes.items() <= outcome.changes.items())
        assert stake.change_us == times[named(one.changes)] - NOW  # what it would do is said of all


@pytest.mark.parametrize(
    ("changes", "together"),
    [
        ([{"C": 64}], {"C": 64}),
        ([{"C": 64}, {"K": 8}], {"C": 64, "K": 8}),
        ([{"C": 64, "K": 8}, {"K": 8, "N": 2}], {"C": 64, "K": 8, "N": 2}),
        ([{"C": 64}, {"C": 72}], None),
        ([{"C": 64}, {"K": 8}, {"K": 16}], None),
        ([], {}),
    ],
)
def test_changes_together(changes: list[dict[str, Scalar]], together: dict[str, Scalar] | None) -> None:
    assert merged([player("A", each) for each in changes]) == together


@pytest.mark.parametrize(("safe", "wins"), [(False, "A"), (True, "B")])
def test_of_those_that_change_the_same_one_plays(safe: bool, wins: str) -> None:
    players = [player("B", {"C": 64}, safe=safe), player("A", {"C": 64})]
    outcome = settled(players, {"C=64": 70})
    assert advised(outcome, players) == wins
    assert sorted(stake.lost_us for stake in outcome.stakes) == [0.0, 30.0]
    assert {stake.change_us for stake in outcome.stakes} == {-30.0}


def test_more_than_eight_are_cut_to_those_that_save_most_alone() -> None:
    players = [player(f"P{number:02}") for number in range(MOST_PLAYERS + 2)]
    saves = {one.code: 9.0 - number % 5 for number, one in enumerate(players)}
    times = []

    def time_after(changes: Changes) -> float:
        times.append(named(changes))
        return NOW - sum(saves[name] for name in changes)

    outcome = settle(players, NOW, time_after, lambda _: NOTHING)
    least = sorted(saves.values())[:2]
    assert least == [5.0, 5.0]
    assert outcome.after_us == NOW - (sum(saves.values()) - sum(least))
    for one, stake in zip(players, outcome.stakes, strict=True):
        assert stake.advised is (saves[one.code] > 5.0)
        assert stake.lost_us == pytest.approx(saves[one.code] if stake.advised else 0.0)
        assert stake.change_us == -saves[one.code]
    assert len(set(times)) <= 2**MOST_PLAYERS + 2


# --- what comes to light


def test_what_a_fix_brings_to_light_joins() -> None:
    shows = {"A": Check([flaw("B", {"B": 1})], frozenset({("B", "")}))}
    outcome = settled([A], {"A": 90, "B": 95, "A B": 60}, shows)
    assert outcome.changes == {"A": 1, "B": 1}
    assert outcome.stakes == (Stake(-10.0, True, 22.5, ("B",)),)
    ((unlocked, stake),) = outcome.unlocked
    assert (unlocked.code, unlocked.changes, unlocked.after) == ("B", {"B": 1}, ("A",))
    assert stake == Stake(-5.0, True, 17.5, ("A",))


def test_what_comes_to_light_and_pays_nothing_is_not_told() -> None:
    outcome = settled([A], {"A": 90, "A B": 90}, {"A": Check([flaw("B", {"B": 1})], frozenset({("B", "")}))})
    assert (outcome.changes, outcome.unlocked) == ({"A": 1}, ())


def test_it_stands_after_those_that_are_advised() -> None:
    """What came to light where all fixes were tried together needs those alone that are among the best."""
    shows = {"A D": Check([flaw("B", {"B": 1})], frozenset({("B", "")}))}
    times = {"A": 90, "D": 100, "A D": 95, "A B": 70, "A B D": 75}
    ((unlocked, _),) = settled([A, D], times, shows).unlocked
    assert (unlocked.code, unlocked.after) == ("B", ("A",))


def test_a_chain_is_followed_for_four_rounds() -> None:
    codes = "ABCDEFGH"
    steps = [" ".join(codes[:count]) for count in range(1, len(codes))]
    shows = {
        step: Check([flaw(code, {code: 1})], frozenset({(code, "")}))
        for step, code in zip(steps, codes[1:], strict=True)
    }
    outcome = settled([A], {step: 90.0 - 5 * count for count, step in enumerate(steps)}, shows)
    assert [one.code for one, _ in outcome.unlocked] == list(codes[1 : MOST_ROUNDS + 1])
    assert [one.after for one, _ in outcome.unlocked][-1] == tuple(codes[:MOST_ROUNDS])
    assert outcome.stakes[0].lost_us + sum(stake.lost_us for _, stake in outcome.unlocked) == NOW - outcome.after_us


def test_the_layer_is_checked_with_the_best_with_all_and_with_those_that_they_exclude() -> None:
    """And once for each set of changes."""
    players = [player("A", {"C": 64}), player("B", {"C": 128}), player("D"), player("E")]
    times = {"C=64": 70, "C=128": 80, "D": 100, "E": 100, "C=64 D E": 90, "C=128 D E": 99}
    checked = []

    def again(changes: Changes) -> Check:
        checked.append(named(changes))
        return NOTHING

    settle(players, NOW, lambda changes: times.get(named(changes)), again)
    assert checked == ["C=64", "C=64 D E", "C=128 D E"]


@pytest.mark.parametrize(
    ("players", "times", "checked"),
    [
        ([A, player("T", {"K": 256})], {"A": 70, "K=256": 80, "A K=256": 75}, ["A"]),
        ([A, player("T", {"K": 256})], {"A": 70, "K=256": 80, "A K=256": 60}, ["A K=256"]),
        ([player("A", {"K": 8}), player("T", {"K": 256})], {"K=8": 80, "K=256": 70}, ["K=256", "K=8"]),
        ([player("A", {"K": 8}), B, player("T", {"K": 256})], {"K=8": 80, "K=256": 70, "B": 100},
         ["K=256", "B K=256", "B K=8"]),
    ],
)  # fmt: skip
def test_what_fills_tiles_is_applied_where_it_is_among_the_best_alone(
    players: list[Player], times: dict[str, float], checked: list[str]
) -> None:
    """What is as wide as a tile hides what is not wide enough for a vector."""
    tiles = replace(RULE, loss="tile", info=replace(RULE.info, code="T"))
    players = [one._replace(flaw=replace(one.flaw, rule=tiles)) if one.code == "T" else one for one in players]
    asked = []

    def again(changes: Changes) -> Check:
        asked.append(named(changes))
        return NOTHING

    settle(players, NOW, lambda changes: times.get(named(changes)), again)
    assert asked == checked


@pytest.mark.parametrize(
    ("found", "times", "changes", "describe"),
    [
        (flaw("A", {"C": 128}), {"C=64": 90, "C=128": 60}, {"C": 128}, "use C=128 (d)"),  # the same rule's
        (
            flaw("B", {"C": 128}),
            {"C=64": 90, "C=128": 60},
            {"C": 128},
            "use C=128 (d)",
        ),  # another's
        (flaw("B", {"C": 128, "K": 8}), {"C=64": 90, "C=128 K=8": 60}, {"C": 128, "K": 8}, "use C=128, K=8 (d)"),
        (flaw("A", {"K": 8}), {"C=64": 90, "C=64 K=8": 60}, {"C": 64, "K": 8}, "use C=64, K=8 (d)"),
        (flaw("A", {"C": 128}, describe="use C=128"), {"C=64": 90, "C=128": 60}, {"C": 128}, "use C=128"),
        (flaw("A", {"L": 8}, describe="e"), {"C=64": 90, "C=64 L=8": 60}, {"C": 64, "L": 8}, "d; then e"),
    ],
)
def test_a_fix_taken_further_remains_the_flaw_that_stands(
    found: Flaw, times: dict[str, float], changes: dict[str, Scalar], describe: str
) -> None:
    first = player("A", {"C": 64})
    outcome = settled([first], times, {"C=64": Check([found], frozenset({("A", "")}))})
    assert outcome.stakes == (Stake(-10.0),)
    ((further, stake),) = outcome.unlocked
    assert (further.code, further.changes, further.after) == ("A", changes, ())
    assert (further.flaw.message, further.flaw.describe, further.flaw.other) == ("m of A", describe, {})
    assert stake == Stake(-40.0, True, 40.0)


@pytest.mark.parametrize(("first", "then", "safe"), [(True, True, True), (True, False, False), (False, True, False)])
def test_a_fix_taken_further_is_safe_where_both_steps_are(first: bool, then: bool, safe: bool) -> None:
    shows = {"C=64": Check([flaw("A", {"C": 128}, safe=then)], frozenset())}
    ((further, _),) = settled([player("A", {"C": 64}, safe=first)], {"C=64": 90, "C=128": 60}, shows).unlocked
    assert further.unsafe is not safe


def test_what_changes_something_else_is_taken_further_with_its_own_past() -> None:
    """B came to light by A; B taken further still stands after A."""
    shows = {"A": Check([flaw("B", {"K": 8})], frozenset()), "A K=8": Check([flaw("B", {"K": 16})], frozenset())}
    outcome = settled([A], {"A": 90, "A K=8": 80, "A K=16": 50, "K=16": 100}, shows)
    ((further, _),) = outcome.unlocked
    assert (further.code, further.changes, further.after) == ("B", {"K": 16}, ("A",))


# --- fixes that are none


@pytest.mark.parametrize(
    ("standing", "shares"),
    [
        ({}, {"A": 20, "B": 10}),
        ({"A B": "A"}, {"B": 10}),
        ({"A B": "B"}, {"A": 20}),
        ({"A B": "AB"}, {}),
        ({"A": "A"}, {"A": 20, "B": 10}),  # together they mend it
    ],
)
def test_a_fix_that_leaves_its_flaw_standing_is_none(standing: dict[str, str], shares: dict[str, float]) -> None:
    shows = {changes: Check((), frozenset((code, "") for code in codes)) for changes, codes in standing.items()}
    outcome = settled([A, B], {"A": 80, "B": 90, "A B": 70}, shows)
    assert outcome.changes == dict.fromkeys(shares, 1)
    assert outcome.after_us == NOW - sum(shares.values())
    assert {code: stake.lost_us for code, stake in zip("AB", outcome.stakes, strict=True) if stake.advised} == shares
    assert [stake.change_us for stake in outcome.stakes] == [-20.0, -10.0]


def test_what_stands_but_goes_further_is_no_failure() -> None:
    """Of C=64, which is faster, the rule still finds fault: what mends it is C=128."""
    shows = {"C=64": Check([flaw("A", {"C": 128})], frozenset({("A", "")}))}
    outcome = settled([player("A", {"C": 64})], {"C=64": 90, "C=128": 95}, shows)
    assert (outcome.changes, outcome.after_us) == ({"C": 128}, 95)
    assert outcome.stakes == (Stake(-10.0),)


def test_a_fix_that_only_takes_work_away_is_none() -> None:
    asked = []

    def cuts(less: Changes, more: Changes) -> bool:
        asked.append((named(less), named(more)))
        return more.get("C") == 56 and "C" not in less

    players = [player("A", {"C": 56}), B]
    outcome = settled(players, {"C=56": 60, "B": 90, "B C=56": 50}, cuts=cuts)
    assert (named(outcome.changes), outcome.after_us) == ("B", 90)
    assert outcome.stakes == (Stake(-40.0), Stake(-10.0, True, 10.0))
    assert asked == [("B", "B C=56"), ("C=56", "B C=56"), ("", "B")]  # each beside the others, then those that are left


def test_whether_a_fix_is_safe() -> None:
    assert [player("A", safe=safe).unsafe for safe in (True, False)] == [False, True]
    bare = replace(A.flaw, case=replace(A.flaw.case, fix=None))
    assert Player(bare, {}).unsafe
