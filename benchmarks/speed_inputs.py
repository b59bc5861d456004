"""What the speed comparisons work on: specs of any length, a safetensors file, and the scripts of the peers."""

from __future__ import annotations

import json
import math
from pathlib import Path

# (C, H = W, K, filter, stride, padding): the shapes of ResNet-50, over and over, as large networks repeat theirs
SHAPES = (
    (64, 56, 64, 1, 1, 0), (64, 56, 64, 3, 1, 1), (64, 56, 256, 1, 1, 0), (256, 56, 64, 1, 1, 0),
    (256, 56, 128, 1, 1, 0), (128, 56, 128, 3, 2, 1), (128, 28, 512, 1, 1, 0), (256, 56, 512, 1, 2, 0),
    (512, 28, 128, 1, 1, 0), (128, 28, 128, 3, 1, 1), (512, 28, 256, 1, 1, 0), (256, 28, 256, 3, 2, 1),
    (256, 14, 1024, 1, 1, 0), (512, 28, 1024, 1, 2, 0), (1024, 14, 256, 1, 1, 0), (256, 14, 256, 3, 1, 1),
    (1024, 14, 512, 1, 1, 0), (512, 14, 512, 3, 2, 1), (512, 7, 2048, 1, 1, 0), (2048, 7, 512, 1, 1, 0),
)  # fmt: skip
HEAD = "version: 1\ntarget: [a100]\ndefaults: { N: 256, dtype: fp16, layout: NHWC }\nlayers:\n"
FLAWED_HEAD = "version: 1\ntarget: [a100]\nmode: training\ndefaults: { N: 32, dtype: fp16 }\nlayers:\n"
# (R = S, layout, the rest): beside their channels, each is flawed in a way of its own
FLAWS = (
    (3, "NHWC", "padding: 1"), (1, "NCHW", "padding: 0"), (1, "NHWC", "stride: 2"), (3, "NHWC", "padding: 4"),
    (5, "NHWC", "padding: [1, 2, 1, 2]"), (3, "NCHW", "padding: 7, dilation: 8"), (3, "NHWC", "padding: 1, stride: 2"),
    (7, "NCHW", "padding: 3, stride: 2"),
)  # fmt: skip


def spec_text(layers: int, *, distinct: bool = False) -> str:
    """A spec of `layers` layers without flaws: ResNet-50's shapes repeated, or every layer another."""
    lines = []
    for i in range(layers):
        if distinct:
            C, H, K, R, stride, pad = 64 * (1 + i % 31), 7 + i % 50, 64 * (1 + i % 29), 3, 1 + i // 5000 % 2, 1
        else:
            C, H, K, R, stride, pad = SHAPES[i % len(SHAPES)]
        sizes = f"C: {C}, H: {H}, W: {H}, K: {K}, R: {R}, S: {R}, stride: {stride}, padding: {pad}"
        lines.append(f"  - {{ name: layer{i}, {sizes} }}\n")
    return HEAD + "".join(lines)


def flawed_text(layers: int) -> str:
    """A spec of `layers` layers of which no two have equal sizes, with misaligned channels in all but 2 of 35.

    The periods of C, K and H have no common factor, so that their triples repeat after more than 190,000 layers.
    """
    lines, sizes = [], set()
    for i in range(layers):
        R, layout, rest = FLAWS[i % len(FLAWS)]
        C, K, H = 8 * (7 + i % 61) + (i + 6) % 7, 8 * (12 + i % 59) + (0, 1, 0, 3, 4)[i % 5], 9 + i % 53
        sizes.add((C, K, H))
        shape = f"C: {C}, H: {H}, W: {H}, K: {K}, R: {R}, S: {R}"
        lines.append(f"  - {{ name: layer{i}, {shape}, layout: {layout}, {rest} }}\n")
    assert len(sizes) == layers, "two layers have the same sizes"
    return FLAWED_HEAD + "".join(lines)


def write_safetensors(path: Path, layers: int) -> None:
    """A safetensors file of `layers` convolutions with a weight and a bias each; its data takes no room on the disk."""
    tensors = {}
    end = 0
    for i in range(layers):
        for kind, shape in (("weight", [256, 256, 3, 3]), ("bias", [256])):
            begin, end = end, end + 2 * math.prod(shape)
            tensors[f"layer{i}.{kind}"] = {"dtype": "F16", "shape": shape, "data_offsets": [begin, end]}
    header = json.dumps(tensors).encode()
    with path.open("wb") as stream:
        stream.write(len(header).to_bytes(8, "little") + header)
        stream.truncate(8 + len(header) + end)


