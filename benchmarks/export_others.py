"""Writes the convolutions of networks that are no classifiers of timm: `python benchmarks/export_others.py [CSV]`.

Segmentation, diffusion, audio, video and super-resolution, from torchvision, diffusers, segmentation_models_pytorch and
transformers (`pip install --no-deps torchvision diffusers segmentation-models-pytorch timm==1.0.31 transformers ...`),
built on the meta device from their configurations; no weights are fetched. Sizes are those that each is used with. Each
distinct layer is written once, with the first network that has it.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import nn

CSV = Path(__file__).resolve().parent / "data" / "other_layers.csv"
AXES = ("D", "H", "W")
COLUMNS = (
    "network", "op", "dims", "C", *AXES, "K", "T", "R", "S", "StrideD", "U", "V", "PadD", "PadH", "PadW", "DilD",
    "DilH", "DilW", "OutPadD", "OutPadH", "OutPadW", "groups", "bias",
)  # fmt: skip
Build = Callable[[], tuple[nn.Module, dict[str, Any]]]


def _padded(value: Any, dims: int, none: int) -> list[int]:
    numbers = [value] * dims if isinstance(value, int) else list(value)
    return [none] * (3 - dims) + numbers


def _record(network: str, layer: Any, shape: torch.Size) -> tuple[object, ...] | None:
    """A line of the table; None where the padding is not the same on both sides, or is no zeros."""
    dims = len(layer.kernel_size)
    taps, dilation = _padded(layer.kernel_size, dims, 1), _padded(layer.dilation, dims, 1)
    pad = layer.padding
    if isinstance(pad, str):
        spans = [d * (t - 1) if pad == "same" else 0 for d, t in zip(dilation, taps, strict=True)]
        if any(span % 2 for span in spans):
            return None
        pads = [span // 2 for span in spans]
    else:
        pads = _padded(pad, dims, 0)
    return (
        network, "conv_transpose" if layer.transposed else "conv", dims, shape[1], *_padded(shape[2:], dims, 1),
        layer.out_channels, *taps, *_padded(layer.stride, dims, 1), *pads, *dilation,
        *_padded(layer.output_padding, dims, 0), layer.groups, int(layer.bias is not None),
    )  # fmt: skip


def layers_of(network: str, model: nn.Module, arguments: dict[str, Any]) -> Iterator[tuple[object, ...]]:
    """The convolutions of one forward pass."""
    found: list[tuple[object, ...]] = []

    def note(layer: nn.Module, given: tuple[Any, ...], kept: dict[str, Any]) -> None:
        line = _record(network, layer, (given[0] if given else kept["input"]).shape)
        if line is not None:
            found.append(line)

    kinds = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
    for part in model.modules():
        if isinstance(part, kinds):
            part.register_forward_pre_hook(note, with_kwargs=True)
    with torch.no_grad():
        model.eval()(**arguments) if isinstance(arguments, dict) else model.eval()(*arguments)
    yield from found


def torchvision_networks() -> Iterator[tuple[str, Build]]:
    """Segmentation and video."""
    from torchvision import models

    for name in ("deeplabv3_resnet50", "fcn_resnet50", "lraspp_mobilenet_v3_large", "deeplabv3_mobilenet_v3_large"):
        make = getattr(models.segmentation, name)
        yield name, lambda make=make: (make(weights=None, weights_backbone=None), {"x": torch.empty(1, 3, 520, 520)})
    for name in ("r3d_18", "mc3_18", "r2plus1d_18"):
        make = getattr(models.video, name)
        yield name, lambda make=make: (make(weights=None), {"x": torch.empty(1, 3, 16, 112, 112)})
    yield "s3d", lambda: (models.video.s3d(weights=None), {"x": torch.empty(1, 3, 16, 224, 224)})
    for name in ("shufflenet_v2_x1_0", "squeezenet1_1", "alexnet", "googlenet"):
        make = getattr(models, name)
        yield name, lambda make=make: (make(weights=None), {"x": torch.empty(1, 3, 224, 224)})


def segmentation_networks() -> Iterator[tuple[str, Build]]:
    """U-Nets and their kin over several encoders."""
    import segmentation_models_pytorch as smp

    for kind, encoder, size in (
        ("Unet", "resnet34", 512), ("UnetPlusPlus", "resnet50", 512), ("DeepLabV3Plus", "resnet101", 768),
        ("FPN", "resnet50", 640), ("MAnet", "resnet34", 512), ("PSPNet", "resnet50", 480),
        ("Unet", "mobilenet_v2", 256), ("Linknet", "resnet18", 384), ("PAN", "resnet34", 512),
        ("Unet", "vgg16_bn", 256),
    ):  # fmt: skip
        make = getattr(smp, kind)
        yield (
            f"{kind} {encoder}",
            lambda make=make, encoder=encoder, size=size: (
                make(encoder, encoder_weights=None),
                {"x": torch.empty(1, 3, size, size)},
            ),
        )


def diffusion_networks() -> Iterator[tuple[str, Build]]:
    """Stable Diffusion 1.5's and XL's networks."""
    from diffusers import AutoencoderKL, AutoencoderKLWan, UNet2DConditionModel, UNet2DModel

    blocks = ("CrossAttnDownBlock2D",) * 3 + ("DownBlock2D",), ("UpBlock2D",) + ("CrossAttnUpBlock2D",) * 3
    yield (
        "SD 1.5",
        lambda: (
            UNet2DConditionModel(
                sample_size=64, down_block_types=blocks[0], up_block_types=blocks[1], cross_attention_dim=768
            ),
            {"sample": torch.empty(2, 4, 64, 64), "timestep": 1, "encoder_hidden_states": torch.empty(2, 77, 768)},
        ),
    )
    yield "SDXL", lambda: (
        UNet2DConditionModel(
            sample_size=128, down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
            up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
            block_out_channels=(320, 640, 1280), cross_attention_dim=2048,
        ),
        {"sample": torch.empty(2, 4, 128, 128), "timestep": 1, "encoder_hidden_states": torch.empty(2, 77, 2048)},
    )  # fmt: skip
    yield (
        "DDPM",
        lambda: (
            UNet2DModel(sample_size=64, block_out_channels=(128, 256, 384, 512), norm_num_groups=32),
            {"sample": torch.empty(1, 3, 64, 64), "timestep": 1},
        ),
    )
    kind = (("DownEncoderBlock2D",) * 4, ("UpDecoderBlock2D",) * 4)
    yield "SD's VAE", lambda: (
        AutoencoderKL(
            down_block_types=kind[0], up_block_types=kind[1], block_out_channels=(128, 256, 512, 512),
            layers_per_block=2,
        ),
        {"sample": torch.empty(1, 3, 512, 512)},
    )  # fmt: skip
    yield "Wan's VAE", lambda: (AutoencoderKLWan(), {"sample": torch.empty(1, 3, 5, 256, 256)})


def transformers_networks() -> Iterator[tuple[str, Build]]:
    """Audio, and vision models that are no classifiers."""
    import transformers as t

    def of(model: str, config: str, name: str, *shape: int, **more: Any) -> tuple[str, Build]:
        def build() -> tuple[nn.Module, dict[str, Any]]:
            return getattr(t, model)(getattr(t, config)(**more)), {name: torch.empty(*shape)}

        return model, build

    yield of("EncodecModel", "EncodecConfig", "input_values", 1, 1, 48000)
    yield of("DacModel", "DacConfig", "input_values", 1, 1, 44032)
    yield of("Wav2Vec2Model", "Wav2Vec2Config", "input_values", 1, 160000)
    yield of("WhisperForAudioClassification", "WhisperConfig", "input_features", 1, 80, 3000)
    yield of("SpeechT5HifiGan", "SpeechT5HifiGanConfig", "spectrogram", 1, 400, 80)
    yield of("SegformerForSemanticSegmentation", "SegformerConfig", "pixel_values", 1, 3, 512, 512)
    yield of("Swin2SRForImageSuperResolution", "Swin2SRConfig", "pixel_values", 1, 3, 64, 64)
    yield of("DPTForDepthEstimation", "DPTConfig", "pixel_values", 1, 3, 384, 384)
    yield of("UperNetForSemanticSegmentation", "UperNetConfig", "pixel_values", 1, 3, 512, 512)
    yield of("MobileViTForSemanticSegmentation", "MobileViTConfig", "pixel_values", 1, 3, 512, 512)
    yield of("VideoMAEModel", "VideoMAEConfig", "pixel_values", 1, 16, 3, 224, 224)
    yield of("GLPNForDepthEstimation", "GLPNConfig", "pixel_values", 1, 3, 480, 640)
    yield of("SuperPointForKeypointDetection", "SuperPointConfig", "pixel_values", 1, 3, 480, 640)


class _Residual(nn.Module):
    def __init__(self, *parts: nn.Module) -> None:
        super().__init__()
        self.parts = nn.Sequential(*parts)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.parts(x)
        return x + out


def small_networks() -> Iterator[tuple[str, Build]]:
    """Well-known networks that are a few lines: EDSR, DnCNN, WaveNet's stack, a TCN, DCGAN, nnU-Net's volumes."""

    def edsr() -> nn.Module:
        block = [
            _Residual(nn.Conv2d(256, 256, 3, padding=1), nn.ReLU(), nn.Conv2d(256, 256, 3, padding=1)) for _ in range(2)
        ]
        up = [nn.Conv2d(256, 1024, 3, padding=1), nn.PixelShuffle(2)]
        return nn.Sequential(nn.Conv2d(3, 256, 3, padding=1), *block, *up, nn.Conv2d(256, 3, 3, padding=1))

    def dcgan() -> nn.Module:
        widths = (100, 512, 256, 128, 64, 3)
        up = [
            nn.ConvTranspose2d(a, b, 4, 2 if i else 1, 1 if i else 0, bias=False)
            for i, (a, b) in enumerate(pairwise(widths))
        ]
        return nn.Sequential(*up)

    def discriminator() -> nn.Module:
        widths = (3, 64, 128, 256, 512)
        return nn.Sequential(*(nn.Conv2d(a, b, 4, 2, 1) for a, b in pairwise(widths)))

    def volumes() -> nn.Module:
        parts: list[nn.Module] = []
        for a, b in ((1, 32), (32, 64), (64, 128), (128, 256), (256, 320)):
            parts += [nn.Conv3d(a, b, 3, 1 if a == 1 else 2, 1), nn.Conv3d(b, b, 3, 1, 1)]
        for a, b in ((320, 256), (256, 128), (128, 64), (64, 32)):
            parts += [nn.ConvTranspose3d(a, b, 2, 2), nn.Conv3d(b, b, 3, 1, 1)]
        return nn.Sequential(*parts, nn.Conv3d(32, 4, 1))

    def wavenet() -> nn.Module:
        rings = [nn.Conv1d(128, 256, 2, dilation=2**i) for i in range(9)]
        parts: list[nn.Module] = []
        for ring in rings:
            parts += [ring, nn.GLU(1), nn.Conv1d(128, 128, 1)]
        return nn.Sequential(*parts)

    def tcn() -> nn.Module:
        return nn.Sequential(*(nn.Conv1d(512, 512, 3, padding=2**i, dilation=2**i, groups=512) for i in range(6)))

    def images(make: Callable[[], nn.Module], *shape: int) -> Build:
        return lambda: (make(), {"input": torch.empty(*shape)})

    yield "EDSR", images(edsr, 1, 3, 96, 96)
    yield (
        "DnCNN",
        images(
            lambda: nn.Sequential(
                nn.Conv2d(1, 64, 3, padding=1), nn.Conv2d(64, 64, 3, padding=1), nn.Conv2d(64, 1, 3, padding=1)
            ),
            1,
            1,
            180,
            180,
        ),
    )
    yield "DCGAN", images(dcgan, 1, 100, 1, 1)
    yield "DCGAN's critic", images(discriminator, 1, 3, 64, 64)
    yield "nnU-Net", images(volumes, 1, 1, 128, 128, 128)
    yield "WaveNet", images(wavenet, 1, 128, 16000)
    yield "TCN", images(tcn, 1, 512, 2048)


def main() -> int:
    """Runs the script; networks that cannot be built are named and left out."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else CSV
    seen: dict[tuple[object, ...], tuple[object, ...]] = {}
    for several in (
        torchvision_networks,
        segmentation_networks,
        diffusion_networks,
        transformers_networks,
        small_networks,
    ):
        for name, build in several():
            try:
                with torch.device("meta"):
                    model, arguments = build()
                    lines = list(layers_of(name, model, arguments))
            except Exception as error:  # whatever the libraries raise
                print(f"{name}: {error!r}"[:200], file=sys.stderr)
                continue
            print(f"{name}: {len(lines)}")
            for line in lines:
                seen.setdefault(line[1:], line)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(seen.values())
    print(f"{path}: {len(seen)} distinct layers")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
