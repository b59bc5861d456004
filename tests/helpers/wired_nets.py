"""Small networks whose channels are tied in one way each, for the tests of the PyTorch readers."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn


def conv(c: int, k: int, size: int = 3, **more: Any) -> nn.Conv2d:
    return nn.Conv2d(c, k, size, padding=size // 2, **more)


class Residual(nn.Module):
    """Two basic blocks, in place wherever that is usual."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.first, self.second = conv(3, 20), conv(20, 12), conv(12, 20)
        self.norm, self.relu, self.last = nn.BatchNorm2d(20), nn.ReLU(inplace=True), conv(20, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.relu(self.stem(x))
        y = self.norm(self.second(self.relu(self.first(x))))
        y += x
        return self.last(self.relu(y))


class Dense(nn.Module):
    """Each layer reads all before it."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.a, self.b, self.last = conv(3, 20), conv(20, 6), conv(26, 10), conv(36, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        x = torch.cat([x, F.relu(self.a(x))], 1)
        x = torch.cat([x, F.relu(self.b(x))], -3)
        return self.last(x)


class Inverted(nn.Module):
    """A block of MobileNetV2, and squeeze-and-excite."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.wide, self.deep = conv(3, 12), conv(12, 28, 1), conv(28, 28, groups=28)
        self.squeeze, self.excite = conv(28, 7, 1), conv(7, 28, 1)
        self.narrow, self.last = conv(28, 12, 1), conv(12, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        y = F.relu6(self.deep(F.hardswish(self.wide(x))))
        gate = self.excite(F.silu(self.squeeze(y.mean((2, 3), keepdim=True)))).sigmoid()
        return self.last(x + self.narrow(y * gate))


class Shared(nn.Module):
    """One convolution twice at one size, and once at another."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = conv(3, 20), conv(3, 20), conv(3, 20)
        self.shared, self.last = conv(20, 12), conv(12, 5)

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        small = F.avg_pool2d(x, 2)
        return [self.last(F.relu(self.shared(y))) for y in (self.a(x), self.b(x), self.c(small))]


class Shuffled(nn.Module):
    """Pixels become channels and channels pixels, with norms of groups."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.norm, self.last = conv(12, 20), nn.GroupNorm(5, 20), conv(5, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.pad(F.pixel_unshuffle(x, 2), (1, 1, 1, 1))
        return self.last(F.pixel_shuffle(self.norm(self.stem(x)), 2))


class Headed(nn.Module):
    """Linear layers that read two maps: one for each, and one for both."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c, self.d = conv(3, 12), conv(3, 12), conv(3, 20), conv(3, 20)
        self.one, self.other, self.shared = nn.Linear(12, 4), nn.Linear(12 * 64, 4), nn.Linear(20, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.one(self.a(x).mean((2, 3))) + self.other(F.max_pool2d(self.b(x), 2).flatten(1))
        for read in (self.c, self.d):
            y = y + self.shared(F.adaptive_avg_pool2d(read(x), 1).view(x.size(0), -1))
        return y


class Reused(nn.Module):
    """A linear layer that reads vectors, and every pixel of maps."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.fc, self.last = conv(3, 20), nn.Linear(20, 44), nn.Linear(44, 10)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.stem(x)
        return self.last(self.fc(x.mean((2, 3)))), self.fc(x.permute(0, 2, 3, 1))


class Viewed(nn.Module):
    """A view that keeps no axis of channels, and one that keeps all."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.free, self.last, self.other = conv(3, 20), conv(3, 20), conv(20, 5), conv(20, 5)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y, z = self.stem(x), self.free(x)
        mixed = y.view(y.shape[0], 2 * y.shape[1], -1, y.shape[3]).reshape(y.shape)
        return self.last(mixed), self.other(z.view(z.shape)[:])


class Written(nn.Module):
    """Writes into a part of a buffer of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.last = conv(3, 8), conv(16, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.zeros(x.shape[0], 16, *x.shape[2:], device=x.device)
        out[:, :8] = self.stem(x)
        return self.last(out)


class Scaled(nn.Module):
    """Parameters of one number per channel, and positions."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.last = conv(3, 20), conv(20, 5)
        self.gamma, self.where = nn.Parameter(torch.ones(20, 1, 1)), nn.Parameter(torch.ones(1, 20, 16, 16))
        self.slope = nn.PReLU(20)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.slope(1 - self.stem(x) * self.gamma + self.where))


class Asks(nn.Module):
    """Goes on as the values of its features say."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.inner, self.last = conv(3, 20), conv(20, 20), conv(20, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.inner(self.stem(x))
        return self.last(x) if x.sum() > 0 else x


class Pyramid(nn.Module):
    """Hands its feature maps out."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = conv(3, 20), conv(20, 30), conv(30, 40)

    def forward(self, x: torch.Tensor) -> dict[str, Any]:
        y = self.a(x)
        z = F.max_pool2d(F.relu(self.b(y)), 2)
        return {"levels": [(z, None)], "last": self.c(z)}
