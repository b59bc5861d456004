"""Random networks for `laws.py`: each is described once and written as a spec, a PyTorch module or an ONNX file.

A seed gives the same network on every machine. Four families follow what real networks do: dense chains, grouped and
depthwise stages, several heads on one backbone, concatenations and residual sums.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

FAMILIES = ("dense", "grouped", "depthwise", "heads", "joined")
GPUS = (("k80", "m40"), ("v100",), ("t4",), ("a100",), ("h100",))
MODES = ("training", "inference")
WIDTHS = (16, 20, 24, 30, 32, 44, 48, 60, 62, 64, 65, 80, 90, 96, 100, 108, 124, 128, 130, 160, 192, 250, 256, 260, 384,
          464, 500, 512, 520, 728, 1000, 1024)  # fmt: skip
HEADS = (1, 2, 3, 10, 19, 21, 36, 75, 80, 91, 255, 1000)
WIDTH_RULES = ("CL102", "CL103", "CL104", "CL105", "CL201", "CL203", "CL205", "CL601")
SILENCED = ("CL102", "CL103", "CL106", "CL201", "CL203", "CL401", "CL402", "CL404")


@dataclass
class Node:
    """One operation: what it reads, the channels and the size that it hands on, and what a convolution needs."""

    name: str
    op: str  # one that specs have
    inputs: tuple[str, ...]
    C: int  # channels handed on
    size: int  # height and width handed on
    kernel: int = 1
    stride: int = 1
    padding: int = 0
    groups: int = 1
    bias: bool = True
    other: str = ""  # of the first part of a split: the second
    says: dict[str, str] = field(default_factory=dict)  # more of its keys in a spec
    comment: str = ""


@dataclass
class Net:
    """One random network with its target, mode and settings. `dtype` and `layout` are those of all its layers."""

    seed: int
    family: str
    gpu: str
    mode: str
    N: int
    dtype: str
    layout: str | None
    runtime: dict[str, str]
    nodes: list[Node] = field(default_factory=list)
    config: str = ""  # the text of a `convlint.toml` beside it

    @property
    def convolutions(self) -> list[Node]:
        """Its convolutions, in order."""
        return [node for node in self.nodes if node.op == "conv"]


def random_net(seed: int, *, plain: bool = False) -> Net:
    """The network of this seed; a `plain` one says the same in every format, and silences nothing."""
    rng = random.Random(f"laws {seed}")
    family, mode = FAMILIES[seed % 5], MODES[seed // 5 % 2]
    gpu = rng.choice(GPUS[seed // 10 % 5])
    net = Net(
        seed=seed, family=family, gpu=gpu, mode=mode, N=rng.choice((1, 2, 4, 8, 16, 32, 50, 64, 100, 128)),
        dtype=rng.choice(("fp16", "fp16", "bf16", "fp32", "fp32", "tf32")),
        layout=rng.choice(("NCHW", "NCHW", "NHWC", "NHWC", None if not plain else "NCHW")),
        runtime=_runtime(rng, mode, plain=plain),
    )  # fmt: skip
    _Builder(net, rng).build()
    if not plain:
        _own_settings(net, rng)
        _silence(net, rng)
    return net


def _runtime(rng: random.Random, mode: str, *, plain: bool) -> dict[str, str]:
    framework = "pytorch"
    if not plain:
        framework = rng.choice(("", "pytorch", "pytorch", "pytorch", "pytorch", "onnxruntime", "tensorflow", "jax"))
    if framework == "onnxruntime" and mode == "training":
        framework = "pytorch"
    found = {"framework": framework} if framework else {}
    if framework == "pytorch" and rng.random() < 0.6:
        found |= {"cudnn_benchmark": rng.choice(("true", "false")), "fixed_input_size": "true"}
    if rng.random() < 0.4:
        found["tf32"] = rng.choice(("true", "false"))
    if framework == "pytorch" and rng.random() < 0.3:
        found["mixed_precision"] = "true"
    return found


class _Builder:
    """Grows a network, one operation after the other."""

    def __init__(self, net: Net, rng: random.Random) -> None:
        self.net, self.rng, self.count = net, rng, 0

    def build(self) -> None:
        """The image, then what the family is made of, then a head."""
        rng = self.rng
        size = rng.choice((14, 28, 32, 56, 56, 112, 128, 224))
        C = rng.choice((1, 3, 3, 3, 3, 4, 16, 64))
        x = self.node("input", (), C=C, size=size)
        if C <= 4:
            x = self.unit(x, rng.choice((16, 24, 32, 60, 64, 64)), rng.choice((3, 3, 7)), stride=rng.choice((1, 2, 2)))
        blocks = random.Random(f"blocks {self.net.seed}")  # of their own, so that the other networks stay as they are
        if blocks.random() < 0.3:
            x = getattr(self, blocks.choice(("_gated", "_halved", "_attentive")))(x)
        elif blocks.random() < 0.2:
            x = self._shuffled(x)
        x = getattr(self, f"_{self.net.family}")(x)
        if self.net.family != "heads" and rng.random() < 0.5:
            if rng.random() < 0.5:
                self.conv(x, rng.choice(HEADS), 1)
            else:
                self.node("linear", (x.name,), C=rng.choice(HEADS), size=1)

    def _dense(self, x: Node) -> Node:
        for _ in range(self.rng.randrange(2, 9)):
            x = self.unit(x, self.width(), self.rng.choice((1, 3, 3, 5)), stride=self.stride(x))
        return x

    def _grouped(self, x: Node) -> Node:
        for _ in range(self.rng.randrange(1, 4)):
            groups = self.rng.choice((2, 4, 6, 8, 10, 16, 32))
            x = self.unit(x, groups * self.rng.choice((2, 4, 5, 8, 10, 16, 18, 24)), 1)
            x = self.unit(
                x, groups * self.rng.choice((2, 4, 5, 8, 12, 16, 18)), 3, stride=self.stride(x), groups=groups
            )
            x = self.unit(x, self.width(), 1)
        return x

    def _depthwise(self, x: Node) -> Node:
        for _ in range(self.rng.randrange(1, 5)):
            wide = self.unit(x, self.width(), 1)
            kernel = self.rng.choice((3, 3, 5, 7))
            wide = self.unit(wide, wide.C, kernel, stride=self.stride(x), groups=wide.C)
            y = self.conv(wide, self.rng.choice((x.C, self.width())), 1)
            x = self.node("add", (x.name, y.name), C=y.C, size=y.size) if (y.C, y.size) == (x.C, x.size) else y
        return x

    def _heads(self, x: Node) -> Node:
        x = self._dense(x) if self.rng.random() < 0.5 else self._joined(x)
        for _ in range(self.rng.randrange(1, 4)):
            y = x
            for _ in range(self.rng.randrange(3)):
                y = self.unit(y, self.rng.choice((x.C, self.width())), 3)
            self.conv(y, self.rng.choice(HEADS), self.rng.choice((1, 3)))
        return x

    def _joined(self, x: Node) -> Node:
        for _ in range(self.rng.randrange(1, 5)):
            if self.rng.random() < 0.6:  # a residual block
                K = self.rng.choice((x.C, self.width()))
                y = self.conv(self.unit(x, self.width(), self.rng.choice((1, 3))), K, 3)
                short = x if x.C == K else self.conv(x, K, 1)
                x = self.relu(self.node("add", (y.name, short.name), C=K, size=x.size))
                continue
            y = self.unit(x, self.width(), self.rng.choice((1, 3)))
            pair = (x, y) if self.rng.random() < 0.5 else (y, self.unit(x, self.width(), 3))
            x = self.unit(self.joined(*pair), self.width(), 1)
        return x

    def _gated(self, x: Node) -> Node:
        """A gate of two halves, as NAFNet's."""
        half = self.width()
        a, b = self.halves(self.conv(x, 2 * half, 1))
        gate = self.node("mul", (a.name, b.name), C=half, size=x.size)
        return self.node("add", (x.name, self.conv(gate, x.C, 1).name), C=x.C, size=x.size)

    def _halved(self, x: Node) -> Node:
        """A block that adds to half of its channels, as YOLO's."""
        half = self.width()
        a, b = self.halves(self.conv(x, 2 * half, 1))
        y = self.conv(self.unit(b, self.width(), 3), half, 3)
        y = self.node("add", (b.name, y.name), C=half, size=x.size)
        return self.conv(self.joined(a, b, y), x.C, 1)

    def _attentive(self, x: Node) -> Node:
        """Attention over positions, from the mean of the channels."""
        weight = self.conv(self.node("channel_pool", (x.name,), C=1, size=x.size), 1, 7)
        weight = self.node("sigmoid", (weight.name,), C=1, size=x.size)
        return self.node("mul", (x.name, weight.name), C=x.C, size=x.size)

    def _shuffled(self, x: Node) -> Node:
        """Two halves whose channels take turns, of which one goes on, as ShuffleNet's."""
        half = self.width()
        joined = self.joined(self.unit(x, half, 1), self.unit(x, half, 3))
        a, b = self.halves(self.node("channel_shuffle", (joined.name,), C=joined.C, size=x.size))
        return self.conv(self.joined(a, self.unit(b, half, 3)), x.C, 1)

    def joined(self, *parts: Node) -> Node:
        """Their concatenation."""
        names = tuple(part.name for part in parts)
        return self.node("concat", names, C=sum(part.C for part in parts), size=parts[0].size)

    def halves(self, x: Node) -> tuple[Node, Node]:
        """Both halves of the channels."""
        first, second = (self.node("channel_split", (x.name,), C=x.C // 2, size=x.size) for _ in range(2))
        first.other = second.name
        return first, second

    def width(self) -> int:
        """A width as people choose them: most are good ones."""
        return self.rng.choice(WIDTHS)

    def stride(self, x: Node) -> int:
        """2 now and then, as long as there is something left."""
        return 2 if x.size >= 14 and self.rng.random() < 0.25 else 1

    def unit(self, x: Node, K: int, kernel: int, stride: int = 1, groups: int = 1) -> Node:
        """A convolution, most often with a norm, and an activation."""
        y = self.conv(x, K, kernel, stride, groups)
        if self.rng.random() < 0.5:
            y = self.node("batchnorm", (y.name,), C=y.C, size=y.size)
        return self.relu(y) if self.rng.random() < 0.7 else y

    def relu(self, x: Node) -> Node:
        """An activation."""
        return self.node("relu", (x.name,), C=x.C, size=x.size)

    def conv(self, x: Node, K: int, kernel: int, stride: int = 1, groups: int = 1) -> Node:
        """A convolution that keeps the size, but for its stride."""
        if x.C % groups or K % groups:
            groups = 1
        y = self.node("conv", (x.name,), C=K, size=(x.size - 1) // stride + 1)
        y.kernel, y.stride, y.padding, y.groups, y.bias = kernel, stride, kernel // 2, groups, self.rng.random() < 0.5
        return y

    def node(self, op: str, inputs: tuple[str, ...], *, C: int, size: int) -> Node:
        """The next operation."""
        self.count += 1
        made = Node(name=f"{op}{self.count}", op=op, inputs=inputs, C=C, size=size)
        self.net.nodes.append(made)
        return made


def _own_settings(net: Net, rng: random.Random) -> None:
    """Gives a few layers a dtype or a layout of their own."""
    if rng.random() < 0.2:
        for node in rng.sample(net.convolutions, min(2, len(net.convolutions))):
            key = rng.choice(("dtype", "layout"))
            node.says[key] = rng.choice(("fp16", "fp32", "bf16") if key == "dtype" else ("NCHW", "NHWC"))


def _silence(net: Net, rng: random.Random) -> None:
    """Silences rules in some: by comments, by the config for all layers, or for one of them."""
    kind = rng.random()
    if kind < 0.1:
        for node in rng.sample(net.convolutions, min(2, len(net.convolutions))):
            node.comment = f"convlint: ignore[{rng.choice(SILENCED)}] -- a reason"
    elif kind < 0.16:
        rng.choice(net.convolutions).comment = f"convlint: ignore[{', '.join(WIDTH_RULES)}] -- a reason"
    elif kind < 0.22:
        net.config = f'ignore = ["{rng.choice(SILENCED)}"]\n'
    elif kind < 0.28:
        name = rng.choice(net.convolutions).name
        net.config = (
            f'[[per-layer-ignores]]\nlayers = "{name}"\nrules = ["{rng.choice(SILENCED)}"]\nreason = "a reason"\n'
        )


def spec_text(net: Net, *, means: bool = False) -> str:
    """The network as a spec; `means`: its linear layers read the mean of all positions, as in the other formats."""
    defaults = {"N": str(net.N), "dtype": net.dtype} | ({"layout": net.layout} if net.layout else {})
    lines = ["version: 1", f"target: [{net.gpu}]", f"mode: {net.mode}"]
    lines += [f"runtime: {_flow(net.runtime)}"] if net.runtime else []
    lines += [f"defaults: {_flow(defaults)}", "layers:"]
    for node in net.nodes:
        if means and node.op == "linear":
            lines.append(f"  - {{ name: {node.name}_mean, op: global_pool, input: {node.inputs[0]} }}")
            node = replace(node, inputs=(f"{node.name}_mean",))
        lines.append(f"  - {_flow(_item(node))}" + (f"  # {node.comment}" if node.comment else ""))
    return "\n".join(lines) + "\n"


def _item(node: Node) -> dict[str, str]:
    item = {"name": node.name}
    if node.op != "conv":
        item["op"] = node.op
    if node.op == "input":
        return item | {"C": str(node.C), "H": str(node.size), "W": str(node.size)}
    item |= {"input": node.inputs[0]} if len(node.inputs) == 1 else {"inputs": f"[{', '.join(node.inputs)}]"}
    if node.op == "linear":
        return item | {"C": str(node.C), "H": "1", "W": "1"}
    if node.op == "conv":
        item |= {"K": str(node.C), "kernel_size": str(node.kernel), "padding": str(node.padding)}
        item |= {"stride": str(node.stride)} if node.stride > 1 else {}
        item |= {"groups": str(node.groups)} if node.groups > 1 else {}
        item |= {"bias": str(node.bias).lower()} | node.says
    return item


def _flow(pairs: Mapping[str, str]) -> str:
    return "{ " + ", ".join(f"{key}: {value}" for key, value in pairs.items()) + " }"


def torch_source(net: Net) -> str:
    """The network as a module of PyTorch, class `Net`."""
    channels = {node.name: node.C for node in net.nodes}
    made, runs = [], []
    for node in net.nodes:
        reads = ", ".join(node.inputs)
        C = channels[node.inputs[0]] if node.inputs else 0
        if node.op == "conv":
            sizes = f"{C}, {node.C}, {node.kernel}, {node.stride}, {node.padding}"
            made.append(f"self.{node.name} = nn.Conv2d({sizes}, groups={node.groups}, bias={node.bias})")
            runs.append(f"{node.name} = self.{node.name}({reads})")
        elif node.op == "batchnorm":
            made.append(f"self.{node.name} = nn.BatchNorm2d({C})")
            runs.append(f"{node.name} = self.{node.name}({reads})")
        elif node.op == "linear":
            made.append(f"self.{node.name} = nn.Linear({C}, {node.C})")
            runs.append(f"{node.name} = self.{node.name}({reads}.mean((2, 3)))")
        elif node.op in ("relu", "sigmoid"):
            runs.append(f"{node.name} = torch.{node.op}({reads})")
        elif node.op == "mul":
            runs.append(f"{node.name} = {' * '.join(node.inputs)}")
        elif node.op == "channel_pool":
            runs.append(f"{node.name} = {reads}.mean(1, keepdim=True)")
        elif node.op == "channel_shuffle":
            parts = f"{reads}.view({reads}.shape[0], 2, -1, *{reads}.shape[2:])"
            runs.append(f"{node.name} = {parts}.transpose(1, 2).reshape({reads}.shape)")
        elif node.other:
            runs.append(f"{node.name}, {node.other} = {reads}.chunk(2, 1)")
        elif node.op == "add":
            runs.append(f"{node.name} = {' + '.join(node.inputs)}")
        elif node.op == "concat":
            runs.append(f"{node.name} = torch.cat([{reads}], 1)")
    image, results = net.nodes[0].name, ", ".join(_results(net.nodes))
    body = "\n        ".join(made), "\n        ".join(runs)
    return (
        "import torch\nfrom torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self):\n"
        f"        super().__init__()\n        {body[0]}\n\n    def forward(self, {image}):\n        {body[1]}\n"
        f"        return {results}\n"
    )


def write_onnx(net: Net, path: Path) -> None:
    """Writes the network as an ONNX file, whose tensors are fp32 zeros."""
    from onnx import TensorProto, helper, save

    float_, channels = TensorProto.FLOAT, {node.name: node.C for node in net.nodes}
    weights, nodes = [], []

    def weight(name: str, *shape: int) -> str:
        count = 1
        for extent in shape:
            count *= extent
        weights.append(helper.make_tensor(name, float_, shape, bytes(4 * count), raw=True))
        return name

    for node in net.nodes[1:]:
        C, reads, name = channels[node.inputs[0]], list(node.inputs), node.name
        if node.op == "conv":
            reads.append(weight(f"{name}.weight", node.C, C // node.groups, node.kernel, node.kernel))
            reads += [weight(f"{name}.bias", node.C)] if node.bias else []
            more = {
                "kernel_shape": [node.kernel] * 2, "strides": [node.stride] * 2, "pads": [node.padding] * 4,
                "group": node.groups,
            }  # fmt: skip
            nodes.append(helper.make_node("Conv", reads, [name], name=name, **more))
        elif node.op == "batchnorm":
            reads += [weight(f"{name}.{part}", C) for part in ("scale", "shift", "mean", "var")]
            nodes.append(helper.make_node("BatchNormalization", reads, [name], name=name))
        elif node.op == "linear":
            nodes.append(helper.make_node("GlobalAveragePool", reads, [f"{name}.mean"], name=f"{name}.pool"))
            nodes.append(helper.make_node("Flatten", [f"{name}.mean"], [f"{name}.flat"], name=f"{name}.flatten"))
            reads = [f"{name}.flat", weight(f"{name}.weight", node.C, C), weight(f"{name}.bias", node.C)]
            nodes.append(helper.make_node("Gemm", reads, [name], name=name, transB=1))
        elif node.op == "channel_pool":
            nodes.append(helper.make_node("ReduceMean", reads, [name], name=name, axes=[1]))
        elif node.op == "channel_shuffle":
            steps = [f"{name}.{step}" for step in ("parts", "turned")]
            sizes = ((net.N, 2, C // 2, node.size, node.size), (net.N, C, node.size, node.size))
            stated = [f"{name}.{len(each)}" for each in sizes]
            int64 = TensorProto.INT64
            weights += [
                helper.make_tensor(of, int64, (len(each),), each) for of, each in zip(stated, sizes, strict=True)
            ]
            nodes.append(helper.make_node("Reshape", [*reads, stated[0]], steps[:1], name=steps[0]))
            nodes.append(helper.make_node("Transpose", steps[:1], steps[1:], name=steps[1], perm=[0, 2, 1, 3, 4]))
            nodes.append(helper.make_node("Reshape", [steps[1], stated[1]], [name], name=name))
        elif node.op == "channel_split":
            if node.other:
                nodes.append(helper.make_node("Split", reads, [name, node.other], name=name, axis=1))
        else:
            axis = {"axis": 1} if node.op == "concat" else {}
            nodes.append(helper.make_node(node.op.capitalize(), reads, [name], name=name, **axis))
    image = net.nodes[0]
    shape = [net.N, image.C, image.size, image.size]
    outputs = [helper.make_tensor_value_info(name, float_, None) for name in _results(net.nodes)]
    given = [helper.make_tensor_value_info(image.name, float_, shape)]
    graph = helper.make_graph(nodes, "net", given, outputs, weights)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)


def _results(nodes: Sequence[Node]) -> list[str]:
    """What no operation reads."""
    read = {name for node in nodes for name in node.inputs}
    return [node.name for node in nodes if node.name not in read]
