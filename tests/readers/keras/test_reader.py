"""The Keras reader against real runs of models that the real Keras saved, and archives made to hurt."""

import json
import os
import random
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from archives import bomb, read_apart, with_false_size
from read_inputs import only_message, sound

os.environ["KERAS_BACKEND"] = "torch"

import keras
from keras import layers as L

from convlint.estimate.passes import running_passes
from convlint.model.layer import PASSES
from convlint.model.network import Network
from convlint.readers import ReadOptions
from convlint.readers.keras.reader import read

pytestmark = [
    pytest.mark.slow,
    pytest.mark.contract,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:Using padding", "ignore::UserWarning"),
]


@pytest.fixture(autouse=True)
def _fresh_names() -> Iterator[None]:
    keras.utils.clear_session(free_memory=False)  # which would collect the garbage of all tests, 1 s each time
    yield
    keras.config.set_dtype_policy("float32")


def save(folder: Path, model: Any) -> str:
    path = str(folder / "model.keras")
    model.save(path)
    return path


one, message = partial(sound, read), partial(only_message, read)


def observed(model: Any, *inputs: np.ndarray) -> dict[str, list[tuple[tuple[int, ...], tuple[int, ...]]]]:
    """What every convolution layer takes and gives in a real run: shapes by layer name, call by call."""
    seen: dict[str, list[tuple[tuple[int, ...], tuple[int, ...]]]] = {}

    def watch(layer: Any) -> None:
        plain = layer.call

        def call(values: Any, *args: Any, **kwargs: Any) -> Any:
            result = plain(values, *args, **kwargs)
            seen.setdefault(layer.name, []).append((tuple(values.shape), tuple(result.shape)))
            return result

        layer.call = call

    for layer in model._flatten_layers():
        if "Conv" in type(layer).__name__:
            watch(layer)
    model(list(inputs) if len(inputs) > 1 else inputs[0])
    return seen


def sizes(network: Network, channels_last: bool = True) -> dict[str, list[tuple[tuple[int, ...], tuple[int, ...]]]]:
    """The same from a network that was read; separable layers joined again."""
    found: dict[str, list[tuple[tuple[int, ...], tuple[int, ...]]]] = {}
    pending: tuple[int, ...] = ()
    for layer in network.layers:
        before = (layer.D, layer.H, layer.W)[3 - layer.dims :]
        after = (layer.Z, layer.P, layer.Q)[3 - layer.dims :]
        source = (layer.N, *before, layer.C) if channels_last else (layer.N, layer.C, *before)
        target = (layer.N, *after, layer.K) if channels_last else (layer.N, layer.K, *after)
        name = layer.node.rsplit("/", 1)[-1]
        if layer.name.endswith("/depthwise"):
            pending = source
            continue
        if layer.name.endswith("/pointwise"):
            source = pending
        found.setdefault(name, []).extend([(source, target)] * layer.calls)
    return found


def mixed_model() -> Any:
    start = keras.Input((32, 32, 3))
    x = L.Conv2D(16, 3, padding="same", use_bias=False, name="stem")(start)
    x = L.ReLU()(L.BatchNormalization()(x))
    inner = keras.Sequential([L.Conv2D(16, 3, padding="same", activation="relu", name="deep"), L.MaxPooling2D(2)])
    y = inner(x)
    z = L.DepthwiseConv2D(3, depth_multiplier=2, padding="same", strides=2, name="dw")(x)
    z = L.SeparableConv2D(16, 3, padding="same", depth_multiplier=3, name="sep")(z)
    u = L.Conv2DTranspose(8, 3, strides=2, padding="same", name="up")(L.Add()([y, z]))
    u = L.Concatenate()([u, x])
    shared = L.Conv2D(24, 1, name="shared")
    u = shared(shared(u))
    v = shared(L.AveragePooling2D(2)(u))
    out = L.Dense(10)(L.GlobalAveragePooling2D()(v * 2 + 1))
    return keras.Model(start, [out, L.Conv2D(21, 1, name="head")(u)])


def test_a_norm_that_is_not_trained_cancels_no_bias(tmp_path: Path) -> None:
    norms = L.BatchNormalization(), L.BatchNormalization(trainable=False)
    layers = [each for norm in norms for each in (L.Conv2D(8, 3), norm)]
    network = one(save(tmp_path, keras.Sequential([keras.Input((32, 32, 3)), *layers])), batch=2)
    assert [layer.norm_follows for layer in network.layers] == [True, False]


