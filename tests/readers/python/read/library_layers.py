"""Layers and modules of libraries on PyTorch: mmcv, torchvision, timm, MONAI, Lightning."""

from argparse import Namespace
from functools import partial

import lightning
import pytorch_lightning as pl
from mmcv.cnn import Conv2d, ConvModule, MaxPool2d, build_conv_layer, build_norm_layer
from mmengine.model import BaseModule, ModuleDict, ModuleList, Sequential
from monai.networks.blocks import Convolution
from monai.networks.layers import Norm
from timm.layers import ConvNormAct
from timm.models.layers import ConvBnAct, create_conv2d
from torch import nn
from torchvision.ops import Conv2dNormActivation
from torchvision.ops.misc import ConvNormActivation


class Lit(pl.LightningModule):
    def __init__(self):
        super().__init__()
        # ? C=3 K=16 norm=True
        self.conv = nn.Conv2d(3, 16, 3)
        self.bn = nn.BatchNorm2d(16)

    def forward(self, x):
        return self.bn(self.conv(x))


class Lightning2(lightning.pytorch.LightningModule):
    def __init__(self):
        super().__init__()
        # ? C=3 K=24 norm=False
        self.conv = nn.Conv2d(3, 24, 3)

    def forward(self, x):
        return self.conv(x).relu()


class Block(BaseModule):
    def __init__(self, width, norm_cfg, conv_cfg=None):
        super().__init__()
        self.norm1_name, norm1 = build_norm_layer(norm_cfg, width, postfix=1)
        # ? C=32 K=32 R=3 U=1 PadH=1 bias=True norm=True
        self.conv1 = build_conv_layer(conv_cfg, width, width, 3, padding=1)
        self.add_module(self.norm1_name, norm1)

    @property
    def norm1(self):
        return getattr(self, self.norm1_name)

    def forward(self, x):
        return self.norm1(self.conv1(x))


class Branches(BaseModule):
    def __init__(self, init_cfg=None):
        super().__init__(init_cfg)
        # ? C=32 K=104 bias=True norm=True
        self.stem = Sequential(nn.Conv2d(32, 104, 1), nn.BatchNorm2d(104), init_cfg=None)
        self.branches = ModuleList(
            [
                # ? C=104 K=104 bias=True norm=True
                Sequential(nn.Conv2d(104, 104, 3, padding=1), nn.BatchNorm2d(104))
                for _ in range(2)
            ]
        )
        # ? C=104 K=112 bias=True norm=False
        self.heads = ModuleDict({"map": Conv2d(104, 112, 1)})
        self.pool = MaxPool2d(2)

    def forward(self, x):
        x = self.pool(self.stem(x))
        for branch in self.branches:
            x = branch(x)
        return self.heads["map"](x)


