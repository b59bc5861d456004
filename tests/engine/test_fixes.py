"""What a finding's fix sets: for each of its layers, and for all of them where they share it."""

import re
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from convolutions import A100, RUNTIME, conv
from msgspec.structs import replace
from small_networks import checked, layer, rulebook

from convlint.engine import fixes
from convlint.engine.fixes import Batches, BatchPlan, is_refuted
from convlint.engine.hits import Flaw, Hit, Price
from convlint.estimate import estimate_layer
from convlint.mend.checking import Job
from convlint.model.estimates import LayerEstimate
from convlint.model.layer import ConvLayer
from convlint.model.location import Location
from convlint.model.report import Fix, Report, Severity
from convlint.readers.inputs import file_input
from convlint.rulebook.book import load_rulebook
from convlint.run.run import report_on

WIDEN = {
    "check": "C % 8 == 0", "loss": "fix", "let": '{ wide: "ceil_to(C, 8)" }',
    "fix": '{ describe: "use more channels", set: { C: wide } }',
    "join": '{ share: any, message: "{count} layers are odd: {layers}" }',
}  # fmt: skip


def the_fix(folder: Path, layers: str, rule: dict[str, str] = WIDEN) -> Fix:
    (finding,) = checked(rulebook(folder, rule), layers).findings
    assert finding.fix is not None
    return finding.fix


@pytest.mark.parametrize(
    ("channels", "shared", "each"),
    [
        ([62], {"C": 64}, [64]),
        ([62, 61], {"C": 64}, [64, 64]),
        ([62, 70, 93], {}, [64, 72, 96]),
    ],
)
def test_joined_layers_keep_what_each_of_them_gets(
    channels: list[int], shared: dict[str, int], each: list[int], tmp_path: Path
) -> None:
    fix = the_fix(tmp_path, "".join(layer(f"l{C}", C=C) for C in channels))
    assert fix.set == shared
    assert [dict(changes) for changes in fix.by_layer] == [{"C": C} for C in each]


def test_advice_that_keeps_the_results_and_costs_time_is_not_given(tmp_path: Path) -> None:
    """NCHW on Tensor Cores is transposed, so that a rule for it is refuted; the other way it is heard."""
    rule = {"loss": "fix", "severity": "info"}
    to_nchw = {**rule, "check": 'layout == "NCHW"', "fix": "{ describe: d, safety: safe, set: { layout: \"'NCHW'\" } }"}
    assert checked(rulebook(tmp_path, to_nchw), layer("a")).findings == ()
    unsafe = {**to_nchw, "fix": to_nchw["fix"].replace("safe,", "unsafe,")}
    assert len(checked(rulebook(tmp_path, unsafe), layer("a")).findings) == 1
    to_nhwc = {**rule, "check": 'layout == "NHWC"', "fix": "{ describe: d, safety: safe, set: { layout: \"'NHWC'\" } }"}
    assert len(checked(rulebook(tmp_path, to_nhwc), layer("a", layout="NCHW")).findings) == 1


FIX = Fix(describe="d", safety="safe", set={"C": 64}, time_change_us=1.0)


@pytest.mark.parametrize(
    ("loss", "severity", "advised", "fix", "refuted"),
    [
        ("fix", "info", False, FIX, True),
        ("fix", "info", True, FIX, False),  # with others it pays
        ("fix", "warning", False, FIX, False),
        ("fix", "error", False, FIX, False),
        ("none", "info", False, FIX, False),  # it is not about time
        ("fix", "info", False, replace(FIX, safety="unsafe"), False),
        ("fix", "info", False, replace(FIX, time_change_us=0.0), False),
        ("fix", "info", False, replace(FIX, time_change_us=None), False),
        ("fix", "info", False, None, False),
    ],
)
def test_what_a_prediction_refutes(
    loss: str, severity: Severity, advised: bool, fix: Fix | None, refuted: bool, tmp_path: Path
) -> None:
    (rule,) = rulebook(tmp_path, {"loss": loss, "fix": '{ describe: d, set: { C: "64" } }'}).rules
    flaw = Flaw(rule=rule, case=rule.cases[-1], places=(), message="m", set={"C": 64})
    hit = Hit(
        flaw=flaw, indices=(0,), names=("a",), location=Location(path="a"), message="m", sets=(flaw.set,), other={},
        severity=severity, number=0, price=Price(advised=advised),
    )  # fmt: skip
    assert is_refuted(hit, fix) is refuted


