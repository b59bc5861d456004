"""Whether a norm reads what a convolution writes, and nothing else does."""

import torch
import torch.nn.functional as F
from elsewhere import unknown
from torch import nn


class Plain(nn.Module):
    def __init__(self, n):
        super().__init__()
        # ? K=16 norm=True
        self.a = nn.Conv2d(3, 16, 3)
        # ? K=24 norm=False
        self.b = nn.Conv2d(16, 24, 3)
        # ? K=32 norm=False
        self.c = nn.Conv2d(24, 32, 3)
        # ? K=40 norm=True
        self.d = nn.Conv2d(32, 40, 3)
        # ? K=48 norm=?
        self.e = nn.Conv2d(40, 48, 3)
        # ? K=56 norm=True
        self.f = nn.Conv2d(48, 56, 3)
        self.bn1, self.bn3, self.bn = nn.BatchNorm2d(16), nn.BatchNorm2d(32), nn.BatchNorm2d(48)
        self.gn = nn.GroupNorm(4, 24)
        self.norm = nn.InstanceNorm2d(40)

    def forward(self, x):
        x = F.relu(self.bn1(self.a(x)))
        x = self.gn(self.b(x))
        y = self.c(x)
        x = self.bn3(y) + y
        x = self.norm(self.d(x).contiguous())
        y = self.e(x)
        unknown(y)
        return F.instance_norm(self.f(self.bn(y)))


class Several(nn.Module):
    """One convolution in several runs, and one run under a test."""

    def __init__(self, deep):
        super().__init__()
        # ? K=8 norm=True calls=2
        self.shared = nn.Conv2d(8, 8, 3)
        # ? K=8 norm=False calls=2
        self.mixed = nn.Conv2d(8, 8, 3)
        # ? K=8 norm=?
        self.maybe = nn.Conv2d(8, 8, 3)
        # ? K=8 norm=True
        self.both = nn.Conv2d(8, 8, 3)
        self.bn, self.deep = nn.BatchNorm2d(8), deep

    def forward(self, x):
        x = self.bn(self.shared(self.bn(self.shared(x))))
        x = torch.sigmoid(self.mixed(self.bn(self.mixed(x))))
        x = self.maybe(x)
        if self.deep:
            x = self.bn(x)
        x = F.relu(x)
        if x.sum() > 0:
            x = self.bn(self.both(x))
        return x


class Chosen(nn.Module):
    """Norms that come as arguments: of a parameter nobody knows whether it is the default."""

    def __init__(self, planes, norm_layer=None, act=nn.ReLU):
        super().__init__()
        norm_layer = norm_layer or nn.BatchNorm2d
        # ? K=32 norm=?
        self.conv = nn.Conv2d(planes, 32, 1)
        self.norm = norm_layer(32)
        # ? K=64 norm=False
        self.other = nn.Conv2d(32, 64, 1)
        self.act = act(64)

    def forward(self, x):
        return self.act(self.other(self.norm(self.conv(x))))


class Wrapped(nn.Module):
    """Functions that give back the layer, or run it."""

    def __init__(self):
        super().__init__()
        # ? K=16 norm=True
        self.a = nn.utils.spectral_norm(nn.Conv2d(3, 16, 3))
        # ? K=24 norm=True
        self.b = torch.compile(nn.Conv2d(16, 24, 3).cuda().half())
        # ? K=32 norm=True
        self.c = nn.Sequential(nn.DataParallel(nn.Conv2d(24, 32, 3)), nn.SyncBatchNorm(32))
        self.bn1, self.bn2 = nn.BatchNorm2d(16), nn.BatchNorm2d(24)

    def forward(self, x):
        x = self.bn1(torch.utils.checkpoint.checkpoint(self.a, x, use_reentrant=False))
        return self.c(self.bn2(self.b(x)))


