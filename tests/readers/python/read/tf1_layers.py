"""Functions of TensorFlow 1 that make a layer and apply it: `tf.layers`, and slim, whose arguments a scope may set."""

import tensorflow as tf
import tensorflow.contrib.slim as slim
import tf_slim
from tensorflow.contrib.layers import batch_norm, instance_norm
from tensorflow.python.ops import array_ops


def block(x, training):
    # ? framework=keras K=24 R=3 U=2 bias=True norm=True
    x = tf.layers.conv2d(x, 24, 3, 2, "same")
    x = tf.nn.relu(tf.layers.batch_normalization(x, training=training))
    # ? C=24 K=40 R=1 bias=False norm=True
    x = tf.compat.v1.layers.conv2d(inputs=x, filters=40, kernel_size=1, use_bias=False)
    x = batch_norm(x, scale=True, is_training=training)
    x = tf.layers.max_pooling2d(x, 2, 2)
    # ? op=conv_transpose C=40 K=48 R=4 U=2 norm=True
    x = tf.layers.conv2d_transpose(x, 48, (4, 4), strides=2)
    x = instance_norm(x)
    # ? dims=1 K=56 S=5
    y = tf.layers.conv1d(tf.layers.flatten(x), 56, 5)
    # ? C=48 K=48 groups=48 R=3 bias=False; C=48 K=72 groups=1 R=1 bias=True
    x = tf.layers.separable_conv2d(x, 72, 3)
    return tf.layers.batch_normalization(x, -1, training=training), y


def averages(x, training=False):
    # ? K=16 norm=False
    a = tf.layers.batch_normalization(tf.layers.conv2d(x, 16, 3))
    # ? K=24 norm=False
    b = tf.layers.batch_normalization(tf.layers.conv2d(x, 24, 3), training=False)
    # ? K=32 norm=False
    c = batch_norm(tf.layers.conv2d(x, 32, 3))
    # ? K=40 norm=False
    d = tf.layers.batch_normalization(tf.layers.conv2d(x, 40, 3), axis=2, training=True)
    # ? K=48 norm=True
    e = tf.layers.batch_normalization(tf.layers.conv2d(x, 48, 3), training=training)
    # ? K=56 norm=False
    f = slim.layer_norm(tf.layers.conv2d(x, 56, 3))
    return a, b, c, d, e, f


def scoped(x):
    with slim.arg_scope([slim.conv2d], stride=2, normalizer_fn=slim.batch_norm):
        # ? framework=tensorflow C=? K=64 R=3 bias=? norm=?
        net = slim.conv2d(x, 64, [3, 3], scope="first")
        net = slim.max_pool2d(net, [2, 2])
        # ? C=64 K=80 R=1 U=1 DilH=1
        net = tf_slim.conv2d(net, num_outputs=80, kernel_size=1, stride=1, activation_fn=None)
        net = tf.image.resize_bilinear(net, [64, 64])
        # ? C=80 K=88 R=3 S=5 DilH=2
        net = tf.contrib.layers.convolution2d(net, 88, [3, 5], rate=2)
        # ? op=conv_transpose C=88 K=96 R=2 U=2
        net = slim.conv2d_transpose(net, 96, 2, stride=2)
    # ? C=96 K=12 head=True
    net = slim.conv2d(net, 12, 1, activation_fn=None)
    return tf.depth_to_space(net, 2)


def network(x):
    # ? K=32 head=False
    x = tf.layers.conv2d(x, 32, 3)
    # ? C=32 K=27 head=True
    return tf.layers.conv2d(x, 27, 1)


session = tf.Session()
images = tf.placeholder(tf.float32, [None, None, None, 4])
output = network(images)
session.run([tf.reduce_mean(tf.abs(output - images)), output])


def of_given_shape(flat):
    images = tf.placeholder(tf.float32, [None, 32, 32, 6], name="images")
    # ? C=6 K=18 H=32
    x = tf.layers.conv2d(images, 18, 3)
    # ? C=1 K=20 H=28
    y = tf.layers.conv2d(tf.reshape(flat, [-1, 28, 28, 1]), 20, 3)
    # ? C=1 K=22 H=28
    return x, y, tf.compat.v1.layers.conv2d(tf.compat.v1.reshape(flat, shape=[-1, 28, 28, 1]), 22, 3)


def unit(x, rate, scope=None):
    with tf.variable_scope(scope, "Unit", [x]):
        # ? C=26 K=30; C=30 K=30
        return slim.conv2d(x, 30, 3, rate=rate)


def repeated():
    images = tf.placeholder(tf.float32, [None, 32, 32, 5])
    # ? C=5 K=26 R=3; C=26 K=26 R=3
    x = slim.repeat(images, 2, slim.conv2d, 26, [3, 3], scope="conv1")
    x = slim.repeat(x, 3, unit, rate=2)
    # ? C=30 K=32
    return slim.conv2d(x, 32, 1)


def joined(images):
    # ? K=24
    x = slim.conv2d(images, 24, 3)
    # ? C=24 K=34
    y = slim.conv2d(x, 34, 3)
    # ? C=58 K=36
    return slim.conv2d(tf.concat(axis=3, values=[x, y]), 36, 1)


class Unet:
    def __init__(self, width=14):
        self.width = width

    def down(self, images, depth=18):
        # ? K=14
        x = slim.conv2d(images, self.width, 3)
        return self.conv(x, depth)

    def conv(self, x, width):
        # ? C=14 K=18
        return slim.conv2d(x, width, 3)

    @staticmethod
    def build(images):
        # ? K=22
        x = tf.layers.conv2d(images, 22, 3)
        # ? C=22 K=38
        return tf.layers.conv2d(x, 38, 3)

    @classmethod
    def of_class(cls, images):
        # ? K=46
        return tf.layers.conv2d(images, 46, 3)


def ordered(images):
    # ? K=40
    x = slim.conv2d(images, 40, 3, data_format="NCHW")
    x = slim.max_pool2d(x, 2, data_format="NCHW")
    # ? C=80 K=42
    x = slim.conv2d(tf.concat([x, x], 1), 42, 3, data_format="NCHW")
    with slim.arg_scope([slim.conv2d], data_format="NHWC"):
        # ? K=44
        y = slim.conv2d(images, 44, 3)
        # ? C=88 K=46
        y = slim.conv2d(array_ops.concat([y, y], 3), 46, 3)
    return x, y
