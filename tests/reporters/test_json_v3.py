"""JSON: the contract."""

import json

from msgspec.structs import replace
from reports import NETWORK, full_report, layer_times, priced, rendered, total

from convlint.model.estimates import OperationEstimate, StepEstimate
from convlint.model.layer import ConvLayer
from convlint.model.location import CodeEdit
from convlint.model.network import Operation, Work
from convlint.model.report import Alternative, LayerReport, fingerprint

PLAIN = layer_times(50.0, 50.0, 49.0)


def test_json_keys_are_the_contracts() -> None:
    document = json.loads(rendered("json", full_report()))
    assert list(document) == [
        "schema_version", "convlint", "complete", "targets", "mode", "summary", "totals", "runtime", "networks",
        "calibrations", "layers", "findings", "operations", "skipped", "suppressed", "errors",
    ]  # fmt: skip
    assert document["schema_version"] == 3
    comes_to = {
        "grade": "C", "time_us": 3250.0, "lost_us": 258.25, "time_after_us": 2991.75, "grade_after": "B",
        "time_after_fix_us": 3000.5,
    }  # fmt: skip
    of_step = dict.fromkeys(("step_us", "step_after_us", "host_us", "step_parts", "unpriced_operations"))
    assert document["summary"] == {
        "files": 2, "layers": 4, "errors": 1, "warnings": 4, "infos": 1, "skipped": 3, **comes_to, **of_step,
    }  # fmt: skip
    assert list(document["summary"])[-11:] == [*comes_to, *of_step]
    assert document["totals"] == [{"gpu": "a100", "mode": "training", **comes_to, **of_step}]
    (network,) = document["networks"]
    kinds = {"weights": 9408, "gradients": 9408, "optimizer": 0, "activations": 488000000, "workspace": 0}
    assert network == {
        "path": "nets/spec.yaml", "gpu": "a100", "mode": "training", "layers": 0, **comes_to, "batch": 256,
        "batch_assumed": False, "layout_assumed": False,
        "parameters": 4704, "flops": 60423143424, "memory_bytes": {**kinds, "total": 488018816}, "memory_needs": [],
        "capacity_bytes": 42949672960, "largest_batch": 22530, "gpu_us": 3250.0,
        **of_step, "host_us": 228.0, "runtime": {}, "notes": [],
    }  # fmt: skip
    assert list(document["layers"][0]) == [
        "name", "path", "line", "column", "library", "model", "op", "N", "C", "H", "W", "K", "P", "Q", "R", "S", "U",
        "V", "PadH", "PadW", "DilH", "DilW", "groups", "dtype", "layout", "bias", "calls",
        "estimates",
    ]  # fmt: skip
    (estimate,) = document["layers"][0]["estimates"]
    assert {key: value for key, value in estimate.items() if key != "passes"} == {
        "gpu": "a100", "grade": "C", "time_us": 812.5, "time_after_us": 602.25, "ideal_us": 500.0, "basis": "measured",
    }  # fmt: skip
    assert list(estimate) == ["gpu", "grade", "time_us", "time_after_us", "ideal_us", "basis", "passes"]
    assert list(estimate["passes"]) == ["fprop", "wgrad"]
    assert estimate["passes"]["fprop"] == {
        "gemm": {"M": 3211264, "N": 64, "K": 147, "batch": 1}, "flops": 60423143424, "bytes": 488000000,
        "arithmetic_intensity": 123.8, "tile": [128, 64], "split_k": 1, "tiles": 25088, "waves": 116.148,
        "tile_efficiency": 1.0, "wave_efficiency": 0.9927, "workspace_bytes": 0, "copies_us": 0.0,
        "time_us": 406.25, "tflops": 148.7, "bound_by": "memory",
    }  # fmt: skip
    assert document["findings"][0] == {
        "code": "CL103", "name": "first-layer-channels", "severity": "warning",
        "message": "C=3 leaves most of each vector empty; C=4 has its own kernels", "layer": "stem",
        "layers": [], "path": "nets/spec.yaml", "line": 5, "column": 22, "end_line": 5, "end_column": 23,
        "library": None, "model": None, "gpu": None,
        "advised": True, "lost_us": 210.25, "lost_alone_us": 210.25, "lost_capacity_us": None, "lost_percent": 6.47,
        "lost_step_us": None, "pays_with": [], "alternatives": [], "basis": "measured",
        "fix": {"describe": "use C=4, zero-filled", "safety": "safe", "set": {"C": 4}, "by_layer": [],
                "time_change_us": -210.25, "applicable": True, "code_edits": [], "no_edit": None},
        "source": {"document": "convolutional-layers-guide", "section": "4.4.3 Channels In And Out"},
        "fingerprint": full_report().findings[0].fingerprint, "fingerprints": [],
    }  # fmt: skip
    keys = (
        "code name severity message layer layers path line column end_line end_column library model gpu advised "
        "lost_us lost_step_us lost_alone_us lost_capacity_us lost_percent pays_with alternatives "
        "basis fix source fingerprint fingerprints"
    )
    assert [list(finding) for finding in document["findings"]] == [keys.split()] * 6
    assert document["findings"][5]["lost_capacity_us"] == 120.5
    assert document["findings"][5]["fix"] is None
    assert document["skipped"][0] == {"code": "CL402", "layer": "conv2", "path": "nets/spec.yaml", "needs": ["dtype"]}
    assert document["suppressed"][0] == {
        "code": "CL102", "layer": "head", "path": "nets/spec.yaml", "line": 8, "reason": "classes",
    }  # fmt: skip
    assert document["errors"] == [
        {"path": "nets/other.yaml", "line": 3, "column": 7, "message": "H is not a whole number: 1.5"}
    ]
    assert document["complete"] is False


