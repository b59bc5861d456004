"""A zoo of models to audit: specs and ONNX files of four families, a list of them, and the hours that they run.

    python benchmarks/zoo.py FOLDER --models 60

The same number of models is the same zoo on every machine. Families are built as their papers build them, with widths,
dtypes, layouts, batches and GPUs as teams choose them: most of them well, some not. Weights are constants that a graph
fills, so that an ONNX file takes a few kB.
"""

from __future__ import annotations

import argparse
import csv
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ONNX_EVERY = 4  # of the models, one is an ONNX file
_GPUS = ("a100", "a100", "t4", "h100", "a100 t4", "l4 a100")


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """An operation, what it reads, and its sizes by the spec's words."""

    name: str
    op: str = "conv"
    reads: tuple[str, ...]
    sizes: dict[str, int] = field(default_factory=dict)
    channels: int  # that it writes


class Choices:
    """What is chosen for the model of a number, always the same."""

    def __init__(self, number: int) -> None:
        self._random = random.Random(number)

    def of(self, options: Sequence[Any]) -> Any:
        """One of them."""
        return options[int(self._random.random() * len(options))]

    def between(self, least: float, most: float) -> float:
        """A number."""
        return least + (most - least) * self._random.random()


class Net:
    """Operations in the order in which they run; each method returns the name of what it added."""

    def __init__(self, channels: int) -> None:
        self.nodes = [Node(name="image", op="input", reads=(), channels=channels)]

    def _add(self, op: str, reads: Sequence[str], channels: int, **sizes: int) -> str:
        name = f"{'conv' if op == 'depthwise' else op}{len(self.nodes)}"
        self.nodes.append(Node(name=name, op=op, reads=tuple(reads), sizes=sizes, channels=channels))
        return name

    def channels(self, name: str) -> int:
        """That an operation writes."""
        return next(node.channels for node in self.nodes if node.name == name)

    def conv(self, reads: str, K: int, R: int = 3, stride: int = 1) -> str:
        """A convolution that keeps the size of the map, but for its stride."""
        return self._add("conv", [reads], K, kernel_size=R, stride=stride, padding=R // 2)

    def depthwise(self, reads: str, R: int = 3, stride: int = 1) -> str:
        """A filter for each channel."""
        return self._add("depthwise", [reads], self.channels(reads), kernel_size=R, stride=stride, padding=R // 2)

    def up(self, reads: str, K: int) -> str:
        """A transposed convolution that doubles the map."""
        return self._add("conv_transpose", [reads], K, kernel_size=2, stride=2)

    def pool(self, reads: str) -> str:
        """Halves the map."""
        return self._add("pool", [reads], self.channels(reads), kernel_size=2, stride=2)

    def sum(self, *reads: str) -> str:
        """Of maps of equal sizes."""
        return self._add("add", reads, self.channels(reads[0]))

    def concat(self, *reads: str) -> str:
        """One after the other."""
        return self._add("concat", reads, sum(map(self.channels, reads)))


def resnet(pick: Choices) -> Net:
    """He et al., arXiv:1512.03385: basic blocks of two convolutions, or bottlenecks of three."""
    net, width, last = Net(3), pick.of((64, 64, 48, 60, 80, 96)), "image"
    bottleneck, depths = pick.of((False, False, True)), pick.of(((2, 2, 2, 2), (1, 2, 2, 1), (2, 2, 3, 2)))
    last = net.pool(net.conv(last, width, 7, 2))
    for stage, depth in enumerate(depths):
        for block in range(depth):
            stride, inner = 2 if stage and not block else 1, width << stage
            wide = 4 * inner if bottleneck else inner
            if bottleneck:
                body = net.conv(net.conv(net.conv(last, inner, 1), inner, 3, stride), wide, 1)
            else:
                body = net.conv(net.conv(last, inner, 3, stride), wide)
            side = net.conv(last, wide, 1, stride) if stride > 1 or net.channels(last) != wide else last
            last = net.sum(body, side)
    return net


def mobilenet(pick: Choices) -> Net:
    """Sandler et al., arXiv:1801.04381: expand, filter each channel, project; widths times a factor."""
    net, factor, rounded = Net(3), pick.of((0.5, 0.75, 1.0, 1.25, 1.4)), pick.of((8, 8, 1))

    def width(channels: int) -> int:
        return max(rounded, round(channels * factor / rounded) * rounded)

    last = net.conv("image", width(32), 3, 2)
    for channels, depth, stride in ((16, 1, 1), (24, 2, 2), (32, 2, 2), (64, 2, 2), (96, 1, 1), (160, 1, 2)):
        for block in range(depth):
            before, step = last, stride if not block else 1
            last = net.conv(net.depthwise(net.conv(last, 6 * net.channels(last), 1), 3, step), width(channels), 1)
            if step == 1 and net.channels(before) == net.channels(last):
                last = net.sum(last, before)
    net.conv(last, max(1280, width(1280)), 1)
    return net


def unet(pick: Choices) -> Net:
    """Ronneberger et al., arXiv:1505.04597, with padding, so that nothing is cropped."""
    net, width, levels = Net(pick.of((1, 3, 4))), pick.of((64, 32, 48, 24, 30, 20)), pick.of((3, 4))
    last, kept = "image", []
    for level in range(levels):
        last = net.conv(net.conv(last, width << level), width << level)
        kept.append(last)
        last = net.pool(last)
    last = net.conv(net.conv(last, width << levels), width << levels)
    for level in reversed(range(levels)):
        last = net.concat(kept[level], net.up(last, width << level))
        last = net.conv(net.conv(last, width << level), width << level)
    net.conv(last, pick.of((2, 8, 19)), 1)
    return net


def vgg(pick: Choices) -> Net:
    """Simonyan and Zisserman, arXiv:1409.1556: one convolution after the other."""
    net, width, last = Net(3), pick.of((64, 64, 32, 50, 62, 72)), "image"
    for stage, depth in enumerate(pick.of(((1, 1, 2, 2, 2), (2, 2, 2, 2, 2), (2, 2, 3, 3, 3)))):
        for _ in range(depth):
            last = net.conv(last, width * min(8, 1 << stage))
        last = net.pool(last)
    return net


FAMILIES: dict[str, Callable[[Choices], Net]] = {"resnet": resnet, "mobilenet": mobilenet, "unet": unet, "vgg": vgg}


def write(folder: Path, models: int) -> list[Path]:
    """Writes the models, `models.csv` that lists them and `hours.csv`; returns the models' paths."""
    paths, listed, hours = [], [("model", "name", "architecture", "gpu")], [("model", "gpu", "gpu_hours")]
    for number in range(models):
        pick, family = Choices(number), list(FAMILIES)[number % len(FAMILIES)]
        net = FAMILIES[family](pick)
        batch, size, dtype = pick.of((8, 16, 32, 64, 128)), 32 * pick.of(range(4, 9)), pick.of(("fp16", "bf16", "fp32"))
        mode, gpus = pick.of(("training", "inference")), pick.of(_GPUS)
        if "t4" in gpus and dtype == "bf16":
            dtype = "fp16"  # which that GPU has convolutions for
        name = f"{family}-{number:04}"
        as_onnx = (number // len(FAMILIES)) % ONNX_EVERY == 1
        path = folder / family / f"{name}{'.onnx' if as_onnx else '.yaml'}"
        path.parent.mkdir(parents=True, exist_ok=True)
        if as_onnx:
            path.write_bytes(onnx_bytes(net, batch, size, dtype))
        else:
            path.write_text(spec_text(net, mode, batch, size, dtype, pick.of(("NCHW", "NHWC"))), encoding="utf-8")
        paths.append(path)
        # A list's paths are read where convlint runs, which is beside the folder.
        listed.append((f"{folder.name}/{path.relative_to(folder).as_posix()}", name, family, gpus))
        for share, gpu in zip((1.0, 0.25), gpus.split(), strict=False):
            hours.append((name, gpu, str(round(share * 10 ** pick.between(1, 4)))))
    for file, rows in (("models.csv", listed), ("hours.csv", hours)):
        with (folder / file).open("w", newline="", encoding="utf-8") as stream:
            csv.writer(stream, lineterminator="\n").writerows(rows)
    return paths


def spec_text(net: Net, mode: str, batch: int, size: int, dtype: str, layout: str) -> str:
    """The network as a spec."""
    lines = [
        "version: 1", f"mode: {mode}", "runtime: { framework: pytorch, cudnn_benchmark: true, fixed_input_size: true }",
        f"defaults: {{ N: {batch}, dtype: {dtype}, layout: {layout} }}", "layers:",
    ]  # fmt: skip
    for node in net.nodes:
        words = {"name": node.name} | ({} if node.op == "conv" else {"op": node.op})
        if len(node.reads) == 1:
            words["input"] = node.reads[0]
        elif node.reads:
            words["inputs"] = f"[{', '.join(node.reads)}]"
        else:
            words |= {"C": node.channels, "H": size, "W": size}
        if node.op in ("conv", "conv_transpose"):
            words["K"] = node.channels
        words |= {key: value for key, value in node.sizes.items() if (key, value) != ("stride", 1)}
        lines.append(f"  - {{ {', '.join(f'{key}: {value}' for key, value in words.items())} }}")
    return "\n".join(lines) + "\n"


def onnx_bytes(net: Net, batch: int, size: int, dtype: str) -> bytes:
    """The network as an ONNX model, whose weights are constants that the graph fills."""
    import onnx
    from onnx import TensorProto, helper

    kind = {"fp16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16, "fp32": TensorProto.FLOAT}[dtype]
    kept = {node.name: node.channels for node in net.nodes}
    body: list[Any] = []
    for node in net.nodes[1:]:
        reads = list(node.reads)
        if node.op in ("conv", "depthwise", "conv_transpose"):
            body += _convolution(node, kept[reads[0]], kind)
        elif node.op == "pool":
            body.append(helper.make_node("MaxPool", reads, [node.name], kernel_shape=[2, 2], strides=[2, 2]))
        elif node.op == "add":
            body.append(helper.make_node("Add", reads, [node.name]))
        else:
            body.append(helper.make_node("Concat", reads, [node.name], axis=1))
    image = helper.make_tensor_value_info("image", kind, [batch, net.nodes[0].channels, size, size])
    end = net.nodes[-1]
    last = helper.make_tensor_value_info(end.name, kind, [batch, end.channels, "height", "width"])
    graph = helper.make_graph(body, "net", [image], [last])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString(deterministic=True))


def _convolution(node: Node, channels: int, kind: int) -> list[Any]:
    from onnx import TensorProto, helper

    R, groups = node.sizes["kernel_size"], channels if node.op == "depthwise" else 1
    transposed = node.op == "conv_transpose"
    shape = [channels, node.channels, R, R] if transposed else [node.channels, channels // groups, R, R]
    zero = helper.make_tensor("value", kind, [1], [0.0])
    sizes = helper.make_tensor("value", TensorProto.INT64, [4], shape)
    attributes: dict[str, Any] = {
        "kernel_shape": [R, R], "strides": [node.sizes["stride"]] * 2, "pads": [node.sizes.get("padding", 0)] * 4,
        "group": groups,
    }  # fmt: skip
    return [
        helper.make_node("Constant", [], [f"{node.name}.shape"], value=sizes),
        helper.make_node("ConstantOfShape", [f"{node.name}.shape"], [f"{node.name}.weight"], value=zero),
        helper.make_node(
            "ConvTranspose" if transposed else "Conv", [node.reads[0], f"{node.name}.weight"], [node.name],
            name=node.name, **attributes,
        ),
    ]  # fmt: skip


def main() -> None:
    """Writes a zoo."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--models", type=int, default=60)
    arguments = parser.parse_args()
    paths = write(arguments.folder, arguments.models)
    print(f"{len(paths)} models, models.csv and hours.csv in {arguments.folder}")


if __name__ == "__main__":
    main()
