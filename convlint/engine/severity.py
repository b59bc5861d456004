"""How severe a finding is, decided here alone: by what the rule states, by what it loses, by the user.

Errors stand, and an unpriced finding keeps what its rule states. Of advised ones those that lose most are warnings;
what is not advised is info.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from convlint.engine.hits import Flaw, Hit
from convlint.model.layer import ConvLayer
from convlint.report import Severity

WARNING_SHARE = 0.01  # of the network's time: what loses that much is a warning
SAVING_SHARE = 0.05  # where all advice saves that much,
SAID_SHARE = 0.5  # warnings have to come to this share of what it saves


def stated(flaw: Flaw, layer: ConvLayer | None = None) -> Severity:
    """What the rule says of this case, before anything is known of its price.

    A priced rule judges what runs. Of a dtype that was only read from storage it can say no more than info, and neither
    of another dtype for a module, around which autocast may stand.
    """
    severity = flaw.case.severity
    if layer is None or severity != "warning" or flaw.rule.loss == "none":
        return severity
    assumed = layer.dtype_source == "storage" or (layer.dtype_source == "module" and "dtype" in flaw.set)
    return "info" if assumed else severity


def graded(hits: Sequence[Hit], network_us: float) -> list[Hit]:
    """The joined hits with their severities; `network_us` is what all layers take."""
    advised = [hit for hit in hits if _is_weighed(hit) and hit.price.advised]
    advised.sort(key=lambda hit: -(hit.price.lost_us or 0.0))
    saved_us = sum(hit.price.lost_us or 0.0 for hit in advised)
    warning: set[int] = set()
    said_us = 0.0
    for hit in advised:
        lost_us = hit.price.lost_us or 0.0
        wanting = saved_us >= SAVING_SHARE * network_us and said_us < SAID_SHARE * saved_us
        if lost_us <= 0 or not (lost_us >= WARNING_SHARE * network_us or wanting):
            break
        warning.add(id(hit))
        said_us += lost_us
    return [
        hit._replace(severity="warning" if id(hit) in warning else "info") if _is_weighed(hit) else hit for hit in hits
    ]


def _is_weighed(hit: Hit) -> bool:
    """Whether its price decides: it is no error, and its rule has a price."""
    return hit.severity != "error" and bool(hit.indices) and hit.rule.loss != "none"


def joins(share: Literal["all", "any", "info"], *, is_advised: bool) -> bool:
    """Whether a finding may be said together with others: of `info`, one that is advised keeps its own line."""
    return share != "info" or not is_advised


def overridden(_decided: Severity, wanted: Severity) -> Severity:
    """What the user wants for a rule stands, whatever was decided before: an error too may become info."""
    return wanted
