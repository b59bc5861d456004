"""A network written as a spec reads back as the same layers."""

import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import onnx
import pytest
from checkout import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from read_specs import network as read
from read_specs import spec
from wired_spec_networks import Wired, random_network
from wirings import densenet201, mobilenet_v2, resnet50, told, unet

from convlint.engine.check import Target, check_network
from convlint.estimate.step import Steps, step_of
from convlint.gpus.gpu import load_gpu
from convlint.model.channels import channels_of
from convlint.model.layer import ConvLayer, Dtype, Layout, Mode, with_output
from convlint.model.network import Edge, Network, Operation, Work, WorkKind
from convlint.model.runtime import Runtime, Version
from convlint.readers import ReadOptions
from convlint.readers.onnx import reader as onnx_model
from convlint.readers.spec.writing import spec_text, uses
from convlint.readers.torch import module as torch_module
from convlint.rulebook.book import load_rulebook

BUILTIN = load_rulebook()
TARGETS = [Target(label="a100", gpu=load_gpu("a100"))]


COPY = Work(kind="copy", op="pad")


def back(network: Network) -> Network:
    return read(spec_text(network).encode("utf-8").decode("utf-8"))


def groups(network: Network) -> list[Any]:
    known = [group for group in channels_of(network).groups if group.layers]
    readers = [[(reader.layer, reader.times) for reader in group.readers] for group in known]
    return sorted(
        (group.width, group.writers, read, group.depthwise, group.multiple_of, bool(group.fixed), group.only_input)
        for group, read in zip(known, readers, strict=True)
    )


def bare(layer: ConvLayer) -> ConvLayer:
    return replace(layer, path="", spans={}, node=None)


def findings(network: Network) -> Counter[Any]:
    result = check_network(network, BUILTIN, TARGETS, network.mode or "training")
    return Counter((found.rule.code, found.severity, found.layer, found.layers, found.lost_us)
                   for found in result.findings)  # fmt: skip


def same(network: Network) -> list[str]:
    """Asserts that the network reads back as it is; the written items, without their names where those are told."""
    found = back(network)
    assert [bare(layer) for layer in found.layers] == [bare(layer) for layer in network.layers]
    assert groups(found) == groups(network)
    assert findings(found) == findings(network)
    return [line.split("}  #")[0].strip(" -{}") for line in spec_text(network).splitlines() if line.startswith("  - ")]


def stem(dims: int = 2, size: int | None = 16) -> tuple[Wired, int]:
    net = Wired(dims)
    return net, net.conv(net.step("input", C=3, sizes=(size,) * dims, name="image"), 60, first=True, name="a")


# --- what is written, and what is left out


def test_a_residual_block_is_a_line_for_each_convolution_norm_and_sum() -> None:
    net, a = stem()
    block = net.same("identity", net.same("batchnorm", a, name="bn1"), name="relu1")
    inner = net.same("batchnorm", net.conv(block, 60, name="b"), name="bn2")
    total = net.same("identity", net.same("add", inner, block, name="sum"), name="relu2")
    pooled = net.same("resize", total, sizes=(1, 1), name="pool")
    flat = net.step("reshape", pooled, C=60, sizes=(1, 1), name="flat", where="flatten at net.py:9")
    net.step("reshape", flat, C=10, sizes=(1, 1), name="linear")
    network = net.network()
    assert same(network) == [
        "name: image, op: input, C: 3, H: 16, W: 16",
        "name: a, input: image, C: 3, H: 16, W: 16, K: 60, kernel_size: 3, padding: 1, first: true",
        "name: bn1, op: batchnorm",
        "name: b, input: bn1, C: 60, H: 16, W: 16, K: 60, kernel_size: 3, padding: 1",
        "name: bn2, op: batchnorm",
        "name: sum, op: add, inputs: [bn2, bn1]",
        "name: pool, op: global_pool",
        "name: flat, op: reshape, C: 60, H: 1, W: 1",
    ]
    assert "flat, op: reshape, C: 60, H: 1, W: 1}  # flatten at net.py:9\n" in spec_text(network)


