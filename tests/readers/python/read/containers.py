"""What Sequential, ModuleList, ModuleDict and their like hold, however it came there or went."""

from collections import OrderedDict

from torch import nn


class Lined(nn.Module):
    def __init__(self, widths):
        super().__init__()
        layers = OrderedDict()
        # ? C=3 K=16 norm=True
        layers["conv"] = nn.Conv2d(3, 16, 3)
        layers["bn"] = nn.BatchNorm2d(16)
        self.named = nn.Sequential(layers)
        # ? C=16 K=24 norm=False
        self.plain = nn.Sequential(nn.Conv2d(16, 24, 3), nn.ReLU(), nn.BatchNorm2d(24))
        # ? C=24 K=32 norm=True
        self.added = nn.Sequential(nn.Conv2d(24, 32, 3))
        self.added.add_module("bn", nn.BatchNorm2d(32))
        # ? C=32 K=32 norm=True
        self.nested = nn.Sequential(nn.Sequential(nn.Conv2d(32, 32, 1)), nn.Sequential(nn.BatchNorm2d(32)))

    def forward(self, x):
        return self.nested(self.added(self.plain(self.named(x))))


class Changed(nn.Module):
    def __init__(self):
        super().__init__()
        # ? C=3 K=8 norm=False
        self.a = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))
        self.a[1] = nn.ReLU()
        # ? C=8 K=12 norm=True
        self.b = nn.Sequential(nn.Conv2d(8, 12, 3), nn.ReLU(), nn.BatchNorm2d(12))
        del self.b[1]
        # ? C=12 K=16 norm=True
        self.c = nn.Sequential(nn.Conv2d(12, 16, 3), nn.ReLU())
        self.c.insert(1, nn.BatchNorm2d(16))
        # ? C=16 K=20 norm=False
        self.d = nn.Sequential(nn.Conv2d(16, 20, 3), nn.BatchNorm2d(20))
        self.d.pop(1)
        # ? C=20 K=24 norm=True
        self.e = nn.Sequential(nn.Conv2d(20, 24, 3), nn.BatchNorm2d(24), nn.ReLU())[:2]
        # ? C=24 K=28 norm=False
        self.f = nn.Sequential(*list(nn.Sequential(nn.Conv2d(24, 28, 3), nn.BatchNorm2d(28)).children())[:-1])
        # ? C=28 K=32 norm=True
        self.g = nn.Sequential(nn.Conv2d(28, 32, 3)).append(nn.BatchNorm2d(32))

    def forward(self, x):
        return self.g(self.f(self.e(self.d(self.c(self.b(self.a(x)))))))


class Listed(nn.Module):
    def __init__(self):
        super().__init__()
        # ? C=8 K=16 norm=True; C=16 K=32 norm=True
        self.convs = nn.ModuleList(nn.Conv2d(c, 2 * c, 3) for c in (8, 16))
        self.norms = nn.ModuleList([nn.BatchNorm2d(16)])
        self.norms.extend([nn.BatchNorm2d(32)])
        # ? C=32 K=40 norm=False
        self.last = nn.ModuleList([nn.Conv2d(32, 40, 1)])

    def forward(self, x):
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = norm(conv(x))
        for i, layer in enumerate(self.last):
            x = layer(x) if i == 0 else x
        return x


class Dicts(nn.Module):
    def __init__(self):
        super().__init__()
        # ? C=3 K=16 norm=True
        self.parts = nn.ModuleDict({"conv": nn.Conv2d(3, 16, 3), "bn": nn.BatchNorm2d(16)})
        # ? C=16 K=24 norm=False
        self.parts["head"] = nn.Conv2d(16, 24, 1)
        # ? C=24 K=9 norm=?
        self.parts.update({"unused": nn.Conv2d(24, 9, 1)})

    def forward(self, x):
        x = self.parts["bn"](self.parts["conv"](x))
        return self.parts["head"](x) * len(self.parts)


class Walked(nn.Module):
    """Loops over modules that change what convolutions do are unrolled."""

    def __init__(self):
        super().__init__()
        # ? C=3 K=8 U=1 DilH=2; C=8 K=16 U=1 DilH=2
        self.body = nn.Sequential(*[nn.Conv2d(c, k, 3, stride=2) for c, k in ((3, 8), (8, 16))])
        for module in self.body.modules():
            if isinstance(module, nn.Conv2d):
                module.stride = (1, 1)
        for name, module in self.body.named_children():
            if name != "missing":
                module.dilation = (2, 2)


class Taken(nn.Module):
    """What is replaced is none of the network's."""

    def __init__(self):
        super().__init__()
        # ? C=3 K=8 replaced=True
        self.conv = nn.Conv2d(3, 8, 3)
        # ? C=4 K=8 replaced=False
        self.conv = nn.Conv2d(4, self.conv.out_channels, 3)
        # ? C=8 K=9 replaced=True
        self.gone = nn.Conv2d(8, 9, 3)
        del self.gone

    def forward(self, x):
        return self.conv(x)
