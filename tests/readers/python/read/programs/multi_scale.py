"""Another size for every few batches."""

# ! benchmark=True deterministic=False enabled=True size=?
import random

import torch
from torch import nn
from torchvision import datasets

# ? cudnn.benchmark=True surely
torch.backends.cudnn.benchmark = True


def train(data):
    model = nn.Conv2d(3, 10, 32).cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for image, label in torch.utils.data.DataLoader(data):
        side = random.choice([24, 32, 48])
        image = nn.functional.interpolate(image.cuda(), size=(side, side))
        nn.functional.cross_entropy(model(image), label).backward()
        optimizer.step()


if __name__ == "__main__":
    train(datasets.CIFAR10("data", train=True))
