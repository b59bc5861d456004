"""B: the set of changes that makes a network fastest. One choice of settings for all of it, and sizes within that.

Settings are few: what rules lead to of dtypes, times the memory formats all NCHW, all NHWC, and NHWC with those grouped
layers in NCHW that are faster so. Within each, sizes that hang together through layers are searched together, from all
and from none of them, until no single change saves `LEAST_GAIN`. Whatever B is no slower without does not belong to it.
A setting in which layers do not run that run as things are is no choice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from convlint.engine.hits import Flaw, with_settings
from convlint.engine.levers import AUTOCAST, KINDS, TF32, Advice, Advised, Key, Kind, Lever, Levers, Limits, kind_of
from convlint.engine.timing import NOTHING, Changes, NetworkSetting, NetworkTiming, key_of, normed
from convlint.model.estimates import Basis
from convlint.model.grouping import grouped
from convlint.model.layer import ConvLayer, Dtype, Layout
from convlint.model.network import leaders
from convlint.model.report import Scalar
from convlint.model.runtime import VERSIONS, Version

LEAST_GAIN = 1e-3  # of the time of what a change touches
MOST_SETTINGS = 16
MOST_ROUNDS = 8  # of a descent, and of searches without what rests on assumptions
HOPELESS = 0.5  # of a large network's time in a setting: more than sizes can save in it
MOST_SEARCHED = 300  # layers up to which no setting is hopeless
_FORMATS: tuple[Layout, ...] = ("NHWC", "NCHW")


class SettingChoice(Struct, frozen=True):
    """A setting of the network: what layers get, what the runtime gets, and the flaws that lead there."""

    kind: Kind
    layers: Mapping[int, Scalar]  # a dtype or a layout
    runtime: Changes
    asking: tuple[tuple[int, Flaw], ...]

    @property
    def upgrades(self) -> bool:
        """Whether it leaves a release that is known to be slow."""
        return any(map(_is_version, self.runtime))

    @property
    def value(self) -> Mapping[str, Scalar]:
        """What it sets, where it is one value for all."""
        values = set(self.layers.values())
        of_layers: dict[str, Scalar] = {self.kind: next(iter(values))} if len(values) == 1 else {}
        return {**of_layers, **self.runtime}


Choices = Mapping[Kind, SettingChoice]


def _is_version(setting: str) -> bool:
    return setting.removeprefix("runtime.") in VERSIONS


def _newer(setting: str, first: Scalar, other: Scalar) -> Scalar:
    """The greater of two versions; of other settings the one that came first."""
    return other if _is_version(setting) and Version(str(other)) > Version(str(first)) else first


class Optimum(Struct, frozen=True):
    """B, in the order of kinds and of layers."""

    choices: Choices
    levers: Levers
    setting: NetworkSetting
    alone: Choices  # the best choice of each kind without the others, in B or not
    bases: Mapping[Kind | Key, Basis] = {}  # of each member, what most of its gain rests on


class _Candidate(Struct, frozen=True):
    """A setting with the sizes that make it fastest."""

    gpu_us: float
    way: Choices
    levers: Levers


class Search:
    """The search for one network. `silenced` are layers in which a kind of setting stays as it is."""

    def __init__(
        self, timing: NetworkTiming, advice: Advice, silenced: Mapping[Kind, frozenset[int]], limits: Limits,
        clashing_layouts: bool = False,
    ) -> None:  # fmt: skip
        """`clashing_layouts`: a rule objects to layouts that differ between connected layers."""
        self.timing, self.advice = timing, advice
        self._silenced, self._limits = silenced, limits
        self._clashing = clashing_layouts
        self._settings: dict[object, NetworkSetting] = {}
        self._advised: dict[NetworkSetting, Advised] = {}
        self._sized: dict[NetworkSetting, Levers] = {}  # what pays of the sizes in each, as far as it was asked
        self._assumed: set[object] = set()  # kinds of settings and keys of levers that rest on no timing of their kind
        self._touching: tuple[Levers, Mapping[int, Sequence[Lever]]] = {}, {}  # of the last levers asked about

    def best(self, flaws: Sequence[tuple[int, Flaw]]) -> Optimum:
        """B, where `flaws` are those that may play as things are."""
        timing = self.timing
        now = self._advised[timing.now] = self.advice.of(timing.now, flaws)
        best = self._once(now)
        for _ in range(MOST_ROUNDS):  # what rests on assumptions is no advice
            assumed = {member for member, basis in best.bases.items() if basis == "assumed"}
            if not assumed:
                break
            self._assumed |= assumed
            self._sized.clear()
            best = self._once(now)
        return best

    def _once(self, now: Advised) -> Optimum:
        timing = self.timing
        ways = sorted(self._ways(now), key=lambda way: (timing.gpu_us(self.setting(way), {}), len(way)))
        possible = list(ways)
        candidates: list[_Candidate] = []
        for way in ways:
            if candidates and self._is_hopeless(way, min(candidate.gpu_us for candidate in candidates)):
                continue
            levers = self._fastest(way)
            if self._is_valid(way, levers):
                candidates.append(self._candidate(way, levers))
            else:
                possible.remove(way)
        candidates = candidates or [self._candidate({}, self._fastest({}))]
        totals = [timing.network_us(self.setting(candidate.way), candidate.gpu_us) for candidate in candidates]
        most_us = min(totals) * (1 + LEAST_GAIN)
        close = [candidate for candidate, us in zip(candidates, totals, strict=True) if us <= most_us]
        fastest = min(close, key=lambda candidate: (len(candidate.way), candidate.gpu_us, len(candidate.levers)))
        way, levers = self._needed(fastest.way, fastest.levers)
        alone = {kind: choice for kind, choice in self._alone(possible) if kind not in way}
        best = Optimum(way, levers, self.setting(way), {**alone, **way})
        return replace(best, bases={member: self._basis_of(best, member) for member in (*way, *levers)})

    def _is_hopeless(self, way: Choices, least_us: float) -> bool:
        """Whether no sizes can make a large network as fast in a setting as it is in another."""
        timing, setting = self.timing, self.setting(way)
        if len(setting.layers) <= MOST_SEARCHED or timing.gpu_us(setting, {}) * HOPELESS <= least_us:
            return False
        sized = self.advice.changes(self._sizes(dict(list(way.items())[:-1])))
        return timing.gpu_us(setting, sized) * HOPELESS > least_us

    def _candidate(self, way: Choices, levers: Levers) -> _Candidate:
        return _Candidate(self.timing.gpu_us(self.setting(way), self.advice.changes(levers)), way, levers)

    def _is_valid(self, way: Choices, levers: Levers) -> bool:
        """Whether all layers that run as things are, by the rules, run in a setting with these sizes."""
        new = self.advice.errors(self.setting(way), self.advice.changes(levers)) if way else None
        return not new or new <= self.advice.errors(self.timing.now, {}, {index for index, _ in new})

    def _alone(self, ways: Iterable[Choices]) -> Iterator[tuple[Kind, SettingChoice]]:
        """The best choice of each kind on its own."""
        plain: list[Choices] = [{kind: choice for kind, choice in way.items() if not choice.upgrades} for way in ways]
        single = [way for way in (*ways, *plain) if len(way) == 1]
        for kind in KINDS:
            own = [way for way in single if kind in way]
            if own:
                yield kind, min(own, key=lambda way: self.timing.gpu_us(self.setting(way), {}))[kind]

    def of(self, setting: NetworkSetting) -> Advised:
        """What the rules advise in a setting."""
        if setting not in self._advised:
            self._advised[setting] = self.advice.of(setting)
        return self._advised[setting]

    def setting(self, choices: Choices) -> NetworkSetting:
        """The network with these choices."""
        if not choices:
            return self.timing.now
        key = tuple((kind, tuple(item.layers.items()), tuple(item.runtime.items())) for kind, item in choices.items())
        if key not in self._settings:
            layers = list(self.timing.network.layers)
            runtime = self.timing.network.runtime
            for choice in choices.values():
                runtime = with_settings(runtime, choice.runtime)
                for index, value in choice.layers.items():
                    layers[index] = _set(layers[index], choice.kind, value)
            self._settings[key] = self.timing.setting(tuple(layers), runtime)
        return self._settings[key]

    # The settings that rules lead to.

    def _ways(self, now: Advised) -> list[Choices]:
        """All combinations of settings, the empty one first."""
        ways: list[Choices] = []
        for dtype in self._dtypes(now):
            ways.append(dtype)
            ways += [{**dtype, "layout": layout} for layout in self._layouts(dtype)]
        runtimes = self._runtimes(now)
        combinations: list[Choices] = [{**way, **runtime} for runtime in runtimes for way in ways]
        return combinations[:MOST_SETTINGS]

    def _dtypes(self, now: Advised) -> list[Choices]:
        """The choices of dtypes that rules advise now, and once each of these is made."""
        by_key: dict[object, Choices] = {(): {}}
        waiting: list[Choices] = [{}]
        while waiting:
            before = waiting.pop(0)
            advised = self.of(self.setting(before)).settings if before else now.settings
            seen: set[object] = set()  # many layers ask for the same
            for index, flaw in advised if self._is_open("dtype") else ():
                for sets in (flaw.set, flaw.other):
                    same = key_of(sets), self.timing.network.layers[index].dtype_source
                    if same in seen or kind_of(sets) != "dtype":
                        continue
                    seen.add(same)
                    choice = self._dtype(
                        before.get("dtype"), sets, index, [pair for pair in advised if _asks(pair, sets)]
                    )
                    key = tuple(sorted(choice.layers.items())), tuple(choice.runtime.items())
                    if key != ((), ()) and key not in by_key and self._is_allowed(choice):
                        by_key[key] = {"dtype": choice}
                        waiting.append(by_key[key])
        return list(by_key.values())

    def _dtype(
        self, before: SettingChoice | None, sets: Changes, index: int, asking: Sequence[tuple[int, Flaw]]
    ) -> SettingChoice:
        """The choice of a new dtype for all layers of the dtypes that rules object to, judged by a rule or not."""
        layers = dict(before.layers) if before is not None else {}
        runtime = dict(before.runtime) if before is not None else {}
        stated = self.timing.network.layers
        own = (*(before.asking if before is not None else ()), *asking)
        if TF32 in sets:
            return SettingChoice("dtype", layers, {**runtime, TF32: sets[TF32]}, own)
        present = {layers.get(number, stated[number].dtype) for number, _ in asking}
        if present & {Dtype.fp32, Dtype.tf32}:
            present |= {Dtype.fp32, Dtype.tf32}
        for number, layer in enumerate(stated):
            is_theirs = layers.get(number, layer.dtype) in present and layer.dtype_source == stated[index].dtype_source
            if is_theirs and number not in self._silenced.get("dtype", ()):
                layers[number] = Dtype(str(sets["dtype"]))
        halves = Dtype.fp32 in present and Dtype(str(sets["dtype"])) in (Dtype.fp16, Dtype.bf16)
        if halves and self.timing.mode == "training" and self.timing.network.runtime.mixed_precision is False:
            runtime[AUTOCAST] = True  # fp32 runs without; 16 bits are trained beside it
        return SettingChoice("dtype", layers, runtime, own)

    def lesser(self, choice: SettingChoice) -> SettingChoice | None:
        """The choice of TF32, where the rule behind a choice of other dtypes names it as well; else None."""
        for index, flaw in choice.asking if choice.kind == "dtype" else ():
            if TF32 in flaw.other and TF32 not in choice.runtime:
                return self._dtype(None, flaw.other, index, ())
        return None

    def _layouts(self, dtype: Choices) -> Iterator[SettingChoice]:
        """The memory formats of the whole network, where rules object to those that layers have."""
        setting = self.setting(dtype)
        advised = [*self.of(setting).settings, *(self.of(self.timing.now).settings if dtype else ())]
        asking = [(i, flaw) for i, flaw in advised if kind_of(flaw.set) == "layout"]
        if not self._is_open("layout") or not (asking or self._clashing):
            return
        silenced = self._silenced.get("layout", frozenset[int]())
        free = [i for i, layer in enumerate(setting.layers) if layer.layout in _FORMATS and i not in silenced]
        layouts = {flaw.set["layout"] for _, flaw in asking}
        for layout in _FORMATS:
            if layout == "NHWC" or layout in layouts:
                formats = dict.fromkeys(free, layout)
                if choice := self._layout(formats, setting, asking):
                    yield choice
            if layout == "NHWC":
                apart = self._apart(setting, dict.fromkeys(free, layout))
                if apart and (choice := self._layout(apart, setting, asking)):
                    yield choice

    def _layout(
        self, formats: Mapping[int, Layout], setting: NetworkSetting, asking: Sequence[tuple[int, Flaw]]
    ) -> SettingChoice | None:
        layers = {index: layout for index, layout in formats.items() if layout != setting.layers[index].layout}
        own = tuple((i, flaw) for i, flaw in asking if flaw.set["layout"] == layers.get(i))
        choice = SettingChoice("layout", layers, NOTHING, own)
        return choice if layers and (own or self._clashing) and self._is_allowed(choice) else None

    def _apart(self, setting: NetworkSetting, formats: Mapping[int, Layout]) -> Mapping[int, Layout] | None:
        """`formats`, with NCHW for grouped layers that are faster so, copies included; None where none is."""
        in_groups = [index for index in formats if is_grouped(setting.layers[index])]
        if not in_groups:
            return None
        timing, ends = self.timing, []
        for start in (formats, {**formats, **dict.fromkeys(in_groups, "NCHW")}):
            layers = list(setting.layers)
            for index, layout in start.items():
                layers[index] = _set(layers[index], "layout", layout)
            for _ in range(MOST_ROUNDS):
                moved = False
                for index in in_groups:
                    near = (index, *timing.readers.get(index, ()))
                    before_us = self._near_us(setting, layers, near)
                    present, other = layers[index], "NCHW" if layers[index].layout == "NHWC" else "NHWC"
                    layers[index] = _set(present, "layout", other)
                    if self._near_us(setting, layers, near) < before_us * (1 - LEAST_GAIN):
                        moved = True
                    else:
                        layers[index] = present
                if not moved:
                    break
            ends.append((self._near_us(setting, layers, range(len(layers))), layers))
        layers = min(ends, key=lambda end: end[0])[1]
        layouts = {index: layers[index].layout for index in formats}
        return layouts if any(layouts[index] == "NCHW" for index in in_groups) else None

    def _near_us(self, setting: NetworkSetting, layers: Sequence[ConvLayer], indices: Iterable[int]) -> float:
        timing, norms = self.timing, normed(self.timing.network, layers)
        return sum(
            timing.running_us(setting, index, timing.running(layers, index, setting.runtime, norms)) or 0.0
            for index in indices
        )

    def _runtimes(self, now: Advised) -> list[Choices]:
        """Other settings of the runtime that rules advise for the sake of time: all of them at once.

        A release that is known to be slow is left in any case: what else would hide it is no reason to stay.
        """
        asking = tuple((i, flaw) for i, flaw in now.settings if kind_of(flaw.set) == "runtime")
        runtime: dict[str, Scalar] = {}
        for _, flaw in asking:
            for name, value in flaw.set.items():
                runtime[name] = _newer(name, runtime[name], value) if name in runtime else value
        choice = SettingChoice("runtime", {}, runtime, asking)
        if not (runtime and self._is_open("runtime") and self._is_allowed(choice)):
            return [{}]
        timing = self.timing
        saves = timing.gpu_us(self.setting({"runtime": choice}), {}) < timing.gpu_us(timing.now, {}) * (1 - LEAST_GAIN)
        return [{"runtime": choice}] if choice.upgrades and saves else [{}, {"runtime": choice}]

    def _is_open(self, kind: Kind) -> bool:
        return kind not in self._assumed and kind not in self._limits.fields

    def _is_allowed(self, choice: SettingChoice) -> bool:
        return not self._limits.results or all(
            flaw.case.fix is not None and flaw.case.fix.safety == "safe" for _, flaw in choice.asking
        )

    # Sizes within one setting.

    def _sizes(self, way: Choices) -> Levers:
        """The levers that rules ask for with the first 0, 1, ... choices of a setting; those of more choices win."""
        every: dict[Key, Lever] = {}
        for count in range(len(way) + 1):
            every.update(self.of(self.setting(dict(list(way.items())[:count]))).levers)
        return {key: lever for key, lever in every.items() if key not in self._assumed}

    def _fastest(self, way: Choices) -> Levers:
        """The levers of a setting that pay together; those without common layers are decided separately."""
        setting = self.setting(way)
        if setting in self._sized:
            return self._sized[setting]
        levers, chosen = self._sizes(way), dict[Key, Lever]()
        touching = _touching(levers.values())
        for members in _components(levers, touching):
            if len(members) == 1:
                (key,) = members
                if self._saves(setting, levers[key], {}, touching):
                    chosen[key] = levers[key]
                continue
            every = {key: levers[key] for key in members}
            layers = tuple(dict.fromkeys(index for lever in every.values() for index in lever.layers))
            starts: tuple[Levers, Levers] = (every, {})
            ends = [self._descended(setting, start, every, touching) for start in starts]
            chosen.update(self._least(ends, setting, layers, touching))
        while chosen:  # what torch.compile would no longer turn into NHWC is no advice
            against = self.timing.against_layouts(setting, self.advice.changes(chosen))
            if against is None:
                break
            chosen = {key: lever for key, lever in chosen.items() if against not in lever.layers}
        fastest = self._sized[setting] = {key: lever for key, lever in levers.items() if key in chosen}
        return fastest

    def _least(
        self, ends: Sequence[Levers], setting: NetworkSetting, layers: Iterable[int],
        touching: Mapping[int, Sequence[Lever]],
    ) -> Levers:  # fmt: skip
        layers = list(layers)
        return min(ends, key=lambda end: (self._us(setting, layers, end, touching), len(end)))

    def _descended(
        self, setting: NetworkSetting, start: Levers, every: Levers, touching: Mapping[int, Sequence[Lever]]
    ) -> dict[Key, Lever]:
        """Switches levers on or off one by one from `start`, until no change saves enough."""
        on = dict(start)
        doubtful = set(every)
        for _ in range(MOST_ROUNDS):
            moved: set[int] = set()
            for key, lever in every.items():
                if key not in doubtful:
                    continue
                is_on = on.pop(key, None) is not None
                saves = self._saves(setting, lever, on, touching)
                if saves:
                    on[key] = lever
                if saves != is_on:
                    moved.update(lever.layers)
            doubtful = {key for key, lever in every.items() if not moved.isdisjoint(lever.layers)}
            if not doubtful:
                break
        return on

    def _saves(
        self, setting: NetworkSetting, lever: Lever, on: Levers, touching: Mapping[int, Sequence[Lever]]
    ) -> bool:
        without_us = self._us(setting, lever.layers, on, touching)
        return self._us(setting, lever.layers, {**on, lever.key: lever}, touching) < without_us * (1 - LEAST_GAIN)

    def _us(
        self, setting: NetworkSetting, layers: Iterable[int], on: Levers, touching: Mapping[int, Sequence[Lever]]
    ) -> float:
        """The time of these layers; one without a predictable time counts as 0, for no change and against none."""
        timing, total = self.timing, 0.0
        for index in layers:
            here = {lever.key: lever for lever in touching.get(index, ()) if lever.key in on}
            changes = self.advice.changes(here, index).get(index, NOTHING) if here else NOTHING
            total += timing.time_us(setting, index, changes) or 0.0
        return total

    def saving_us(self, setting: NetworkSetting, lever: Lever, beside: Levers) -> float:
        """What one change of sizes saves beside others."""
        own = _touching([*beside.values(), lever])
        without_us = self._us(setting, lever.layers, beside, own)
        return without_us - self._us(setting, lever.layers, {**beside, lever.key: lever}, own)

    # What belongs to B.

    def _needed(self, way: Choices, levers: Levers) -> tuple[Choices, Levers]:
        """Drops settings, and where the host sets the pace sizes, without which the network is no slower."""
        timing = self.timing
        least_us = self._paced_us(way, levers)
        for kind in reversed(KINDS):
            if kind in way and not way[kind].upgrades:
                fewer = {other: choice for other, choice in way.items() if other != kind}
                again = self._fastest(fewer)
                us = self._paced_us(fewer, again)
                if us <= least_us * (1 + LEAST_GAIN) and self._is_valid(fewer, again):
                    way, levers, least_us = fewer, again, us
        if timing.host_us is not None and levers:
            most_us = least_us * (1 + LEAST_GAIN)
            if self._paced_us(way, {}) <= most_us and self._is_valid(way, {}):
                return way, {}
            if len(timing.network.layers) <= MOST_SEARCHED:
                for key in reversed([*levers]):
                    fewer_levers = {other: lever for other, lever in levers.items() if other != key}
                    if self._paced_us(way, fewer_levers) <= most_us and self._is_valid(way, fewer_levers):
                        levers = fewer_levers
        return way, levers

    def _paced_us(self, way: Choices, levers: Levers) -> float:
        """`total_us` if sizes left the host's pace alone: a GPU that is busy for longer is no reason for wider maps."""
        setting = self.setting(way)
        return self.timing.network_us(setting, self.timing.gpu_us(setting, self.advice.changes(levers)))

    def total_us(self, way: Choices, levers: Levers) -> float:
        """The time of all layers, in us."""
        setting, changes = self.setting(way), self.advice.changes(levers)
        return self.timing.network_us(setting, self.timing.gpu_us(setting, changes), changes)

    def _basis_of(self, best: Optimum, member: Kind | Key) -> Basis:
        """The basis of most of the time that layers gain by a member of B, beside the others."""
        timing, before, levers = self.timing, best.setting, best.levers
        layers: Iterable[int]
        if isinstance(member, str):
            choice = best.choices[member]
            before = self.setting({kind: other for kind, other in best.choices.items() if kind != member})
            layers = range(len(best.setting.layers)) if choice.runtime else self._near(choice.layers)
            after = without = self.advice.changes(levers)
        else:
            layers, near = levers[member].layers, self.beside(best, member)
            after = self.advice.changes(near)
            without = self.advice.changes({key: lever for key, lever in near.items() if key != member})
        bases = {index: timing.basis(best.setting, index, after.get(index, NOTHING)) for index in layers}
        if len(set(bases.values())) == 1:
            return next(iter(bases.values()))
        gained: dict[Basis, float] = {}
        for index, basis in bases.items():
            then = timing.time_us(best.setting, index, after.get(index, NOTHING))
            now = timing.time_us(before, index, without.get(index, NOTHING))
            if now is not None and then is not None:
                gained[basis] = gained.get(basis, 0.0) + abs(now - then)
        return max(gained, key=lambda basis: gained[basis], default="assumed")

    def _near(self, layers: Iterable[int]) -> list[int]:
        """These layers and those that read them."""
        return sorted({number for index in layers for number in (index, *self.timing.readers.get(index, ()))})

    def beside(self, best: Optimum, key: Key) -> dict[Key, Lever]:
        """The sizes of B that change a layer of this one, itself too."""
        touching = self._touching_of(best)
        return {lever.key: lever for index in best.levers[key].layers for lever in touching[index]}

    def _touching_of(self, best: Optimum) -> Mapping[int, Sequence[Lever]]:
        if self._touching[0] is not best.levers:
            self._touching = best.levers, _touching(best.levers.values())
        return self._touching[1]


