"""The device that times: what it says of itself, and which GPU of convlint's that is."""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

from convlint.gpus.gpu import Gpu, gpu_names, load_gpu

Kind = Literal["cuda", "cpu"]
_FORMS = {"sxm", "pcie", "nvl"}
_SAYS_NOTHING = re.compile(r"nvidia|geforce|tesla|hbm\d?e?|\d+g[bi]*b?|generation")


class Device(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What times, and the libraries that it runs; sizes in bytes, empty or 0 where it says nothing of them."""

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
        and _is_named(gpu, device.name)
    ]
    return min(alike, key=lambda gpu: abs((gpu.memory_bytes or 0) - device.memory_bytes), default=None)


def _is_named(gpu: Gpu, name: str) -> bool:
    """Whether the driver's name is this GPU's, as far as it goes: not all of them tell the form or the memory."""
    ours, theirs = _words(f"{gpu.id} {gpu.name}"), _words(name)
    models = set(_words(gpu.id)) - _FORMS, set(theirs) - _FORMS
    same_model = models[0] <= models[1] or models[1] <= models[0]
    forms = set(theirs) & _FORMS, set(ours) & _FORMS
    return same_model and (not forms[0] or not forms[1] or bool(forms[0] & forms[1]))


def _words(name: str) -> list[str]:
    """Those that tell GPUs apart: `a100`, `sxm` of `NVIDIA A100-SXM4-40GB`."""
    words = map(_form, re.split(r"[^a-z0-9]+", name.casefold()))
    return [word for word in words if word and not _SAYS_NOTHING.fullmatch(word)]


def _form(word: str) -> str:
    return re.sub(r"^(sxm)\d$", r"\1", word)
