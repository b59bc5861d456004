"""A generator and a discriminator, and nothing set: what could be tuned is not."""

# ! benchmark=False deterministic=False enabled=True size=one
import argparse

import torch
from torch import nn
from torchvision import datasets, transforms

parser = argparse.ArgumentParser()
parser.add_argument("--img_size", type=int, default=32)
opt = parser.parse_args()
cuda = torch.cuda.is_available()
generator, discriminator = nn.ConvTranspose2d(100, 3, 32), nn.Conv2d(3, 1, 32)
if cuda:
    generator.cuda()
    discriminator.cuda()
dataloader = torch.utils.data.DataLoader(
    datasets.MNIST("data", train=True, transform=transforms.Compose([transforms.Resize(opt.img_size)])), shuffle=True
)
optimizer = torch.optim.Adam(generator.parameters())
for real, _ in dataloader:
    g_loss = discriminator(generator(torch.randn(real.shape[0], 100, 1, 1).cuda())).mean()
    g_loss.backward()
    optimizer.step()