def test_what_a_fix_changes_on_one_gpu_is_not_said_of_several(tmp_path: Path) -> None:
    """A rule that no GPU changes is checked on the first target alone, and names none."""
    rules = rulebook(tmp_path, {"check": "N == 108", "fix": '{ describe: "use N=108", set: { N: "108" } }'})
    for gpus, known in (("a100", True), ("a100 k80", False)):
        (finding,) = checked(rules, layer("a", N=55, C=4096, H=16, W=16, K=256), gpus=gpus, mode="inference").findings
        assert finding.gpu is None
        assert finding.fix.set == {"N": 108}
        assert (finding.fix.time_change_us is not None) is known


# --- what each alternative changes

BETWEEN = {
    "check": "K % 64 == 0", "loss": "tile", "join": '{ share: any, message: "{layers}" }',
    "fix": '{ describe: "multiples of 64", set: { K: "ceil_to(K, 64)" }, or: { K: "floor_to(K, 64)" } }',
}  # fmt: skip


def test_alternatives_say_what_they_do_to_time_and_work(tmp_path: Path) -> None:
    """The nearer one is named first; one that takes work away is no fix. Work is that of all layers."""
    fix = the_fix(tmp_path, layer("a", K=72) + layer("b", K=72), BETWEEN)
    assert (fix.set, fix.states_effect, fix.applicable) == ({"K": 128}, True, False)
    found = re.fullmatch(
        r"multiples of 64: K=64 \(time ([+-]\d+) %, work -11 %\) or K=128 \(time ([+-]\d+) %, work \+78 %\)",
        fix.describe,
    )
    assert int(found[1]) < int(found[2])


def test_layers_that_get_narrower_to_different_sizes_are_told_which(tmp_path: Path) -> None:
    """The rule's own words speak of the sizes that do not pay here."""
    wider = BETWEEN | {"fix": '{ describe: "wider", set: { K: "K + 1" }, or: { K: "floor_to(K, 64)" } }'}
    fix = the_fix(tmp_path, layer("a", K=72) + layer("b", K=136), wider)
    assert re.fullmatch(r"use K=64, K=128 \(time -\d+ %, work -\d %\)", fix.describe)


def test_work_is_only_told_where_it_changes(tmp_path: Path) -> None:
    layout = {
        "check": 'layout == "NHWC"', "loss": "fix",
        "fix": "{ describe: d, set: { layout: \"'NHWC'\" }, or: { runtime.tf32: true } }",
    }  # fmt: skip
    fix = the_fix(tmp_path, layer("a", layout="NCHW"), layout)
    assert fix.describe == "d"  # of a setting, what B has is the fix
    assert fix.applicable
    assert (fix.time_change_us or 0.0) < 0


def test_without_a_prediction_alternatives_are_named_alone(tmp_path: Path) -> None:
    fix = the_fix(tmp_path, layer("a", K=72, H=None), BETWEEN)
    assert fix.describe == "multiples of 64: K=64 or K=128"


@pytest.mark.parametrize(("most", "told"), [(2, True), (1, False)])
def test_what_many_layers_would_change_is_not_worked_out(
    most: int, told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fixes, "MOST_PRICED", most)
    fix = the_fix(tmp_path, layer("a", K=72) + layer("b", K=72), BETWEEN)
    assert ("work" in fix.describe) is fix.states_effect is told
    assert fix.time_change_us is not None


BUILTIN = load_rulebook()


def _report(spec: str, tmp_path: Path) -> Report:
    (tmp_path / "net.yaml").write_text(spec)
    return report_on([(file_input(str(tmp_path / "net.yaml")), BUILTIN, Job())])


STAGE = """
version: 1
target: a100
defaults: { N: 8, dtype: fp16, layout: NHWC }
layers:
  - { name: a, C: 1024, H: 14, W: 14, K: 512, kernel_size: 1 }
  - { name: b, K: 512, kernel_size: 3, stride: 2, padding: 1 }
  - { name: c, K: 2048, kernel_size: 1 }
  - { name: d, K: 512, kernel_size: 1 }
"""


