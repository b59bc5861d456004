"""The fields of a layer: their names, and what their values mean."""

import os
from pathlib import Path
from time import process_time

import pytest
from checkout import ROOT
from hypothesis import given
from hypothesis import strategies as st
from read_specs import STEM, network, only, sizes, spec

from convlint.model.layer import ConvLayer
from convlint.readers.spec.fields import ALIASES, Look, is_spec_text, look


@pytest.mark.parametrize(("name", "alias"), [(name, alias) for name, aliases in ALIASES.items() for alias in aliases])
def test_every_alias(name: str, alias: str) -> None:
    values = {
        "N": "8", "C": "6", "D": "4", "H": "20", "W": "30", "K": "12", "kernel_size": "5", "stride": "2",
        "padding": "2", "dilation": "3", "groups": "2", "dtype": "bf16", "layout": "channels_last", "bias": "true",
        "op": "conv_transpose", "calls": "4",
    }  # fmt: skip
    if name == "input":
        text = spec(f"name: a, {STEM}", f"{STEM}", "K: 8, kernel_size: 1, {}: a")
        by_name, by_alias = network(text.replace("{}", name)), network(text.replace("{}", alias))
        assert by_alias.edges == by_name.edges
        assert by_alias.edges[-1].producers == (0,)
        return
    plain = {key: value for key, value in values.items() if key not in ("op", "D") or key == name}

    def written(key: str) -> ConvLayer:
        return only(spec(", ".join(f"{key if k == name else k}: {v}" for k, v in plain.items())))

    assert written(alias) == written(name)
    without = {key: value for key, value in plain.items() if key not in (name, "K", "kernel_size")}
    base = only(spec(", ".join(f"{k}: {v}" for k, v in {"K": "10", "kernel_size": "3", **without}.items())))
    assert written(alias) != base


def test_all_sizes() -> None:
    layer = only(
        spec("N: 2, C: 4, H: 30, W: 40, K: 8, R: 3, S: 5, U: 2, V: 3, PadH: 1, PadW: 2, DilH: 2, DilW: 1, groups: 4")
    )
    assert sizes(layer, "N C H W K R S U V PadH PadW DilH DilW groups P Q") == [
        2, 4, 30, 40, 8, 3, 5, 2, 3, 1, 2, 2, 1, 4, 14, 14,
    ]  # fmt: skip
    assert (layer.dims, layer.op, layer.layout, layer.dtype) == (2, "conv", "auto", None)


@pytest.mark.parametrize(
    ("padding", "sides"),
    [
        ("0", (0, 0, 0, 0)),
        ("2", (2, 2, 2, 2)),
        ("[2]", (2, 2, 2, 2)),
        ("[1, 2]", (1, 1, 2, 2)),
        ("[1, 2, 3, 4]", (1, 2, 3, 4)),
        ("[[1, 2], [3, 4]]", (1, 2, 3, 4)),
        ("{ top: 1, bottom: 2, left: 3 }", (1, 2, 3, 0)),
        ("valid", (0, 0, 0, 0)),
        ("VALID", (0, 0, 0, 0)),
        ("same", (2, 2, 3, 3)),
        ("'same'", (2, 2, 3, 3)),
    ],
)
def test_padding(padding: str, sides: tuple[int, int, int, int]) -> None:
    layer = only(spec(f"C: 4, H: 30, W: 40, K: 8, kernel_size: [5, 7], padding: {padding}"))
    assert (layer.PadH, layer.PadH_end, layer.PadW, layer.PadW_end) == sides


@pytest.mark.parametrize(
    ("layer", "sides", "out"),
    [
        # TensorFlow puts the odd element at the end
        ("H: 224, W: 224, kernel_size: 3, stride: 2", (0, 1, 0, 1), (112, 112)),
        ("H: 225, W: 224, kernel_size: 3, stride: 2", (1, 1, 0, 1), (113, 112)),
        ("H: 20, W: 20, kernel_size: 4", (1, 2, 1, 2), (20, 20)),
        ("H: 20, W: 20, kernel_size: 3, dilation: 4", (4, 4, 4, 4), (20, 20)),
        ("H: 20, W: 20, kernel_size: 1, stride: 4", (0, 0, 0, 0), (5, 5)),
        ("W: 20, kernel_size: 3, stride: 2", (None, None, 0, 1), (None, 10)),
        ("op: conv_transpose, H: 7, W: 7, kernel_size: 4, stride: 2", (1, 1, 1, 1), (14, 14)),
        ("op: conv_transpose, H: 7, W: 7, kernel_size: 2, stride: 3", (0, 0, 0, 0), (21, 21)),
    ],
)
def test_same_padding(layer: str, sides: tuple[int | None, ...], out: tuple[int | None, int]) -> None:
    made = only(spec(f"C: 8, K: 8, padding: same, {layer}"))
    assert (made.PadH, made.PadH_end, made.PadW, made.PadW_end) == sides
    assert out == (made.P, made.Q)


