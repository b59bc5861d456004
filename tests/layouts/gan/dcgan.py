import torch
from torch import nn, optim
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

image_size, nc, nz, ngf, ndf = 64, 3, 100, 64, 60

dataset = datasets.ImageFolder(
    "data",
    transforms.Compose([transforms.Resize(image_size), transforms.CenterCrop(image_size), transforms.ToTensor()]),
)
loader = DataLoader(dataset, batch_size=128, shuffle=True, num_workers=2)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(nz, ngf * 2, 4, 1, 0, bias=False),
            nn.BatchNorm2d(ngf * 2),
            nn.ReLU(True),
            nn.ConvTranspose2d(ngf * 2, nc, 4, 2, 1, bias=False),
            nn.Tanh(),
        )

    def forward(self, x):
        return self.main(x)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(nc, ndf, 4, 2, 1, bias=False),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf, ndf * 2, 4, 2, 1),
            nn.BatchNorm2d(ndf * 2),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf * 2, 1, 4, 1, 0, bias=False),
        )

    def forward(self, x):
        return self.main(x)


generator, discriminator = Generator().cuda(), Discriminator().cuda()
optimizer_d = optim.Adam(discriminator.parameters(), lr=2e-4)
optimizer_g = optim.Adam(generator.parameters(), lr=2e-4)
for images, _ in loader:
    discriminator.zero_grad()
    loss_d = -discriminator(images.cuda()).mean()
    loss_d.backward()
    optimizer_d.step()
    generator.zero_grad()
    loss_g = -discriminator(generator(torch.randn(len(images), nz, 1, 1).cuda())).mean()
    loss_g.backward()
    optimizer_g.step()
