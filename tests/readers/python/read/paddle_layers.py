"""Paddle's layers, whose names and orders of arguments are its own."""

import paddle
import paddle.nn.functional as F
from paddle import nn


class Net(nn.Layer):
    def __init__(self, n):
        super().__init__()
        # ? framework=paddle C=3 K=40 R=3 U=2 PadH=1 bias=False norm=True
        self.conv = nn.Conv2D(3, 40, 3, 2, 1, bias_attr=False)
        self.bn = nn.BatchNorm2D(40)
        # ? C=40 K=48 bias=True groups=8 DilH=2
        self.grouped = nn.Conv2D(40, 48, 3, 1, 0, 2, 8)
        # ? C=48 K=48 bias=?
        self.attr = nn.Conv2D(48, 48, 1, bias_attr=paddle.ParamAttr(name="b"))
        # ? C=48 K=52 bias=True
        self.none = nn.Conv2D(48, 52, 1, bias_attr=None)
        # ? op=conv_transpose C=52 K=24 U=2 OutPadH=1 groups=4
        self.up = nn.Conv2DTranspose(52, 24, 4, 2, 1, 1, 1, 4)
        # ? op=conv_transpose dims=1 C=24 K=12 groups=4 DilW=3
        self.line = nn.Conv1DTranspose(24, 12, 4, 2, 1, 1, 4, 3)
        self.stages = nn.LayerList([Block(c) for c in (12, 16)])
        self.names = []
        for i in range(2):
            # ? C=20 K=24; C=24 K=28
            self.names.append(self.add_sublayer(f"s{i}", nn.Conv2D(20 + 4 * i, 24 + 4 * i, 1)))
        # ? C=28 K=32 norm=True
        self.pairs = nn.Sequential(("conv", nn.Conv2D(28, 32, 1)), ("bn", nn.BatchNorm(32)))
        self.weight = self.create_parameter([8, 32, 1, 1])

    def forward(self, x):
        x = self.bn(self.conv(x))
        x = self.up(self.none(self.attr(F.relu(self.grouped(x)))))
        for stage in self.stages:
            x = stage(x)
        for name in self.names:
            x = name(x)
        # ? C=? K=? bias=False
        return F.conv2d(self.pairs(x), self.weight)


class Block(nn.Layer):
    def __init__(self, planes):
        super().__init__()
        self.body = nn.Sequential(convolution(planes, planes + 4), nn.BatchNorm2D(planes + 4), nn.Hardswish())

    def forward(self, x):
        return self.body(x)


def convolution(i, o):
    # ? C=12 K=16 norm=?; C=16 K=20 norm=?
    return nn.Conv2D(i, o, 3)


def with_the_name_of_another_framework(x):
    # ? C=3 K=46 bias=False
    return nn.Conv2D(3, 46, 3, bias=False)(x)
