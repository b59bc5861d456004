"""Keras's convolutions, in the functional style, in a Sequential and in models of the source."""

from pathlib import Path
from typing import Any

import pytest

from convlint.model.source import SourceLayer
from convlint.readers.python.imports import ProjectImports
from convlint.readers.python.nn.reading import read_layers
from convlint.readers.python.project import Project

HEAD = "import tensorflow as tf\nfrom tensorflow import keras\nfrom tensorflow.keras import layers\n"
INPUT = "def make():\n    i = keras.Input((224, 112, 3))\n"


def read(tmp_path: Path, text: str) -> list[SourceLayer]:
    (tmp_path / "net.py").write_text(HEAD + text)
    return list(
        read_layers(
            ProjectImports(Project(str(tmp_path), [str(tmp_path / "net.py")])), [str(tmp_path / "net.py")]
        ).layers
    )


def body(*lines: str) -> str:
    return INPUT + "".join(f"    {line}\n" for line in lines)


@pytest.mark.parametrize(
    ("call", "fields"),
    [
        ("layers.Conv2D(64, 3)", {"C": None, "K": 64, "R": 3, "S": 3, "U": 1, "PadH": 0, "bias": True, "groups": 1}),
        ("keras.layers.Conv2D(64, (1, 5), 2, 'valid', use_bias=False)", {"R": 1, "S": 5, "U": 2, "bias": False}),
        ("tf.keras.layers.Conv2D(filters=64, kernel_size=4, padding='same')", {"PadH": 1, "PadH_end": 2}),
        ("layers.Conv2D(64, 3, 2, 'same')", {"PadH": None, "PadH_end": None, "U": 2}),  # as the input's size has it
        ("layers.Conv2D(64, 3, strides=(2, 1), dilation_rate=2)", {"U": 2, "V": 1, "DilH": 2}),
        ("layers.Conv2D(64, 3, groups=4)", {"groups": 4}),
        ("layers.Conv1D(64, 3)", {"dims": 1, "S": 3}),
        ("layers.Conv3D(64, 3)", {"dims": 3, "T": 3}),
        ("layers.Conv2DTranspose(64, 4, 2, padding='same')", {"op": "conv_transpose", "K": 64, "PadH": None}),
        ("layers.Conv2D(64, 3, 1, 'same', None, 1, 'relu', False)", {"K": None, "bias": None, "R": None}),
        ("layers.Convolution2D(64, 3, 3)", {"K": None, "bias": None, "R": None}),
        ("layers.Convolution2D(64, (3, 3))", {"K": 64, "bias": True, "R": 3, "U": 1}),
        ("layers.Convolution3D(64, 3, 3, 3)", {"K": None, "bias": None, "R": None}),
        ("layers.Convolution2D(64, 3, 3, border_mode='same', bias=False)", {"K": None, "bias": None, "R": None}),
        ("layers.Conv2D(64, 3, **n)", {"bias": None}),
    ],
)
def test_a_construction_has_the_fields_of_its_call(tmp_path: Path, call: str, fields: dict[str, Any]) -> None:
    (found,) = read(tmp_path, f"def make(n):\n    return {call}\n")
    assert found.framework == "keras"
    assert {name: getattr(found.layer, name) for name in fields} == fields


def test_a_separable_layer_is_two_convolutions(tmp_path: Path) -> None:
    """Each channel by itself, without bias and activation, then all of them at each point; a norm reads the second."""
    x = "layers.SeparableConv2D(30, 3, strides=2, depth_multiplier=2, padding='same')(i)"
    found = read(tmp_path, body(f"return layers.BatchNormalization()({x})"))
    layers = [each.layer for each in found]
    values = [(each.name, each.C, each.K, each.groups, each.R, each.U, each.bias, each.norm_follows) for each in layers]
    assert values == [
        ("make#4/depthwise", 3, 6, 3, 3, 2, False, False), ("make#4/pointwise", 6, 30, 1, 1, 1, True, True)
    ]  # fmt: skip
    assert [each.calls for each in found] == [1, 1]
    assert layers[1].H == 112


def test_a_separable_layer_applies_its_activation_behind_both(tmp_path: Path) -> None:
    x = "layers.BatchNormalization()(layers.SeparableConv2D(30, 3, activation='relu')(i))"
    assert [each.layer.norm_follows for each in read(tmp_path, body(f"return {x}"))] == [False, False]


