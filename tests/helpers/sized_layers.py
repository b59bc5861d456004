"""Layers with given sizes and defaults for everything else."""

from typing import Any

from convlint.model.layer import ConvLayer, with_output

RESNET_STEM = {"N": 256, "C": 3, "H": 224, "W": 224, "K": 64, "R": 7, "S": 7, "U": 2, "V": 2, "PadH": 3, "PadW": 3}


def layer(**sizes: Any) -> ConvLayer:
    """Padding at the end is that of the start where it is not given."""
    for pad in ("PadD", "PadH", "PadW"):
        if pad in sizes:
            sizes.setdefault(pad + "_end", sizes[pad])
    return with_output(ConvLayer(name="layer", **sizes))
