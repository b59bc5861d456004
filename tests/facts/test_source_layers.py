"""What rules can ask of a construction and of its channel counts: by its names, its literals, its provisos."""

from typing import Any

import pytest
from msgspec.structs import replace
from source_records import at, literal, program, record, setting

from convlint.facts.quantity import UNKNOWN, View
from convlint.facts.source_layers import (
    CONSTRUCTION,
    MAP,
    PROGRAM,
    PROVISO,
    RUNTIME_OF_PROGRAM,
    WIDTH,
    Width,
    in_order,
    is_inside,
    map_in_words,
    map_of,
    proviso,
    setting_of,
    settings_of,
)
from convlint.facts.target import RUNTIME
from convlint.model.location import Location
from convlint.model.source import StatedLiteral


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cudnn.benchmark", "cudnn_benchmark"),
        ("torch.backends.cudnn.benchmark", "cudnn_benchmark"),
        ("cudnn.deterministic", "deterministic"),
        ("use_deterministic_algorithms", "deterministic"),
        ("cudnn.enabled", "cudnn_enabled"),
        ("cudnn.allow_tf32", "tf32"),
        ("cudnn.conv.fp32_precision", "tf32"),
        ("fp32_precision", "tf32"),
        ("cuda.matmul.allow_tf32", ""),
        ("cuda.matmul.fp32_precision", ""),
        ("float32_matmul_precision", ""),
        ("MXNET_CUDNN_AUTOTUNE_DEFAULT", ""),
    ],
)
def test_the_setting_that_a_statement_is_about(name: str, expected: str) -> None:
    assert setting_of(name) == expected
    one = setting(name, True)
    assert list(settings_of(program(settings=(one,)), expected)) == [one]


@pytest.mark.parametrize("name", ["cudnn_benchmark", "cudnn_enabled", "deterministic", "tf32", "fixed_input_size"])
def test_what_a_program_does_not_show_is_unknown_and_no_default(name: str) -> None:
    assert getattr(View(RUNTIME_OF_PROGRAM, program()), name) is UNKNOWN
    for value in (True, False):
        assert getattr(View(RUNTIME_OF_PROGRAM, program(**{name: value})), name) is value


def test_other_settings_are_as_the_framework_has_them() -> None:
    assert RUNTIME_OF_PROGRAM.keys() == RUNTIME.keys()
    assert View(RUNTIME_OF_PROGRAM, program(framework="mxnet")).framework == "mxnet"
    assert View(RUNTIME_OF_PROGRAM, program(framework="jax")).xla_gpu_autotune_level == 4
    assert View(RUNTIME_OF_PROGRAM, program()).cudnn is UNKNOWN


SEED, SPEED = setting("cudnn.deterministic", True, 5, guard="seed"), setting("cudnn.benchmark", True, 9)


@pytest.mark.parametrize(
    ("settings", "conflict", "expected"),
    [
        ((SEED, SPEED), (SEED, SPEED), (SEED, SPEED)),
        ((SEED, SPEED), (SPEED, SEED), (SEED, SPEED)),
        ((SPEED, SEED), (SEED, SPEED), (SPEED, SEED)),
        ((), (SEED, SPEED), (SEED, SPEED)),
        ((), None, None),
    ],
)
def test_the_order_of_a_conflict_is_that_of_execution(settings: Any, conflict: Any, expected: Any) -> None:
    assert in_order(program(settings=settings, conflict=conflict)) == expected


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("conflict", {}, ""),
        (
            "conflict",
            {"conflict": (SEED, SPEED)},
            "cudnn.benchmark=True at train.py:9 follows cudnn.deterministic=True at train.py:5 (if seed)",
        ),
        ("evidence", {}, ""),
        (
            "evidence",
            {"evidence": (("CIFAR10", at(3)), ("crop", at(4, "d.py")))},
            "CIFAR10 at net.py:3, crop at d.py:4",
        ),
        ("sets_benchmark", {}, False),
        ("sets_benchmark", {"settings": (setting("cudnn.benchmark"),)}, True),
        ("sets_tf32", {"settings": (setting("cuda.matmul.allow_tf32"), setting("cudnn.benchmark"))}, False),
        ("sets_tf32", {"settings": (setting("cudnn.conv.fp32_precision"),)}, True),
        ("sets_cudnn", {"settings": (setting("cudnn.benchmark"),)}, False),
        ("sets_cudnn", {"settings": (setting("cudnn.enabled"),)}, True),
        ("surely_tunes", {"cudnn_benchmark": True}, False),
        ("surely_tunes", {"cudnn_benchmark": True, "settings": (SPEED,)}, False),
        ("surely_tunes", {"settings": (setting("cudnn.benchmark", True, certain=True),)}, False),
        (
            "surely_tunes",
            {"cudnn_benchmark": True, "settings": (setting("cudnn.benchmark", True, certain=True),)},
            True,
        ),
        ("autotune_disabled", {}, ""),
        ("autotune_disabled", {"autotune_disabled": (setting("A", False), setting("B", "0"))}, "A=0, B=0"),
        ("backward_in_autocast", {"backward_in_autocast": (at(1), at(2))}, 2),
        ("autocast_around_loss", {}, 0),
        ("trains_convolutions", {"has_convolutions": False}, False),
        ("complete", {"complete": True}, True),
        ("incomplete_for", {"incomplete_for": "exec"}, "exec"),
        ("trainer", {"trainer": "Trainer"}, "Trainer"),
        ("path", {}, "train.py"),
    ],
)
def test_quantities(name: str, given: dict[str, Any], expected: Any) -> None:
    assert getattr(View(PROGRAM, program(**given)), name) == expected


