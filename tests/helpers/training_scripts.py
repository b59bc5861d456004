"""Repositories with programs that train, written down as files, and read."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from convlint.model.source import TrainingProgram
from convlint.readers.python.imports import ProjectImports
from convlint.readers.python.programs.reading import read_programs
from convlint.readers.python.project import Project

LOOP = """
import torch
import torch.nn as nn
from torchvision import datasets, transforms

def train(args=None):
    data = datasets.CIFAR10("data", train=True, transform=transforms.Compose([
        transforms.RandomCrop(32, padding=4), transforms.ToTensor()]))
    loader = torch.utils.data.DataLoader(data, batch_size=128)
    model = nn.Sequential(nn.Conv2d(3, 64, 3), nn.Flatten()).cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for image, label in loader:
        loss = nn.functional.cross_entropy(model(image), label)
        loss.backward()
        optimizer.step()
"""


def programs(
    root: Path, files: Mapping[str, str], paths: Sequence[str] | None = None, entries: Sequence[str] = ()
) -> tuple[TrainingProgram, ...]:
    """The programs of a repository that has these files; `paths` are those to report on, all where not given."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    before = os.getcwd()
    os.chdir(root)
    try:
        project = Project(".", ())
        return read_programs(ProjectImports(project), project.paths if paths is None else paths, entries)
    finally:
        os.chdir(before)


def program(root: Path, files: Mapping[str, str] | str) -> TrainingProgram:
    """The one program of a repository; of one file, `train.py`, where the text of that is given."""
    (found,) = programs(root, {"train.py": files} if isinstance(files, str) else files)
    return found
