"""A word is a module only where the user typed one, and input shapes fit the models that they are given for."""

import json
import os
import re
import struct
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import slow_contract
from checkout import ROOT
from command_line import convlint
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper
from onnx_graphs import model, save, value, weight

from convlint import lint
from convlint.model.errors import InputFault
from convlint.model.layer import ConvLayer, Dtype
from convlint.model.network import Network
from convlint.readers import ReadOptions, discovery
from convlint.readers.inputs import (
    Input,
    by_name,
    decide,
    file_input,
    how_to_set,
    looks_like_reference,
    looks_like_shapes,
    named_inputs,
    of_model,
    parse_shape,
    parse_shapes,
    refuse_lists,
    states_fp32,
)
from convlint.readers.reading import Reading
from convlint.readers.references import Reference, parse_reference


@slow_contract
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("m:Net", Reference(module="m", attributes=("Net",))),
        ("a.b:zoo.make", Reference(module="a.b", attributes=("zoo", "make"))),
        ("m:Net()", Reference(module="m", attributes=("Net",), called=True)),
        (
            "m:Net(3, 'a', width=-1.5, deep=True, sizes=[1, (2, 3)], none=None, table={'a': 1})",
            Reference(
                module="m", attributes=("Net",), called=True, arguments=(3, "a"),
                keywords={"width": -1.5, "deep": True, "sizes": [1, (2, 3)], "none": None, "table": {"a": 1}},
            ),
        ),
        ("m:zoo.make('x').net.body", Reference(module="m", attributes=("zoo", "make"), called=True, arguments=("x",),
                                               then=("net", "body"))),
        (" m : Net ( 3 ) ", Reference(module="m", attributes=("Net",), called=True, arguments=(3,))),
    ],
)  # fmt: skip
def test_references_are_read(text: str, expected: Reference) -> None:
    assert parse_reference(text) == expected


@slow_contract
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("m", "is not package.module:name"),
        ("m:", "is not package.module:name"),
        (":Net", "is not package.module:name"),
        ("a b:Net", "is not package.module:name"),
        ("m:Net(", "is no Python expression"),
        ("m:Net(foo())", "'foo()' is no literal"),
        ("m:Net(width)", "'width' is no literal"),
        ("m:Net(*[1, 2])", "arguments are written out, not spread"),
        ("m:Net(**{'a': 1})", "arguments are written out, not spread"),
        ("m:Net()()", "neither a name nor a name that is called once"),
        ("m:Net[0]", "neither a name nor a name that is called once"),
        ("m:__import__('os').system('x')", "neither a name nor a name that is called once"),
        ("m:lambda: 3", "neither a name nor a name that is called once"),
        ("m:Net(" + "[" * 60 + "]" * 60 + ")", "has too many brackets"),
        ("m:" + "a" * 3000, "longer than 2,000 characters"),
    ],
)
def test_what_is_wrong_is_said(text: str, message: str) -> None:
    with pytest.raises(InputFault) as caught:
        parse_reference(text)
    assert message in caught.value.message


@slow_contract
@given(st.text(max_size=60))
def test_no_text_is_too_odd(text: str) -> None:
    for prefix in ("", "m:", "m:Net("):
        with suppress(InputFault):
            parse_reference(prefix + text)


@slow_contract
@pytest.mark.parametrize(
    ("text", "looks"),
    [
        ("m:Net", True), ("a.b:c.d", True), ("m:Net(3, 'x y')", True), ("m:make('a:b').body", True),
        ("m:Net(foo())", True), ("C:\\\\net.onnx", False), ("m:", False), ("m:Net)", False), ("a b:c", False),
        ("https://x.y/z", False), ("m:Net(3", False), ("m:" + "a" * 3000, False),
    ],
)  # fmt: skip
def test_words_that_are_written_as_references(text: str, looks: bool) -> None:
    assert looks_like_reference(text) == looks


NAMES = ("evil:Net.yaml", "evil:Net", "evil:Net.onnx", "evil:Net.json", "evil:net.pt2")
SPEC = "version: 1\nlayers:\n  - {name: a, N: 8, C: 64, H: 8, W: 8, K: 64, R: 3, S: 3, dtype: fp16, layout: NHWC}\n"


