"""Processes that a launcher spawns, or one without it: every run sets the same."""

# ! benchmark=True deterministic=? enabled=False size=? tf32=False
import argparse

import torch
import torch.multiprocessing as mp
from torch.backends import cudnn


def work(gpu, args):
    # ? cudnn.allow_tf32=False surely
    cudnn.allow_tf32 = False
    if args.small:
        prepare(8)
    else:
        prepare(16)
    model = torch.nn.Conv2d(3, 8, 3).cuda(gpu)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for image in torch.rand(100, 1, 3, 32, 32):
        model(image.cuda(gpu)).mean().backward()
        optimizer.step()


def prepare(threads):
    torch.set_num_threads(threads)
    # ? cudnn.benchmark=True surely
    cudnn.benchmark = True
    # ? cudnn.enabled=False surely
    cudnn.enabled = False


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int)
    parser.add_argument("--small", action="store_true")
    args = parser.parse_args()
    if args.seed is not None:
        # ? cudnn.deterministic=True if args.seed is not None
        cudnn.deterministic = True
    gpus = torch.cuda.device_count()
    if gpus > 1:
        mp.spawn(work, nprocs=gpus, args=(args,))
    else:
        work(0, args)


if __name__ == "__main__":
    main()
