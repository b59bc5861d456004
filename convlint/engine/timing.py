"""Times of layers as they are and as changes make them, and what of the time saved is each change's share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import factorial
from operator import attrgetter

from msgspec import Struct
from msgspec.structs import replace

from convlint.engine.hits import UNPRICED, Hit, Price, added, with_fix
from convlint.estimate import estimate_layer, time_us, unquantized_us
from convlint.estimate.host import (
    LEAST_CALLS,
    NO_HOST,
    Host,
    Hosted,
    can_compile,
    host_us,
    hosted,
    is_autocast,
    is_eager,
    left_us,
    runtime_on,
)
from convlint.estimate.memory import parts
from convlint.estimate.passes import basis_of
from convlint.facts.target import layout_picks, layout_weight
from convlint.gpus.gpu import Gpu
from convlint.model.estimates import Basis, LayerEstimate, StepEstimate
from convlint.model.layer import ConvLayer, Dtype, Mode, layer_identity
from convlint.model.network import Edge, Network, Operation, Work
from convlint.model.report import Scalar
from convlint.model.runtime import Runtime, framework_of
from convlint.rulebook.rule import Rule

SAME = 1e-9  # times that differ by less, relative to each other, are equal
Changes = Mapping[str, Scalar]
NOTHING: Changes = {}
Picks = tuple[bool, bool]  # whether the framework chooses the layout of layers of two dimensions, and of others
_STORED_AS = {Dtype.tf32: Dtype.fp32}


def key_of(changes: Changes) -> tuple[tuple[str, Scalar], ...]:
    """A key, equal for equal changes."""
    return tuple(sorted(changes.items())) if len(changes) > 1 else tuple(changes.items())


_form = attrgetter("op", *"NCDHWKTRSUV", "groups")


def arriving(network: Network) -> Mapping[int, Edge]:
    """The edge to each layer, by its number; in a list that nothing connects, one from the last output that fits.

    As in memory, such a list is one network where most of its layers read as many channels as the one before writes.
    One layer in several layouts or dtypes is a comparison, in which nothing is handed on.
    """
    layers, edges = network.layers, {edge.consumer: edge for edge in network.edges}
    connected = {*edges, *(producer for edge in network.edges for producer in edge.producers)}
    if len(connected) == len(layers):
        return edges
    for part in parts(layers, network.edges):
        writing: dict[int | None, int] = {}  # by channels, the last layer that writes so many
        for index in part:
            layer, before = layers[index], writing.get(layers[index].C)
            alone = index not in connected and not layer.first
            if alone and before is not None and layer.C is not None and _form(layers[before]) != _form(layer):
                edges[index] = Edge(consumer=index, producers=(before,), source=layers[before].name, C=layer.C,
                                    D=layer.D, H=layer.H, W=layer.W)  # fmt: skip
            if not layer.pointwise_map:  # what squeezes and excites scales another's output
                writing[layer.K] = index
    return edges


def as_laid_out(
    network: Network, mode: Mode, layers: Sequence[ConvLayer] | None = None, runtime: Runtime | None = None
) -> tuple[ConvLayer, ...]:
    """The layers of a network as they run: in the framework's own layout where it chooses one, with their copies.

    Other `layers` may stand in place of its own, and another `runtime` too.
    """
    edges, own, others = arriving(network), network.layers, network.layers if layers is None else layers
    picks = layout_picks(runtime or network.runtime, others, mode)
    norms = normed(network, others)
    return tuple([_as_it_runs(others, index, edges.get(index), own, norms, picks) for index in range(len(own))])


class Normed(Struct, frozen=True):
    """What group norms of PyTorch's do to layouts: on CUDA they read and write NCHW, forward and backward.

    (ATen/native/group_norm.cpp up to 2.13.)
    """

    readers: frozenset[int]  # the layers that read what a norm has written
    copied: Mapping[int, int]  # of each layer in NHWC, how many norms copy its output


def normed(network: Network, layers: Sequence[ConvLayer]) -> Normed:
    """What the group norms of a network do to `layers`, which stand in place of its own."""
    readers, copied = set[int](), Counter[int]()
    if framework_of(network.runtime) not in (None, "pytorch"):
        return Normed(frozenset(), copied)
    if not any(op.groups > 1 or "group norm" in (op.kind, op.work and op.work.kind) for op in network.operations):
        return Normed(frozenset(), copied)
    in_nhwc, by_norm, made_by = list[bool](), list[bool](), list[tuple[int, ...]]()
    for operation in network.operations:
        own = operation.work.kind if operation.work is not None else operation.kind
        kind = "group norm" if operation.groups > 1 else own
        # A gate is smaller than what it is multiplied with, whose layout the result has.
        main = max(operation.inputs, key=lambda index: _elements(network.operations[index]), default=None)
        layout, follows, makers = False, False, tuple[int, ...]()
        if main is not None:
            layout, follows, makers = in_nhwc[main], by_norm[main], made_by[main]
        if operation.layer is not None:
            if follows:
                readers.add(operation.layer)
            layout, follows, makers = layers[operation.layer].layout == "NHWC", False, (operation.layer,)
        elif not network.whole and _is_opaque(operation):
            layout, follows, makers = False, False, ()
        elif kind == "group norm":
            copied.update(makers if layout else ())
            layout, follows = False, True
        elif kind == "concat":  # is NCHW where one of its parts is
            layout = all(in_nhwc[index] for index in operation.inputs)
            follows = any(by_norm[index] for index in operation.inputs)
            makers = tuple(dict.fromkeys(maker for index in operation.inputs for maker in made_by[index]))
        in_nhwc.append(layout)
        by_norm.append(follows)
        made_by.append(makers)
    return Normed(frozenset(readers), copied)


def _is_opaque(operation: Operation) -> bool:
    """Whether nobody knows what it does to a layout; in a network that is whole, it leaves that alone."""
    of_one = operation.kind in ("identity", "batchnorm")
    return operation.kind in ("view", "linear", "reshape") or (of_one and len(operation.inputs) != 1)


def _elements(operation: Operation) -> int:
    """Elements of one image; 0 where a size is unknown."""
    return (operation.C or 0) * (operation.D or 0) * (operation.H or 0) * (operation.W or 0)


def _as_it_runs(
    layers: Sequence[ConvLayer], index: int, edge: Edge | None, stated: Sequence[ConvLayer], norms: Normed,
    picks: Picks,
) -> ConvLayer:  # fmt: skip
    """One of `layers` as it runs; they stand in place of those `stated`, for which alone edges tell of copies."""
    layer = layers[index]
    if picks[layer.dims != 2]:
        chosen = layer.layout == "auto" and not layer.copies_input and not layer.norm_copies
        return layer if chosen else replace(layer, layout="auto", copies_input=False, norm_copies=0)
    in_nhwc = layer.layout == "NHWC"
    on_map = not layer.pointwise_map and not layer.D == layer.H == layer.W == 1  # which is the same in both layouts
    behind_norm = index in norms.readers
    arrives_otherwise = in_nhwc and (layer.copies_input or (behind_norm and on_map))
    if edge is not None and not arrives_otherwise:
        arrives_otherwise = any(
            _is_copied(edge, producer, layers, stated, of_layouts=not behind_norm) for producer in edge.producers
        )
    copies = norms.copied.get(index, 0) if in_nhwc else 0
    same = layer.copies_input == arrives_otherwise and layer.norm_copies == copies
    return layer if same else replace(layer, copies_input=arrives_otherwise, norm_copies=copies)


def _is_copied(
    edge: Edge, producer: int, layers: Sequence[ConvLayer], stated: Sequence[ConvLayer], *, of_layouts: bool
) -> bool:
    """Whether what a layer reads from one of its producers is copied first; for layouts only with `of_layouts`."""
    writer, reader = layers[producer], layers[edge.consumer]
    if reader.pointwise_map:
        return False
    if writer.dtype is not None and reader.dtype is not None and _stored(writer.dtype) != _stored(reader.dtype):
        return True
    if not of_layouts or writer.layout == reader.layout or "auto" in (writer.layout, reader.layout):
        return False
    if writer.Z == writer.P == writer.Q == 1 or reader.D == reader.H == reader.W == 1:  # equal in both layouts
        return False
    same = writer.layout == stated[producer].layout and reader.layout == stated[edge.consumer].layout
    return edge.copied is not False or not same


def _stored(dtype: Dtype) -> Dtype:
    return _STORED_AS.get(dtype, dtype)


def estimated(network: Network, running: Sequence[ConvLayer], gpu: Gpu, mode: Mode) -> Hosted:
    """The estimates of all layers, `running` as the framework lays them out, with what the host adds to them.

    int8 is estimated forward where nobody asked for training; where somebody did, there is none.
    """
    refused = (Dtype.int8,) if network.mode == "training" else ()
    estimates = [
        None if layer.dtype in refused else estimate_layer(layer, gpu, network.runtime, mode) for layer in running
    ]
    host = host_of(network, gpu, mode)
    if not network.tells_step or None in estimates:
        return hosted(network.layers, estimates, host)
    from convlint.estimate.step import Steps, step_of  # of whole networks alone

    gpu_us = sum(estimate.time_us for estimate in estimates if estimate is not None)
    step = step_of(Steps(network, running, gpu_us, network.runtime, mode), gpu)
    if step is None:
        return hosted(network.layers, estimates, host)
    # The step says what waits for the host; its convolutions take what the GPU needs for them.
    return Hosted(tuple(estimates), None, gpu_us, step=step, compiled=compiled_step(network, running, gpu, mode))


def on_gpu(network: Network, gpu: Gpu) -> Network:
    """The network with its runtime as it is on a GPU."""
    runtime = runtime_on(network.runtime, gpu)
    return network if runtime is network.runtime else replace(network, runtime=runtime)


def hosted_on(network: Network, gpu: Gpu, mode: Mode) -> Hosted:
    """What `estimated` says of a network as it runs on a GPU."""
    network = on_gpu(network, gpu)
    return estimated(network, as_laid_out(network, mode), gpu, mode)


def at_batch(network: Network, N: int) -> Network | None:
    """The network with batches of `N`; None where its layers have several, or its operations are not all known."""
    batches = {layer.N for layer in network.layers}
    now = batches.pop()
    if batches or not now or not network.whole or network.recorded is not None:
        return None
    operations = [
        operation if operation.work is None else replace(operation, work=_of_images(operation.work, N, now))
        for operation in network.operations
    ]
    layers = tuple(replace(layer, N=N) for layer in network.layers)
    return replace(network, layers=layers, operations=tuple(operations))


def _of_images(work: Work, N: int, now: int) -> Work:
    """The work of an operation on `N` images, which does this on `now`."""
    batch, rows, *others = work.product if len(work.product) == 4 else (1, 1, 0, 0)
    by_rows = work.kind == "linear" and batch == 1  # all images form one matrix
    product = (batch, rows * N // now, *others) if by_rows else (batch * N // now, rows, *others)
    return replace(
        work, reads=tuple(elements * N // now for elements in work.reads), writes=work.writes * N // now,
        product=product if work.product else (),
    )  # fmt: skip


def times_of(network: Network, gpu: Gpu, mode: Mode) -> list[float | None]:
    """What `estimated` says that each layer takes, at half the cost where no host sets the pace."""
    network = on_gpu(network, gpu)
    running = as_laid_out(network, mode)
    if network.tells_step or host_us(gpu, network.runtime) != NO_HOST:
        estimates = estimated(network, running, gpu, mode).estimates
        return [None if estimate is None else estimate.time_us for estimate in estimates]
    refused = (Dtype.int8,) if network.mode == "training" else ()
    return [None if layer.dtype in refused else time_us(layer, gpu, network.runtime, mode) for layer in running]


def compiled_step(network: Network, layers: Sequence[ConvLayer], gpu: Gpu, mode: Mode) -> StepEstimate | None:
    """The step with these layers behind torch.compile; None where that is no choice."""
    runtime = network.runtime
    if not network.tells_step or not is_eager(runtime) or not can_compile(runtime, gpu):
        return None
    from convlint.estimate.step import Steps, step_of

    runtime = replace(runtime, compile=True)
    running = as_laid_out(network, mode, layers, runtime)
    us = added([time_us(layer, gpu, runtime, mode) for layer in running])
    return None if us is None else step_of(Steps(network, running, us, runtime, mode), gpu)


def host_of(network: Network, gpu: Gpu, mode: Mode) -> Host:
    """The pace of the host for one network, heads of another batch included; NO_HOST for other lists of layers.

    A list is one network where half of the calls, and at least LEAST_CALLS, are in one connected part.
    """
    calls = [sum(network.layers[index].calls for index in part) for part in parts(network.layers, network.edges)]
    is_one = max(calls, default=0) >= max(LEAST_CALLS, sum(calls) / 2)
    return paced(network.layers, gpu, network.runtime, mode) if is_one else NO_HOST


def paced(layers: Sequence[ConvLayer], gpu: Gpu, runtime: Runtime, mode: Mode) -> Host:
    """The pace of the host that starts these layers."""
    return host_us(gpu, replace(runtime, mixed_precision=True) if is_autocast(layers, runtime, mode) else runtime)


class NetworkSetting:
    """One way in which the whole network runs: its `layers`, the same as they are `running`, and the runtime."""

    __slots__ = ("host_us", "layers", "number", "running", "runtime", "times")

    def __init__(
        self, layers: tuple[ConvLayer, ...], running: tuple[ConvLayer, ...], runtime: Runtime, number: int = 0
    ) -> None:
        """`number` is that of the runtime, among those that one `NetworkTiming` knows."""
        self.layers, self.running, self.runtime, self.number = layers, running, runtime, number
        self.times: list[float | None] | None = None  # of all layers without further changes, in us
        self.host_us: float | None = None  # what of the host's time is left for them, once that was asked for


class NetworkTiming:
    """Times of one network on one GPU in one mode; all in us, with all calls of a layer. None: not predictable."""

    def __init__(
        self, network: Network, gpu: Gpu, mode: Mode, on_host: Hosted | None = None,
        running: tuple[ConvLayer, ...] | None = None,
    ) -> None:  # fmt: skip
        """`on_host` has the estimates of the network as it is, and what its host needs; `running` its layers then."""
        self.network, self.gpu, self.mode = network, gpu, mode
        self.host_us = None if on_host is None else on_host.host_us
        self.host = NO_HOST if on_host is None else on_host.host
        # int8 trains nowhere: where training was asked for, such a layer has no time
        self._refused = (Dtype.int8,) if network.mode == "training" else ()
        kinds: dict[object, int] = {}
        self._kinds = [kinds.setdefault(layer_identity(layer), len(kinds)) for layer in network.layers]
        self._times: dict[object, tuple[float | None, ConvLayer]] = {}
        self.edges = arriving(network)
        self.readers: dict[int, list[int]] = {}  # of what each layer writes
        for edge in self.edges.values():
            for producer in edge.producers:
                self.readers.setdefault(producer, []).append(edge.consumer)
        self._runtimes = {network.runtime: 0}
        self._picks: dict[Runtime, Picks] = {}
        self._weights: list[tuple[float, float]] | None = None  # of each layer, in torch.compile's choice of layouts
        self.now = NetworkSetting(network.layers, running or as_laid_out(network, mode), network.runtime)

    def setting(self, layers: tuple[ConvLayer, ...], runtime: Runtime) -> NetworkSetting:
        """The network with these layers, which differ in dtype and layout alone, and this runtime."""
        number = self._runtimes.setdefault(runtime, len(self._runtimes))
        norms = normed(self.network, layers)
        running = tuple([self.running(layers, index, runtime, norms) for index in range(len(layers))])
        return NetworkSetting(layers, running, runtime, number)

    def against_layouts(self, setting: NetworkSetting, changes: Mapping[int, Changes]) -> int | None:
        """The layer of these `changes` for whose sake torch.compile no longer lays the network out as it does now.

        None where it does, or where it matters to no layer: those of a network in NHWC stay so in any case.
        """
        decides = setting.runtime.compile is True and any(layer.layout == "NCHW" for layer in setting.layers)
        if not decides or not layout_picks(setting.runtime, self.network.layers, self.mode)[0]:
            return None
        if self._weights is None:
            self._weights = [layout_weight(layer, self.mode) for layer in self.network.layers]
        weighed, total = sum([value for value, _ in self._weights]), sum([value for _, value in self._weights])
        worst, most = None, 0.0
        for index, own in changes.items():
            sizes = {name: value for name, value in own.items() if "." not in name}
            before, after = self._weights[index], layout_weight(with_fix(self.network.layers[index], sizes), self.mode)
            weighed, total = weighed + after[0] - before[0], total + after[1] - before[1]
            more = after[0] - after[1] - (before[0] - before[1])
            if more > most:
                worst, most = index, more
        return worst if weighed > total else None

    def running(self, layers: Sequence[ConvLayer], index: int, runtime: Runtime, norms: Normed) -> ConvLayer:
        """One of these layers as it runs beside the others, among which `norms` are."""
        picks = self._picks.get(runtime)
        if picks is None:
            picks = self._picks[runtime] = layout_picks(runtime, self.network.layers, self.mode)
        return _as_it_runs(layers, index, self.edges.get(index), self.network.layers, norms, picks)

    def layer(self, setting: NetworkSetting, index: int, changes: Changes = NOTHING) -> ConvLayer:
        """One layer as it runs in a setting after `changes`."""
        return with_fix(setting.running[index], changes) if changes else setting.running[index]

    def time_us(self, setting: NetworkSetting, index: int, changes: Changes = NOTHING) -> float | None:
        """The time of one layer on the GPU."""
        if not changes:
            return self.times(setting)[index]
        return self._timed(setting, index, setting.running[index], changes)[0]

    def times(self, setting: NetworkSetting) -> list[float | None]:
        """The times of all layers without further changes."""
        if setting.times is None:
            setting.times = [self.running_us(setting, index, layer) for index, layer in enumerate(setting.running)]
        return setting.times

    def running_us(self, setting: NetworkSetting, index: int, running: ConvLayer) -> float | None:
        """The time of the layer of that number when it is run as `running` in the setting's runtime."""
        return self._timed(setting, index, running, NOTHING)[0]

    def _timed(
        self, setting: NetworkSetting, index: int, running: ConvLayer, changes: Changes
    ) -> tuple[float | None, ConvLayer]:
        """The same with `changes` on top; and the layer that was timed, this one or one of equal fields."""
        how = running.dtype, running.layout, running.copies_input, running.norm_copies, setting.number
        key = self._kinds[index], how, key_of(changes) if changes else None
        known = self._times.get(key)
        if known is None:
            after = with_fix(running, changes) if changes else running
            refused = after.dtype in self._refused
            time = None if refused else time_us(after, self.gpu, setting.runtime, self.mode)
            known = self._times[key] = time, after
        return known

    def _timed_layer(self, setting: NetworkSetting, index: int, changes: Changes) -> ConvLayer:
        """What `layer` gives, or its equal that was timed already: of that the estimates are at hand."""
        return self._timed(setting, index, setting.running[index], changes)[1] if changes else setting.running[index]

    def gpu_us(self, setting: NetworkSetting, changes: Mapping[int, Changes]) -> float:
        """What the GPU needs for all layers, some of which have `changes`."""
        times = self.times(setting)
        plain = sum([time or 0.0 for time in times])
        return plain + sum(
            (self.time_us(setting, index, own) or 0.0) - (times[index] or 0.0) for index, own in changes.items()
        )

    def network_us(self, setting: NetworkSetting, gpu_us: float, changes: Mapping[int, Changes] | None = None) -> float:
        """What all layers take of which the GPU needs so much: the host, where it is slower, sets the pace.

        With `changes` of sizes it leaves the layers less time, the wider the tensors behind them are.
        """
        if self.host_us is None:
            return gpu_us
        if changes:
            layers = [self.layer(setting, index, changes.get(index, NOTHING)) for index in range(len(setting.running))]
            return max(gpu_us, left_us(layers, self.mode, self.host_in(setting)))
        if setting.host_us is None:
            setting.host_us = left_us(setting.running, self.mode, self.host_in(setting))
        return max(gpu_us, setting.host_us)

    def host_in(self, setting: NetworkSetting) -> Host:
        """The pace of the host in a setting, which autocast changes."""
        if self.host == NO_HOST:
            return NO_HOST
        return paced(setting.layers, self.gpu, setting.runtime, self.mode)

    def ideal_us(self, setting: NetworkSetting, index: int, changes: Changes = NOTHING) -> float | None:
        """The time of one layer on the GPU if it wasted neither tiles nor waves."""
        layer = self._timed_layer(setting, index, changes)
        refused = layer.dtype in self._refused
        return None if refused else unquantized_us(layer, self.gpu, setting.runtime, self.mode)

    def estimate(self, setting: NetworkSetting, index: int, changes: Changes = NOTHING) -> LayerEstimate | None:
        """The estimate of one layer, pass by pass."""
        layer = self.layer(setting, index, changes)
        refused = layer.dtype in self._refused
        return None if refused else estimate_layer(layer, self.gpu, setting.runtime, self.mode)

    def basis(self, setting: NetworkSetting, index: int, changes: Changes = NOTHING) -> Basis:
        """The basis of a layer's time."""
        return basis_of(self._timed_layer(setting, index, changes), self.gpu, setting.runtime, self.mode)


