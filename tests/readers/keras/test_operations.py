"""The operations of Keras models that the real Keras saved, and which channels are therefore one number."""

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

os.environ["KERAS_BACKEND"] = "torch"

import keras
from keras import layers as L
from keras import ops
from named_groups import members, named, written

from convlint.model.channels import channels_of
from convlint.model.network import Network
from convlint.readers import ReadOptions
from convlint.readers.keras.reader import read

pytestmark = [
    pytest.mark.slow,
    pytest.mark.contract,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:Using padding", "ignore::UserWarning"),
]


@pytest.fixture(autouse=True)
def _fresh_names() -> None:
    keras.utils.clear_session(free_memory=False)  # which would collect the garbage of all tests, 1 s each time


def read_back(folder: Path, inputs: Any, outputs: Any, batch: int = 2) -> Network:
    path = str(folder / "model.keras")
    keras.Model(inputs, outputs).save(path)
    network, _ = read(path, ReadOptions(batch=batch))
    assert network is not None
    return network


def conv(name: str, K: int, taps: int = 1, **more: Any) -> Any:
    return L.Conv2D(K, taps, padding="same", name=name, **more)


# a layer behind a map of 8x6x12, the operation, C, H, W
LAYERS: list[tuple[Any, str, int | None, int | None, int | None]] = [
    (lambda: L.Activation("silu"), "identity", 12, 8, 6),
    (lambda: L.ReLU(), "identity", 12, 8, 6),
    (lambda: L.PReLU(shared_axes=[1, 2]), "identity", 12, 8, 6),
    (lambda: L.Dropout(0.5), "identity", 12, 8, 6),
    (lambda: L.Softmax(), "identity", 12, 8, 6),
    (lambda: L.LayerNormalization(), "identity", 12, 8, 6),
    (lambda: L.BatchNormalization(), "batchnorm", 12, 8, 6),
    (lambda: L.MaxPooling2D(2), "resize", 12, 4, 3),
    (lambda: L.GlobalAveragePooling2D(), "resize", 12, 1, 1),
    (lambda: L.GlobalMaxPooling2D(keepdims=True), "resize", 12, 1, 1),
    (lambda: L.UpSampling2D(2), "resize", 12, 16, 12),
    (lambda: L.ZeroPadding2D(1), "resize", 12, 10, 8),
    (lambda: L.Cropping2D(1), "resize", 12, 6, 4),
    (lambda: L.Resizing(5, 7), "resize", 12, 5, 7),
    (lambda: L.Flatten(), "view", 576, 1, 1),
    (lambda: L.Reshape((8, 12, 6)), "reshape", 6, 8, 12),
    (lambda: L.Reshape((4, 12, 12)), "resize", 12, 4, 12),
    (lambda: L.Permute((2, 1, 3)), "reshape", 12, 6, 8),
    (lambda: L.Dense(10), "linear", 10, 8, 6),
    (lambda: L.EinsumDense("abcd,de->abce", output_shape=(8, 6, 12)), "reshape", None, None, None),
]


TOLD = ("channel_pool", "linear", "reshape", "view")  # kinds that messages name


@pytest.mark.parametrize(("make", "kind", "C", "H", "W"), LAYERS)
def test_layers(tmp_path: Path, make: Any, kind: str, C: int | None, H: int | None, W: int | None) -> None:
    start = keras.Input((8, 6, 3))
    path = tmp_path / "model.keras"
    layer = make()
    keras.Model(start, layer(conv("a", 12)(start))).save(path)
    network, _ = read(str(path), ReadOptions(batch=2))
    operation = network.operations[-1]
    assert (operation.kind, operation.name, operation.inputs, operation.output) == (kind, layer.name, (1,), True)
    assert (operation.C, operation.H, operation.W) == (C, H, W)
    assert operation.where == (f"{type(layer).__name__} {layer.name}" if kind in TOLD else "")
    assert [(each.kind, each.name, each.C, each.H, each.W) for each in network.operations[:2]] == [
        ("input", "input_layer", 3, 8, 6), ("conv", "a", 12, 8, 6),
    ]  # fmt: skip


# a function of keras.ops on a map of 8x6x12, and the operation
FUNCTIONS: list[tuple[Any, str]] = [
    (lambda x: ops.relu(x), "identity"),
    (lambda x: ops.hard_sigmoid(x), "identity"),
    (lambda x: x * 2, "identity"),
    (lambda x: x / np.ones(12, "float32"), "identity"),
    (lambda x: ops.mean(x, axis=(1, 2), keepdims=True), "resize"),
    (lambda x: ops.max(x, axis=[-2, -3]), "resize"),
    (lambda x: ops.max(x, axis=-1, keepdims=True), "channel_pool"),
    (lambda x: ops.mean(x), "reshape"),
    (lambda x: ops.average(x, axis=-1), "reshape"),
    (lambda x: ops.split(x, 2, axis=-1)[0], "reshape"),
    (lambda x: ops.transpose(x, (0, 2, 1, 3)), "reshape"),
]


