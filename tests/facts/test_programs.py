"""What rules can ask of a program: its settings as the runtime's, its statements in words with their places."""

from __future__ import annotations

from typing import Any

import pytest
from source_records import at, program, setting

from convlint.facts.programs import PROGRAM, RUNTIME_OF_PROGRAM, in_order, setting_of, settings_of
from convlint.facts.quantity import View
from convlint.facts.target import RUNTIME
from convlint.facts.unknown import UNKNOWN


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
