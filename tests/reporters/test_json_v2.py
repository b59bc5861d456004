"""JSON: the contract."""

from __future__ import annotations

import json

from reports import full_report, rendered

from convlint.model.layer import ConvLayer
from convlint.report import LayerReport


def test_json_keys_are_the_contracts() -> None:
    document = json.loads(rendered("json", full_report()))
    assert list(document) == [
        "schema_version", "convlint", "complete", "targets", "mode", "summary", "layers", "findings", "skipped",
        "suppressed", "errors",
    ]  # fmt: skip
    assert document["summary"] == {
        "files": 2, "layers": 4, "errors": 1, "warnings": 4, "infos": 1, "skipped": 3, "grade": "C",
        "time_us": 9102.5, "lost_us": 258.25,
    }  # fmt: skip
    assert list(document["layers"][0]) == [
        "name", "path", "line", "column", "op", "N", "C", "H", "W", "K", "P", "Q", "R", "S", "U", "V", "PadH", "PadW",
        "DilH", "DilW", "groups", "dtype", "layout", "estimates",
    ]  # fmt: skip
    (estimate,) = document["layers"][0]["estimates"]
    assert list(estimate) == ["gpu", "grade", "time_us", "basis", "passes"]
    assert list(estimate["passes"]) == ["fprop", "wgrad"]
    assert estimate["passes"]["fprop"] == {
        "gemm": {"M": 3211264, "N": 64, "K": 147, "batch": 1}, "flops": 60423143424, "bytes": 488000000,
        "arithmetic_intensity": 123.8, "tile": [128, 64], "split_k": 1, "tiles": 25088, "waves": 116.148,
        "tile_efficiency": 1.0, "wave_efficiency": 0.9927, "time_us": 406.25, "tflops": 148.7, "bound_by": "memory",
    }  # fmt: skip
    assert document["findings"][0] == {
        "code": "CL103", "name": "first-layer-channels", "severity": "warning",
        "message": "C=3 leaves most of each vector empty; C=4 has its own kernels", "layer": "stem",
        "path": "nets/spec.yaml", "line": 5, "column": 22, "end_line": 5, "end_column": 23, "gpu": None,
        "lost_us": 210.25, "lost_percent": 2.31,
        "fix": {"describe": "use C=4, zero-filled", "safety": "safe", "set": {"C": 4}, "time_change_us": -210.25},
        "source": {"document": "convolutional-layers-guide", "section": "4.4.3 Channels In And Out"},
        "fingerprint": "CL103-stem",
    }  # fmt: skip
    assert document["findings"][4]["layer"] is None
    assert document["findings"][5]["fix"] is None
    assert document["skipped"][0] == {"code": "CL402", "layer": "conv2", "path": "nets/spec.yaml", "needs": ["dtype"]}
    assert document["suppressed"][0] == {
        "code": "CL102", "layer": "head", "path": "nets/spec.yaml", "line": 8, "reason": "classes",
    }  # fmt: skip
    assert document["errors"] == [
        {"path": "nets/other.yaml", "line": 3, "column": 7, "message": "H is not a whole number: 1.5"}
    ]
    assert document["complete"] is False


def test_json_of_what_is_unknown() -> None:
    bare = LayerReport(layer=ConvLayer(name="x", path="m", PadH=None, PadW=None), estimates={"a100": None})
    report = full_report(layers=(bare,), grade=None, time_us=None, lost_us=float("nan"))
    document = json.loads(rendered("json", report))
    (layer,) = document["layers"]
    assert [layer[key] for key in ("line", "column", "N", "P", "PadH", "dtype")] == [None] * 6
    assert layer["layout"] == "auto"
    assert layer["estimates"] == [{"gpu": "a100", "grade": None, "time_us": None, "basis": None, "passes": {}}]
    assert [document["summary"][key] for key in ("grade", "time_us", "lost_us")] == [None] * 3


def test_json_adds_keys_only_for_3d_and_asymmetric_layers() -> None:
    volume = ConvLayer(name="v", dims=3, D=8, T=3, Z=8, PadD=1, PadD_end=1)
    uneven = ConvLayer(name="u", PadH=0, PadH_end=1, PadW=1, PadW_end=1)
    report = full_report(layers=(LayerReport(layer=volume), LayerReport(layer=uneven)))
    first, second = json.loads(rendered("json", report))["layers"]
    assert {key: first[key] for key in ("D", "T", "Z", "StrideD", "PadD", "DilD")} == {
        "D": 8, "T": 3, "Z": 8, "StrideD": 1, "PadD": 1, "DilD": 1,
    }  # fmt: skip
    assert "PadH_end" not in first
    assert second["PadH_end"] == 1
    assert "PadW_end" not in second
    assert "D" not in second
