"""The operations of live models and of exported programs, by the groups of channels that they make."""

import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
import torch_nets
import wired_nets
from cases import sampled
from checkout import ROOT
from small_graphs import free, groups, live, stored
from torch import nn

from convlint.model.channels import channels_of
from convlint.model.network import Network, Operation
from convlint.readers import ReadOptions
from convlint.readers.torch import layers, places, program
from convlint.readers.torch import module as live_models

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore:No complete"),
]


@pytest.fixture(autouse=True)
def _project(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's own code is this checkout's, whatever an earlier test of this process said."""
    monkeypatch.chdir(ROOT)
    places.remember_folders([])


IMAGE = (2, 3, 16, 16)


def why(network: Network, name: str) -> tuple[str, ...]:
    """What fixes the channels that a layer writes; files without their folders, which depend on the current one."""
    channels = channels_of(network)
    index = next(index for index, layer in enumerate(network.layers) if layer.name == name)
    return tuple(_bare(reason) for reason in channels.groups[channels.written[index]].fixed)


def _bare(text: str) -> str:
    return re.sub(r" at \S*/", " at ", text)


def line_of(text: str) -> str:
    """Where that stands in the networks of these tests."""
    lines = Path(wired_nets.__file__).read_text().splitlines()
    return f"wired_nets.py:{next(number for number, line in enumerate(lines, 1) if text in line)}"


def shown(each: Operation) -> tuple[Any, ...]:
    return each.kind, each.name, each.inputs, each.layer, (each.C, each.D, each.H, each.W), each.dims, each.output


FREE = {
    "Residual": {("second", "stem"): ["first", "last"], ("first",): ["second"]},
    "Dense": {("stem",): ["a", "b", "last"], ("a",): ["b", "last"], ("b",): ["last"]},
    "Inverted": {
        ("narrow", "stem"): ["last", "wide"], ("squeeze",): ["excite"],
        ("excite", "wide"): ["deep", "narrow", "squeeze"],
    },
    "Shared": {("a", "b", "c"): ["shared", "shared#2"], ("shared", "shared#2"): ["last", "last#2"]},
    "Shuffled": {("stem",): ["last"]},
    "Viewed": {("free",): ["other"]},
    "Written": {},
    "Scaled": {("stem",): ["last"]},
    "Pyramid": {("a",): ["b"]},
    "Headed": {("a",): [], ("b",): []},
}  # fmt: skip


@pytest.mark.contract
@pytest.mark.parametrize("name", FREE)
def test_each_way_to_tie_channels(name: str) -> None:
    network = live(getattr(wired_nets, name)(), IMAGE)
    assert free(network) == FREE[name]


def test_networks_that_are_tied_in_many_ways() -> None:
    unet = free(live(torch_nets.UNet(), (2, 3, 32, 32)))
    assert unet["up2",] == ["dec2.0"]
    assert unet["down1.3",] == ["dec1.0", "down2.0"]
    resnext = live(torch_nets.ResNeXt(), (2, 3, 32, 32))
    inner = [group for group in groups(resnext) if group[0] == 128]
    assert [group[4] for group in inner] == [32] * 6
    assert free(resnext)["blocks.0.0",] == ["blocks.0.2"]
    (stem,) = [group for group in groups(resnext) if "stem" in group[1]]
    assert stem[1] == ["blocks.0.4", "blocks.1.4", "blocks.2.4", "stem"]
    assert why(resnext, "stem") == ()
    (linear,) = channels_of(resnext).groups[channels_of(resnext).written[0]].linear
    assert resnext.operations[linear].where.startswith("linear at ")


@pytest.mark.parametrize(
    ("name", "decomposed"),
    sampled(
        [
            (name, decomposed)
            for name in (*FREE, "UNet", "ResNeXt", "resnet", "Slices")
            for decomposed in (False, True)
            if name != "Shuffled" or not decomposed  # pixel shuffles are decomposed into views
        ],
        5,
    ),
)
def test_exported_programs_have_the_same_groups(tmp_path: Path, name: str, decomposed: bool) -> None:
    made: Callable[[], nn.Module] = getattr(wired_nets, name, None) or getattr(torch_nets, name)
    shape = (2, 3, 64, 64) if name == "resnet" else IMAGE if name in FREE else (2, 3, 32, 32)
    assert groups(stored(tmp_path, made(), shape, decomposed=decomposed)) == groups(live(made(), shape))


@pytest.mark.contract
def test_the_operations_of_a_residual_block() -> None:
    network = live(wired_nets.Residual(), IMAGE)
    assert [shown(each) for each in network.operations] == [
        ("input", "input", (), None, (3, 1, 16, 16), 2, False),
        ("conv", "stem", (0,), 0, (20, 1, 16, 16), 2, False),
        ("identity", "relu", (1,), None, (20, 1, 16, 16), 2, False),
        ("conv", "first", (2,), 1, (12, 1, 16, 16), 2, False),
        ("identity", "relu_1", (3,), None, (12, 1, 16, 16), 2, False),
        ("conv", "second", (4,), 2, (20, 1, 16, 16), 2, False),
        ("batchnorm", "batch_norm", (5,), None, (20, 1, 16, 16), 2, False),
        ("add", "add", (6, 2), None, (20, 1, 16, 16), 2, False),
        ("identity", "relu_2", (7,), None, (20, 1, 16, 16), 2, False),
        ("conv", "last", (8,), 3, (5, 1, 16, 16), 2, True),
    ]
    assert _bare(network.operations[7].where) == f"add at {line_of('y += x')}"


def test_exported_programs_have_the_same_operations(tmp_path: Path) -> None:
    ours, theirs = live(wired_nets.Residual(), IMAGE), stored(tmp_path, wired_nets.Residual(), IMAGE)
    assert [shown(each) for each in theirs.operations[1:]] == [shown(each) for each in ours.operations[1:]]
    assert theirs.operations[0].name == "x"
    assert theirs.operations[7].where == _bare(ours.operations[7].where)


@pytest.mark.parametrize("decomposed", [None, False, True])
def test_linear_layers_that_share_weights_stay_as_they_are(tmp_path: Path, decomposed: bool | None) -> None:
    made = wired_nets.Headed()
    network = live(made, IMAGE) if decomposed is None else stored(tmp_path, made, IMAGE, decomposed=decomposed)
    widths = {network.layers[group.writers[0]].name: group for group in channels_of(network).groups if group.writers}
    assert [len(widths[name].linear) for name in ("a", "b")] == [1, 1]
    for name in ("c", "d"):
        (reason,) = widths[name].fixed
        assert re.match(r"(linear|addmm) at .* depends on it", reason)


@pytest.mark.parametrize("decomposed", [None, False, True])
def test_a_linear_layer_that_reads_pixels_too_stays_as_it_is(tmp_path: Path, decomposed: bool | None) -> None:
    made = wired_nets.Reused()
    network = live(made, IMAGE) if decomposed is None else stored(tmp_path, made, IMAGE, decomposed=decomposed)
    assert not [group for group in channels_of(network).groups if not group.fixed]


@pytest.mark.contract
def test_what_fixes_channels_is_told_with_its_line(tmp_path: Path) -> None:
    for network in (live(wired_nets.Viewed(), IMAGE), stored(tmp_path, wired_nets.Viewed(), IMAGE)):
        assert why(network, "stem") == (f"view at {line_of('y.view(')} depends on it",)
    for network in (live(wired_nets.Written(), IMAGE), stored(tmp_path, wired_nets.Written(), IMAGE)):
        assert why(network, "stem") == (f"copy into a part of it at {line_of('out[:, :8]')} depends on it",)


def test_feature_maps_that_are_handed_out(tmp_path: Path) -> None:
    for network in (live(wired_nets.Pyramid(), IMAGE), stored(tmp_path, wired_nets.Pyramid(), IMAGE)):
        assert [each.kind for each in network.operations if each.output] == ["resize", "conv"]
        assert why(network, "b") == ("the network hands it out",)


def test_calls_of_one_module_are_operations_of_one_layer(tmp_path: Path) -> None:
    for network in (live(wired_nets.Shared(), IMAGE), stored(tmp_path, wired_nets.Shared(), IMAGE)):
        names = [layer.name for layer in network.layers]
        calls = [each for each in network.operations if each.layer is not None and "shared" in names[each.layer]]
        assert [names[each.layer or 0] for each in calls] == ["shared", "shared", "shared#2"]
        assert [each.weights for each in calls] == [None, None, names.index("shared")]


class Fed(nn.Module):
    """Convolutions around whatever `between` computes."""

    def __init__(self, between: Callable[..., Any], C: int = 20) -> None:
        super().__init__()
        self.stem, self.other = nn.Conv2d(3, 20, 1), nn.Conv2d(3, 20, 1)
        self.last, self.between = nn.Conv2d(C, 5, 1), between

    def forward(self, x: torch.Tensor) -> Any:
        return self.last(self.between(self.stem(x), self.other(x)))


def test_weights_that_are_computed_from_activations_are_opaque(tmp_path: Path) -> None:
    def filtered(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.conv2d(x, y[:1].mean((2, 3), keepdim=True).expand(20, 20, 1, 1))

    for network in (live(Fed(filtered), IMAGE), stored(tmp_path, Fed(filtered), IMAGE)):
        assert free(network) == {}
        assert "test_layers.py:" in why(network, "stem")[0]


class Steps(nn.Module):
    """A series of [batch, time, features], as temporal networks get it."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Conv1d(6, 30, 5, padding=4), nn.Conv1d(30, 5, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.first(x.transpose(1, 2))[..., :-4].contiguous())


def test_a_first_layer_that_turns_what_it_reads_writes_channels_as_any(tmp_path: Path) -> None:
    for network in (live(Steps(), (2, 40, 6)), stored(tmp_path, Steps(), (2, 40, 6))):
        assert free(network) == {("first",): ["last"]}


@pytest.mark.parametrize(
    ("between", "count"),
    [
        (lambda x, y: x[..., :-4].contiguous() + y[..., :-4], 1),
        (lambda x, y: (x + y).transpose(2, 3).reshape(2, 20, 8, 32), 1),
        (lambda x, y: (x + y).transpose(2, 3).reshape(2, 5, 4, 16, 16).flatten(1, 2), 0),
        (lambda x, y: x.contiguous(memory_format=torch.channels_last) + y.flatten(2).reshape(2, 20, 16, 16), 1),
    ],
)
def test_views_that_have_to_copy_do_so_in_exported_programs(
    tmp_path: Path, between: Callable[..., Any], count: int
) -> None:
    def copies(network: Network) -> list[str]:
        works = [each.work for each in network.operations if each.work is not None]
        return [work.op for work in works if work.kind == "copy"]

    made = Fed(between)
    written = copies(stored(tmp_path, made, IMAGE))
    assert len(written) == count
    assert written == copies(live(made, IMAGE))


def test_images_without_a_batch_are_followed_in_a_batch_of_one() -> None:
    """C x H x W with C == H: channels are told from rows by the axis of a batch."""
    net = nn.Sequential(nn.Conv2d(3, 16, 1), nn.ReLU(), nn.Conv2d(16, 5, 1))
    network = live(net, (3, 16, 16))
    assert free(network) == free(live(net, (1, 3, 16, 16))) == {("0",): ["2"]}
    assert [each.C for each in network.operations if each.kind == "conv"] == [16, 5]


@pytest.mark.contract
def test_noise_and_masks_do_not_tie_channels() -> None:
    def dropped(x: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        x = x * x.new_empty((x.shape[0], 1, 1, 1)).bernoulli_(0.5)
        return x + torch.randn_like(x)

    assert ("stem",) in free(live(Fed(dropped), IMAGE, trains=True))


def test_constants_in_a_concatenation_may_follow_the_rest() -> None:
    def padded(x: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, torch.zeros(2, 40 - x.shape[1], 16, 16, device=x.device)], 1)

    assert "cat at" in why(live(Fed(padded, 40), IMAGE), "stem")[0]


def test_what_is_written_reaches_all_that_looks_at_it(tmp_path: Path) -> None:
    def filled(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        out = torch.zeros(2, 40, 16, 16, device=x.device)
        part = out[:, :20]
        part.copy_(x)
        out[:, 20:].add_(y)
        return out

    for network in (live(Fed(filled, 40), IMAGE), stored(tmp_path, Fed(filled, 40), IMAGE)):
        assert free(network) == {}
        (last,) = [edge for edge in network.edges if network.layers[edge.consumer].name == "last"]
        assert last.producers == (0, 1)
        assert not network.layers[last.consumer].first


def test_results_that_are_put_into_a_view() -> None:
    def added(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        out = torch.zeros(2, 40, 16, 16, device=x.device)
        torch.add(x[:], y, out=out[:, :20])
        return out

    network = live(Fed(added, 40), IMAGE)
    assert free(network) == {}
    assert not network.layers[-1].first
    assert "add into a part of it" in " ".join(why(network, "stem"))


def test_group_norms_are_told_with_their_line() -> None:
    normed = live(Fed(lambda x, y: F.group_norm(torch.cat([x, y], 1), 8), 40), IMAGE)
    assert re.fullmatch(r"group_norm at test_layers.py:\d+ has 8 groups across it", why(normed, "stem")[0])


def test_tensors_handed_on_as_they_are_stay_what_they_are() -> None:
    def kept(x: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        return F.relu_(F.dropout(x.contiguous().to(x.dtype), training=False))

    assert ("stem",) in free(live(Fed(kept), IMAGE))


def test_indices_beside_a_result_matter_only_where_they_are_read() -> None:
    pooled = live(Fed(lambda x, _: F.max_pool2d(x, 2, return_indices=True)[0]), IMAGE)
    assert ("stem",) in free(pooled)
    read = live(Fed(lambda x, _: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2)), IMAGE)
    assert ("stem",) not in free(read)


def test_a_forward_pass_that_ends_early_has_no_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(wired_nets.__file__).parent)
    network, errors = live_models.read("wired_nets:Asks", ReadOptions(inputs={"": "2x3x8x8"}))
    assert "depends on the values of a tensor" in errors[0].message
    assert [layer.name for layer in network.layers] == ["stem", "inner"]
    assert network.operations == ()
    whole, errors = live_models.read("wired_nets:Residual", ReadOptions(inputs={"": "2x3x8x8"}))
    assert errors == ()
    assert len(whole.operations) == 10


def test_too_many_operations_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "MOST_NOTED", 5)
    assert live(wired_nets.Residual(), IMAGE).operations == ()


def tensor(*sizes: int) -> dict[str, Any]:
    return {"dtype": 7, "sizes": [{"as_int": size} for size in sizes]}


def written(path: Path, nodes: list[Any], outputs: list[str], **tensors: Any) -> Network | None:
    """A program of an input `x`, read."""
    specs = {
        "input_specs": [{"user_input": {"arg": {"as_tensor": {"name": "x"}}}}],
        "output_specs": [{"user_output": {"arg": {"as_tensor": {"name": name}}}} for name in outputs],
    }
    graph = {"nodes": nodes, "tensor_values": {"x": tensor(2, 3, 8, 8), **tensors}}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("m/models/m.json", json.dumps({"graph_module": {"graph": graph, "signature": specs}}))
    network, _ = program.read(str(path), ReadOptions())
    return network


def test_many_results_of_many_tensors_do_not_multiply(tmp_path: Path) -> None:
    names = [{"name": f"t{index}"} for index in range(20_000)]
    first = {"target": "torch.ops.aten.a.default", "inputs": [{"name": "x", "arg": {"as_tensor": {"name": "x"}}}]}
    first["outputs"] = [{"as_tensors": names}]
    second = {**first, "inputs": [{"name": "x", "arg": {"as_tensors": names}}]}
    second["outputs"] = [{"as_tensors": [{"name": f"u{index}"} for index in range(20_000)]}]
    network = written(tmp_path / "m.pt2", [first, second], ["u7"])
    assert len(network.operations) == 40_001
    assert sum(len(each.inputs) for each in network.operations) < 60_001


def test_programs_that_do_not_say_what_they_return_have_no_operations(tmp_path: Path) -> None:
    relu = {
        "target": "torch.ops.aten.relu.default", "inputs": [{"name": "self", "arg": {"as_tensor": {"name": "x"}}}],
        "outputs": [{"as_tensor": {"name": "y"}}], "metadata": {"stack_trace": 7},
    }  # fmt: skip
    known, unknown = (written(tmp_path / "m.pt2", [relu], outputs, y=tensor(2, 3, 8, 8)) for outputs in (["y"], []))
    assert [(each.kind, each.C, each.output) for each in known.operations] == [
        ("input", 3, False), ("identity", 3, True),
    ]  # fmt: skip
    assert unknown.operations == ()


SIZED = """\
import torch
import torch.nn.functional as F
from torch import nn


class Sized(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 1)
        self.bn = nn.BatchNorm2d(8)
        self.plain = nn.BatchNorm2d(8, affine=False, track_running_stats=False)
        self.group = nn.GroupNorm(1, 8, affine=False)
        self.slope = nn.PReLU(8)
        self.one_slope = nn.PReLU()
        self.gain = nn.Parameter(torch.ones(8, 1, 1))
        self.scale = nn.Parameter(torch.ones(1))
        self.last = nn.Conv2d(8, 2, 1)

    def forward(self, x):
        x = self.slope(self.group(self.plain(self.bn(self.conv(x)))))
        return self.last(F.instance_norm(self.one_slope(x * self.gain) * self.scale).relu())
"""


def test_operations_that_have_a_size_say_where_it_is_stated(here: Path) -> None:
    (here / "net_with_sizes.py").write_text(SIZED)
    network, errors = live_models.read("net_with_sizes:Sized", ReadOptions(inputs={"": "2x3x8x8"}))
    assert errors == ()
    lines = SIZED.splitlines()
    found = [
        (each.name, each.path, lines[each.span[0] - 1][each.span[1] - 1 : each.span[3] - 1] if each.span else None)
        for each in network.operations
        if each.sized
    ]
    path = "net_with_sizes.py"
    assert found == [
        ("batch_norm", path, "nn.BatchNorm2d(8)"),
        ("batch_norm_1", path, "nn.BatchNorm2d(8, affine=False, track_running_stats=False)"),
        ("group_norm", path, "nn.GroupNorm(1, 8, affine=False)"),
        ("prelu", path, "nn.PReLU(8)"),
        ("mul", "", None),
    ]