@pytest.mark.parametrize(
    ("kind", "more", "written"),
    [
        ("identity", {}, []),
        ("batchnorm", {}, ["name: op2, op: batchnorm"]),
        ("identity", {"groups": 4}, ["name: op2, op: groupnorm, groups: 4"]),
        ("resize", {"sizes": (16, 16)}, []),
        ("resize", {"sizes": (7, 5)}, ["name: op2, op: resize, size: [7, 5]"]),
        ("resize", {"sizes": (7, None)}, ["name: op2, op: resize, size: [7, unknown]"]),
        ("resize", {"sizes": (None, None)}, ["name: op2, op: resize, size: unknown"]),
        ("resize", {"sizes": (1, 1)}, ["name: op2, op: global_pool"]),
        ("resize", {"sizes": (17, 19), "work": COPY}, ["name: op2, op: pad, padding: [0, 1, 1, 2]"]),
        ("resize", {"sizes": (18, 17), "work": COPY}, ["name: op2, op: pad, padding: [1, 1, 0, 1]"]),
        ("resize", {"sizes": (9, 19), "work": COPY}, ["name: op2, op: resize, size: [9, 19]"]),
        ("add", {}, []),
        ("concat", {}, []),
        ("pixel_shuffle", {"C": 15, "factor": 2, "sizes": (32, 32)}, ["name: op2, op: pixel_shuffle, scale: 2"]),
        ("pixel_unshuffle", {"C": 240, "factor": 2, "sizes": (8, 8)}, ["name: op2, op: pixel_unshuffle, scale: 2"]),
        ("channel_pool", {"C": 1}, ["name: op2, op: channel_pool"]),
        ("channel_shuffle", {"factor": 3}, ["name: op2, op: channel_shuffle, groups: 3"]),
        ("split", {"C": 20, "factor": 3}, ["name: op2, op: channel_split, groups: 3"]),
        ("reshape", {"C": 20, "sizes": (None, 8)}, ["name: op2, op: reshape, C: 20, W: 8"]),
        ("reshape", {"C": None, "sizes": (None, None)}, ["name: op2, op: reshape"]),
    ],
)
def test_each_kind(kind: Any, more: Any, written: list[str]) -> None:
    net, a = stem()
    between = net.step(kind, a, **({"C": 60} | more))
    if more.get("C", 60) is None:
        net.conv(between, 8, C=None, name="b")
    else:
        net.conv(between, 8, name="b")
    lines = same(net.network())
    assert lines[2 : next(number for number, line in enumerate(lines) if line.startswith("name: b,"))] == written


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("size", [16, None])
def test_all_dimensions_and_unknown_sizes(dims: int, size: int | None) -> None:
    net, a = stem(dims, size)
    halved = net.same("resize", a, sizes=(size and size // 2,) * dims)
    b = net.conv(halved, 60)
    net.conv(net.step("concat", b, halved, C=120), 8)
    assert [edge.producers for edge in back(net.network()).edges] == [(), (0,), (0, 1)]
    same(net.network())


def test_dimensions_that_change_on_the_way_are_stated() -> None:
    net, a = stem(3)
    flat = net.step("reshape", a, C=60, sizes=(16, 16))
    net.dims = 2
    b = net.conv(flat, 8)
    net.dims = 1
    net.conv(net.step("resize", b, C=8, sizes=(4,)), 8)
    same(net.network())


def test_what_is_made_of_many_opaque_tensors_is_written_in_time() -> None:
    net, a = stem()
    flat = [net.step("reshape", net.conv(a, 8), C=8) for _ in range(300)]
    tokens = flat[0]
    for each in flat[1:]:
        tokens = net.step("reshape", tokens, each, C=5)
    net.conv(net.step("reshape", tokens, C=16, sizes=(2, 2)), 8)
    same(net.network())
    assert "left out" not in spec_text(net.network())


def test_a_concatenation_of_very_many_tensors_is_one_entry() -> None:
    """Others that read as many tensors are written for what stands behind them, this one for itself."""
    names = [f"c{number}" for number in range(40)]
    branches = [f"- {{name: {name}, input: x, K: 8, kernel_size: 3, padding: 1}}" for name in names]
    entries = [
        "- {name: x, op: input, N: 8, C: 8, H: 16, W: 16}", *branches,
        f"- {{name: joined, op: concat, inputs: [{', '.join(names)}]}}", "- {name: last, K: 16, kernel_size: 1}",
    ]  # fmt: skip
    network = read("\n".join(("version: 1", "layers:", *entries)))
    assert "reshape" not in spec_text(network)
    assert groups(back(network)) == groups(network)


# --- roles


@pytest.mark.parametrize("norm", [True, False])
def test_what_reads_a_layer_decides_whether_it_is_normalised(*, norm: bool) -> None:
    for ways in (("batchnorm",), ("identity",), ("batchnorm", "identity"), ()):
        net, a = stem()
        for kind in ways:
            net.conv(net.same(kind, a), 8)
        network = net.network()
        network = replace(network, layers=(replace(network.layers[0], norm_follows=norm), *network.layers[1:]))
        assert back(network).layers[0].norm_follows is norm
        same(network)


def test_what_is_not_known_of_a_layers_readers_is_not_made_up() -> None:
    net, a = stem()
    net.conv(a, 8)
    network = net.network()
    unread = replace(network, layers=(network.layers[0], replace(network.layers[1], norm_follows=None)))
    same(unread)
    read = replace(network, layers=(replace(network.layers[0], norm_follows=None), network.layers[1]))
    assert spec_text(read).startswith("# What connects the layers is left out: what reads some of the layers is not")
    assert list(map(bare, back(read).layers)) == list(map(bare, read.layers))


def test_what_is_handed_out_and_read_on_stays_as_it_is() -> None:
    net, a = stem()
    b = net.same("identity", net.conv(a, 60))
    net.conv(net.same("batchnorm", net.conv(b, 60)), 60)
    net.hand_out(a, b)
    assert same(net.network())[-1] == "name: outputs, op: identity, inputs: [a, conv1, conv3]"
    fixed = {group[1]: group[5] for group in groups(back(net.network()))}
    assert fixed == {(): True, (0,): True, (1,): True, (2,): False, (3,): True}


def test_what_nothing_reads_and_is_no_output_still_is_not_normalised() -> None:
    net, a = stem()
    net.conv(a, 8)
    network = net.network()
    dead = replace(network, operations=(*network.operations[:-1], replace(network.operations[-1], output=False)))
    assert spec_text(dead).splitlines()[-1] == "  - {name: read by other operations, op: identity}"
    assert back(dead).layers[1].norm_follows is False


# --- layers that run again


def test_a_layer_that_runs_again_ties_what_it_reads() -> None:
    net, a = stem()
    b = net.conv(0, 60, first=True, name="b")
    shared = net.conv(a, 30, name="shared")
    again = net.again(2, b)
    net.conv(net.step("concat", shared, again, C=60), 8)
    lines = same(net.network())
    assert "name: shared#2, op: again, input: b, weights: shared" in lines
    assert not any("calls" in line for line in lines)
    assert [group[:2] for group in groups(back(net.network()))] == [(3, ()), (8, (3,)), (30, (2,)), (60, (0, 1))]
    assert back(net.network()).edges[2].producers == (0, 1)


def test_norms_behind_every_run() -> None:
    net, a = stem()
    b = net.conv(a, 60, name="b")
    net.same("batchnorm", b)
    net.same("batchnorm", net.again(1, b))
    network = net.network()
    assert same(network)
    one_more = net.again(1, 1)
    net.conv(one_more, 8)
    same(net.network())


def test_calls_that_are_no_operations_are_stated() -> None:
    net, a = stem()
    net.conv(a, 60, calls=7, name="b")
    assert "calls: 7" in same(net.network())[-2]


def test_layers_of_other_sizes_with_the_same_weights() -> None:
    net, a = stem()
    b = net.conv(net.same("resize", a, sizes=(8, 8)), 60, name="b")
    net.conv(a, 30, name="large")
    net.conv(b, 30, name="small", weights=2)
    lines = same(net.network())
    assert [line.split(", ")[-1] for line in lines if "weights" in line] == ["weights: large"]
    found = back(net.network())
    assert found.operations[-2].weights == 2
    assert [layer.node for layer in found.layers] == [None, None, "large", "large"]
    assert (60, (0, 1)) in [group[:2] for group in groups(found)]


# --- where a spec cannot say what arrives


def test_what_stands_before_the_only_layer_has_its_batch() -> None:
    layer = with_output(ConvLayer(name="a", N=8, C=4, H=9, W=9, K=4, R=3, S=3, dtype=Dtype.fp16, first=True))
    size: dict[str, Any] = {"C": 4, "H": 9, "W": 9}
    work = Work(kind="activation", op="relu", reads=(8 * 4 * 81,), writes=8 * 4 * 81)
    operations = (
        Operation(kind="input", name="x", **size),
        Operation(kind="identity", name="relu", inputs=(0,), work=work, **size),
        Operation(kind="conv", name="a", inputs=(1,), layer=0, C=4, H=7, W=7, output=True),
    )
    assert back(Network(path="n", layers=(layer,), operations=operations, whole=True)).whole


def test_batches_that_are_not_known_behind_known_ones() -> None:
    net, a = stem()
    net.conv(a, 60, N=None)
    found = back(net.network())
    assert found.layers[1].N is None
    assert all(group[5] for group in groups(found) if 0 in group[1])


def test_sizes_that_are_not_known_behind_known_ones() -> None:
    net, a = stem()
    net.conv(a, 60, H=None)
    net.conv(a, 60, C=None)
    same(net.network())


def test_sizes_that_do_not_match_are_said_to_where_they_were() -> None:
    for C, arriving in ((64, 60), (64, 64), (60, 60), (60, 62)):
        net, a = stem()
        net.conv(a, 8, C=C)
        network = replace(net.network(), edges=(Edge(consumer=1, producers=(0,), source="a", C=arriving, H=16, W=16),))
        assert [key[2] for key in findings(network) if key[0] == "CL002"] == (["conv1"] if arriving != C else [])
        if arriving != 62:
            assert findings(back(network)) == findings(network)
        else:  # the wire is cut where it could not be arriving: what was one number is then one on each side
            assert {key[0] for key in findings(back(network))} == {key[0] for key in findings(network)}
        assert [key[2] for key in findings(back(network)) if key[0] == "CL002"] == (["conv1"] if arriving != C else [])


def test_sums_of_sizes_that_do_not_go_together_fix_what_they_read() -> None:
    net, a = stem()
    b = net.same("resize", a, sizes=(7, 7))
    net.conv(net.same("add", a, b), 8)
    lines = [line for line in spec_text(net.network()).splitlines() if "op: reshape" in line]
    assert len(lines) == 1
    assert all(group[5] for group in groups(back(net.network())) if 0 in group[1])


@pytest.mark.parametrize("copied", [True, False, None])
def test_layouts_that_differ_without_a_copy(copied: bool | None) -> None:
    net, a = stem()
    net.layers[0] = replace(net.layers[0], layout="NCHW")
    net.conv(a, 64, layout="NHWC")
    net.told[1] = (copied, "")
    assert ("copied: false" in spec_text(net.network())) is (copied is False)
    assert ("CL402" in {key[0] for key in findings(net.network())}) is (copied is not False)
    same(net.network())


def test_copies_that_a_spec_has_no_word_for_are_said_to_be_left_out() -> None:
    net, a = stem()
    net.conv(a, 64, layout="NHWC", copies_input=True)
    net.told[1] = (True, "contiguous() at net.py:3")
    assert spec_text(net.network()).startswith("# Left out, with its time and its CL402: one layer copies what arrives")


def test_a_reshape_of_nothing_is_no_input_of_the_network() -> None:
    net, a = stem()
    table = net.step("reshape", C=60, sizes=(16, 16), name="table", where="a constant")
    net.conv(net.step("concat", a, table, C=120), 8)
    same(net.network())


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda net: net.step("concat", *[0] * 300, C=900), "reads more than 256 tensors"),
        (lambda net: net.operations.insert(0, net.operations.pop()), "do not run the layers in their order"),
        (lambda net: net.layers.append(net.layers[0]), "do not run the layers in their order"),
        (lambda net: [net.step("reshape", 1, C=1) for _ in range(30_001)], "more operations than a spec may have"),
    ],
)
def test_what_a_spec_cannot_hold_is_left_out_and_said(change: Any, why: str) -> None:
    net, _ = stem()
    net.conv(None, 8, C=60, H=4, W=4)
    if "256" in why:
        change(net)
        net.conv(len(net.operations) - 1, 8)
    else:
        change(net)
    network = net.network()
    text = spec_text(network)
    assert text.startswith("# What connects the layers is left out: ")
    assert why in text.splitlines()[0]
    assert len(back(network).layers) == len(network.layers)