def test_a_depthwise_layer_has_a_filter_for_each_channel_that_it_reads(tmp_path: Path) -> None:
    (layer,) = read(tmp_path, body("return layers.DepthwiseConv2D(5, 2, 'same', 4, use_bias=False)(i)"))
    assert (layer.layer.C, layer.layer.K, layer.layer.groups, layer.layer.R, layer.layer.U) == (3, 12, 3, 5, 2)
    assert (layer.layer.bias, layer.unknown) == (False, ())
    (layer,) = read(tmp_path, "class Net(layers.Layer):\n    def __init__(self):\n"
                    "        self.a = layers.DepthwiseConv2D(3)\n")  # fmt: skip
    assert (layer.layer.C, layer.layer.K, layer.unknown) == (None, None, ("groups",))


LAST = "return layers.Conv2D(8, 1)(x)"


@pytest.mark.parametrize(
    ("lines", "C"),
    [
        (("x = layers.Conv2D(60, 3)(x)", "x = layers.BatchNormalization()(x)", "x = layers.ReLU()(x)"), 60),
        (("x = layers.Concatenate()([x, layers.Conv2D(5, 1)(x)])",), 8),
        (("x = layers.concatenate([x, layers.Conv2D(5, 1)(x)], axis=3)",), 8),
        (("x = layers.Concatenate(axis=1)([x, x])",), None),
        (("x = layers.Concatenate(axis=AXIS)([x, x])",), None),
        (("x = layers.Add()([layers.Conv2D(7, 1)(x), layers.Conv2D(7, 3, padding='same')(x)])",), 7),
        (("x = layers.Conv2D(x.shape[-1] * 2, 1)(x)",), 6),
        (("x = layers.Lambda(f)(x)",), None),
        (("x = layers.Lambda(lambda y: (y - MEAN) / 255.0)(layers.Conv2D(7, 1)(x))",), 7),
        (("x = layers.Lambda(lambda y, n: y[:n], arguments={'n': 2})(layers.Conv2D(7, 1)(x))",), None),
        (("x = layers.Lambda(function=lambda y: tf.nn.depth_to_space(y, 2))(layers.Conv2D(28, 1)(x))",), 7),
        (("x = tf.image.resize(x, [8, 8])",), 3),
        (("x = tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]])",), 3),
        (("x = tf.pad(x, paddings=((0, 0), (1, 1), (P, P), (0, 0)), mode='REFLECT')",), 3),
        (("x = tf.pad(x, [[0, 0], [0, 0], [0, 0], [1, 1]])",), None),
        (("x = tf.pad(x, P)",), None),
        (("x = tf.split(layers.Conv2D(14, 1)(x), 2, axis=-1)[0]",), 7),
        (("x = tf.split(layers.Conv2D(14, 1)(x), num_or_size_splits=[4, 10], axis=3)[1]",), 10),
        (("x = tf.split(layers.Conv2D(14, 1)(x), 2, axis=1)[0]",), None),
        (("x = tf.add_n([x, x])",), 3),
        (("x = tf.clip_by_value(tf.cast(tf.abs(x), tf.float32), 0, 1)",), 3),
        (("x = layers.Conv2D(tf.keras.backend.int_shape(x)[-1] * 2, 1)(x)",), 6),
        (("x = layers.Conv2D(x.get_shape()[3] * 2, 1)(x)",), 6),
        (("x = layers.Conv2D(x.get_shape().as_list()[-1], 1)(x)",), 3),
        (("x = layers.Conv2D(x.shape.as_list()[-1], 1)(x)",), 3),
        (("x = layers.Conv2D(x.shape[-1].value, 1)(x)",), 3),
        (("x = layers.Conv2D(int(x.get_shape()[-1]), 1)(x)",), 3),
        (("x = layers.SeparableConv2D(7, 1)(x)",), 7),
        (("x = layers.DepthwiseConv2D(3, depth_multiplier=3)(x)",), 9),
        (("x = layers.DepthwiseConv2D(3, data_format='channels_first')(x)",), None),
        (("x = x[:, :, :, :1]",), None),
        (("x = tf.nn.relu(x)",), 3),
        (("x = tf.transpose(x, (0, 3, 1, 2))",), None),
    ],
)
def test_what_a_layer_reads(tmp_path: Path, lines: tuple[str, ...], C: int | None) -> None:
    assert read(tmp_path, body("x = i", *lines, LAST))[-1].layer.C == C


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (("x = C(i)", "return layers.BatchNormalization(axis=AXIS)(x)"), True),
        (("x = C(i)", "return layers.BatchNormalization(axis=1)(x)"), False),
        (("x = C(i)", "return layers.ReLU()(x)"), False),
        (("x = C(i)", "return layers.LayerNormalization()(x)"), False),
        (("x = C(i)", "return x, layers.BatchNormalization()(x)"), None),
        (("x = C(i)", "y = layers.BatchNormalization()(x)", "return layers.Add()([x, y])"), False),
        (("x = C(i)", "y = layers.BatchNormalization()(x)", "return keras.Model(i, [x, y])"), False),
        (("x = C(i)", "unknown(x)", "return layers.BatchNormalization()(x)"), None),
        (("x = layers.Conv2D(8, 3, activation=None)(i)", "return layers.BatchNormalization()(x)"), True),
        (("x = layers.Conv2D(8, 3, activation=ACT)(i)", "return layers.BatchNormalization()(x)"), None),
        (("return keras.Sequential([C, layers.BatchNormalization()])",), True),
        (("return keras.Sequential([layers.Conv2D(8, 3, activation='relu'), layers.BatchNormalization()])",), False),
        (("m = keras.Sequential(name='m')", "m.add(C)", "m.add(layers.BatchNormalization())", "return m"), True),
        (("m = keras.Sequential()", "m.add(C)", "m.add(layers.ReLU())", "return m"), False),
        (("c = C", "x = c(i)", "y = c(x)", "return layers.BatchNormalization()(y)"), False),
    ],
)
def test_whether_a_norm_follows(tmp_path: Path, lines: tuple[str, ...], expected: bool | None) -> None:
    text = body(*(line.replace("C(i)", "layers.Conv2D(8, 3)(i)").replace("C,", "layers.Conv2D(8, 3),")
                  .replace("(C)", "(layers.Conv2D(8, 3))").replace("c = C", "c = layers.Conv2D(8, 3)")
                  for line in lines))  # fmt: skip
    assert [each.layer.norm_follows for each in read(tmp_path, text)] == [expected]


