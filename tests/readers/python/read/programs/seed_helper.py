"""A helper that others give a flag, in an object that holds it."""

# ! benchmark=True deterministic=True enabled=? size=one conflict
import torch
from torch import nn
from torchvision import datasets


class Config:
    seed = 3
    exact = True


def set_seed(seed, exact=False):
    torch.manual_seed(seed)
    if exact:
        # ? cudnn.deterministic=True surely
        torch.backends.cudnn.deterministic = True
    else:
        # ? cudnn.enabled=?
        torch.backends.cudnn.enabled = False


class Training:
    def __init__(self, config):
        self.config = config
        set_seed(config.seed, exact=config.exact)

    def run(self):
        # ? cudnn.benchmark=True surely
        torch.backends.cudnn.benchmark = True
        model = nn.Conv2d(3, 10, 32).cuda()
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for image, label in torch.utils.data.DataLoader(datasets.CIFAR10("data", train=True)):
            nn.functional.cross_entropy(model(image), label).backward()
            optimizer.step()


if __name__ == "__main__":
    Training(Config()).run()