def _set(layer: ConvLayer, kind: Kind, value: Scalar) -> ConvLayer:
    if kind == "dtype":
        return replace(layer, dtype=Dtype(str(value)), dtype_source="stated")
    return replace(layer, layout=str(value))


def _asks(pair: tuple[int, Flaw], sets: Changes) -> bool:
    """Whether a flaw's fix, or its alternative, is this setting."""
    return sets in (pair[1].set, pair[1].other)


def is_grouped(layer: ConvLayer) -> bool:
    """Whether it has groups whose layout is decided apart; depthwise layers with square filters go with the network."""
    return layer.groups > 1 and (not layer.depthwise or layer.R != layer.S)


def _touching(levers: Iterable[Lever]) -> dict[int, list[Lever]]:
    """The levers that change each layer."""
    touching: dict[int, list[Lever]] = {}
    for lever in levers:
        for index in lever.layers:
            touching.setdefault(index, []).append(lever)
    return touching


def _components(levers: Levers, touching: Mapping[int, Sequence[Lever]]) -> list[list[Key]]:
    """Groups of levers that share layers, directly or through others."""
    place = {key: number for number, key in enumerate(levers)}
    pairs = ((place[first.key], place[other.key]) for first, *others in touching.values() for other in others)
    return [*grouped(zip(leaders(len(levers), pairs), levers, strict=True)).values()]
