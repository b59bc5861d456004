"""The engine on small networks and rules written for the purpose: precedence, joins, skips, targets, prices, order."""

from collections.abc import Collection
from pathlib import Path

import pytest
from msgspec.structs import replace
from read_specs import network
from small_networks import checked, codes, layer, rulebook
from wirings import Wiring

from convlint.engine.check import Silences, Target, check_network
from convlint.engine.findings import NetworkResult
from convlint.gpus.gpu import load_gpu
from convlint.model.report import Finding, LayerTimes
from convlint.model.runtime import Runtime, Version
from convlint.rulebook.book import Rulebook, load_rulebook

BUILTIN = load_rulebook()


# --- scopes and places


def test_a_network_rule_fires_once_at_its_setting(tmp_path: Path) -> None:
    rules = rulebook(
        tmp_path, {"scope": "network", "check": "runtime.cudnn_benchmark", "at": "runtime.cudnn_benchmark"}
    )
    (finding,) = checked(rules, layer("a") + layer("b"), top="runtime:\n  cudnn_benchmark: false\n").findings
    assert (finding.layer, finding.location.line, finding.location.column) == (None, 3, 20)


def test_a_finding_points_at_the_first_place_that_holds(tmp_path: Path) -> None:
    rules = rulebook(tmp_path, {"check": "C == 1 and K == 1", "at": "{ C: C > 1, K: K > 1 }"})
    text = "  - name: a\n    C: {}\n    H: 8\n    W: 8\n    K: {}\n    kernel_size: 1\n"
    assert [
        checked(rules, text.format(C, K)).findings[0].location.line for C, K in ((2, 2), (2, 1), (1, 2))
    ] == [4, 4, 7]  # fmt: skip


def test_a_skip_is_counted_once_for_all_targets() -> None:
    one = checked(BUILTIN, layer("a", H=None), gpus="a100").skipped
    two = checked(BUILTIN, layer("a", H=None), gpus="a100 v100").skipped
    assert len({(skip.code, skip.layer) for skip in two}) == len(two) >= len(one) > 0


# --- targets


def test_each_target_has_its_own_findings() -> None:
    result = checked(BUILTIN, layer("a", C=62, dtype="fp16"), gpus="a100 p100")
    assert [(f.gpu, f.layer) for f in result.findings if f.rule.code == "CL102"] == [("a100", "a")]
    assert "p100" in {f.gpu for f in result.findings if f.rule.code == "CL701"}
    assert [list(report.estimates) for report in result.layers] == [["a100", "p100"]]


def test_what_no_gpu_changes_is_said_once(tmp_path: Path) -> None:
    rules = rulebook(tmp_path, {}, {"when": "gpu.sms > 0"})
    found = checked(rules, layer("a"), gpus="a100 v100").findings
    assert [(f.rule.code, f.gpu) for f in found] == [("XY000", None), ("XY001", "a100"), ("XY001", "v100")]


def test_each_target_has_its_own_times() -> None:
    both = times(checked(BUILTIN, layer("a"), gpus="v100 a100"))
    assert list(both) == ["v100", "a100"]
    for gpu in both:
        assert both[gpu] == times(checked(BUILTIN, layer("a"), gpus=gpu))[gpu]
    assert both["v100"] != both["a100"]


def fingerprints(text: str, path: str = "net.yaml") -> list[tuple[str, str]]:
    return [(f.rule.code, f.fingerprint) for f in checked(BUILTIN, text, path=path).findings]


def test_fingerprints_survive_moved_lines() -> None:
    text = layer("a", C=62) + layer("b", C=62)
    found = fingerprints(text)
    assert found == fingerprints("\n# moved\n\n" + text)
    assert found == fingerprints(text.replace("C: 62", "C:   61"))
    assert len({print_ for _, print_ in found}) == len(found) > 2
    assert not set(found) & set(fingerprints(text, path="other.yaml"))


