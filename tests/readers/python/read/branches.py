"""Tests that nobody can decide: what one path sets is no value of the other."""

from torch import nn
from versions import USES_TENSORFLOW


class Chosen(nn.Module):
    def __init__(self, slim, deep):
        super().__init__()
        kw = {}
        if slim:
            kw["mid"] = 62
            # ? C=62 K=64 if slim
            self.narrow = nn.Conv2d(kw["mid"], 64, 3)
        # ? C=3 K=?
        self.stem = nn.Conv2d(3, kw.get("mid", 64), 3)
        width = 8 * 4 if deep else 32
        # ? C=32 K=48
        self.same = nn.Conv2d(width, 48, 1)
        # ? C=48 K=96 if not (slim)
        self.head = slim or nn.Conv2d(48, 96, 1)


class Refused(nn.Module):
    def __init__(self, slim):
        super().__init__()
        mid = 64
        try:
            slim.check()
            mid = 62
        except ValueError:
            # ? C=8 K=? if except ValueError
            self.other = nn.Conv2d(8, mid, 3)
        # ? C=16 K=?
        self.conv = nn.Conv2d(16, mid, 3)


class Early(nn.Module):
    def __init__(self, slim):
        super().__init__()
        self.width = 24
        if slim is None:
            return
        # ? C=24 K=40 if not (slim is None)
        self.conv = nn.Conv2d(self.width, 40, 3)


if USES_TENSORFLOW:
    from tensorflow.keras import layers
    from tensorflow.keras.layers import Conv2D, Input
else:
    from keras import layers
    from keras.layers import Conv2D, Input


def under_either_name():
    x = Input((32, 32, 6))
    # ? C=6 K=22
    x = layers.Conv2D(22, 3)(x)
    # ? C=22 K=18
    return Conv2D(18, 3)(x)
