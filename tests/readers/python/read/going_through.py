"""Iterators that are used up, lists that grow under a loop, what a `with` sets and takes back."""

from torch import nn

SLIM = 1


class slimmed:
    """Switches the module's setting while it lasts."""

    def __init__(self, by):
        self.by = by

    def __enter__(self):
        global SLIM
        self.before, SLIM = SLIM, self.by
        return self.by

    def __exit__(self, *_):
        global SLIM
        SLIM = self.before


class Managed(nn.Module):
    def __init__(self):
        super().__init__()
        with slimmed(2):
            # ? C=8 K=32
            self.slim = nn.Conv2d(8, 64 // SLIM, 3)
        # what other callers left in it is not known
        # ? C=32 K=?
        self.wide = nn.Conv2d(32, 64 // SLIM, 3)
        with slimmed(4) as by:
            # ? C=64 K=16
            self.bound = nn.Conv2d(64, 64 // by, 3)


class Pairs(nn.Module):
    def __init__(self):
        super().__init__()
        widths = iter([16, 32, 64, 48])
        # ? C=16 K=32; C=64 K=48
        self.layers = nn.ModuleList([nn.Conv2d(a, b, 1) for a, b in zip(widths, widths, strict=False)])


class Rest(nn.Module):
    def __init__(self):
        super().__init__()
        widths = iter([24, 40, 56])
        first = next(widths)
        # ? C=24 K=96
        self.stem = nn.Conv2d(first, sum(widths), 3)
        # ? C=96 K=8
        self.head = nn.Conv2d(96, sum(widths, 8), 3)


class Grown(nn.Module):
    def __init__(self):
        super().__init__()
        widths, layers = [64], []
        for width in widths:
            if width > 16:
                widths.append(width // 2)
            layers.append(nn.Identity())
        # ? C=64 K=3; C=16 K=3
        self.ends = nn.ModuleList([nn.Conv2d(width, len(layers), 1) for width in (widths[0], widths[-1])])


class Counted(nn.Module):
    def __init__(self, blocks, width=32):
        super().__init__()
        mid = width if blocks else width + 16
        for block in blocks:
            mid += block.step
        # ? C=3 K=?
        self.conv = nn.Conv2d(3, mid, 3)
