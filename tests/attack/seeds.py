"""Small valid inputs of each kind that convlint reads: the seeds of mutations and the inputs of bare runs.

The graphs inside .pt2 and .keras archives lie beside this file, as the libraries wrote them:
`python -m attack.seeds`, from the folder of the tests, writes them anew.
"""

import io
import json
import os
import re
import struct
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent / "seeds"
PROGRAM, CONFIG = "models/model.json", "config.json"
SPEC = {
    "version": 1,
    "target": ["a100"],
    "mode": "training",
    "runtime": {"framework": "pytorch", "cuda": "11.2", "cudnn": "8.1", "cudnn_benchmark": False},
    "defaults": {"N": 4, "dtype": "fp16", "layout": "NHWC"},
    "layers": [
        {"name": "stem", "C": 3, "H": 32, "W": 32, "K": 62, "R": 3, "S": 3, "stride": 2, "padding": 1},
        {"name": "pool", "op": "pool", "kernel_size": 3, "stride": 2, "padding": 1},
        {"name": "conv2", "K": 64, "kernel_size": [3, 3], "padding": "same", "groups": 2},
        {"name": "skip", "input": "stem", "K": 64, "kernel_size": 1, "stride": 2},
        {"name": "cat", "op": "concat", "inputs": ["conv2", "skip"]},
        {"name": "up", "op": "conv_transpose", "K": 8, "kernel_size": 4, "stride": 2, "padding": 1},
    ],
}
SPEC_TEXT = """\
version: 1
target: [a100, v100]
defaults: &d { N: 4, dtype: fp16, layout: NHWC }
layers:
  - { name: stem, C: 3, H: 32, W: 32, K: 62, R: 3, S: 3, stride: 2, padding: 3 }  # convlint: ignore[CL102] reason
  - name: conv2
    <<: { K: 64 }
    kernel_size: [3, 3]
    padding: same
  - { name: skip, input: stem, K: 64, kernel_size: 1, stride: 2 }
"""
MODULE = """\
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 62, 3, padding=1)
    def forward(self, x):
        return self.conv(x)
"""
RULE = """\
code: ACME001
name: acme-channels
title: Channels are odd
severity: warning
scope: layer
when: groups == 1
let: { align: "16 // dtype.bytes" }
check: C % align == 0
message: "C={C} should be a multiple of {align}"
rationale: Because.
source: { document: acme-handbook, section: "1" }
examples:
  pass: [ { C: 64, K: 128, dtype: fp16 } ]
  fail:
    - given: { C: 62, K: 128, dtype: fp16 }
      message: "C=62 should be a multiple of 8"
"""
TOML = """\
target = ["a100"]
select = ["ALL"]
ignore = ["CL102"]
fail-on = "warning"
min-loss = 1.5
exclude = ["old/**", "*.json"]
[severity]
CL102 = "info"
[per-file-ignores]
"nets/*.yaml" = ["CL1"]
"""
BASELINE = json.dumps(
    {
        "convlint_baseline": 1,
        "findings": [{"fingerprint": "0" * 16, "code": "CL102", "path": "a.yaml", "layer": "stem", "gpu": "a100"}],
    }
)
HEADER = {
    "__metadata__": {"format": "pt"},
    "conv.weight": {"dtype": "F16", "shape": [62, 3, 3, 3], "data_offsets": [0, 3348]},
    "conv.bias": {"dtype": "F16", "shape": [62], "data_offsets": [3348, 3472]},
    "deep.weight": {"dtype": "F32", "shape": [8, 1, 3, 3], "data_offsets": [3472, 3760]},
}


