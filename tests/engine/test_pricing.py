"""What flaws cost, as findings show it."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_networks import checked, layer, rulebook


def test_severity_follows_the_price(tmp_path: Path) -> None:
    """The same flaw is a warning where it costs, and info where the layer hardly matters."""
    fix = '{ describe: "use C={wide}", set: { C: wide } }'
    rules = rulebook(tmp_path, {"check": "C % 8 == 0", "loss": "fix", "let": '{ wide: "ceil_to(C, 8)" }', "fix": fix})
    odd = layer("odd", C=62, N=256, H=56, W=56)
    (alone,) = checked(rules, odd).findings
    assert alone.severity == "warning"
    assert alone.lost_us is not None
    assert alone.fix is not None
    assert alone.fix.time_change_us == pytest.approx(-alone.lost_us)
    assert dict(alone.fix.set) == {"C": 64}
    tiny = layer("tiny", C=62, N=1, H=4, W=4) + layer("huge", C=512, K=512, N=256, H=112, W=112)
    (beside,) = checked(rules, tiny).findings
    assert beside.severity == "info"
    assert beside.lost_percent is not None
    assert beside.lost_percent < 0.5


def test_an_error_stands_whatever_it_costs(tmp_path: Path) -> None:
    fix = '{ describe: "use C=64", set: { C: "64" } }'
    rules = rulebook(tmp_path, {"severity": "error", "check": "C == 64", "loss": "fix", "fix": fix})
    (finding,) = checked(rules, layer("a", C=63, N=1, H=4, W=4) + layer("b", K=2048, N=256)).findings
    assert finding.severity == "error"


def test_without_a_prediction_the_severity_stands(tmp_path: Path) -> None:
    fix = '{ describe: "use C=64", set: { C: "64" } }'
    rules = rulebook(tmp_path, {"check": "C == 64", "loss": "fix", "fix": fix})
    (finding,) = checked(rules, layer("a", C=63, H=None, W=None)).findings
    assert (finding.severity, finding.lost_us, finding.lost_percent) == ("warning", None, None)
