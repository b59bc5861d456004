"""The safetensors reader against models of known layers, and headers made to hurt."""

import json
import math
import random
import struct
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import torch_nets
from archives import read_apart
from command_line import convlint
from read_inputs import refusal, sound
from safetensors import SafetensorError, deserialize
from safetensors.torch import save_file
from torch import nn
from torch.nn.utils import prune

from convlint.readers import ReadOptions, find_format
from convlint.readers.refusals import read as read_pickle
from convlint.readers.safetensors import read

pytestmark = [pytest.mark.slow, pytest.mark.contract]


one, message = partial(sound, read), partial(refusal, read)


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
    ("shapes", "first"),
    [
        ({"conv2": (64, 32, 3, 3), "conv1": (32, 1, 5, 5), "fc": (10, 1600)}, ("conv1", 1, 1, True)),
        ({"conv2": (64, 32, 3, 3), "conv10": (64, 1, 3, 3)}, ("conv10", 64, 64, False)),  # not the first
        ({"conv.0": (32, 1, 3, 3), "conv.2": (32, 32, 3, 3)}, ("conv.0", None, 1, False)),
        ({"a": (32, 1, 3, 3), "fc": (32, 100)}, ("a", None, 1, False)),
        ({"blocks.0.dw": (32, 1, 3, 3), "stem": (32, 3, 3, 3)}, ("blocks.0.dw", 32, 32, False)),
        ({"a": (1, 1, 3, 3)}, ("a", 1, 1, False)),
    ],
)
def test_a_first_filter_of_one_channel_reads_gray_images(
    tmp_path: Path, shapes: dict[str, tuple[int, ...]], first: tuple[str, int | None, int, bool]
) -> None:
    path = tmp_path / "model.safetensors"
    save_file({f"{name}.weight": torch.zeros(shape) for name, shape in shapes.items()}, path)
    (layer,) = (layer for layer in one(path).layers if layer.name == first[0])
    assert (layer.name, layer.C, layer.groups, layer.first) == first


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


def test_weights_that_are_computed_from_others_are_those_of_their_layer(tmp_path: Path) -> None:
    """By weight_norm, spectral_norm and pruning, in the old form and as parametrizations."""
    model = nn.Sequential(
        nn.utils.parametrizations.weight_norm(nn.Conv2d(3, 64, 3)),
        nn.utils.parametrizations.spectral_norm(nn.Conv2d(64, 128, 3, bias=False)),
        nn.utils.spectral_norm(nn.Conv1d(128, 60, 3)),
        prune.identity(nn.Conv2d(60, 64, 1), "weight"),
    )
    save_file(
        {name: tensor.contiguous() for name, tensor in model.state_dict().items()}, tmp_path / "model.safetensors"
    )
    layers = one(tmp_path / "model.safetensors").layers
    assert [(each.name, each.K, each.C, each.R, each.bias) for each in layers] == [
        ("0", 64, 3, 3, True), ("1", 128, 64, 3, False), ("2", 60, 128, 1, True), ("3", 64, 60, 1, True)
    ]  # fmt: skip


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
    assert getattr(find_format(str(index)), "module", None) == "safetensors"
    layers = one(index).layers
    assert [(layer.name, layer.path) for layer in layers] == [
        ("part0.conv", str(tmp_path / names[0])), ("part1.conv", str(tmp_path / names[1])),
    ]  # fmt: skip
    (tmp_path / names[1]).unlink()
    network, errors = read(str(index), ReadOptions())
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
    assert "claims a header of 9,223,372,036,854,775,808 bytes" in read_apart("safetensors", path, 100)
    with path.open("wb") as stream:  # a large file of zeros that takes no room
        stream.write(struct.pack("<Q", 1 << 33))
        stream.truncate(1 << 34)
    assert "larger than 32 MiB" in read_apart("safetensors", path, 100)
    path.unlink()
    for content, words in {
        b"": "too short", b"1234567": "too short", bytes(8): "too short",
        struct.pack("<Q", 4) + b"[1]]": "not valid JSON",
        struct.pack("<Q", 2) + b"[]": "no object", struct.pack("<Q", 2) + b"\xff\xff": "not valid JSON",
    }.items():  # fmt: skip
        path.write_bytes(content)
        assert words in message(path)
    assert "nests too deep" in message(write(path, b"[" * 100_000))
    assert "more entries" in read_apart("safetensors", write(path, b"[" + b"[]," * 3_000_000 + b"[]]"))
    tensor = {"dtype": "F32", "shape": [8, 64, 3, 3], "data_offsets": [0, 18432]}
    assert "truncated" in message(write(path, {"a.weight": tensor}, 18431))
    assert "1 bytes behind its last tensor" in message(write(path, {"a.weight": tensor}, 18433))
    assert len(one(write(path, {"a.weight": tensor}, 18432)).layers) == 1


