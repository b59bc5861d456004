"""What was read in source becomes findings: of files that were given, once each, and only of what is in force."""

from typing import Any

import pytest
from msgspec.structs import replace
from source_records import RULEBOOK, at, checked, literal, only, program, record, said, setting
from source_records import checked as checked_alone

from convlint.engine.hits import Flaw
from convlint.engine.source_check import (
    FindingMember,
    Findings,
    RuleStatement,
    SourceResult,
    merged,
    of_program,
    of_width,
    on_targets,
)
from convlint.facts.source_layers import GETTING, Width
from convlint.model.layer import Dtype
from convlint.model.report import Finding
from convlint.model.source import SourceLayer, StatedLiteral
from convlint.model.text import Text

INSIDE = StatedLiteral(at=at(100, column=30), value=1)


def line_of(K: int, *literals: StatedLiteral) -> int | None:
    return of_width(Width(record=record(K=K, K_of=literals), side="K")).line


@pytest.mark.parametrize(
    ("K", "literals", "line"),
    [
        (62, (literal(62, 7),), 7),
        # as it is divisible by 8, the other is not to blame
        (36, (literal(24, 4), literal(12, 5)), 5),
        (62, (literal(31, 4), literal(62, 9)), 9),
        # what widths are multiplied with
        (44, (literal(32, 4), literal(1.4, 5)), 5),
        (44, (literal(32, 4), literal(1.4, 5), literal(3, 6)), 5),
        # of a factor and a fraction, the fraction; powers of two leave widths as they are
        (132, (literal(16, 4), literal(1.4, 5), literal(6, 6)), 5),
        (18, (literal(36, 4), literal(0.5, 5)), 4),
        (36, (literal(24, 4), literal(0.25, 5), literal(6, 6)), 5),
        (6, (literal(6, 4), literal(24, 5)), 4),
        # a part of what is aligned, or not: what the caller says
        (182, (literal(728, 4), literal(4, 5)), 4),
        (58, (literal(116, 4), literal(2, 5)), 4),
        (45, (literal(728, 4), literal(16, 5)), 4),
        # what is added to widths that are aligned
        (65, (literal(64, 4), literal(1, 5)), 5),
        (131, (literal(64, 4), literal(2, 5), literal(3, 6)), 6),
        (196, (literal(64, 4), literal(3, 5), literal(4, 6)), 6),
        (60, (literal(20, 4), literal(6, 5)), 4),
        (921, (literal(256, 4), literal(512, 5), literal(1, 6)), 5),  # 256·512·27 // (256·9 + 512·3)
        (65, (literal(64, 4), INSIDE), 100),
        # of equals that of the caller, then the first
        (62, (replace(INSIDE, value=62), literal(62, 7)), 7),
        (62, (literal(62, 7), literal(62, 5)), 5),
        # nothing that a number can come from
        (62, (), 100),
        (62, (literal("M", 4), literal(True, 5), literal(None, 6), literal(0, 7), literal(2.0, 8)), 100),
        (62, (literal(62, 4, quiet=True),), 100),
        (62, (literal(62, 4, quiet=True), literal(124, 5)), 5),
    ],
)
def test_the_literal_that_is_to_blame(K: int, literals: tuple[StatedLiteral, ...], line: int) -> None:
    assert line_of(K, *literals) == line_of(K, *reversed(literals)) == line


def test_a_width_without_literals_stands_where_the_layer_is_constructed() -> None:
    found = of_width(Width(record=record(K=62), side="K"))
    assert (found.line, found.column) == (100, 9)


def test_what_a_construction_says_for_a_field() -> None:
    layer = record().layer
    spans = {"layer": (100, 9, 100, 60), "bias": (100, 40, 100, 49)}
    assert replace(layer, spans=spans).locate("bias").column == 40
    assert layer.locate("bias").column == 9


EARLIER, LATER = setting("cudnn.benchmark", True, 5), setting("cudnn.benchmark", False, 9)
CONFLICT = (setting("cudnn.deterministic", True, 30), setting("cudnn.benchmark", True, 20))


