"""A collate function that makes lists: images of one batch differ in size."""

# ! benchmark=True deterministic=False enabled=True size=varying
import argparse

import torch
from torch import nn
from torchvision import datasets


def collate(batch):
    return tuple(zip(*batch, strict=True))


def main(args):
    # ? cudnn.benchmark=True surely
    torch.backends.cudnn.benchmark = True
    data = datasets.CocoDetection(args.images, args.labels)
    loader = torch.utils.data.DataLoader(data, batch_size=2, collate_fn=collate)
    model = nn.Conv2d(3, 10, 3).cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for images, _ in loader:
        sum(model(image.cuda()).sum() for image in images).backward()
        optimizer.step()


if __name__ == "__main__":
    main(argparse.ArgumentParser().parse_args())