def test_json_of_a_finding_that_joins_layers() -> None:
    """Its fingerprints are those of its layers, in their order."""
    joined = full_report().findings[4]
    document = json.loads(rendered("json", full_report(findings=(replace(joined, pays_with=("CL102", "CL106")),))))
    (found,) = document["findings"]
    assert found["layer"] is None
    assert found["layers"] == ["stem", "conv2", "conv3", "head"]
    assert found["pays_with"] == ["CL102", "CL106"]
    assert found["fingerprint"] == joined.fingerprint
    assert found["fingerprints"] == [fingerprint(identity) for identity in joined.identities]
    assert len({found["fingerprint"], *found["fingerprints"]}) == 5


def test_json_has_a_total_for_each_target_and_mode() -> None:
    training, inference = total("a100", layer_times(100.0, 80.0, 76.0)), total("a100", PLAIN, "inference")
    report = full_report(total=training, totals=(training, inference, total("t4", None)))
    document = json.loads(rendered("json", report))
    keys = ("grade", "time_us", "lost_us", "time_after_us", "grade_after", "time_after_fix_us")
    values = (("B", 100.0, 20.0, 80.0, "A", None), ("A", 50.0, 0.0, 50.0, "A", None), (None,) * 6)
    where = (("a100", "training"), ("a100", "inference"), ("t4", "training"))
    of_step = dict.fromkeys(("step_us", "step_after_us", "host_us", "step_parts", "unpriced_operations"))
    assert document["totals"] == [
        {"gpu": gpu, "mode": mode, **dict(zip(keys, each, strict=True)), **of_step}
        for (gpu, mode), each in zip(where, values, strict=True)
    ]
    assert document["summary"]["time_us"] == 100.0


def test_json_of_alternatives_and_of_what_is_about_the_step() -> None:
    others = (
        Alternative(describe="K=512", set={"K": 512}, time_change_us=-42.125, work_change=-0.0154),
        Alternative(describe="\x1b[1mK=576", set={"K": 576}),
    )
    report = full_report(findings=(priced(alternatives=others, lost_step_us=12.5, basis="assumed"),))
    (found,) = json.loads(rendered("json", report))["findings"]
    assert found["alternatives"] == [
        {"describe": "K=512", "set": {"K": 512}, "time_change_us": -42.125, "work_change": -0.0154},
        {"describe": "K=576", "set": {"K": 576}, "time_change_us": None, "work_change": None},
    ]
    assert (found["lost_us"], found["lost_step_us"], found["basis"]) == (None, 12.5, "assumed")


