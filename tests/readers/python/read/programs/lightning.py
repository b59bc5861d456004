"""A library owns the loop and what it sets."""

# ! benchmark=True deterministic=? enabled=? size=?
import pytorch_lightning as pl
import torch
from torch import nn


class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 10, 32)

    def training_step(self, batch, index):
        image, label = batch
        return nn.functional.cross_entropy(self.conv(image).flatten(1), label)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


if __name__ == "__main__":
    # ? cudnn.benchmark=True surely
    pl.Trainer(accelerator="gpu", benchmark=True).fit(Net())