@pytest.mark.parametrize(("function", "kind"), FUNCTIONS)
def test_functions(tmp_path: Path, function: Any, kind: str) -> None:
    start = keras.Input((8, 6, 3))
    network = read_back(tmp_path, start, function(conv("a", 12)(start)))
    assert [each.kind for each in network.operations] == ["input", "conv", kind]


def test_a_constant_that_changes_the_shape_is_opaque(tmp_path: Path) -> None:
    start = keras.Input((8, 6, 3))
    spread = conv("a", 1)(start) * np.ones((1, 1, 12), "float32")
    network = read_back(tmp_path, start, conv("b", 7)(ops.relu(spread)))
    assert [each.kind for each in network.operations] == ["input", "conv", "identity", "reshape", "identity", "conv"]
    assert "depends on it" in written(network, "a").fixed[0]


@pytest.mark.parametrize(
    ("groups", "axis", "expected"),
    [(4, -1, ("identity", 4)), (-1, 3, ("identity", 12)), (2, 1, ("reshape", 1))],
)
def test_group_normalisations(tmp_path: Path, groups: int, axis: int, expected: tuple[str, int]) -> None:
    start = keras.Input((8, 6, 3))
    normed = L.GroupNormalization(groups, axis=axis, name="norm")(conv("a", 12)(start))
    network = read_back(tmp_path, start, conv("b", 7)(normed))
    assert (named(network, "norm").kind, named(network, "norm").groups) == expected


def test_a_residual_block(tmp_path: Path) -> None:
    start = keras.Input((8, 6, 3))
    stem = L.ReLU()(L.BatchNormalization()(conv("stem", 12)(start)))
    inner = conv("inner", 20, activation="relu")(stem)
    total = L.Add(name="total")([conv("out", 12)(inner), stem])
    network = read_back(tmp_path, start, conv("last", 7)(L.ReLU()(total)))
    assert members(network, "stem") == ({"stem", "out"}, {"inner": "1", "last": "1"})
    assert members(network, "inner") == ({"inner"}, {"out": "1"})
    assert named(network, "total").kind == "add"
    assert named(network, "inner/activation").kind == "identity"
    assert written(network, "stem").fixed == written(network, "inner").fixed == ()
    assert [group.only_input for group in channels_of(network).groups].count(True) == 1


@pytest.mark.parametrize("axis", [-1, 3])
def test_a_u_net(tmp_path: Path, axis: int) -> None:
    start = keras.Input((8, 6, 3))
    skip = conv("skip", 12, 3, activation="relu")(start)
    low = conv("low", 20, 3)(L.MaxPooling2D(2)(skip))
    up = L.Conv2DTranspose(16, 2, strides=2, name="up")(low)
    joined = L.Concatenate(axis, name="joined")([skip, up, L.UpSampling2D(2)(low)])
    network = read_back(tmp_path, start, conv("last", 2)(joined))
    assert (named(network, "joined").kind, named(network, "joined").C) == ("concat", 48)
    assert members(network, "skip") == ({"skip"}, {"low": "1", "last": "1"})
    assert members(network, "low") == ({"low"}, {"up": "1", "last": "1"})
    assert members(network, "up") == ({"up"}, {"last": "1"})
    assert all(written(network, name).fixed == () for name in ("skip", "low", "up"))


def test_a_concatenation_along_another_axis_is_opaque(tmp_path: Path) -> None:
    start = keras.Input((8, 6, 3))
    joined = L.Concatenate(1, name="joined")([conv("a", 12)(start), conv("b", 12)(start)])
    network = read_back(tmp_path, start, conv("last", 2)(joined))
    assert named(network, "joined").kind == "reshape"
    assert written(network, "a").fixed == ("Concatenate joined depends on it",)


def test_depthwise_and_separable_convolutions(tmp_path: Path) -> None:
    start = keras.Input((8, 6, 3))
    wide = L.DepthwiseConv2D(3, depth_multiplier=2, name="deep")(conv("wide", 12)(start))
    parts = L.SeparableConv2D(16, 1, name="sep")(wide)
    network = read_back(tmp_path, start, conv("last", 7)(parts))
    assert members(network, "wide") == ({"wide"}, {"deep": "1", "sep/depthwise": "2", "sep/pointwise": "2"})
    assert members(network, "sep/pointwise") == ({"sep/pointwise"}, {"last": "1"})


