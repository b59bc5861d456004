"""Layouts that convlint gives to convolutions, against a real run on a CPU, network by network.

    python benchmarks/layouts.py [--markdown] [PART_OF_A_NAME ...]

Every network is built without weights to download, gets inputs in channels_last, and runs twice: for real on the CPU,
and as convlint reads it, on the meta device. Each convolution must have the same sizes and the same layout, by the
strides of its input and of its weights. Networks whose packages are missing, or that do not run, are named.

Where CUDA is documented to differ from the CPU, the real run gets CUDA's layout:
- group normalisation writes NCHW (ATen/native/group_norm.cpp), and so do shuffles of pixels and channels, which have
  kernels for channels_last on CPUs alone (ATen/native/native_functions.yaml);
- cuDNN's batch normalisation keeps channels_last, also of maps of 1x1 (ATen/native/cudnn/BatchNorm.cpp);
- fused attention writes [batch, sequence, heads, width], also with a mask
  (ATen/native/transformers/cuda/attention.cu);
- cuDNN convolves volumes in channels_last_3d, where kernels of the CPU fall back to NCHW
  (ATen/native/ConvUtils.h, cudnn_conv_suggest_memory_format).
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from convlint.readers.torch.places import suggests_channels_last
from convlint.readers.torch.trace import Trace

_CONVOLVE = ("aten::conv", "aten::mkldnn_convolution", "aten::_convolution", "aten::thnn_conv", "aten::slow_conv")
_TORCHVISION = torch.library.Library("torchvision", "DEF")


class Subject(NamedTuple):
    """A network: how it is built, the shapes of its inputs, and what else it is called with."""

    build: Callable[[], torch.nn.Module]
    shapes: Sequence[tuple[int, ...]]
    more: Mapping[str, Any] = {}


def made(module: str, name: str, *arguments: Any, **keywords: Any) -> Callable[[], torch.nn.Module]:
    """Calls `name` of `module`, which is imported only then."""

    def build() -> torch.nn.Module:
        found = getattr(importlib.import_module(module), name)(*arguments, **keywords)
        assert isinstance(found, torch.nn.Module)
        return found

    return build


def configured(config: str, model: str) -> Callable[[], torch.nn.Module]:
    """A model of transformers by its default config."""

    def build() -> torch.nn.Module:
        transformers = importlib.import_module("transformers")
        found = getattr(transformers, model)(getattr(transformers, config)())
        assert isinstance(found, torch.nn.Module)
        return found

    return build


_TIMM = {
    "resnet50": 64, "resnext50_32x4d": 64, "seresnet50": 64, "resnetv2_50": 64, "densenet121": 64,
    "efficientnet_b0": 64, "tf_efficientnetv2_s": 64, "mobilenetv2_100": 64, "mobilenetv3_large_100": 64,
    "convnext_tiny": 64, "convnextv2_atto": 64, "regnety_032": 64, "vgg16_bn": 64, "inception_v3": 128,
    "xception41": 96, "dpn68": 64, "hrnet_w18_small": 64, "dla34": 64, "res2net50_26w_4s": 64, "cspdarknet53": 64,
    "darknet53": 64, "ghostnet_100": 64, "repvgg_a0": 64, "nfnet_l0": 64, "vovnet39a": 64, "skresnet18": 64,
    "ecaresnet26t": 64, "shvit_s1": 64, "maxvit_tiny_tf_224": 224, "coatnet_0_224": 224, "edgenext_small": 64,
    "fastvit_t8": 64, "mobileone_s0": 64, "hardcorenas_a": 64, "rexnet_100": 64, "efficientvit_b0": 64,
    "poolformer_s12": 64, "focalnet_tiny_srf": 64, "levit_conv_128s": 224, "selecsls42b": 64,
}  # fmt: skip
_VISION = "torchvision.models"
_WITHOUT = {"weights": None, "weights_backbone": None}
_SMP = ("Unet", "UnetPlusPlus", "FPN", "PSPNet", "DeepLabV3Plus", "Linknet", "MAnet", "PAN", "UPerNet")
_IMAGES, _SMALL, _LARGE = [(2, 3, 64, 64)], [(2, 3, 32, 32)], [(2, 3, 128, 128)]
_TIME = {"timestep": 1}
NETWORKS: Mapping[str, Subject] = {
    **{
        f"timm {name}": Subject(made("timm", "create_model", name, pretrained=False), [(2, 3, size, size)])
        for name, size in _TIMM.items()
    },
    "torchvision resnet18": Subject(made(_VISION, "resnet18", weights=None), _IMAGES),
    "torchvision shufflenet_v2_x1_0": Subject(made(_VISION, "shufflenet_v2_x1_0", weights=None), _IMAGES),
    "torchvision squeezenet1_1": Subject(made(_VISION, "squeezenet1_1", weights=None), _IMAGES),
    "torchvision googlenet": Subject(made(_VISION, "googlenet", weights=None, init_weights=False), _IMAGES),
    "torchvision mnasnet1_0": Subject(made(_VISION, "mnasnet1_0", weights=None), _IMAGES),
    "torchvision deeplabv3_resnet50": Subject(
        made(f"{_VISION}.segmentation", "deeplabv3_resnet50", **_WITHOUT), _IMAGES
    ),
    "torchvision fcn_resnet50": Subject(made(f"{_VISION}.segmentation", "fcn_resnet50", **_WITHOUT), _IMAGES),
    "torchvision r3d_18": Subject(made(f"{_VISION}.video", "r3d_18", weights=None), [(2, 3, 8, 32, 32)]),
    "torchvision raft_small": Subject(
        made(f"{_VISION}.optical_flow", "raft_small", weights=None), _LARGE * 2, {"num_flow_updates": 1}
    ),
    **{
        f"segmentation_models {name}": Subject(
            made("segmentation_models_pytorch", name, encoder_name="resnet34", encoder_weights=None), _LARGE
        )
        for name in _SMP
    },
    **{
        f"ultralytics {name}": Subject(
            made("ultralytics.nn.tasks", "DetectionModel", f"{name}.yaml", verbose=False), _IMAGES
        )
        for name in ("yolov8n", "yolo11n", "yolov5n")
    },
    "diffusers AutoencoderKL": Subject(
        made(
            "diffusers", "AutoencoderKL", block_out_channels=(32, 64), down_block_types=("DownEncoderBlock2D",) * 2,
            up_block_types=("UpDecoderBlock2D",) * 2,
        ),
        _SMALL,
    ),
    "diffusers UNet2DModel": Subject(
        made(
            "diffusers", "UNet2DModel", sample_size=32, block_out_channels=(32, 64), norm_num_groups=8,
            down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        ),
        _SMALL,
        _TIME,
    ),
    **{
        f"transformers {name}": Subject(configured(f"{name}Config", f"{name}Model"), _IMAGES)
        for name in ("ResNet", "ConvNext", "Segformer", "MobileViT", "RegNet")
    },
}  # fmt: skip


class Real(TorchDispatchMode):
    """A run on the CPU: of each convolution its input's sizes, and whether it runs and answers in channels_last."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[tuple[int, ...], bool, bool]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Runs the operator with what CUDA does differently."""
        name = func.name()
        if name.endswith(("group_norm", "pixel_shuffle", "pixel_unshuffle", "channel_shuffle")):
            args = (args[0].contiguous(), *args[1:])
        result = func(*args, **(kwargs or {}))
        if name == "aten::scaled_dot_product_attention":
            return result.transpose(1, 2).contiguous().transpose(1, 2)
        if name == "aten::batch_norm" and is_nhwc(args[0]):
            return in_channels_last(result)
        if name.startswith(_CONVOLVE):
            runs_nhwc = is_nhwc(args[0]) or is_nhwc(args[1])
            if runs_nhwc and result.dim() == 5:
                result = in_channels_last(result)
            self.seen.append((tuple(args[0].shape), runs_nhwc, is_nhwc(result)))
        return result