def test_hostile_names_and_places_are_text() -> None:
    odd = ["", "no", "a", "a", "x" * 600, "\ud800", "\udfff", "##vso[x]", "\x1b[31m", "a\nlayers: []", "outputs", "- {"]
    net, a = stem()
    for name in odd:
        a = net.conv(net.step("reshape", a, C=60, sizes=(8, 8), name=name, where=name), 60, name=name)
    net.hand_out(1)
    network = net.network()
    text = spec_text(network)
    assert len(back(network).layers) == len(odd) + 1
    assert groups(back(network)) == groups(network)
    assert "\x1b" not in text
    assert "##" not in text


def test_operations_with_sizes_that_no_spec_holds() -> None:
    net, a = stem()
    for C, size in ((0, -1), (2**40, 2**40), (60, 2**31)):
        net.step("reshape", a, C=C, sizes=(size, size))
    net.operations.append(Operation(kind="reshape", inputs=(a,), dims=7, C=5))
    net.operations.append(Operation(kind="resize", inputs=(a,), dims=0, C=60, output=True))
    assert groups(back(net.network())) == groups(net.network())


# --- whole networks


@pytest.mark.parametrize("path", sorted((ROOT / "sample_configs").glob("*.yaml")), ids=lambda path: path.stem)
def test_samples(path: Path) -> None:
    network = read(path.read_text())
    found = back(network)
    assert len(found.operations) <= len(network.operations)
    assert [replace(edge, source="") for edge in found.edges] == [replace(edge, source="") for edge in network.edges]
    same(network)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 300, 50))
