"""Which given library supports the GPU."""

from __future__ import annotations

from typing import Any

import pytest
from layer_facts import facts

from convlint.facts.unknown import UNKNOWN


@pytest.mark.parametrize(
    ("gpu", "runtime", "expected"),
    [
        ("a100", "cuda: '10.2'", {"cuda_too_old": True, "cuda_dropped": False, "cuda_first": "11.0"}),
        ("a100", "cuda: '11.0'", {"cuda_too_old": False}),
        ("k80", "cuda: '12.1'", {"cuda_dropped": True, "cuda_last": "11.8"}),
        ("k80", "cuda: '11.8'", {"cuda_dropped": False, "cuda_too_old": False}),
        (
            "a100",
            "framework: pytorch",
            {"cuda_dropped": UNKNOWN, "cudnn_too_old": UNKNOWN, "framework_dropped": UNKNOWN},
        ),
        (
            "b200",
            "cudnn_benchmark: true, framework_version: '2.6'",  # PyTorch's, whose setting it is
            {"framework_too_old": True, "framework_first": "2.7"},
        ),
    ],
)
def test_versions(gpu: str, runtime: str, expected: dict[str, Any]) -> None:
    seen = facts("C: 8", gpu=gpu, runtime=runtime)["support"]
    for name, value in expected.items():
        found = getattr(seen, name)
        assert found is value if value is UNKNOWN else str(found) == str(value), name


@pytest.mark.parametrize(
    ("gpu", "name", "needs"),
    [
        ("k80", "support.cuda_dropped", ("runtime.cuda",)),
        ("a100", "support.cuda_too_old", ("runtime.cuda",)),
        ("a100", "support.cuda_dropped", ()),  # it is not: nobody need be asked
        ("k80", "support.cuda_first", ()),
    ],
)
def test_a_version_is_asked_for_where_there_is_a_bound(gpu: str, name: str, needs: tuple[str, ...]) -> None:
    assert facts("C: 8", gpu=gpu).needs(frozenset((name,))) == needs


def test_a_version_of_which_nothing_is_known_is_named() -> None:
    """No release notes at hand say whether cuDNN 8.6 still runs on Kepler: nobody is asked for what they gave."""
    known = facts("C: 8", gpu="k80", runtime="framework: pytorch, cudnn: '8.6'")
    assert known.needs(frozenset(("support.cudnn_dropped",))) == ("a source on cudnn 8.6",)
    assert facts("C: 8", gpu="k80", runtime="cudnn: '8.5'").needs(frozenset(("support.cudnn_dropped",))) == ()