@pytest.fixture
def trap(here: Path) -> Path:
    """A folder whose `evil.py` leaves a mark when it is imported, beside files that are named like its members."""
    (here / "evil.py").write_text("open('ran', 'w').close()\nclass Net: yaml = onnx = json = None\n")
    for name in NAMES:
        (here / name).write_text(SPEC)
    (here / "sub").mkdir()
    (here / "sub" / "evil:Net.yaml").write_text(SPEC)
    return here


@slow_contract
@pytest.mark.parametrize("word", ["evil:Net", "pkg.mod:name.attr"])
def test_what_is_not_there_and_is_written_as_a_module_is_one(word: str) -> None:
    assert decide(word) == Input(kind="module", name=word)
    assert decide(word, modules=False) == Input(kind="file", name=word)


@slow_contract
@pytest.mark.parametrize("word", ["./evil:Net", "evil:Net.yaml", "a b:c", "C:\\a.onnx", "evil:", ":Net", "nul\0:Net"])
def test_what_is_written_otherwise_is_a_file(word: str) -> None:
    assert decide(word).kind == "file"


@slow_contract
def test_standard_input_and_a_file_of_its_name() -> None:
    assert decide("-") == Input(kind="stdin", name="-")
    assert file_input("-") == Input(kind="file", name="./-")


@slow_contract
@pytest.mark.usefixtures("trap")
@pytest.mark.parametrize("make", [lambda p: p.write_text(""), lambda p: p.symlink_to("gone"), lambda p: p.symlink_to(p),
                                  lambda p: os.mkfifo(p), lambda p: p.mkdir()])  # fmt: skip
def test_whatever_has_the_name_on_disk_keeps_it_from_being_a_module(make: object) -> None:
    path = Path("evil:Other")
    make(path)  # type: ignore[operator]
    assert decide("evil:Other").kind == "file"


@slow_contract
def test_a_name_that_cannot_be_looked_up_is_no_module(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: str) -> None:
        raise PermissionError(13, "denied", path)

    monkeypatch.setattr(os, "lstat", refused)
    assert decide("evil:Net").kind == "file"


@slow_contract
@pytest.mark.usefixtures("trap")
def test_walking_and_patterns_find_files_only() -> None:
    for arguments in (["."], ["*"], ["evil:*"], ["**/*.yaml"], list(NAMES)):
        found, _ = discovery.discover(arguments)
        assert {source.kind for source in found} <= {"file", "source"}, arguments  # Python is read, and never run


def commands() -> list[list[str]]:
    words = [*NAMES, ".", "*.yaml", "./evil:Net.yaml", "sub/evil:Net.yaml"]
    return [
        *(["check", word] for word in words),
        ["check", "--specs-only", *NAMES],
        ["check", "--specs-only", "evil:Gone"],
        ["check", "--files-only", "evil:Gone"],
        ["check", "--jobs", "2", *NAMES],
        *([command, word] for command in ("estimate", "export", "config") for word in NAMES),
        ["sweep", "evil:Net.yaml", "-N", "1:4"],
        ["sweep", "evil:Net", "-N", "1:4"],
    ]