def test_fingerprints_follow_names_and_ordinals() -> None:
    text = layer("a", C=62) + layer("b", C=62)
    renamed = checked(BUILTIN, text.replace("name: a,", "name: c,"))
    old = {(f.rule.code, f.layer): f.fingerprint for f in checked(BUILTIN, text).findings if f.layer}
    new = {(f.rule.code, f.layer): f.fingerprint for f in renamed.findings if f.layer}
    assert all(new[key] == old[key] for key in new if key[1] == "b")
    assert not {new[key] for key in new if key[1] == "c"} & set(old.values())


def finding_of(result: NetworkResult, code: str) -> Finding:
    return next(finding for finding in result.findings if finding.rule.code == code)


def test_inference_has_no_backward_passes() -> None:
    result = checked(BUILTIN, layer("a", C=62), mode="inference")
    estimate = result.layers[0].estimates["a100"]
    assert list(estimate.passes) == ["fprop"]
    assert "CL105" not in dict(codes(result))


def test_a_first_layer_has_no_dgrad() -> None:
    result = checked(BUILTIN, layer("a", C=3, first="true"))
    estimate = result.layers[0].estimates["a100"]
    assert list(estimate.passes) == ["fprop", "wgrad"]
    assert finding_of(result, "CL103").layer == "a"


# --- flaws of one layer, priced together


def times(result: NetworkResult, index: int = 0) -> dict[str, LayerTimes]:
    """Of one layer, on each target."""
    return {gpu: own for gpu, own in result.layers[index].times.items() if own is not None}


def advised(result: NetworkResult) -> dict[str, Finding]:
    return {finding.rule.code: finding for finding in result.findings if finding.advised}


# The layer of which the library pads the channels and transposes the tensors.
ODD = layer("odd", C=62, K=250, kernel_size=1, padding=0, H=56, W=56, layout="NCHW")
WIDER = layer("odd", C=62, K=250, H=56, W=56, layout="NCHW")


def test_two_flaws_of_a_layer_share_what_mending_both_saves() -> None:
    result = checked(BUILTIN, ODD)
    found, own = advised(result), times(result)["a100"]
    assert {code: finding.severity for code, finding in found.items()} == {"CL102": "warning", "CL401": "warning"}
    lost = [finding.lost_us or 0.0 for finding in found.values()]
    assert min(lost) > 0
    assert sum(lost) == pytest.approx(own.time_us - own.after_us)
    assert sum(finding.lost_percent or 0.0 for finding in found.values()) == pytest.approx(
        100 * (1 - own.after_us / own.time_us)
    )
    mended = checked(BUILTIN, ODD.replace("C: 62", "C: 64").replace("K: 250", "K: 256").replace("NCHW", "NHWC"))
    assert times(mended)["a100"].time_us == own.after_us
    for finding in result.findings:
        if not finding.advised:
            assert finding.lost_us in (None, 0.0)
            assert finding.severity == "info"
            assert finding.pays_with == ()


def test_a_fix_that_earns_its_share_with_another_names_it() -> None:
    """Aligned channels are worth little of their share while tensors are transposed anyway."""
    found = advised(checked(BUILTIN, WIDER))
    odd = found["CL102"]
    assert odd.severity == "warning"
    assert odd.pays_with == ("CL401",)
    assert odd.lost_alone_us < odd.lost_us / 2
    # alone it saves nothing: a transpose into padded channels takes no longer
    assert (odd.fix.time_change_us or 0.0) >= -odd.lost_alone_us
    assert odd.fix.alone
    transposed = found["CL401"]
    assert transposed.pays_with == ()
    assert transposed.fix.alone  # as every fix that makes another difference alone than its share
    assert transposed.fix.time_change_us != pytest.approx(-(transposed.lost_us or 0.0), rel=0.01)