def test_a_first_layer_may_state_its_input(tmp_path: Path) -> None:
    text = "def make():\n    m = keras.models.Sequential()\n"
    text += "    m.add(layers.Conv2D(6, 3, input_shape=(28, 28, 1)))\n    m.add(layers.Conv2D(9, 3))\n    return m\n"
    found = read(tmp_path, text)
    assert [(each.layer.C, each.layer.K) for each in found] == [(1, 6), (6, 9)]


FILLED = (
    "model.add(layers.Conv2D(64, 3, input_shape=(32, 32, 3)))", "model.add(layers.BatchNormalization())",
    "model.add(layers.Dropout(0.3))", "model.add(layers.Conv2D(60, 3))", "model.add(layers.ReLU())",
)  # fmt: skip
INIT = "class Net:\n    def __init__(self):\n"


def filled(head: str, indent: int = 4, name: str = "model") -> str:
    """Return code that fills a Sequential behind a first line."""
    return head + "".join(f"{' ' * indent}{line.replace('model', name)}\n" for line in FILLED)


@pytest.mark.parametrize(
    "text",
    [
        filled("def train():\n    model = keras.Sequential()\n") + "    model.fit()\n",
        filled("if __name__ == '__main__':\n    model = keras.Sequential()\n") + "    model.fit()\n",
        filled(
            f"{INIT}        self.model = self.build()\n        self.model = self.train(self.model)\n"
            "    def train(self, model):\n        model.fit()\n        return model\n"
            "    def build(self):\n        model = keras.Sequential()\n", 8,
        ) + "        return model\n",
        filled(
            f"{INIT}        self.model = keras.Sequential()\n        self.fill()\n    def fill(self):\n", 8,
            "self.model",
        ),
        filled(
            "class Net:\n    def build(self):\n        self.model = keras.Sequential()\n        self.fill()\n"
            "    def fill(self):\n", 8, "self.model",
        ) + "def train():\n    net = Net()\n    net.build()\n",
        filled(
            "class Net:\n    def fill(self):\n        self.model = keras.Sequential()\n", 8, "self.model",
        ) + "net = Net()\nnet.fill()\n",
    ],
)  # fmt: skip
def test_a_sequential_that_nobody_returns_is_run(tmp_path: Path, text: str) -> None:
    """Code hands it to `fit`, in a function, a script or an attribute of an object that is no network itself."""
    found = [each.layer for each in read(tmp_path, text)]
    assert [(each.C, each.K, each.H, each.norm_follows) for each in found] == [(3, 64, 32, True), (64, 60, 30, False)]