def test_random_networks(start: int) -> None:
    free = 0
    for seed in range(start, start + 50):
        network = random_network(seed)
        same(network)
        free += sum(not group[5] for group in groups(network))
    assert free > 5  # else the networks are such that nothing could be lost


LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


def same_layers(network: Network) -> None:
    found = back(network)
    assert list(map(bare, found.layers)) == list(map(bare, network.layers))
    assert (found.mode, found.targets) == (network.mode, network.targets)
    assert replace(found.runtime, spans={}) == replace(network.runtime, spans={})


@pytest.mark.slow
@pytest.mark.parametrize("name", ["densenet121", "resnet50", "shufflenet", "inception_v2"])
def test_onnx_graphs(name: str) -> None:
    network, errors = onnx_model.read(str(LIGHT / f"light_{name}.onnx"), ReadOptions())
    assert errors == ()
    assert network is not None
    same_layers(network)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "shape"), [("UNet", "2x3x32x32"), ("Traps", "2x3x8x8"), ("Video", "2x3x8x16x16"), ("Generator", "2x100")]
)
def test_torch_modules(monkeypatch: pytest.MonkeyPatch, name: str, shape: str) -> None:
    monkeypatch.chdir(ROOT / "tests" / "helpers")
    monkeypatch.syspath_prepend(str(Path.cwd()))
    network, errors = torch_module.read(f"torch_nets:{name}", ReadOptions(inputs={"": shape}))
    assert errors == ()
    same_layers(network)
    assert f"torch_nets.py:{network.layers[0].locate().line}\n" in spec_text(network)
    sys.modules.pop("torch_nets")


