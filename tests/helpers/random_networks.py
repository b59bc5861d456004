"""Small networks of every shape: chains, sums, concatenations, depthwise layers, in random widths."""

from random import Random

from wirings import Wiring

from convlint.model.network import Network

WIDTHS = (20, 28, 44, 60, 62, 90, 96, 124, 130, 250)


def chain(seed: int, length: int = 5) -> Network:
    """Convolutions one after the other."""
    random = Random(seed)
    net = _begun(random)
    x = net.image
    for _ in range(length):
        x = net.unit(x, random.choice(WIDTHS), random.choice((1, 3)))
    return net.network(net.conv(x, 10, head=True))


def tangle(seed: int, free: int = 5) -> Network:
    """Sums, concatenations and depthwise layers among what was written before; `free` convolutions begin an axis."""
    random = Random(seed)
    net = _begun(random)
    known = [net.unit(net.image, random.choice(WIDTHS), 3)]
    for _ in range(free - 1):
        kind = random.choice(("conv", "sum", "concat", "depthwise"))
        x = random.choice(known[-3:])
        if kind == "sum":
            x = net.add(x, net.norm(net.conv(x, net.C(x), 3)))
        elif kind == "concat":
            x = net.concat(x, random.choice(known))
        elif kind == "depthwise":
            x = net.unit(x, net.C(x), 3, groups=net.C(x))
        known.append(net.unit(x, random.choice(WIDTHS), random.choice((1, 3))))
    last = net.concat(*known[-2:]) if len(known) > 1 else known[-1]
    return net.network(net.conv(last, 10, head=True))


def _begun(random: Random) -> Wiring:
    dtype, layout = random.choice(("fp16", "fp32")), random.choice(("NHWC", "NCHW"))
    return Wiring(N=random.choice((8, 32)), size=random.choice((14, 28)), dtype=dtype, layout=layout)
