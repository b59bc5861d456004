"""Which library releases run on which GPU."""

import pytest
import yaml
from checkout import ROOT

from convlint.gpus.gpu import gpu_names, load_gpu
from convlint.gpus.support import (
    dropped,
    first_version,
    is_settled,
    lack_of,
    lacks,
    last_version,
    parse_support,
    too_old,
)
from convlint.model.errors import ConvlintError
from convlint.model.layer import Dtype
from convlint.model.runtime import Runtime, Version

FILE = ROOT / "convlint" / "gpus" / "support.yaml"


@pytest.mark.parametrize(
    ("library", "version", "gpu", "expected"),
    [
        ("cuda", "10.2", "k10", False),
        ("cuda", "11.0", "k10", True),
        ("cuda", "11.8", "k80", False),
        ("cuda", "12.0", "k80", True),
        ("cuda", "12.9", "v100", False),
        ("cuda", "13.0", "v100", True),
        ("cuda", "13.0", "gtx-1080-ti", True),
        ("cuda", "13.0", "xavier", True),
        ("cuda", "13.0", "t4", False),
        ("cuda", "5.0", "k10", False),
        ("cudnn", "7.6.5", "k10", False),
        ("cudnn", "8.4", "k10", None),  # depends on the CUDA it was built for
        ("cudnn", "8.4", "k80", False),
        ("cudnn", "8.5.0", "k80", False),
        ("cudnn", "8.7.0", "k80", None),
        ("cudnn", "8.9.5", "k80", True),
        ("cudnn", "8.9.5", "k10", True),
        ("cudnn", "9.10.2", "m40", False),
        ("cudnn", "9.11.0", "m40", True),
        ("cudnn", "9.11.0", "v100", True),
        ("cudnn", "9.11.0", "t4", False),
        ("cudnn", "9.11.0", "xavier", None),  # comes with JetPack
        ("tensorrt", "8.5.3", "m40", False),
        ("tensorrt", "8.6.1", "m40", True),
        ("tensorrt", "8.6.1", "k80", True),
        ("tensorrt", "8.6.1", "p100", False),
        ("tensorrt", "9.2", "p100", None),
        ("tensorrt", "10.1", "p100", True),
        ("tensorrt", "10.4", "v100", False),
        ("tensorrt", "10.5", "v100", True),
        ("tensorrt", "10.5", "t4", False),
        ("pytorch", "2.9", "k80", None),
        ("jax", "0.5", "a100", None),
    ],
)
def test_dropped(library: str, version: str, gpu: str, expected: bool | None) -> None:
    assert dropped(library, Version(version), load_gpu(gpu)) is expected


@pytest.mark.parametrize(
    ("library", "version", "gpu", "expected"),
    [
        ("cuda", "11.7", "h100", True),
        ("cuda", "11.8", "h100", False),
        ("cuda", "12.6", "b200", True),
        ("cuda", "12.8", "b200", False),
        ("cuda", "12.6", "rtx-5090", True),
        ("cuda", "11.0", "rtx-3090", False),  # runs the code for 8.0
        ("cuda", "11.7", "rtx-4090", False),
        ("cuda", "10.2", "rtx-3090", True),
        ("cuda", "12.6", "b300", True),
        ("cuda", "12.8", "b300", False),  # runs the code for 10.0
        ("cuda", "12.8", "gb10", False),  # shares its memory, but is no Tegra: runs the code for 12.0
        ("cuda", "12.9", "thor", True),
        ("cuda", "13.0", "thor", False),
        ("cudnn", "9.6", "gb10", True),
        ("cudnn", "9.6", "thor", None),
        ("cuda", "11.3", "orin", True),  # Tegra runs its own code only
        ("cuda", "11.4", "orin", False),
        ("cuda", "8.0", "v100", True),
        ("cuda", "4.0", "k10", None),
        ("cudnn", "7.6.5", "a100", True),
        ("cudnn", "7.6.5", "rtx-3090", True),
        ("cudnn", "8.0.4", "rtx-3090", False),
        ("cudnn", "7.6.5", "v100", False),
        ("cudnn", "8.9.6", "h100", False),
        ("cudnn", "8.6", "h100", None),
        ("cudnn", "9.6", "b200", True),
        ("cudnn", "9.7", "rtx-5090", False),
        ("tensorrt", "10.1", "h100", False),
        ("tensorrt", "8.4", "h100", None),
        ("pytorch", "2.6", "rtx-5090", True),
        ("pytorch", "2.7.1", "b200", False),
        ("pytorch", "2.6", "a100", None),
        ("jax", "0.5", "a100", None),
    ],
)
def test_too_old(library: str, version: str, gpu: str, expected: bool | None) -> None:
    assert too_old(library, Version(version), load_gpu(gpu)) is expected


@pytest.mark.parametrize(
    ("library", "version", "gpu", "early", "late"),
    [
        ("cuda", "11.2", "a100", False, False),
        ("cuda", "10.2", "a100", True, False),
        ("cuda", "13.0", "p100", False, True),
        ("cudnn", "8.7", "k80", False, None),
        ("tensorrt", "8.5", "a100", None, False),
        ("jax", "0.5", "a100", None, None),
    ],
)
def test_too_old_and_past_its_time(
    library: str, version: str, gpu: str, early: bool | None, late: bool | None
) -> None:  # fmt: skip
    asked = library, Version(version), load_gpu(gpu)
    assert (too_old(*asked), dropped(*asked)) == (early, late)


