"""Python as people write it, with and without what a rule finds: pairs that differ in a few lines of a script."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from convlint.model.report import Finding
from convlint.run.api import lint

_SCRIPT = """\
import torch
from torch import nn
from torchvision import datasets, transforms


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        {layers}
        self.bn = nn.BatchNorm2d(64)
        self.body = nn.Conv2d(64, 128, 3, padding=1)
        self.head = nn.Linear(128, 100)

    def forward(self, x):
        x = self.bn(self.stem(x)).relu()
        return self.head(self.body(x).relu().mean((2, 3)))


def main():
    {settings}
    {data}
    loader = torch.utils.data.DataLoader(data, batch_size=128, shuffle=True)
    model = Net().cuda()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for images, labels in loader:
        images, labels = images.cuda(), labels.cuda()
        {step}
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
"""
_IN_AUTOCAST = (
    'with torch.autocast("cuda", torch.bfloat16):\n    output = model(images)\n'
    "    loss = criterion(output, labels)\nloss.backward()"
)
_CLEAN: Mapping[str, str] = {
    "layers": "self.stem = nn.Conv2d(3, 64, 3, padding=1, bias=False)",
    "settings": "torch.backends.cudnn.benchmark = True",
    "data": 'data = datasets.CIFAR100("data", transform=transforms.ToTensor())',
    "step": "output = model(images)\nloss = criterion(output, labels)\nloss.backward()",
}
_INDENTS = {"layers": 8, "settings": 4, "data": 4, "step": 8}


class Pair(Struct, frozen=True):
    """The part of the script that differs, as it is before and after."""

    part: str
    before: str
    after: str


PAIRS: Mapping[str, Pair] = {
    "CL102": Pair("layers", "self.stem = nn.Conv2d(3, 62, 3, padding=1, bias=False)", _CLEAN["layers"]),
    "CL106": Pair(
        "settings",
        "torch.backends.cudnn.benchmark = True\ntorch.backends.cudnn.allow_tf32 = False",
        "torch.backends.cudnn.benchmark = True",
    ),
    "CL501": Pair(
        "settings",
        'torch.set_float32_matmul_precision("high")',
        'torch.set_float32_matmul_precision("high")\ntorch.backends.cudnn.benchmark = True',
    ),
    "CL502": Pair(
        "data",
        'data = datasets.ImageFolder("data", transform=transforms.v2.ScaleJitter((224, 224)))',
        'data = datasets.ImageFolder("data", transform=transforms.v2.RandomResizedCrop(224))',
    ),
    "CL503": Pair(
        "settings",
        "torch.backends.cudnn.deterministic = True\ntorch.backends.cudnn.benchmark = True",
        "torch.backends.cudnn.deterministic = True\ntorch.backends.cudnn.benchmark = False",
    ),
    "CL506": Pair("layers", "self.stem = nn.Conv2d(3, 64, 3, padding=1)", _CLEAN["layers"]),
    "CL507": Pair(
        "settings",
        "torch.backends.cudnn.enabled = False\ntorch.backends.cudnn.benchmark = True",
        "torch.backends.cudnn.benchmark = True",
    ),
    "CL508": Pair(
        "step",
        'with torch.autocast("cuda", torch.bfloat16):\n    output = model(images)\n'
        "    loss = criterion(output, labels)\n    loss.backward()",
        _IN_AUTOCAST,
    ),
    "CL509": Pair(
        "step",
        'output = model(images)\nwith torch.autocast("cuda", torch.bfloat16):\n'
        "    loss = criterion(output, labels)\nloss.backward()",
        _IN_AUTOCAST,
    ),
}


def script(part: str, text: str) -> str:
    """The whole script with another text for one part."""
    parts = {**_CLEAN, part: text}
    return _SCRIPT.format(**{key: _set_in(value, _INDENTS[key]) for key, value in parts.items()})


def _set_in(text: str, indent: int) -> str:
    return text.replace("\n", "\n" + " " * indent)


def findings(source: str) -> tuple[Finding, ...]:
    """What a check of the script finds, each with its message; the script is called train.py in it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.py"
        path.write_text(source, encoding="utf-8")
        found = lint(path, isolated=True).findings
        return tuple(replace(each, message=each.message.replace(f"{path}", path.name)) for each in found)