@pytest.mark.parametrize(
    ("sizes", "gpus", "top", "code"),
    [
        ({"dtype": "fp64"}, "t4", "", "CL108"),
        ({"C": 250, "K": 256}, "v100", 'runtime: { cudnn: "7.4" }\n', "CL101"),
    ],
)
def test_a_flaw_that_costs_most_of_the_time_is_an_f(sizes: dict[str, object], gpus: str, top: str, code: str) -> None:
    result = checked(BUILTIN, layer("a", **sizes), gpus=gpus, top=top)
    own, finding = times(result)[gpus], advised(result)[code]
    assert own.grade == "F"
    assert finding.severity in ("error", "warning")
    assert (finding.lost_us or 0.0) > 0.6 * own.time_us
    assert own.ideal_us <= own.after_us < 0.4 * own.time_us


def test_what_is_predicted_to_be_sound_has_no_share() -> None:
    result = checked(BUILTIN, layer("a", C=256, K=256, N=256))
    own = times(result)["a100"]
    assert advised(result) == {}
    assert own.after_us == own.time_us
    assert own.grade == "A"


@pytest.mark.parametrize("gap", ["H", "N", "dtype"])
def test_a_layer_whose_time_is_not_known_has_none(gap: str) -> None:
    result = checked(BUILTIN, layer("a", **{"C": 62, gap: None}))
    assert result.layers[0].times == {"a100": None}
    assert {finding.lost_us for finding in result.findings} <= {None}


def test_a_finding_on_the_batch_is_no_share_of_a_layer() -> None:
    """It is the network's: time is compared for an image."""
    layers = "".join(layer(name, N=55, C=4096, H=16, W=16, K=256) for name in "ab")
    result = checked(BUILTIN, layers, mode="inference")
    finding = finding_of(result, "CL204")
    assert (finding.layer, finding.layers, finding.severity) == (None, ("a", "b"), "info")
    assert (finding.lost_us, finding.lost_alone_us, finding.lost_percent, finding.advised) == (None, None, None, False)
    assert (finding.lost_capacity_us or 0.0) > 0
    assert finding.fix.set == {"N": 108}
    assert finding.fix.by_layer == ({"N": 108}, {"N": 108})
    assert "N=54 (time per image -3" in finding.fix.describe
    assert all(own.after_us == own.time_us for own in times(result).values())


# --- what is not in force


def in_force(
    layers: str, *, codes: Collection[str] | None = None, silences: Silences | None = None, rules: Rulebook = BUILTIN,
    gpu: str = "a100",
) -> NetworkResult:  # fmt: skip
    targets = [Target(label=gpu, gpu=load_gpu(gpu))]
    return check_network(
        network(f"version: 1\nlayers:\n{layers}"), rules, targets, "training", codes=codes, silences=silences
    )


@pytest.mark.parametrize(("code", "layers", "gpu"), [("CL102", ODD, "a100"), ("CL401", WIDER, "v100")])
def test_advice_that_the_user_left_out_has_no_share_and_no_part_in_the_grade(code: str, layers: str, gpu: str) -> None:
    """Whether its rule is not selected or its finding is silenced; either leaves another that pays alone there."""
    rest = {rule.info.code for rule in BUILTIN.rules} - {code}
    all_of_it = times(in_force(layers, gpu=gpu))[gpu]
    silenced = in_force(layers, silences=lambda finding: finding.rule.code == code, gpu=gpu)
    results = [in_force(layers, codes=rest, gpu=gpu), silenced]
    for result in results:
        assert code not in dict(codes(result))
        (other,) = advised(result).values()
        own = times(result)[gpu]
        assert other.lost_us == pytest.approx(own.time_us - own.after_us)
        assert other.lost_us == other.lost_alone_us
        assert own.time_us == all_of_it.time_us
        assert own.after_us > all_of_it.after_us
        assert own.ideal_us > all_of_it.ideal_us
        assert own.grade <= all_of_it.grade
    assert times(results[0]) == times(results[1])


def test_without_any_rule_in_force_a_layer_is_as_good_as_its_tiles() -> None:
    result = in_force(ODD, codes=[])
    own, estimate = times(result)["a100"], result.layers[0].estimates["a100"]
    assert (result.findings, result.skipped) == ((), ())
    assert (own.after_us, own.ideal_us) == (estimate.time_us, estimate.unquantized_us)


