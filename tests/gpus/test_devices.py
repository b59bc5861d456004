"""Which GPU a device is, by what the driver says of it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from cases import for_each

from convlint.gpus.devices import Device, gpu_of, gpus_here
from convlint.gpus.gpu import gpu_names, load_gpu
from convlint.model.errors import UsageError

GIB = 2**30


def device(name: str, capability: str, sms: int, memory_gib: float) -> Device:
    return Device(
        kind="cuda", name=name, framework_version="2.11.0", cudnn="9.10.2", cuda="12.8",
        compute_capability=capability, sms=sms, memory_bytes=int(memory_gib * GIB),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "capability", "sms", "memory_gib", "expected"),
    [
        ("Tesla V100-SXM2-16GB", "7.0", 80, 15.8, "v100-sxm2-16gb"),
        ("Tesla V100-SXM2-32GB", "7.0", 80, 31.7, "v100-sxm2-32gb"),
        ("Tesla V100-PCIE-16GB", "7.0", 80, 15.8, "v100-pcie-16gb"),
        ("Tesla V100-PCIE-32GB", "7.0", 80, 31.7, "v100-pcie-32gb"),
        ("Tesla V100S-PCIE-32GB", "7.0", 80, 31.7, "v100s-pcie-32gb"),
        ("NVIDIA A800-SXM4-80GB", "8.0", 108, 79.1, "a800-80gb-sxm"),
        ("NVIDIA A800 80GB PCIe", "8.0", 108, 79.1, "a800-80gb-pcie"),
        ("NVIDIA H800", "9.0", 132, 79.1, "h800-sxm"),
        ("NVIDIA H800 PCIe", "9.0", 114, 79.1, "h800-pcie"),
        ("NVIDIA H200 NVL", "9.0", 132, 139.8, "h200-nvl"),
        ("NVIDIA GeForce RTX 4070", "8.9", 46, 11.7, "rtx-4070"),
        ("NVIDIA GeForce RTX 4070 Ti", "8.9", 60, 11.7, "rtx-4070-ti"),
        ("NVIDIA GeForce RTX 4070 Ti SUPER", "8.9", 66, 15.7, "rtx-4070-ti-super"),
        ("NVIDIA RTX A2000 12GB", "8.6", 26, 11.7, "rtx-a2000-12gb"),
        ("NVIDIA RTX 4000 SFF Ada Generation", "8.9", 48, 19.5, "rtx-4000-sff-ada"),
        ("NVIDIA RTX 4000 Ada Generation", "8.9", 48, 19.5, "rtx-4000-ada"),
        ("Quadro RTX 5000", "7.5", 48, 15.7, "quadro-rtx-5000"),
        ("Tesla T4", "7.5", 40, 14.6, "t4"),
        ("NVIDIA A100-SXM4-40GB", "8.0", 108, 39.4, "a100-40gb-sxm"),
        ("NVIDIA A100-SXM4-80GB", "8.0", 108, 79.1, "a100-80gb-sxm"),
        ("NVIDIA A100-PG509-200", "8.0", 108, 39.4, "a100-40gb-sxm"),
        ("NVIDIA PG509-210", "8.0", 108, 79.1, "a100-80gb-sxm"),
        ("NVIDIA A100 80GB PCIe", "8.0", 108, 79.1, "a100-80gb-pcie"),
        ("NVIDIA A100-PCIE-40GB", "8.0", 108, 39.4, "a100-40gb-pcie"),
        ("NVIDIA H100 80GB HBM3", "9.0", 132, 79.1, "h100-sxm"),
        ("NVIDIA H100 PCIe", "9.0", 114, 79.1, "h100-pcie"),
        ("NVIDIA H100 NVL", "9.0", 132, 93.0, "h100-nvl"),
        ("NVIDIA H200", "9.0", 132, 139.8, "h200-sxm"),
        ("NVIDIA GH200 480GB", "9.0", 132, 94.5, "gh200"),
        ("NVIDIA GeForce RTX 4090", "8.9", 128, 23.5, "rtx-4090"),
        ("NVIDIA GeForce RTX 2080 Ti", "7.5", 68, 10.8, "rtx-2080-ti"),
        ("NVIDIA RTX A6000", "8.6", 84, 47.4, "rtx-a6000"),
        ("NVIDIA A40", "8.6", 84, 44.3, "a40"),
        ("NVIDIA RTX 6000 Ada Generation", "8.9", 142, 47.4, "rtx-6000-ada"),
        ("NVIDIA L40", "8.9", 142, 44.4, "l40"),
        ("NVIDIA L40S", "8.9", 142, 44.4, "l40s"),
        ("NVIDIA TITAN RTX", "7.5", 72, 23.6, "titan-rtx"),
        ("Quadro RTX 6000", "7.5", 72, 23.6, "quadro-rtx-6000"),
        ("NVIDIA A10G", "8.6", 80, 22.0, "a10g"),
        ("NVIDIA B200", "10.0", 148, 178.4, "b200"),
        ("NVIDIA B300 SXM6 AC", "10.3", 148, 267.7, "b300"),
        ("NVIDIA GB300", "10.3", 152, 276.6, "gb300"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "12.0", 188, 95.6, "rtx-pro-6000-blackwell"),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "12.0", 188, 95.6, "rtx-pro-6000-max-q"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "12.0", 188, 95.6, "rtx-pro-6000-server"),
        ("NVIDIA RTX PRO 4000 Blackwell", "12.0", 70, 23.9, "rtx-pro-4000-blackwell"),
        ("NVIDIA GB10", "12.1", 48, 119.7, "gb10"),
        ("NVIDIA Thor", "11.0", 20, 122.6, "jetson-agx-thor"),
        ("Orin", "8.7", 8, 15.2, "jetson-orin-nx-16gb"),
        ("Orin", "8.7", 16, 61.4, "jetson-agx-orin"),
        ("Xavier", "7.2", 6, 7.4, "jetson-xavier-nx"),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", "8.9", 76, 15.7, "rtx-4090-laptop"),
        ("NVIDIA GeForce RTX 4080", "8.9", 76, 15.7, "rtx-4080"),
        ("NVIDIA GeForce RTX 3080 Laptop GPU", "8.6", 48, 7.8, "rtx-3080-laptop"),
        ("NVIDIA GeForce RTX 3080 Laptop GPU", "8.6", 48, 15.7, "rtx-3080-laptop-16gb"),
        ("NVIDIA TITAN X (Pascal)", "6.1", 28, 11.9, "titan-x-pascal"),
        ("GeForce GTX TITAN X", "5.2", 24, 11.9, "gtx-titan-x"),
        ("Tesla K80", "3.7", 13, 11.2, "k80"),
    ],
)
def test_what_the_driver_calls_it(name: str, capability: str, sms: int, memory_gib: float, expected: str) -> None:
    found = gpu_of(device(name, capability, sms, memory_gib))
    assert found.id == expected


@for_each("gpu_id", gpu_names())
def test_every_gpu_is_itself_by_its_own_name(gpu_id: str) -> None:
    gpu = load_gpu(gpu_id)
    found = gpu_of(device(gpu.name, str(gpu.compute_capability), gpu.sms, (gpu.memory_bytes or 0) / GIB))
    assert found == gpu


@pytest.mark.parametrize(
    ("name", "capability", "sms"),
    [
        ("NVIDIA GeForce RTX 3070 Ti Laptop GPU", "8.6", 46),
        ("NVIDIA GeForce RTX 4080", "8.9", 58),
        ("NVIDIA A100-SXM4-40GB MIG 3g.20gb", "8.0", 42),
        ("NVIDIA H100 PCIe", "9.0", 132),
        ("NVIDIA GeForce RTX 5070 Ti Laptop GPU", "12.0", 46),
        ("NVIDIA GeForce RTX 2070 with Max-Q Design", "7.5", 36),
        ("NVIDIA GeForce GTX 1650 SUPER", "7.5", 20),
        ("NVIDIA GeForce RTX 2060", "7.5", 34),
    ],
)
@pytest.mark.parametrize("memory_gib", [0, 6, 8, 12, 16])
def test_what_only_resembles_one_is_none(name: str, capability: str, sms: int, memory_gib: int) -> None:
    """Such as an RTX 2060 of 12 GB, with as many SMs as an RTX 2060 SUPER."""
    assert gpu_of(device(name, capability, sms, memory_gib)) is None


def test_a_processor_is_no_gpu() -> None:
    assert gpu_of(Device(kind="cpu", name="x86_64", framework_version="2.13.0")) is None


@pytest.fixture
def smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts an nvidia-smi in front of all others that runs this line of a shell."""

    def placed(line: str) -> None:
        program = tmp_path / "nvidia-smi"
        program.write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    return placed


