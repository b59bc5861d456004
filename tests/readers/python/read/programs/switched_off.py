"""cuDNN off for all runs; what a `try` or a loop sets is not sure."""

# ! benchmark=? deterministic=? enabled=False size=?
import argparse

import torch
from torch import nn
from torch.backends import cudnn


def main(args):
    # ? cudnn.enabled=False surely
    cudnn.enabled = False
    try:
        # ? cudnn.benchmark=True
        cudnn.benchmark = True
        args.check()
    except AttributeError:
        pass
    for _ in args.flags:
        # ? cudnn.deterministic=True
        cudnn.deterministic = True
    while True:
        # ? use_deterministic_algorithms=False surely
        torch.use_deterministic_algorithms(False)
        model = nn.Conv2d(3, 10, 32).cuda()
        model(args.image).sum().backward()
        torch.optim.SGD(model.parameters(), 0.1).step()


if __name__ == "__main__":
    main(argparse.ArgumentParser().parse_args())
