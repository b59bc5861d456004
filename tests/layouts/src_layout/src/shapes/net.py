"""The network."""

import torch.nn as nn

from shapes.blocks import Block


class ShapeNet(nn.Module):
    def __init__(self, num_classes=21):
        super().__init__()
        self.stem = Block(3, 32, stride=2)
        self.body = nn.Sequential(
            Block(32, 60),
            Block(60, 64),
        )
        self.head = nn.Conv2d(64, num_classes, 1)

    def forward(self, x):
        return self.head(self.body(self.stem(x)))