small = st.integers(1, 4)
pads = st.integers(0, 3)
NAMES = st.text(st.characters(codec="utf-8"), max_size=12)


@st.composite
def layers(draw: Any) -> ConvLayer:
    dims = draw(st.integers(1, 3))
    known = dims == 3 or draw(st.booleans())  # a spec has no way to say that D is unknown
    fields: dict[str, Any] = {"R": 1, "H": 1 if dims == 1 else None}
    for depth, (axis, taps, stride) in enumerate((("D", "T", "StrideD"), ("H", "R", "U"), ("W", "S", "V"))):
        if depth < 3 - dims:
            continue
        fields[axis] = draw(st.integers(1, 300)) if known else None
        fields[taps], fields[stride], fields[f"Dil{axis}"] = draw(small), draw(small), draw(small)
        fields[f"Pad{axis}"] = draw(pads)
        fields[f"Pad{axis}_end"] = draw(pads)
    op = draw(st.sampled_from(["conv", "conv_transpose"]))
    if op == "conv_transpose":
        for axis, stride in zip("DHW"[3 - dims :], ("StrideD", "U", "V")[3 - dims :], strict=True):
            fields[f"OutPad{axis}"] = draw(st.integers(0, max(fields[stride], fields[f"Dil{axis}"]) - 1))
    layer = ConvLayer(
        name=draw(NAMES), dims=dims, op=op, N=draw(st.none() | st.integers(1, 512)),
        C=draw(st.none() | st.integers(1, 512)),
        K=draw(st.integers(1, 512)), groups=draw(small), dtype=draw(st.none() | st.sampled_from(Dtype)),
        layout=draw(st.sampled_from(["auto", "NCHW", "NHWC"])), bias=draw(st.none() | st.booleans()),
        norm_follows=draw(st.none() | st.booleans()), first=draw(st.booleans()), head=draw(st.booleans()),
        calls=draw(small), residual_inputs=draw(pads), **fields,
    )  # fmt: skip
    return with_output(layer)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(found=st.lists(layers(), max_size=5))
def test_any_layers(found: list[ConvLayer]) -> None:
    read_back = back(Network(path="m", layers=tuple(found)))
    for before, after in zip(found, read_back.layers, strict=True):
        assert replace(bare(after), name="") == replace(bare(before), name="")
        assert before.name == after.name or not before.name.strip() or "#" in after.name


def test_names_that_a_spec_cannot_hold() -> None:
    odd = ["", " ", "no", "1:30", "017", "a: b", "- x", "#", "a", "a", "a#2", "x" * 600, "tab\tnew\nline", "\x1b[31m"]
    odd += ["{", "ü"]
    odd += ["input of unknown size", "read by other operations", "null", "~", "&a", "*a", "!!python/object:os.system"]
    network = Network(path="m", layers=tuple(ConvLayer(name=name, K=8, R=3, S=3, norm_follows=False) for name in odd))
    names = [layer.name for layer in back(network).layers]
    assert len(set(names)) == len(odd)
    assert names[2:9] == odd[2:9]
    assert "\x1b" not in spec_text(network)


def test_runtime_mode_and_targets() -> None:
    runtime = Runtime(framework="pytorch", cudnn=Version("8.9.2"), tf32=False, cudnn_benchmark=True, compile=True)
    layer = with_output(ConvLayer(name="a", N=8, C=64, H=8, W=8, K=8, R=1, S=1))
    same_layers(Network(path="m", layers=(layer,), runtime=runtime, mode="inference", targets=("a100", "t4")))


def test_nothing_is_a_spec_too() -> None:
    assert back(Network(path="m", layers=())).layers == ()


def test_a_path_in_a_comment_cannot_end_it() -> None:
    layer = with_output(ConvLayer(name="a", K=8, R=1, S=1, path="m"))
    for odd in ("a\nlayers: []", "a\x85b", "a\u2028b", "::error ::x", "##vso[x].py", "a # b.py"):
        placed = replace(layer, path=odd, spans={"layer": (6, 1, 6, 2)})
        text = spec_text(Network(path="m", layers=(placed,)))
        assert len(text.splitlines()) == len(spec_text(Network(path="m", layers=(layer,))).splitlines())
        assert "##" not in text
        assert len(back(Network(path="m", layers=(placed,))).layers) == 1


def test_more_layers_than_one_item_reads() -> None:
    layers = [ConvLayer(name="a", path="m", K=8, R=3, S=3, norm_follows=norm) for norm in (True, False) * 300]
    found = back(Network(path="m", layers=tuple(layers)))
    assert [layer.norm_follows for layer in found.layers] == [True, False] * 300


def test_a_volume_of_unknown_depth() -> None:
    layer = ConvLayer(name="a", path="m", dims=3, C=3, D=None, H=None, W=None, K=8, T=3, R=3, S=3, Z=None)
    same_layers(Network(path="m", layers=(layer,)))


