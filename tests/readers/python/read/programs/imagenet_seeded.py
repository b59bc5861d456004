"""One process for each GPU, and a seed that asks for determinism."""

# ! benchmark=? deterministic=? enabled=True size=one
import argparse
import random

import torch
import torch.backends.cudnn as cudnn
import torch.multiprocessing as mp
from torchvision import datasets, models, transforms

parser = argparse.ArgumentParser()
parser.add_argument("data")
parser.add_argument("--seed", type=int)
parser.add_argument("--fast", action="store_true")
parser.add_argument("--tune", action="store_true")


def main():
    args = parser.parse_args()
    if args.seed is not None:
        random.seed(args.seed)
        # ? cudnn.deterministic=True if args.seed is not None
        cudnn.deterministic = True
        # ? cudnn.benchmark=False if args.seed is not None
        cudnn.benchmark = False
    if args.fast:
        mp.spawn(work, nprocs=torch.cuda.device_count(), args=(args,))
    else:
        work(0, args)


def work(gpu, args):
    model = models.resnet18().cuda(gpu)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    if args.tune:
        # ? cudnn.benchmark=True if args.tune
        cudnn.benchmark = True
    size = transforms.Compose([transforms.RandomResizedCrop(224), transforms.ToTensor()])
    data = datasets.ImageFolder(args.data, size)
    for image, label in torch.utils.data.DataLoader(data, batch_size=256, shuffle=True):
        loss = torch.nn.functional.cross_entropy(model(image.cuda(gpu)), label.cuda(gpu))
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
