"""All commands agree about a network, and with `check` on the changed network.

The laws are those of `benchmarks/laws.py`, which counts breaks on as many random networks as one wants.
"""

from typing import Any

import pytest
from benchmark_scripts import modules_fixture
from cases import sampled

pytestmark = pytest.mark.slow
SAMPLES = 19


laws = modules_fixture("laws")


@pytest.mark.parametrize("seed", sampled(range(0, 80, 2), 5))  # all families, modes and GPUs
def test_a_random_network_breaks_no_law(laws: Any, seed: int) -> None:
    assert laws.judged(laws.random_case(seed)).breaks == {}


@pytest.mark.parametrize("number", sampled(range(SAMPLES), 6))
def test_a_sample_breaks_no_law(laws: Any, number: int) -> None:
    cases = laws.sample_cases()
    assert len(cases) == SAMPLES
    assert laws.judged(cases[number]).breaks == {}


@pytest.mark.parametrize("seed", sampled((3, 250), 2))
def test_a_network_has_the_same_numbers_in_all_formats(laws: Any, seed: int) -> None:
    assert laws.in_formats(seed).breaks == {}


def test_a_broken_law_is_counted(laws: Any) -> None:
    """The laws can be broken: a promise that is not kept is one."""
    case = laws.Case("odd", "")
    case.same("fix-promise", "two times", 100.0, 102.0)
    case.same("fix-promise", "two more", 100.0, 300.0)
    case.same("plan-end", "close enough", 100.0, 100.9)
    assert list(case.breaks) == ["fix-promise"]
    assert "two times: 100 and 102 (+2.00 %)" in case.breaks["fix-promise"]
    table = laws.table([case, laws.Case("even", "")])
    assert "| 1 | odd |" in next(line for line in table.splitlines() if line.startswith("| fix-promise:"))