class Pricer:
    """Prices for one network on one target, whose `estimates` those of its layers are."""

    def __init__(self, timing: NetworkTiming, estimates: Sequence[LayerEstimate | None]) -> None:
        self.timing, self.estimates = timing, estimates

    @property
    def layers(self) -> Sequence[ConvLayer]:
        """The layers as they are."""
        return self.timing.network.layers

    @property
    def running(self) -> Sequence[ConvLayer]:
        """The layers as they run."""
        return self.timing.now.running

    def now_us(self, index: int) -> float | None:
        """What the GPU needs for a layer."""
        return self.timing.time_us(self.timing.now, index)

    def time_after(self, index: int, changes: Mapping[str, Scalar]) -> float | None:
        """The same after `changes` of its sizes; None where it is not predictable."""
        own = {name: value for name, value in changes.items() if "." not in name}
        return self.timing.time_us(self.timing.now, index, own)

    def change_us(self, index: int, changes: Mapping[str, Scalar]) -> float | None:
        """Time after `changes` minus time now."""
        before = self.now_us(index)
        after = self.time_after(index, changes) if before is not None and changes else None
        return None if before is None or after is None else after - before

    def capacity_us(self, index: int, rule: Rule) -> float | None:
        """What the layer pays for tiles or waves that it does not fill, over the passes that the rule names."""
        estimate = self.estimates[index]
        if estimate is None or rule.loss not in ("tile", "wave"):
            return None
        field = "lost_to_tiles_us" if rule.loss == "tile" else "lost_to_waves_us"
        passes = estimate.passes.items()
        lost: float = sum(getattr(entry, field) for which, entry in passes if which in rule.loss_passes)
        return lost * self.layers[index].calls