@pytest.mark.parametrize(
    ("spelling", "dtype"),
    [("fp16", "fp16"), ("float16", "fp16"), ("torch.float16", "fp16"), ("half", "fp16"), ("bfloat16", "bf16"),
     ("tf.float32", "fp32"), ("TF32", "tf32"), ("double", "fp64"), ("torch.float8_e4m3fn", "fp8"), ("qint8", "int8")],
)  # fmt: skip
def test_dtypes(spelling: str, dtype: str) -> None:
    assert only(spec(f"{STEM}, dtype: {spelling}")).dtype == dtype


@pytest.mark.parametrize(
    ("spelling", "layout"),
    [("NCHW", "NCHW"), ("nhwc", "NHWC"), ("channels_last", "NHWC"), ("torch.channels_last", "NHWC"),
     ("channels_first", "NCHW"), ("NDHWC", "NHWC"), ("auto", "auto")],
)  # fmt: skip
def test_layouts(spelling: str, layout: str) -> None:
    assert only(spec(f"{STEM}, layout: {spelling}")).layout == layout


SAMPLES = sorted((ROOT / "sample_configs").glob("*.yaml"))


@pytest.mark.parametrize(
    "text",
    [
        "version: 1\nlayers:\n  - K: 3\n",
        "layers:\n- out_channels: 3\nversion: 1\n",
        "version: 1\nlayers:\n\n  # the first\n\n  - C: 3\n    kernel: 3\n",
        "layers: [ {C: 3, R: 1} ]\nversion: '1'",
        "version: 1 # ours\nlayers: # all of them\n  - op: relu\n  - filters: 3",
        "'layers': [{kernel_size: 3}]\r\n\"version\": 1\r\n",
        "version: 1\nx-all: &all [{K: 1}]\nlayers: *all\n",
        "version: 1\nx-one: &one {K: 1}\nlayers: [ *one ]\n",
        "version: 1\nx-one: &one {K: 1}\nlayers: [ {<<: *one} ]\n",
        "version: 1\ndefaults: { K: 64 }\nlayers: [ {name: a} ]\n",
        "version: 1\nlayers:\n  - {K: 3}\n  - {",
        "version: 1\nlayers:\n- {",
        "layers:\n  - {K: 3}\nmore: [\nversion: 1\n",
        '{"version": 1, "layers": [{"K": 3}]}',
        '{\n  "x-a": [{"layers": 1}],\n  "name": "layers",\n  "layers": [{"K": 1}], "version": 1\n}',
        "{ [a, b]: 1, {c: 1}: [2], version: 1, layers: [ {? [x] : 1, K: 3} ] }",
    ],
)
def test_specs(text: str) -> None:
    assert is_spec_text(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "on: push\n",
        "# layers:\n# version: 1\n",
        "layers: [ {K: 3} ]\n",  # no version
        "version: 2\nlayers: [ {K: 3} ]\n",
        "version: 2\nlayers:\n- {",
        "version: 1\nlayers: []\n",
        "version: 1\nlayers:\n",
        "version: 1\nlayers: 3\n",
        "version: 1\nlayers: { K: 1 }\n",
        "version: 1\nlayers: [64, 128, 256]\n",  # widths, as a Hydra config has them
        "version: 1\nlayers: [K, R]\n",
        "version: 1\nlayers:\n  - { units: 64, activation: relu }\n",
        "version: 1\nlayers:\n  - { name: a, inner: { K: 1 } }\n",
        "version: 1\nmodel: { layers: [ {K: 1} ] }\n",
        "inner: { version: 1 }\nlayers: [ {K: 1} ]\n",
        "version: 1\nservice: x\nlayers:\n  hello:\n    path: y\n",  # a function's layers
        '{"version": 8, "name": "map", "layers": [{"id": "water", "type": "fill", "filter": ["==", 1]}]}',
        '{"class_name": "Sequential", "config": {"layers": [{"config": {"kernel_size": [3, 3]}}]}}',
        '{"schema_version": 2, "layers": [{"name": "a", "K": 64}]}',  # a report of convlint's own
        '{"a": [, "version": 1, "layers": [{"K": 1}]}',
        "- version: 1\n- layers: [ {K: 1} ]\n",
        "version: 1\n--- \nlayers: [ {K: 1} ]\n",
    ],
)
def test_others(text: str) -> None:
    assert not is_spec_text(text)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_every_sample_is_one(path: Path) -> None:
    seen = look(str(path))
    assert (seen.verdict, seen.text) == ("spec", path.read_text(encoding="utf-8"))