def test_what_is_not_trainable_has_no_wgrad(tmp_path: Path) -> None:
    base = keras.Sequential([keras.Input((32, 32, 3)), L.Conv2D(8, 3), L.BatchNormalization(), L.Conv2D(8, 3)])
    base.trainable = False
    network = one(save(tmp_path, keras.Sequential([base, L.Conv2D(8, 3), L.Conv2D(8, 3)])), batch=2)
    passes = [running_passes(layer, "training") for layer in network.layers]
    assert passes == [("fprop",), ("fprop",), ("fprop", "wgrad"), PASSES]


def test_functional_nested_and_shared_layers(tmp_path: Path) -> None:
    model = mixed_model()
    network = one(save(tmp_path, model), batch=2)
    assert sizes(network) == observed(model, np.zeros((2, 32, 32, 3), "float32"))
    by_name = {layer.name: layer for layer in network.layers}
    assert list(by_name) == [
        "stem", "dw", "sequential/deep", "sep/depthwise", "sep/pointwise", "up", "shared", "head", "shared#2"
    ]  # fmt: skip
    assert by_name["shared"].calls == 2
    assert by_name["shared#2"].calls == 1
    assert [layer.name for layer in network.layers if layer.first] == ["stem"]
    assert [layer.name for layer in network.layers if layer.head] == ["head"]
    assert [layer.name for layer in network.layers if layer.norm_follows] == ["stem"]
    assert (by_name["stem"].bias, by_name["sep/depthwise"].bias, by_name["sep/pointwise"].bias) == (False, False, True)
    assert (by_name["dw"].groups, by_name["dw"].K, by_name["dw"].depthwise) == (16, 32, True)
    assert {layer.layout for layer in network.layers} == {"auto"}
    edges = {edge.consumer: edge for edge in network.edges}
    names = list(by_name)
    assert edges[names.index("up")].producers == (names.index("sequential/deep"), names.index("sep/pointwise"))


@pytest.mark.parametrize("channels_last", [True, False])
@pytest.mark.parametrize("padding", ["same", "valid"])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_every_kind_in_every_dimension(tmp_path: Path, dims: int, padding: str, channels_last: bool) -> None:
    order = "channels_last" if channels_last else "channels_first"
    space = (12, 11, 10)[:dims]
    start = keras.Input((*space, 4) if channels_last else (4, *space))
    common = {"padding": padding, "data_format": order}
    conv, turned = getattr(L, f"Conv{dims}D"), getattr(L, f"Conv{dims}DTranspose")
    x = conv(8, 3, strides=2, **common)(start)
    x = turned(6, 3, strides=2, **common)(x)
    x = turned(6, 2, strides=3, **common)(x)
    x = turned(6, 4, strides=2, output_padding=1, **common)(x)
    x = conv(8, 2, dilation_rate=2, groups=2, **common)(x)
    if dims < 3:
        x = getattr(L, f"DepthwiseConv{dims}D")(3, strides=2, **common)(x)
        x = getattr(L, f"SeparableConv{dims}D")(5, 3, **common)(x)
    model = keras.Model(start, x)
    network = one(save(tmp_path, model), batch=2)
    assert sizes(network, channels_last) == observed(
        model, np.zeros(tuple(start.shape)[1:], "float32")[None].repeat(2, 0)
    )
    assert {layer.dims for layer in network.layers} == {dims}


def test_causal_padding_is_on_one_side(tmp_path: Path) -> None:
    model = keras.Sequential([keras.Input((20, 3)), L.Conv1D(4, 3, padding="causal", dilation_rate=2, name="c")])
    network = one(save(tmp_path, model), batch=2)
    assert sizes(network) == observed(model, np.zeros((2, 20, 3), "float32"))
    assert (network.layers[0].PadW, network.layers[0].PadW_end) == (4, 0)


@pytest.mark.parametrize(("name", "count"), [("ResNet50", 53), ("MobileNetV2", 52), ("EfficientNetB0", 81)])
def test_keras_applications(tmp_path: Path, name: str, count: int) -> None:
    model = getattr(keras.applications, name)(weights=None, input_shape=(64, 64, 3))
    network = one(save(tmp_path, model), batch=1)
    assert len(network.layers) == count
    assert sizes(network) == observed(model, np.zeros((1, 64, 64, 3), "float32"))