@slow_contract
@pytest.mark.parametrize("arguments", commands(), ids=" ".join)
def test_no_command_runs_what_lies_on_disk(arguments: list[str], trap: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "convlint", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert not (trap / "ran").exists()
    assert ran.returncode in (0, 1, 3), ran.stderr


@slow_contract
def test_absolute_paths_are_files(trap: Path) -> None:
    assert decide(str(trap / "evil:Net.yaml")).kind == "file"


@slow_contract
def test_a_path_object_is_a_file(trap: Path) -> None:
    report = lint(Path("evil:Gone"))
    assert not (trap / "ran").exists()
    assert len(report.errors) == 1
    report = lint([Path("evil:Net.yaml")])
    assert [entry.layer.name for entry in report.layers] == ["a"]


def test_unnamed_inputs_are_kept_in_order():
    given = named_inputs(["8x3x64x64", "mask=8x1x64x64", "8x4"])
    assert given == {"": "8x3x64x64,\n8x4", "mask": "8x1x64x64"}


def test_sizes_that_are_given_one_by_one_are_inputs_of_one_axis():
    shapes = parse_shapes(named_inputs(["77", "10", "5"])[""])
    assert [shape.sizes for shape in shapes] == [(77,), (10,), (5,)]
    with pytest.raises(InputFault, match="did you mean 77x10x5"):
        parse_shapes(named_inputs(["77,10,5"])[""])


def test_unnamed_inputs_go_to_the_inputs_in_order():
    assert by_name({"": "1x2,\n3x4"}, ["a", "b", "c"], "the model") == {"a": "1x2", "b": "3x4"}
    with pytest.raises(InputFault, match="2 input shapes are given"):
        by_name({"": "1x2,3x4"}, ["a"], "the model")


@pytest.mark.parametrize(
    ("text", "sizes", "dtype", "channels_last"),
    [
        ("8x3x64x64", (8, 3, 64, 64), None, False),
        ("8x3x64x64:fp16", (8, 3, 64, 64), "float16", False),
        ("8x3x64x64:channels_last:bf16", (8, 3, 64, 64), "bfloat16", True),
        ("Nx3x8x8", (5, 3, 8, 8), None, False),
        ("5x3x8x8", (5, 3, 8, 8), None, False),
    ],
)
def test_shapes(text, sizes, dtype, channels_last):
    shape = parse_shape(text, 5 if sizes[0] == 5 else None)
    assert (shape.sizes, shape.dtype, shape.channels_last) == (sizes, dtype, channels_last)


@pytest.mark.parametrize("text", ["8x3:fp16:fp32", "8x3:nosuch", "8xM", "0x3", "", "99999999999x3"])
def test_what_is_no_shape_is_refused(text):
    with pytest.raises(InputFault):
        parse_shape(text)


def test_a_batch_that_contradicts_the_shape_is_refused():
    with pytest.raises(InputFault, match="write N"):
        parse_shapes("8x3x64x64", 64)


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("8x3x64x64", False), ("8x3x64x64:fp32", True), ("8x3x64x64:torch.float32", True), ("Nx3x8x8: Float ", True),
        ("8x3x64x64:channels_last:fp32", True), ("8x3x64x64:fp16", False), ("8x4:int64,8x3x64x64:fp32", True),
        ("8x3x64x64:fp64", False), ("", False),
        ("net.inputs:fp32", False), ("N.x:float", False),  # functions that make inputs, whatever their names
    ],
)  # fmt: skip
def test_whether_an_input_is_said_to_be_fp32(text, stated):
    assert states_fp32(text) is stated


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("1,3,224,224", "1x3x224x224"), ("N,3,224,224", "Nx3x224x224"), ("(1, 3, 224, 224)", "1x3x224x224"),
        ("[1,3,224,224]", "1x3x224x224"), ("8,3,32,32:fp16", "8x3x32x32:fp16"),
        ("8,3,32,32:nhwc", "8x3x32x32:channels_last"), ("3,224,224", "3x224x224"), ("(8, 8, 8)", "8x8x8"),
    ],
)  # fmt: skip
def test_commas_between_sizes_are_a_mistake(text, meant):
    with pytest.raises(InputFault, match=f"did you mean {meant}\\?"):
        parse_shapes(text, 4)


@pytest.mark.parametrize("text", ["16,16", "16,16,16", "8x3x32x32,8", "8x3x32x32,8:int64", "8,8:int64", ""])
def test_commas_between_inputs_are_none(text):
    refuse_lists(text)


@pytest.mark.parametrize(
    ("word", "meant"),
    [("nhwc", "channels_last"), ("NHWC", "channels_last"), ("channels-last", "channels_last"), ("fp17", "fp16"),
     ("flaot16", "float16"), ("chanels_last", "channels_last")],
)  # fmt: skip
def test_words_that_are_nearly_known_get_a_suggestion(word, meant):
    with pytest.raises(InputFault, match=f"unknown dtype .*did you mean '{meant}'"):
        parse_shape(f"8x3x32x32:{word}")


