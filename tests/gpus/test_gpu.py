"""GPUs: pinned numbers, dense peaks, names, occupancy, and defects in a GPU file."""

import copy
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from calibrated import calibration
from cases import for_each
from checkout import ROOT
from occupancy import occupancy_warps, resident_warps

from convlint.gpus.gpu import (
    UNCALIBRATED,
    Factors,
    Gpu,
    aliases,
    factors_of,
    gpu_names,
    load_gpu,
    merged,
    parse_gpu,
)
from convlint.model.errors import ConvlintError, UsageError
from convlint.model.layer import Dtype
from convlint.model.report import CalibrationUse


def test_what_is_not_determined_changes_nothing() -> None:
    gpu = load_gpu("a100")
    assert factors_of(None) == factors_of(calibration(gpu)) == UNCALIBRATED == Factors(1.0, 1.0, 1.0, 0.0)
    assert factors_of(calibration(gpu, bandwidth=0.8, launch_us=4.0)) == Factors(1.0, 1.0, 0.8, 4.0)


def use(path: str, reason: str = "", *, of_no_target: bool = False) -> CalibrationUse:
    return CalibrationUse(
        path=path, gpu="a100-40gb-sxm", device="A100", rows=66, cudnn=None, reason=reason, of_no_target=of_no_target
    )


def test_what_several_inputs_say_is_said_once() -> None:
    idle = use("a.toml", "no target", of_no_target=True)
    assert merged([idle, idle]) == (idle,)
    assert merged([idle, use("a.toml"), use("a.toml")]) == (use("a.toml"),)
    assert merged([use("a.toml", "other cuDNN"), idle]) == (use("a.toml", "other cuDNN"),)
    assert merged([use("b.toml"), idle]) == (use("b.toml"), idle)


FOLDER = ROOT / "convlint" / "gpus" / "data"


def content() -> dict[str, object]:
    loaded = yaml.safe_load((FOLDER / "a100-40gb-sxm.yaml").read_text())
    assert isinstance(loaded, dict)
    return loaded


def broken(key: str, value: object) -> dict[str, object]:
    changed: dict[str, object] = copy.deepcopy(content())
    *parents, last = key.split("/")
    node: dict[str, object] = changed
    for parent in parents:
        child = node[parent]
        assert isinstance(child, dict)
        node = child
    if value is None:
        del node[last]
    else:
        node[last] = value
    return changed


def test_the_unbroken_file_is_accepted() -> None:
    assert isinstance(parse_gpu("a100", content(), path="a100.yaml"), Gpu)


@pytest.mark.parametrize(
    ("key", "value", "complaint"),
    [
        ("sms", None, "sms"),
        ("sms", 108, "value: ..., source"),
        ("sms", {"value": 108}, "source"),
        ("sms/value", "many", "sms"),
        ("sms/value", True, "sms"),
        ("sms/value", -1, "sms"),
        ("sms/value", 1.5, "sms"),
        ("sms/source", "hearsay", "hearsay"),
        ("dram_gb_per_s/value", float("nan"), "dram_gb_per_s"),
        ("dram_gb_per_s/value", float("inf"), "dram_gb_per_s"),
        ("bogus", 1, "bogus"),
        ("name", None, "name"),
        ("architecture", "fermi", "architecture"),
        ("compute_capability/value", 8.0, "compute_capability"),
        ("compute_capability/value", "eight", "compute_capability"),
        ("compute_capability", None, "compute_capability"),
        ("peaks_tflops/fp32", None, "peaks_tflops"),
        ("peaks_tflops/fp99", {"value": 1, "source": "peaks"}, "peaks_tflops"),
        ("peaks_tflops/fp8_tensor", {"value": 1, "source": "peaks"}, "peaks_tflops"),
        ("peaks_tflops/fp16/value", 0, "peaks_tflops.fp16"),
        ("peaks_tflops", [], "peaks_tflops"),
        ("sources", [], "source"),
        ("tensor_dtypes", None, "tensor_dtypes"),
        ("tensor_dtypes/value", ["fp16", "fp12"], "tensor_dtypes"),
        ("tensor_dtypes/value", [["fp16"]], "tensor_dtypes"),
        ("tensor_core_generation/value", "third", "tensor_core_generation"),
        ("tensor_core_generation", None, "tensor_core_generation"),
        ("geforce", "yes", "geforce"),
        ("notes", "a note", "notes"),
    ],
)
def test_defective_file_is_refused(key: str, value: object, complaint: str) -> None:
    with pytest.raises(ConvlintError, match=r"a100\.yaml: ") as caught:
        parse_gpu("a100", broken(key, value), path="a100.yaml")
    assert complaint in str(caught.value)


