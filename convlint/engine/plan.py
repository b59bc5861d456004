"""The plan for one network: the order in which B, the fastest set of changes that its check has found, is best done.

It starts at the time and the grade of the check, and ends at what that promises. What the user wants to keep is not
searched; within limits, sizes that save little for what they add are left out; a plan for a given time has only as many
steps as that needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import partial
from typing import Protocol, get_args

from msgspec.structs import replace

from convlint.engine.check import OnPromise, Target, check_network
from convlint.engine.findings import NetworkResult, flops_of
from convlint.engine.hits import NOT_WRITTEN, Hit, added, with_fix, with_settings
from convlint.engine.joint import Promise
from convlint.engine.levers import NO_LIMITS, Lever, Limits
from convlint.engine.optimum import SettingChoice
from convlint.engine.steps import (
    LEAST_GAIN,
    NONE,
    Kind,
    Lot,
    Members,
    NetworkPlan,
    PlannedStep,
    State,
    StepChange,
    Wishes,
    changed,
    ordered,
)
from convlint.estimate.memory import parameters
from convlint.facts.network import shortened
from convlint.files.languages import plural
from convlint.model.layer import OF_STEPS, ConvLayer, Dtype, Loss, Mode
from convlint.model.network import Network
from convlint.model.report import Finding, LayerTimes, Scalar
from convlint.rulebook.book import Rulebook

NO_DATAFLOW = "channels of layers that read each other are not known to be one: nothing says what lies between them"
LIMITED = "within limits, widths that bring least for what they add are left out: others may be faster still"
STORED = "fp32 is how the file stores its weights, which may run in another dtype: --dtype says in which"
BUILT = (
    "fp32, as modules are built, is left as it is: --dtype fp32 plans mixed precision; if autocast runs them already, "
    "say --dtype fp16 --runtime mixed_precision=true"
)
WRAPPED = "the model's weights are fp32; where autocast stands around it, it runs in 16 bits already: --dtype says so"
ALONE = "nothing connects some of these layers to others: their channels are planned as if nothing else had to fit them"
STILL = "the check of the planned network still warns of "
THEN = "the check of the planned network advises further: "
ERRORS = "the check of the planned network has errors, and its times are of what may not run: "
_FIELDS: Mapping[Lot, frozenset[str]] = {
    "dtype": frozenset(("dtype", "runtime.tf32")), "layout": frozenset(("layout", "copies_input")),
    "channels": frozenset(("C", "K", "groups")), "batch": frozenset(("N",)),
}  # fmt: skip
_CHANGED = ("C", "K", "groups", "dtype", "layout", "copies_input", "unfolded")  # what steps change in a layer
_CHANGES = get_args(StepChange)
_ALMOST_NOTHING = 1e-9
_NAMED = 4  # changes of one step, in words; layers of one change


class Judge(Protocol):
    """The check of a network on the one target, with what the user silenced."""

    def __call__(
        self, network: Network, /, *, limits: Limits = NO_LIMITS, on_promise: OnPromise | None = None
    ) -> NetworkResult:
        """Raises RuleError."""
        ...


def plan(
    network: Network, rulebook: Rulebook, target: Target, mode: Mode, wishes: Wishes, judge: Judge | None = None
) -> NetworkPlan | None:
    """The plan for a network on one GPU; None where no layer's time is known. Raises RuleError.

    `judge` checks as the project has it; without one, all rules are in force.
    """
    unsilenced: Judge = partial(check_network, rulebook=rulebook, targets=[target], mode=mode)
    return _Planning(network, rulebook, target, mode, wishes, judge or unsilenced).plan()


class _Planning:
    def __init__(
        self, network: Network, rulebook: Rulebook, target: Target, mode: Mode, wishes: Wishes, judge: Judge
    ) -> None:
        self.network, self.rulebook, self.target, self.mode = network, rulebook, target, mode
        self.wishes, self.judge = wishes, judge
        promises: list[Promise] = []
        limits = Limits(fields=frozenset(wishes.fixed), results=wishes.keeps_results)
        self.result = judge(network, limits=limits, on_promise=lambda _, promise: promises.append(promise))
        (self.promise,) = promises
        self.search = self.promise.search
        self._of_steps = {finding.rule.loss: finding for finding in self.result.findings if _shortens_step(finding)}

    def plan(self) -> NetworkPlan | None:
        """None where no layer's time is known."""
        times = [layer.times.get(self.target.label) for layer in self.result.layers]
        known = [entry for entry in times if entry is not None]
        if not known:
            return None
        ideal_us = sum(entry.ideal_us for entry in known) if len(known) == len(times) else None
        best = self.promise.optimum
        members = self._within_limits(Members(best.choices, best.levers))
        steps, states, reached = self._steps(ordered(members, self.search), sum(entry.time_us for entry in known))
        taken = NONE
        for step in steps:
            taken = taken.plus(step)
        end_us = states[-1].time_us
        if len(taken) < len(best.choices) + len(best.levers):
            ideal_us = None if ideal_us is None else self._ideal_us(taken)

        def graded(state: State) -> State:
            if ideal_us is None:
                return state
            grade = LayerTimes(time_us=state.time_us, after_us=end_us, ideal_us=ideal_us).grade
            return replace(state, grade=grade)

        states = [graded(state) for state in states]
        planned = changed(self.network, self.promise, taken)
        after = self.judge(planned) if steps else self.result
        unpriced = tuple(filter(self._is_unpriced, after.findings))
        sizes = {layer.N for layer in self.network.layers}
        planned_steps = [self._step(step, *states[number : number + 2]) for number, step in enumerate(steps)]
        notes: list[str] = []
        if not reached:
            of_step, then = self._of_whole_step(taken, planned, after, states[-1])
            wanted_us = self.wishes.target_us
            if wanted_us is None and "host" in of_step:
                planned_steps = self._host_first(planned_steps, steps, of_step)
            else:
                for planned_step in of_step.values():
                    planned_steps.append(planned_step)
                    if wanted_us is not None and planned_step.after.stopwatch_us <= wanted_us:
                        then, reached = [], True
                        break
            notes = then
        notes = [*self._notes(planned_steps), *self._wrong(after), *self._still(after, reached=reached), *notes]
        return NetworkPlan(
            path=self.network.path, gpu=self.target.label, mode=self.mode,
            batch=sizes.pop() if len(sizes) == 1 else None,
            now=states[0], after=planned_steps[-1].after if planned_steps else states[-1], steps=tuple(planned_steps),
            network=planned if reached else self._with_settings(planned, taken, unpriced),
            target_us=self.wishes.target_us,
            is_reached=reached,
            without_time=tuple(index for index, entry in enumerate(times) if entry is None),
            unpriced=unpriced, notes=tuple(notes),
        )  # fmt: skip

    def _ideal_us(self, members: Members) -> float | None:
        """The ideal time of all layers with these members of B; None where one is unknown."""
        setting, timing = self.search.setting(members.choices), self.search.timing
        changes = self.promise.advice.changes(members.levers)
        parts = [timing.ideal_us(setting, index, changes.get(index, {})) for index in range(len(setting.layers))]
        return added(parts)

    def _steps(self, steps: list[Members], now_us: float) -> tuple[list[Members], list[State], bool | None]:
        """(steps to take, states before, between and after them, whether they reach the time or None: none given)."""
        wanted_us = self.wishes.target_us
        states, taken = [self._state(NONE, now_us)], NONE
        if wanted_us is None:
            for step in steps:
                taken = taken.plus(step)
                states.append(self._state(taken))
            return steps, states, None
        series = [step for step in steps if all(map(self._is_safe, _parts(step)))]
        for tried in (series, steps):
            states, taken = [self._state(NONE, now_us)], NONE
            length: int | None = None  # so many of them, and then what shortens the whole step alone,
            fewest = len(tried) + len(OF_STEPS)  # which are so many together
            for number, step in enumerate((NONE, *tried)):
                if len(step):
                    taken = taken.plus(step)
                    states.append(self._state(taken))
                if number > fewest:
                    break
                if states[-1].stopwatch_us <= wanted_us:
                    return tried[:number], states, True
                for count, us in enumerate(self._shortened(taken, states[-1]), number + 1):
                    if us <= wanted_us and (length is None or count < fewest):
                        length, fewest = number, count
            if length is not None:
                return tried[:length], states[: length + 1], False
        return steps, states, False

    def _shortened(self, members: Members, state: State) -> Iterator[float]:
        """The whole step after each change that the check advises for it: torch.compile, then CUDA graphs."""
        return (us for _, us in self.promise.shortened(*members, state.step_us, self._of_steps.__contains__))

    def _state(self, members: Members, time_us: float | None = None) -> State:
        layers = [
            self.search.timing.layer(self.search.setting(members.choices), index, own)
            for index, own in self.promise.advice.changes(members.levers).items()
        ]
        before = [self.network.layers[index] for index in self.promise.advice.changes(members.levers)]
        return State(
            time_us=self.search.total_us(members.choices, members.levers) if time_us is None else time_us,
            grade=None,
            step_us=self.promise.step_us(*members),
            parameters=_moved(parameters(self.network.layers), parameters(before), parameters(layers)),
            flops=_moved(flops_of(self.network.layers), flops_of(before), flops_of(layers)),
        )

    def _of_whole_step(
        self, members: Members, planned: Network, judged: NetworkResult, before: State
    ) -> tuple[dict[Loss, PlannedStep], list[str]]:
        """(steps that shorten the whole step and no convolution, by loss: torch.compile, then the host; notes).

        The plan ends at the time that the check promises. Advice that comes up only then is named in the notes.
        """
        by_loss: dict[Loss, PlannedStep] = {}
        advised = self._of_steps
        for loss, step_us in self.promise.shortened(*members, before.step_us, advised.__contains__):
            if by_loss:  # a compiled network waits for less
                judged = self.judge(replace(planned, runtime=replace(planned.runtime, compile=True)))
            own = (entry for entry in judged.findings if entry.rule.loss == loss and entry.fix is not None)
            fix, after = next(own, advised[loss]).fix, replace(before, step_us=step_us)
            describe = "" if fix is None else fix.describe
            by_loss[loss] = PlannedStep(
                describe=describe, kinds=("runtime",), safety="safe", changes="results", layers=(), set={}, by_layer=(),
                before=before, after=after,
            )  # fmt: skip
            before = after
        then = [entry for entry in judged.findings if _shortens_step(entry) and entry.rule.loss not in advised]
        return by_loss, [f"{THEN}{entry.rule.code}: {entry.fix.describe}" for entry in then if entry.fix is not None]

    def _host_first(
        self, planned_steps: Sequence[PlannedStep], steps: Sequence[Members], of_step: Mapping[Loss, PlannedStep]
    ) -> list[PlannedStep]:
        """All planned steps, first those of the whole step, as the host sets the pace now.

        Before these, none would shorten the step, and autocast, which has more operations to start, would lengthen it.
        """
        series: list[PlannedStep] = []
        before, taken, compiled = (*planned_steps, *of_step.values())[0].before, NONE, "compile" in of_step
        for loss, planned_step in of_step.items():
            us = self.promise.step_us(*NONE, compiled=compiled, hosted=loss != "host")
            after = replace(before, step_us=us)
            series.append(replace(planned_step, before=before, after=after))
            before = after
        for planned_step, step in zip(planned_steps, steps, strict=True):
            taken = taken.plus(step)
            after = replace(planned_step.after, step_us=self.promise.step_us(*taken, compiled=compiled, hosted=False))
            series.append(replace(planned_step, before=before, after=after))
            before = after
        return series

    def _within_limits(self, members: Members) -> Members:
        """The members without the sizes that save least for what they take of the limits, as far as these require."""
        wishes = self.wishes
        if wishes.max_parameters is None and wishes.max_flops is None:
            return members
        now = self._state(NONE, 0.0)

        def taken(some: Members) -> float:
            """How much of its limit some members take, of the one of which they take most: 1 is all of it."""
            then = self._state(some, 0.0)
            sizes = (
                (wishes.max_parameters, now.parameters, then.parameters),
                (wishes.max_flops, now.flops, then.flops),
            )
            shares = [
                (after - before) / max(before * share, _ALMOST_NOTHING)
                for share, before, after in sizes
                if share is not None and before is not None and after is not None
            ]
            return max(shares, default=0.0)

        def saved_us(lever: Lever) -> float:
            return self.search.total_us(members.choices, {}) - self.search.total_us(members.choices, {lever.key: lever})

        def worth(lever: Lever) -> float:
            return saved_us(lever) / max(taken(Members(members.choices, {lever.key: lever})), _ALMOST_NOTHING)

        def filled(order: Callable[[Lever], float]) -> Members:
            chosen = Members(members.choices, {})
            for lever in sorted(members.levers.values(), key=order, reverse=True):
                more = chosen.plus(Members({}, {lever.key: lever}))
                if taken(more) <= 1 and self.search.total_us(*more) < self.search.total_us(*chosen):
                    chosen = more
            return chosen

        # Many small changes may leave no room for a large one that saves more than all of them.
        return min((filled(order) for order in (worth, saved_us)), key=lambda chosen: self.search.total_us(*chosen))

    # What is said of it.

    def _step(self, step: Members, before: State, after: State) -> PlannedStep:
        setting, changes = self.search.setting(step.choices), self.promise.advice.changes(step.levers)
        by_layer: dict[int, dict[str, Scalar]] = {}
        for index, layer in enumerate(self.network.layers):
            own = _difference(layer, setting.layers[index])
            own = {**own, **{name: value for name, value in changes.get(index, {}).items() if name in _CHANGED}}
            if own:
                by_layer[index] = own
        first = next(iter(by_layer.values()), {})
        shared = first if all(own == first for own in by_layer.values()) else {}
        runtime = {name: value for choice in step.choices.values() for name, value in choice.runtime.items()}
        parts = _parts(step)
        return PlannedStep(
            describe=self._described(parts),
            kinds=tuple(dict.fromkeys(map(_kind, parts))),
            safety="safe" if all(map(self._is_safe, parts)) else "unsafe",
            changes=max(map(self._changed, parts), key=_CHANGES.index),
            layers=tuple(self.network.layers[index].name for index in by_layer),
            set={**shared, **runtime},
            by_layer=tuple(by_layer.values()),
            before=before,
            after=after,
        )

    def _is_safe(self, part: SettingChoice | Lever) -> bool:
        """Whether it changes neither the network nor its weights."""
        if isinstance(part, SettingChoice):
            return all(flaw.case.fix is not None and flaw.case.fix.safety == "safe" for _, flaw in part.asking)
        return part.is_safe and part.changes.keys() == {"copies_input"}

    def _changed(self, part: SettingChoice | Lever) -> StepChange:
        """What a change that is not safe changes."""
        if isinstance(part, Lever) and self._fills_up(part):
            return "weights"
        fixes = [flaw.case.fix for _, flaw in part.asking if flaw.case.fix is not None]
        return "results" if all(fix.safety == "safe" or fix.changes == "results" for fix in fixes) else "network"

    def _fills_up(self, lever: Lever) -> bool:
        """Whether it only adds zeros to the network's input and to the weights that read it."""
        number = self.promise.advice.coupling.group_of_lever(lever)
        if number is None:
            return lever.changes.keys() == {"C"} and self.network.layers[lever.layers[0]].first
        return self.promise.advice.coupling.group(number).only_input

    def _described(self, parts: Sequence[SettingChoice | Lever]) -> str:
        """All of them in words, or the first of very many."""
        shown = "; ".join(map(self._words, parts[:_NAMED]))
        return f"{shown}; and {len(parts) - _NAMED} more of this kind" if len(parts) > _NAMED else shown

    def _words(self, part: SettingChoice | Lever) -> str:
        if isinstance(part, SettingChoice):
            return self._hit(part).flaw.describe
        number = self.promise.advice.coupling.group_of_lever(part)
        layers = [self.network.layers[index] for index in part.layers]
        if number is None or (part.group is None and not self._fills_up(part)):
            sizes = ", ".join(f"{name}={value}" for name, value in part.changes.items())
            in_words = not NOT_WRITTEN.isdisjoint(part.changes)  # what is no size has no number to show
            return f"{part.asking[0][1].describe}" if in_words else f"{sizes} in {layers[0].name}"
        group, width = self.promise.advice.coupling.group(number), part.width or int(part.changes["C"])
        readers = [reader.layer for reader in group.readers]
        if group.only_input:
            return (
                f"fill the input up to {width} channels with zeros, in it and in the weights of {self._named(readers)}"
            )
        sides = [f"{side} of {self._named(of)}" for side, of in (("K", group.writers), ("C", readers)) if of]
        sides += self.promise.advice.coupling.linear_layers(group)
        return f"{width} channels for {group.width}: {', '.join(sides)}"

    def _hit(self, choice: SettingChoice) -> Hit:
        return next(
            hit for hit in self.promise.settled.hits if hit.of_network and _sets(hit, choice) and self._is_of_best(hit)
        )

    def _is_of_best(self, hit: Hit) -> bool:
        stake = self.promise.settled.stakes.get(hit.number)
        return stake is not None and stake.advised

    def _named(self, indices: Sequence[int]) -> str:
        return shortened([self.network.layers[index].name for index in indices], _NAMED)

    def _notes(self, steps: Sequence[PlannedStep]) -> list[str]:
        notes = [*self.network.notes]
        network, changes_channels = self.network, any("channels" in step.kinds for step in steps)
        if not network.operations and "channels" not in self.wishes.fixed and len(network.layers) > 1:
            notes.append(NO_DATAFLOW)
        if self.wishes.max_parameters is not None or self.wishes.max_flops is not None:
            notes.append(LIMITED)
        connected = {index for edge in network.edges for index in (edge.consumer, *edge.producers)}
        alone = {layer.name for index, layer in enumerate(network.layers) if index not in connected}
        names = {name for step in steps if "channels" in step.kinds for name in step.layers}
        if changes_channels and len(network.layers) > 1 and not alone.isdisjoint(names):
            notes.append(ALONE)
        sources = {layer.dtype_source for layer in network.layers if layer.dtype is not None}
        if "storage" in sources:
            notes.append(STORED)
        elif "module" in sources and any("dtype" in step.kinds for step in steps):
            notes.append(WRAPPED)
        elif "module" in sources and self._asks_for_halves():
            notes.append(BUILT)
        return notes

    def _asks_for_halves(self) -> bool:
        """Whether the fix to other dtypes saves time but is not advised, as autocast may stand around the module."""
        return any(
            "dtype" in finding.fix.set and (finding.fix.time_change_us or 0.0) < 0
            for finding in self.result.findings if finding.fix is not None and not finding.fix.advised
        )  # fmt: skip

    def _wrong(self, result: NetworkResult) -> list[str]:
        """A note on the errors that the check of the planned network finds; empty without any."""
        summary = _counted(finding for finding in result.findings if finding.severity == "error")
        return [ERRORS + summary] if summary else []

    def _still(self, result: NetworkResult, *, reached: bool | None) -> list[str]:
        """A note on warnings with a price that the check still gives though their fixes were not ruled out."""
        fixed: set[Lot] = set(self.wishes.fixed)
        if self.wishes.keeps_results:
            fixed |= {"channels", "dtype", "batch"}
        if reached or self.wishes.max_parameters is not None or self.wishes.max_flops is not None:
            return []
        fields = {name for lot in fixed for name in _FIELDS[lot]}
        summary = _counted(
            finding for finding in result.findings
            if finding.severity == "warning" and finding.fix is not None and not self._is_unpriced(finding)
            and finding.rule.loss not in OF_STEPS and _changes_nothing_of(finding, fields)
        )  # fmt: skip
        return [STILL + summary] if summary else []

    def _with_settings(self, network: Network, members: Members, unpriced: Sequence[Finding]) -> Network:
        """The network with the settings of the runtime, and the batch, that are advised although they have no price.

        A setting that the predicted time depends on is left out, so that its check says the plan's last time.
        """
        settings: dict[str, Scalar] = {}
        for finding in unpriced:
            fix = finding.fix
            # A batch that does not fit stays all the same: the times of the plan are those at that batch.
            of_choice = finding.severity != "error" and "batch" not in self.wishes.fixed
            if fix is not None and "N" in fix.set and of_choice:
                layers = tuple(with_fix(layer, {"N": fix.set["N"]}) for layer in network.layers)
                network = replace(network, layers=layers)
            if fix is not None and fix.safety == "safe" and all(name.startswith("runtime.") for name in fix.set):
                settings = {**fix.set, **settings}
        if not settings:
            return network
        timing, changes = self.search.timing, self.promise.advice.changes(members.levers)
        neutral: dict[str, Scalar] = {}
        setting = self.search.setting(members.choices)
        for name, value in settings.items():
            other = timing.setting(setting.layers, with_settings(setting.runtime, {name: value}))
            before_us, after_us = timing.gpu_us(setting, changes), timing.gpu_us(other, changes)
            if abs(after_us - before_us) <= LEAST_GAIN * before_us:
                neutral[name] = value
        return replace(network, runtime=with_settings(network.runtime, neutral)) if neutral else network

    def _is_unpriced(self, finding: Finding) -> bool:
        """Whether it stands for more than an info, and nobody knows what its fix is worth; or is a batch asked for."""
        if finding.fix is not None and finding.fix.advised and "N" in finding.fix.set:
            return len({layer.N for layer in self.network.layers}) == 1
        rule = self.rulebook.find(finding.rule.code)
        if finding.severity == "info" or finding.fix is None or rule is None:
            return False
        return rule.loss == "none" or (rule.loss in OF_STEPS and not self.network.tells_step)