@pytest.mark.parametrize(
    ("places", "given", "lines"),
    [
        (("runtime.cudnn_benchmark",), {"settings": (EARLIER, LATER)}, [9]),
        (("runtime.cudnn_benchmark",), {"settings": (EARLIER, LATER), "cudnn_benchmark": True}, [5]),
        (("runtime.cudnn_benchmark",), {"settings": (setting("cudnn.benchmark", None, 3),)}, [3]),
        (("runtime.tf32",), {"settings": (setting("cudnn.conv.fp32_precision", "ieee", 3),), "tf32": False}, [3]),
        (("runtime.tf32",), {"settings": (setting("cuda.matmul.allow_tf32", False, 3),), "tf32": False}, [1]),
        (
            ("runtime.tf32",),
            {
                "settings": (setting("cudnn.conv.fp32_precision", "ieee", 3), setting("fp32_precision", "tf32", 4)),
                "tf32": False,
            },
            [3],
        ),
        (
            ("runtime.tf32",),
            {
                "settings": (setting("NVIDIA_TF32_OVERRIDE", "0", 3), setting("cudnn.allow_tf32", True, 4)),
                "tf32": False,
            },
            [3],
        ),
        (("program.conflict",), {"conflict": CONFLICT, "settings": CONFLICT[::-1]}, [30]),
        (("program.conflict",), {"conflict": CONFLICT, "settings": CONFLICT}, [20]),
        (("program.conflict",), {"conflict": CONFLICT}, [20]),
        (("program.evidence",), {"evidence": (("CIFAR10", at(8)), ("crop", at(9)))}, [8]),
        (("runtime.tf32", "program.evidence"), {"evidence": (("CIFAR10", at(8)),)}, [8]),
        (("program.autotune_disabled",), {"autotune_disabled": (setting("XLA_FLAGS", "x", 4),)}, [4]),
        (("program.backward_in_autocast",), {"backward_in_autocast": (at(4), at(6))}, [4, 6]),
        (("program.autocast_around_loss",), {"autocast_around_loss": (at(4),)}, [4]),
        (("program",), {}, [1]),
        ((), {}, [1]),
    ],
)
def test_the_statements_of_a_program(places: tuple[str, ...], given: dict[str, Any], lines: list[int]) -> None:
    assert [each.line for each in of_program(places, program(**given))] == lines


RULE = RULEBOOK.of_source[0]


def draft(message: str = "m", line: int = 1, name: str = "a", *, is_program: bool = False) -> RuleStatement:
    flaw = Flaw(rule=RULE, case=RULE.cases[-1], places=(), message=message)
    return RuleStatement(flaw=flaw, at=at(line), members=(FindingMember(name, "net.py"),), is_program=is_program)


def test_what_makes_two_drafts_one() -> None:
    assert draft().says == draft().says
    assert draft().says != draft("n").says
    assert draft().says != draft(line=2).says
    assert draft().says != draft(name="b").says
    assert draft(is_program=True).says == draft(name="b", is_program=True).says


WIDE, TALL = literal(1.4, 7, "width"), literal(32, 20)


def test_the_ends_of_a_network_make_nothing_inner() -> None:
    ends = [record("Net.first", C=37, reads_input=True), record("Net.last", 101, K=37, head=True, gives_output=True)]
    assert said(checked(*ends)) == []
    by_name = record("Net.mid", 103, K=37, head=True)  # as its parameter is called out_channels
    assert [line for _, line, _ in said(checked(ends[0], by_name))] == [100]
    inner = record("Net.mid", 102, C=37)
    assert [line for _, line, _ in said(checked(*ends, inner))] == [102]
    assert [line for _, line, _ in said(checked(*ends, record("Net.mid", 102, K=37)))] == [100, 102]


def biased(name: str = "Net.conv", **given: Any) -> SourceLayer:
    return record(name, **{"bias": True, "norm_follows": True} | given)


def reading(count: int) -> SourceLayer:
    """A layer that shows a count to be an inner one; of itself nothing is said, as its map may be of 1x1."""
    return record(f"Net.reads{count}", 200 + count, C=count, R=1, S=1)


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ((), 1),
        ((biased("Other.conv"),), 1),
        ((biased("Other.conv", norm_follows=False),), 0),
        ((biased("Other.conv", norm_follows=None),), 0),
        ((biased("Other.conv", bias=None),), 0),
        ((biased("Other.conv", line=101, norm_follows=False),), 1),
        ((biased("Other.conv", path="other.py", norm_follows=False),), 1),
    ],
)
def test_all_that_one_place_constructs_has_to_break_the_rule(others: tuple[SourceLayer, ...], expected: int) -> None:
    assert len(checked(biased(), *others).findings) == expected


