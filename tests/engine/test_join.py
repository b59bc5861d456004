"""Which layers' findings become one, and what that one says."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_networks import checked, codes, layer, rulebook

from convlint.engine.hits import COUNT, LAYERS, Flaw, Hit, Loss
from convlint.engine.join import joined
from convlint.model.location import Location
from convlint.report import Scalar, Severity
from convlint.rulebook.book import load_rulebook

ALIGNMENT = load_rulebook().by_key["CL102"]  # joins infos


def hit(index: int, *, severity: Severity = "info", words: str = "w", loss: float | None = None, C: int = 64) -> Hit:
    sets: dict[str, Scalar] = {"C": C}
    flaw = Flaw(
        rule=ALIGNMENT, case=ALIGNMENT.cases[-1], places=(), message="m", describe=words, set=sets, join=True,
        join_message=f"{COUNT}: {LAYERS}",
    )  # fmt: skip
    return Hit(
        flaw=flaw, indices=(index,), names=(f"l{index}",), location=Location(path="a", line=index), message="m",
        sets=(sets,), other={}, severity=severity, loss=None if loss is None else Loss(((index, loss),), (-loss,)),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("hits", "messages"),
    [
        ([hit(0), hit(1)], ["2: l0, l1"]),
        ([hit(0)], ["m"]),
        ([hit(0), hit(1, severity="warning"), hit(2)], ["2: l0, l2", "m"]),
        ([hit(0, severity="warning"), hit(1, severity="warning")], ["m", "m"]),
        ([hit(0), hit(1, words="another fix")], ["m", "m"]),
        ([], []),
    ],
)
def test_infos_are_joined_and_warnings_keep_their_lines(hits: list[Hit], messages: list[str]) -> None:
    assert [one.message for one in joined(hits, {})] == messages


def test_what_is_joined_keeps_each_layers_fix_and_loss() -> None:
    (one,) = joined([hit(0, loss=2.0, C=64), hit(3, loss=1.5, C=72)], {})
    assert (one.indices, one.names, one.sets) == ((0, 3), ("l0", "l3"), ({"C": 64}, {"C": 72}))
    assert one.loss == Loss(((0, 2.0), (3, 1.5)), (-2.0, -1.5))
    assert (one.severity, one.location.line) == ("info", 0)


def test_a_loss_that_one_layer_cannot_tell_is_none() -> None:
    (one,) = joined([hit(0, loss=2.0), hit(3)], {})
    assert one.loss is None


@pytest.mark.parametrize(
    ("share", "layers", "found"),
    [
        ("all", ["8", "8"], [("XY000", None)]),
        ("all", ["8", "1"], [("XY000", "l0")]),
        ("any", ["8", "1", "8"], [("XY000", None)]),
        ("any", ["8", "1"], [("XY000", "l0")]),
        ("all", ["8"], [("XY000", "l0")]),
    ],
)
def test_joins(share: str, layers: list[str], found: list[tuple[str, str | None]], tmp_path: Path) -> None:
    rules = rulebook(tmp_path, {"join": f'{{ share: {share}, message: "{{count}}: {{layers}}" }}'})
    result = checked(rules, "".join(layer(f"l{i}", C=C) for i, C in enumerate(layers)))
    assert codes(result) == found
    if found[0][1] is None:
        (finding,) = result.findings
        names = tuple(f"l{i}" for i, C in enumerate(layers) if C == "8")
        assert finding.layers == names
        assert finding.message == f"{len(names)}: {', '.join(names)}"


def test_all_means_all_to_which_the_rule_applies(tmp_path: Path) -> None:
    rules = rulebook(tmp_path, {"when": "K == 64", "join": '{ message: "{layers}" }'})
    result = checked(rules, layer("a", C=8) + layer("b", K=8) + layer("c", C=8))
    assert [finding.layers for finding in result.findings] == [("a", "c")]


def test_a_long_list_of_layers_is_cut(tmp_path: Path) -> None:
    rules = rulebook(tmp_path, {"join": '{ message: "{count}: {layers}" }'})
    (finding,) = checked(rules, "".join(layer(f"l{i}") for i in range(9))).findings
    assert finding.message == "9: l0, l1, l2, l3 and 5 more"
    assert len(finding.layers) == 9


def test_errors_are_not_joined_with_warnings() -> None:
    """What is said of several layers is true of each: bf16 and fp8 have no kernel on V100, int8 runs slowly."""
    layers = "".join(
        f"  - {{ name: {dtype}, C: 64, H: 28, W: 28, K: 64, kernel_size: 3, padding: 1, dtype: {dtype} }}\n"
        for dtype in ("int8", "bf16", "fp8")
    )
    head = "defaults: { N: 8 }\n"
    found = {
        f.layer: f.severity
        for f in checked(load_rulebook(), layers, gpus="v100", top=head, mode="inference").findings
        if f.rule.code == "CL107"
    }
    assert found == {"int8": "warning", "bf16": "error", "fp8": "error"}


@pytest.mark.parametrize(("flawed", "found"), [(4, 4), (5, 1)])
def test_from_five_layers_on_what_not_all_share_is_said_once(flawed: int, found: int, tmp_path: Path) -> None:
    rules = rulebook(tmp_path, {"join": '{ share: all, message: "{count}" }'})
    layers = "".join(layer(f"l{i}", C=8) for i in range(flawed)) + layer("sound", C=1)
    assert len(checked(rules, layers).findings) == found


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


@pytest.mark.parametrize(
    ("wants", "batches", "N"),
    [
        ([54, 108, 54], (54, 108), 54),
        ([72, 64, 80], (64, 72, 80), 72),  # the one in the middle serves most
        ([64, 72], (64, 72), 72),
    ],
)
def test_a_network_has_one_batch(wants: list[int], batches: tuple[int, ...], N: int) -> None:
    hits = [hit(index)._replace(sets=({"N": want},)) for index, want in enumerate(wants)]
    (one,) = joined(hits, {})
    assert (one.batches, one.sets) == (batches, ({"N": N},) * len(wants))


@pytest.mark.parametrize(("wants", "loss"), [([54, 54], Loss(((0, 2.0), (1, 1.5)), (-2.0, -1.5))), ([54, 108], None)])
def test_a_price_holds_for_the_batch_that_it_was_worked_out_for(wants: list[int], loss: Loss | None) -> None:
    hits = [
        hit(index, loss=us)._replace(sets=({"N": N},))
        for index, (N, us) in enumerate(zip(wants, (2.0, 1.5), strict=True))
    ]
    assert joined(hits, {})[0].loss == loss
