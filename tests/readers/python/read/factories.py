"""Layers that come through functions, registries, partials and tables, as in libraries of models."""

import functools
from dataclasses import dataclass
from functools import partial

from torch import nn

REGISTRY = {}


def register(function):
    REGISTRY[function.__name__] = function
    return function


def conv3x3(i, o, stride=1, **kwargs):
    # ? C=16 K=24 U=2; C=24 K=24 U=1; C=24 K=48 U=1; C=3 K=16 U=1; C=3 K=? U=1
    return nn.Conv2d(i, o, kernel_size=3, stride=stride, padding=1, **kwargs)


class Block(nn.Module):
    expansion = 1

    def __init__(self, inplanes, planes, stride=1, norm_layer=nn.BatchNorm2d):
        super().__init__()
        self.conv1 = conv3x3(inplanes, planes, stride, bias=False)
        self.bn1 = norm_layer(planes)
        self.conv2 = conv3x3(planes, planes * self.expansion, bias=False)

    def forward(self, x):
        return self.conv2(self.bn1(self.conv1(x)))


class Wide(Block):
    expansion = 2


class Net(nn.Module):
    def __init__(self, block, layers, width=16, num_classes=21):
        super().__init__()
        self.inplanes = width
        self.stem = conv3x3(3, width)
        self.layer = self._make_layer(block, width + 8, layers[0], stride=2)
        # ? K=21 head=True
        self.fc = nn.Conv2d(self.inplanes, num_classes, 1)

    def _make_layer(self, block, planes, blocks, stride):
        layers = [block(self.inplanes, planes, stride)]
        self.inplanes = planes * block.expansion
        layers += [block(self.inplanes, planes) for _ in range(1, blocks)]
        return nn.Sequential(*layers)

    def forward(self, x):
        return self.fc(self.layer(self.stem(x)))


@register
def net(pretrained=False, **kwargs):
    return Net(Block, [2, 2], **kwargs)


@register
def wide(**kwargs):
    return Net(Wide, [1], **kwargs)


def create_model(name, **kwargs):
    return REGISTRY[name](**kwargs)


class ConvNorm(nn.Module):
    """As timm's: a norm and an activation by arguments, and a factory that a partial has filled in."""

    def __init__(self, i, o, kernel=1, norm_layer=nn.BatchNorm2d, act_layer=nn.ReLU, bias=True, dd=None):
        super().__init__()
        # ? C=8 K=24 R=1 bias=True norm=True; C=24 K=30 R=3 bias=False norm=True; C=30 K=36 R=1 bias=True norm=True
        self.conv = nn.Conv2d(i, o, kernel, bias=bias, **(dd or {}))
        self.bn = norm_layer(o)
        self.act = act_layer(inplace=True)

    def forward(self, x):
        return self.act(self.bn(self.conv(x)))


@dataclass
class Config:
    widths: tuple = (44, 52)
    kernel: int = 5


LAYERS = {"conv": partial(nn.Conv2d, kernel_size=3, bias=False), "point": nn.Conv2d}


class Uses(nn.Module):
    def __init__(self):
        super().__init__()
        make = functools.partial(ConvNorm, kernel=3, bias=False)
        norm = partial(nn.BatchNorm2d, eps=1e-3, momentum=0.1)
        self.a = ConvNorm(8, 24)
        self.b = make(24, 30)
        self.c = ConvNorm(30, 36, norm_layer=norm, act_layer=nn.SiLU)
        # ? C=36 K=40 R=3 bias=False
        self.d = LAYERS["conv"](36, 40)
        # ? C=40 K=44 R=1
        self.e = LAYERS.get("point")(40, 44, 1)
        cfg = Config(kernel=7)
        # ? C=44 K=52 R=7
        self.f = getattr(nn, "Conv" + "2d")(*cfg.widths, cfg.kernel)
        options = {"in_channels": 52, "out_channels": 60, "kernel_size": 1, "bias": False}
        # ? C=52 K=60 R=1 bias=False
        self.g = nn.Conv2d(**options)
        # ? C=60 K=64
        self.h = nn.Conv2d(60, make_divisible(60 * 1.05), 1)

    def forward(self, x):
        return self.h(self.g(self.f(self.e(self.d(self.c(self.b(self.a(x))))))))


class Point(nn.Module):
    def __init__(self, i, o=76):
        super().__init__()
        # ? C=68 K=76 R=1 norm=True
        self.conv = nn.Conv2d(i, o, 1)
        self.norm = nn.BatchNorm2d(o)

    def forward(self, x):
        return self.norm(self.conv(x))


class Other(nn.Module):
    def __init__(self, i):
        super().__init__()
        # ? C=? K=80
        self.conv = nn.Conv2d(i, 80, 1)


CLASSES = {"block": "Point", "norm": "nn.BatchNorm2d", "other": "Other"}


class ByText(nn.Module):
    """Classes by a text, as configs name them; one name may be that of a parameter."""

    def __init__(self, Other=None):
        super().__init__()
        # ? C=64 K=68 norm=True
        self.conv = nn.Conv2d(64, 68, 3)
        self.norm = eval(CLASSES["norm"])(68)
        self.block = eval(CLASSES["block"])(68)
        self.other = eval(CLASSES["other"])(76)

    def forward(self, x):
        return self.other(self.block(self.norm(self.conv(x))))


def make_divisible(value, divisor=8):
    new = max(divisor, int(value + divisor / 2) // divisor * divisor)
    if new < 0.9 * value:
        new += divisor
    return new
