import torch
from shapes import ShapeNet
from torch import nn


def test_shape():
    odd = nn.Sequential(nn.Conv2d(3, 33, 3), nn.BatchNorm2d(33))
    assert ShapeNet()(torch.zeros(1, 3, 32, 32)).shape[1] == 21
    assert odd is not None