def test_of_rules_that_are_not_in_force_nothing_is_skipped() -> None:
    skipped = {skip.code for skip in in_force(layer("a", H=None)).skipped}
    assert len(skipped) > 1
    code = min(skipped)
    assert {skip.code for skip in in_force(layer("a", H=None), codes=[code]).skipped} == {code}


def test_a_finding_is_silenced_before_it_has_a_price() -> None:
    asked: list[Finding] = []

    def silences(finding: Finding) -> bool:
        asked.append(finding)
        return False

    result = in_force(ODD, silences=silences)
    assert {finding.fingerprint for finding in result.findings} <= {finding.fingerprint for finding in asked}
    assert {(finding.lost_us, finding.fix, finding.advised) for finding in asked} == {(None, None, False)}
    assert times(result) == times(in_force(ODD))


def test_of_equal_layers_one_alone_is_silenced() -> None:
    result = in_force(ODD + ODD.replace("name: odd", "name: other"), silences=lambda finding: finding.layer == "odd")
    silenced, heard = (times(result, index)["a100"] for index in range(2))
    assert silenced.after_us == silenced.time_us == heard.time_us
    assert heard.after_us < heard.time_us
    assert {finding.layer for finding in result.findings if finding.advised} == {"other"}


def test_what_all_layers_share_all_that_are_left_share(tmp_path: Path) -> None:
    rules = rulebook(tmp_path, {"join": '{ share: all, message: "{layers}" }'})
    layers = layer("a") + layer("b") + layer("c")
    result = in_force(layers, rules=rules, silences=lambda finding: finding.layer == "b")
    assert [finding.message for finding in result.findings] == ["a, c"]


# --- what fixes bring to light

TF32 = {
    "check": 'compute_dtype == "tf32"', "loss": "fix", "fix": "{ describe: d, set: { runtime.tf32: true } }",
    "message": "fp32",
}  # fmt: skip
VECTORS = {
    "check": "C % alignment == 0", "loss": "fix", "let": '{ wide: "ceil_to(C, alignment)" }',
    "fix": '{ describe: "use C={wide}", set: { C: wide } }', "message": "C={C}",
}  # fmt: skip
FP32 = layer("a", C=510, K=512, N=64, dtype="fp32")
WITHOUT_TF32 = "runtime: { tf32: false }\n"


def test_what_a_fix_brings_to_light_is_said_with_what_must_be_mended_first(tmp_path: Path) -> None:
    result = checked(rulebook(tmp_path, TF32, VECTORS), FP32, top=WITHOUT_TF32)
    first, then = sorted(result.findings, key=lambda finding: finding.rule.code)
    assert (first.message, then.message) == ("fp32", "once XY000 is mended, C=510")
    assert (then.layer, then.location.line, then.advised) == ("a", 4, True)
    own = times(result)["a100"]
    assert (first.lost_us or 0.0) + (then.lost_us or 0.0) == pytest.approx(own.time_us - own.after_us)
    assert then.fix.set == {"C": 512}
    assert first.fingerprint != then.fingerprint


def test_several_that_must_be_mended_first_are_named(tmp_path: Path) -> None:
    layout = {"check": 'layout == "NHWC"', "loss": "fix", "fix": "{ describe: d, set: { layout: \"'NHWC'\" } }"}
    vectors = VECTORS | {"when": 'layout == "NHWC" and compute_dtype == "tf32"'}
    result = checked(rulebook(tmp_path, TF32, layout, vectors), FP32.replace("NHWC", "NCHW"), top=WITHOUT_TF32)
    assert "once XY000 and XY001 are mended, C=510" in [finding.message for finding in result.findings]


def test_a_fix_taken_further_is_one_finding(tmp_path: Path) -> None:
    """What the layer shows as it stands gives way to what becomes of it, and keeps its identity."""
    step = {
        "check": 'dtype == "fp16"', "loss": "fix", "let": "{ next: \"'fp32' if dtype == 'fp64' else 'fp16'\" }",
        "fix": '{ describe: "use {next}", set: { dtype: next } }', "message": "slow in {dtype}",
    }  # fmt: skip
    (finding,) = checked(rulebook(tmp_path, step), layer("a", dtype="fp64"), gpus="t4").findings
    assert (finding.message, finding.fix.set) == ("slow in fp64", {"dtype": "fp16"})
    assert finding.fix.describe == "use fp32; then use fp16"
    assert finding.identity == ("XY000", "net.yaml", "a", "t4", 1)
    assert finding.advised


