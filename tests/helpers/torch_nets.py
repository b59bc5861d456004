"""Networks for the tests of the PyTorch reader, and what forward hooks see of them on a real run."""

from typing import Any

import torch
import torch.nn.functional as F
import torch.utils.checkpoint
from torch import nn


class UNet(nn.Module):
    """Two levels down and up, with concatenation."""

    def __init__(self) -> None:
        super().__init__()
        self.down1 = self.block(3, 16)
        self.down2 = self.block(16, 32)
        self.middle = self.block(32, 64)
        self.up2 = nn.ConvTranspose2d(64, 32, 2, stride=2)
        self.dec2 = self.block(64, 32)
        self.up1 = nn.ConvTranspose2d(32, 16, 3, stride=2, padding=1, output_padding=1)
        self.dec1 = self.block(32, 16)
        self.out = nn.Conv2d(16, 2, 1)

    @staticmethod
    def block(c: int, k: int) -> nn.Module:
        return nn.Sequential(
            nn.Conv2d(c, k, 3, padding=1, bias=False), nn.BatchNorm2d(k), nn.ReLU(inplace=True),
            nn.Conv2d(k, k, 3, padding=1), nn.ReLU(),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        y = self.middle(F.max_pool2d(b, 2))
        y = self.dec2(torch.cat([self.up2(y), b], 1))
        y = self.dec1(torch.cat([self.up1(y), a], 1))
        return self.out(y)


class ResNeXt(nn.Module):
    """Grouped bottlenecks with a residual."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 64, 7, stride=2, padding=3)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(64, 128, 1), nn.ReLU(), nn.Conv2d(128, 128, 3, padding=2, dilation=2, groups=32), nn.ReLU(),
                nn.Conv2d(128, 64, 1),
            )
            for _ in range(3)
        )  # fmt: skip
        self.head = nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        for block in self.blocks:
            x = x + block(x)
        return self.head(x.mean((2, 3)))


class Video(nn.Module):
    """Three dimensions, one of them strided alone."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv3d(3, 8, (1, 7, 7), stride=(1, 2, 2), padding=(0, 3, 3))
        self.second = nn.Conv3d(8, 16, (3, 1, 1), stride=(2, 1, 1), padding=(1, 0, 0))
        self.up = nn.ConvTranspose3d(16, 8, 2, stride=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.up(self.second(self.first(x)).relu())


class Sound(nn.Module):
    """One dimension, and the odd element of "same"."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Conv1d(2, 8, 4, padding="same")
        self.b = nn.Conv1d(8, 8, 9, stride=4, padding=4, groups=8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.b(self.a(x))


class TwoInputs(nn.Module):
    """Two inputs of different dtypes; the second one by keyword."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)

    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return self.conv(x) * scale.to(x.dtype)


class OwnConv(nn.Conv2d):
    """A subclass: its own __init__ is not where the network asks for it."""

    def __init__(self, c: int, k: int) -> None:
        super().__init__(
            c, k, 3, padding=1)  # fmt: skip


class Traps(nn.Module):
    """A shared module, a functional call, a subclass, and a module that is never called."""

    def __init__(self) -> None:
        super().__init__()
        self.own = OwnConv(3, 16)  # line: own
        self.shared = nn.Conv2d(16, 16, 3, padding=1)  # line: shared
        self.norm = nn.BatchNorm2d(16)
        self.filters = nn.Parameter(torch.empty(32, 8, 1, 1))
        self.unused = nn.Conv2d(16, 99, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.norm(self.own(x))
        for _ in range(3):
            x = self.shared(x)
        x = self.shared(F.max_pool2d(x, 2))
        return F.conv2d(x, self.filters, groups=2)  # line: functional


class Depends(nn.Module):
    """Needs a value to know its way."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(x) if x.sum() > 0 else x


class Drops(nn.Module):
    """Computes rates as many networks do: with a tensor whose values are read while building."""

    def __init__(self) -> None:
        super().__init__()
        rates = [rate.item() for rate in torch.linspace(0, 0.5, 3)]
        self.layers = nn.Sequential(*(nn.Sequential(nn.Conv2d(3, 3, 3), nn.Dropout(rate)) for rate in rates))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


class Slices(nn.Module):
    """Writes its result into a part of a buffer of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Conv2d(3, 8, 3, padding=1)
        self.b = nn.Conv2d(16, 8, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = x.new_zeros((x.shape[0], 16, *x.shape[2:]))
        out[:, :8] = self.a(x)
        return self.b(out)


class Generator(nn.Module):
    """Starts with a linear layer: gradients flow back through its first convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.start = nn.Linear(100, 64 * 16)
        self.up = nn.ConvTranspose2d(64, 32, 4, stride=2, padding=1)
        self.rgb = nn.ConvTranspose2d(32, 3, 4, stride=2, padding=1)

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        return self.rgb(self.up(self.start(z).view(-1, 64, 4, 4)).relu()).tanh()


def half_channels_last() -> nn.Module:
    return UNet().half().to(memory_format=torch.channels_last)


def two_inputs() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.zeros(2, 3, 8, 8).to(memory_format=torch.channels_last), torch.zeros(1, dtype=torch.int64)


def needs_arguments(width: int) -> nn.Module:
    return nn.Conv2d(3, width, 1)


def not_a_module() -> int:
    return 3


number = 7


def compiled() -> nn.Module:
    return torch.compile(UNet())


def compiled_in_place() -> nn.Module:
    module = UNet()
    module.compile(mode="reduce-overhead")
    return module


def compiled_in_part() -> nn.Module:
    module = nn.Sequential(UNet())
    module[0].compile(mode="reduce-overhead")
    return module


def compiled_into_graphs() -> nn.Module:
    return torch.compile(UNet(), mode="max-autotune")


class Checkpointed(nn.Module):
    def __init__(self, use_reentrant: bool = False) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3))
        self.use_reentrant = use_reentrant

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.utils.checkpoint.checkpoint(self.body, x, use_reentrant=self.use_reentrant)


class Taught(nn.Module):
    """With a teacher, which runs without gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.student = nn.Conv2d(3, 8, 3)
        self.teacher = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 1))

    @torch.no_grad()
    def taught(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            x = self.teacher[1](self.teacher[0](x))
        return self.teacher[2](x)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.student(x) - self.taught(x)


def learning_norms() -> nn.Module:
    module = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.GroupNorm(2, 8), nn.ReLU(),
        nn.Conv2d(8, 8, 3), nn.Conv2d(8, 8, 3)
    )  # fmt: skip
    for layer in (module[0], module[3], module[6]):
        layer.requires_grad_(False)
    return module


class FixedFilters(nn.Module):
    """Filters that learn (in one that is larger), that are a buffer, and that are cut off."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Parameter(torch.ones(8, 3, 3, 3))
        self.register_buffer("blur", torch.ones(8, 1, 3, 3) / 9)
        self.last = nn.Conv2d(8, 8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        filters = torch.zeros(8, 3, 5, 5, device=x.device)
        filters[:, :, 1:4, 1:4] = self.inner
        return F.conv2d(F.conv2d(F.conv2d(x, filters), self.blur, groups=8), self.last.weight.detach())


class Scaled(nn.Module):
    """A scale that learns between frozen convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.after = (nn.Conv2d(C, 8, 3).requires_grad_(False) for C in (3, 8))
        self.scale = nn.Parameter(torch.ones(8, 1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.after(self.before(x) * self.scale)


class Switched(nn.Module):
    """Its convolutions run with gradients (a) and without them (b), behind switches of every kind."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.ModuleList(nn.Conv2d(3, 8, 3) for _ in range(5))
        self.b = nn.ModuleList(nn.Conv2d(3, 8, 3) for _ in range(4))

    @torch.set_grad_enabled(False)
    def without(self, x: torch.Tensor) -> torch.Tensor:
        return self.b[0](x)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        maps = [self.a[0](x), self.without(x), self.a[1](x)]
        with torch.inference_mode():
            maps.append(self.b[1](x))
        with torch.set_grad_enabled(self.training):
            maps.append(self.a[2](x))
        with torch.set_grad_enabled(False), torch.enable_grad():
            maps.append(self.a[3](x))
        torch.set_grad_enabled(False)
        maps.append(self.b[2](x))
        torch.set_grad_enabled(True)
        maps.append(self.a[4](x))
        with torch.no_grad():
            maps.append(self.b[3](x))
        return tuple(maps)


class OwnBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, layer: nn.Module, x: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return layer(x)


class Reversible(nn.Conv2d):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return OwnBackward.apply(super().forward, x, *self.parameters())


def reversible() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 8, 3), Reversible(8, 8, 3), nn.Conv2d(8, 8, 3))


class Teacher(Taught):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.taught(x)


def weight_normed() -> nn.Module:
    return nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Conv2d(3, 8, 3)), nn.ReLU(), nn.Conv2d(8, 8, 3))


def partly_frozen() -> nn.Module:
    module = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3))
    module[0].requires_grad_(False)
    return module


def wholly_frozen() -> nn.Module:
    return partly_frozen().requires_grad_(False)


def behind_frozen() -> nn.Module:
    module = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3))
    module[1].requires_grad_(False)
    return module


class Detached(nn.Sequential):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self[1](self[0](x).detach())


def detached() -> nn.Module:
    return Detached(nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3))


def frozen_norm_of_weights() -> nn.Module:
    module = weight_normed()
    module[0].requires_grad_(False)
    return module


def lazy() -> nn.Module:
    return nn.Sequential(nn.LazyConv2d(8, 3), nn.LazyBatchNorm2d(), nn.ReLU(), nn.Flatten(), nn.LazyLinear(10))


def resnet() -> nn.Module:
    from transformers import ResNetConfig, ResNetModel

    return ResNetModel(ResNetConfig())


def convnext() -> nn.Module:
    from transformers import ConvNextConfig, ConvNextModel

    return ConvNextModel(ConvNextConfig())


def mobilenet() -> nn.Module:
    from transformers import MobileNetV2Config, MobileNetV2Model

    return MobileNetV2Model(MobileNetV2Config())


def segformer() -> nn.Module:
    from transformers import SegformerConfig, SegformerForSemanticSegmentation

    return SegformerForSemanticSegmentation(SegformerConfig())


def detr() -> nn.Module:
    from transformers import DetrConfig, DetrModel, ResNetConfig

    backbone = ResNetConfig(out_features=["stage4"])
    return DetrModel(DetrConfig(use_timm_backbone=False, use_pretrained_backbone=False, backbone_config=backbone))


def hooked(module: nn.Module, *inputs: torch.Tensor) -> list[dict[str, Any]]:
    """Every call of a convolution module in a real run: sizes from the tensors, the rest from the module."""
    seen: list[dict[str, Any]] = []
    kinds = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)

    def hook(name: str) -> Any:
        def record(layer: Any, args: Any, output: torch.Tensor) -> None:
            source = args[0]
            rank = source.dim() - 2
            entry = {"name": name, "N": source.shape[0], "C": source.shape[1], "K": output.shape[1]}
            entry |= {"groups": layer.groups, "bias": layer.bias is not None, "dims": rank}
            entry["op"] = "conv_transpose" if layer.transposed else "conv"
            letters = ["DZT", "HPR", "WQS"][3 - rank :]
            for axis, (before, after, taps) in enumerate(letters):
                entry[before], entry[after] = source.shape[2 + axis], output.shape[2 + axis]
                entry[taps] = layer.kernel_size[axis]
                entry[{"D": "StrideD", "H": "U", "W": "V"}[before]] = layer.stride[axis]
                entry[f"Dil{before}"] = layer.dilation[axis]
                if not isinstance(layer.padding, str):
                    entry[f"Pad{before}"] = entry[f"Pad{before}_end"] = layer.padding[axis]
            seen.append(entry)

        return record

    for name, layer in module.named_modules():
        if isinstance(layer, kinds):
            layer.register_forward_hook(hook(name))
    with torch.no_grad():
        module.eval()(*inputs)
    return seen


class FrozenNorm(nn.Module):
    """Of its two norms, one keeps its statistics in training."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)
        self.second, self.frozen = nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8)
        self.train()

    def train(self, mode: bool = True) -> "FrozenNorm":
        super().train(mode)
        self.frozen.eval()
        return self

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.frozen(self.second(self.norm(self.first(x))))


def frozen_norm_weights() -> FrozenNorm:
    """The norm that keeps its statistics does not learn either."""
    net = FrozenNorm()
    net.frozen.requires_grad_(requires_grad=False)
    return net


class Flattened(nn.Module):
    """A classifier of a whole map, behind a gate of linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.last = nn.Conv2d(3, 60, 3, padding=1), nn.Conv2d(60, 20, 3, stride=4)
        self.gate = nn.Sequential(nn.Linear(60, 8), nn.ReLU(), nn.Linear(8, 60), nn.Sigmoid())
        self.head = nn.Sequential(nn.Flatten(), nn.Dropout(), nn.Linear(20 * 64, 30), nn.ReLU(), nn.Linear(30, 10))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.stem(x)
        y = y * self.gate(y.mean((2, 3)))[:, :, None, None]
        return self.head(self.last(y).relu())


class Shuffles(nn.Module):
    """A shuffle of channels between two grouped layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 32, 3), nn.Conv2d(32, 32, 3, groups=32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        n, c, h, w = x.shape
        return self.second(x.view(n, 4, c // 4, h, w).transpose(1, 2).contiguous().view(n, c, h, w))


class Attends(nn.Module):
    """Two heads of attention over the positions of a map."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Conv2d(3, 96, 3), nn.Conv2d(32, 8, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.qkv(x)
        n, _, h, w = x.shape
        q, k, v = x.reshape(n, 3, 2, 16, h * w).permute(1, 0, 2, 4, 3)
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(2, 3).reshape(n, 32, h, w))


class Tokens(nn.Module):
    """Patches as tokens, multiplied by each other, and vectors of them."""

    def __init__(self) -> None:
        super().__init__()
        self.patches, self.norm, self.wide = nn.Conv2d(3, 32, 4, 4), nn.LayerNorm(32), nn.Linear(32, 64)
        self.narrow, self.gate, self.head = nn.Linear(64, 32), nn.Linear(32, 32), nn.Linear(32, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = x + self.narrow(F.gelu(self.wide(self.norm(x))))
        x = torch.softmax(x @ self.gate(x).transpose(1, 2), -1) @ x
        return self.head(x[:, 0] + x.mean(1))


class KeepsItsModules(nn.Module):
    """A list of its own takes the place of the method `modules`, which PyTorch calls nowhere in training."""

    def __init__(self) -> None:
        super().__init__()
        self.modules = [nn.Conv2d(3, 8, 3)]  # type: ignore[assignment]
        self.first = self.modules[0]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.modules:
            x = layer(x)
        return x