@pytest.mark.slow
def test_many_layers_of_one_name_and_unknown_size() -> None:
    """The work is linear: names that are taken are not searched for again for each layer."""
    layers = [ConvLayer(name="a", path="m", K=8, R=3, S=3, norm_follows=False) for _ in range(20_000)]
    before = time.process_time()
    text = spec_text(Network(path="m", layers=tuple(layers)))
    assert time.process_time() - before < 20
    assert (text.count("name: a,"), text.count("name: a#")) == (1, 19_999)


STEPS = {"resnet": resnet50, "mobilenet": mobilenet_v2, "unet": unet, "densenet": densenet201}


@pytest.mark.parametrize("name", STEPS)
def test_a_step_is_written_with_all_of_its_operations(name: str) -> None:
    network = told(STEPS[name]())
    read_back = back(network)
    assert read_back.whole
    a100 = load_gpu("a100")
    for mode in ("training", "inference"):
        now, then = (
            step_of(Steps(one, one.layers, 0.0, Runtime(framework="pytorch"), mode), a100)
            for one in (network, read_back)
        )
        assert then.gpu_us == pytest.approx(now.gpu_us, rel=0.01)
        assert {part for part, us in then.parts.items() if us} == {part for part, us in now.parts.items() if us}
    assert findings(read_back) == findings(network)


ATTENDS = """
version: 1
defaults: { N: 8, dtype: fp16 }
layers:
  - { name: image, op: input, C: 3, H: 32, W: 32 }
  - { name: stem, K: 64, kernel_size: 4, stride: 4 }
  - { name: n, op: layernorm }
  - { name: q, op: linear, C: 64 }
  - { name: k, op: linear, input: n, C: 64, bias: false }
  - { name: v, op: linear, input: n, C: 64 }
  - { name: a, op: attention, inputs: [q, k, v], heads: 4 }
  - { name: p, op: linear, C: 64 }
  - { name: sum, op: add, inputs: [p, stem] }
  - { name: one, op: attention }
  - { name: c, K: 128, kernel_size: 3, padding: 1 }
  - { op: norm }
  - { op: relu }
  - { name: fc, op: linear, C: 10, H: 1, W: 1 }
"""
GROUPED = """
version: 1
defaults: { N: 8, dtype: fp16 }
layers:
  - { name: image, op: input, C: 3, H: 64, W: 64 }
  - { name: a, K: 64, kernel_size: 3, padding: 1 }
  - { name: g, op: groupnorm }
  - { op: silu }
  - { name: b, K: 128, kernel_size: 3, padding: 1 }
  - { name: g2, op: groupnorm }
  - { op: silu }
  - { name: c, K: 60, kernel_size: 3, padding: 1 }
"""
SHUFFLED = """
version: 1
defaults: { N: 8, dtype: fp16 }
layers:
  - { name: image, op: input, C: 3, H: 32, W: 32 }
  - { name: a, K: 64, kernel_size: 3, padding: 1 }
  - { op: norm }
  - { name: apart, op: reshape, dims: 3, C: 32, D: 2, H: 32, W: 32 }
  - { name: moved, op: copy }
  - { name: together, op: reshape, dims: 2, C: 64, H: 32, W: 32 }
  - { name: b, K: 64, kernel_size: 3, padding: 1, groups: 64 }
  - { name: half, op: downsample, scale: 2 }
  - { name: q, op: reshape, C: 16, H: 64, W: 4 }
  - { name: scores, op: matmul, inputs: [q, half], heads: 4, C: 256, H: 256, W: 4 }
  - { op: softmax }
  - { name: same, op: resize, input: half, size: 16 }
  - { name: c, K: 64, kernel_size: 1 }
"""


def numbers(network: Network, layout: Layout, mode: Mode) -> list[Any]:
    """All that a check says of a network, on two GPUs."""
    layers = tuple(replace(layer, layout=layout) for layer in network.layers)
    targets = [Target(label=name, gpu=load_gpu(name)) for name in ("a100", "t4")]
    result = check_network(replace(network, layers=layers), BUILTIN, targets, mode)
    times = [(each.times.time_us, each.times.after_us) for each in result.networks if each.times is not None]
    steps = [(each.step.parts, each.step.host_us) for each in result.networks if each.step is not None]
    found = [
        (one.rule.code, one.gpu, one.layer, one.severity, one.lost_us, one.lost_step_us) for one in result.findings
    ]
    return [times, steps, sorted(found, key=str)]


@pytest.mark.parametrize("text", [ATTENDS, GROUPED, SHUFFLED, "whole_step: false" + GROUPED])
@pytest.mark.parametrize("mode", ["training", "inference"])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_an_exported_spec_is_judged_as_the_spec(text: str, layout: Layout, mode: Mode) -> None:
    network = read(text)
    again = back(network)
    assert again.whole is network.whole
    assert numbers(again, layout, mode) == numbers(network, layout, mode)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Shuffles", "Attends", "Tokens", "Flattened", "Judged"])