@pytest.mark.parametrize("text", ["", "- 1", "a: [", "a: \x00"])
def test_unreadable_file_is_refused(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import convlint.gpus.gpu as module

    (tmp_path / "odd.yaml").write_text(text)
    monkeypatch.setattr(module, "_FOLDER", tmp_path)
    with pytest.raises(ConvlintError, match=r"odd\.yaml"):
        module._load("odd")


# id, compute capability, SMs, GiB, GB/s, fp32 TFLOPS, fp16 Tensor TFLOPS with fp32 accumulation (dense)
PINNED = [
    ("k10", "3.0", 8, 4, 160, 2.29, None),
    ("k20", "3.5", 13, 5, 208, 3.52, None),
    ("k20x", "3.5", 14, 6, 250, 3.95, None),
    ("k40", "3.5", 15, 12, 288, 5.04, None),
    ("k80", "3.7", 13, 12, 240, 4.37, None),
    ("gk20a", "3.2", 1, 2, 14.8, 0.327, None),
    ("gtx-680", "3.0", 8, 2, 192.3, 3.09, None),
    ("m40", "5.2", 24, 12, 288, 6.84, None),
    ("m60", "5.2", 16, 8, 160, 4.82, None),
    ("gtx-980-ti", "5.2", 22, 6, 336.5, 6.05, None),
    ("p4", "6.1", 20, 8, 192, 5.5, None),
    ("p40", "6.1", 30, 24, 346, 11.76, None),
    ("p100-pcie", "6.0", 56, 16, 732, 9.3, None),
    ("p100-sxm2", "6.0", 56, 16, 720, 10.6, None),
    ("gtx-1080-ti", "6.1", 28, 11, 484, 11.3, None),
    ("titan-xp", "6.1", 30, 12, 547.7, 12.15, None),
    ("v100-pcie-16gb", "7.0", 80, 16, 900, 14, 112),
    ("v100-sxm2-16gb", "7.0", 80, 16, 900, 15.7, 125),
    ("v100-sxm2-32gb", "7.0", 80, 32, 900, 15.7, 125),
    ("titan-v", "7.0", 80, 12, 653, 13.8, 110),
    ("t4", "7.5", 40, 16, 320, 8.1, 65),
    ("rtx-2080-ti", "7.5", 68, 11, 616, 13.4, 53.8),
    ("titan-rtx", "7.5", 72, 24, 672, 16.3, 130.5),
    ("quadro-rtx-6000", "7.5", 72, 24, 672, 16.3, 130.5),
    ("gtx-1650", "7.5", 14, 4, 128, 2.98, None),
    ("gtx-1660-ti", "7.5", 24, 6, 288, 5.44, None),
    ("a100-40gb-pcie", "8.0", 108, 40, 1555, 19.5, 312),
    ("a100-40gb-sxm", "8.0", 108, 40, 1555, 19.5, 312),
    ("a100-80gb-pcie", "8.0", 108, 80, 1935, 19.5, 312),
    ("a100-80gb-sxm", "8.0", 108, 80, 2039, 19.5, 312),
    ("a30", "8.0", 56, 24, 933, 10.3, 165),
    ("a10", "8.6", 72, 24, 600, 31.2, 125),
    ("a10g", "8.6", 80, 24, 600, 35, 70),
    ("a40", "8.6", 84, 48, 696, 37.4, 149.7),
    ("a2", "8.6", 10, 16, 200, 4.53, 18.1),
    ("rtx-3060", "8.6", 28, 12, 360, 12.7, 25.5),
    ("rtx-3080", "8.6", 68, 10, 760, 29.8, 59.5),
    ("rtx-3090", "8.6", 82, 24, 936, 35.6, 71),
    ("rtx-a6000", "8.6", 84, 48, 768, 38.7, 154.8),
    ("l4", "8.9", 58, 24, 300, 30.3, 121),
    ("l40", "8.9", 142, 48, 864, 90.5, 181.05),
    ("l40s", "8.9", 142, 48, 864, 91.6, 362.05),
    ("rtx-4070", "8.9", 46, 12, 504.2, 29.1, 58.3),
    ("rtx-4080", "8.9", 76, 16, 716.8, 48.7, 97.5),
    ("rtx-4080-super", "8.9", 80, 16, 736, 52.2, 104.5),
    ("rtx-4090", "8.9", 128, 24, 1008, 82.6, 165.2),
    ("rtx-6000-ada", "8.9", 142, 48, 960, 91.1, 364),
    ("h100-pcie", "9.0", 114, 80, 2000, 51.2, 756),
    ("h100-sxm", "9.0", 132, 80, 3350, 67, 989.4),
    ("h100-nvl", "9.0", 132, 94, 3938, 60, 835.5),
    ("h200-sxm", "9.0", 132, 141, 4800, 67, 989),
    ("h20", "9.0", 78, 96, 4000, 44, 148),
    ("gh200", "9.0", 132, 96, 4000, 67, 989),
    ("b100", "10.0", 148, 192, 8000, 60, 1750),
    ("b200", "10.0", 148, 180, 7700, 75, 2250),
    ("gb200", "10.0", 152, 186, 8000, 80, 2500),
    ("b300", "10.3", 148, 270, 7700, 75, 2250),
    ("gb300", "10.3", 152, 279, 8000, 80, 2500),
    ("gb10", "12.1", 48, 128, 273, 31, 125),
    ("rtx-5080", "12.0", 84, 16, 960, 56.3, 112.6),
    ("rtx-5090", "12.0", 170, 32, 1792, 104.8, 209.5),
    ("rtx-pro-6000-blackwell", "12.0", 188, 96, 1792, 126, 503.8),
    ("rtx-pro-6000-max-q", "12.0", 188, 96, 1792, 110, 438.9),
    ("gtx-1060", "6.1", 10, 6, 192.2, 4.375, None),
    ("gtx-1070", "6.1", 15, 8, 256.3, 6.463, None),
    ("gtx-1070-ti", "6.1", 19, 8, 256.3, 8.186, None),
    ("gtx-1080", "6.1", 20, 8, 320.3, 8.873, None),
    ("v100-pcie-32gb", "7.0", 80, 32, 900, 14, 112),
    ("v100s-pcie-32gb", "7.0", 80, 32, 1134, 16.35, 130.8),
    ("rtx-pro-4000-blackwell", "12.0", 70, 24, 672, 36.83, 147.3),
    ("rtx-pro-4500-blackwell", "12.0", 82, 32, 896, 50.53, 202.1),
    ("rtx-pro-6000-server", "12.0", 188, 96, 1597, 120, 480),
    ("gtx-1660", "7.5", 22, 6, 192.1, 5.027, None),
    ("gtx-1660-super", "7.5", 22, 6, 336, 5.027, None),
    ("quadro-rtx-4000", "7.5", 36, 8, 416, 7.119, 56.95),
    ("quadro-rtx-5000", "7.5", 48, 16, 448, 11.15, 89.2),
    ("quadro-rtx-8000", "7.5", 72, 48, 672, 16.31, 130.5),
    ("rtx-2060", "7.5", 30, 6, 336, 6.451, 25.8),
    ("rtx-2060-super", "7.5", 34, 8, 448, 7.181, 28.72),
    ("rtx-2070", "7.5", 36, 8, 448, 7.465, 29.86),
    ("rtx-2070-super", "7.5", 40, 8, 448, 9.062, 36.25),
    ("rtx-2080", "7.5", 46, 8, 448, 10.07, 40.28),
    ("rtx-2080-super", "7.5", 48, 8, 495.9, 11.15, 44.6),
    ("a800-80gb-pcie", "8.0", 108, 80, 1935, 19.5, 312),
    ("a800-80gb-sxm", "8.0", 108, 80, 2039, 19.5, 312),
    ("a16", "8.6", 10, 16, 200.1, 4.493, 17.97),
    ("rtx-3050", "8.6", 20, 8, 224, 9.098, 18.2),
    ("rtx-3060-ti", "8.6", 38, 8, 448, 16.2, 32.4),
    ("rtx-3070", "8.6", 46, 8, 448, 20.31, 40.62),
    ("rtx-3070-ti", "8.6", 48, 8, 608.3, 21.75, 43.5),
    ("rtx-3080-12gb", "8.6", 70, 12, 912.4, 30.64, 61.28),
    ("rtx-3080-ti", "8.6", 80, 12, 912.4, 34.1, 68.2),
    ("rtx-3090-ti", "8.6", 84, 24, 1008, 40, 80),
    ("rtx-a2000", "8.6", 26, 6, 288, 7.987, 31.95),
    ("rtx-a2000-12gb", "8.6", 26, 12, 288, 7.987, 31.95),
    ("rtx-a4000", "8.6", 48, 16, 448, 19.17, 76.68),
    ("rtx-a4500", "8.6", 56, 20, 640, 23.65, 94.6),
    ("rtx-a5000", "8.6", 64, 24, 768, 27.77, 111.1),
    ("rtx-a5500", "8.6", 80, 24, 768, 34.1, 136.4),
    ("l20", "8.9", 92, 48, 864, 59.35, 118.7),
    ("rtx-2000-ada", "8.9", 22, 16, 224, 12, 48),
    ("rtx-4000-ada", "8.9", 48, 20, 360, 26.73, 106.9),
    ("rtx-4000-sff-ada", "8.9", 48, 20, 280, 19.17, 76.68),
    ("rtx-4060", "8.9", 24, 8, 272, 15.11, 30.22),
    ("rtx-4060-ti", "8.9", 34, 8, 288, 22.06, 44.12),
    ("rtx-4060-ti-16gb", "8.9", 34, 16, 288, 22.06, 44.12),
    ("rtx-4070-super", "8.9", 56, 12, 504.2, 35.48, 70.96),
    ("rtx-4070-ti", "8.9", 60, 12, 504.2, 40.09, 80.18),
    ("rtx-4070-ti-super", "8.9", 66, 16, 672.3, 44.1, 88.2),
    ("rtx-4090-d", "8.9", 114, 24, 1008, 73.54, 147.1),
    ("rtx-4500-ada", "8.9", 60, 24, 432, 39.63, 158.5),
    ("rtx-5000-ada", "8.9", 100, 32, 576, 65.28, 261.1),
    ("h200-nvl", "9.0", 132, 141, 4800, 60, 835.5),
    ("h800-pcie", "9.0", 114, 80, 2000, 51.2, 756),
    ("h800-sxm", "9.0", 132, 80, 3350, 67, 989.4),
    ("rtx-5060", "12.0", 30, 8, 448, 19.18, 38.36),
    ("rtx-5060-ti", "12.0", 36, 16, 448, 23.7, 47.4),
    ("rtx-5060-ti-8gb", "12.0", 36, 8, 448, 23.7, 47.4),
    ("rtx-5070", "12.0", 48, 12, 672, 30.87, 61.74),
    ("rtx-5070-ti", "12.0", 70, 16, 896, 43.94, 87.88),
    ("rtx-pro-5000-blackwell", "12.0", 110, 48, 1344, 66.94, 267.8),
    ("rtx-pro-5000-72gb", "12.0", 110, 72, 1344, 66.94, 267.8),
    ("jetson-agx-xavier", "7.2", 8, 32, 137, 1.41, 11),
    ("jetson-orin-nano", "8.7", 8, 8, 68, 1.28, 10),
    ("jetson-orin-nx-16gb", "8.7", 8, 16, 102.4, 1.88, 15.05),
    ("jetson-orin-nx-8gb", "8.7", 8, 8, 102.4, 1.567, 12.55),
    ("jetson-agx-orin", "8.7", 16, 64, 204.8, 5.3, 42.5),
    ("jetson-agx-thor", "11.0", 20, 128, 273, 8.04, 258.5),
]

# Dense FLOPs per clock per SM: CUDA cores fp32, Tensor Cores fp16 with fp32 accumulation at full rate.
FP32_RATE = {
    "3": 384, "5": 256, "6.0": 128, "6.1": 256, "7": 128, "8.0": 128, "8": 256, "9": 256, "10": 256,
    "11": 256, "12": 256,
}  # fmt: skip
TENSOR_RATE = {
    "7.0": 1024, "7.2": 1024, "7.5": 1024, "8.0": 2048, "8.6": 1024, "8.7": 2048, "8.9": 1024,
    "9.0": 4096, "10": 8192, "11.0": 8192, "12": 1024,
}  # fmt: skip
HALF_RATE = {"a10g", "l40", "l20"}  # fp32 accumulation at half rate without being GeForce
# Tensor Cores of Hopper, B100, B300 and GB300 run below the fp32 clock: the quoted peak is below SMs x clock x rate.
LOWER_CLOCK = {
    "h100-pcie": 0.923,
    "h100-sxm": 0.924,
    "h100-nvl": 0.865,
    "h200-sxm": 0.924,
    "h200-nvl": 0.865,
    "h800-pcie": 0.923,
    "h800-sxm": 0.924,
    "gh200": 0.924,
    "b100": 0.902,
    "b300": 0.913,
    "gb300": 0.970,
}
# Of a GPU that is not pinned: how far a peak may be from its clock; sparse ones are twice as high.
LEAST_SPARSE = 0.15
# Quoted at another clock than the highest.
OTHER_CLOCK = {"gtx-680": 0.951, "titan-v": 0.925, "b200": 0.944, "gb10": 1.047}
SLOW_INT8 = {"b300", "gb300"}  # Blackwell Ultra has a thirtieth of the rate left


EVERY = gpu_names()  # those that nobody has pinned too


def rate(table: dict[str, int], capability: str) -> int | None:
    return table.get(capability) or table.get(capability.split(".")[0])


def test_no_gpu_that_is_pinned_here_is_gone() -> None:
    assert {row[0] for row in PINNED} <= set(EVERY)
    assert len({row[0] for row in PINNED}) == len(PINNED) == 128


@for_each("gpu_id, capability, sms, gib, gb_per_s, fp32, tensor", PINNED)
def test_pinned_numbers(
    gpu_id: str, capability: str, sms: int, gib: int, gb_per_s: float, fp32: float, tensor: float | None
) -> None:
    gpu = load_gpu(gpu_id)
    assert gpu.id == gpu_id
    assert gpu.compute_capability == capability
    assert gpu.sms == sms
    assert gpu.memory_bytes == gib * 2**30
    assert gpu.dram_bytes_per_s == pytest.approx(gb_per_s * 1e9)
    assert gpu.peak(Dtype.fp32, tensor=False) == pytest.approx(fp32 * 1e12)
    peak = gpu.peak(Dtype.fp16, tensor=True)
    assert peak == (None if tensor is None else pytest.approx(tensor * 1e12))
    assert gpu.tensor_cores is (tensor is not None)


@for_each("gpu_id", EVERY)
def test_every_number_has_a_source(gpu_id: str) -> None:
    gpu = load_gpu(gpu_id)
    assert {"sms", *(f"peaks_tflops.{key}" for key in gpu.peak_flops)} <= gpu.sources.keys()
    assert all(len(source) > 5 for source in gpu.sources.values())


@for_each("gpu_id", EVERY)
def test_peaks_are_dense(gpu_id: str) -> None:
    gpu = load_gpu(gpu_id)
    if gpu.boost_clock_hz is None:
        assert gpu_id not in {row[0] for row in PINNED} - {"h20"}
        return
    capability = str(gpu.compute_capability)
    other = OTHER_CLOCK.get(gpu_id, 1.0)
    cycles = gpu.sms * gpu.boost_clock_hz
    fp32_other = 1.0 if gpu_id == "b200" else other
    fp32, tensor = rate(FP32_RATE, capability), rate(TENSOR_RATE, capability)
    if gpu_id not in {row[0] for row in PINNED}:  # a quoted clock may be another than the peak's
        assert fp32 is None or gpu.peak_flops["fp32"] / (cycles * fp32) == pytest.approx(1.0, abs=LEAST_SPARSE)
        if gpu.tensor_cores and tensor is not None:
            full = cycles * tensor
            assert gpu.peak_flops["fp16_tensor_fp32acc"] / full < 1 + LEAST_SPARSE
        return
    assert gpu.peak_flops["fp32"] / (cycles * fp32) == pytest.approx(fp32_other, abs=0.03)
    if gpu.tensor_cores:
        full = cycles * tensor * (0.5 if gpu.geforce or gpu_id in HALF_RATE else 1)
        expected = LOWER_CLOCK.get(gpu_id, other)
        assert gpu.peak_flops["fp16_tensor_fp32acc"] / full == pytest.approx(expected, abs=0.03)


@for_each("gpu_id", EVERY)
def test_ratios_between_dtypes(gpu_id: str) -> None:
    gpu = load_gpu(gpu_id)
    peaks = gpu.peak_flops
    fp16 = peaks.get("fp16_tensor_fp32acc")
    assert (fp16 is not None) == gpu.tensor_cores == bool(gpu.tensor_dtypes)
    if fp16 is None:
        return
    accumulate = gpu.peak(Dtype.fp16, tensor=True, fp16_accumulate=True)
    assert accumulate is not None
    if gpu.geforce:
        assert accumulate == pytest.approx(2 * fp16, rel=0.02)
    elif gpu_id != "l40s":  # its data sheet disagrees with itself by 1 %
        assert accumulate == pytest.approx(fp16)
    if "bf16_tensor" in peaks:
        assert peaks["bf16_tensor"] == pytest.approx(fp16, rel=0.01)
    if "fp8_tensor" in peaks:
        assert peaks["fp8_tensor"] == pytest.approx(2 * fp16, rel=0.02)
    if "tf32_tensor" in peaks:
        assert peaks["tf32_tensor"] == pytest.approx(fp16 / 2, rel=0.03)
    if gpu_id in SLOW_INT8:
        assert 29 < peaks["fp8_tensor"] / peaks["int8_tensor"] < 31
    elif "int8_tensor" in peaks:
        assert peaks["int8_tensor"] == pytest.approx(2 * accumulate, rel=0.02)


def test_what_tensor_cores_multiply() -> None:
    assert load_gpu("v100").tensor_dtypes == {"fp16"}
    assert load_gpu("xavier").tensor_dtypes == {"fp16", "int8"}
    assert load_gpu("t4").tensor_dtypes == {"fp16", "int8"}
    assert load_gpu("a100").tensor_dtypes == {"fp64", "tf32", "fp16", "bf16", "int8"}
    assert load_gpu("rtx-3090").tensor_dtypes == {"tf32", "fp16", "bf16", "int8"}
    assert load_gpu("l4").tensor_dtypes == {"tf32", "fp16", "bf16", "fp8", "int8"}
    assert load_gpu("h100").tensor_dtypes == {"fp64", "tf32", "fp16", "bf16", "fp8", "int8"}
    for name in ("b300", "gb300", "gb10", "thor"):
        assert load_gpu(name).tensor_dtypes == {"tf32", "fp16", "bf16", "fp8", "int8"}
    assert load_gpu("gtx-1660-ti").tensor_dtypes == frozenset()
    assert not load_gpu("gtx-1650").tensor_cores


def test_peak_by_dtype_and_unit() -> None:
    a100, p40, p100, v100 = (load_gpu(name) for name in ("a100", "p40", "p100", "v100"))
    assert a100.peak(Dtype.tf32, tensor=True) == pytest.approx(156e12)
    assert a100.peak(Dtype.fp64, tensor=True) == pytest.approx(19.5e12)
    assert a100.peak(Dtype.fp64, tensor=False) == pytest.approx(9.7e12)
    assert a100.peak(Dtype.int8, tensor=True) == pytest.approx(624e12)
    assert a100.peak(Dtype.fp32, tensor=True) is None
    assert a100.peak(Dtype.fp8, tensor=True) is None
    assert a100.peak(Dtype.fp8, tensor=False) is None
    assert a100.peak(Dtype.tf32, tensor=False) == pytest.approx(19.5e12)
    assert p100.peak(Dtype.fp16, tensor=False) == pytest.approx(21.2e12)
    assert p40.peak(Dtype.fp16, tensor=False) == pytest.approx(11.76e12)  # storage only: 1/64 rate
    assert p40.peak(Dtype.int8, tensor=False) == pytest.approx(47e12)  # DP4A
    assert p40.peak(Dtype.int8, tensor=True) is None
    assert v100.peak(Dtype.int8, tensor=False) == pytest.approx(15.7e12)
    assert v100.peak(Dtype.bf16, tensor=False) == pytest.approx(15.7e12)


@pytest.mark.parametrize(
    ("name", "fast", "fp64_ratio"),
    [("k20", False, 1 / 3), ("gtx-680", False, 1 / 24), ("m40", False, 1 / 32), ("p40", False, 1 / 32),
     ("p100", True, 1 / 2), ("v100", True, 1 / 2), ("t4", True, 1 / 32), ("gtx-1660-ti", True, 1 / 32),
     ("rtx-3090", True, 1 / 64), ("h100", True, 1 / 2), ("h20", True, 1 / 44)],
)  # fmt: skip
def test_fp16_and_fp64_rates(name: str, fast: bool, fp64_ratio: float) -> None:
    gpu = load_gpu(name)
    assert gpu.fast_fp16 is fast
    assert gpu.fp64_ratio == pytest.approx(fp64_ratio, rel=0.03)


def test_unknown_rates_are_none() -> None:
    xavier = load_gpu("xavier")
    assert xavier.fp64_ratio is None
    assert xavier.peak(Dtype.fp64, tensor=False) is None
    assert load_gpu("a10g").peak(Dtype.int8, tensor=True) is None
    assert load_gpu("h20").boost_clock_hz is None
    assert load_gpu("v100").pcie_gen is None


def test_kepler_chips() -> None:
    facts = {
        name: (
            gpu.chip,
            gpu.dies_per_board,
            gpu.concurrent_kernels,
            gpu.hyper_q,
            gpu.pcie_gen,
            gpu.max_registers_per_thread,
        )
        for name in ("k10", "k20", "k40", "k80", "gk20a", "gtx-680")
        for gpu in [load_gpu(name)]
    }
    assert facts == {
        "k10": ("GK104", 2, 16, False, 3, 63),
        "k20": ("GK110", 1, 32, True, 2, 255),
        "k40": ("GK110B", 1, 32, True, 3, 255),
        "k80": ("GK210", 2, 32, True, 3, 255),
        "gk20a": ("GK20A", 1, 4, False, None, 255),
        "gtx-680": ("GK104", 1, 16, False, 3, 63),
    }


def test_flags() -> None:
    assert {name for name in gpu_names() if load_gpu(name).integrated} == {
        "gk20a", "jetson-nano", "jetson-tx2", "jetson-agx-xavier", "jetson-xavier-nx",
        "jetson-orin-nano", "jetson-orin-nx-16gb", "jetson-orin-nx-8gb",
        "jetson-agx-orin", "jetson-agx-thor", "gb10",
    }  # fmt: skip
    # DGX Spark runs the libraries of discrete GPUs
    assert {name for name in gpu_names() if load_gpu(name).integrated != load_gpu(name).jetson} == {"gb10"}
    assert {name: dies for name in gpu_names() if (dies := load_gpu(name).dies_per_board) > 1} == {
        "k10": 2, "k80": 2, "m60": 2, "a16": 4,
    }  # fmt: skip
    for name in gpu_names():
        assert load_gpu(name).geforce is ("GeForce" in load_gpu(name).name), name
    assert not any(load_gpu(name).hyper_q for name in ("k10", "gtx-680", "gk20a"))
    assert load_gpu("b200").hyper_q


def test_units() -> None:
    k80 = load_gpu("k80")
    assert k80.shared_bytes_per_sm == 112 * 1024
    assert k80.memory_bytes == 12 * 2**30
    assert k80.l2_bytes == 1536 * 1024
    assert k80.boost_clock_hz == 875e6
    assert load_gpu("gk20a").registers_per_block == 32768


@pytest.mark.parametrize(
    ("name", "gpu_id"),
    [("a100", "a100-40gb-sxm"), ("A100", "a100-40gb-sxm"), ("v100", "v100-sxm2-16gb"), ("h100", "h100-sxm"),
     ("h200", "h200-sxm"), ("p100", "p100-sxm2"), ("orin", "jetson-agx-orin"), ("RTX 4090", "rtx-4090"),
     ("rtx4090", "rtx-4090"), ("rtx_4090", "rtx-4090"), ("Tesla V100-SXM2-16GB", "v100-sxm2-16gb"),
     ("NVIDIA A100-SXM4-80GB", "a100-80gb-sxm"), ("NVIDIA GeForce RTX 3090", "rtx-3090"), ("Tesla K80", "k80"),
     ("NVIDIA H100 80GB HBM3", "h100-sxm"), ("nvidia-l4", "l4"), ("GTX1080Ti", "gtx-1080-ti"),
     ("NVIDIA B300 SXM6 AC", "b300"), ("DGX Spark", "gb10"), ("Thor", "jetson-agx-thor"), ("T5000", "jetson-agx-thor"),
     ("orin nx", "jetson-orin-nx-16gb"), ("4080 SUPER", "rtx-4080-super"),
     ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "rtx-pro-6000-max-q")],
)  # fmt: skip
def test_names_that_people_use(name: str, gpu_id: str) -> None:
    assert load_gpu(name).id == gpu_id


