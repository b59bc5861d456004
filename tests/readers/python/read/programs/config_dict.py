"""Settings from a table at the top of the script."""

# ! benchmark=True deterministic=False enabled=True size=one
import torch
from torch import nn
from torchvision import datasets, transforms

CONFIG = {"cudnn": {"benchmark": True, "deterministic": False}, "size": (64, 64), "epochs": 3}


def setup(flags):
    # ? cudnn.benchmark=True surely
    torch.backends.cudnn.benchmark = flags["benchmark"]
    # ? cudnn.deterministic=False surely
    torch.backends.cudnn.deterministic = flags.get("deterministic", True)


def train():
    model = nn.Conv2d(3, 10, 32).to("cuda")
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    data = datasets.ImageFolder("data", transforms.Compose([transforms.Resize((64, 64)), transforms.ToTensor()]))
    for _ in range(CONFIG["epochs"]):
        for image, label in torch.utils.data.DataLoader(data):
            nn.functional.cross_entropy(model(image), label).backward()
            optimizer.step()


if __name__ == "__main__":
    setup(CONFIG["cudnn"])
    train()
