"""Convolutions that functions compute, as wide as their weight."""

import torch
import torch.nn.functional as F
from elsewhere import make
from torch import nn


class Own(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(64, 32, 3, 3))
        self.grouped = nn.Parameter(torch.randn(64, 8, 1, 1))
        self.up = nn.Parameter(torch.zeros((32, 16, 4, 4)))
        self.register_buffer("blur", torch.ones(3, 1, 5, 5))
        self.bias = nn.Parameter(torch.zeros(64))
        self.some, self.moved = make(n), nn.Parameter(torch.randn(8, 4, 3, 3))
        self.moved.data = self.moved.data.transpose(0, 1)

    def forward(self, x):
        # ? C=3 K=3 groups=3 R=5 PadH=2 bias=False
        x = F.conv2d(x, self.blur, padding=2, groups=3)
        # ? C=32 K=64 groups=1 R=3 U=2 bias=False
        x = F.conv2d(x, self.weight, None, 2)
        # ? C=32 K=64 groups=1 bias=?
        x = torch.conv2d(input=x, weight=self.weight * 0.5, bias=self.bias)
        # ? C=32 K=64 groups=4
        x = F.conv2d(x, self.grouped, groups=4)
        # ? op=conv_transpose C=32 K=16 R=4 U=2 OutPadH=1
        x = F.conv_transpose2d(x, self.up, stride=2, output_padding=1)
        # ? C=? K=? R=?
        x = F.conv2d(x, self.some)
        # ? C=? K=? R=?
        x = F.conv2d(x, self.moved)
        # ? C=? K=? R=?
        return F.conv2d(x, self.weight * x.mean((2, 3)))
