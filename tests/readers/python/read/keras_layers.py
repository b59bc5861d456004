"""Keras under its names: words for paddings, activations within a layer, channels from what a layer reads."""

import keras as k
import tensorflow as tf
from tensorflow.keras import layers
from tensorflow.keras.layers import BatchNormalization, Conv2D


def words():
    return [
        # ? framework=keras C=? K=16 R=3 U=1 PadH=0 PadH_end=0 bias=True
        layers.Conv2D(16, 3),
        # ? K=16 PadH=1 PadH_end=1 bias=False
        layers.Conv2D(16, 3, padding="same", use_bias=False),
        # ? K=16 R=4 U=1 PadH=1 PadH_end=2
        layers.Conv2D(16, (4, 4), (1, 1), "same"),
        # ? K=16 U=2 PadH=?
        layers.Conv2D(16, 3, strides=2, padding="same"),
        # ? K=16 DilH=2 groups=4 PadH=2
        layers.Conv2D(16, 3, dilation_rate=2, groups=4, padding="same"),
        # ? op=conv_transpose K=16 U=2 R=4
        k.layers.Conv2DTranspose(16, 4, strides=2),
        # ? dims=1 K=16 S=5
        tf.keras.layers.Conv1D(filters=16, kernel_size=5),
        # ? dims=3 K=16 T=3 StrideD=2
        k.layers.Convolution3D(16, 3, 2),
        # ? K=? R=?
        layers.Conv2D(nb_filter=8, filters=16, kernel_size=3, border_mode="same"),
    ]


def functional(classes=10):
    x = inputs = tf.keras.Input((224, 224, 3))
    # ? C=3 K=32 H=224 W=224 U=2 norm=True first=True
    x = Conv2D(32, 3, strides=2, padding="same")(x)
    x = layers.ReLU()(BatchNormalization()(x))
    # ? C=32 K=64 H=112 P=110 norm=False
    y = Conv2D(64, 3, activation="relu")(x)
    # ? C=32 K=64 H=112 norm=False
    z = Conv2D(64, 3)(x)
    x = layers.add([y, z])
    x = layers.MaxPooling2D()(x)
    # ? C=64 K=24 H=55 norm=True
    a = layers.BatchNormalization()(Conv2D(24, 1)(x))
    # ? C=64 K=40 H=55 norm=True
    b = layers.BatchNormalization()(Conv2D(40, 1, activation="linear")(x))
    x = layers.Concatenate()([a, b])
    x = layers.ZeroPadding2D(2)(x)
    # ? C=64 K=72 H=59
    x = Conv2D(72, 3, padding="same")(x)
    x = layers.UpSampling2D(2)(x)
    # ? C=72 K=80 H=118
    x = Conv2D(80, 3, padding="same", activation=tf.nn.relu)(x)
    x = layers.GlobalAveragePooling2D(keepdims=True)(x)
    # ? C=? K=20 points=True
    x = Conv2D(20, 1)(x)
    return tf.keras.Model(inputs, layers.Dense(10)(layers.Flatten()(x)))


def channels_first():
    x = tf.keras.Input((3, 32, 32))
    # ? C=3 K=16 H=32 P=30
    x = Conv2D(16, 3, data_format="channels_first")(x)
    return BatchNormalization(axis=1)(x)


model = tf.keras.Sequential(
    [
        tf.keras.Input((32, 32, 4)),
        # ? C=4 K=12 H=32 P=30 norm=True
        Conv2D(12, 3),
        BatchNormalization(),
    ]
)
# ? C=12 K=20 H=30 norm=False
model.add(Conv2D(20, 3, activation="relu"))
model.add(BatchNormalization())


class Block(tf.keras.Model):
    def __init__(self, width):
        super().__init__()
        # ? C=? K=28 norm=True
        self.conv = Conv2D(28, 3)
        self.bn = BatchNormalization()

    def call(self, inputs, training=False):
        return self.bn(self.conv(inputs), training=training)


class Scaled(Conv2D):
    def call(self, inputs):
        return tf.nn.relu(super().call(inputs))


class Called(Conv2D):
    def __call__(self, inputs):
        return tf.nn.relu(super().__call__(inputs))


class Built(layers.Layer):
    def build(self, shape):
        # ? C=3 K=40 norm=True
        self.conv = Conv2D(40, 3)
        self.bn = BatchNormalization()

    def call(self, inputs):
        return self.bn(self.conv(inputs))


def frozen_norms():
    x = tf.keras.Input((32, 32, 3))
    # ? C=3 K=12 norm=False
    y = BatchNormalization()(Conv2D(12, 3)(x), training=False)
    # ? C=3 K=20 norm=False
    z = BatchNormalization(trainable=False)(Conv2D(20, 3)(x))
    # ? C=3 K=36 norm=False
    v = BatchNormalization()(Scaled(36, 3)(x))
    # ? C=3 K=44 norm=False
    w = BatchNormalization()(Called(44, 3)(x))
    return tf.keras.Model(x, [y, z, v, w, Built()(x)])


class Frozen(tf.keras.Model):
    def __init__(self):
        super().__init__()
        # ? C=? K=52 norm=False
        self.conv = Conv2D(52, 3)
        self.bn = BatchNormalization()
        self.bn.trainable = False

    def call(self, inputs):
        return self.bn(self.conv(inputs))


def resized(latent):
    x = layers.Dense(7 * 7 * 64)(latent)
    x = layers.Reshape((7, 7, 64))(x)
    # ? C=64 K=44 H=7
    x = layers.Conv2DTranspose(44, 3)(x)
    x = layers.Reshape((-1, 22))(x)
    # ? C=22 K=36 norm=True
    x = layers.Conv1D(36, 3)(x)
    x = layers.BatchNormalization()(x)
    x = layers.Reshape((8, 8, -1))(x)
    # ? C=? K=38
    return layers.Conv2D(38, 3)(x)


def of_words(line):
    x = layers.Embedding(1000, 132)(line)
    # ? C=132 K=34
    return layers.Conv1D(34, 7)(x)


def augmented():
    augment = k.Sequential([layers.RandomFlip("horizontal"), layers.RandomRotation(0.1), layers.CenterCrop(160, 160)])
    images = k.Input(shape=(180, 180, 3))
    # ? C=3 K=32 H=? first=True
    return layers.Conv2D(32, 3)(layers.Rescaling(1 / 255)(augment(images)))


model = k.Sequential()
# ? C=3 K=54
model.add(layers.Conv2D(54, 3, input_shape=(150, 150, 3)))
model.fit(0)
model = k.Sequential()
# ? C=5 K=56
model.add(layers.Conv2D(56, 3, input_shape=(150, 150, 5)))
# ? C=56 K=58
model.add(layers.Conv2D(58, 3))
model.fit(1)