def test_aliases_resolve_and_hide_nothing() -> None:
    assert len(aliases()) > len(PINNED)
    for alias, gpu_id in aliases().items():
        assert load_gpu(alias).id == gpu_id
        assert alias not in gpu_names()


@pytest.mark.parametrize(
    ("name", "suggestion"), [("a1000", "a100-40gb-sxm"), ("rtx 4091", "rtx-4090"), ("v10", "v100-sxm2-16gb")]
)
def test_unknown_name_suggests_the_nearest(name: str, suggestion: str) -> None:
    with pytest.raises(UsageError, match=f"unknown GPU .*did you mean .*{suggestion}"):
        load_gpu(name)


@pytest.mark.parametrize("name", ["", "x" * 100_000, "../aliases", "aliases", "mi300x"])
def test_hopeless_name_is_a_short_usage_error(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_gpu(name)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(("name", "warps"), [("gtx-680", 32), ("k10", 32), ("k20", 32), ("k40", 32), ("k80", 64)])
def test_occupancy_of_the_kepler_guides_kernel(name: str, warps: int) -> None:
    assert occupancy_warps(load_gpu(name), threads_per_block=256, registers_per_thread=63) == warps


def fermi(**changes: int) -> int:
    limits = {
        "threads_per_block": 256, "registers_per_thread": 63, "shared_bytes_per_block": 0, "registers_per_sm": 32768,
        "registers_per_block": 32768, "shared_bytes_per_sm": 49152, "max_warps_per_sm": 48, "max_blocks_per_sm": 8,
        "register_unit": 64, "warp_unit": 2, "shared_unit": 128,
    }  # fmt: skip
    return resident_warps(**{**limits, **changes})


def test_occupancy_on_fermi() -> None:
    assert fermi() == 16
    assert fermi(registers_per_thread=20) == 48
    assert fermi(threads_per_block=64, registers_per_thread=8) == 16  # 8 blocks of 2 warps


@pytest.mark.parametrize(
    ("name", "threads", "registers", "shared", "warps"),
    [
        ("k20", 64, 16, 0, 32),  # 16 blocks
        ("k20", 1024, 32, 0, 64),
        ("k20", 256, 32, 24 * 1024, 16),  # 48 KiB shared: 2 blocks
        ("k80", 256, 32, 24 * 1024, 32),  # 112 KiB: 4 blocks
        ("k20", 256, 32, 49 * 1024, 0),
        ("gtx-680", 256, 64, 0, 0),  # 63 registers a thread
        ("k20", 256, 256, 0, 0),
        ("gk20a", 1024, 63, 0, 0),  # 32 K registers a block
        ("k20", 1025, 16, 0, 0),
        ("k20", 0, 16, 0, 0),
        ("v100", 256, 128, 0, 16),
        ("v100", 96, 32, 0, 48),  # 3 warps are allotted as 4
        ("a100", 256, 32, 163 * 1024, 8),  # 1 KiB more per block: exactly the 164 KiB of an SM
        ("a100", 256, 32, 82 * 1024, 8),  # twice 83 KiB does not fit
        ("a100", 256, 32, 81 * 1024, 16),
        ("a100", 64, 32, 10112, 30),  # 11136 bytes, a multiple of 128 but not of 256
        ("a100", 256, 32, 0, 64),
        ("p100", 64, 64, 0, 32),  # GP100 has two schedulers per SM: warps are allotted in twos
        ("v100", 64, 64, 0, 16),
        ("rtx-3090", 256, 32, 0, 48),
    ],
)
def test_occupancy_limits(name: str, threads: int, registers: int, shared: int, warps: int) -> None:
    gpu = load_gpu(name)
    got = occupancy_warps(gpu, threads_per_block=threads, registers_per_thread=registers, shared_bytes_per_block=shared)
    assert got == warps


def test_loading_one_gpu_stays_light() -> None:
    code = "import sys; from convlint.gpus.gpu import load_gpu; load_gpu('a100'); print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"difflib", "importlib.resources", "rich", "typer", "torch", "onnx"} & set(loaded)
