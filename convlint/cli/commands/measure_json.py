"""A measurement as JSON: keys are stable, and a change of meaning is a new version."""

from __future__ import annotations

import json
from typing import Any

from convlint import __version__
from convlint.cli.commands.measure_words import Measurement
from convlint.files.safe import clean, clean_path, number, settings_object
from convlint.measuring.trial import Compared, Outcome
from convlint.reporters.json_v3 import calibration_object, error_object


def render(found: Measurement) -> str:
    """The measurement as one JSON object on one line; times in us, `null` for what is not known."""
    device, agreement = found.device, found.agreement
    document = {
        "schema_version": 2,
        "convlint": __version__,
        "complete": not found.errors and not found.waiting,
        "path": clean_path(found.path),
        "gpu": clean(found.gpu) or None,
        "mode": found.mode,
        "cudnn_benchmark": found.benchmark,
        "device": None
        if device is None
        else {
            "kind": device.kind,
            "name": clean(device.name),
            "compute_capability": device.compute_capability or None,
            "framework_version": clean(device.framework_version),
            "cudnn": clean(device.cudnn) or None,
            "cuda": clean(device.cuda) or None,
            "sm_clock_mhz": None if found.clocks is None else list(found.clocks),
        },
        "passes": [_pass(each) for each in found.compared],
        "agreement": None
        if agreement is None
        else {
            "passes": agreement.count,
            "predicted_over_measured": number(agreement.bias),
            "median_error": number(agreement.error),
            "median_error_unbiased": number(agreement.error_unbiased),
        },
        "advice": [_outcome(one) for one in found.outcomes],
        "untried": found.untried,
        "unfinished": found.unfinished,
        "calibrations": [calibration_object(use) for use in found.calibrations],
        "waiting": found.waiting,
        "csv": clean_path(found.csv) or None,
        "notes": [clean(note) for note in found.notes],
        "errors": [error_object(error) for error in found.errors],
    }
    return json.dumps(document, ensure_ascii=False, allow_nan=False)


def _pass(each: Compared) -> dict[str, Any]:
    return {
        "layer": clean(each.layer),
        "pass": each.which,
        "predicted_us": number(each.predicted_us),
        "measured_us": number(each.measured_us),
        "spread": number(each.spread) if each.runs else None,
        "runs": each.runs,
        "reason": clean(each.reason) or None,
    }


def _outcome(one: Outcome) -> dict[str, Any]:
    finding = one.trial.finding
    fix = finding.fix
    return {
        "code": finding.rule.code,
        "fingerprint": finding.fingerprint or None,
        "layer": None if finding.layer is None else clean(finding.layer),
        "layers": [clean(name) for name in finding.layers],
        "describe": "" if fix is None else clean(fix.describe),
        "set": {} if fix is None else settings_object(fix.set),
        "held": one.held,
        "promised_change": number(one.trial.promised),
        "measured_change": number(one.after_us / one.before_us - 1),
        "before_us": number(one.before_us),
        "after_us": number(one.after_us),
        "noise_us": number(one.noise_us),
    }
