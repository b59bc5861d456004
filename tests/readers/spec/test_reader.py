"""The YAML spec by its contract: sizes, shapes carried on, roles, places, and every error of a file."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from read_specs import STEM, errors, network, only, sizes, spec

from convlint.model.errors import InputFault
from convlint.model.runtime import Runtime, Version
from convlint.readers import ReadOptions
from convlint.readers.spec.reader import SETTINGS, read, read_spec

# --- top level


def test_targets_mode_and_runtime() -> None:
    found = network(
        spec(STEM, target="[a100, t4, a100]", mode="inference",
             runtime='{ framework: torch, framework_version: 2.1.0+cu118, cuda: "11.2", cudnn: 8902, benchmark: yes,'
                     " fixed_input_size: true, deterministic: false, tf32: 0, xla_gpu_autotune_level: 4,"
                     " cudnn_conv_algo_search: heuristic }")
    )  # fmt: skip
    assert found.targets == ("a100", "t4")
    assert found.mode == "inference"
    assert found.runtime == Runtime(
        framework="pytorch", framework_version=Version("2.1"), cuda=Version("11.2"), cudnn=Version("8.9.2"),
        cudnn_benchmark=True, fixed_input_size=True, deterministic=False, tf32=False, xla_gpu_autotune_level=4,
        cudnn_conv_algo_search="HEURISTIC",
    )  # fmt: skip
    assert found.runtime.spans["cudnn"][0] == 4


@pytest.mark.parametrize("text", ["12.x", "12.*", "12.8.X"])
def test_a_range_is_no_version(text: str) -> None:
    """CUDA 12.0 has no code for GPUs that 12.8 runs on."""
    (error,) = errors(spec(STEM, runtime=f'{{ cuda: "{text}" }}'))
    assert error.message == f"cuda: '{text}' is not a version such as 8.9.2"


def test_what_is_not_given_is_unknown() -> None:
    found = network(spec(STEM))
    assert (found.targets, found.mode, found.runtime) == ((), None, Runtime())
    assert [name for name in SETTINGS if getattr(found.runtime, name) is not None] == ["tf32"]


def test_room_for_anchors() -> None:
    text = "version: 1\nx-base: &b {C: 4, H: 8, W: 8, dtype: fp16}\nlayers: [{<<: *b, K: 8, kernel_size: 3, H: 9}]\n"
    layer = only(text)
    assert sizes(layer, "C H W dtype") == [4, 9, 8, "fp16"]
    assert layer.spans["C"][:2] == (2, 16)


def test_json_is_accepted() -> None:
    data = {
        "version": 1,
        "target": ["t4"],
        "layers": [{"name": "é", "C": 3, "H": 9, "W": 9, "K": 8, "kernel_size": [3, 3], "bias": False}],
    }
    for text in (json.dumps(data), json.dumps(data, indent=1), json.dumps(data, ensure_ascii=False)):
        layer = only(text)
        assert sizes(layer, "name C P K bias") == ["é", 3, 7, 8, False]


def test_a_batch_from_the_command_line() -> None:
    found, _ = read_spec(spec(STEM, "K: 8, kernel_size: 1", defaults="{ N: 256 }"), "net.yaml", ReadOptions(batch=16))
    assert [layer.N for layer in found.layers] == [16, 16]


@pytest.mark.parametrize("batch", ["", "N: 3, "])
def test_a_batch_from_the_command_line_is_that_of_all_operations(batch: str) -> None:
    """Linear layers and what reads the input kept the batch of the file."""
    layers = f"name: image, op: input, {batch}C: 8, H: 4, W: 4", "K: 8, kernel_size: 1", "op: linear, C: 32", "op: gelu"
    found, _ = read_spec(spec(*layers, defaults="{ N: 256 }"), "net.yaml", ReadOptions(batch=16))
    works = [operation.work for operation in found.operations if operation.work is not None]
    assert [(work.op, work.writes) for work in works] == [("linear", 16 * 16 * 32), ("gelu", 16 * 16 * 32)]


def test_standard_input_has_a_name(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("convlint.readers.spec.reader.read_text", lambda path: spec(STEM))
    found, _ = read("-", ReadOptions())
    assert found.path == found.layers[0].path == "<stdin>"


# --- places

PLACED = """\
version: 1
runtime:
  cudnn: "8.1"
layers:
  - name: stem
    in_channels: 3
    H: 224
    W: 224
    K: 64
    kernel_size: [7, 7]
    stride: 2
    padding: same
  - { name: b, op: conv_transpose, K: 128, R: 3, S: 3,
      padding: [1, 1, 0, 0], dtype: fp16, layout: NHWC, groups: 2, bias: true }
