"""Loops over the modules of a network, in a file that changes some of them."""

from torch import nn


class Block(nn.Module):
    def __init__(self, width, kind=nn.Conv2d):
        super().__init__()
        # ? K=72 norm=True
        self.conv = kind(width, 72, 3, stride=2)
        self.bn = nn.BatchNorm2d(72)

    def forward(self, x):
        return self.bn(self.conv(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block(3)
        for m in self.modules():
            if isinstance(m, nn.BatchNorm2d):
                nn.init.constant_(m.weight, 1)
            elif isinstance(m, (nn.Linear, nn.Conv2d)):
                m.stride = 1

    def forward(self, x):
        return self.block(x)