def test_batch_advice_is_given_once_and_pays(tmp_path: Path) -> None:
    """Layers want different batches, but a network has one: it is named where an image then takes less time."""
    found = [f for f in _report(STAGE, tmp_path).findings if f.rule.code == "CL301"]
    assert len(found) == 1
    assert found[0].severity == "info"  # no commit is blocked by a batch
    N = int(found[0].fix.set["N"])
    assert 8 < N <= 16
    totals = [_report(spec, tmp_path).total for spec in (STAGE, STAGE.replace("N: 8", f"N: {N}"))]
    before, after = (0.0 if total is None else total.time_us or 0.0 for total in totals)
    assert 0 < after / N < 0.95 * before / 8
    assert found[0].fix.time_change_us == pytest.approx(after / N - before / 8)  # of an image
    percent = round(100 * (after / N / (before / 8) - 1))
    assert f"N={N} (time per image {percent} %" in found[0].fix.describe


def test_no_step_is_shorter_than_its_host_lets_it_be(tmp_path: Path) -> None:
    layers = "".join(f"  - {{ name: l{i}, C: 64, H: 4, W: 4, K: 64, kernel_size: 3, padding: 1 }}\n" for i in range(30))
    head = "version: 1\ntarget: a100\nmode: inference\nruntime: { framework: pytorch }\n"
    spec = f"{head}defaults: {{ N: 1, dtype: fp16, layout: NHWC }}\nlayers:\n{layers}"
    found = {f.rule.code: f for f in _report(spec, tmp_path).findings}
    assert "CL306" in found
    assert "N=" in found["CL301"].fix.describe
    image = 100 * (1 / found["CL301"].fix.set["N"] - 1)
    assert f"(time per image {image:.0f} %, per step +0 %)" in found["CL301"].fix.describe


@pytest.mark.parametrize("framework", ["pytorch", "jax"])
def test_a_batch_is_said_to_change_the_step_as_the_next_check_has_it(framework: str, tmp_path: Path) -> None:
    """Weights of linear layers and the optimizer are read once for any number of images, and eager PyTorch waits."""
    spec = f"""
version: 1
target: a100
runtime: {{ framework: {framework}, optimizer: adam }}
defaults: {{ N: 1, dtype: fp16, layout: NHWC }}
layers:
  - {{ name: image, op: input, C: 64, H: 14, W: 14 }}
  - {{ name: a, K: 512, kernel_size: 3, padding: 1 }}
  - {{ name: norm, op: layernorm }}
  - {{ name: up, op: linear, C: 4096 }}
  - {{ name: gelu, op: gelu }}
  - {{ name: down, op: linear, C: 512 }}
  - {{ name: b, K: 512, kernel_size: 3, padding: 1 }}
"""
    report = _report(spec, tmp_path)
    (found,) = [f for f in report.findings if f.rule.code == "CL301"]
    N = int(found.fix.set["N"])
    now, then = (
        each.networks[0].step.time_us for each in (report, _report(spec.replace("N: 1,", f"N: {N},"), tmp_path))
    )
    image, step = 100 * (then / now / N - 1), 100 * (then / now - 1)
    assert f"N={N} (time per image {image:+.0f} %, per step {step:+.0f} %)" in found.fix.describe


def test_layers_of_another_batch_have_no_say(tmp_path: Path) -> None:
    """A spec may hold layers of several networks: each batch is weighed with the layers that share it."""
    alone = "version: 1\ntarget: a100\nmode: inference\nlayers:\n"
    common = "kernel_size: 3, padding: 1, dtype: fp16, layout: NHWC }\n"
    wave = f"  - {{ name: wave, N: 55, C: 4096, H: 16, W: 16, K: 256, {common}"
    big = f"  - {{ name: big, N: 256, C: 1024, H: 64, W: 64, K: 1024, {common}"
    for spec in (alone + wave, alone + wave + big):
        finding = next(f for f in _report(spec, tmp_path).findings if f.rule.code == "CL204")
        assert "N=54" in finding.fix.describe
        assert "N=108" in finding.fix.describe


# the first has a last wave of four tiles, the others fewer tiles than SMs
TAIL = layer("tail", N=55, C=4096, H=16, W=16, K=256)
FEW = [layer(f"few{number}", N=55, C=256, H=4, W=4, K=64) for number in range(2)]