class Neck(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block(32, {"type": "SyncBN", "requires_grad": True})
        # ? C=32 K=40 R=3 U=2 PadH=1 groups=8 bias=False norm=True
        self.a = ConvModule(32, 40, 3, stride=2, padding=1, groups=8, norm_cfg={"type": "BN"})
        # ? C=40 K=48 bias=True norm=False
        self.b = ConvModule(40, 48, 1)
        # ? C=48 K=56 bias=False norm=False
        self.c = ConvModule(48, 56, 1, norm_cfg={"type": "GN", "num_groups": 8}, act_cfg=None)
        # ? C=56 K=64 bias=True norm=True
        self.d = ConvModule(56, 64, 1, bias=True, norm_cfg={"type": "BN"})
        # ? C=64 K=72 bias=True norm=?
        self.e = ConvModule(64, 72, 1, bias=True, norm_cfg={"type": "BN"}, order=("norm", "conv", "act"))
        # ? dims=3 C=72 K=80 T=3
        self.f = build_conv_layer({"type": "Conv3d"}, 72, 80, kernel_size=3)
        # ? C=80 K=88 bias=True norm=True
        self.g = ConvModule(80, 88, 1, act_cfg=None)
        self.bn = nn.BatchNorm2d(88)
        # ? C=88 K=96 bias=True norm=?
        self.h = ConvModule(88, 96, 1, bias=True, norm_cfg={"type": "BN"})

    def forward(self, x):
        self.h(x, norm=False)
        x = self.d(self.c(self.b(self.a(self.block(x)))))
        return self.bn(self.g(self.f(self.e(x))))


def of_torchvision(width=64):
    return nn.Sequential(
        # ? C=3 K=16 R=3 U=1 PadH=1 bias=False norm=True
        Conv2dNormActivation(3, 16),
        # ? C=16 K=24 R=5 U=2 PadH=4 DilH=2 bias=False norm=True
        Conv2dNormActivation(16, 24, kernel_size=5, stride=2, dilation=2, activation_layer=nn.SiLU),
        # ? C=24 K=32 R=3 S=1 PadH=1 PadW=0 bias=True norm=True
        ConvNormActivation(24, 32, (3, 1), bias=True, norm_layer=partial(nn.BatchNorm2d, eps=1e-3)),
        # ? C=32 K=40 bias=True norm=False
        Conv2dNormActivation(32, 40, 1, norm_layer=None),
    )


class OfTimm(nn.Module):
    def __init__(self, unheard_of):
        super().__init__()
        # ? C=32 K=40 R=3 U=2 PadH=1 bias=False norm=True
        self.a = ConvNormAct(32, 40, 3, stride=2)
        # ? C=40 K=48 R=1 PadH=0 bias=True norm=True
        self.b = ConvBnAct(40, 48, bias=True, norm_layer=partial(nn.BatchNorm2d, eps=1e-3))
        # ? C=48 K=48 R=5 PadH=4 DilH=2 groups=48 bias=False norm=True
        self.c = create_conv2d(48, 48, 5, dilation=2, depthwise=True)
        self.bn = nn.BatchNorm2d(48)
        # ? C=48 K=56 R=4 U=4 PadH=3 bias=True norm=False
        self.d = ConvNormAct(48, 56, 4, 4, bias=True, apply_norm=False)
        # ? C=56 K=64 R=3 U=2 bias=True norm=?
        self.e = create_conv2d(56, 64, 3, stride=2, padding="valid", bias=True)
        # ? C=64 K=72 bias=True norm=?
        self.f = ConvNormAct(64, 72, 1, bias=True, norm_layer=unheard_of)

    def forward(self, x):
        return self.f(self.e(self.d(self.bn(self.c(self.b(self.a(x)))))))


class OfMonai(nn.Module):
    def __init__(self, spatial_dims, in_channels):
        super().__init__()
        # ? dims=3 C=4 K=16 T=3 R=3 U=1 PadH=1 norm=True; dims=2 C=? K=16 T=1 R=3 U=1 PadH=1 norm=True
        self.a = Convolution(spatial_dims, in_channels, 16, act="RELU")
        # ? dims=3 C=16 K=24 T=3 U=2 PadH=1 bias=True norm=True
        self.b = Convolution(3, 16, 24, strides=2, adn_ordering="DNA", norm=Norm.BATCH)
        # ? dims=2 C=24 K=32 R=5 PadH=2 bias=True norm=False
        self.c = Convolution(2, 24, 32, kernel_size=5, norm=("group", {"num_groups": 8}))
        # ? dims=3 C=32 K=40 bias=True norm=False
        self.d = Convolution(3, 32, 40, adn_ordering="ADN")
        # ? dims=3 C=40 K=48 bias=True norm=False
        self.e = Convolution(3, 40, 48, kernel_size=1, conv_only=True)
        # ? op=conv_transpose dims=3 C=48 K=56 U=2 bias=True norm=True
        self.f = Convolution(dimensions=3, in_channels=48, out_channels=56, strides=2, is_transposed=True)

    def forward(self, x):
        return self.f(self.e(self.d(self.c(self.b(self.a(x))))))


def of_monai():
    return OfMonai(3, 4)


class Saving(pl.LightningModule):
    def __init__(self, width, depth=2, *, head, **others):
        super().__init__()
        self.save_hyperparameters(ignore=["depth"])
        # ? C=3 K=26
        self.first = nn.Conv2d(3, self.hparams.width, 3)
        self.second = self.make(self.hparams["width"] * 2)
        # ? C=52 K=14
        self.third = nn.Conv2d(52, self.hparams.head, 3)
        # ? C=14 K=17
        self.fourth = nn.Conv2d(14, self.hparams.last, 3)

    def make(self, width):
        # ? C=26 K=52
        return nn.Conv2d(self.hparams.width, width, 3)


class SavingOne(pl.LightningModule):
    def __init__(self, hparams):
        super().__init__()
        self.save_hyperparameters(hparams)
        # ? C=3 K=30
        self.first = nn.Conv2d(3, self.hparams.width, 3)


def saving():
    return Saving(26, head=14, last=17), SavingOne(Namespace(width=30))
