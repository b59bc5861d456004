"""Networks with widths that no Tensor Core likes, in PyTorch: a ResNet-50, a MobileNetV2 × 1.4, a U-Net and others."""

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


class Turned(nn.Module):
    """A block of ConvNeXt's, whose norm and linear layers have the channels behind the positions."""

    def __init__(self, C: int) -> None:
        super().__init__()
        self.depthwise, self.norm = nn.Conv2d(C, C, 7, padding=3, groups=C), nn.LayerNorm(C)
        self.up, self.down = nn.Linear(C, 4 * C), nn.Linear(4 * C, C)
        self.scale = nn.Parameter(torch.ones(C))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        y = self.scale * self.down(nn.functional.gelu(self.up(y)))
        return x + y.permute(0, 3, 1, 2)


class ConvNeXt(nn.Module):
    """Two stages of one block, of 44 and 92 channels."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.first = nn.Conv2d(3, 44, 4, 4), Turned(44)
        self.next, self.second = nn.Conv2d(44, 92, 2, 2), Turned(92)
        self.norm, self.head = nn.LayerNorm(92), nn.Linear(92, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.second(self.next(self.first(self.stem(x))))
        return self.head(self.norm(x.mean((2, 3))))


class Attentive(nn.Module):
    """Spatial attention by the mean and the maximum of the channels, as CBAM's, and a norm over them, as SAM's."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.next = conv_norm(3, 60, 3, 2), nn.Conv2d(60, 100, 3, padding=1)
        self.gate, self.head = nn.Conv2d(2, 1, 7, padding=3), nn.Conv2d(100, 10, 1)
        self.weight, self.bias = nn.Parameter(torch.ones(100)), nn.Parameter(torch.zeros(100))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = nn.functional.relu(self.stem(x))
        pooled = torch.cat([x.mean(1, keepdim=True), x.max(1, keepdim=True)[0]], 1)
        x = self.next(x * torch.sigmoid(self.gate(pooled)))
        off = x - x.mean(1, keepdim=True)
        x = off / torch.sqrt(off.pow(2).mean(1, keepdim=True) + 1e-6)
        return self.head(self.weight[:, None, None] * x + self.bias[:, None, None])


class Gated(nn.Module):
    """Gates of two halves, as NAFNet's and Restormer's, and branches of halves that are joined again."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.wide = nn.Conv2d(3, 52, 3, padding=1), nn.Conv2d(52, 254, 1)
        self.mix, self.narrow = nn.Conv2d(254, 254, 3, padding=1, groups=254), nn.Conv2d(127, 52, 1)
        self.left, self.right = nn.Conv2d(26, 29, 3, padding=1), nn.Conv2d(26, 29, 1)
        self.gate, self.head = nn.Conv2d(29, 58, 1), nn.Conv2d(29, 10, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        a, b = self.mix(self.wide(x)).split(127, dim=1)
        x = x + self.narrow(nn.functional.gelu(a) * b)
        left, right = x.split(26, dim=1)
        left, right = torch.cat([self.left(left), self.right(right)], 1).relu().split(29, dim=1)
        return self.head(nn.functional.glu(self.gate(left), dim=1) + right)


class Halves(nn.Module):
    """A block of YOLO's, which adds to half of its channels, and sub-pixel upsampling that joins a skip."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.wide = conv_norm(3, 60, 3, 2), conv_norm(60, 92, 1)
        self.blocks = nn.ModuleList([nn.Sequential(conv_norm(46, 30, 3), conv_norm(30, 46, 3)) for _ in range(2)])
        self.last, self.up, self.skip = conv_norm(184, 60, 1), nn.Conv2d(60, 80, 1), nn.Conv2d(3, 20, 3, padding=1)
        self.head = nn.Conv2d(20, 10, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = list(self.wide(self.stem(x)).split(46, 1))
        for block in self.blocks:
            parts.append(parts[-1] + block(parts[-1]))
        y = nn.functional.pixel_shuffle(self.up(self.last(torch.cat(parts, 1))), 2)
        return self.head(y + self.skip(x))


def resnet() -> nn.Module:
    return resnet50((60, 124, 250, 500))


def resnext() -> nn.Module:
    return resnet50((72, 144), (2, 2), groups=6)
