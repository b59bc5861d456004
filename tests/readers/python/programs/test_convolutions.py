from __future__ import annotations

import pytest

from convlint.readers.python.programs.convolutions import convolves


class TestConvolves:
    @pytest.mark.parametrize(
        "text",
        [
            "nn.Conv2d(3, 64, 7)",
            "nn.Conv2d(3, width(2, (4)), kernel_size=3, stride=2)",
            "nn.ConvTranspose2d(\n    64,\n    32,\n    kernel_size=2,\n)",
            "nn.Conv2d(3, 64, kernel_size=p, stride=p)\nnn.Conv2d(64, 64, kernel_size=3)",
            "nn.Conv2d(64, 64, kernel_size=1, stride=1)",
            "nn.Conv2d(3, 64, kernel_size=p, stride=p // 2)",
            "nn.Conv2d(3, 64",
            "F.conv2d(x, w, stride=4)",
            "net = torchvision.models.resnet18()",
            "from torchvision import datasets, models",
            "timm.create_model('vit_small_patch16_224')",
        ],
    )
    def test_yes(self, text: str) -> None:
        assert convolves(text.encode())

    @pytest.mark.parametrize(
        "text",
        [
            "nn.Linear(3, 64)",
            "nn.Conv2d(3, 64, kernel_size=patch_size, stride=patch_size)",
            "nn.Conv2d(\n    3, dim(1),\n    kernel_size = (16, 16),\n    stride = (16, 16)\n)",
            "self.proj = nn.Conv3d(3, 64, stride=self.patch, kernel_size=self.patch, bias=False)",
        ],
    )
    def test_no(self, text: str) -> None:
        assert not convolves(text.encode())
