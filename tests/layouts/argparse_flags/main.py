import argparse

import torch
from torch import nn
from torch.backends import cudnn
from torchvision.datasets import CIFAR10
from torchvision.transforms import ToTensor


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--deterministic", action="store_true")
    parser.add_argument("--no-cudnn", action="store_true")
    return parser.parse_args()


def main():
    args = parse()
    cudnn.benchmark = not args.deterministic
    cudnn.enabled = not args.no_cudnn
    data = CIFAR10("data", transform=ToTensor(), download=True)
    model = nn.Sequential(
        nn.Conv2d(3, args.width, 3, padding=1, bias=False),
        nn.BatchNorm2d(args.width),
        nn.Flatten(),
        nn.Linear(args.width * 32 * 32, 10),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for images, labels in torch.utils.data.DataLoader(data, batch_size=128):
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
