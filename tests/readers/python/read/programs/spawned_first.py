"""Processes that prepare data before the training, and settings of theirs that the training does not have."""

# ! benchmark=? deterministic=False enabled=? size=?
import torch
import torch.multiprocessing as mp
from torch.backends import cudnn


def prepare(rank):
    # ? cudnn.enabled=False
    cudnn.enabled = False


def train(debug):
    if debug:
        tune()


def others(debug):
    if not debug:
        tune()


def tune():
    # ? cudnn.benchmark=True if debug; cudnn.benchmark=True if not (debug)
    cudnn.benchmark = True


def main(first, second):
    mp.spawn(prepare, nprocs=8)
    train(first)
    others(second)
    model = torch.nn.Conv2d(3, 8, 3).cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for image in torch.rand(100, 1, 3, 32, 32):
        model(image.cuda()).mean().backward()
        optimizer.step()


if __name__ == "__main__":
    main(*map(int, input().split()))
