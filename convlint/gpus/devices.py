"""The GPU that a device is, by what the driver or a profiler says of it."""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

from convlint.gpus.gpu import Gpu, gpu_names, load_gpu
from convlint.model.errors import UsageError, shown

Kind = Literal["cuda", "cpu"]
_SMI_TIMEOUT_S = 20  # a driver that is not resident takes seconds to load
_MEMORY_KEPT = 0.12
_FORMS = {"sxm", "pcie", "nvl", "jetson", "agx", "nx"}  # which a driver may leave out
# The board of an SXM4 A100, which some drivers name (https://github.com/facebookincubator/AITemplate/pull/749).
_SXM_BOARD = re.compile(r"(a100-)?pg509-\d+")
_SAYS_NOTHING = re.compile(r"nvidia|geforce|tesla|ac|hbm\d?e?|\d+g[bi]*b?|generation")


class Device(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A device that times, and its libraries; sizes are in bytes, unknown fields empty or 0."""

    kind: Kind
    name: str
    framework_version: str
    cudnn: str = ""
    cuda: str = ""
    compute_capability: str = ""
    sms: int = 0
    memory_bytes: int = 0


def gpu_of(device: Device) -> Gpu | None:
    """The GPU that a device is: of the same generation and size, by its name and memory; None where none of them is.

    Names are those of the driver, such as `NVIDIA A100-SXM4-40GB`.
    """
    if device.kind != "cuda":
        return None
    alike = [
        gpu
        for gpu in map(load_gpu, gpu_names())
        if str(gpu.compute_capability) == device.compute_capability
        and gpu.sms == device.sms
        and _is_called(gpu, device.name, device.memory_bytes)
    ]
    return min(
        alike,
        key=lambda gpu: (abs((gpu.memory_bytes or 0) - device.memory_bytes), "sxm" not in _words(gpu.id)),
        default=None,
    )


def gpus_here() -> tuple[Gpu, ...]:
    """The GPUs of this machine, each kind once, as the driver's nvidia-smi names them. Raises UsageError."""
    import subprocess

    query = ["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits"]
    try:
        ran = subprocess.run(query, capture_output=True, timeout=_SMI_TIMEOUT_S, check=True, text=True)
    except FileNotFoundError:
        raise UsageError("--gpu local: there is no nvidia-smi here; --gpu NAME names the GPU to rent") from None
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise UsageError(f"--gpu local: nvidia-smi names no GPU: {error}") from None
    lines = [line for line in ran.stdout.splitlines() if line.strip()]
    gpus = [gpu for gpu in (_named(*line.rpartition(",")[::2]) for line in lines) if gpu is not None]
    if not lines:
        raise UsageError("--gpu local: nvidia-smi lists no GPU")
    if not gpus:  # beside a known one, another may drive a display
        name = lines[0].rpartition(",")[0] or lines[0]
        raise UsageError(f"--gpu local: convlint does not know the GPU {shown(name)!r}; --gpu NAME names one like it")
    return tuple(dict.fromkeys(gpus))


def _named(name: str, memory_mib: str) -> Gpu | None:
    """The GPU that the driver calls so."""
    memory_bytes = int(memory_mib) << 20 if memory_mib.strip().isdecimal() else 0
    alike = [gpu for gpu in map(load_gpu, gpu_names()) if _is_called(gpu, name, memory_bytes)]
    # "H100 80GB HBM3", which names no form, is an SXM module; the others say so.
    return min(alike, key=lambda gpu: "sxm" not in _words(gpu.id), default=None)


def _is_called(gpu: Gpu, name: str, memory_bytes: int) -> bool:
    """Whether the driver calls this GPU so: no word of the name may be another model's, as in `RTX 4080 SUPER`.

    Not all names tell the form or the memory, and a `memory_bytes` of 0 is unknown.
    """
    ours, theirs = {*_words(f"{gpu.id} {gpu.name}")}, {*_words(name)}
    if not {*_words(gpu.id)} - _FORMS <= theirs or not theirs - _FORMS <= ours:
        return False
    forms = theirs & _FORMS, ours & _FORMS
    if forms[0] and forms[1] and forms[0].isdisjoint(forms[1]):
        return False
    # The driver keeps some of the memory to itself.
    return not memory_bytes or not gpu.memory_bytes or abs(memory_bytes / gpu.memory_bytes - 1) < _MEMORY_KEPT


def _words(name: str) -> list[str]:
    """The words that tell GPUs apart: `a100`, `sxm` of `NVIDIA A100-SXM4-40GB`."""
    words = map(_form, re.split(r"[^a-z0-9]+", _SXM_BOARD.sub("a100-sxm4", name.casefold())))
    return [word for word in words if word and not _SAYS_NOTHING.fullmatch(word)]


def _form(word: str) -> str:
    return re.sub(r"^(sxm)\d$|^(k\d+)[cmst]$", r"\1\2", word)  # the driver calls a K40 K40m
