"""Loops over what is known are unrolled; all others run once, for any number of rounds."""

import torch
from torch import nn

WIDTHS = {"a": [16, 24], "b": [40, 56]}


class Unrolled(nn.Module):
    def __init__(self):
        super().__init__()
        before = 3
        self.layers = nn.ModuleList()
        for width in [16, 32, 64]:
            # ? C=3 K=16; C=16 K=32; C=32 K=64
            self.layers.append(nn.Conv2d(before, width, 3))
            before = width


class Repeated(nn.Module):
    def __init__(self, count):
        super().__init__()
        planes, layers = 8, []
        for _ in range(count):
            # ? C=? K=48
            layers.append(nn.Conv2d(planes, 48, 3))
            planes = 48
        self.body = nn.Sequential(*layers)


class Named(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.body = self.make(WIDTHS[name])

    def make(self, widths):
        # ? C=16 K=24 if name == 'a'; C=40 K=56 if name == 'b'
        return nn.Conv2d(widths[0], widths[1], 3)


class ChangedInPlace(nn.Module):
    """`|=` and `+=` change the object itself, whatever else it is called."""

    def __init__(self, count, given):
        super().__init__()
        options = {}
        others = options
        while count():
            others |= {"mid": 16}
        # ? C=? K=24
        self.first = nn.Conv2d(options.get("mid", 8), 24, 3)
        widths = [8]
        more = widths
        for _ in given:
            more += [16]
        # ? C=? K=24
        self.second = nn.Conv2d(widths[-1], 24, 3)
        sure = {}
        again = sure
        for _ in range(2):
            again |= {"mid": 16}
        # ? C=16 K=24
        self.third = nn.Conv2d(sure.get("mid", 8), 24, 3)


class BiasedAttention(nn.Module):
    """Tables of positions take more rounds than a network may have steps; the layers behind them are known."""

    def __init__(self, width, side):
        super().__init__()
        points = [(row, column) for row in range(side) for column in range(side)]
        offsets, places = {}, []
        for first in points:
            for second in points:
                offset = abs(first[0] - second[0]), abs(first[1] - second[1])
                if offset not in offsets:
                    offsets[offset] = len(offsets)
                places.append(offsets[offset])
        self.biases = nn.Parameter(torch.zeros(8, len(offsets)))
        self.register_buffer("places", torch.tensor(places).view(len(points), len(points)))
        # ? C=72 K=72; C=88 K=88; C=104 K=104
        self.project = nn.Conv2d(width, width, 1)


class PositionalStages(nn.Module):
    def __init__(self):
        super().__init__()
        self.stages = nn.Sequential(*[BiasedAttention(width, 14) for width in (72, 88, 104)])
        # ? C=104 K=1000
        self.head = nn.Conv2d(104, 1000, 1)