def test_what_comes_to_light_is_not_said_where_the_user_left_it_out(tmp_path: Path) -> None:
    """Neither by its code nor by what silences findings."""
    rules = rulebook(tmp_path, TF32, VECTORS)
    layers, top = FP32, WITHOUT_TF32
    net = network(f"version: 1\n{top}layers:\n{layers}")
    targets = [Target(label="a100", gpu=load_gpu("a100"))]
    for options in ({"codes": ["XY000"]}, {"silences": lambda finding: finding.rule.code == "XY001"}):
        result = check_network(net, rules, targets, "training", **options)
        assert [finding.rule.code for finding in result.findings] == ["XY000"]
        assert result.findings[0].lost_us == result.findings[0].lost_alone_us


# --- many layers


def test_joined_layers_lose_what_each_of_them_loses(tmp_path: Path) -> None:
    fix = '{ describe: "use C=64", set: { C: "64" } }'
    rules = rulebook(tmp_path, {"check": "C == 64", "loss": "fix", "fix": fix, "join": "{ share: any, message: m }"})
    result = checked(rules, layer("a", C=62) + layer("b", C=62, N=64) + layer("c"))
    (finding,) = result.findings
    assert finding.layers == ("a", "b")
    own = [times(result, index)["a100"] for index in range(3)]
    saved = [each.time_us - each.after_us for each in own]
    assert finding.lost_us == pytest.approx(sum(saved))
    assert finding.lost_percent == pytest.approx(100 * sum(saved) / sum(each.time_us for each in own))
    assert finding.fix.time_change_us == pytest.approx(-sum(saved))
    assert len(set(finding.fingerprints)) == 2
    assert finding.fingerprint not in finding.fingerprints


@pytest.mark.parametrize("layers", [1, 1001])
def test_however_many_layers_play_each_has_its_price(layers: int, tmp_path: Path) -> None:
    fix = '{ describe: "use C=64", set: { C: "64" } }'
    rules = rulebook(tmp_path, {"check": "C == 64", "loss": "fix", "fix": fix, "join": "{ share: any, message: m }"})
    (finding,) = checked(rules, "".join(layer(f"l{i}", C=62) for i in range(layers))).findings
    assert finding.lost_us == pytest.approx(-(finding.fix.time_change_us or 0.0))
    assert (finding.lost_us or 0.0) > 0


def test_a_dtype_that_was_not_stated_warns_of_nothing_that_is_priced() -> None:
    """What was only read from a model file may run as anything: its advice counts nowhere."""
    stated_net = network(f"version: 1\nlayers:\n{layer('a', dtype='fp32', C=510)}")
    targets = [Target(label="t4", gpu=load_gpu("t4"))]
    stored = replace(stated_net, layers=tuple(replace(each, dtype_source="storage") for each in stated_net.layers))
    stated, read = (check_network(each, BUILTIN, targets, "training") for each in (stated_net, stored))
    assert advised(stated)
    assert not advised(read)
    assert {finding.severity for finding in read.findings if finding.rule.code in advised(stated)} <= {"info"}
    own = times(read)["t4"]
    assert own.after_us == own.time_us


# --- what a baseline holds

WIDE = "".join(
    f"  - {{ name: {name}, input: {source}, K: {K}, kernel_size: 3, padding: 1 }}\n"
    for name, source, K in (("a", "image", 60), ("b", "a", 124), ("c", "b", 64))
)
INPUT = "  - { name: image, op: input, C: 64, H: 56, W: 56 }\n"
PLAIN = "defaults: { N: 32, dtype: fp32, layout: NCHW }\n"


