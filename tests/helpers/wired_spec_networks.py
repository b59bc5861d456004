"""Networks with operations, as readers of models make them, built by hand or at random."""

from random import Random
from typing import Any

from msgspec.structs import replace

from convlint.model.layer import ConvLayer, Dtype, with_output
from convlint.model.network import Edge, Network, Operation, OperationKind

AXES = ("W", "HW", "DHW")
Sizes = tuple[int | None, ...]


class Wired:
    """A network written down step by step; every method returns the number of its operation.

    Edges, and which layers batch normalisation alone reads, follow from the steps.
    """

    def __init__(self, dims: int = 2) -> None:
        self.dims = dims
        self.layers: list[ConvLayer] = []
        self.operations: list[Operation] = []
        self.producers: list[tuple[int, ...]] = []
        self.weights: dict[int, int] = {}  # layer -> the first with the same weights
        self.told: dict[int, tuple[bool | None, str]] = {}  # of a layer's edge: copied, and by what

    def step(self, kind: OperationKind, *inputs: int, C: int | None = None, sizes: Sizes = (), **more: Any) -> int:
        """An operation; sizes that are not given are those of the first input."""
        first = self.operations[inputs[0]] if inputs else None
        if not sizes:
            sizes = (None,) * self.dims if first is None else self.sizes(inputs[0])
        more.setdefault("dims", len(sizes))
        more.setdefault("name", f"op{len(self.operations)}")
        axes = {"D": 1, "H": 1} | dict(zip(AXES[len(sizes) - 1], sizes, strict=True))
        self.operations.append(Operation(kind=kind, inputs=inputs, C=C, **(axes | more)))
        self.producers.append(tuple(sorted({each for index in inputs for each in self.producers[index]}))[-64:])
        return len(self.operations) - 1

    def same(self, kind: OperationKind, *inputs: int, **more: Any) -> int:
        """An operation that hands on the channels of its first input."""
        return self.step(kind, *inputs, C=self.operations[inputs[0]].C, **more)

    def sizes(self, number: int) -> Sizes:
        return tuple(getattr(self.operations[number], axis) for axis in AXES[self.operations[number].dims - 1])

    def conv(self, source: int | None, K: int, **more: Any) -> int:
        """A convolution of 3 taps, which keeps the sizes unless told otherwise."""
        fields: dict[str, Any] = {"R": 3, "S": 3, "PadH": 1, "PadH_end": 1, "PadW": 1, "PadW_end": 1}
        if self.dims == 3:
            fields |= {"T": 3, "PadD": 1, "PadD_end": 1}
        elif self.dims == 1:
            fields |= {"H": 1, "R": 1, "PadH": 0, "PadH_end": 0}
        if source is not None:
            fields |= {"C": self.operations[source].C}
            fields |= dict(zip(AXES[self.dims - 1], self.sizes(source), strict=True))
        fields |= {"N": 8, "dtype": Dtype.fp16, "name": f"conv{len(self.layers)}", "dims": self.dims} | more
        weights = fields.pop("weights", None)
        self.layers.append(with_output(ConvLayer(K=K, **fields)))
        if weights is not None:
            self.weights[len(self.layers) - 1] = weights
        return self._run(len(self.layers) - 1, source)

    def again(self, layer: int, source: int) -> int:
        """The same layer on another tensor."""
        self.layers[layer] = replace(self.layers[layer], calls=self.layers[layer].calls + 1)
        return self._run(layer, source)

    def _run(self, layer: int, source: int | None) -> int:
        own = self.layers[layer]
        written = {"Z": own.Z, "P": own.P, "Q": own.Q}
        sizes = tuple(written[axis] for axis in ("Q", "PQ", "ZPQ")[self.dims - 1])
        inputs = () if source is None else (source,)
        number = self.step("conv", *inputs, C=own.K, sizes=sizes, layer=layer, weights=self.weights.get(layer))
        self.producers[number] = (layer,)
        return number

    def hand_out(self, *numbers: int) -> None:
        for number in numbers:
            self.operations[number] = replace(self.operations[number], output=True)

    def network(self, **more: Any) -> Network:
        """What nothing reads is handed out; norms and edges are those of a traced module."""
        readers: dict[int, list[str]] = {}
        for operation in self.operations:
            for index in operation.inputs:
                readers.setdefault(index, []).append(operation.kind)
        operations = [
            operation if number in readers else replace(operation, output=True)
            for number, operation in enumerate(self.operations)
        ]
        layers, edges = [], []
        for index, layer in enumerate(self.layers):
            runs = [number for number, operation in enumerate(operations) if operation.layer == index]
            norm = all(readers.get(number) == ["batchnorm"] for number in runs)
            layers.append(replace(layer, norm_follows=norm) if layer.norm_follows is None else layer)
            sources = [source for number in runs for source in operations[number].inputs]
            found = dict.fromkeys(each for source in sources for each in self.producers[source] if each != index)
            if found:
                copied, changed_at = self.told.get(index, (None, ""))
                edges.append(
                    Edge(consumer=index, producers=tuple(found)[:64], source="x", C=layer.C, D=layer.D, H=layer.H,
                         W=layer.W, copied=copied, changed_at=changed_at)
                )  # fmt: skip
        return Network(path="x", layers=tuple(layers), edges=tuple(edges), operations=tuple(operations), **more)


