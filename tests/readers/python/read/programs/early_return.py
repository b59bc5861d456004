"""What stands behind a return that may have been taken is set only where it was not."""

# ! benchmark=? deterministic=False enabled=True size=?
import argparse

import torch
from torch import nn


def prepare(args):
    if args.resume:
        if args.strict:
            return
        args.start = 1
    # ? cudnn.benchmark=True
    torch.backends.cudnn.benchmark = True


def main(args):
    prepare(args)
    model = nn.Conv2d(3, 10, 32).cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for image, label in args.data:
        nn.functional.cross_entropy(model(image), label).backward()
        optimizer.step()


if __name__ == "__main__":
    main(argparse.ArgumentParser().parse_args())
