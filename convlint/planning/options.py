"""From a network and the rules to the levers worth pulling: the best setting, and the best widths in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from convlint.engine.check import Target
from convlint.engine.networks import as_laid_out
from convlint.engine.shapley import SAME
from convlint.estimate.host import Hosted, is_eager
from convlint.facts.target import TargetFacts
from convlint.model.channels import Channels
from convlint.model.layer import Mode
from convlint.model.network import Network
from convlint.planning.advice import Adviser
from convlint.planning.levers import Lever, levers_of, of_choice
from convlint.planning.limits import Limits
from convlint.planning.prices import UNPREDICTABLE, Bounds, Prices
from convlint.planning.search import Search
from convlint.planning.settings import Choice, Setting, settings
from convlint.planning.subsets import GRAPHS
from convlint.planning.widths import can_be_priced, candidates, fewer, narrower, needed
from convlint.planning.wishes import Wishes

MOST_DESCENTS = 2  # settings that are searched where the search is not exact: those that look fastest
_RECORD = 'record the step as a CUDA graph (torch.compile with mode="reduce-overhead", or torch.cuda.graph)'


class Options(NamedTuple):
    """The levers of the fastest network found, and whether none is faster for sure."""

    levers: list[Lever]
    is_exact: bool


def options(
    network: Network, channels: Channels, adviser: Adviser, hosted: Hosted, target: Target, mode: Mode, wishes: Wishes
) -> Options:
    """The levers to pull, in no order yet. `hosted` has the network's estimates as it stands."""
    known = [index for index, estimate in enumerate(hosted.estimates) if estimate is not None]
    every = settings(network, adviser, target, mode, wishes)
    free, enough = _free(network, channels, every, known, target, mode, wishes)
    limited = wishes.max_parameters is not None or wishes.max_flops is not None
    best: tuple[float, list[Lever]] = (UNPREDICTABLE, [])
    searches = [(setting, *_search(setting, channels, free, enough, known, target, mode)) for setting in every]
    if not all(
        search.is_exact for _, search, _ in searches
    ):  # a descent may end where a narrower width only seems to pay
        free = {group: tuple(width for width in own if width >= own[0]) for group, own in free.items()}
        searches = [(setting, Search(search.prices, free, known), plain) for setting, search, plain in searches]
    searches = [one for one in searches if one[1].cost({}).time_us < UNPREDICTABLE]
    is_exact = all(search.is_exact for _, search, _ in searches)
    if not is_exact:  # a descent takes long, and is no proof in any setting
        searches = sorted(searches, key=lambda one: one[1].glimpse_us())[:MOST_DESCENTS]
    gpu_us = UNPREDICTABLE
    for setting, search, plain in searches:
        if limited:
            search = _without_room_made(search, known)
        widths = Limits(search, wishes.max_parameters, wishes.max_flops).best()
        time_us = search.cost(widths).time_us
        if time_us < best[0] * (1 - SAME):
            prices = search.prices
            own = [
                index
                for index in setting.alternatives
                if prices.prefers_alternative(index, *prices.sizes(index, widths))
            ]
            best = time_us, levers_of(network, setting, own, widths, channels)
            gpu_us = plain.cost(widths).time_us  # without what breaking a bound is taken to cost
    levers = best[1]
    if hosted.host_us is not None and hosted.host_us > gpu_us and _can_record(network, hosted):
        levers.append(of_choice(Choice(GRAPHS, True, (), _RECORD, "safe")))
    return Options(levers, is_exact and not limited)


def _search(
    setting: Setting, channels: Channels, free: Mapping[int, tuple[int, ...]], needed: Mapping[int, int],
    known: Iterable[int], target: Target, mode: Mode,
) -> tuple[Search, Search]:  # fmt: skip
    """A search within bounds, and one that only says what the GPU needs."""
    own = {index: str(advice.value) for index, advice in setting.alternatives.items()}
    layers, runtime = as_laid_out(setting.network), setting.network.runtime
    plain = Search(Prices(layers, own, channels, target.gpu, runtime, mode), {}, known)
    now = plain.cost({})
    bounds = Bounds(needed, now.time_us / max(1, now.parameters), now.time_us / max(1, now.flops))
    return Search(Prices(layers, own, channels, target.gpu, runtime, mode, bounds), free, known), plain


def _without_room_made(search: Search, known: Iterable[int]) -> Search:
    """A search that makes nothing narrower only for others to get wider within limits."""
    best = search.best()
    widths = {
        group: tuple(width for width in own if width >= own[0] or width == best.get(group))
        for group, own in search.candidates.items()
    }
    return Search(search.prices, widths, known)


def _can_record(network: Network, hosted: Hosted) -> bool:
    """Whether the framework starts kernel after kernel from its interpreter, and nobody says that sizes vary."""
    return is_eager(network.runtime) and network.runtime.fixed_input_size is not False and hosted.host_us is not None


def _free(
    network: Network, channels: Channels, every: Iterable[Setting], known: Iterable[int],
    target: Target, mode: Mode, wishes: Wishes,
) -> tuple[Mapping[int, tuple[int, ...]], Mapping[int, int]]:  # fmt: skip
    """The groups that may get another width, and which; what of these the Tensor Cores want at most.

    All of their layers have a time.
    """
    if "channels" in wishes.fixed:
        return {}, {}
    alignments = set()
    for setting in every:
        facts = TargetFacts(target.label, target.gpu, setting.network.runtime, mode)
        dtypes = {layer.dtype for layer in setting.network.layers if layer.dtype is not None}
        alignments |= {facts.precision(dtype)[1] for dtype in dtypes}
    without_time = set(range(len(network.layers))).difference(known)

    def allowed(widths: Mapping[int, tuple[int, ...]]) -> dict[int, tuple[int, ...]]:
        return {
            number: own
            for number, own in widths.items()
            if without_time.isdisjoint(channels.groups[number].layers) and not wishes.keeps_results
        }

    wider = fewer(allowed(candidates(network, channels, alignments)), channels, max(alignments, default=1))
    below = allowed(narrower(network, channels))
    free = {
        number: (*wider.get(number, (channels.groups[number].width,)), *below.get(number, ()))
        for number in wider.keys() | below.keys()
    }
    if not can_be_priced(free, channels):
        free = dict(wider)
    return free, {number: needed(number, network, channels, alignments) for number in free}
