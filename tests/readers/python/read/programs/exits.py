"""Paths that end the program set nothing for those that train."""

# ! benchmark=False deterministic=False enabled=? size=?
import argparse
import sys

import torch
from torch import nn


def export(model):
    # ? cudnn.enabled=False if args.export
    torch.backends.cudnn.enabled = False
    torch.save(model, "model.pt")


def main(args):
    model = nn.Conv2d(3, 10, 32).cuda()
    if args.export:
        export(model)
        sys.exit(0)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for image, label in args.data:
        nn.functional.cross_entropy(model(image), label).backward()
        optimizer.step()


if __name__ == "__main__":
    main(argparse.ArgumentParser().parse_args())