def test_a_place_names_its_layers() -> None:
    assert only(checked(biased())).layer == "Net.conv"
    finding = only(checked(biased("B.conv"), biased("A.conv"), biased("A.conv", C=32)))
    assert (finding.layer, finding.layers) == (None, ("A.conv", "B.conv"))
    assert len(finding.fingerprints) == 2


def test_one_literal_is_one_finding_of_all_layers_that_get_a_number_by_it() -> None:
    found = checked(
        record("Net.a", 100, K=44, K_of=(WIDE, TALL)),
        record("Net.b", 101, C=44, K=134, C_of=(WIDE, TALL), K_of=(WIDE, literal(96, 21))),
        record("Net.c", 102, C=62, C_of=(literal(62, 30),)),
        record("Net.d", 103, K=62, R=1, S=1),
    )
    assert said(found) == [
        ("CL102", 7, "K=44 of Net.a, C=44 and K=134 of Net.b: no multiple of 8 (fp16, bf16)"),
        ("CL102", 30, "C=62 of Net.c: no multiple of 8 (fp16, bf16)"),
    ]
    assert found.findings[0].layers == ("Net.a", "Net.b")


def test_many_layers_are_not_all_named_in_the_message() -> None:
    several = [record(f"Net.{n}", 100 + n, K=62, K_of=(literal(62, 7),)) for n in range(6)]
    finding = only(checked(*several, reading(62)))
    assert finding.message == (
        "K=62 of Net.0, K=62 of Net.1, K=62 of Net.2, K=62 of Net.3 and 2 more: no multiple of 8 (fp16, bf16)"
    )
    assert len(finding.layers) == 6


def test_without_a_literal_the_construction_is_pointed_at() -> None:
    found = checked(record("Net.a", 100, K=62), record("Net.b", 101, K=62))
    assert [line for _, line, _ in said(found)] == [100, 101]


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([{}, {"condition": "self.deep"}], "K=62 of Net.0: no multiple of 8 (fp16, bf16)"),
        ([{"condition": "a"}, {"condition": "b"}], "K=62 of Net.0: no multiple of 8 (fp16, bf16), only if a"),
        (
            [{"certainty": "with defaults"}, {"condition": "b"}],
            "K=62 of Net.1: no multiple of 8 (fp16, bf16), only if b",
        ),
        (
            [{"certainty": "with defaults"}, {"certainty": "with defaults"}],
            "K=62 of Net.0, K=62 of Net.1: no multiple of 8 (fp16, bf16), with its defaults",
        ),
        (
            [{"certainty": "with defaults", "condition": "a"}],
            "K=62 of Net.0: no multiple of 8 (fp16, bf16), with its defaults, only if a",
        ),
    ],
)
def test_what_is_surest_is_said(records: list[dict[str, Any]], message: str) -> None:
    given = [record(f"Net.{n}", 100 + n, K=62, K_of=(literal(62, 7),), **each) for n, each in enumerate(records)]
    assert said(checked(*given, reading(62))) == [("CL102", 7, message)]


def test_the_default_that_all_of_them_have_is_named() -> None:
    """The two numbers come from one literal, and from other defaults each."""
    half, one = (
        replace(literal(value, line, name), default=True)
        for line, value, name in ((7, 0.3, "scale"), (8, 124, "width"))
    )
    given = [
        record("Net.0", 100, K=62, K_of=(half, one), certainty="with defaults", root="net.py:Net"),
        record("Net.1", 101, K=126, K_of=(half,), certainty="with defaults", root="net.py:Net"),
    ]
    ((_, _, message),) = said(checked(*given, reading(62), reading(126)))
    assert message.endswith(", with scale=0.3, the default at net.py:7 and width=124, the default at net.py:8")


@pytest.mark.parametrize("kept", [False, True])
def test_a_default_that_every_known_caller_overrides_is_not_said_to_hold(kept: bool) -> None:
    default = replace(literal(62, 7, "width"), default=True)
    given = record("Net.0", 100, K=62, K_of=(default,), certainty="with defaults", root="net.py:Net")
    places = frozenset({default.at})
    defaults = {"overridden": places, "kept": places if kept else frozenset()}
    assert bool(said(checked(given, reading(62), defaults=defaults))) is kept