def test_a_sequential_within_another_reads_what_that_gives_it(tmp_path: Path) -> None:
    text = (
        f"{INIT}        self.one = keras.Sequential([layers.Conv2D(24, 3)])\n"
        "        self.both = keras.Sequential()\n        self.both.add(layers.Conv2D(60, 3, input_shape=(32, 32, 3)))\n"
        "        self.both.add(self.one)\n"
    )
    found = [each.layer for each in read(tmp_path, text)]
    assert sorted((each.C, each.K) for each in found) == [(3, 60), (60, 24)]


@pytest.mark.parametrize("first", ["ZeroPadding2D(1, {})", "Dropout(0.1, {})", "BatchNormalization({})", "ReLU({})"])
def test_a_first_layer_of_another_kind_may_state_the_input(tmp_path: Path, first: str) -> None:
    first = first.format("input_shape=(28, 28, 3)")
    text = f"def make():\n    return keras.Sequential([layers.{first}, layers.Conv2D(6, 3)])\n"
    size = 30 if "Zero" in first else 28
    assert [(each.layer.C, each.layer.H) for each in read(tmp_path, text)] == [(3, size)]


@pytest.mark.parametrize(
    "first",
    [
        "keras.Input(shape=(28, 28, 1))",
        "keras.Input((28, 28, 1), name='i')",
        "layers.InputLayer(input_shape=(28, 28, 1))",
        "layers.InputLayer((28, 28, 1))",
        "layers.InputLayer(shape=(28, 28, 1))",
        "layers.InputLayer(batch_shape=(None, 28, 28, 1))",
    ],
)
def test_a_sequential_may_begin_with_its_input(tmp_path: Path, first: str) -> None:
    text = f"def make():\n    return keras.Sequential([{first}, layers.Conv2D(6, 3), layers.Conv2D(9, 3)])\n"
    assert [(each.layer.C, each.layer.K, each.layer.H) for each in read(tmp_path, text)] == [(1, 6, 28), (6, 9, 26)]
    text = (
        f"def make():\n    m = keras.Sequential()\n    m.add({first})\n    m.add(layers.Conv2D(6, 3))\n    return m\n"
    )
    assert [(each.layer.C, each.layer.K) for each in read(tmp_path, text)] == [(1, 6)]


@pytest.mark.parametrize("first", ["keras.Input(shape=n)", "layers.InputLayer(n)", "keras.Input((28, 28, n))"])
def test_an_input_of_unknown_size_states_no_channels(tmp_path: Path, first: str) -> None:
    text = f"def make(n):\n    return keras.Sequential([{first}, layers.Conv2D(6, 3)])\n"
    assert [(each.layer.C, each.layer.K) for each in read(tmp_path, text)] == [(None, 6)]


def test_a_sequential_in_a_model_reads_what_it_is_given(tmp_path: Path) -> None:
    text = body("x = layers.Conv2D(8, 3)(i)", "m = keras.Sequential([keras.Input((9, 9, 8)), layers.Conv2D(6, 3)])",
                "return m(x)")  # fmt: skip
    assert [(each.layer.C, each.layer.K, each.layer.H) for each in read(tmp_path, text)] == [(3, 8, 224), (8, 6, 222)]


def test_a_layer_for_each_step_of_time_reads_the_channels_of_all(tmp_path: Path) -> None:
    lines = (
        "i = keras.Input((10, 64, 64, 8))",
        "x = layers.TimeDistributed(layers.Conv2D(16, 3), name='c')(i)",
        "x = layers.TimeDistributed(layer=layers.BatchNormalization(), name='n')(x)",
        "return layers.TimeDistributed(keras.Sequential([layers.Conv2D(6, 3)]))(x)",
    )
    found = [each.layer for each in read(tmp_path, body(*lines))]
    assert [(each.C, each.K, each.norm_follows) for each in found] == [(8, 16, True), (16, 6, None)]


