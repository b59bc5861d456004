"""Networks with widths that no Tensor Core likes: ResNet-50, MobileNetV2 × 1.4, a U-Net and a ResNeXt, in PyTorch."""

from __future__ import annotations

import torch
from torch import nn

ODD = (60, 124, 250, 500)


def conv_norm(C: int, K: int, size: int, stride: int = 1, groups: int = 1) -> nn.Sequential:
    conv = nn.Conv2d(C, K, size, stride, size // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(K))


class Bottleneck(nn.Module):
    """1×1, 3×3 (with groups in a ResNeXt), 1×1 to four times the width; a projection where the shape changes."""

    def __init__(self, C: int, width: int, stride: int, groups: int = 1) -> None:
        super().__init__()
        K = 4 * width
        self.reduce, self.middle = conv_norm(C, width, 1), conv_norm(width, width, 3, stride, groups)
        self.expand = conv_norm(width, K, 1)
        self.project = conv_norm(C, K, 1, stride) if stride > 1 or C != K else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.middle(torch.relu(self.reduce(x))))
        return torch.relu(self.expand(y) + self.project(x))


class ResNet(nn.Module):
    """ResNet-50 by its blocks; `groups` make it a ResNeXt."""

    def __init__(self, widths: tuple[int, ...] = ODD, blocks: tuple[int, ...] = (3, 4, 6, 3), groups: int = 1) -> None:
        super().__init__()
        self.stem = conv_norm(3, widths[0], 7, 2)
        stages, C = [], widths[0]
        for number, (width, count) in enumerate(zip(widths, blocks, strict=True)):
            for block in range(count):
                stages.append(Bottleneck(C, width, 2 if number and not block else 1, groups))
                C = 4 * width
        self.stages, self.last = nn.Sequential(*stages), nn.Linear(C, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = nn.functional.max_pool2d(torch.relu(self.stem(x)), 3, 2, 1)
        return self.last(torch.flatten(nn.functional.adaptive_avg_pool2d(self.stages(x), 1), 1))


class Inverted(nn.Module):
    """Wide, depthwise, narrow."""

    def __init__(self, C: int, K: int, stride: int, wider: int) -> None:
        super().__init__()
        wide = C * wider
        self.expand = conv_norm(C, wide, 1) if wider > 1 else nn.Identity()
        self.depthwise, self.narrow = conv_norm(wide, wide, 3, stride, wide), conv_norm(wide, K, 1)
        self.adds = stride == 1 and C == K

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = nn.functional.relu6(self.expand(x))
        y = self.narrow(nn.functional.relu6(self.depthwise(y)))
        return x + y if self.adds else y


class MobileNet(nn.Module):
    """MobileNetV2 × 1.4 as its widths come out where nobody rounds them: 44, 22, 33, 44, 89, 134, 224, 448."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, C = conv_norm(3, 44, 3, 2), 44
        blocks: list[nn.Module] = []
        for wider, K, count, stride in (
            (1, 22, 1, 1), (6, 33, 2, 2), (6, 44, 3, 2), (6, 89, 4, 2), (6, 134, 3, 1), (6, 224, 3, 2), (6, 448, 1, 1),
        ):  # fmt: skip
            for number in range(count):
                blocks.append(Inverted(C, K, 1 if number else stride, wider))
                C = K
        self.blocks, self.last = nn.Sequential(*blocks), conv_norm(C, 1792, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.relu6(self.last(self.blocks(self.stem(x)))).mean((2, 3))


class UNet(nn.Module):
    """Two levels down and up again, joined by concatenation."""

    def __init__(self, width: int = 30) -> None:
        super().__init__()
        self.down = nn.ModuleList(
            [self._pair(3, width), self._pair(width, 2 * width), self._pair(2 * width, 4 * width)]
        )
        self.up = nn.ModuleList(
            [nn.ConvTranspose2d(4 * width, 2 * width, 2, 2), nn.ConvTranspose2d(2 * width, width, 2, 2)]
        )
        self.join = nn.ModuleList([self._pair(4 * width, 2 * width), self._pair(2 * width, width)])
        self.head = nn.Conv2d(width, 5, 1)

    @staticmethod
    def _pair(C: int, K: int) -> nn.Sequential:
        return nn.Sequential(conv_norm(C, K, 3), nn.ReLU(), conv_norm(K, K, 3), nn.ReLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        skips = []
        for level in self.down:
            x = level(x) if not skips else level(nn.functional.max_pool2d(x, 2))
            skips.append(x)
        for up, join, skip in zip(self.up, self.join, reversed(skips[:-1]), strict=True):
            x = join(torch.cat([up(x), skip], 1))
        return self.head(x)


def resnext() -> ResNet:
    return ResNet((72, 144), (2, 2), groups=6)
