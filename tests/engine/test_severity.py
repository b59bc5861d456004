"""Who decides how severe a finding is, and where exactly the thresholds lie: each is met and just missed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from small_networks import checked, layer, rulebook

from convlint.engine.batches import Batches
from convlint.engine.hits import Flaw, Hit
from convlint.engine.severity import by_batch, by_price, joins, overridden
from convlint.model.layer import ConvLayer
from convlint.model.location import Location
from convlint.report import Severity
from convlint.rulebook.book import load_rulebook

RULE = load_rulebook().by_key["CL301"]


@pytest.mark.parametrize(
    ("stated", "lost_us", "lost_percent", "layer_share", "decided"),
    [
        ("warning", 1.0, 0.5, 0.05, "warning"),  # both thresholds met exactly
        ("warning", 1.0, 0.499, 0.9, "info"),
        ("warning", 1.0, 99.0, 0.0499, "info"),
        ("warning", 1.0, 0.501, 0.0501, "warning"),
        ("warning", 1.0, None, 0.05, "warning"),  # the network's time is not known: the layer's alone decides
        ("warning", 1.0, None, 0.0499, "info"),
        ("warning", 1.0, 99.0, None, "info"),
        ("warning", 0.0, 0.0, 0.0, "info"),
        ("warning", None, None, None, "warning"),  # what cannot be priced stands
        ("error", 0.0, 0.0, 0.0, "error"),
        ("info", 1e9, 99.0, 0.99, "info"),
    ],
)
def test_price(
    stated: Severity, lost_us: float | None, lost_percent: float | None, layer_share: float | None, decided: Severity
) -> None:
    assert by_price(stated, lost_us, lost_percent, layer_share) == decided


@pytest.mark.parametrize(
    ("stated", "best", "decided"),
    [
        ("warning", 95.0, "warning"),
        ("warning", 95.01, "info"),
        ("warning", 94.99, "warning"),
        ("warning", 100.0, "info"),
        ("error", 94.0, "error"),
        ("error", 99.0, "info"),
    ],
)
def test_batch(stated: Severity, best: float, decided: Severity) -> None:
    assert by_batch(stated, 100.0, best) == decided


@pytest.mark.parametrize("share", ["all", "any", "info"])
@pytest.mark.parametrize("severity", ["error", "warning", "info"])
def test_only_infos_join_infos(share: str, severity: Severity) -> None:
    assert joins(share, severity) == (share != "info" or severity == "info")  # type: ignore[arg-type]


def test_the_user_has_the_last_word() -> None:
    assert {overridden(decided, "warning") for decided in ("error", "warning", "info")} == {"warning"}  # type: ignore[arg-type]


# --- which batch is advised, and how severe that is


def settled(us_per_image: Mapping[int, float], *wanted: int, now: int = 60, kinds: int = 1) -> Hit:
    """Of a network that takes so long for an image at each batch, 100 us where nothing is said."""
    layers = [ConvLayer(name=f"l{number}", N=now) for number in range(kinds)]
    batches = Batches(layers, [None] * kinds, lambda _, N: us_per_image.get(N, 100.0) * N)
    flaw = Flaw(rule=RULE, case=RULE.cases[-1], places=(), message="")
    hit = Hit(
        flaw=flaw, indices=(0,), names=("l0",), location=Location(path="a"), message="", sets=({"N": wanted[0]},),
        other={}, severity="warning", batches=wanted,
    )  # fmt: skip
    return batches.settled(hit)


@pytest.mark.parametrize(
    ("us_per_image", "sets", "severity"),
    [
        (99.49, {"N": 72}, "info"),  # 0.51 % less time per image: worth the words, not a warning
        (99.51, {}, "info"),
        (95.01, {"N": 72}, "info"),
        (94.99, {"N": 72}, "warning"),
    ],
)
def test_what_a_batch_must_gain(us_per_image: float, sets: dict[str, int], severity: Severity) -> None:
    hit = settled({72: us_per_image}, 72)
    assert (hit.sets, hit.severity) == ((sets,), severity)
    assert hit.flaw.case == RULE.cases[-1]


@pytest.mark.parametrize(("best", "sets"), [(54, {"N": 54}), (53, {})])
def test_six_batches_are_tried_on_each_side(best: int, sets: dict[str, int]) -> None:
    assert settled({best: 50.0}, 59, 58, 57, 56, 55, 54, 53).sets == (sets,)


@pytest.mark.parametrize(("kinds", "N"), [(400, 64), (401, 65)])
def test_round_batches_are_tried_in_networks_of_few_kinds(kinds: int, N: int) -> None:
    assert settled({64: 40.0, 65: 50.0}, 65, kinds=kinds).sets == ({"N": N},)


# --- the same thresholds, seen from the outside


@pytest.mark.parametrize(("flawed", "found"), [(4, 4), (5, 1)])
def test_from_five_layers_on_what_not_all_share_is_said_once(flawed: int, found: int, tmp_path: Path) -> None:
    rules = rulebook(tmp_path, {"join": '{ share: all, message: "{count}" }'})
    layers = "".join(layer(f"l{i}", C=8) for i in range(flawed)) + layer("sound", C=1)
    assert len(checked(rules, layers).findings) == found


@pytest.mark.parametrize(("layers", "priced"), [(1000, True), (1001, False)])
def test_a_fix_of_at_most_a_thousand_layers_is_priced(layers: int, priced: bool, tmp_path: Path) -> None:
    fix = '{ describe: "use C=64", set: { C: "64" } }'
    rules = rulebook(tmp_path, {"check": "C == 64", "loss": "fix", "fix": fix, "join": "{ share: any, message: m }"})
    (finding,) = checked(rules, "".join(layer(f"l{i}", C=62) for i in range(layers))).findings
    assert finding.fix is not None
    assert (finding.fix.time_change_us is not None) == priced


def test_what_is_joined_as_info_is_weighed_layer_by_layer(tmp_path: Path) -> None:
    """A warning keeps its own line; the infos beside it become one."""
    fix = '{ describe: "use C={wide}", set: { C: wide } }'
    rules = rulebook(
        tmp_path,
        {"check": "C % 8 == 0", "loss": "fix", "let": '{ wide: "ceil_to(C, 8)" }', "fix": fix,
         "join": '{ share: info, message: "{layers}" }'},
    )  # fmt: skip
    dear, cheap = layer("dear", C=62, N=256, H=56, W=56), [layer(f"l{i}", C=62, N=1, H=4, W=4) for i in range(3)]
    network = dear + layer("sound", C=512, K=512, N=64, H=56, W=56) + "".join(cheap)
    found = [(f.message, f.severity, f.layers) for f in checked(rules, network).findings]
    assert found == [("m", "warning", ()), ("l0, l1, l2", "info", ("l0", "l1", "l2"))]