def test_the_map_is_named_where_it_is_the_same_for_all() -> None:
    of = {"K_of": (literal(62, 7),), "K": 62}
    small = {"H": 14, "W": 28}
    ((_, _, message),) = said(checked(record("Net.0", 100, **of, **small), reading(62)))
    assert message.startswith("K=62 of Net.0 at 14x28: ")
    ((_, _, message),) = said(
        checked(record("Net.0", 100, **of, **small), record("Net.1", 101, **of, **small), reading(62))
    )
    assert message.startswith("K=62 of Net.0, K=62 of Net.1, at 14x28: ")
    ((_, _, message),) = said(checked(record("Net.0", 100, **of, **small), record("Net.1", 101, **of), reading(62)))
    assert message.startswith("K=62 of Net.0, K=62 of Net.1: ")
    ((_, _, message),) = said(checked(biased(**small)))
    assert message.endswith("reads this layer, at 14x28")
    ((_, _, message),) = said(checked(biased(**small), biased(H=7, W=7)))
    assert message.endswith("reads this layer")


@pytest.mark.parametrize(
    ("K", "advice"),
    [(62, "the good widths next to 62 are 56 and 64"), (1154, "are 1152 and 1160"), (6, "next to 6 is 8;")],
)
def test_the_next_good_widths(K: int, advice: str) -> None:
    fix = only(checked(record(K=K, K_of=(literal(K, 7),)), reading(K))).fix
    assert advice in fix.describe
    assert (dict(fix.set), fix.edits, fix.safety) == ({}, (), "unsafe")


def test_the_worst_number_speaks_for_all() -> None:
    growth = literal(10, 5, "growth_rate")
    first = record("Net.a", 100, K=44, K_of=(literal(24, 4), growth))
    finding = only(checked(first, record("Net.b", 101, K=34, K_of=(literal(24, 4), growth)), reading(34)))
    assert "tf32" not in finding.message
    assert "32 and 40" in finding.fix.describe


@pytest.mark.parametrize(
    ("number", "computed", "advice"),
    [(30, 61, "next to 30 are 24 and 32"), (116, 58, "next to 58 are 56 and 64"), (60, 62, "next to 60 are 56 and 64")],
    ids=["2 * 30 + 1", "116 // 2", "60 + 2"],
)
def test_the_advice_is_for_the_literal_where_the_worst_number_is_no_part_of_it(
    number: int, computed: int, advice: str
) -> None:
    """What is said is true of all of them: of the worst."""
    width = literal(number, 3, "WIDTH")
    made = record("Net.b", 101, C=number, C_of=(width,), K=computed, K_of=(width, literal(1, 10)))
    finding = only(checked(record("Net.a", 100, K=number, K_of=(width,)), made, reading(computed)))
    assert finding.location.line == 3
    assert "tf32" not in finding.message
    assert advice in finding.fix.describe


@pytest.mark.parametrize(
    "given",
    [
        {"K": 255, "head": True},
        {"C": 62, "first": True},
        {"C": 3},
        {"C": 4, "K": 1},
        {"K": 62, "groups": 2},
        {"K": 62, "R": 1, "S": 1},
        {"K": 62, "R": 1, "S": 1, "pointwise_map": True},
        {"K": 62, "R": None, "S": None},
        {"K": None},
        {"K": 21, "K_of": (literal(21, 3, "NUM_CLASS"),)},
        {"K": 9, "K_of": (literal(8, 3, "width"), literal(9, 4, "num_anchors"))},
        {"K": 21, "K_of": (literal(21, 3, "out_channels"),)},
        {"C": 6, "C_of": (literal(6, 3, "in_chans"),)},
        {"K": 12, "K_of": (literal(12, 3, quiet=True),)},
        {"K": 12, "name": "Block.se.fc1"},
        {"K": 12, "root": "net.py:SqueezeExcite"},
    ],
)
def test_what_stays_as_it_is(given: dict[str, Any]) -> None:
    assert said(checked(record(**given))) == []


