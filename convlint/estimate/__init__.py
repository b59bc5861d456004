"""The cost model: pure functions from a layer, a GPU and a runtime to tiles, waves, bytes and time per pass.

A pass is lowered to batched GEMMs (`search`; for Winograd and FFT `copies`). Their tiles are dealt over the SMs in
rounds of resident tiles. The fastest program (`search`) gives the compute time, which is joined with the DRAM traffic.
Copies for layout and alignment (`copies`), further kernels and the launch are added (`kernels`). Depthwise layers have
no GEMM, but kernels of their own (`kernels`). `price` takes the fastest kernel that the library may run; `passes` adds
up layers. `constants` says where each number comes from, `benchmarks/README.md` how well predictions match measured
times.
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
from convlint.model.estimates import Grid, LayerEstimate, PassEstimate

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
