"""Other words for the same statements."""

# ! benchmark=? deterministic=True enabled=True size=? tf32=True
import argparse

import torch
from torch import nn

flags = {"enabled": True, "allow_tf32": True}
backend = torch.backends.cudnn


def configure():
    for name, value in flags.items():
        # ? cudnn.enabled=True surely; cudnn.allow_tf32=True surely
        setattr(backend, name, value)
    # ? cudnn.deterministic=True surely; cudnn.benchmark=? surely
    backend.deterministic, backend.benchmark = True, input() == "yes"


def main(args):
    configure()
    model = nn.Conv2d(3, 10, 32).cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for image in args.images:
        model(image).sum().backward()
        optimizer.step()


if __name__ == "__main__":
    main(argparse.ArgumentParser().parse_args())
