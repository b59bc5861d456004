import lightning as L
from module import Classifier
from torch.utils.data import DataLoader
from torchvision import transforms
from torchvision.datasets import CIFAR10

if __name__ == "__main__":
    data = CIFAR10("data", transform=transforms.ToTensor(), download=True)
    trainer = L.Trainer(max_epochs=10, devices=1, accelerator="gpu")
    trainer.fit(Classifier(), DataLoader(data, batch_size=128, num_workers=4))