class Elsewhere(nn.Module):
    """Outputs that code which cannot be read gets too."""

    def __init__(self, hook):
        super().__init__()
        # ? K=16 norm=?
        self.a = nn.Conv2d(3, 16, 3)
        # ? K=24 norm=?
        self.b = nn.Conv2d(16, 24, 3)
        self.bn1, self.bn2 = nn.BatchNorm2d(16), nn.BatchNorm2d(24)
        hook(self.b)

    def forward(self, x):
        y = self.a(x)
        self.saved = [y]
        unknown(self.saved)
        return self.bn2(self.b(self.bn1(y)))


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        # ? K=8 norm=True
        self.a = nn.Conv2d(8, 8, 3, padding=1)
        # ? K=8 norm=False
        self.b = nn.Conv2d(8, 8, 1)
        self.bn1, self.bn2 = nn.BatchNorm2d(8), nn.BatchNorm2d(8)

    def forward(self, x):
        return self.bn2(self.b(x) + self.bn1(self.a(x)))


class Block(nn.Module):
    """As in torchvision's ResNet: a stride of its own, and a loop over norms that sets weights."""

    def __init__(self, width, stride=1):
        super().__init__()
        self.stride = stride
        # ? K=72 norm=True
        self.conv = nn.Conv2d(3, 72, 3, stride)
        self.bn = nn.BatchNorm2d(72)

    def forward(self, x):
        return self.bn(self.conv(x))


class Blocks(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Block(64)
        for m in self.modules():
            if isinstance(m, nn.BatchNorm2d):
                nn.init.constant_(m.weight, 1)

    def forward(self, x):
        return self.a(x)


def in_a_line(widths):
    layers, before = [], 3
    for width in widths:
        if width == "M":
            layers += [nn.MaxPool2d(2)]
        else:
            # ? C=3 K=64 norm=True
            conv = nn.Conv2d(before, width, 3)
            layers += [conv, nn.BatchNorm2d(width), nn.ReLU()]
            before = width
    return nn.Sequential(*layers)


class Lined(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = in_a_line([64, "M"])

    def forward(self, x):
        return self.features(x)


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        # ? K=56 norm=?
        self.conv = nn.Conv2d(8, 56, 3)
        self.norm = nn.BatchNorm2d(56)

    def forward(self, x, mask):
        x = self.conv(x)
        x[mask] = 0
        return self.norm(x)


NORMS = {"plain": nn.BatchNorm2d, "sync": nn.SyncBatchNorm}


class OneOfSeveral(nn.Module):
    """A norm of a class that a test or a key chooses."""

    def __init__(self, sync, name):
        super().__init__()
        norm = nn.SyncBatchNorm if sync else nn.BatchNorm2d
        other = nn.GroupNorm if sync else nn.BatchNorm2d
        # ? K=16 norm=True
        self.a = nn.Conv2d(3, 16, 3)
        # ? K=24 norm=True
        self.b = nn.Conv2d(16, 24, 3)
        # ? K=32 norm=?
        self.c = nn.Conv2d(24, 32, 3)
        self.norm_a, self.norm_b, self.norm_c = norm(16), NORMS[name](24), other(32)

    def forward(self, x):
        return self.norm_c(self.c(self.norm_b(self.b(self.norm_a(self.a(x))))))


class ListsOfWidths(nn.Module):
    """Two lists side by side, of widths that callers give."""

    def __init__(self, before, widths):
        super().__init__()
        self.convs, self.norms = nn.ModuleList(), nn.ModuleList()
        for width in widths:
            # ? C=40 K=42 norm=True; C=42 K=44 norm=True
            self.convs.append(nn.Conv2d(before, width, 1))
            self.norms.append(nn.BatchNorm2d(width))
            before = width

    def forward(self, x):
        for i, conv in enumerate(self.convs):
            x = self.norms[i](conv(x))
        return x


class GivesWidths(nn.Module):
    def __init__(self):
        super().__init__()
        self.lists = ListsOfWidths(40, [42, 44])

    def forward(self, x):
        return self.lists(x)