def test_a_capital_x_stands_between_sizes_too():
    assert parse_shape("8X3X32X32").sizes == (8, 3, 32, 32)
    assert looks_like_shapes("8X3X32X32:fp16")


def stated(dtype: Dtype | None, inputs: dict[str, str]) -> bool:
    """Whether a layer of a model has a dtype that somebody stated."""
    layers = (ConvLayer(name="a", dtype=dtype), ConvLayer(name="b", dtype=Dtype.fp16))
    network = of_model(Network(path="m.onnx", layers=layers), ReadOptions(inputs=inputs), "storage")
    assert [layer.dtype for layer in network.layers] == [dtype, Dtype.fp16]
    assert network.layers[1].dtype_source == "stated"
    return network.layers[0].dtype_source == "stated"


@pytest.mark.parametrize(
    ("dtype", "inputs", "expected"),
    [
        (Dtype.fp32, {}, False),
        (Dtype.fp32, {"": "8x3x64x64"}, False),
        (Dtype.fp32, {"": "8x3x64x64:fp32"}, True),
        (Dtype.fp32, {"": "8x3x64x64", "mask": "8x1x64x64:float32"}, True),
        (Dtype.fp32, {"": "8x3x64x64:fp16"}, False),
        (Dtype.fp16, {}, True),  # stands there because somebody put it there
        (Dtype.fp64, {}, True),
        (Dtype.int8, {}, True),
        (None, {}, True),
    ],
)
def test_fp32_is_stated_by_the_user_alone(dtype: Dtype | None, inputs: dict[str, str], expected: bool) -> None:
    assert stated(dtype, inputs) is expected


def read(path: str | Path, **options: Any) -> list[tuple[Dtype | None, bool]]:
    with Reading() as reading:
        network, errors = reading.read(file_input(str(path)), ReadOptions(**options))
    assert all("left without sizes" in error.message for error in errors)
    return [(layer.dtype, layer.dtype_source == "stated") for layer in network.layers]


def test_what_a_spec_says_is_stated(tmp_path: Path) -> None:
    path = tmp_path / "net.yaml"
    path.write_text("version: 1\ndefaults: { dtype: fp32 }\nlayers:\n  - { name: a, C: 8, K: 8, R: 3, S: 3 }\n")
    assert read(path) == [(Dtype.fp32, True)]


@pytest.mark.parametrize(
    ("dtype", "size", "expected"), [("F32", 4, (Dtype.fp32, False)), ("F16", 2, (Dtype.fp16, True))]
)
def test_weights_alone_state_nothing(dtype: str, size: int, expected: tuple[Dtype, bool], tmp_path: Path) -> None:
    header = json.dumps({"a.weight": {"dtype": dtype, "shape": [8, 8, 3, 3], "data_offsets": [0, 576 * size]}}).encode()
    path = tmp_path / "model.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(576 * size))
    assert read(path) == [expected]


def graph(folder: Path, *, half: bool = False, sized: bool = False) -> str:
    """Five convolutions, of odd widths, in a file that fixes the sizes of its input or leaves them open."""
    widths = (3, 62, 62, 128, 100, 513)
    nodes = [
        helper.make_node("Conv", [f"x{n}", f"w{n}"], [f"x{n + 1}"], name=f"c{n}", pads=[1, 1, 1, 1]) for n in range(5)
    ]
    dtype: Any = np.float16 if half else np.float32
    weights = [weight(f"w{n}", [widths[n + 1], widths[n], 3, 3], dtype) for n in range(5)]
    shape: list[int | str] = [64, 3, 56, 56] if sized else ["N", 3, "H", "W"]
    kind = TensorProto.FLOAT16 if half else TensorProto.FLOAT
    proto = model(nodes, [value("x0", shape, kind)], [value("x5", None, kind)], weights)
    return save(folder, proto, f"{'sized' if sized else 'open'}_{'half' if half else 'single'}.onnx")


