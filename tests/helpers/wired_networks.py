"""Random networks as specs whose layers are wired: chains, sums, concatenations, depthwise and grouped layers."""

from __future__ import annotations

import random

WIDTHS = (20, 30, 44, 50, 60, 62, 64, 96, 100, 124, 128, 250)


def wired_spec(seed: int, layers: int = 8) -> str:
    """The text of one; its channels are mostly misaligned."""
    rng = random.Random(seed)
    layout, dtype = rng.choice(("NHWC", "NHWC", "NCHW")), rng.choice(("fp16", "fp16", "fp32", "bf16"))
    lines = [
        "version: 1", f"mode: {rng.choice(('training', 'inference'))}",
        f"defaults: {{ N: {rng.choice((8, 32, 64))}, dtype: {dtype}, layout: {layout} }}", "layers:",
        f"  - {{ name: image, op: input, C: {rng.choice((3, 4, 8))}, H: 56, W: 56 }}",
    ]  # fmt: skip
    tensors: list[tuple[str, int]] = []  # of 56 x 56: name, channels
    source = "image"
    for number in range(layers):
        name, kind = f"c{number}", rng.random()
        if tensors and kind < 0.6:
            source, C = rng.choice(tensors[-3:])
        else:
            source, C = tensors[-1] if tensors else ("image", 0)
        if tensors and kind < 0.15:
            lines.append(f"  - {{ name: {name}, op: depthwise, input: {source}, C: {C}, kernel_size: 3, padding: 1 }}")
            K = C
        elif tensors and kind < 0.25 and C % 2 == 0:
            K = 2 * rng.choice(WIDTHS)
            lines.append(f"  - {{ name: {name}, input: {source}, K: {K}, groups: 2, kernel_size: 3, padding: 1 }}")
        else:
            K = rng.choice([width for _, width in tensors] + list(WIDTHS))
            size = rng.choice(("kernel_size: 1", "kernel_size: 3, padding: 1"))
            lines.append(f"  - {{ name: {name}, input: {source}, K: {K}, {size} }}")
        tensors.append((name, K))
        same = [each for each, width in tensors[:-1] if width == K]
        if same and rng.random() < 0.6:
            lines.append(f"  - {{ name: s{number}, op: add, inputs: [{name}, {rng.choice(same)}] }}")
            tensors.append((f"s{number}", K))
        elif len(tensors) > 1 and rng.random() < 0.3:
            other, width = rng.choice(tensors[:-1])
            lines.append(f"  - {{ name: j{number}, op: concat, inputs: [{name}, {other}] }}")
            tensors.append((f"j{number}", K + width))
    lines.append(f"  - {{ name: head, input: {tensors[-1][0]}, K: 21, kernel_size: 1 }}")
    return "\n".join([*lines, ""])