def test_a_construction_s_own_names_say_nothing() -> None:
    inside = literal(62, 100, "out_channels")
    inside = type(inside)(at=type(inside.at)(path="net.py", line=100, column=20), value=62, name="out_channels")
    assert len(checked(record(K=62, K_of=(inside,))).findings) == 1


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ({"C": 62, "R": 1, "S": 1}, 1),
        ({"K": 62, "R": 1, "S": 1}, 0),
        ({"C": 62, "K": 62, "groups": 62}, 0),
        ({"C": 62, "K": 62, "groups": 2}, 1),
        ({"C": 62, "R": 1, "S": 1, "path": "other.py"}, 0),
    ],
)
def test_a_count_from_elsewhere_that_no_layer_reads_is_what_the_network_gives(
    other: dict[str, Any], expected: int
) -> None:
    found = checked(record(K=62, K_of=(literal(62, 3, "structures"),)), record("Net.other", 101, **other))
    assert len(found.findings) == expected


@pytest.mark.parametrize(
    ("C", "reads_input", "expected"), [(1026, None, 0), (1026, True, 0), (1026, False, 1), (6, False, 0)]
)
def test_a_count_from_elsewhere_that_layers_are_seen_to_write_is_no_input_s(
    C: int, reads_input: bool | None, expected: int
) -> None:
    given = record(C=C, C_of=(literal(C, 3, "in_planes"),), reads_input=reads_input)
    assert len(checked(given).findings) == expected


def test_an_output_that_another_convolution_reads_is_no_task_s() -> None:
    shared = (literal(62, 3, "out_channels"),)
    assert len(checked(record(K=62, K_of=shared), record("Net.d", 101, C=62, C_of=shared)).findings) == 1


TUNED = setting("cudnn.benchmark", True, 9, certain=True)
FIXED = {
    "complete": True, "cudnn_benchmark": False, "deterministic": False, "fixed_input_size": True,
    "evidence": (("CIFAR100", at(5, "data.py")),),
}  # fmt: skip
VARYING = {"fixed_input_size": False, "evidence": (("multi_scale", at(7, "train.py")),)}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (FIXED, ("CL501", 1, "info")),
        (FIXED | {"fixed_input_size": None}, None),
        (FIXED | {"fixed_input_size": False}, None),
        (FIXED | {"cudnn_benchmark": None}, None),
        (FIXED | {"deterministic": True}, None),
        (FIXED | {"deterministic": None}, None),
        (FIXED | {"trainer": "lightning.Trainer"}, None),
        (FIXED | {"settings": (setting("cudnn.benchmark", False),)}, None),
        (FIXED | {"has_convolutions": False}, None),
        (FIXED | {"framework": "tensorflow"}, None),
        (VARYING | {"cudnn_benchmark": True, "settings": (TUNED,)}, ("CL502", 9, "info")),
        (VARYING | {"settings": (TUNED,)}, None),
        (VARYING | {"cudnn_benchmark": True, "settings": (setting("cudnn.benchmark", True, 9),)}, None),
        ({"cudnn_benchmark": True, "settings": (TUNED,)}, None),
        ({"conflict": (setting("cudnn.deterministic", True, 4), TUNED)}, ("CL503", 9, "warning")),
        ({"deterministic": True, "cudnn_benchmark": True}, None),
        (
            {"framework": "mxnet", "fixed_input_size": True,
             "autotune_disabled": (setting("MXNET_CUDNN_AUTOTUNE_DEFAULT", "0", 3),)},
            ("CL504", 3, "info"),
        ),
        ({"framework": "mxnet", "autotune_disabled": (setting("MXNET_CUDNN_AUTOTUNE_DEFAULT", "0", 3),)}, None),
        ({"tf32": False, "settings": (setting("cudnn.allow_tf32", False, 4),)}, ("CL106", 4, "info")),
        ({"tf32": None, "settings": (setting("cudnn.allow_tf32", None, 4),)}, None),
        ({"tf32": False, "has_convolutions": False}, None),
        ({"cudnn_enabled": False}, ("CL507", 1, "warning")),
        ({"cudnn_enabled": None, "settings": (setting("cudnn.enabled", None),)}, None),
        ({"cudnn_enabled": False, "has_convolutions": False}, None),
        ({"backward_in_autocast": (at(8, "train.py"),)}, ("CL508", 8, "info")),
        ({"autocast_around_loss": (at(6, "train.py"),)}, ("CL509", 6, "info")),
    ],
)  # fmt: skip
def test_what_is_said_of_a_program(given: dict[str, Any], expected: tuple[str, int, str] | None) -> None:
    found = checked(program(**given)).findings
    assert [(each.rule.code, each.location.line, each.severity) for each in found] == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"settings": (setting("cudnn.allow_tf32", None, 4),)}, "CL106"),
        ({"settings": (setting("cudnn.enabled", None, 4),)}, "CL507"),
        ({}, None),
        ({"has_convolutions": False, "settings": (setting("cudnn.enabled", None, 4),)}, None),
        ({"cudnn_enabled": True, "settings": (setting("cudnn.enabled", True, 4),)}, None),
    ],
)
def test_a_setting_that_a_flag_decides_is_not_checked(given: dict[str, Any], code: str | None) -> None:
    skipped = {skip.code for skip in checked(program(**given)).skipped}
    assert skipped & {"CL106", "CL507"} == ({code} if code else set())


