"""What operations make of the sizes and channels of tensors: lazy convolutions are as wide as what they read."""

import torch
import torch.nn.functional as F
from torch import nn


class Channels(nn.Module):
    def __init__(self):
        super().__init__()
        # ? C=3 K=24
        self.stem = nn.Conv2d(3, 24, 1)
        # ? C=24 K=32
        self.wide = nn.Conv2d(24, 32, 1)
        # ? C=56 K=1
        self.cat = nn.LazyConv2d(1, 1)
        # ? C=8 K=2
        self.chunk = nn.LazyConv2d(2, 1)
        # ? C=20 K=3
        self.split = nn.LazyConv2d(3, 1)
        # ? C=10 K=4
        self.parts = nn.LazyConv2d(4, 1)
        # ? C=6 K=5
        self.shuffled = nn.LazyConv2d(5, 1)
        # ? C=96 K=6
        self.unshuffled = nn.LazyConv2d(6, 1)
        # ? C=12 K=7
        self.cut = nn.LazyConv2d(7, 1)
        # ? C=24 K=8
        self.summed = nn.LazyConv2d(8, 1)
        # ? C=24 K=9
        self.gated = nn.LazyConv2d(9, 1)
        # ? C=40 K=10
        self.viewed = nn.LazyConv2d(10, 1)
        # ? C=24 K=11
        self.pooled = nn.LazyConv2d(11, 1)
        # ? C=? K=12
        self.turned = nn.LazyConv2d(12, 1)
        # ? C=? K=13
        self.unsure = nn.LazyConv2d(13, 1)
        # ? C=24 K=14
        self.same = nn.LazyConv2d(14, 1)

    def forward(self, x, n):
        x = self.stem(x)
        y = self.wide(x)
        self.cat(torch.cat([x, y], dim=1))
        self.chunk(torch.chunk(x, 3, 1)[2])
        _, b = y.split([12, 20], dim=1)
        self.split(b)
        self.parts(x.split(10, 1)[1])
        self.shuffled(F.pixel_shuffle(x, 2))
        self.unshuffled(nn.PixelUnshuffle(2)(x))
        self.cut(x[:, :12])
        self.summed(x + 1 - x.sigmoid())
        self.gated(x * F.adaptive_avg_pool2d(x, 1).sigmoid())
        self.viewed(y.view(-1, 40, 8, 8))
        self.pooled(F.relu(F.max_pool2d(F.interpolate(x, scale_factor=2), 2)))
        self.turned(x.transpose(1, 2))
        self.unsure(torch.cat([x, n], 1))
        return self.same(F.dropout(nn.Identity()(x.clone().to(n)), 0.1))


class Sizes(nn.Module):
    def __init__(self):
        super().__init__()
        # ? N=2 H=64 W=48 P=32 Q=24
        self.stem = nn.Conv2d(3, 8, 7, 2, 3)
        # ? H=16 W=12
        self.pool = nn.Conv2d(8, 8, 1)
        # ? H=17 W=13 P=15
        self.ceil = nn.Conv2d(8, 8, 3)
        # ? H=32 W=24
        self.up = nn.Conv2d(8, 8, 1)
        # ? H=20 W=10
        self.sized = nn.Conv2d(8, 8, 1)
        # ? H=20 W=16
        self.pad = nn.Conv2d(8, 8, 1)
        # ? H=1 W=1 points=True
        self.gap = nn.Conv2d(8, 8, 1)
        # ? H=7 W=5 points=False
        self.adaptive = nn.Conv2d(8, 8, 1)
        # ? H=31 P=64 op=conv_transpose
        self.transposed = nn.ConvTranspose2d(8, 8, 4, 2, 0, 0)
        # ? H=15 W=? points=?
        self.cropped = nn.Conv2d(8, 8, 1)
        # ? H=1 W=1 points=True
        self.mean = nn.Conv2d(8, 8, 1)
        # ? H=16 W=12 DilH=2 P=12
        self.dilated = nn.Conv2d(8, 8, 3, dilation=2)

    def forward(self, x):
        x = self.stem(x)
        y = self.pool(F.max_pool2d(x, 3, 2, 1))
        self.ceil(F.pad(y, (0, 1, 0, 1)))
        self.up(nn.Upsample(scale_factor=2)(y))
        self.sized(F.interpolate(y, size=(20, 10)))
        self.pad(nn.ZeroPad2d(2)(y))
        self.gap(nn.AdaptiveAvgPool2d(1)(y))
        self.adaptive(nn.AdaptiveMaxPool2d((7, 5))(y))
        self.transposed(F.avg_pool2d(x, 2, 1))
        self.cropped(y[:, :, 1:, 2 : int(x.mean())])
        self.mean(y.mean(dim=(2, 3), keepdim=True))
        return self.dilated(y)


def run():
    net = Sizes()
    net(torch.rand(2, 3, 64, 48))


class Line(nn.Module):
    def __init__(self):
        super().__init__()
        # ? dims=1 N=4 W=100 Q=98
        self.conv = nn.Conv1d(5, 6, 3)
        self.fc = nn.Linear(48, 10)
        # ? W=49
        self.last = nn.Conv1d(6, 7, 1)

    def forward(self, x):
        x = self.conv(x)
        return self.last(F.max_pool1d(x, 2))


def run_line():
    Line()(torch.zeros(4, 5, 100))


class Points(nn.Module):
    """What somebody takes the largest of over one axis of the map is no 1x1 map; over the channels, it may be."""

    def __init__(self):
        super().__init__()
        # ? K=16 points=False
        self.method = nn.Conv2d(3, 16, 1)
        # ? K=24 points=False
        self.function = nn.Conv1d(3, 24, 1)
        # ? K=32 points=False
        self.mean = nn.Conv1d(3, 32, 1)
        # ? K=40 points=?
        self.channels = nn.Conv1d(3, 40, 1)
        # ? K=48 points=?
        self.all = nn.Conv1d(3, 48, 1)

    def forward(self, a, b, c, d, e):
        tops = self.method(a).relu().max(dim=3)[0], torch.max(self.function(b), 2, keepdim=True)[0]
        return tops, self.mean(c).mean(-1), self.channels(d).max(1), self.all(e).max()