def against(known: Silences, layers: str = INPUT + WIDE, top: str = PLAIN, gpu: str = "v100") -> NetworkResult:
    net = network(f"version: 1\n{top}layers:\n{layers}")
    return check_network(net, BUILTIN, [Target(label=gpu, gpu=load_gpu(gpu))], "training", known=known)


def test_what_is_known_does_not_play() -> None:
    """Nor does what only comes to light with it: sizes that the Tensor Cores want, where nothing reaches those."""
    every = against(lambda _: False)
    assert {"CL102", "CL106", "CL401"} <= {finding.rule.code for finding in every.findings if finding.advised}
    left = against(lambda finding: finding.rule.code == "CL106")
    assert not [finding for finding in left.findings if finding.advised]
    (whole,) = left.networks
    assert whole.times.after_us == whole.times.time_us


def test_a_baseline_holds_its_own_findings() -> None:
    """Layer by layer, what comes to light too; and all of them are asked for again."""
    every = against(lambda _: False)
    held = {identity for each in every.findings for identity in (each.identities or (each.identity,))}
    asked = set()

    def known(finding: Finding) -> bool:
        asked.add(finding.identity)
        return finding.identity in held

    assert against(known).findings == ()
    assert held <= asked


def test_a_new_layer_is_new_of_a_setting_that_is_known_elsewhere() -> None:
    def known(finding: Finding) -> bool:
        return finding.rule.code == "CL401" and finding.layer != "c"

    top = "defaults: { N: 32, dtype: fp16, layout: NCHW }\n"
    alone = "".join(layer(name, layout="NCHW") for name in "abc")
    (finding,) = [each for each in against(known, alone, top).findings if each.rule.code == "CL401"]
    assert (finding.layer, finding.advised) == ("c", True)


def test_a_group_of_which_one_member_is_known_stays() -> None:
    top = "defaults: { N: 32, dtype: fp16, layout: NHWC }\n"
    every = [each for each in against(lambda _: False, top=top).findings if each.rule.code == "CL102"]
    assert {each.layer for each in every} == {"a", "b"}
    left = against(lambda finding: (finding.rule.code, finding.layer) == ("CL102", "a"), top=top).findings
    assert {each.layer for each in left if each.rule.code == "CL102"} <= {"b"}


@pytest.mark.parametrize(("known", "new"), [("ac", ["b"]), ("ab", [])])
def test_a_width_is_known_where_a_layer_that_writes_it_is(known: str, new: list[str]) -> None:
    """A new layer is new though a known one reads it; one that reads what a known layer writes is not."""
    top = "defaults: { N: 32, dtype: fp16, layout: NHWC }\n"
    left = against(lambda finding: finding.rule.code == "CL102" and (finding.layer or "") in known, top=top)
    assert [each.layer for each in left.findings if each.rule.code == "CL102"] == new


# --- settings are the network's


def test_every_setting_is_priced_on_all_layers() -> None:
    """A depthwise layer, of which no rule on dtypes speaks, is part of the price."""
    layers = layer("a", dtype="fp32") + layer("dw", dtype="fp32", groups=64)
    result = checked(BUILTIN, layers, gpus="v100", mode="inference")
    finding = finding_of(result, "CL106")
    assert finding.layers == ("a", "dw")
    saved = sum(times.time_us - times.after_us for one in result.layers if (times := one.times["v100"]) is not None)
    assert sum(each.lost_us or 0.0 for each in result.findings if each.advised) == pytest.approx(saved)


def test_tf32_where_there_is_none_is_fp32() -> None:
    """The same flaw, at the same price; CL107 explains."""
    tf32, fp32 = (checked(BUILTIN, layer("a", dtype=dtype), gpus="t4") for dtype in ("tf32", "fp32"))
    assert finding_of(tf32, "CL106").lost_us == finding_of(fp32, "CL106").lost_us
    explained = finding_of(tf32, "CL107")
    assert (explained.severity, explained.lost_us, explained.fix and explained.fix.set) == ("info", None, {})


