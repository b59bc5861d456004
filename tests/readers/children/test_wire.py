"""What travels between processes is the same at the other end, and what is no outcome is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from checkout import ROOT
from msgspec.structs import replace

from convlint.model.layer import ConvLayer, Dtype, Measured, MeasuredPass
from convlint.model.network import Edge, Network, Operation, RecordedStep, RecordedWork
from convlint.model.report import InputError
from convlint.model.runtime import Runtime, Version
from convlint.readers import ReadOptions
from convlint.readers.children.wire import WireError, decode, decode_request, encode, encode_request
from convlint.readers.spec import reader as yaml_spec

SAMPLES = sorted((ROOT / "sample_configs").glob("*.yaml"))
LAYER = ConvLayer(name="a", dtype=Dtype.bf16, layout="NHWC", spans={"C": (1, 2, 3, 4)}, N=2**40, H=None)
RECORDED = RecordedStep(
    works=(RecordedWork(part="linear", op="mm", us=2.5, calls=2.0, moved=2**33, flops=2**40, gemm=(1, 2, 3),
                        dtype=Dtype.fp16), RecordedWork(part="copy", us=1.5)),
    operations=3.5, mode="inference", dtypes=(Dtype.bf16, None), span_us=9.5,
)  # fmt: skip
NETWORK = Network(
    path="x.onnx", layers=(LAYER, LAYER), edges=(Edge(consumer=1, producers=(0,), source="a", C=3, H=None, W=4),),
    operations=(Operation(kind="input", C=3), Operation(kind="conv", layer=1, inputs=(0,), output=True)),
    runtime=Runtime(framework="pytorch", cudnn=Version("8.9.2"), compile=True), mode="inference", targets=("a100",),
    recorded=RECORDED,
)  # fmt: skip


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_every_sample_arrives_as_it_was(path: Path) -> None:
    outcome = yaml_spec.read(str(path), ReadOptions())
    arrived = decode(encode(outcome))
    assert arrived == outcome
    assert [layer.spans for layer in arrived[0].layers] == [layer.spans for layer in outcome[0].layers]
    assert arrived[0].spans == outcome[0].spans
    assert arrived[0].runtime.spans == outcome[0].runtime.spans


def test_all_that_a_network_can_hold_arrives() -> None:
    errors = (InputError(path="\ud800", message="é\n", line=3, column=None, internal=True),)
    assert decode(encode((NETWORK, errors))) == (NETWORK, errors)
    assert decode(encode((None, ()))) == (None, ())
    passes = (("fprop", MeasuredPass(us=3.5, calls=2)),)
    layer = replace(NETWORK.layers[0], measured=Measured(gpu="t4", passes=passes))
    traced = replace(NETWORK, layers=(layer, *NETWORK.layers[1:]))
    assert decode(encode((traced, ()))) == (traced, ())


def change(*path: Any, to: Any) -> bytes:
    document = json.loads(encode((NETWORK, (InputError(path="p", message="m"),))))
    place = document
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = to
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    "content",
    [
        b"", b"[]", b"null", b"{}", b"\xff", b"[" * 100_000,
        change("network", to=3), change("network", "layers", to={}), change("network", "layers", 0, to=[]),
        change("network", "layers", 0, "N", to="2"), change("network", "layers", 0, "N", to=True),
        change("network", "layers", 0, "N", to=1.5), change("network", "layers", 0, "dtype", to="fp4"),
        change("network", "layers", 0, "dtype", to=3), change("network", "layers", 0, "layout", to="CHWN"),
        change("network", "layers", 0, "spans", to=[]), change("network", "layers", 0, "spans", to={"C": [1, 2]}),
        change("network", "layers", 0, "__class__", to="x"), change("network", "layers", 0, "name", to=None),
        change("network", "edges", 0, "consumer", to=2), change("network", "edges", 0, "producers", to=[-1]),
        change("network", "operations", 1, "layer", to=2), change("network", "operations", 1, "layer", to=None),
        change("network", "operations", 1, "inputs", to=[1]), change("network", "operations", 1, "inputs", to=[-1]),
        change("network", "operations", 1, "weights", to=2), change("network", "operations", 1, "kind", to="add"),
        change("network", "operations", 0, "kind", to="pool"),
        change("network", "runtime", "cudnn", to="new"), change("network", "mode", to="both"),
        change("network", "recorded", "works", 0, "us", to=float("nan")),
        change("network", "recorded", "works", 0, "part", to="x"), change("errors", 0, "message", to=7),
        change("errors", to=None),
    ],
)  # fmt: skip
def test_what_is_no_outcome_is_refused(content: bytes) -> None:
    with pytest.raises(WireError):
        decode(content)


def test_requests() -> None:
    options = ReadOptions(batch=3, inputs={"": "N×3"})
    assert decode_request(encode_request("onnx.reader", "a\nb", options)) == ("onnx.reader", "a\nb", options)
    options = ReadOptions(sources={"/net.py": bytes(range(256)).decode("latin-1")})
    assert decode_request(encode_request("torch.module", "a", options)) == ("torch.module", "a", options)