def test_sizes_that_the_file_leaves_open(tmp_path: Path) -> None:
    start = keras.Input((None, None, 3))
    x = L.Conv2D(8, 3, strides=2, padding="same")(start)
    x = L.Conv2D(8, 3)(L.ZeroPadding2D(((1, 0), (2, 1)))(x))
    x = L.Conv2D(8, 3)(L.Cropping2D(1)(L.UpSampling2D(2)(x)))
    model = keras.Model(start, L.Conv2D(8, 1)(L.GlobalMaxPooling2D(keepdims=True)(x)))
    path = save(tmp_path, model)
    assert "is ?x?x?x3" in message(path)
    assert "is 4x?x?x3" in message(path, batch=4)
    network = one(path, batch=4, inputs={"": "Nx20x30x3"})
    assert sizes(network) == observed(model, np.zeros((4, 20, 30, 3), "float32"))
    assert "cannot be 4x20x30x1" in message(path, inputs={"": "4x20x30x1"})
    assert "no input 'z'" in message(path, inputs={"z": "4x20x30x3"})


def test_sequential_without_an_input_layer(tmp_path: Path) -> None:
    model = keras.Sequential([L.Conv2D(8, 3, name="a"), L.MaxPooling2D(), L.Conv2D(8, 3, name="b")])
    model.build((None, 16, 16, 3))
    network = one(save(tmp_path, model), batch=2)
    assert sizes(network) == {"a": [((2, 16, 16, 3), (2, 14, 14, 8))], "b": [((2, 7, 7, 8), (2, 5, 5, 8))]}


def text_model() -> Any:
    return keras.Sequential([keras.Input((9,), dtype="int32"), L.Embedding(20, 6), L.Dropout(0.1), L.Conv1D(8, 3)])


def turned_model() -> Any:
    inputs = keras.Input((3, 8, 6))
    x = L.Conv2D(4, 3)(L.Permute((2, 3, 1))(inputs))
    x = keras.ops.concatenate([keras.ops.transpose(x, (0, 2, -3, 3))] * 2, axis=-1)
    return keras.Model(inputs, L.Conv2D(5, 1)(keras.ops.reshape(x, (-1, 2, 12, 4))))


def recurrent_model() -> Any:
    inputs = keras.Input((6,))
    x = L.GRU(8, return_sequences=True)(L.RepeatVector(10)(inputs))
    x = L.Bidirectional(L.LSTM(4, return_sequences=True))(L.Conv1D(8, 3)(x))
    x = L.MultiHeadAttention(2, 4)(x, x)
    x = L.Conv1D(4, 3)(L.LayerNormalization()(x))
    return keras.Model(inputs, L.Conv1D(4, 1)(keras.ops.expand_dims(L.SimpleRNN(5)(x), 1)))


def gated_model() -> Any:
    inputs = keras.Input((8, 6, 4))
    x = keras.ops.relu(L.Conv2D(4, 3)(inputs))
    gate = keras.ops.sigmoid(L.Conv2D(4, 1)(keras.ops.mean(x, axis=(1, -2), keepdims=True)))
    x = L.Conv2D(6, 1)(keras.ops.divide(keras.ops.multiply(x, gate), gate))
    return keras.Model(inputs, L.Conv1D(3, 1)(keras.ops.max(x, axis=1)))


def test_functions_have_the_sizes_of_their_results(tmp_path: Path) -> None:
    assert one(save(tmp_path, gated_model()), batch=2).whole


@pytest.mark.parametrize("made", [text_model, turned_model, recurrent_model, gated_model])
def test_sizes_behind_what_is_no_image(tmp_path: Path, made: Any) -> None:
    model = made()
    given = np.zeros((2, *model.inputs[0].shape[1:]), model.inputs[0].dtype)
    assert sizes(one(save(tmp_path, model), batch=2)) == observed(model, given)


def test_a_sequential_model_keeps_the_batch_behind_a_layer_of_unknown_shape(tmp_path: Path) -> None:
    around = L.Bidirectional(L.LSTM(4, return_sequences=True))
    model = keras.Sequential([keras.Input((9, 6)), around, L.Dropout(0.1), L.Conv1D(8, 3)])
    (layer,) = one(save(tmp_path, model), batch=2).layers
    assert (layer.N, layer.C, layer.W, layer.Q) == (2, 8, 9, 7)