def test_a_conflict_names_both_places_and_guards() -> None:
    seed = setting("cudnn.deterministic", True, 105, guard="exp.seed is not None")
    speed = setting("cudnn.benchmark", True, 115)
    for pair in ((seed, speed), (speed, seed)):
        finding = only(checked(program(conflict=pair, settings=(seed, speed))))
        assert finding.message.startswith(
            "cudnn.benchmark=True at train.py:115 follows cudnn.deterministic=True at train.py:105 "
            "(if exp.seed is not None): only deterministic"
        )
        assert finding.location.line == 115


def test_evidence_is_named_with_its_place() -> None:
    finding = only(checked(program(**FIXED)))
    assert "(CIFAR100 at data.py:5)" in finding.message
    assert (finding.fix.safety, dict(finding.fix.set)) == ("unsafe", {"runtime.cudnn_benchmark": True})


def test_each_place_is_a_finding() -> None:
    found = checked(program(backward_in_autocast=(at(8, "train.py"), at(20, "train.py"))))
    assert [line for _, line, _ in said(found)] == [8, 20]
    assert len({finding.fingerprint for finding in found.findings}) == 2


def test_of_one_script_the_reading_that_knows_more_counts() -> None:
    less, more = program(), program(complete=True)
    assert merged([less, more]) == merged([more, less]) == [more]
    assert [each.path for each in merged([program("b.py"), program("a.py")])] == ["a.py", "b.py"]


WIDTH, SITE, SCRIPT = (
    next(rule for rule in RULEBOOK.of_source if rule.info.code == code) for code in ("CL102", "CL506", "CL503")
)


def draft_of_saying(
    rule: object = WIDTH, line: int = 1, *names: str, message: str = GETTING + Text("!"), **given: bool
) -> RuleStatement:
    assert isinstance(rule, type(WIDTH))
    flaw = Flaw(
        rule=rule, case=rule.cases[-1], places=(), message=message, describe=Text("use {layers}", layers=GETTING)
    )
    members = tuple(FindingMember(name, "net.py", "K", 1) for name in names or ("a",))
    return RuleStatement(flaw=flaw, at=at(line), members=members, **given)


def findings(
    *drafts: RuleStatement, silenced: tuple[str, ...] = (), given: tuple[str, ...] = ("net.py",)
) -> list[Finding]:
    return Findings(given, lambda finding: finding.layer in silenced).of([(None, each) for each in drafts])


def test_a_target_is_named_where_it_is_said_of_one_alone() -> None:
    assert [label for label, _ in on_targets([("a", draft_of_saying())], 1)] == [None]
    assert [label for label, _ in on_targets([("a", draft_of_saying())], 2)] == ["a"]
    assert [label for label, _ in on_targets([("a", draft_of_saying()), ("b", draft_of_saying())], 3)] == [None]
    assert [label for label, _ in on_targets([("a", draft_of_saying(SITE))], 2)] == [None]  # asked for the first alone


def test_the_order_is_that_of_codes_and_places() -> None:
    found = on_targets(
        [("a", draft_of_saying(SITE, 3)), ("a", draft_of_saying(WIDTH, 9)), ("a", draft_of_saying(WIDTH, 2))], 1
    )
    assert [each.at.line for _, each in found] == [2, 9, 3]


def test_programs_that_reach_one_statement_are_one() -> None:
    one, other = (draft_of_saying(SCRIPT, 4, name, message="m", is_program=True) for name in ("b.py", "a.py"))
    ((_, found),) = on_targets([("a", one), ("a", other)], 1)
    assert [member.name for member in found.members] == ["a.py", "b.py"]
    (finding,) = findings(found)
    assert (finding.layer, finding.layers) == (None, ())
    assert finding.identity == ("CL503", "net.py", "a.py", "", 1)