LOAD_YAML = "import sys, yaml; yaml.load(open(sys.argv[1]), Loader=yaml.CSafeLoader)"
ONNX_CHILD = """
import sys
from convlint.readers import ReadOptions
from convlint.readers.inputs import file_input
from convlint.readers.reading import Reading
with Reading() as reading:
    assert reading.read(file_input(sys.argv[1]), ReadOptions(batch=256))[0] is not None
"""
ONNX_HERE = """
import sys
from convlint.readers import ReadOptions
from convlint.readers.onnx import reader
assert reader.read(sys.argv[1], ReadOptions(batch=256))[0] is not None
"""
ONNX_ALONE = """
import sys, onnx
model = onnx.load(sys.argv[1], load_external_data=False)
for value in model.graph.input:
    shape = value.type.tensor_type.shape
    if len(shape.dim) == 4:
        shape.dim[0].dim_value = 256
onnx.shape_inference.infer_shapes(model, data_prop=True)
"""
TORCH_ALONE = """
import torch
from transformers import ResNetConfig, ResNetModel
with torch.device("meta"):
    model = ResNetModel(ResNetConfig()).eval()
    model(torch.empty(256, 3, 224, 224))
"""
TORCH_MODULE = """
from transformers import ResNetConfig, ResNetModel
def build():
    return ResNetModel(ResNetConfig())
"""
RESNETS = """
import torch
from torch import nn


def norm(C, K, R, stride=1, groups=1):
    return nn.Sequential(nn.Conv2d(C, K, R, stride, R // 2, groups=groups, bias=False), nn.BatchNorm2d(K))


class Block(nn.Module):
    def __init__(self, C, width, stride):
        super().__init__()
        self.a, self.b, self.c = norm(C, width, 1), norm(width, width, 3, stride), norm(width, 4 * width, 1)
        self.side = norm(C, 4 * width, 1, stride) if stride > 1 or C != 4 * width else nn.Identity()

    def forward(self, x):
        return torch.relu(self.c(torch.relu(self.b(torch.relu(self.a(x))))) + self.side(x))


class ResNet(nn.Module):
    def __init__(self, depths=(3, 4, 6, 3), width=64):
        super().__init__()
        layers, C = [norm(3, width, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], width
        for stage, depth in enumerate(depths):
            for i in range(depth):
                layers.append(Block(C, width << stage, 2 if stage and not i else 1))
                C = 4 * width << stage
        self.body, self.head = nn.Sequential(*layers), nn.Linear(C, 1000)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))
"""
RESNETS_ALONE = """
import sys
import torch
from resnets import ResNet
with torch.device("meta"):
    for width in map(int, sys.argv[1:]):
        ResNet(width=width).eval()(torch.empty(64, 3, 224, 224))
"""
HEADER_ALONE = """
import json, sys
with open(sys.argv[1], "rb") as file:
    json.loads(file.read(int.from_bytes(file.read(8), "little")))
"""


def model_entry(name: str, width: int) -> str:
    """One model of a project's config, each with other layers."""
    return (
        f'[[tool.convlint.models]]\nname = "{name}"\nmodel = "resnets:ResNet(width={width})"\n'
        'inputs = "64x3x224x224:fp16"\n\n'
    )


_SOURCE_BLOCK = """\
class Block{number}(nn.Module):
    def __init__(self, channels, width, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias={bias})
        self.norm2 = nn.BatchNorm2d(width)
        self.act = nn.ReLU(inplace=True)

    def forward(self, x):
        x = self.act(self.norm1(self.conv1(x)))
        return self.act(self.norm2(self.conv2(x)))


"""
_SOURCE_NET = """\
class Net(nn.Module):
    def __init__(self, classes={classes}):
        super().__init__()
        self.stem = nn.Conv2d(3, {width}, 7, 2, 3, bias=False)
        self.body = nn.Sequential({blocks})
        self.head = nn.Conv2d({last}, classes, 1)

    def forward(self, x):
        return self.head(self.body(self.stem(x)))
"""


def write_source(folder: Path, files: int) -> list[str]:
    """Distinct models in Python, some 150 lines a file, each with a block of the file before; their names."""
    folder.mkdir()
    (folder / "pyproject.toml").write_text("[project]\n")
    names = []
    for number in range(files):
        before = f"from net{number - 1} import Block0 as Other\n" if number % 10 else ""
        text = f"import torch\nfrom torch import nn\n{before}\n\n"
        text += "".join(_SOURCE_BLOCK.format(number=each, bias=each % 3 == 0) for each in range(9))
        widths = [32 + 2 * (number % 50) + 16 * each for each in range(9)]
        blocks = [f"Block{each}({widths[max(each - 1, 0)]}, {width}, 2)" for each, width in enumerate(widths)]
        if before:
            blocks.append(f"Other({widths[-1]}, {widths[-1]})")
        text += _SOURCE_NET.format(classes=number % 90 + 10, width=widths[0], last=widths[-1], blocks=", ".join(blocks))
        names.append(f"net{number}.py")
        (folder / names[-1]).write_text(text)
    return names