def test_why_no_step_is_known_is_said(tmp_path: Path) -> None:
    inputs = keras.Input((8, 8, 4))
    padded = keras.ops.pad(L.Conv2D(4, 3)(inputs), [[0, 0], [1, 1], [1, 1], [0, 0]])
    path = save(tmp_path, keras.Model(inputs, L.Conv2D(4, 3)(padded)))
    assert one(path, batch=2).notes == ("step unknown: 1 of 1 operations have unknown sizes (Pad)",)
    network, errors = read(path, ReadOptions())
    assert network is not None
    assert (network.notes, len(errors)) == ((), 1)  # the batch comes first


def test_the_layer_whose_output_is_not_known_is_named(tmp_path: Path) -> None:
    odd = called({"class_name": "Odd", "module": "keras.layers", "name": "o", "config": {"name": "o"}}, ["i", 0, 0])
    path = with_config(tmp_path / "m.keras", functional("m", [odd, conv("c", "o")], "c"))
    assert message(path, batch=2) == "some convolutions have unknown sizes: what layer 'o', Odd, makes is not known"


def test_time_distributed(tmp_path: Path) -> None:
    start = keras.Input((5, 16, 16, 3))
    model = keras.Model(start, L.TimeDistributed(L.Conv2D(8, 3, name="inner"))(start))
    (layer,) = one(save(tmp_path, model), batch=2).layers
    assert (layer.N, layer.H, layer.P, layer.K) == (10, 16, 14, 8)


def test_spectral_normalisation(tmp_path: Path) -> None:
    model = keras.Sequential([keras.Input((8, 8, 3)), L.SpectralNormalization(L.Conv2D(5, 3, name="c"), name="s")])
    (layer,) = one(save(tmp_path, model), batch=2).layers
    assert (layer.name, layer.N, layer.C, layer.K, layer.P) == ("s/c", 2, 3, 5, 6)


@pytest.mark.parametrize(
    ("policy", "dtype"),
    [("mixed_float16", "fp16"), ("mixed_bfloat16", "bf16"), ("float64", "fp64"), ("float32", "fp32")],
)
def test_dtype_policies(tmp_path: Path, policy: str, dtype: str) -> None:
    keras.config.set_dtype_policy(policy)
    model = keras.Sequential([keras.Input((8, 8, 3)), L.Conv2D(8, 3)])
    assert one(save(tmp_path, model), batch=2).layers[0].dtype == dtype