@pytest.mark.parametrize("keepdims", [True, False])
def test_a_squeeze_and_excite_block(tmp_path: Path, keepdims: bool) -> None:
    start = keras.Input((8, 6, 3))
    a = conv("a", 12)(start)
    pooled = L.GlobalAveragePooling2D(keepdims=keepdims)(a)
    if not keepdims:
        pooled = L.Reshape((1, 1, 12))(pooled)
    gate = conv("gate", 12, activation="sigmoid")(conv("small", 4, activation="relu")(pooled))
    network = read_back(tmp_path, start, conv("last", 7)(L.Multiply()([a, gate])))
    assert members(network, "a") == ({"a", "gate"}, {"small": "1", "last": "1"})
    assert members(network, "small") == ({"small"}, {"gate": "1"})
    assert written(network, "a").fixed == written(network, "small").fixed == ()


def test_a_grouped_convolution(tmp_path: Path) -> None:
    start = keras.Input((8, 6, 3))
    network = read_back(tmp_path, start, conv("last", 7)(conv("b", 18, groups=6)(conv("a", 12)(start))))
    assert written(network, "a").multiple_of == written(network, "b").multiple_of == 6


def test_a_feature_map_that_is_handed_out_stays_as_it_is(tmp_path: Path) -> None:
    start = keras.Input((8, 6, 3))
    low = L.ReLU(name="low")(conv("a", 12)(start))
    network = read_back(tmp_path, start, [low, L.Dense(4)(L.GlobalAveragePooling2D()(conv("b", 7)(low)))])
    assert [each.name for each in network.operations if each.output] == ["low", "dense"]
    assert written(network, "a").fixed == ("the network hands it out",)
    assert written(network, "b").fixed == ()


def test_dense_layers_read_the_channels_of_vectors_and_pixels(tmp_path: Path) -> None:
    start = keras.Input((8, 6, 3))
    a = conv("a", 12)(start)
    gate = L.Dense(12, activation="sigmoid", name="gate")(L.GlobalAveragePooling2D()(a))
    b = conv("b", 7)(L.Dense(9, name="pixels")(L.Multiply()([a, L.Reshape((1, 1, 12))(gate)])))
    network = read_back(tmp_path, start, L.Dense(4, name="head")(L.Flatten(name="flat")(b)))
    assert [each.where for each in network.operations if each.kind in ("linear", "view")] == [
        "Dense gate", "Dense pixels", "Flatten flat", "Dense head"
    ]  # fmt: skip
    names = [[network.operations[number].name for number in written(network, layer).linear] for layer in "ab"]
    assert names == [["gate", "pixels"], ["head"]]
    assert written(network, "a").fixed == written(network, "b").fixed == ()


def test_a_dense_layer_that_runs_twice_keeps_its_widths(tmp_path: Path) -> None:
    start = keras.Input((8, 6, 3))
    shared = L.Dense(4, name="shared")
    maps = [conv("a", 12)(start), conv("b", 12)(start)]
    network = read_back(tmp_path, start, L.Add()([shared(L.GlobalAveragePooling2D()(one)) for one in maps]))
    assert written(network, "a").fixed == written(network, "b").fixed == ("Dense shared depends on it",)


def test_channels_that_are_first(tmp_path: Path) -> None:
    start = keras.Input((3, 8, 6))
    first = {"data_format": "channels_first"}
    a = L.BatchNormalization(axis=1)(conv("a", 12, **first)(start))
    pooled = L.MaxPooling2D(2, name="pool", **first)(a)
    joined = L.Concatenate(1, name="joined")([pooled, L.AveragePooling2D(2, **first)(a)])
    wrong = L.MaxPooling2D(2, name="wrong", data_format="channels_last")(a)
    last = L.SeparableConv1D(5, 1, name="one")(L.Reshape((12, 12))(wrong))
    network = read_back(tmp_path, start, [conv("b", 7, **first)(joined), last])
    assert (network.operations[0].C, network.operations[0].H) == (3, 8)
    assert (named(network, "joined").kind, named(network, "joined").C) == ("concat", 24)
    assert [reader for _, reader in members(network, "a")[1].items()] == ["2"]
    assert named(network, "wrong").kind == "reshape"
    assert "one, which takes another axis for channels, depends on it" in written(network, "one/pointwise").fixed