class Stake(Struct, frozen=True):
    """What one fix earns, in us: its share, and with which others it earns that; and what it changes alone."""

    change_us: float | None = None  # negative: faster
    advised: bool = False  # it is one of the fastest subset
    lost_us: float = 0.0
    pays_with: tuple[str, ...] = ()

    @property
    def alone_us(self) -> float:
        """What it earns alone."""
        return max(0.0, -(self.change_us or 0.0))


def shares(count: int, now_us: float, time_of: Callable[[int], float]) -> list[tuple[float, frozenset[int]]]:
    """Of so many players: the share of each, and the fewest others that it earns it with, if alone it earns not half.

    `time_of` takes a set of players, as bits. The value of a set is what the best of its subsets saves; a share is the
    mean of what a player adds to the value, over all orders in which they could join. Shares are never negative and add
    up to the value of all.
    """
    times = [now_us] * (1 << count)
    for members in range(1, 1 << count):
        without = (times[members & ~(1 << i)] for i in range(count) if members >> i & 1)
        times[members] = min(time_of(members), *without)
    result = []
    orders = [factorial(size) * factorial(count - size - 1) for size in range(count)]  # by the size of a set
    for i in range(count):
        others = sorted((members for members in range(1 << count) if not members >> i & 1), key=int.bit_count)
        adds = {members: times[members] - times[members | 1 << i] for members in others}
        share = sum([adds[members] * orders[members.bit_count()] for members in others]) / factorial(count)
        enough = 0
        if adds[0] < share / 2:
            enough = next(members for members in others if adds[members] >= share * (1 - SAME))
        result.append((share, frozenset(j for j in range(count) if enough >> j & 1)))
    return result


