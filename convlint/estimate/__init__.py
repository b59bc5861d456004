"""The cost model: pure functions from a layer, a GPU and a runtime to tiles, waves, bytes and time per pass."""

from convlint.estimate.passes import estimate_layer, estimate_pass
from convlint.estimate.precision import compute_dtype
from convlint.estimate.results import LayerEstimate, PassEstimate, grade
from convlint.estimate.waves import nearest_full_waves

__all__ = [
    "LayerEstimate",
    "PassEstimate",
    "compute_dtype",
    "estimate_layer",
    "estimate_pass",
    "grade",
    "nearest_full_waves",
]
