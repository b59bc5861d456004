"""The JSON Schemas that editors use: every sample fits, and what convlint refuses, they refuse too."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from checkout import ROOT
from command_line import convlint
from jsonschema import Draft202012Validator
from specs import BAD, GOOD

from convlint.readers.spec.fields import CANONICAL
from convlint.readers.spec.reader import read_spec

SAMPLES = sorted((ROOT / "sample_configs").glob("*.yaml"))


def schema(what: str) -> Any:
    ran = convlint("schema", what)
    assert ran.code == 0
    document = json.loads(ran.out)
    Draft202012Validator.check_schema(document)
    return document


SPEC = Draft202012Validator(schema("spec"))
CONFIG = Draft202012Validator(schema("config"))


def test_there_are_samples() -> None:
    assert SAMPLES


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_every_sample_fits(path: Path) -> None:
    assert [error.message for error in SPEC.iter_errors(yaml.safe_load(path.read_text()))] == []


LAYER = "C: 64, H: 8, W: 8, K: 64, R: 3, S: 3"


@pytest.mark.parametrize(
    "layer",
    [
        LAYER,
        "in_channels: 3, out_channels: 8, kernel_size: [3, 3], stride: 2, padding: same, dilation: [1, 1]",
        f"{LAYER}, padding: [1, 1, 2, 2]",
        f"{LAYER}, padding: [[1, 1], [2, 2]]",
        f"{LAYER}, padding: {{ top: 1, left: 2 }}",
        f"{LAYER}, padding: VALID, dtype: torch.float16, layout: channels_last",
        f"{LAYER}, dtype: FP16, data_format: NHWC, use_bias: true",
        "name: x, op: Conv_Transpose2d, C: 8, H: 4, W: 4, K: 8, kernel_size: 4, stride: 2, output_padding: 1",
        "op: depthwise, C: 8, H: 4, W: 4, kernel_size: 3",
        "op: nn.Conv3d, C: 8, D: 4, H: 4, W: 4, K: 8, kernel_size: 3, padding: 1",
    ],
)
def test_what_convlint_reads_fits(layer: str) -> None:
    text = f"version: 1\nx-anchor: [1]\ntargets: A100\nmode: train\nlayers:\n  - {{ {layer} }}\n"
    assert read_spec(text, "x")[1] == ()
    assert [error.message for error in SPEC.iter_errors(yaml.safe_load(text))] == []


@pytest.mark.parametrize(
    "text",
    [
        "layers: []",
        "version: 2\nlayers: []",
        GOOD.replace("version: 1", "version: 1\nlayer: 1"),
        GOOD.replace("K: 128", "K: 0"),
        GOOD.replace("K: 128", 'K: "128"'),
        GOOD.replace("K: 128", "K: 1.5"),
        GOOD.replace("K: 128", "Kernels: 3"),
        GOOD.replace("fp16", "fp17"),
        GOOD.replace("NHWC", "nhcw"),
        GOOD.replace("padding: 1", "padding: around"),
        GOOD.replace("name: good", "op: convolve"),
        GOOD.replace("target: [a100]", "runtime: { framework: torsh }"),
        GOOD.replace("target: [a100]", "runtime: { cudnn_bench: true }"),
        GOOD.replace("target: [a100]", "runtime: { optimizer: true }"),
        GOOD.replace("target: [a100]", "mode: trainin"),
        GOOD.replace("N: 256", "name: x"),
    ],
)
def test_what_convlint_refuses_does_not_fit(text: str) -> None:
    assert read_spec(text, "x")[1] != ()
    assert list(SPEC.iter_errors(yaml.safe_load(text)))


def test_a_runtime_with_words_and_numbers_fits() -> None:
    text = GOOD.replace("target: [a100]", "runtime: { optimizer: torch.optim.AdamW, cudnn: 9.1, tf32: false }")
    assert read_spec(text, "x")[1] == ()
    assert [error.message for error in SPEC.iter_errors(yaml.safe_load(text))] == []


def test_wiring_fits() -> None:
    text = (
        "version: 1\nlayers:\n  - {name: x, op: input, C: 3, H: 8, W: 8}\n"
        "  - {name: a, K: 3, R: 1, S: 1, copied: false}\n  - {op: again, weights: a}\n"
        "  - {op: resize, size: unknown}\n  - {op: resize, size: [7, unknown]}\n"
    )
    assert read_spec(text, "x")[1] == ()
    assert [error.message for error in SPEC.iter_errors(yaml.safe_load(text))] == []
    for broken in (text.replace("copied: false", "copied: no thing"), text.replace("size: unknown", "size: somehow")):
        assert read_spec(broken, "x")[1] != ()
        assert list(SPEC.iter_errors(yaml.safe_load(broken)))


def test_every_key_of_a_layer_is_known_and_explained() -> None:
    properties = SPEC.schema["properties"]["layers"]["items"]["properties"]
    assert set(properties) == set(CANONICAL)
    assert properties["in_channels"]["description"] == "input channels (also: C, input_channels)"
    assert all(entry["description"] for entry in properties.values())


FULL_CONFIG = """
extend = "base.toml"
target = ["t4"]
mode = "inference"
select = "CL1"
ignore = ["CL102", "few-input-channels"]
extend-select = ["ALL"]
fail-on = "info"
allow = ["narrower", "batch"]
min-loss = 0.5
strict = true
rules = ["rules"]
calibration = ["gpu.toml"]
lang = "zh"
include = ["*.yaml"]
exclude = "old"
dtype = "fp16"
layout = "channels_last"
versions = "none"
[runtime]
framework = "pytorch"
cudnn_benchmark = true
[[models]]
name = "net"
model = "pkg.models:Net(3, width=1.5)"
inputs = { x = "16x3x64x64:fp16:channels_last", t = "16:int64" }
channels_last = true
autocast = "bf16"
optimizer = "momentum"
mode = "training"
runtime = { cudnn_benchmark = true }
target = ["a100", "t4"]
[[models]]
name = "other"
model = "pkg.models:make"
inputs = ["1x3x8x8"]
[source]
input = "16x3x224x224"
entry = ["train.py"]
[severity]
CL102 = "error"
[per-file-ignores]
"a/**" = ["CL1"]
[[per-layer-ignores]]
layers = "x"
rules = ["CL102"]
reason = "why"
expires = 2030-01-01
"""


def test_a_config_with_every_key_fits_and_is_read(here: Path) -> None:
    values = tomllib.loads(FULL_CONFIG)
    assert set(values) == set(CONFIG.schema["properties"])
    assert list(CONFIG.iter_errors(values)) == []
    Path("convlint.toml").write_text(FULL_CONFIG)
    Path("base.toml").write_text("")
    assert convlint("config").code == 0


@pytest.mark.parametrize(
    "text",
    ["selct = []", "allow = ['wider']", "min-loss = 101", "fail-on = 'warn'", "mode = 3",
     "[severity]\nCL102 = 'bad'", "select = [3]",
     "per-file-ignores = 3", "[[per-layer-ignores]]\nlayers = 'x'",
     "[[per-layer-ignores]]\nlayers = 'x'\nrules = 'a'\nreason = 'b'\nuntil = 'c'", "[[models]]\nname = 'a'",
     "[[models]]\nname = 'a'\nmodel = 'b:c'\nautocast = 'fp32'", "dtype = 3",
     "[source]\ninputs = '3x8x8'", "[source]\nentry = 3"],
)  # fmt: skip
def test_wrong_configs_do_not_fit(text: str, here: Path) -> None:
    assert list(CONFIG.iter_errors(tomllib.loads(text)))
    Path("convlint.toml").write_text(text)
    assert convlint("config").code == 2


def test_rules_and_gpus_complete_in_editors() -> None:
    choices = CONFIG.schema["properties"]["select"]["anyOf"][0]["anyOf"][0]["enum"]
    assert {"CL102", "channel-alignment", "CL901"} <= set(choices)
    assert {"a100", "t4"} <= set(SPEC.schema["properties"]["target"]["anyOf"][0]["anyOf"][0]["enum"])


def test_another_word_is_refused() -> None:
    ran = convlint("schema", "specs")
    assert (ran.code, "did you mean 'spec'?" in ran.err) == (2, True)


def test_findings_are_not_the_schema_s_business() -> None:
    assert list(SPEC.iter_errors(yaml.safe_load(BAD))) == []
