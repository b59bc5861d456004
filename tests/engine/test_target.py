"""The check of source needs a target alone: nothing of what prices networks is loaded for it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from convlint.engine import check, target
from convlint.gpus.gpu import load_gpu


def test_both_checks_know_one_target() -> None:
    assert check.Target is target.Target
    assert check.Silences is target.Silences
    assert target.Target(label="mine", gpu=load_gpu("a100")).label == "mine"


@pytest.mark.parametrize("module", ["convlint.engine.check", "convlint.engine.pricing", "convlint.engine.coupling"])
def test_source_is_checked_without_what_prices_networks(module: str) -> None:
    code = f"import sys, convlint.linting.source_parts; print({module!r} in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "False"