"""


@pytest.mark.parametrize(
    ("layer", "names", "span"),
    [
        (0, "layer", (5, 5, 13, 3)), (0, "name", (5, 11, 5, 15)), (0, "C", (6, 18, 6, 19)), (0, "H", (7, 8, 7, 11)),
        (0, "R S T", (10, 18, 10, 24)), (0, "U V", (11, 13, 11, 14)), (0, "same", (12, 14, 12, 18)),
        (1, "layer", (13, 5, 14, 80)), (1, "op", (13, 20, 13, 34)), (1, "R", (13, 47, 13, 48)),
        (1, "PadH PadH_end PadW", (14, 16, 14, 28)), (1, "dtype", (14, 37, 14, 41)), (1, "layout", (14, 51, 14, 55)),
        (1, "groups", (14, 65, 14, 66)), (1, "bias", (14, 74, 14, 78)),
    ],
)  # fmt: skip
def test_every_value_is_located(layer: int, names: str, span: tuple[int, int, int, int]) -> None:
    found = network(PLACED)
    for name in names.split():
        assert found.layers[layer].spans[name] == span
    assert found.source_lines == tuple(PLACED.split("\n"))


def test_source_lines_are_those_that_places_count() -> None:
    text = "version: 1\r# a\u2028# b\x85layers: [{C: 4, H: 8, W: 8, K: 8, kernel_size: 1}]\r\n"
    found = network(text)
    line, column, *_ = found.layers[0].spans["K"]
    assert found.source_lines[line - 1][column - 1 :].startswith("8, kernel_size")


# --- errors


def test_names_are_unique() -> None:
    (error,) = errors(spec(f"name: a, {STEM}", f"name: b, {STEM}", f"name: a, {STEM}"))
    assert (error.message, error.line, error.column) == ("name 'a' was given on line 3 already", 5, 13)


def test_unnamed_layers_never_clash() -> None:
    found = network(spec(STEM, f"name: layer1, {STEM}", f"name: layer4, {STEM}", STEM))
    assert [layer.name for layer in found.layers] == ["layer1_", "layer1", "layer4", "layer4_"]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("layers: []", 1, "version is missing; write version: 1"),
        ("version: 1", 1, "layers is missing: nothing to check"),
        ("version: 1\nlayers: {}", 2, "layers must be a list, not a mapping"),
        ("version: 1\nlayers:", 2, "layers must be a list, not nothing"),
        ("version: 1\nlayers: [3]", 2, "layer 1 must be a mapping, not a value"),
        ("version: 1\nlayers: []\nruntime: fast", 3, "runtime must be a mapping, not a value"),
        ("version: 1\nlayers: []\ndefaults: []", 3, "defaults must be a mapping, not a list"),
        ("version: 1\nlayers: []\nlayer: []", 3, "unknown key 'layer'; did you mean 'layers'?"),
        ("version: 1\nlayers: []\ntarget: a100\ngpu: t4", 4, "gpu says again what line 3 says"),
        ("version:\nlayers: []", 1, "version must be 1, not nothing"),
        ("version: 1\nlayers: []\nx: &x {colour: 1}\n<<: *x", 3, "unknown key 'x'"),
    ],
)
def test_the_top_level(text: str, line: int, message: str) -> None:
    found = errors(text)
    assert message in found[0].message
    assert found[0].line == line


@pytest.mark.parametrize("text", ["- a", "hello", "3", "[]"])
def test_no_spec_at_all(text: str) -> None:
    with pytest.raises(InputFault, match="a spec is a mapping"):
        read_spec(text, "net.yaml")


WORDS = [
    "C", "H", "W", "K", "N", "kernel_size", "stride", "padding", "groups", "op", "input", "inputs", "name", "dtype",
    "dims", "size", "scale", "R", "D", "T", "dilation", "output_padding", "P", "layout", "first", "bogus",
]  # fmt: skip
VALUES = [
    "0", "1", "3", "7", "64", "-1", "x", "a", "b", "[3, 3]", "[1, 2, 3]", "[1]", "[]", "{}", "same", "conv1d", "conv3d",
    "pool", "add", "concat", "conv_transpose", "depthwise", "upsample", "input", "2147483648", "~", "true", "1.5",
    "[a, b]", "fp16", "NHWC", "bn", "global_pool", "pixel_shuffle", "[[1, 2], [3, 4]]", "{top: 1}",
]  # fmt: skip
layers = st.dictionaries(st.sampled_from(WORDS), st.sampled_from(VALUES), max_size=7)


@pytest.mark.slow
@settings(max_examples=300)
@given(entries=st.lists(layers, max_size=6), defaults=layers)
def test_any_mix_of_keys_and_values_is_read_or_refused(entries: list[dict[str, str]], defaults: dict[str, str]) -> None:
    def flow(mapping: dict[str, str]) -> str:
        return ", ".join(f"{key}: {value}" for key, value in mapping.items())

    found, problems = read_spec(spec(*map(flow, entries), defaults=f"{{ {flow(defaults)} }}"), "net.yaml")
    assert all(problem.line is not None and problem.message for problem in problems)
    for layer in found.layers if found else ():
        values = sizes(layer, "N C D H W K Z P Q T R S")
        assert all(value is None or value <= 2**31 for value in values)


def test_a_spec_names_at_most_as_many_gpus_as_anyone_could_want() -> None:
    text = "version: 1\ntarget: [" + ", ".join(f"gpu{n}" for n in range(101)) + "]\nlayers: []\n"
    _, errors = read_spec(text, "many.yaml")
    assert [error.message for error in errors][:1] == ["target: more than 100 GPUs"]
