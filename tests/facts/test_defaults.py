"""What frameworks do where a setting is left out, and whose setting is whose."""

from __future__ import annotations

from typing import Any

import pytest

from convlint.facts.defaults import DEFAULTS, OWNERS, assumptions, framework_of, setting_of
from convlint.model.runtime import Runtime

TUNING = frozenset(("runtime.framework", "runtime.cudnn_benchmark", "runtime.deterministic"))


def test_every_default_is_of_a_setting_and_documented() -> None:
    for framework, settings in DEFAULTS.items():
        for name, (value, source) in settings.items():
            assert name in Runtime.__struct_fields__
            assert value is not None
            assert len(source) > 20, (framework, name)
    assert set(OWNERS) <= set(Runtime.__struct_fields__)
    assert set(OWNERS.values()) <= set(DEFAULTS)
    assert "cudnn_benchmark" not in DEFAULTS["pytorch"]  # its absence does not say that it is off


@pytest.mark.parametrize(
    ("given", "framework"),
    [
        ({}, None),
        ({"framework": "jax"}, "jax"),
        ({"cudnn_benchmark": False}, "pytorch"),
        ({"tf_cudnn_use_autotune": False}, "tensorflow"),
        ({"cudnn_conv_algo_search": "DEFAULT"}, "onnxruntime"),
        ({"mxnet_cudnn_autotune_default": 0}, "mxnet"),
        ({"xla_gpu_autotune_level": 0}, "jax"),
        ({"framework": "tensorflow", "cudnn_benchmark": True}, "tensorflow"),  # what is said goes first
        ({"cudnn_benchmark": True, "tf_cudnn_use_autotune": True}, None),  # of two owners nobody can tell
        ({"deterministic": True, "fixed_input_size": True}, None),
    ],
)
def test_the_framework_is_the_one_that_is_given_or_whose_settings_are(
    given: dict[str, Any], framework: str | None
) -> None:
    assert framework_of(Runtime(**given)) == framework


@pytest.mark.parametrize(
    ("given", "name", "value"),
    [
        ({}, "deterministic", None),
        ({"framework": "cudnn"}, "deterministic", None),  # no framework: nothing is documented
        ({"framework": "pytorch"}, "deterministic", False),
        ({"cudnn_benchmark": False}, "deterministic", False),
        ({"framework": "pytorch", "deterministic": True}, "deterministic", True),
        ({"framework": "pytorch"}, "cudnn_benchmark", None),
        ({"framework": "pytorch"}, "tf_cudnn_use_autotune", None),
        ({"framework": "tensorflow"}, "tf_cudnn_use_autotune", True),
        ({"framework": "tensorflow", "tf_cudnn_use_autotune": False}, "tf_cudnn_use_autotune", False),
        ({"framework": "mxnet"}, "mxnet_cudnn_autotune_default", 1),
        ({"framework": "mxnet", "mxnet_cudnn_autotune_default": 0}, "mxnet_cudnn_autotune_default", 0),
        ({"framework": "jax"}, "xla_gpu_autotune_level", 4),
        ({"framework": "onnxruntime"}, "cudnn_conv_algo_search", "EXHAUSTIVE"),
        ({"framework": "pytorch"}, "fixed_input_size", None),
    ],
)
def test_a_setting_that_is_left_out_has_its_frameworks_default(given: dict[str, Any], name: str, value: object) -> None:
    assert setting_of(Runtime(**given), name) == value


@pytest.mark.parametrize(
    ("given", "names", "words"),
    [
        ({"cudnn_benchmark": False}, TUNING,
         ["cudnn_benchmark is a setting of pytorch", "deterministic is not given: pytorch's default is off"]),
        ({"cudnn_benchmark": False}, {"runtime.cudnn_benchmark"}, []),  # what a rule does not read it does not assume
        ({"framework": "pytorch", "cudnn_benchmark": False}, TUNING,
         ["deterministic is not given: pytorch's default is off"]),
        ({"framework": "pytorch", "cudnn_benchmark": False, "deterministic": False}, TUNING, []),
        ({"framework": "tensorflow"}, {"runtime.tf_cudnn_use_autotune"},
         ["tf_cudnn_use_autotune is not given: tensorflow's default is on"]),
        ({"framework": "mxnet"}, {"runtime.mxnet_cudnn_autotune_default"},
         ["mxnet_cudnn_autotune_default is not given: mxnet's default is 1"]),  # a number, not a truth
        ({"framework": "onnxruntime"}, {"runtime.cudnn_conv_algo_search"},
         ["cudnn_conv_algo_search is not given: onnxruntime's default is EXHAUSTIVE"]),
        ({}, TUNING, []),
    ],
)  # fmt: skip
def test_what_is_taken_for_granted_is_said(given: dict[str, Any], names: set[str], words: list[str]) -> None:
    assert assumptions(Runtime(**given), frozenset(names)) == words
