"""The convolutions of Gluon, Flax, Equinox and Haiku: what their calls say."""

import ast
from pathlib import Path
from typing import Any

import pytest

from convlint.model.source import SourceReading
from convlint.readers.python.imports import ProjectImports
from convlint.readers.python.nn.kinds import CONVOLUTIONS
from convlint.readers.python.nn.layers import ConstructionSite, Convolution, Recording, convolve
from convlint.readers.python.nn.reading import read_layers
from convlint.readers.python.nn.tensors import TensorPath
from convlint.readers.python.project import Project
from convlint.readers.python.source_file import parsed

HEAD = (
    "from mxnet.gluon import nn\nfrom mxnet import gluon\nimport flax.linen as fnn\nimport haiku as hk\n"
    "import equinox as eqx\nfrom flax import nnx\n"
)


def read(tmp_path: Path, text: str) -> SourceReading:
    path = tmp_path / "net.py"
    path.write_text(HEAD + text)
    return read_layers(ProjectImports(Project(str(tmp_path), [str(path)])), [str(path)])


@pytest.mark.parametrize(
    ("call", "framework", "fields"),
    [
        ("nn.Conv2D(64, 3)", "mxnet", {"C": None, "K": 64, "R": 3, "bias": True}),
        ("nn.Conv2D(channels=64, kernel_size=3, strides=2, in_channels=16, use_bias=False)", "mxnet",
         {"C": 16, "U": 2, "bias": False}),
        ("nn.Conv2D(64, 3, in_channels=0)", "mxnet", {"C": None}),
        ("gluon.nn.Conv2DTranspose(64, 4, 2, 1)", "mxnet", {"op": "conv_transpose", "PadH": 1}),
        ("fnn.Conv(64, (3, 3), use_bias=False)", "flax", {"K": 64, "dims": 2, "PadH": 1, "bias": False, "C": None}),
        ("fnn.Conv(features=64, kernel_size=(3,), strides=(2,))", "flax", {"dims": 1, "V": 2, "PadW": None}),
        ("fnn.Conv(64, (3, 3), padding=1, feature_group_count=4)", "flax", {"PadH": 1, "groups": 4}),
        ("nnx.Conv(16, 64, (3, 3), 2, use_bias=False, rngs=rngs)", "flax",
         {"C": 16, "K": 64, "dims": 2, "U": 2, "bias": False}),
        ("nnx.Conv(in_features=16, out_features=64, kernel_size=(5,), rngs=rngs)", "flax",
         {"C": 16, "K": 64, "dims": 1, "S": 5, "PadW": 2}),
        ("fnn.ConvTranspose(64, (4, 4), strides=(2, 2), use_bias=False)", "flax",
         {"op": "conv_transpose", "K": 64, "C": None, "dims": 2, "U": 2, "bias": False}),
        ("nnx.ConvTranspose(16, 64, (4,), 2, padding=2, rngs=rngs)", "flax",
         {"op": "conv_transpose", "C": 16, "K": 64, "dims": 1, "V": 2, "PadW": None}),
        ("eqx.nn.Conv2d(16, 64, 3, 2, 1, key=key)", "equinox", {"C": 16, "K": 64, "U": 2, "PadH": 1, "bias": True}),
        ("eqx.nn.ConvTranspose1d(16, 64, 4, 2, 1, 1, use_bias=False, key=key)", "equinox",
         {"op": "conv_transpose", "dims": 1, "V": 2, "PadW": 1, "OutPadW": 1, "bias": False}),
        ("eqx.nn.Conv(1, 16, 64, 5, 2, key=key)", "equinox", {"C": 16, "K": 64, "dims": 1, "S": 5, "V": 2}),
        ("eqx.nn.ConvTranspose(num_spatial_dims=3, in_channels=16, out_channels=64, kernel_size=3)", "equinox",
         {"op": "conv_transpose", "C": 16, "dims": 3, "T": 3}),
        ("hk.Conv2D(64, 3, with_bias=False)", "haiku", {"K": 64, "R": 3, "PadH": 1, "bias": False}),
        ("hk.Conv2D(output_channels=64, kernel_shape=3, stride=2, padding='VALID')", "haiku", {"U": 2, "PadH": 0}),
    ],
)  # fmt: skip
def test_a_construction_has_the_fields_of_its_call(
    tmp_path: Path, call: str, framework: str, fields: dict[str, Any]
) -> None:
    found = read(tmp_path, f"def make():\n    return {call}\n")
    (layer,) = found.layers
    assert (layer.framework, found.constructions) == (framework, 1)
    assert {name: getattr(layer.layer, name) for name in fields} == fields


@pytest.mark.parametrize(
    ("second", "expected"), [("nn.BatchNorm()", True), ("nn.Activation('relu')", False), ("unknown()", None)]
)
def test_a_norm_that_is_added_to_a_sequential_follows(tmp_path: Path, second: str, expected: bool | None) -> None:
    text = "def make():\n    net = nn.HybridSequential(prefix='')\n    net.add(nn.Conv2D(8, 3))\n"
    found = read(tmp_path, f"{text}    net.add({second})\n    return net\n")
    assert [each.layer.norm_follows for each in found.layers] == [expected]


def test_each_convolution_has_its_own_runs() -> None:
    """One that nobody holds any longer does not pass its runs on to the next at the same address of memory."""
    recording, file = Recording(), parsed("net.py", b"conv()")
    place = ConstructionSite(file, file.nodes[ast.Call][0])
    for _ in range(100):
        layer = Convolution(CONVOLUTIONS["torch.nn.Conv2d"], {}, place)
        convolve(recording, layer, layer, TensorPath(raw=True), ())
        del layer
    assert [len(uses) for uses in recording.uses.values()] == [1] * 100
