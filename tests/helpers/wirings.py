"""A builder of networks with operations, and published networks built with it."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from convlint.model.layer import ConvLayer, Dtype, Layout, Mode, with_output
from convlint.model.network import Edge, Network, Operation, OperationKind, Work, WorkKind
from convlint.model.runtime import Runtime


class Wiring:
    """Every method that adds a step returns the number of its operation; sizes follow from what it reads."""

    def __init__(self, N: int = 64, size: int = 224, C: int = 3, dtype: str = "fp16", layout: Layout = "NHWC") -> None:
        self.N, self.dtype, self.layout = N, Dtype(dtype), layout
        self.layers: list[ConvLayer] = []
        self.operations: list[Operation] = []
        self.edges: list[Edge] = []
        self.producers: list[tuple[int, ...]] = []  # the layers whose channels each operation hands on
        self.image = self._step("input", (), C, size)

    def _step(
        self, kind: OperationKind, inputs: Sequence[int], C: int, size: int, *,
        by: tuple[int, ...] | None = None, **more: Any,
    ) -> int:  # fmt: skip
        name = f"{kind}{len(self.operations)}"
        self.operations.append(
            Operation(kind=kind, name=name, inputs=tuple(inputs), C=C, H=size, W=size, **more)
        )  # fmt: skip
        known = tuple(dict.fromkeys(layer for number in inputs for layer in self.producers[number]))
        self.producers.append(known if by is None else by)
        return len(self.operations) - 1

    def C(self, source: int) -> int:
        return self.operations[source].C or 0

    def size(self, source: int) -> int:
        return self.operations[source].H or 0

    def conv(self, source: int, K: int, taps: int = 1, stride: int = 1, groups: int = 1, **more: Any) -> int:
        index, size, C = len(self.layers), self.size(source), self.C(source)
        pad = taps // 2
        values: dict[str, Any] = {
            "name": f"conv{index}", "N": self.N, "C": C, "H": size, "W": size, "K": K, "R": taps, "S": taps,
            "U": stride, "V": stride, "PadH": pad, "PadW": pad, "PadH_end": pad, "PadW_end": pad, "groups": groups,
            "dtype": self.dtype, "layout": self.layout, "bias": False, "first": not self.producers[source],
        }  # fmt: skip
        layer = with_output(ConvLayer(**(values | more)))
        self.layers.append(layer)
        if self.producers[source]:
            producers, name = self.producers[source], self.operations[source].name
            self.edges.append(Edge(consumer=index, producers=producers, source=name, C=C, H=size, W=size))
        return self._step("conv", (source,), K, layer.P or 0, by=(index,), layer=index)

    def norm(self, source: int) -> int:
        return self._step("identity", (self._same("batchnorm", source),), self.C(source), self.size(source))

    def _same(self, kind: OperationKind, source: int) -> int:
        return self._step(kind, (source,), self.C(source), self.size(source))

    def unit(self, source: int, K: int, taps: int = 1, stride: int = 1, groups: int = 1, **more: Any) -> int:
        """A convolution, its normalisation and its activation."""
        return self.norm(self.conv(source, K, taps, stride, groups, **more))

    def add(self, *sources: int) -> int:
        widest = max(sources, key=lambda source: (self.C(source), self.size(source)))
        return self._step("add", sources, self.C(widest), self.size(widest))

    def concat(self, *sources: int) -> int:
        return self._step("concat", sources, sum(map(self.C, sources)), self.size(sources[0]))

    def resize(self, source: int, size: int) -> int:
        return self._step("resize", (source,), self.C(source), size)

    def network(self, *outputs: int, runtime: Runtime | None = None, mode: Mode | None = None) -> Network:
        operations = [
            Operation(
                kind=one.kind, name=one.name, inputs=one.inputs, layer=one.layer, C=one.C, H=one.H, W=one.W,
                output=number in (outputs or (len(self.operations) - 1,)),
            )
            for number, one in enumerate(self.operations)
        ]  # fmt: skip
        return Network(
            path="net.yaml", layers=tuple(self.layers), edges=tuple(self.edges), operations=tuple(operations),
            runtime=runtime or Runtime(), mode=mode,
        )  # fmt: skip


_WORK: Mapping[OperationKind, WorkKind] = {
    "batchnorm": "batch norm", "identity": "activation", "add": "add", "concat": "concat", "resize": "pool"
}  # fmt: skip


def told(network: Network) -> Network:
    """The network with the work of its operations, as a reader tells it that knows all of them."""
    N = network.layers[0].N or 1

    def elements(one: Operation) -> int:
        return N * (one.C or 0) * (one.H or 0) * (one.W or 0)

    def work(one: Operation) -> Work:
        reads, writes = tuple([elements(network.operations[index]) for index in one.inputs]), elements(one)
        larger = one.kind == "resize" and writes > reads[0]  # which autocast interpolates in 32 bits
        kind = "resize" if larger else _WORK[one.kind]
        return Work(kind=kind, op=one.kind, reads=reads, writes=writes, in_32_bits=larger)

    operations = [replace(one, work=work(one)) if one.kind in _WORK else one for one in network.operations]
    normed = {network.operations[one.inputs[0]].layer for one in network.operations if one.kind == "batchnorm"}
    layers = [replace(layer, norm_follows=index in normed) for index, layer in enumerate(network.layers)]
    return replace(network, layers=tuple(layers), operations=tuple(operations), whole=True)


def classified(net: Wiring, source: int, runtime: Runtime | None = None, mode: Mode | None = None) -> Network:
    """The network with a pooled, flattened end, which leaves the width before it free."""
    pooled = net.resize(source, 1)
    return net.network(net.conv(pooled, 1000, head=True, bias=True), runtime=runtime, mode=mode)


def resnet50(
    widths: Sequence[int] = (64, 128, 256, 512),
    runtime: Runtime | None = None,
    mode: Mode | None = None,
    **setting: Any,
) -> Network:
    """He et al., arXiv:1512.03385; `widths` are those of the 3x3 convolutions of each stage."""
    net = Wiring(**setting)
    return classified(net, _bottlenecks(net, widths[0], [(width, 4 * width) for width in widths]), runtime, mode)


def resnext50(width: int = 4, groups: int = 32, **setting: Any) -> Network:
    """Xie et al., arXiv:1611.05431: `groups` times `width` channels in the first stage."""
    net = Wiring(**setting)
    stages = [(groups * width << stage, 256 << stage) for stage in range(4)]
    return classified(net, _bottlenecks(net, 64, stages, groups))


def _bottlenecks(net: Wiring, stem: int, stages: Sequence[tuple[int, int]], groups: int = 1) -> int:
    """The stem and four stages of blocks, each stage with the widths inside its blocks and between them."""
    x = net.resize(net.unit(net.image, stem, 7, 2), net.size(net.image) // 4)
    for stage, ((inner, K), count) in enumerate(zip(stages, (3, 4, 6, 3), strict=True)):
        for number in range(count):
            stride = 2 if stage and not number else 1
            y = net.norm(net.conv(net.unit(net.unit(x, inner), inner, 3, stride, groups), K))
            x = net.add(y, x if number else net.norm(net.conv(x, K, 1, stride)))
    return x


def mobilenet_v2(multiplier: float = 1.0, **setting: Any) -> Network:
    """Sandler et al., arXiv:1801.04381, its widths only rounded."""
    stages = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
    scaled = [(expand, int(K * multiplier), count, stride, 3) for expand, K, count, stride in stages]
    return _mobile(int(32 * multiplier), scaled, squeezes=False, **setting)


def efficientnet_b0(**setting: Any) -> Network:
    """Tan and Le, arXiv:1905.11946, table 1."""
    stages = (
        (1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5), (6, 192, 4, 2, 5),
        (6, 320, 1, 1, 3),
    )  # fmt: skip
    return _mobile(32, stages, squeezes=True, **setting)


def _mobile(
    stem: int, stages: Sequence[tuple[int, int, int, int, int]], *, squeezes: bool, **setting: Any
) -> Network:  # fmt: skip
    """Inverted blocks by stages: expansion, K, count, stride of the first block, taps."""
    net = Wiring(**setting)
    x = net.unit(net.image, stem, 3, 2)
    for expand, K, count, stride, taps in stages:
        for number in range(count):
            x = _inverted(net, x, K, taps, 1 if number else stride, expand, squeezes=squeezes)
    return classified(net, net.unit(x, 1280))


def _inverted(net: Wiring, x: int, K: int, taps: int, stride: int, expand: int, *, squeezes: bool) -> int:
    C = net.C(x)
    inner = net.unit(x, C * expand) if expand > 1 else x
    y = net.unit(inner, net.C(inner), taps, stride, net.C(inner))
    if squeezes:
        gate = net.norm(net.conv(net.resize(y, 1), max(1, C // 4)))
        y = net.add(y, net.norm(net.conv(gate, net.C(y))))
    y = net.norm(net.conv(y, K))
    return net.add(y, x) if stride == 1 and K == C else y


def unet(widths: Sequence[int] = (64, 128, 256, 512, 1024), **setting: Any) -> Network:
    """Ronneberger et al., arXiv:1505.04597, padded and with a resize before each 1x1 on the way up."""
    net = Wiring(**({"N": 8, "size": 256} | setting))
    x, skips = net.image, []
    for width in widths:
        if skips:
            x = net.resize(x, net.size(x) // 2)
        x = net.unit(net.unit(x, width, 3), width, 3)
        skips.append(x)
    for skip, width in zip(skips[-2::-1], widths[-2::-1], strict=True):
        x = net.conv(net.resize(x, net.size(x) * 2), width)
        x = net.unit(net.unit(net.concat(skip, x), width, 3), width, 3)
    return net.network(net.conv(x, 2, head=True))


def densenet201(growth: int = 32, **setting: Any) -> Network:
    """Huang et al., arXiv:1608.06993."""
    net = Wiring(**setting)
    x = net.resize(net.unit(net.image, 2 * growth, 7, 2), net.size(net.image) // 4)
    for block, count in enumerate((6, 12, 48, 32)):
        if block:
            x = net.conv(net.norm(x), net.C(x) // 2)
            x = net.resize(x, net.size(x) // 2)
        for _ in range(count):
            inner = net.norm(net.conv(net.norm(x), 4 * growth))
            x = net.concat(x, net.conv(inner, growth, 3))
    return classified(net, net.norm(x))
