"""How severe a finding is, decided here alone: by what the rule states, by price, by batch advice, by the user."""

from __future__ import annotations

from typing import Literal

from convlint.report import Severity
from convlint.rulebook.rule import Case

# A warning must lose this much of its layers' time and of the network's; less is info (rules.md, third idea).
WARNING_LAYER_SHARE = 0.05
WARNING_NETWORK_SHARE = 0.005
# Of the network's time per image: what another batch must gain for its finding to stay what the rule states.
WARNING_BATCH_GAIN = 0.05


def stated(case: Case) -> Severity:
    """What the rule says of this case, before anything is known of its price."""
    return case.severity


def by_price(
    severity: Severity, lost_us: float | None, lost_percent: float | None, layer_share: float | None
) -> Severity:
    """A warning that loses too little is info; errors, and what cannot be priced, stand.

    `lost_percent` is of the network's time, `layer_share` a fraction of the time of the layers hit.
    """
    if severity != "warning" or lost_us is None:
        return severity
    network = lost_percent is None or lost_percent >= 100 * WARNING_NETWORK_SHARE
    layer = layer_share is not None and layer_share >= WARNING_LAYER_SHARE
    return "warning" if network and layer else "info"


def by_batch(severity: Severity, us_per_image: float, best_us_per_image: float) -> Severity:
    """Advice on the batch that gains the network too little, or that is left without a better batch, is info."""
    return "info" if best_us_per_image > us_per_image * (1 - WARNING_BATCH_GAIN) else severity


def joins(share: Literal["all", "any", "info"], severity: Severity) -> bool:
    """Whether a finding of this severity may be said together with others: of `info`, a warning keeps its own line."""
    return share != "info" or severity == "info"


def overridden(_decided: Severity, wanted: Severity) -> Severity:
    """What the user wants for a rule stands, whatever was decided before: an error too may become info."""
    return wanted