def test_every_quantity_has_a_value_of_its_type() -> None:
    kinds = {"text": str, "truth": bool, "number": int}
    for name, quantity in PROGRAM.items():
        assert isinstance(getattr(View(PROGRAM, program()), name), kinds[quantity.type]), name


WIDE = replace(literal(60, 17, "width"), default=True)
DEEP = replace(literal(2, 18, "depth"), default=True)
DEFAULTS = {"certainty": "with defaults", "root": "net.py:Net"}


@pytest.mark.parametrize(
    ("given", "literals", "expected"),
    [
        ({}, (WIDE,), ""),
        ({"condition": "a > 1"}, (), ", only if a > 1"),
        (DEFAULTS, (WIDE, WIDE), ", with width=60, the default at net.py:17"),
        (DEFAULTS, (WIDE, literal(8, 3, "groups")), ", with width=60, the default at net.py:17"),
        (
            {**DEFAULTS, "condition": "b"}, (WIDE, DEEP),
            ", with width=60, the default at net.py:17 and depth=2, the default at net.py:18, only if b",
        ),
        # a list, or several: whose they are
        (DEFAULTS, (literal(60, 17, "widths"),), ", with the defaults of Net()"),
        (DEFAULTS, (WIDE, DEEP, replace(DEEP, name="a")), ", with the defaults of Net()"),
        ({**DEFAULTS, "root": ""}, (), ", with its defaults"),
    ],
)  # fmt: skip
def test_provisos(given: dict[str, Any], literals: tuple[StatedLiteral, ...], expected: str) -> None:
    assert proviso(record(**given), literals) == expected
    view = View(CONSTRUCTION, record(**given))
    assert (view.proviso, view.stated, view.condition) == (
        PROVISO, "certainty" not in given, given.get("condition", ""),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([{"H": 56, "W": 28}], ", at 56x28"),
        ([{"H": 56, "W": 56}, {"H": 56, "W": 56, "K": 8}], ", at 56x56"),
        ([{"H": 56, "W": 56}, {"H": 28, "W": 28}], ""),
        ([{"H": 56, "W": 56}, {}], ""),
        ([{"H": 56, "W": None}], ""),
        # of a block that was run alone, the input of the network says nothing; of one that a config builds, neither
        ([{"H": 224, "W": 224, "C": None, "root": "net.py:Net"}], ""),
        ([{"H": 56, "W": 56}, {"H": 224, "W": 224, "C": None, "root": "net.py:Net"}], ", at 56x56"),
        ([{"H": 56, "W": 56}, {"H": 56, "W": 56, "C": None, "root": "net.py:Other"}], ""),
        ([], ""),
    ],
)
def test_maps(sizes: list[dict[str, Any]], expected: str) -> None:
    assert map_in_words(map_of([record(**each) for each in sizes])) == expected
    assert View(CONSTRUCTION, record()).map == MAP


@pytest.mark.parametrize(
    ("name", "root", "weighs"),
    [
        ("Net.conv", "", False),
        ("Net.se.fc1", "", True),
        ("SELayer.conv", "", True),
        ("Net.seg_head", "", False),
        ("Net.dense", "", False),
        ("Block.squeeze_excite.0", "", True),
        ("Net.conv", "net.py:SqueezeExcite", True),
        ("Net.conv", "nets/gate.py:Net", False),
        ("AttentionGate.psi", "", True),
    ],
)
def test_what_weighs_channels_by_its_name(name: str, root: str, weighs: bool) -> None:
    assert View(CONSTRUCTION, record(name, root=root)).weighs is weighs


