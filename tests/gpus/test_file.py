"""Defects in the file of a GPU are refused with a complaint that names them."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import yaml
from checkout import ROOT

from convlint.errors import ConvlintError
from convlint.gpus.gpu import Gpu, parse_gpu

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
