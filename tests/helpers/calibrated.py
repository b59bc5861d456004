"""Calibration files, and timings of an imaginary GPU that differs from the cost model in known ways."""

from itertools import product

from convolutions import conv
from msgspec.structs import replace

from convlint import __version__
from convlint.estimate.passes import pass_time_us
from convlint.gpus.gpu import Calibration, Constant, Gpu, load_gpu
from convlint.measuring.calibrate import TimedPass
from convlint.model.layer import PASSES, Dtype
from convlint.model.runtime import Runtime

PYTORCH = Runtime(framework="pytorch", tf32=False)
# bound by arithmetic, by memory, and by the launch
LARGE = [{"C": C, "H": H, "W": H, "K": C} for C, H in product((128, 256, 512), (14, 28))]
WIDE = [{"C": C, "H": H, "W": H, "K": C, "R": 1, "S": 1} for C, H in product((16, 32, 64), (56, 112))]
SMALL = [{"N": 1, "C": C, "H": H, "W": H, "K": C} for C, H in product((32, 64, 128), (7, 14))]


def text(gpu: str = "a100", *, head: str = "", body: str = "", capability: str = "8.0", convlint: str = "") -> str:
    """A calibration file: Tensor Cores at half their clock, unless `body` is given."""
    body = body or "[constants]\ntensor_clock = { value = 0.5, rows = 40, spread = 0.05 }\n"
    return (
        f'format = 1\ngpu = "{gpu}"\ndevice = "NVIDIA A100-SXM4-40GB"\ncompute_capability = "{capability}"\n'
        f'convlint = "{convlint or __version__}"\nrows = 66\nerror_before = 0.4\nerror_after = 0.1\n{head}{body}'
    )


def calibration(gpu: Gpu, **values: object) -> Calibration:
    """With these constants as plain numbers, and anything else as it is."""
    found = {name: Constant(value, 9, 0.1) if isinstance(value, float) else value for name, value in values.items()}
    return Calibration(gpu=gpu.id, rows=99, error_before=0.3, error_after=0.1, **found)


def timings(sizes: list[dict], dtypes=("fp16", "fp32"), passes=PASSES, gpu: Gpu | None = None, **true: object):
    """Passes of those layers on a GPU of which `true` holds, and that GPU's plain self."""
    plain = gpu or load_gpu("a100")
    there = replace(plain, calibration=calibration(plain, **true))
    rows = []
    for size, dtype, which in product(sizes, dtypes, passes):
        layer = conv(**size, dtype=Dtype(dtype))
        rows.append(TimedPass(layer, which, PYTORCH, pass_time_us(layer, which, there, PYTORCH)))
    return rows, plain