def test_what_is_not_known_is_said(tmp_path: Path) -> None:
    @keras.saving.register_keras_serializable("mine")
    class Mine(L.Layer):
        def __init__(self, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.inner = L.Conv2D(8, 3)

        def call(self, x: Any) -> Any:
            return self.inner(x)

    model = keras.Sequential([keras.Input((8, 8, 3)), Mine(name="m"), L.Conv2D(4, 1)])
    assert "layer 'm': Mine is a class of its own" in message(save(tmp_path, model), batch=2)
    lstm = keras.Sequential([keras.Input((4, 8, 8, 3)), L.ConvLSTM2D(8, 3, name="l")])
    assert "ConvLSTM2D is a convolution that convlint does not know" in message(save(tmp_path, lstm), batch=2)
    both = keras.Sequential([keras.Input((4, 8, 8, 3)), L.Bidirectional(L.ConvLSTM2D(8, 3), name="b")])
    assert "'b': Bidirectional of ConvLSTM2D is a convolution that" in message(save(tmp_path, both), batch=2)


@pytest.mark.parametrize(
    ("kind", "stated"),
    [
        # of a class of the script that runs, Keras names no module
        ("Mine", {"module": None, "registered_name": "mine>Mine"}),
        ("Mine", {"module": "keras_hub.src.models.vit"}),
        # it may have the name of a layer,
        *((kind, {"module": "mine", "registered_name": kind}) for kind in ("Embedding", "Dense", "Reshape")),
        # and settings of any name
        *(("Mine", {"module": "mine", "config": {"name": "m", "layer": of}}) for of in (3, "conv2", {"units": 4})),
    ],
)
def test_a_class_of_a_script_or_of_another_library_is_said(tmp_path: Path, kind: str, stated: dict[str, Any]) -> None:
    mine = {"class_name": kind, "name": "m", "config": {"name": "m"}, **stated}
    model = functional("m", [conv("c"), called(mine, ["c", 0, 0])], "m")
    assert f"layer 'm': {kind} is a class of its own" in message(with_config(tmp_path / "m.keras", model))


def test_steps_of_unknown_shape(tmp_path: Path) -> None:
    odd = called({"class_name": "Odd", "module": "keras.layers", "name": "o", "config": {"name": "o"}}, ["i", 0, 0])
    inner = {"class_name": "Conv2D", "config": {"name": "c", "filters": 8, "kernel_size": 3}}
    steps = called({"class_name": "TimeDistributed", "name": "t", "config": {"layer": inner}}, ["o", 0, 0])
    network, errors = read(str(with_config(tmp_path / "m.keras", functional("m", [odd, steps], "t"))), ReadOptions())
    assert network is not None
    assert [(layer.name, layer.K, layer.H) for layer in network.layers] == [("t/c", 8, None)]
    assert errors != ()


def test_neither_keras_nor_a_backend_is_needed(tmp_path: Path) -> None:
    path = save(tmp_path, keras.Sequential([keras.Input((8, 8, 3)), L.Conv2D(8, 3)]))
    code = (
        "import sys\nfrom convlint.readers import ReadOptions\nfrom convlint.readers.keras.reader import read\n"
        f"print(len(read({path!r}, ReadOptions(batch=1))[0].layers), {{'keras', 'torch', 'h5py'}} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "1 set()\n"


def with_config(path: Path, config: Any) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("config.json", config if isinstance(config, str) else json.dumps(config))
    return path


def test_archives_made_to_hurt(tmp_path: Path) -> None:
    path = tmp_path / "bad.keras"
    bomb(path, "config.json", 1 << 30)
    assert "the limit is" in read_apart("keras.reader", path)
    with_false_size(path, "config.json", 200 << 20)
    assert read_apart("keras.reader", path).startswith("0 [")
    for content, words in {"[" * 100_000: "too deep", "{}": "lists no layers", "[]": "lists no layers"}.items():
        assert words in message(with_config(path, content))
    nested: dict[str, Any] = {"class_name": "Sequential", "config": {"name": "s", "layers": []}}
    for _ in range(100):
        nested = {"class_name": "Sequential", "config": {"name": "s", "layers": [nested]}}
    assert "nested deeper" in message(with_config(path, nested))
    path.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    assert "not a .keras file" in message(path)
    path.write_bytes(b"")
    assert "not a .keras file" in message(path)


def test_models_that_grow_without_end(tmp_path: Path) -> None:
    def sequence(layers: list[Any]) -> Any:
        return {"class_name": "Sequential", "module": "keras", "config": {"name": "s", "layers": layers}}

    one_layer = {"class_name": "ReLU", "config": {"name": "r"}}
    nodes = [{"args": [["a", 0, 0]]}]
    cyclic = [
        {"class_name": "InputLayer", "config": {"name": "i", "batch_shape": [1, 2]}, "name": "i", "inbound_nodes": []},
        {"class_name": "ReLU", "config": {"name": "a"}, "name": "a", "inbound_nodes": [{"args": [["b", 0, 0]]}]},
        {"class_name": "ReLU", "config": {"name": "b"}, "name": "b", "inbound_nodes": nodes},
    ]
    model = {
        "class_name": "Functional",
        "config": {"layers": cyclic, "input_layers": [["i", 0, 0]], "output_layers": []},
    }
    assert "cyclic or incomplete" in message(with_config(tmp_path / "c.keras", model))
    assert "more than 50,000 times" in message(with_config(tmp_path / "l.keras", sequence([one_layer] * 50_001)))


def functional(name: str, layers: list[Any], output: str, call: int = 0) -> dict[str, Any]:
    start = {"class_name": "InputLayer", "config": {"name": "i", "batch_shape": [2, 8, 8, 8]}, "name": "i"}
    config = {"name": name, "layers": [start, *layers], "input_layers": ["i", 0, 0], "output_layers": [output, call, 0]}
    return {"class_name": "Functional", "module": "keras", "name": name, "config": config}


def called(layer: dict[str, Any], *sources: Any) -> dict[str, Any]:
    return {**layer, "inbound_nodes": [{"args": [source]} for source in sources]}


def conv(name: str, source: str = "i", **changes: Any) -> dict[str, Any]:
    config = {"name": name, "filters": 8, "kernel_size": 3, "padding": "same", **changes}
    return called({"class_name": "Conv2D", "name": name, "config": config}, [source, 0, 0])


@pytest.mark.parametrize("inner", [[conv("c")], []])
def test_models_called_twice_in_models_called_twice(tmp_path: Path, inner: list[Any]) -> None:
    model = functional("m0", inner, "c" if inner else "i")
    for depth in range(1, 31):
        twice = called(model, ["i", 0, 0], [f"m{depth - 1}", 0, 0])
        model = functional(f"m{depth}", [twice], f"m{depth - 1}", 1)
    assert "the limit for one input" in read_apart("keras.reader", with_config(tmp_path / "m.keras", model), 150)


def test_a_model_of_many_inputs_that_is_called_often(tmp_path: Path) -> None:
    inputs = [{"class_name": "InputLayer", "config": {"name": f"i{k}"}, "name": f"i{k}"} for k in range(3000)]
    inner = called(functional("s", [*inputs, conv("c")], "c"), *[["i", 0, 0]] * 3000)
    assert "calls layers more than 50,000 times" in message(
        with_config(tmp_path / "m.keras", functional("m", [inner], "s"))
    )


def test_more_convolutions_than_any_network_has(tmp_path: Path) -> None:
    path = tmp_path / "m.keras"
    assert (
        len(one(str(with_config(path, functional("m", [conv(f"c{k}") for k in range(10_000)], "c0")))).layers) == 10_000
    )
    many = functional("m", [conv(f"c{k}") for k in range(10_001)], "c0")
    assert "more than 10,000 convolutions" in message(with_config(path, many))


LAYER = "config.json: config.layers[1]"


@pytest.mark.parametrize(
    ("layer", "words"),
    [
        (conv("c", strides=0), f"{LAYER}.config.strides must be 1 to 2^31 - 1, not 0"),
        (conv("c", strides=[1, 0]), f"{LAYER}.config.strides[1] must be 1 to 2^31 - 1, not 0"),
        (conv("c", strides=[1, 1, 1]), f"{LAYER}.config.strides must be one number or 2, not 3"),
        (conv("c", strides={"a": 1}), f"{LAYER}.config.strides must be 1 to 2^31 - 1, not an object"),
        (conv("c", dilation_rate=-1), f"{LAYER}.config.dilation_rate must be 1 to 2^31 - 1, not -1"),
        (conv("c", kernel_size=None), f"{LAYER}.config.kernel_size must be 1 to 2^31 - 1, not null"),
        (conv("c", kernel_size=1e308), "not 1e+308"),
        (conv("c", filters=2**31), f"{LAYER}.config.filters must be 1 to 2^31 - 1, not 2147483648"),
        (conv("c", filters=True), "filters must be 1 to 2^31 - 1, not true"),
        (conv("c", filters=10**4000), "not a number of very many digits"),
        (conv("c", groups=0), f"{LAYER}.config.groups must be 1 to 2^31 - 1, not 0"),
        (conv("c", groups=3), "asks for 3 groups, which cannot share 8 filters and 8 channels"),
        (conv("c", padding="x"), f"{LAYER}.config.padding must be same or valid, not 'x'"),
        (conv("c", padding=[]), f"{LAYER}.config.padding must be text, not a list"),
        (conv("c", use_bias=3), "use_bias must be true or false, not 3"),
        (conv("c", dtype=[]), f"{LAYER}.config.dtype must be text, not a list"),
        ({**conv("c"), "name": {}}, f"{LAYER}.name must be text, not an object"),
        ({**conv("c"), "name": "n" * 501}, f"{LAYER}.name is longer than 500 characters"),
        ({**conv("c"), "class_name": []}, f"{LAYER}.class_name must be text, not a list"),
        ({**conv("c"), "config": []}, f"{LAYER}.config must be an object, not a list"),
        (7, f"{LAYER} must be an object, not 7"),
        ({**conv("c"), "name": "i"}, f"{LAYER} has the name 'i' of another layer"),
        ({**conv("c"), "inbound_nodes": 7}, f"{LAYER}.inbound_nodes must be a list, not 7"),
        (called(conv("c"), ["i", 2**70, 0]), "inbound_nodes[0].args[0][1] must be 0 to 2,147,483,648"),
        (
            called(conv("c"), {"class_name": "__keras_tensor__", "config": {"keras_history": [[], {}, 0]}}),
            f"{LAYER}.inbound_nodes[0].args[0].config.keras_history[0] must be text, not a list",
        ),
        (
            called(
                conv("c"), {"class_name": "__keras_tensor__", "config": {"keras_history": ["i", 0, 0], "shape": [0]}}
            ),
            f"{LAYER}.inbound_nodes[0].args[0].config.shape[0] must be 1 to 2^31 - 1, not 0",
        ),
        (called({"class_name": "MaxPooling2D", "name": "p", "config": {"pool_size": 2, "strides": 0}}, ["i", 0, 0]),
         f"{LAYER}.config.strides must be 1 to 2^31 - 1, not 0"),
        (called({"class_name": "MaxPooling2D", "name": "p", "config": {"pool_size": 9}}, ["i", 0, 0]),
         f"{LAYER}.config makes 2x0x0x8 of 2x8x8x8, which no tensor can be"),
        (called({"class_name": "MaxPooling3D", "name": "p", "config": {"pool_size": 2}}, ["i", 0, 0]),
         f"{LAYER}.config is that of a layer over 3 axes of space, but its input"),
        (called({"class_name": "UpSampling2D", "name": "p", "config": {"size": 2**30}}, ["i", 0, 0]), "no tensor"),
        (called({"class_name": "Cropping2D", "name": "p", "config": {"cropping": 4}}, ["i", 0, 0]), "makes 2x0x0x8"),
        (called({"class_name": "Reshape", "name": "p", "config": {"target_shape": [0, -1]}}, ["i", 0, 0]),
         f"{LAYER}.config.target_shape[0] must be 1 to 2^31 - 1, not 0"),
        (called({"class_name": "Reshape", "name": "p", "config": {"target_shape": [7, -1]}}, ["i", 0, 0]),
         "cannot hold the 512 elements of 2x8x8x8"),
        (called({"class_name": "TimeDistributed", "name": "p", "config": {"layer": []}}, ["i", 0, 0]),
         f"{LAYER}.config.layer must be an object, not a list"),
    ],
)  # fmt: skip
def test_each_fault_of_a_config_is_told_with_its_place(tmp_path: Path, layer: Any, words: str) -> None:
    path = with_config(tmp_path / "m.keras", functional("m", [layer], "c"))
    assert words in message(path)
    assert len(one(str(with_config(path, functional("m", [conv("c")], "c")))).layers) == 1


def test_nested_wrappers_end(tmp_path: Path) -> None:
    layer: dict[str, Any] = {"class_name": "ReLU", "config": {"name": "r"}}
    for _ in range(80):
        layer = {"class_name": "TimeDistributed", "config": {"name": "t", "layer": layer}, "name": "t"}
    deep: Any = ["i", 0, 0]
    for _ in range(200):
        deep = [deep]
    start = {"class_name": "InputLayer", "config": {"name": "i", "batch_shape": [1] * 16}, "name": "i"}
    model = {"class_name": "Sequential", "config": {"name": "s", "layers": [start, layer]}}
    assert "input that has 2 axes" in message(with_config(tmp_path / "m.keras", model))
    model = functional("m", [called(conv("c"), deep)], "c")
    assert "nests deeper than 100 levels" in message(with_config(tmp_path / "m.keras", model))


def test_damaged_configs_give_errors_and_nothing_else(tmp_path: Path) -> None:
    with zipfile.ZipFile(save(tmp_path, mixed_model())) as archive:
        text = archive.read("config.json").decode()
    generator = random.Random(3)
    for _ in range(200):
        config = json.loads(text)
        node: Any = config
        parent, last = None, None
        for _ in range(generator.randrange(1, 9)):
            keys = list(node) if isinstance(node, dict) else list(range(len(node)))
            if not keys:
                break
            parent, last = node, generator.choice(keys)
            node = node[last]
            if not isinstance(node, (dict, list)):
                break
        parent[last] = generator.choice([None, 7, -1, 0, "x", [], {}, [1], 2**70, 1.5, True])
        network, errors = read(str(with_config(tmp_path / "damaged.keras", config)), ReadOptions(batch=2))
        assert network is not None or len(errors) == 1
