"""The answer of an audit as JSON: keys are stable, and a change of meaning is a new version."""

from __future__ import annotations

import json
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from convlint import __version__
from convlint.audit.audit import Summary
from convlint.files.safe import number
from convlint.reporters import Style

_DIGITS = 6


def render(summary: Summary, style: Style) -> str:
    """The answer as one object on one line. Without weights, hours are one for each model."""
    tally, ranking, unused = summary.tally, summary.ranking, summary.unused
    document = {
        "schema_version": 1,
        "convlint": __version__,
        "complete": not tally.unread,
        "targets": list(tally.gpus.values()),
        "models": tally.models,
        "failed": tally.failed,
        "known": summary.known,
        "layers": tally.layers,
        "findings": {"errors": tally.errors, "warnings": tally.warnings, "infos": tally.infos},
        "unread": tally.unread,
        "weighed": ranking.weighed,
        "hours": number(ranking.hours, _DIGITS),
        "lost_hours": number(ranking.lost, _DIGITS),
        "hours_taken_for_convolutions": number(ranking.assumed, _DIGITS),
        "lost_hours_by_basis": {basis: number(lost, _DIGITS) for basis, lost in ranking.by_basis.items()},
        "stored_dtype": _object(ranking.stored),
        "untimed": _object(ranking.untimed),
        "without_hours": _object(ranking.idle),
        "unused_weights": None
        if unused is None
        else {"rows": unused.rows, "hours": number(unused.hours, _DIGITS), "names": list(unused.names)},
        "worst_models": [_object(each) for each in ranking.worst],
        "changes": [_object(each) for each in ranking.changes],
        "more_changes": ranking.more_changes,
        "rules": [_object(each) for each in ranking.rules],
        "architectures": [_object(each) for each in ranking.architectures],
        "gpus": [_object(each) for each in ranking.gpus],
    }
    return json.dumps(document, ensure_ascii=not style.unicode, allow_nan=False) + "\n"


def _object(entry: Struct) -> dict[str, Any]:
    return {key: _plain(value) for key, value in asdict(entry).items()}


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return number(value, _DIGITS)
    return list(value) if isinstance(value, tuple) else value
