import yaml
from torch import nn


def build(path):
    with open(path) as stream:
        config = yaml.safe_load(stream)
    layers, channels = [], 3
    for width, size in config["backbone"]:
        layers += [nn.Conv2d(channels, width, size, padding=size // 2), nn.BatchNorm2d(width)]
        channels = width
    return nn.Sequential(*layers, nn.Conv2d(channels, config["classes"], 1))