SOUND = {"dtype": "F32", "shape": [8, 8, 3, 3], "data_offsets": [0, 2304]}
NEXT = {"dtype": "F16", "shape": [4], "data_offsets": [2304, 2312]}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"a.weight": 1}, "the header: ['a.weight'] must be an object, not 1"),
        ({"a.weight": None}, "['a.weight'] must be an object, not null"),
        ({"a.weight": []}, "['a.weight'] must be an object, not a list"),
        ({"a.weight": {}}, "['a.weight'] has no dtype"),
        ({"a.weight": {"dtype": "F32"}}, "['a.weight'] has no shape"),
        ({"a.weight": {"dtype": "F32", "shape": [1]}}, "['a.weight'] has no data_offsets"),
        ({"a.weight": {**SOUND, "shape": 3}}, "['a.weight'].shape must be a list, not 3"),
        ({"a.weight": {**SOUND, "shape": [8, 8, 3, -3]}}, "['a.weight'].shape[3] must be 0 to"),
        ({"a.weight": {**SOUND, "shape": [8, True, 3, 3]}}, "9,223,372,036,854,775,807, not true"),
        ({"a.weight": {**SOUND, "shape": [8, 8, 3.0, 3]}}, ".shape[2] must be 0 to"),
        ({"a.weight": {**SOUND, "shape": [8, 8, {}, 3]}}, "not an object"),
        ({"a.weight": {**SOUND, "shape": [2**70, 8, 3, 3]}}, ".shape[0] must be 0 to"),
        ({"a.weight": {**SOUND, "shape": [10**3000, 8, 3, 3]}}, "not a number of very many digits"),
        ({"a.weight": {**SOUND, "shape": [1] * 17}}, ".shape has 17 elements; the limit is 16"),
        ({"a.weight": {**SOUND, "shape": [8, 8, 3, 4]}}, "but F32 of shape [8, 8, 3, 4] takes 3072"),
        ({"a.weight": SOUND, "b": None}, "the header: b must be an object, not null"),
        ({"a.weight": {**SOUND, "dtype": []}}, "['a.weight'].dtype must be text, not a list"),
        ({"a.weight": {**SOUND, "dtype": "F16"}}, "F16 of shape [8, 8, 3, 3] takes 1152"),
        ({"a.weight": {**SOUND, "data_offsets": [0]}}, "['a.weight'].data_offsets must be a list of two numbers"),
        ({"a.weight": {**SOUND, "data_offsets": [0, "x"]}}, ".data_offsets[1] must be 0 to"),
        ({"a.weight": {**SOUND, "data_offsets": [2304, 0]}}, "must not end at 0 before it begins at 2,304"),
        ({"b": {**NEXT, "data_offsets": [2305, 2313]}}, "begins at byte 2,305, not 2,304: it leaves bytes before it"),
        ({"b": {**NEXT, "data_offsets": [2300, 2308]}}, "begins at byte 2,300, not 2,304: it overlaps"),
        ({"b": {**NEXT, "data_offsets": [2**62, 2**62 + 8]}}, "it leaves bytes before it that belong to none"),
        ({"__metadata__": 7}, "__metadata__ must be an object, not 7"),
        ({"__metadata__": {"format": 7}}, "__metadata__.format must be text, not 7"),
        ({"n" * 501: NEXT}, "more than 500 characters, or not text"),
        ({"a\ud800.weight": NEXT}, "more than 500 characters, or not text"),
    ],
)
def test_each_fault_of_a_header_is_told_with_its_place(tmp_path: Path, changes: Any, words: str) -> None:
    path = write(tmp_path / "m.safetensors", {"a.weight": SOUND, "b": NEXT, **changes}, 2312)
    assert words in message(path)
    with pytest.raises(SafetensorError):  # the format's own reader refuses each of them too
        deserialize(path.read_bytes())


def test_a_weight_without_elements_is_no_convolution(tmp_path: Path) -> None:
    empty = {"dtype": "F32", "shape": [0, 8, 3, 3], "data_offsets": [0, 0]}
    path = write(tmp_path / "m.safetensors", {"a.weight": empty})
    assert "'a.weight' in its header has the shape [0, 8, 3, 3]" in message(path)
    assert one(write(path, {"a": empty})).layers == ()


@pytest.mark.parametrize("inner", ['{"dtype": "F32", "dtype": "F16"}', '{}, "a": {}', '{"x": NaN}'])
def test_what_readers_of_json_take_differently_is_refused(tmp_path: Path, inner: str) -> None:
    path = write(tmp_path / "m.safetensors", f'{{"a": {inner}}}'.encode())
    assert "not valid JSON: " in message(path)
    assert "duplicate key" in message(path) or "NaN is no number" in message(path)