def test_nested_models_and_layers_that_run_twice(tmp_path: Path) -> None:
    start = keras.Input((8, 6, 3))
    inner = keras.Sequential([conv("deep", 12), L.ReLU()], name="inner")
    a, b = conv("a", 20)(start), conv("b", 20)(start)
    total = L.Add()([inner(a), inner(b)])
    network = read_back(tmp_path, start, conv("last", 7)(total))
    assert members(network, "a") == ({"a", "b"}, {"inner/deep": "1"})
    assert members(network, "inner/deep") == ({"inner/deep"}, {"last": "1"})
    assert written(network, "a").fixed == written(network, "inner/deep").fixed == ()


def test_a_layer_that_runs_on_maps_of_two_sizes_has_one_width(tmp_path: Path) -> None:
    start = keras.Input((8, 6, 3))
    shared = conv("shared", 12)
    a, b = conv("a", 20)(start), conv("b", 20, strides=2)(start)
    network = read_back(tmp_path, start, [conv("c", 7)(shared(a)), conv("d", 7)(shared(b))])
    assert [layer.name for layer in network.layers if "shared" in layer.name] == ["shared", "shared#2"]
    assert members(network, "a") == ({"a", "b"}, {"shared": "1", "shared#2": "1"})
    assert members(network, "shared") == ({"shared", "shared#2"}, {"c": "1", "d": "1"})
    assert written(network, "a").fixed == written(network, "shared").fixed == ()


def test_each_step_of_a_video(tmp_path: Path) -> None:
    start = keras.Input((4, 8, 6, 3))
    a = L.TimeDistributed(conv("a", 12))(start)
    network = read_back(tmp_path, start, L.TimeDistributed(conv("b", 7))(L.ReLU()(a)))
    first, second = (layer.name for layer in network.layers)
    assert members(network, first) == ({first}, {second: "1"})


def test_classes_of_its_own_are_opaque(tmp_path: Path) -> None:
    start = keras.Input((8, 6, 3))
    keras.Model(start, conv("b", 7)(L.ReLU(name="mine")(conv("a", 12)(start)))).save(tmp_path / "model.keras")
    with zipfile.ZipFile(tmp_path / "model.keras") as archive:
        config = json.loads(archive.read("config.json"))
    config["config"]["layers"][2]["module"] = "mine"
    with zipfile.ZipFile(tmp_path / "changed.keras", "w") as archive:
        archive.writestr("config.json", json.dumps(config))
    network, _ = read(str(tmp_path / "changed.keras"), ReadOptions())
    assert network is not None
    assert (named(network, "mine").kind, named(network, "mine").where) == ("reshape", "ReLU mine")
    assert written(network, "a").fixed == ("ReLU mine depends on it",)


def test_known_networks(tmp_path: Path) -> None:
    path = str(tmp_path / "model.keras")
    keras.applications.EfficientNetB0(weights=None).save(path)
    network, _ = read(path, ReadOptions(batch=2))
    assert not [each for each in network.operations if each.kind == "reshape"]
    groups = [group for group in channels_of(network).groups if group.writers]
    assert not [group for group in groups if group.fixed]
    assert sum(len(group.depthwise) for group in groups) == 16


def test_a_norm_that_is_not_trainable_takes_stored_statistics(tmp_path: Path) -> None:
    x = keras.Input((8, 6, 3), batch_size=2)
    frozen = L.BatchNormalization(trainable=False)(L.BatchNormalization()(L.Conv2D(12, 3)(x)))
    works = [(one.work.kind, one.work.weights) for one in read_back(tmp_path, x, frozen).operations if one.work]
    assert works == [("batch norm", 24), ("frozen norm", 24)]


def test_each_layer_says_what_it_reads_writes_and_multiplies(tmp_path: Path) -> None:
    x = keras.Input((8, 6, 3), batch_size=2)
    y = L.ReLU()(L.BatchNormalization()(L.Conv2D(12, 3, padding="same")(x)))
    y = L.Conv2D(12, 3, padding="same", activation="relu")(y)
    out = L.Dense(5)(L.Flatten()(L.Dropout(0.1)(L.MaxPooling2D(2)(y))))
    network = read_back(tmp_path, x, out)
    assert network.whole
    full, half = 2 * 12 * 8 * 6, 2 * 12 * 4 * 3
    works = [(one.work.kind, one.work.reads, one.work.writes, one.work.weights, one.work.product)
             for one in network.operations if one.work is not None]  # fmt: skip
    assert works == [
        ("batch norm", (full,), full, 24, ()), ("activation", (full,), full, 0, ()),
        ("activation", (full,), full, 0, ()), ("max pool", (full,), half, 0, ()),
        ("linear", (half,), 10, 144 * 5, (1, 2, 5, 144)),
    ]  # fmt: skip
