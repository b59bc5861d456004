"""The safetensors reader against models of known layers, and headers made to hurt."""

from __future__ import annotations

import json
import random
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import torch_nets
from archives import read_apart
from safetensors.torch import save_file
from torch import nn

from convlint.model import Network
from convlint.readers import ReadOptions, find_reader
from convlint.readers.pickle_refusal import read as read_pickle
from convlint.readers.safetensors_weights import read


def one(path: str | Path, **options: Any) -> Network:
    network, errors = read(str(path), ReadOptions(**options))
    assert errors == ()
    assert network is not None
    return network


def message(path: str | Path) -> str:
    network, errors = read(str(path), ReadOptions())
    assert network is None
    assert len(errors) == 1
    return errors[0].message


def write(path: Path, header: Any, data: int = 0) -> Path:
    content = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(content)) + content + bytes(data))
    return path


@pytest.mark.parametrize(
    ("name", "count"), [("UNet", 13), ("Video", 3), ("Sound", 2), ("resnet", 53), ("mobilenet", 52)]
)
def test_every_convolution_of_a_saved_model(tmp_path: Path, name: str, count: int) -> None:
    module = getattr(torch_nets, name)()
    path = tmp_path / "model.safetensors"
    save_file(module.state_dict(), path)
    layers = {layer.name: layer for layer in one(path, batch=8).layers}
    convolutions = {key: each for key, each in module.named_modules() if isinstance(each, nn.modules.conv._ConvNd)}
    assert set(layers) == set(convolutions)
    assert len(layers) == count
    for key, real in convolutions.items():
        layer = layers[key]
        taps = [layer.T, layer.R, layer.S][3 - layer.dims :]
        assert (layer.dims, tuple(taps)) == (len(real.kernel_size), tuple(real.kernel_size))
        assert (layer.bias, layer.dtype, layer.N, layer.node) == (real.bias is not None, "fp32", 8, f"{key}.weight")
        if not real.transposed:  # a checkpoint does not tell those apart
            assert real.out_channels == layer.K
            assert layer.groups == real.groups
            assert real.in_channels == layer.C or (layer.C is None and real.in_channels < 64)
        assert (layer.H if layer.dims > 1 else layer.W) is None
        assert (layer.Q, layer.PadW) == (None, None)


def test_channels_of_grouped_convolutions_are_not_guessed(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_file(torch_nets.ResNeXt().state_dict(), path)
    layers = {layer.name: layer for layer in one(path).layers}
    assert layers["stem"].C == 3
    assert layers["blocks.0.0"].C == 64
    assert layers["blocks.0.2"].C is None, "128 channels in 32 groups"
    assert layers["blocks.0.2"].K == 128


@pytest.mark.parametrize(
    ("torch_dtype", "dtype"),
    [(torch.float16, "fp16"), (torch.bfloat16, "bf16"), (torch.float64, "fp64"), (torch.float8_e4m3fn, "fp8")],
)
def test_dtypes(tmp_path: Path, torch_dtype: torch.dtype, dtype: str) -> None:
    path = tmp_path / "model.safetensors"
    save_file({"conv.weight": torch.zeros(8, 64, 3, 3).to(torch_dtype)}, path)
    assert one(path).layers[0].dtype == dtype


def test_other_tensors_are_no_convolutions(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    names = ["position_embeddings", "cls_token", "linear.weight", "bn.weight", "relative_position_bias_table"]
    shapes = [(1, 197, 768), (1, 1, 768), (8, 8), (8,), (3, 3, 3)]
    save_file({name: torch.zeros(shape) for name, shape in zip(names, shapes, strict=True)}, path)
    assert one(path).layers == ()


def test_filters_with_channels_last(tmp_path: Path) -> None:
    tensor = {"dtype": "F32", "shape": [3, 5, 64, 128], "data_offsets": [0, 4 * 3 * 5 * 64 * 128]}
    header = {"__metadata__": {"format": "flax"}, "block/conv/kernel": tensor}
    (layer,) = one(write(tmp_path / "m.safetensors", header, tensor["data_offsets"][1])).layers
    assert (layer.name, layer.C, layer.K, layer.R, layer.S) == ("block.conv", 64, 128, 3, 5)


def sharded(folder: Path, names: list[str]) -> Path:
    for number, name in enumerate(names):
        save_file({f"part{number}.conv.weight": torch.zeros(8, 64, 3, 3)}, folder / name)
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {f"part{i}.conv.weight": name for i, name in enumerate(names)}}))
    return index