@pytest.mark.parametrize("framework", ["pytorch", "tensorflow", "jax"])
def test_bf16_before_ampere_has_a_time_in_frameworks_that_convert_it(framework: str) -> None:
    top = f"runtime: {{ framework: {framework} }}\n"
    result = checked(BUILTIN, layer("a", dtype="bf16"), gpus="t4", top=top)
    assert finding_of(result, "CL107").severity == "warning"
    assert finding_of(result, "CL106").advised
    other = checked(BUILTIN, layer("a", dtype="bf16"), gpus="t4")
    assert finding_of(other, "CL107").severity == "error"
    assert other.layers[0].times == {"t4": None}


@pytest.mark.parametrize(
    ("runtime", "saves"), [("framework: pytorch", True), ("framework: pytorch, compile: true", False)]
)
def test_a_bias_in_front_of_a_norm_says_what_the_next_check_takes_less(runtime: str, saves: bool) -> None:
    """It stays an info that no advice counts on, however much it saves."""
    text = layer("a", K=64, H=56, W=56, bias="true", dtype="fp16", layout="NHWC") + "  - { name: n, op: batchnorm }\n"
    top = f"runtime: {{ {runtime} }}\n"
    result, then = (checked(BUILTIN, each, top=top) for each in (text, text.replace("true", "false")))
    (finding,) = (each for each in result.findings if each.rule.code == "CL506")
    assert (finding.severity, finding.advised, finding.lost_us) == ("info", False, None)
    change_us = times(then)["a100"].time_us - times(result)["a100"].time_us
    assert (change_us < 0) is saves
    assert finding.fix.time_change_us == (pytest.approx(change_us) if saves else None)
    (none,) = (each for each in checked(BUILTIN, text, top=top, gpus="a100 v100").findings if each.rule.code == "CL506")
    assert none.fix.time_change_us is None


@pytest.mark.parametrize(
    ("origins", "severity"),
    [
        ({"cudnn": "installed", "framework_version": "installed"}, "info"),
        ({"cudnn": "what torch 2.13.0 needs, installed", "framework_version": "installed"}, "info"),
        ({"cudnn": "uv.lock:3", "framework_version": "installed"}, "error"),
        ({}, "error"),  # stated
    ],
)
def test_what_is_only_installed_makes_no_error(origins: dict[str, str], severity: str) -> None:
    net = Wiring(C=64, N=4, size=28)
    network = net.network(net.conv(net.image, 64, 3))
    runtime = Runtime(framework="pytorch", framework_version=Version("2.13.0"), cudnn=Version("9.20.0"))
    network = replace(network, runtime=runtime, origins=origins)
    result = check_network(network, load_rulebook(), [Target(label="v100", gpu=load_gpu("v100"))], "inference")
    assert [each.severity for each in result.findings if each.rule.code == "CL707"] == [severity]


def test_what_is_wrong_only_after_other_advice_is_no_error() -> None:
    """cuDNN before 7.6.3 pads NCHW by itself, and refuses the same channels in NHWC."""
    text = layer("a", C=64, K=126, layout="NCHW") + layer("b", C=126, layout="NCHW")
    top = 'runtime: { framework: pytorch, cudnn: "7.5" }\n'
    result = checked(BUILTIN, text, gpus="v100", top=top)
    finding = finding_of(result, "CL101")
    assert (finding.severity, finding.advised) == ("warning", True)
    assert "once CL401 is mended" in str(finding.message)
    now = checked(BUILTIN, text.replace("NCHW", "NHWC"), gpus="v100", top=top)
    assert finding_of(now, "CL101").severity == "error"


def test_a_memory_format_is_advised_by_the_rule_that_asks_for_it() -> None:
    """Of fp32 on CUDA cores one rule asks for NCHW in the layer that has NHWC; 16 bits want NHWC in all of them."""
    text = "".join(layer(f"l{n}", C=128, K=128, H=56, W=56, dtype="fp32", layout="NCHW") for n in range(4))
    text += layer("last", C=128, K=128, H=56, W=56, dtype="fp32")
    result = checked(BUILTIN, text, gpus="v100", top="runtime: { framework: pytorch }\n")
    asks = {
        finding.rule.code: finding.advised for finding in result.findings if finding.rule.code in ("CL401", "CL403")
    }
    assert asks == {"CL401": True, "CL403": False}


