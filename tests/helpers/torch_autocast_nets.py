"""A network for tests of autocast, which without CUDA warns and turns itself off where nobody notes what is meant."""

import torch
from torch import nn


class Decorated(nn.Module):
    """Autocast is made before the forward pass, once for one of its convolutions and once for another."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third = (nn.Conv2d(8, 8, 3) for _ in range(3))
        self.context = torch.amp.autocast(device_type="cuda", dtype=torch.bfloat16)

    @torch.autocast("cuda", dtype=torch.float16)
    def run_first(self, x: torch.Tensor) -> torch.Tensor:
        return self.first(x)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.run_first(x)
        with self.context:
            x = self.second(x)
        return self.third(x.float())