def test_what_the_format_allows_is_read(tmp_path: Path) -> None:
    """Tensors in any order, some of them empty, of types that need less than a byte."""
    header = {
        "b": {"dtype": "F32", "shape": [4], "data_offsets": [3, 19]},
        "a.weight": {"dtype": "F4", "shape": [1, 2, 3], "data_offsets": [0, 3]},
        "c": {"dtype": "I8", "shape": [0, 7], "data_offsets": [3, 3]},
        "d": {"dtype": "I8", "shape": [], "data_offsets": [19, 20]},
        "__metadata__": {"format": "pt"},
    }
    path = write(tmp_path / "m.safetensors", header, 20)
    assert {name for name, _ in deserialize(path.read_bytes())} == {"a.weight", "b", "c", "d"}
    assert [layer.name for layer in one(path).layers] == ["a"]


def many(path: Path, count: int, shape: list[int], first: int = 0) -> Path:
    size = math.prod(shape)
    header = {
        f"{first + i}.weight": {"dtype": "I8", "shape": shape, "data_offsets": [i * size, (i + 1) * size]}
        for i in range(count)
    }
    write(path, header)
    with path.open("ab") as stream:
        stream.truncate(path.stat().st_size + count * size)
    return path


def test_more_than_any_network_has(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    assert len(one(many(path, 10_000, [8, 8, 3, 3])).layers) == 10_000
    assert "more than 10,000 convolutions" in message(many(path, 10_001, [8, 8, 3, 3]))
    assert one(many(path, 50_000, [1])).layers == ()
    assert "more than 50,000 tensors" in message(many(path, 50_001, [1]))
    assert "more entries than any network" in read_apart("safetensors", many(path, 400_000, [1]), 100)


def test_limits_hold_for_all_files_of_a_checkpoint(tmp_path: Path) -> None:
    names = [f"{number}.safetensors" for number in range(4)]
    index = tmp_path / "m.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {str(number): name for number, name in enumerate(names)}}))
    for number, name in enumerate(names):
        many(tmp_path / name, 20_000, [1], first=number * 20_000)
    network, errors = read(str(index), ReadOptions())
    assert network is not None
    assert [error.message for error in errors] == ["the checkpoint has more than 50,000 tensors, the limit"]
    many(tmp_path / names[0], 8, [1])
    many(tmp_path / names[1], 8, [1])
    _, errors = read(str(index), ReadOptions())
    assert "holds the tensor '0.weight', which another file" in errors[0].message
    index.write_text(json.dumps({"weight_map": {str(number): f"{number}.safetensors" for number in range(1_001)}}))
    assert "names more than 1,000 files" in message(index)
    index.write_text(json.dumps({"weight_map": {"a": ["x"]}}))
    assert message(index) == "the index: weight_map.a must be text, not a list"


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
        "import sys\nfrom convlint.readers import ReadOptions\nfrom convlint.readers.safetensors import read\n"
        f"read({str(path)!r}, ReadOptions())\nprint({{'torch', 'safetensors', 'numpy'}} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "set()\n"


@pytest.mark.parametrize("name", ["model.pt", "model.pth", "pytorch_model.bin", "last.ckpt", "m.PKL"])
def test_pickles_are_refused_unopened(name: str) -> None:
    assert getattr(find_format(name), "module", None) == "refusals"
    network, errors = read_pickle(f"/does/not/exist/{name}", ReadOptions())
    assert network is None
    assert "unpickling runs the code" in errors[0].message


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("net.h5", "save the model as .keras"), ("w.weights.HDF5", "of weights alone after load_weights"),
        ("saved_model.pb", "--saved-model FOLDER"), ("net.tflite", "--tflite FILE"),
        ("net.engine", "check the ONNX file that it was built from"), ("net.plan", "is built for one GPU"),
    ],
)  # fmt: skip
def test_other_files_are_refused_with_what_to_save_instead(name: str, words: str, tmp_path: Path) -> None:
    (tmp_path / name).touch()
    ran = convlint("check", str(tmp_path / name), "-o", "concise")
    assert ran.code == 3
    assert words in ran.out
    if name == "saved_model.pb":
        assert words in convlint("check", str(tmp_path), "-o", "concise").out


def test_weights_of_three_channels_read_images(tmp_path):
    """What their C costs is for the rule on first layers to say, not for those on layers within a network."""
    header = json.dumps(
        {
            name: {"dtype": "I8", "shape": shape, "data_offsets": place}
            for name, shape, place in (
                ("stem.weight", [64, 3, 7, 7], [0, 9408]),
                ("body.weight", [64, 64, 3, 3], [9408, 46272]),
            )
        }
    ).encode()
    path = tmp_path / "net.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(46272))
    network, _ = read(str(path), ReadOptions())
    assert [(layer.name, layer.first) for layer in network.layers] == [("stem", True), ("body", False)]