def test_texts_name_the_layers_that_are_left() -> None:
    (finding,) = findings(draft_of_saying(WIDTH, 1, "a", "b", "c"), silenced=("b",))
    assert finding.message == "K=1 of a, K=1 of c!"
    assert finding.fix.describe == "use K=1 of a, K=1 of c"
    assert finding.layers == ("a", "c")
    assert findings(draft_of_saying(WIDTH, 1, "a"), silenced=("a",)) == []


def test_numbers_of_one_layer_stand_together() -> None:
    members = [FindingMember("a", "net.py", "K", number) for number in (9, 3, 5, 11, 7)]
    (finding,) = findings(replace(draft_of_saying(), members=(*members, FindingMember("a", "net.py", "C", 3))))
    assert finding.message == "K=3/5/7/9/... and C=3 of a!"
    (finding,) = findings(replace(draft_of_saying(), members=tuple(members[:2])))
    assert finding.message == "K=3/9 of a!"


def test_ordinals_tell_findings_apart_that_share_the_rest() -> None:
    found = findings(draft_of_saying(WIDTH, 1), draft_of_saying(WIDTH, 2), draft_of_saying(WIDTH, 3, "b"))
    assert [each.identity and each.identity[2:] for each in found] == [("a", "", 1), ("a", "", 2), ("b", "", 1)]


def test_what_stands_in_no_file_that_was_given_is_left_out() -> None:
    assert findings(draft_of_saying(), given=("other.py",)) == []
    moved = replace(draft_of_saying(), at=at(1, "other.py"))
    assert len(findings(moved, given=("other.py",))) == 1
    assert len(findings(moved, given=("net.py",))) == 1


BAD = record("Net.a", K=62, K_of=(literal(62, 7),))
# what reads a width shows it to be no output of the network; of itself nothing is said, as its map may be of 1x1
READS = record("Net.reads", 200, C=62, R=1, S=1)
BIASED = record("Net.b", 101, bias=True, norm_follows=True)


def judged(*given: Any, **wanted: Any) -> SourceResult:
    return checked_alone(*given, READS, **wanted)


def test_what_is_aligned_and_known_says_nothing() -> None:
    assert said(judged(record())) == []


def test_each_rule_says_its_own() -> None:
    found = judged(BAD, record("Net.b", 101, bias=True, norm_follows=True), program(cudnn_enabled=False))
    assert [(code, line) for code, line, _ in said(found)] == [("CL102", 7), ("CL506", 101), ("CL507", 1)]
    assert {finding.gpu for finding in found.findings} == {None}
    assert {finding.lost_us for finding in found.findings} == {None}


@pytest.mark.parametrize(
    ("given", "expected"),
    [(("net.py",), 1), (("widths.py",), 1), (("other.py",), 0), ((), 0)],
)
def test_the_construction_or_the_literal_was_given(given: tuple[str, ...], expected: int) -> None:
    brought = record(K=62, K_of=(literal(62, 3, path="widths.py"),))
    assert len(judged(brought, given=given).findings) == expected


@pytest.mark.parametrize(("given", "expected"), [(("train.py",), 1), (("flags.py",), 1), (("net.py",), 0)])
def test_the_program_or_the_statement_was_given(given: tuple[str, ...], expected: int) -> None:
    script = program(cudnn_enabled=False, settings=(setting("cudnn.enabled", False, 4, "flags.py"),))
    assert len(judged(script, given=given).findings) == expected


@pytest.mark.parametrize(
    ("dtype", "gpu", "K", "message"),
    [
        (None, "a100", 62, "K=62 of Net.conv: no multiple of 8 (fp16, bf16)"),
        (None, "a100", 60, "K=60 of Net.conv: no multiple of 8 (fp16, bf16), but of 4, which is enough for tf32"),
        (None, "v100", 60, "K=60 of Net.conv: no multiple of 8 (fp16)"),
        (None, "t4", 62, "K=62 of Net.conv: no multiple of 8 (fp16)"),
        (None, "p100", 62, ""),
        (Dtype.fp32, "a100", 60, ""),
        (Dtype.fp32, "a100", 62, "K=62 of Net.conv: no multiple of 4 for tf32"),
        (Dtype.fp32, "v100", 62, ""),
        (Dtype.int8, "a100", 72, "K=72 of Net.conv: no multiple of 16 for int8"),
    ],
)
def test_the_dtype_that_is_stated_decides(dtype: Dtype | None, gpu: str, K: int, message: str) -> None:
    found = judged(record(K=K), dtype=dtype, gpus=(gpu,))
    assert [text for _, _, text in said(found)] == ([message] if message else [])


