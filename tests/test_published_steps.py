"""Convolutions take most of a published step of whole networks, and never more than it."""

import pytest
from checkout import ROOT
from msgspec.structs import replace

from convlint.estimate import time_us
from convlint.gpus.gpu import load_gpu
from convlint.model.layer import Dtype
from convlint.model.runtime import Runtime
from convlint.readers.spec.reader import read_spec

# Training, fp32 tensors in NCHW. NVIDIA DeepLearningExamples, PyTorch, README of EfficientNet: images/s of one GPU.
STEPS = [
    ("efficientnet_b0", "a100-80gb-sxm", True, 256, 1078),
    ("efficientnet_b0", "v100-sxm2-16gb", False, 64, 655),
]


@pytest.mark.parametrize(("sample", "gpu", "tf32", "N", "images_per_s"), STEPS)
def test_convolutions_leave_room_for_the_rest_of_the_step(
    sample: str, gpu: str, tf32: bool, N: int, images_per_s: float
) -> None:
    path = ROOT / "sample_configs" / f"{sample}.yaml"
    network, errors = read_spec(path.read_text(encoding="utf-8"), str(path))
    assert not errors
    runtime = Runtime(framework="pytorch", tf32=tf32, cudnn_benchmark=True)
    layers = [replace(layer, N=N, layout="NCHW", dtype=Dtype.fp32) for layer in network.layers]
    convolutions_us = sum(time_us(layer, load_gpu(gpu), runtime, "training") or 0.0 for layer in layers)
    assert 0.4 < convolutions_us / (N / images_per_s * 1e6) < 0.85