@pytest.mark.parametrize(
    ("lines", "fields"),
    [
        (("x = layers.TimeDistributed(layers.MaxPooling2D(2))(i)",), {"C": 8, "D": 10, "H": 28, "W": 14}),
        (("x = layers.Concatenate(axis=4)([i, i])",), {"C": 16, "D": 10}),
        (
            ("x = layers.TimeDistributed(layers.Conv2D(48, 1))(i)", "x = layers.Concatenate(axis=3)([x, x])"),
            {"C": None, "D": None},
        ),
        (("x = layers.TimeDistributed(layers.Conv2D(48, 1))(i)",), {"C": 48, "D": 10, "H": 56, "W": 28}),
    ],
)
def test_the_axis_of_time_stays(tmp_path: Path, lines: tuple[str, ...], fields: dict[str, int | None]) -> None:
    text = ("i = keras.Input((10, 56, 28, 8))", *lines, "return layers.Conv3D(7, 3)(x)")
    *_, last = read(tmp_path, body(*text))
    assert {name: getattr(last.layer, name) for name in fields} == fields


def test_a_layer_for_each_step_may_have_the_channels_first(tmp_path: Path) -> None:
    first = "layers.TimeDistributed(layers.Conv2D(48, 3, data_format='channels_first'))(i)"
    (found,) = read(tmp_path, body("i = keras.Input((30, 64, 56, 28))", f"return {first}"))
    assert (found.layer.C, found.layer.K) == (64, 48)


@pytest.mark.parametrize("setting", ["", "keras.backend.set_image_data_format('channels_first')\n"])
def test_time_is_no_channel_where_the_channels_are_first(tmp_path: Path, setting: str) -> None:
    order = "" if setting else ", data_format='channels_first'"
    layer = f"layers.TimeDistributed(layers.Conv2D(48, 3{order}))"
    text = body("i = keras.Input((30, 64, 56, 28))", f"x = {layer}(i)", f"x = {layer}(x)", f"return {layer}(x)")
    assert [each.layer.C for each in read(tmp_path, setting + text)] == [64, None, None]


def test_a_separable_layer_has_the_order_of_its_file(tmp_path: Path) -> None:
    text = "keras.backend.set_image_data_format('channels_first')\n"
    text += "def make():\n    return layers.SeparableConv2D(24, 3)(keras.Input((16, 32, 30)))\n"
    assert [(each.layer.C, each.layer.H) for each in read(tmp_path, text)] == [(16, 32), (16, 30)]


CHANNELS_FIRST = "data_format='channels_first'"


@pytest.mark.parametrize(
    ("setting", "order", "C"),
    [
        ("", "", [100, 8, 16]), ("", f", {CHANNELS_FIRST}", [16, 8, 16]),
        ("", ", data_format=ORDER", [None, None, None]),
        ("keras.backend.set_image_data_format('channels_first')\n", "", [16, 8, 16]),
        ("tf.keras.utils.set_image_data_format('channels_first')\n", ", data_format='channels_last'", [100, 8, 16]),
        ("if ORDER:\n    keras.backend.set_image_data_format('channels_first')\n", "", [None, None, None]),
        ("keras.backend.set_image_data_format(data_format='channels_first')\n", "", [16, 8, 16]),
        ("f = keras.backend.set_image_data_format\nf('channels_last')\n", "", [100, 8, 16]),
        ("\"\"\"\nset_image_data_format('channels_first')\n\"\"\"\n", "", [100, 8, 16]),
        ("if ORDER:\n    keras.backend.set_image_data_format('channels_last')\n", "", [100, 8, 16]),
        (
            "def f(old):\n    keras.backend.set_image_data_format('channels_last')\n"
            "    keras.backend.set_image_data_format(old)\n", "", [100, 8, 16],
        ),
        ("def f(new):\n    keras.backend.set_image_data_format(new)\n", "", [None, None, None]),
        (
            "keras.backend.set_image_data_format('channels_first')\n"
            "keras.backend.set_image_data_format('channels_last')\n", "", [100, 8, 16],
        ),
    ],
)  # fmt: skip
def test_the_order_of_axes(tmp_path: Path, setting: str, order: str, C: list[int | None]) -> None:
    lines = (
        "i = keras.Input((16, 64, 100))", f"x = layers.Conv2D(8, 3{order})(i)",
        f"x = layers.MaxPooling2D(2{order})(x)", f"y = layers.Conv2D(8, 3{order})(x)",
        f"x = layers.Concatenate(axis={1 if C[0] == 16 else -1})([x, y])",
        f"return layers.Conv2D(8, 3{order})(x)",
    )  # fmt: skip
    text = "def make():\n" + "".join(f"    {line}\n" for line in lines)
    assert [each.layer.C for each in read(tmp_path, setting + text)] == C