@pytest.mark.parametrize(
    ("library", "gpu", "first", "last"),
    [
        ("cuda", "k10", None, "10.2"),
        ("cuda", "k20", "5.0", "11.8"),
        ("cuda", "k80", "6.5", "11.8"),
        ("cuda", "m40", "6.5", "12.9"),
        ("cuda", "p100", "8.0", "12.9"),
        ("cuda", "v100", "9.0", "12.9"),
        ("cuda", "t4", "10.0", None),
        ("cuda", "a100", "11.0", None),
        ("cuda", "rtx-3090", "11.1", None),
        ("cuda", "rtx-4090", "11.8", None),
        ("cuda", "h100", "11.8", None),
        ("cuda", "b200", "12.8", None),
        ("cuda", "b300", "12.9", None),
        ("cuda", "thor", "13.0", None),
        ("cuda", "jetson-nano", None, None),  # JetPack's, 10.2
        ("cuda", "jetson-agx-xavier", "9.1", None),
        ("cuda", "rtx-5090", "12.8", None),
        ("cuda", "gb10", "12.9", None),
        ("cudnn", "k10", None, "8.4 with CUDA 10.2"),
        ("cudnn", "k80", None, "8.5"),
        ("cudnn", "v100", None, "9.10"),
        ("cudnn", "rtx-3090", "8.0", None),
        ("cudnn", "b200", "9.7", None),
        ("cudnn", "orin", None, None),
        ("tensorrt", "k80", None, "8.5"),
        ("tensorrt", "m40", None, "8.5"),
        ("tensorrt", "p100", None, "8.6"),
        ("tensorrt", "v100", None, "10.4"),
        ("tensorrt", "a100", None, None),
        ("pytorch", "b200", "2.7", None),
        ("jax", "a100", None, None),
    ],
)
def test_first_and_last(library: str, gpu: str, first: str | None, last: str | None) -> None:
    got = first_version(library, load_gpu(gpu))
    assert (None if got is None else str(got)) == first
    assert last_version(library, load_gpu(gpu)) == last


@pytest.mark.parametrize("library", ["cuda", "cudnn", "tensorrt", "pytorch"])
def test_what_is_gone_stays_gone_and_what_has_come_stays(library: str) -> None:
    releases = [Version(f"{major}.{minor}") for major in range(2, 14) for minor in range(12)]
    for name in gpu_names():
        gpu = load_gpu(name)
        gone = [dropped(library, release, gpu) for release in releases]
        early = [too_old(library, release, gpu) for release in releases]
        if True in gone:
            assert set(gone[gone.index(True) :]) == {True}
        if False in early:
            assert set(early[early.index(False) :]) == {False}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('value: "12.8", source: ptxas', 'value: "12.8", source: hearsay'),
        ('value: "12.8", source: ptxas', 'value: "newest", source: ptxas'),
        ('value: "12.8", source: ptxas', 'version: "12.8", source: ptxas'),
        ('since: "9.0", value: "3.0"', 'since: "19.0", value: "3.0"'),
        ("sources:\n", "origins:\n"),
    ],
)
def test_defective_table_is_refused(old: str, new: str) -> None:
    text = FILE.read_text()
    assert old in text
    parse_support(yaml.safe_load(text))
    with pytest.raises(ConvlintError, match=r"support\.yaml"):
        parse_support(yaml.safe_load(text.replace(old, new, 1)))


KNOWN = {"pytorch", "tensorflow", "jax", "tensorrt", "onnxruntime", "mxnet", "cudnn", None}


def test_every_row_has_a_source_and_says_something_of_its_own() -> None:
    for lack in lacks():
        assert lack.source.startswith("https://")
        assert lack.framework in KNOWN
        assert lack.says
        assert lack.fix
        assert lack.mode in ("training", "inference", None)
        assert lack.framework is not None or lack.dtype is not None
        assert lack.unless is None or hasattr(Runtime(), lack.unless)
    assert len({lack.says for lack in lacks()}) == len(lacks())


@pytest.mark.parametrize("lack", lacks(), ids=lambda lack: lack.says)
def test_what_is_had_instead_is_had(lack) -> None:
    if lack.instead is None:
        return
    runtime = Runtime(framework=lack.framework)
    for mode in ("training", "inference"):
        if lack.mode in (None, mode):
            assert lack_of(runtime, lack.instead, mode, load_gpu("a100")) is None


def test_a_row_holds_below_its_compute_capability_and_without_its_setting() -> None:
    pytorch, onnxruntime = Runtime(framework="pytorch"), Runtime(framework="onnxruntime")
    for gpu, expected in (("h100-sxm", True), ("b200", False)):
        assert (lack_of(pytorch, Dtype.fp8, "inference", load_gpu(gpu)) is not None) == expected
    assert lack_of(onnxruntime, Dtype.int8, "inference", load_gpu("t4")) is not None


def test_without_a_framework_what_all_have_or_none_is_settled() -> None:
    nobody = Runtime()
    assert is_settled(nobody, Dtype.fp16, "training")
    assert is_settled(nobody, Dtype.int8, "training")
    assert not is_settled(nobody, Dtype.int8, "inference")
    assert not is_settled(nobody, Dtype.fp8, "training")
    assert is_settled(Runtime(framework="jax"), Dtype.fp8, "training")
