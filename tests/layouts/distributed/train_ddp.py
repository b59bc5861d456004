import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler
from torchvision import datasets, models, transforms


def setup():
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    if torch.cuda.is_available():
        torch.backends.cudnn.benchmark = True


def run():
    setup()
    rank = int(os.environ["LOCAL_RANK"])
    transform = transforms.Compose([transforms.RandomResizedCrop(224), transforms.ToTensor()])
    data = datasets.ImageFolder(os.environ["DATA"], transform)
    loader = DataLoader(data, batch_size=64, sampler=DistributedSampler(data), num_workers=8, pin_memory=True)
    model = DistributedDataParallel(models.resnet50().cuda(rank), device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    criterion = nn.CrossEntropyLoss()
    for images, labels in loader:
        loss = criterion(model(images.cuda(rank)), labels.cuda(rank))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    run()