def random_network(seed: int) -> Network:
    """Any network: branches, shared layers, shuffles, unknown sizes, outputs that are read on, layouts that differ."""
    random = Random(seed)
    net = Wired(dims=random.choice([1, 2, 2, 2, 3]))
    size = random.choice([8, 16, None])
    image = net.step("input", C=random.choice([3, 4, None]), sizes=(size,) * net.dims)
    net.conv(image, 24, first=True, C=net.operations[image].C or 3)
    for _ in range(random.randint(3, 30)):
        _grow(net, random)
    for _ in range(random.choice([0, 0, 1, 2])):
        net.hand_out(random.randrange(1, len(net.operations)))
    return net.network(mode=random.choice(["training", "inference", None]))


def _grow(net: Wired, random: Random) -> None:
    number = random.randrange(1, len(net.operations)) if random.random() < 0.4 else len(net.operations) - 1
    source, sizes = net.operations[number], net.sizes(number)
    alike = [
        index for index, other in enumerate(net.operations)
        if (other.C, net.sizes(index)) == (source.C, sizes) and other.dims == source.dims
    ]  # fmt: skip
    C = source.C
    match random.choice([0, 0, 0, 1, 1, 2, 3, 3, 4, 5, 6, 7, 8, 9, 10, random.choice([4, 5, 6, 11, 12])]):
        case 0 if C is not None:
            groups = random.choice([1, 1, 1, C, 2 if C % 2 == 0 else 1])
            K = C if groups == C else random.choice([24, 24, 40, 48])
            layout = random.choice(["NHWC", "NHWC", "NCHW", "auto"])
            net.conv(number, K, groups=groups, layout=layout, bias=random.choice([True, False, None]))
            net.told[len(net.layers) - 1] = (random.choice([False, False, None]), "")
        case 2 | 3:
            layer = random.choice(net.layers)
            own = tuple({"D": layer.D, "H": layer.H, "W": layer.W}[axis] for axis in AXES[net.dims - 1])
            if (layer.C, own) == (C, sizes):
                net.again(net.layers.index(layer), number)
            elif layer.C == C:
                index = net.layers.index(layer)
                net.conv(number, layer.K or 0, groups=layer.groups, weights=net.weights.get(index, index))
        case 4:
            net.same("batchnorm", number)
        case 5:
            groups = random.choice([1, 4])
            net.same("identity", number, groups=groups if C is not None and C % groups == 0 else 1)
        case 6:
            net.same("resize", number, sizes=tuple(random.choice([1, 4, 8, None]) for _ in sizes))
        case 1 | 7 | 8:
            net.same("add", number, *random.choices(alike, k=random.randint(1, 2)))
        case 9:
            others = random.choices(alike, k=random.randint(1, 2))
            net.step("concat", number, *others, C=None if C is None else C * (len(others) + 1))
        case 10 if net.dims == 2 and C is not None and C % 4 == 0 and None not in sizes:
            net.step("pixel_shuffle", number, C=C // 4, factor=2, sizes=tuple((each or 0) * 2 for each in sizes))
        case 11:
            shape = random.choice([sizes, (None,) * net.dims, (8,) * net.dims])
            net.step("reshape", number, C=random.choice([24, C, None]), sizes=shape, where="view at net.py:3")
        case _:
            net.same(random.choice(["identity", "batchnorm"]), number, random.choice(alike))