def is_nhwc(tensor: torch.Tensor) -> bool:
    """Whether its strides suggest channels_last."""
    return suggests_channels_last(tensor.shape, tensor.stride())


def in_channels_last(tensor: torch.Tensor) -> torch.Tensor:
    """The same values in channels_last, where its sizes leave that open too."""
    order = torch.channels_last if tensor.dim() == 4 else torch.channels_last_3d
    return torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device, memory_format=order).copy_(tensor)


def compared(subject: Subject) -> tuple[int, list[str]]:
    """(how many convolutions really run, where what convlint traces differs)."""
    module = subject.build().eval()
    with torch.inference_mode(), Real() as real:
        module(*[in_channels_last(torch.zeros(shape)) for shape in subject.shapes], **subject.more)
    module = module.to("meta")
    trace = Trace(module)
    inputs = [in_channels_last(torch.zeros(shape, device="meta")) for shape in subject.shapes]
    for tensor in inputs:
        trace.watch(tensor)
    with torch.inference_mode(), torch.device("meta"), trace:
        module(*inputs, **subject.more)
    differing = []
    if len(trace.calls) != len(real.seen):
        differing.append(f"{len(real.seen)} convolutions really run, {len(trace.calls)} are traced")
    words = {True: "NHWC", False: "NCHW"}
    for call, (sizes, nhwc, answers_nhwc) in zip(trace.calls, real.seen, strict=False):
        if answers_nhwc != nhwc:
            differing.append(f"{call.owner}: runs in {words[nhwc]}, answers in {words[answers_nhwc]}")
        if (call.arrives, call.nhwc) != (sizes, nhwc):
            differing.append(f"{call.owner}: {sizes} {words[nhwc]}, traced {call.arrives} {words[call.nhwc]}")
    return len(real.seen), differing


def declare_operators() -> None:
    """Lets torchvision be imported beside a build of torch that its compiled operators do not fit; none convolves."""
    while True:
        try:
            importlib.import_module("torchvision")
        except RuntimeError as error:
            missing = re.fullmatch(r"operator torchvision::(\w+) does not exist", str(error))
            if missing is None:
                raise
            _TORCHVISION.define(f"{missing[1]}(Tensor x) -> Tensor")
            for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
                del sys.modules[name]
        except ImportError:
            return
        else:
            return


def main() -> int:
    """Prints a line for each network; 1 where one differs."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("parts", nargs="*", metavar="PART_OF_A_NAME")
    parser.add_argument("--markdown", action="store_true", help="a table")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    declare_operators()
    if options.markdown:
        print("| network | convolutions | layouts |\n|---|---|---|")
    different = 0
    for name, subject in NETWORKS.items():
        if options.parts and not any(part in name for part in options.parts):
            continue
        try:
            count, differing = compared(subject)
        except Exception as error:
            count, differing = 0, [f"not run: {type(error).__name__}: {str(error)[:100]}"]
        different += bool(count and differing)
        cells = (name, str(count or "-"), "the same" if not differing else "; ".join(differing[:3]))
        print(f"| {' | '.join(cells)} |" if options.markdown else "  ".join(cells), flush=True)
    return different > 0


if __name__ == "__main__":
    sys.exit(main())
