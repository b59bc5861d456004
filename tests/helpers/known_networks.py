"""Networks whose memory and speed were published, written after their papers."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import nn


def conv_norm(
    C: int, K: int, size: int = 1, stride: int = 1, groups: int = 1, act: nn.Module | None = None
) -> nn.Module:
    """A convolution without bias, batch normalisation, and an activation."""
    layers: list[nn.Module] = [nn.Conv2d(C, K, size, stride, size // 2, groups=groups, bias=False), nn.BatchNorm2d(K)]
    return nn.Sequential(*layers, *([act] if act is not None else []))


class Bottleneck(nn.Module):
    """ResNet's, with the stride in the 3x3 convolution, which has groups in a ResNeXt."""

    def __init__(self, C: int, width: int, stride: int, groups: int = 1) -> None:
        super().__init__()
        K = 4 * width
        self.reduce = conv_norm(C, width, act=nn.ReLU(inplace=True))
        self.spatial = conv_norm(width, width, 3, stride, groups, nn.ReLU(inplace=True))
        self.expand = conv_norm(width, K)
        self.downsample = conv_norm(C, K, 1, stride) if stride > 1 or C != K else None
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.expand(self.spatial(self.reduce(x)))
        y += x if self.downsample is None else self.downsample(x)
        return self.relu(y)


def resnet50(
    widths: Sequence[int] = (64, 128, 256, 512), counts: Sequence[int] = (3, 4, 6, 3), groups: int = 1
) -> nn.Module:
    """He et al., arXiv:1512.03385, or a network of other widths and counts of blocks; `groups` make it a ResNeXt."""
    blocks: list[nn.Module] = []
    C = widths[0]
    for stage, (width, count) in enumerate(zip(widths, counts, strict=True)):
        for number in range(count):
            blocks.append(Bottleneck(C, width, 2 if stage and not number else 1, groups))
            C = 4 * width
    stem = conv_norm(3, widths[0], 7, 2, act=nn.ReLU(inplace=True))
    return nn.Sequential(
        stem, nn.MaxPool2d(3, 2, 1), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(C, 1000)
    )


def resnet50_with_frozen_stages() -> nn.Module:
    """Its stem and its first two stages do not learn, as in detectors (arXiv:1506.01497 and its successors)."""
    module = resnet50()
    module[:9].requires_grad_(False)
    return module


def resnet50_behind_its_stem() -> nn.Module:
    """Nothing but its stem learns."""
    module = resnet50()
    module[1:].requires_grad_(False)
    return module


def adapted() -> nn.Module:
    """Frozen convolutions behind one that learns, and no ReLU that keeps what they read."""
    module = nn.Sequential(nn.Conv2d(3, 16, 3), *[nn.Conv2d(16, 16, 3) for _ in range(3)])
    module[1:].requires_grad_(False)
    return module


def vgg16() -> nn.Module:
    """Simonyan and Zisserman, arXiv:1409.1556."""
    layers: list[nn.Module] = []
    C = 3
    for K in (64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0):
        layers += [nn.Conv2d(C, K, 3, padding=1), nn.ReLU(inplace=True)] if K else [nn.MaxPool2d(2)]
        C = K or C
    head = (
        nn.Linear(25088, 4096),
        nn.ReLU(inplace=True),
        nn.Linear(4096, 4096),
        nn.ReLU(inplace=True),
        nn.Linear(4096, 1000),
    )
    return nn.Sequential(*layers, nn.Flatten(), *head)


class UNet(nn.Module):
    """Ronneberger et al., arXiv:1505.04597, as milesial/Pytorch-UNet has it with bilinear upsampling (17.3 M)."""

    def __init__(self, widths: Sequence[int] = (64, 128, 256, 512, 512)) -> None:
        super().__init__()
        self.inc = self.double(3, widths[0])
        self.down = nn.ModuleList(self.double(C, K) for C, K in pairwise(widths))
        self.up = nn.ModuleList()
        below = widths[-1]
        for skip, K in zip(widths[-2::-1], (*widths[-3::-1], widths[0]), strict=True):
            self.up.append(self.double(below + skip, K, (below + skip) // 2))
            below = K
        self.out = nn.Conv2d(widths[0], 2, 1)

    @staticmethod
    def double(C: int, K: int, middle: int | None = None) -> nn.Module:
        middle = middle or K
        first = [nn.Conv2d(C, middle, 3, padding=1, bias=False), nn.BatchNorm2d(middle), nn.ReLU(inplace=True)]
        return nn.Sequential(
            *first, nn.Conv2d(middle, K, 3, padding=1, bias=False), nn.BatchNorm2d(K), nn.ReLU(inplace=True)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        skips = [self.inc(x)]
        for block in self.down:
            skips.append(block(nn.functional.max_pool2d(skips[-1], 2)))
        y = skips.pop()
        for block in self.up:
            y = nn.functional.interpolate(y, scale_factor=2, mode="bilinear", align_corners=True)
            y = block(torch.cat([skips.pop(), y], 1))
        return self.out(y)


class _MBConv(nn.Module):
    def __init__(self, C: int, K: int, size: int, stride: int, expand: int) -> None:
        super().__init__()
        inner = C * expand
        self.expand = conv_norm(C, inner, act=nn.SiLU()) if expand > 1 else nn.Identity()
        self.depthwise = conv_norm(inner, inner, size, stride, inner, nn.SiLU())
        squeezed = max(1, C // 4)
        self.squeeze = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(inner, squeezed, 1),
            nn.SiLU(),
            nn.Conv2d(squeezed, inner, 1),
            nn.Sigmoid(),
        )
        self.project = conv_norm(inner, K)
        self.adds = stride == 1 and C == K

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.depthwise(self.expand(x))
        y = self.project(y * self.squeeze(y))
        return x + y if self.adds else y


def efficientnet_b0() -> nn.Module:
    """Tan and Le, arXiv:1905.11946, table 1."""
    blocks: list[nn.Module] = []
    C = 32
    for expand, K, count, stride, size in (
        (1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5), (6, 192, 4, 2, 5),
        (6, 320, 1, 1, 3),
    ):  # fmt: skip
        for number in range(count):
            blocks.append(_MBConv(C, K, size, stride if number == 0 else 1, expand))
            C = K
    last = (conv_norm(320, 1280, act=nn.SiLU()), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, 1000))
    return nn.Sequential(conv_norm(3, 32, 3, 2, act=nn.SiLU()), *blocks, *last)