def test_what_the_code_around_it_does_not_show_is_unknown() -> None:
    assert View(CONSTRUCTION, record()).pointwise_map is UNKNOWN
    assert View(CONSTRUCTION, record(pointwise_map=False)).pointwise_map is False


@pytest.mark.parametrize(
    ("name", "inner", "of_task", "of_input"),
    [
        ("", True, False, False),
        ("", False, True, True),
        ("width", True, False, False),
        ("width", False, True, True),
        ("NUM_CLASSES", True, True, False),
        ("numClasses", True, True, False),
        ("n_class", True, True, False),
        ("num_anchors", True, True, False),
        ("num_grids", True, True, False),
        ("num_heatmaps", True, True, False),
        ("n_pafs", True, True, False),
        ("heat_out_channels", True, True, False),
        ("n_mel_channels", True, True, False),
        ("classifier_width", True, False, False),
        ("out_channels", True, False, False),
        ("in_channels", True, False, False),
    ],
)
def test_what_names_of_literals_say(name: str, inner: bool, of_task: bool, of_input: bool) -> None:
    width = Width(record=record(K=62, K_of=(literal(62, 7, name),)), side="K", inner=inner)
    view = View(WIDTH, width)
    assert (view.of_task, view.of_input) == (of_task, of_input)


@pytest.mark.parametrize(
    ("name", "side", "of_task"),
    [
        ("RPNHead.cls_logits", "K", True),
        ("RPNHead.bbox_pred[0]", "K", True),
        ("Align.conv_offset[6]", "K", True),
        ("CondInst.controller", "K", True),
        ("Stage.heatmaps[2]", "K", True),
        ("Stage.paf2", "K", True),
        ("RPNHead.cls_logits", "C", False),
        ("RPNHead.conv", "K", False),
        ("Net.predictor_less", "K", False),
    ],
)
def test_what_a_layer_predicts_the_task_fixes(name: str, side: Any, of_task: bool) -> None:
    assert View(WIDTH, Width(record=record(name, C=62, K=62), side=side)).of_task is of_task


@pytest.mark.parametrize(
    ("K", "values", "of_image"), [(12, (3, 4), True), (12, (12,), False), (12, (3, 4.0), False), (62, (), False)]
)
def test_what_is_made_of_an_image_s_channels_alone(K: int, values: tuple[Any, ...], of_image: bool) -> None:
    literals = tuple(literal(value, line) for line, value in enumerate(values, 1))
    view = View(WIDTH, Width(record=record(K=K, K_of=literals), side="K", inner=True))
    assert (view.of_task, view.of_input) == (of_image, of_image)


def test_names_inside_of_the_construction_are_the_convolution_s_own() -> None:
    own = StatedLiteral(at=Location(path="net.py", line=100, column=20), value=62, name="num_classes")
    assert View(WIDTH, Width(record=record(K=62, K_of=(own,)), side="K")).of_task is False


@pytest.mark.parametrize(
    ("path", "line", "column", "inside"),
    [
        ("net.py", 100, 9, True),
        ("net.py", 100, 59, True),
        ("net.py", 100, 8, False),
        ("net.py", 100, 60, False),
        ("net.py", 101, 20, False),
        ("other.py", 100, 20, False),
        ("net.py", None, None, False),
    ],
)
def test_inside_of_a_construction(path: str, line: int | None, column: int | None, inside: bool) -> None:
    assert is_inside(Location(path=path, line=line, column=column), record()) is inside


@pytest.mark.parametrize(
    ("literals", "quiet"),
    [
        ((), False),
        ((literal(62, 7),), False),
        ((literal(62, 7, quiet=True),), True),
        ((literal(62, 7, quiet=True), literal(2, 8)), False),
        ((replace(literal(62, 7), trial=True), literal(2, 8)), True),
    ],
)
def test_a_number_of_tests_alone_is_quiet(literals: tuple[StatedLiteral, ...], quiet: bool) -> None:
    assert View(WIDTH, Width(record=record(K=62, K_of=literals), side="K")).quiet is quiet


def test_the_count_of_its_side() -> None:
    one = record(C=3, K=None)
    assert View(WIDTH, Width(record=one, side="C")).value == 3
    assert View(WIDTH, Width(record=one, side="K")).value is UNKNOWN
