"""Short builders of layers, and their estimates on the guide's GPU."""

from convlint.estimate import estimate_pass
from convlint.gpus.gpu import load_gpu
from convlint.model.layer import ConvLayer, Dtype, with_output
from convlint.model.runtime import Runtime

RUNTIME = Runtime()
A100 = load_gpu("a100")


def conv(**changes):
    sizes = {"N": 256, "C": 64, "H": 56, "W": 56, "K": 64, "R": 3, "S": 3, "dtype": Dtype.fp16, "layout": "NHWC"}
    sizes |= changes
    pad_h, pad_w = sizes.pop("pad", (sizes["R"] // 2, sizes["S"] // 2))
    return with_output(ConvLayer(name="l", PadH=pad_h, PadH_end=pad_h, PadW=pad_w, PadW_end=pad_w, **sizes))


def fprop(layer, gpu=A100, runtime=RUNTIME):
    return estimate_pass(layer, "fprop", gpu, runtime)


def fig4(n):
    return conv(N=n, C=4096, H=16, W=16, K=256)


# the first layer of an image network, but for its channels
FIRST = {"N": 256, "H": 224, "W": 224, "K": 64, "R": 7, "S": 7, "U": 2, "V": 2, "first": True}