def test_the_batch_of_a_network_is_one_finding() -> None:
    """Where the rules look at other layers, and each of those would like another batch: that on most layers is it."""
    result = checked(BUILTIN, TAIL + "".join(FEW), mode="inference")
    (found,) = [finding for finding in result.findings if finding.rule.code in ("CL204", "CL301")]
    assert (found.rule.code, found.severity, found.layer, found.layers) == ("CL301", "info", None, ("few0", "few1"))
    assert (found.lost_us, found.lost_percent, found.lost_alone_us, found.advised) == (None, None, None, False)
    assert "N=54 (time per image -" in found.fix.describe
    assert found.fix.set == {"N": 108}  # a lower batch takes work away: that is no fix
    assert [(each.set, each.work_change) for each in found.alternatives] == [({"N": 108}, 0.0), ({"N": 54}, 0.0)]
    assert all((each.time_change_us or 0.0) < 0 for each in found.alternatives)
    for entry in result.layers:  # another batch is no part of what advice saves
        times = entry.times["a100"]
        assert times.after_us == times.time_us


def test_a_batch_is_one_change_however_many_layers_join() -> None:
    """What it changes is that of all layers together."""
    one, two = (
        next(f for f in checked(BUILTIN, layers, mode="inference").findings if f.rule.code == "CL204")
        for layers in (TAIL, TAIL + TAIL.replace("tail", "other"))
    )
    assert two.layers == ("tail", "other")
    assert two.fix.time_change_us == pytest.approx(2 * (one.fix.time_change_us or 0.0))
    assert (
        two.fix.describe
        == one.fix.describe
        == (
            "a batch with fuller waves: N=108 (time per image -32 %, per step +34 %) or "
            "N=54 (time per image -32 %, per step -33 %)"
        )
    )
    assert one.fix.states_effect


RULE, OF_TILES = BUILTIN.by_key["CL301"], BUILTIN.by_key["CL201"]


def hit(N: int = 0, other: int = 0, *, index: int = 0, rule: Any = RULE, severity: Severity = "warning") -> Hit:
    """That asks for the batch `N`, or for `other` on the other side; with 0 for none."""
    sets, others = ({"N": each} if each else {} for each in (N, other))
    case = RULE.cases[-1]
    flaw = Flaw(rule=rule, case=case, places=(), message="", set=sets, other=others)
    return Hit(
        flaw=flaw, indices=(index,), names=(f"l{index}",), location=Location(path="a"), message="", sets=(flaw.set,),
        other=flaw.other, severity=severity, number=0, price=Price(capacity_us=7.0),
    )  # fmt: skip


def batches(us_per_image: Mapping[int, float], now: int = 60, kinds: int = 1) -> Batches:
    """Of a network that takes so long for an image at each batch, 100 us where nothing is said."""
    layers = [ConvLayer(name=f"l{number}", N=now) for number in range(kinds)]
    return Batches(layers, [None] * kinds, lambda _, N: us_per_image.get(N, 100.0) * N)


def settled(us_per_image: Mapping[int, float], *wanted: int, now: int = 60, kinds: int = 1) -> Hit:
    """The first of hits that each want another batch."""
    return batches(us_per_image, now, kinds).settled([hit(N) for N in wanted])[0]


@pytest.mark.parametrize(
    ("us_per_image", "sets", "severity"),
    [
        (99.49, {"N": 72}, "info"),  # 0.51 % less time per image: worth the words, not a warning
        (99.51, {}, "info"),
        (95.01, {"N": 72}, "info"),
        (94.99, {"N": 72}, "info"),
    ],
)
def test_what_a_batch_must_gain(us_per_image: float, sets: dict[str, int], severity: Severity) -> None:
    hit = settled({72: us_per_image}, 72)
    assert (hit.sets, hit.severity) == ((sets,), severity)
    assert hit.flaw.case == RULE.cases[-1]


@pytest.mark.parametrize(
    ("wanted", "sets"),
    [
        ([50, 51, 52, 53, 54, 59], {"N": 59}),
        ([50, 51, 52, 53, 54, 55, 59], {}),  # the seventh
        ([50, 51, 52, 53, 54, 55, 59, 59], {"N": 59}),  # the most wanted come first
    ],
)
def test_six_batches_are_tried_on_each_side(wanted: list[int], sets: dict[str, int]) -> None:
    assert settled({59: 50.0}, *wanted).sets == (sets,)


@pytest.mark.parametrize(("kinds", "N"), [(400, 64), (401, 65)])
def test_round_batches_are_tried_in_networks_of_few_kinds(kinds: int, N: int) -> None:
    assert settled({64: 40.0, 65: 50.0}, 65, kinds=kinds).sets == ({"N": N},)


