"""The cost model: pure functions from a layer, a GPU and a runtime to tiles, waves, bytes and time per pass.

A pass is lowered to batched GEMMs (`lowering`, `transforms`), whose tiles are dealt over the SMs in rounds of resident
tiles; the fastest program (`search`) gives the compute time, joined with the DRAM traffic; copies for layout and
alignment, further kernels and the launch come on top (`price`). Depthwise layers have no GEMM, but kernels of their own
(`depthwise`). `constants` says where each number comes from,
`benchmarks/README.md` how well the whole predicts measured times.
"""

from convlint.estimate.board import compute_dtype
from convlint.estimate.passes import (
    estimate_layer,
    estimate_pass,
    nearest_full_waves,
    time_us,
    unquantized_us,
    workspace_bytes,
)
from convlint.estimate.results import Grid, LayerEstimate, PassEstimate

__all__ = [
    "Grid",
    "LayerEstimate",
    "PassEstimate",
    "compute_dtype",
    "estimate_layer",
    "estimate_pass",
    "nearest_full_waves",
    "time_us",
    "unquantized_us",
    "workspace_bytes",
]
