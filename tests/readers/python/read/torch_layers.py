"""PyTorch's own convolutions, by every way to write their arguments."""

import torch
from torch import nn
from torch.nn.modules.conv import Conv2d as Renamed


def plain(n):
    return [
        # ? op=conv C=3 K=64 R=7 S=7 U=2 PadH=3 PadH_end=3 DilH=1 groups=1 bias=True
        nn.Conv2d(3, 64, 7, 2, 3),
        # ? C=8 K=16 R=1 S=5 PadH=0 PadW=2 bias=False
        nn.Conv2d(8, 16, kernel_size=(1, 5), padding=(0, 2), bias=False),
        # ? C=8 K=16 R=3 S=3
        nn.Conv2d(8, 16, (3,)),
        # ? C=8 K=16 R=? S=?
        nn.Conv2d(8, 16, (3, 3, 3)),
        # ? C=8 K=8 groups=8 U=1 PadH=1 DilH=1
        nn.Conv2d(8, 8, 3, 1, 1, 1, 8),
        # ? dims=1 C=4 K=6 S=3 R=1 V=2 PadW=1 H=1
        nn.Conv1d(4, 6, 3, 2, 1),
        # ? dims=3 C=4 K=6 T=1 R=3 S=5 StrideD=1 U=2 V=2 PadD=0 D=?
        nn.Conv3d(4, 6, (1, 3, 5), stride=(1, 2, 2)),
        # ? C=12 K=20
        Renamed(12, 20, 1),
        # ? C=? K=20
        nn.Conv2d(n, 20, 1),
        # ? C=12 K=? groups=1
        nn.Conv2d(12, n, 1),
        # ? C=? K=? groups=1
        nn.Conv2d(12, 20, 1, groups=n),
        # ? C=12 K=20 U=1 DilH=1
        nn.Conv2d(12, 20, 1, stride=None, dilation=None),
    ]


def paddings(n):
    return [
        # ? PadH=1 PadH_end=1
        nn.Conv2d(8, 8, 3, padding="same"),
        # ? PadH=1 PadH_end=2 PadW=3 PadW_end=4
        nn.Conv2d(8, 8, (4, 8), padding="SAME"),
        # ? PadH=4 PadH_end=4
        nn.Conv2d(8, 8, 5, padding="same", dilation=2),
        # ? PadH=? PadH_end=?
        nn.Conv2d(8, 8, 3, stride=2, padding="same"),
        # ? PadH=0 PadH_end=0
        nn.Conv2d(8, 8, 3, stride=2, padding="valid"),
        # ? PadH=? PadH_end=?
        nn.Conv2d(8, 8, 3, padding=n),
        # ? PadH=2 PadW=?
        nn.Conv2d(8, 8, 3, padding=(2, n)),
    ]


def transposed():
    return [
        # ? op=conv_transpose C=8 K=16 R=4 U=2 PadH=1 OutPadH=0 groups=2 bias=False DilH=1
        nn.ConvTranspose2d(8, 16, 4, 2, 1, 0, 2, False),
        # ? op=conv_transpose OutPadH=1 DilH=3
        nn.ConvTranspose2d(8, 16, 4, 2, 1, 1, dilation=3),
        # ? dims=1 op=conv_transpose C=8 K=4 S=5 V=3
        nn.ConvTranspose1d(8, 4, 5, stride=3),
        # ? dims=3 op=conv_transpose C=8 K=4 OutPadD=1
        nn.ConvTranspose3d(8, 4, 3, 2, 1, 1),
    ]


class Lazy(nn.Module):
    """A lazy layer is as wide as what it reads first."""

    def __init__(self, n):
        super().__init__()
        # ? C=3 K=24
        self.stem = nn.Conv2d(3, 24, 3)
        # ? C=24 K=32
        self.body = nn.LazyConv2d(32, 3, bias=False)
        # ? op=conv_transpose C=32 K=16 groups=1
        self.up = nn.LazyConvTranspose2d(16, 4, 2)
        # ? C=? K=5
        self.unused = nn.LazyConv2d(5, 1)

    def forward(self, x):
        return self.up(self.body(self.stem(x)))


class Changed(nn.Module):
    def __init__(self, n):
        super().__init__()
        # ? C=3 K=8 U=2
        self.a = nn.Conv2d(3, 8, 3, 2)
        # ? C=8 K=8 DilH=2 PadH=2
        self.b = nn.Conv2d(8, 8, 3)
        self.b.dilation, self.b.padding = (2, 2), (2, 2)
        # ? C=8 K=62
        self.c = nn.Conv2d(self.b.out_channels, 62, self.a.kernel_size)
        # ? C=62 K=9 R=3
        self.d = nn.Conv2d(self.c.weight.shape[0], self.c.weight.size(2) * 3, self.c.kernel_size[0])


class Same(nn.Conv2d):
    """What it computes by itself is one convolution, and pads as it likes."""

    def __init__(self, i, o, k, **kwargs):
        super().__init__(i, o, k, bias=False, **kwargs)

    def forward(self, x):
        return torch.nn.functional.conv2d(x, self.weight, self.bias, self.stride, 0, self.dilation, self.groups)


class Uses(nn.Module):
    def __init__(self):
        super().__init__()
        # ? made=Same C=3 K=40 bias=False PadH=? groups=1
        self.a = Same(3, 40, 3, padding=1)
        # ? made=Same C=40 K=40 groups=40 U=2
        self.b = Same(40, 40, 3, groups=40, stride=2)

    def forward(self, x):
        return self.b(self.a(x))


class Normed:
    def __init__(self, widths, eps=1e-12):
        self.widths, self.eps = widths, eps


class Spectral(nn.Conv2d, Normed):
    """The constructors of its bases are called by their names, as `super()` would call the first alone."""

    def __init__(self, i, o, k, bias=True, eps=1e-12):
        nn.Conv2d.__init__(self, i, o, k, bias=bias)
        Normed.__init__(self, o, eps=eps)


class First(nn.Conv2d, Normed):
    def __init__(self, i, o):
        super().__init__(i, o, 5, bias=False)


class UsesSeveralBases(nn.Module):
    def __init__(self):
        nn.Module.__init__(self)
        # ? made=Spectral C=3 K=42 R=3 bias=True
        self.a = Spectral(3, 42, 3)
        # ? made=First C=42 K=44 R=5 bias=False
        self.b = First(42, 44)

    def forward(self, x):
        return self.b(self.a(x))