@pytest.mark.parametrize(
    ("best", "sets"), [(71, {}), (72, {"N": 72}), (80, {"N": 80}), (88, {}), (96, {"N": 96}), (128, {"N": 128})]
)
def test_the_next_multiples_of_8_16_32_and_64_are_round(best: int, sets: dict[str, int]) -> None:
    assert settled({best: 50.0}, 140, now=70).sets == (sets,)


@pytest.mark.parametrize(
    ("now", "wanted", "sets"),
    [
        (60, 120, {"N": 120}), (60, 121, {}), (60, 30, {"N": 30}), (60, 29, {}), (61, 31, {"N": 31}), (61, 30, {}),
        (1, 50, {"N": 50}),  # one image is no batch
        (2, 5, {}),
        (60, 60, {}),
    ],
)  # fmt: skip
def test_more_than_twice_or_less_than_half_is_another_way_to_work(now: int, wanted: int, sets: dict[str, int]) -> None:
    assert settled({wanted: 50.0}, wanted, now=now).sets == (sets,)


def test_of_one_image_8_is_tried_with_what_fills_a_wave() -> None:
    assert settled({5: 50.0, 8: 40.0}, 5, now=1).sets == ({"N": 8},)
    assert settled({5: 50.0, 8: 60.0}, 5, now=1).sets == ({"N": 5},)
    assert settled({21: 50.0, 24: 40.0}, 21, now=1).sets == ({"N": 24},)


@pytest.mark.parametrize(
    ("us_per_image", "sets", "other"),
    [
        ({50: 90.0, 66: 80.0}, {"N": 66}, {"N": 50}),  # the larger one is set, the other is said
        ({50: 90.0, 72: 80.0}, {"N": 72}, {"N": 50}),
        ({50: 90.0, 72: 99.9}, {"N": 50}, {}),
        ({66: 90.0, 72: 90.0}, {"N": 72}, {}),  # of equals the larger
    ],
)
def test_one_batch_on_each_side(us_per_image: dict[int, float], sets: dict[str, int], other: dict[str, int]) -> None:
    hit = settled(us_per_image, 50, 66, 72)
    assert (hit.sets, hit.other) == ((sets,), other)


def test_a_batch_that_any_asks_for_is_the_plan_of_all() -> None:
    """Also of those that found no batch of their own."""
    found = batches({50: 90.0, 66: 80.0}).settled([hit(66), hit(50), hit()])
    assert [(one.sets, one.other) for one in found] == [(({"N": 66},), {"N": 50})] * 3
    found = batches({50: 90.0, 66: 80.0}).settled([hit(66, other=50)])
    assert [(one.sets, one.other) for one in found] == [(({"N": 66},), {"N": 50})]
    (alone,) = batches({}).settled([hit()])
    assert (alone.sets, alone.other, alone.severity, alone.price.change_us) == (({},), {}, "info", None)


@pytest.mark.parametrize(
    ("asks", "sets", "other", "severity"),
    [
        (hit(66, rule=OF_TILES), {"N": 66}, {}, "info"),
        (hit(66, other=50, rule=OF_TILES), {"N": 66}, {"N": 50}, "info"),
        (hit(50, rule=OF_TILES), {}, {}, "info"),  # the plan is another one, and leaves its tiles as empty as before
        (hit(68, rule=OF_TILES), {}, {}, "info"),
        (hit(rule=OF_TILES), {}, {}, "info"),
        (hit(68), {"N": 66}, {"N": 50}, "info"),
        (hit(68, severity="error"), {"N": 66}, {"N": 50}, "error"),
    ],
)
def test_what_fills_tiles_is_a_batch_that_the_rule_itself_asks_for(
    asks: Hit, sets: dict[str, int], other: dict[str, int], severity: Severity
) -> None:
    found = batches({50: 90.0, 66: 80.0}).settled([asks, hit(66), hit(50)])[0]
    assert (found.sets, found.other, found.severity) == ((sets,), other, severity)


def test_what_a_batch_changes_is_the_time_of_an_image() -> None:
    """And no share of what the layers' own fixes save; what waves leave empty is kept."""
    assert settled({72: 80.0}, 72).price == Price(capacity_us=7.0, change_us=80.0 - 100.0)
    assert settled({}, 72).price == Price(capacity_us=7.0)


