import torch
import torch.nn as nn
from digits.engine import train_one_epoch
from digits.models import small
from torch.utils.data import DataLoader
from torchvision import datasets, transforms


def main():
    device = torch.device("cuda")
    transform = transforms.Compose([transforms.RandomCrop(32, padding=4), transforms.ToTensor()])
    data = datasets.CIFAR10("data", train=True, transform=transform, download=True)
    loader = DataLoader(data, batch_size=128, shuffle=True, num_workers=4)
    model = small().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(10):
        train_one_epoch(model, loader, nn.CrossEntropyLoss(), optimizer, device)


if __name__ == "__main__":
    main()