def test_sharded_checkpoints(tmp_path: Path) -> None:
    names = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    index = sharded(tmp_path, names)
    assert find_reader(str(index)) == "safetensors_weights"
    layers = one(index).layers
    assert [(layer.name, layer.path) for layer in layers] == [
        ("part0.conv", str(tmp_path / names[0])), ("part1.conv", str(tmp_path / names[1])),
    ]  # fmt: skip
    (tmp_path / names[1]).unlink()
    network, errors = read(str(index), ReadOptions())
    assert network is not None
    assert [layer.name for layer in network.layers] == ["part0.conv"]
    assert [error.path for error in errors] == [str(tmp_path / names[1])]


@pytest.mark.parametrize(
    "name", ["../../x.safetensors", "/etc/passwd", "a/b.safetensors", "..\\x.safetensors", "x.bin", "..safetensors"]
)
def test_an_index_may_name_files_beside_it_only(tmp_path: Path, name: str) -> None:
    index = tmp_path / "m.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a.weight": name}}))
    assert "refused" in message(index)


def test_headers_made_to_hurt(tmp_path: Path) -> None:
    path = tmp_path / "bad.safetensors"
    path.write_bytes(struct.pack("<Q", 2**63) + b"{}")
    assert "claims a header of 9,223,372,036,854,775,808 bytes" in read_apart("safetensors_weights", path, 100)
    with path.open("wb") as stream:  # a large file of zeros that takes no room
        stream.write(struct.pack("<Q", 1 << 33))
        stream.truncate(1 << 34)
    assert "larger than 64 MiB" in read_apart("safetensors_weights", path, 100)
    path.unlink()
    for content, words in {
        b"": "too short", b"1234567": "too short", bytes(8): "too short",
        struct.pack("<Q", 4) + b"[1]]": "not valid JSON",
        struct.pack("<Q", 2) + b"[]": "no object", struct.pack("<Q", 2) + b"\xff\xff": "not valid JSON",
    }.items():  # fmt: skip
        path.write_bytes(content)
        assert words in message(path)
    assert "nests too deep" in message(write(path, b"[" * 100_000))
    assert "more entries" in read_apart("safetensors_weights", write(path, b"[" + b"[]," * 3_000_000 + b"[]]"))
    for tensor in (1, None, [], {}, {"shape": [1]}, {"data_offsets": [0, 1]}, {"shape": 3, "data_offsets": [0, 1]}):
        assert "no shape or no data_offsets" in message(write(path, {"a.weight": tensor}))
    for size in (-1, 0, 1.5, "3", None, True, 2**40):
        tensor = {"dtype": "F32", "shape": [8, 64, 3, size], "data_offsets": [0, 0]}
        assert "has the shape" in message(write(path, {"a.weight": tensor}))
    tensor = {"dtype": "F32", "shape": [8, 64, 3, 3], "data_offsets": [0, 18432]}
    assert "truncated" in message(write(path, {"a.weight": tensor}, 18431))
    assert len(one(write(path, {"a.weight": tensor}, 18432)).layers) == 1


def test_random_damage_gives_errors_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_file(torch_nets.UNet().state_dict(), path)
    sound = path.read_bytes()
    generator = random.Random(4)
    for _ in range(300):
        broken = bytearray(sound[: generator.randrange(len(sound))] if generator.random() < 0.2 else sound)
        for _ in range(3):
            if broken:
                broken[generator.randrange(min(len(broken), 3000))] = generator.randrange(256)
        path.write_bytes(broken)
        network, errors = read(str(path), ReadOptions())
        assert network is not None or len(errors) == 1


def test_nothing_is_imported_for_it(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_file(torch_nets.Sound().state_dict(), path)
    code = (
        "import sys\nfrom convlint.readers import ReadOptions\nfrom convlint.readers.safetensors_weights import read\n"
        f"read({str(path)!r}, ReadOptions())\nprint({{'torch', 'safetensors', 'numpy'}} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "set()\n"


@pytest.mark.parametrize("name", ["model.pt", "model.pth", "pytorch_model.bin", "last.ckpt", "m.PKL"])
def test_pickles_are_refused_unopened(name: str) -> None:
    assert find_reader(name) == "pickle_refusal"
    network, errors = read_pickle(f"/does/not/exist/{name}", ReadOptions())
    assert network is None
    assert "unpickling runs the code" in errors[0].message


def test_weights_of_three_channels_read_images(tmp_path):
    """What their C costs is for the rule on first layers to say, not for those on layers within a network."""
    header = json.dumps(
        {
            name: {"dtype": "F16", "shape": shape, "data_offsets": [0, 0]}
            for name, shape in (("stem.weight", [64, 3, 7, 7]), ("body.weight", [64, 64, 3, 3]))
        }
    ).encode()
    path = tmp_path / "net.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    network, _ = read(str(path), ReadOptions())
    assert [(layer.name, layer.first) for layer in network.layers] == [("stem", True), ("body", False)]
