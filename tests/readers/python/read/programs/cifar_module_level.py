"""A script without functions, which tunes where there is a GPU."""

# ! benchmark=True deterministic=False enabled=True size=one
import torch
import torch.backends.cudnn as cudnn
import torchvision
from torchvision import transforms

device = "cuda" if torch.cuda.is_available() else "cpu"
steps = transforms.Compose([transforms.RandomCrop(32, padding=4), transforms.RandomHorizontalFlip()])
data = torchvision.datasets.CIFAR10(root="data", train=True, transform=steps)
loader = torch.utils.data.DataLoader(data, batch_size=128)
net = torch.nn.Conv2d(3, 10, 32).to(device)
if torch.cuda.is_available():
    # ? cudnn.benchmark=True surely
    cudnn.benchmark = True
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)


def train(epoch):
    for image, label in loader:
        loss = torch.nn.functional.cross_entropy(net(image.to(device)).flatten(1), label.to(device))
        loss.backward()
        optimizer.step()


for epoch in range(200):
    train(epoch)
