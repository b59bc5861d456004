"""Norms that are held in evaluation subtract what they learned, and no bias."""

from torch import nn


class Net(nn.Module):
    def __init__(self, frozen):
        super().__init__()
        # ? K=16 norm=?
        self.conv = nn.Conv2d(3, 16, 3)
        # ? K=24 norm=False
        self.head = nn.Conv2d(16, 24, 1)
        self.bn, self.frozen = nn.BatchNorm2d(16), frozen

    def train(self, mode=True):
        super().train(mode)
        if self.frozen:
            for module in self.modules():
                if isinstance(module, nn.BatchNorm2d):
                    module.eval()

    def forward(self, x):
        return self.head(self.bn(self.conv(x)))