def _shortens_step(finding: Finding) -> bool:
    """Whether it warns of what the whole step waits for or could leave out."""
    return finding.rule.loss in OF_STEPS and finding.severity == "warning"


def _parts(step: Members) -> list[SettingChoice | Lever]:
    return [*step.choices.values(), *step.levers.values()]


def _kind(part: SettingChoice | Lever) -> Kind:
    if isinstance(part, SettingChoice):
        return part.kind
    return "layout" if "copies_input" in part.changes else "channels"


def _sets(hit: Hit, choice: SettingChoice) -> bool:
    names = {*choice.runtime, *((choice.kind,) if choice.layers else ())}
    return {name for changes in hit.sets for name in changes} == names


def _changes_nothing_of(finding: Finding, fields: Set[str]) -> bool:
    fix = finding.fix
    return fix is not None and fields.isdisjoint(name for changes in (fix.set, *fix.by_layer) for name in changes)


def _counted(findings: Iterable[Finding]) -> str:
    """`CL102 in 3 layers, CL801`."""
    places: dict[str, set[str]] = {}
    for finding in findings:
        names = finding.layers or (() if finding.layer is None else (finding.layer,))
        places.setdefault(finding.rule.code, set()).update(names)
    return ", ".join(
        f"{code} in {plural(len(names), 'layer')}" if names else code for code, names in sorted(places.items())
    )


def _moved(whole: int | None, before: int | None, after: int | None) -> int | None:
    """The whole, of which a part is `after` now; layers that share a module are in one part."""
    return None if whole is None or before is None or after is None else whole - before + after


def _difference(before: ConvLayer, after: ConvLayer) -> dict[str, Scalar]:
    names = (name for name in ("dtype", "layout") if getattr(after, name) != getattr(before, name))
    return {name: value.value if isinstance(value := getattr(after, name), Dtype) else value for name in names}
