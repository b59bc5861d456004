"""Layers of Gluon, Flax and Haiku."""

import flax.linen as fl
import haiku as hk
from flax import linen
from mxnet.gluon import nn


class Gluon(nn.HybridBlock):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.body = nn.HybridSequential(prefix="")
            # ? framework=mxnet K=16 R=3 U=1 PadH=1 bias=False norm=True
            self.body.add(nn.Conv2D(16, kernel_size=3, strides=1, padding=1, use_bias=False))
            self.body.add(nn.BatchNorm())
            # ? C=16 K=24 groups=8
            self.body.add(nn.Conv2D(channels=24, kernel_size=1, groups=8, in_channels=16))
            # ? op=conv_transpose K=12 U=2 OutPadH=1
            self.up = nn.Conv2DTranspose(12, 4, 2, 1, 1)


class Flax(linen.Module):
    width: int = 8

    @linen.compact
    def __call__(self, x):
        # ? framework=flax dims=2 K=32 R=3 bias=True PadH=1
        x = fl.Conv(features=32, kernel_size=(3, 3))(x)
        # ? dims=1 K=48 S=5 bias=False PadW=0
        x = linen.Conv(48, (5,), padding="VALID", use_bias=False)(x)
        # ? dims=3 K=64 T=1 groups=4 U=2 PadH=?
        return linen.Conv(64, (1, 3, 3), strides=(1, 2, 2), feature_group_count=4)(x)


def haiku(x):
    # ? framework=haiku K=16 R=3 U=2 bias=False PadH=?
    x = hk.Conv2D(16, 3, stride=2, with_bias=False)(x)
    # ? K=24 DilH=2 PadH=2
    return hk.Conv2D(output_channels=24, kernel_shape=3, rate=2)(x)
