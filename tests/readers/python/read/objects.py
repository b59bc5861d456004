"""Attributes, however they are set."""

import functools

from torch import nn


class Block(nn.Module):
    expansion = 4

    def __init__(self, planes, norm=None):
        super().__init__()
        self.__dict__["mid"] = planes * self.expansion
        # ? C=48 K=12
        self.conv = nn.Conv2d(self.mid, planes, 1)
        object.__setattr__(self, "mid", 20)
        # ? C=20 K=20
        self.last = nn.Conv2d(getattr(self, "mid", 64), self.mid, 1)


class Meta(type):
    def __call__(cls, *args, **kwargs):
        kwargs["width"] = 28
        return super().__call__(*args, **kwargs)


class Made(nn.Module, metaclass=Meta):
    def __init__(self, width=64):
        super().__init__()
        # ? C=28 K=8
        self.conv = nn.Conv2d(width, 8, 3)


pointwise = functools.partial(nn.Conv2d, kernel_size=1)


def build():
    # ? C=12 K=36
    return nn.Sequential(Block(12), Made(), pointwise(12, 36))
