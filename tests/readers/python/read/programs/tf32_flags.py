"""The two ways to speak of TF32, of which this is the older one."""

# ! benchmark=False deterministic=False enabled=True size=? tf32=False
import argparse
import os

import torch
from torch import nn


def exact(value):
    # ? cuda.matmul.allow_tf32=False surely
    torch.backends.cuda.matmul.allow_tf32 = value
    # ? cudnn.allow_tf32=False surely
    torch.backends.cudnn.allow_tf32 = value


def main(args):
    os.environ["CUDA_VISIBLE_DEVICES"] = "0"
    exact(bool(0))
    model = nn.Conv2d(3, 10, 32).cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for image in args.images:
        model(image).sum().backward()
        optimizer.step()


if __name__ == "__main__":
    main(argparse.ArgumentParser().parse_args())