MOST_PRICED = 1000  # findings of one rule whose fixes are priced although they are not B's


def weighed(hits: Sequence[Hit], stakes: Mapping[int, Stake], bases: Mapping[int, Basis], pricer: Pricer) -> list[Hit]:
    """The hits with their prices; `stakes` and `bases` are by the number of a hit."""
    beside = Counter(hit.rule.info.code for hit in hits if hit.number not in stakes)
    result = []
    for hit in hits:
        few = beside[hit.rule.info.code] <= MOST_PRICED
        if hit.indices and hit.rule.loss != "none":
            price = _price(hit, stakes.get(hit.number), pricer, few=few)
            result.append(replace(hit, price=replace(price, basis=bases.get(hit.number))))
        elif hit.indices and few and _is_remark(hit):
            result.append(replace(hit, price=replace(UNPRICED, change_us=_change_us(hit, pricer) or None)))
        else:
            result.append(hit)
    return result


def _is_remark(hit: Hit) -> bool:
    """Whether it is an info without a price whose fix states its change in time all the same."""
    spec, changes = hit.flaw.case.fix, hit.flaw.set
    if hit.severity != "info" or spec is None or not spec.priced or hit.sets_batch:
        return False
    return bool(changes) and all("." not in name for name in changes)


def _change_us(hit: Hit, pricer: Pricer) -> float | None:
    """The change in time by its fix alone; None where that is not predictable."""
    return added([pricer.change_us(index, own) for index, own in zip(hit.indices, hit.sets, strict=True)])