@pytest.mark.parametrize(
    ("name", "memory", "gpu"),
    [
        ("NVIDIA A100-SXM4-40GB", "40960", "a100-40gb-sxm"),
        ("NVIDIA A100-SXM4-80GB", "81920", "a100-80gb-sxm"),
        ("NVIDIA H100 80GB HBM3", "81559", "h100-sxm"),
        ("NVIDIA H100 PCIe", "81559", "h100-pcie"),
        ("NVIDIA GeForce RTX 4080", "16376", "rtx-4080"),
        ("NVIDIA GeForce RTX 4080 SUPER", "16376", "rtx-4080-super"),
        ("NVIDIA GeForce RTX 3080", "10240", "rtx-3080"),
        ("NVIDIA GeForce RTX 3080", "12288", "rtx-3080-12gb"),
        ("NVIDIA GeForce RTX 4060 Ti", "8188", "rtx-4060-ti"),
        ("NVIDIA GeForce RTX 4060 Ti", "16380", "rtx-4060-ti-16gb"),
        ("NVIDIA GeForce RTX 4070 Ti", "12282", "rtx-4070-ti"),
        ("NVIDIA GeForce RTX 2080", "8192", "rtx-2080"),
        ("NVIDIA RTX A5000", "24564", "rtx-a5000"),
        ("NVIDIA RTX A2000", "6138", "rtx-a2000"),
        ("NVIDIA RTX 5000 Ada Generation", "32760", "rtx-5000-ada"),
        ("NVIDIA H800", "81559", "h800-sxm"),
        ("NVIDIA H200", "143771", "h200-sxm"),
        ("NVIDIA H200 NVL", "143771", "h200-nvl"),
        ("NVIDIA A800-SXM4-80GB", "81920", "a800-80gb-sxm"),
        ("Tesla V100S-PCIE-32GB", "32768", "v100s-pcie-32gb"),
        ("NVIDIA A16", "15356", "a16"),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "97887", "rtx-pro-6000-max-q"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "97887", "rtx-pro-6000-server"),
        ("Quadro RTX 6000", "24576", "quadro-rtx-6000"),
        ("NVIDIA GB10", "[N/A]", "gb10"),
        ("Tesla K80", "11441", "k80"),
    ],
)
def test_the_drivers_names_tell_which_gpu_is_here(smi: Callable[[str], None], name: str, memory: str, gpu: str) -> None:
    smi(f'echo "{name}, {memory}"; echo "{name}, {memory}"')
    assert [each.id for each in gpus_here()] == [gpu]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('echo "NVIDIA GeForce RTX 3080, 20480"', "does not know the GPU 'NVIDIA GeForce RTX 3080'"),
        ('echo "NVIDIA GeForce RTX 3050 Laptop GPU, 4096"', "does not know the GPU"),
        ('echo "NVIDIA RTX 5880 Ada Generation, 49140"', "does not know the GPU"),
        ("echo Failed to initialize NVML: Driver/library version mismatch", "does not know the GPU"),
        ("exit 9", "names no GPU"),
        ("true", "lists no GPU"),
    ],
)
def test_what_is_no_known_gpu_is_said(smi: Callable[[str], None], line: str, words: str) -> None:
    smi(line)
    with pytest.raises(UsageError, match=words):
        gpus_here()


def test_a_machine_without_a_driver_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="there is no nvidia-smi here"):
        gpus_here()