ASKED = """
from keras import backend as K
def make():
    if ORDER == 'channels_first':
        shape, axis = (3, 64, 100), 1
    else:
        shape, axis = (64, 100, 3), 3
    x = layers.Conv2D(8, 3)(keras.Input(shape))
    return layers.BatchNormalization(axis=axis)(x)
"""


@pytest.mark.parametrize(
    ("order", "setting", "expected"),
    [
        ("K.image_data_format()", "", (3, 64, True)),
        ("keras.backend.image_data_format()", "", (3, 64, True)),
        ("tf.keras.backend.image_data_format()", "", (3, 64, True)),
        ("keras.config.image_data_format()", "", (3, 64, True)),
        ("K.image_data_format()", "K.set_image_data_format('channels_last')", (3, 64, True)),
        ("K.image_data_format()", "K.set_image_data_format('channels_first')", (3, 64, True)),
        ("K.image_data_format()", "K.set_image_data_format(a)", (None, None, True)),
        ("own.image_data_format()", "", (None, None, True)),
    ],
)
def test_the_order_of_axes_can_be_asked(
    tmp_path: Path, order: str, setting: str, expected: tuple[int | None, int | None, bool | None]
) -> None:
    text = ASKED.replace("ORDER", order).replace("as K\n", f"as K\n{setting}\n")
    (found,) = read(tmp_path, text)
    assert (found.layer.C, found.layer.H, found.layer.norm_follows) == expected


@pytest.mark.parametrize(
    ("name", "setting", "C"),
    [
        ("other.py", "K.set_image_data_format('channels_last')", 3),
        ("other.py", "K.set_image_data_format('channels_first')", None),
        ("other.py", "if a:\n    K.set_image_data_format('channels_first')", None),
        ("other.py", "if a:\n    K.set_image_data_format('channels_last')", 3),
        ("other.py", "# K.set_image_data_format('channels_first')", 3),
        ("tests/test_other.py", "K.set_image_data_format('channels_first')", 3),
    ],
)
def test_another_file_may_set_the_order_that_is_asked(tmp_path: Path, name: str, setting: str, C: int | None) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / name).write_text(f"from keras import backend as K\n{setting}\n")
    (found,) = read(tmp_path, ASKED.replace("ORDER", "K.image_data_format()"))
    assert found.layer.C == C


@pytest.mark.parametrize(("axis", "expected"), [("", False), ("axis=1", True), ("axis=2", False), ("axis=-1", False)])
def test_a_norm_over_another_axis_than_the_channels_cancels_no_bias(tmp_path: Path, axis: str, expected: bool) -> None:
    text = body(f"x = layers.Conv2D(8, 3, {CHANNELS_FIRST})(i)", f"return layers.BatchNormalization({axis})(x)")
    assert [each.layer.norm_follows for each in read(tmp_path, text)] == [expected]


@pytest.mark.parametrize(
    ("conv", "norm", "expected"),
    [
        (CHANNELS_FIRST, "layers.BatchNormalization(axis=1)", True),
        (CHANNELS_FIRST, "layers.BatchNormalization(1)", True),
        (f"activation='relu', {CHANNELS_FIRST}", "layers.BatchNormalization(axis=1)", False),
        (CHANNELS_FIRST, "layers.BatchNormalization(axis=1, trainable=False)", False),
        (CHANNELS_FIRST, "layers.LayerNormalization(axis=1)", False),
        ("data_format='channels_last'", "layers.BatchNormalization(axis=1)", False),
        ("data_format=ORDER", "layers.BatchNormalization(axis=1)", False),
    ],
)
def test_a_norm_over_the_first_axis_cancels_a_bias_where_the_channels_are_first(
    tmp_path: Path, conv: str, norm: str, expected: bool
) -> None:
    text = body(f"return {norm}(layers.Conv2D(8, 3, {conv})(i))")
    assert [each.layer.norm_follows for each in read(tmp_path, text)] == [expected]
    text = f"m = keras.Sequential()\nm.add(layers.Conv2D(8, 3, {conv}))\nm.add({norm})\n"
    assert [each.layer.norm_follows for each in read(tmp_path, text)] == [expected]