def test_json_of_what_is_unknown() -> None:
    bare = LayerReport(layer=ConvLayer(name="x", path="m", PadH=None, PadW=None), estimates={"a100": None})
    report = full_report(layers=(bare,), total=total("a100", None), totals=(), findings=(priced(lost_us=float("nan")),))
    document = json.loads(rendered("json", report))
    (layer,) = document["layers"]
    assert [layer[key] for key in ("line", "column", "N", "P", "PadH", "dtype")] == [None] * 6
    assert layer["layout"] == "auto"
    nothing = dict.fromkeys(("grade", "time_us", "time_after_us", "ideal_us", "basis"))
    assert layer["estimates"] == [{"gpu": "a100", **nothing, "passes": {}}]
    assert [document["summary"][key] for key in ("grade", "time_us", "lost_us", "time_after_us")] == [None] * 4
    (found,) = document["findings"]
    prices = ("lost_us", "lost_alone_us", "lost_capacity_us", "lost_percent")
    assert [found[key] for key in prices] == [None] * 4
    without = json.loads(rendered("json", full_report(total=None, totals=())))
    assert (without["summary"]["grade"], without["totals"]) == (None, [])


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


def test_edits_of_code_are_told_byte_for_byte() -> None:
    report = full_report()
    first = report.findings[0]
    assert first.fix is not None
    edit = CodeEdit(path="net.py", start=120, end=120, new="\r\n\tbias=False,")
    fix = replace(first.fix, code_edits=(edit,), no_edit="net.py:3: K comes from \x1b`w`")
    document = json.loads(rendered("json", replace(report, findings=(replace(first, fix=fix),))))
    (finding,) = document["findings"]
    assert finding["fix"]["code_edits"] == [{"path": "net.py", "start": 120, "end": 120, "new": "\r\n\tbias=False,"}]
    assert "\x1b" not in finding["fix"]["no_edit"]


def test_json_has_the_step_and_each_operation_of_it() -> None:
    relu = Work(kind="activation", op="relu", reads=(8,), writes=8)
    odd = Work(kind="unknown", op="roi_align", reads=(8,), writes=8)
    operations = (Operation(kind="conv", layer=0), Operation(kind="identity", name="r", work=relu, path="net.py",
                  span=(3, 5, 3, 9)), Operation(kind="reshape", name="x", work=odd))  # fmt: skip
    step = StepEstimate(
        parts={"convolution": 60.0, "pointwise": 40.0}, host_us=150.0,
        operations=(None, OperationEstimate("pointwise", 40.0, 32, 0, 1), None), unpriced=(2,),
    )  # fmt: skip
    on_t4 = replace(NETWORK, gpu="t4", step=step, operations=operations, step_after_us=None)
    on_a100 = replace(NETWORK, step=step, operations=operations, step_after_us=120.0)
    whole = replace(total("a100", PLAIN), networks=(on_a100,))
    document = json.loads(rendered("json", full_report(networks=(on_a100, on_t4), total=whole, totals=(whole,))))
    of_step = {key: document["summary"][key] for key in ("step_us", "step_after_us", "host_us", "unpriced_operations")}
    assert of_step == {"step_us": 150.0, "step_after_us": 120.0, "host_us": 150.0, "unpriced_operations": 1}
    parts = document["summary"]["step_parts"]
    assert list(parts) == ["convolution", "linear", "attention", "normalisation", "pointwise", "copy", "pool",
                           "optimizer", "other"]  # fmt: skip
    assert (parts["convolution"], parts["pointwise"], parts["other"]) == (60.0, 40.0, 0.0)
    assert document["networks"][1]["step_after_us"] is None
    first, second = document["operations"]
    one = {"time_us": 40.0, "bytes": 32, "flops": 0, "part": "pointwise"}
    assert first == {"name": "r", "op": "relu", "path": "net.py", "line": 3, "calls": 1,
                     "estimates": [{"gpu": "a100", **one}, {"gpu": "t4", **one}]}  # fmt: skip
    assert second["estimates"][0] == {"gpu": "a100", "time_us": None, "bytes": None, "flops": None, "part": "other"}