def _price(hit: Hit, stake: Stake | None, pricer: Pricer, *, few: bool) -> Price:
    spec, capacity_us = hit.flaw.case.fix, _capacity(hit, pricer)
    if spec is None or not spec.priced or not spec.set or hit.sets_batch:  # the batch is weighed over all layers
        return replace(UNPRICED, capacity_us=capacity_us)
    is_advised = stake is not None and stake.advised
    if not is_advised and any(pricer.estimates[index] is None for index in hit.indices):
        return UNPRICED
    if stake is None:
        change_us = _change_us(hit, pricer) if few else None
        alone_us = None if change_us is None else max(0.0, -change_us)
        return Price(lost_us=0.0, alone_us=alone_us, capacity_us=capacity_us, change_us=change_us)
    return Price(
        lost_us=stake.lost_us,
        alone_us=stake.alone_us,
        capacity_us=capacity_us,
        change_us=stake.change_us,
        advised=stake.advised,
        pays_with=stake.pays_with,
    )


def _capacity(hit: Hit, pricer: Pricer) -> float | None:
    """What its layers pay for what they do not fill; of layers that share channels, those where the rule fired."""
    capacities = [pricer.capacity_us(index, hit.rule) for index in hit.fired or hit.indices]
    return added(capacities) if capacities else None
