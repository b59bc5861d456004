"""The plan for one network: the steps that make it fastest, from what its rules, layouts and channels allow.

The levers of the fastest network found (`options`) are put in order (`steps`). What is more than memory, limits or the
time asked for allow is left out again (`reach`). The batch comes last, as the check of the changed network advises it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from convlint.engine.check import Target
from convlint.model.channel_walk import channels_of
from convlint.model.layer import Mode
from convlint.model.network import Network
from convlint.planning.advice import Adviser
from convlint.planning.levers import applied
from convlint.planning.options import options
from convlint.planning.reach import fitting, reaching
from convlint.planning.result import Plan
from convlint.planning.settings import on_host
from convlint.planning.steps import Unit, ordered
from convlint.planning.subsets import Subsets
from convlint.planning.walk import Walk
from convlint.planning.wishes import Lot, Wishes
from convlint.rulebook.book import Rulebook

NO_DATAFLOW = "channels stay as they are: the input says nothing of what lies between its convolutions"
LIMITED = "within limits the search is not exact: other widths may be faster still"
DESCENT = "its layers are too entangled for an exact search: other widths may be faster still"
STORED = "fp32 is how the file stores its weights, which may run in another dtype: --dtype says in which"
WRAPPED = "the model's weights are fp32; where autocast stands around it, it runs in 16 bits already: --dtype says so"
_FIELDS: Mapping[Lot, frozenset[str]] = {
    "dtype": frozenset(("dtype", "runtime.tf32")), "layout": frozenset(("layout", "copies_input")),
    "channels": frozenset(("C", "K", "groups")), "batch": frozenset(("N",)),
}  # fmt: skip
ALONE = "nothing connects some of these layers to others: their channels are planned as if nothing else had to fit them"
STILL = "the check of the planned network still warns of "
ERRORS = "the check of the planned network has errors, and its times are of what may not run: "


def plan(network: Network, rulebook: Rulebook, target: Target, mode: Mode, wishes: Wishes) -> Plan | None:
    """The plan for a network on one GPU; None where no layer's time is known. Raises RuleError."""
    hosted = on_host(network, target, mode)
    known = [index for index, estimate in enumerate(hosted.estimates) if estimate is not None]
    if not known:
        return None
    channels = channels_of(network)
    found = options(network, channels, Adviser(rulebook.of_networks), hosted, target, mode, wishes)
    subsets = Subsets(network, channels, found.levers, known, target, mode, hosted.host_us)
    units = ordered(subsets, range(len(found.levers)))
    if wishes.target_us is not None:
        units = reaching(subsets, units, wishes.target_us)

    def with_units(chosen: Sequence[Unit]) -> Network:
        return applied(network, [found.levers[number] for unit in chosen for number in unit], channels)

    units = fitting(units, found.levers, with_units, network, target, mode, wishes)
    walk = Walk(network, hosted.estimates, subsets, rulebook, target, mode)
    walk.take(units, with_units(units))
    if "batch" not in wishes.fixed and not wishes.keeps_results and not walk.reaches(wishes.target_us):
        walk.take_batch()
    of_search, of_network = _notes(network, wishes, is_exact=found.is_exact), _of_lone_layers(network, walk)
    return walk.plan(
        is_exact=found.is_exact,
        target_us=wishes.target_us,
        without_time=tuple(index for index, estimate in enumerate(hosted.estimates) if estimate is None),
        notes=(*of_search, *of_network, *_of_dtypes(network, walk), *_wrong(walk), *_still(network, walk, wishes)),
    )


def _notes(network: Network, wishes: Wishes, *, is_exact: bool) -> tuple[str, ...]:
    notes = []
    if not network.operations and "channels" not in wishes.fixed:
        notes.append(NO_DATAFLOW)
    if wishes.max_parameters is not None or wishes.max_flops is not None:
        notes.append(LIMITED)
    elif not is_exact:
        notes.append(DESCENT)
    return tuple(notes)


def _of_dtypes(network: Network, walk: Walk) -> list[str]:
    """What has to be known of dtypes that nobody stated."""
    sources = {layer.dtype_source for layer in network.layers if layer.dtype is not None}
    if "storage" in sources:
        return [STORED]
    return [WRAPPED] if "module" in sources and any("dtype" in step.kinds for step in walk.steps) else []


def _of_lone_layers(network: Network, walk: Walk) -> list[str]:
    """Whether channels change of layers, among others, of which nobody says what they read and what reads them."""
    connected = {index for edge in network.edges for index in (edge.consumer, *edge.producers)}
    alone = {layer.name for index, layer in enumerate(network.layers) if index not in connected}
    changed = {name for step in walk.steps if "channels" in step.kinds for name in step.layers}
    return [ALONE] if len(network.layers) > 1 and not alone.isdisjoint(changed) else []


def _still(network: Network, walk: Walk, wishes: Wishes) -> list[str]:
    """What is left of the check's advice that has a price, though nobody wanted it left."""
    fixed = set(wishes.fixed)
    if wishes.keeps_results:
        fixed |= {"channels", "dtype", "batch"}
    if not network.operations:
        fixed.add("channels")
    left = {} if walk.reaches(wishes.target_us) else walk.left({name for lot in fixed for name in _FIELDS[lot]})
    return [STILL + _counted(left)] if left else []


def _wrong(walk: Walk) -> list[str]:
    """What the check finds wrong, whatever it costs."""
    found = walk.errors()
    return [ERRORS + _counted(found)] if found else []


def _counted(codes: Mapping[str, int]) -> str:
    """`CL102 in 3 layers, CL801`."""
    said = [f"{code} in {count} layer{'s' * (count != 1)}" if count else code for code, count in codes.items()]
    return ", ".join(said)
