import torch
from helpers import set_seed
from torch import nn


def main():
    set_seed(0)
    torch.backends.cudnn.benchmark = True
    model = nn.Sequential(nn.Conv2d(4, 64, 3, padding=1), nn.ReLU()).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(100):
        loss = model(torch.rand(8, 4, 64, 64, device="cuda")).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