@pytest.mark.parametrize("stated", ["", ", mixed_precision: false"])
def test_mixed_precision_is_promised_as_the_next_check_has_it(stated: str) -> None:
    """Who says that fp32 runs without autocast is advised to run 16 bits with it, beside weights and norms in fp32."""
    text = layer("a", N=512, H=56, W=56, dtype="fp32", first="true") + "".join(
        f"  - {{ name: n{n}, op: norm }}\n  - {{ name: r{n}, op: activation }}\n"
        f"  - {{ name: l{n}, K: 64, kernel_size: 3, padding: 1, dtype: fp32, layout: NHWC }}\n"
        for n in range(3)
    )
    top = f"runtime: {{ framework: pytorch, compile: true{stated} }}\n"
    (told,) = checked(BUILTIN, text, top=top).networks
    top = top.replace("false", "true")
    (then,) = checked(BUILTIN, text.replace("fp32", "fp16"), top=top).networks
    assert then.step is not None
    assert told.step_after_us == pytest.approx(then.step.time_us)


def test_int8_without_tensor_cores_for_it_is_priced_against_16_bits() -> None:
    top = "runtime: { framework: tensorrt }\n"
    now, then = (
        checked(BUILTIN, layer("a", C=512, K=512, dtype=dtype), gpus="v100", top=top, mode="inference")
        for dtype in ("int8", "fp16")
    )
    times, after = now.layers[0].times["v100"], then.layers[0].times["v100"]
    assert times is not None
    assert after is not None
    assert finding_of(now, "CL106").lost_us == pytest.approx(times.time_us - after.time_us)


@pytest.mark.parametrize(("gpus", "version"), [("v100", "1.13.1"), ("gtx-1080-ti a100", "2.4"), ("a100 p100", "2.4")])
def test_a_step_that_cannot_be_compiled_is_priced_as_eager(gpus: str, version: str) -> None:
    """CL803 says that it stops; what else is said, and every price, is that of the step without torch.compile."""
    text = layer("a", N=16, K=62) + "  - { op: norm }\n  - { op: activation }\n" + layer("b", N=16, C=62)
    compiled, eager = (
        checked(
            BUILTIN, text, gpus=gpus,
            top=f"runtime: {{ framework: pytorch, framework_version: '{version}', compile: {compiles} }}\n",
        )
        for compiles in ("true", "false")
    )  # fmt: skip
    at_fault = {finding.gpu for finding in compiled.findings if finding.rule.code == "CL803"}
    for before, after in zip(compiled.networks, eager.networks, strict=True):
        assert (before == after) is (before.gpu in at_fault)
    fixes = [
        {(finding.rule.code, str(finding.message), str(finding.fix)) for finding in result.findings
         if finding.gpu in at_fault and finding.rule.code != "CL803"}
        for result in (compiled, eager)
    ]  # fmt: skip
    assert fixes[0] == fixes[1]


@pytest.mark.parametrize(
    ("batch", "said"), [(1, "TF32 (in PyTorch: "), (16, "mixed precision with fp16 or bf16, or at ")]
)
def test_a_fix_that_switches_tf32_on_speaks_of_nothing_else(batch: int, said: str) -> None:
    """At N = 1 the host would start autocast's casts for longer than 16 bits save, and nobody wants CUDA graphs."""
    text = "".join(
        layer(f"l{n}", N=batch, C=256, K=256, dtype="fp32") + "  - { op: norm }\n  - { op: activation }\n"
        for n in range(6)
    )
    runtime = "runtime: { framework: pytorch, tf32: false }\n"
    result = checked(BUILTIN, text, top=runtime, silences=lambda finding: finding.rule.code == "CL306")
    fix = finding_of(result, "CL106").fix
    assert fix is not None
    assert str(fix.describe).startswith(said)
    assert ("dtype" in fix.set) is (batch > 1)