def test_a_plan() -> None:
    network = batches({50: 90.0, 64: 80.0, 66: 99.9})
    assert network.plan(60, [50, 66]) == BatchPlan((64, 50), 100.0)  # the larger first
    assert network.plan(60, [66]) == BatchPlan((64,), 100.0)
    assert network.plan(60, []) == BatchPlan((), 100.0)  # nobody asks
    assert batches({50: 98.0, 72: 90.0}).plan(60, [50, 72]) == BatchPlan((72, 50), 100.0)


@pytest.mark.parametrize(
    ("indices", "severities", "left"),
    [
        ([[0, 1], [2]], ["info", "info"], [0]),
        ([[0], [1, 2]], ["info", "info"], [1]),
        ([[0], [1]], ["info", "info"], [0]),  # of equals the first
        ([[0], [1, 2]], ["error", "info"], [0, 1]),  # errors stand
        ([[0], [3]], ["info", "info"], [0, 1]),  # another network's batch
    ],
)
def test_one_batch_is_said_once(indices: list[list[int]], severities: list[Severity], left: list[int]) -> None:
    layers = [ConvLayer(name=f"l{number}", N=60 if number < 3 else 8) for number in range(4)]
    network = Batches(layers, [None] * 4, lambda _, N: 1.0 * N)
    hits = [
        replace(hit(64, severity=severity), indices=tuple(each))
        for each, severity in zip(indices, severities, strict=True)
    ]
    other = replace(hit(rule=OF_TILES), sets=({"C": 64},), severity="warning")
    other = replace(other, flaw=replace(other.flaw, set={"C": 64}))
    assert network.said_once([*hits, other]) == [*(hits[number] for number in left), other]


def test_a_fix_of_something_else_is_left_alone() -> None:
    network = Batches([ConvLayer(name="a", N=60)], [None], lambda *_: pytest.fail("priced"))
    for sets in ({"C": 64}, {"N": 64, "C": 64}):
        made = hit(64)
        made = replace(made, flaw=replace(made.flaw, set=sets), sets=(sets,))
        assert network.settled([made]) == [made]
        assert not made.sets_batch
    assert hit(64).sets_batch
    assert hit().sets_batch  # it would ask for another batch if one were good


def test_equal_layers_are_one_kind_and_each_batch_has_its_own() -> None:
    sizes = [60, 60, 60, 8, None]
    layers = [ConvLayer(name=f"l{index}", N=N) for index, N in enumerate(sizes)]
    sized: Any = conv
    one, two = (estimate_layer(sized(K=K), A100, RUNTIME, "training") for K in (64, 128))
    asked = []

    def time_us(index: int, N: int) -> float:
        asked.append((index, N))
        return 1000.0 + index

    network = Batches(layers, [one, two, one, one, one], time_us)
    assert network.us_per_image(60, 64) == (2 * 1000.0 + 1001.0) / 64
    assert network.us_per_image(8, 16) == 1000.0 / 16  # of another batch, but of the kind that came first
    assert network.us_per_image(60, 64) == (2 * 1000.0 + 1001.0) / 64
    assert asked == [(0, 64), (1, 64), (0, 16)]  # each once
    assert network.settled([hit(index=4)])[0] == hit(index=4)  # whose batch is not known


def _a_pass() -> Any:
    """Equal to no other."""
    return SimpleNamespace()


@pytest.mark.parametrize("kinds", [400, 401, 1000, 3456])
def test_a_sample_gains_what_the_whole_network_gains(kinds: int) -> None:
    """Long layers gain least from another batch: those alone would hide what the network gains."""
    now, better = 60, 64
    long_us = [1000.0 / (1 + number) for number in range(kinds)]
    gains = [0.0 if us > 10 else 0.2 for us in long_us]
    estimates = [
        LayerEstimate(passes={"fprop": _a_pass()}, time_us=us * now, unquantized_us=us, basis="assumed")
        for us in long_us
    ]
    network = Batches(
        [ConvLayer(name=f"l{number}", N=now) for number in range(kinds)], estimates,
        lambda index, N: N * long_us[index] * (1 - gains[index] if better == N else 1),
    )  # fmt: skip
    whole = sum(us * (1 - gain) for us, gain in zip(long_us, gains, strict=True)) / sum(long_us)
    present, then = network.us_per_image(now, now), network.us_per_image(now, better)
    assert present == pytest.approx(sum(long_us))
    assert then / present == pytest.approx(whole, abs=0.01)