def test_an_onnx_file_in_fp32_states_nothing(tmp_path: Path) -> None:
    assert set(read(graph(tmp_path))) == {(Dtype.fp32, False)}
    assert set(read(graph(tmp_path, half=True))) == {(Dtype.fp16, True)}
    assert set(read(graph(tmp_path), inputs={"": "64x3x56x56:fp32"})) == {(Dtype.fp32, True)}


def warnings(path: str, *options: str) -> list[tuple[str, str]]:
    """(code, layer) of the warnings on a model."""
    report = json.loads(convlint("check", path, "--isolated", "-o", "json", "--gpu", "a100", *options).out)
    assert all("left without sizes" in error["message"] for error in report["errors"])
    return sorted(
        (found["code"], layer)
        for found in report["findings"]
        if found["severity"] != "info"
        for layer in found["layers"] or [found["layer"]]
    )


@pytest.mark.parametrize("half", [False, True])
def test_a_model_without_sizes_has_no_more_warnings_than_one_with_them(half: bool, tmp_path: Path) -> None:
    sized = warnings(graph(tmp_path, half=half, sized=True))
    unsized = warnings(graph(tmp_path, half=half))
    assert set(unsized) <= set(sized)
    assert warnings(graph(tmp_path, half=half), "--input", "64x3x56x56") == sized
    assert bool(sized) is half  # what is wrong with the widths is wrong, but nobody said that fp32 runs


def test_what_rests_on_fp32_that_nobody_stated_is_info_and_saves_nothing(tmp_path: Path) -> None:
    path = graph(tmp_path, sized=True)
    report = json.loads(convlint("check", path, "--isolated", "-o", "json", "--gpu", "v100").out)
    priced = [found for found in report["findings"] if found["code"] in ("CL106", "CL401", "CL102")]
    assert {found["severity"] for found in priced} == {"info"}
    assert not any(found["advised"] for found in priced)
    assert report["summary"]["time_after_us"] == report["summary"]["time_us"]
    told = convlint("check", path, "--isolated", "-o", "concise", "--gpu", "v100", "--dtype", "fp32")
    assert re.findall(r"warning (CL106) ", told.out) == ["CL106"]


def test_a_module_runs_what_its_weights_are_unless_autocast_says_otherwise(here: Path) -> None:
    """Its layout and its widths are flaws whatever the dtype; that 16 bits are faster is for the training loop."""
    (here / "fp32_net.py").write_text(
        "from torch import nn\n\ndef net():\n    return nn.Sequential(nn.Conv2d(64, 250, 3), nn.Conv2d(250, 256, 3))\n"
    )
    with Reading() as reading:
        network, errors = reading.read(decide("fp32_net:net"), ReadOptions(inputs={"": "32x64x56x56"}))
    assert not errors
    assert [(layer.dtype, layer.dtype_source) for layer in network.layers] == [(Dtype.fp32, "module")] * 2
    options = ("--isolated", "-o", "json", "--gpu", "a100")
    report = json.loads(convlint("check", "fp32_net:net", *options, "--input", "32x64x56x56").out)
    found = {finding["code"]: (finding["severity"], finding["advised"]) for finding in report["findings"]}
    assert found["CL401"] == ("warning", True)
    assert found["CL106"] == ("info", False)
    report = json.loads(convlint("check", "fp32_net:net", *options, "--input", "32x64x56x56:fp32").out)
    found = {finding["code"]: (finding["severity"], finding["advised"]) for finding in report["findings"]}
    assert found["CL106"] == ("warning", True)


@pytest.mark.parametrize(
    ("sizes", "how"),
    [
        ((None, 3, 224, 224), "--batch N or --input x=8x3x224x224"),
        ((None, 3, None, None), "--input x=8x3x224x224"),  # a batch alone is not enough
        ((8, None, None, 3), "--input x=8x224x224x3"),
        ((32, None, None, None, 1), "--input x=32x224x224x224x1"),
        ((None, None, None, None), "--input x=8x3x224x224"),
        ((None, None, 16), "--input x=8x224x16"),
        ((), "--input x=8x3x224x224"),
    ],
)
def test_how_sizes_can_be_given_fits_the_rank_of_the_input(sizes: tuple[int | None, ...], how: str) -> None:
    assert how_to_set("x", sizes) == f"set it with {how}"
