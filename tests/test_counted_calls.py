"""How many function calls small checks take: a loss of speed is seen without a clock."""

import pytest
from benchmark_scripts import modules_fixture

scripts = modules_fixture("counted", "speed_inputs")
MOST = 1.05  # of the last release's: other versions of typer and PyYAML differ by less


@pytest.mark.slow
def test_no_check_takes_more_calls_than_in_the_last_release(scripts) -> None:
    counted, _ = scripts
    now, releases = counted.counted(), counted.known()
    assert min(now.values()) > 10_000
    for name, calls in (next(reversed(releases.values())) if releases else {}).items():
        assert now[name] <= MOST * calls, f"{name}: python benchmarks/counted.py shows all; --write keeps a new count"


def test_every_release_has_all_cases(scripts) -> None:
    counted, _ = scripts
    several = list(counted.known().values())
    assert all(found.keys() == several[0].keys() for found in several)
