"""What flaws cost on one target: who plays, the game of a layer, what its tiles waste, what a fix changes."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest
from small_networks import checked, layer, rulebook

from convlint.engine.evaluate import Evaluator
from convlint.engine.hits import Flaw
from convlint.engine.pricing import Pricer
from convlint.estimate import estimate_layer, unquantized_us
from convlint.facts.layer import LayerFacts
from convlint.facts.target import TargetFacts
from convlint.gpus.gpu import load_gpu
from convlint.readers.spec.reader import read_spec
from convlint.report import Scalar
from convlint.rulebook.book import Rulebook, load_rulebook

BUILTIN = load_rulebook()
WIDEN = {"check": "C % 8 == 0", "loss": "fix", "let": '{ wide: "ceil_to(C, 8)" }',
         "fix": '{ describe: "use C={wide}", set: { C: wide } }'}  # fmt: skip

WITHOUT_TF32 = "runtime: { tf32: false }\n"


def fix(new: str, **parts: str) -> dict[str, str]:
    """A rule that fires, and whose fix sets `new`."""
    return {"check": "C == 1", "loss": "fix", "fix": f"{{ describe: d, set: {{ {new} }} }}"} | parts


def pricer(rules: Rulebook, layers: str, *, top: str = "", codes: Collection[str] | None = None) -> Pricer:
    network, errors = read_spec(f"version: 1\n{top}layers:\n{layers}", "net.yaml")
    assert network is not None
    assert not errors
    facts = TargetFacts("a100", load_gpu("a100"), network.runtime, "training")
    estimates = [estimate_layer(each, facts.gpu, facts.runtime, "training") for each in network.layers]
    facts.add_network(network.layers, network.edges, estimates)
    return Pricer(network.layers, network.layers, estimates, facts, rules.of_networks, codes)


def flaws(made: Pricer, rules: Rulebook, index: int = 0) -> list[Flaw]:
    """All that the rules find in a layer."""
    values = LayerFacts(made.facts, made.layers[index], None, (), made.estimates[index])
    return list(Evaluator(rules.rules).evaluate(values, connected=False).flaws)


# --- severity follows the price


def test_severity_follows_the_price(tmp_path: Path) -> None:
    """The same flaw is a warning where it costs, and info where the layer hardly matters."""
    rules = rulebook(tmp_path, WIDEN)
    odd = layer("odd", C=62, N=256, H=56, W=56)
    (alone,) = checked(rules, odd).findings
    assert alone.severity == "warning"
    assert alone.lost_us is not None
    assert alone.lost_us == alone.lost_alone_us
    assert alone.fix is not None
    assert alone.fix.time_change_us == pytest.approx(-alone.lost_us)
    assert dict(alone.fix.set) == {"C": 64}
    tiny = layer("tiny", C=62, N=1, H=4, W=4) + layer("huge", C=512, K=512, N=256, H=112, W=112)
    (beside,) = checked(rules, tiny).findings
    assert beside.severity == "info"
    assert beside.lost_percent is not None
    assert beside.lost_percent < 0.5


def test_an_error_stands_whatever_it_costs(tmp_path: Path) -> None:
    rules = rulebook(tmp_path, fix('C: "64"', severity="error", check="C == 64"))
    found = checked(rules, layer("a", C=63, N=1, H=4, W=4) + layer("b", K=2048, N=256)).findings
    assert [finding.severity for finding in found] == ["error"]


def test_without_a_prediction_it_informs(tmp_path: Path) -> None:
    rules = rulebook(tmp_path, fix('C: "64"', check="C == 64"))
    (finding,) = checked(rules, layer("a", C=63, H=None, W=None)).findings
    assert (finding.severity, finding.lost_us, finding.lost_percent) == ("info", None, None)


# --- who plays


@pytest.mark.parametrize(
    ("rule", "sizes", "plays"),
    [
        (fix('C: "64"'), {"C": 62}, True),
        (fix('C: "64"', severity="error"), {"C": 62}, True),
        (fix('C: "64"', severity="info"), {"C": 62}, False),
        (fix('C: "64"', loss="none"), {"C": 62}, False),
        (fix('C: "64"', loss="tile"), {"C": 62}, True),
        (fix('C: "62"'), {"C": 62}, False),  # changes nothing
        (fix('N: "64"'), {}, False),  # the batch is the network's
        (fix('N: "64", C: "72"'), {}, False),
        (fix("layout: \"'NCHW'\""), {}, True),
        (fix('runtime.tf32: "true"'), {}, True),
        ({"check": "C == 1", "loss": "fix", "fix": '{ describe: d, priced: false, set: { C: "72" } }'}, {}, False),
        (fix('C: "56"'), {"C": 64}, True),  # an eighth of the channels
        (fix('C: "55"'), {"C": 64}, False),  # more than that is another network
        (fix('C: "128", K: "55"'), {}, False),
        (fix('C: "96"', loss="tile"), {"C": 64}, True),  # half as wide again
        (fix('C: "97"', loss="tile"), {"C": 64}, False),  # for the tiles' sake that is another network too
        (fix('C: "96", K: "97"', loss="wave"), {"C": 64}, False),
        (fix('C: "97"'), {"C": 64}, True),  # a vector is filled whatever it takes
        (fix('H: "14"'), {}, True),
    ],
)
def test_whose_fix_enters_the_game(rule: dict[str, str], sizes: dict[str, object], plays: bool, tmp_path: Path) -> None:
    rules = rulebook(tmp_path, rule)
    made = pricer(rules, layer("a", **sizes))
    (flaw,) = flaws(made, rules)
    assert made.plays(0, flaw) is plays


@pytest.mark.parametrize(("codes", "plays"), [(None, True), (["XY000"], True), (["XY001"], False), ([], False)])
def test_rules_that_are_not_in_force_do_not_play(codes: list[str] | None, plays: bool, tmp_path: Path) -> None:
    rules = rulebook(tmp_path, fix('C: "64"'))
    made = pricer(rules, layer("a", C=62), codes=codes)
    assert made.plays(0, flaws(made, rules)[0]) is plays


# --- the game of a layer


def test_a_layer_without_players_takes_what_it_takes() -> None:
    made = pricer(BUILTIN, layer("a", C=96))
    priced, estimate = made.priced(0, []), made.estimates[0]
    assert priced is not None
    assert estimate is not None
    assert priced.outcome is None
    assert (priced.times.time_us, priced.times.after_us) == (estimate.time_us, estimate.time_us)
    assert priced.times.ideal_us == estimate.unquantized_us < estimate.time_us


def test_equal_layers_share_their_game_unless_something_is_silenced(tmp_path: Path) -> None:
    rules = rulebook(tmp_path, WIDEN)
    made = pricer(rules, layer("a", C=62) + layer("b", C=62) + layer("c", C=62, N=64))
    games = [made.priced(index, flaws(made, rules, index)) for index in range(3)]
    assert games[0] is games[1]
    assert games[0] != games[2]
    asked = made.priced(1, flaws(made, rules), in_force=lambda _: True)
    assert asked is not games[0]
    assert asked == games[0]


def test_times_after_all_advice_are_those_of_the_changed_layer(tmp_path: Path) -> None:
    """And what was only padded does no more work than before: the ideal leaves it out."""
    rules = rulebook(tmp_path, WIDEN | {"let": '{ wide: "ceil_to(C, 64)" }', "check": "C % 64 == 0"})
    made = pricer(rules, layer("a", C=257, K=512, N=256))
    priced = made.priced(0, flaws(made, rules))
    assert priced is not None
    assert priced.outcome is not None
    assert priced.outcome.changes == {"C": 320}
    assert priced.times.after_us == made.time_after(0, {"C": 320}) == priced.outcome.after_us
    widened = pricer(rules, layer("a", C=320, K=512, N=256)).layers[0]
    gpu, runtime = made.facts.gpu, made.facts.runtime
    assert priced.times.ideal_us == unquantized_us(widened, gpu, runtime, "training", 257 / 320)
    assert priced.times.ideal_us < 0.9 * (unquantized_us(widened, gpu, runtime, "training") or 0.0)


@pytest.mark.parametrize(
    ("sizes", "check", "new", "kept"),
    [
        ({"C": 65}, "C == 64", 'C: "64"', True),  # a vector less, and a third of the time
        ({"C": 512, "K": 512, "N": 256}, "C == 504", 'C: "504"', False),  # no more time saved than work
        ({"C": 520, "K": 512, "N": 256}, "C == 456", 'C: "456"', False),
        ({"C": 512, "K": 257, "N": 256}, "K == 256", 'K: "256"', True),  # half a tile
        ({"C": 65, "layout": "NCHW"}, 'layout == "NHWC"', "layout: \"'NHWC'\"", True),  # takes nothing away
        ({"C": 64, "H": 64, "W": 64}, "H == 32", 'H: "32", W: "32"', True),  # no channels
    ],
)
def test_a_fix_that_only_takes_channels_away_is_no_advice(
    sizes: dict[str, object], check: str, new: str, kept: bool, tmp_path: Path
) -> None:
    rules = rulebook(tmp_path, fix(new, check=check))
    made = pricer(rules, layer("a", **sizes))
    own = flaws(made, rules)
    priced = made.priced(0, own)
    assert priced is not None
    assert priced.outcome is not None
    assert (made.change_us(0, own[0].set) or 0.0) < 0
    assert priced.outcome.stakes[0].advised is kept


def test_a_fix_that_leaves_its_own_flaw_is_no_advice(tmp_path: Path) -> None:
    """However much faster it is."""
    rules = rulebook(tmp_path, fix("layout: \"'NHWC'\"", check="C == 1"))
    made = pricer(rules, layer("a", layout="NCHW"))
    priced = made.priced(0, flaws(made, rules))
    assert priced is not None
    assert priced.outcome is not None
    (stake,) = priced.outcome.stakes
    assert (stake.advised, stake.lost_us) == (False, 0.0)
    assert (stake.change_us or 0.0) < 0
    assert priced.times.after_us == priced.times.time_us


def test_a_layer_is_checked_again_under_the_settings_that_a_fix_makes(tmp_path: Path) -> None:
    """In tf32 vectors are four channels wide: only then is their number a flaw."""
    rules = rulebook(
        tmp_path,
        fix('runtime.tf32: "true"', check='compute_dtype == "tf32"'),
        fix('C: "ceil_to(C, alignment)"', check="C % alignment == 0"),
    )
    made = pricer(rules, layer("a", C=510, K=512, N=64, dtype="fp32"), top=WITHOUT_TF32)
    (first,) = flaws(made, rules)
    priced = made.priced(0, [first])
    assert priced is not None
    assert priced.outcome is not None
    assert priced.outcome.changes == {"runtime.tf32": True, "C": 512}
    ((player, _),) = priced.outcome.unlocked
    assert (player.code, player.after) == ("XY001", ("XY000",))
    assert priced.times.after_us == made.time_after(0, {"runtime.tf32": True, "C": 512})


@pytest.mark.parametrize("silent", [False, True])
def test_what_is_silenced_does_not_come_to_light(silent: bool, tmp_path: Path) -> None:
    rules = rulebook(
        tmp_path,
        fix('runtime.tf32: "true"', check='compute_dtype == "tf32"'),
        fix('C: "ceil_to(C, alignment)"', check="C % alignment == 0"),
    )
    made = pricer(rules, layer("a", C=510, K=512, N=64, dtype="fp32"), top=WITHOUT_TF32)
    asked: list[str] = []

    def in_force(flaw: Flaw) -> bool:
        asked.append(flaw.rule.info.code)
        return not silent

    priced = made.priced(0, flaws(made, rules), in_force)
    assert priced is not None
    assert priced.outcome is not None
    assert ("C" in priced.outcome.changes) is not silent
    assert set(asked) == {"XY001"}


# --- single prices


@pytest.mark.parametrize(
    ("loss", "sizes", "wastes"),
    [
        ("tile", {"C": 512, "K": 72}, True),
        ("tile", {"C": 512, "K": 72, "calls": 3}, True),
        ("wave", {"C": 512, "K": 72}, True),
        ("{ kind: tile, passes: [wgrad] }", {"C": 512, "K": 72}, True),
        ("{ kind: tile, passes: [dgrad] }", {"C": 512, "K": 72}, False),  # whose tiles are full
        ("tile", {"K": 64, "C": 64, "kernel_size": 1, "padding": 0}, False),  # bound by memory
        ("fix", {"C": 512, "K": 72}, None),
        ("none", {"C": 512, "K": 72}, None),
    ],
)
def test_what_tiles_and_waves_leave_empty(
    loss: str, sizes: dict[str, object], wastes: bool | None, tmp_path: Path
) -> None:
    (rule,) = rulebook(tmp_path, fix('C: "64"', loss=loss)).rules
    made = pricer(BUILTIN, layer("a", H=28, W=28, N=256, **sizes))
    estimate = made.estimates[0]
    assert estimate is not None
    capacity_us = made.capacity_us(0, rule)
    if wastes is None:
        assert capacity_us is None
        return
    kind = "lost_to_tiles_us" if rule.loss == "tile" else "lost_to_waves_us"
    each = [getattr(one, kind) for which, one in estimate.passes.items() if which in rule.loss_passes]
    assert capacity_us == pytest.approx(made.layers[0].calls * sum(each))
    assert ((capacity_us or 0.0) > 0) is wastes


def test_without_an_estimate_nothing_is_known(tmp_path: Path) -> None:
    (rule,) = rulebook(tmp_path, fix('C: "64"', loss="tile")).rules
    made = pricer(BUILTIN, layer("a", H=None))
    assert made.capacity_us(0, rule) is None
    assert made.change_us(0, {"C": 128}) is None
    assert made.time_after(0, {"C": 128}) is None
    assert made.priced(0, []) is None


@pytest.mark.parametrize(
    ("changes", "known"),
    [({"C": 128}, True), ({"layout": "NCHW"}, True), ({"runtime.tf32": True}, True), ({}, False), ({"H": 0}, False)],
)
def test_a_change_is_time_after_minus_time_now(changes: dict[str, Scalar], known: bool) -> None:
    made = pricer(BUILTIN, layer("a", dtype="fp32", calls=2), top=WITHOUT_TF32)
    change_us, estimate = made.change_us(0, changes), made.estimates[0]
    assert estimate is not None
    assert (change_us is not None) is known
    if known:
        assert change_us == (made.time_after(0, changes) or 0.0) - estimate.time_us
        assert change_us != 0


def test_times_are_kept_for_one_layer_and_no_more_than_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory must not grow with the network."""
    asked: list[object] = []

    def counted(layer: object, *_: object) -> float:
        asked.append(layer)
        return float(len(asked))

    monkeypatch.setattr("convlint.engine.pricing.time_us", counted)
    monkeypatch.setattr("convlint.engine.pricing._MOST_KEPT", 2)
    made = pricer(BUILTIN, layer("a") + layer("b"))
    times = [made.time_after(0, {"C": 8, "K": 8}), made.time_after(0, {"K": 8, "C": 8}), made.time_after(0, {"C": 16})]
    assert times == [1.0, 1.0, 2.0]
    assert made.time_after(1, {"C": 16}) == 3.0
    assert made.time_after(0, {"C": 16}) == 4.0
    assert [made.time_after(0, {"C": C}) for C in (24, 32, 40, 40, 24)] == [5.0, 6.0, 7.0, 7.0, 8.0]