@cache
def onnx_model() -> bytes:
    """Two convolutions, a body inside an If, a local function, a sparse tensor and constants that hold shapes."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    def weight(name: str, *shape: int) -> Any:
        return numpy_helper.from_array(np.zeros(shape, np.float32), name)

    def value(name: str, shape: Any = None, kind: int = TensorProto.FLOAT) -> Any:
        return helper.make_tensor_value_info(name, kind, shape)

    then = helper.make_graph([helper.make_node("Relu", ["c1"], ["t"])], "then", [], [value("t")])
    other = helper.make_graph([helper.make_node("Conv", ["c1", "w2"], ["e"])], "else", [], [value("e")])
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["c1"], name="stem", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("If", ["flag"], ["c2"], then_branch=then, else_branch=other),
        helper.make_node("Shape", ["c2"], ["s"]),
        helper.make_node("Concat", ["s", "more"], ["s2"], axis=0),
        helper.make_node("Reshape", ["c1", "sizes"], ["r"]),
        helper.make_node("Split", ["r"], ["r1", "r2"], axis=1, num_outputs=2),
        helper.make_node("Block", ["r1"], ["b"], domain="local"),
        helper.make_node("Conv", ["b", "w3"], ["y"], strides=[2, 2], dilations=[1, 1], group=1),
    ]
    body = helper.make_function(
        "local", "Block", ["a"], ["z"], [helper.make_node("Relu", ["a"], ["z"])], [helper.make_opsetid("", 19)]
    )
    tensors = [
        weight("w1", 62, 3, 3, 3), weight("w2", 62, 62, 1, 1), weight("w3", 8, 31, 3, 3),
        numpy_helper.from_array(np.array([4, 62, 32, 32], np.int64), "sizes"),
        numpy_helper.from_array(np.array([1], np.int64), "more"),
    ]  # fmt: skip
    graph = helper.make_graph(
        nodes,
        "g",
        [value("x", [4, 3, 32, 32]), value("flag", [], TensorProto.BOOL)],
        [value("y"), value("s2")],
        tensors,
    )
    opsets = [helper.make_opsetid("", 19), helper.make_opsetid("local", 1)]
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=9, functions=[body]).SerializeToString())


@cache
def json_seed(name: str) -> Any:
    """A graph as its library wrote it: "program.json" or "config.json"."""
    return json.loads((HERE / name).read_text(encoding="utf-8"))


def archive(members: dict[str, bytes | str], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip archive of these members."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as made:
        for name, content in members.items():
            made.writestr(name, content)
    return out.getvalue()


def pt2(program: Any) -> bytes:
    """An exported program around that graph."""
    text = program if isinstance(program, (bytes, str)) else json.dumps(program)
    return archive({f"model/{PROGRAM}": text, "model/version": "6", "model/byteorder": "little"})


def keras(config: Any) -> bytes:
    """A Keras archive around that config."""
    text = config if isinstance(config, (bytes, str)) else json.dumps(config)
    return archive({"metadata.json": '{"keras_version": "3.0.0"}', CONFIG: text})


def safetensors(header: Any, data: int | None = None, length: int | None = None) -> bytes:
    """A checkpoint with that header and `data` zero bytes; `length` is what it claims of the header's size."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + bytes(3760 if data is None else data)


VALID: dict[str, tuple[str, Any]] = {
    "spec": ("valid.yaml", lambda: SPEC_TEXT.encode()),
    "onnx": ("valid.onnx", onnx_model),
    "pt2": ("valid.pt2", lambda: pt2(json_seed("program.json"))),
    "keras": ("valid.keras", lambda: keras(json_seed("config.json"))),
    "safetensors": ("valid.safetensors", lambda: safetensors(HEADER)),
    "module": ("valid_net.py", lambda: MODULE.encode()),
}


def write_valid(kind: str, folder: Path) -> str:
    """Writes the valid input of a kind and returns how it is named on the command line."""
    name, content = VALID[kind]
    (folder / name).write_bytes(content())
    return "valid_net:Net" if kind == "module" else name


def _write() -> None:
    os.environ["KERAS_BACKEND"] = "torch"
    import keras as library
    import torch

    HERE.mkdir(exist_ok=True)
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 6, 3, 2, 1), torch.nn.ReLU(), torch.nn.Conv2d(6, 8, 3, groups=2))
    out = io.BytesIO()
    batch = torch.export.Dim("batch", min=1, max=64)
    torch.export.save(torch.export.export(net.eval(), (torch.zeros(2, 3, 16, 16),), dynamic_shapes=[{0: batch}]), out)
    with zipfile.ZipFile(out) as made:
        name = next(name for name in made.namelist() if name.endswith(".json") and "models/" in name)
        program = json.loads(made.read(name))
    text = re.sub(
        r'File \\\\"[^"]*/site-packages', r'File \\\\"/packages', json.dumps(program, indent=1)
    )  # whose machine it was
    (HERE / "program.json").write_text(text + "\n", encoding="utf-8")
    L = library.layers
    image = library.Input((16, 16, 3))
    stem = L.Conv2D(6, 3, padding="same")(image)
    inner = library.Sequential([library.Input((16, 16, 6)), L.SeparableConv2D(8, 3, padding="same")])(stem)
    joined = L.Concatenate()([stem, L.MaxPooling2D(1)(inner)])
    model = library.Model(image, L.Conv2DTranspose(4, 2, strides=2)(joined))
    (HERE / "config.json").write_text(json.dumps(json.loads(model.to_json()), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    _write()
