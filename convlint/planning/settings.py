"""The ways in which a whole network may run: every combination of dtype, layout and settings that rules lead to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from convlint.engine.changes import with_fix, with_settings
from convlint.engine.check import Target
from convlint.engine.networks import as_laid_out, estimated
from convlint.estimate.host import Hosted
from convlint.facts.target import TargetFacts
from convlint.model.layer import ConvLayer, Dtype, Mode
from convlint.model.network import Network
from convlint.planning.advice import Advice, Adviser
from convlint.planning.wishes import Wishes
from convlint.report import Scalar

MOST_SETTINGS = 24
LAYOUT = "layout"
_COPIES, _DTYPE, _TF32 = "copies_input", "dtype", "runtime.tf32"


class Choice(NamedTuple):
    """A value of a field, in which layers (none for a setting of the runtime), and how a rule puts it."""

    name: str
    value: Scalar
    layers: tuple[int, ...]
    describe: str
    safety: Literal["safe", "unsafe"]


class Setting(Struct, frozen=True, kw_only=True):
    """One way to run the network: what is chosen, and the network with it.

    `alternatives` are layouts that rules advise for single layers with groups, whatever the others have.
    """

    choices: tuple[Choice, ...]
    network: Network
    alternatives: Mapping[int, Advice] = field(default_factory=dict)


def on_host(network: Network, target: Target, mode: Mode) -> Hosted:
    """The network's estimates, as its check has them."""
    return estimated(network, as_laid_out(network), target.gpu, mode)


def settings(network: Network, adviser: Adviser, target: Target, mode: Mode, wishes: Wishes) -> list[Setting]:
    """All of them, the present one first; what is not to change, or would change results, is left out.

    Settings of the runtime that the predicted time depends on, and that shorten it, are part of every one.
    """
    advice = _advice(network, adviser, target, mode, wishes)
    paying = [one for one in advice if _is_of_runtime(one) and _pays(network, one, target, mode)]
    found: dict[object, Setting] = {}
    waiting = [tuple(Choice(one.name, one.value, (), one.describe, one.safety) for one in paying)]
    while waiting and len(found) < MOST_SETTINGS:
        choices = waiting.pop(0)
        known = frozenset((choice.name, choice.value, choice.layers) for choice in choices)
        if known in found:
            continue
        changed = with_choices(network, choices)
        advice = _advice(changed, adviser, target, mode, wishes)
        alternatives = {
            one.layer: one for one in advice if one.layer is not None and _is_for_one(one, changed.layers[one.layer])
        }
        found[known] = Setting(choices=choices, network=changed, alternatives=alternatives)
        taken = {(choice.name, layer) for choice in choices for layer in choice.layers or (None,)}
        for choice in _choices(advice, changed.layers):
            if not any((choice.name, layer) in taken for layer in choice.layers or (None,)):
                waiting.append((*choices, choice))
    return list(found.values())


def with_choices(network: Network, choices: Sequence[Choice]) -> Network:
    """The network in which all of these are set."""
    layers = list(network.layers)
    laid_out: set[int] = set()
    for name, value, indices, _, _ in choices:
        for index in indices:
            layers[index] = changed(layers[index], {name: value})
        laid_out.update(indices if name in (LAYOUT, _COPIES) else ())
    edges = tuple(
        replace(edge, copied=None, changed_at="") if edge.consumer in laid_out else edge for edge in network.edges
    )
    runtime = with_settings(network.runtime, {choice.name: choice.value for choice in choices if not choice.layers})
    return replace(network, layers=tuple(layers), edges=edges, runtime=runtime)


def changed(layer: ConvLayer, changes: Mapping[str, Scalar]) -> ConvLayer:
    """The layer after `changes`; a dtype that a plan chooses is stated."""
    layer = with_fix(layer, changes)
    return replace(layer, dtype_source="stated") if _DTYPE in changes else layer


def _advice(network: Network, adviser: Adviser, target: Target, mode: Mode, wishes: Wishes) -> list[Advice]:
    facts = TargetFacts(target.label, target.gpu, network.runtime, mode, mode_stated=bool(network.mode))
    hosted = on_host(network, target, mode)
    facts.add_network(network.layers, network.edges, hosted.estimates, as_laid_out(network), hosted)
    kept = {_DTYPE, _TF32} if "dtype" in wishes.fixed else set()
    kept |= {LAYOUT, _COPIES} if "layout" in wishes.fixed else set()
    return [
        one
        for one in adviser.advice(network, hosted.estimates, facts)
        if one.name not in kept
        and not (wishes.keeps_results and one.safety == "unsafe")
        and not (one.name == _DTYPE and one.layer is not None and network.layers[one.layer].dtype == Dtype.int8)
    ]


def _is_of_runtime(advice: Advice) -> bool:
    return advice.name.startswith("runtime.") and advice.name != _TF32


def _pays(network: Network, advice: Advice, target: Target, mode: Mode) -> bool:
    runtime = with_settings(network.runtime, {advice.name: advice.value})
    before, after = (on_host(one, target, mode).gpu_us for one in (network, replace(network, runtime=runtime)))
    return before is not None and after is not None and after < before


def _is_for_one(advice: Advice, layer: ConvLayer) -> bool:
    return advice.name == LAYOUT and layer.groups > 1 and not layer.depthwise


def _choices(advice: Sequence[Advice], layers: Sequence[ConvLayer]) -> list[Choice]:
    """What the advice comes to for the whole network: all layers of one dtype, and all layouts, change together."""
    found: dict[object, Choice] = {}
    for name, value, index, describe, safety in advice:
        if name == _TF32:
            found.setdefault((name, value), Choice(name, value, (), describe, safety))
        elif index is None or name.startswith("runtime."):
            continue
        elif name == _DTYPE:
            present = layers[index].dtype
            every = tuple(number for number, layer in enumerate(layers) if layer.dtype == present)
            found.setdefault((name, value, present), Choice(name, value, every, describe, safety))
        elif name == LAYOUT:
            every = tuple(number for number, layer in enumerate(layers) if layer.layout not in ("auto", value))
            found.setdefault((name, value), Choice(name, value, every, describe, safety))
        else:
            before = found.get((name, value, describe))
            so_far = before.layers if before else ()
            found[name, value, describe] = Choice(name, value, (*so_far, index), describe, safety)
    return list(found.values())
