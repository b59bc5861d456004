"""How severe a finding is, decided here alone: by what the rule states, by price, by capacity, by the user."""

from __future__ import annotations

from typing import Literal, NamedTuple

from convlint.engine.hits import Flaw
from convlint.model.layer import ConvLayer
from convlint.report import Severity

# What a warning must lose: of its layer's time, with the layer's other advice, and with its rule in the network.
WARNING_SHARE = 0.02
WARNING_LAYER = 0.05
WARNING_RULE = 0.02
# What of its layer's and of the network's time capacity must be lost, and by how much a fix may widen at most.
WARNING_CAPACITY = 0.10
WARNING_CAPACITY_NETWORK = 0.02
MOST_WIDENING = 0.5
# Of the network's time per image: what another batch must gain for its finding to stay what the rule states.
WARNING_BATCH_GAIN = 0.05


class Weight(NamedTuple):
    """What decides whether a priced warning stays one; fractions, where a time is not said to be in us."""

    share: float  # of its layer's time, lost to it
    layer: float  # of its layer's time, lost to all that is advised there
    rule: float  # of the network's time, lost to all findings of its rule
    capacity: float = 0.0  # of its layer's time, paid for what tiles or waves leave empty
    capacity_network: float = 0.0  # of the network's time
    time_added: float = 0.0  # by its fix alone, of its layer's time; negative: faster
    work_added: float = 0.0  # by its fix alone, of its layer's FLOPs
    widened: float = 0.0  # the channels, at most


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


def decided(severity: Severity, weight: Weight | None) -> Severity:
    """What a stated severity comes to. `weight` is None where the time is not predictable: such a warning is info.

    Errors stand. Findings of rules without a price do not come here.
    """
    if severity != "warning":
        return severity
    if weight is None:
        return "info"
    lost = weight.share >= WARNING_SHARE and weight.layer >= WARNING_LAYER and weight.rule >= WARNING_RULE
    return "warning" if lost or _wastes_capacity(weight) else "info"


def _wastes_capacity(weight: Weight) -> bool:
    """Whether a little wider it would do more work in the same time; a fix that is priced as slower is no warning."""
    if weight.capacity < WARNING_CAPACITY or weight.capacity_network < WARNING_CAPACITY_NETWORK:
        return False
    return weight.time_added <= 0 < weight.work_added and weight.widened <= MOST_WIDENING


def by_batch(severity: Severity, us_per_image: float, best_us_per_image: float) -> Severity:
    """Advice on the batch that gains the network too little, or that is left without a better batch, is info."""
    return "info" if best_us_per_image > us_per_image * (1 - WARNING_BATCH_GAIN) else severity


def joins(share: Literal["all", "any", "info"], severity: Severity) -> bool:
    """Whether a finding of this severity may be said together with others: of `info`, a warning keeps its own line."""
    return share != "info" or severity == "info"


def overridden(_decided: Severity, wanted: Severity) -> Severity:
    """What the user wants for a rule stands, whatever was decided before: an error too may become info."""
    return wanted