def test_targets_that_say_the_same_say_it_once() -> None:
    assert only(judged(BAD, gpus=("a100", "h100", "p100"))).gpu is None
    assert only(judged(BAD, gpus=("p100", "a100"))).gpu == "a100"
    assert [(each.gpu, "tf32" in each.message) for each in judged(record(K=60), gpus=("a100", "v100")).findings] == [
        ("a100", True), ("v100", False),
    ]  # fmt: skip
    assert only(judged(BIASED, gpus=("a100", "h100"))).gpu is None


@pytest.mark.parametrize(
    "twice",
    [
        (BAD, BAD),
        (BAD, record("Net.a", K=62, K_of=(literal(62, 7),), root="net.py:other")),
        (program(cudnn_enabled=False), program(cudnn_enabled=False)),
    ],
)
def test_what_several_roots_or_chunks_lead_to_is_said_once(twice: Any) -> None:
    assert len(judged(*twice).findings) == 1


def test_one_statement_of_several_programs_is_said_once() -> None:
    shared = setting("cudnn.enabled", False, 4, "flags.py")
    scripts = [program(path, cudnn_enabled=False, settings=(shared,)) for path in ("train.py", "other.py")]
    assert said(judged(*scripts))[0][1] == 4
    assert len(judged(*scripts).findings) == 1


@pytest.mark.parametrize("path", ["tests/net.py", "docs/net.py", "third_party/net.py", "test_net.py"])
def test_of_tests_and_other_peoples_code_nothing_is_said(path: str) -> None:
    found = (
        record(path=path, K=62),
        record(path=path, bias=True, norm_follows=True),
        program(path, cudnn_enabled=False),
    )
    assert said(judged(*found, given=(path,))) == []


def test_what_is_taken_out_again_is_no_layer() -> None:
    assert said(judged(record(K=62, replaced=True))) == []


def test_rules_that_are_not_asked_for_say_nothing() -> None:
    assert [code for code, _, _ in said(judged(BAD, BIASED, codes=("CL506",)))] == ["CL506"]


@pytest.mark.parametrize("asked", ["silences", "known"])
def test_what_is_silenced_or_known_is_left_out(asked: str) -> None:
    others = (BAD, record("Net.c", 9, C=62, C_of=(literal(62, 7),)))

    def first(finding: Finding) -> bool:
        return finding.layer == "Net.a"

    assert said(judged(*others, **{asked: first}))[0][2] == "C=62 of Net.c: no multiple of 8 (fp16, bf16)"
    assert said(judged(*others, **{asked: lambda _: True})) == []
    assert said(judged(program(cudnn_enabled=False), **{asked: lambda _: True})) == []


def test_for_inference_a_bias_is_folded_away() -> None:
    assert said(judged(BIASED, mode="inference")) == []
    assert judged(BIASED).mode == "training"


def test_what_of_programs_could_not_be_checked() -> None:
    found = judged(program(), program("far.py"))
    assert {skip.path for skip in found.skipped} == {"train.py"}
    assert [(skip.code, set(skip.needs)) for skip in found.skipped] == [
        ("CL501", {"runtime.cudnn_benchmark", "runtime.fixed_input_size", "runtime.deterministic"})
    ]


def test_constructions_that_are_not_known_are_no_lines_of_the_report() -> None:
    assert judged(record(K=None), record(bias=True)).skipped == ()


@pytest.mark.parametrize(("construction", "stated"), [(3, 9), (30, 90)])
def test_fingerprints_do_not_move_with_lines(construction: int, stated: int) -> None:
    one = judged(record("Net.a", construction, K=62, K_of=(literal(62, stated),)))
    assert only(one).fingerprint == only(judged(BAD)).fingerprint
    assert only(one).identity == ("CL102", "net.py", "Net.a", "", 1)
