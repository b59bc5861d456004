"""A function that another one gets runs some time, somewhere."""

# ! benchmark=True deterministic=? enabled=True size=?
import argparse
import functools

import torch
from torch import nn


def on_start(exact):
    # ? cudnn.deterministic=?
    torch.backends.cudnn.deterministic = exact


def launch(function, *args):
    return function(*args)


def main(args):
    # ? cudnn.benchmark=True surely
    torch.backends.cudnn.benchmark = True
    args.callbacks.register(functools.partial(on_start, args.exact))
    model = nn.Conv2d(3, 10, 32).cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for image in args.images:
        model(image).sum().backward()
        optimizer.step()


if __name__ == "__main__":
    launch(main, argparse.ArgumentParser().parse_args())