def test_a_step_of_a_module_is_written_with_all_of_its_operations(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A shuffle's copy, attention of several heads, and what reads vectors."""
    monkeypatch.chdir(ROOT / "tests" / "helpers")
    monkeypatch.syspath_prepend(str(Path.cwd()))
    network, errors = torch_module.read(f"torch_nets:{name}", ReadOptions(inputs={"": "4x3x32x32"}))
    sys.modules.pop("torch_nets")
    assert errors == ()
    assert network is not None
    again = back(network)
    assert again.whole
    assert numbers(again, "NCHW", "training") == numbers(network, "NCHW", "training")
    assert numbers(again, "NHWC", "inference") == numbers(network, "NHWC", "inference")
    free = [[(group.width, group.writers) for group in channels_of(one).groups if group.writers and not group.fixed]
            for one in (network, again)]  # fmt: skip
    assert sorted(free[0]) == sorted(free[1])
    assert sorted(free[0]) == {"Flattened": [(20, (1,)), (60, (0,))], "Judged": [(12, (0,))]}.get(name, free[0])


def test_a_sigmoid_times_what_it_read_is_one_activation() -> None:
    """As ONNX has SiLU."""
    net, a = stem()
    elements = 8 * 60 * 256
    gate = net.same("identity", a)
    silu = Work(kind="activation", op="silu", reads=(0, elements), writes=elements)
    net.conv(net.same("add", a, gate, work=silu), 8)
    network = replace(net.network(), whole=True)
    assert "op: silu" in spec_text(network)


@pytest.mark.parametrize("op", ["scale", "mul", "add"])
def test_what_a_number_is_applied_to_is_written(op: str) -> None:
    found = read(
        spec("N: 2, C: 8, H: 8, W: 8, K: 8, kernel_size: 1", f"name: x, op: {op}", "op: relu", "K: 8, kernel_size: 1")
    )
    assert f"{{name: x, op: {op}}}" in spec_text(found)


def test_a_step_that_a_spec_cannot_say_is_left_out() -> None:
    network = told(resnet50())
    last = len(network.operations) - 1
    tokens = Work(kind="attention", op="attention", reads=(8,), writes=8, product=(1, 2, 2, 2))
    odd = Operation(kind="reshape", inputs=(last,), name="odd", work=tokens, output=True)
    read_back = back(replace(network, operations=(*network.operations, odd)))
    assert not read_back.whole


def test_an_input_that_no_convolution_reads_is_part_of_the_step() -> None:
    image, other = "op: input, C: 64, H: 14, W: 28, N: 8", "op: conv1d, N: 8, C: 8, W: 9, K: 8, kernel_size: 3"
    network = read(spec(image, "op: attention", other))
    read_back = back(network)
    assert network.whole
    assert read_back.whole
    assert [one.work for one in read_back.operations] == [one.work for one in network.operations]


@pytest.mark.parametrize("whole", [True, False])
def test_a_group_norm_among_operations_left_out_tells_of_no_step(*, whole: bool) -> None:
    net, a = stem()
    odd = Work(kind="unknown", op="odd", reads=(122_880,), writes=122_880)
    net.conv(net.same("identity", net.same("identity", a, work=odd), groups=4, name="norm"), 8)
    network = replace(net.network(), whole=whole)
    read_back = back(network)
    assert not read_back.whole
    assert read_back.operations[2].groups == 4
    assert back(read_back) == read_back


def named(net: Wired, wanted: str = "written") -> list[str]:
    network = net.network()
    found = uses(network.operations, channels_of(network))
    return [operation.name for operation, use in zip(network.operations, found, strict=True) if use == wanted]


def small_stem() -> tuple[Wired, int]:
    net = Wired()
    return net, net.conv(net.step("input", C=3, sizes=(8, 8), name="x"), 24)


def test_a_classifier_is_needed_as_far_as_it_fixes_channels() -> None:
    net, a = small_stem()
    flat = net.step("reshape", net.same("resize", a, sizes=(1, 1), name="pool"), C=24, name="flat")
    net.same("identity", net.step("reshape", flat, C=10, name="linear"), name="softmax")
    assert named(net) == ["x", "op1", "pool", "flat"]


def test_what_leads_nowhere_is_needed_only_where_it_ties_channels() -> None:
    net, a = small_stem()
    b = net.conv(a, 24)
    for kind in ("identity", "resize", "concat", "add", "reshape"):
        net.same(kind, *((a, b) if kind == "add" else (a,)), name=kind)
    net.same("identity", a, name="norm", groups=4)
    network = net.network()
    operations = [operation.kind for operation in network.operations]
    assert operations.count("conv") == 2
    quiet = [replace(operation, output=False) for operation in network.operations]
    found = uses(quiet, channels_of(network))
    assert [each.name for each, use in zip(quiet, found, strict=True) if use == "written"] == [
        "x", "op1", "op2", "add", "reshape", "norm",
    ]  # fmt: skip


def test_what_only_computes_weights_is_not_needed() -> None:
    net, a = small_stem()
    kernel = net.step("input", C=7, sizes=(8, 8), name="kernel")
    made = net.same("identity", kernel, name="made")
    net.operations.append(replace(net.operations[a], inputs=(0, made), name="dynamic"))
    net.producers.append((0,))
    assert "kernel" not in named(net)


def test_what_lies_among_opaque_operations_is_passed_through() -> None:
    net, a = small_stem()
    tokens = net.step("reshape", a, C=64, name="tokens")
    attended = net.step("reshape", tokens, C=64, name="attention")
    total = net.step("add", attended, tokens, C=64, name="sum")
    net.conv(net.step("reshape", total, C=16, sizes=(2, 2), name="image"), 8)
    assert named(net) == ["x", "op1", "tokens", "image", "op6"]
    assert named(net, "passed through") == ["attention", "sum"]
    net.conv(total, 8, H=8, W=8)
    assert named(net) == ["x", "op1", "tokens", "attention", "sum", "image", "op6", "op7"]


@pytest.mark.parametrize(("kind", "word"), [("batch norm", "norm"), ("group norm", "instancenorm")])
def test_a_norm_is_written_as_what_it_is(kind: WorkKind, word: str) -> None:
    """A norm of single images reads and writes NCHW, so that channels_last costs copies around it."""
    net, a = stem()
    net.same("batchnorm", a, work=Work(kind=kind, op=f"aten::{kind}", reads=(32 * 60 * 256,), writes=32 * 60 * 256))
    network = net.network()
    assert network.layers[0].norm_follows
    assert [each.work.kind for each in back(network).operations if each.work is not None] == [kind]
    assert f"op: {word}" in spec_text(network).replace("batchnorm", "norm")


def test_a_group_norm_that_an_exporter_took_apart_is_one() -> None:
    """Its rows are few, and as many channels of an instance norm would leave SMs idle."""
    net, a = stem()
    elements = 8 * 60 * 256
    relu = net.same("identity", a, work=Work(kind="activation", op="relu", reads=(elements,), writes=elements))
    net.same("batchnorm", relu, work=Work(kind="group norm", op="group_norm", reads=(elements,), writes=elements))
    network = replace(net.network(), whole=True)
    assert "op: groupnorm, groups: 60}" in spec_text(network)
    again = back(network)
    assert again.whole
    assert spec_text(again) == spec_text(network)


def test_a_norm_of_one_group_lets_channels_change() -> None:
    """PoolFormer's are over all channels of an image at once."""
    net, a = stem()
    elements = 8 * 60 * 256
    relu = net.same("identity", a, work=Work(kind="activation", op="relu", reads=(elements,), writes=elements))
    norm = Work(kind="group norm", op="group_norm", reads=(elements,), writes=elements)
    net.conv(net.same("identity", relu, work=norm), 8)
    network = replace(net.network(), whole=True)
    assert "op: groupnorm, groups: 1}" in spec_text(network)
    again = back(network)
    assert again.whole
    assert groups(again) == groups(network)


@pytest.mark.parametrize("whole", [True, False])
def test_a_half_that_nothing_reads_is_not_handed_out(*, whole: bool) -> None:
    net, a = stem()
    part = Work(kind="copy", op="split", reads=(60 * 256,), writes=30 * 256)
    halves = [net.step("split", a, C=30, factor=2, part=part if whole else None) for _ in range(2)]
    net.conv(halves[1], 8, C=30)
    network = net.network()
    operations = [replace(each, output=each.output and number != halves[0])
                  for number, each in enumerate(network.operations)]  # fmt: skip
    network = replace(network, whole=whole, operations=tuple(operations))
    again = back(network)
    assert groups(again) == groups(network)
    assert [each.kind for each in again.operations].count("split") == 1


def test_a_maximum_of_two_tensors_reads_both() -> None:
    net, a = stem()
    elements = 8 * 8 * 256
    one, other = net.conv(a, 8), net.conv(a, 8)
    work = Work(kind="activation", op="maximum", reads=(elements, elements), writes=elements)
    net.conv(net.step("add", one, other, C=8, work=work), 8)
    network = replace(net.network(), whole=True)
    again = back(network)
    assert again.whole
    assert groups(again) == groups(network)


def test_a_reduction_to_as_many_numbers_as_channels_still_fixes_them() -> None:
    """Such as a mean over the channels and rows of a map with so many columns."""
    net, a = stem()
    wide = net.conv(a, 16)
    reduced = Work(kind="reduce", op="mean", reads=(8 * 16 * 256,), writes=8 * 16)
    net.conv(net.step("reshape", wide, C=16, sizes=(1, 1), work=reduced), 8)
    network = replace(net.network(), whole=True)
    again = back(network)
    assert again.whole
    assert groups(again) == groups(network)


def test_a_concatenation_of_one_tensor_is_a_copy() -> None:
    """A dense block begins with one; as a view it fixed the channels of all that read it."""
    net, a = stem()
    elements = 8 * 60 * 256
    relu = net.same("identity", a, work=Work(kind="activation", op="relu", reads=(elements,), writes=elements))
    cat = Work(kind="concat", op="cat", reads=(elements,), writes=elements)
    net.conv(net.step("concat", relu, C=60, work=cat), 8)
    network = replace(net.network(), whole=True)
    assert "op: copy" in spec_text(network)
    again = back(network)
    assert again.whole
    assert groups(again) == groups(network)
