"""Networks with widths that no Tensor Core likes: ResNet-50, MobileNetV2 × 1.4, a U-Net and a ResNeXt, in PyTorch."""

import torch
from known_networks import conv_norm, resnet50
from torch import nn


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


def resnet() -> nn.Module:
    return resnet50((60, 124, 250, 500))


def resnext() -> nn.Module:
    return resnet50((72, 144), (2, 2), groups=6)