def test_a_norm_over_the_first_axis_may_be_frozen_later(tmp_path: Path) -> None:
    text = body("n = layers.BatchNormalization(axis=1)", "n.trainable = False",
                f"return n(layers.Conv2D(8, 3, {CHANNELS_FIRST})(i))")  # fmt: skip
    assert [each.layer.norm_follows for each in read(tmp_path, text)] == [False]


def test_names_come_from_star_imports(tmp_path: Path) -> None:
    text = (
        "from tensorflow.keras.layers import *\nfrom tensorflow.keras.models import *\n"
        "from tensorflow.keras.optimizers import *\n"
        "def net():\n    i = Input((224, 112, 3))\n    x = Conv2D(60, 3, padding='same')(i)\n"
        "    y = UpSampling2D()(MaxPooling2D()(x))\n"
        "    return Model(i, Conv2D(8, 3)(concatenate([x, y])))\n"
    )
    sizes = [(each.layer.C, each.layer.K, each.layer.H, each.layer.W) for each in read(tmp_path, text)]
    assert sizes == [(3, 60, 224, 112), (120, 8, 224, 112)]


def test_a_functional_network_at_the_top_level_of_a_script(tmp_path: Path) -> None:
    text = (
        "i = keras.Input((224, 112, 3))\nx = layers.Conv2D(60, 3, padding='same')(i)\nx = layers.ReLU()(x)\n"
        "x = layers.Conv2D(8, 3)(x)\nmodel = keras.Model(i, x)\n"
    )
    sizes = [(each.layer.C, each.layer.K, each.layer.H, each.layer.W, each.certainty) for each in read(tmp_path, text)]
    assert sizes == [(3, 60, 224, 112, "stated"), (60, 8, 224, 112, "stated")]


@pytest.mark.parametrize("first", ["a.py", "z.py"])
def test_a_script_that_another_file_imports_is_read_as_it_is_alone(tmp_path: Path, first: str) -> None:
    script = "i = keras.Input((224, 112, 3))\nx = layers.Conv2D(60, 3)(i)\nx = layers.Conv2D(8, 3)(x)\n"
    (tmp_path / "net.py").write_text(HEAD + script)
    (tmp_path / first).write_text(HEAD + "from net import x\ndef f():\n    return layers.Conv2D(8, 3)(x)\n")
    paths = sorted(map(str, tmp_path.glob("*.py")))
    found = read_layers(ProjectImports(Project(str(tmp_path), paths)), paths).layers
    assert [(each.layer.C, each.layer.K) for each in found if each.layer.path.endswith("net.py")] == [(3, 60), (60, 8)]


@pytest.mark.parametrize(
    ("module", "given", "C"),
    [
        ("keras.applications.imagenet_utils", "None, default_size=299", 3),
        ("keras_applications.imagenet_utils", "None, 224, 32, 'channels_last', True", 3),
        ("tensorflow.keras.applications.imagenet_utils", "(64, 64, 5), default_size=299", 5),
        ("keras.src.applications.imagenet_utils", "None, default_size=299", 3),
        ("keras.applications.imagenet_utils", "None, 224, 32, 'channels_first', True", None),
        ("keras.applications.imagenet_utils", "shape, default_size=299", None),
        ("own", "None, default_size=299", None),
    ],
)
def test_the_shape_that_a_copy_of_keras_applications_obtains(
    tmp_path: Path, module: str, given: str, C: int | None
) -> None:
    name = "obtain_input_shape" if "src" in module else "_obtain_input_shape"
    text = f"from {module} import {name} as obtain\n"
    text += f"def make(shape=None):\n    i = keras.Input(shape=obtain({given}))\n    return layers.Conv2D(26, 3)(i)\n"
    stated = [each for each in read(tmp_path, text) if each.certainty == "stated"]
    assert [each.layer.C for each in stated] == [C]
