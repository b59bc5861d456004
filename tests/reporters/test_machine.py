"""What reports say of memory, of parameters and FLOPs, and of a host that does not keep up."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from reports import NETWORK, full_report

from convlint.model.layer import Dtype
from convlint.model.report import NetworkReport, Report
from convlint.reporters.words import batch_notes, binary, count, dtype_notes, host_notes, network_notes


def report(*networks: NetworkReport, targets: tuple[str, ...] = ("a100",)) -> Report:
    return full_report(networks=networks, targets=targets)


def notes(*networks: NetworkReport, targets: tuple[str, ...] = ("a100",)) -> list[str]:
    return list(network_notes(report(*networks, targets=targets)))


def test_a_network_has_parameters_flops_memory_and_a_largest_batch() -> None:
    assert notes(NETWORK) == [
        "4.70 k parameters in convolutions, 236 MFLOPs (118 M multiply-adds) forward per image, 60.4 GFLOPs with N=256",
        "memory: 465 MiB of 40.0 GiB (activations 465 MiB, weights 9.19 KiB, gradients 9.19 KiB); room for N=22,530 at "
        "most, less what other layers keep",
    ]


def test_one_image_and_several_batches_have_one_figure() -> None:
    assert notes(replace(NETWORK, batch=1))[0].endswith("60.4 GFLOPs (30.2 G multiply-adds) forward per image")
    assert notes(replace(NETWORK, batch=None))[0].endswith("60.4 GFLOPs (30.2 G multiply-adds) forward")


def test_what_is_unknown_is_said() -> None:
    bare = NetworkReport(path="a.yaml", gpu="a100", mode="training", memory_needs=("N", "dtype"))
    assert notes(bare) == ["unknown parameters, unknown FLOPs", "memory: unknown for want of N, dtype"]
    assert notes(replace(NETWORK, capacity_bytes=None, largest_batch=None))[1].endswith("; the GPU's own is unknown")
    several = notes(replace(NETWORK, batch=None, largest_batch=None))[1]
    assert several.endswith("gradients 9.19 KiB)")  # of several batches none is the largest
    assert notes(replace(NETWORK, largest_batch=0))[1].endswith("; not even one image fits")


def test_inputs_and_targets_are_named_where_there_are_several() -> None:
    both = replace(NETWORK, gpu="t4"), replace(NETWORK, path="b.yaml")
    found = notes(NETWORK, *both, targets=("a100", "t4"))
    assert [line.split(" parameters")[0] for line in found if "parameters" in line] == [
        "nets/spec.yaml: 4.70 k", "b.yaml: 4.70 k",
    ]  # fmt: skip
    assert [line.split(":")[0] for line in found if line.startswith("memory")] == [
        "memory of nets/spec.yaml on a100", "memory of nets/spec.yaml on t4", "memory of b.yaml on a100",
    ]  # fmt: skip


def test_the_host_is_named_only_where_it_is_the_bound() -> None:
    slow = replace(NETWORK, host_us=6042.0, gpu_us=550.0)
    assert host_notes(report(NETWORK)) == []
    assert host_notes(report(replace(NETWORK, host_us=None))) == []
    assert host_notes(report(slow)) == [
        "times: at the pace of the host, which needs about 6.04 ms; the GPU needs 550 us, and what fixes save shows on "
        "a host that keeps up"
    ]


def test_an_image_without_a_batch_is_said_to_be_one() -> None:
    assert batch_notes(report(NETWORK)) == []
    alone = replace(NETWORK, batch=1, unbatched="3x224x224")
    said = "an input of 3x224x224 states no N, and is priced as N = 1; write 64x3x224x224, say, for another"
    assert batch_notes(report(alone)) == batch_notes(report(alone, replace(alone, gpu="t4"))) == [f"batch: {said}"]
    assert batch_notes(report(replace(alone, path="b.yaml"), NETWORK)) == [f"batch of b.yaml: {said}"]


def test_a_dtype_that_is_only_that_of_stored_weights_is_said_to_be_so() -> None:
    whole = full_report()
    entry = next(entry for entry in whole.layers if any(entry.times.values()))
    stored = replace(entry, layer=replace(entry.layer, dtype=Dtype.fp32, dtype_source="storage"))
    for dtype, source in ((Dtype.fp32, "stated"), (Dtype.fp16, "storage")):
        other = replace(entry, layer=replace(entry.layer, dtype=dtype, dtype_source=source))
        assert dtype_notes(replace(whole, layers=(other,))) == []
    assert dtype_notes(replace(whole, layers=(replace(stored, times={}),))) == []
    assert dtype_notes(replace(whole, layers=(stored, stored))) == [
        "dtype: the weights of 2 layers are stored in fp32, and may run in another one: --dtype says in which"
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 "), (999, "999 "), (1000, "1.00 k"), (23_454_912, "23.5 M"), (8.17e9, "8.17 G"), (2.09e12, "2.09 T")],
)
def test_counts_have_three_figures(value: float, text: str) -> None:
    assert count(value) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "0.98 KiB"), (1024, "1.00 KiB"), (40 * 2**30, "40.0 GiB"), (2**60, "1.00 EiB")],
)
def test_sizes_have_three_figures(size: int, text: str) -> None:
    assert binary(size) == text