def test_what_cannot_be_read_is_for_the_reader_to_report(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"\xff")
    (tmp_path / "large.yaml").write_bytes(b"layers:\n" + b" " * (4 << 20))
    os.mkfifo(tmp_path / "pipe.yaml")
    for name in ("a.yaml", "large.yaml", "nowhere.yaml", "pipe.yaml", "."):
        assert look(str(tmp_path / name), named=True) == Look(verdict="spec")


def test_what_cannot_be_read_in_a_folder_is_reported_where_it_looks_like_a_spec(tmp_path: Path) -> None:
    for name, text, verdict in (
        ("a.yaml", b"version: 1\nlayers: \xff", "spec"),
        ("b.yaml", b"layers: \xff", "foreign"),
        ("c.yaml", "version: 1\nlayers:\n- {K: 3}\n".encode("utf-16"), "spec"),  # which its reader refuses
        ("d.yaml", "version: 3\nservices: {}\n".encode("utf-16"), "foreign"),
    ):
        (tmp_path / name).write_bytes(text)
        assert look(str(tmp_path / name)).verdict == verdict


LAYERS = "layers: [ {K: 1} ]\n"
LATE = "#" * (1 << 16) + f"\nversion: 1\n{LAYERS}"


@pytest.mark.parametrize(
    ("text", "in_a_folder", "named"),
    [
        (f"version: 1\n{LAYERS}", "spec", "spec"),
        (LAYERS, "no spec", "no spec"),
        ("name: ci\n", "foreign", "no spec"),
        ("jobs:\n  layers: 3\n", "no spec", "no spec"),
        ("layers: many\n", "no spec", "no spec"),
        ('{"version": 1, "layers": [{"K": 1}]}', "spec", "spec"),
        ('{"inner": {"layers": []}}', "no spec", "no spec"),
        ('{"schema_version": 1, "layers": []}', "no spec", "no spec"),
        (LATE, "foreign", "spec"),
        ("", "foreign", "no spec"),
    ],
)
def test_one_look_tells_what_a_file_is(tmp_path: Path, text: str, in_a_folder: str, named: str) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text)
    assert look(str(path)) == Look(verdict=in_a_folder, text=text if in_a_folder == "spec" else None)
    assert look(str(path), named=True) == Look(verdict=named, text=text if named == "spec" else None)


def test_what_is_not_wanted_is_not_read_beyond_its_head(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("layers: many\n")
    assert look(str(path), whole=False) == Look(verdict="spec")
    path.write_text("name: ci\n")
    assert look(str(path), whole=False) == Look(verdict="foreign")


@given(st.text(max_size=50), st.sampled_from(["", "{", "layers:", '{"layers": ']))
def test_no_text_is_too_odd(text: str, start: str) -> None:
    assert is_spec_text(start + text) in (True, False)


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("version: 1\nlayers:\n" + "\n" * 1_000_000 + "  - K: 1\n", True),
        ("version: 1\nlayers:\n" + "#\n" * 1_000_000 + "  - K: 1\n", True),
        ("version: 1\nlayers:" + " " * 1_000_000 + "x\n", False),
        ("layers" + " " * 1_000_000 + "version: x\n", False),
        (" " * 1_000_000 + '{"a": 1, "version": 1, "layers": [{"K": 1}]}', True),
        ('{"version": 1, "a": [' + "1, " * 150_000 + '1], "layers": [{"K": 1}]}', True),
        ('{"version": 1, "a": [' + "1, " * 1_000_000 + '1], "layers": [{"K": 1}]}', False),  # more than a spec may have
        ('{"version": 1, "a": ' + "[" * 100_000 + "]" * 100_000 + ', "layers": [{"K": 1}]}', False),
    ],
)
def test_large_files_are_told_apart_soon(text: str, spec: bool) -> None:
    begin = process_time()
    assert is_spec_text(text) is spec
    assert process_time() - begin < 5
