"""Writes the networks of `data/network_steps.csv` as tables: `python benchmarks/export_steps.py`.

Needs PyTorch and timm as `export_networks.py` does. Each network is followed on the meta device with an input in NCHW
and one in NHWC, for the layout of each convolution; and with one image and two, for its other operations: `n` of them,
the elements they read and write and their multiply-adds for one image, and what a step reads and writes whatever its
batch (the standardising of weights). Networks that this timm does not have are named and left out.
"""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch
from export_networks import TIMM, Torchvision
from network_tables import DATA, OPERATIONS, Placed, how_of, write_networks
from torch.utils._python_dispatch import TorchDispatchMode

from convlint.readers import ReadOptions
from convlint.readers.torch.module import READER
from convlint.readers.torch.trace import tensors_of

# What a kernel does, by the name of its operator without a trailing underscore.
_KINDS: Mapping[str, str] = {
    operator: kind
    for kind, operators in {
        "norm": "_native_batch_norm_legit _native_batch_norm_legit_no_training _batch_norm_impl_index "
        "native_batch_norm native_layer_norm native_group_norm cudnn_batch_norm _batch_norm_no_update",
        "activation": "relu silu gelu hardswish hardsigmoid hardtanh sigmoid leaky_relu elu mish tanh softplus clamp "
        "clamp_min exp log1p",
        "add": "add sub rsub",
        "mul": "mul addcmul div reciprocal rsqrt sqrt pow",
        "concat": "cat stack",
        "copy": "clone copy _to_copy constant_pad_nd index roll reflection_pad2d im2col",
        "pool": "max_pool2d_with_indices avg_pool2d adaptive_avg_pool2d _adaptive_avg_pool2d",
        "resize": "upsample_nearest2d upsample_bilinear2d upsample_bicubic2d _upsample_bilinear2d_aa",
        "reduce": "mean sum var var_mean std max amax linalg_vector_norm",
        "softmax": "_softmax _safe_softmax",
        "matmul": "mm addmm bmm baddbmm",
        "attention": "scaled_dot_product_attention _scaled_dot_product_flash_attention "
        "_scaled_dot_product_efficient_attention _scaled_dot_product_fused_attention_overrideable",
    }.items()
    for operator in operators.split()
}
COLUMNS = ("n", "read", "written", "macs", "fixed_read", "fixed_written")


class Operations(TorchDispatchMode):  # type: ignore[misc]
    """Counts the kernels other than convolutions by kind: how many, elements read and written, multiply-adds."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Runs an operator and counts it."""
        result = func(*args, **(kwargs or {}))
        name = func._schema.name.removeprefix("aten::").removesuffix("_")
        if (
            func.is_view
            or "convolution" in name
            or name in ("detach", "lift_fresh", "empty", "_unsafe_view", "as_strided")
        ):
            return result
        read, written = list(tensors_of((*args, *(kwargs or {}).values()))), list(tensors_of((result,)))
        counted = self.found[_KINDS.get(name, f"other:{name}")]
        for place, number in enumerate((1, sum(map(torch.numel, read)), sum(map(torch.numel, written)))):
            counted[place] += number
        counted[3] += _macs(name, read, written)
        return result


def _macs(name: str, read: list[Any], written: list[Any]) -> int:
    if _KINDS.get(name) == "matmul":
        left = read[1] if name in ("addmm", "baddbmm") else read[0]
        return int(written[0].numel() * left.shape[-1])
    if _KINDS.get(name) == "attention":
        query, key = read[:2]
        return int(2 * query.numel() * key.shape[-2])
    return 0


def placed_layers(model: str, image: int) -> Iterator[Placed]:
    """The convolutions of one timm model in both layouts. Raises RuntimeError where it cannot be followed."""
    networks = []
    for channels_last, suffix in ((False, ""), (True, ":channels_last")):
        options = ReadOptions(inputs={"": f"1x3x{image}x{image}:fp16{suffix}"}, channels_last=channels_last)
        network, errors = READER.read(f"timm.models:{model}", options)
        if network is None or errors:
            raise RuntimeError("; ".join(error.message for error in errors))
        networks.append(network.layers)
    for plain, last in zip(*networks, strict=True):
        if plain.dims > 2 or plain.op != "conv" or plain.calls != last.calls:
            raise RuntimeError(f"{plain.name} does not fit into the tables")
        yield Placed(layer=plain, in_nchw=how_of(plain), in_nhwc=how_of(last))


def operations(model: str, image: int) -> dict[str, tuple[int, ...]]:
    """The other operations of one timm model by kind, in the order of `COLUMNS`."""
    import timm  # type: ignore[import-not-found, unused-ignore]

    with torch.device("meta"):
        network = timm.create_model(model).eval()
    counts = []
    for batch in (1, 2):
        images = torch.empty(batch, 3, image, image, device="meta")
        with torch.no_grad(), Operations() as counted:
            network(images)
        counts.append(counted.found)
    one, two = counts
    return {
        kind: (numbers[0], *(b - a for a, b in zip(numbers[1:], two[kind][1:], strict=True)),
               *(2 * a - b for a, b in zip(numbers[1:3], two[kind][1:3], strict=True)))
        for kind, numbers in sorted(one.items())
    }  # fmt: skip


def main() -> int:
    """Runs the script; 0, or 2 without the timm that it is made for."""
    if find_spec("torchvision") is None:
        sys.meta_path.append(Torchvision())
    try:
        import timm  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        print(f"export_steps.py: {error}", file=sys.stderr)
        return 2
    if timm.__version__ != TIMM:
        print(f"export_steps.py: needs timm {TIMM}, not {timm.__version__}", file=sys.stderr)
        return 2
    with (DATA / "network_steps.csv").open(newline="", encoding="utf-8") as file:
        wanted = sorted({(record["model"], int(record["img_size"])) for record in csv.DictReader(file)})
    layers: dict[tuple[str, int], list[Placed]] = {}
    others: list[tuple[object, ...]] = []
    for model, image in wanted:
        try:
            layers[model, image] = list(placed_layers(model, image))
            others += [(model, image, kind, *numbers) for kind, numbers in operations(model, image).items()]
        except Exception as error:
            layers.pop((model, image), None)
            print(f"{model} at {image}: {error!r}"[:300], file=sys.stderr)
    distinct = write_networks(layers)
    with OPERATIONS.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([("model", "img", "kind", *COLUMNS), *others])
    print(f"{len(layers)} networks of {len(wanted)}, {distinct} distinct layers")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
